/* Stage pieces: positions of the piece starts, in order.
 *
 * A thread a word of 64 bits; 32 to 256 threads a block, whole warps. Tiles are handed out by ticket and add up by
 * look-back, so one launch counts, scans and writes.
 *   reads   starts: 1/8 byte a byte of text
 *   writes  piece_start: 4 bytes a piece, and n behind the last; ranks: 4 bytes a word, 1/16 byte a byte, how many
 *           pieces start before it; states: 8 bytes a tile
 * Positions go through shared memory, SA_PIECES_STAGED at a time, so that writes are side by side: text has about 5 of
 * them a word, and all of a tile's come at once; denser tiles take more turns. */
#include "counters.h"
#include "scan.cuh"

#define SA_PIECES_STAGED 4096

extern "C" __global__ void __launch_bounds__(256)
    pieces(const u64 *starts, u64 n, u64 tiles, u64 *states, u32 *piece_start, u32 *ranks, u64 *counters) {
  __shared__ u32 staged[SA_PIECES_STAGED];
  __shared__ u32 warp_sums[33];
  __shared__ u64 tile_shared;
  __shared__ u64 before_shared;
  u32 j = threadIdx.x, total;
  if (j == 0) tile_shared = atomicAdd(&counters[SA_COUNTER_TICKET_PIECES], (u64)1);
  __syncthreads();
  u64 tile = tile_shared, word = tile * blockDim.x + j, words = n / 64 + 1;
  u64 bits = word < words ? starts[word] : 0;
  u32 mine = block_exclusive_sum((u32)__popcll(bits), warp_sums, &total);
  if (j < 32) {
    u64 sum = tile_exclusive_sum(states, (u32)tile, total);
    if (j == 0) before_shared = sum;
  }
  __syncthreads();
  u64 before = before_shared;
  if (word < words) ranks[word] = (u32)before + mine;
  for (u32 done = 0; done < total; done += SA_PIECES_STAGED) {
    for (; bits && mine < done + SA_PIECES_STAGED; bits &= bits - 1)
      staged[mine++ - done] = (u32)(64 * word) + (u32)__ffsll((long long)bits) - 1;
    __syncthreads();
    for (u32 i = j; i < SA_PIECES_STAGED && done + i < total; i += blockDim.x) piece_start[before + done + i] = staged[i];
    __syncthreads();
  }
  if (tile + 1 == tiles && j == 0) {
    piece_start[before + total] = (u32)n;
    counters[SA_COUNTER_PIECES] = before + total;
  }
}
