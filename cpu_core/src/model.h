/* The immutable tables of one tokenizer, a part per stage. Shared by any number of threads. */
#ifndef SA_MODEL_H
#define SA_MODEL_H

#include "bpe.h"
#include "cache.h"
#include "special.h"
#include "vocab.h"

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
};

#endif
