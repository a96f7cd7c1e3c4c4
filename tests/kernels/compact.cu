/* Positions of the bytes that begin a word (a letter after something else), in order.
 *
 * A thread takes 16 bytes, one vector load. A tile's positions are gathered in shared memory and written side by
 * side. text: n bytes and 16 more, n a multiple of 16 or padded; words: as many as there are, bounded by n. */
#include "scan.cuh"

static __device__ __forceinline__ bool is_letter(u8 c) { return (u8)((c | 0x20) - 'a') < 26; }

extern "C" __global__ void word_starts(const u8 *text, u32 n, u32 *words, u32 *count, u64 *states, u32 *ticket) {
  extern __shared__ u32 found[];
  __shared__ u32 warp_sums[33];
  __shared__ u32 tile_shared;
  __shared__ u64 before_shared;
  if (threadIdx.x == 0) tile_shared = atomicAdd(ticket, 1u);
  __syncthreads();
  u32 tile = tile_shared, total;
  u64 at = ((u64)tile * blockDim.x + threadIdx.x) * 16;
  u32 starts = 0;
  if (at < n) {
    uint4 block = *(const uint4 *)(text + at);
    u32 word[4] = {block.x, block.y, block.z, block.w};
    bool before = at > 0 && is_letter(text[at - 1]);
    for (u32 i = 0; i < 16; i++) {
      bool letter = at + i < n && is_letter((u8)(word[i / 4] >> (8 * (i % 4))));
      starts |= (u32)(letter && !before) << i;
      before = letter;
    }
  }
  u32 slot = block_exclusive_sum((u32)__popc(starts), warp_sums, &total);
  if (threadIdx.x < 32) {
    u64 before = tile_exclusive_sum(states, tile, total);
    if (threadIdx.x == 0) before_shared = before;
  }
  for (; starts; starts &= starts - 1) found[slot++] = (u32)at + (u32)__ffs((int)starts) - 1;
  __syncthreads();
  for (u32 i = threadIdx.x; i < total; i += blockDim.x) words[before_shared + i] = found[i];
  if (threadIdx.x == 0 && tile == gridDim.x - 1) *count = (u32)(before_shared + total);
}
