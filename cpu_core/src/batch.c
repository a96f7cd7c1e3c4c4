/* sa_encode: cuts rows into work items of about the same bytes, encodes them on threads, and puts their ids in
 * order. The item whose turn it is writes straight to its place in the output; an item that is ahead of its
 * turn writes to memory of its own, copied when its turn comes. */
#include "batch.h"

#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "consumers.h"

#define ITEM_WEIGHT (256 << 10)
#define ROW_WEIGHT 4               /* what a row costs, in bytes of text */
#define THREAD_WEIGHT (128 << 10)  /* less than this for each does not pay for a thread */
#define AHEAD 4                    /* items per thread that may wait for their turn */
#define SLAB_KEPT (4 << 20)        /* larger slabs, in ids, are not kept */
#define MADE_BYTES (64 << 10)      /* new text made before it is encoded */

typedef struct item {
  int64_t row, row_end;
  sa_slab slab;             /* its own memory, unless written in place */
  int64_t n_ids;
  int32_t done;
} item;

typedef struct job {
  sa_encoder *encoder;
  const sa_rows *rows;
  const sa_options *options;
  uint32_t *ids;
  int64_t *row_ids;         /* id_offsets + 1 */
  int64_t *hits;
  sa_report *report;
  int64_t n_items;
  item *items;
  int32_t threads;
  pthread_mutex_t lock;
  pthread_cond_t turn;
  int64_t next_item;        /* to start */
  int64_t next_turn;        /* to be put in order */
  int64_t total;            /* ids in order so far */
  int32_t overflow;         /* more than fit */
  int32_t status;
} job;

/* One thread's part in a job. */
typedef struct worker {
  job *job;
  sa_context *context;
  int64_t *offsets;         /* of the item's rows, 64-bit */
  int64_t offsets_capacity;
  sa_spans spans, inner;    /* added tokens of a row, and of a normalized segment of it */
  sa_buffer segment;        /* a normalized segment */
  sa_buffer made;           /* new text of rows, and where each starts in it */
  int64_t *made_offsets;
  int64_t made_capacity;
  int64_t *hits;
} worker;

/* ---- what an encoder keeps between calls ---- */

sa_encoder *sa_encoder_new(const sa_model *model, int64_t cache_bytes) {
  sa_encoder *e = calloc(1, sizeof *e);
  if (!e) return NULL;
  e->model = model;
  e->cache_bytes = cache_bytes;
  pthread_mutex_init(&e->lock, NULL);
  return e;
}

void sa_encoder_free(sa_encoder *e) {
  if (!e) return;
  for (int32_t i = 0; i < e->n_idle; i++) sa_context_free(e->idle[i]);
  for (int32_t i = 0; i < e->n_slabs; i++) free(e->slabs[i].ids);
  free(e->idle);
  free(e->slabs);
  pthread_mutex_destroy(&e->lock);
  free(e);
}

/* Room for one more in a list; 0 where there is none. */
static int list_room(void **list, int32_t n, int32_t *capacity, size_t size) {
  if (n < *capacity) return 1;
  const int32_t wanted = *capacity ? 2 * *capacity : 16;
  void *grown = realloc(*list, (size_t)wanted * size);
  if (!grown) return 0;
  *list = grown;
  *capacity = wanted;
  return 1;
}

static sa_context *take_context(sa_encoder *e) {
  pthread_mutex_lock(&e->lock);
  sa_context *context = e->n_idle ? e->idle[--e->n_idle] : NULL;
  pthread_mutex_unlock(&e->lock);
  return context ? context : sa_context_new(e->model, e->cache_bytes);
}

static void give_context(sa_encoder *e, sa_context *context) {
  pthread_mutex_lock(&e->lock);
  const int room = list_room((void **)&e->idle, e->n_idle, &e->idle_capacity, sizeof *e->idle);
  if (room) e->idle[e->n_idle++] = context;
  pthread_mutex_unlock(&e->lock);
  if (!room) sa_context_free(context);
}

