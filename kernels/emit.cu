/* Stage emit: the ids of all pieces in order, and where each row's start.
 *
 * emit_u16, emit_u32: a tile of TILE pieces a block at a time, handed out by a ticket, any grid; blocks of 32 to 256
 *   threads, whole warps; a thread takes 4 pieces side by side at a time. Look-back makes the sum of the tiles before.
 *   reads   8 bytes of value a piece; spilled ids
 *   writes  2 or 4 bytes an id, side by side through shared memory; 8 bytes for each 32 pieces: the ids before them
 * row_ids: a thread a row end, n_rows + 1 in all, any grid.
 *   reads   row offsets; a word of starts and ranks; values of 31 pieces at most
 *   writes  8 bytes a row
 * counters: SA_COUNTER_PIECES is read, SA_COUNTER_IDS is set. states: a word a tile, PIECES / TILE + 1, zero before.
 * group_ids: PIECES / 32 + 1 words. */
#include "counters.h"
#include "pieces.cuh"
#include "rows.cuh"
#include "scan.cuh"
#include "shared/value.h"

#define TILE 1024
#define STAGED (4 * TILE) /* ids of a tile that go through shared memory; more are written one by one */

/* Ids side by side in memory, from those staged. */
static __device__ __forceinline__ void write_ids(u32 *out, const u32 *staged, u32 n) {
  for (u32 i = threadIdx.x; i < n; i += blockDim.x) out[i] = staged[i];
}
static __device__ __forceinline__ void write_ids(u16 *out, const u32 *staged, u32 n) {
  u32 odd = n ? (u32)((u64)out >> 1) & 1 : 0; /* the first alone, so that two at a time are one word */
  u32 *words = (u32 *)(out + odd);
  u32 pairs = (n - odd) / 2;
  for (u32 i = threadIdx.x; i < pairs; i += blockDim.x)
    words[i] = staged[odd + 2 * i] | staged[odd + 2 * i + 1] << 16;
  if (threadIdx.x == 0 && odd) out[0] = (u16)staged[0];
  if (threadIdx.x == 0 && odd + 2 * pairs < n) out[n - 1] = (u16)staged[n - 1];
}

template <class T>
static __device__ __forceinline__ void emit(const u64 *values, const u32 *spill, T *ids, u64 *group_ids, u64 *states,
                                            u64 *counters) {
  __shared__ u32 staged[STAGED];
  __shared__ u32 spilled[TILE]; /* pieces of the tile whose ids are spilled */
  __shared__ u32 offsets[TILE]; /* where these go in the tile */
  __shared__ u32 sums[33];
  __shared__ u32 n_spilled;
  __shared__ u64 ids_before; /* of the tiles before */
  __shared__ u32 next_tile;
  u64 n = counters[SA_COUNTER_PIECES], tiles = n / TILE + 1;
  for (;;) {
    __syncthreads(); /* all of the last tile is read */
    if (threadIdx.x == 0) next_tile = (u32)atomicAdd(&counters[SA_COUNTER_TICKET_EMIT], (u64)1), n_spilled = 0;
    __syncthreads();
    u64 tile = next_tile;
    if (tile >= tiles) break;
    u64 base = tile * TILE;

    u64 total = 0;
    for (u32 first = 4 * threadIdx.x; first < TILE; first += 4 * blockDim.x)
      for (u32 i = first; i < first + 4 && base + i < n; i++) total += sa_value_ids(values[base + i]);
    /* A thread's ids are fewer than 2^32, and so are a batch's. */
    u32 all;
    block_exclusive_sum((u32)total, sums, &all);
    if (threadIdx.x < 32) {
      u64 before = tile_exclusive_sum(states, (u32)tile, all);
      if (threadIdx.x == 0) {
        ids_before = before;
        if (tile == tiles - 1) counters[SA_COUNTER_IDS] = before + all;
      }
    }
    __syncthreads();
    u64 before = ids_before;
    bool stages = all <= STAGED;

    u32 done = 0; /* ids of the tile's pieces before this step */
    for (u32 step = 0; step < TILE; step += 4 * blockDim.x) {
      u32 first = step + 4 * threadIdx.x, mine = 0, sum;
      u64 value[4];
      for (u32 i = 0; i < 4; i++) {
        value[i] = first < TILE && base + first + i < n ? values[base + first + i] : SA_NOTHING;
        mine += (u32)sa_value_ids(value[i]);
      }
      u32 at = done + block_exclusive_sum(mine, sums, &sum);
      if (first < TILE && (first & 31) == 0 && base + first <= n) group_ids[(base + first) / 32] = before + at;
      for (u32 i = 0; i < 4; i++) {
        u32 count = sa_value_count(value[i]);
        for (u32 j = 0; j < count; j++) {
          if (stages) staged[at + j] = sa_value_id(value[i], j);
          else ids[before + at + j] = (T)sa_value_id(value[i], j);
        }
        if (count == 0 && sa_value_ids(value[i])) {
          u32 k = atomicAdd(&n_spilled, 1u);
          spilled[k] = first + i, offsets[k] = at;
        }
        at += (u32)sa_value_ids(value[i]);
      }
      done += sum;
      __syncthreads();
    }

    u32 lane = lane_id();
    for (u32 k = threadIdx.x / 32; k < n_spilled; k += blockDim.x / 32) { /* a warp each */
      u64 value = values[base + spilled[k]], count = sa_value_ids(value);
      const u32 *from = spill + (value & 0xFFFFFFFF);
      u32 at = offsets[k];
      for (u64 i = lane; i < count; i += 32) {
        if (stages) staged[at + i] = from[i];
        else ids[before + at + i] = (T)from[i];
      }
    }
    __syncthreads();
    if (stages) write_ids(ids + before, staged, all);
  }
}

extern "C" __global__ void __launch_bounds__(256)
    emit_u16(const u64 *values, const u32 *spill, u16 *ids, u64 *group_ids, u64 *states, u64 *counters) {
  emit(values, spill, ids, group_ids, states, counters);
}

extern "C" __global__ void __launch_bounds__(256)
    emit_u32(const u64 *values, const u32 *spill, u32 *ids, u64 *group_ids, u64 *states, u64 *counters) {
  emit(values, spill, ids, group_ids, states, counters);
}

extern "C" __global__ void __launch_bounds__(256)
    row_ids(const u8 *row_offsets, u32 offset_bytes, u64 n_rows, const u8 *validity, u64 validity_offset,
            const u64 *starts, const u32 *ranks, const u64 *values, const u64 *group_ids, i64 *id_offsets) {
  batch_rows rows = {row_offsets, offset_bytes, n_rows, validity, validity_offset};
  for (u64 row = (u64)blockIdx.x * blockDim.x + threadIdx.x; row <= n_rows; row += (u64)gridDim.x * blockDim.x) {
    u64 piece = piece_rank(starts, ranks, row_offset(rows, row));
    u64 sum = group_ids[piece / 32];
    for (u64 i = piece / 32 * 32; i < piece; i++) sum += sa_value_ids(values[i]);
    id_offsets[row] = (i64)sum;
  }
}
