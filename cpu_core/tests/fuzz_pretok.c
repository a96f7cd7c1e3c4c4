/* libFuzzer target: tags, UTF-8 and piece starts of arbitrary bytes and rows, on every instruction set,
 * against the slow routines. The input's first byte tells how many of the next bytes cut the rest into
 * rows; the text ends where the allocation ends, so that the address sanitizer sees every overrun.
 *
 *   cmake -S cpu_core -B build/fuzz -DCMAKE_C_COMPILER=clang -DSAPHIRA_FUZZ=ON && cmake --build build/fuzz
 *   build/fuzz/fuzz_pretok -max_total_time=600 -max_len=600
 */
#include <stdlib.h>
#include <string.h>

#include "pretok.h"
#include "selftest.h"

static int by_offset(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static int32_t scheme_named(const char *name) {
  for (int32_t i = 0; i < sa_scheme_count(); i++)
    if (strcmp(sa_scheme_name(i), name) == 0) return i;
  abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  size_t cuts = size ? data[0] % 16u : 0, n;
  if (size < 1 + cuts || size > 4096) return 0;
  n = size - 1 - cuts;
  uint8_t *text = malloc(n ? n : 1), *tags = malloc(n + 1), *expected_tags = malloc(n + 1), *marks = malloc(n + 1);
  uint64_t *words = malloc((n / 64 + 1) * 8), *expected = malloc((n / 64 + 1) * 8), *starts = malloc((n / 64 + 1) * 8);
  st_char *chars = malloc((n + 1) * sizeof *chars);
  int64_t offsets[18] = {0}, n_rows = (int64_t)cuts + 1;
  uint8_t invalid[17];
  if (n) memcpy(text, data + 1 + cuts, n);
  for (size_t i = 0; i < cuts; i++) offsets[1 + i] = (int64_t)(data[1 + i] * (n + 1) / 256);
  offsets[n_rows] = (int64_t)n;
  qsort(offsets, (size_t)n_rows + 1, sizeof *offsets, by_offset);
  sa_rows rows = {text, offsets, 64, n_rows, NULL, 0};
  for (int alphabet = 0; alphabet < 2; alphabet++) {
    memset(expected_tags, 0xFF, n);
    for (int64_t r = 0; r < n_rows; r++) {
      int64_t count = st_chars(alphabet, text + offsets[r], offsets[r + 1] - offsets[r], chars);
      for (int64_t i = 0; i < count; i++) expected_tags[offsets[r] + chars[i].start] = (uint8_t)chars[i].tag;
    }
    for (int32_t isa = 0; isa < SA_ISA_COUNT; isa++) {
      if (sa_isa_select(isa) != SA_OK) continue;
      sa_classify(alphabet, &rows, tags, starts);
      if (n && memcmp(tags, expected_tags, n) != 0) abort();
      sa_utf8_invalid(&rows, invalid);
      for (int64_t r = 0; r < n_rows; r++)
        if (invalid[r] != !st_is_utf8(text + offsets[r], offsets[r + 1] - offsets[r])) abort();
    }
  }
  for (int k = 0; k < st_n_schemes; k++) {
    memset(expected, 0, (n / 64 + 1) * 8);
    for (int64_t r = 0; r < n_rows; r++) {
      int64_t at = offsets[r], length = offsets[r + 1] - at;
      int64_t count = st_chars(SA_ALPHABET_SUPERATOMS, text + at, length, chars);
      memset(marks, 0, (size_t)length);
      st_split(k, chars, count, marks);
      for (int64_t i = 0; i < length; i++)
        if (marks[i]) expected[(at + i) / 64] |= (uint64_t)1 << (at + i) % 64;
    }
    for (int32_t isa = 0; isa < SA_ISA_COUNT; isa++) {
      if (sa_isa_select(isa) != SA_OK) continue;
      sa_boundaries(scheme_named(st_schemes[k].name), &rows, words);
      if (memcmp(words, expected, (n + 63) / 64 * 8) != 0) abort();
    }
  }
  free(text); free(tags); free(expected_tags); free(marks);
  free(words); free(expected); free(starts); free(chars);
  return 0;
}
