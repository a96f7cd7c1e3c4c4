/* Stages special and normalize of models that make new text: what is ready for pretok, row by row. */
#ifndef SA_PREPARE_H
#define SA_PREPARE_H

#include "model.h"

/* Makes the new text of one row after the other. Zero but for the first three; sa_maker_release. */
typedef struct sa_maker {
  const sa_model *model;
  int32_t special;          /* SA_SPECIAL_* */
  int64_t *hits;            /* as in sa_encode, or NULL */
  sa_spans spans, inner;    /* added tokens of a row, and of a normalized segment of it */
  sa_buffer segment;        /* a normalized segment */
  sa_buffer made;           /* the new text; the caller empties it */
  sa_span hit;              /* SA_ERR_SPECIAL: where, counted from the row's start */
} sa_maker;

/* What to do with the parts of a row that holds added tokens. Each returns a status. */
typedef struct sa_parts {
  void *context;
  int32_t (*segment)(void *context);             /* a segment is ready at the end of maker->made */
  int32_t (*token)(void *context, uint32_t id);
} sa_parts;

/* Appends n bytes; 0 when out of memory. */
int sa_append(sa_buffer *buffer, const uint8_t *bytes, int64_t n);

/* Added tokens of a text that starts at byte `at` of its row, in *spans. A status. */
int32_t sa_maker_find(sa_maker *m, sa_spans *spans, int pass, int64_t at, const uint8_t *text, int64_t n);

/* Appends the new text of a row to made, and sets *whole; or leaves both alone if it holds the content of an added
 * token, which is looked for if `search`. A status. */
int32_t sa_maker_row(sa_maker *m, int search, const uint8_t *text, int64_t n, int *whole);

/* The parts of a row with added tokens, in order. A status. */
int32_t sa_maker_parts(sa_maker *m, const uint8_t *text, int64_t n, const sa_parts *parts);

void sa_maker_release(sa_maker *m);

#endif
