/* Stage probe: the value of every piece that the table has, and a list of the others.
 *
 * fixed_values: a thread a fixed piece, any grid.
 *   reads   the list; a word of starts and ranks each
 *   writes  values of these pieces
 * probe_pieces: a thread a piece, any grid, blocks of whole warps.
 *   reads   4 bytes of piece starts a piece; its text through shared memory, a warp's pieces at once; a sector of the
 *           table (32 bytes), more only where keys collide; the piece's bit in fixed
 *   writes  8 bytes of value a piece; 4 bytes a miss
 * probe_hot: the same, after a look into the hot table, which every block copies to shared memory first: its grid is to
 *   be small.
 * hot_count, hot_pick, hot_fill: which pieces of up to 7 bytes are hot: a thread a piece, of the first `most` of a batch
 *   that is done; a thread a slot of the table; a thread a slot of the hot table.
 *   hot     HOT slots of 16 bytes, words 0 and 1 of the table's: of those with one home, the one that was met most
 *   best    8 bytes for each of them: how often that was, and the table's slot; 0 before and after
 * text: N bytes and 64 more, at a multiple of 8. piece_start: pieces + 1. values, missed: pieces at most.
 * counters: SA_COUNTER_PIECES is read; misses are added up. */
#include "pieces.cuh"
#include "scan.cuh"
#include "table.cuh"

#define THREADS 256 /* of a block, at most */
#define STAGED 64   /* words of text in a warp's part of shared memory */
#define HOT_BITS 11
#define HOT (1 << HOT_BITS)

static __device__ __forceinline__ u32 hot_home(u32 hash) { return hash >> (32 - HOT_BITS); }

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

/* hot: in shared memory, or null. */
static __device__ __forceinline__ void probe(const u8 *text, const u32 *piece_start, const u64 *fixed, const u64 *slots,
                                             u32 bits, const u8 *arena, u32 longest, const ulonglong2 *hot, u64 *values,
                                             u32 *missed, u64 *counters) {
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
      const u8 *bytes = is_staged ? (const u8 *)mine : text;
      u64 value = 0;
      if (length <= longest) {
        if (!is_staged) from = at;
        piece_key key = key_of(bytes, from, length);
        if (hot && length <= SA_KEY8_BYTES) {
          ulonglong2 found = hot[hot_home(key.hash)];
          if (found.x == key.first) value = found.y;
        }
        if (value == 0) value = table_find(slots, bits, arena, bytes, from, length, key);
      }
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

extern "C" __global__ void __launch_bounds__(THREADS)
    probe_pieces(const u8 *text, const u32 *piece_start, const u64 *fixed, const u64 *slots, u32 bits, const u8 *arena,
                 u32 longest, u64 *values, u32 *missed, u64 *counters) {
  probe(text, piece_start, fixed, slots, bits, arena, longest, 0, values, missed, counters);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    probe_hot(const u8 *text, const u32 *piece_start, const u64 *fixed, const u64 *slots, u32 bits, const u8 *arena,
              u32 longest, const u64 *hot, u64 *values, u32 *missed, u64 *counters) {
  __shared__ ulonglong2 copy[HOT];
  for (u32 i = threadIdx.x; i < HOT; i += blockDim.x) copy[i] = ((const ulonglong2 *)hot)[i];
  __syncthreads();
  probe(text, piece_start, fixed, slots, bits, arena, longest, copy, values, missed, counters);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    hot_count(const u8 *text, const u32 *piece_start, u64 *slots, u32 bits, u64 most, const u64 *counters) {
  u64 n = min(counters[SA_COUNTER_PIECES], most);
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x) {
    u32 at = piece_start[i], length = piece_start[i + 1] - at;
    if (length > SA_KEY8_BYTES) continue;
    piece_key key = key_of(text, at, length);
    for (u32 step = 0; step < SA_TABLE_STEPS; step++) {
      u64 *slot = slots + SA_SLOT_WORDS * (u64)slot_at(key.hash, step, bits);
      if (slot[0] == 0) break;
      if (slot[0] != key.first) continue;
      atomicAdd(&slot[SA_SLOT_STATE], (u64)1);
      break;
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) hot_pick(u64 *slots, u32 bits, u64 *best) {
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i >> bits == 0; i += (u64)gridDim.x * blockDim.x) {
    u64 *slot = slots + SA_SLOT_WORDS * i;
    u64 times = slot[SA_SLOT_STATE] & 0xFFFFFFFF;
    if (times == 0) continue;
    slot[SA_SLOT_STATE] = SA_SLOT_READY;
    atomicMax(&best[hot_home((u32)sa_hash16(slot[0], slot[2]))], times << 32 | i);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) hot_fill(const u64 *slots, u64 *best, u64 *hot) {
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < HOT; i += gridDim.x * blockDim.x) {
    const u64 *slot = slots + SA_SLOT_WORDS * (best[i] & 0xFFFFFFFF);
    hot[2 * i] = best[i] ? slot[0] : 0, hot[2 * i + 1] = best[i] ? slot[SA_SLOT_VALUE] : 0;
    best[i] = 0;
  }
}
