/* Piece starts of the cl100k family, as mask algebra over one block of 64 bytes.
 *
 *   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
 *   |\s*[\r\n]+|\s+(?!\S)|\s+
 *
 * Members differ in the length of number pieces (3, 1, no limit), in what counts as a letter (Qwen3.5: marks
 * too), and in white space at a segment's end: tiktoken's cl100k has |\s++$| before \s*[\r\n], so that
 * there the whole rest is one piece, newlines or not.
 *
 * Local form, with O = no white space, letter or number:
 *   taken    newlines right behind an O belong to its piece; they are no white space for what follows
 *   O        starts a piece unless an O or the byte 20 is before it
 *   letter   starts a piece unless a letter, white space that is no newline, or an O that starts a piece
 *            is before it
 *   white    starts a piece at its run's start (behind taken newlines); behind its last newline; and at its
 *            last character if that is no newline and a character follows
 *   contractions: an apostrophe that starts a piece; what follows them starts a piece
 */
#ifndef SAPHIRA_SHARED_RULES_CL100K_H
#define SAPHIRA_SHARED_RULES_CL100K_H

#include "rules_common.h"

typedef struct sa_cl100k_options {
  int numbers;    /* characters of a number piece: 3, 1, 0 = no limit */
  int whole_end;  /* white space that reaches the segment's end is one piece */
} sa_cl100k_options;

/* The bits of letter, number and white cover every byte of a character. */
typedef struct sa_cl100k_planes {
  u64 letter, number, white;
  u64 newline;     /* the bytes 0A and 0D; part of white */
  u64 space;       /* the byte 20; part of white */
  u64 apostrophe;  /* the byte 27 */
  u64 starts;      /* first bytes of characters */
  u64 segments;    /* segment starts, the end of the text included */
} sa_cl100k_planes;

/* Bit 0 of each: the last byte of the previous block. All zero before the first. */
typedef struct sa_cl100k_carry {
  u64 letter, number, space, other;
  u64 other_start;  /* an O that starts a piece */
  u64 blank;        /* white space, no newline */
  u64 white;        /* white space that is not taken */
  u64 newline;      /* a newline that is not taken */
  u64 taken;
  u64 count;        /* numbers in the run, modulo 3 */
  u64 force;        /* bits 0..2: piece starts behind contractions */
} sa_cl100k_carry;

/* *open: bytes that start a piece only if the white space that goes on beyond the next block ends
 * well: sa_cl100k_stops gives its first stop. text: the block's bytes and up to two more. */
SA_HD void sa_cl100k_stops(const sa_cl100k_planes *b, const sa_cl100k_options *o, u64 *stop, u64 *good) {
  *stop = ~b->white | b->newline | b->segments;
  *good = o->whole_end ? ~b->white & ~b->segments : ~b->white | b->segments;
}

SA_HD u64 sa_cl100k_starts(const sa_cl100k_planes *b, const sa_cl100k_planes *next,
                           const sa_cl100k_options *o, const u8 *text, sa_cl100k_carry *carry, u64 *open) {
  u64 inside = ~b->segments, owned = ~b->starts;
  u64 other = ~(b->letter | b->number | b->white), other_before = sa_prev(other, carry->other) & inside;
  u64 line = b->newline & inside;
  u64 taken = sa_flood((line & other_before) | (line & carry->taken), line);
  u64 white = b->white & ~taken, newline = b->newline & ~taken, blank = b->white & ~b->newline;
  u64 white_before = sa_prev(white, carry->white) & inside, blank_before = sa_prev(blank, carry->blank) & inside;
  u64 other_start = b->starts & other & ~(other_before | (sa_prev(b->space, carry->space) & inside));
  u64 prefix = sa_spread(other_start, owned, carry->other_start << 63);
  u64 prefix_before = sa_prev(prefix, carry->other_start) & inside;
  u64 letter_before = sa_prev(b->letter, carry->letter) & inside;
  u64 number_before = sa_prev(b->number, carry->number) & inside;
  u64 letter_start = b->starts & b->letter & ~(letter_before | blank_before | prefix_before);
  u64 number_start = sa_number_starts(b->number, number_before, b->starts, o->numbers, &carry->count);
  u64 ends = b->starts & ~b->white & blank_before;
  u64 ends_next = next->starts & ~next->white & ~next->segments & sa_prev(next->white & ~next->newline, blank >> 63);
  u64 last = sa_last_white(ends, ends_next, b->starts, next->starts);
  u64 behind = b->starts & blank & sa_prev(newline, carry->newline) & inside;
  u64 result, marks, force = carry->force, forced_next = 0;
  *open = 0;
  if (behind) {
    u64 stop, good, stop_next, good_next;
    sa_cl100k_stops(b, o, &stop, &good);
    sa_cl100k_stops(next, o, &stop_next, &good_next);
    behind = sa_runs_good(behind, stop, good, stop_next, good_next, open);
  }
  result = b->segments | other_start | letter_start | number_start | (b->starts & white & ~white_before) | last |
           behind;
  for (marks = b->apostrophe & other_start; marks; marks &= marks - 1) {
    int i = sa_ctz64(marks);
    int length = sa_contraction_any_case(text + i + 1, sa_room(i, b->segments, next->segments));
    if (length) force |= sa_force(i, 1 + length, &forced_next);
  }
  carry->letter = b->letter >> 63;
  carry->number = b->number >> 63;
  carry->space = b->space >> 63;
  carry->other = other >> 63;
  carry->other_start = prefix >> 63;
  carry->blank = blank >> 63;
  carry->white = white >> 63;
  carry->newline = newline >> 63;
  carry->taken = taken >> 63;
  carry->force = forced_next;
  return result | force;
}

#endif
