/* Stage special: added tokens, by the rules of kernels/shared/added.h, which the core's special.c follows too.
 *
 * special_candidates: a thread 16 bytes of text, four threads a word of the bitmap; blocks of whole warps, in all
 *   4 (N / 64 + 1) threads. Where a content of any added token stands (it may reach beyond its row), and which rows
 *   have one.
 *   reads   text: 1 byte a byte; the contents where a first byte fits; row offsets (a binary search) where there is one
 *   writes  candidates: 1 bit a byte; rows that have some, each once
 * special_rows: a warp a row of those, handed out by a ticket; any grid. Walks the row's candidates from left to right
 *   as the core does: tokens that are matched in raw text, then the others in what lies between.
 *   reads   candidates: 1 bit a byte of these rows, twice at most; text at and beside matches
 *   writes  a fixed piece for each token, its start and end in segments; hits
 * text: N bytes and 64 more, at a multiple of 16. candidates, segments, fixed, inside: N / 64 + 1 words. seen: n_rows
 * bits in words of 32, zero before. */
#include "beside.cuh"
#include "marks.cuh"
#include "rows.cuh"
#include "shared/added.h"

/* Added tokens, as the core keeps them, and those searched for together: indices in the order of their contents. */
struct contents {
  const i64 *offsets;
  const u8 *bytes;
};

/* The bytes of a word that are c, as bits 0..3. */
static __device__ __forceinline__ u32 bytes_equal(u32 word, u32 c) {
  return ((__vcmpeq4(word, c * 0x01010101u) & 0x08040201u) * 0x01010101u) >> 24;
}

/* The bytes of a word whose bit is set in a set of 256, as bits 0..3. */
static __device__ __forceinline__ u32 bytes_among(u32 word, const u32 *set) {
  u32 found = 0;
  for (u32 i = 0; i < 4; i++) {
    u32 byte = word >> (8 * i) & 0xFF;
    found |= (set[byte >> 5] >> (byte & 31) & 1) << i;
  }
  return found;
}

extern "C" __global__ void __launch_bounds__(1024)
    special_candidates(const u8 *text, u64 n, const u8 *row_offsets, u32 offset_bytes, u64 n_rows, const u8 *validity,
                       u64 validity_offset, const i64 *content_offsets, const u8 *content_bytes, const u32 *order,
                       u32 n_order, u32 single, u64 *candidates, u32 *seen, u32 *found_rows, u64 *counters) {
  __shared__ u32 first[8]; /* the set of the contents' first bytes; single: the only one, or more than 255 */
  if (threadIdx.x < 8) first[threadIdx.x] = 0;
  __syncthreads();
  for (u32 i = threadIdx.x; i < n_order; i += blockDim.x) {
    u8 byte = content_bytes[content_offsets[order[i]]];
    atomicOr(&first[byte >> 5], 1u << (byte & 31));
  }
  __syncthreads();

  batch_rows rows = {row_offsets, offset_bytes, n_rows, validity, validity_offset};
  u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  u64 at = thread * 16;
  u32 possible = 0;
  if (at < n) {
    uint4 block = *(const uint4 *)(text + at);
    u32 words[4] = {block.x, block.y, block.z, block.w};
    for (u32 i = 0; i < 4; i++)
      possible |= (single < 256 ? bytes_equal(words[i], single) : bytes_among(words[i], first)) << (4 * i);
  }
  u64 bits = 0;
  for (; possible; possible &= possible - 1) {
    u32 i = (u32)__ffs((int)possible) - 1;
    if (at + i < n && sa_content_at(content_offsets, content_bytes, order, n_order, text, (i64)(at + i), (i64)n, 1) >= 0)
      bits |= (u64)1 << i;
  }
  bits <<= 16 * (thread & 3);
  bits |= __shfl_xor_sync(SA_FULL_WARP, bits, 1);
  bits |= __shfl_xor_sync(SA_FULL_WARP, bits, 2);
  u64 word = thread / 4;
  if (thread % 4 != 0 || word > n / 64) return;
  candidates[word] = bits;

  while (bits) {
    u64 row = row_of(rows, word * 64 + sa_ctz64(bits)), end = row_offset(rows, row + 1);
    u32 bit = 1u << (row & 31);
    if (!row_is_null(rows, row) && !(ld_relaxed(&seen[row >> 5]) & bit) && !(atomicOr(&seen[row >> 5], bit) & bit))
      found_rows[atomicAdd(&counters[SA_COUNTER_SPECIAL_ROWS], (u64)1)] = (u32)row;
    if (end >= (word + 1) * 64) break;
    bits &= ~(u64)0 << (end & 63);
  }
}

