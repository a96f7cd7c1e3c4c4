/* sa_encode: cuts rows into work items of about the same bytes, encodes them on threads, and puts their ids in
 * order. The item whose turn it is writes straight to its place in the output; an item that is ahead of its
 * turn writes to memory of its own, copied when its turn comes. */
#include "batch.h"

#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "consumers.h"
#include "prepare.h"
#include "split.h"

#define ITEM_WEIGHT (256 << 10)
#define LONG_ROW (2 * ITEM_WEIGHT) /* bytes; its ends then lie in different items */
#define ROW_WEIGHT 4               /* what a row costs, in bytes of text */
#define THREAD_WEIGHT (128 << 10)  /* less than this for each does not pay for a thread */
#define AHEAD 4                    /* items per thread that may wait for their turn */
#define MADE_BYTES (64 << 10)      /* new text made before it is encoded */

/* A row that several items share. */
typedef struct long_row {
  int64_t row;
  sa_split *split;          /* NULL: it holds added tokens, and the first of the items does it all */
  struct long_row *next;
} long_row;

/* The part of a row that starts at its byte `from` and ends at its byte `to`; none: row is NULL. */
typedef struct part {
  long_row *row;
  int64_t from, to;
  int64_t start, end;       /* the pieces of it */
} part;

typedef struct item {
  part head;                /* of a row before the item's own rows; its end, if the first of them is that row */
  part tail;                /* the start of the row behind them */
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
  pthread_mutex_t long_lock;
  long_row *long_rows;
  int32_t status;
} job;

/* One thread's part in a job. */
typedef struct worker {
  job *job;
  sa_context *context;
  int64_t *offsets;         /* of the item's rows, 64-bit */
  int64_t offsets_capacity;
  sa_maker maker;           /* finds added tokens; new text of rows, and where each starts in it */
  int64_t *made_offsets;
  int64_t made_capacity;
  uint64_t *words;          /* piece starts of a part */
  int64_t words_capacity;
} worker;

/* ---- one item ---- */

static int64_t offset_of(const sa_rows *rows, int64_t row) {
  return sa_offset(rows->offsets, rows->offset_bits, row);
}

int64_t sa_weight(const sa_rows *rows, int64_t row) {
  return offset_of(rows, row) - offset_of(rows, 0) + ROW_WEIGHT * row;
}

