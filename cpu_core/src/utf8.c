/* Rows that are not UTF-8. */
#include "backend.h"

static int is_valid_row(const sa_rows *rows, int64_t row) {
  int64_t bit = rows->validity_offset + row;
  return !rows->validity || (rows->validity[bit / 8] >> (bit % 8) & 1);
}

/* The row that holds the byte `at` (relative to the first row's start); rows before `from` end by it. */
static int64_t row_of(const sa_rows *rows, int64_t from, int64_t at) {
  int64_t low = from, high = rows->n_rows, step = 1;
  at += sa_offset(rows->offsets, rows->offset_bits, 0);
  while (low + step < high && sa_offset(rows->offsets, rows->offset_bits, low + step) <= at) {
    low += step;
    step *= 2;
  }
  if (low + step < high) high = low + step;
  while (low + 1 < high) {
    int64_t middle = low + (high - low) / 2;
    if (sa_offset(rows->offsets, rows->offset_bits, middle) <= at) low = middle;
    else high = middle;
  }
  return low;
}

int64_t sa_utf8_invalid(const sa_rows *rows, uint8_t *invalid) {
  const struct sa_backend *backend = sa_backend_active();
  int64_t at = 0, row = 0, count = 0;
  uint64_t bad;
  sa_stream s;
  memset(invalid, 0, (size_t)rows->n_rows);
  sa_stream_begin(&s, rows->text, rows->offsets, rows->offset_bits, rows->n_rows);
  while ((bad = backend->utf8_errors(&s, &at)) != 0) {
    for (; bad; bad &= bad - 1) {
      row = row_of(rows, row, at + sa_ctz64(bad));
      if (!invalid[row] && is_valid_row(rows, row)) {
        invalid[row] = 1;
        count++;
      }
    }
  }
  return count;
}
