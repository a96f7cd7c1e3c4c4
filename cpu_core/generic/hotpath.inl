/* The hot path, once for all instruction sets. Lengths of pieces and hits in tables are as good as random to a
 * branch predictor, so no branch depends on a piece. Groups of 64 pieces: their words are loaded, then keys,
 * hashes and slots computed in loops of fixed length for the compiler to turn into vectors, then their sets are
 * fetched; while they are on their way the group before is looked up.
 */
#include "hotpath.h"

#define SA_GROUP 64

static inline u64 sa_load_word(const u8 *p) {
  u64 word;
  memcpy(&word, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  return word;
}

typedef struct sa_group {
  u64 low[SA_GROUP], high[SA_GROUP];
  u64 slot[SA_GROUP];
} sa_group;

/* at: 65 piece starts. Returns the mask of pieces of 8 to 15 bytes. */
static inline u64 sa_prepare8(sa_group *g, const sa_entry8 *table, u32 bits, const uint8_t *text, const u32 *at) {
  const u64 set_mask = ((u64)1 << bits) - 2;
  u32 length[SA_GROUP];
  u64 longer = 0;
  for (int k = 0; k < SA_GROUP; k++) length[k] = at[k + 1] - at[k];
  for (int k = 0; k < SA_GROUP; k++) g->low[k] = sa_load_word(text + at[k]);
  for (int k = 0; k < SA_GROUP; k++) {
    /* a longer piece gets a key that no entry has */
    const u64 n = length[k] < 8 ? length[k] : 8;
    g->low[k] = n < 8 ? sa_key8(g->low[k], (u32)n) : ~(u64)0;
    g->slot[k] = sa_hash8(g->low[k]) & set_mask;
  }
  for (int k = 0; k < SA_GROUP; k++) __builtin_prefetch(table + g->slot[k]);
  for (int k = 0; k < SA_GROUP; k += 8)
    longer |= (u64)sa_between8(length + k, SA_KEY8_BYTES + 1, SA_KEY16_BYTES) << k;
  return longer;
}

/* which: 64 pieces of 8 to 15 bytes. */
static inline void sa_prepare16(sa_group *g, const sa_entry16 *table, u32 bits, const uint8_t *text,
                                const u32 *starts, const u32 *which) {
  const u64 set_mask = ((u64)1 << bits) - 2;
  u64 length[SA_GROUP];
  for (int k = 0; k < SA_GROUP; k++) {
    const u32 at = starts[which[k]];
    length[k] = starts[which[k] + 1] - at;
    g->low[k] = sa_load_word(text + at);
    g->high[k] = sa_load_word(text + at + 8);
  }
  for (int k = 0; k < SA_GROUP; k++) {
    g->high[k] = sa_key16_high(g->high[k], (u32)length[k]);
    g->slot[k] = sa_hash16(g->low[k], g->high[k]) & set_mask;
  }
  for (int k = 0; k < SA_GROUP; k++) __builtin_prefetch(table + g->slot[k]);
}

static int64_t sa_hot_probe(const sa_cache *cache, const uint8_t *text, const uint32_t *starts, int64_t n,
                            uint64_t *values, uint32_t *missed) {
  const sa_entry8 *const hot8 = cache->hot8;
  const sa_entry16 *const hot16 = cache->hot16;
  const u32 pieces = (u32)n;
  u32 *const longer = missed; /* pieces of 8 to 15 bytes, until the misses are known */
  u32 n_longer = 0, n_missed = 0, padded[SA_GROUP + 1];
  sa_group groups[2];
  for (u32 base = 0; base < pieces + SA_GROUP; base += SA_GROUP) {
    if (base < pieces) {
      const u32 *at = starts + base;
      if (pieces - base < SA_GROUP) { /* fill up with empty pieces */
        for (u32 k = 0; k <= SA_GROUP; k++) padded[k] = at[k < pieces - base ? k : pieces - base - 1];
        padded[pieces - base] = at[pieces - base];
        for (u32 k = pieces - base + 1; k <= SA_GROUP; k++) padded[k] = padded[k - 1];
        at = padded;
      }
      const u64 mask = sa_prepare8(&groups[base / SA_GROUP & 1], hot8, cache->hot8_bits, text, at);
      n_longer += (u32)sa_positions(mask, base, longer + n_longer);
    }
    if (base >= SA_GROUP) {
      const sa_group *g = &groups[(base / SA_GROUP - 1) & 1];
      uint64_t *const out = values + base - SA_GROUP;
      for (int k = 0; k < SA_GROUP; k++) out[k] = sa_probe8(hot8 + g->slot[k], g->low[k]);
    }
  }
  for (u32 base = 0; base < n_longer + SA_GROUP; base += SA_GROUP) {
    if (base < n_longer) {
      for (u32 k = n_longer; k < base + SA_GROUP; k++) longer[k] = longer[n_longer - 1];
      sa_prepare16(&groups[base / SA_GROUP & 1], hot16, cache->hot16_bits, text, starts, longer + base);
    }
    if (base >= SA_GROUP) {
      const sa_group *g = &groups[(base / SA_GROUP - 1) & 1];
      const u32 *const which = longer + base - SA_GROUP;
      for (int k = 0; k < SA_GROUP; k++) values[which[k]] = sa_probe16(hot16 + g->slot[k], g->low[k], g->high[k]);
    }
  }
  for (u32 base = 0; base < pieces; base += SA_GROUP) {
    u64 mask = 0;
    for (int k = 0; k < SA_GROUP; k += 8) mask |= (u64)sa_zeros8(values + base + k) << k;
    if (pieces - base < SA_GROUP) mask &= ((u64)1 << (pieces - base)) - 1;
    n_missed += (u32)sa_positions(mask, base, missed + n_missed);
  }
  return n_missed;
}

static uint32_t *sa_hot_emit(const uint32_t *spill, const uint64_t *values, int64_t n, uint32_t *out,
                             int64_t room) {
  const uint32_t *const limit = out + (room - 3);
  for (int64_t i = 0; i < n; i++) {
    const u64 value = values[i];
    const u32 count = sa_value_count(value);
    if (count && out < limit) {
      out[0] = (u32)value & 0xFFFFF;
      out[1] = (u32)(value >> 20) & 0xFFFFF;
      out[2] = (u32)(value >> 40) & 0xFFFFF;
      out += count;
    } else if (count) {
      for (u32 k = 0; k < count; k++) *out++ = (u32)(value >> (20 * k)) & 0xFFFFF;
    } else {
      const u32 ids = (u32)(value >> 32) & 0xFFFFFFF;
      memcpy(out, spill + (u32)value, ids * sizeof *out);
      out += ids;
    }
  }
  return out;
}

const struct sa_hot_path SA_HOT_PATH = {.probe = sa_hot_probe, .emit = sa_hot_emit};
