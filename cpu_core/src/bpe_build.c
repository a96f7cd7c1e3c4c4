/* Stage bpe, at load: from a merge list or a rank file to the merges that can fire (bpe.h, fact 1). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpe.h"

typedef struct merge {
  uint32_t rank, left, right, result;
} merge;

typedef struct merge_list {
  merge *items;
  int64_t n, capacity;
} merge_list;

static int append(merge_list *list, merge item) {
  if (list->n == list->capacity) {
    const int64_t capacity = list->capacity ? list->capacity * 2 : 1 << 16;
    merge *grown = realloc(list->items, (size_t)capacity * sizeof *grown);
    if (!grown) return 0;
    list->items = grown;
    list->capacity = capacity;
  }
  list->items[list->n++] = item;
  return 1;
}

static int64_t token_length(const sa_vocab *v, uint32_t id) { return v->offsets[id + 1] - v->offsets[id]; }
static const uint8_t *token_bytes(const sa_vocab *v, uint32_t id) { return v->bytes + v->offsets[id]; }

static int32_t fail(char *error, int64_t capacity, const char *format, long long number) {
  snprintf(error, (size_t)capacity, format, number);
  return SA_ERR_PLAN;
}

/* A rank file names no pairs: any two tokens that join to a token merge, at that token's rank. */
static int32_t splits_of_ranks(merge_list *list, const sa_plan *plan, const sa_vocab *v) {
  uint64_t prefix[SA_MAX_TOKEN_BYTES + 1]; /* hash of the first i bytes */
  for (uint32_t id = 0; id < plan->n_ranks; id++) {
    const uint8_t *bytes = token_bytes(v, id);
    const int64_t n = token_length(v, id);
    prefix[0] = 0;
    for (int64_t i = 0; i < n; i++) prefix[i + 1] = prefix[i] * SA_VOCAB_BASE + bytes[i] + 1;
    uint64_t suffix = 0, power = 1; /* hash of bytes[at, n); BASE^(n - at) */
    for (int64_t at = n - 1; at > 0; at--) {
      suffix += (bytes[at] + (uint64_t)1) * power;
      power *= SA_VOCAB_BASE;
      const uint32_t right = sa_vocab_find(v, bytes + at, n - at, suffix, 0);
      if (right == SA_NO_ID || right >= plan->n_ranks) continue;
      const uint32_t left = sa_vocab_find(v, bytes, at, prefix[at], 0);
      if (left == SA_NO_ID || left >= plan->n_ranks) continue;
      if (!append(list, (merge){id, left, right, id})) return SA_ERR_NOMEM;
    }
  }
  return SA_OK;
}

static int32_t merges_of_plan(merge_list *list, const sa_plan *plan, const sa_vocab *v, char *error,
                              int64_t capacity) {
  for (int64_t k = 0; k < plan->n_merges; k++) {
    const uint32_t *m = plan->merges + 3 * k;
    for (int j = 0; j < 3; j++)
      if (m[j] >= plan->n_ids || token_length(v, m[j]) == 0)
        return fail(error, capacity, "merge %lld names an id that is not in the vocabulary", k);
    const int64_t left = token_length(v, m[0]), right = token_length(v, m[1]);
    if (token_length(v, m[2]) != left + right ||
        memcmp(token_bytes(v, m[2]), token_bytes(v, m[0]), (size_t)left) != 0 ||
        memcmp(token_bytes(v, m[2]) + left, token_bytes(v, m[1]), (size_t)right) != 0 ||
        v->ends[m[0]] || v->ends[m[1]] != v->ends[m[2]])
      return fail(error, capacity, "merge %lld does not join to the bytes of its result", k);
    if (!append(list, (merge){(uint32_t)k, m[0], m[1], m[2]})) return SA_ERR_NOMEM;
  }
  return SA_OK;
}

static int32_t allocate(sa_bpe_tables *t, int64_t slots, int64_t n_ranks) {
  t->n_ranks = n_ranks > 0 ? n_ranks : 1;
  t->pair_shift = 64 - (uint32_t)__builtin_ctzll((uint64_t)slots);
  t->pairs = malloc((size_t)slots * sizeof *t->pairs);
  t->result = calloc((size_t)t->n_ranks, sizeof *t->result);
  t->byte_pair_rank = malloc(65536 * sizeof *t->byte_pair_rank);
  if (!t->pairs || !t->result || !t->byte_pair_rank) return SA_ERR_NOMEM;
  memset(t->pairs, 0xFF, (size_t)slots * sizeof *t->pairs);
  return SA_OK;
}

static void fill_byte_pairs(sa_bpe_tables *t) {
  for (uint32_t i = 0; i < 65536; i++)
    t->byte_pair_rank[i] = sa_pair_rank(t, t->byte_ids[i >> 8], t->byte_ids[i & 255]);
}

