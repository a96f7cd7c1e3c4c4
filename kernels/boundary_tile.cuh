/* Piece starts of a tile of text, the same for every rule family.
 *
 * A thread has a block of 64 bytes. Of a thread block of T threads
 *
 *   thread   0 1 | 2 ........ T-2 | T-1
 *   block    warm-up   the tile's   next      blockIdx * (T - 3) - 2 is thread 0's
 *
 * Every thread makes its planes once. Then the rules run with a carry from the thread on the left, again and again
 * until no carry changes: then each block was done with what the one before leaves, which is all that the serial walk
 * of the CPU does. What the first block of a tile was given (tile_in) must be what the tile before leaves (tile_out):
 * see boundaries.cu. Runs whose end decides (open bits) look for their first stop among the threads behind, then among
 * the tiles behind, by first_stop. At most one open bit a kind leads out of a tile: a second one would have a stop
 * between it and the first. */
#ifndef SAPHIRA_BOUNDARY_TILE_CUH
#define SAPHIRA_BOUNDARY_TILE_CUH

#include "counters.h"
#include "families.cuh"
#include "scan.cuh"
#include "text_tile.cuh"

#define SA_WARM_UP 2              /* threads before a tile's own */
#define SA_NEXT 1                 /* threads behind */
#define SA_NO_OPEN 0xFFFFFFFFu
#define SA_MOST_KINDS 2
#define SA_MOST_SENT 6
#define SA_TILE_WARPS (SA_TILE_THREADS / 32)

struct boundary_job {
  sa_text text;
  const u64 *segments, *inside; /* n / 64 + 1 words each; inside may be null */
  const u8 *classes;            /* class bits of every byte, 0xFF on owned ones; null: made of the text */
  sa_tag_tables tags;
  u32 options;
  u64 *starts;
  u64 *tile_in;
  u32 *open_at;    /* two a tile: the byte whose run leads out of it */
  u32 *first_stop; /* two a tile: 0 none in it, 1 a bad one, 2 a good one */
  u64 *counters;
};

struct boundary_shared {
  u64 rows[SA_TILE_THREADS * SA_ROW_WORDS];
  u64 carry[2][SA_TILE_THREADS];
  u64 edge[SA_MOST_SENT][SA_TILE_WARPS]; /* what a warp's first thread sends to the left */
  u32 stop[SA_MOST_KINDS][SA_TILE_WARPS], good[SA_MOST_KINDS][SA_TILE_WARPS]; /* a bit a thread */
  u32 open_at[SA_MOST_KINDS];
  u8 last[SA_TILE_THREADS];  /* class bits of a block's last byte */
  u8 ascii_bits[128], bits[32];
};

/* ---- planes ---- */

template <u32 wanted>
static __device__ __forceinline__ void add_classes(block_bits &b, u64 classes, u32 shift) {
#pragma unroll
  for (u32 p = 0; p < 8; p++)
    if (wanted >> p & 1) b.plane[p] |= top_bits(classes << (7 - p)) << shift;
}

/* Class bits of eight bytes of text, from global memory; behind it those of NUL, which is of no class. */
static __device__ __forceinline__ u64 class_word(const u8 *classes, u64 at, u64 n) {
  u64 word = 0;
  if (at + 8 <= n) return *(const u64 *)(classes + at);
  for (u32 i = 0; i < 8 && at + i < n; i++) word |= (u64)classes[at + i] << (8 * i);
  return word;
}

