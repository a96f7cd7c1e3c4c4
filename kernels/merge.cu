/* Stage merge: exact byte-pair merging of the pieces that deal has listed; the lowest rank of the whole piece first.
 *
 * merge_short: a thread a piece, any grid; up to 32 bytes. Shared memory: 256 bytes a thread.
 * merge_windows: a block a piece, handed out by a ticket, any grid; blocks of whole warps. A piece of more bytes than
 *   the window's capacity goes window by window (cpu_core/src/bpe.h, fact 2): linear, whatever its length.
 *   Shared memory: WINDOW_BYTES(capacity).
 * merge_whole: a block a piece, one block in all; pieces that no windows did for. As many rounds as a window has, each
 *   over the whole piece. Its ids' place in the spill list is its only memory, and scratch: N / 16 + 4 words.
 *   read    the pieces' text; tables of the model
 *   write   a value a piece, in its slot or values; ids of more than three in the spill list; the slot's key
 * kept: u8[N], where a model leaves bytes out: a piece without them, else null. */
#include "merge.cuh"

#define SHORT_BYTES 32

/* The value of count ids; where the ids go is *room, if they are more than three. */
static __device__ __forceinline__ u64 value_of(piece_table t, u32 slot, u64 at, u64 count, u32 first, u32 second,
                                               u32 third, u64 *room, bool *lasts) {
  *lasts = true;
  if (count == 0) return SA_NOTHING;
  if (count >> 28) __trap(); /* more ids than a value can tell of: one piece of 256 MB */
  if (count <= SA_VALUE_IDS) return sa_value_of(first, second, third, count);
  *room = spill_room(t, slot, at, count, lasts);
  return sa_value_spilled(*room, count);
}

static __device__ __forceinline__ void give_value(piece_table t, u32 slot, u64 *values, u32 piece, const u8 *text,
                                                  u64 at, u32 n, u64 value, bool lasts) {
  if (slot == SA_NO_SLOT) values[piece] = value;
  else fill_slot(t, slot, text, at, n, value, lasts);
}

extern "C" __global__ void __launch_bounds__(256, 2)
    merge_short(const u8 *text, const u32 *piece_start, const u32 *missed, const u32 *slot_of, const u32 *work,
                MODEL_PARAMS, TABLE_PARAMS, u64 *values, u64 *counters) {
  extern __shared__ u32 symbols[]; /* of a thread: ids at symbols[i * threads + thread], ranks behind them */
  merge_model m = MODEL_ARGS;
  piece_table table = TABLE_ARGS;
  u32 threads = blockDim.x;
  u32 *ids = symbols + threadIdx.x, *rank = ids + SHORT_BYTES * threads;
  u64 n_work = counters[SA_COUNTER_WORK_SHORT], steps = 0;
  for (u64 j = (u64)blockIdx.x * threads + threadIdx.x; j < n_work; j += (u64)gridDim.x * threads) {
    u32 k = work[j], piece = missed[k], at = piece_start[piece], length = piece_start[piece + 1] - at, n = 0;
    u32 last = 0; /* the byte of symbol n - 1 */
    u64 bytes = 0;
    for (u32 i = 0; i < length; i++, bytes >>= 8) {
      if (i % 8 == 0) bytes = word_at(text, at + i); /* byte by byte, each is a sector of its own to the warp */
      u32 byte = (u32)bytes & 0xFF;
      if (leaves_out && left_out[byte]) continue;
      ids[n * threads] = byte_ids[byte];
      if (n > 0) rank[(n - 1) * threads] = byte_pair_rank[last << 8 | byte];
      last = byte;
      n++;
    }
    if (has_ends) { /* such a model leaves no byte out */
      ids[(n - 1) * threads] = byte_ids_end[last];
      if (n > 1) rank[(n - 2) * threads] = pair_rank(m, ids[(n - 2) * threads], ids[(n - 1) * threads]);
    }
    u32 alive = n == 32 ? 0xFFFFFFFFu : (1u << n) - 1; /* symbols: bit i, the one whose first byte is i */
    for (;;) {
      u32 lowest = SA_NO_RANK, p = 0;
      for (u32 i = 0; i + 1 < n; i++) { /* symbols that are merged away have no rank, nor has the last one */
        u32 r = rank[i * threads];
        if (r < lowest) lowest = r, p = i;
      }
      if (lowest == SA_NO_RANK) break;
      steps++;
      u32 after = alive & ~((2u << p) - 1), q = (u32)__ffs((int)after) - 1;
      alive &= ~(1u << q);
      after &= after - 1;
      u32 id = result[lowest];
      ids[p * threads] = id;
      if (q + 1 < n) rank[q * threads] = SA_NO_RANK;
      rank[p * threads] = after ? pair_rank(m, id, ids[((u32)__ffs((int)after) - 1) * threads]) : SA_NO_RANK;
      u32 left = alive & ((1u << p) - 1);
      if (left) {
        u32 o = 31 - (u32)__clz((int)left);
        rank[o * threads] = pair_rank(m, ids[o * threads], id);
      }
    }
    u32 count = (u32)__popc(alive), few[SA_VALUE_IDS] = {0, 0, 0};
    u64 room = 0, value;
    bool lasts;
    u32 bits = alive;
    if (count <= SA_VALUE_IDS)
      for (u32 i = 0; i < SA_VALUE_IDS; i++)
        if (bits) few[i] = ids[((u32)__ffs((int)bits) - 1) * threads], bits &= bits - 1;
    value = value_of(table, slot_of[k], at, count, few[0], few[1], few[2], &room, &lasts);
    for (; bits; bits &= bits - 1) spill[room++] = ids[((u32)__ffs((int)bits) - 1) * threads];
    give_value(table, slot_of[k], values, piece, text, at, length, value, lasts);
  }
  if (steps) atomicAdd(&counters[SA_COUNTER_MERGE_STEPS], steps);
}

