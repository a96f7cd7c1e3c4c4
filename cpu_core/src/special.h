/* Stage special: added tokens, found in a row before anything else looks at it (semantics of Hugging Face:
 * leftmost-longest, tokens with `normalized` off first, the others in what lies between). */
#ifndef SA_SPECIAL_H
#define SA_SPECIAL_H

#include <stdint.h>

#include "saphira.h"

/* Tokens that are searched together, sorted by content. */
typedef struct sa_needles {
  int64_t n;
  uint32_t *order;      /* indices of added tokens */
  uint8_t first[256];   /* 1: some content starts with this byte */
  int32_t single;       /* that byte where there is only one, else -1 */
} sa_needles;

typedef struct sa_added {
  int64_t n;
  int64_t *offsets;     /* n + 1 into bytes: the contents searched for, normalized where the token says so */
  uint8_t *bytes;
  uint32_t *ids;
  uint8_t *flags;       /* SA_ADDED_* */
  uint8_t *blank;       /* 1: white space alone */
  int32_t any_blank;
  sa_needles raw, normalized, all;
} sa_added;

typedef struct sa_span {
  int64_t start, end, added;
} sa_span;

typedef struct sa_spans {
  sa_span *items;
  int64_t n, capacity;
} sa_spans;

/* normalizer: the model's, or NULL. A status. */
int32_t sa_added_build(sa_added *added, const sa_plan *plan, const sa_normalizer *normalizer);
void sa_added_release(sa_added *added);

/* Whether text has to be searched for added tokens. hits: they are to be counted. */
int sa_added_searched(const sa_added *added, int32_t special, int hits);

/* See sa_model_table. */
const void *sa_added_table(const sa_added *added, const char *name, int64_t *bytes);

/* Where the next content of a token of that SA_PASS_* stands in text[from, n), whatever the options make of it; n if
 * nowhere. */
int64_t sa_added_next(const sa_added *added, int pass, const uint8_t *text, int64_t from, int64_t n);

/* The matches in one text, in order; what lies between is text. A span may start before the last one's end
 * (a token inside white space that an rstrip token took): the text between is then empty.
 * hits: n counters or NULL. With SA_SPECIAL_ERROR the first match of a token that is not blank ends the search
 * with SA_ERR_SPECIAL, its span last. */
int32_t sa_added_spans(const sa_added *added, int pass, int32_t special, const uint8_t *text, int64_t n,
                       sa_spans *spans, int64_t *hits);

#endif
