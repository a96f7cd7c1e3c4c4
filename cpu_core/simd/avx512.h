/* Lanes of 64 bytes in one AVX-512 register; needs BW, VBMI and VBMI2. */
#ifndef SAPHIRA_SIMD_H
#define SAPHIRA_SIMD_H

#include <immintrin.h>

#include "backend.h"

#define SA_ISA_NAME "avx512"
#define SA_BACKEND sa_backend_avx512

typedef __m512i lanes;
typedef __mmask64 lane_mask;

static inline lanes sa_load(const u8 *p) { return _mm512_loadu_si512(p); }
static inline void sa_store(u8 *p, lanes v) { _mm512_storeu_si512(p, v); }
static inline lanes sa_splat(u8 x) { return _mm512_set1_epi8((char)x); }
static inline u64 sa_high(lanes v) { return _mm512_movepi8_mask(v); }
static inline u64 sa_eq(lanes v, u8 x) { return _mm512_cmpeq_epi8_mask(v, sa_splat(x)); }
static inline u64 sa_same(lanes v, lanes w) { return _mm512_cmpeq_epi8_mask(v, w); }
/* Bytes at or above x, unsigned; x >= 0x80. */
static inline u64 sa_at_least(lanes v, u8 x) { return _mm512_cmpge_epu8_mask(v, sa_splat(x)); }
static inline u64 sa_test(lanes v, u8 bits) { return _mm512_test_epi8_mask(v, sa_splat(bits)); }
static inline lane_mask sa_eq_mask(lanes v, u8 x) { return sa_eq(v, x); }
static inline lane_mask sa_mask_and(lane_mask a, lane_mask b) { return a & b; }
static inline lane_mask sa_mask_of(u64 m) { return m; }
static inline u64 sa_mask_bits(lane_mask m) { return m; }
static inline lanes sa_blend(lane_mask m, lanes yes, lanes no) { return _mm512_mask_blend_epi8(m, no, yes); }
static inline lanes sa_and(lanes v, u8 x) { return _mm512_and_si512(v, sa_splat(x)); }
/* vpermb takes its indices modulo 64. */
static inline lanes sa_mod64(lanes v) { return v; }
static inline lanes sa_lookup16(const u8 *table, lanes v) {
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)table)), v);
}
/* v 0..31. */
static inline lanes sa_lookup32(const u8 *table, lanes v) {
  return _mm512_permutexvar_epi8(v, _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)table)));
}
static inline lanes sa_lookup64(const u8 *table, lanes v) {
  return _mm512_permutexvar_epi8(v, sa_load(table));
}
/* Bytes below 0x80; what others give does not matter. */
static inline lanes sa_lookup128(const u8 *table, lanes v) {
  return _mm512_permutex2var_epi8(sa_load(table), v, sa_load(table + 64));
}
static inline lanes sa_flip_high(lanes v) { return _mm512_xor_si512(v, sa_splat(0x80)); }

static const u8 sa_iota[64] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
    44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

/* Positions of the set bits of one word + base; may write up to 16 beyond. */
static inline size_t sa_positions(u64 word, u32 base, u32 *out) {
  lanes at = _mm512_maskz_compress_epi8(word, sa_load(sa_iota)), from = _mm512_set1_epi32((int)base);
  size_t n = (size_t)sa_popcount64(word);
  _mm512_storeu_si512(out, _mm512_add_epi32(from, _mm512_cvtepu8_epi32(_mm512_castsi512_si128(at))));
  if (n > 16) {
    __m256i high = _mm512_extracti64x4_epi64(at, 1);
    _mm512_storeu_si512(out + 16, _mm512_add_epi32(from, _mm512_cvtepu8_epi32(
                                      _mm256_extracti128_si256(_mm512_castsi512_si256(at), 1))));
    if (n > 32) {
      _mm512_storeu_si512(out + 32, _mm512_add_epi32(from, _mm512_cvtepu8_epi32(
                                        _mm256_castsi256_si128(high))));
      if (n > 48)
        _mm512_storeu_si512(out + 48, _mm512_add_epi32(from, _mm512_cvtepu8_epi32(
                                          _mm256_extracti128_si256(high, 1))));
    }
  }
  return n;
}

#include "pieces.h"

#endif
