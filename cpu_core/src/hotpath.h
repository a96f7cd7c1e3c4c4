/* The part of the encoder that every piece goes through, compiled once per instruction set. */
#ifndef SA_HOTPATH_H
#define SA_HOTPATH_H

#include "bpe.h"
#include "cache.h"

#define SA_SHORT_SYMBOLS 64   /* up to here scanning for the lowest rank beats keeping lists */
#define SA_MERGE_WORDS 16 /* pieces merged side by side; with 8, cold multiscript takes 7% longer, 32 are no better */

/* A piece being merged. Symbols stay where their first byte was; rank[i] is that of the pair that starts there,
 * none where there is no symbol or no pair. */
typedef struct sa_merge_word {
  const uint8_t *bytes;
  int32_t n;                  /* 1 .. SA_SHORT_SYMBOLS bytes */
  int32_t count;              /* out: ids, in symbol[0 .. count) */
  uint32_t rank[SA_SHORT_SYMBOLS];
  uint32_t symbol[SA_SHORT_SYMBOLS + 1];
  uint8_t next[SA_SHORT_SYMBOLS + 1], before[SA_SHORT_SYMBOLS + 1];
} sa_merge_word;

struct sa_hot_path {
  /* Looks up pieces [0, n) in the hot tables: piece i is text[starts[i], starts[i + 1]), at least 16 bytes of
   * text are readable from each start, 8 from the last piece's end. Fills values (0: not there) and lists the misses;
   * returns how many. */
  int64_t (*probe)(const sa_cache *cache, const uint8_t *text, const uint32_t *starts, int64_t n,
                   uint64_t *values, uint32_t *missed);
  /* Writes the ids of n values to out, which has room for one id per byte of text from their first piece on; left:
   * bytes of text behind their last piece. Returns the end of the ids. */
  uint32_t *(*emit)(const uint32_t *spill, const uint64_t *values, int64_t n, uint32_t *out, int64_t left);
  /* Exact merging of some pieces side by side, so that their look-ups are on their way together, until no pair
   * merges or `stop` symbols of a piece are left; ends: the last byte of each is a piece's last. Adds the merges
   * done to *steps. */
  void (*merge)(const sa_bpe_tables *tables, sa_merge_word *words, int n_words, int ends, int64_t stop,
                int64_t *steps);
};

/* That of the instruction set in use. */
const struct sa_hot_path *sa_hot(void);

#endif
