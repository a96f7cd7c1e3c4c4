/* Consumers: programs, and rows run through them in chunks that stay in the cache. */
#include <stdlib.h>

#include "consumers.h"

#define CHUNK_BYTES (1 << 15)
#define CHUNK_ROWS (1 << 12)
#define BLOCK_WORDS 512  /* made into positions at a time */
#define POSITIONS_BYTES (4 * (64 * BLOCK_WORDS + 16))

extern const struct sa_consumer_ops sa_consumer_ops_scalar;
#if defined(__x86_64__) || defined(_M_X64)
extern const struct sa_consumer_ops sa_consumer_ops_avx2, sa_consumer_ops_avx512;
#elif defined(__aarch64__)
extern const struct sa_consumer_ops sa_consumer_ops_neon;
#endif

const struct sa_consumer_ops *sa_consumer_ops_active(void) {
  switch (sa_isa_active()) {
#if defined(__x86_64__) || defined(_M_X64)
    case SA_ISA_AVX2: return &sa_consumer_ops_avx2;
    case SA_ISA_AVX512: return &sa_consumer_ops_avx512;
#elif defined(__aarch64__)
    case SA_ISA_NEON: return &sa_consumer_ops_neon;
#endif
    default: return &sa_consumer_ops_scalar;
  }
}

/* ---- programs ---- */

static int is_rewrite(int32_t kind) { return kind >= SA_STAGE_PREFIX && kind <= SA_STAGE_BYTEMAP; }

/* Whether a proper prefix of the bytes is a suffix of them too. */
static int overlaps_itself(const uint8_t *bytes, int64_t n) {
  for (int64_t by = 1; by < n; by++)
    if (memcmp(bytes, bytes + by, (size_t)(n - by)) == 0) return 1;
  return 0;
}

static int is_sensible(const sa_stage *stage) {
  switch (stage->kind) {
    case SA_STAGE_CLASSES: return stage->n_bytes == 32;
    case SA_STAGE_LITERAL: return stage->n_bytes >= 1;
    case SA_STAGE_DIGITS3: case SA_STAGE_SCRIPTS: case SA_STAGE_BYTEMAP: return 1;
    case SA_STAGE_MATCH: return stage->match != NULL;
    case SA_STAGE_SCHEME: return stage->number == (int32_t)stage->number && sa_scheme_of((int32_t)stage->number);
    case SA_STAGE_LENGTH: return stage->number >= 1;
    case SA_STAGE_PREFIX: return stage->n_bytes >= 1 && stage->n_bytes <= 4;
    case SA_STAGE_REPLACE: return stage->n_bytes >= 1 && stage->n_bytes <= 4 && stage->number >= 0 && stage->number <= 2;
    default: return 0;
  }
}

static int step_init(sa_step *step, const sa_stage *stage) {
  uint8_t *bytes = malloc(stage->n_bytes > 0 ? (size_t)stage->n_bytes : 1);
  const uint8_t *tags = sa_table("sa_superatom_ascii", NULL);
  step->stage = *stage;
  step->stage.bytes = bytes;
  if (!bytes) return 0;
  if (stage->n_bytes > 0) memcpy(bytes, stage->bytes, (size_t)stage->n_bytes);
  if (stage->kind == SA_STAGE_CLASSES) {
    memcpy(step->classes.bits, bytes, 32);
    for (int i = 0; i < 128; i++) step->classes.ascii_bits[i] = bytes[tags[i]];
    for (int i = 0; i < 32; i++) step->wanted |= bytes[i];
  }
  if (stage->kind == SA_STAGE_LITERAL && stage->n_bytes <= 8)
    step->overlaps = overlaps_itself(bytes, stage->n_bytes);
  return 1;
}

sa_program *sa_program_new(const sa_stage *stages, int64_t n_stages) {
  sa_program *p = calloc(1, sizeof *p);
  if (!p) return NULL;
  p->steps = calloc(n_stages > 0 ? (size_t)n_stages : 1, sizeof *p->steps);
  for (int64_t i = 0; p->steps && i < n_stages; i++) {
    p->n_steps = i + 1;
    if (!is_sensible(&stages[i]) || !step_init(&p->steps[i], &stages[i])) {
      sa_program_free(p);
      return NULL;
    }
    p->rewrites |= is_rewrite(stages[i].kind);
  }
  if (p->steps) return p;
  free(p);
  return NULL;
}

void sa_program_free(sa_program *program) {
  if (!program) return;
  for (int64_t i = 0; i < program->n_steps; i++) free((void *)program->steps[i].stage.bytes);
  free(program->steps);
  free(program);
}