/* Block k, which thread j has in its row. */
template <class F>
static __device__ __forceinline__ block_bits make_bits(const boundary_job &job, const boundary_shared &s, u64 k, u32 j) {
  block_bits b = {};
  u64 words = job.text.n / 64 + 1;
  const u64 *row = s.rows + SA_ROW_WORDS * j;
  if (k < words) b.segments = job.segments[k];
#pragma unroll 1
  for (u32 w = 0; w < 8; w++) {
    u64 text = row[w], high = text & SA_HIGH_BITS, classes = 0;
    u32 shift = 8 * w;
    if (job.classes) {
      classes = class_word(job.classes, 64 * k + 8 * w, job.text.n);
      u64 owned = equal_bytes(classes, 0xFF);
      classes &= ~((owned >> 7) * 0xFF);
      b.owned |= top_bits(owned) << shift;
    } else {
#pragma unroll
      for (u32 i = 0; i < 64; i += 8) classes |= (u64)s.ascii_bits[text >> i & 127] << i;
      classes &= ~((high >> 7) * 0xFF);
    }
    add_classes<F::bits>(b, classes, shift);
    b.newline |= top_bits(equal_bytes(text, 0x0A) | equal_bytes(text, 0x0D)) << shift;
    b.space |= top_bits(equal_bytes(text, 0x20)) << shift;
    b.apostrophe |= top_bits(equal_bytes(text, 0x27)) << shift;
    b.less |= top_bits(equal_bytes(text, 0x3C)) << shift;
    b.slash |= top_bits(equal_bytes(text, 0x2F)) << shift;
    b.high |= top_bits(high) << shift;
  }
  if (b.high && !job.classes) {
    u64 before = k > 0 ? job.segments[k - 1] : 0, next = k + 1 < words ? job.segments[k + 1] : 0;
    sa_structure c = row_structure(row, j ? row - SA_ROW_WORDS : 0, before, b.segments, next);
    u64 whole = c.whole2 | c.whole3 | c.whole4;
    b.owned = c.owned;
    for (u64 left = whole | c.failed | c.alone; left; left &= left - 1) {
      u64 bit = left & (0 - left);
      u32 i = (u32)sa_ctz64(bit), tag, classes;
      if (whole & bit) tag = whole_tag(job.tags, row, i, char_length(c, bit));
      else tag = job.tags.single[c.failed & bit ? 256 : row_byte(row, i)];
      classes = s.bits[tag];
#pragma unroll
      for (u32 p = 0; p < 8; p++)
        if (F::bits >> p & 1 && classes >> p & 1) b.plane[p] |= bit;
    }
  }
  return b;
}

/* Class bits of the block's last byte. They depend on no other block: its character starts here. */
template <u32 wanted>
static __device__ __forceinline__ u32 last_bits(const block_bits &b) {
  u32 bits = 0;
#pragma unroll
  for (u32 p = 0; p < 8; p++)
    if (wanted >> p & 1) bits |= (u32)(sa_spread(b.plane[p], b.owned, 0) >> 63) << p;
  return bits;
}

/* The planes of the thread on the right; those of the last thread's are empty. */
template <class F>
static __device__ __forceinline__ typename F::planes planes_on_the_right(const typename F::planes &b, boundary_shared &s) {
  u32 j = threadIdx.x, lane = lane_id(), warp = j / 32;
  u64 sent[F::sent];
  F::send(b, sent);
#pragma unroll
  for (int i = 0; i < F::sent; i++)
    if (lane == 0) s.edge[i][warp] = sent[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < F::sent; i++) {
    u64 right = __shfl_down_sync(SA_FULL_WARP, sent[i], 1);
    sent[i] = lane < 31 ? right : j + 1 < blockDim.x ? s.edge[i][warp + 1] : 0;
  }
  return F::receive(sent);
}

/* ---- stops ---- */

/* The first stop at or behind thread `from` and before thread `to`: 0 none, 1 bad, 2 good. */
static __device__ __forceinline__ u32 first_stop_of(const boundary_shared &s, int kind, u32 from, u32 to) {
  for (u32 warp = from / 32; 32 * warp < to; warp++) {
    u32 stops = s.stop[kind][warp];
    if (warp == from / 32) stops &= ~(u32)0 << (from & 31);
    if (!stops) continue;
    u32 first = (u32)__ffs((int)stops) - 1;
    if (32 * warp + first >= to) return 0;
    return 1 + (s.good[kind][warp] >> first & 1);
  }
  return 0;
}

