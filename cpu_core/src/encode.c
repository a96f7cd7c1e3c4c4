/* See encode.h. */
#include "encode.h"

#include <stdlib.h>
#include <string.h>

#include "consumers.h"
#include "hotpath.h"
#include "pretok.h"

#define RESOLVE_TOGETHER 16

sa_context *sa_context_new(const sa_model *model, int64_t cache_bytes) {
  sa_context *c = calloc(1, sizeof *c);
  if (!c) return NULL;
  c->model = model;
  c->work = model->program ? calloc(1, sizeof *c->work) : NULL;
  if (!sa_cache_init(&c->cache, cache_bytes) || (model->program && !c->work)) {
    sa_context_free(c);
    return NULL;
  }
  return c;
}

void sa_context_free(sa_context *c) {
  if (!c) return;
  sa_cache_release(&c->cache);
  sa_merge_scratch_release(&c->merge);
  if (c->work) sa_draft_release(c->work);
  free(c->work);
  free(c);
}

/* sa_load_word where fewer than 8 bytes may be readable. */
static inline uint64_t load_upto8(const uint8_t *p, int64_t n) {
  uint8_t bytes[8] = {0};
  memcpy(bytes, p, (size_t)(n < 8 ? n : 8));
  return sa_load_word(bytes);
}

/* The key of a piece of n <= SA_KEY16_BYTES bytes, or the hash of one of up to SA_CACHE_LONGEST. */
static inline sa_key key_of(const uint8_t *piece, int64_t n, const uint8_t *end) {
  sa_key key = {0, 0, 0};
  const int room = end - piece >= 16;
  if (n <= SA_KEY8_BYTES) {
    key.low = sa_key8(room ? sa_load_word(piece) : load_upto8(piece, n), (uint64_t)n);
  } else if (n <= SA_KEY16_BYTES) {
    key.low = sa_load_word(piece);
    key.high = sa_key16_high(room ? sa_load_word(piece + 8) : load_upto8(piece + 8, n - 8), (uint64_t)n);
  } else if (n <= SA_CACHE_LONGEST) {
    key.hash = sa_hash_bytes(piece, (u64)n);
  }
  return key;
}

/* Starts to fetch what find_value will look at. */
static inline void prefetch(const sa_context *c, const sa_key *key, int64_t n) {
  if (n <= SA_KEY16_BYTES) {
    sa_map16_prefetch(&c->model->pieces, key->low, key->high);
    if (c->cache.on) sa_map16_prefetch(&c->cache.back, key->low, key->high);
  } else if (c->cache.on) {
    sa_map_long_prefetch(&c->cache.longer, key->hash);
  }
}

/* The value of a piece that the hot tables do not have, from the tables behind them and the vocabulary. 0: it has
 * to be merged. */
static uint64_t find_value(const sa_context *c, const sa_key *key, const uint8_t *piece, int64_t n) {
  const sa_model *m = c->model;
  uint64_t value = 0;
  if (n <= SA_KEY16_BYTES) {
    value = sa_map16_find(&m->pieces, key->low, key->high);
    return !value && c->cache.on ? sa_map16_find(&c->cache.back, key->low, key->high) : value;
  }
  if (n <= SA_CACHE_LONGEST && c->cache.on) value = sa_cache_find_long(&c->cache, key->hash, piece, (uint32_t)n);
  if (!value && n <= m->bpe.longest) {
    const uint32_t id = sa_vocab_find(&m->vocab, piece, n, sa_vocab_hash(piece, n), m->bpe.has_ends);
    if (id != SA_NO_ID && m->whole[id]) value = sa_value(&id, 1);
  }
  return value;
}

/* Puts a value in the hot tables. */
static inline uint64_t warm(sa_context *c, const sa_key *key, int64_t n, uint64_t value) {
  sa_cache *cache = &c->cache;
  if (!cache->on) return value;
  if (n <= SA_KEY8_BYTES) sa_hot8_put(sa_hot8(cache, sa_hash8(key->low)), key->low, value);
  else if (n <= SA_KEY16_BYTES)
    sa_hot16_put(sa_hot16(cache, sa_hash16(key->low, key->high)), key->low, key->high, value);
  return value;
}

