/* See special.h. */
#include "special.h"

#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "model.h"
#include "types.h"

/* ---- characters beside a match ---- */

#define WINDOW 192   /* bytes classified at a time */
#define MARGIN 3     /* a byte's part in a character depends on no byte farther away */

static int tag_in(uint8_t tag, uint64_t tags) { return tag < 32 && tags >> tag & 1; }

#define BIT(tag) ((uint64_t)1 << (tag))
static const uint64_t WHITE = BIT(SA_TAG_WS_OTHER) | BIT(SA_TAG_NEWLINE) | BIT(SA_TAG_SPACE);
/* \w: alphabetic, marks, decimal digits, connectors, joiners */
static const uint64_t WORD = BIT(SA_TAG_NUM_WORD) | BIT(SA_TAG_UPPER) | BIT(SA_TAG_LOWER) |
                             BIT(SA_TAG_CONNECTOR) | BIT(SA_TAG_LETTER_OTHER) | BIT(SA_TAG_MARK) |
                             BIT(SA_TAG_JOIN_CONTROL) | BIT(SA_TAG_SYM_WORD) | BIT(SA_TAG_HAN_LETTER) |
                             BIT(SA_TAG_HAN_NUM) | BIT(SA_TAG_KANA_LETTER) | BIT(SA_TAG_KANA_MARK) |
                             BIT(SA_TAG_HAN_URO) | BIT(SA_TAG_MARK_PUNCT) | BIT(SA_TAG_HAN_MARK);

typedef struct tagged {
  uint8_t tags[WINDOW];
  uint64_t starts[WINDOW / 64];
} tagged;

static void classify(tagged *t, const uint8_t *text, int64_t n) {
  const int64_t offsets[2] = {0, n};
  const sa_rows row = {text, offsets, 64, 1, NULL, 0};
  sa_classify(SA_ALPHABET_SUPERATOMS, &row, t->tags, t->starts);
}

/* Where the run of characters in `set` that starts at text[at] ends; the text ends at hi. limit: characters
 * to look at. */
static int64_t run_end(const uint8_t *text, int64_t at, int64_t hi, uint64_t set, int64_t limit) {
  tagged t;
  while (at < hi) {
    const int64_t n = hi - at < WINDOW ? hi - at : WINDOW;
    const int64_t sure = n == hi - at ? n : n - MARGIN;
    classify(&t, text + at, n);
    for (int64_t i = 0; i < sure; i++) {
      if (!(t.starts[i >> 6] >> (i & 63) & 1)) continue;
      if (limit-- == 0 || !tag_in(t.tags[i], set)) return at + i;
    }
    int64_t next = sure; /* from the first character start that was not looked at */
    while (next < n && !(t.starts[next >> 6] >> (next & 63) & 1)) next++;
    at += next;
  }
  return hi;
}

/* Where the run of characters in `set` that ends at text[at] starts, in the text [lo, hi). */
static int64_t run_start(const uint8_t *text, int64_t lo, int64_t at, int64_t hi, uint64_t set, int64_t limit) {
  tagged t;
  while (at > lo) {
    const int64_t n = at - lo < WINDOW - MARGIN ? at - lo : WINDOW - MARGIN;
    const int64_t sure = n == at - lo ? 0 : MARGIN;
    int64_t start = at; /* the leftmost start known to belong to the run */
    classify(&t, text + at - n, n + (hi - at < MARGIN ? hi - at : MARGIN));
    for (int64_t i = n - 1; i >= sure; i--) {
      if (!(t.starts[i >> 6] >> (i & 63) & 1)) continue;
      if (limit-- == 0 || !tag_in(t.tags[i], set)) return start;
      start = at - n + i;
    }
    if (start == at) return at;
    at = start;
  }
  return lo;
}

/* ---- rules ---- */

typedef const uint8_t *sa_beside;

static inline int64_t sa_white_start(sa_beside text, int64_t lo, int64_t at, int64_t hi) {
  return run_start(text, lo, at, hi, WHITE, INT64_MAX);
}
static inline int64_t sa_white_end(sa_beside text, int64_t at, int64_t hi) {
  return run_end(text, at, hi, WHITE, INT64_MAX);
}
static inline int sa_word_before(sa_beside text, int64_t lo, int64_t at, int64_t hi) {
  return run_start(text, lo, at, hi, WORD, 1) < at;
}
static inline int sa_word_after(sa_beside text, int64_t at, int64_t hi) {
  return run_end(text, at, hi, WORD, 1) > at;
}

#include "added.h"

/* ---- contents ---- */

static const uint8_t *content(const sa_added *a, uint32_t i) { return a->bytes + a->offsets[i]; }
static int64_t content_length(const sa_added *a, uint32_t i) { return a->offsets[i + 1] - a->offsets[i]; }

