/* The hot path, once for all instruction sets. Lengths of pieces and hits in tables are as good as random to a
 * branch predictor, so no branch depends on a piece. Groups of 64 pieces: their words are loaded, keys, hashes
 * and slots computed, then their sets are fetched; while they are on their way the group before is looked up.
 */
#include "hotpath.h"

typedef struct sa_group {
  u64 low[SA_GROUP], high[SA_GROUP];
  u64 set[SA_GROUP];   /* byte offset of the set in its table */
} sa_group;

static inline void sa_fetch(const void *table, const sa_group *g) {
  SA_UNROLLED
  for (int k = 0; k < SA_GROUP; k++) __builtin_prefetch((const char *)table + g->set[k]);
}

static int64_t sa_hot_probe(const sa_cache *cache, const uint8_t *text, const uint32_t *starts, int64_t n,
                            uint64_t *values, uint32_t *missed) {
  const sa_entry8 *const hot8 = cache->hot8;
  const sa_entry16 *const hot16 = cache->hot16;
  const u32 pieces = (u32)n;
  u32 *const longer = missed; /* pieces of 8 to 15 bytes, until the misses are known */
  u32 n_longer = 0, n_missed = 0, padded[SA_GROUP + 1];
  sa_group first, second, *now = &first, *before = &second;
  for (u32 base = 0; base < pieces + SA_GROUP; base += SA_GROUP) {
    if (base < pieces) {
      const u32 *at = starts + base;
      if (pieces - base < SA_GROUP) { /* fill up with empty pieces */
        for (u32 k = 0; k <= SA_GROUP; k++) padded[k] = at[k < pieces - base ? k : pieces - base - 1];
        padded[pieces - base] = at[pieces - base];
        for (u32 k = pieces - base + 1; k <= SA_GROUP; k++) padded[k] = padded[k - 1];
        at = padded;
      }
      const u64 mask = sa_prepare8(text, at, cache->hot8_bits, now->low, now->set);
      sa_fetch(hot8, now);
      n_longer += (u32)sa_positions(mask, base, longer + n_longer);
    }
    if (base >= SA_GROUP) sa_probe8(hot8, before->set, before->low, values + base - SA_GROUP);
    sa_group *const swap = now;
    now = before;
    before = swap;
  }
  for (u32 base = 0; base < n_longer + SA_GROUP; base += SA_GROUP) {
    if (base < n_longer) {
      for (u32 k = n_longer; k < base + SA_GROUP; k++) longer[k] = longer[n_longer - 1];
      sa_prepare16(text, starts, longer + base, cache->hot16_bits, now->low, now->high, now->set);
      sa_fetch(hot16, now);
    }
    if (base >= SA_GROUP)
      sa_probe16(hot16, before->set, before->low, before->high, longer + base - SA_GROUP, values);
    sa_group *const swap = now;
    now = before;
    before = swap;
  }
  for (u32 base = 0; base < pieces; base += SA_GROUP) {
    u64 mask = 0;
    for (int k = 0; k < SA_GROUP; k += 8) mask |= (u64)sa_zeros8(values + base + k) << k;
    if (pieces - base < SA_GROUP) mask &= ((u64)1 << (pieces - base)) - 1;
    n_missed += (u32)sa_positions(mask, base, missed + n_missed);
  }
  return n_missed;
}

/* The ids of one value, exactly as many as there are. */
static inline uint32_t *sa_emit_one(const uint32_t *spill, u64 value, uint32_t *out) {
  const u32 count = sa_value_count(value);
  if (!count) {
    const u32 ids = (u32)(value >> 32) & 0xFFFFFFF;
    memcpy(out, spill + (u32)value, ids * sizeof *out);
    return out + ids;
  }
  for (u32 k = 0; k < count; k++) *out++ = (u32)(value >> (20 * k)) & 0xFFFFF;
  return out;
}

static uint32_t *sa_hot_emit(const uint32_t *spill, const uint64_t *values, int64_t n, uint32_t *out,
                             int64_t left) {
  /* Three ids are written for every value, the next ones over those that were too many: fine while three more
   * fit. They do if three bytes of text are left, and a piece has at least one. */
  const int64_t sure = left >= 3 ? n : n - 2;
  int64_t i = 0;
  for (; i < sure; i++) {
    const u64 value = values[i];
    if (__builtin_expect(sa_value_count(value) == 0, 0)) {
      out = sa_emit_one(spill, value, out);
    } else {
      sa_put3(value, out);
      out += sa_value_count(value);
    }
  }
  for (; i < n; i++) out = sa_emit_one(spill, values[i], out);
  return out;
}

static inline void sa_merge_load(const sa_bpe_tables *t, sa_merge_word *w, int ends) {
  const int n = w->n, width = (n + 15) & ~15;
  for (int i = 0; i < n; i++) {
    w->symbol[i] = t->byte_ids[w->bytes[i]];
    w->next[i] = (uint8_t)(i + 1);
    w->before[i + 1] = (uint8_t)i;
  }
  for (int i = 0; i + 1 < n; i++) w->rank[i] = t->byte_pair_rank[w->bytes[i] << 8 | w->bytes[i + 1]];
  for (int i = n - 1; i < width; i++) w->rank[i] = SA_NO_RANK;
  w->count = n;
  if (!ends || !t->has_ends) return;
  w->symbol[n - 1] = t->byte_ids_end[w->bytes[n - 1]];
  if (n > 1) w->rank[n - 2] = sa_pair_rank(t, w->symbol[n - 2], w->symbol[n - 1]);
}

/* One merge; 0 if there is none to do. */
static inline int sa_merge_step(const sa_bpe_tables *t, sa_merge_word *w) {
  uint32_t lowest;
  const int n = w->n, p = sa_lowest(w->rank, (n + 15) & ~15, &lowest);
  if (lowest == SA_NO_RANK) return 0;
  const int q = w->next[p], after = w->next[q], before = p ? w->before[p] : p;
  const uint32_t symbol = t->result[lowest];
  w->symbol[p] = symbol;
  w->rank[q] = SA_NO_RANK;
  w->next[p] = (uint8_t)after;
  w->before[after] = (uint8_t)p;
  const uint32_t left = sa_pair_rank(t, w->symbol[before], symbol);
  w->rank[before] = p ? left : SA_NO_RANK;
  w->rank[p] = after < n ? sa_pair_rank(t, symbol, w->symbol[after]) : SA_NO_RANK;
  w->count--;
  return 1;
}

static void sa_hot_merge(const sa_bpe_tables *t, sa_merge_word *words, int n_words, int ends, int64_t stop,
                         int64_t *steps) {
  sa_merge_word *busy[SA_MERGE_WORDS];
  int n_busy = 0;
  for (int k = 0; k < n_words; k++) {
    sa_merge_load(t, &words[k], ends);
    if (words[k].count > stop) busy[n_busy++] = &words[k];
  }
  while (n_busy)
    for (int k = 0; k < n_busy;) {
      if (sa_merge_step(t, busy[k]) && busy[k]->count > stop) k++;
      else busy[k] = busy[--n_busy];
    }
  for (int k = 0; k < n_words; k++) {
    sa_merge_word *const w = &words[k];
    *steps += w->n - w->count;
    for (int i = 0, out = 0; i < w->n; i = w->next[i]) w->symbol[out++] = w->symbol[i];
  }
}

const struct sa_hot_path SA_HOT_PATH = {.probe = sa_hot_probe, .emit = sa_hot_emit, .merge = sa_hot_merge};
