/* Lanes of 64 bytes in one AVX-512 register; needs BW, VBMI and VBMI2. */
#ifndef SAPHIRA_SIMD_H
#define SAPHIRA_SIMD_H

#include <immintrin.h>

#include "backend.h"
#include "cache.h"

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

/* ---- pieces ---- */

/* Bit i: lo <= v[i] <= hi, of eight. */
static inline u32 sa_between8(const u32 *v, u32 lo, u32 hi) {
  const __m256i x = _mm256_sub_epi32(_mm256_loadu_si256((const __m256i *)v), _mm256_set1_epi32((int)lo));
  return _mm256_cmple_epu32_mask(x, _mm256_set1_epi32((int)(hi - lo)));
}

/* Bit i: v[i] == 0, of eight. */
static inline u32 sa_zeros8(const uint64_t *v) {
  const __m512i x = _mm512_loadu_si512(v);
  return _mm512_testn_epi64_mask(x, x);
}

/* The value of a key in a set of two, or 0. The set is a register {key, value, key, value}: each value is kept
 * where the key before it is equal, and the two joined. */
static inline u64 sa_probe8(const sa_entry8 *e, u64 key) {
  const __m256i set = _mm256_load_si256((const __m256i *)e);
  const __m256i equal = _mm256_cmpeq_epi64(set, _mm256_set1_epi64x((long long)key));
  const __m256i kept = _mm256_and_si256(set, _mm256_shuffle_epi32(equal, 0x4E));
  const __m128i both = _mm_or_si128(_mm256_castsi256_si128(kept), _mm256_extracti128_si256(kept, 1));
  return (u64)_mm_extract_epi64(both, 1);
}

static inline u64 sa_probe16(const sa_entry16 *e, u64 low, u64 high) {
  const u64 first = (e[0].low ^ low) | (e[0].high ^ high), second = (e[1].low ^ low) | (e[1].high ^ high);
  return (e[0].value & -(u64)(first == 0)) | (e[1].value & -(u64)(second == 0));
}

/* Three ids of 20 bits to out[0..3). */
static inline void sa_put3(u64 value, uint32_t *out) {
  const u64 two = _pdep_u64(value, 0x000FFFFF000FFFFFu);
  memcpy(out, &two, 8);
  out[2] = (u32)(value >> 40) & 0xFFFFF;
}

/* Index of the first of the lowest of n values (n a multiple of 16), and that value. */
static inline int sa_lowest(const uint32_t *v, int n, uint32_t *lowest) {
  __m512i least = _mm512_loadu_si512(v);
  for (int i = 16; i < n; i += 16) least = _mm512_min_epu32(least, _mm512_loadu_si512(v + i));
  *lowest = _mm512_reduce_min_epu32(least);
  for (int i = 0;; i += 16) {
    const u32 mask = _mm512_cmpeq_epi32_mask(_mm512_set1_epi32((int)*lowest), _mm512_loadu_si512(v + i));
    if (mask) return i + __builtin_ctz(mask);
  }
}

#endif