static void needles_sort(const sa_added *a, sa_needles *needles) {
  /* insertion into sorted order by binary search: added tokens are few, and files list them sorted or nearly */
  for (int64_t k = 1; k < needles->n; k++) {
    const uint32_t item = needles->order[k];
    int64_t lo = 0, hi = k;
    while (lo < hi) {
      const int64_t mid = (lo + hi) / 2;
      const uint32_t other = needles->order[mid];
      const int64_t n = content_length(a, item), m = content_length(a, other);
      const int order = memcmp(content(a, item), content(a, other), (size_t)(n < m ? n : m));
      if (order < 0 || (order == 0 && n < m)) hi = mid;
      else lo = mid + 1;
    }
    memmove(needles->order + lo + 1, needles->order + lo, (size_t)(k - lo) * sizeof item);
    needles->order[lo] = item;
  }
}

/* The added tokens whose `normalized` flag, masked, equals want. */
static int needles_build(const sa_added *a, sa_needles *needles, uint8_t mask, uint8_t want) {
  needles->order = malloc((size_t)(a->n + 1) * sizeof *needles->order);
  if (!needles->order) return 0;
  for (int64_t i = 0; i < a->n; i++) {
    if (content_length(a, (uint32_t)i) == 0 || (a->flags[i] & mask) != want) continue;
    needles->order[needles->n++] = (uint32_t)i;
    needles->first[content(a, (uint32_t)i)[0]] = 1;
  }
  needles->single = -1;
  int distinct = 0;
  for (int b = 0; b < 256; b++)
    if (needles->first[b]) needles->single = b, distinct++;
  if (distinct != 1) needles->single = -1;
  needles_sort(a, needles);
  return 1;
}

/* Copies the contents, those of `normalized` tokens as the normalizer makes them. */
static int32_t copy_contents(sa_added *a, const sa_plan *plan, const sa_normalizer *normalizer) {
  sa_buffer made = {0};
  int64_t capacity = a->n ? plan->added_offsets[a->n] + 1 : 1;
  int32_t status = SA_OK;
  a->bytes = malloc((size_t)capacity);
  if (!a->bytes) return SA_ERR_NOMEM;
  for (int64_t i = 0; i < a->n && status == SA_OK; i++) {
    const uint8_t *bytes = plan->added_bytes + plan->added_offsets[i];
    int64_t n = plan->added_offsets[i + 1] - plan->added_offsets[i];
    if (normalizer && a->flags[i] & SA_ADDED_NORMALIZED && n > 0) {
      status = sa_normalizer_run(normalizer, bytes, n, &made, NULL);
      if (status != SA_OK) break;
      bytes = made.data;
      n = made.n;
    }
    if (a->offsets[i] + n > capacity) {
      capacity = 2 * (a->offsets[i] + n);
      uint8_t *grown = realloc(a->bytes, (size_t)capacity);
      if (!grown) status = SA_ERR_NOMEM;
      else a->bytes = grown;
    }
    if (status == SA_OK && n) memcpy(a->bytes + a->offsets[i], bytes, (size_t)n);
    a->offsets[i + 1] = a->offsets[i] + n;
  }
  sa_buffer_release(&made);
  return status;
}

int32_t sa_added_build(sa_added *a, const sa_plan *plan, const sa_normalizer *normalizer) {
  const size_t n = (size_t)plan->n_added;
  memset(a, 0, sizeof *a);
  a->n = plan->n_added;
  a->offsets = calloc(n + 1, sizeof *a->offsets);
  a->ids = malloc((n + 1) * sizeof *a->ids);
  a->flags = malloc(n + 1);
  a->blank = malloc(n + 1);
  if (!a->offsets || !a->ids || !a->flags || !a->blank) return SA_ERR_NOMEM;
  if (n) {
    memcpy(a->ids, plan->added_ids, n * sizeof *a->ids);
    memcpy(a->flags, plan->added_flags, n);
  }
  for (uint32_t i = 0; i < n; i++) {
    const int64_t length = plan->added_offsets[i + 1] - plan->added_offsets[i];
    const uint8_t *bytes = plan->added_bytes + plan->added_offsets[i];
    a->blank[i] = length > 0 && run_end(bytes, 0, length, WHITE, INT64_MAX) == length;
    a->any_blank |= a->blank[i];
  }
  const int32_t status = copy_contents(a, plan, normalizer);
  if (status != SA_OK) return status;
  return needles_build(a, &a->raw, SA_ADDED_NORMALIZED, 0) &&
                 needles_build(a, &a->normalized, SA_ADDED_NORMALIZED, SA_ADDED_NORMALIZED) &&
                 needles_build(a, &a->all, 0, 0)
             ? SA_OK
             : SA_ERR_NOMEM;
}

void sa_added_release(sa_added *a) {
  free(a->offsets), free(a->bytes), free(a->ids), free(a->flags), free(a->blank);
  free(a->raw.order), free(a->normalized.order), free(a->all.order);
  memset(a, 0, sizeof *a);
}

int sa_added_searched(const sa_added *a, int32_t special, int hits) {
  return a->all.n > 0 && (special != SA_SPECIAL_PLAIN || a->any_blank || hits);
}

