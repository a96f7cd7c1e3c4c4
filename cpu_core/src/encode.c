/* See encode.h.
 *
 * Tried and left out (GPT-2, AVX-512; time of all of the encoder):
 * - A look at the cache before the tokens' own table, tokens put in it too: warm 2 to 3% faster, cold 1 to 7% slower.
 * - Spilled ids fetched when their value is looked up: code 5% slower, multiscript no faster.
 * - Hot tables that start with all short tokens in them: cold English 13% faster, code 10%; but 6% and 9% come from
 *   the size alone, which tables made for the text that is to come have as well.
 * - Keys fetched once more just before they are looked for: no faster. What is left of a miss is memory's own pace.
 */
#include "encode.h"

#include <stdlib.h>
#include <string.h>

#include "consumers.h"
#include "hotpath.h"
#include "pretok.h"

sa_context *sa_context_new(const sa_model *model, int64_t cache_bytes, int64_t text) {
  sa_context *c = calloc(1, sizeof *c);
  if (!c) return NULL;
  c->model = model;
  c->work = model->program ? calloc(1, sizeof *c->work) : NULL;
  if (!sa_cache_init(&c->cache, cache_bytes, text) || (model->program && !c->work)) {
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

static inline sa_key key_of(const uint8_t *piece, int64_t n, const uint8_t *end) {
  sa_key key = {0, 0};
  const int room = end - piece >= 16;
  if (n <= SA_KEY8_BYTES) {
    key.low = sa_key8(room ? sa_load_word(piece) : load_upto8(piece, n), (uint64_t)n);
  } else if (n <= SA_KEY16_BYTES) {
    key.low = sa_load_word(piece);
    key.high = sa_key16_high(room ? sa_load_word(piece + 8) : load_upto8(piece + 8, n - 8), (uint64_t)n);
  } else if (n <= SA_CACHE_LONGEST) {
    key.low = sa_long_tag(piece, (uint32_t)n);
  }
  return key;
}

/* Whether a piece of up to 15 bytes may be a token as a whole. */
static inline int may_be_token(const sa_model *m, sa_key key) {
  const uint64_t bit = sa_hash16(key.low, key.high) >> (32 - m->short_bits);
  return m->short_ones[bit / 64] >> bit % 64 & 1;
}

/* Starts to fetch what find_value will look at. */
static inline void prefetch(const sa_context *c, sa_key key, int64_t n) {
  if (n <= SA_KEY16_BYTES) {
    if (may_be_token(c->model, key)) sa_map16_prefetch(&c->model->pieces, key.low, key.high);
    if (c->cache.on) sa_map16_prefetch(&c->cache.back, key.low, key.high);
  } else if (c->cache.on) {
    sa_map_long_prefetch(&c->cache.longer, key.low);
  }
}

/* The value of a piece that the hot tables do not have, from the tables behind them and the vocabulary. 0: it has
 * to be merged. */
static uint64_t find_value(const sa_context *c, sa_key key, const uint8_t *piece, int64_t n) {
  const sa_model *m = c->model;
  uint64_t value = 0;
  if (n <= SA_KEY16_BYTES) {
    if (may_be_token(m, key)) value = sa_map16_find(&m->pieces, key.low, key.high);
    return !value && c->cache.on ? sa_map16_find(&c->cache.back, key.low, key.high) : value;
  }
  if (n <= SA_CACHE_LONGEST && c->cache.on) value = sa_cache_find_long(&c->cache, key.low, piece, (uint32_t)n);
  if (value || n > m->bpe.longest) return value;
  const uint64_t bit = sa_long_one(piece, n);
  if (m->long_ones[bit / 64] >> bit % 64 & 1) {
    const uint32_t id = sa_vocab_find(&m->vocab, piece, n, sa_vocab_hash(piece, n), m->bpe.has_ends);
    if (id != SA_NO_ID && m->whole[id]) value = sa_value(&id, 1);
  }
  return value;
}

/* Puts a value in the hot tables. */
static inline uint64_t warm(sa_context *c, sa_key key, int64_t n, uint64_t value) {
  sa_cache *cache = &c->cache;
  if (!cache->on) return value;
  if (n <= SA_KEY8_BYTES) sa_hot8_put(cache, key.low, value);
  else if (n <= SA_KEY16_BYTES) sa_hot16_put(cache, key.low, key.high, value);
  return value;
}

/* The value of ids that were merged, put in all tables. */
static uint64_t keep(sa_context *c, sa_key key, const uint8_t *piece, int64_t n, const uint32_t *ids,
                     int64_t count) {
  sa_cache *cache = &c->cache;
  const uint64_t value = sa_cache_value(cache, ids, count);
  if (!cache->on) return value;
  if (n <= SA_KEY16_BYTES) sa_cache_put(cache, key.low, key.high, value);
  else if (n <= SA_CACHE_LONGEST) sa_cache_put_long(cache, key.low, piece, (uint32_t)n, value);
  return warm(c, key, n, value);
}

/* Merges the chunk's pending pieces side by side. text: where its starts count from. */
static void merge_pending(sa_context *c, sa_chunk *chunk, const uint8_t *text) {
  const int n = c->n_pending;
  for (int k = 0; k < n; k++) {
    const uint32_t i = c->pending[k].piece;
    c->words[k].bytes = text + chunk->starts[i];
    c->words[k].n = (int32_t)(chunk->starts[i + 1] - chunk->starts[i]);
  }
  sa_hot()->merge(&c->model->bpe, c->words, n, 1, 1, &c->merge.steps);
  c->n_pending = 0;
  c->misses += n;
  for (int k = 0; k < n; k++) {
    const sa_merge_word *w = &c->words[k];
    chunk->values[c->pending[k].piece] = keep(c, c->pending[k].key, w->bytes, w->n, w->symbol, w->count);
  }
}

/* Whether an equal piece is among those pending. */
static int is_pending(const sa_context *c, const sa_chunk *chunk, const uint8_t *text, sa_key key, const uint8_t *piece,
                      int64_t n) {
  for (int k = 0; k < c->n_pending; k++) {
    const sa_pending *p = &c->pending[k];
    if (p->key.low != key.low || p->key.high != key.high) continue;
    const uint32_t at = chunk->starts[p->piece];
    if (chunk->starts[p->piece + 1] - at == n && memcmp(text + at, piece, (size_t)n) == 0) return 1;
  }
  return 0;
}

/* Sees to missed piece k of a chunk: its value is there after the next merge_pending at the latest. 0: out of
 * memory. */
static int resolve(sa_context *c, sa_chunk *chunk, const uint8_t *text, int64_t k) {
  const uint32_t i = chunk->missed[k];
  const sa_key key = chunk->keys[k];
  const uint8_t *piece = text + chunk->starts[i];
  const int64_t n = chunk->starts[i + 1] - chunk->starts[i];
  if (c->n_pending == SA_MERGE_WORDS || is_pending(c, chunk, text, key, piece, n)) merge_pending(c, chunk, text);
  const uint64_t value = find_value(c, key, piece, n);
  if (value) {
    chunk->values[i] = warm(c, key, n, value);
    if (!sa_value_count(value)) __builtin_prefetch(c->cache.spill + (uint32_t)value);
  } else if (n <= SA_SHORT_SYMBOLS && !sa_any_left_out(&c->model->bpe, piece, n)) {
    c->pending[c->n_pending++] = (sa_pending){i, key};
  } else {
    const int64_t count = sa_bpe_encode(&c->model->bpe, &c->merge, piece, n);
    if (count < 0) return 0;
    c->misses++;
    chunk->values[i] = keep(c, key, piece, n, c->merge.out, count);
  }
  return 1;
}

/* A piece too long for a chunk's tables, mostly. No value is held by anyone. Returns the end of its ids, NULL out of
 * memory. */
static uint32_t *encode_carried(sa_context *c, const uint8_t *piece, int64_t n, const uint8_t *end, uint32_t *out) {
  const sa_key key = key_of(piece, n, end);
  uint64_t value = find_value(c, key, piece, n);
  c->pieces++;
  if (!value) {
    const int64_t count = sa_bpe_encode(&c->model->bpe, &c->merge, piece, n);
    if (count < 0) return NULL;
    c->misses++;
    if (n > SA_CACHE_LONGEST) {
      if (count) memcpy(out, c->merge.out, (size_t)count * sizeof *out);
      return out + count;
    }
    if (!sa_cache_room(&c->cache, 0)) sa_cache_empty(&c->cache);
    value = keep(c, key, piece, n, c->merge.out, count);
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
  if (words && words == left && p->n % 64) bits[words - 1] &= ((uint64_t)1 << (p->n % 64)) - 1; /* the end is no start */
  p->given += words;
  return words;
}

static int dropped(const pieces *p, int64_t at) { return p->drop && p->drop[at / 64] >> (at % 64) & 1; }

/* Rows being encoded. */
typedef struct run {
  pieces *p;
  int64_t row;              /* the next whose end has not been reached */
  int64_t *row_ids;
  int64_t first;
  uint32_t *ids, *out;      /* of the first row; of what comes next */
} run;

/* Notes the ends of the rows that end at byte `at` or before. */
static void end_rows(run *r, int64_t at) {
  const pieces *p = r->p;
  for (; r->row < p->n_rows && p->offsets[r->row + 1] - p->offsets[0] <= at; r->row++)
    if (r->row_ids) r->row_ids[r->row] = r->first + (r->out - r->ids);
}

/* Looks up a chunk's pieces in the hot tables and starts to fetch what the missed ones need. The last pieces, too
 * near the text's end for whole words to be read, count as missed; dropped ones do not. */
static void probe_chunk(sa_context *c, const run *r, sa_chunk *chunk) {
  const pieces *p = r->p;
  const uint8_t *const text = p->text + chunk->at, *const end = p->text + p->n;
  int64_t sure = c->cache.on ? chunk->count : 0, misses, kept = 0;
  while (sure > 0 && (end - (text + chunk->starts[sure - 1]) < 16 || end - (text + chunk->starts[sure]) < 8)) sure--;
  chunk->missed_bytes = 0;
  misses = sa_hot()->probe(&c->cache, text, chunk->starts, sure, chunk->values, chunk->missed);
  for (; sure < chunk->count; sure++) chunk->missed[misses++] = (uint32_t)sure;
  for (int64_t k = 0; k < misses; k++) {
    const uint32_t i = chunk->missed[k], at = chunk->starts[i], n = chunk->starts[i + 1] - at;
    if (dropped(p, chunk->at + at)) continue;
    chunk->missed_bytes += n;
    chunk->missed[kept] = i;
    chunk->keys[kept] = key_of(text + at, n, end);
    prefetch(c, chunk->keys[kept++], n);
  }
  chunk->misses = kept;
}

/* The first of starts[from, to) that is `stop` or more; `to` if there is none. Quick where it is near. */
static int64_t first_from(const uint32_t *starts, int64_t from, int64_t to, int64_t stop) {
  for (int64_t step = 1; from + step < to; step *= 2) {
    if (starts[from + step - 1] >= stop) {
      to = from + step - 1;
      break;
    }
    from += step;
  }
  while (from < to) {
    const int64_t middle = (from + to) / 2;
    if (starts[middle] < stop) from = middle + 1;
    else to = middle;
  }
  return from;
}

/* Finds the values still missing in a chunk and writes its ids. 0: out of memory. */
static int finish_chunk(sa_context *c, run *r, sa_chunk *chunk) {
  const pieces *p = r->p;
  const uint8_t *const text = p->text + chunk->at;
  const uint32_t *const starts = chunk->starts;
  const int64_t count = chunk->count;
  for (int64_t k = 0; k < chunk->misses; k++)
    if (!resolve(c, chunk, text, k)) return 0;
  if (c->n_pending) merge_pending(c, chunk, text);
  if (p->drop)
    for (int64_t i = 0; i < count; i++)
      if (dropped(p, chunk->at + starts[i])) chunk->values[i] = SA_NOTHING;
  for (int64_t i = 0, to; i < count; i = to) { /* a row at a time */
    end_rows(r, chunk->at + starts[i]);
    const int64_t stop = p->offsets[r->row + 1] - p->offsets[0] - chunk->at;
    to = first_from(starts, i + 1, count, stop);
    r->out = sa_hot()->emit(c->cache.spill, chunk->values + i, to - i, r->out, p->n - (chunk->at + starts[to]));
  }
  c->pieces += count;
  chunk->count = chunk->misses = chunk->missed_bytes = 0;
  return 1;
}

/* Writes the ids of all pieces in order, and row_ids as for sa_encode_rows. A chunk is finished after the next one is
 * looked up, so that what its missed pieces need has come. Minus a status on failure. */
static int64_t encode_pieces(sa_context *c, pieces *p, uint32_t *ids, int64_t *row_ids, int64_t first) {
  const struct sa_backend *backend = sa_backend_active();
  run r = {p, 0, row_ids, first, ids, ids};
  sa_chunk *now = &c->chunks[0], *before = &c->chunks[1];
  int64_t at = 0, carried = 0; /* the next text; the start of the piece whose end is not known yet */
  before->count = before->misses = before->missed_bytes = 0;
  c->n_pending = 0;            /* a call that failed may have left some */
  for (int64_t words = 1; words;) {
    words = next_words(p, c->bits);
    /* The carried piece is the first of the chunk, but for one that is too long for the tables. */
    const int together = carried < at && (words ? at : p->n) - carried <= SA_CACHE_LONGEST;
    uint32_t *const starts = now->starts;
    now->at = together ? carried : at;
    starts[0] = 0;
    int64_t n = together;
    if (words) n += backend->extract(c->bits, (size_t)words, (uint32_t)(at - now->at), starts + n);
    else if (together) starts[n++] = (uint32_t)(p->n - now->at);
    if (carried < at && !together && (n || !words)) {
      const int64_t end = words ? now->at + starts[0] : p->n;
      if (!finish_chunk(c, &r, before)) return -SA_ERR_NOMEM;
      end_rows(&r, carried);
      if (!dropped(p, carried)) r.out = encode_carried(c, p->text + carried, end - carried, p->text + p->n, r.out);
      if (!r.out) return -SA_ERR_NOMEM;
    }
    at += words * 64;
    if (n == 0) continue;
    carried = now->at + starts[n - 1];
    now->count = n - 1;
    if (!sa_cache_room(&c->cache, before->missed_bytes)) {
      if (!finish_chunk(c, &r, before)) return -SA_ERR_NOMEM;
      sa_cache_empty(&c->cache);
    }
    probe_chunk(c, &r, now);
    if (!finish_chunk(c, &r, before)) return -SA_ERR_NOMEM;
    sa_chunk *const swap = now;
    now = before;
    before = swap;
  }
  if (!finish_chunk(c, &r, before)) return -SA_ERR_NOMEM;
  end_rows(&r, p->n);
  return r.out - ids;
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
