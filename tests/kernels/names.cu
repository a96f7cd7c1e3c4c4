/* CUDA's functions, one result each, for a table in tests/test_executor.py. a, b, c: u32 of each thread. */
#include "sync.cuh"

/* out: u32[n][OUT_WORDS] */
#define OUT_WORDS 32
extern "C" __global__ void bit_functions(const u32 *a, const u32 *b, const u32 *c, u32 *out) {
  u32 i = threadIdx.x, x = a[i], y = b[i], s = c[i], *o = out + OUT_WORDS * i;
  u64 wide = (u64)x << 32 | y;
  *o++ = (u32)__popc(x);
  *o++ = (u32)__popcll(wide);
  *o++ = (u32)__ffs((int)x);
  *o++ = (u32)__ffsll((long long)wide);
  *o++ = (u32)__clz((int)x);
  *o++ = (u32)__clzll((long long)wide);
  *o++ = __brev(x);
  *o++ = (u32)__brevll(wide);
  *o++ = (u32)(__brevll(wide) >> 32);
  *o++ = __byte_perm(x, y, s);
  *o++ = __funnelshift_l(x, y, s);
  *o++ = __funnelshift_r(x, y, s);
  *o++ = __funnelshift_lc(x, y, s);
  *o++ = __funnelshift_rc(x, y, s);
  *o++ = __umulhi(x, y);
  *o++ = (u32)__umul64hi(wide, wide);
  *o++ = __vcmpeq4(x, y);
  *o++ = __vcmpne4(x, y);
  *o++ = __vcmpgeu4(x, y);
  *o++ = __vcmpgtu4(x, y);
  *o++ = __vcmpleu4(x, y);
  *o++ = __vcmpltu4(x, y);
  *o++ = min(x, y);
  *o++ = (u32)max((int)x, (int)y);
  while (o < out + OUT_WORDS * (i + 1)) *o++ = 0;
}

/* One warp. */
extern "C" __global__ void warp_functions(const u32 *a, u32 *out) {
  u32 i = threadIdx.x, x = a[i], all = 0xFFFFFFFFu, *o = out + OUT_WORDS * i;
  int same;
  *o++ = __shfl_sync(all, x, 5);
  *o++ = __shfl_sync(all, x, (int)i + 1, 8);
  *o++ = __shfl_up_sync(all, x, 3);
  *o++ = __shfl_up_sync(all, x, 3, 8);
  *o++ = __shfl_down_sync(all, x, 3);
  *o++ = __shfl_down_sync(all, x, 3, 8);
  *o++ = __shfl_xor_sync(all, x, 5);
  *o++ = __shfl_xor_sync(all, x, 9, 8);
  *o++ = (u32)(__shfl_sync(all, (u64)x << 20, 7) >> 20);
  *o++ = __ballot_sync(all, x & 1);
  *o++ = (u32)__any_sync(all, x == a[3]);
  *o++ = (u32)__all_sync(all, x == a[3]);
  *o++ = __match_any_sync(all, x % 5);
  *o++ = __match_all_sync(all, x % 5, &same) + (u32)same;
  *o++ = __match_all_sync(all, a[0], &same);
  *o++ = (u32)same;
  *o++ = __reduce_add_sync(all, x);
  *o++ = __reduce_min_sync(all, x);
  *o++ = (u32)__reduce_min_sync(all, (int)x);
  *o++ = __reduce_max_sync(all, x);
  *o++ = (u32)__reduce_max_sync(all, (int)x);
  *o++ = __reduce_and_sync(all, x | 0xFFu);
  *o++ = __reduce_or_sync(all, x);
  *o++ = __reduce_xor_sync(all, x);
  *o++ = (u32)__syncthreads_count(x & 1);
  *o++ = (u32)(__syncthreads_and(x & 1) != 0);
  *o++ = (u32)(__syncthreads_or(x & 1) != 0);
  *o++ = lane_id();
  *o++ = lanemask_lt();
  while (o < out + OUT_WORDS * (i + 1)) *o++ = 0;
}

/* cells: u32[12] of each thread, all started at b; wide: u64[8], likewise. old: u32[12] and u64[8] of what was there. */
extern "C" __global__ void atomic_functions(const u32 *a, u32 *cells, u32 *old, u64 *wide, u64 *old_wide) {
  u32 i = threadIdx.x, x = a[i], *p = cells + 12 * i, *o = old + 12 * i;
  u64 *q = wide + 8 * i, *w = old_wide + 8 * i, y = (u64)x << 32 | x;
  o[0] = atomicAdd(p + 0, x);
  o[1] = atomicSub(p + 1, x);
  o[2] = atomicExch(p + 2, x);
  o[3] = atomicMin(p + 3, x);
  o[4] = atomicMax(p + 4, x);
  o[5] = (u32)atomicMin((int *)p + 5, (int)x);
  o[6] = (u32)atomicMax((int *)p + 6, (int)x);
  o[7] = atomicAnd(p + 7, x);
  o[8] = atomicOr(p + 8, x);
  o[9] = atomicXor(p + 9, x);
  o[10] = atomicInc(p + 10, x);
  o[11] = atomicDec(p + 11, x);
  w[0] = atomicAdd(q + 0, y);
  w[1] = atomicExch(q + 1, y);
  w[2] = atomicMin(q + 2, y);
  w[3] = atomicMax(q + 3, y);
  w[4] = atomicAnd(q + 4, y);
  w[5] = atomicOr(q + 5, y);
  w[6] = atomicCAS(q + 6, y, (u64)7);
  w[7] = atomicCAS(q + 7, (u64)a[0] << 32 | a[0], y);
}