/* The value of ids that were merged, put in all tables. */
static uint64_t keep(sa_context *c, const sa_key *key, const uint8_t *piece, int64_t n, const uint32_t *ids,
                     int64_t count) {
  sa_cache *cache = &c->cache;
  const uint64_t value = sa_cache_value(cache, ids, count);
  if (!cache->on) return value;
  if (n <= SA_KEY16_BYTES) sa_cache_put(cache, key->low, key->high, value);
  else if (n <= SA_CACHE_LONGEST) sa_cache_put_long(cache, key->hash, piece, (uint32_t)n, value);
  return warm(c, key, n, value);
}

/* Merges the pending pieces side by side. text: where the chunk's starts count from. */
static void merge_pending(sa_context *c, const uint8_t *text) {
  const int n = c->n_pending;
  for (int k = 0; k < n; k++) {
    const uint32_t i = c->pending[k].piece;
    c->words[k].bytes = text + c->starts[i];
    c->words[k].n = (int32_t)(c->starts[i + 1] - c->starts[i]);
  }
  sa_hot()->merge(&c->model->bpe, c->words, n, 1, 1, &c->merge.steps);
  c->n_pending = 0;
  c->misses += n;
  for (int k = 0; k < n; k++) {
    const sa_merge_word *w = &c->words[k];
    c->values[c->pending[k].piece] = keep(c, &c->pending[k].key, w->bytes, w->n, w->symbol, w->count);
  }
}

/* Whether an equal piece is among those pending. */
static int is_pending(const sa_context *c, const uint8_t *text, const sa_key *key, const uint8_t *piece, int64_t n) {
  for (int k = 0; k < c->n_pending; k++) {
    const sa_pending *p = &c->pending[k];
    if (p->key.low != key->low || p->key.high != key->high || p->key.hash != key->hash) continue;
    const uint32_t at = c->starts[p->piece];
    if (c->starts[p->piece + 1] - at == n && memcmp(text + at, piece, (size_t)n) == 0) return 1;
  }
  return 0;
}

/* Sees to piece i of a chunk, which the hot tables do not have: its value is there after the next merge_pending at
 * the latest. 0: out of memory. */
static int resolve(sa_context *c, const uint8_t *text, uint32_t i, const sa_key *key) {
  const uint8_t *piece = text + c->starts[i];
  const int64_t n = c->starts[i + 1] - c->starts[i];
  if (c->n_pending == SA_MERGE_WORDS || is_pending(c, text, key, piece, n)) merge_pending(c, text);
  const uint64_t value = find_value(c, key, piece, n);
  if (value) {
    c->values[i] = warm(c, key, n, value);
  } else if (n <= SA_SHORT_SYMBOLS && !sa_any_left_out(&c->model->bpe, piece, n)) {
    c->pending[c->n_pending++] = (sa_pending){i, *key};
  } else {
    const int64_t count = sa_bpe_encode(&c->model->bpe, &c->merge, piece, n);
    if (count < 0) return 0;
    c->misses++;
    c->values[i] = keep(c, key, piece, n, c->merge.out, count);
  }
  return 1;
}

/* Sees to the chunk's pieces that the hot tables do not have, but for dropped ones. Some at a time, so that what
 * they look at is on its way together. 0: out of memory. */
static int resolve_missed(sa_context *c, const uint8_t *text, int64_t misses, const uint8_t *end) {
  for (int64_t base = 0; base < misses; base += RESOLVE_TOGETHER) {
    const int64_t n = misses - base < RESOLVE_TOGETHER ? misses - base : RESOLVE_TOGETHER;
    sa_key keys[RESOLVE_TOGETHER];
    for (int64_t k = 0; k < n; k++) {
      const uint32_t i = c->missed[base + k], at = c->starts[i], length = c->starts[i + 1] - at;
      keys[k] = key_of(text + at, length, end);
      prefetch(c, &keys[k], length);
    }
    for (int64_t k = 0; k < n; k++)
      if (!resolve(c, text, c->missed[base + k], &keys[k])) return 0;
  }
  if (c->n_pending) merge_pending(c, text);
  return 1;
}

