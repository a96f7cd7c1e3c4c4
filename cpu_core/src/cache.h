/* The pretoken → ids cache of one thread. It holds what it holds by luck; ids never depend on it.
 *
 * Pieces of up to 15 bytes are their own keys (kernels/shared/hash.h). Two hot tables, of two-way sets,
 * answer most look-ups, out of the near caches as a rule: one for keys of a word (16-byte entries), one for two words
 * (32-byte entries). Behind them stands one table that loses nothing until it is full (linear probing), and one
 * for longer pieces, whose bytes are kept and compared in full. Values are those
 * of kernels/shared/value.h.
 *
 * Tables grow with what is put in them, up to the bound. A table that is full is emptied. So is all of the cache when
 * the spill list is full, but that makes values worthless: the caller does it when it holds none.
 */
#ifndef SA_CACHE_H
#define SA_CACHE_H

#include <stdint.h>
#include <string.h>

#include "hash.h"
#include "value.h"

#define SA_CACHE_LONGEST 255          /* bytes of the longest piece kept */
#define SA_CHUNK_BYTES 8192           /* text between two looks at the room left */
#define SA_SPILL_BEYOND 16            /* ids readable behind the spill list, and written behind the last ids */

typedef struct sa_entry8 { uint64_t key, value; } sa_entry8;
typedef struct sa_entry16 { uint64_t low, high, value, unused; } sa_entry16;

/* A longer piece, a cache line. tag: its hash, with the length as the lowest byte. */
#define SA_ENTRY_BYTES 44
typedef struct sa_entry_long {
  uint64_t tag, value;
  uint32_t at;                     /* where the bytes behind these are, in the arena */
  uint8_t bytes[SA_ENTRY_BYTES];   /* the first of them */
} sa_entry_long;

/* What keys are made of. */
static inline uint64_t sa_load_word(const uint8_t *p) { return sa_hash_load(p); }

/* An open-addressing table of 1 << bits entries. */
typedef struct sa_map16 {
  sa_entry16 *entries;
  uint32_t bits, max_bits;
  int64_t used;
} sa_map16;

typedef struct sa_map_long {
  sa_entry_long *entries;
  uint32_t bits, max_bits;
  int64_t used;
} sa_map_long;

typedef struct sa_cache {
  int on;                     /* 0: no table, only the spill list is used */
  sa_entry8 *hot8;            /* 1 << hot8_bits entries, in sets of two */
  sa_entry16 *hot16;
  uint32_t hot8_bits, hot16_bits, hot8_max_bits, hot16_max_bits;
  int64_t hot8_put, hot16_put; /* entries put in since they grew */
  sa_map16 back;
  sa_map_long longer;
  uint8_t *arena;             /* bytes of longer pieces that their entries have no room for */
  int64_t arena_used, arena_capacity, arena_max;
  uint32_t *spill;            /* ids of values of more than three */
  int64_t spill_used, spill_capacity, spill_max;
} sa_cache;

/* bytes bounds tables and lists together; below SA_CACHE_SMALLEST there is no table. text: how many bytes of it are
 * to come, which the tables' first sizes are made for. 0: out of memory. */
#define SA_CACHE_SMALLEST (64 << 10)
int sa_cache_init(sa_cache *cache, int64_t bytes, int64_t text);
void sa_cache_release(sa_cache *cache);

/* Makes room for the values of one more chunk, and for `pending` ids that an earlier one may still add: tables grow or
 * are emptied. 0: there is none, sa_cache_empty would make it. */
int sa_cache_room(sa_cache *cache, int64_t pending);

/* Empties all of it. Values handed out before are worth nothing. */
void sa_cache_empty(sa_cache *cache);

/* Puts a piece in the tables behind; what finds no room is left out. */
void sa_cache_put(sa_cache *cache, uint64_t low, uint64_t high, uint64_t value);
void sa_cache_put_long(sa_cache *cache, uint64_t tag, const uint8_t *piece, uint32_t n, uint64_t value);

static inline uint64_t sa_value(const uint32_t *ids, int64_t n) { /* 1 <= n <= 3 */
  return sa_value_of(ids[0], n > 1 ? ids[1] : 0, n > 2 ? ids[2] : 0, (uint64_t)n);
}

