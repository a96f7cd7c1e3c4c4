/* Lanes of 64 bytes in four NEON registers. */
#ifndef SAPHIRA_SIMD_H
#define SAPHIRA_SIMD_H

#include <arm_neon.h>

#include "backend.h"

#define SA_ISA_NAME "neon"
#define SA_BACKEND sa_backend_neon

typedef uint8x16x4_t lanes;
typedef lanes lane_mask;  /* 0xFF or 0 in each byte */

/* r.val[i] = expression of i, four times. */
#define SA_EACH(r, expression)             \
  do {                                     \
    for (int i = 0; i < 4; i++) (r).val[i] = (expression); \
  } while (0)

static inline lanes sa_load(const u8 *p) { return vld1q_u8_x4(p); }
static inline void sa_store(u8 *p, lanes v) { vst1q_u8_x4(p, v); }
static inline lanes sa_splat(u8 x) {
  lanes r;
  SA_EACH(r, vdupq_n_u8(x));
  return r;
}
/* One bit from each byte that is 0xFF or 0: keep a bit of its own in each byte of a group of eight,
 * then add neighbours three times. */
static inline u64 sa_mask_bits(lane_mask m) {
  const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201ull));
  uint8x16_t a = vpaddq_u8(vandq_u8(m.val[0], bit), vandq_u8(m.val[1], bit));
  uint8x16_t b = vpaddq_u8(vandq_u8(m.val[2], bit), vandq_u8(m.val[3], bit));
  a = vpaddq_u8(a, b);
  a = vpaddq_u8(a, a);
  return vgetq_lane_u64(vreinterpretq_u64_u8(a), 0);
}
static inline lane_mask sa_mask_of(u64 m) {
  const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201ull));
  const uint8x16_t spread = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
  uint8x16_t bytes = vreinterpretq_u8_u64(vdupq_n_u64(m));
  lanes r;
  SA_EACH(r, vtstq_u8(vqtbl1q_u8(bytes, vaddq_u8(spread, vdupq_n_u8((u8)(2 * i)))), bit));
  return r;
}
static inline lane_mask sa_eq_mask(lanes v, u8 x) {
  lanes r;
  SA_EACH(r, vceqq_u8(v.val[i], vdupq_n_u8(x)));
  return r;
}
static inline u64 sa_eq(lanes v, u8 x) { return sa_mask_bits(sa_eq_mask(v, x)); }
static inline u64 sa_same(lanes v, lanes w) {
  lanes r;
  SA_EACH(r, vceqq_u8(v.val[i], w.val[i]));
  return sa_mask_bits(r);
}
/* Bytes at or above x, unsigned. */
static inline u64 sa_at_least(lanes v, u8 x) {
  lanes r;
  SA_EACH(r, vcgeq_u8(v.val[i], vdupq_n_u8(x)));
  return sa_mask_bits(r);
}
/* The common answer, no byte at all, takes one maximum and no mask. */
static inline u64 sa_high(lanes v) {
  uint8x16_t any = vorrq_u8(vorrq_u8(v.val[0], v.val[1]), vorrq_u8(v.val[2], v.val[3]));
  return vmaxvq_u8(any) < 0x80 ? 0 : sa_at_least(v, 0x80);
}
static inline u64 sa_test(lanes v, u8 bits) {
  lanes r;
  SA_EACH(r, vtstq_u8(v.val[i], vdupq_n_u8(bits)));
  return sa_mask_bits(r);
}
static inline lane_mask sa_mask_and(lane_mask a, lane_mask b) {
  lanes r;
  SA_EACH(r, vandq_u8(a.val[i], b.val[i]));
  return r;
}
static inline lanes sa_blend(lane_mask m, lanes yes, lanes no) {
  lanes r;
  SA_EACH(r, vbslq_u8(m.val[i], yes.val[i], no.val[i]));
  return r;
}
static inline lanes sa_and(lanes v, u8 x) {
  lanes r;
  SA_EACH(r, vandq_u8(v.val[i], vdupq_n_u8(x)));
  return r;
}
static inline lanes sa_mod64(lanes v) { return sa_and(v, 0x3F); }
/* v 0..15. */
static inline lanes sa_lookup16(const u8 *table, lanes v) {
  uint8x16_t t = vld1q_u8(table);
  lanes r;
  SA_EACH(r, vqtbl1q_u8(t, v.val[i]));
  return r;
}
/* v 0..31. */
static inline lanes sa_lookup32(const u8 *table, lanes v) {
  uint8x16x2_t t = vld1q_u8_x2(table);
  lanes r;
  SA_EACH(r, vqtbl2q_u8(t, v.val[i]));
  return r;
}
/* v from sa_mod64. */
static inline lanes sa_lookup64(const u8 *table, lanes v) {
  lanes t = sa_load(table), r;
  SA_EACH(r, vqtbl4q_u8(t, v.val[i]));
  return r;
}
/* Bytes below 0x80; what others give does not matter. */
static inline lanes sa_lookup128(const u8 *table, lanes v) {
  lanes low = sa_load(table), high = sa_load(table + 64), r;
  SA_EACH(r, vqtbx4q_u8(vqtbl4q_u8(low, v.val[i]), high, vsubq_u8(v.val[i], vdupq_n_u8(64))));
  return r;
}
static inline lanes sa_flip_high(lanes v) {
  lanes r;
  SA_EACH(r, veorq_u8(v.val[i], vdupq_n_u8(0x80)));
  return r;
}

/* Positions of the set bits of one word + base; may write up to 16 beyond. */
static inline size_t sa_positions(u64 word, u32 base, u32 *out) {
  size_t n = (size_t)sa_popcount64(word), i = 0;
  do {  /* four at a time; what lies past the last bit is overwritten later */
    for (int k = 0; k < 4; k++) {
      out[i + (size_t)k] = base + (word ? (u32)sa_ctz64(word) : 64);
      word &= word - 1;
    }
    i += 4;
  } while (i < n);
  return n;
}

#include "pieces.h"

#endif