/* ---- a tile ---- */

/* Does a tile; by all threads, who may go on at once with another. is_given: its first block's carry is `given`, else
 * it comes from the warm-up. Returns in thread T - 2 what the tile leaves. */
template <class F>
static __device__ __forceinline__ u64 do_tile(const boundary_job &job, boundary_shared &s, u64 tile, bool is_given,
                                              u64 given) {
  u32 j = threadIdx.x, last_own = blockDim.x - SA_NEXT - 1;
  i64 first = (i64)(tile * (blockDim.x - SA_WARM_UP - SA_NEXT)) - SA_WARM_UP, k = first + (i64)j;
  u64 words = job.text.n / 64 + 1;
  typename F::planes b = {}, next;
  block_bits raw = {};
  __syncthreads();
  load_rows(job.text, first, s.rows);
  if (j < SA_MOST_KINDS) s.open_at[j] = SA_NO_OPEN;
  __syncthreads();
  if (k >= 0) raw = make_bits<F>(job, s, (u64)k, j);
  s.last[j] = (u8)last_bits<F::bits>(raw);
  __syncthreads();
  if (k >= 0) b = F::make(raw, j ? s.last[j - 1] : 0, job.options);
  next = planes_on_the_right<F>(b, s);

  u64 in = is_given && j == SA_WARM_UP ? given : 0, out = 0, result = 0, open[SA_MOST_KINDS] = {0, 0};
  bool done = false;
  for (u32 round = 0;; round++) {
    u64 now = round == 0 || j == 0 || (is_given && j == SA_WARM_UP) ? in : s.carry[round & 1][j - 1];
    bool changed = false;
    if (k >= 0 && (!done || now != in)) {
      typename F::carry c = unpack_carry<F>(now);
      result = F::starts(b, next, job.options, job.text.bytes + 64 * k, &c, open);
      u64 leaves = pack_carry<F>(c);
      changed = !done || leaves != out;
      out = leaves;
      in = now;
      done = true;
    }
    s.carry[(round + 1) & 1][j] = out;
    if (!__syncthreads_or(changed)) break;
  }

  bool own = j >= SA_WARM_UP && j <= last_own && (u64)k < words;
#pragma unroll
  for (int kind = 0; kind < F::kinds; kind++) {
    u64 stop, good;
    F::stops(b, job.options, kind, &stop, &good);
    u32 stops = __ballot_sync(SA_FULL_WARP, stop != 0);
    u32 goods = __ballot_sync(SA_FULL_WARP, (good & stop & (0 - stop)) != 0);
    if (lane_id() == 0) {
      s.stop[kind][j / 32] = stops;
      s.good[kind][j / 32] = goods;
    }
  }
  if (F::kinds) __syncthreads();
#pragma unroll
  for (int kind = 0; kind < F::kinds; kind++) {
    if (own && open[kind]) {
      u32 found = first_stop_of(s, kind, j + 2, blockDim.x);
      if (found == 2) result |= open[kind];
      if (found == 0) s.open_at[kind] = (u32)(64 * k) + (u32)sa_ctz64(open[kind]);
    }
  }
  if (own) {
    if (64 * (u64)k + 64 > job.text.n) result &= ((u64)1 << (job.text.n & 63)) - 1;
    if (job.inside) result &= ~job.inside[k];
    job.starts[k] = result;
  }
  if (j == SA_WARM_UP) job.tile_in[tile] = in;
  if (F::kinds) {
    __syncthreads();
    if (j < F::kinds) {
      job.first_stop[2 * tile + j] = first_stop_of(s, (int)j, SA_WARM_UP, last_own + 1);
      job.open_at[2 * tile + j] = s.open_at[j];
      if (s.open_at[j] != SA_NO_OPEN) atomicAdd(&job.counters[SA_COUNTER_OPEN], (u64)1);
    }
  }
  return out;
}

#endif