/* n bytes without those left out, in order; returns how many. Called by the whole block. sums: u32[33] shared. */
static __device__ __forceinline__ u32 leave_out(const merge_model &m, const u8 *bytes, u32 n, u8 *kept, u32 *sums) {
  u32 count = 0, total;
  for (u32 first = 0; first < n; first += blockDim.x) {
    u32 i = first + threadIdx.x;
    bool keeps = i < n && !m.left_out[bytes[i]];
    __syncthreads(); /* sums are read */
    u32 to = count + block_exclusive_sum(keeps, sums, &total);
    if (keeps) kept[to] = bytes[i];
    count += total;
  }
  __syncthreads();
  return count;
}

/* The ids of n >= 1 bytes, a piece's, to out. Returns how many; 0 where windows don't do. Called by the whole block. */
static __device__ __forceinline__ u64 merge_piece(const merge_model &m, window *w, u32 capacity, const u8 *bytes, u32 n,
                                                  u32 *out, u64 *steps) {
  u32 thread = threadIdx.x, threads = blockDim.x;
  if (n > capacity && 8 * m.longest > capacity) return 0;
  u32 start = 0, end = min(n, capacity), kept = 0;
  u32 count = merge_window(m, w, bytes, end, end == n, steps);
  for (u32 i = thread; i < count; i += threads) out[i] = w->ids[i];
  __syncthreads();
  bool fresh = true; /* the window still holds these ids */
  while (end < n) {
    /* out[0, kept) is final, out[kept, kept + count) encodes [start, end). Its last tokens may be wrong for want of
     * what follows: go on from a boundary some tokens before. */
    u32 j = count, at = end, limit = end - 2 * m.longest;
    while (at > limit) at -= m.length[out[kept + --j]];
    bool joined = false;
    for (u32 tries = 0; tries < 8 && j > 0 && !joined; tries++) {
      u32 expected = out[kept + j], left = out[kept + j - 1];
      bool differs = !fresh || tries > 0 || n - at <= capacity;
      if (!differs)
        for (u32 i = thread; i < capacity; i += threads) differs = differs || bytes[at + i] != bytes[start + i];
      bool again = !__syncthreads_or(differs); /* a run of one letter, say: the same bytes, the same ids */
      end = min(n, at + capacity);
      if (!again) count = merge_window(m, w, bytes + at, end - at, end == n, steps);
      for (u32 i = thread; i < count; i += threads) out[kept + j + i] = w->ids[i];
      __syncthreads();
      fresh = true;
      u32 right = out[kept + j];
      joined = right == expected;
      if (!joined) {
        u32 from = at - m.length[left], to = at + m.length[right];
        u32 both = merge_window(m, w, bytes + from, to - from, to == n, steps);
        joined = both == 2 && w->ids[0] == left && w->ids[1] == right;
        fresh = false;
      }
      if (!joined) at = at - m.length[left], j--;
    }
    if (!joined) return 0;
    kept += j;
    start = at;
  }
  return kept + count;
}