/* The chunk's pieces [0, n) in the hot tables; the last ones, too near the text's end for whole words to be
 * read, count as misses. */
static int64_t probe(sa_context *c, const struct sa_hot_path *hot, const uint8_t *text, int64_t n,
                     const uint8_t *end) {
  int64_t sure = c->cache.on ? n : 0;
  while (sure > 0 && (end - (text + c->starts[sure - 1]) < 16 || end - (text + c->starts[sure]) < 8)) sure--;
  int64_t misses = hot->probe(&c->cache, text, c->starts, sure, c->values, c->missed);
  for (; sure < n; sure++) c->missed[misses++] = (uint32_t)sure;
  return misses;
}

/* A piece that may be longer than a chunk. Returns the end of its ids, NULL out of memory. */
static uint32_t *encode_carried(sa_context *c, const uint8_t *piece, int64_t n, const uint8_t *end,
                                uint32_t *out) {
  const sa_key key = key_of(piece, n, end);
  uint64_t value = find_value(c, &key, piece, n);
  c->pieces++;
  if (!value) {
    const int64_t count = sa_bpe_encode(&c->model->bpe, &c->merge, piece, n);
    if (count < 0) return NULL;
    c->misses++;
    if (n > SA_CACHE_LONGEST) {
      memcpy(out, c->merge.out, (size_t)count * sizeof *out);
      return out + count;
    }
    value = keep(c, &key, piece, n, c->merge.out, count);
  }
  return sa_hot()->emit(c->cache.spill, &value, 1, out, 0);
}

/* Where the pieces of some rows come from: a compiled scheme's cursor, or bitmaps of a program's pieces. */
typedef struct pieces {
  const uint8_t *text;        /* first byte of the first row */
  int64_t n;
  const int64_t *offsets;     /* n_rows + 1; row 0 starts at text */
  int64_t n_rows;
  sa_pretok_cursor *cursor;   /* NULL: the bitmaps */
  const uint64_t *cuts, *drop;
  int64_t n_words, given;
} pieces;

/* The next words of piece starts. */
static int64_t next_words(pieces *p, uint64_t *bits) {
  if (p->cursor) return sa_pretok_next(p->cursor, bits, SA_CHUNK_BLOCKS);
  const int64_t left = p->n_words - p->given, words = left < SA_CHUNK_BLOCKS ? left : SA_CHUNK_BLOCKS;
  memcpy(bits, p->cuts + p->given, (size_t)words * sizeof *bits);
  if (words == left && p->n % 64) bits[words - 1] &= ((uint64_t)1 << (p->n % 64)) - 1; /* the end is no start */
  p->given += words;
  return words;
}

static int dropped(const pieces *p, int64_t at) { return p->drop && p->drop[at / 64] >> (at % 64) & 1; }

/* Takes dropped pieces out of the list of missed ones; how many are left. */
static int64_t drop_missed(sa_context *c, const pieces *p, int64_t chunk, int64_t misses) {
  int64_t left = 0;
  for (int64_t k = 0; k < misses; k++) {
    c->missed[left] = c->missed[k];
    left += !dropped(p, chunk + c->starts[c->missed[k]]);
  }
  return left;
}

