/* Stage bpe: exact byte-pair merging, the lowest rank in the whole piece first, leftmost first.
 *
 * Two facts carry the design (both hold for any total order of pairs with leftmost ties):
 * 1. A symbol on a span arises only by the merges that the span's bytes make alone. So every token has at
 *    most one pair that ever makes it, the last merge of its own bytes, and all other entries of a merge
 *    list can be dropped at load. Tokens whose own bytes do not merge to them are unreachable.
 * 2. A sequence of reachable tokens is the encoding of its text exactly if each adjacent pair is the
 *    encoding of its two tokens' bytes. So a long piece is encoded window by window, and two windows join
 *    at any token boundary where the pair check holds: memory is bounded, the cost per byte flat.
 */
#ifndef SA_BPE_H
#define SA_BPE_H

#include <stdint.h>

#include "pairs.h"
#include "saphira.h"
#include "vocab.h"

#define SA_MAX_IDS ((1 << 20) - 1)     /* a pair of ids and a rank share one 64-bit entry, all ones where it is empty */
#define SA_MAX_MERGES ((1 << 24) - 1)
#define SA_MAX_WINDOW ((int64_t)1 << 30) /* positions and list entries of a window are 32-bit */

typedef struct sa_bpe_tables {
  uint32_t byte_ids[256];
  uint32_t byte_ids_end[256];  /* of a piece's last byte; the same without an end-of-word suffix */
  int32_t has_ends;
  uint8_t left_out[256];       /* 1: a byte without a symbol, left out of its piece before anything merges */
  int32_t leaves_out;          /* there are such bytes */
  uint32_t *byte_pair_rank;    /* 65,536: rank of the pair of two bytes' symbols, at first << 8 | second */
  uint64_t *pairs;             /* slots: left 20 bits, right 20, rank 24; all ones = empty */
  uint32_t pair_shift;         /* 64 - log2(slots) */
  uint16_t *displace;          /* a perfect hash: what to add to a key's slot, by another part of its hash; NULL: */
  uint32_t displace_shift;     /*     open addressing */
  uint32_t *result;            /* rank → id made */
  int64_t n_ranks;
  uint16_t *length;            /* id → bytes of the token */
  int32_t monotone;            /* no merge makes a pair of lower rank: all of a rank can merge at once */
  int32_t longest;             /* bytes of the longest token */
} sa_bpe_tables;

/* Working memory of one thread; grows to the largest window met. */
typedef struct sa_merge_scratch {
  void *memory;
  int64_t symbols;             /* capacity in symbols */
  uint32_t *heads;             /* one list head per rank, and two levels of bitmap over them */
  uint64_t *busy, *busy_words;
  int64_t n_ranks;
  uint32_t *out;               /* ids of the last piece */
  int64_t out_capacity;
  uint8_t *kept;               /* a piece without the bytes left out */
  int64_t kept_capacity;
  int64_t steps;               /* merges done since the scratch was made */
} sa_merge_scratch;

/* Fills tables with the merges that can fire, and reachable[id]. Returns SA_OK or an error with its text
 * (bpe_build.c). vocab holds the plan's tokens. */
int32_t sa_bpe_build(sa_bpe_tables *tables, const sa_plan *plan, const sa_vocab *vocab,
                     uint8_t *reachable, char *error, int64_t capacity);
void sa_bpe_release(sa_bpe_tables *tables);

/* Encodes n bytes as one window, stopping once `stop` symbols are left (1: never). ends: the last byte is a
 * piece's last. out: n ids at most. Returns the number of ids, -1 out of memory. */
int64_t sa_bpe_window(const sa_bpe_tables *tables, sa_merge_scratch *scratch, const uint8_t *bytes, int64_t n,
                      int ends, int64_t stop, uint32_t *out);

/* Encodes one piece of n >= 1 bytes; ids are in scratch->out. Returns their number (0: all bytes are left out),
 * -1 out of memory. */
int64_t sa_bpe_encode(const sa_bpe_tables *tables, sa_merge_scratch *scratch, const uint8_t *piece,
                      int64_t n);
void sa_merge_scratch_release(sa_merge_scratch *scratch);

/* Whether some of the bytes are left out. */
static inline int sa_any_left_out(const sa_bpe_tables *t, const uint8_t *bytes, int64_t n) {
  for (int64_t i = 0; t->leaves_out && i < n; i++)
    if (t->left_out[bytes[i]]) return 1;
  return 0;
}

static inline uint32_t sa_pair_rank(const sa_bpe_tables *t, uint32_t left, uint32_t right) {
  return sa_pair_find(t->pairs, t->pair_shift, t->displace, t->displace_shift, left, right);
}

#endif
