/* libFuzzer target: random pretokenizer programs over arbitrary bytes and rows. Every instruction set must
 * give the same pieces; pieces must lie in their row, in order; and a row on its own must have the pieces
 * that it has among others. The text ends where the allocation ends.
 *
 *   cmake -S cpu_core -B build/fuzz -DCMAKE_C_COMPILER=clang -DSAPHIRA_FUZZ=ON && cmake --build build/fuzz
 *   build/fuzz/fuzz_consumers -max_total_time=600 -max_len=600
 */
#include <stdlib.h>
#include <string.h>

#include "saphira.h"

#define MAX_STEPS 4
#define MAX_ROWS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int by_offset(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Matches the byte 61 with all others like it behind it, within a piece. */
static int32_t match_runs(void *context, const uint8_t *text, int64_t n, const uint64_t *pieces,
                          const uint64_t *dropped, uint64_t *starts, uint64_t *matched) {
  (void)context;
  for (int64_t i = 0; i < n; i++) {
    const uint64_t bit = (uint64_t)1 << (i % 64);
    if (text[i] != 'a' || dropped[i / 64] & bit) continue;
    matched[i / 64] |= bit;
    if (i == 0 || text[i - 1] != 'a' || pieces[i / 64] & bit) starts[i / 64] |= bit;
  }
  return SA_OK;
}

static const uint8_t literals[][11] = {"a", " ", "aa", "a a", "\xE2\x96\x81", "\xC3\xA9", "abababab", "aaaaaaaaaa", "1'"};
static const uint8_t fillings[][4] = {" ", "_", "\xE2\x96\x81"};

/* A stage from two bytes; table: room for the 32 bytes of classes. */
static sa_stage stage_of(uint8_t kind, uint8_t how, uint8_t *table) {
  static const int32_t cuts[] = {SA_CUT_DROP, SA_CUT_RUN, SA_CUT_BEFORE, SA_CUT_AFTER,
                                 SA_CUT_BEFORE | SA_CUT_AFTER, SA_CUT_DROP_REST};
  sa_stage s = {.kind = kind % 10, .cuts = cuts[how % 6], .match = match_runs};
  switch (s.kind) {
    case SA_STAGE_CLASSES:
      for (uint32_t i = 0; i < 32; i++) table[i] = (uint8_t)((how * 2654435761u + i * 40503u * (how + 1u)) >> 13 & 15);
      s.bytes = table;
      s.n_bytes = 32;
      break;
    case SA_STAGE_LITERAL:
      s.bytes = literals[how / 6 % 9];
      s.n_bytes = (int64_t)strlen((const char *)s.bytes);
      break;
    case SA_STAGE_SCHEME: s.number = how % sa_scheme_count(); break;
    case SA_STAGE_LENGTH: s.number = 1 + how % 70; break;
    case SA_STAGE_PREFIX: case SA_STAGE_REPLACE:
      s.number = how % 3;
      s.bytes = fillings[how / 3 % 3];
      s.n_bytes = (int64_t)strlen((const char *)s.bytes);
  }
  return s;
}

/* counts, then starts and ends, of all rows; returns how many pieces. */
static int64_t run(const sa_program *program, const sa_rows *rows, int64_t *counts, int64_t **places) {
  sa_marks *marks = NULL;
  int64_t all = 0;
  if (sa_pretokenize_count(program, rows, counts, &marks) != SA_OK) abort();
  for (int64_t i = 0; i < rows->n_rows; i++) all += counts[i];
  *places = malloc((size_t)(2 * all + 1) * 8);
  if (sa_pretokenize(rows, counts, marks, *places, *places + all) != SA_OK) abort();
  sa_marks_free(marks);
  return all;
}

static void check_alone(const sa_program *program, const uint8_t *text, int64_t n, int64_t count,
                        const int64_t *starts, const int64_t *ends) {
  int64_t sizes[2], again[2];
  if (sa_pretokenize_text(program, text, n, sizes, NULL, NULL) != SA_OK || sizes[1] != count) abort();
  if (sizes[0] > sa_program_bound(program, n)) abort();
  uint8_t *made = malloc(sizes[0] ? (size_t)sizes[0] : 1);
  int64_t *spans = malloc((size_t)(4 * count + 1) * 8);
  if (sa_pretokenize_text(program, text, n, again, made, spans) != SA_OK || again[0] != sizes[0]) abort();
  for (int64_t i = 0; i < count; i++) {
    const int64_t *s = spans + 4 * i;
    if (s[0] >= s[1] || s[0] < (i ? s[-3] : 0) || s[1] > sizes[0]) abort();
    if (s[2] != starts[i] || s[3] != ends[i]) abort();
  }
  free(made);
  free(spans);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const size_t head = 2 + 2 * MAX_STEPS + MAX_ROWS;
  uint8_t tables[MAX_STEPS][32], validity[2] = {0xFF, 0};
  sa_stage stages[MAX_STEPS];
  if (size < head || size > 4096) return 0;
  const int64_t n_steps = data[0] % (MAX_STEPS + 1), n_rows = 1 + data[0] / 32;
  const int64_t n = (int64_t)(size - head);
  uint8_t *text = malloc(n ? (size_t)n : 1);
  int64_t offsets[MAX_ROWS + 1] = {0}, counts[MAX_ROWS], expected_counts[MAX_ROWS], *expected = NULL, all = 0;
  if (n) memcpy(text, data + head, (size_t)n);
  for (int64_t i = 0; i < n_steps; i++) stages[i] = stage_of(data[2 + 2 * i], data[3 + 2 * i], tables[i]);
  for (int64_t i = 1; i < n_rows; i++) offsets[i] = data[2 + 2 * MAX_STEPS + i] * (n + 1) / 256;
  offsets[n_rows] = n;
  qsort(offsets, (size_t)n_rows + 1, sizeof *offsets, by_offset);
  validity[0] = data[1] | 1;
  const sa_rows rows = {text, offsets, 64, n_rows, validity, 0};
  sa_program *program = sa_program_new(stages, n_steps);
  if (!program) abort();
  for (int32_t isa = 0; isa < SA_ISA_COUNT; isa++) {
    int64_t *places, found;
    if (sa_isa_select(isa) != SA_OK) continue;
    found = run(program, &rows, counts, &places);
    if (!expected) {
      expected = places;
      all = found;
      memcpy(expected_counts, counts, sizeof counts);
      continue;
    }
    if (found != all || memcmp(counts, expected_counts, (size_t)n_rows * 8) != 0 ||
        memcmp(places, expected, (size_t)(2 * all) * 8) != 0)
      abort();
    free(places);
  }
  for (int64_t r = 0, k = 0; r < n_rows; k += counts[r++]) {
    const int64_t length = offsets[r + 1] - offsets[r], *starts = expected + k, *ends = expected + all + k;
    const int null = !(validity[0] >> r & 1);
    if (null && counts[r]) abort();
    for (int64_t i = 0; i < counts[r]; i++)
      if (starts[i] < (i ? starts[i - 1] : 0) || starts[i] >= ends[i] || ends[i] > length) abort();
    if (!null) check_alone(program, text + offsets[r], length, counts[r], starts, ends);
  }
  sa_program_free(program);
  free(expected);
  free(text);
  return 0;
}