extern "C" __global__ void __launch_bounds__(256, 2)
    merge_windows(const u8 *text, const u32 *piece_start, const u32 *missed, const u32 *slot_of, const u32 *work,
                  u32 n_work_at, u32 ticket_at, u32 capacity, u32 *work_whole, MODEL_PARAMS, TABLE_PARAMS, u8 *kept,
                  u64 *values, u64 *counters) {
  extern __shared__ u64 memory[];
  __shared__ u64 ticket;
  __shared__ u32 sums[33];
  merge_model m = MODEL_ARGS;
  piece_table table = TABLE_ARGS;
  u64 n_work = counters[n_work_at], steps = 0;
  for (;;) {
    __syncthreads(); /* the last ticket is read */
    if (threadIdx.x == 0) ticket = atomicAdd(&counters[ticket_at], (u64)1);
    __syncthreads();
    if (ticket >= n_work) break;
    u32 k = work[ticket], piece = missed[k], at = piece_start[piece], length = piece_start[piece + 1] - at, n = length;
    const u8 *bytes = text + at;
    if (leaves_out) {
      n = leave_out(m, bytes, n, kept + at, sums);
      bytes = kept + at;
    }
    window w = window_in(memory, capacity);
    u32 *out = spill + spill_keep + at;
    u64 count = n ? merge_piece(m, &w, capacity, bytes, n, out, &steps) : 0;
    if (n && count == 0) {
      if (threadIdx.x == 0) work_whole[atomicAdd(&counters[SA_COUNTER_WORK_WHOLE], (u64)1)] = k;
      continue;
    }
    if (threadIdx.x == 0) {
      u64 room = 0, value;
      bool lasts;
      value = value_of(table, slot_of[k], at, count, count > 0 ? out[0] : 0, count > 1 ? out[1] : 0,
                       count > 2 ? out[2] : 0, &room, &lasts);
      if (count > SA_VALUE_IDS && lasts)
        for (u64 i = 0; i < count; i++) spill[room + i] = out[i];
      give_value(table, slot_of[k], values, piece, text, at, length, value, lasts);
    }
  }
  if (threadIdx.x == 0 && steps) atomicAdd(&counters[SA_COUNTER_MERGE_STEPS], steps);
}

extern "C" __global__ void __launch_bounds__(256, 2)
    merge_whole(const u8 *text, const u32 *piece_start, const u32 *missed, const u32 *slot_of, const u32 *work,
                u32 *scratch, MODEL_PARAMS, TABLE_PARAMS, u8 *kept, u64 *values, u64 *counters) {
  __shared__ u32 sums[33];
  __shared__ u64 best[33];
  merge_model m = MODEL_ARGS;
  piece_table table = TABLE_ARGS;
  u32 thread = threadIdx.x, threads = blockDim.x;
  u64 steps = 0;
  for (u64 j = 0; j < counters[SA_COUNTER_WORK_WHOLE]; j++) {
    u32 k = work[j], piece = missed[k], at = piece_start[piece], length = piece_start[piece + 1] - at, n = length;
    const u8 *bytes = text + at;
    if (leaves_out) {
      n = leave_out(m, bytes, n, kept + at, sums);
      bytes = kept + at;
    }
    u32 *ids = spill + spill_keep + at;
    for (u32 i = thread; i < n; i += threads)
      ids[i] = has_ends && i == n - 1 ? byte_ids_end[bytes[i]] : byte_ids[bytes[i]];
    __syncthreads();
    for (;;) {
      u32 words = n / 32 + 1;
      u32 *taken = scratch, *before = scratch + words;
      for (u32 i = thread; i < words; i += threads) taken[i] = 0;
      u64 key = ~(u64)0;
      for (u32 i = thread; i + 1 < n; i += threads) key = min(key, (u64)pair_rank(m, ids[i], ids[i + 1]) << 32 | i);
      key = block_lowest(key, best);
      u32 lowest = (u32)(key >> 32);
      if (lowest == SA_NO_RANK) break;
      u32 left = ids[(u32)key], right = ids[(u32)key + 1], made = result[lowest];
      if (monotone) {
        for (u32 i = thread; i + 1 < n; i += threads) {
          if (ids[i] != left || ids[i + 1] != right || i > 0 && left == right && ids[i - 1] == left) continue;
          for (u32 q = i; q + 1 < n && ids[q] == left && ids[q + 1] == right; q += 2) {
            atomicOr(&taken[q / 32], 1u << (q % 32));
            if (left != right) break;
          }
        }
      } else if (thread == 0) {
        taken[(u32)key / 32] |= 1u << ((u32)key % 32);
      }
      __syncthreads();
      if (thread < 32) count_before(taken, before, words);
      __syncthreads();
      for (u32 first = 0; first < n; first += threads) { /* in place: a step's symbols go where earlier ones were */
        u32 i = first + thread, id = 0;
        bool stays = i < n && !(i > 0 && bit_at(taken, i - 1));
        if (stays) id = bit_at(taken, i) ? made : ids[i];
        __syncthreads();
        if (stays) ids[i - bits_before(taken, before, i)] = id;
      }
      n -= before[words];
      if (thread == 0) steps += before[words];
      __syncthreads();
    }
    if (thread == 0) {
      u64 room = 0;
      bool lasts;
      /* Longer than what has slots, so its ids stay where they are. */
      values[piece] = value_of(table, SA_NO_SLOT, at, n, ids[0], n > 1 ? ids[1] : 0, n > 2 ? ids[2] : 0, &room, &lasts);
    }
    __syncthreads();
  }
  if (thread == 0 && steps) atomicAdd(&counters[SA_COUNTER_MERGE_STEPS], steps);
}
