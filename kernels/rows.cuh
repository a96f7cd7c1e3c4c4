/* Rows of a batch, as Arrow has them. */
#ifndef SAPHIRA_ROWS_CUH
#define SAPHIRA_ROWS_CUH

#include "shared/types.h"

/* Row i is text[offset i, offset i + 1), counted from the batch's first byte. */
struct batch_rows {
  const u8 *offsets;   /* n + 1 of them, ascending, 4 or 8 bytes each */
  u32 offset_bytes;
  u64 n;
  const u8 *validity;  /* Arrow's bitmap, or null: all valid */
  u64 validity_offset; /* bit of row 0 in it */
};

static __device__ __forceinline__ u64 column_offset(batch_rows rows, u64 i) {
  return rows.offset_bytes == 8 ? ((const u64 *)rows.offsets)[i] : ((const u32 *)rows.offsets)[i];
}

static __device__ __forceinline__ u64 row_offset(batch_rows rows, u64 i) {
  return column_offset(rows, i) - column_offset(rows, 0);
}

static __device__ __forceinline__ bool row_is_null(batch_rows rows, u64 i) {
  u64 bit = rows.validity_offset + i;
  return rows.validity && !(rows.validity[bit >> 3] >> (bit & 7) & 1);
}

/* The row with the byte at `at` in it; at < row_offset(n). */
static __device__ __forceinline__ u64 row_of(batch_rows rows, u64 at) {
  u64 lo = 0, hi = rows.n; /* the last row that starts at or before it */
  at += column_offset(rows, 0);
  while (hi - lo > 1) {
    u64 mid = lo + (hi - lo) / 2;
    if (column_offset(rows, mid) <= at) lo = mid;
    else hi = mid;
  }
  return lo;
}

#endif
