/* Stage special: which added token stands somewhere in a text, and what becomes of the match.
 *
 * The includer says first what is beside a match, by a type and four functions:
 *   sa_beside                                   the text, and whatever is needed to look at it
 *   i64 sa_white_start(t, lo, at, hi)           where the white space that ends at `at` starts, in the text [lo, hi)
 *   i64 sa_white_end(t, at, hi)                 where the white space that starts at `at` ends
 *   int sa_word_before(t, lo, at, hi)           whether the character before `at` is one of \w
 *   int sa_word_after(t, at, hi)                whether the one at `at` is
 */
#ifndef SAPHIRA_SHARED_ADDED_H
#define SAPHIRA_SHARED_ADDED_H

#include "types.h"

/* As in saphira.h. */
#define SA_SPECIAL_PLAIN 0
#define SA_SPECIAL_PARSE 1
#define SA_SPECIAL_HF_PLAIN 2
#define SA_SPECIAL_ERROR 3
#define SA_ADDED_SPECIAL 1
#define SA_ADDED_NORMALIZED 2
#define SA_ADDED_LSTRIP 4
#define SA_ADDED_RSTRIP 8
#define SA_ADDED_SINGLE_WORD 16

/* The longest content that stands at text[at] (at < n), or -1. order: n_order indices of contents, sorted by
 * content; the list is narrowed byte by byte. any: the first that is found will do. */
SA_HD i64 sa_content_at(const i64 *offsets, const u8 *bytes, const u32 *order, i64 n_order, const u8 *text, i64 at,
                        i64 n, int any) {
  i64 lo = 0, hi = n_order, found = -1, depth;
  for (depth = 0; lo < hi && at + depth < n; depth++) {
    u8 byte = text[at + depth];
    /* [lo, hi) share the first `depth` bytes; those that end there come first */
    i64 low = lo, high = hi;
    while (low < high) {
      i64 mid = (low + high) / 2;
      u32 i = order[mid];
      if (offsets[i + 1] - offsets[i] <= depth || bytes[offsets[i] + depth] < byte) low = mid + 1;
      else high = mid;
    }
    lo = low, high = hi;
    while (low < high) {
      i64 mid = (low + high) / 2;
      if (bytes[offsets[order[mid]] + depth] <= byte) low = mid + 1;
      else high = mid;
    }
    hi = low;
    if (lo < hi && offsets[order[lo] + 1] - offsets[order[lo]] == depth + 1) {
      found = order[lo];
      if (any) break;
    }
  }
  return found;
}

typedef struct sa_verdict {
  i64 start, end; /* of the span, if it is one; may be empty with SA_SPECIAL_ERROR */
  int span;       /* the match becomes its token; else it is text, whose bytes it uses up all the same */
  int hit;        /* it counts as a hit */
} sa_verdict;

/* Whether the option leaves a match as ordinary text. */
SA_HD int sa_passed_over(int special, u32 flags, int blank) {
  return special == SA_SPECIAL_PLAIN ? !blank : special == SA_SPECIAL_HF_PLAIN && (flags & SA_ADDED_SPECIAL);
}

/* What becomes of the match [at, end) in the text [lo, hi). from: where the last span ended, lo at first.
 * flags, blank: of its token. */
SA_HD sa_verdict sa_special_verdict(sa_beside t, int special, u32 flags, int blank, i64 lo, i64 from, i64 at, i64 end,
                                    i64 hi) {
  sa_verdict v = {at, end, 0, 1};
  if (sa_passed_over(special, flags, blank)) return v;
  if (flags & SA_ADDED_SINGLE_WORD && (sa_word_before(t, lo, at, hi) || sa_word_after(t, end, hi))) {
    v.hit = 0;
    return v;
  }
  /* Neither looks again at what the last token took, or white space that is itself tokens would cost its square:
   * before `from` all of it is white space, where this match reaches into it. */
  if (flags & SA_ADDED_LSTRIP) v.start = at <= from ? from : sa_white_start(t, from, at, hi);
  if (flags & SA_ADDED_RSTRIP) v.end = sa_white_end(t, end < from ? from : end, hi);
  v.span = 1;
  if (v.end <= v.start) { /* lstrip within what the last token's rstrip took: nothing is left of the match */
    v.end = v.start;
    v.span = special == SA_SPECIAL_ERROR && !blank;
  }
  return v;
}

#endif
