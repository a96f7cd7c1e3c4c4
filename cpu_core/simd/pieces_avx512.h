/* Groups of pieces in AVX-512, for pieces.h: eight pieces are the eight lanes of a register.
 *
 * Measured with bench/stages.py, gpt2, warm, on Zen 4, cycles a piece of the probe alone: 12.1 before (the portable
 * loops as compiled for AVX-512), 7.6 now on English; 10.2 and 6.8 on code. All of the encoder: 21.6 and 17.4;
 * 22.4 and 19.4.
 *
 * Tried and left out:
 * - Gathers for the words take about three times as long as single loads joined in registers; words stored one
 *   by one and loaded as a vector wait for the stores.
 * - Emit of four values at a time (ids spread by a multishift, packed by a compress) is faster on English but
 *   slower on code, where more values are spilled.
 * - Smaller hot tables: 801, 713 and 605 MB/s on English with 2 MB, 1 MB and 512 KB against 882 with 4 MB.
 * What 2.2 times gigatoken with recycled arrays asks for (it does 539 MB/s) is about 14 cycles a piece in all.
 */
#ifndef SAPHIRA_SIMD_PIECES_AVX512_H
#define SAPHIRA_SIMD_PIECES_AVX512_H

/* sa_hash8 and half of sa_hash16 of each lane, in its lower 32 bits. */
static inline __m512i sa_hash_lanes(__m512i words, u32 first, u32 second) {
  return _mm512_add_epi64(_mm512_mul_epu32(words, _mm512_set1_epi64(first)),
                          _mm512_mul_epu32(_mm512_srli_epi64(words, 32), _mm512_set1_epi64(second)));
}

/* The lowest n & 7 bytes of the words, with n on top. */
static inline __m512i sa_key_lanes(__mmask8 kept, __m512i words, __m512i n) {
  const __m512i masks = _mm512_setr_epi64(0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF, 0xFFFFFFFFFF, 0xFFFFFFFFFFFF,
                                          0xFFFFFFFFFFFFFF);
  const __m512i low = _mm512_permutexvar_epi64(n, masks), top = _mm512_slli_epi64(n, 56);
  return _mm512_maskz_ternarylogic_epi64(kept, words, low, top, 0xEA); /* words & low | top */
}

/* Byte offsets of the sets, of two entries of 1 << size bytes, that the hashes choose. */
static inline __m512i sa_set_lanes(__m512i hash, u32 bits, u32 size) {
  const __m512i sets = _mm512_set1_epi64((long long)((((u64)1 << bits) - 2) << size));
  return _mm512_and_si512(_mm512_srl_epi64(hash, _mm_cvtsi32_si128((int)(32 - size - bits))), sets);
}

static inline __m128i sa_words2(const u8 *a, const u8 *b) {
  return _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)a), _mm_loadl_epi64((const __m128i *)b));
}
static inline __m256i sa_words4(const u8 *const *p) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(sa_words2(p[0], p[1])), sa_words2(p[2], p[3]), 1);
}
static inline __m512i sa_words8(const u8 *const *p) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(sa_words4(p)), sa_words4(p + 4), 1);
}

static inline u64 sa_prepare8(const u8 *text, const u32 *at, u32 bits, u64 *restrict low, u64 *restrict set) {
  u64 longer = 0;
  for (int k = 0; k < SA_GROUP; k += 8, at += 8) {
    const u8 *const p[8] = {text + at[0], text + at[1], text + at[2], text + at[3],
                            text + at[4], text + at[5], text + at[6], text + at[7]};
    const __m256i length = _mm256_sub_epi32(_mm256_loadu_si256((const __m256i *)(at + 1)),
                                            _mm256_loadu_si256((const __m256i *)at));
    const __m256i over = _mm256_sub_epi32(length, _mm256_set1_epi32(SA_KEY8_BYTES + 1));
    const __mmask8 fits = _mm256_cmple_epu32_mask(length, _mm256_set1_epi32(SA_KEY8_BYTES));
    longer |= (u64)_mm256_cmplt_epu32_mask(over, _mm256_set1_epi32(SA_KEY16_BYTES - SA_KEY8_BYTES)) << k;
    /* The key of a longer piece is 0, that of an empty slot, whose value is 0. */
    const __m512i key = sa_key_lanes(fits, sa_words8(p), _mm512_cvtepu32_epi64(length));
    _mm512_storeu_si512(low + k, key);
    _mm512_storeu_si512(set + k, sa_set_lanes(sa_hash_lanes(key, SA_HASH_1, SA_HASH_2), bits, 4));
  }
  return longer;
}

