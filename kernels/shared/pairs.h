/* The rank of a pair of symbols: a table of slots, left 20 bits, right 20, rank 24; all ones = empty. */
#ifndef SAPHIRA_SHARED_PAIRS_H
#define SAPHIRA_SHARED_PAIRS_H

#include "types.h"

#define SA_NO_RANK 0xFFFFFFFFu

/* The element of tables that C code declares as uint64_t. */
#if defined(__CUDACC__) || defined(__CUDACC_RTC__) || defined(SA_HOST_EXECUTOR)
typedef u64 sa_pair_entry;
#else
typedef __UINT64_TYPE__ sa_pair_entry;
#endif

SA_HD u64 sa_pair_key(u32 left, u32 right) { return (u64)left << 20 | right; }

SA_HD u64 sa_pair_hash(u64 key) {
  key *= 0x9E3779B97F4A7C15u;
  return key ^ key >> 32;
}

/* The slot of a key in a perfect hash. */
SA_HD u64 sa_pair_slot(u64 hash, u64 displacement, u32 shift) {
  return ((hash + displacement * 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u) >> shift;
}

/* The rank in an entry, if it is that of the key. */
SA_HD u32 sa_pair_rank_of(sa_pair_entry entry, u64 key) {
  return entry >> 24 == key ? (u32)entry & 0xFFFFFF : SA_NO_RANK;
}

/* The only place of a key in a perfect hash. */
SA_HD const sa_pair_entry *sa_pair_place(const sa_pair_entry *pairs, u32 pair_shift, const u16 *displace,
                                         u32 displace_shift, u64 key) {
  const u64 hash = sa_pair_hash(key);
  return pairs + sa_pair_slot(hash, displace[hash >> displace_shift], pair_shift);
}

/* pair_shift: 64 - log2(slots). displace: a perfect hash's, by the hash >> displace_shift; NULL: open addressing. */
SA_HD u32 sa_pair_find(const sa_pair_entry *pairs, u32 pair_shift, const u16 *displace, u32 displace_shift, u32 left,
                       u32 right) {
  const u64 key = sa_pair_key(left, right), hash = sa_pair_hash(key);
  if (displace) /* as a rule; no branch depends on the key */
    return sa_pair_rank_of(*sa_pair_place(pairs, pair_shift, displace, displace_shift, key), key);
  const u64 mask = ((u64)1 << (64 - pair_shift)) - 1;
  for (u64 slot = hash >> pair_shift;; slot = (slot + 1) & mask) {
    const u64 entry = pairs[slot];
    if (entry >> 24 == key) return (u32)entry & 0xFFFFFF;
    if (entry == ~(u64)0) return SA_NO_RANK;
  }
}

#endif
