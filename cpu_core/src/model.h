/* The immutable tables of one tokenizer, a part per stage. Shared by any number of threads. */
#ifndef SA_MODEL_H
#define SA_MODEL_H

#include "bpe.h"
#include "cache.h"
#include "special.h"
#include "vocab.h"

#define SA_LONG_ONES 65536 /* bits of a filter */

struct sa_model {
  int32_t scheme;
  sa_program *program;        /* splits text if not NULL, else the scheme does */
  sa_normalizer *normalizer;  /* NULL: none */
  int32_t add_prefix_space;
  int32_t whole_piece_first;
  sa_added added;
  sa_bpe_tables bpe;
  sa_vocab vocab;
  uint8_t *whole;     /* id → 1: a piece with these bytes is this token */
  sa_model_facts facts;
  sa_map16 pieces;  /* these tokens, of up to 15 bytes, with their values */
  uint64_t *short_ones;  /* a bit for each of them, at the highest short_bits bits of its hash: where there is none, */
  uint32_t short_bits;   /* the table need not be looked at */
  uint64_t long_ones[SA_LONG_ONES / 64]; /* of the others: a bit for each, at sa_long_one */
};

/* The bit of a token, or piece, of n > SA_KEY16_BYTES bytes: hardly a piece is a token, and few have a token's bit. */
static inline uint64_t sa_long_one(const uint8_t *bytes, int64_t n) {
  return ((sa_load_word(bytes) ^ (uint64_t)n << 56) * 0x9E3779B97F4A7C15u) >> 48;
}

#endif
