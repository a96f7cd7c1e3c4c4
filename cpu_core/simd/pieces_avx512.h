/* Groups of pieces in AVX-512, for pieces.h: eight pieces are the eight lanes of a register.
 *
 * Measured with bench/stages.py, gpt2, warm, on Zen 4, cycles a piece of the probe alone: 12.1 before (the portable
 * loops as compiled for AVX-512), 7.6 now on English; 10.2 and 6.8 on code. All of the encoder: 21.6 and 17.4;
 * 22.4 and 19.4.
 *
 * Tried and left out:
 * - Gathers for the words take about three times as long as single loads joined in registers; words stored one
 *   by one and loaded as a vector wait for the stores.
 * - Emit of four values at a time alone, with a branch for those that are spilled: 6% faster than a value at a time
 *   on English, 2 to 4% slower on code, where one group in five has one. Emit of spilled ones as a value at a time
 *   without a branch (an own id or a spilled one chosen by a mask): no faster. The two ways below: 4% on English and
 *   code, 5% on multiscript, of all of the encoder.
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

/* ---- emit ---- */


/* Each of eight 32-bit lanes becomes the sum of those before it; *sum that of all. */
static inline __m256i sa_sums_before(__m256i n, u32 *sum) {
  const __m256i zero = _mm256_setzero_si256();
  __m256i all = _mm256_add_epi32(n, _mm256_alignr_epi32(n, zero, 7));
  all = _mm256_add_epi32(all, _mm256_alignr_epi32(all, zero, 6));
  all = _mm256_add_epi32(all, _mm256_alignr_epi32(all, zero, 4));
  *sum = (u32)_mm_extract_epi32(_mm256_extracti128_si256(all, 1), 3);
  return _mm256_sub_epi32(all, n);
}

/* Three ids of 20 bits of each of four values, in four lanes of 32 bits. */
static inline __m512i sa_ids4(__m512i values, __m512i which) {
  const __m512i shifts = _mm512_set4_epi64(0x0000000000383028, 0x2C241C1418100800, /* bits from 40; from 0 and 20 */
                                           0x0000000000383028, 0x2C241C1418100800);
  return _mm512_and_si512(_mm512_multishift_epi64_epi8(shifts, _mm512_permutexvar_epi64(which, values)),
                          _mm512_set1_epi32(0xFFFFF));
}

static inline uint32_t *sa_put_spilled(const uint32_t *spill, u64 value, uint32_t *out) {
  const u32 n = (u32)(value >> 32 & 0xFFFFFFF);
  const uint32_t *from = spill + (u32)value;
  u32 i = 0;
  for (; __builtin_expect(n - i > 16, 0); i += 16) _mm512_storeu_si512(out + i, _mm512_loadu_si512(from + i));
  const __mmask16 there = (__mmask16)_bzhi_u32(0xFFFF, n - i); /* takes its count modulo 256 */
  _mm512_mask_storeu_epi32(out + i, there, _mm512_maskz_loadu_epi32(there, from + i));
  return out + n;
}

/* Where hardly a value is spilled: four at a time, their ids packed in a register. *spilled: groups with one. */
static inline uint32_t *sa_put_sparse(const uint32_t *spill, const uint64_t *values, u32 n, uint32_t *out,
                                      u32 *spilled) {
  const __m512i twice = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3);
  const __m512i tops = _mm512_setr_epi32(1, 1, 1, 1, 3, 3, 3, 3, 5, 5, 5, 5, 7, 7, 7, 7);
  u32 i = 0;
  for (; i + 4 <= n; i += 4) {
    const __m256i four = _mm256_loadu_si256((const __m256i *)(values + i));
    const __m512i v = _mm512_castsi256_si512(four);
    if (__builtin_expect(_mm256_testn_epi64_mask(four, _mm256_set1_epi64x((long long)3 << 60)) != 0, 0)) {
      for (u32 k = i; k < i + 4; k++) out = sa_put_exact(spill, values[k], out);
      ++*spilled;
      continue;
    }
    const __m512i count = _mm512_srli_epi32(_mm512_permutexvar_epi32(tops, v), 28);
    const __mmask16 kept = _mm512_cmplt_epu32_mask(_mm512_set4_epi32(3, 2, 1, 0), count);
    const __m512i packed = _mm512_maskz_compress_epi32(kept, sa_ids4(v, twice));
    const u32 ids = (u32)__builtin_popcount(kept);
    _mm256_storeu_si256((__m256i *)out, _mm512_castsi512_si256(packed));
    if (__builtin_expect(ids > 8, 0)) _mm256_storeu_si256((__m256i *)(out + 8), _mm512_extracti64x4_epi64(packed, 1));
    out += ids;
  }
  for (; i < n; i++) out = sa_put_exact(spill, values[i], out);
  return out;
}

