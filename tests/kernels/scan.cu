/* Exclusive sums of n numbers in one pass. One thread a number, one block a tile (by ticket). */
#include "scan.cuh"

extern "C" __global__ void exclusive_sums(const u32 *in, u64 *out, u64 n, u64 *states, u32 *ticket) {
  __shared__ u32 warp_sums[33];
  __shared__ u32 tile_shared;
  __shared__ u64 before_shared;
  if (threadIdx.x == 0) tile_shared = atomicAdd(ticket, 1u);
  __syncthreads();
  u32 tile = tile_shared, total;
  u64 i = (u64)tile * blockDim.x + threadIdx.x;
  u32 value = i < n ? in[i] : 0;
  u32 inside = block_exclusive_sum(value, warp_sums, &total);
  if (threadIdx.x < 32) {
    u64 before = tile_exclusive_sum(states, tile, total);
    if (threadIdx.x == 0) before_shared = before;
  }
  __syncthreads();
  if (i < n) out[i] = before_shared + inside;
}

/* Each tile leaves a note before it looks back, and reads that of a tile long before it. notes: u32[tiles], never
 * written; out: u32[tiles]. */
extern "C" __global__ void notes_of_others(u64 *states, u32 *ticket, u32 *notes, u32 *out) {
  __shared__ u32 tile_shared;
  if (threadIdx.x == 0) tile_shared = atomicAdd(ticket, 1u);
  __syncthreads();
  u32 tile = tile_shared;
  if (threadIdx.x == 40) notes[tile] = 1000 + tile;
  __syncthreads();
  if (threadIdx.x < 32) tile_exclusive_sum(states, tile, 1);
  __syncthreads();
  if (threadIdx.x == 50) out[tile] = notes[tile * 5 / 7];
}

/* A sum by fences and an atomic: the last block to finish adds up those of all. */
extern "C" __global__ void grid_sum(const u32 *in, u64 n, u64 *partial, u32 *done, u64 *result) {
  __shared__ u32 warp_sums[33];
  __shared__ u32 is_last;
  u32 total;
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  block_exclusive_sum(i < n ? in[i] : 0, warp_sums, &total);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = total;
    __threadfence();
    is_last = atomicAdd(done, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!is_last || threadIdx.x >= 32) return;
  u64 sum = 0;
  for (u32 k = threadIdx.x; k < gridDim.x; k += 32) sum += partial[k];
  sum = warp_sum(sum);
  if (threadIdx.x == 0) *result = sum;
}