int64_t sa_row_at(const sa_rows *rows, int64_t wanted) {
  int64_t lo = 0, hi = rows->n_rows;
  while (lo < hi) {
    const int64_t mid = lo + (hi - lo) / 2;
    if (sa_weight(rows, mid) < wanted) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/* Notes where an added token was hit, if that is what the status says; hands it on. */
static int32_t special_error(const worker *w, int64_t row, int32_t status) {
  job *j = w->job;
  if (status != SA_ERR_SPECIAL) return status;
  pthread_mutex_lock(&j->lock);
  if (j->report->error_row < 0 || row < j->report->error_row) {
    j->report->error_row = row;
    j->report->error_byte = w->maker.hit.start;
    j->report->error_added = w->maker.hit.added;
  }
  pthread_mutex_unlock(&j->lock);
  return status;
}

/* A row with added tokens in it: text and tokens in turn. Returns the ids written, or minus a status. */
static int64_t encode_special_row(worker *w, int64_t row, int64_t start, int64_t end, uint32_t *out) {
  const sa_added *added = &w->context->model->added;
  const uint8_t *text = w->job->rows->text;
  const sa_spans *spans = &w->maker.spans;
  const int32_t status = sa_maker_find(&w->maker, &w->maker.spans, SA_PASS_BOTH, 0, text + start, end - start);
  if (status != SA_OK) return -special_error(w, row, status);
  int64_t n = 0, from = start;
  for (int64_t k = 0; k <= spans->n; k++) {
    const int64_t to = k < spans->n ? start + spans->items[k].start : end;
    if (from < to) {
      const int64_t segment[2] = {from, to};
      const int64_t got = sa_encode_rows(w->context, text, segment, 1, out + n, NULL, 0);
      if (got < 0) return got;
      n += got;
    }
    if (k == spans->n) break;
    out[n++] = added->ids[spans->items[k].added];
    from = start + spans->items[k].end;
  }
  return n;
}

/* The first of an item's rows that is all its own. */
static int64_t first_own_row(const item *it) { return it->row + (it->head.row && it->head.row->row == it->row); }

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

/* Encodes an item's rows behind its first n ids; row_ids count from the item's start. Returns the ids there are then,
 * or minus a status. */
static int64_t encode_own_rows(worker *w, const item *it, uint32_t *out, int64_t n) {
  const job *j = w->job;
  const int64_t *offsets = w->offsets - it->row;
  const int search = sa_added_searched(&w->context->model->added, j->options->special, j->hits != NULL);
  int64_t match = -1;
  for (int64_t row = first_own_row(it); row < it->row_end;) {
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

/* Encodes a part behind an item's first n ids. Returns as encode_own_rows does. */
static int64_t encode_part(worker *w, const part *p, uint32_t *out, int64_t n) {
  const sa_rows *rows = w->job->rows;
  const int64_t length = p->end - p->start, n_words = (length + 63) / 64;
  if (length == 0) return n;
  if (!p->row->split) {
    const int64_t from = offset_of(rows, p->row->row), to = offset_of(rows, p->row->row + 1);
    const int64_t got = encode_special_row(w, p->row->row, from, to, out + n);
    return got < 0 ? got : n + got;
  }
  if (n_words > w->words_capacity) {
    free(w->words);
    w->words_capacity = 0;
    w->words = malloc((size_t)n_words * sizeof *w->words);
    if (!w->words) return -SA_ERR_NOMEM;
    w->words_capacity = n_words;
  }
  sa_split_words(p->row->split, p->start, p->end, w->words);
  const int64_t got = sa_encode_cut(w->context, p->row->split->text + p->start, length, w->words, out + n);
  return got < 0 ? got : n + got;
}

/* Encodes an item. Returns its ids, or minus a status. */
static int64_t encode_item(worker *w, const item *it, uint32_t *out) {
  int64_t n = 0;
  if (it->head.row) {
    n = encode_part(w, &it->head, out, n);
    if (n >= 0 && first_own_row(it) > it->row) w->job->row_ids[it->row] = n;
  }
  if (n >= 0) n = encode_own_rows(w, it, out, n);
  if (n >= 0 && it->tail.row) n = encode_part(w, &it->tail, out, n);
  return n;
}

/* ---- models that make new text ---- */

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
  const int64_t bytes = w->maker.made.n, bound = program ? sa_program_bound(program, bytes) : bytes;
  if (n_rows == 0) return used;
  if (!slab_room(slab, used, bound + 1)) return -SA_ERR_NOMEM;
  const int64_t got = sa_encode_rows(w->context, w->maker.made.data ? w->maker.made.data : (const uint8_t *)"", w->made_offsets,
                                     n_rows, slab->ids + used, row_ids, used);
  w->maker.made.n = 0;
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
  w->made_offsets[n_rows + 1] = w->maker.made.n;
  return 1;
}

/* A row of parts: its ids go behind the `used` ones of the slab. */
typedef struct parts_row {
  worker *w;
  sa_slab *slab;
  int64_t used;
} parts_row;

/* A segment is a text of its own. */
static int32_t encode_segment(void *context) {
  parts_row *r = context;
  if (!made_row(r->w, 0)) return SA_ERR_NOMEM;
  const int64_t used = flush(r->w, r->slab, r->used, 1, NULL);
  if (used < 0) return (int32_t)-used;
  r->used = used;
  return SA_OK;
}

static int32_t push_id(void *context, uint32_t id) {
  parts_row *r = context;
  if (!slab_room(r->slab, r->used, 1)) return SA_ERR_NOMEM;
  r->slab->ids[r->used++] = id;
  return SA_OK;
}

/* encode_item for a model that makes new text: rows without added tokens are made anew one after the other, and
 * encoded together. */
static int64_t encode_made_item(worker *w, const item *it, sa_slab *slab) {
  const job *j = w->job;
  const sa_added *added = &w->context->model->added;
  const int64_t *offsets = w->offsets - it->row;
  const int search = sa_added_searched(added, j->options->special, j->hits != NULL);
  int64_t used = 0, n_rows = 0;
  w->maker.made.n = 0;
  for (int64_t row = it->row; row < it->row_end; row++) {
    const uint8_t *text = j->rows->text + offsets[row];
    const int64_t n = sa_is_null(j->rows, row) ? 0 : offsets[row + 1] - offsets[row];
    int whole = 0;
    int32_t status = sa_maker_row(&w->maker, search, text, n, &whole);
    if (status != SA_OK) return -status;
    if (!whole) {
      used = flush(w, slab, used, n_rows, j->row_ids + row - n_rows);
      n_rows = 0;
      if (used < 0) return used;
      parts_row r = {w, slab, used};
      status = sa_maker_parts(&w->maker, text, n, &(sa_parts){&r, encode_segment, push_id});
      if (status != SA_OK) return -special_error(w, row, status);
      j->row_ids[row] = used = r.used;
      continue;
    }
    if (!made_row(w, n_rows++)) return -SA_ERR_NOMEM;
    if (w->maker.made.n >= MADE_BYTES) {
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
      sa_give_slab(j->encoder, it->slab);
      it->slab.ids = NULL;
    }
    for (int64_t r = it->row; r < it->row_end; r++) j->row_ids[r] += j->total;
    j->total += it->n_ids;
  }
  pthread_cond_broadcast(&j->turn);
}

/* Whether a row lies in the text: the offsets of a broken producer may not ascend. */
static int is_inside(const sa_rows *rows, int64_t from, int64_t to) {
  return offset_of(rows, 0) <= from && from <= to && to <= offset_of(rows, rows->n_rows);
}

/* The item's offsets as 64-bit. A status: rows are read where they say. */
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
  return descends || !is_inside(w->job->rows, w->offsets[0], w->offsets[n - 1]) ? SA_ERR_ARGUMENT : SA_OK;
}

/* Whether a row may be shared by several items. */
static int is_long(const job *j, int64_t row) {
  const int64_t from = offset_of(j->rows, row), to = offset_of(j->rows, row + 1);
  return j->threads > 1 && j->encoder->model->scheme >= 0 && !sa_model_rewrites(j->encoder->model) &&
         is_inside(j->rows, from, to) && to - from >= LONG_ROW && !sa_is_null(j->rows, row);
}

/* A row that is long, made known to all by whoever comes first. NULL: out of memory. */
static long_row *long_row_of(job *j, int64_t row) {
  const sa_model *m = j->encoder->model;
  const int64_t from = offset_of(j->rows, row), n = offset_of(j->rows, row + 1) - from;
  const uint8_t *text = j->rows->text + from;
  pthread_mutex_lock(&j->long_lock);
  long_row *r = j->long_rows;
  while (r && r->row != row) r = r->next;
  if (!r && (r = calloc(1, sizeof *r))) {
    const int search = sa_added_searched(&m->added, j->options->special, j->hits != NULL);
    r->row = row;
    if (!search || sa_added_next(&m->added, SA_PASS_BOTH, text, 0, n) == n) {
      r->split = sa_split_new(m->scheme, text, n);
      if (!r->split) free(r), r = NULL;
    }
    if (r) r->next = j->long_rows, j->long_rows = r;
  }
  pthread_mutex_unlock(&j->long_lock);
  return r;
}

/* The part of a long row that lies in [lo, hi) by weight. A status. */
static int32_t make_part(job *j, part *p, int64_t row, int64_t lo, int64_t hi) {
  const int64_t first = sa_weight(j->rows, row), n = offset_of(j->rows, row + 1) - offset_of(j->rows, row);
  p->row = long_row_of(j, row);
  if (!p->row) return SA_ERR_NOMEM;
  p->from = lo > first ? lo - first : 0;
  p->to = hi - first < n ? hi - first : n;
  if (p->row->split) {
    sa_split_pieces(p->row->split, p->from, p->to, &p->start, &p->end);
  } else {
    p->start = 0;
    p->end = p->from == 0 ? n : 0;
  }
  return SA_OK;
}

/* The rows of item i, and its parts of long rows. A status. */
static int32_t make_item(job *j, item *it, int64_t i) {
  const int64_t lo = i * ITEM_WEIGHT, hi = lo + ITEM_WEIGHT;
  int32_t status = SA_OK;
  it->row = i ? sa_row_at(j->rows, lo) : 0;
  it->row_end = i + 1 < j->n_items ? sa_row_at(j->rows, hi) : j->rows->n_rows;
  if (it->row > 0 && sa_weight(j->rows, it->row) - ROW_WEIGHT > lo && is_long(j, it->row - 1)) {
    const int64_t row = it->row - 1;
    status = make_part(j, &it->head, row, lo, hi);
    if (sa_weight(j->rows, row + 1) - ROW_WEIGHT <= hi) it->row = row; /* it ends here */
  }
  if (status == SA_OK && it->row_end > first_own_row(it) && sa_weight(j->rows, it->row_end) - ROW_WEIGHT > hi &&
      is_long(j, it->row_end - 1))
    status = make_part(j, &it->tail, --it->row_end, lo, hi);
  return status;
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

    int64_t n = -make_item(j, it, i);
    if (n == 0) n = -load_offsets(w, it);
    const int64_t own = first_own_row(it) - it->row;
    int64_t bytes = it->head.end - it->head.start + it->tail.end - it->tail.start;
    if (n == 0) bytes += w->offsets[it->row_end - it->row] - w->offsets[own];
    if (n == 0 && (it->row < it->row_end || bytes)) {
      if (!in_place) {
        it->slab = sa_take_slab(j->encoder, bytes + 1);
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
  w->context = sa_take_context(j->encoder, j->report->bytes / j->threads);
  w->maker.model = j->encoder->model;
  w->maker.special = j->options->special;
  w->maker.hits = j->hits ? calloc((size_t)j->encoder->model->added.n + 1, sizeof *w->maker.hits) : NULL;
  if (w->context) w->context->pieces = w->context->misses = w->context->merge.steps = 0;
  return w->context && (w->maker.hits || !j->hits);
}

/* Adds up what the worker counted. The lock is held, or no other thread is left. */
static void worker_end(worker *w) {
  job *j = w->job;
  if (w->context) {
    j->report->pieces += w->context->pieces;
    j->report->cache_misses += w->context->misses;
    j->report->merge_steps += w->context->merge.steps;
    sa_give_context(j->encoder, w->context);
  }
  for (int64_t k = 0; w->maker.hits && k < j->encoder->model->added.n; k++) j->hits[k] += w->maker.hits[k];
  free(w->maker.hits);
  free(w->offsets);
  sa_maker_release(&w->maker);
  free(w->made_offsets);
  free(w->words);
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
  const int64_t all = sa_weight(rows, rows->n_rows);
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
    pthread_mutex_init(&j.long_lock, NULL);
    pthread_cond_init(&j.turn, NULL);
    /* a thread that cannot be started is done without: the calling thread works too */
    while (started < j.threads - 1 && pthread_create(&threads[started], NULL, run, &j) == 0) started++;
    run(&j);
    for (int32_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&j.lock);
    pthread_mutex_destroy(&j.long_lock);
    for (long_row *r = j.long_rows, *next; r; r = next) {
      next = r->next;
      sa_split_free(r->split);
      free(r);
    }
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

int64_t sa_encode_text(sa_encoder *encoder, const uint8_t *text, int64_t n, int32_t special, uint32_t *ids,
                       int64_t capacity) {
  const int64_t offsets[2] = {0, n};
  const sa_rows rows = {text, offsets, 64, 1, NULL, 0};
  const sa_options options = {special, 1, capacity};
  int64_t id_offsets[2];
  sa_report report;
  const int32_t status = sa_encode(encoder, &rows, &options, ids, id_offsets, NULL, &report);
  return status == SA_OK ? report.tokens : -status;
}
