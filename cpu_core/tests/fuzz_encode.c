/* libFuzzer target: rows to ids with a small random model. Whatever the instruction set, the cache, the threads
 * and the rows around it, a row must have the same ids; they must spell the row; and without added tokens they
 * must be those of merging by the definition. Text and ids end where their allocations end.
 *
 *   cmake -S cpu_core -B build/fuzz -DCMAKE_C_COMPILER=clang -DSAPHIRA_FUZZ=ON && cmake --build build/fuzz
 *   build/fuzz/fuzz_encode -max_total_time=600 -max_len=600
 */
#include <stdlib.h>
#include <string.h>

#include "saphira.h"

#define MAX_ROWS 8
#define MAX_MERGES 24
#define MAX_IDS (256 + MAX_MERGES + 4)
#define HEAD (7 + MAX_ROWS)
#define MODELS 256 /* building one takes longer than using it, so they are kept */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int by_offset(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Bits of the input's second byte; the first is the scheme, the third chooses the tokens. */
enum { WHOLE_FIRST = 1, RANK_FILE = 2, PREFIX_SPACE = 4, DROP_SPACES = 8, ADDED = 16 };

typedef struct model {
  int flags;
  int32_t scheme;
  int64_t n_ids, n_merges, n_plain, offsets[MAX_IDS + 1];
  uint8_t bytes[1 << 12];
  uint32_t byte_ids[256], merges[3 * MAX_MERGES];
  sa_model *core;
} model;

static const char letters[] = "ab se\n'1.\xc3\xa9\x81";
static const char added_bytes[] = "<a><a>b ab<|endoftext|>";
static const int64_t added_offsets[] = {0, 3, 7, 10, 23};
static const uint8_t added_flags[] = {SA_ADDED_SPECIAL, 0, SA_ADDED_NORMALIZED | SA_ADDED_SINGLE_WORD, SA_ADDED_SPECIAL};

static int64_t length_of(const model *m, uint32_t id) { return m->offsets[id + 1] - m->offsets[id]; }

/* The bytes, downwards; random tokens merged from what there is; added tokens. */
static void make_model(model *m, int32_t scheme, int flags, uint32_t seed) {
  sa_stage stages[2];
  uint32_t added_ids[4];
  char error[200];
  m->scheme = scheme;
  m->flags = flags;
  m->n_merges = 0;
  for (int b = 0; b < 256; b++) {
    m->bytes[b] = (uint8_t)(255 - b);
    m->byte_ids[255 - b] = (uint32_t)b;
    m->offsets[b] = b;
  }
  m->offsets[256] = m->n_ids = 256;
  for (uint32_t i = 0, state = seed; i < MAX_MERGES; i++) {
    const int64_t at = m->offsets[m->n_ids], made = m->n_ids - 256;
    int64_t n = 0;
    uint32_t pair[2];
    for (int k = 0; k < 2; k++) {
      const uint32_t pick = (state = state * 1664525u + 1013904223u) >> 16;
      pair[k] = pick & 1 || !made ? m->byte_ids[(uint8_t)letters[pick / 2 % (sizeof letters - 1)]]
                                  : (uint32_t)(256 + pick / 2 % made);
      if (n + length_of(m, pair[k]) > 60) break;
      memcpy(m->bytes + at + n, m->bytes + m->offsets[pair[k]], (size_t)length_of(m, pair[k]));
      n += length_of(m, pair[k]);
    }
    int known = n < 2 || n != length_of(m, pair[0]) + length_of(m, pair[1]);
    for (uint32_t id = 256; id < m->n_ids && !known; id++)
      known = length_of(m, id) == n && memcmp(m->bytes + m->offsets[id], m->bytes + at, (size_t)n) == 0;
    if (known) continue;
    const uint32_t merge[3] = {pair[0], pair[1], (uint32_t)m->n_ids};
    memcpy(m->merges + 3 * m->n_merges++, merge, sizeof merge);
    m->offsets[++m->n_ids] = at + n;
  }
  m->n_plain = m->n_ids;
  for (int i = 0; i < 4 && m->flags & ADDED; i++) { /* holes of the vocabulary */
    added_ids[i] = (uint32_t)m->n_ids++;
    m->offsets[m->n_ids] = m->offsets[m->n_plain];
  }
  stages[0] = (sa_stage){.kind = SA_STAGE_LITERAL, .cuts = SA_CUT_DROP, .bytes = (const uint8_t *)" ", .n_bytes = 1};
  stages[1] = (sa_stage){.kind = SA_STAGE_SCHEME, .number = m->scheme};
  const sa_plan plan = {.scheme = m->flags & DROP_SPACES ? -1 : m->scheme,
                        .whole_piece_first = (m->flags & WHOLE_FIRST) != 0,
                        .add_prefix_space = (m->flags & PREFIX_SPACE) != 0,
                        .n_stages = 2,
                        .stages = stages,
                        .n_ids = m->n_ids,
                        .token_offsets = m->offsets,
                        .token_bytes = m->bytes,
                        .byte_ids = m->byte_ids,
                        .n_merges = m->flags & RANK_FILE ? -1 : m->n_merges,
                        .merges = m->merges,
                        .n_ranks = m->n_plain,
                        .n_added = m->n_ids - m->n_plain,
                        .added_offsets = added_offsets,
                        .added_bytes = (const uint8_t *)added_bytes,
                        .added_ids = added_ids,
                        .added_flags = added_flags};
  m->core = sa_model_new(&plan, error, sizeof error);
  if (!m->core) abort();
}

