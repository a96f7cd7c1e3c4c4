/* One long row over several threads: its piece starts are found once, from its first byte on and for whoever needs
 * them first, and any thread then encodes the pieces that start in its part of the row. So the cuts are exact for
 * every scheme. Finding starts is about a seventh of the work; the rest goes side by side. */
#ifndef SA_SPLIT_H
#define SA_SPLIT_H

#include <pthread.h>

#include "pretok.h"

typedef struct sa_split {
  const uint8_t *text;
  int64_t n;
  int64_t offsets[2];     /* what the cursor walks: 0, n */
  pthread_mutex_t lock;
  sa_pretok_cursor cursor;
  uint64_t *words;        /* piece starts, bit i is byte i */
  int64_t known;          /* words of them found so far */
} sa_split;

/* The row text[0, n), n >= 1, as one segment of a compiled scheme. NULL: out of memory. */
sa_split *sa_split_new(int32_t scheme, const uint8_t *text, int64_t n);
void sa_split_free(sa_split *split);

/* The pieces that start in [from, to): where the first one starts, and where the one behind the last does (n if none
 * does); both are the same place if there are none. Any thread, any order; to <= n. */
void sa_split_pieces(sa_split *split, int64_t from, int64_t to, int64_t *start, int64_t *end);

/* Copies the starts of [start, end), as sa_split_pieces gave it, with `start` at bit 0: (end - start + 63) / 64 words;
 * bits beyond mean nothing. */
void sa_split_words(const sa_split *split, int64_t start, int64_t end, uint64_t *words);

#endif
