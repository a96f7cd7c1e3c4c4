/* The part of the encoder that every piece goes through, compiled once per instruction set. */
#ifndef SA_HOTPATH_H
#define SA_HOTPATH_H

#include "cache.h"

struct sa_hot_path {
  /* Looks up pieces [0, n) in the hot tables: piece i is text[starts[i], starts[i + 1]), at least 16 bytes of
   * text are readable from each start, 8 from the last piece's end. Fills values (0: not there) and lists the misses; returns how many. */
  int64_t (*probe)(const sa_cache *cache, const uint8_t *text, const uint32_t *starts, int64_t n,
                   uint64_t *values, uint32_t *missed);
  /* Writes the ids of n values to out, which has room for one id per byte of text from their first piece on; left:
   * bytes of text from the start of their last piece on. Returns the end of the ids. */
  uint32_t *(*emit)(const uint32_t *spill, const uint64_t *values, int64_t n, uint32_t *out, int64_t left);
};

#endif