/* The model of an input's first bytes, from the kept ones. */
static const model *model_of(const uint8_t *data) {
  static model *kept[MODELS];
  static uint32_t keys[MODELS];
  const int32_t scheme = data[0] % sa_scheme_count(), flags = data[1] % 32;
  const uint32_t key = (uint32_t)scheme << 16 | (uint32_t)flags << 8 | data[2], slot = key * 2654435761u >> 24;
  if (kept[slot] && keys[slot] == key) return kept[slot];
  if (kept[slot]) sa_model_free(kept[slot]->core);
  else kept[slot] = malloc(sizeof **kept);
  make_model(kept[slot], scheme, flags, data[2]);
  keys[slot] = key;
  return kept[slot];
}

/* ---- the definition ---- */

/* The token that two neighbours make, and its rank; -1: none. */
static int64_t merged(const model *m, uint32_t left, uint32_t right) {
  if (m->flags & RANK_FILE) {
    const int64_t n = length_of(m, left), all = n + length_of(m, right);
    for (int64_t id = 256; id < m->n_plain; id++) {
      const uint8_t *bytes = m->bytes + m->offsets[id];
      if (length_of(m, (uint32_t)id) == all && memcmp(bytes, m->bytes + m->offsets[left], (size_t)n) == 0 &&
          memcmp(bytes + n, m->bytes + m->offsets[right], (size_t)(all - n)) == 0)
        return id;
    }
    return -1;
  }
  for (int64_t k = 0; k < m->n_merges; k++)
    if (m->merges[3 * k] == left && m->merges[3 * k + 1] == right) return m->merges[3 * k + 2];
  return -1;
}

/* Ids of a piece; ranks ascend with ids in both kinds of model. */
static int64_t slow_bpe(const model *m, const uint8_t *piece, int64_t n, uint32_t *ids) {
  for (int64_t id = 256; id < m->n_plain && m->flags & WHOLE_FIRST; id++)
    if (length_of(m, (uint32_t)id) == n && memcmp(m->bytes + m->offsets[id], piece, (size_t)n) == 0) {
      ids[0] = (uint32_t)id;
      return 1;
    }
  for (int64_t i = 0; i < n; i++) ids[i] = m->byte_ids[piece[i]];
  for (;;) {
    int64_t best = INT64_MAX, at = 0;
    for (int64_t i = 0; i + 1 < n; i++) {
      const int64_t id = merged(m, ids[i], ids[i + 1]);
      if (id >= 0 && id < best) best = id, at = i;
    }
    if (best == INT64_MAX) return n;
    ids[at] = (uint32_t)best;
    memmove(ids + at + 1, ids + at + 2, (size_t)(n - at - 2) * sizeof *ids);
    n--;
  }
}

