/* Piece starts of GPT-2's pattern, as mask algebra over one block of 64 bytes.
 *
 *   '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * Local form: a character that is not white space starts a piece unless the character before it is
 * the byte 20 or has its class; white space starts a piece where its run starts, and the run's last
 * character starts one when a character follows. The one exception is the contraction: an apostrophe
 * that starts a piece takes s, d, m, t, ll, ve or re with it, and whatever follows starts a piece.
 * Nothing looks across a segment's start. (StarCoder's kind, with Digits before it: the caller makes every
 * number a segment of its own.)
 */
#ifndef SAPHIRA_SHARED_RULES_GPT2_H
#define SAPHIRA_SHARED_RULES_GPT2_H

#include "rules_common.h"

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

/* text: the block's bytes; up to two more are read where the segment reaches that far. */
SA_HD u64 sa_gpt2_starts(const sa_gpt2_planes *b, const sa_gpt2_planes *next, const u8 *text,
                         sa_gpt2_carry *carry) {
  u64 other = ~(b->letter | b->number | b->white);
  u64 white_before = sa_prev(b->white, carry->white), space_before = sa_prev(b->space, carry->space);
  u64 solid = b->starts & ~b->white;
  u64 ends = solid & white_before & ~b->segments;
  u64 ends_next = next->starts & ~next->white & ~next->segments & sa_prev(next->white, b->white >> 63);
  u64 last = sa_last_white(ends, ends_next, b->starts, next->starts);
  u64 same = (b->letter & sa_prev(b->letter, carry->letter)) |
             (b->number & sa_prev(b->number, carry->number)) | (other & sa_prev(other, carry->other));
  u64 result = (b->starts & b->white & ~white_before) | last | (solid & ~space_before & ~same) | b->segments;
  u64 marks = b->apostrophe & result, force = carry->force, suppress = carry->suppress;
  carry->force = 0;
  carry->suppress = 0;
  for (; marks; marks &= marks - 1) {
    int i = sa_ctz64(marks), length = sa_contraction(text + i + 1, sa_room(i, b->segments, next->segments));
    if (length) {
      suppress |= sa_force(i, 1, &carry->suppress);
      force |= sa_force(i, 1 + length, &carry->force);
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
