/* Kernels with one planted bug each. tests/test_executor_bugs.py says what each is to be reported as.
 *
 * All take the same arguments: in: u32[n], 0, 1, 2, …; out: u32[n], never written; words: u32[64], zero. Blocks of
 * 128 threads. */
#include "scan.cuh"

#define ARGUMENTS const u32 *in, u32 *out, u32 n, u32 *words
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

/* ---- bounds, alignment, initialisation ---- */

extern "C" __global__ void read_past_end(ARGUMENTS) { out[INDEX] = in[INDEX + 1]; }
extern "C" __global__ void write_past_end(ARGUMENTS) {
  if (INDEX <= n) out[INDEX + (INDEX == n - 1)] = 1;
}
extern "C" __global__ void read_before_start(ARGUMENTS) {
  if (INDEX < n) out[INDEX] = in[INDEX] + (INDEX == 0 ? *(in - 1) : 0);
}
extern "C" __global__ void shared_past_end(ARGUMENTS) {
  __shared__ u32 s[128];
  u32 *p = s;
  p[threadIdx.x] = in[INDEX];
  __syncthreads();
  out[INDEX] = p[threadIdx.x + 1];
}
extern "C" __global__ void shared_index(ARGUMENTS) {
  __shared__ u32 s[128];
  s[threadIdx.x + 1] = in[INDEX];
  out[INDEX] = s[threadIdx.x + 1];
}
extern "C" __global__ void dynamic_past_end(ARGUMENTS) {
  extern __shared__ u32 room[];
  room[threadIdx.x] = in[INDEX];
  out[INDEX] = room[threadIdx.x];
}
extern "C" __global__ void local_index(ARGUMENTS) {
  u32 a[4] = {1, 2, 3, 4};
  out[INDEX] = a[in[threadIdx.x]];
}
extern "C" __global__ void misaligned_word(ARGUMENTS) { out[INDEX] = *(const u32 *)((const u8 *)in + 4 * threadIdx.x + (threadIdx.x == 77)); }
extern "C" __global__ void misaligned_vector(ARGUMENTS) {
  uint4 v = *(const uint4 *)(in + threadIdx.x / 2);
  out[INDEX] = v.x + v.w;
}
extern "C" __global__ void uninitialised_shared(ARGUMENTS) {
  __shared__ u32 s[128];
  if (threadIdx.x != 5) s[threadIdx.x] = in[INDEX];
  __syncthreads();
  out[INDEX] = s[threadIdx.x ^ 1];
}
extern "C" __global__ void uninitialised_global(ARGUMENTS) { out[INDEX] += in[INDEX]; }
extern "C" __global__ void write_to_const(ARGUMENTS) { ((u32 *)in)[INDEX] = 0; }
extern "C" __global__ void pointer_to_local(ARGUMENTS) {
  __shared__ u32 *p;
  u32 mine = threadIdx.x;
  if (threadIdx.x == 0) p = &mine;
  __syncthreads();
  out[INDEX] = *p + mine;
  __syncthreads();
}

/* ---- arithmetic ---- */

extern "C" __global__ void shift_by_width(ARGUMENTS) { out[INDEX] = 1u << (in[threadIdx.x] & 63); }
extern "C" __global__ void divide_by_zero(ARGUMENTS) { out[INDEX] = 100 / in[threadIdx.x]; }
extern "C" __global__ void failed_assertion(ARGUMENTS) {
  assert(in[INDEX] != 70);
  out[INDEX] = 1;
}

/* ---- races ---- */