/* Ids of a text by its pieces, each a run between starts. */
static int64_t slow_text(const model *m, const uint8_t *text, int64_t n, uint32_t *ids) {
  const int64_t offsets[2] = {0, n};
  const sa_rows rows = {text, offsets, 64, 1, NULL, 0};
  uint64_t *starts = calloc((size_t)n / 64 + 1, 8);
  int64_t count = 0;
  if (sa_boundaries(m->scheme, &rows, starts) != SA_OK) abort();
  for (int64_t i = 0, end; i < n; i = end) {
    for (end = i + 1; end < n && !(starts[end / 64] >> (end % 64) & 1);) end++;
    count += slow_bpe(m, text + i, end - i, ids + count);
  }
  free(starts);
  return count;
}

/* The text that the ids of a row must spell: with its prefix, without what is dropped. Returns its length. */
static int64_t spelled(const model *m, const uint8_t *text, int64_t n, uint8_t *out) {
  int64_t count = 0;
  if (m->flags & PREFIX_SPACE && !(m->flags & DROP_SPACES) && n && text[0] != ' ') out[count++] = ' ';
  for (int64_t i = 0; i < n; i++)
    if (!(m->flags & DROP_SPACES) || text[i] != ' ') out[count++] = text[i];
  return count;
}

static int64_t slow_row(const model *m, const uint8_t *text, int64_t n, uint32_t *ids) {
  int64_t count = 0;
  if (!(m->flags & DROP_SPACES)) {
    uint8_t *made = malloc((size_t)n + 1);
    count = slow_text(m, made, spelled(m, text, n, made), ids);
    free(made);
    return count;
  }
  for (int64_t i = 0, end; i < n; i = end + 1) {
    for (end = i; end < n && text[end] != ' ';) end++;
    count += slow_text(m, text + i, end - i, ids + count);
  }
  return count;
}

/* ---- the checks ---- */

typedef struct result {
  int32_t status;
  int64_t offsets[MAX_ROWS + 1];
  uint32_t *ids;
  sa_report report;
} result;

static result run(sa_encoder *encoder, const sa_rows *rows, int32_t special, int32_t threads, int64_t capacity) {
  result r;
  const sa_options options = {special, threads, capacity};
  r.ids = malloc(capacity ? (size_t)capacity * sizeof *r.ids : 1);
  r.status = sa_encode(encoder, rows, &options, r.ids, r.offsets, NULL, &r.report);
  return r;
}

static int same(const result *a, const result *b, int64_t n_rows) {
  if (a->status != b->status) return 0;
  if (a->status == SA_ERR_SPECIAL)
    return a->report.error_row == b->report.error_row && a->report.error_byte == b->report.error_byte;
  return memcmp(a->offsets, b->offsets, (size_t)(n_rows + 1) * 8) == 0 &&
         memcmp(a->ids, b->ids, (size_t)a->offsets[n_rows] * sizeof *a->ids) == 0;
}

