/* Piece starts of the o200k family, as mask algebra over one block of 64 bytes.
 *
 *   [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
 *   |[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
 *   |\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
 *
 * Tekken has no contractions and numbers of one. With U, D, X, M = upper or title case, lower case, other
 * letters, marks, and O = none of letter, mark, number, white space:
 *
 *   marks    belong to words, unless an O that doesn't start its piece comes before them: then the run of O
 *            and marks is one piece of punctuation. (An O that starts a piece is the word's prefix.)
 *   taken    newlines behind punctuation, and newlines and slashes behind those
 *   words    runs of U, D, X, M are cut before a U that follows a D (marks and X between them allowed), and
 *            before the U that end the run where an X or M comes before them and no D since the last cut
 *   suffix   an apostrophe behind a word and the letters of a contraction belong to it; then a piece starts
 *
 * Kimi has [\p{Han}]+ before all that, Han is in none of its words, and slashes are not taken. With H = Han:
 *
 *   H        a run is a piece, without those that a piece before it takes
 *   numbers  a piece of them takes an H that is a number; but at its start an H is H
 *   punct    an H that is no letter or number is taken by an O before it, or by the byte 20
 *
 * White space and prefixes are those of rules_cl100k.h.
 */
#ifndef SAPHIRA_SHARED_RULES_O200K_H
#define SAPHIRA_SHARED_RULES_O200K_H

#include "rules_common.h"

typedef struct sa_o200k_options {
  int numbers;   /* characters of a number piece: 3, 1, 0 = no limit */
  int suffixes;  /* words take contractions */
  int han;       /* Kimi: H apart, no slashes */
} sa_o200k_options;

/* The bits of the classes cover every byte of a character. */
typedef struct sa_o200k_planes {
  u64 upper, lower, caseless, mark, number, white;  /* letters and marks without H, where that is apart */
  u64 han, han_other;            /* H; H that is no letter or number */
  u64 newline;                   /* the bytes 0A and 0D; part of white */
  u64 space, apostrophe, slash;  /* the bytes 20, 27, 2F */
  u64 starts;                    /* first bytes of characters */
  u64 segments;                  /* segment starts, the end of the text included */
} sa_o200k_planes;

/* Bit 0 of each: the last byte of the previous block. All zero before the first. */
typedef struct sa_o200k_carry {
  u64 number, space, blank, white, newline, taken, punct, inner, prefix, word, late, early, han;
  u64 count;   /* numbers in the run, modulo 3 */
  u64 force;   /* bits 0..2: piece starts behind contractions */
  u64 suffix;  /* bits 0..1: letters of a contraction that began in the previous block */
} sa_o200k_carry;

/* Where white space (a newline comes later in the run?) and runs of U (does the word end there?) stop. */
SA_HD void sa_o200k_white_stops(const sa_o200k_planes *b, u64 *stop, u64 *good) {
  *stop = ~b->white | b->newline | b->segments;
  *good = ~b->white | b->segments;
}
SA_HD void sa_o200k_upper_stops(const sa_o200k_planes *b, u64 *stop, u64 *good) {
  *stop = ~b->upper | b->segments;
  *good = ~(b->upper | b->lower | b->caseless | b->mark) | b->segments;
}

/* Starts of pieces of three numbers, where an H starts none; *left: first bytes of the H in none. As in
 * sa_number_starts, *count is 0 where the next number starts a piece. */
SA_HD u64 sa_o200k_numbers(const sa_o200k_planes *b, u64 before, u64 *count, u64 *left) {
  u64 first = b->number & b->starts, result = 0, c = *count;
  *left = 0;
  for (; first; first &= first - 1) {
    u64 bit = first & (0 - first);
    if (~before & bit) c = 0;
    if (c == 0 && (b->han & bit)) {
      *left |= bit;
      continue;
    }
    if (c == 0) result |= bit;
    c = c == 2 ? 0 : c + 1;
  }
  *count = c;
  return result;
}

/* open_white, open_upper: bytes that start a piece only if the run they begin, which goes on beyond the
 * next block, ends well: the stops above. text: the block's bytes and up to two more. */
