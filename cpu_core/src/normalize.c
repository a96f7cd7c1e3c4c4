/* The program of a normalizer and its steps on plain text. See normalize.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* memmem */
#endif
#include "normalize.h"

#include <stdio.h>
#include <stdlib.h>

#include "utf8.h"

#define BLOCK 32

typedef struct step {
  int kind;
  const uint8_t *pattern, *content;
  int64_t n_pattern, n_content;
} step;

struct sa_normalizer {
  int64_t n;
  step *steps;
  uint8_t *bytes;
};

/* ---- growing memory ---- */

void sa_buffer_release(sa_buffer *buffer) {
  free(buffer->data);
  memset(buffer, 0, sizeof *buffer);
}

void sa_alignment_release(sa_alignment *alignment) {
  free(alignment->spans);
  memset(alignment, 0, sizeof *alignment);
}

static int64_t grown(int64_t capacity, int64_t wanted) {
  const int64_t more = capacity + capacity / 2 + 64;
  return more > wanted ? more : wanted;
}

static int buffer_reserve(sa_buffer *b, int64_t bytes) {
  if (b->capacity - b->n >= bytes) return 1;
  const int64_t capacity = grown(b->capacity, b->n + bytes);
  uint8_t *data = realloc(b->data, (size_t)capacity);
  if (!data) return 0;
  b->data = data;
  b->capacity = capacity;
  return 1;
}

static int alignment_reserve(sa_alignment *a, int64_t bytes) {
  if (a->capacity - a->n >= bytes) return 1;
  const int64_t capacity = grown(a->capacity, a->n + bytes);
  int64_t *spans = realloc(a->spans, (size_t)capacity * 2 * sizeof *spans);
  if (!spans) return 0;
  a->spans = spans;
  a->capacity = capacity;
  return 1;
}

int sa_target_reserve(sa_target *target, int64_t bytes) {
  return buffer_reserve(target->text, bytes) && (!target->spans || alignment_reserve(target->spans, bytes));
}

int sa_target_copy(sa_target *target, const sa_source *source, int64_t from, int64_t to) {
  const int64_t n = to - from;
  if (n == 0) return 1;
  if (!sa_target_reserve(target, n)) return 0;
  memcpy(target->text->data + target->text->n, source->text + from, (size_t)n);
  target->text->n += n;
  if (target->spans) {
    memcpy(target->spans->spans + 2 * target->spans->n, source->spans + 2 * from, (size_t)n * 2 * sizeof(int64_t));
    target->spans->n += n;
  }
  return 1;
}

int sa_target_add(sa_target *target, const uint8_t *bytes, int64_t n, const sa_source *source, int64_t like) {
  if (n == 0) return 1;
  if (!sa_target_reserve(target, n)) return 0;
  memcpy(target->text->data + target->text->n, bytes, (size_t)n);
  target->text->n += n;
  for (int64_t i = 0; target->spans && i < n; i++) {
    int64_t *span = target->spans->spans + 2 * target->spans->n++;
    memcpy(span, source->spans + 2 * like, 2 * sizeof *span);
  }
  return 1;
}

/* ---- white space ---- */