/* Where many are, so that a branch on them would guess wrong too often: all values write three ids at their places,
 * those spilled come after. *spilled: how many. n <= SA_GROUP. */
static inline uint32_t *sa_put_dense(const uint32_t *spill, const uint64_t *values, u32 n, uint32_t *out,
                                     u32 *spilled) {
  const __m512i low = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3), high = _mm512_setr_epi64(4, 4, 5, 5, 6, 6, 7, 7);
  const __m256i steps = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  u32 which[SA_GROUP + 8], where[SA_GROUP + 8], at[8], listed = 0, sum;
  uint32_t *const first = out;
  for (u32 i = 0; i < n; i += 8) {
    const __mmask8 there = (__mmask8)_bzhi_u32(0xFF, n - i);
    const __m512i v = _mm512_maskz_loadu_epi64(there, values + i);
    const __m512i few = _mm512_and_si512(_mm512_srli_epi64(v, 60), _mm512_set1_epi64(3));
    const __mmask8 many = _mm512_mask_testn_epi64_mask(there, few, few);
    const __m512i ids = _mm512_mask_and_epi64(few, many, _mm512_srli_epi64(v, 32), _mm512_set1_epi64(0xFFFFFFF));
    const __m256i before = sa_sums_before(_mm512_cvtepi64_epi32(ids), &sum);
    _mm256_storeu_si256((__m256i *)at, before);
    _mm256_storeu_si256((__m256i *)(which + listed),
                        _mm256_maskz_compress_epi32(many, _mm256_add_epi32(_mm256_set1_epi32((int)i), steps)));
    _mm256_storeu_si256((__m256i *)(where + listed), _mm256_maskz_compress_epi32(
                            many, _mm256_add_epi32(_mm256_set1_epi32((int)(out - first)), before)));
    listed += (u32)__builtin_popcount(many);
    const __m512i a = sa_ids4(v, low), b = sa_ids4(v, high);
    _mm_storeu_si128((__m128i *)(out + at[0]), _mm512_castsi512_si128(a));
    _mm_storeu_si128((__m128i *)(out + at[1]), _mm512_extracti32x4_epi32(a, 1));
    _mm_storeu_si128((__m128i *)(out + at[2]), _mm512_extracti32x4_epi32(a, 2));
    _mm_storeu_si128((__m128i *)(out + at[3]), _mm512_extracti32x4_epi32(a, 3));
    _mm_storeu_si128((__m128i *)(out + at[4]), _mm512_castsi512_si128(b));
    _mm_storeu_si128((__m128i *)(out + at[5]), _mm512_extracti32x4_epi32(b, 1));
    _mm_storeu_si128((__m128i *)(out + at[6]), _mm512_extracti32x4_epi32(b, 2));
    _mm_storeu_si128((__m128i *)(out + at[7]), _mm512_extracti32x4_epi32(b, 3));
    out += sum;
  }
  for (u32 k = 0; k < listed; k++) sa_put_spilled(spill, values[which[k]], first + where[k]);
  *spilled = listed;
  return out;
}

#endif
