/* Stage normalize: the steps of a normalizer over one segment.
 *
 * A step reads a source and appends to a target. Spans follow the rule of Hugging Face's NormalizedString:
 * a character that replaces one has its span; a character that is added has the span of the character before
 * the place where it is added; a character that several become has the span of the first.
 */
#ifndef SA_NORMALIZE_H
#define SA_NORMALIZE_H

#include <stdint.h>
#include <string.h>

#include "saphira.h"

typedef struct sa_source {
  const uint8_t *text;
  const int64_t *spans;   /* two of each byte; NULL: not wanted */
  int64_t n;
} sa_source;

typedef struct sa_target {
  sa_buffer *text;
  sa_alignment *spans;    /* NULL: not wanted */
} sa_target;

/* Room for `bytes` more; 0 when out of memory. */
int sa_target_reserve(sa_target *target, int64_t bytes);

/* Appends source bytes [from, to) as they are. 0 when out of memory. */
int sa_target_copy(sa_target *target, const sa_source *source, int64_t from, int64_t to);

/* Appends n bytes that all have the span of source byte `like`. 0 when out of memory. */
int sa_target_add(sa_target *target, const uint8_t *bytes, int64_t n, const sa_source *source, int64_t like);

/* ---- forms and lower case (normalize_forms.c); form: SA_NORMALIZE_NFC..NFKD ---- */

int sa_form_unchanged(int form, const uint8_t *text, int64_t n);
int32_t sa_form_run(int form, const sa_source *source, sa_target *target);
int sa_lower_unchanged(const uint8_t *text, int64_t n);
int32_t sa_lower_run(const sa_source *source, sa_target *target);

/* ---- characters ---- */

/* Width of the valid UTF-8 character at text[at] and its code point; 0 where there is none. */
static inline int sa_char_at(const uint8_t *text, int64_t at, int64_t n, uint32_t *point) {
  const uint8_t *p = text + at;
  const uint32_t lead = p[0];
  if (lead < 0x80) return *point = lead, 1;
  if (lead < 0xC2 || n - at < 2 || (p[1] & 0xC0) != 0x80) return 0;
  if (lead < 0xE0) return *point = (lead & 0x1F) << 6 | (p[1] & 0x3F), 2;
  if (n - at < 3 || (p[2] & 0xC0) != 0x80) return 0;
  if (lead < 0xF0) {
    *point = (lead & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (p[2] & 0x3F);
    return *point < 0x800 || (*point >= 0xD800 && *point < 0xE000) ? 0 : 3;
  }
  if (lead > 0xF4 || n - at < 4 || (p[3] & 0xC0) != 0x80) return 0;
  *point = (lead & 0x07) << 18 | (uint32_t)(p[1] & 0x3F) << 12 | (uint32_t)(p[2] & 0x3F) << 6 | (p[3] & 0x3F);
  return *point < 0x10000 || *point > 0x10FFFF ? 0 : 4;
}

/* The same of the character that ends at text[at], at >= 1; lo: where the text starts. */
static inline int sa_char_before(const uint8_t *text, int64_t lo, int64_t at, uint32_t *point) {
  int64_t start = at - 1;
  while (start > lo && at - start < 4 && (text[start] & 0xC0) == 0x80) start--;
  return sa_char_at(text, start, at, point) == at - start ? (int)(at - start) : 0;
}

static inline int sa_put_char(uint8_t *out, uint32_t point) {
  if (point < 0x80) return out[0] = (uint8_t)point, 1;
  if (point < 0x800) {
    out[0] = (uint8_t)(0xC0 | point >> 6);
    return out[1] = (uint8_t)(0x80 | (point & 0x3F)), 2;
  }
  if (point < 0x10000) {
    out[0] = (uint8_t)(0xE0 | point >> 12);
    out[1] = (uint8_t)(0x80 | (point >> 6 & 0x3F));
    return out[2] = (uint8_t)(0x80 | (point & 0x3F)), 3;
  }
  out[0] = (uint8_t)(0xF0 | point >> 18);
  out[1] = (uint8_t)(0x80 | (point >> 12 & 0x3F));
  out[2] = (uint8_t)(0x80 | (point >> 6 & 0x3F));
  return out[3] = (uint8_t)(0x80 | (point & 0x3F)), 4;
}

#endif
