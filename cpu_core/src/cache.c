/* See cache.h. */
#include "cache.h"

#include <stdlib.h>

#define SMALLEST (64 << 10)
#define ARENA_MAX (64 << 20)

static uint32_t log2_floor(uint64_t x) { return 63 - (uint32_t)__builtin_clzll(x | 1); }

int sa_cache_init(sa_cache *c, int64_t bytes) {
  memset(c, 0, sizeof *c);
  /* A quarter each for the tables and, split, for the two lists; the spill list also serves without a cache. */
  const int64_t quarter = bytes / 4;
  int64_t spill = bytes >= SMALLEST ? quarter / 2 / 4 : 0;
  if (spill > ARENA_MAX) spill = ARENA_MAX;
  c->spill_capacity = (uint32_t)spill + 2 * SA_CHUNK_BYTES;
  c->spill = malloc((size_t)c->spill_capacity * sizeof *c->spill);
  if (!c->spill) return 0;
  if (bytes < SMALLEST) return 1;
  c->bits8 = log2_floor((uint64_t)quarter / sizeof(sa_entry8));
  c->bits16 = log2_floor((uint64_t)quarter / sizeof(sa_entry16));
  c->bits_long = log2_floor((uint64_t)quarter / sizeof(sa_entry_long));
  c->arena_capacity = (uint32_t)(quarter / 2 < ARENA_MAX ? quarter / 2 : ARENA_MAX);
  const size_t bytes8 = sizeof(sa_entry8) << c->bits8, bytes16 = sizeof(sa_entry16) << c->bits16;
  const size_t bytes_long = sizeof(sa_entry_long) << c->bits_long;
  c->memory_bytes = (int64_t)(bytes8 + bytes16 + bytes_long);
  if (posix_memalign(&c->memory, 64, (size_t)c->memory_bytes)) return c->memory = NULL, 0;
  c->short8 = c->memory;
  c->short16 = (sa_entry16 *)((uint8_t *)c->memory + bytes8);
  c->longer = (sa_entry_long *)((uint8_t *)c->memory + bytes8 + bytes16);
  c->arena = malloc(c->arena_capacity);
  memset(c->memory, 0, (size_t)c->memory_bytes);
  return c->arena != NULL;
}

void sa_cache_room(sa_cache *c) {
  if (c->spill_used + SA_CHUNK_BYTES + SA_CACHE_LONGEST <= c->spill_capacity &&
      (!c->memory || c->arena_used + SA_CHUNK_BYTES + SA_CACHE_LONGEST <= c->arena_capacity))
    return;
  if (!c->memory) {
    c->spill_used = 0;
    return;
  }
  memset(c->memory, 0, (size_t)c->memory_bytes);
  c->spill_used = 0;
  c->arena_used = 0;
}

void sa_cache_release(sa_cache *c) {
  free(c->memory), free(c->arena), free(c->spill);
  memset(c, 0, sizeof *c);
}