static inline void sa_prepare16(const u8 *text, const u32 *starts, const u32 *which, u32 bits, u64 *restrict low,
                                u64 *restrict high, u64 *restrict set) {
  for (int k = 0; k < SA_GROUP; k += 8) {
    const u8 *first[8], *second[8], *bounds[8];
    SA_UNROLLED
    for (int i = 0; i < 8; i++) {
      const u32 *const at = starts + which[k + i];
      bounds[i] = (const u8 *)at; /* start and end as one word */
      first[i] = text + *at;
      second[i] = first[i] + 8;
    }
    const __m512i both = sa_words8(bounds), n = _mm512_sub_epi32(_mm512_srli_epi64(both, 32), both);
    const __m512i front = sa_words8(first), back = sa_key_lanes(0xFF, sa_words8(second), n);
    const __m512i hash = _mm512_add_epi64(sa_hash_lanes(front, SA_HASH_1, SA_HASH_2),
                                          sa_hash_lanes(back, SA_HASH_3, SA_HASH_4));
    _mm512_storeu_si512(low + k, front);
    _mm512_storeu_si512(high + k, back);
    _mm512_storeu_si512(set + k, sa_set_lanes(hash, bits, 5));
  }
}

/* Two sets of two entries of 16 bytes. */
static inline __m512i sa_two_sets(const sa_entry8 *table, u64 a, u64 b) {
  const char *const p = (const char *)table;
  return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_load_si256((const __m256i *)(p + a))),
                            _mm256_load_si256((const __m256i *)(p + b)), 1);
}

static inline void sa_probe8(const sa_entry8 *table, const u64 *set, const u64 *low, uint64_t *values) {
  for (int k = 0; k < SA_GROUP; k += 8) {
    const __m512i keys = _mm512_loadu_si512(low + k);
    const __m512i s04 = sa_two_sets(table, set[k], set[k + 4]), s15 = sa_two_sets(table, set[k + 1], set[k + 5]);
    const __m512i s26 = sa_two_sets(table, set[k + 2], set[k + 6]), s37 = sa_two_sets(table, set[k + 3], set[k + 7]);
    /* Unpacked, lanes are the first entries of pieces 0 and 1, their second entries, the same of 4 and 5; next to
     * them 2 and 3, 6 and 7. */
    const __mmask8 m01 = _mm512_cmpeq_epi64_mask(_mm512_unpacklo_epi64(s04, s15), _mm512_permutex_epi64(keys, 0x44));
    const __mmask8 m23 = _mm512_cmpeq_epi64_mask(_mm512_unpacklo_epi64(s26, s37), _mm512_permutex_epi64(keys, 0xEE));
    const __m512i v01 = _mm512_maskz_unpackhi_epi64(m01, s04, s15), v23 = _mm512_maskz_unpackhi_epi64(m23, s26, s37);
    const __m512i crossed = _mm512_permutex_epi64(_mm512_mask_blend_epi64(0xCC, v23, v01), 0x4E);
    _mm512_storeu_si512(values + k, _mm512_or_si512(_mm512_mask_blend_epi64(0xCC, v01, v23), crossed));
  }
}

static inline void sa_probe16(const sa_entry16 *table, const u64 *set, const u64 *low, const u64 *high,
                              const u32 *which, uint64_t *values) {
  const char *const p = (const char *)table;
  SA_UNROLLED
  for (int k = 0; k < SA_GROUP; k += 2) {
    const __m512i a = _mm512_load_si512(p + set[k]), b = _mm512_load_si512(p + set[k + 1]);
    const __m512i lows = _mm512_broadcast_i64x2(_mm_loadu_si128((const __m128i *)(low + k)));
    const __m512i highs = _mm512_broadcast_i64x2(_mm_loadu_si128((const __m128i *)(high + k)));
    /* Low words of a and b, their values, the same of their second entries; high words. */
    const __m512i front = _mm512_unpacklo_epi64(a, b), back = _mm512_unpackhi_epi64(a, b);
    const __mmask8 m = _mm512_mask_cmpeq_epi64_mask(_mm512_cmpeq_epi64_mask(front, lows), back, highs);
    const __m512i kept = _mm512_maskz_mov_epi64((__mmask8)((m & 0x33) << 2), front);
    const __m256i both = _mm256_or_si256(_mm512_castsi512_si256(kept), _mm512_extracti64x4_epi64(kept, 1));
    const __m128i found = _mm256_extracti128_si256(both, 1);
    values[which[k]] = (u64)_mm_cvtsi128_si64(found);
    values[which[k + 1]] = (u64)_mm_extract_epi64(found, 1);
  }
}

#endif