/* A slab for n ids; ids is NULL when out of memory. */
static sa_slab take_slab(sa_encoder *e, int64_t n) {
  sa_slab slab = {NULL, 0};
  pthread_mutex_lock(&e->lock);
  if (e->n_slabs) slab = e->slabs[--e->n_slabs];
  pthread_mutex_unlock(&e->lock);
  if (slab.capacity < n) {
    free(slab.ids);
    slab.ids = malloc((size_t)n * sizeof *slab.ids);
    slab.capacity = n;
  }
  return slab;
}

static void give_slab(sa_encoder *e, sa_slab slab) {
  pthread_mutex_lock(&e->lock);
  const int room = slab.capacity <= SLAB_KEPT &&
                   list_room((void **)&e->slabs, e->n_slabs, &e->slabs_capacity, sizeof *e->slabs);
  if (room) e->slabs[e->n_slabs++] = slab;
  pthread_mutex_unlock(&e->lock);
  if (!room) free(slab.ids);
}

/* ---- one item ---- */

static int64_t offset_of(const sa_rows *rows, int64_t row) {
  return sa_offset(rows->offsets, rows->offset_bits, row);
}

/* What the rows before `row` weigh: their bytes and a little for each. */
static int64_t weight(const sa_rows *rows, int64_t row) {
  return offset_of(rows, row) - offset_of(rows, 0) + ROW_WEIGHT * row;
}

