/* Primitives of the hot path over pieces, included at the end of each simd/<isa>.h: what an instruction set has
 * no better way for is the portable one.
 */
#ifndef SAPHIRA_SIMD_PIECES_H
#define SAPHIRA_SIMD_PIECES_H

#include "cache.h"

#define SA_GROUP 64
#define SA_UNROLLED _Pragma("GCC unroll 8")

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

/* ---- emit ----
 *
 * sa_put_exact: the ids of a value to out; returns their end. sa_put: the same of some values, but it writes up to
 * SA_SPILL_BEYOND ids too many, and reads as many behind those spilled. */
static inline uint32_t *sa_put_exact(const uint32_t *spill, u64 value, uint32_t *out) {
  const u32 few = sa_value_count(value);
  if (!few) {
    const u64 n = sa_value_ids(value);
    memcpy(out, spill + (u32)value, n * sizeof *out);
    return out + n;
  }
  for (u32 k = 0; k < few; k++) *out++ = sa_value_id(value, k);
  return out;
}

/* ---- groups of SA_GROUP pieces ----
 *
 * sa_prepare8: piece k is text[at[k], at[k + 1]). low: the keys of pieces of up to 7 bytes, for a longer one some key
 * that finds nothing; set: byte offsets of their sets in a hot table of 1 << bits entries. Returns the mask of
 * pieces of 8 to 15 bytes.
 * sa_prepare16: the same for pieces starts[which[k]], all of 8 to 15 bytes, whose keys have two words.
 * sa_probe8: values[k], sa_probe16: values[which[k]]: the value of the key in its set, or 0. */
#if !defined(__AVX512VBMI2__)
/* A value, or those spilled; see sa_put. */
static inline uint32_t *sa_put_one(const uint32_t *spill, u64 value, uint32_t *out) {
  const u64 few = sa_value_count(value);
  if (__builtin_expect(few == 0, 0)) {
    const uint32_t *const from = spill + (u32)value;
    const u64 n = sa_value_ids(value);
    for (u64 i = 0; i < n; i += 8) memcpy(out + i, from + i, 8 * sizeof *out);
    return out + n;
  }
  out[0] = sa_value_id(value, 0);
  out[1] = sa_value_id(value, 1);
  out[2] = sa_value_id(value, 2);
  return out + few;
}
#endif

#define SA_SET(type, table, offset) ((const type *)((const char *)(table) + (offset)))

#if defined(__AVX512VBMI2__)
#include "pieces_avx512.h"
#elif defined(__AVX2__)
#include "pieces_avx2.h"
#else

/* Bit i: lo <= v[i] <= hi, of eight. */
static inline u32 sa_between8(const u32 *v, u32 lo, u32 hi) {
  u32 mask = 0;
  for (int i = 0; i < 8; i++) mask |= (u32)(v[i] - lo <= hi - lo) << i;
  return mask;
}

/* Loops of fixed length for the compiler to turn into vectors. */
static inline u64 sa_prepare8(const u8 *text, const u32 *at, u32 bits, u64 *restrict low, u64 *restrict set) {
  const u64 sets = (((u64)1 << bits) - 2) * sizeof(sa_entry8), shift = 32 - bits;
  u32 length[SA_GROUP];
  u64 word[SA_GROUP], longer = 0;
  for (int k = 0; k < SA_GROUP; k++) length[k] = at[k + 1] - at[k];
  SA_UNROLLED
  for (int k = 0; k < SA_GROUP; k++) word[k] = sa_load_word(text + at[k]);
  for (int k = 0; k < SA_GROUP; k++) {
    const u64 n = length[k], over = (SA_KEY8_BYTES - n) >> 63;
    const u64 key = sa_key8(word[k], n & 7) | (0 - over);
    low[k] = key;
    set[k] = (sa_hash8(key) >> shift) * sizeof(sa_entry8) & sets;
  }
  for (int k = 0; k < SA_GROUP; k += 8)
    longer |= (u64)sa_between8(length + k, SA_KEY8_BYTES + 1, SA_KEY16_BYTES) << k;
  return longer;
}

