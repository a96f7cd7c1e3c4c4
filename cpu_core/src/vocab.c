/* Stage vocab. See vocab.h. */
#include "vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t scatter(uint64_t hash, int ends) {
  hash += (uint64_t)ends << 63;
  hash ^= hash >> 32;
  hash *= 0xD6E8FEB86659FD93u;
  return hash ^ hash >> 29;
}

int32_t sa_vocab_build(sa_vocab *v, const sa_plan *plan, char *error, int64_t capacity) {
  const int64_t n = plan->n_ids, total = plan->token_offsets[n];
  int64_t slots = 64;
  while (slots < 2 * n) slots *= 2;
  memset(v, 0, sizeof *v);
  v->n_ids = n;
  v->offsets = malloc((size_t)(n + 1) * sizeof *v->offsets);
  v->bytes = malloc((size_t)total + 1);
  v->ends = calloc((size_t)n, 1);
  v->slots = malloc((size_t)slots * sizeof *v->slots);
  if (!v->offsets || !v->bytes || !v->ends || !v->slots) return SA_ERR_NOMEM;
  if (plan->token_ends) memcpy(v->ends, plan->token_ends, (size_t)n);
  memcpy(v->offsets, plan->token_offsets, (size_t)(n + 1) * sizeof *v->offsets);
  memcpy(v->bytes, plan->token_bytes, (size_t)total);
  memset(v->slots, 0xFF, (size_t)slots * sizeof *v->slots);
  v->shift = 64 - (uint32_t)__builtin_ctzll((uint64_t)slots);
  for (int64_t id = 0; id < n; id++) {
    const int64_t length = v->offsets[id + 1] - v->offsets[id];
    if (length > SA_MAX_TOKEN_BYTES) {
      snprintf(error, (size_t)capacity, "token %lld has %lld bytes; at most %d are supported",
               (long long)id, (long long)length, SA_MAX_TOKEN_BYTES);
      return SA_ERR_PLAN;
    }
    if (length == 0) continue;
    const uint8_t *bytes = v->bytes + v->offsets[id];
    const uint64_t hash = sa_vocab_hash(bytes, length);
    if (sa_vocab_find(v, bytes, length, hash, v->ends[id]) != SA_NO_ID) continue;
    const uint64_t h = scatter(hash, v->ends[id]);
    uint64_t slot = h >> v->shift;
    while (v->slots[slot] != UINT64_MAX) slot = (slot + 1) & (uint64_t)(slots - 1);
    v->slots[slot] = h << 32 | (uint64_t)id;
  }
  return SA_OK;
}

uint32_t sa_vocab_find(const sa_vocab *v, const uint8_t *bytes, int64_t n, uint64_t hash, int ends) {
  const uint64_t h = scatter(hash, ends), mask = ((uint64_t)1 << (64 - v->shift)) - 1;
  for (uint64_t slot = h >> v->shift;; slot = (slot + 1) & mask) {
    const uint64_t entry = v->slots[slot];
    if (entry == UINT64_MAX) return SA_NO_ID;
    if (entry >> 32 != (h & 0xFFFFFFFF)) continue;
    const uint32_t id = (uint32_t)entry;
    const int64_t length = v->offsets[id + 1] - v->offsets[id];
    if (length == n && v->ends[id] == ends && memcmp(v->bytes + v->offsets[id], bytes, (size_t)n) == 0) return id;
  }
}

void sa_vocab_release(sa_vocab *v) {
  free(v->offsets), free(v->bytes), free(v->ends), free(v->slots);
  memset(v, 0, sizeof *v);
}
