/* CUDA's names for g++: force-included in front of a rewritten kernel file.
 *
 * Functions here only pass values on to the runtime (abi.h); they touch no memory, since the check build
 * instruments every access that it sees in this file's unit.
 */
#ifndef SAPHIRA_HOST_CUDA_NAMES_H
#define SAPHIRA_HOST_CUDA_NAMES_H

#include "abi.h"

#define SA_HOST_EXECUTOR 1

/* noinline: a kernel is called through its export, which is not instrumented. */
#define __global__ __attribute__((noinline))
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_assume(x) ((void)0)
#define HX_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

typedef hx_xyz uint3;
struct dim3 { unsigned int x, y, z; };

#define HX_VECTORS(T, name, s)                                                    \
  struct alignas(2 * s) name##2 { T x, y; };                                      \
  struct alignas(4 * s > 16 ? 16 : 4 * s) name##4 { T x, y, z, w; };              \
  inline name##2 make_##name##2(T x, T y) { return name##2{x, y}; }               \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return name##4{x, y, z, w}; }
HX_VECTORS(signed char, char, 1)
HX_VECTORS(unsigned char, uchar, 1)
HX_VECTORS(short, short, 2)
HX_VECTORS(unsigned short, ushort, 2)
HX_VECTORS(int, int, 4)
HX_VECTORS(unsigned int, uint, 4)
HX_VECTORS(long long, longlong, 8)
HX_VECTORS(unsigned long long, ulonglong, 8)
HX_VECTORS(float, float, 4)
#undef HX_VECTORS

#define threadIdx hx_thread_index()
#define blockIdx hx_block_index()
#define blockDim hx_block_size()
#define gridDim hx_grid_size()
#define warpSize 32

/* ---- values of 4 and 8 bytes as bits, and back ---- */

template <class T> inline hx_u64 hx_bits(T v) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a value of 4 or 8 bytes");
  if constexpr (sizeof(T) == 4) return __builtin_bit_cast(hx_u32, v);
  else return __builtin_bit_cast(hx_u64, v);
}
template <class T> inline T hx_value(hx_u64 bits) {
  if constexpr (sizeof(T) == 4) return __builtin_bit_cast(T, (hx_u32)bits);
  else return __builtin_bit_cast(T, bits);
}
template <class T> constexpr bool hx_signed = T(-1) < T(0);
template <class T> struct hx_same { typedef T type; }; /* keeps a parameter out of deduction */

/* ---- collectives ---- */

inline void __syncthreads(HX_HERE) { hx_barrier(HX_BARRIER, 0, file, line); }
inline int __syncthreads_count(int p, HX_HERE) { return hx_barrier(HX_BARRIER_COUNT, p, file, line); }
inline int __syncthreads_and(int p, HX_HERE) { return hx_barrier(HX_BARRIER_AND, p, file, line); }
inline int __syncthreads_or(int p, HX_HERE) { return hx_barrier(HX_BARRIER_OR, p, file, line); }
inline void __syncwarp(hx_u32 mask = 0xFFFFFFFFu, HX_HERE) { hx_warp(HX_SYNCWARP, mask, 0, 0, 32, file, line); }
inline hx_u32 __activemask(HX_HERE) { return hx_active(file, line); }
inline hx_u32 __ballot_sync(hx_u32 mask, int p, HX_HERE) {
  return (hx_u32)hx_warp(HX_BALLOT, mask, p != 0, 0, 32, file, line);
}
inline int __any_sync(hx_u32 mask, int p, HX_HERE) { return (int)hx_warp(HX_ANY, mask, p != 0, 0, 32, file, line); }
inline int __all_sync(hx_u32 mask, int p, HX_HERE) { return (int)hx_warp(HX_ALL, mask, p != 0, 0, 32, file, line); }

/* Small integers are promoted, as by CUDA's overloads. */
#define HX_SHUFFLE(name, op, third)                                                                        \
  template <class T> inline auto name(hx_u32 mask, T v, third arg, int width = 32, HX_HERE) -> decltype(+v) { \
    return hx_value<decltype(+v)>(hx_warp(op, mask, hx_bits(+v), (int)arg, width, file, line));            \
  }
