/* How many pieces start before a byte, in one step. */
#ifndef SAPHIRA_PIECES_CUH
#define SAPHIRA_PIECES_CUH

#include "shared/types.h"

/* ranks: of every word of starts, how many pieces start before it (stage pieces). */
static __device__ __forceinline__ u32 piece_rank(const u64 *starts, const u32 *ranks, u64 at) {
  return ranks[at / 64] + (u32)__popcll(starts[at / 64] & (((u64)1 << (at & 63)) - 1));
}

#endif
