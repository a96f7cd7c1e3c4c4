/* Stage vocab: the tokens' bytes, and the token of a byte string. */
#ifndef SA_VOCAB_H
#define SA_VOCAB_H

#include <stdint.h>

#include "saphira.h"

#define SA_MAX_TOKEN_BYTES 4096
#define SA_NO_ID UINT32_MAX

typedef struct sa_vocab {
  int64_t n_ids;
  int64_t *offsets;        /* n_ids + 1 into bytes */
  uint8_t *bytes;
  uint8_t *ends;           /* id → 1: carries the end-of-word suffix */
  uint64_t *slots;         /* open addressing: hash, high 32 bits, and id; all ones = empty */
  uint32_t shift;          /* 64 - log2(slots) */
} sa_vocab;

/* A hash that can be taken of a prefix and a suffix of a string whose own is known: the polynomial
 * sum of byte[i] * BASE^(n - 1 - i) modulo 2^64. Scatter it before use. */
#define SA_VOCAB_BASE 0x9E3779B97F4A7C55u

static inline uint64_t sa_vocab_hash(const uint8_t *bytes, int64_t n) {
  uint64_t h = 0;
  for (int64_t i = 0; i < n; i++) h = h * SA_VOCAB_BASE + bytes[i] + 1;
  return h;
}

/* SA_OK, or an error with its text. Of two ids with the same bytes the lower is found. */
int32_t sa_vocab_build(sa_vocab *vocab, const sa_plan *plan, char *error, int64_t capacity);
void sa_vocab_release(sa_vocab *vocab);

/* The id of a byte string whose sa_vocab_hash is hash, with the suffix or without; SA_NO_ID if it is no token. */
uint32_t sa_vocab_find(const sa_vocab *vocab, const uint8_t *bytes, int64_t n, uint64_t hash, int ends);

#endif
