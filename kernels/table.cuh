/* The table of pieces and their values, which lives with the encoder: slots of 32 bytes, one sector each.
 *
 *   word 0      key: the piece's first 7 bytes, zero-padded, and its length in the top byte;
 *               of more than 15 bytes FF in the top byte and of its hash the rest
 *   word 1      value (shared/value.h)
 *   word 2      the key's rest: bytes 8 to 15, zero-padded; of longer ones its length and where its bytes are, 32 bits
 *               each; of up to 7 bytes 0
 *   word 3      state: 0 empty; SA_SLOT_READY, and in the low half how often the piece was met (stage probe, hot_count);
 *               or 1 + the number of a piece of this batch that is being merged
 *
 * So one load of 16 bytes has all that a piece of up to 7 bytes asks for, and words 2 and 3 are looked at where word 0
 * is equal. Word 0 of a slot is 0 until it is ready.
 *
 * Open addressing, at most SA_TABLE_STEPS slots from a key's home; nothing is ever taken out. A slot that is claimed
 * holds no key yet: who comes by compares with the claiming piece's bytes in the text. A slot whose piece found no
 * room for its bytes or ids is ready with a key that is nobody's; its value is good for the batch. */
#ifndef SAPHIRA_TABLE_CUH
#define SAPHIRA_TABLE_CUH

#include "counters.h"
#include "shared/hash.h"
#include "shared/value.h"
#include "sync.cuh"

#define SA_SLOT_WORDS 4
#define SA_SLOT_VALUE 1
#define SA_SLOT_STATE 3
#define SA_SLOT_READY ((u64)1 << 63)
#define SA_NO_KEY 1 /* word 0 of no piece: its length is none */
#define SA_NO_SLOT 0xFFFFFFFFu
#define SA_TABLE_STEPS 64

struct piece_key {
  u64 first, rest; /* rest of a longer piece: without where its bytes are */
  u32 hash;        /* its high bits are the home slot */
};

/* Key of a piece of n <= 15 bytes, given the 8 bytes at its start and at its eighth, whatever follows it. */
static __device__ __forceinline__ piece_key short_key(u64 start, u64 eighth, u32 n) {
  piece_key key;
  u32 away = n > SA_KEY8_BYTES ? 8 * (SA_KEY16_BYTES - n) : 0;
  key.first = sa_low_bytes(start, min(n, SA_KEY8_BYTES)) | (u64)n << 56;
  key.rest = n > SA_KEY8_BYTES ? eighth << away >> away : 0;
  key.hash = (u32)sa_hash16(key.first, key.rest);
  return key;
}

/* 8 bytes from any position; the 16 bytes from the multiple of 8 before it are readable. */
static __device__ __forceinline__ u64 word_at(const u8 *text, u64 at) {
  const u64 *words = (const u64 *)(text + (at & ~(u64)7));
  u32 shift = 8 * (u32)(at & 7);
  return words[0] >> shift | (words[1] << 1) << (63 - shift);
}

/* n >= 1 bytes of the text at `at`, a multiple of 8 in memory at its start, and 24 bytes readable behind them. */
static __device__ __forceinline__ piece_key key_of(const u8 *text, u64 at, u32 n) {
  if (n <= SA_KEY16_BYTES) return short_key(word_at(text, at), n > SA_KEY8_BYTES ? word_at(text, at + 7) : 0, n);
  u64 h = sa_hash_start(n);
  for (u32 i = 0; i < n; i += 8) h = sa_hash_word(h, word_at(text, at + min(i, n - 8)));
  h = sa_hash_end(h);
  piece_key key = {(u64)0xFF << 56 | h >> 8, (u64)n << 32, (u32)(h >> 32)};
  return key;
}

