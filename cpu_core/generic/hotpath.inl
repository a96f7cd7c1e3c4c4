/* The hot path, once for all instruction sets. Lengths of pieces and hits in tables are as good as random to a
 * branch predictor, so no branch depends on a piece. Groups of 64 pieces: their words are loaded, keys, hashes
 * and slots computed, then their sets are fetched; while they are on their way groups before are looked up.
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

/* How many groups before: with 1 instead of 2 all of the encoder is 3% slower. */
#define SA_BEHIND 2
#define SA_GROUPS 4 /* a power of two, more than these */

static int64_t sa_hot_probe(const sa_cache *cache, const uint8_t *text, const uint32_t *starts, int64_t n,
                            uint64_t *values, uint32_t *missed) {
  const sa_entry8 *const hot8 = cache->hot8;
  const sa_entry16 *const hot16 = cache->hot16;
  const u32 pieces = (u32)n, behind = SA_BEHIND * SA_GROUP;
  u32 *const longer = missed; /* pieces of 8 to 15 bytes, until the misses are known */
  u32 n_longer = 0, n_missed = 0, padded[SA_GROUP + 1];
  sa_group groups[SA_GROUPS];
#define SA_GROUP_AT(base) (&groups[(base) / SA_GROUP % SA_GROUPS])
  for (u32 base = 0; base < pieces + behind; base += SA_GROUP) {
    if (base < pieces) {
      sa_group *const now = SA_GROUP_AT(base);
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
    if (base >= behind && base - behind < pieces) {
      const sa_group *const before = SA_GROUP_AT(base - behind);
      sa_probe8(hot8, before->set, before->low, values + base - behind);
    }
  }
  for (u32 base = 0; base < n_longer + behind; base += SA_GROUP) {
    if (base < n_longer) {
      sa_group *const now = SA_GROUP_AT(base);
      for (u32 k = n_longer; k < base + SA_GROUP; k++) longer[k] = longer[n_longer - 1];
      sa_prepare16(text, starts, longer + base, cache->hot16_bits, now->low, now->high, now->set);
      sa_fetch(hot16, now);
    }
    if (base >= behind && base - behind < n_longer) {
      const sa_group *const before = SA_GROUP_AT(base - behind);
      sa_probe16(hot16, before->set, before->low, before->high, longer + base - behind, values);
    }
  }
#undef SA_GROUP_AT
  for (u32 base = 0; base < pieces; base += SA_GROUP) {
    u64 mask = 0;
    for (int k = 0; k < SA_GROUP; k += 8) mask |= (u64)sa_zeros8(values + base + k) << k;
    if (pieces - base < SA_GROUP) mask &= ((u64)1 << (pieces - base)) - 1;
    n_missed += (u32)sa_positions(mask, base, missed + n_missed);
  }
  return n_missed;
}

static uint32_t *sa_hot_emit(const uint32_t *spill, const uint64_t *values, int64_t n, uint32_t *out,
                             int64_t left) {
  /* More is written than there is, the next ids over what was too much: fine while that is less than the text
   * behind has bytes. A piece has at least one. */
  const int64_t sure = left >= SA_SPILL_BEYOND ? n : n - SA_SPILL_BEYOND;
  int64_t i = 0;
  if (sure > 0) out = sa_put(spill, values, sure, out), i = sure;
  for (; i < n; i++) out = sa_put_exact(spill, values[i], out);
  return out;
}

/* Ranks looked at, in few different numbers, so that branches on them are seldom guessed wrong. */
static inline int sa_merge_width(int n) { return n <= 16 ? 16 : n <= 32 ? 32 : 64; }

static inline void sa_merge_load(const sa_bpe_tables *t, sa_merge_word *w, int ends) {
  const int n = w->n, width = sa_merge_width(n);
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

/* A merge under way: the ranks of two pairs are still to be looked up. */
typedef struct sa_merge_step {
  sa_merge_word *word;
  int at[2];                      /* where the pairs start: at the symbol before (if there is one), at the merged one */
  u64 key[2];
  const sa_pair_entry *place[2];  /* with a perfect hash: where they are, if they are pairs */
} sa_merge_step;

/* One merge, but for the ranks that it changes; fetches what they need. 0 if there is none to do. */
static inline int sa_merge_begin(const sa_bpe_tables *t, sa_merge_word *w, sa_merge_step *step) {
  uint32_t lowest;
  const int n = w->n, p = sa_lowest(w->rank, sa_merge_width(n), &lowest);
  if (lowest == SA_NO_RANK) return 0;
  const int q = w->next[p], after = w->next[q], before = p ? w->before[p] : p;
  const uint32_t symbol = t->result[lowest];
  w->symbol[p] = symbol;
  w->rank[q] = SA_NO_RANK;
  w->next[p] = (uint8_t)after;
  w->before[after] = (uint8_t)p;
  w->count--;
  step->word = w;
  step->at[0] = before;
  step->at[1] = p;
  step->key[0] = sa_pair_key(w->symbol[before], symbol);
  step->key[1] = sa_pair_key(symbol, w->symbol[after]);
  for (int k = 0; k < 2 && t->displace; k++) {
    step->place[k] = sa_pair_place(t->pairs, t->pair_shift, t->displace, t->displace_shift, step->key[k]);
    __builtin_prefetch(step->place[k]);
  }
  return 1;
}

static inline void sa_merge_end(const sa_bpe_tables *t, const sa_merge_step *step) {
  sa_merge_word *const w = step->word;
  uint32_t rank[2];
  for (int k = 0; k < 2; k++) {
    const u64 key = step->key[k];
    if (!t->displace) rank[k] = sa_pair_rank(t, (u32)(key >> 20), (u32)key & 0xFFFFF);
    else rank[k] = sa_pair_rank_of(*step->place[k], key);
  }
  /* The pair before the first symbol is overwritten; there is none behind the last. */
  w->rank[step->at[0]] = rank[0];
  w->rank[step->at[1]] = rank[1] | (w->next[step->at[1]] == w->n ? SA_NO_RANK : 0);
}

/* Merges side by side, a step of each at a time: all look-ups of a round are on their way together. */
static void sa_hot_merge(const sa_bpe_tables *t, sa_merge_word *words, int n_words, int ends, int64_t stop,
                         int64_t *steps) {
  sa_merge_word *busy[SA_MERGE_WORDS];
  sa_merge_step round[SA_MERGE_WORDS];
  int n_busy = 0;
  for (int k = 0; k < n_words; k++) {
    sa_merge_load(t, &words[k], ends);
    words[k].symbol[words[k].n] = 0;
    if (words[k].count > stop) busy[n_busy++] = &words[k];
  }
  while (n_busy) {
    int n_steps = 0, still = 0;
    for (int k = 0; k < n_busy; k++) n_steps += sa_merge_begin(t, busy[k], &round[n_steps]);
    for (int k = 0; k < n_steps; k++) {
      sa_merge_end(t, &round[k]);
      busy[still] = round[k].word;
      still += busy[still]->count > stop;
    }
    n_busy = still;
  }
  for (int k = 0; k < n_words; k++) {
    sa_merge_word *const w = &words[k];
    *steps += w->n - w->count;
    for (int i = 0, out = 0; i < w->n; i = w->next[i]) w->symbol[out++] = w->symbol[i];
  }
}

const struct sa_hot_path SA_HOT_PATH = {.probe = sa_hot_probe, .emit = sa_hot_emit, .merge = sa_hot_merge};