SA_HD u64 sa_o200k_starts(const sa_o200k_planes *b, const sa_o200k_planes *next, const sa_o200k_options *o,
                          const u8 *text, sa_o200k_carry *carry, u64 *open_white, u64 *open_upper) {
  u64 inside = ~b->segments, owned = ~b->starts;
  u64 all_han = o->han ? b->han : 0, han_other = o->han ? b->han_other : 0;
  u64 other = ~(b->upper | b->lower | b->caseless | b->mark | b->number | b->white | all_han);
  u64 loose = b->mark | han_other;  /* punctuation where it lies in a run of that */
  u64 line = b->newline & inside, takable = (b->newline | b->slash) & inside;
  u64 space_before = sa_prev(b->space, carry->space) & inside;
  u64 taken = sa_flood((line & sa_prev(other, carry->punct)) | (takable & carry->taken), takable);
  u64 punct = other & ~taken, inner = 0, result, force = carry->force, suffix = carry->suffix, forced_next = 0,
      suffix_next = 0;
  *open_white = *open_upper = 0;
  for (;;) {
    /* inner: O and marks in a run from the first O that doesn't start its piece. */
    u64 run = (punct | loose) & inside, more;
    u64 seeds = b->starts & (punct | han_other) & inside & (sa_prev(punct, carry->punct) | space_before);
    inner = sa_flood(seeds | (run & carry->inner), run);
    more = line & sa_prev(loose & inner, 0) & ~taken;
    if (!more) break;
    /* Newlines behind such marks are taken as well, which may take slashes out of later runs: one by one. */
    taken |= sa_flood(more & (0 - more), takable);
    punct = other & ~taken;
  }
  {
    u64 mark = b->mark & ~inner, caseless = b->caseless | mark, lower = b->lower, upper = b->upper;
    u64 word = upper | lower | caseless, all_punct = punct | (loose & inner);
    u64 punct_start = b->starts & punct & ~((sa_prev(all_punct, carry->punct) & inside) | space_before);
    u64 white = b->white & ~taken, newline = b->newline & ~taken, blank = b->white & ~b->newline;
    u64 white_before = sa_prev(white, carry->white) & inside, blank_before = sa_prev(blank, carry->blank) & inside;
    u64 number_before = sa_prev(b->number, carry->number) & inside;
    u64 ends, ends_next, last, behind, prefix, word_start, late, early, cut, tail, number_start, han = 0;
    if (o->suffixes) {
      u64 marks = b->apostrophe & punct_start & inside & sa_prev(word & ~suffix, carry->word);
      for (; marks; marks &= marks - 1) {
        int i = sa_ctz64(marks), length;
        if (force >> i & 1) continue;  /* behind a suffix: a word of its own */
        length = sa_contraction_any_case(text + i + 1, sa_room(i, b->segments, next->segments));
        if (length) {
          punct_start &= ~((u64)1 << i);
          suffix |= sa_force(i, 1, &suffix_next);
          if (length == 2) suffix |= sa_force(i, 2, &suffix_next);
          force |= sa_force(i, 1 + length, &forced_next);
        }
      }
    }
    word &= ~suffix;
    lower &= ~suffix;
    caseless &= ~suffix;
    upper &= ~suffix;
    prefix = sa_spread(punct_start, owned, carry->prefix << 63);
    word_start = b->starts & word &
                 ~((sa_prev(word, carry->word) & inside) | blank_before | (sa_prev(prefix, carry->prefix) & inside));
    /* late: D, and X and M behind it; early: X and M before any D */
    late = lower | sa_flood(caseless & inside & sa_prev(lower, carry->late), caseless & inside);
    early = caseless & ~late;
    cut = b->starts & upper & inside & sa_prev(late, carry->late);
    tail = b->starts & upper & inside & sa_prev(early, carry->early);
    if (tail) {
      u64 stop, good, stop_next, good_next;
      sa_o200k_upper_stops(b, &stop, &good);
      sa_o200k_upper_stops(next, &stop_next, &good_next);
      tail = sa_runs_good(tail, stop, good, stop_next, good_next, open_upper);
    }
    ends = b->starts & ~b->white & blank_before;
    ends_next = next->starts & ~next->white & ~next->segments & sa_prev(next->white & ~next->newline, blank >> 63);
    last = sa_last_white(ends, ends_next, b->starts, next->starts);
    behind = b->starts & blank & sa_prev(newline, carry->newline) & inside;
    if (behind) {
      u64 stop, good, stop_next, good_next;
      sa_o200k_white_stops(b, &stop, &good);
      sa_o200k_white_stops(next, &stop_next, &good_next);
      behind = sa_runs_good(behind, stop, good, stop_next, good_next, open_white);
    }
    if (all_han) {
      number_start = sa_o200k_numbers(b, number_before, &carry->count, &han);
      han |= b->starts & all_han & ~b->number & ~(han_other & inner);
    } else {
      number_start = sa_number_starts(b->number, number_before, b->starts, o->numbers, &carry->count);
    }
    result = b->segments | punct_start | word_start | cut | tail | last | behind | (b->starts & white & ~white_before) |
             number_start;
    if (o->han) {
      han = sa_spread(han, owned, carry->han << 63);
      result |= b->starts & han & ~(sa_prev(han, carry->han) & inside);
      carry->han = han >> 63;
    }
    carry->number = b->number >> 63;
    carry->space = b->space >> 63;
    carry->blank = blank >> 63;
    carry->white = white >> 63;
    carry->newline = newline >> 63;
    carry->taken = taken >> 63;
    carry->punct = all_punct >> 63;
    carry->inner = inner >> 63;
    carry->prefix = prefix >> 63;
    carry->word = word >> 63;
    carry->late = late >> 63;
    carry->early = early >> 63;
    carry->force = forced_next;
    carry->suffix = suffix_next;
  }
  return result | force;
}

#endif
