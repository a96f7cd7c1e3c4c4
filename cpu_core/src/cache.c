/* See cache.h. */
#include "cache.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Bytes of the hot tables at most. With 2 MB for the first, code takes 5% longer and multiscript 7%, with 1 MB 18 and
 * 20%; 8 MB are no better. The second is large because what it lacks costs more than where it lies: 16 MB
 * instead of 4 is 8% of the time of English, 20% of multiscript (GPT-2, AVX-512). */
#define HOT8_MAX (4 << 20)
#define HOT16_MAX (16 << 20)
#define HUGE_PAGE (2 << 20)
#define FIRST_BITS 11         /* tables start with this many entries at least */
#define GROWTH_BITS 2         /* … and grow fourfold */
#define CHUNK_IDS (SA_CHUNK_BYTES + SA_CACHE_LONGEST) /* at most: its pieces, and the one carried into it */
#define LOAD(bits) (((int64_t)1 << (bits)) / 8 * 5)

static uint32_t log2_floor(int64_t x) { return x < 2 ? 0 : 63 - (uint32_t)__builtin_clzll((uint64_t)x); }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Zeroed memory; large tables in huge pages where the system has them, for a look-up lands anywhere in them. */
static void *zeroed(size_t bytes) {
  void *memory = NULL;
  if (posix_memalign(&memory, bytes < HUGE_PAGE ? 64 : HUGE_PAGE, bytes)) return NULL;
#ifdef MADV_HUGEPAGE
  if (bytes >= HUGE_PAGE) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return memset(memory, 0, bytes);
}

/* ---- open addressing ---- */

void sa_map16_add(sa_map16 *t, uint64_t low, uint64_t high, uint64_t value) {
  const uint64_t mask = ((uint64_t)1 << t->bits) - 1;
  uint64_t slot = sa_hash16(low, high) >> (32 - t->bits);
  while (t->entries[slot].value) slot = (slot + 1) & mask;
  t->entries[slot] = (sa_entry16){low, high, value, 0};
  t->used++;
}

sa_map16 sa_map16_new(int64_t n) {
  sa_map16 t = {NULL, 6, 6, 0};
  while ((int64_t)1 << t.bits < 2 * n) t.bits++;
  t.max_bits = t.bits;
  t.entries = zeroed(sizeof *t.entries << t.bits);
  return t;
}

static uint32_t grown_bits(uint32_t bits, uint32_t max_bits) {
  return (uint32_t)smaller(bits + GROWTH_BITS, max_bits);
}

static int grow16(sa_map16 *t) {
  const uint32_t bits = grown_bits(t->bits, t->max_bits);
  sa_map16 bigger = {zeroed(sizeof *t->entries << bits), bits, t->max_bits, 0};
  if (!bigger.entries) return 0;
  for (int64_t i = 0; i < (int64_t)1 << t->bits; i++) {
    const sa_entry16 *e = &t->entries[i];
    if (e->value) sa_map16_add(&bigger, e->low, e->high, e->value);
  }
  free(t->entries);
  *t = bigger;
  return 1;
}

/* A larger hot table; where there is no memory for it the old one does too. */
static void grow_hot8(sa_cache *c) {
  const int64_t n = (int64_t)1 << c->hot8_bits;
  const uint32_t bits = grown_bits(c->hot8_bits, c->hot8_max_bits);
  sa_entry8 *const old = c->hot8, *const bigger = zeroed(sizeof *old << bits);
  c->hot8_put = 0;
  if (!bigger) return;
  c->hot8 = bigger;
  c->hot8_bits = bits;
  for (int64_t i = n - 1; i >= 0; i--) /* the first of a set comes last */
    if (old[i].value) sa_hot8_put(c, old[i].key, old[i].value);
  c->hot8_put = 0;
  free(old);
}

