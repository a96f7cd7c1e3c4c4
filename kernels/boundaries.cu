/* Stage boundaries: piece starts of every compiled scheme, straight from text or from class bits.
 *
 * boundaries_<family>, T = 32 to 256 threads a block, whole warps; a tile is T - 3 blocks of 64 bytes. Launched three times:
 *   pass 0   a thread block a tile
 *   pass 1   the same grid: tiles whose carry in is not what the tile before left are done again with that
 *   pass 2   one thread block: those that still disagree, in order, each with what the one before has left by now
 *   reads    text (1 byte a byte and 3/T), segments (1/8 byte a byte), inside; in passes 1 and 2 only of tiles done
 *            again; 16 bytes a tile
 *   writes   starts (1/8 byte a byte), 32 bytes a tile
 * After pass 2 every tile was done with what the one before leaves, so that all is as in one walk from the start.
 * Pass 1 does at most every tile again, pass 2 too: linear on any text.
 *
 * boundaries_beyond, a thread a tile: bits whose run leads out of their tile, by the first stop behind it; a warp
 * looks through 32 tiles a step.
 *   reads    16 bytes a tile if there are such bits
 *
 * starts = (piece starts of the rules, in which segments start pieces) without the bits of `inside` and from n on. */
#include "boundary_tile.cuh"

template <class F>
static __device__ __forceinline__ void run_pass(const boundary_job &job, const u8 *ascii_bits, const u8 *bits, u32 pass,
                                                u64 tiles, u64 *out, u64 *out_again) {
  __shared__ boundary_shared s;
  __shared__ u32 found;
  u64 tile = blockIdx.x, given = 0;
  u32 j = threadIdx.x, last_own = blockDim.x - SA_NEXT - 1;
  if (pass == 1) {
    if (tile > 0) given = out[tile - 1];
    if (tile == 0 || job.tile_in[tile] == given) {
      if (j == 0) out_again[tile] = out[tile];
      return;
    }
  }
  if (pass == 2 && job.counters[SA_COUNTER_TILES_AGAIN] == 0) return;
  for (u32 i = j; i < 128; i += blockDim.x) s.ascii_bits[i] = ascii_bits[i];
  if (j < 32) s.bits[j] = bits[j];
  if (pass < 2) {
    /* Between the reading of tile_in above and its writing below there are barriers. */
    u64 leaves = do_tile<F>(job, s, tile, pass == 1, given);
    if (j == last_own) (pass == 1 ? out_again : out)[tile] = leaves;
    if (pass == 1 && j == 0) atomicAdd(&job.counters[SA_COUNTER_TILES_AGAIN], (u64)1);
    return;
  }
  for (u64 from = 1; from < tiles;) {
    u64 mine = from + j;
    if (j == 0) found = blockDim.x;
    __syncthreads();
    if (mine < tiles && job.tile_in[mine] != out_again[mine - 1]) atomicMin(&found, j);
    __syncthreads();
    u32 at = found;
    __syncthreads();
    from += at;
    if (at == blockDim.x) continue;
    u64 leaves = do_tile<F>(job, s, from, true, out_again[from - 1]);
    if (j == last_own) out_again[from] = leaves;
    if (j == 0) atomicAdd(&job.counters[SA_COUNTER_TILES_SERIAL], (u64)1);
    from++; /* the barrier above lets all see what the tile leaves */
  }
}

#define SA_BOUNDARY_PARAMETERS                                                                                     \
  const u8 *text, u64 n, const u64 *segments, const u64 *inside, const u8 *classes, const u8 *single,              \
      const u16 *four, const u8 *leaves, const u8 *ascii_bits, const u8 *bits, u32 options, u32 pass, u64 tiles,   \
      u64 *starts, u64 *tile_in, u64 *out, u64 *out_again, u32 *open_at, u32 *first_stop, u64 *counters

#define SA_BOUNDARY_ARGUMENTS                                                                                      \
  boundary_job({{text, n}, segments, inside, classes, {single, four, leaves}, options, starts, tile_in, open_at,   \
                first_stop, counters}),                                                                            \
      ascii_bits, bits, pass, tiles, out, out_again

extern "C" __global__ void __launch_bounds__(256, 2) boundaries_gpt2(SA_BOUNDARY_PARAMETERS) {
  run_pass<gpt2_family>(SA_BOUNDARY_ARGUMENTS);
}

extern "C" __global__ void __launch_bounds__(256, 2) boundaries_cl100k(SA_BOUNDARY_PARAMETERS) {
  run_pass<cl100k_family>(SA_BOUNDARY_ARGUMENTS);
}

extern "C" __global__ void __launch_bounds__(256, 2) boundaries_o200k(SA_BOUNDARY_PARAMETERS) {
  run_pass<o200k_family<0>>(SA_BOUNDARY_ARGUMENTS);
}

extern "C" __global__ void __launch_bounds__(256, 1) boundaries_o200k_han(SA_BOUNDARY_PARAMETERS) {
  run_pass<o200k_family<1>>(SA_BOUNDARY_ARGUMENTS);
}

extern "C" __global__ void __launch_bounds__(256, 2) boundaries_deepseek(SA_BOUNDARY_PARAMETERS) {
  run_pass<deepseek_family>(SA_BOUNDARY_ARGUMENTS);
}

extern "C" __global__ void __launch_bounds__(1024)
    boundaries_beyond(u64 tiles, u32 kinds, const u32 *open_at, const u32 *first_stop, const u64 *inside, u64 *starts,
                      const u64 *counters) {
  if (counters[SA_COUNTER_OPEN] == 0) return;
  u64 tile = (u64)blockIdx.x * blockDim.x + threadIdx.x, base = tile - lane_id();
  for (u32 kind = 0; kind < kinds; kind++) {
    u32 at = tile < tiles ? open_at[2 * tile + kind] : SA_NO_OPEN;
    for (u32 left = __ballot_sync(SA_FULL_WARP, at != SA_NO_OPEN); left; left &= left - 1) {
      u32 lane = (u32)__ffs((int)left) - 1, stop = 0;
      for (u64 from = base + lane + 1; from < tiles; from += 32) {
        u64 mine = from + lane_id();
        u32 seen = mine < tiles ? first_stop[2 * mine + kind] : 0;
        u32 any = __ballot_sync(SA_FULL_WARP, seen != 0);
        if (!any) continue;
        stop = __shfl_sync(SA_FULL_WARP, seen, __ffs((int)any) - 1);
        break;
      }
      if (stop == 2 && lane_id() == lane) {
        u64 bit = (u64)1 << (at & 63);
        if (inside) bit &= ~inside[at / 64];
        starts[at / 64] |= bit;
      }
    }
  }
}
