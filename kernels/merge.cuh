/* A model's merges on the device, and exact merging of one window of bytes by a block of threads.
 *
 * Symbols are kept side by side; a round merges all leftmost pairs of the lowest rank (of a monotone model; else the
 * leftmost one alone) and closes the gaps:
 *
 *   ids      a  b  a  b  b      rank   3  7  3  9  -        lowest 3, made c
 *   taken    1  0  1  0  0      removed: whoever follows one taken
 *   next     c  c  b                   5  4  -               ranks around a merged symbol are looked up again
 */
#ifndef SAPHIRA_MERGE_CUH
#define SAPHIRA_MERGE_CUH

#include "scan.cuh"
#include "shared/pairs.h"
#include "table.cuh"

#define MODEL_PARAMS                                                                                            \
  const u32 *byte_ids, const u32 *byte_ids_end, const u8 *left_out, const u32 *byte_pair_rank, const u64 *pairs, \
      u32 pair_shift, const u16 *displace, u32 displace_shift, const u32 *result, const u16 *length, u32 longest, \
      u32 monotone, u32 has_ends, u32 leaves_out
#define MODEL_ARGS                                                                                              \
  {byte_ids, byte_ids_end, left_out, byte_pair_rank, pairs, pair_shift, displace, displace_shift, result, length, \
   longest, monotone, has_ends, leaves_out}
struct merge_model { /* the fields of sa_bpe_tables */
  const u32 *byte_ids, *byte_ids_end;
  const u8 *left_out;
  const u32 *byte_pair_rank;
  const u64 *pairs;
  u32 pair_shift;
  const u16 *displace;
  u32 displace_shift;
  const u32 *result;
  const u16 *length;
  u32 longest, monotone, has_ends, leaves_out;
};

static __device__ __forceinline__ u32 pair_rank(const merge_model &m, u32 left, u32 right) {
  return sa_pair_find(m.pairs, m.pair_shift, m.displace, m.displace_shift, left, right);
}

/* A window's memory, shared by the block: room for `capacity` symbols, twice, and a bit for each. */
struct window {
  u32 *ids, *rank, *next_ids, *next_rank;
  u32 *taken, *before; /* words of pairs that merge, capacity / 32 + 1, and how many there are before each, and in all */
  u64 *best;           /* one a warp */
};
#define WINDOW_BYTES(capacity) (16 * (capacity) + 8 * ((capacity) / 32 + 2) + 8 * 33)

static __device__ __forceinline__ window window_in(u64 *shared, u32 capacity) {
  window w;
  w.best = shared;
  w.ids = (u32 *)(shared + 33);
  w.rank = w.ids + capacity;
  w.next_ids = w.rank + capacity;
  w.next_rank = w.next_ids + capacity;
  w.taken = w.next_rank + capacity;
  w.before = w.taken + capacity / 32 + 1;
  return w;
}

/* The lowest of the block's keys, rank << 32 | position; every thread gets it. best: a word a warp. */
static __device__ __forceinline__ u64 block_lowest(u64 key, u64 *best) {
  u32 warps = blockDim.x / 32, lane = lane_id();
  for (int step = 16; step; step /= 2) key = min(key, __shfl_xor_sync(SA_FULL_WARP, key, step));
  if (warps == 1) { /* whoever reads what the lanes wrote before waits for them */
    __syncwarp();
    return key;
  }
  if (lane == 0) best[threadIdx.x / 32] = key;
  __syncthreads();
  key = lane < warps ? best[lane] : ~(u64)0;
  for (int step = 16; step; step /= 2) key = min(key, __shfl_xor_sync(SA_FULL_WARP, key, step));
  return key;
}

