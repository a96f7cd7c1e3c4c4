/* See encode.h. */
#include "encode.h"

#include <stdlib.h>
#include <string.h>

#include "pretok.h"

sa_context *sa_context_new(const sa_model *model, int64_t cache_bytes) {
  sa_context *c = malloc(sizeof *c);
  if (!c) return NULL;
  c->model = model;
  c->pieces = c->misses = 0;
  memset(&c->merge, 0, sizeof c->merge);
  if (!sa_cache_init(&c->cache, cache_bytes)) {
    sa_context_free(c);
    return NULL;
  }
  return c;
}

void sa_context_free(sa_context *c) {
  if (!c) return;
  sa_cache_release(&c->cache);
  sa_merge_scratch_release(&c->merge);
  free(c);
}

static inline uint64_t load64(const uint8_t *p) {
  uint64_t word;
  memcpy(&word, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  return word;
}

/* The same where fewer than 8 bytes may be readable. */
static inline uint64_t load_upto8(const uint8_t *p, int64_t n) {
  uint8_t bytes[8] = {0};
  memcpy(bytes, p, (size_t)(n < 8 ? n : 8));
  return load64(bytes);
}

/* The ids of a piece by bpe, or by vocab if it is too long for the model's table of pieces. *ids points to them
 * until the next call. -1: out of memory. */
static int64_t encode_piece(sa_context *c, const uint8_t *piece, int64_t n, const uint32_t **ids,
                            uint32_t *single) {
  const sa_model *m = c->model;
  c->misses++;
  if (n > SA_KEY16_BYTES && n <= m->bpe.longest) {
    *single = sa_vocab_find(&m->vocab, piece, n, sa_vocab_hash(piece, n));
    if (*single != SA_NO_ID && m->whole[*single]) {
      *ids = single;
      return 1;
    }
  }
  const int64_t count = sa_bpe_encode(&m->bpe, &c->merge, piece, n);
  *ids = c->merge.out;
  return count;
}

/* The value of a piece that the hot tables do not have, found or computed, and put in them. 0: out of memory. */
static uint64_t resolve(sa_context *c, const uint8_t *piece, int64_t n, const uint8_t *end) {
  sa_cache *cache = &c->cache;
  const int room = end - piece >= 16;
  uint64_t low = 0, high = 0, hash = 0, value = 0;
  if (n <= SA_KEY8_BYTES) {
    low = sa_key8(room ? load64(piece) : load_upto8(piece, n), (uint32_t)n);
  } else if (n <= SA_KEY16_BYTES) {
    low = load64(piece);
    high = sa_key16_high(room ? load64(piece + 8) : load_upto8(piece + 8, n - 8), (uint32_t)n);
  } else if (n <= SA_CACHE_LONGEST && cache->on) {
    hash = sa_hash_bytes(piece, (u64)n);
    value = sa_cache_find_long(cache, hash, piece, (uint32_t)n);
    if (value) return value;
  }
  if (n <= SA_KEY16_BYTES) {
    value = sa_table16_find(&c->model->pieces, low, high);
    if (!value && cache->on) value = sa_table16_find(&cache->back, low, high);
  }
  if (!value) {
    uint32_t single;
    const uint32_t *ids;
    const int64_t count = encode_piece(c, piece, n, &ids, &single);
    if (count < 0) return 0;
    value = sa_cache_value(cache, ids, count);
    if (!cache->on) return value;
    if (n <= SA_KEY16_BYTES) sa_cache_put(cache, low, high, value);
    else if (n <= SA_CACHE_LONGEST) sa_cache_put_long(cache, hash, piece, (uint32_t)n, value);
  }
  if (!cache->on) return value;
  if (n <= SA_KEY8_BYTES) sa_hot8_put(sa_hot8(cache, sa_hash8(low)), low, value);
  else if (n <= SA_KEY16_BYTES) sa_hot16_put(sa_hot16(cache, sa_hash16(low, high)), low, high, value);
  return value;
}

static inline uint64_t ones_if(int condition) { return -(uint64_t)condition; }

/* Looks up pieces [0, n) of a chunk, text + starts[i] of length starts[i+1] - starts[i], in the hot tables. Hits
 * fill values; the others are listed in missed. No branch depends on a piece: lengths and hits are as good as
 * random to a branch predictor. In groups: indices by length, then keys, hashes and prefetches, then probes. */
#define GROUP 64

static int64_t probe(sa_context *c, const uint8_t *text, int64_t n, const uint8_t *end) {
  const sa_cache *cache = &c->cache;
  const uint32_t *starts = c->starts;
  uint64_t *values = c->values;
  int64_t misses = 0, base = 0;
  for (; cache->on && base < n; base += GROUP) {
    uint32_t short8[GROUP], short16[GROUP];
    uint64_t low[GROUP], low16[GROUP], high16[GROUP];
    const sa_entry8 *set8[GROUP];
    const sa_entry16 *set16[GROUP];
    const uint32_t count = (uint32_t)(n - base < GROUP ? n - base : GROUP);
    uint32_t n8 = 0, n16 = 0;
    if (text + starts[base + count - 1] + 16 > end) break; /* the text's last bytes: not by whole words */
    for (uint32_t k = 0; k < count; k++) {
      const uint32_t i = (uint32_t)base + k, length = starts[i + 1] - starts[i];
      values[i] = 0;
      short8[n8] = i;
      n8 += length <= SA_KEY8_BYTES;
      short16[n16] = i;
      n16 += length > SA_KEY8_BYTES && length <= SA_KEY16_BYTES;
    }
    for (uint32_t k = 0; k < n8; k++) {
      const uint32_t at = starts[short8[k]], length = starts[short8[k] + 1] - at;
      low[k] = sa_key8(load64(text + at), length);
      set8[k] = sa_hot8(cache, sa_hash8(low[k]));
      __builtin_prefetch(set8[k]);
    }
    for (uint32_t k = 0; k < n16; k++) {
      const uint32_t at = starts[short16[k]], length = starts[short16[k] + 1] - at;
      low16[k] = load64(text + at);
      high16[k] = sa_key16_high(load64(text + at + 8), length);
      set16[k] = sa_hot16(cache, sa_hash16(low16[k], high16[k]));
      __builtin_prefetch(set16[k]);
    }
    for (uint32_t k = 0; k < n8; k++) {
      const sa_entry8 *e = set8[k];
      values[short8[k]] = (e[0].value & ones_if(e[0].key == low[k])) | (e[1].value & ones_if(e[1].key == low[k]));
    }
    for (uint32_t k = 0; k < n16; k++) {
      const sa_entry16 *e = set16[k];
      const uint64_t first = (e[0].low ^ low16[k]) | (e[0].high ^ high16[k]);
      const uint64_t second = (e[1].low ^ low16[k]) | (e[1].high ^ high16[k]);
      values[short16[k]] = (e[0].value & ones_if(first == 0)) | (e[1].value & ones_if(second == 0));
    }
    for (uint32_t k = 0; k < count; k++) {
      c->missed[misses] = (uint32_t)base + k;
      misses += values[base + k] == 0;
    }
  }
  for (; base < n; base++) c->missed[misses++] = (uint32_t)base;
  return misses;
}

/* Writes the ids of pieces [from, to); free: ids that may be written at out, used or not. */
static inline uint32_t *emit(const sa_context *c, int64_t from, int64_t to, uint32_t *out, int64_t room) {
  const uint32_t *limit = out + (room - 3);
  for (int64_t i = from; i < to; i++) {
    const uint64_t value = c->values[i];
    const uint32_t count = sa_value_count(value);
    if (count && out < limit) {
      out[0] = (uint32_t)value & 0xFFFFF;
      out[1] = (uint32_t)(value >> 20) & 0xFFFFF;
      out[2] = (uint32_t)(value >> 40) & 0xFFFFF;
      out += count;
    } else if (count) {
      for (uint32_t k = 0; k < count; k++) *out++ = (uint32_t)(value >> (20 * k)) & 0xFFFFF;
    } else {
      const uint32_t n = (uint32_t)(value >> 32);
      memcpy(out, c->cache.spill + (uint32_t)value, n * sizeof *out);
      out += n;
    }
  }
  return out;
}

/* A piece that may be longer than a chunk. Returns the end of its ids, NULL out of memory. */
static uint32_t *encode_carried(sa_context *c, const uint8_t *piece, int64_t n, const uint8_t *end,
                                uint32_t *out) {
  c->pieces++;
  if (n > SA_CACHE_LONGEST) {
    uint32_t single;
    const uint32_t *ids;
    const int64_t count = encode_piece(c, piece, n, &ids, &single);
    if (count < 0) return NULL;
    memcpy(out, ids, (size_t)count * sizeof *ids);
    return out + count;
  }
  c->values[0] = resolve(c, piece, n, end);
  return c->values[0] ? emit(c, 0, 1, out, 0) : NULL;
}

int64_t sa_encode_rows(sa_context *c, const uint8_t *text, const int64_t *offsets, int64_t n_rows,
                       uint32_t *ids, int64_t *row_ids, int64_t first) {
  const uint8_t *const begin = text + offsets[0], *const end = text + offsets[n_rows];
  const struct sa_backend *backend = sa_backend_active();
  uint32_t *out = ids;
  const uint8_t *carried = begin;   /* start of the piece whose end is not known yet */
  const uint8_t *chunk = begin;
  int64_t row = 0;
  sa_pretok_cursor cursor;
  sa_pretok_begin(&cursor, c->model->scheme, text, offsets, n_rows);
  for (;;) {
    const int64_t words = sa_pretok_next(&cursor, c->bits, SA_CHUNK_BLOCKS);
    int64_t n = words ? backend->extract(c->bits, (size_t)words, 0, c->starts) : 0;
    if (!sa_cache_room(&c->cache)) return -1;
    const uint8_t *next = n ? chunk + c->starts[0] : words ? NULL : end;
    if (next && next > carried) {   /* the carried piece ends here */
      while (row < n_rows && text + offsets[row + 1] <= carried) {
        if (row_ids) row_ids[row] = first + (out - ids);
        row++;
      }
      out = encode_carried(c, carried, next - carried, end, out);
      if (!out) return -1;
    }
    if (!words) break;
    if (n) {
      const int64_t pieces = n - 1;
      const int64_t misses = probe(c, chunk, pieces, end);
      for (int64_t k = 0; k < misses; k++) {
        const uint32_t i = c->missed[k];
        c->values[i] = resolve(c, chunk + c->starts[i], c->starts[i + 1] - c->starts[i], end);
        if (!c->values[i]) return -1;
      }
      c->pieces += pieces;
      int64_t i = 0;
      while (i < pieces) {   /* a row at a time */
        while (row < n_rows && text + offsets[row + 1] <= chunk + c->starts[i]) {
          if (row_ids) row_ids[row] = first + (out - ids);
          row++;
        }
        const uint8_t *row_end = text + offsets[row + 1];
        int64_t to = pieces;
        if (row_end < chunk + c->starts[pieces]) {
          const uint32_t stop = (uint32_t)(row_end - chunk);
          to = i + 1;
          while (c->starts[to] < stop) to++;
        }
        out = emit(c, i, to, out, end - (chunk + c->starts[i]));
        i = to;
      }
      carried = chunk + c->starts[pieces];
    }
    chunk += words * 64;
  }
  for (; row < n_rows; row++)
    if (row_ids) row_ids[row] = first + (out - ids);
  return out - ids;
}
