/* Which bytes make up characters: the byte contract (semantics.md section 6) as mask algebra.
 *
 * Bit i of every mask is byte i of a 64-byte block. The contract is local: a byte's part in a
 * character depends on three bytes on either side of it and on the segment starts among them.
 */
#ifndef SAPHIRA_SHARED_UTF8_H
#define SAPHIRA_SHARED_UTF8_H

#include "types.h"

/* What the bytes are, before structure: 80..BF, C0..DF, E0..EF, F0..F4, F5..FF. */
typedef struct sa_byte_kinds {
  u64 cont, lead2, lead3, lead4, high;
} sa_byte_kinds;

typedef struct sa_structure {
  u64 whole2, whole3, whole4;  /* leads of characters of 2, 3, 4 bytes, all there */
  u64 owned;                   /* continuation bytes of those characters */
  u64 failed;                  /* leads followed too early by a byte that continues nothing */
  u64 alone;                   /* other bytes >= 80 outside characters: their byte-alphabet symbol */
} sa_structure;

/* Shifts x down by n, filling from the next block's mask. n in 1..63. */
SA_HD u64 sa_ahead(u64 x, u64 next, int n) { return (x >> n) | (next << (64 - n)); }

/* Shifts x up by n, filling from the previous block's mask. n in 1..63. */
SA_HD u64 sa_behind(u64 x, u64 previous, int n) { return (x << n) | (previous >> (64 - n)); }

/* segments: segment starts; *_next: the block behind (three low bits matter).
 * carry: in, the owned bytes that the previous block's characters have here (bits 0..2);
 * out, the same for the next block. */
SA_HD sa_structure sa_utf8_structure(sa_byte_kinds k, u64 segments, u64 cont_next,
                                     u64 segments_next, u64 *carry) {
  /* A continuation byte at a segment's start continues nothing. */
  u64 c = k.cont & ~segments, cn = cont_next & ~segments_next;
  u64 c1 = sa_ahead(c, cn, 1), c2 = sa_ahead(c, cn, 2), c3 = sa_ahead(c, cn, 3);
  u64 e1 = sa_ahead(segments, segments_next, 1), e2 = sa_ahead(segments, segments_next, 2),
      e3 = sa_ahead(segments, segments_next, 3);
  sa_structure s;
  u64 leads = k.lead2 | k.lead3 | k.lead4, lead34 = k.lead3 | k.lead4, broken, cut;
  s.whole2 = k.lead2 & c1;
  s.whole3 = k.lead3 & c1 & c2;
  s.whole4 = k.lead4 & c1 & c2 & c3;
  s.owned = ((s.whole2 | s.whole3 | s.whole4) << 1) | ((s.whole3 | s.whole4) << 2) |
            (s.whole4 << 3) | *carry;
  *carry = ((s.whole2 | s.whole3 | s.whole4) >> 63) | ((s.whole3 | s.whole4) >> 62) |
           (s.whole4 >> 61);
  broken = leads & ~(s.whole2 | s.whole3 | s.whole4);
  /* Cut: the segment ends where the first missing continuation byte would be. */
  cut = broken & (e1 | (lead34 & c1 & (e2 | (k.lead4 & c2 & e3))));
  s.failed = broken & ~cut;
  s.alone = (k.cont & ~s.owned) | k.high | cut;
  return s;
}

/* Length of the character at p (p < end, the segment's end) and its code point; *kind: 0 a character,
 * 1 a failed lead, 2 a byte of its own (its byte-alphabet symbol; code = the byte). */
SA_HD int sa_utf8_decode(const u8 *p, const u8 *end, u32 *code, int *kind) {
  u32 lead = p[0], value;
  int need = lead < 0xC0 || lead > 0xF4 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3, i;
  *code = lead;
  *kind = lead < 0x80 ? 0 : 2;
  if (need == 0) return 1;
  value = lead & (0x3Fu >> need);
  for (i = 1; i <= need; i++) {
    if (p + i >= end) return 1;
    if ((p[i] & 0xC0) != 0x80) {
      *kind = 1;
      return 1;
    }
    value = (value << 6) | (p[i] & 0x3Fu);
  }
  *code = value;
  *kind = 0;
  return need + 1;
}

#endif
