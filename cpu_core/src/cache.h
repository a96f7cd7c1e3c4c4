/* The pretoken → ids cache of one thread. It holds what it holds by luck; ids never depend on it.
 *
 * Three tables by the piece's length: up to 7 bytes (16-byte entries, two to a set), up to 15 (32-byte
 * entries, two to a set), longer (hash, and the bytes in an arena, compared in full). A value is a word:
 *
 *   bits 0..59   three ids of 20 bits             count 1..3
 *   bits 60..61  count
 *   or, count 0: bits 0..31 where the ids are in the spill list, bits 32..59 how many
 *
 * When a list is full the cache is emptied, at the start of a chunk, so that values stay good within one.
 */
#ifndef SA_CACHE_H
#define SA_CACHE_H

#include <stdint.h>
#include <string.h>

#include "hash.h"

#define SA_CACHE_LONGEST 255          /* bytes of the longest piece kept */
#define SA_CHUNK_BYTES 8192           /* text between two looks at the lists' room */

typedef struct sa_entry8 { uint64_t key, value; } sa_entry8;
typedef struct sa_entry16 { uint64_t low, high, value, unused; } sa_entry16;
typedef struct sa_entry_long { uint64_t hash, value; uint32_t at, length; uint64_t unused; } sa_entry_long;

typedef struct sa_cache {
  void *memory;               /* the tables, one block; NULL: no cache */
  int64_t memory_bytes;
  sa_entry8 *short8;          /* 1 << bits8 entries */
  sa_entry16 *short16;
  sa_entry_long *longer;
  uint32_t bits8, bits16, bits_long;
  uint8_t *arena;             /* bytes of longer pieces */
  uint32_t arena_used, arena_capacity;
  uint32_t *spill;            /* ids of values of more than three */
  uint32_t spill_used, spill_capacity;
} sa_cache;

/* bytes bounds tables and lists together; below 64 KiB there is no table. 0: out of memory. */
int sa_cache_init(sa_cache *cache, int64_t bytes);
void sa_cache_release(sa_cache *cache);

/* Makes room for one chunk's worth in the lists, emptying the cache if need be. */
void sa_cache_room(sa_cache *cache);

static inline uint64_t sa_value(const uint32_t *ids, int64_t n) { /* 1 <= n <= 3 */
  return ids[0] | (n > 1 ? (uint64_t)ids[1] << 20 : 0) | (n > 2 ? (uint64_t)ids[2] << 40 : 0) |
         (uint64_t)n << 60;
}

static inline uint32_t sa_value_count(uint64_t value) { return (uint32_t)(value >> 60) & 3; }

/* A value for n ids, spilled if they are many. The chunk's room covers it. */
static inline uint64_t sa_cache_value(sa_cache *c, const uint32_t *ids, int64_t n) {
  if (n <= 3) return sa_value(ids, n);
  const uint64_t at = c->spill_used;
  memcpy(c->spill + at, ids, (size_t)n * sizeof *ids);
  c->spill_used += (uint32_t)n;
  return (uint64_t)n << 32 | at;
}

/* The set of two that a hash falls in. */
static inline sa_entry8 *sa_set8(const sa_cache *c, uint64_t hash) {
  return c->short8 + (hash >> (64 - c->bits8) & ~(uint64_t)1);
}
static inline sa_entry16 *sa_set16(const sa_cache *c, uint64_t hash) {
  return c->short16 + (hash >> (64 - c->bits16) & ~(uint64_t)1);
}
static inline sa_entry_long *sa_slot_long(const sa_cache *c, uint64_t hash) {
  return c->longer + (hash >> (64 - c->bits_long));
}

/* New entries go first in their set and push the older one back, out if it was second. */
static inline void sa_put8(sa_entry8 *set, uint64_t key, uint64_t value) {
  set[1] = set[0];
  set[0].key = key, set[0].value = value;
}
static inline void sa_put16(sa_entry16 *set, uint64_t low, uint64_t high, uint64_t value) {
  set[1] = set[0];
  set[0].low = low, set[0].high = high, set[0].value = value;
}

#endif