static void release_filled(sa_bpe_tables *t) {
  free(t->pairs), free(t->displace), free(t->result), free(t->byte_pair_rank);
  t->pairs = NULL, t->displace = NULL, t->result = NULL, t->byte_pair_rank = NULL;
}

/* Fills the tables from a list, by open addressing; of two merges of one pair the later holds, as in Hugging
 * Face's loader. */
static int32_t fill(sa_bpe_tables *t, const merge_list *list, int64_t n_ranks) {
  int64_t slots = 64;
  while (slots < 2 * list->n) slots *= 2;
  const int32_t status = allocate(t, slots, n_ranks);
  if (status != SA_OK) return status;
  for (int64_t i = 0; i < list->n; i++) {
    const merge m = list->items[i];
    const uint64_t key = sa_pair_key(m.left, m.right);
    uint64_t slot = sa_pair_hash(key) >> t->pair_shift;
    while (t->pairs[slot] != UINT64_MAX && t->pairs[slot] >> 24 != key)
      slot = (slot + 1) & (uint64_t)(slots - 1);
    t->pairs[slot] = key << 24 | m.rank;
    t->result[m.rank] = m.result;
  }
  fill_byte_pairs(t);
  return SA_OK;
}

typedef struct placed {
  uint64_t key, hash;
  uint32_t bucket, rank;
} placed;

/* Places the merges of one bucket at the first displacement where all find free slots. 0: there is none. */
static int place_bucket(sa_bpe_tables *t, const placed *items, int64_t n, uint32_t bucket) {
  for (uint32_t d = 0; d < 65536; d++) {
    int64_t k = 0;
    for (; k < n; k++) {
      const uint64_t slot = sa_pair_slot(items[k].hash, d, t->pair_shift);
      if (t->pairs[slot] != UINT64_MAX) break;
      t->pairs[slot] = items[k].key << 24 | items[k].rank;
    }
    if (k == n) {
      t->displace[bucket] = (uint16_t)d;
      return 1;
    }
    while (k-- > 0) t->pairs[sa_pair_slot(items[k].hash, d, t->pair_shift)] = UINT64_MAX;
  }
  return 0;
}

/* Fills the tables with a perfect hash of the list (distinct pairs, distinct ranks): buckets of about four pairs,
 * the largest first, each with the first displacement that fits. Half of the slots stay free or more, so one is
 * found; should it not be, open addressing serves as well. */
static int32_t fill_perfect(sa_bpe_tables *t, const merge_list *list) {
  int64_t slots = 64, buckets = 16;
  while (3 * slots < 4 * list->n) slots *= 2;
  while (4 * buckets < list->n) buckets *= 2;
  int32_t status = allocate(t, slots, list->n);
  placed *items = malloc((size_t)(list->n + 1) * sizeof *items);
  int64_t *starts = calloc((size_t)buckets + 1, sizeof *starts);
  t->displace = calloc((size_t)buckets, sizeof *t->displace);
  t->displace_shift = 64 - (uint32_t)__builtin_ctzll((uint64_t)buckets);
  if (!items || !starts || !t->displace) status = SA_ERR_NOMEM;
  int placed_all = status == SA_OK;
  if (placed_all) {
    for (int64_t i = 0; i < list->n; i++) {
      const merge m = list->items[i];
      t->result[m.rank] = m.result;
      starts[(sa_pair_hash(sa_pair_key(m.left, m.right)) >> t->displace_shift) + 1]++;
    }
    int64_t largest = 0;
    for (int64_t b = 0; b < buckets; b++) {
      if (starts[b + 1] > largest) largest = starts[b + 1];
      starts[b + 1] += starts[b];
    }
    for (int64_t i = list->n - 1; i >= 0; i--) { /* counting sort by bucket; starts end up one bucket back */
      const merge m = list->items[i];
      const uint64_t key = sa_pair_key(m.left, m.right), hash = sa_pair_hash(key);
      const int64_t at = --starts[(hash >> t->displace_shift) + 1];
      items[at] = (placed){key, hash, (uint32_t)(hash >> t->displace_shift), m.rank};
    }
    for (int64_t size = largest; size > 0 && placed_all; size--)
      for (int64_t b = 0; b < buckets && placed_all; b++) {
        const int64_t from = starts[b + 1], to = b + 1 < buckets ? starts[b + 2] : list->n;
        if (to - from == size) placed_all = place_bucket(t, items + from, size, (uint32_t)b);
      }
  }
  free(items);
  free(starts);
  if (status == SA_OK && !placed_all) {
    release_filled(t);
    return fill(t, list, list->n);
  }
  if (status == SA_OK) fill_byte_pairs(t);
  return status;
}

static int by_rank(const void *a, const void *b) {
  const uint32_t x = ((const merge *)a)->rank, y = ((const merge *)b)->rank;
  return (x > y) - (x < y);
}

/* Encodes every token's own bytes down to two symbols: if these merge to the token it is reachable, and by
 * this merge alone. */