/* A value for n ids, spilled if they are many. The chunk's room covers it. */
static inline uint64_t sa_cache_value(sa_cache *c, const uint32_t *ids, int64_t n) {
  if (n == 0) return SA_NOTHING;
  if (n <= 3) return sa_value(ids, n);
  const uint64_t at = (uint64_t)c->spill_used;
  memcpy(c->spill + at, ids, (size_t)n * sizeof *ids);
  c->spill_used += n;
  return sa_value_spilled(at, (uint64_t)n);
}

/* Puts a value in the set of two that its key's hash chooses: first, which pushes the older ones back, one of them
 * out. A key must never stand in a set twice: its values may differ, in where they were spilled, and look-ups join
 * what matches. */
static inline void sa_hot8_put(sa_cache *c, uint64_t key, uint64_t value) {
  sa_entry8 *const set = c->hot8 + (sa_hash8(key) >> (32 - c->hot8_bits) & ~(uint64_t)1);
  if (set[0].key != key) set[1] = set[0];
  set[0].key = key, set[0].value = value;
  c->hot8_put++;
}
static inline void sa_hot16_put(sa_cache *c, uint64_t low, uint64_t high, uint64_t value) {
  sa_entry16 *const set = c->hot16 + (sa_hash16(low, high) >> (32 - c->hot16_bits) & ~(uint64_t)1);
  if (set[0].low != low || set[0].high != high) set[1] = set[0];
  set[0].low = low, set[0].high = high, set[0].value = value;
  c->hot16_put++;
}

static inline void sa_map16_prefetch(const sa_map16 *t, uint64_t low, uint64_t high) {
  __builtin_prefetch(&t->entries[sa_hash16(low, high) >> (32 - t->bits)]);
}

static inline void sa_map_long_prefetch(const sa_map_long *t, uint64_t tag) {
  __builtin_prefetch(&t->entries[tag >> (64 - t->bits)]);
}

/* The value of a key (high = 0 for a key of one word), 0 if it is not there. No key is all zeros. */
static inline uint64_t sa_map16_find(const sa_map16 *t, uint64_t low, uint64_t high) {
  const uint64_t mask = ((uint64_t)1 << t->bits) - 1;
  for (uint64_t slot = sa_hash16(low, high) >> (32 - t->bits);; slot = (slot + 1) & mask) {
    const sa_entry16 *e = &t->entries[slot];
    if (e->low == low && e->high == high) return e->value;
    if (!e->value) return 0;
  }
}

/* The tag of a piece of SA_KEY16_BYTES < n <= SA_CACHE_LONGEST bytes. */
static inline uint64_t sa_long_tag(const uint8_t *piece, uint32_t n) {
  return (sa_hash_bytes(piece, n) & ~(uint64_t)0xFF) | n;
}

/* Whether n >= 8 bytes are the same. */
static inline int sa_equal_bytes(const uint8_t *a, const uint8_t *b, uint32_t n) {
  uint64_t differ = sa_load_word(a + n - 8) ^ sa_load_word(b + n - 8);
  for (uint32_t i = 0; i + 8 < n; i += 8) differ |= sa_load_word(a + i) ^ sa_load_word(b + i);
  return !differ;
}

static inline uint64_t sa_cache_find_long(const sa_cache *c, uint64_t tag, const uint8_t *piece, uint32_t n) {
  const sa_map_long *t = &c->longer;
  const uint64_t mask = ((uint64_t)1 << t->bits) - 1;
  const uint32_t first = n < SA_ENTRY_BYTES ? n : SA_ENTRY_BYTES;
  for (uint64_t slot = tag >> (64 - t->bits);; slot = (slot + 1) & mask) {
    const sa_entry_long *e = &t->entries[slot];
    if (!e->value) return 0;
    if (e->tag == tag && sa_equal_bytes(e->bytes, piece, first) &&
        (n == first || memcmp(c->arena + e->at, piece + first, n - first) == 0))
      return e->value;
  }
}

/* A table with room for n entries at half load, zeroed; entries is NULL when out of memory. */
sa_map16 sa_map16_new(int64_t n);
/* Adds a key that is not there. The table has a free slot left. */
void sa_map16_add(sa_map16 *t, uint64_t low, uint64_t high, uint64_t value);

#endif
