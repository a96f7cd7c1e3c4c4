/* A tile of text in shared memory, a block of 64 bytes for each thread, and what its bytes are.
 *
 * Rows of 72 bytes: the block's 64 and the next 8, so that a character that goes on into the next block can be
 * read. Threads read their rows in words of 8 bytes; a stride of 18 banks keeps 16 of them apart. */
#ifndef SAPHIRA_TEXT_TILE_CUH
#define SAPHIRA_TEXT_TILE_CUH

#include "scan.cuh"
#include "shared/rules_common.h"
#include "shared/types.h"
#include "shared/utf8.h"
#include "sync.cuh"

#define SA_ROW_WORDS 9
#define SA_TILE_THREADS 256 /* most threads of a block */
#define SA_EVERY 0x0101010101010101ull
#define SA_LOW7 0x7F7F7F7F7F7F7F7Full
#define SA_HIGH_BITS 0x8080808080808080ull

/* A text of n bytes, its address a multiple of 16; up to 15 bytes behind it are read and have no effect. */
struct sa_text {
  const u8 *bytes;
  u64 n;
};

/* Where leads and lone bytes get their tags: sa_alphabet's tables. */
struct sa_tag_tables {
  const u8 *single;  /* of the bytes 00..7F, of 80..FF outside characters, of a failed lead: 257 */
  const u16 *four;   /* leaf of code point >> 6 */
  const u8 *leaves;  /* tags of 64 code points each */
};

/* ---- bits of eight bytes ---- */

/* The top bits of eight bytes as a byte. */
static __device__ __forceinline__ u64 top_bits(u64 x) { return (((x >> 7) & SA_EVERY) * 0x0102040810204080ull) >> 56; }

/* 80 in the bytes that are x. */
static __device__ __forceinline__ u64 equal_bytes(u64 word, u32 x) {
  u64 y = word ^ (x * SA_EVERY);
  return ~(((y & SA_LOW7) + SA_LOW7) | y) & SA_HIGH_BITS;
}

/* 80 in the bytes at or above x; x >= 80. */
static __device__ __forceinline__ u64 bytes_from(u64 word, u32 x) {
  return ((word & SA_LOW7) + (0x80 - (x & 0x7F)) * SA_EVERY) & word & SA_HIGH_BITS;
}

/* ---- text ---- */

/* 16 bytes of the text from `at` on; 0 outside it. */
static __device__ __forceinline__ ulonglong2 text_chunk(sa_text text, i64 at) {
  ulonglong2 chunk = make_ulonglong2(0, 0);
  if (at < 0 || (u64)at >= text.n) return chunk;
  chunk = *(const ulonglong2 *)(text.bytes + at);
  u64 left = text.n - (u64)at;
  if (left < 8) chunk.x &= ((u64)1 << (8 * left)) - 1;
  if (left <= 8) chunk.y = 0;
  else if (left < 16) chunk.y &= ((u64)1 << (8 * (left - 8))) - 1;
  return chunk;
}

/* Loads blocks first .. first + blockDim.x - 1, and the 8 bytes behind; by all threads, who meet after it. */
static __device__ __forceinline__ void load_rows(sa_text text, i64 first, u64 *rows) {
  for (u32 c = threadIdx.x; c <= 4 * blockDim.x; c += blockDim.x) {
    ulonglong2 chunk = text_chunk(text, 64 * first + 16 * (i64)c);
    u32 row = c / 4, part = c % 4;
    if (row < blockDim.x) {
      rows[row * SA_ROW_WORDS + 2 * part] = chunk.x;
      rows[row * SA_ROW_WORDS + 2 * part + 1] = chunk.y;
    }
    if (part == 0 && row > 0) rows[(row - 1) * SA_ROW_WORDS + 8] = chunk.x;
  }
}

static __device__ __forceinline__ u32 row_byte(const u64 *row, u32 i) { return (u32)(row[i / 8] >> (8 * (i & 7))) & 0xFF; }

/* ---- characters ---- */

static __device__ __forceinline__ void add_kinds(sa_byte_kinds *k, u64 word, u32 shift) {
  u64 high = top_bits(word), from_c0 = top_bits(bytes_from(word, 0xC0)), from_e0 = top_bits(bytes_from(word, 0xE0));
  u64 from_f0 = top_bits(bytes_from(word, 0xF0)), from_f5 = top_bits(bytes_from(word, 0xF5));
  k->cont |= (high & ~from_c0) << shift;
  k->lead2 |= (from_c0 & ~from_e0) << shift;
  k->lead3 |= (from_e0 & ~from_f0) << shift;
  k->lead4 |= (from_f0 & ~from_f5) << shift;
  k->high |= from_f5 << shift;
}

/* The structure of a block with bytes from 80 on. before: the row of the block before, or null; segments: of the
 * block before, this one and the next. */
static __device__ __forceinline__ sa_structure row_structure(const u64 *row, const u64 *before, u64 segments_before,
                                                             u64 segments, u64 segments_next) {
  sa_byte_kinds k = {0, 0, 0, 0, 0};
  u64 carry = 0, ignored;
  u64 behind = row[8];
  for (u32 w = 0; w < 8; w++)
    if (row[w] & SA_HIGH_BITS) add_kinds(&k, row[w], 8 * w);
  if (before && k.cont & 1) {
    /* A lead among the last three bytes of the block before may own bytes here. */
    sa_byte_kinds last = {0, 0, 0, 0, 0};
    add_kinds(&last, before[7], 56);
    sa_utf8_structure(last, segments_before, k.cont, segments, &carry);
  }
  ignored = carry;
  return sa_utf8_structure(k, segments, top_bits(behind) & ~top_bits(bytes_from(behind, 0xC0)), segments_next, &ignored);
}

/* The tag of the whole character with the lead at byte i of the row; length: 2..4. */
static __device__ __forceinline__ u32 whole_tag(sa_tag_tables tags, const u64 *row, u32 i, u32 length) {
  u32 code = row_byte(row, i) & (0xFFu >> (length + 1));
  for (u32 k = 1; k < length; k++) code = code << 6 | (row_byte(row, i + k) & 63);
  return tags.leaves[64 * (u32)tags.four[code >> 6] + (code & 63)];
}

/* Which whole characters a bit of the structure's leads belongs to: their length. */
static __device__ __forceinline__ u32 char_length(const sa_structure &s, u64 bit) {
  return s.whole2 & bit ? 2 : s.whole3 & bit ? 3 : 4;
}

#endif
