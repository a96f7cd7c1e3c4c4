/* Groups of pieces in AVX2, for pieces.h: four pieces are the four lanes of a register.
 *
 * Measured on Zen 4, GPT-2, warm, all of the encoder against the portable loops as compiled for AVX2: the look-ups
 * are 8% on English and 5% on code, keys and hashes 9% and 8% more.
 */
#ifndef SAPHIRA_SIMD_PIECES_AVX2_H
#define SAPHIRA_SIMD_PIECES_AVX2_H

static inline __m128i sa_words2(const void *a, const void *b) {
  return _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)a), _mm_loadl_epi64((const __m128i *)b));
}
static inline __m256i sa_words4(const void *a, const void *b, const void *c, const void *d) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(sa_words2(a, b)), sa_words2(c, d), 1);
}

/* sa_hash8 and half of sa_hash16 of each lane, in its lower 32 bits. */
static inline __m256i sa_hash_lanes(__m256i words, u32 first, u32 second) {
  return _mm256_add_epi64(_mm256_mul_epu32(words, _mm256_set1_epi64x(first)),
                          _mm256_mul_epu32(_mm256_srli_epi64(words, 32), _mm256_set1_epi64x(second)));
}

/* The words without their highest `bits` bits; 64 and more: 0. */
static inline __m256i sa_without_top(__m256i words, __m256i bits) {
  return _mm256_srlv_epi64(_mm256_sllv_epi64(words, bits), bits);
}

/* Byte offsets of the sets, of two entries of 1 << size bytes, that the hashes choose. */
static inline __m256i sa_set_lanes(__m256i hash, u32 bits, u32 size) {
  const __m256i sets = _mm256_set1_epi64x((long long)((((u64)1 << bits) - 2) << size));
  return _mm256_and_si256(_mm256_srl_epi64(hash, _mm_cvtsi32_si128((int)(32 - size - bits))), sets);
}

static inline u64 sa_prepare8(const u8 *text, const u32 *at, u32 bits, u64 *restrict low, u64 *restrict set) {
  u64 longer = 0;
  SA_UNROLLED
  for (int k = 0; k < SA_GROUP; k += 4) {
    const __m256i words = sa_words4(text + at[k], text + at[k + 1], text + at[k + 2], text + at[k + 3]);
    const __m128i length = _mm_sub_epi32(_mm_loadu_si128((const __m128i *)(at + k + 1)),
                                         _mm_loadu_si128((const __m128i *)(at + k)));
    const __m256i n = _mm256_cvtepu32_epi64(length);
    const __m256i bytes = sa_without_top(words, _mm256_sub_epi64(_mm256_set1_epi64x(64), _mm256_slli_epi64(n, 3)));
    /* The key of a longer piece is 0, that of an empty slot, whose value is 0. */
    const __m256i fits = _mm256_cmpgt_epi64(_mm256_set1_epi64x(SA_KEY8_BYTES + 1), n);
    const __m256i key = _mm256_and_si256(_mm256_or_si256(bytes, _mm256_slli_epi64(n, 56)), fits);
    _mm256_storeu_si256((__m256i *)(low + k), key);
    _mm256_storeu_si256((__m256i *)(set + k), sa_set_lanes(sa_hash_lanes(key, SA_HASH_1, SA_HASH_2), bits, 4));
    const __m128i over = _mm_sub_epi32(length, _mm_set1_epi32(SA_KEY8_BYTES + 1));
    const __m128i most = _mm_min_epu32(over, _mm_set1_epi32(SA_KEY16_BYTES - SA_KEY8_BYTES - 1));
    longer |= (u64)(u32)_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(most, over))) << k;
  }
  return longer;
}

static inline void sa_prepare16(const u8 *text, const u32 *starts, const u32 *which, u32 bits, u64 *restrict low,
                                u64 *restrict high, u64 *restrict set) {
  for (int k = 0; k < SA_GROUP; k += 4) {
    const u32 *const a = starts + which[k], *const b = starts + which[k + 1];
    const u32 *const c = starts + which[k + 2], *const d = starts + which[k + 3];
    const __m256i bounds = sa_words4(a, b, c, d); /* start and end as one word */
    const __m256i n = _mm256_and_si256(_mm256_sub_epi64(_mm256_srli_epi64(bounds, 32), bounds),
                                       _mm256_set1_epi64x(0xFF));
    const __m256i front = sa_words4(text + *a, text + *b, text + *c, text + *d);
    const __m256i rest = sa_words4(text + *a + 8, text + *b + 8, text + *c + 8, text + *d + 8);
    const __m256i away = _mm256_sub_epi64(_mm256_set1_epi64x(128), _mm256_slli_epi64(n, 3));
    const __m256i back = _mm256_or_si256(sa_without_top(rest, away), _mm256_slli_epi64(n, 56));
    const __m256i hash = _mm256_add_epi64(sa_hash_lanes(front, SA_HASH_1, SA_HASH_2),
                                          sa_hash_lanes(back, SA_HASH_3, SA_HASH_4));
    _mm256_storeu_si256((__m256i *)(low + k), front);
    _mm256_storeu_si256((__m256i *)(high + k), back);
    _mm256_storeu_si256((__m256i *)(set + k), sa_set_lanes(hash, bits, 5));
  }
}