extern "C" __global__ void missing_barrier(ARGUMENTS) {
  __shared__ u32 s[128];
  s[threadIdx.x] = 0;
  __syncthreads();
  s[threadIdx.x] = in[INDEX];
  out[INDEX] = s[127 - threadIdx.x];
}
extern "C" __global__ void missing_second_barrier(ARGUMENTS) { /* the next round's writes meet this round's reads */
  __shared__ u32 s[128];
  u32 sum = 0;
  for (u32 round = 0; round < 3; round++) {
    s[threadIdx.x] = in[INDEX] + round;
    __syncthreads();
    sum += s[127 - threadIdx.x];
  }
  out[INDEX] = sum;
}
extern "C" __global__ void missing_syncwarp(ARGUMENTS) {
  __shared__ u32 s[128];
  s[threadIdx.x] = in[INDEX];
  __any_sync(SA_FULL_WARP, 1); /* brings the lanes together, orders nothing */
  out[INDEX] = s[threadIdx.x ^ 1];
}
extern "C" __global__ void syncwarp_too_narrow(ARGUMENTS) {
  __shared__ u32 s[128];
  u32 lane = threadIdx.x & 31;
  s[threadIdx.x] = in[INDEX];
  if (lane < 16) __syncwarp(0x0000FFFFu);
  else __syncwarp(0xFFFF0000u);
  __any_sync(SA_FULL_WARP, 1);
  out[INDEX] = s[threadIdx.x ^ 16];
}
extern "C" __global__ void plain_counter(ARGUMENTS) { words[0] += 1; }
extern "C" __global__ void counter_half_atomic(ARGUMENTS) {
  if (threadIdx.x == 0) words[0] = 1;
  else atomicAdd(&words[0], 1u);
}
extern "C" __global__ void same_place_twice(ARGUMENTS) { out[INDEX / 2] = in[INDEX]; }
extern "C" __global__ void bytes_of_a_word(ARGUMENTS) { /* right for bytes, but the neighbour's word is read and written back */
  u32 *p = out + INDEX / 4;
  *p = in[INDEX / 4] + INDEX % 4;
}
extern "C" __global__ void missing_release(ARGUMENTS) {
  u32 me = blockIdx.x;
  if (threadIdx.x == 0) {
    if (me == 0) {
      out[0] = 42;
      st_relaxed(&words[0], 1u);
    } else {
      while (ld_acquire(&words[0]) == 0) {}
      out[me] = out[0];
    }
  }
}
extern "C" __global__ void missing_acquire(ARGUMENTS) {
  u32 me = blockIdx.x;
  if (threadIdx.x == 0) {
    if (me == 0) {
      out[0] = 42;
      st_release(&words[0], 1u);
    } else {
      while (ld_relaxed(&words[0]) == 0) {}
      out[me] = out[0];
    }
  }
}
extern "C" __global__ void plain_flag(ARGUMENTS) {
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) words[0] = 1;
    else
      while (ld_acquire(&words[0]) == 0) {}
  }
}
extern "C" __global__ void fence_of_block_only(ARGUMENTS) {
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) {
      out[0] = 42;
      __threadfence_block();
      atomicExch(&words[0], 1u);
    } else {
      while (ld_acquire(&words[0]) == 0) {}
      out[blockIdx.x] = out[0];
    }
  }
}
extern "C" __global__ void release_before_barrier(ARGUMENTS) { /* only thread 0's own writes are told of */
  u32 me = blockIdx.x, i = threadIdx.x;
  if (me == 0) {
    out[i] = i;
    if (i == 0) st_release(&words[0], 1u);
  } else {
    if (i == 0)
      while (ld_acquire(&words[0]) == 0) {}
    __syncthreads();
    out[me * blockDim.x + i] = out[i];
  }
}
extern "C" __global__ void lock_without_fence(ARGUMENTS) {
  while (atomicCAS(&words[0], 0u, 1u)) __nanosleep(10);
  words[1] += 1;
  atomicExch(&words[0], 0u);
}
extern "C" __global__ void ldg_of_written(ARGUMENTS) {
  out[INDEX] = in[INDEX];
  __syncthreads();
  if (threadIdx.x == 9) out[INDEX] = __ldg(&out[INDEX]);
}

/* ---- collectives ---- */