static int is_white(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

static int white_at(const uint8_t *text, int64_t at, int64_t n) {
  uint32_t point;
  const int width = sa_char_at(text, at, n, &point);
  return width && is_white(point) ? width : 0;
}

/* Where the white space at the start of [at, n) ends. */
static int64_t white_end(const uint8_t *text, int64_t at, int64_t n) {
  for (int width; at < n && (width = white_at(text, at, n)) != 0;) at += width;
  return at;
}

/* Where the white space at the end of [0, n) starts. */
static int64_t white_start(const uint8_t *text, int64_t n) {
  uint32_t point;
  for (int width; n > 0 && (width = sa_char_before(text, 0, n, &point)) != 0 && is_white(point);) n -= width;
  return n;
}

/* The first white space at or after `at`, n if there is none. */
static int64_t next_white(const uint8_t *text, int64_t at, int64_t n) {
  static const uint8_t may[256] = {[0x09] = 1, [0x0A] = 1, [0x0B] = 1, [0x0C] = 1, [0x0D] = 1, [0x20] = 1,
                                   [0xC2] = 2, [0xE1] = 2, [0xE2] = 2, [0xE3] = 2}; /* 1: is; 2: may lead one */
  for (; at < n; at++)
    if (may[text[at]] == 1 || (may[text[at]] == 2 && white_at(text, at, n))) return at;
  return n;
}

/* The end of a stretch from `at` that holds no white space but single U+0020, and does not end after one. */
static int64_t skip_single_spaces(const uint8_t *text, int64_t at, int64_t n) {
  for (; at + BLOCK < n; at += BLOCK) {
    uint8_t stop = 0;
    for (int i = 0; i < BLOCK; i++) {
      const uint8_t c = text[at + i];
      stop |= (uint8_t)((uint8_t)(c - 0x09) < 5) | (c >= 0x80) |
              (uint8_t)((c == 0x20) & ((text[at + i + 1] == 0x20) | (text[at + i + 1] >= 0x80)));
    }
    if (stop || (uint8_t)(text[at + BLOCK] - 0x09) < 5) break;
  }
  return at;
}

/* The next run of white space that is not already the one character that replaces it; n if there is none. */
static int64_t next_replaced(const step *s, const uint8_t *text, int64_t at, int64_t n, int64_t *end) {
  const int one = s->n_content > 0 && white_at(s->content, 0, s->n_content) == s->n_content;
  const int space = one && s->content[0] == ' ';
  for (;; at = *end) {
    if (space) at = skip_single_spaces(text, at, n);
    at = next_white(text, at, n);
    if (at == n) return n;
    *end = white_end(text, at, n);
    if (!one || *end - at != s->n_content || memcmp(text + at, s->content, (size_t)s->n_content) != 0) return at;
  }
}

static int spaces_run(const step *s, const sa_source *source, sa_target *target) {
  for (int64_t done = 0;;) {
    int64_t end;
    const int64_t at = next_replaced(s, source->text, done, source->n, &end);
    if (!sa_target_copy(target, source, done, at)) return 0;
    if (at == source->n) return 1;
    done = end;
    if (!sa_target_add(target, s->content, s->n_content, source, done - 1)) return 0;
  }
}

/* ---- literals ---- */

static int64_t next_literal(const step *s, const uint8_t *text, int64_t at, int64_t n) {
  if (at == n) return n;
  const uint8_t *p = s->n_pattern == 1 ? memchr(text + at, s->pattern[0], (size_t)(n - at))
                                       : memmem(text + at, (size_t)(n - at), s->pattern, (size_t)s->n_pattern);
  return p ? p - text : n;
}

static int replace_run(const step *s, const sa_source *source, sa_target *target) {
  for (int64_t done = 0;;) {
    const int64_t at = next_literal(s, source->text, done, source->n);
    if (!sa_target_copy(target, source, done, at)) return 0;
    if (at == source->n) return 1;
    done = at + s->n_pattern;
    if (!sa_target_add(target, s->content, s->n_content, source, done - 1)) return 0;
  }
}

/* ---- steps ---- */

/* Whether a step leaves the text and its spans as they are. */
static int step_unchanged(const step *s, const uint8_t *text, int64_t n) {
  int64_t end;
  switch (s->kind) {
    case SA_NORMALIZE_LOWERCASE: return sa_lower_unchanged(text, n);
    case SA_NORMALIZE_REPLACE: return next_literal(s, text, 0, n) == n;
    case SA_NORMALIZE_REPLACE_SPACES: return next_replaced(s, text, 0, n, &end) == n;
    case SA_NORMALIZE_STRIP_LEFT: return n == 0 || !white_at(text, 0, n);
    case SA_NORMALIZE_STRIP_RIGHT: return white_start(text, n) == n;
    case SA_NORMALIZE_PREPEND: return n == 0 || s->n_content == 0;
    default: return sa_form_unchanged(s->kind, text, n);
  }
}

static int32_t step_run(const step *s, const sa_source *source, sa_target *target) {
  int ok;
  switch (s->kind) {
    case SA_NORMALIZE_LOWERCASE: return sa_lower_run(source, target);
    case SA_NORMALIZE_REPLACE: ok = replace_run(s, source, target); break;
    case SA_NORMALIZE_REPLACE_SPACES: ok = spaces_run(s, source, target); break;
    case SA_NORMALIZE_STRIP_LEFT:
      ok = sa_target_copy(target, source, white_end(source->text, 0, source->n), source->n);
      break;
    case SA_NORMALIZE_STRIP_RIGHT: ok = sa_target_copy(target, source, 0, white_start(source->text, source->n)); break;
    case SA_NORMALIZE_PREPEND: /* it shares the span of the first character */
      ok = sa_target_add(target, s->content, s->n_content, source, 0) && sa_target_copy(target, source, 0, source->n);
      break;
    default: return sa_form_run(s->kind, source, target);
  }
  return ok ? SA_OK : SA_ERR_NOMEM;
}

int32_t sa_normalizer_quick(const sa_normalizer *normalizer, const uint8_t *text, int64_t n) {
  for (int64_t i = 0; i < normalizer->n; i++)
    if (!step_unchanged(&normalizer->steps[i], text, n)) return 0;
  return 1;
}

/* Each byte's own character, by the byte contract. */
static int identity(sa_alignment *a, const uint8_t *text, int64_t n) {
  a->n = 0;
  if (!alignment_reserve(a, n)) return 0;
  for (int64_t at = 0; at < n;) {
    uint32_t code;
    int kind;
    const int64_t end = at + sa_utf8_decode(text + at, text + n, &code, &kind);
    for (int64_t i = at; i < end; i++) a->spans[2 * i] = at, a->spans[2 * i + 1] = end;
    at = end;
  }
  a->n = n;
  return 1;
}

int32_t sa_normalizer_run(const sa_normalizer *normalizer, const uint8_t *text, int64_t n, sa_buffer *out,
                          sa_alignment *alignment) {
  /* Steps write to one of two places in turn; in the end the caller's structures take the last one's memory. */
  sa_buffer texts[2] = {*out, {NULL, 0, 0}};
  sa_alignment spans[2] = {alignment ? *alignment : (sa_alignment){NULL, 0, 0}, {NULL, 0, 0}};
  sa_source source = {text, NULL, n};
  int32_t status = SA_OK;
  int at = -1; /* which place holds the source; -1: the caller's text, its spans in place 1 */
  if (alignment) {
    if (!identity(&spans[1], text, n)) status = SA_ERR_NOMEM;
    source.spans = spans[1].spans;
  }
  for (int64_t i = 0; i < normalizer->n && status == SA_OK; i++) {
    const step *s = &normalizer->steps[i];
    if (step_unchanged(s, source.text, source.n)) continue;
    const int to = at == 0;
    sa_target target = {&texts[to], alignment ? &spans[to] : NULL};
    texts[to].n = spans[to].n = 0;
    status = step_run(s, &source, &target);
    at = to;
    source = (sa_source){texts[to].data, alignment ? spans[to].spans : NULL, texts[to].n};
  }
  if (at < 0 && status == SA_OK) {
    sa_target target = {&texts[0], alignment ? &spans[0] : NULL};
    texts[0].n = spans[0].n = 0;
    status = sa_target_copy(&target, &source, 0, n) ? SA_OK : SA_ERR_NOMEM;
    at = 0;
  }
  const int keep = at == 1;
  *out = texts[keep];
  free(texts[!keep].data);
  if (alignment) *alignment = spans[keep];
  free(spans[!keep].spans);
  return status;
}

/* ---- building ---- */

static int is_utf8(const uint8_t *text, int64_t n) {
  uint32_t point;
  for (int64_t at = 0; at < n;) {
    const int width = sa_char_at(text, at, n, &point);
    if (!width) return 0;
    at += width;
  }
  return 1;
}

sa_normalizer *sa_normalizer_new(const sa_normalizer_plan *plan, char *error, int64_t capacity) {
  const char *reason = "out of memory";
  const int64_t n = plan->n_steps, bytes = n ? plan->offsets[2 * n] : 0;
  sa_normalizer *z = calloc(1, sizeof *z);
  if (z) {
    z->steps = calloc((size_t)n + 1, sizeof *z->steps);
    z->bytes = malloc((size_t)bytes + 1);
  }
  if (!z || !z->steps || !z->bytes) goto failed;
  if (bytes) memcpy(z->bytes, plan->bytes, (size_t)bytes);
  z->n = n;
  for (int64_t i = 0; i < n; i++) {
    const int64_t *o = plan->offsets + 2 * i;
    z->steps[i] = (step){plan->kinds[i], z->bytes + o[0], z->bytes + o[1], o[1] - o[0], o[2] - o[1]};
    if (plan->kinds[i] >= SA_NORMALIZE_COUNT) {
      reason = "a step of a normalizer is of no known kind";
      goto failed;
    }
    if (plan->kinds[i] == SA_NORMALIZE_REPLACE && o[0] == o[1]) {
      reason = "a normalizer replaces the empty string";
      goto failed;
    }
    if (!is_utf8(z->steps[i].pattern, o[1] - o[0]) || !is_utf8(z->steps[i].content, o[2] - o[1])) {
      reason = "a string of a normalizer is not UTF-8";
      goto failed;
    }
  }
  return z;
failed:
  if (error && capacity > 0) snprintf(error, (size_t)capacity, "%s", reason);
  sa_normalizer_free(z);
  return NULL;
}

void sa_normalizer_free(sa_normalizer *z) {
  if (!z) return;
  free(z->steps);
  free(z->bytes);
  free(z);
}
