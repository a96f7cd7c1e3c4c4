/* Every code point, every kind of broken byte, against the slow routines. */
#include <stdlib.h>
#include <string.h>

#include "saphira.h"
#include "selftest.h"

/* Writes code in `width` bytes, shortest form or not. */
static uint8_t *put(uint8_t *p, uint32_t code, int width) {
  static const uint8_t lead[5] = {0, 0, 0xC0, 0xE0, 0xF0};
  if (width == 1) {
    *p = (uint8_t)code;
    return p + 1;
  }
  p[0] = (uint8_t)(lead[width] | code >> (6 * (width - 1)));
  for (int k = 1; k < width; k++) p[k] = (uint8_t)(0x80 | (code >> (6 * (width - 1 - k)) & 63));
  return p + width;
}

/* Tags and character starts of one row, on every instruction set. */
static void compare(const char *what, const uint8_t *text, int64_t n) {
  st_char *chars = malloc((size_t)(n + 1) * sizeof *chars);
  uint8_t *expected = malloc((size_t)n + 1), *tags = malloc((size_t)n + 1);
  size_t words = (size_t)(n + 63) / 64;
  uint64_t *expected_starts = calloc(words + 1, 8), *starts = malloc((words + 1) * 8);
  int64_t offsets[2] = {0, n};
  sa_rows rows = {text, offsets, 64, 1, NULL, 0};
  for (int alphabet = 0; alphabet < 2; alphabet++) {
    int64_t count = st_chars(alphabet, text, n, chars);
    memset(expected, 0xFF, (size_t)n);
    memset(expected_starts, 0, words * 8);
    for (int64_t i = 0; i < count; i++) {
      expected[chars[i].start] = (uint8_t)chars[i].tag;
      expected_starts[chars[i].start / 64] |= (uint64_t)1 << chars[i].start % 64;
    }
    for (int32_t isa = 0; isa < SA_ISA_COUNT; isa++) {
      int64_t bad = -1;
      if (sa_isa_select(isa) != SA_OK) continue;
      memset(tags, 0xEE, (size_t)n);
      sa_classify(alphabet, &rows, tags, starts);
      for (int64_t i = 0; i < n && bad < 0; i++) {
        int start = (int)(starts[i / 64] >> (i % 64) & 1);
        if (tags[i] != expected[i] || start != (int)(expected_starts[i / 64] >> (i % 64) & 1)) bad = i;
      }
      st_check(bad < 0, "%s, alphabet %d, %s: byte %lld is tag %d, not %d", what, alphabet,
               sa_isa_name(isa), (long long)bad, bad < 0 ? 0 : tags[bad], bad < 0 ? 0 : expected[bad]);
      st_check(memcmp(starts, expected_starts, words * 8) == 0, "%s, %s: character starts", what,
               sa_isa_name(isa));
    }
  }
  free(chars);
  free(expected);
  free(tags);
  free(expected_starts);
  free(starts);
}

static void code_points(void) {
  uint8_t *text = malloc(0x140000 * 5), *p = text;
  for (uint32_t c = 0; c < 0x110000; c++) p = put(p, c, c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4);
  compare("every code point", text, p - text);
  /* In another order, so that neighbours in a block have different leaves. */
  p = text;
  for (uint32_t i = 0; i < 0x110000; i++) {
    uint32_t c = (uint32_t)(i * 0x9E377ull % 0x110000);
    p = put(p, c, c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4);
  }
  compare("every code point, shuffled", text, p - text);
  p = text;
  for (uint32_t c = 0; c < 0x80; c++) p = put(p, c, 2);
  for (uint32_t c = 0; c < 0x800; c++) p = put(p, c, 3);
  for (uint32_t c = 0; c < 0x10000; c++) p = put(p, c, 4);
  compare("overlong forms", text, p - text);
  p = text;
  for (uint32_t c = 0x110000; c < 0x140000; c++) p = put(p, c, 4);
  compare("beyond U+10FFFF", text, p - text);
  free(text);
}