static int32_t reach(const sa_bpe_tables *all, const sa_vocab *v, const sa_plan *plan, merge_list *used,
                     uint8_t *reachable) {
  sa_merge_scratch scratch = {0};
  uint32_t ids[SA_MAX_TOKEN_BYTES];
  int32_t status = SA_OK;
  const int64_t n_tokens = plan->n_merges < 0 ? plan->n_ranks : plan->n_ids;
  for (uint32_t id = 0; id < n_tokens && status == SA_OK; id++) {
    const uint8_t *bytes = token_bytes(v, id);
    const int64_t n = token_length(v, id);
    if (n == 1) reachable[id] = !all->left_out[bytes[0]] && (v->ends[id] ? all->byte_ids_end : all->byte_ids)[bytes[0]] == id;
    if (n < 2 || sa_any_left_out(all, bytes, n)) continue;
    const int64_t left = sa_bpe_window(all, &scratch, bytes, n, v->ends[id], 2, ids);
    if (left < 0) status = SA_ERR_NOMEM;
    if (left != 2) continue;
    const uint32_t rank = sa_pair_rank(all, ids[0], ids[1]);
    if (rank == SA_NO_RANK || all->result[rank] != id) continue;
    reachable[id] = 1;
    if (!append(used, (merge){rank, ids[0], ids[1], id})) status = SA_ERR_NOMEM;
  }
  sa_merge_scratch_release(&scratch);
  return status;
}

int32_t sa_bpe_build(sa_bpe_tables *t, const sa_plan *plan, const sa_vocab *v, uint8_t *reachable,
                     char *error, int64_t capacity) {
  memset(t, 0, sizeof *t);
  if (plan->n_ids > SA_MAX_IDS)
    return fail(error, capacity, "%lld ids; at most 1048575 are supported", plan->n_ids);
  if (plan->n_merges > SA_MAX_MERGES)
    return fail(error, capacity, "%lld merges; at most 16777215 are supported", plan->n_merges);
  if (plan->n_merges < 0 && plan->n_ranks > plan->n_ids)
    return fail(error, capacity, "%lld ranks, more than there are ids", plan->n_ranks);
  t->has_ends = plan->byte_ids_end != NULL;
  for (int b = 0; b < 256; b++) {
    if (plan->byte_ids[b] == UINT32_MAX && !t->has_ends && plan->n_merges >= 0 && !plan->whole_piece_first) {
      t->left_out[b] = t->leaves_out = 1;
      continue;
    }
    const uint32_t id = t->byte_ids[b] = plan->byte_ids[b];
    const uint32_t end = t->byte_ids_end[b] = plan->byte_ids_end ? plan->byte_ids_end[b] : id;
    if (id >= plan->n_ids || token_length(v, id) != 1 || token_bytes(v, id)[0] != b || v->ends[id])
      return fail(error, capacity, "byte %lld has no token of its own", b);
    if (end >= plan->n_ids || token_length(v, end) != 1 || token_bytes(v, end)[0] != b || v->ends[end] != t->has_ends)
      return fail(error, capacity, "byte %lld has no token of its own at the end of a word", b);
  }
  t->length = malloc((size_t)plan->n_ids * sizeof *t->length);
  if (!t->length) return SA_ERR_NOMEM;
  t->longest = 1;
  for (uint32_t id = 0; id < plan->n_ids; id++) {
    t->length[id] = (uint16_t)token_length(v, id);
    if (t->length[id] > t->longest) t->longest = t->length[id];
  }
  merge_list all = {0}, used = {0};
  int32_t status = plan->n_merges < 0 ? splits_of_ranks(&all, plan, v)
                                      : merges_of_plan(&all, plan, v, error, capacity);
  if (status == SA_OK) status = fill(t, &all, plan->n_merges < 0 ? plan->n_ranks : plan->n_merges);
  if (status == SA_OK) status = reach(t, v, plan, &used, reachable);
  free(all.items);
  if (status == SA_OK) {
    release_filled(t);
    if (used.n) qsort(used.items, (size_t)used.n, sizeof *used.items, by_rank);
    for (int64_t k = 0; k < used.n; k++) used.items[k].rank = (uint32_t)k;
    status = fill_perfect(t, &used);
  }
  if (status == SA_OK) {
    int64_t *made = calloc((size_t)plan->n_ids, sizeof *made); /* rank that makes a token, + 1; bytes 0 */
    if (!made) status = SA_ERR_NOMEM;
    else {
      t->monotone = 1;
      for (int64_t k = 0; k < used.n; k++) made[used.items[k].result] = k + 1;
      for (int64_t k = 0; k < used.n; k++)
        if (made[used.items[k].left] > k || made[used.items[k].right] > k) t->monotone = 0;
      free(made);
    }
  }
  free(used.items);
  return status;
}

void sa_bpe_release(sa_bpe_tables *t) {
  release_filled(t);
  free(t->length);
  memset(t, 0, sizeof *t);
}
