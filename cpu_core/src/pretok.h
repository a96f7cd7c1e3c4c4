/* Stage pretok: piece starts of rows of text, block after block. */
#ifndef SAPHIRA_PRETOK_H
#define SAPHIRA_PRETOK_H

#include "backend.h"

/* Where a pass over rows stands. Filled by sa_pretok_begin; plain memory, nothing to free. */
struct sa_pretok_cursor {
  const struct sa_backend *backend;
  const sa_alphabet *alphabet;
  const sa_scheme *scheme;
  sa_stream stream;             /* reads one block ahead of the words given */
  int64_t given;                /* words given so far */
  union {
    struct {
      sa_gpt2_planes planes;    /* of the next block to give */
      sa_gpt2_carry carry;
    } gpt2;
    struct {
      sa_cl100k_planes planes;
      sa_cl100k_carry carry;
    } cl100k;
    struct {
      sa_o200k_planes planes;
      sa_o200k_carry carry;
    } o200k;
    struct {
      sa_deepseek_planes planes;
      sa_deepseek_carry carry;
    } deepseek;
  } rules;
  int64_t stop_at[2];           /* byte of the block where the last run looked through stops */
  int32_t stop_good[2];         /* and whether it ends as the rule wants; by kind of run */
};

/* Rows i = text[offsets[i], offsets[i+1]), contiguous; nothing outside text[offsets[0], offsets[n_rows])
 * is read. scheme: below sa_scheme_count(). */
void sa_pretok_begin(sa_pretok_cursor *c, int32_t scheme, const uint8_t *text, const int64_t *offsets,
                     int64_t n_rows);

/* The same for text[0, n) cut into segments by a bitmap: n / 64 + 1 words, the bit of byte n set. */
void sa_pretok_begin_words(sa_pretok_cursor *c, int32_t scheme, const uint8_t *text, int64_t n,
                           const uint64_t *words);

/* Fills up to max_blocks words of piece starts: bit 0 of the first word of all is byte offsets[0].
 * Each row is a segment. Returns the words written, 0 at the end; bits beyond the text are 0. The cost is
 * linear in the text whatever is in it. */
int64_t sa_pretok_next(sa_pretok_cursor *c, uint64_t *starts, int64_t max_blocks);

#endif