int64_t sa_program_bound(const sa_program *program, int64_t n) {
  for (int64_t i = 0; i < program->n_steps; i++) {
    const sa_stage *stage = &program->steps[i].stage;
    const int64_t grows = !is_rewrite(stage->kind)            ? 1
                          : stage->kind == SA_STAGE_BYTEMAP ? 2
                          : stage->kind == SA_STAGE_PREFIX  ? 1 + stage->n_bytes
                                                            : 2 * stage->n_bytes;
    if (n > INT64_MAX / grows) return INT64_MAX;
    n *= grows;
  }
  return n;
}

/* ---- drafts ---- */

void *sa_draft_room(sa_draft *w, int i, int64_t n) {
  sa_memory *room = &w->memory[i];
  if ((size_t)n > room->size) {
    const size_t size = (size_t)n + (size_t)n / 2 + 64;
    free(room->at);
    room->at = malloc(size);
    room->size = room->at ? size : 0;
  }
  return room->at;
}

int32_t sa_draft_words(sa_draft *w) {
  const int64_t n_words = w->n / 64 + 1, bytes = 8 * n_words;
  w->n_words = n_words;
  w->cuts = sa_draft_room(w, SA_ROOM_CUTS, bytes);
  w->drop = sa_draft_room(w, SA_ROOM_DROP, bytes);
  w->starts = sa_draft_room(w, SA_ROOM_STARTS, bytes);
  for (int j = 0; j < SA_CLASS_PLANES; j++) w->planes[j] = sa_draft_room(w, SA_ROOM_PLANES + j, bytes);
  for (int i = SA_ROOM_CUTS; i < SA_ROOM_PLANES + SA_CLASS_PLANES; i++)
    if (!w->memory[i].at) return SA_ERR_NOMEM;
  memset(w->cuts, 0, (size_t)bytes);
  memset(w->drop, 0, (size_t)bytes);
  w->cuts[w->n / 64] = (uint64_t)1 << (w->n % 64);
  w->drop[w->n / 64] = ~(uint64_t)0 << (w->n % 64);
  return SA_OK;
}

void sa_draft_release(sa_draft *w) {
  for (int i = 0; i < SA_ROOMS; i++) free(w->memory[i].at);
}

/* Sets bits [from, to) of drop. */
static void drop_range(sa_draft *w, int64_t from, int64_t to) {
  while (from < to) {
    const int64_t k = from / 64, stop = (k + 1) * 64 < to ? (k + 1) * 64 : to;
    w->drop[k] |= (~(uint64_t)0 >> (64 - (stop - from))) << (from % 64);
    from = stop;
  }
}

/* Takes up rows [row, row_end). */
static int32_t load_chunk(sa_draft *w, const sa_rows *rows, int64_t row, int64_t row_end) {
  const int64_t base = sa_offset(rows->offsets, rows->offset_bits, row), n_rows = row_end - row;
  w->given = sa_draft_room(w, SA_ROOM_GIVEN, 8 * (n_rows + 1));
  w->rows = sa_draft_room(w, SA_ROOM_ROWS, 8 * (n_rows + 1));
  if (!w->given || !w->rows) return SA_ERR_NOMEM;
  for (int64_t i = 0; i <= n_rows; i++) {
    w->given[i] = sa_offset(rows->offsets, rows->offset_bits, row + i) - base;
    if (w->given[i] < (i ? w->given[i - 1] : 0)) return SA_ERR_ARGUMENT;
  }
  memcpy(w->rows, w->given, (size_t)(n_rows + 1) * 8);
  w->text = rows->text + base;
  w->n = w->given[n_rows];
  w->n_words = w->n / 64 + 1;
  w->n_rows = n_rows;
  w->from = w->to = NULL;
  w->which = 0;
  w->mapped = 0;
  return SA_OK;
}

/* Runs the program over the rows taken up, the first of which is `row`. */
static int32_t run_steps(sa_draft *w, const sa_program *p, const sa_rows *rows, int64_t row) {
  int32_t status = sa_draft_words(w);
  if (status != SA_OK) return status;
  for (int64_t i = 0; i < w->n_rows; i++) w->cuts[w->given[i] / 64] |= (uint64_t)1 << (w->given[i] % 64);
  for (int64_t i = 0; rows->validity && i < w->n_rows; i++)
    if (sa_is_null(rows, row + i)) drop_range(w, w->given[i], w->given[i + 1]);
  for (int64_t i = 0; i < p->n_steps && status == SA_OK && w->n > 0; i++) {
    const sa_step *step = &p->steps[i];
    status = is_rewrite(step->stage.kind) ? sa_step_rewrite(w, step) : sa_step_cut(w, step);
    w->mapped |= step->stage.kind == SA_STAGE_BYTEMAP;
  }
  return status;
}

int32_t sa_draft_run(sa_draft *w, const sa_program *p, const sa_rows *rows, int64_t row, int64_t row_end) {
  const int32_t status = load_chunk(w, rows, row, row_end);
  return status == SA_OK ? run_steps(w, p, rows, row) : status;
}

