/* Sums over a warp, a block and a grid.
 *
 * Every function here is called by all threads of a warp or block together.
 */
#ifndef SAPHIRA_SCAN_CUH
#define SAPHIRA_SCAN_CUH

#include "shared/types.h"
#include "sync.cuh"

#define SA_FULL_WARP 0xFFFFFFFFu

/* Sum of the lanes up to and with this one. */
static __device__ __forceinline__ u32 warp_inclusive_sum(u32 value) {
  u32 lane = lane_id();
  for (u32 step = 1; step < 32; step *= 2) {
    u32 below = __shfl_up_sync(SA_FULL_WARP, value, step);
    if (lane >= step) value += below;
  }
  return value;
}

static __device__ __forceinline__ u64 warp_sum(u64 value) {
  for (int step = 16; step; step /= 2) value += __shfl_xor_sync(SA_FULL_WARP, value, step);
  return value;
}

/* Sum of the warps before this one, given a warp's own in lane 31; *total: of all. warp_sums: u32[33] in shared
 * memory, free for other use after the next barrier. blockDim.x is a multiple of 32, the block has one dimension. */
static __device__ __forceinline__ u32 warps_before(u32 sum_of_warp, u32 *warp_sums, u32 *total) {
  u32 lane = lane_id(), warp = threadIdx.x / 32, warps = blockDim.x / 32;
  if (lane == 31) warp_sums[warp] = sum_of_warp;
  __syncthreads();
  if (warp == 0) {
    u32 sum = lane < warps ? warp_sums[lane] : 0, before = warp_inclusive_sum(sum) - sum;
    if (lane < warps) warp_sums[lane] = before;
    if (lane == 31) warp_sums[32] = before + sum;
  }
  __syncthreads();
  *total = warp_sums[32];
  return warp_sums[warp];
}

/* Sum of the threads before this one; else as warps_before. */
static __device__ __forceinline__ u32 block_exclusive_sum(u32 value, u32 *warp_sums, u32 *total) {
  u32 inclusive = warp_inclusive_sum(value);
  return warps_before(inclusive, warp_sums, total) + inclusive - value;
}

/* ---- decoupled look-back: sums over tiles in one pass ----
 *
 * A tile's state, one word: nothing yet, its own sum, or the sum of it and all before it.
 *
 *   tile     0        1        2        3        4
 *   state    P 7      P 19     A 5      A 8      -        tile 4 adds 8, 5, and 19, and stops there
 *
 * Tiles are handed out by a ticket (atomicAdd), so that a tile's predecessors have started. */
#define SA_TILE_SUM ((u64)1 << 62)
#define SA_TILE_PREFIX ((u64)2 << 62)
#define SA_TILE_VALUE (((u64)1 << 62) - 1)

/* Sum of the tiles before this one; called by one whole warp. states: u64 a tile, zero at first. What lane 0 of an
 * earlier tile's warp had written (or knew of, after a barrier) before its call can be read after this one. */
static __device__ __forceinline__ u64 tile_exclusive_sum(u64 *states, u32 tile, u64 sum) {
  u32 lane = lane_id();
  u64 before = 0;
  if (tile > 0) {
    if (lane == 0) st_release(&states[tile], SA_TILE_SUM | sum);
    for (u32 end = tile;;) {
      /* Lane i looks at tile end - 1 - i; before the first tile there is a sum of nothing. */
      bool there = lane < end;
      u64 state = there ? ld_acquire(&states[end - 1 - lane]) : SA_TILE_PREFIX;
      while (__any_sync(SA_FULL_WARP, state >> 62 == 0))
        if (state >> 62 == 0) state = ld_acquire(&states[end - 1 - lane]);
      u32 complete = __ballot_sync(SA_FULL_WARP, state >> 62 == 2);
      u32 last = complete ? (u32)__ffs((int)complete) - 1 : 31;
      before += warp_sum(lane <= last ? state & SA_TILE_VALUE : 0);
      if (complete) break;
      end -= 32;
    }
  }
  __syncwarp(); /* the release tells of what any lane has acquired */
  if (lane == 0) st_release(&states[tile], SA_TILE_PREFIX | (before + sum));
  return before;
}

#endif
