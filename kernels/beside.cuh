/* The characters beside a match of an added token, under the byte contract: runs of white space found by a whole
 * warp, 32 bytes at a time, and single characters by every lane alike. Functions of kernels/shared/added.h. */
#ifndef SAPHIRA_BESIDE_CUH
#define SAPHIRA_BESIDE_CUH

#include "scan.cuh"
#include "shared/types.h"
#include "shared/utf8.h"

/* Text, and the superatoms of its characters: sa_alphabet's tables. */
struct sa_beside {
  const u8 *text;
  const u8 *tags;    /* of the bytes 00..7F, of 80..FF outside characters, of a failed lead: 257 */
  const u16 *leaf;   /* of code point >> 6 */
  const u8 *leaves;  /* tags of 64 code points each */
  u32 white, word;   /* sets of superatoms */
};

static __device__ __forceinline__ u32 char_tag(sa_beside t, i64 at, i64 hi) {
  u32 code;
  int kind;
  sa_utf8_decode(t.text + at, t.text + hi, &code, &kind);
  if (kind == 1) return t.tags[256];
  if (kind == 2 || code < 0x80 && t.text[at] < 0x80) return t.tags[code];
  return t.leaves[64 * (u32)t.leaf[code >> 6] + (code & 63)];
}

static __device__ __forceinline__ bool char_in(sa_beside t, i64 at, i64 hi, u32 set) {
  return set >> char_tag(t, at, hi) & 1;
}

/* Whether a character of the text [lo, hi) starts at `at`: no lead before it owns the byte. */
static __device__ __forceinline__ bool char_starts(sa_beside t, i64 lo, i64 at, i64 hi) {
  if ((t.text[at] & 0xC0) != 0x80) return true;
  for (i64 lead = at - 1; lead >= lo && lead >= at - 3; lead--) {
    u32 code;
    int kind;
    if ((t.text[lead] & 0xC0) == 0x80) continue;
    return lead + sa_utf8_decode(t.text + lead, t.text + hi, &code, &kind) <= at;
  }
  return true;
}

static __device__ __forceinline__ i64 sa_white_end(sa_beside t, i64 at, i64 hi) {
  for (i64 from = at; from < hi; from += 32) {
    i64 mine = from + lane_id();
    bool other = mine < hi && char_starts(t, at, mine, hi) && !char_in(t, mine, hi, t.white);
    u32 others = __ballot_sync(SA_FULL_WARP, other);
    if (others) return from + __ffs((int)others) - 1;
  }
  return hi;
}

static __device__ __forceinline__ i64 sa_white_start(sa_beside t, i64 lo, i64 at, i64 hi) {
  for (i64 end = at; end > lo; end -= 32) {
    i64 mine = end - 1 - (i64)lane_id();
    bool other = mine >= lo && char_starts(t, lo, mine, hi) && !char_in(t, mine, hi, t.white);
    u32 others = __ballot_sync(SA_FULL_WARP, other);
    if (others) {
      u32 code;
      int kind;
      i64 last = end - __ffs((int)others); /* the nearest that is no white space */
      last += sa_utf8_decode(t.text + last, t.text + hi, &code, &kind);
      return min(last, at);
    }
  }
  return lo;
}

static __device__ __forceinline__ int sa_word_before(sa_beside t, i64 lo, i64 at, i64 hi) {
  i64 before = at - 1;
  while (before > lo && !char_starts(t, lo, before, hi)) before--;
  return before >= lo && char_in(t, before, hi, t.word);
}

static __device__ __forceinline__ int sa_word_after(sa_beside t, i64 at, i64 hi) {
  return at < hi && char_in(t, at, hi, t.word);
}

#endif