static void check_row(const model *m, const uint8_t *text, int64_t n, const uint32_t *ids, int64_t count) {
  uint8_t *expected = malloc((size_t)n + 1);
  const int64_t length = spelled(m, text, n, expected);
  int64_t at = 0;
  for (int64_t i = 0; i < count; i++) {
    const uint32_t id = ids[i];
    const int hole = id >= m->n_plain;
    if (id >= m->n_ids) abort();
    const uint8_t *bytes = hole ? (const uint8_t *)added_bytes + added_offsets[id - m->n_plain] : m->bytes + m->offsets[id];
    const int64_t k = hole ? added_offsets[id - m->n_plain + 1] - added_offsets[id - m->n_plain] : length_of(m, id);
    if (at + k > length || memcmp(expected + at, bytes, (size_t)k) != 0) abort();
    at += k;
  }
  if (at != length) abort();
  free(expected);
  if (m->flags & ADDED || n > 2000) return;
  uint32_t *slow = malloc((size_t)(n + 1) * sizeof *slow);
  if (slow_row(m, text, n, slow) != count || memcmp(slow, ids, (size_t)count * sizeof *ids) != 0) abort();
  free(slow);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t validity[1];
  if (size < HEAD || size > 4096) return 0;
  const model *m = model_of(data);
  const int32_t special = data[3] % 4, threads = 2 + data[3] / 64;
  const int64_t repeat = data[4] < 240 ? 1 : 30, part = (int64_t)(size - HEAD), n = part * repeat;
  const int64_t n_rows = 1 + data[5] % MAX_ROWS, capacity = sa_model_rewrites(m->core) ? 2 * n + 64 : n;
  /* Where tokens are added and text is changed, ids spell what is between them: no simple rule. */
  const int spells = !(m->flags & ADDED) || !(m->flags & (PREFIX_SPACE | DROP_SPACES));
  int64_t offsets[MAX_ROWS + 1] = {0};
  uint8_t *text = malloc(n ? (size_t)n : 1);
  for (int64_t i = 0; i < repeat && part; i++) memcpy(text + i * part, data + HEAD, (size_t)part);
  for (int64_t i = 1; i < n_rows; i++) offsets[i] = data[7 + i] * (n + 1) / 256;
  offsets[n_rows] = n;
  qsort(offsets, (size_t)n_rows + 1, sizeof *offsets, by_offset);
  validity[0] = data[6] | 1;
  const sa_rows rows = {text, offsets, 64, n_rows, validity, 0};
  result expected = {0};
  for (int32_t isa = 0; isa < SA_ISA_COUNT; isa++) {
    if (sa_isa_select(isa) != SA_OK) continue;
    for (int k = 0; k < 2; k++) {
      sa_encoder *encoder = sa_encoder_new(m->core, k << 16);
      for (int call = 0; call < 2; call++) { /* cold, then warm and in threads */
        result r = run(encoder, &rows, special, call && k == isa % 2 ? threads : 1, capacity);
        if (!expected.ids) {
          expected = r;
          continue;
        }
        if (!same(&r, &expected, n_rows)) abort();
        free(r.ids);
      }
      sa_encoder_free(encoder);
    }
  }
  if (expected.status != SA_OK && (special != SA_SPECIAL_ERROR || expected.status != SA_ERR_SPECIAL)) abort();
  sa_encoder *encoder = sa_encoder_new(m->core, 0);
  for (int64_t i = 0; i < n_rows && expected.status == SA_OK; i++) {
    const int64_t length = offsets[i + 1] - offsets[i], count = expected.offsets[i + 1] - expected.offsets[i];
    const uint32_t *ids = expected.ids + expected.offsets[i];
    if (!(validity[0] >> i & 1)) {
      if (count) abort();
      continue;
    }
    if (spells) check_row(m, text + offsets[i], length, ids, count);
    const sa_rows one = {text + offsets[i], (int64_t[]){0, length}, 64, 1, NULL, 0};
    result r = run(encoder, &one, special, 1, sa_model_rewrites(m->core) ? 2 * length + 64 : length);
    if (r.status != SA_OK || r.offsets[1] != count || memcmp(r.ids, ids, (size_t)count * sizeof *ids) != 0) abort();
    free(r.ids);
  }
  sa_encoder_free(encoder);
  free(expected.ids);
  free(text);
  return 0;
}
