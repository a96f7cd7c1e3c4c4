/* Piece starts of GPT-2's pattern, as mask algebra over one block of 64 bytes.
 *
 *   '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * Local form: a character that is not white space starts a piece unless the character before it is
 * the byte 20 or has its class; white space starts a piece where its run starts, and the run's last
 * character starts one when a character follows. The one exception is the contraction: an apostrophe
 * that starts a piece takes s, d, m, t, ll, ve or re with it, and whatever follows starts a piece.
 * Nothing looks across a segment's start.
 */
#ifndef SAPHIRA_SHARED_RULES_GPT2_H
#define SAPHIRA_SHARED_RULES_GPT2_H

#include "types.h"
#include "utf8.h"

/* Class planes of a block. The bits of letter, number and white cover every byte of a character. */
typedef struct sa_gpt2_planes {
  u64 letter, number, white;
  u64 space;       /* the byte 20 */
  u64 apostrophe;  /* the byte 27 */
  u64 starts;      /* first bytes of characters */
  u64 segments;    /* segment starts, the end of the text included */
} sa_gpt2_planes;

/* What a block leaves to the next one. All zero before the first. */
typedef struct sa_gpt2_carry {
  u64 letter, number, white, space, other;  /* bit 0: the class of the last byte */
  u64 force;                                /* bits 0..2: piece starts behind contractions */
  u64 suppress;                             /* bit 0: the letter of a contraction */
} sa_gpt2_carry;

/* Length of the contraction's letters behind an apostrophe (1 or 2), or 0. p: the byte behind it,
 * room: how many bytes of its segment follow the apostrophe (only 0, 1 and more matter). */
SA_HD int sa_contraction(const u8 *p, int room) {
  if (room < 1) return 0;
  switch (p[0]) {
    case 's': case 'd': case 'm': case 't': return 1;
    case 'l': return room > 1 && p[1] == 'l' ? 2 : 0;
    case 'v': case 'r': return room > 1 && p[1] == 'e' ? 2 : 0;
    default: return 0;
  }
}

/* First byte of the white-space character that ends just before each bit of `ends` (bit i: a
 * character that is not white starts at byte i, the byte before it is white). White space has up to
 * four bytes (an overlong form). starts, starts_next: first bytes of characters. */
SA_HD u64 sa_last_white(u64 ends, u64 ends_next, u64 starts, u64 starts_next) {
  /* Walk back from the end of this block and the first bytes of the next one; bits that leave the
   * next block downwards enter this one from above. */
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

/* text: the block's bytes; up to two more are read where the segment reaches that far. */
SA_HD u64 sa_gpt2_starts(const sa_gpt2_planes *b, const sa_gpt2_planes *next, const u8 *text,
                         sa_gpt2_carry *carry) {
  u64 other = ~(b->letter | b->number | b->white);
  u64 letter_before = (b->letter << 1) | carry->letter, number_before = (b->number << 1) | carry->number;
  u64 white_before = (b->white << 1) | carry->white, space_before = (b->space << 1) | carry->space;
  u64 other_before = (other << 1) | carry->other;
  u64 solid = b->starts & ~b->white;
  u64 ends = solid & white_before & ~b->segments;
  u64 ends_next = next->starts & ~next->white & ~next->segments & ((next->white << 1) | (b->white >> 63));
  u64 last = sa_last_white(ends, ends_next, b->starts, next->starts);
  u64 same = (b->letter & letter_before) | (b->number & number_before) | (other & other_before);
  u64 result = (b->starts & b->white & ~white_before) | last | (solid & ~space_before & ~same) | b->segments;
  u64 marks = b->apostrophe & result, force = carry->force, suppress = carry->suppress;
  carry->force = 0;
  carry->suppress = 0;
  while (marks) {
    int i = sa_ctz64(marks), length;
    u64 ahead = i == 63 ? next->segments : (b->segments >> (i + 1)) | (next->segments << (63 - i));
    marks &= marks - 1;
    /* ahead: bit j = a segment starts at byte i + 1 + j */
    length = sa_contraction(text + i + 1, ahead & 1 ? 0 : ahead & 2 ? 1 : 2);
    if (length) {
      int stop = i + 1 + length;
      if (i < 63) suppress |= (u64)2 << i;
      else carry->suppress = 1;
      if (stop < 64) force |= (u64)1 << stop;
      else carry->force |= (u64)1 << (stop - 64);
    }
  }
  carry->letter = b->letter >> 63;
  carry->number = b->number >> 63;
  carry->white = b->white >> 63;
  carry->space = b->space >> 63;
  carry->other = other >> 63;
  return (result & ~suppress) | force;
}

#endif
