/* Bitmaps of bytes, one bit each, that many threads write: segments, fixed, inside. */
#ifndef SAPHIRA_MARKS_CUH
#define SAPHIRA_MARKS_CUH

#include "counters.h"
#include "shared/types.h"
#include "sync.cuh"

/* Where fixed pieces are noted: bytes that have been given their id, whatever they are. */
struct fixed_pieces {
  u64 *fixed, *inside; /* bitmaps: its first byte, its other bytes */
  u32 *at, *id;        /* counters[SA_COUNTER_FIXED] of them, in any order; id SA_NO_ID: none */
  u64 *counters;
};

static __device__ __forceinline__ void set_bit(u64 *words, u64 i) { atomicOr(&words[i >> 6], (u64)1 << (i & 63)); }

/* Sets the bits [from, to), which nobody else sets; called by a whole warp. */
static __device__ __forceinline__ void set_bits(u64 *words, u64 from, u64 to) {
  if (from >= to) return;
  u64 first = from >> 6, last = (to - 1) >> 6;
  for (u64 word = first + lane_id(); word <= last; word += 32) {
    u64 bits = ~(u64)0;
    if (word == first) bits &= ~(u64)0 << (from & 63);
    if (word == last) bits &= ~(u64)0 >> (63 - ((to - 1) & 63));
    if (bits == ~(u64)0) words[word] = bits;
    else atomicOr(&words[word], bits);
  }
}

/* Makes [start, end) a fixed piece; called by a whole warp. */
static __device__ __forceinline__ void fix_piece(fixed_pieces pieces, u64 start, u64 end, u32 id) {
  if (lane_id() == 0) {
    u64 slot = atomicAdd(&pieces.counters[SA_COUNTER_FIXED], (u64)1);
    set_bit(pieces.fixed, start);
    pieces.at[slot] = (u32)start;
    pieces.id[slot] = id;
  }
  set_bits(pieces.inside, start + 1, end);
}

#endif