/* Two pieces at a time. A set of hot8 is a register {key, value, key, value}: unpacked, two sets are four keys and four
 * values; each value is kept where its key is equal, and the halves joined. */
static inline void sa_probe8(const sa_entry8 *table, const u64 *set, const u64 *low, uint64_t *values) {
  SA_UNROLLED
  for (int k = 0; k < SA_GROUP; k += 2) {
    const __m256i a = _mm256_load_si256((const __m256i *)SA_SET(sa_entry8, table, set[k]));
    const __m256i b = _mm256_load_si256((const __m256i *)SA_SET(sa_entry8, table, set[k + 1]));
    const __m256i keys = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(low + k)));
    const __m256i kept = _mm256_and_si256(_mm256_cmpeq_epi64(_mm256_unpacklo_epi64(a, b), keys),
                                          _mm256_unpackhi_epi64(a, b));
    _mm_storeu_si128((__m128i *)(values + k),
                     _mm_or_si128(_mm256_castsi256_si128(kept), _mm256_extracti128_si256(kept, 1)));
  }
}

/* An entry of hot16 is {low, high, value, unused}: unpacked, two are {lows, values} and {highs, unused}. */
static inline void sa_probe16(const sa_entry16 *table, const u64 *set, const u64 *low, const u64 *high,
                              const u32 *which, uint64_t *values) {
  SA_UNROLLED
  for (int k = 0; k < SA_GROUP; k++) {
    const __m256i *const e = (const __m256i *)SA_SET(sa_entry16, table, set[k]);
    const __m256i a = _mm256_load_si256(e), b = _mm256_load_si256(e + 1);
    const __m256i front = _mm256_unpacklo_epi64(a, b);
    const __m128i lows = _mm256_castsi256_si128(front), found = _mm256_extracti128_si256(front, 1);
    const __m128i highs = _mm256_castsi256_si128(_mm256_unpackhi_epi64(a, b));
    const __m128i equal = _mm_and_si128(_mm_cmpeq_epi64(lows, _mm_set1_epi64x((long long)low[k])),
                                        _mm_cmpeq_epi64(highs, _mm_set1_epi64x((long long)high[k])));
    const __m128i kept = _mm_and_si128(equal, found);
    values[which[k]] = (u64)_mm_cvtsi128_si64(_mm_or_si128(kept, _mm_unpackhi_epi64(kept, kept)));
  }
}

/* Four values at a time, unless one is spilled. Each stands twice in a register: its ids are the bits from 0, from 20
 * (moved up into the second lane) and from 40 on. *spilled: groups with one that is. */
static inline uint32_t *sa_put_sparse(const uint32_t *spill, const uint64_t *values, u32 n, uint32_t *out,
                                      u32 *spilled) {
  const __m256i counts = _mm256_set1_epi64x((long long)3 << 60), zero = _mm256_setzero_si256();
  const __m256i down = _mm256_setr_epi64x(0, 40, 0, 40), up = _mm256_setr_epi64x(12, 0, 12, 0);
  const __m256i ids = _mm256_setr_epi32(0xFFFFF, 0xFFFFF, 0xFFFFF, 0, 0xFFFFF, 0xFFFFF, 0xFFFFF, 0);
  u32 k = 0;
  for (; k + 4 <= n; k += 4) {
    const __m256i v = _mm256_loadu_si256((const __m256i *)(values + k));
    const __m256i none = _mm256_cmpeq_epi64(_mm256_and_si256(v, counts), zero);
    if (__builtin_expect(!_mm256_testz_si256(none, none), 0)) {
      for (u32 i = 0; i < 4; i++) out = sa_put_one(spill, values[k + i], out);
      ++*spilled;
      continue;
    }
    const __m256i two[2] = {_mm256_permute4x64_epi64(v, 0x50), _mm256_permute4x64_epi64(v, 0xFA)};
    for (u32 i = 0; i < 2; i++) {
      const __m256i each = _mm256_and_si256(
          _mm256_blend_epi32(_mm256_srlv_epi64(two[i], down), _mm256_sllv_epi64(two[i], up), 0x22), ids);
      _mm_storeu_si128((__m128i *)out, _mm256_castsi256_si128(each));
      out += values[k + 2 * i] >> 60;
      _mm_storeu_si128((__m128i *)out, _mm256_extracti128_si256(each, 1));
      out += values[k + 2 * i + 1] >> 60;
    }
  }
  for (; k < n; k++) out = sa_put_one(spill, values[k], out);
  return out;
}

/* Where many are spilled: one after the other. *spilled: how many. */
static inline uint32_t *sa_put_dense(const uint32_t *spill, const uint64_t *values, u32 n, uint32_t *out,
                                     u32 *spilled) {
  for (u32 k = 0; k < n; k++) {
    *spilled += sa_value_count(values[k]) == 0;
    out = sa_put_one(spill, values[k], out);
  }
  return out;
}

#endif
