/* Piece starts of DeepSeek-V3's three patterns in a row, as mask algebra over one block of 64 bytes.
 *
 *   \p{N}{1,3}
 *   [\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+
 *   [!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+
 *   | ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
 *
 * The first two cut the text into segments: the caller sets segment bits where runs of numbers and of their
 * characters start and end. Pieces of three numbers are whole to what follows, so their starts need none.
 * The third leaves gaps. Its local form, with W = letter or mark, P = punctuation or symbol, O = no W, P,
 * number or white space:
 *
 *   taken    newlines right behind a P belong to its piece
 *   P        starts a piece unless a P or the byte 20 is before it
 *   W        starts a piece unless a W, an O, or white space that is no newline is before it
 *   sign     an ASCII P that starts a piece takes the ASCII letters behind it, and no more of the W
 *   O        a run is a gap, but its last character belongs to a W behind it
 *   white    as in rules_cl100k.h
 */
#ifndef SAPHIRA_SHARED_RULES_DEEPSEEK_H
#define SAPHIRA_SHARED_RULES_DEEPSEEK_H

#include "rules_common.h"

/* The bits of the classes cover every byte of a character. */
typedef struct sa_deepseek_planes {
  u64 word, punct, number, white;
  u64 apart;       /* what the second pattern matches */
  u64 newline;     /* the bytes 0A and 0D; part of white */
  u64 space;       /* the byte 20; part of white */
  u64 ascii;       /* bytes below 80 */
  u64 starts;      /* first bytes of characters */
  u64 segments;    /* segment starts, the end of the text included */
} sa_deepseek_planes;

/* Bit 0 of each: the last byte of the previous block. All zero before the first. */
typedef struct sa_deepseek_carry {
  u64 word, punct, number, other, space, blank, white, newline, taken;
  u64 sign;        /* an ASCII P that starts a piece */
  u64 tail;        /* a letter that it takes */
  u64 count;       /* numbers in the run, modulo 3 */
} sa_deepseek_carry;

/* Where white space stops, and whether no newline comes later in the run. */
SA_HD void sa_deepseek_stops(const sa_deepseek_planes *b, u64 *stop, u64 *good) {
  *stop = ~b->white | b->newline | b->segments;
  *good = ~b->white | b->segments;
}

SA_HD u64 sa_deepseek_other(const sa_deepseek_planes *b) { return ~(b->word | b->punct | b->number | b->white); }

/* *open: as in rules_cl100k.h. */
SA_HD u64 sa_deepseek_starts(const sa_deepseek_planes *b, const sa_deepseek_planes *next, sa_deepseek_carry *carry,
                             u64 *open) {
  u64 inside = ~b->segments, other = sa_deepseek_other(b), line = b->newline & inside;
  u64 word_before = sa_prev(b->word, carry->word) & inside, other_before = sa_prev(other, carry->other) & inside;
  u64 punct_before = sa_prev(b->punct, carry->punct) & inside;
  u64 taken = sa_flood((line & punct_before) | (line & carry->taken), line);
  u64 white = b->white & ~taken, newline = b->newline & ~taken, blank = b->white & ~b->newline;
  u64 white_before = sa_prev(white, carry->white) & inside, blank_before = sa_prev(blank, carry->blank) & inside;
  u64 punct_start = b->starts & b->punct & ~(punct_before | (sa_prev(b->space, carry->space) & inside));
  u64 sign = punct_start & b->ascii, letters = b->word & b->ascii & inside;
  u64 first = letters & sa_prev(sign, carry->sign);
  u64 tail = sa_flood(first | (letters & carry->tail), letters);
  u64 word_start = b->starts & b->word &
                   ((~(word_before | other_before | blank_before) & ~first) |
                    (sa_prev(tail, carry->tail) & ~letters & inside));
  u64 number_start = sa_number_starts(b->number, sa_prev(b->number, carry->number) & inside, b->starts, 3,
                                      &carry->count);
  /* What is before the ends belongs to them, or is white space that they cut off. */
  u64 ends = b->starts & ((~b->white & blank_before) | (b->word & other_before));
  u64 ends_next = next->starts & ~next->segments &
                  ((~next->white & sa_prev(next->white & ~next->newline, blank >> 63)) |
                   (next->word & sa_prev(sa_deepseek_other(next), other >> 63)));
  u64 last = sa_last_white(ends, ends_next, b->starts, next->starts);
  u64 behind = b->starts & blank & sa_prev(newline, carry->newline) & inside;
  *open = 0;
  if (behind) {
    u64 stop, good, stop_next, good_next;
    sa_deepseek_stops(b, &stop, &good);
    sa_deepseek_stops(next, &stop_next, &good_next);
    behind = sa_runs_good(behind, stop, good, stop_next, good_next, open);
  }
  carry->word = b->word >> 63;
  carry->punct = b->punct >> 63;
  carry->number = b->number >> 63;
  carry->other = other >> 63;
  carry->space = b->space >> 63;
  carry->blank = blank >> 63;
  carry->white = white >> 63;
  carry->newline = newline >> 63;
  carry->taken = taken >> 63;
  carry->sign = sign >> 63;
  carry->tail = tail >> 63;
  return b->segments | punct_start | word_start | number_start | (b->starts & other & ~other_before) |
         (b->starts & white & ~white_before) | last | behind;
}

#endif
