/* See split.h. */
#include "split.h"

#include <stdlib.h>

#define TOGETHER 4096   /* words found at a time: 256 KB of text */

sa_split *sa_split_new(int32_t scheme, const uint8_t *text, int64_t n) {
  sa_split *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->text = text;
  s->n = n;
  s->words = malloc((size_t)((n + 63) / 64) * sizeof *s->words);
  if (!s->words) {
    free(s);
    return NULL;
  }
  pthread_mutex_init(&s->lock, NULL);
  s->offsets[1] = n;
  sa_pretok_begin(&s->cursor, scheme, text, s->offsets, 1);
  return s;
}

void sa_split_free(sa_split *s) {
  if (!s) return;
  pthread_mutex_destroy(&s->lock);
  free(s->words);
  free(s);
}

/* Finds the first n words. The lock is held. */
static void find(sa_split *s, int64_t n) {
  while (s->known < n) s->known += sa_pretok_next(&s->cursor, s->words + s->known, TOGETHER);
}

/* The first start at or behind `at`; n if there is none. All words before it are found. The lock is held. */
static int64_t next_start(sa_split *s, int64_t at) {
  const int64_t n_words = (s->n + 63) / 64;
  uint64_t mask = ~(uint64_t)0 << (at % 64);
  find(s, at / 64); /* behind a text of whole words none is left to look at */
  for (int64_t k = at / 64; k < n_words; k++, mask = ~(uint64_t)0) {
    find(s, k + 1);
    const uint64_t word = s->words[k] & mask;
    if (word) return k * 64 + __builtin_ctzll(word);
  }
  return s->n;
}

void sa_split_pieces(sa_split *s, int64_t from, int64_t to, int64_t *start, int64_t *end) {
  pthread_mutex_lock(&s->lock);
  *start = next_start(s, from);
  *end = *start < to ? next_start(s, to) : *start;
  pthread_mutex_unlock(&s->lock);
}

void sa_split_words(const sa_split *s, int64_t start, int64_t end, uint64_t *words) {
  const int64_t n = (end - start + 63) / 64, last = (end - 1) / 64;
  const int shift = (int)(start % 64);
  for (int64_t k = 0; k < n; k++) {
    const int64_t at = start / 64 + k;
    words[k] = s->words[at] >> shift;
    if (shift && at < last) words[k] |= s->words[at + 1] << (64 - shift);
  }
}
