/* Stage emit: the ids of all pieces in order, and where each row's start.
 *
 * emit_u16, emit_u32: a tile of 4 pieces a thread at a time, handed out by a ticket, any grid; blocks of 32 to 256
 *   threads, whole warps. A warp takes 128 pieces side by side, a thread two and two of them, which stay in registers
 *   while warp, block and look-back add up their ids:
 *
 *     lane        0     1     2   …  31     0     1   …  31
 *     pieces      0 1   2 3   4 5    62 63  64 65 66 67  126 127
 *
 *   reads   8 bytes of value a piece, 16 at a time; spilled ids
 *   writes  2 or 4 bytes an id, side by side through shared memory, a window of it at a time; 8 bytes for each 32
 *           pieces: the ids before them
 * row_ids: a thread a row end, n_rows + 1 in all, any grid.
 *   reads   row offsets; a word of starts and ranks; values of 31 pieces at most
 *   writes  8 bytes a row
 * values: at a multiple of 16. counters: SA_COUNTER_PIECES is read, SA_COUNTER_IDS is set. states: a word a tile,
 * PIECES / (4 * threads) + 1, zero before. group_ids: PIECES / 32 + 1 words. */
#include "counters.h"
#include "pieces.cuh"
#include "rows.cuh"
#include "scan.cuh"
#include "shared/value.h"

#define THREADS 256 /* of a block, at most */
#define PIECES 4    /* of a thread */
#define WINDOW 2048 /* ids that go through shared memory at a time, an even number */

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

/* Values of pieces i and i + 1, i even; of those that there are not, no ids. */
static __device__ __forceinline__ void load_two(const u64 *values, u64 i, u64 n, u64 *two) {
  two[0] = two[1] = SA_NOTHING;
  if (i + 1 < n) {
    ulonglong2 both = *(const ulonglong2 *)(values + i);
    two[0] = both.x, two[1] = both.y;
  } else if (i < n) {
    two[0] = values[i];
  }
}

/* Ids of pieces that are spilled, as a tile lists them. */
struct spilled_pieces {
  u32 from[PIECES * THREADS], count[PIECES * THREADS]; /* in the spill list */
  u32 to[PIECES * THREADS];                            /* where the ids go in the tile */
  u32 n;
};

/* Those of the tile's ids [first, first + WINDOW) that are spilled. */
static __device__ __forceinline__ void stage_spilled(const spilled_pieces &pieces, const u32 *spill, u32 first,
                                                     u32 *staged) {
  u32 lane = lane_id();
  for (u32 k = threadIdx.x / 32; k < pieces.n; k += blockDim.x / 32) { /* a warp each */
    u32 to = pieces.to[k], count = pieces.count[k];
    u32 done = to < first ? first - to : 0, at = to < first ? 0 : to - first;
    if (done >= count || at >= WINDOW) continue;
    const u32 *from = spill + pieces.from[k] + done;
    for (u32 i = lane; i < min(count - done, WINDOW - at); i += 32) staged[at + i] = from[i];
  }
}