HX_SHUFFLE(__shfl_sync, HX_SHFL, int)
HX_SHUFFLE(__shfl_up_sync, HX_SHFL_UP, unsigned)
HX_SHUFFLE(__shfl_down_sync, HX_SHFL_DOWN, unsigned)
HX_SHUFFLE(__shfl_xor_sync, HX_SHFL_XOR, int)
#undef HX_SHUFFLE

template <class T> inline hx_u32 __match_any_sync(hx_u32 mask, T v, HX_HERE) {
  return (hx_u32)hx_warp(HX_MATCH_ANY, mask, hx_bits(+v), 0, 32, file, line);
}
template <class T> inline hx_u32 __match_all_sync(hx_u32 mask, T v, int *p, HX_HERE) {
  hx_u32 same = (hx_u32)hx_warp(HX_MATCH_ALL, mask, hx_bits(+v), 0, 32, file, line);
  *p = same != 0;
  return same;
}

#define HX_REDUCE(name, op, op_signed)                                                                          \
  inline hx_u32 name(hx_u32 mask, hx_u32 v, HX_HERE) { return (hx_u32)hx_warp(op, mask, v, 0, 32, file, line); } \
  inline int name(hx_u32 mask, int v, HX_HERE) {                                                                \
    return (int)(hx_u32)hx_warp(op_signed, mask, (hx_u32)v, 0, 32, file, line);                                 \
  }
HX_REDUCE(__reduce_add_sync, HX_REDUCE_ADD, HX_REDUCE_ADD)
HX_REDUCE(__reduce_min_sync, HX_REDUCE_MIN, HX_REDUCE_MIN_SIGNED)
HX_REDUCE(__reduce_max_sync, HX_REDUCE_MAX, HX_REDUCE_MAX_SIGNED)
#undef HX_REDUCE
inline hx_u32 __reduce_and_sync(hx_u32 mask, hx_u32 v, HX_HERE) {
  return (hx_u32)hx_warp(HX_REDUCE_AND, mask, v, 0, 32, file, line);
}
inline hx_u32 __reduce_or_sync(hx_u32 mask, hx_u32 v, HX_HERE) {
  return (hx_u32)hx_warp(HX_REDUCE_OR, mask, v, 0, 32, file, line);
}
inline hx_u32 __reduce_xor_sync(hx_u32 mask, hx_u32 v, HX_HERE) {
  return (hx_u32)hx_warp(HX_REDUCE_XOR, mask, v, 0, 32, file, line);
}

/* ---- memory ---- */

#define HX_ATOMIC(name, op, op_signed)                                                                         \
  template <class T> inline T name(T *p, typename hx_same<T>::type v, HX_HERE) {                               \
    return hx_value<T>(hx_atomic(hx_signed<T> ? op_signed : op, p, hx_bits(v), 0, sizeof(T), file, line));     \
  }
HX_ATOMIC(atomicAdd, HX_ADD, HX_ADD)
HX_ATOMIC(atomicExch, HX_EXCH, HX_EXCH)
HX_ATOMIC(atomicMin, HX_MIN, HX_MIN_SIGNED)
HX_ATOMIC(atomicMax, HX_MAX, HX_MAX_SIGNED)
HX_ATOMIC(atomicAnd, HX_AND, HX_AND)
HX_ATOMIC(atomicOr, HX_OR, HX_OR)
HX_ATOMIC(atomicXor, HX_XOR, HX_XOR)
HX_ATOMIC(atomicInc, HX_INC, HX_INC)
HX_ATOMIC(atomicDec, HX_DEC, HX_DEC)
#undef HX_ATOMIC
inline float atomicAdd(float *p, float v, HX_HERE) {
  return hx_value<float>(hx_atomic(HX_ADD_FLOAT, p, hx_bits(v), 0, 4, file, line));
}
template <class T> inline T atomicSub(T *p, typename hx_same<T>::type v, HX_HERE) {
  return hx_value<T>(hx_atomic(HX_ADD, p, hx_bits((T)(0 - v)), 0, sizeof(T), file, line));
}
template <class T>
inline T atomicCAS(T *p, typename hx_same<T>::type compare, typename hx_same<T>::type v, HX_HERE) {
  return hx_value<T>(hx_atomic(HX_CAS, p, hx_bits(v), hx_bits(compare), sizeof(T), file, line));
}

