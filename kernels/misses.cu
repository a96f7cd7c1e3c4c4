/* Stage merge, before and after the merging: each different miss once, through the table.
 *
 * claim: a thread a miss, any grid. The first of equal pieces in the batch claims a slot for all of them.
 *   reads   piece starts, the piece's text, states of slots (8 bytes, a sector each); the text of a slot's claimer
 *   writes  slot_of: 4 bytes a miss; states
 * deal: a thread a miss, blocks of whole warps, any grid. Who is to be merged, by length class; others wait.
 *   writes  4 bytes a different miss, into one of three lists
 * resolve: a thread a miss, any grid.
 *   reads   its slot's value; writes 8 bytes, the piece's value
 * seed: a thread a token, any grid; after claim with tokens for pieces. Fills the slots of a new table.
 * counters: SA_COUNTER_MISSES is how many misses there are. A miss without a slot (too long, or the table is full) is
 * merged on its own, whatever its equals do. */
#include "scan.cuh"
#include "table.cuh"

static __device__ __forceinline__ u32 claim_slot(u64 *slots, u32 bits, u64 limit, u64 *table_counters, const u8 *text,
                                                 const u32 *piece_start, u32 piece, u64 at, u32 n) {
  piece_key key = key_of(text, at, n);
  for (u32 step = 0; step < SA_TABLE_STEPS; step++) {
    u32 slot = slot_at(key.hash, step, bits);
    u64 *state = &slots[SA_SLOT_WORDS * (u64)slot + SA_SLOT_STATE];
    u64 was = ld_relaxed(state);
    if (was == 0) {
      if (ld_relaxed(&table_counters[SA_TABLE_USED]) >= limit) return SA_NO_SLOT;
      was = atomicCAS(state, (u64)0, (u64)piece + 1);
      if (was == 0) {
        atomicAdd(&table_counters[SA_TABLE_USED], (u64)1);
        return slot;
      }
    }
    if (was & SA_SLOT_READY) continue; /* another piece: the probe would have found this one */
    u32 other = piece_start[was - 1];
    if (piece_start[was] - other != n || !same_bytes(text, at, text, other, n)) continue;
    if (was > (u64)piece + 1) atomicMin(state, (u64)piece + 1);
    return slot;
  }
  return SA_NO_SLOT;
}

extern "C" __global__ void __launch_bounds__(256)
    claim(const u8 *text, const u32 *piece_start, const u32 *missed, u64 *slots, u32 bits, u64 limit, u32 longest,
          u32 *slot_of, u64 *table_counters, const u64 *counters) {
  u64 n = counters[SA_COUNTER_MISSES];
  for (u64 k = (u64)blockIdx.x * blockDim.x + threadIdx.x; k < n; k += (u64)gridDim.x * blockDim.x) {
    u32 piece = missed[k], at = piece_start[piece], length = piece_start[piece + 1] - at;
    slot_of[k] = length <= longest
                     ? claim_slot(slots, bits, limit, table_counters, text, piece_start, piece, at, length)
                     : SA_NO_SLOT;
  }
}

static __device__ __forceinline__ bool is_first(const u64 *slots, u32 slot, u32 piece) {
  return slot == SA_NO_SLOT || ld_relaxed(&slots[SA_SLOT_WORDS * (u64)slot + SA_SLOT_STATE]) == (u64)piece + 1;
}

extern "C" __global__ void __launch_bounds__(256)
    deal(const u32 *piece_start, const u32 *missed, const u32 *slot_of, const u64 *slots, u32 shortest_middle,
         u32 shortest_long, u32 *work_short, u32 *work_middle, u32 *work_long, u64 *counters) {
  u64 n = counters[SA_COUNTER_MISSES];
  u32 lane = lane_id();
  for (u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x - lane; first < n; first += (u64)gridDim.x * blockDim.x) {
    u64 k = first + lane;
    u32 length = 0; /* to be merged; 0: not */
    if (k < n) {
      u32 piece = missed[k];
      if (is_first(slots, slot_of[k], piece)) length = piece_start[piece + 1] - piece_start[piece];
    }
    bool is_short = length > 0 && length < shortest_middle;
    u32 shorts = __ballot_sync(SA_FULL_WARP, is_short);
    u64 room = 0;
    if (lane == 0 && shorts) room = atomicAdd(&counters[SA_COUNTER_WORK_SHORT], (u64)__popc(shorts));
    room = __shfl_sync(SA_FULL_WARP, room, 0);
    if (is_short) work_short[room + __popc(shorts & lanemask_lt())] = (u32)k;
    else if (length >= shortest_long) work_long[atomicAdd(&counters[SA_COUNTER_WORK_LONG], (u64)1)] = (u32)k;
    else if (length > 0) work_middle[atomicAdd(&counters[SA_COUNTER_WORK_MIDDLE], (u64)1)] = (u32)k;
  }
}

extern "C" __global__ void __launch_bounds__(256)
    resolve(const u32 *missed, const u32 *slot_of, const u64 *slots, u64 *values, const u64 *counters) {
  u64 n = counters[SA_COUNTER_MISSES];
  for (u64 k = (u64)blockIdx.x * blockDim.x + threadIdx.x; k < n; k += (u64)gridDim.x * blockDim.x)
    if (slot_of[k] != SA_NO_SLOT) values[missed[k]] = slots[SA_SLOT_WORDS * (u64)slot_of[k] + SA_SLOT_VALUE];
}

extern "C" __global__ void __launch_bounds__(256)
    seed(const u8 *text, const u32 *piece_start, const u32 *missed, const u32 *slot_of, TABLE_PARAMS,
         const u64 *counters) {
  piece_table table = TABLE_ARGS;
  u64 n = counters[SA_COUNTER_MISSES];
  for (u64 k = (u64)blockIdx.x * blockDim.x + threadIdx.x; k < n; k += (u64)gridDim.x * blockDim.x) {
    u32 id = missed[k], slot = slot_of[k], at = piece_start[id];
    if (slot == SA_NO_SLOT) atomicAdd(&table_counters[SA_TABLE_LOST], (u64)1);
    else if (is_first(slots, slot, id))
      fill_slot(table, slot, text, at, piece_start[id + 1] - at, sa_value_of(id, 0, 0, 1), true);
  }
}