template <class T>
static __device__ __forceinline__ void emit(const u64 *values, const u32 *spill, T *ids, u64 *group_ids, u64 *states,
                                            u64 *counters) {
  __shared__ u32 staged[WINDOW];
  __shared__ spilled_pieces spilled;
  __shared__ u32 sums[33];
  __shared__ u64 ids_before; /* of the tiles before */
  __shared__ u32 next_tile;
  u32 lane = lane_id();
  u64 n = counters[SA_COUNTER_PIECES], tiles = n / (PIECES * blockDim.x) + 1;
  for (;;) {
    /* Of the last tile nothing is read any more but what is staged, and that is written three barriers from here. */
    if (threadIdx.x == 0) next_tile = (u32)atomicAdd(&counters[SA_COUNTER_TICKET_EMIT], (u64)1), spilled.n = 0;
    __syncthreads();
    u64 tile = next_tile;
    if (tile >= tiles) break;

    u64 piece = tile * PIECES * blockDim.x + PIECES * (threadIdx.x - lane) + 2 * lane;
    u64 value[PIECES];
    u32 at[2], all; /* at: of the ids of each two pieces in the tile. A batch's ids are fewer than 2^32 */
    load_two(values, piece, n, value);
    load_two(values, piece + 64, n, value + 2);
    u32 low = (u32)(sa_value_ids(value[0]) + sa_value_ids(value[1]));
    u32 high = (u32)(sa_value_ids(value[2]) + sa_value_ids(value[3]));
    u32 low_sum = warp_inclusive_sum(low), high_sum = warp_inclusive_sum(high);
    high_sum += __shfl_sync(SA_FULL_WARP, low_sum, 31);
    u32 before_warp = warps_before(high_sum, sums, &all);
    at[0] = before_warp + low_sum - low, at[1] = before_warp + high_sum - high;
    for (u32 i = 0; i < PIECES; i++) {
      u32 count = (u32)sa_value_ids(value[i]);
      if (count == 0 || sa_value_count(value[i])) continue;
      u32 k = atomicAdd(&spilled.n, 1u);
      spilled.from[k] = (u32)value[i], spilled.count[k] = count;
      spilled.to[k] = at[i / 2] + (i & 1 ? (u32)sa_value_ids(value[i - 1]) : 0);
    }
    if (threadIdx.x < 32) {
      u64 before = tile_exclusive_sum(states, (u32)tile, all);
      if (lane == 0) {
        ids_before = before;
        if (tile == tiles - 1) counters[SA_COUNTER_IDS] = before + all;
      }
    }
    __syncthreads();
    u64 before = ids_before;
    for (u32 i = 0; i < 2; i++)
      if (lane % 16 == 0 && piece + 64 * i <= n) group_ids[(piece + 64 * i) / 32] = before + at[i];

    for (u32 first = 0;; first += WINDOW) {
      for (u32 i = 0; i < PIECES; i++) {
        u32 to = at[i / 2] - first;
        if (i & 1) to += (u32)sa_value_ids(value[i - 1]);
        for (u32 j = 0; j < sa_value_count(value[i]); j++, to++)
          if (to < WINDOW) staged[to] = sa_value_id(value[i], j);
      }
      if (spilled.n) stage_spilled(spilled, spill, first, staged);
      __syncthreads();
      write_ids(ids + before + first, staged, min(all - first, WINDOW));
      if (all - first <= WINDOW) break;
      __syncthreads(); /* the window is written */
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    emit_u16(const u64 *values, const u32 *spill, u16 *ids, u64 *group_ids, u64 *states, u64 *counters) {
  emit(values, spill, ids, group_ids, states, counters);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    emit_u32(const u64 *values, const u32 *spill, u32 *ids, u64 *group_ids, u64 *states, u64 *counters) {
  emit(values, spill, ids, group_ids, states, counters);
}

extern "C" __global__ void __launch_bounds__(256)
    row_ids(const u8 *row_offsets, u32 offset_bytes, u64 n_rows, const u8 *validity, u64 validity_offset,
            const u64 *starts, const u32 *ranks, const u64 *values, const u64 *group_ids, i64 *id_offsets) {
  batch_rows rows = {row_offsets, offset_bytes, n_rows, validity, validity_offset};
  for (u64 row = (u64)blockIdx.x * blockDim.x + threadIdx.x; row <= n_rows; row += (u64)gridDim.x * blockDim.x) {
    u64 piece = piece_rank(starts, ranks, row_offset(rows, row));
    u64 sum = group_ids[piece / 32], two[2];
    for (u64 i = piece / 32 * 32; i < piece; i += 2) {
      load_two(values, i, piece, two);
      sum += sa_value_ids(two[0]) + sa_value_ids(two[1]);
    }
    id_offsets[row] = (i64)sum;
  }
}