extern "C" __global__ void barrier_in_branch(ARGUMENTS) {
  __shared__ u32 s[128];
  s[threadIdx.x] = in[INDEX];
  if (threadIdx.x < 64) {
    __syncthreads();
    out[INDEX] = s[threadIdx.x ^ 1];
  } else {
    __syncthreads();
    out[INDEX] = 0;
  }
}
extern "C" __global__ void barrier_against_vote(ARGUMENTS) {
  if (threadIdx.x < 16) __syncthreads();
  else __any_sync(SA_FULL_WARP, 1);
  out[INDEX] = 0;
}
extern "C" __global__ void barrier_in_uneven_loop(ARGUMENTS) {
  __shared__ u32 s[128];
  s[threadIdx.x] = 0;
  for (u32 i = 0; i <= (threadIdx.x < 64 ? 2u : 3u); i++) __syncthreads();
  __syncthreads();
  out[INDEX] = s[threadIdx.x];
}
extern "C" __global__ void mask_without_caller(ARGUMENTS) { out[INDEX] = __shfl_sync(0x0000FFFFu, in[INDEX], 0); }
extern "C" __global__ void mask_too_wide(ARGUMENTS) { /* lanes 20 to 31 wait for what comes after the vote that waits for them */
  if (threadIdx.x % 32 < 20) {
    out[INDEX] = __ballot_sync(SA_FULL_WARP, 1);
    st_release(&words[0], 1u);
  } else {
    while (ld_acquire(&words[0]) == 0) {}
  }
}
extern "C" __global__ void masks_differ(ARGUMENTS) {
  if (threadIdx.x & 1) out[INDEX] = __reduce_add_sync(SA_FULL_WARP, 1u);
  else out[INDEX] = __reduce_add_sync(0x55555557u, 1u);
}
extern "C" __global__ void different_votes(ARGUMENTS) {
  if (threadIdx.x & 1) out[INDEX] = (u32)__any_sync(SA_FULL_WARP, 1);
  else out[INDEX] = (u32)__all_sync(SA_FULL_WARP, 1);
}
extern "C" __global__ void loops_apart(ARGUMENTS) { /* lanes leave the loop one by one and meet the others' shuffles further down */
  u32 v = in[INDEX];
  for (u32 i = 0; i < threadIdx.x % 4; i++) v += __shfl_xor_sync(SA_FULL_WARP, v, 1);
  v += __shfl_xor_sync(SA_FULL_WARP, v, 1);
  out[INDEX] = v;
}
extern "C" __global__ void dead_lanes(ARGUMENTS) {
  if (threadIdx.x % 32 >= 20) return;
  out[INDEX] = __shfl_down_sync(SA_FULL_WARP, in[INDEX], 4);
}
extern "C" __global__ void lane_outside_mask(ARGUMENTS) {
  if (threadIdx.x % 32 < 16) out[INDEX] = __shfl_sync(0x0000FFFFu, in[INDEX], 16);
}
extern "C" __global__ void odd_width(ARGUMENTS) { out[INDEX] = __shfl_sync(SA_FULL_WARP, in[INDEX], 0, 12); }

/* ---- progress, resources ---- */

extern "C" __global__ void order_of_blocks(ARGUMENTS) { /* no ticket: block 0 may be the last to start */
  if (threadIdx.x == 0) {
    if (blockIdx.x > 0)
      while (ld_acquire(&words[blockIdx.x - 1]) == 0) {}
    st_release(&words[blockIdx.x], 1u);
  }
}
extern "C" __global__ void waits_for_nobody(ARGUMENTS) {
  while (ld_acquire(&words[1]) == 0) __nanosleep(10);
}
extern "C" __global__ void block_waits_for_nobody(ARGUMENTS) { /* with a barrier in the loop */
  __shared__ u32 seen;
  do {
    if (threadIdx.x == 0) seen = ld_acquire(&words[1]);
    __syncthreads();
    if (seen) break;
    __syncthreads();
  } while (true);
}
extern "C" __global__ void endless_loop(ARGUMENTS) {
  for (u32 x = 1; x != 0; x = x * 3 | 1) asm volatile("");
}
extern "C" __global__ void too_much_shared(ARGUMENTS) {
  __shared__ u32 s[12 * 1024 + 128];
  s[threadIdx.x] = in[INDEX];
  out[INDEX] = s[threadIdx.x];
}
extern "C" __global__ void null_pointer(ARGUMENTS) { ((u32 *)(u64)(words[0] * 4))[INDEX] = 1; }
extern "C" __global__ void deep_recursion(ARGUMENTS) {
  volatile u32 room[20000];
  for (u32 i = 0; i < 20000; i++) room[i] = i;
  out[INDEX] = room[in[INDEX]];
}