/* The first candidate at or after `at`; hi where there is none before it. Called by a whole warp. */
static __device__ __forceinline__ i64 next_candidate(const u64 *candidates, i64 at, i64 hi) {
  for (i64 first = at >> 6; first * 64 < hi; first += 32) {
    i64 word = first + lane_id();
    u64 bits = word * 64 < hi ? candidates[word] : 0;
    if (word == at >> 6) bits &= ~(u64)0 << (at & 63);
    u32 some = __ballot_sync(SA_FULL_WARP, bits != 0);
    if (some) {
      u32 lane = (u32)__ffs((int)some) - 1;
      bits = __shfl_sync(SA_FULL_WARP, bits, lane);
      return min((first + lane) * 64 + sa_ctz64(bits), hi);
    }
  }
  return hi;
}

/* A span that the next one may cut short: it starts in the white space that this one's rstrip took. */
struct pending_span {
  i64 start, end;
  u32 id;
  bool there;
};

static __device__ __forceinline__ void put_span(pending_span span, i64 next, u64 *segments, fixed_pieces pieces) {
  if (!span.there) return;
  i64 end = min(span.end, next);
  if (lane_id() == 0) {
    set_bit(segments, (u64)span.start);
    set_bit(segments, (u64)end);
  }
  fix_piece(pieces, (u64)span.start, (u64)end, span.id);
}

extern "C" __global__ void __launch_bounds__(256, 2)
    special_rows(const u8 *text, const u8 *row_offsets, u32 offset_bytes, const i64 *content_offsets,
                 const u8 *content_bytes, const u32 *ids, const u8 *flags, const u8 *blank, const u32 *raw, u32 n_raw,
                 const u32 *normalized, u32 n_normalized, u32 special, const u8 *tags, const u16 *leaf,
                 const u8 *leaves, u32 white, u32 word, const u64 *candidates, const u32 *found_rows, u64 *hits,
                 u64 *segments, u64 *fixed, u64 *inside, u32 *fixed_at, u32 *fixed_id, u64 *counters) {
  batch_rows rows = {row_offsets, offset_bytes, 0, 0, 0};
  fixed_pieces pieces = {fixed, inside, fixed_at, fixed_id, counters};
  sa_beside t = {text, tags, leaf, leaves, white, word};
  u64 n_found = counters[SA_COUNTER_SPECIAL_ROWS];
  for (;;) {
    u64 ticket = 0;
    if (lane_id() == 0) ticket = atomicAdd(&counters[SA_COUNTER_SPECIAL_TICKET], (u64)1);
    ticket = __shfl_sync(SA_FULL_WARP, ticket, 0);
    if (ticket >= n_found) break;
    u64 row = found_rows[ticket];
    i64 row_start = (i64)row_offset(rows, row), row_end = (i64)row_offset(rows, row + 1);

    /* Tokens matched in raw text in [lo, hi), from `at` on; between two of them (inner) the others. A raw token and
     * where its search goes on wait for what lies before it. */
    pending_span span = {0, 0, 0, false};
    bool inner = false, tail = false;
    i64 lo = row_start, hi = row_end, from = lo, at = lo;
    sa_verdict outer = {0, 0, 0, 0};
    i64 outer_at = 0, outer_added = 0;
    for (;;) {
      const u32 *order = inner ? normalized : raw;
      u32 n_order = inner ? n_normalized : n_raw;
      i64 added = -1;
      if (n_order == 0) at = hi;
      while ((at = next_candidate(candidates, at, hi)) < hi) {
        added = sa_content_at(content_offsets, content_bytes, order, n_order, text, at, hi, 0);
        if (added >= 0) break;
        at++;
      }
      sa_verdict v;
      if (added >= 0) {
        i64 end = at + content_offsets[added + 1] - content_offsets[added];
        v = sa_special_verdict(t, (int)special, flags[added], blank[added], lo, from, at, end, hi);
        at = end;
        if (v.hit && hits && lane_id() == 0) atomicAdd(&hits[added], (u64)1);
        if (!v.span) continue;
        if (!inner && n_normalized && from < v.start) {
          outer = v, outer_at = at, outer_added = added;
          inner = true;
          lo = at = from, hi = v.start;
          continue;
        }
      } else if (inner && !tail) {
        v = outer, at = outer_at, added = outer_added;
        inner = false;
        lo = row_start, hi = row_end;
      } else if (!inner && n_normalized && from < hi) {
        inner = tail = true;
        lo = at = from;
        continue;
      } else {
        put_span(span, hi, segments, pieces);
        break;
      }
      if (special == SA_SPECIAL_ERROR && !blank[added]) {
        u64 key = (u64)v.start << 32 | (u64)(v.start < row_end) << 31 | (u64)added;
        if (lane_id() == 0) atomicMax(&counters[SA_COUNTER_SPECIAL_ERROR], ~key);
        break;
      }
      put_span(span, v.start, segments, pieces);
      span = {v.start, v.end, ids[added], true};
      from = v.end;
    }
  }
}