/* All strings of up to three bytes (and four, of fewer bytes) as one row each would take long one by
 * one; they are rows of one text, and compared row by row. */
static void short_rows(int length, const uint8_t *bytes, int n_bytes) {
  int64_t n_rows = 1, n;
  for (int i = 0; i < length; i++) n_rows *= n_bytes;
  n = n_rows * length;
  uint8_t *text = malloc((size_t)n), *tags = malloc((size_t)n), *invalid = malloc((size_t)n_rows);
  uint64_t *starts = malloc((size_t)(n + 63) / 64 * 8);
  int32_t *offsets = malloc((size_t)(n_rows + 1) * 4);
  for (int64_t r = 0; r < n_rows; r++) {
    int64_t x = r;
    offsets[r] = (int32_t)(r * length);
    for (int i = 0; i < length; i++, x /= n_bytes) text[r * length + i] = bytes[x % n_bytes];
  }
  offsets[n_rows] = (int32_t)n;
  sa_rows rows = {text, offsets, 32, n_rows, NULL, 0};
  for (int32_t isa = 0; isa < SA_ISA_COUNT; isa++) {
    if (sa_isa_select(isa) != SA_OK) continue;
    for (int alphabet = 0; alphabet < 2; alphabet++) {
      sa_classify(alphabet, &rows, tags, starts);
      for (int64_t r = 0; r < n_rows; r++) {
        st_char chars[4];
        uint8_t expected[4] = {0xFF, 0xFF, 0xFF, 0xFF};
        int64_t count = st_chars(alphabet, text + r * length, length, chars);
        for (int64_t i = 0; i < count; i++) expected[chars[i].start] = (uint8_t)chars[i].tag;
        const uint8_t *t = text + r * length;
        st_check(memcmp(expected, tags + r * length, (size_t)length) == 0,
                 "row %02x %02x %02x.. of %d bytes, alphabet %d, %s", t[0], length > 1 ? t[1] : 0,
                 length > 2 ? t[2] : 0, length, alphabet, sa_isa_name(isa));
      }
    }
    int64_t count = sa_utf8_invalid(&rows, invalid), expected_count = 0;
    for (int64_t r = 0; r < n_rows; r++) {
      int bad = !st_is_utf8(text + r * length, length);
      expected_count += bad;
      st_check(invalid[r] == bad, "UTF-8 row %lld of %d bytes, %s", (long long)r, length, sa_isa_name(isa));
    }
    st_check(count == expected_count, "number of invalid rows, %s", sa_isa_name(isa));
  }
  free(text);
  free(tags);
  free(invalid);
  free(starts);
  free(offsets);
}

static void remap(void) {
  uint8_t table[32], tags[300], out[300];
  for (int i = 0; i < 32; i++) table[i] = (uint8_t)(200 - 5 * i);
  for (int i = 0; i < 300; i++) tags[i] = (uint8_t)(i % 33 == 32 ? 0xFF : i % 33);
  for (int32_t isa = 0; isa < SA_ISA_COUNT; isa++) {
    if (sa_isa_select(isa) != SA_OK) continue;
    for (int n = 0; n <= 300; n++) {
      memset(out, 1, sizeof out);
      sa_remap(table, tags, n, out);
      int bad = 0;
      for (int i = 0; i < 300; i++)
        bad |= out[i] != (i >= n ? 1 : tags[i] == 0xFF ? 0xFF : table[tags[i]]);
      st_check(!bad, "remap of %d, %s", n, sa_isa_name(isa));
    }
  }
}

void st_classify(void) {
  static const uint8_t few[] = {0x00, 'a', ' ', 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xDF,
                                0xE0, 0xE3, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF};
  uint8_t all[256];
  for (int i = 0; i < 256; i++) all[i] = (uint8_t)i;
  code_points();
  short_rows(1, all, 256);
  short_rows(2, all, 256);
  short_rows(3, few, sizeof few);
  short_rows(4, few, sizeof few);
  remap();
}