static void grow_hot16(sa_cache *c) {
  const int64_t n = (int64_t)1 << c->hot16_bits;
  const uint32_t bits = grown_bits(c->hot16_bits, c->hot16_max_bits);
  sa_entry16 *const old = c->hot16, *const bigger = zeroed(sizeof *old << bits);
  c->hot16_put = 0;
  if (!bigger) return;
  c->hot16 = bigger;
  c->hot16_bits = bits;
  for (int64_t i = n - 1; i >= 0; i--)
    if (old[i].value) sa_hot16_put(c, old[i].low, old[i].high, old[i].value);
  c->hot16_put = 0;
  free(old);
}

static void add_long(sa_map_long *t, const sa_entry_long *entry) {
  const uint64_t mask = ((uint64_t)1 << t->bits) - 1;
  uint64_t slot = entry->tag >> (64 - t->bits);
  while (t->entries[slot].value) slot = (slot + 1) & mask;
  t->entries[slot] = *entry;
  t->used++;
}

static int grow_long(sa_map_long *t) {
  const uint32_t bits = grown_bits(t->bits, t->max_bits);
  sa_map_long bigger = {zeroed(sizeof *t->entries << bits), bits, t->max_bits, 0};
  if (!bigger.entries) return 0;
  for (int64_t i = 0; i < (int64_t)1 << t->bits; i++)
    if (t->entries[i].value) add_long(&bigger, &t->entries[i]);
  free(t->entries);
  *t = bigger;
  return 1;
}

/* ---- the cache ---- */

static uint32_t first_bits(int64_t entries, uint32_t max_bits) {
  const uint32_t bits = log2_floor(entries);
  return (uint32_t)smaller(bits < FIRST_BITS ? FIRST_BITS : bits, max_bits);
}

int sa_cache_init(sa_cache *c, int64_t bytes, int64_t text) {
  memset(c, 0, sizeof *c);
  c->on = bytes >= SA_CACHE_SMALLEST;
  /* a quarter each for the tables behind and for spilled ids, a sixth for the second hot table, the rest for others */
  c->spill_max = c->on ? bytes / 4 / (int64_t)sizeof *c->spill : 0;
  if (c->spill_max < 2 * CHUNK_IDS) c->spill_max = 2 * CHUNK_IDS;
  if (c->spill_max > UINT32_MAX) c->spill_max = UINT32_MAX;
  c->spill_capacity = 2 * CHUNK_IDS;
  c->spill = malloc((size_t)(c->spill_capacity + SA_SPILL_BEYOND) * sizeof *c->spill);
  if (!c->spill) return 0;
  if (!c->on) return 1;
  c->hot8_max_bits = log2_floor(smaller(bytes / 24, HOT8_MAX) / (int64_t)sizeof(sa_entry8));
  c->hot16_max_bits = log2_floor(smaller(bytes / 6, HOT16_MAX) / (int64_t)sizeof(sa_entry16));
  c->back.max_bits = log2_floor(bytes / 4 / (int64_t)sizeof(sa_entry16));
  c->longer.max_bits = log2_floor(bytes / 4 / (int64_t)sizeof(sa_entry_long));
  c->hot8_bits = first_bits(text / 128, c->hot8_max_bits);
  c->hot16_bits = first_bits(text / 256, c->hot16_max_bits);
  c->back.bits = first_bits(text / 256, c->back.max_bits);
  c->longer.bits = first_bits(text / 1024, c->longer.max_bits);
  c->arena_max = smaller(bytes / 24, UINT32_MAX);
  c->arena_capacity = smaller(c->arena_max, 64 << 10);
  c->hot8 = zeroed(sizeof *c->hot8 << c->hot8_bits);
  c->hot16 = zeroed(sizeof *c->hot16 << c->hot16_bits);
  c->back.entries = zeroed(sizeof *c->back.entries << c->back.bits);
  c->longer.entries = zeroed(sizeof *c->longer.entries << c->longer.bits);
  c->arena = malloc((size_t)c->arena_capacity);
  return c->hot8 && c->hot16 && c->back.entries && c->longer.entries && c->arena;
}

