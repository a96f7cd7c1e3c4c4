/* A hash table of 64-bit keys with counts, shared by all blocks. key 0: empty. mask: slots - 1, at most half of
 * them get used. */
#include "shared/hash.h"
#include "sync.cuh"

extern "C" __global__ void insert(const u64 *keys, u32 n, u64 *slots, u32 *counts, u32 mask) {
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  u64 key = keys[i];
  u32 slot = (u32)sa_hash8(key) & mask;
  while (ld_relaxed(&slots[slot]) != key) {
    u64 was = atomicCAS(&slots[slot], (u64)0, key);
    if (was == 0 || was == key) break;
    slot = (slot + 1) & mask;
  }
  atomicAdd(&counts[slot], 1u);
}

/* The same with one insert for all lanes that hold the same key. */
extern "C" __global__ void insert_matched(const u64 *keys, u32 n, u64 *slots, u32 *counts, u32 mask) {
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  u32 taking_part = __ballot_sync(0xFFFFFFFFu, i < n);
  if (i >= n) return;
  u64 key = keys[i];
  u32 same = __match_any_sync(taking_part, key);
  if (same & lanemask_lt()) return;
  u32 slot = (u32)sa_hash8(key) & mask;
  for (;;) {
    u64 was = atomicCAS(&slots[slot], (u64)0, key);
    if (was == 0 || was == key) break;
    slot = (slot + 1) & mask;
  }
  atomicAdd(&counts[slot], (u32)__popc(same));
}