/* The rows of the next chunk: about CHUNK_BYTES of text, at least one row. */
int64_t sa_draft_rows(const sa_rows *rows, int64_t row) {
  const int64_t limit = sa_offset(rows->offsets, rows->offset_bits, row) + CHUNK_BYTES;
  int64_t end = row + 1;
  while (end < rows->n_rows && end - row < CHUNK_ROWS &&
         sa_offset(rows->offsets, rows->offset_bits, end + 1) <= limit)
    end++;
  return end;
}

/* ---- pieces ---- */

/* The bitmaps of piece starts and ends, in the stages' memory. */
static void mark_pieces(sa_draft *w) {
  for (int64_t k = 0; k < w->n_words; k++) {
    w->starts[k] = sa_piece_starts(w, k);
    w->planes[0][k] = sa_piece_ends(w, k);
  }
}

/* counts[i] = pieces that start in row i of the chunk. */
static void count_pieces(const sa_draft *w, int64_t *counts) {
  int64_t k = 0, before = 0, done = 0;  /* pieces in words before k, and in rows before this one */
  for (int64_t i = 0; i < w->n_rows; i++) {
    const int64_t end = w->rows[i + 1];
    for (; k < end / 64; k++) before += sa_popcount64(w->starts[k]);
    const u64 below = ((u64)1 << (end % 64)) - 1;
    const int64_t all = before + (below ? sa_popcount64(w->starts[k] & below) : 0);
    counts[i] = all - done;
    done = all;
  }
}

/* Positions, as bytes of their row of the given text, of the chunk's piece starts (is_end = 0) or ends (1).
 * Returns how many. room: for 64 * BLOCK_WORDS + 16. */
static int64_t positions(const sa_draft *w, const uint64_t *words, int is_end, uint32_t *room, int64_t *out) {
  const struct sa_backend *backend = sa_backend_active();
  const uint32_t *source = is_end ? w->to : w->from;
  int64_t row = 0, n = 0;
  for (int64_t first = 0; first < w->n_words; first += BLOCK_WORDS) {
    const int64_t count = w->n_words - first < BLOCK_WORDS ? w->n_words - first : BLOCK_WORDS;
    const int64_t base = 64 * first - is_end;
    const int64_t found = backend->extract(words + first, (size_t)count, 0, room);
    for (int64_t i = 0; i < found;) {  /* row by row */
      int64_t stop = found;
      while (w->rows[row + 1] <= base + room[i]) row++;
      if (base + room[found - 1] >= w->rows[row + 1]) {
        int64_t lo = i;  /* the last one that lies in the row */
        while (stop - lo > 1) {
          const int64_t mid = lo + (stop - lo) / 2;
          if (base + room[mid] < w->rows[row + 1]) lo = mid;
          else stop = mid;
        }
      }
      if (!source) {
        const int64_t add = base + is_end - w->given[row];
        for (; i < stop; i++) out[n++] = room[i] + add;
      } else {
        for (; i < stop; i++) out[n++] = source[base + room[i]] - w->given[row];
      }
    }
  }
  return n;
}

/* Sets the bits of the places in the given text that bits of the new one come from. Returns 0 where two
 * pieces have one place, which a bitmap can't tell. room: as for positions. */
static int project(const sa_draft *w, const uint64_t *words, int is_end, uint32_t *room, uint64_t *out) {
  const struct sa_backend *backend = sa_backend_active();
  const uint32_t *source = is_end ? w->to : w->from;
  int64_t last = -1, k = 0;
  uint64_t word = 0;
  memset(out, 0, 8 * (size_t)(w->given[w->n_rows] / 64 + 1));
  for (int64_t first = 0; first < w->n_words; first += BLOCK_WORDS) {
    const int64_t count = w->n_words - first < BLOCK_WORDS ? w->n_words - first : BLOCK_WORDS;
    const int64_t found = backend->extract(words + first, (size_t)count, 0, room);
    for (int64_t i = 0; i < found; i++) {
      const int64_t place = source[64 * first - is_end + room[i]];
      if (place <= last) return 0;
      last = place;
      if (place / 64 != k) {
        out[k] = word;
        k = place / 64;
        word = 0;
      }
      word |= (uint64_t)1 << (place % 64);
    }
  }
  out[k] = word;
  return 1;
}