/* The first row that has at least this weight before it, n_rows if none has. */
static int64_t row_at(const sa_rows *rows, int64_t wanted) {
  int64_t lo = 0, hi = rows->n_rows;
  while (lo < hi) {
    const int64_t mid = lo + (hi - lo) / 2;
    if (weight(rows, mid) < wanted) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

static int32_t special_error(const worker *w, int64_t row, sa_span hit) {
  job *j = w->job;
  pthread_mutex_lock(&j->lock);
  if (j->report->error_row < 0 || row < j->report->error_row) {
    j->report->error_row = row;
    j->report->error_byte = hit.start;
    j->report->error_added = hit.added;
  }
  pthread_mutex_unlock(&j->lock);
  return SA_ERR_SPECIAL;
}

/* The added tokens of a text that starts at byte `at` of its row. A status. */
static int32_t find_added(worker *w, sa_spans *spans, int pass, int64_t row, int64_t at, const uint8_t *text,
                          int64_t n) {
  const int32_t status =
      sa_added_spans(&w->context->model->added, pass, w->job->options->special, text, n, spans, w->hits);
  if (status != SA_ERR_SPECIAL) return status;
  sa_span hit = spans->items[spans->n - 1];
  hit.start += at;
  return special_error(w, row, hit);
}

/* A row with added tokens in it: text and tokens in turn. Returns the ids written, or minus a status. */
static int64_t encode_special_row(worker *w, int64_t row, int64_t start, int64_t end, uint32_t *out) {
  const sa_added *added = &w->context->model->added;
  const uint8_t *text = w->job->rows->text;
  const int32_t status = find_added(w, &w->spans, SA_PASS_BOTH, row, 0, text + start, end - start);
  if (status != SA_OK) return -status;
  int64_t n = 0, from = start;
  for (int64_t k = 0; k <= w->spans.n; k++) {
    const int64_t to = k < w->spans.n ? start + w->spans.items[k].start : end;
    if (from < to) {
      const int64_t segment[2] = {from, to};
      const int64_t got = sa_encode_rows(w->context, text, segment, 1, out + n, NULL, 0);
      if (got < 0) return got;
      n += got;
    }
    if (k == w->spans.n) break;
    out[n++] = added->ids[w->spans.items[k].added];
    from = start + w->spans.items[k].end;
  }
  return n;
}

/* Whether text has to be searched for added tokens. */
static int searched(const job *j, const sa_added *added) {
  if (added->all.n == 0) return 0;
  return j->options->special != SA_SPECIAL_PLAIN || added->any_blank || j->hits != NULL;
}

/* The next row from `row` on that is not plain text to be encoded: a null row with bytes under it, or one with
 * an added token's content in it. *match: a cursor, the start of the next content. */
static int64_t next_barrier(const worker *w, const item *it, int64_t row, int search, int64_t *match) {
  const sa_rows *rows = w->job->rows;
  const int64_t *offsets = w->offsets - it->row;
  int64_t barrier = it->row_end;
  if (search) {
    const int64_t end = offsets[it->row_end];
    while (*match < end) {
      if (*match < offsets[row]) {
        *match = sa_added_next(&w->context->model->added, SA_PASS_BOTH, rows->text, offsets[row], end);
        continue;
      }
      int64_t lo = row, hi = it->row_end; /* the last row that starts at or before the match */
      while (hi - lo > 1) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (offsets[mid] <= *match) lo = mid;
        else hi = mid;
      }
      barrier = lo;
      break;
    }
  }
  if (rows->validity)
    for (int64_t r = row; r < barrier; r++)
      if (sa_is_null(rows, r) && offsets[r] < offsets[r + 1]) return r;
  return barrier;
}

/* Encodes an item's rows; row_ids count from the item's start. Returns the ids, or minus a status. */
static int64_t encode_item(worker *w, const item *it, uint32_t *out) {
  const job *j = w->job;
  const int64_t *offsets = w->offsets - it->row;
  const int search = searched(j, &w->context->model->added);
  int64_t n = 0, match = -1;
  for (int64_t row = it->row; row < it->row_end;) {
    const int64_t barrier = next_barrier(w, it, row, search, &match);
    if (row < barrier) {
      const int64_t got = sa_encode_rows(w->context, j->rows->text, offsets + row, barrier - row, out + n,
                                         j->row_ids + row, n);
      if (got < 0) return got;
      n += got;
    }
    if (barrier == it->row_end) break;
    if (!sa_is_null(j->rows, barrier)) {
      const int64_t got = encode_special_row(w, barrier, offsets[barrier], offsets[barrier + 1], out + n);
      if (got < 0) return got;
      n += got;
    }
    j->row_ids[barrier] = n;
    row = barrier + 1;
  }
  return n;
}

/* ---- models that make new text ---- */

/* Appends n bytes; 0 when out of memory. */
static int append(sa_buffer *buffer, const uint8_t *bytes, int64_t n) {
  if (buffer->n + n > buffer->capacity) {
    const int64_t capacity = 2 * (buffer->n + n);
    uint8_t *grown = realloc(buffer->data, (size_t)capacity);
    if (!grown) return 0;
    buffer->data = grown;
    buffer->capacity = capacity;
  }
  if (n) memcpy(buffer->data + buffer->n, bytes, (size_t)n);
  buffer->n += n;
  return 1;
}

/* Appends a segment that is ready for pretok: with a space before it, if the model wants one. */
static int append_segment(worker *w, const uint8_t *text, int64_t n) {
  if (w->context->model->add_prefix_space && n && text[0] != ' ' && !append(&w->made, (const uint8_t *)" ", 1)) return 0;
  return append(&w->made, text, n);
}

/* Points *text at the normalized form of a segment: itself, or w->segment. A status. */
static int32_t normalize(worker *w, const uint8_t **text, int64_t *n) {
  const sa_normalizer *normalizer = w->context->model->normalizer;
  if (!normalizer || sa_normalizer_quick(normalizer, *text, *n)) return SA_OK;
  const int32_t status = sa_normalizer_run(normalizer, *text, *n, &w->segment, NULL);
  *text = w->segment.data;
  *n = w->segment.n;
  return status;
}

/* Room for n more ids behind the `used` ones of a slab; 0 when out of memory. */
static int slab_room(sa_slab *slab, int64_t used, int64_t n) {
  if (used + n <= slab->capacity) return 1;
  const int64_t capacity = used + n > 2 * slab->capacity ? used + n : 2 * slab->capacity;
  uint32_t *grown = realloc(slab->ids, (size_t)capacity * sizeof *grown);
  if (!grown) return 0;
  slab->ids = grown;
  slab->capacity = capacity;
  return 1;
}

/* Encodes the new text of n_rows rows behind the `used` ids of the slab, and starts it afresh. Returns the ids
 * there are then, or minus a status. */
static int64_t flush(worker *w, sa_slab *slab, int64_t used, int64_t n_rows, int64_t *row_ids) {
  const sa_program *program = w->context->model->program;
  const int64_t bytes = w->made.n, bound = program ? sa_program_bound(program, bytes) : bytes;
  if (n_rows == 0) return used;
  if (!slab_room(slab, used, bound + 1)) return -SA_ERR_NOMEM;
  const int64_t got = sa_encode_rows(w->context, w->made.data ? w->made.data : (const uint8_t *)"", w->made_offsets,
                                     n_rows, slab->ids + used, row_ids, used);
  w->made.n = 0;
  return got < 0 ? got : used + got;
}

/* Closes a row of new text. 0 when out of memory. */
static int made_row(worker *w, int64_t n_rows) {
  if (n_rows + 2 > w->made_capacity) {
    const int64_t capacity = 2 * (n_rows + 64);
    int64_t *grown = realloc(w->made_offsets, (size_t)capacity * sizeof *grown);
    if (!grown) return 0;
    w->made_offsets = grown;
    w->made_capacity = capacity;
    grown[0] = 0;
  }
  w->made_offsets[n_rows + 1] = w->made.n;
  return 1;
}

/* One piece of a row's text, normalized, as a text of its own. Returns as flush does. */
static int64_t encode_segment(worker *w, sa_slab *slab, int64_t used, const uint8_t *text, int64_t n) {
  if (n == 0) return used;
  if (!append_segment(w, text, n) || !made_row(w, 0)) return -SA_ERR_NOMEM;
  return flush(w, slab, used, 1, NULL);
}

static int64_t push_id(sa_slab *slab, int64_t used, uint32_t id) {
  if (!slab_room(slab, used, 1)) return -SA_ERR_NOMEM;
  slab->ids[used] = id;
  return used + 1;
}

/* What lies between two tokens matched in the text as it is: normalized, cut at the tokens that are matched in
 * normalized text. Returns as flush does. */
static int64_t encode_between(worker *w, sa_slab *slab, int64_t used, int64_t row, int64_t at, const uint8_t *text,
                              int64_t n) {
  const sa_added *added = &w->context->model->added;
  int32_t status = normalize(w, &text, &n);
  if (status == SA_OK) status = find_added(w, &w->inner, SA_PASS_NORMALIZED, row, at, text, n);
  if (status != SA_OK) return -status;
  int64_t from = 0;
  for (int64_t k = 0; k <= w->inner.n && used >= 0; k++) {
    const int64_t to = k < w->inner.n ? w->inner.items[k].start : n;
    if (from < to) used = encode_segment(w, slab, used, text + from, to - from);
    if (k == w->inner.n || used < 0) break;
    used = push_id(slab, used, added->ids[w->inner.items[k].added]);
    from = w->inner.items[k].end;
  }
  return used;
}

static int64_t encode_made_special_row(worker *w, sa_slab *slab, int64_t used, int64_t row, const uint8_t *text,
                                       int64_t n) {
  const sa_added *added = &w->context->model->added;
  const int32_t status = find_added(w, &w->spans, SA_PASS_RAW, row, 0, text, n);
  if (status != SA_OK) return -status;
  int64_t from = 0;
  for (int64_t k = 0; k <= w->spans.n && used >= 0; k++) {
    const int64_t to = k < w->spans.n ? w->spans.items[k].start : n;
    if (from < to) used = encode_between(w, slab, used, row, from, text + from, to - from);
    if (k == w->spans.n || used < 0) break;
    used = push_id(slab, used, added->ids[w->spans.items[k].added]);
    from = w->spans.items[k].end;
  }
  return used;
}

/* encode_item for a model that makes new text: rows without added tokens are made anew one after the other, and
 * encoded together. */
static int64_t encode_made_item(worker *w, const item *it, sa_slab *slab) {
  const job *j = w->job;
  const sa_added *added = &w->context->model->added;
  const int64_t *offsets = w->offsets - it->row;
  const int search = searched(j, added);
  int64_t used = 0, n_rows = 0;
  w->made.n = 0;
  for (int64_t row = it->row; row < it->row_end; row++) {
    const uint8_t *text = j->rows->text + offsets[row];
    int64_t n = sa_is_null(j->rows, row) ? 0 : offsets[row + 1] - offsets[row];
    int special = search && sa_added_next(added, SA_PASS_RAW, text, 0, n) < n;
    if (!special && n) {
      const uint8_t *made = text;
      int64_t n_made = n;
      const int32_t status = normalize(w, &made, &n_made);
      if (status != SA_OK) return -status;
      special = search && sa_added_next(added, SA_PASS_NORMALIZED, made, 0, n_made) < n_made;
      if (!special && !append_segment(w, made, n_made)) return -SA_ERR_NOMEM;
    }
    if (special) {
      used = flush(w, slab, used, n_rows, j->row_ids + row - n_rows);
      n_rows = 0;
      if (used >= 0) used = encode_made_special_row(w, slab, used, row, text, n);
      if (used < 0) return used;
      j->row_ids[row] = used;
      continue;
    }
    if (!made_row(w, n_rows++)) return -SA_ERR_NOMEM;
    if (w->made.n >= MADE_BYTES) {
      used = flush(w, slab, used, n_rows, j->row_ids + row + 1 - n_rows);
      n_rows = 0;
      if (used < 0) return used;
    }
  }
  return flush(w, slab, used, n_rows, j->row_ids + it->row_end - n_rows);
}

/* ---- order ---- */

/* Puts the items whose turn it is in their place. The lock is held. */
static void take_turns(job *j) {
  while (j->next_turn < j->n_items && j->items[j->next_turn].done) {
    item *it = &j->items[j->next_turn++];
    if (it->slab.ids) {
      j->overflow |= j->total + it->n_ids > j->options->capacity;
      if (j->ids && !j->overflow && it->n_ids)
        memcpy(j->ids + j->total, it->slab.ids, (size_t)it->n_ids * sizeof *j->ids);
      give_slab(j->encoder, it->slab);
      it->slab.ids = NULL;
    }
    for (int64_t r = it->row; r < it->row_end; r++) j->row_ids[r] += j->total;
    j->total += it->n_ids;
  }
  pthread_cond_broadcast(&j->turn);
}

/* The item's offsets as 64-bit. A status: offsets that descend, as a broken producer may hand over, would
 * have rows read outside the text. */
static int32_t load_offsets(worker *w, const item *it) {
  const int64_t n = it->row_end - it->row + 1;
  int descends = 0;
  if (n > w->offsets_capacity) {
    free(w->offsets);
    w->offsets_capacity = 0;
    w->offsets = malloc((size_t)n * sizeof *w->offsets);
    if (!w->offsets) return SA_ERR_NOMEM;
    w->offsets_capacity = n;
  }
  for (int64_t i = 0; i < n; i++) w->offsets[i] = offset_of(w->job->rows, it->row + i);
  for (int64_t i = 1; i < n; i++) descends |= w->offsets[i] < w->offsets[i - 1];
  return descends ? SA_ERR_ARGUMENT : SA_OK;
}

/* Encodes item after item until there are none or an item failed. The lock is held on entry and exit. */
static void work(worker *w) {
  job *j = w->job;
  while (j->status == SA_OK && j->next_item < j->n_items) {
    if (j->next_item - j->next_turn >= (int64_t)AHEAD * j->threads) {
      pthread_cond_wait(&j->turn, &j->lock);
      continue;
    }
    const int64_t i = j->next_item++;
    item *it = &j->items[i];
    const int rewrites = sa_model_rewrites(j->encoder->model);
    const int in_place = j->ids && i == j->next_turn && !rewrites;
    uint32_t *out = in_place ? j->ids + j->total : NULL;
    pthread_mutex_unlock(&j->lock);

    it->row = i ? row_at(j->rows, i * ITEM_WEIGHT) : 0;
    it->row_end = i + 1 < j->n_items ? row_at(j->rows, (i + 1) * ITEM_WEIGHT) : j->rows->n_rows;
    int64_t n = -load_offsets(w, it);
    if (n == 0 && it->row < it->row_end) {
      const int64_t bytes = w->offsets[it->row_end - it->row] - w->offsets[0];
      if (!in_place) {
        it->slab = take_slab(j->encoder, bytes + 1);
        out = it->slab.ids;
      }
      n = !out ? -SA_ERR_NOMEM : rewrites ? encode_made_item(w, it, &it->slab) : encode_item(w, it, out);
    }

    pthread_mutex_lock(&j->lock);
    it->done = 1;
    it->n_ids = n;
    /* the first row's error is the one reported: items before this one are all under way */
    if (n < 0 && j->status != SA_ERR_NOMEM) j->status = (int32_t)-n;
    if (j->status == SA_OK) take_turns(j);
    else pthread_cond_broadcast(&j->turn);
  }
}

static int worker_begin(worker *w, job *j) {
  memset(w, 0, sizeof *w);
  w->job = j;
  w->context = take_context(j->encoder);
  w->hits = j->hits ? calloc((size_t)j->encoder->model->added.n + 1, sizeof *w->hits) : NULL;
  if (w->context) w->context->pieces = w->context->misses = w->context->merge.steps = 0;
  return w->context && (w->hits || !j->hits);
}

/* Adds up what the worker counted. The lock is held, or no other thread is left. */
static void worker_end(worker *w) {
  job *j = w->job;
  if (w->context) {
    j->report->pieces += w->context->pieces;
    j->report->cache_misses += w->context->misses;
    j->report->merge_steps += w->context->merge.steps;
    give_context(j->encoder, w->context);
  }
  for (int64_t k = 0; w->hits && k < j->encoder->model->added.n; k++) j->hits[k] += w->hits[k];
  free(w->hits);
  free(w->offsets);
  free(w->spans.items), free(w->inner.items);
  sa_buffer_release(&w->segment), sa_buffer_release(&w->made);
  free(w->made_offsets);
}

static void *run(void *argument) {
  job *j = argument;
  worker w;
  const int ready = worker_begin(&w, j);
  pthread_mutex_lock(&j->lock);
  if (ready) work(&w);
  else j->status = SA_ERR_NOMEM, pthread_cond_broadcast(&j->turn);
  worker_end(&w);
  pthread_mutex_unlock(&j->lock);
  return NULL;
}

int32_t sa_encode(sa_encoder *encoder, const sa_rows *rows, const sa_options *options, uint32_t *ids,
                  int64_t *id_offsets, int64_t *hits, sa_report *report) {
  memset(report, 0, sizeof *report);
  report->rows = rows->n_rows;
  report->error_row = -1;
  id_offsets[0] = 0;
  if (options->threads < 1 || rows->n_rows < 0 || (rows->offset_bits != 32 && rows->offset_bits != 64))
    return SA_ERR_ARGUMENT;
  if (rows->n_rows == 0) return SA_OK;
  const int64_t all = weight(rows, rows->n_rows);
  report->bytes = all - ROW_WEIGHT * rows->n_rows;
  if (ids && !sa_model_rewrites(encoder->model) && options->capacity < report->bytes) return SA_ERR_ARGUMENT;
  job j = {.encoder = encoder, .rows = rows, .options = options, .ids = ids, .row_ids = id_offsets + 1,
           .hits = hits, .report = report};
  j.n_items = all / ITEM_WEIGHT + 1;
  j.threads = options->threads;
  if (j.threads > j.n_items) j.threads = (int32_t)j.n_items;
  if (j.threads > all / THREAD_WEIGHT + 1) j.threads = (int32_t)(all / THREAD_WEIGHT + 1);
  j.items = calloc((size_t)j.n_items, sizeof *j.items);
  pthread_t *threads = malloc((size_t)j.threads * sizeof *threads);
  int32_t started = 0;
  if (j.items && threads) {
    pthread_mutex_init(&j.lock, NULL);
    pthread_cond_init(&j.turn, NULL);
    /* a thread that cannot be started is done without: the calling thread works too */
    while (started < j.threads - 1 && pthread_create(&threads[started], NULL, run, &j) == 0) started++;
    run(&j);
    for (int32_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&j.lock);
    pthread_cond_destroy(&j.turn);
    for (int64_t i = 0; i < j.n_items; i++) free(j.items[i].slab.ids); /* left over by an error */
  } else {
    j.status = SA_ERR_NOMEM;
  }
  free(j.items);
  free(threads);
  report->tokens = j.total;
  return j.status == SA_OK && ids && j.overflow ? SA_ERR_CAPACITY : j.status;
}
