/* Stage rows: where segments start, before anything looks at the text.
 *
 * row_segments: a thread a row and one for the text's end, n_rows + 1 in all; blocks of whole warps.
 *   reads   offsets (4 or 8 bytes a row), validity (1 bit a row)
 *   writes  segments: the bit of each row's first byte and of byte N (8 bytes for each word with a row in it);
 *           a null row with bytes under it becomes a fixed piece without ids
 * placed_pieces: a thread a fixed piece of one byte, which the core has put in new text (sa_prepare); such text has
 *   no bytes under null rows, so the core's list is the list of fixed pieces.
 *   reads   at: 4 bytes a piece
 *   writes  its bits in segments and fixed, and how many there are
 * Bitmaps have N / 64 + 1 words, zero before. */
#include "marks.cuh"
#include "rows.cuh"
#include "scan.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    row_segments(const u8 *offsets, u32 offset_bytes, u64 n_rows, const u8 *validity, u64 validity_offset,
                 u64 *segments, u64 *fixed, u64 *inside, u32 *fixed_at, u32 *fixed_id, u64 *counters) {
  batch_rows rows = {offsets, offset_bytes, n_rows, validity, validity_offset};
  fixed_pieces pieces = {fixed, inside, fixed_at, fixed_id, counters};
  u64 row = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  u32 lane = lane_id();
  bool there = row <= n_rows;
  u64 at = there ? row_offset(rows, row) : ~(u64)0;
  u64 word = at >> 6, bits = (u64)1 << (at & 63);

  /* Rows ascend, so those of a word are side by side: lane after lane gathers the bits of the lanes behind it.
   *   word   3 3 3 7 9 9
   *   bits   a b c d e f   ->   abc bc c d ef f        the first of each word writes */
  for (u32 step = 1; step < 32; step *= 2) {
    u64 other = __shfl_down_sync(SA_FULL_WARP, word, step);
    u64 more = __shfl_down_sync(SA_FULL_WARP, bits, step);
    if (lane + step < 32 && other == word) bits |= more;
  }
  u64 before = __shfl_up_sync(SA_FULL_WARP, word, 1);
  u64 last = __shfl_sync(SA_FULL_WARP, word, 31);
  if (there && (lane == 0 || before != word)) {
    if (lane == 0 || word == last) atomicOr(&segments[word], bits); /* rows of other warps may be in it */
    else segments[word] = bits;
  }

  bool null = there && row < n_rows && row_is_null(rows, row);
  u64 end = null ? row_offset(rows, row + 1) : at;
  for (u32 left = __ballot_sync(SA_FULL_WARP, at < end); left; left &= left - 1) {
    u32 from = (u32)__ffs((int)left) - 1;
    fix_piece(pieces, __shfl_sync(SA_FULL_WARP, at, from), __shfl_sync(SA_FULL_WARP, end, from), SA_NO_ID);
  }
}

extern "C" __global__ void __launch_bounds__(1024)
    placed_pieces(const u32 *at, u32 n, u64 *segments, u64 *fixed, u64 *counters) {
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (i == 0) counters[SA_COUNTER_FIXED] = n;
  set_bit(segments, at[i]);
  set_bit(segments, at[i] + 1);
  set_bit(fixed, at[i]);
}