/* before[i] = bits set in words 0 .. i - 1, before[words] = in all; by one warp, all of its lanes. */
static __device__ __forceinline__ void count_before(const u32 *taken, u32 *before, u32 words) {
  u32 sum = 0, lane = lane_id();
  for (u32 first = 0; first < words; first += 32) {
    u32 i = first + lane, bits = i < words ? (u32)__popc(taken[i]) : 0;
    u32 inclusive = warp_inclusive_sum(bits);
    if (i < words) before[i] = sum + inclusive - bits;
    sum += __shfl_sync(SA_FULL_WARP, inclusive, 31);
  }
  if (lane == 0) before[words] = sum;
}

static __device__ __forceinline__ bool bit_at(const u32 *bits, u32 i) { return bits[i / 32] >> (i % 32) & 1; }
static __device__ __forceinline__ u32 bits_before(const u32 *bits, const u32 *before, u32 i) {
  return before[i / 32] + (u32)__popc(bits[i / 32] & ((1u << (i % 32)) - 1));
}

/* Merges n >= 1 bytes, at most the window's capacity; ends: the last is a piece's last. Called by the whole block.
 * Returns the number of symbols, which are then in w->ids for all to read. Adds to *steps in thread 0. */
static __device__ __forceinline__ u32 merge_window(const merge_model &m, window *w, const u8 *bytes, u32 n, bool ends,
                                                   u64 *steps) {
  u32 thread = threadIdx.x, threads = blockDim.x;
  ends = ends && m.has_ends;
  __syncthreads(); /* what the window held has been read */
  for (u32 i = thread; i < n; i += threads) {
    u32 id = ends && i == n - 1 ? m.byte_ids_end[bytes[i]] : m.byte_ids[bytes[i]], rank = SA_NO_RANK;
    if (i + 1 < n)
      rank = ends && i + 2 == n ? pair_rank(m, id, m.byte_ids_end[bytes[i + 1]])
                                : m.byte_pair_rank[(u32)bytes[i] << 8 | bytes[i + 1]];
    w->ids[i] = id, w->rank[i] = rank;
  }
  __syncthreads();
  for (;;) {
    u32 words = n / 32 + 1;
    for (u32 i = thread; i < words; i += threads) w->taken[i] = 0;
    u64 key = ~(u64)0;
    for (u32 i = thread; i < n; i += threads) key = min(key, (u64)w->rank[i] << 32 | i);
    key = block_lowest(key, w->best);
    u32 lowest = (u32)(key >> 32);
    if (lowest == SA_NO_RANK) break;
    if (m.monotone) { /* of pairs that overlap, x x x x, the 1st, 3rd, …: by the first one's thread */
      for (u32 i = thread; i < n; i += threads) {
        if (w->rank[i] != lowest || i > 0 && w->rank[i - 1] == lowest) continue;
        for (u32 q = i;; q += 2) {
          atomicOr(&w->taken[q / 32], 1u << (q % 32));
          if (w->rank[q + 1] != lowest || w->rank[q + 2] != lowest) break;
        }
      }
    } else if (thread == 0) {
      w->taken[(u32)key / 32] |= 1u << ((u32)key % 32);
    }
    __syncthreads();
    if (thread < 32) count_before(w->taken, w->before, words);
    __syncthreads();
    u32 made = m.result[lowest];
    for (u32 i = thread; i < n; i += threads) {
      if (i > 0 && bit_at(w->taken, i - 1)) continue;
      bool merged = bit_at(w->taken, i);
      u32 next = i + 1 + merged, id = merged ? made : w->ids[i], rank = SA_NO_RANK;
      if (next < n) {
        bool next_merged = bit_at(w->taken, next);
        rank = merged || next_merged ? pair_rank(m, id, next_merged ? made : w->ids[next]) : w->rank[i];
      }
      u32 to = i - bits_before(w->taken, w->before, i);
      w->next_ids[to] = id, w->next_rank[to] = rank;
    }
    n -= w->before[words];
    if (thread == 0) *steps += w->before[words];
    u32 *ids = w->ids, *rank = w->rank;
    w->ids = w->next_ids, w->rank = w->next_rank, w->next_ids = ids, w->next_rank = rank;
    __syncthreads();
  }
  return n;
}

#endif
