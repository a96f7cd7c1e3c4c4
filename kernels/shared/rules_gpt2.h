/* Piece starts of GPT-2's pattern, as mask algebra over one block of 64 bytes.
 *
 *   '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * Local form: a character that is not white space starts a piece unless the character before it is
 * the byte 20 or has its class; white space starts a piece where its run starts, and the run's last
 * character starts one when a character follows. The one exception is the contraction: an apostrophe
 * that starts a piece takes s, d, m, t, ll, ve or re with it, and whatever follows starts a piece.
 * Nothing looks across a segment's start. (Where every number is a piece of its own, as in StarCoder's kind
 * and in CLIP, and where white space is no part of pieces, as in CLIP, the caller makes segments of them.)
 *
 * CLIP's pattern has two literals more, <|startoftext|> and <|endoftext|>, found where a piece starts.
 */
#ifndef SAPHIRA_SHARED_RULES_GPT2_H
#define SAPHIRA_SHARED_RULES_GPT2_H

#include "rules_common.h"

/* Class planes of a block. The bits of letter, number and white cover every byte of a character. */
typedef struct sa_gpt2_planes {
  u64 letter, number, white;
  u64 space;       /* the byte 20 */
  u64 apostrophe;  /* the byte 27; where literals are looked for, 3C too */
  u64 starts;      /* first bytes of characters */
  u64 segments;    /* segment starts, the end of the text included */
} sa_gpt2_planes;

typedef struct sa_gpt2_options {
  int alone;       /* every number is a segment of its own */
  int literals;    /* CLIP: its literals; white space and what lies between are segments apart */
} sa_gpt2_options;

/* What a block leaves to the next one. All zero before the first. */
typedef struct sa_gpt2_carry {
  u64 letter, number, white, space, other;  /* bit 0: the class of the last byte */
  u64 force;                                /* piece starts behind contractions and literals */
  u64 suppress;                             /* bytes of those */
} sa_gpt2_carry;

/* Bytes of the literal that starts at p, 0 if there is none. cut: bit i = a segment starts at byte i + 1. */
SA_HD int sa_gpt2_literal(const u8 *p, u64 cut) {
  const char *literal = p[2] == 's' ? "<|startoftext|>" : "<|endoftext|>";
  int n = p[2] == 's' ? 15 : 13;
  if (cut & (((u64)1 << (n - 1)) - 1)) return 0;
  for (int i = 0; i < n; i++)
    if (p[i] != (u8)literal[i]) return 0;
  return n;
}

/* text: the block's bytes; up to two more are read where the segment reaches that far, up to 14 with literals. */
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
  u64 force = carry->force, suppress = carry->suppress, marks = b->apostrophe & (result | force);
  carry->force = 0;
  carry->suppress = 0;
  while (marks) {
    int i = sa_ctz64(marks), length;
    u64 above = ~(u64)1 << i;
    if (text[i] == '<') {
      u64 cut = i == 63 ? next->segments : (b->segments >> (i + 1)) | (next->segments << (63 - i));
      length = sa_gpt2_literal(text + i, cut);
    } else {
      length = sa_contraction(text + i + 1, sa_room(i, b->segments, next->segments));
      length += length > 0;
    }
    if (length) {
      u64 inner = ((u64)1 << (length - 1)) - 1;
      suppress |= i == 63 ? 0 : inner << (i + 1);
      carry->suppress |= inner >> (63 - i);
      force |= sa_force(i, length, &carry->force);
    }
    marks = b->apostrophe & (result | force) & above;
  }
  carry->letter = b->letter >> 63;
  carry->number = b->number >> 63;
  carry->white = b->white >> 63;
  carry->space = b->space >> 63;
  carry->other = other >> 63;
  return (result & ~suppress) | force;
}

#endif