#ifdef SA_HOST_CHECK
template <class T> __forceinline__ T __ldg(const T *p, HX_HERE) {
  hx_ldg(p, (int)sizeof(T), file, line);
  return *p;
}
#else
template <class T> __forceinline__ T __ldg(const T *p) { return *p; }
#endif

inline void __threadfence() { hx_fence(0); }
inline void __threadfence_block() { hx_fence(1); }
inline void __threadfence_system() { hx_fence(0); }
inline void __nanosleep(unsigned, HX_HERE) { hx_sleep(file, line); }
inline void __trap(HX_HERE) { hx_trap("__trap()", file, line); }
#define assert(x) ((x) ? (void)0 : hx_trap("assertion " #x, __builtin_FILE(), __builtin_LINE()))

/* ---- bits and integers ---- */

inline int __popc(hx_u32 x) { return __builtin_popcount(x); }
inline int __popcll(hx_u64 x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x ? __builtin_clz((hx_u32)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((hx_u64)x) : 64; }
inline hx_u64 __brevll(hx_u64 x) {
  x = ((x >> 1) & 0x5555555555555555ull) | ((x & 0x5555555555555555ull) << 1);
  x = ((x >> 2) & 0x3333333333333333ull) | ((x & 0x3333333333333333ull) << 2);
  x = ((x >> 4) & 0x0F0F0F0F0F0F0F0Full) | ((x & 0x0F0F0F0F0F0F0F0Full) << 4);
  return __builtin_bswap64(x);
}
inline hx_u32 __brev(hx_u32 x) { return (hx_u32)(__brevll(x) >> 32); }
/* Selector nibbles: bits 0..2 choose a byte of y:x, bit 3 spreads that byte's sign instead. */
inline hx_u32 __byte_perm(hx_u32 x, hx_u32 y, hx_u32 s) {
  hx_u64 both = (hx_u64)y << 32 | x;
  hx_u32 result = 0;
  for (int i = 0; i < 4; i++) {
    hx_u32 n = s >> (4 * i), byte = (hx_u32)(both >> (8 * (n & 7))) & 0xFF;
    result |= (n & 8 ? (byte & 0x80 ? 0xFFu : 0u) : byte) << (8 * i);
  }
  return result;
}
inline hx_u32 __funnelshift_l(hx_u32 lo, hx_u32 hi, hx_u32 n) {
  return (hx_u32)(((((hx_u64)hi << 32) | lo) << (n & 31)) >> 32);
}
inline hx_u32 __funnelshift_r(hx_u32 lo, hx_u32 hi, hx_u32 n) {
  return (hx_u32)((((hx_u64)hi << 32) | lo) >> (n & 31));
}
inline hx_u32 __funnelshift_lc(hx_u32 lo, hx_u32 hi, hx_u32 n) { return n < 32 ? __funnelshift_l(lo, hi, n) : lo; }
inline hx_u32 __funnelshift_rc(hx_u32 lo, hx_u32 hi, hx_u32 n) { return n < 32 ? __funnelshift_r(lo, hi, n) : hi; }
inline hx_u32 __umulhi(hx_u32 a, hx_u32 b) { return (hx_u32)((hx_u64)a * b >> 32); }
inline hx_u64 __umul64hi(hx_u64 a, hx_u64 b) { return (hx_u64)((unsigned __int128)a * b >> 64); }

/* Bytes of a word side by side: FF where true. */
#define HX_BYTEWISE(name, test)                                       \
  inline hx_u32 name(hx_u32 x, hx_u32 y) {                            \
    hx_u32 result = 0;                                                \
    for (int i = 0; i < 32; i += 8) {                                 \
      hx_u32 a = x >> i & 0xFF, b = y >> i & 0xFF;                    \
      if (test) result |= 0xFFu << i;                                 \
    }                                                                 \
    return result;                                                    \
  }
HX_BYTEWISE(__vcmpeq4, a == b)
HX_BYTEWISE(__vcmpne4, a != b)
HX_BYTEWISE(__vcmpgeu4, a >= b)
HX_BYTEWISE(__vcmpgtu4, a > b)
HX_BYTEWISE(__vcmpleu4, a <= b)
HX_BYTEWISE(__vcmpltu4, a < b)
#undef HX_BYTEWISE

template <class A, class B> inline auto min(A a, B b) { return b < a ? b : a; }
template <class A, class B> inline auto max(A a, B b) { return a < b ? b : a; }

/* ---- what the rewriter writes ---- */

template <int id, class T> struct hx_declared;
template <class T> struct hx_element { typedef T type; };
template <class T, unsigned long n> struct hx_element<T[n]> : hx_element<T> {};

/* In place of `__shared__ T name`. */
template <int id, class T, int align = 1> inline T &hx_shared_variable(const char *name, int line) {
  return *(T *)hx_shared(id, sizeof(T), align > (int)alignof(T) ? align : (int)alignof(T),
                         (int)sizeof(typename hx_element<T>::type), name, line);
}
/* In place of `extern __shared__ T name[]`. */
template <class T, int align = 1> inline T *hx_shared_pointer() {
  return (T *)hx_shared_dynamic(align > (int)alignof(T) ? align : (int)alignof(T), (int)sizeof(T));
}

/* ---- a kernel's export: its parameters, and a call that unpacks them ---- */

template <class T> constexpr int hx_kind() {
  if constexpr (__is_same(T, void)) return 'v';
  else if constexpr (__is_same(T, bool)) return 'b';
  else if constexpr (__is_same(T, float) || __is_same(T, double)) return 'f';
  else if constexpr (__is_class(T) || __is_union(T)) return 's';
  else return hx_signed<T> ? 'i' : 'u';
}
template <class T> struct hx_describe {
  static constexpr hx_param param = {hx_kind<T>(), (int)sizeof(T), 0, 0, 0};
};
template <class T> struct hx_pointee {
  static constexpr hx_param param(int is_const) {
    if constexpr (__is_same(T, void)) return {'p', 8, 'v', 1, is_const};
    else return {'p', 8, hx_kind<T>(), (int)sizeof(T), is_const};
  }
};
template <class T> struct hx_describe<T *> { static constexpr hx_param param = hx_pointee<T>::param(0); };
template <class T> struct hx_describe<const T *> { static constexpr hx_param param = hx_pointee<T>::param(1); };
template <class T> struct hx_describe<volatile T *> { static constexpr hx_param param = hx_pointee<T>::param(0); };
template <class T> struct hx_describe<T *__restrict__> : hx_describe<T *> {};
template <class T> struct hx_describe<const T> : hx_describe<T> {};

template <int... i> struct hx_indices {};
template <int n, int... i> struct hx_count_up : hx_count_up<n - 1, n - 1, i...> {};
template <int... i> struct hx_count_up<0, i...> { typedef hx_indices<i...> type; };

template <class F, F kernel> struct hx_export;
template <class... A, void (*kernel)(A...)> struct hx_export<void (*)(A...), kernel> {
  static constexpr int n = sizeof...(A);
  static constexpr hx_param params[n + 1] = {hx_describe<A>::param..., {0, 0, 0, 0, 0}};
  template <int... i>
  __attribute__((no_sanitize("thread", "undefined"))) static void unpack(void *const *args, hx_indices<i...>) {
    kernel(*(A *)args[i]...);
  }
  __attribute__((no_sanitize("thread", "undefined"))) static void call(void *const *args) {
    (void)args;
    unpack(args, typename hx_count_up<n>::type());
  }
};

#define HX_EXPORT(name, bounds)                                                                            \
  extern "C" __attribute__((visibility("default"))) const hx_kernel hx_kernel_##name = {                   \
      #name, hx_export<decltype(&name), &name>::call, hx_export<decltype(&name), &name>::params,           \
      hx_export<decltype(&name), &name>::n, bounds};

#endif
