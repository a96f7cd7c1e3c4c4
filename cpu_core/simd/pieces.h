/* Primitives of the hot path over pieces, included at the end of each simd/<isa>.h: what an instruction set has
 * no better way for is the portable one.
 */
#ifndef SAPHIRA_SIMD_PIECES_H
#define SAPHIRA_SIMD_PIECES_H

#include "cache.h"

/* Bit i: lo <= v[i] <= hi, of eight. */
#if defined(__AVX512VBMI2__)
static inline u32 sa_between8(const u32 *v, u32 lo, u32 hi) {
  const __m256i x = _mm256_sub_epi32(_mm256_loadu_si256((const __m256i *)v), _mm256_set1_epi32((int)lo));
  return _mm256_cmple_epu32_mask(x, _mm256_set1_epi32((int)(hi - lo)));
}
#elif defined(__AVX2__)
static inline u32 sa_between8(const u32 *v, u32 lo, u32 hi) {
  const __m256i x = _mm256_sub_epi32(_mm256_loadu_si256((const __m256i *)v), _mm256_set1_epi32((int)lo));
  const __m256i most = _mm256_min_epu32(x, _mm256_set1_epi32((int)(hi - lo)));
  return (u32)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(most, x)));
}
#else
static inline u32 sa_between8(const u32 *v, u32 lo, u32 hi) {
  u32 mask = 0;
  for (int i = 0; i < 8; i++) mask |= (u32)(v[i] - lo <= hi - lo) << i;
  return mask;
}
#endif

/* Bit i: v[i] == 0, of eight. */
#if defined(__AVX512VBMI2__)
static inline u32 sa_zeros8(const uint64_t *v) {
  const __m512i x = _mm512_loadu_si512(v);
  return _mm512_testn_epi64_mask(x, x);
}
#elif defined(__AVX2__)
static inline u32 sa_zeros8(const uint64_t *v) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i low = _mm256_cmpeq_epi64(_mm256_loadu_si256((const __m256i *)v), zero);
  const __m256i high = _mm256_cmpeq_epi64(_mm256_loadu_si256((const __m256i *)(v + 4)), zero);
  return (u32)(_mm256_movemask_pd(_mm256_castsi256_pd(low)) | _mm256_movemask_pd(_mm256_castsi256_pd(high)) << 4);
}
#else
static inline u32 sa_zeros8(const uint64_t *v) {
  u32 mask = 0;
  for (int i = 0; i < 8; i++) mask |= (u32)(v[i] == 0) << i;
  return mask;
}
#endif

static inline u64 sa_ones_if(int condition) { return -(u64)condition; }

/* The value of a key in a set of two, or 0. AVX2: the set is a register {key, value, key, value}; each value is
 * kept where the key before it is equal, and the two joined. */
#if defined(__AVX2__)
static inline u64 sa_probe8(const sa_entry8 *e, u64 key) {
  const __m256i set = _mm256_load_si256((const __m256i *)e);
  const __m256i equal = _mm256_cmpeq_epi64(set, _mm256_set1_epi64x((long long)key));
  const __m256i kept = _mm256_and_si256(set, _mm256_shuffle_epi32(equal, 0x4E));
  const __m128i both = _mm_or_si128(_mm256_castsi256_si128(kept), _mm256_extracti128_si256(kept, 1));
  return (u64)_mm_extract_epi64(both, 1);
}
#else
static inline u64 sa_probe8(const sa_entry8 *e, u64 key) {
  return (e[0].value & sa_ones_if(e[0].key == key)) | (e[1].value & sa_ones_if(e[1].key == key));
}
#endif

/* The same of a key of two words. */
static inline u64 sa_probe16(const sa_entry16 *e, u64 low, u64 high) {
  const u64 first = (e[0].low ^ low) | (e[0].high ^ high), second = (e[1].low ^ low) | (e[1].high ^ high);
  return (e[0].value & sa_ones_if(first == 0)) | (e[1].value & sa_ones_if(second == 0));
}

/* Three ids of 20 bits to out[0..3). pdep is quick wherever there is AVX-512, but not on all of AVX2. */
#if defined(__AVX512VBMI2__)
static inline void sa_put3(u64 value, uint32_t *out) {
  const u64 two = _pdep_u64(value, 0x000FFFFF000FFFFFu);
  memcpy(out, &two, 8);
  out[2] = (u32)(value >> 40) & 0xFFFFF;
}
#else
static inline void sa_put3(u64 value, uint32_t *out) {
  out[0] = (u32)value & 0xFFFFF;
  out[1] = (u32)(value >> 20) & 0xFFFFF;
  out[2] = (u32)(value >> 40) & 0xFFFFF;
}
#endif

/* Index of the first of the lowest of n values (n a multiple of 16), and that value. */
#if defined(__AVX512VBMI2__)
static inline int sa_lowest(const uint32_t *v, int n, uint32_t *lowest) {
  __m512i least = _mm512_loadu_si512(v);
  for (int i = 16; i < n; i += 16) least = _mm512_min_epu32(least, _mm512_loadu_si512(v + i));
  *lowest = _mm512_reduce_min_epu32(least);
  for (int i = 0;; i += 16) {
    const u32 mask = _mm512_cmpeq_epi32_mask(_mm512_set1_epi32((int)*lowest), _mm512_loadu_si512(v + i));
    if (mask) return i + __builtin_ctz(mask);
  }
}
#elif defined(__AVX2__)
static inline int sa_lowest(const uint32_t *v, int n, uint32_t *lowest) {
  __m256i least = _mm256_loadu_si256((const __m256i *)v);
  for (int i = 8; i < n; i += 8) least = _mm256_min_epu32(least, _mm256_loadu_si256((const __m256i *)(v + i)));
  __m128i four = _mm_min_epu32(_mm256_castsi256_si128(least), _mm256_extracti128_si256(least, 1));
  four = _mm_min_epu32(four, _mm_shuffle_epi32(four, 0x4E));
  four = _mm_min_epu32(four, _mm_shuffle_epi32(four, 0xB1));
  const __m256i all = _mm256_broadcastd_epi32(four);
  *lowest = (uint32_t)_mm_cvtsi128_si32(four);
  for (int i = 0;; i += 8) {
    const __m256i equal = _mm256_cmpeq_epi32(all, _mm256_loadu_si256((const __m256i *)(v + i)));
    const u32 mask = (u32)_mm256_movemask_ps(_mm256_castsi256_ps(equal));
    if (mask) return i + __builtin_ctz(mask);
  }
}
#else
static inline int sa_lowest(const uint32_t *v, int n, uint32_t *lowest) {
  uint32_t best = v[0];
  int at = 0;
  for (int i = 1; i < n; i++) {
    at = v[i] < best ? i : at;
    best = v[i] < best ? v[i] : best;
  }
  *lowest = best;
  return at;
}
#endif

#endif
