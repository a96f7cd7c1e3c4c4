/* What the boundary rules share: masks of one block of 64 bytes, bit i = byte i. */
#ifndef SAPHIRA_SHARED_RULES_COMMON_H
#define SAPHIRA_SHARED_RULES_COMMON_H

#include "types.h"
#include "utf8.h"

/* The plane moved one byte up: bit i tells of byte i - 1. before: bit 0 tells of the previous block's
 * last byte. */
SA_HD u64 sa_prev(u64 plane, u64 before) { return (plane << 1) | (before & 1); }

/* Each owned byte takes the bit of its character's first byte. before: bit 63 is the byte before. */
SA_HD u64 sa_spread(u64 plane, u64 owned, u64 before) {
  plane |= ((plane << 1) | (before >> 63)) & owned;
  plane |= (plane << 1) & owned;
  plane |= (plane << 1) & owned;
  return plane;
}

/* From each seed upwards through the run of `through` bits that it lies in; seeds are part of through.
 * The sum's carry clears the run from its first seed on, and later seeds of the run come back. */
SA_HD u64 sa_flood(u64 seeds, u64 through) { return (through & ~(through + seeds)) | seeds; }

/* First byte of the white-space character that ends just before each bit of `ends` (bit i: a
 * character that is not white starts at byte i, the byte before it is white). White space has up to
 * four bytes (an overlong form). starts: first bytes of characters; *_next: the next block's. */
SA_HD u64 sa_last_white(u64 ends, u64 ends_next, u64 starts, u64 starts_next) {
  /* Walk back from the ends here and in the first bytes of the next block; bits that leave the next
   * block downwards enter this one from above. */
  u64 at = sa_ahead(ends, ends_next, 1), at_next = ends_next >> 1, last = at & starts;
  u64 rest = at & ~starts, rest_next = at_next & ~starts_next;
  while (rest | (rest_next & 7)) {
    at = sa_ahead(rest, rest_next, 1);
    rest_next = (rest_next >> 1) & ~starts_next;
    last |= at & starts;
    rest = at & ~starts;
  }
  return last;
}

/* For each candidate: does the first stop behind it count as good? Stops of this block and the next;
 * candidates whose run goes beyond them are returned in *open instead. good is part of stop. */
SA_HD u64 sa_runs_good(u64 candidates, u64 stop, u64 good, u64 stop_next, u64 good_next, u64 *open) {
  u64 result = 0;
  *open = 0;
  for (; candidates; candidates &= candidates - 1) {
    u64 bit = candidates & (0 - candidates), behind = stop & ~(bit | (bit - 1));
    if (behind) result |= good & behind & (0 - behind) ? bit : 0;
    else if (stop_next) result |= good_next & stop_next & (0 - stop_next) ? bit : 0;
    else *open |= bit;
  }
  return result;
}

/* First bytes of the pieces of at most `most` (1, 3; 0 = no limit) characters into which runs of numbers
 * fall. number covers every byte of a character; before: number, shifted by sa_prev and cut at segments.
 * *count: characters of the run so far that end the block, modulo 3. */
SA_HD u64 sa_number_starts(u64 number, u64 before, u64 starts, int most, u64 *count) {
  u64 first = number & starts, runs = first & ~before, more = first & before, result = runs, ok;
  u64 c = *count;
  if (most == 0) return runs;
  if (most == 1) return first;
  if (number & ~starts) {  /* characters of several bytes: one after the other */
    for (result = 0; first; first &= first - 1) {
      u64 bit = first & (0 - first);
      if (runs & bit) c = 0;
      if (c == 0) result |= bit;
      c = c == 2 ? 0 : c + 1;
    }
    *count = c;
    return result;
  }
  if (more & 1) {  /* bit 0 has the index c in its run */
    u64 need = c == 0 ? 1 : c == 1 ? 7 : 3;
    if ((more & need) == need) result |= (need + 1) >> 1;
  }
  ok = more & (more << 1) & (more << 2);
  if (ok) {
    result |= (result << 3) & ok;
    ok &= ok << 3;
    result |= (result << 6) & ok;
    ok &= ok << 6;
    result |= (result << 12) & ok;
    ok &= ok << 12;
    result |= (result << 24) & ok;
    ok &= ok << 24;
    result |= (result << 48) & ok;
  }
  if (first >> 63) {
    int k = 0;  /* bytes since the last start */
    while (k < 3 && !(result >> (63 - k) & 1)) k++;
    *count = k < 3 ? (u64)((k + 1) % 3) : c;
  }
  return result;
}

/* Bytes of the contraction behind an apostrophe, 0 if there is none: s, d, m, t, ll, ve, re. p: the byte
 * behind it; room: how many bytes of its segment follow the apostrophe (2 stands for more). */
SA_HD int sa_contraction(const u8 *p, int room) {
  if (room < 1) return 0;
  switch (p[0]) {
    case 's': case 'd': case 'm': case 't': return 1;
    case 'l': return room > 1 && p[1] == 'l' ? 2 : 0;
    case 'v': case 'r': return room > 1 && p[1] == 'e' ? 2 : 0;
    default: return 0;
  }
}

/* The same without regard to case, where the long s (U+017F) is an s as well. */
SA_HD int sa_contraction_any_case(const u8 *p, int room) {
  if (room < 1) return 0;
  switch (p[0]) {
    case 's': case 'd': case 'm': case 't': case 'S': case 'D': case 'M': case 'T': return 1;
    case 'l': case 'L': return room > 1 && (p[1] | 0x20) == 'l' ? 2 : 0;
    case 'v': case 'V': case 'r': case 'R': return room > 1 && (p[1] | 0x20) == 'e' ? 2 : 0;
    case 0xC5: return room > 1 && p[1] == 0xBF ? 2 : 0;
    default: return 0;
  }
}

/* How many bytes of its segment follow byte i: 0, 1, or 2 for more. */
SA_HD int sa_room(int i, u64 segments, u64 segments_next) {
  u64 ahead = i == 63 ? segments_next : (segments >> (i + 1)) | (segments_next << (63 - i));
  return ahead & 1 ? 0 : ahead & 2 ? 1 : 2;
}

/* Marks byte i + length of the block as forced: here, or in the next block by *carry. */
SA_HD u64 sa_force(int i, int length, u64 *carry) {
  int at = i + length;
  if (at < 64) return (u64)1 << at;
  *carry |= (u64)1 << (at - 64);
  return 0;
}

#endif
