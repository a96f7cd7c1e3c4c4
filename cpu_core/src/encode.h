/* From rows of text to ids, on one thread: chunk by chunk through pretok, cache, vocab and bpe. */
#ifndef SA_ENCODE_H
#define SA_ENCODE_H

#include "cache.h"
#include "hotpath.h"
#include "model.h"

#define SA_CHUNK_BLOCKS (SA_CHUNK_BYTES / 64)

/* What the tables know a piece by: the words of a short one's key, or low alone: a longer one's tag, 0 of one that
 * is in no table. */
typedef struct sa_key {
  uint64_t low, high;
} sa_key;

/* A piece that no table has, waiting for others to be merged with. */
typedef struct sa_pending {
  uint32_t piece;         /* its number in the chunk */
  sa_key key;
} sa_pending;

#define SA_CHUNK_PIECES (SA_CHUNK_BYTES + 128) /* room for them, the carried one, and what vectors write too many */

/* The pieces of some text. */
typedef struct sa_chunk {
  int64_t at;                          /* where starts count from */
  int64_t count, misses;
  int64_t missed_bytes;                /* of the missed pieces: they have as many ids at most */
  uint32_t starts[SA_CHUNK_PIECES];    /* count + 1 */
  uint64_t values[SA_CHUNK_PIECES];
  uint32_t missed[SA_CHUNK_PIECES];    /* pieces that the hot tables do not have, */
  sa_key keys[SA_CHUNK_PIECES];        /* and their keys */
} sa_chunk;

/* What one thread needs; reused from call to call. */
typedef struct sa_context {
  const sa_model *model;
  sa_cache cache;
  sa_merge_scratch merge;
  struct sa_draft *work;                   /* of a model with a program */
  int64_t pieces, misses;
  uint64_t bits[SA_CHUNK_BLOCKS];
  sa_chunk chunks[2];
  int n_pending;
  sa_pending pending[SA_MERGE_WORDS];
  sa_merge_word words[SA_MERGE_WORDS];
} sa_context;

/* text: how many bytes are to be encoded with it, as far as known. NULL: out of memory. */
sa_context *sa_context_new(const sa_model *model, int64_t cache_bytes, int64_t text);
void sa_context_free(sa_context *context);

/* Encodes n_rows contiguous rows, text[offsets[i], offsets[i+1]), as they are: no added tokens, no normalizer.
 * ids: room for one id per byte of text. row_ids, if not NULL: row_ids[i] = first + ids up to the end of row i.
 * Returns the number of ids, or minus a status. */
int64_t sa_encode_rows(sa_context *context, const uint8_t *text, const int64_t *offsets, int64_t n_rows,
                       uint32_t *ids, int64_t *row_ids, int64_t first);

/* The same for part of a row: text[0, n) with the starts of its pieces, n / 64 words or one more, bits beyond n ignored.
 * There is a start at byte 0, and byte n is the row's end or another one. No program. */
int64_t sa_encode_cut(sa_context *context, const uint8_t *text, int64_t n, const uint64_t *starts, uint32_t *ids);

#endif
