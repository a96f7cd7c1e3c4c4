/* See prepare.h. */
#include "prepare.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "batch.h"

#define PADDING 64 /* zero bytes behind the text */

int sa_append(sa_buffer *buffer, const uint8_t *bytes, int64_t n) {
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

/* ---- one row ---- */

/* Appends a segment that is ready for pretok: with a space before it, if the model wants one. A status. */
static int32_t append_segment(sa_maker *m, const uint8_t *text, int64_t n) {
  const int space = m->model->add_prefix_space && n && text[0] != ' ';
  if (space && !sa_append(&m->made, (const uint8_t *)" ", 1)) return SA_ERR_NOMEM;
  return sa_append(&m->made, text, n) ? SA_OK : SA_ERR_NOMEM;
}

/* Points *text at the normalized form of a segment: itself, or m->segment. A status. */
static int32_t normalize(sa_maker *m, const uint8_t **text, int64_t *n) {
  const sa_normalizer *normalizer = m->model->normalizer;
  if (!normalizer || sa_normalizer_quick(normalizer, *text, *n)) return SA_OK;
  const int32_t status = sa_normalizer_run(normalizer, *text, *n, &m->segment, NULL);
  *text = m->segment.data;
  *n = m->segment.n;
  return status;
}

int32_t sa_maker_find(sa_maker *m, sa_spans *spans, int pass, int64_t at, const uint8_t *text, int64_t n) {
  const int32_t status = sa_added_spans(&m->model->added, pass, m->special, text, n, spans, m->hits);
  if (status == SA_ERR_SPECIAL) {
    m->hit = spans->items[spans->n - 1];
    m->hit.start += at;
  }
  return status;
}

int32_t sa_maker_row(sa_maker *m, int search, const uint8_t *text, int64_t n, int *whole) {
  const sa_added *added = &m->model->added;
  if (search && sa_added_next(added, SA_PASS_RAW, text, 0, n) < n) return SA_OK;
  if (n) {
    int32_t status = normalize(m, &text, &n);
    if (status == SA_OK && search && sa_added_next(added, SA_PASS_NORMALIZED, text, 0, n) < n) return SA_OK;
    if (status == SA_OK) status = append_segment(m, text, n);
    if (status != SA_OK) return status;
  }
  *whole = 1;
  return SA_OK;
}

/* The text [from, to) of a segment and then the token of a span, which may be NULL. A status. */
static int32_t part(sa_maker *m, const sa_parts *parts, const uint8_t *text, int64_t from, int64_t to,
                    const sa_span *span) {
  int32_t status = SA_OK;
  if (from < to) status = append_segment(m, text + from, to - from);
  if (from < to && status == SA_OK) status = parts->segment(parts->context);
  if (span && status == SA_OK) status = parts->token(parts->context, m->model->added.ids[span->added]);
  return status;
}

/* What lies between two tokens matched in the text as it is: normalized, cut at the tokens that are matched in
 * normalized text. A status. */
static int32_t between(sa_maker *m, const sa_parts *parts, int64_t at, const uint8_t *text, int64_t n) {
  int32_t status = normalize(m, &text, &n);
  if (status == SA_OK) status = sa_maker_find(m, &m->inner, SA_PASS_NORMALIZED, at, text, n);
  int64_t from = 0;
  for (int64_t k = 0; k < m->inner.n && status == SA_OK; k++) {
    status = part(m, parts, text, from, m->inner.items[k].start, &m->inner.items[k]);
    from = m->inner.items[k].end;
  }
  return status == SA_OK ? part(m, parts, text, from, n, NULL) : status;
}

int32_t sa_maker_parts(sa_maker *m, const uint8_t *text, int64_t n, const sa_parts *parts) {
  int32_t status = sa_maker_find(m, &m->spans, SA_PASS_RAW, 0, text, n);
  int64_t from = 0;
  for (int64_t k = 0; k <= m->spans.n && status == SA_OK; k++) {
    const sa_span *span = k < m->spans.n ? &m->spans.items[k] : NULL;
    const int64_t to = span ? span->start : n;
    if (from < to) status = between(m, parts, from, text + from, to - from);
    if (!span || status != SA_OK) break;
    status = parts->token(parts->context, m->model->added.ids[span->added]);
    from = span->end;
  }
  return status;
}

void sa_maker_release(sa_maker *m) {
  free(m->spans.items), free(m->inner.items);
  sa_buffer_release(&m->segment), sa_buffer_release(&m->made);
}

/* ---- rows over threads ---- */

/* A thread's rows, their new text and the tokens in it. */
typedef struct chunk {
  const sa_rows *rows;
  int64_t row, row_end;
  int64_t *row_offsets;     /* ends of rows, counted from the chunk's start until all are done */
  sa_maker maker;
  sa_buffer at, ids;        /* int64_t and uint32_t */
  int32_t status;
  int64_t error_row;
} chunk;

static int32_t note_segment(void *context) {
  (void)context;
  return SA_OK;
}

static int32_t note_token(void *context, uint32_t id) {
  chunk *c = context;
  const int64_t at = c->maker.made.n;
  return sa_append(&c->maker.made, (const uint8_t *)"", 1) && sa_append(&c->at, (const uint8_t *)&at, sizeof at) &&
                 sa_append(&c->ids, (const uint8_t *)&id, sizeof id)
             ? SA_OK
             : SA_ERR_NOMEM;
}

static void *prepare(void *argument) {
  chunk *c = argument;
  const sa_rows *rows = c->rows;
  const sa_parts parts = {c, note_segment, note_token};
  const int search = sa_added_searched(&c->maker.model->added, c->maker.special, c->maker.hits != NULL);
  for (int64_t row = c->row; row < c->row_end && c->status == SA_OK; row++) {
    const int64_t start = sa_offset(rows->offsets, rows->offset_bits, row);
    int64_t n = sa_offset(rows->offsets, rows->offset_bits, row + 1) - start;
    int whole = 0;
    if (n < 0) c->status = SA_ERR_ARGUMENT;
    if (n < 0 || sa_is_null(rows, row)) n = 0;
    if (c->status == SA_OK) c->status = sa_maker_row(&c->maker, search, rows->text + start, n, &whole);
    if (c->status == SA_OK && !whole) c->status = sa_maker_parts(&c->maker, rows->text + start, n, &parts);
    c->row_offsets[row + 1] = c->maker.made.n;
    if (c->status != SA_OK) c->error_row = row;
  }
  return NULL;
}

/* Puts the chunks' texts and lists one behind the other. A status. */
static int32_t join(const chunk *chunks, int32_t n_chunks, sa_prepared *out) {
  int64_t n = 0, n_fixed = 0;
  for (int32_t i = 0; i < n_chunks; i++) n += chunks[i].maker.made.n, n_fixed += chunks[i].ids.n;
  n_fixed /= (int64_t)sizeof *out->fixed_ids;
  out->text = calloc((size_t)n + PADDING, 1);
  out->fixed_at = malloc((size_t)(n_fixed + 1) * sizeof *out->fixed_at);
  out->fixed_ids = malloc((size_t)(n_fixed + 1) * sizeof *out->fixed_ids);
  if (!out->text || !out->fixed_at || !out->fixed_ids) return SA_ERR_NOMEM;
  for (int32_t i = 0; i < n_chunks; i++) {
    const chunk *c = &chunks[i];
    const int64_t fixed = c->ids.n / (int64_t)sizeof *out->fixed_ids;
    if (c->maker.made.n) memcpy(out->text + out->n, c->maker.made.data, (size_t)c->maker.made.n);
    if (fixed) memcpy(out->fixed_at + out->n_fixed, c->at.data, (size_t)c->at.n);
    if (fixed) memcpy(out->fixed_ids + out->n_fixed, c->ids.data, (size_t)c->ids.n);
    for (int64_t k = 0; k < fixed; k++) out->fixed_at[out->n_fixed + k] += out->n;
    for (int64_t row = c->row; row < c->row_end; row++) c->row_offsets[row + 1] += out->n;
    out->n += c->maker.made.n;
    out->n_fixed += fixed;
  }
  return SA_OK;
}

int32_t sa_prepare(const sa_model *model, const sa_rows *rows, const sa_options *options, sa_prepared *out,
                   int64_t *hits, sa_report *report) {
  memset(out, 0, sizeof *out);
  memset(report, 0, sizeof *report);
  report->rows = rows->n_rows;
  report->error_row = -1;
  if (options->threads < 1 || rows->n_rows < 0 || (rows->offset_bits != 32 && rows->offset_bits != 64))
    return SA_ERR_ARGUMENT;
  int32_t n_chunks = options->threads, started = 0, status = SA_OK;
  if (n_chunks > rows->n_rows / 16 + 1) n_chunks = (int32_t)(rows->n_rows / 16 + 1);
  const int64_t all = sa_weight(rows, rows->n_rows);
  chunk *chunks = calloc((size_t)n_chunks, sizeof *chunks);
  pthread_t *threads = malloc((size_t)n_chunks * sizeof *threads);
  int64_t *counted = calloc((size_t)n_chunks * (size_t)(model->added.n + 1), sizeof *counted);
  out->row_offsets = calloc((size_t)rows->n_rows + 1, sizeof *out->row_offsets);
  if (!chunks || !threads || !counted || !out->row_offsets) status = SA_ERR_NOMEM;
  for (int32_t i = 0; i < n_chunks && status == SA_OK; i++) {
    chunk *c = &chunks[i];
    c->rows = rows;
    c->row = i ? chunks[i - 1].row_end : 0;
    c->row_end = i + 1 < n_chunks ? sa_row_at(rows, all / n_chunks * (i + 1)) : rows->n_rows;
    if (c->row_end < c->row) c->row_end = c->row;
    c->row_offsets = out->row_offsets;
    c->maker.model = model;
    c->maker.special = options->special;
    c->maker.hits = hits ? counted + i * (model->added.n + 1) : NULL;
  }
  if (status == SA_OK) {
    /* a thread that cannot be started is done without */
    while (started < n_chunks - 1 && pthread_create(&threads[started], NULL, prepare, &chunks[started]) == 0) started++;
    for (int32_t i = started; i < n_chunks; i++) prepare(&chunks[i]);
    for (int32_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
    for (int32_t i = n_chunks - 1; i >= 0; i--) { /* the first row's error is the one reported */
      if (chunks[i].status == SA_OK) continue;
      status = chunks[i].status;
      report->error_row = chunks[i].error_row;
      report->error_byte = chunks[i].maker.hit.start;
      report->error_added = chunks[i].maker.hit.added;
    }
    for (int32_t i = 0; i < n_chunks && hits; i++)
      for (int64_t k = 0; k < model->added.n; k++) hits[k] += chunks[i].maker.hits[k];
  }
  if (status == SA_OK) status = join(chunks, n_chunks, out);
  report->bytes = out->n;
  for (int32_t i = 0; chunks && i < n_chunks; i++) {
    sa_maker_release(&chunks[i].maker);
    sa_buffer_release(&chunks[i].at), sa_buffer_release(&chunks[i].ids);
  }
  free(chunks), free(threads), free(counted);
  if (status != SA_OK) sa_prepared_release(out);
  return status;
}

void sa_prepared_release(sa_prepared *out) {
  free(out->text), free(out->row_offsets), free(out->fixed_at), free(out->fixed_ids);
  memset(out, 0, sizeof *out);
}
