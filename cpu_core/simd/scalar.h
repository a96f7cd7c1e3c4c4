/* Lanes of 64 bytes without vector instructions: eight words, bytes compared inside them. */
#ifndef SAPHIRA_SIMD_H
#define SAPHIRA_SIMD_H

#include "backend.h"

#define SA_ISA_NAME "scalar"
#define SA_BACKEND sa_backend_scalar

typedef struct lanes { u8 b[64]; } lanes;
typedef u64 lane_mask;

#define SA_EVERY 0x0101010101010101ull
#define SA_LOW7 0x7F7F7F7F7F7F7F7Full

/* The top bits of eight bytes as a byte. */
static inline u64 sa_top_bits(u64 x) {
  return (((x >> 7) & SA_EVERY) * 0x0102040810204080ull) >> 56;
}
static inline u64 sa_word(const u8 *p) {
  u64 x;
  memcpy(&x, p, 8);
  return x;
}
static inline lanes sa_load(const u8 *p) {
  lanes v;
  memcpy(v.b, p, 64);
  return v;
}
static inline void sa_store(u8 *p, lanes v) { memcpy(p, v.b, 64); }
static inline lanes sa_splat(u8 x) {
  lanes v;
  memset(v.b, x, 64);
  return v;
}
static inline u64 sa_high(lanes v) {
  u64 m = 0;
  for (int i = 0; i < 8; i++) m |= sa_top_bits(sa_word(v.b + 8 * i)) << (8 * i);
  return m;
}
/* Bytes equal to x: the word's zero bytes after a xor, found without carries between bytes. */
static inline u64 sa_eq(lanes v, u8 x) {
  u64 m = 0, splat = x * SA_EVERY;
  for (int i = 0; i < 8; i++) {
    u64 y = sa_word(v.b + 8 * i) ^ splat;
    m |= sa_top_bits(~(((y & SA_LOW7) + SA_LOW7) | y)) << (8 * i);
  }
  return m;
}
static inline u64 sa_same(lanes v, lanes w) {
  u64 m = 0;
  for (int i = 0; i < 8; i++) {
    u64 y = sa_word(v.b + 8 * i) ^ sa_word(w.b + 8 * i);
    m |= sa_top_bits(~(((y & SA_LOW7) + SA_LOW7) | y)) << (8 * i);
  }
  return m;
}
/* Bytes at or above x, unsigned; x >= 0x80. */
static inline u64 sa_at_least(lanes v, u8 x) {
  u64 m = 0, add = (u64)(0x80 - (x & 0x7F)) * SA_EVERY;
  for (int i = 0; i < 8; i++) {
    u64 y = sa_word(v.b + 8 * i);
    m |= sa_top_bits(((y & SA_LOW7) + add) & y) << (8 * i);
  }
  return m;
}
static inline u64 sa_test(lanes v, u8 bits) {
  u64 m = 0, splat = bits * SA_EVERY;
  for (int i = 0; i < 8; i++) {
    u64 y = sa_word(v.b + 8 * i) & splat;
    m |= sa_top_bits(((y & SA_LOW7) + SA_LOW7) | y) << (8 * i);
  }
  return m;
}
static inline lane_mask sa_eq_mask(lanes a, u8 x) { return sa_eq(a, x); }
static inline lane_mask sa_mask_and(lane_mask a, lane_mask b) { return a & b; }
static inline lane_mask sa_mask_of(u64 m) { return m; }
static inline u64 sa_mask_bits(lane_mask m) { return m; }
static inline lanes sa_blend(lane_mask m, lanes yes, lanes no) {
  while (m) {
    int i = sa_ctz64(m);
    m &= m - 1;
    no.b[i] = yes.b[i];
  }
  return no;
}
static inline lanes sa_and(lanes v, u8 x) {
  for (int i = 0; i < 64; i++) v.b[i] &= x;
  return v;
}
/* Lookups here take their indices modulo the table's size. */
static inline lanes sa_mod64(lanes v) { return v; }
#define SA_LOOKUP_WHERE(width)                                                                     \
  static inline lanes sa_lookup##width##_where(lane_mask m, const u8 *table, lanes v, lanes old) { \
    for (; m; m &= m - 1) {                                                                        \
      int i = sa_ctz64(m);                                                                         \
      old.b[i] = table[v.b[i] & (width - 1)];                                                      \
    }                                                                                              \
    return old;                                                                                    \
  }
static inline lanes sa_lookup16(const u8 *table, lanes v) {
  for (int i = 0; i < 64; i++) v.b[i] = table[v.b[i] & 15];
  return v;
}
static inline lanes sa_lookup32(const u8 *table, lanes v) {
  for (int i = 0; i < 64; i++) v.b[i] = table[v.b[i] & 31];
  return v;
}
static inline lanes sa_lookup64(const u8 *table, lanes v) {
  for (int i = 0; i < 64; i++) v.b[i] = table[v.b[i] & 63];
  return v;
}
/* Bytes below 0x80; what others give does not matter. */
static inline lanes sa_lookup128(const u8 *table, lanes v) {
  for (int i = 0; i < 64; i++) v.b[i] = table[v.b[i] & 127];
  return v;
}
static inline lanes sa_flip_high(lanes v) {
  for (int i = 0; i < 64; i++) v.b[i] ^= 0x80;
  return v;
}

/* Positions of the set bits of one word + base; may write up to 16 beyond. */
static inline size_t sa_positions(u64 word, u32 base, u32 *out) {
  u32 *first = out;
  for (; word; word &= word - 1) *out++ = base + (u32)sa_ctz64(word);
  return (size_t)(out - first);
}

#include "pieces.h"

#endif