static inline void sa_prepare16(const u8 *text, const u32 *starts, const u32 *which, u32 bits, u64 *restrict low,
                                u64 *restrict high, u64 *restrict set) {
  const u64 sets = (((u64)1 << bits) - 2) * sizeof(sa_entry16), shift = 32 - bits;
  u64 length[SA_GROUP], word[SA_GROUP], word2[SA_GROUP];
  SA_UNROLLED
  for (int k = 0; k < SA_GROUP; k++) {
    const u32 at = starts[which[k]];
    length[k] = starts[which[k] + 1] - at;
    word[k] = sa_load_word(text + at);
    word2[k] = sa_load_word(text + at + 8);
  }
  for (int k = 0; k < SA_GROUP; k++) {
    low[k] = word[k];
    high[k] = sa_key16_high(word2[k], length[k]);
    set[k] = (sa_hash16(word[k], high[k]) >> shift) * sizeof(sa_entry16) & sets;
  }
}

static inline u64 sa_ones_if(int condition) { return -(u64)condition; }

static inline void sa_probe8(const sa_entry8 *table, const u64 *set, const u64 *low, uint64_t *values) {
  SA_UNROLLED
  for (int k = 0; k < SA_GROUP; k++) {
    const sa_entry8 *const e = SA_SET(sa_entry8, table, set[k]);
    values[k] = (e[0].value & sa_ones_if(e[0].key == low[k])) | (e[1].value & sa_ones_if(e[1].key == low[k]));
  }
}

static inline void sa_probe16(const sa_entry16 *table, const u64 *set, const u64 *low, const u64 *high,
                              const u32 *which, uint64_t *values) {
  SA_UNROLLED
  for (int k = 0; k < SA_GROUP; k++) {
    const sa_entry16 *const e = SA_SET(sa_entry16, table, set[k]);
    const u64 first = (e[0].low ^ low[k]) | (e[0].high ^ high[k]), second = (e[1].low ^ low[k]) | (e[1].high ^ high[k]);
    values[which[k]] = (e[0].value & sa_ones_if(first == 0)) | (e[1].value & sa_ones_if(second == 0));
  }
}

static inline uint32_t *sa_put(const uint32_t *spill, const uint64_t *values, int64_t count, uint32_t *out) {
  for (int64_t k = 0; k < count; k++) out = sa_put_one(spill, values[k], out);
  return out;
}
#endif

#if defined(__AVX2__)
/* The next group is as a rule like the last. */
static inline uint32_t *sa_put(const uint32_t *spill, const uint64_t *values, int64_t n, uint32_t *out) {
  int dense = 0;
  for (int64_t i = 0; i < n; i += SA_GROUP) {
    const u32 here = (u32)(n - i < SA_GROUP ? n - i : SA_GROUP);
    u32 spilled = 0;
    for (int k = 0; k < 5; k++) __builtin_prefetch(out + 512 + 16 * k, 1); /* what is written soon: 3% of English */
    out = dense ? sa_put_dense(spill, values + i, here, out, &spilled)
                : sa_put_sparse(spill, values + i, here, out, &spilled);
    dense = spilled > 2;
  }
  return out;
}
#endif

/* Index of the first of the lowest of 16, 32 or 64 values, and that value. */
#if defined(__AVX512VBMI2__)
static inline int sa_lowest(const uint32_t *v, int n, uint32_t *lowest) {
  const __m512i a = _mm512_loadu_si512(v), b = _mm512_loadu_si512(v + 16);
  if (n == 16) {
    *lowest = _mm512_reduce_min_epu32(a);
    return __builtin_ctz(_mm512_cmpeq_epi32_mask(a, _mm512_set1_epi32((int)*lowest)));
  }
  if (n == 32) {
    *lowest = _mm512_reduce_min_epu32(_mm512_min_epu32(a, b));
    const __m512i all = _mm512_set1_epi32((int)*lowest);
    return sa_ctz64(_mm512_cmpeq_epi32_mask(a, all) | (u64)_mm512_cmpeq_epi32_mask(b, all) << 16);
  }
  const __m512i c = _mm512_loadu_si512(v + 32), d = _mm512_loadu_si512(v + 48);
  *lowest = _mm512_reduce_min_epu32(_mm512_min_epu32(_mm512_min_epu32(a, b), _mm512_min_epu32(c, d)));
  const __m512i all = _mm512_set1_epi32((int)*lowest);
  return sa_ctz64(_mm512_cmpeq_epi32_mask(a, all) | (u64)_mm512_cmpeq_epi32_mask(b, all) << 16 |
                  (u64)_mm512_cmpeq_epi32_mask(c, all) << 32 | (u64)_mm512_cmpeq_epi32_mask(d, all) << 48);
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
