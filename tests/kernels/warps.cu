/* Warps and flags. */
#include "scan.cuh"

/* A row each: sum, smallest, largest, all bits, by a warp. rows: u32[n][width]. out: u32[n][4]. */
extern "C" __global__ void row_statistics(const u32 *rows, u32 n, u32 width, u32 *out) {
  u32 lane = lane_id(), row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (row >= n) return;
  u32 sum = 0, low = 0xFFFFFFFFu, high = 0, bits = 0;
  for (u32 i = lane; i < width; i += 32) {
    u32 x = __ldg(&rows[(u64)row * width + i]);
    sum += x;
    low = min(low, x);
    high = max(high, x);
    bits |= x;
  }
  for (u32 step = 16; step; step /= 2) high = max(high, __shfl_down_sync(SA_FULL_WARP, high, step));
  sum = __reduce_add_sync(SA_FULL_WARP, sum);
  low = __reduce_min_sync(SA_FULL_WARP, low);
  bits = __reduce_or_sync(SA_FULL_WARP, bits);
  if (lane == 0) {
    uint4 result = make_uint4(sum, low, high, bits);
    *(uint4 *)(out + 4 * (u64)row) = result;
  }
}

/* Reverses each group of 32 numbers through shared memory, with no barrier but the warp's own. */
extern "C" __global__ void reverse_warps(const u32 *in, u32 *out) {
  __shared__ u32 tile[32][32];
  u32 lane = lane_id(), warp = threadIdx.x / 32;
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  for (u32 round = 0; round < 3; round++) {
    tile[warp][lane] = round == 0 ? in[i] : out[i];
    __syncwarp();
    out[i] = tile[warp][31 - lane];
    __syncwarp();
  }
}

/* Odd and even lanes apart, each with its own mask. */
extern "C" __global__ void half_warps(const u32 *in, u32 *out) {
  __shared__ u32 last[32][2];
  u32 lane = lane_id(), i = threadIdx.x, half = lane & 1, mask = half ? 0xAAAAAAAAu : 0x55555555u;
  u32 sum;
  if (half) sum = __reduce_add_sync(mask, in[i]);
  else sum = __reduce_add_sync(mask, in[i] * 2);
  if (lane >= 30) last[i / 32][half] = sum;
  __syncwarp(mask);
  out[i] = last[i / 32][half];
}

/* Lanes that hold an odd number claim places together, one atomic for those that came along. */
extern "C" __global__ void odd_numbers(const u32 *in, u32 n, u32 *out, u32 *count) {
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] % 2) {
    u32 here = __activemask(), leader = (u32)__ffs((int)here) - 1, base = 0;
    if (lane_id() == leader) base = atomicAdd(count, (u32)__popc(here));
    base = __shfl_sync(here, base, (int)leader);
    out[base + (u32)__popc(here & lanemask_lt())] = in[i];
  }
}

/* A chain: block k waits for block k - 1 (by ticket), adds one to its number and hands it on. */
extern "C" __global__ void relay(u32 *ticket, u32 *flags, u32 *numbers) {
  __shared__ u32 me;
  if (threadIdx.x == 0) me = atomicAdd(ticket, 1u);
  __syncthreads();
  if (threadIdx.x == 0 && me > 0)
    while (ld_acquire(&flags[me - 1]) == 0) __nanosleep(20);
  __syncthreads();
  u32 number = me ? numbers[(me - 1) * blockDim.x + threadIdx.x] + 1 : threadIdx.x;
  numbers[me * blockDim.x + threadIdx.x] = number;
  __syncthreads();
  if (threadIdx.x == 0) st_release(&flags[me], 1u);
}

/* The first block (by ticket) waits while the second is at work, with many barriers and nothing to show for it. */
extern "C" __global__ void patience(u32 *ticket, u32 *flag, u32 rounds) {
  __shared__ u32 me;
  __shared__ u32 work[32];
  if (threadIdx.x == 0) me = atomicAdd(ticket, 1u);
  work[threadIdx.x] = threadIdx.x;
  __syncthreads();
  for (u32 round = 0; me == 1 && round < rounds; round++) {
    u32 other = work[(threadIdx.x + 1) % 32];
    __syncthreads();
    work[threadIdx.x] = other;
    __syncthreads();
  }
  if (threadIdx.x > 0) return;
  if (me == 1) st_release(flag, work[0]);
  else
    while (ld_acquire(flag) == 0) __nanosleep(20);
}

/* A lock around a plain counter. */
extern "C" __global__ void locked_count(u32 *lock, u32 *counter) {
  while (atomicCAS(lock, 0u, 1u)) __nanosleep(20);
  __threadfence();
  *counter += 1;
  __threadfence();
  atomicExch(lock, 0u);
}

struct span {
  u32 start, length;
  float scale;
};

/* A struct by value, and one in memory; threads in three dimensions. */
extern "C" __global__ void scaled(span what, const float *in, float *out, span *echo) {
  u32 i = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  if (i < what.length) out[i] = in[what.start + i] * what.scale;
  if (i == 0) *echo = what;
}
