/* Stage probe: the value of every piece that the table has, and a list of the others.
 *
 * fixed_values: a thread a fixed piece, any grid.
 *   reads   the list; a word of starts and ranks each
 *   writes  values of these pieces
 * probe_pieces: a thread a piece, any grid, blocks of whole warps.
 *   reads   4 bytes of piece starts a piece; its text, 16 to 24 bytes in words, mostly its neighbours' too; a sector
 *           of the table (32 bytes), more only where keys collide; the piece's bit in fixed
 *   writes  8 bytes of value a piece; 4 bytes a miss
 * text: N bytes and 64 more, at a multiple of 8. piece_start: pieces + 1. values, missed: pieces at most.
 * counters: SA_COUNTER_PIECES is read; misses are added up. */
#include "pieces.cuh"
#include "scan.cuh"
#include "table.cuh"

#define THREADS 256 /* of a block, at most */
#define STAGED 64   /* words of text in a warp's part of shared memory */

extern "C" __global__ void __launch_bounds__(256)
    fixed_values(const u64 *starts, const u32 *ranks, const u32 *fixed_at, const u32 *fixed_id, u64 *values,
                 const u64 *counters) {
  u64 n = counters[SA_COUNTER_FIXED];
  for (u64 k = (u64)blockIdx.x * blockDim.x + threadIdx.x; k < n; k += (u64)gridDim.x * blockDim.x)
    values[piece_rank(starts, ranks, fixed_at[k])] =
        fixed_id[k] == SA_NO_ID ? SA_NOTHING : sa_value_of(fixed_id[k], 0, 0, 1);
}

/* The text [at, end) in whole words and one more, as many as there is room for; called by a whole warp. */
static __device__ __forceinline__ void stage_text(const u8 *text, u32 at, u32 end, u64 *staged) {
  const u64 *words = (const u64 *)(text + (at & ~7u));
  u32 n = min((end - 1) / 8 - at / 8 + 2, STAGED);
  __syncwarp(); /* what was staged before is read */
  for (u32 i = lane_id(); i < n; i += 32) staged[i] = words[i];
  __syncwarp();
}

extern "C" __global__ void __launch_bounds__(THREADS)
    probe_pieces(const u8 *text, const u32 *piece_start, const u64 *fixed, const u64 *slots, u32 bits, const u8 *arena,
                 u32 longest, u64 *values, u32 *missed, u64 *counters) {
  __shared__ u64 staged[THREADS / 32 * STAGED];
  u64 n = counters[SA_COUNTER_PIECES];
  u32 lane = lane_id();
  u64 *mine = staged + threadIdx.x / 32 * STAGED;
  for (u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x - lane; first < n; first += (u64)gridDim.x * blockDim.x) {
    u64 i = first + lane;
    bool miss = false;
    u32 at = piece_start[min(i, n)], end = __shfl_down_sync(SA_FULL_WARP, at, 1);
    if (lane == 31) end = piece_start[min(i + 1, n)];
    u32 begin = __shfl_sync(SA_FULL_WARP, at, 0);
    stage_text(text, begin, __shfl_sync(SA_FULL_WARP, end, 31), mine);
    if (i < n && !(fixed && fixed[at >> 6] >> (at & 63) & 1)) {
      u32 length = end - at, from = at - (begin & ~7u);
      bool is_staged = (from + length - 1) / 8 + 1 < STAGED; /* with the word behind it, which key_of may load */
      u64 value = 0;
      if (length <= longest)
        value = table_find(slots, bits, arena, is_staged ? (const u8 *)mine : text, is_staged ? from : at, length);
      values[i] = value;
      miss = value == 0;
    }
    u32 misses = __ballot_sync(SA_FULL_WARP, miss);
    if (misses == 0) continue;
    u64 room = 0;
    if (lane == 0) room = atomicAdd(&counters[SA_COUNTER_MISSES], (u64)__popc(misses));
    room = __shfl_sync(SA_FULL_WARP, room, 0);
    if (miss) missed[room + __popc(misses & lanemask_lt())] = (u32)i;
  }
}