static __device__ __forceinline__ bool same_bytes(const u8 *a, u64 at, const u8 *b, u64 other, u32 n) {
  u32 i = 0;
  for (; i + 7 < n; i += 7) /* whole words but for their last byte: sa_low_bytes takes 7 at most */
    if (sa_low_bytes(word_at(a, at + i), 7) != sa_low_bytes(word_at(b, other + i), 7)) return false;
  return sa_low_bytes(word_at(a, at + i), n - i) == sa_low_bytes(word_at(b, other + i), n - i);
}

/* The slot at step 0, 1, … from a hash's home. */
static __device__ __forceinline__ u32 slot_at(u32 hash, u32 step, u32 bits) {
  return ((hash >> (32 - bits)) + step) & (u32)(((u64)1 << bits) - 1);
}

/* The value of a piece, 0 if the table does not have it. Nobody writes the table meanwhile. */
static __device__ __forceinline__ u64 table_find(const u64 *slots, u32 bits, const u8 *arena, const u8 *text, u64 at,
                                                 u32 n, piece_key key) {
  for (u32 step = 0; step < SA_TABLE_STEPS; step++) {
    const ulonglong2 *slot = (const ulonglong2 *)(slots + SA_SLOT_WORDS * (u64)slot_at(key.hash, step, bits));
    ulonglong2 found = __ldg(slot);
    if (found.x == 0) return 0;
    if (found.x != key.first) continue;
    if (n <= SA_KEY8_BYTES) return found.y;
    u64 rest = __ldg((const u64 *)(slot + 1));
    if (n <= SA_KEY16_BYTES ? rest == key.rest
                            : rest >> 32 == n && same_bytes(text, at, arena, rest & 0xFFFFFFFF, n))
      return found.y;
  }
  return 0;
}

/* What kernels take that add to a table. */
#define TABLE_PARAMS u64 *slots, u32 bits, u8 *arena, u64 arena_bytes, u32 *spill, u64 spill_keep, u64 *table_counters
struct piece_table {
  u64 *slots;
  u32 bits;
  u8 *arena;
  u64 arena_bytes;   /* of them, 64 more are readable */
  u32 *spill;        /* ids of values of more than three: spill_keep that last, then one for each byte of the text */
  u64 spill_keep;
  u64 *counters;     /* SA_TABLE_* */
};
#define TABLE_ARGS {slots, bits, arena, arena_bytes, spill, spill_keep, table_counters}

/* Where a piece's ids go in the spill list; *lasts: beyond the batch. slot: the one it has claimed. */
static __device__ __forceinline__ u64 spill_room(piece_table t, u32 slot, u64 at, u64 count, bool *lasts) {
  *lasts = false;
  if (slot != SA_NO_SLOT) {
    u64 room = atomicAdd(&t.counters[SA_TABLE_SPILL], count);
    if (room + count <= t.spill_keep) {
      *lasts = true;
      return room;
    }
  }
  return t.spill_keep + at; /* ids never outnumber the piece's bytes */
}

/* Gives a claimed slot its value, and its key if the value lasts and there is room for the bytes. */
static __device__ __forceinline__ void fill_slot(piece_table t, u32 slot, const u8 *text, u64 at, u32 n, u64 value,
                                                 bool lasts) {
  piece_key key = key_of(text, at, n);
  if (n > SA_KEY16_BYTES && lasts) {
    u64 room = atomicAdd(&t.counters[SA_TABLE_BYTES], (u64)n);
    if (room + n <= t.arena_bytes) {
      for (u32 i = 0; i < n; i++) t.arena[room + i] = text[at + i];
      key.rest |= room;
    } else {
      lasts = false;
    }
  }
  u64 *words = t.slots + SA_SLOT_WORDS * (u64)slot;
  words[0] = lasts ? key.first : SA_NO_KEY;
  words[SA_SLOT_VALUE] = value;
  words[2] = lasts ? key.rest : 0;
  st_relaxed(&words[SA_SLOT_STATE], SA_SLOT_READY); /* equals of a token look at it in seed */
}

#endif