/* Keeps what the second pass needs of a chunk of n pieces. */
static int32_t keep_marks(sa_marks *m, sa_draft *w, int64_t n) {
  const int64_t given = w->given[w->n_rows] / 64 + 1, most = w->from && n > given ? n : given;
  uint32_t *room = w->from ? sa_draft_room(w, SA_ROOM_POSITIONS, POSITIONS_BYTES) : NULL;
  uint64_t *to;
  int bits = 1;
  if (w->from && !room) return SA_ERR_NOMEM;
  if (m->n + 1 + 2 * most > m->capacity) {
    const int64_t capacity = (m->n + 2 * most) * 3 / 2 + 1024;
    uint64_t *words = realloc(m->words, (size_t)capacity * 8);
    if (!words) return SA_ERR_NOMEM;
    m->words = words;
    m->capacity = capacity;
  }
  to = m->words + m->n + 1;
  if (!w->from) {
    memcpy(to, w->starts, (size_t)given * 8);
    memcpy(to + given, w->planes[0], (size_t)given * 8);
  } else if (!project(w, w->starts, 0, room, to) || !project(w, w->planes[0], 1, room, to + given)) {
    bits = 0;
    positions(w, w->starts, 0, room, (int64_t *)to);
    positions(w, w->planes[0], 1, room, (int64_t *)(to + n));
  }
  to[-1] = (uint64_t)bits;
  m->n += 1 + 2 * (bits ? given : n);
  return SA_OK;
}

static int64_t sum(const int64_t *counts, int64_t n) {
  int64_t all = 0;
  for (int64_t i = 0; i < n; i++) all += counts[i];
  return all;
}

int32_t sa_pretokenize_count(const sa_program *program, const sa_rows *rows, int64_t *counts, sa_marks **marks) {
  sa_draft w = {.n = 0};
  sa_marks *m = calloc(1, sizeof *m);
  int32_t status = m ? SA_OK : SA_ERR_NOMEM;
  for (int64_t row = 0; row < rows->n_rows && status == SA_OK;) {
    const int64_t end = sa_draft_rows(rows, row);
    status = load_chunk(&w, rows, row, end);
    if (status == SA_OK) status = run_steps(&w, program, rows, row);
    if (status == SA_OK) {
      mark_pieces(&w);
      count_pieces(&w, counts + row);
      status = keep_marks(m, &w, sum(counts + row, end - row));
    }
    row = end;
  }
  sa_draft_release(&w);
  *marks = m;
  if (status == SA_OK) return SA_OK;
  sa_marks_free(m);
  *marks = NULL;
  return status;
}

void sa_marks_free(sa_marks *marks) {
  if (!marks) return;
  free(marks->words);
  free(marks);
}

int32_t sa_pretokenize(const sa_rows *rows, const int64_t *counts, const sa_marks *marks, int64_t *starts,
                       int64_t *ends) {
  sa_draft w = {.n = 0};
  const uint64_t *words = marks->words;
  uint32_t *room = sa_draft_room(&w, SA_ROOM_POSITIONS, POSITIONS_BYTES);
  int32_t status = room ? SA_OK : SA_ERR_NOMEM;
  for (int64_t row = 0; row < rows->n_rows && status == SA_OK;) {
    const int64_t end = sa_draft_rows(rows, row);
    int64_t n = sum(counts + row, end - row);
    status = load_chunk(&w, rows, row, end);
    if (status != SA_OK) break;
    if (*words++) {
      positions(&w, words, 0, room, starts);
      positions(&w, words + w.n_words, 1, room, ends);
      words += 2 * w.n_words;
    } else {
      memcpy(starts, words, (size_t)n * 8);
      memcpy(ends, words + n, (size_t)n * 8);
      words += 2 * n;
    }
    starts += n;
    ends += n;
    row = end;
  }
  sa_draft_release(&w);
  return status;
}

int32_t sa_pretokenize_text(const sa_program *program, const uint8_t *text, int64_t n, int64_t *sizes,
                            uint8_t *made, int64_t *spans) {
  const int64_t offsets[2] = {0, n};
  const sa_rows rows = {text, offsets, 64, 1, NULL, 0};
  sa_draft w = {.n = 0};
  int64_t i = 0, j = 0;
  const int32_t status = sa_draft_run(&w, program, &rows, 0, 1);
  if (status == SA_OK) {
    sizes[0] = w.n;
    sizes[1] = 0;
    for (int64_t k = 0; k < w.n_words; k++) sizes[1] += sa_popcount64(sa_piece_starts(&w, k));
    if (made && w.n) memcpy(made, w.text, (size_t)w.n);
    for (int64_t k = 0; made && k < w.n_words; k++) {
      for (u64 left = sa_piece_starts(&w, k); left; left &= left - 1) {
        const int64_t at = 64 * k + sa_ctz64(left);
        spans[4 * i] = at;
        spans[4 * i++ + 2] = w.from ? w.from[at] : at;
      }
      for (u64 left = sa_piece_ends(&w, k); left; left &= left - 1) {
        const int64_t at = 64 * k + sa_ctz64(left);
        spans[4 * j + 1] = at;
        spans[4 * j++ + 3] = w.to ? w.to[at - 1] : at;
      }
    }
  }
  sa_draft_release(&w);
  return status;
}
