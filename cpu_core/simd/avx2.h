/* Lanes of 64 bytes in two AVX2 registers. */
#ifndef SAPHIRA_SIMD_H
#define SAPHIRA_SIMD_H

#include <immintrin.h>

#include "backend.h"

#define SA_ISA_NAME "avx2"
#define SA_BACKEND sa_backend_avx2

typedef struct lanes { __m256i a, b; } lanes;
typedef lanes lane_mask;  /* 0xFF or 0 in each byte */

static inline lanes sa_load(const u8 *p) {
  lanes v = {_mm256_loadu_si256((const __m256i *)p), _mm256_loadu_si256((const __m256i *)(p + 32))};
  return v;
}
static inline void sa_store(u8 *p, lanes v) {
  _mm256_storeu_si256((__m256i *)p, v.a);
  _mm256_storeu_si256((__m256i *)(p + 32), v.b);
}
static inline lanes sa_splat(u8 x) {
  lanes v = {_mm256_set1_epi8((char)x), _mm256_set1_epi8((char)x)};
  return v;
}
static inline u64 sa_high(lanes v) {
  return (u32)_mm256_movemask_epi8(v.a) | (u64)(u32)_mm256_movemask_epi8(v.b) << 32;
}
static inline lane_mask sa_eq_mask(lanes v, u8 x) {
  lanes s = sa_splat(x), r = {_mm256_cmpeq_epi8(v.a, s.a), _mm256_cmpeq_epi8(v.b, s.b)};
  return r;
}
static inline u64 sa_eq(lanes v, u8 x) { return sa_high(sa_eq_mask(v, x)); }
static inline u64 sa_same(lanes v, lanes w) {
  lanes r = {_mm256_cmpeq_epi8(v.a, w.a), _mm256_cmpeq_epi8(v.b, w.b)};
  return sa_high(r);
}
/* Bytes at or above x, unsigned; x >= 0x80. */
static inline u64 sa_at_least(lanes v, u8 x) {
  lanes s = sa_splat(x), r = {_mm256_cmpeq_epi8(_mm256_max_epu8(v.a, s.a), v.a),
                              _mm256_cmpeq_epi8(_mm256_max_epu8(v.b, s.b), v.b)};
  return sa_high(r);
}
/* bits: a power of two; the shift moves it to the sign, where movemask reads it. */
static inline u64 sa_test(lanes v, u8 bits) {
  int by = 7 - sa_ctz64(bits);
  lanes r = {_mm256_slli_epi16(v.a, by), _mm256_slli_epi16(v.b, by)};
  return sa_high(r);
}
static inline lane_mask sa_mask_and(lane_mask a, lane_mask b) {
  lanes r = {_mm256_and_si256(a.a, b.a), _mm256_and_si256(a.b, b.b)};
  return r;
}
static inline __m256i sa_mask_half(u32 m) {
  const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2,
                                          2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
  const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201ull);
  __m256i v = _mm256_shuffle_epi8(_mm256_set1_epi32((int)m), spread);
  return _mm256_cmpeq_epi8(_mm256_and_si256(v, bit), bit);
}
static inline lane_mask sa_mask_of(u64 m) {
  lanes r = {sa_mask_half((u32)m), sa_mask_half((u32)(m >> 32))};
  return r;
}
static inline u64 sa_mask_bits(lane_mask m) { return sa_high(m); }
static inline lanes sa_blend(lane_mask m, lanes yes, lanes no) {
  lanes r = {_mm256_blendv_epi8(no.a, yes.a, m.a), _mm256_blendv_epi8(no.b, yes.b, m.b)};
  return r;
}
static inline lanes sa_and(lanes v, u8 x) { return sa_mask_and(v, sa_splat(x)); }
static inline lanes sa_mod64(lanes v) { return sa_and(v, 0x3F); }
static inline __m256i sa_broadcast16(const u8 *t) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)t));
}
static inline lanes sa_lookup16(const u8 *table, lanes v) {
  __m256i t = sa_broadcast16(table);
  lanes r = {_mm256_shuffle_epi8(t, v.a), _mm256_shuffle_epi8(t, v.b)};
  return r;
}
/* Entry v of a table in `parts` pieces of 16: each shuffle answers where v's upper nibble is its own,
 * else gives 0, because the sum's top bit is set. */
static inline lanes sa_lookup_parts(const u8 *table, int parts, lanes v) {
  const __m256i add = _mm256_set1_epi8(0x70);
  lanes r = sa_splat(0);
  for (int k = 0; k < parts; k++) {
    __m256i t = sa_broadcast16(table + 16 * k), flip = _mm256_set1_epi8((char)(16 * k));
    __m256i ia = _mm256_adds_epu8(_mm256_xor_si256(v.a, flip), add);
    __m256i ib = _mm256_adds_epu8(_mm256_xor_si256(v.b, flip), add);
    r.a = _mm256_or_si256(r.a, _mm256_shuffle_epi8(t, ia));
    r.b = _mm256_or_si256(r.b, _mm256_shuffle_epi8(t, ib));
  }
  return r;
}
/* v 0..31. */
static inline lanes sa_lookup32(const u8 *table, lanes v) {
  __m256i t0 = sa_broadcast16(table), t1 = sa_broadcast16(table + 16);
  lanes r = {_mm256_blendv_epi8(_mm256_shuffle_epi8(t0, v.a), _mm256_shuffle_epi8(t1, v.a),
                                _mm256_slli_epi16(v.a, 3)),
             _mm256_blendv_epi8(_mm256_shuffle_epi8(t0, v.b), _mm256_shuffle_epi8(t1, v.b),
                                _mm256_slli_epi16(v.b, 3))};
  return r;
}
static inline __m256i sa_lookup64_half(const u8 *table, __m256i v) {
  __m256i by16 = _mm256_slli_epi16(v, 3), by32 = _mm256_slli_epi16(v, 2);
  __m256i low = _mm256_blendv_epi8(_mm256_shuffle_epi8(sa_broadcast16(table), v),
                                   _mm256_shuffle_epi8(sa_broadcast16(table + 16), v), by16);
  __m256i high = _mm256_blendv_epi8(_mm256_shuffle_epi8(sa_broadcast16(table + 32), v),
                                    _mm256_shuffle_epi8(sa_broadcast16(table + 48), v), by16);
  return _mm256_blendv_epi8(low, high, by32);
}
/* v from sa_mod64. */
static inline lanes sa_lookup64(const u8 *table, lanes v) {
  lanes r = {sa_lookup64_half(table, v.a), sa_lookup64_half(table, v.b)};
  return r;
}
/* Bytes below 0x80; what others give does not matter. */
static inline lanes sa_lookup128(const u8 *table, lanes v) { return sa_lookup_parts(table, 8, v); }
static inline lanes sa_flip_high(lanes v) {
  lanes s = sa_splat(0x80), r = {_mm256_xor_si256(v.a, s.a), _mm256_xor_si256(v.b, s.b)};
  return r;
}

/* Positions of the set bits of one word + base; may write up to 16 beyond. */
static inline size_t sa_positions(u64 word, u32 base, u32 *out) {
  size_t n = (size_t)sa_popcount64(word), i = 0;
  do {  /* eight at a time: past the last bit the count of a zero word is written and then overwritten */
    for (int k = 0; k < 8; k++) {
      out[i + (size_t)k] = base + (u32)_tzcnt_u64(word);
      word = _blsr_u64(word);
    }
    i += 8;
  } while (i < n);
  return n;
}

#include "pieces.h"

#endif
