/* Integer types and the function qualifier of the headers that gcc, g++ and NVRTC all compile.
 * Headers in this folder use no library and include nothing but each other.
 */
#ifndef SAPHIRA_SHARED_TYPES_H
#define SAPHIRA_SHARED_TYPES_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
#ifdef __INT64_TYPE__ /* what stdint.h calls int64_t */
typedef __INT64_TYPE__ i64;
#else
typedef long long i64;
#endif

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define SA_HD static __host__ __device__ __forceinline__
#elif defined(__GNUC__)
#define SA_HD static inline __attribute__((always_inline, unused))
#else
#define SA_HD static inline
#endif

/* Index of the lowest set bit; x != 0. */
SA_HD int sa_ctz64(u64 x) {
#if defined(__CUDA_ARCH__)
  return __ffsll((long long)x) - 1;
#else
  return __builtin_ctzll(x);
#endif
}

/* Number of set bits. */
SA_HD int sa_popcount64(u64 x) {
#if defined(__CUDA_ARCH__)
  return __popcll(x);
#else
  return __builtin_popcountll(x);
#endif
}

#endif
