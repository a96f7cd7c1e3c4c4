/* Stages classify and remap, on their own.
 *
 * classify: a thread a block of 64 bytes, 32 to 256 threads a block, whole warps.
 *   reads   text (1 byte a byte and 1/32 beside each tile), segments (1/8 byte a byte), tables
 *   writes  tags: 1 byte a byte, 0xFF on the bytes that a character before them owns; starts: 1/8 byte a byte, the
 *           first bytes of characters, n / 64 + 1 words
 * remap: a thread 16 bytes.
 *   reads   tags, a table of 32 classes
 *   writes  classes: 1 byte a byte; 0xFF stays. In place is allowed.
 * Text, tags and classes lie at multiples of 16. */
#include "scan.cuh"
#include "text_tile.cuh"

/* Writes a tile's rows, those bytes that lie within the text. */
static __device__ __forceinline__ void store_rows(const u64 *rows, i64 first, u8 *out, u64 n) {
  for (u32 c = threadIdx.x; c < 4 * blockDim.x; c += blockDim.x) {
    u64 at = 64 * (u64)first + 16 * (u64)c;
    const u64 *from = &rows[c / 4 * SA_ROW_WORDS + 2 * (c % 4)];
    if (at + 16 <= n) {
      *(ulonglong2 *)(out + at) = make_ulonglong2(from[0], from[1]);
    } else {
      for (u32 i = 0; i < 16 && at + i < n; i++) out[at + i] = (u8)row_byte(from, i);
    }
  }
}

static __device__ __forceinline__ void put_byte(u64 *row, u32 i, u32 value) {
  u32 shift = 8 * (i & 7);
  row[i / 8] = (row[i / 8] & ~((u64)0xFF << shift)) | (u64)value << shift;
}

extern "C" __global__ void __launch_bounds__(256, 1)
    classify(const u8 *bytes, u64 n, const u64 *segments, const u8 *single, const u16 *four, const u8 *leaves, u8 *tags,
             u64 *starts) {
  __shared__ u64 rows[(SA_TILE_THREADS + 1) * SA_ROW_WORDS];
  __shared__ u8 ascii[128];
  sa_text text = {bytes, n};
  sa_tag_tables tables = {single, four, leaves};
  u32 j = threadIdx.x;
  i64 first = (i64)blockIdx.x * blockDim.x;
  u64 k = (u64)first + j, words = n / 64 + 1;
  u64 *row = rows + SA_ROW_WORDS * (j + 1);
  for (u32 i = j; i < 128; i += blockDim.x) ascii[i] = single[i];
  load_rows(text, first, rows + SA_ROW_WORDS);
  if (j == 0) rows[7] = text_chunk(text, 64 * first - 16).y; /* the end of the block before the tile */
  __syncthreads();
  sa_structure s = {0, 0, 0, 0, 0, 0};
  u64 high = 0;
  for (u32 w = 0; w < 8; w++) high |= row[w] & SA_HIGH_BITS;
  if (high && k < words) {
    u64 before = k > 0 ? segments[k - 1] : 0, next = k + 1 < words ? segments[k + 1] : 0;
    s = row_structure(row, row - SA_ROW_WORDS, before, segments[k], next);
  }
  __syncthreads(); /* rows become tags: nobody looks at a neighbour's any more */
  for (u32 w = 0; w < 8; w++) {
    u64 in = row[w], out = 0;
    for (u32 i = 0; i < 64; i += 8) {
      u32 byte = (u32)(in >> i) & 0xFF;
      out |= (u64)(byte < 0x80 ? ascii[byte] : byte) << i;
    }
    row[w] = out;
  }
  if (high) {
    u64 leads = s.whole2 | s.whole3 | s.whole4;
    for (u64 left = leads | s.failed | s.alone; left; left &= left - 1) {
      u64 bit = left & (0 - left);
      u32 i = (u32)sa_ctz64(bit);
      if (leads & bit) put_byte(row, i, whole_tag(tables, row, i, char_length(s, bit)));
      else put_byte(row, i, single[s.failed & bit ? 256 : row_byte(row, i)]);
      /* What it owns is read no more. */
    }
    for (u64 left = s.owned; left; left &= left - 1) put_byte(row, (u32)sa_ctz64(left), 0xFF);
  }
  __syncthreads();
  store_rows(rows + SA_ROW_WORDS, first, tags, n);
  if (k < words) {
    u64 valid = 64 * k + 64 <= n ? ~(u64)0 : ((u64)1 << (n & 63)) - 1;
    starts[k] = ~s.owned & valid;
  }
}

extern "C" __global__ void __launch_bounds__(1024) remap(const u8 *table, const u8 *tags, u64 n, u8 *classes) {
  __shared__ u8 of[32];
  if (threadIdx.x < 32) of[threadIdx.x] = table[threadIdx.x];
  __syncthreads();
  u64 at = 16 * ((u64)blockIdx.x * blockDim.x + threadIdx.x);
  if (at + 16 <= n) {
    ulonglong2 in = *(const ulonglong2 *)(tags + at), out = make_ulonglong2(0, 0);
    for (u32 i = 0; i < 64; i += 8) {
      u32 x = (u32)(in.x >> i) & 0xFF, y = (u32)(in.y >> i) & 0xFF;
      out.x |= (u64)(x == 0xFF ? x : of[x & 31]) << i;
      out.y |= (u64)(y == 0xFF ? y : of[y & 31]) << i;
    }
    *(ulonglong2 *)(classes + at) = out;
  } else {
    for (; at < n; at++) classes[at] = tags[at] == 0xFF ? 0xFF : of[tags[at] & 31];
  }
}
