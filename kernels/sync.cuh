/* Strong loads and stores, and lane masks: the only inline PTX of the kernels, with host twins.
 *
 * acquire, release: at device scope. A release makes everything that this thread wrote or knew of before
 * (after a barrier: what its block wrote) visible to whoever acquires the value. relaxed: strong, ordering
 * nothing. Loops that wait for another block read through these; the host executor lets others run there.
 */
#ifndef SAPHIRA_SYNC_CUH
#define SAPHIRA_SYNC_CUH

#include "shared/types.h"

#if defined(SA_HOST_EXECUTOR)

#define SA_STRONG_LOAD(name, T, order)                                          \
  __forceinline__ T name(const T *p, HX_HERE) { return (T)hx_load(p, (int)sizeof(T), order, file, line); }
#define SA_STRONG_STORE(name, T, order)                                         \
  __forceinline__ void name(T *p, T value, HX_HERE) { hx_store(p, value, (int)sizeof(T), order, file, line); }
SA_STRONG_LOAD(ld_acquire, u32, HX_ACQUIRE)
SA_STRONG_LOAD(ld_acquire, u64, HX_ACQUIRE)
SA_STRONG_LOAD(ld_relaxed, u32, HX_RELAXED)
SA_STRONG_LOAD(ld_relaxed, u64, HX_RELAXED)
SA_STRONG_STORE(st_release, u32, HX_RELEASE)
SA_STRONG_STORE(st_release, u64, HX_RELEASE)
SA_STRONG_STORE(st_relaxed, u32, HX_RELAXED)
SA_STRONG_STORE(st_relaxed, u64, HX_RELAXED)

/* Lane in the warp: threads are numbered x first, then y, z. */
__forceinline__ u32 lane_id() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) & 31;
}
__forceinline__ u32 lanemask_lt() { return ((u32)1 << lane_id()) - 1; }

#else

#define SA_STRONG_LOAD(name, T, ptx, reg)                            \
  static __device__ __forceinline__ T name(const T *p) {             \
    T value;                                                         \
    asm volatile(ptx " %0, [%1];" : reg(value) : "l"(p) : "memory"); \
    return value;                                                    \
  }
#define SA_STRONG_STORE(name, T, ptx, reg)                               \
  static __device__ __forceinline__ void name(T *p, T value) {           \
    asm volatile(ptx " [%0], %1;" : : "l"(p), reg(value) : "memory");    \
  }
SA_STRONG_LOAD(ld_acquire, u32, "ld.acquire.gpu.u32", "=r")
SA_STRONG_LOAD(ld_acquire, u64, "ld.acquire.gpu.u64", "=l")
SA_STRONG_LOAD(ld_relaxed, u32, "ld.relaxed.gpu.u32", "=r")
SA_STRONG_LOAD(ld_relaxed, u64, "ld.relaxed.gpu.u64", "=l")
SA_STRONG_STORE(st_release, u32, "st.release.gpu.u32", "r")
SA_STRONG_STORE(st_release, u64, "st.release.gpu.u64", "l")
SA_STRONG_STORE(st_relaxed, u32, "st.relaxed.gpu.u32", "r")
SA_STRONG_STORE(st_relaxed, u64, "st.relaxed.gpu.u64", "l")

static __device__ __forceinline__ u32 lane_id() {
  u32 lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
static __device__ __forceinline__ u32 lanemask_lt() {
  u32 mask;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
  return mask;
}

#endif

#undef SA_STRONG_LOAD
#undef SA_STRONG_STORE

#endif
