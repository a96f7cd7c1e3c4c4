/* Keys and hashes of pieces, for every table that is looked up by a piece's bytes.
 *
 * A piece of up to 15 bytes is its own key: the bytes, zero-padded, and the length in the top byte. The
 * length makes the key exact for arbitrary bytes ("a" and "a\0" differ), and no key is all zeros, which
 * marks an empty slot. Longer pieces are hashed and compared byte by byte.
 */
#ifndef SAPHIRA_SHARED_HASH_H
#define SAPHIRA_SHARED_HASH_H

#include "types.h"

#define SA_KEY8_BYTES 7   /* longest piece whose key is one word */
#define SA_KEY16_BYTES 15 /* … two words */

/* The low n <= 7 bytes of a word, by shifts: compilers turn these into vectors, a mask of n bytes not always. */
SA_HD u64 sa_low_bytes(u64 word, u64 n) {
  u64 away = 8 * (7 - n);
  return (((word << 8) << away) >> away) >> 8;
}

/* Key of a piece of n <= 7 bytes, given the 8 bytes at its start (whatever follows it). */
SA_HD u64 sa_key8(u64 bytes, u64 n) { return sa_low_bytes(bytes, n) | (n << 56); }

/* High word of the key of a piece of 8 <= n <= 15 bytes, given the 8 bytes at its ninth; the low word is
 * its first eight bytes. */
SA_HD u64 sa_key16_high(u64 bytes, u64 n) { return sa_low_bytes(bytes, n - 8) | (n << 56); }

/* What the 32-bit words of a key are multiplied by, the low ones first. */
#define SA_HASH_1 0x9E3779B1u
#define SA_HASH_2 0x85EBCA77u
#define SA_HASH_3 0xC2B2AE3Du
#define SA_HASH_4 0x27D4EB2Fu

/* 32-bit hashes of keys, whose high bits choose the slot: a sum of products of the key's 32-bit words, cheap in
 * every vector unit. The high bits of a product depend on all of a word. (Bits from 32 on of the whole products
 * do not do: keys of one or two bytes then fall into a few sets.) */
SA_HD u64 sa_hash8(u64 key) {
  return (u32)((u32)key * SA_HASH_1 + (u32)(key >> 32) * SA_HASH_2);
}

SA_HD u64 sa_hash16(u64 low, u64 high) {
  return (u32)((u32)low * SA_HASH_1 + (u32)(low >> 32) * SA_HASH_2 + (u32)high * SA_HASH_3 +
               (u32)(high >> 32) * SA_HASH_4);
}

/* One more word of a longer piece in its hash, which starts as sa_hash_start(n) and is finished by sa_hash_end. */
SA_HD u64 sa_hash_start(u64 n) { return n * 0x9E3779B97F4A7C15ull; }
SA_HD u64 sa_hash_word(u64 h, u64 word) {
  h = (h ^ word) * 0xBF58476D1CE4E5B9ull;
  return h ^ h >> 31;
}
SA_HD u64 sa_hash_end(u64 h) { return h * 0x94D049BB133111EBull; }

/* The 8 bytes at p, the first the lowest. */
SA_HD u64 sa_hash_load(const u8 *p) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
  u64 word;
  __builtin_memcpy(&word, p, 8); /* compilers do not see one load in the loop below */
  return word;
#else
  u64 word = 0;
  for (int k = 7; k >= 0; k--) word = (word << 8) | p[k];
  return word;
#endif
}

/* Hash of a longer piece; n >= 8. */
SA_HD u64 sa_hash_bytes(const u8 *p, u64 n) {
  u64 h = sa_hash_start(n);
  for (u64 i = 0; i < n; i += 8) h = sa_hash_word(h, sa_hash_load(p + (i + 8 <= n ? i : n - 8))); /* the last may overlap */
  return sa_hash_end(h);
}

#endif