const void *sa_added_table(const sa_added *a, const char *name, int64_t *bytes) {
  static const uint64_t sets[] = {WHITE, WORD};
  const int64_t n = a->n;
  const struct {
    const char *name;
    const void *data;
    int64_t bytes;
  } tables[] = {
      {"added_offsets", a->offsets, (n + 1) * (int64_t)sizeof *a->offsets},
      {"added_bytes", a->bytes, a->offsets[n]},
      {"added_ids", a->ids, n * (int64_t)sizeof *a->ids},
      {"added_flags", a->flags, n},
      {"added_blank", a->blank, n},
      {"added_raw", a->raw.order, a->raw.n * (int64_t)sizeof *a->raw.order},
      {"added_normalized", a->normalized.order, a->normalized.n * (int64_t)sizeof *a->normalized.order},
      {"added_all", a->all.order, a->all.n * (int64_t)sizeof *a->all.order},
      {"added_sets", sets, sizeof sets},
  };
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    if (strcmp(name, tables[i].name) != 0) continue;
    if (bytes) *bytes = tables[i].bytes;
    return tables[i].data;
  }
  return NULL;
}

/* ---- search ---- */

/* The next match at or after `from`: its start, and its index in *added; n if there is none. */
static int64_t next_match(const sa_added *a, const sa_needles *needles, const uint8_t *text, int64_t from,
                          int64_t n, int64_t *added) {
  if (!needles->n) return n;
  for (int64_t at = from; at < n; at++) {
    if (needles->single >= 0) {
      const uint8_t *p = memchr(text + at, needles->single, (size_t)(n - at));
      if (!p) return n;
      at = p - text;
    } else if (!needles->first[text[at]]) {
      continue;
    }
    *added = sa_content_at(a->offsets, a->bytes, needles->order, needles->n, text, at, n, 0);
    if (*added >= 0) return at;
  }
  return n;
}

static const sa_needles *needles_of(const sa_added *a, int pass) {
  return pass == SA_PASS_RAW ? &a->raw : pass == SA_PASS_NORMALIZED ? &a->normalized : &a->all;
}

int64_t sa_added_next(const sa_added *a, int pass, const uint8_t *text, int64_t from, int64_t n) {
  int64_t added;
  return next_match(a, needles_of(a, pass), text, from, n, &added);
}

typedef struct search {
  const sa_added *added;
  const uint8_t *text;
  int32_t special;
  sa_spans *spans;
  int64_t *hits;
} search;

static int32_t push(sa_spans *s, sa_span span) {
  if (s->n == s->capacity) {
    const int64_t capacity = s->capacity ? 2 * s->capacity : 64;
    sa_span *grown = realloc(s->items, (size_t)capacity * sizeof *grown);
    if (!grown) return SA_ERR_NOMEM;
    s->items = grown;
    s->capacity = capacity;
  }
  s->items[s->n++] = span;
  return SA_OK;
}

static int32_t find(const search *s, const sa_needles *needles, const sa_needles *inner, int64_t lo, int64_t hi) {
  const sa_added *a = s->added;
  int64_t from = lo, at = lo, added = -1;
  int32_t status = SA_OK;
  while ((at = next_match(a, needles, s->text, at, hi, &added)) < hi && status == SA_OK) {
    const int blank = a->blank[added];
    const int64_t end = at + content_length(a, (uint32_t)added);
    const sa_verdict v = sa_special_verdict(s->text, s->special, a->flags[added], blank, lo, from, at, end, hi);
    at = end;
    if (v.hit && s->hits) s->hits[added]++;
    if (!v.span) continue;
    if (from < v.start && inner) status = find(s, inner, NULL, from, v.start);
    if (status == SA_OK) status = push(s->spans, (sa_span){v.start, v.end, added});
    if (status == SA_OK && s->special == SA_SPECIAL_ERROR && !blank) status = SA_ERR_SPECIAL;
    from = v.end;
  }
  if (status == SA_OK && from < hi && inner) status = find(s, inner, NULL, from, hi);
  return status;
}

int32_t sa_added_spans(const sa_added *a, int pass, int32_t special, const uint8_t *text, int64_t n,
                       sa_spans *spans, int64_t *hits) {
  const search s = {a, text, special, spans, hits};
  spans->n = 0;
  if (pass != SA_PASS_BOTH) return find(&s, needles_of(a, pass), NULL, 0, n);
  return find(&s, &a->raw, &a->normalized, 0, n);
}

int64_t sa_special_find(const sa_model *model, int32_t pass, int32_t special, const uint8_t *text, int64_t n,
                        int64_t *out, int64_t capacity) {
  sa_spans spans = {0};
  const int32_t status = sa_added_spans(&model->added, pass, special, text, n, &spans, NULL);
  const int64_t count = status == SA_ERR_NOMEM ? -1 : spans.n;
  for (int64_t i = 0; i < count && i < capacity; i++) {
    out[3 * i] = spans.items[i].start;
    out[3 * i + 1] = spans.items[i].end;
    out[3 * i + 2] = spans.items[i].added;
  }
  free(spans.items);
  return count;
}