/* Writes the ids of all pieces in order, and row_ids as for sa_encode_rows. Minus a status on failure. */
static int64_t encode_pieces(sa_context *c, pieces *p, uint32_t *ids, int64_t *row_ids, int64_t first) {
  const uint8_t *const begin = p->text, *const end = begin + p->n;
  const struct sa_backend *backend = sa_backend_active();
  const struct sa_hot_path *hot = sa_hot();
  const int64_t *offsets = p->offsets, base = offsets[0];
  uint32_t *out = ids;
  int64_t carried = 0;   /* start of the piece whose end is not known yet */
  int64_t chunk = 0, row = 0;
  c->n_pending = 0;      /* a call that failed may have left some */
  for (;;) {
    const int64_t words = next_words(p, c->bits);
    const int64_t n = words ? backend->extract(c->bits, (size_t)words, 0, c->starts) : 0;
    if (!sa_cache_room(&c->cache)) return -SA_ERR_NOMEM;
    const int64_t next = n ? chunk + c->starts[0] : words ? -1 : p->n;
    if (next > carried) {   /* the carried piece ends here */
      for (; row < p->n_rows && offsets[row + 1] - base <= carried; row++)
        if (row_ids) row_ids[row] = first + (out - ids);
      if (!dropped(p, carried)) out = encode_carried(c, begin + carried, next - carried, end, out);
      if (!out) return -SA_ERR_NOMEM;
    }
    if (!words) break;
    if (n) {
      const int64_t count = n - 1;
      const uint8_t *text = begin + chunk;
      int64_t misses = probe(c, hot, text, count, end);
      if (p->drop) misses = drop_missed(c, p, chunk, misses);
      if (!resolve_missed(c, text, misses, end)) return -SA_ERR_NOMEM;
      if (p->drop)
        for (int64_t i = 0; i < count; i++)
          if (dropped(p, chunk + c->starts[i])) c->values[i] = SA_NOTHING;
      c->pieces += count;
      for (int64_t i = 0, to; i < count; i = to) {   /* a row at a time */
        for (; row < p->n_rows && offsets[row + 1] - base <= chunk + c->starts[i]; row++)
          if (row_ids) row_ids[row] = first + (out - ids);
        const int64_t stop = offsets[row + 1] - base - chunk;
        to = count;
        if (stop < c->starts[count])
          for (to = i + 1; c->starts[to] < stop;) to++;
        out = hot->emit(c->cache.spill, c->values + i, to - i, out, p->n - (chunk + c->starts[to - 1]));
      }
      carried = chunk + c->starts[count];
    }
    chunk += words * 64;
  }
  for (; row < p->n_rows; row++)
    if (row_ids) row_ids[row] = first + (out - ids);
  return out - ids;
}

int64_t sa_encode_rows(sa_context *c, const uint8_t *text, const int64_t *offsets, int64_t n_rows,
                       uint32_t *ids, int64_t *row_ids, int64_t first) {
  const sa_model *m = c->model;
  int64_t n = 0;
  if (!m->program) {
    sa_pretok_cursor cursor;
    pieces p = {.text = text + offsets[0], .n = offsets[n_rows] - offsets[0], .offsets = offsets, .n_rows = n_rows,
                .cursor = &cursor};
    sa_pretok_begin(&cursor, m->scheme, text, offsets, n_rows);
    return encode_pieces(c, &p, ids, row_ids, first);
  }
  const sa_rows rows = {text, offsets, 64, n_rows, NULL, 0};
  for (int64_t row = 0, to; row < n_rows; row = to) {   /* as many rows as a program takes at a time */
    sa_draft *w = c->work;
    to = sa_draft_rows(&rows, row);
    int32_t status = sa_draft_run(w, m->program, &rows, row, to);
    if (status == SA_OK) status = sa_draft_unmap(w);
    if (status != SA_OK) return -status;
    pieces p = {.text = w->text, .n = w->n, .offsets = w->rows, .n_rows = w->n_rows, .cuts = w->cuts,
                .drop = w->drop, .n_words = (w->n + 63) / 64};
    const int64_t got = encode_pieces(c, &p, ids + n, row_ids ? row_ids + row : NULL, first + n);
    if (got < 0) return got;
    n += got;
  }
  return n;
}

int64_t sa_encode_cut(sa_context *c, const uint8_t *text, int64_t n, const uint64_t *starts, uint32_t *ids) {
  const int64_t offsets[2] = {0, n};
  pieces p = {.text = text, .n = n, .offsets = offsets, .n_rows = 1, .cuts = starts, .n_words = (n + 63) / 64};
  return encode_pieces(c, &p, ids, NULL, 0);
}