static void empty_back(sa_cache *c) {
  memset(c->back.entries, 0, sizeof *c->back.entries << c->back.bits);
  c->back.used = 0;
}

static void empty_longer(sa_cache *c) {
  memset(c->longer.entries, 0, sizeof *c->longer.entries << c->longer.bits);
  c->longer.used = c->arena_used = 0;
}

/* All of it: values in any table may lie in the spill list. */
void sa_cache_empty(sa_cache *c) {
  c->spill_used = 0;
  if (!c->on) return;
  memset(c->hot8, 0, sizeof *c->hot8 << c->hot8_bits);
  memset(c->hot16, 0, sizeof *c->hot16 << c->hot16_bits);
  empty_back(c);
  empty_longer(c);
}

/* Doubles a list of items of `size` bytes until `need` fit; 0 where the bound or the memory forbids it. */
static int grow_list(void **list, int64_t *capacity, int64_t need, int64_t max, size_t size) {
  int64_t wanted = *capacity;
  while (wanted < need) wanted *= 2;
  wanted = smaller(wanted, max);
  if (wanted < need) return 0;
  void *grown = realloc(*list, (size_t)(wanted + SA_SPILL_BEYOND) * size);
  if (!grown) return 0;
  *list = grown;
  *capacity = wanted;
  return 1;
}

int sa_cache_room(sa_cache *c, int64_t pending) {
  if (c->on) {
    if (c->hot8_put > ((int64_t)1 << c->hot8_bits) / 4 && c->hot8_bits < c->hot8_max_bits) grow_hot8(c);
    if (c->hot16_put > ((int64_t)1 << c->hot16_bits) / 4 && c->hot16_bits < c->hot16_max_bits) grow_hot16(c);
    if (c->back.used > LOAD(c->back.bits) && (c->back.bits == c->back.max_bits || !grow16(&c->back)))
      empty_back(c);
    const int64_t bytes = c->arena_used + SA_CACHE_LONGEST;
    const int full = c->longer.used > LOAD(c->longer.bits) &&
                     (c->longer.bits == c->longer.max_bits || !grow_long(&c->longer));
    if (full || (bytes > c->arena_capacity &&
                 !grow_list((void **)&c->arena, &c->arena_capacity, bytes, c->arena_max, 1)))
      empty_longer(c);
  }
  const int64_t ids = c->spill_used + pending + CHUNK_IDS;
  return ids <= c->spill_capacity ||
         grow_list((void **)&c->spill, &c->spill_capacity, ids, c->spill_max, sizeof *c->spill);
}

void sa_cache_put(sa_cache *c, uint64_t low, uint64_t high, uint64_t value) {
  /* in mid-chunk the load may pass the mark where the next look grows the table, but never fill it */
  if (c->back.used < ((int64_t)1 << c->back.bits) / 8 * 7) sa_map16_add(&c->back, low, high, value);
}

void sa_cache_put_long(sa_cache *c, uint64_t tag, const uint8_t *piece, uint32_t n, uint64_t value) {
  const uint32_t first = n < SA_ENTRY_BYTES ? n : SA_ENTRY_BYTES;
  if (c->longer.used >= ((int64_t)1 << c->longer.bits) / 8 * 7 || c->arena_used + n - first > c->arena_capacity) return;
  sa_entry_long entry = {tag, value, (uint32_t)c->arena_used, {0}};
  memcpy(entry.bytes, piece, first);
  memcpy(c->arena + c->arena_used, piece + first, n - first);
  add_long(&c->longer, &entry);
  c->arena_used += n - first;
}

void sa_cache_release(sa_cache *c) {
  free(c->hot8), free(c->hot16), free(c->back.entries), free(c->longer.entries);
  free(c->arena), free(c->spill);
  memset(c, 0, sizeof *c);
}
