/* The functions that exist once per instruction set, and the tables they work on.
 *
 * Back-end units include this header, simd/<isa>.h and the .inl files of generic/: types and static
 * inline functions only, so that the linker never keeps a newer instruction set's copy for everyone.
 */
#ifndef SAPHIRA_BACKEND_H
#define SAPHIRA_BACKEND_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "class_bits.h"
#include "ids.h"
#include "rules_cl100k.h"
#include "rules_deepseek.h"
#include "rules_gpt2.h"
#include "rules_o200k.h"
#include "saphira.h"
#include "types.h"

/* A tag alphabet in the shape that the classify lanes want. A leaf is the tags of 64 code points in a
 * row; the last one or two bytes of a character choose within it, the bytes before choose the leaf. */
typedef struct sa_alphabet {
  uint8_t ascii[128];
  uint8_t alone[128];       /* tags of the bytes 80..FF outside characters */
  uint8_t two[32];          /* leaf of the lead C0 + i */
  uint8_t three[16][64];    /* leaf of the lead E0 + i, by the second byte */
  uint8_t uniform[16];      /* tag of every character with the lead E0 + i, or 0xFF */
  uint8_t failed;           /* tag of a failed lead */
  const uint16_t *four;     /* leaf of code point >> 6, for F0..F4; 5 * 4096 entries */
  const uint8_t *leaves;
} sa_alphabet;

/* A scheme: how tags become the class bits that its rules read. */
typedef struct sa_scheme {
  int32_t rules;            /* SA_RULES_* */
  uint8_t bits[32];         /* class bits of a tag */
  uint8_t ascii_bits[128];  /* the same of an ASCII byte */
  union {
    sa_gpt2_options gpt2;
    sa_cl100k_options cl100k;
    sa_o200k_options o200k;
  } options;
} sa_scheme;

/* Segment starts in order, as bitmask words. Rows may start anywhere, many to a word; the end of the
 * text counts as a start. */
typedef struct sa_segments {
  const void *offsets;      /* n + 1 of them; or (bits = 1) the words themselves, of n bytes */
  int64_t n, i;
  int64_t base, next;       /* next: the first start not yet given, relative to base */
  int32_t bits;             /* 32, 64, or 1 */
} sa_segments;

static inline int64_t sa_offset(const void *offsets, int32_t bits, int64_t i) {
  return bits == 64 ? ((const int64_t *)offsets)[i] : ((const int32_t *)offsets)[i];
}

static inline int sa_is_null(const sa_rows *rows, int64_t row) {
  const int64_t bit = rows->validity_offset + row;
  return rows->validity && !(rows->validity[bit >> 3] >> (bit & 7) & 1);
}

static inline void sa_segments_begin(sa_segments *s, const void *offsets, int32_t bits, int64_t n) {
  s->offsets = offsets;
  s->bits = bits;
  s->n = n;
  s->i = 0;
  s->base = sa_offset(offsets, bits, 0);
  s->next = 0;
}

/* The word for the bytes [at, at + 64); calls go up in steps of 64. */
static inline u64 sa_segments_word(sa_segments *s, int64_t at) {
  u64 word = 0;
  if (s->bits == 1) return at <= s->n ? ((const u64 *)s->offsets)[at / 64] : 0;
  while (s->next < at + 64) {
    word |= (u64)1 << (s->next - at);
    s->next = ++s->i <= s->n ? sa_offset(s->offsets, s->bits, s->i) - s->base : INT64_MAX;
  }
  return word;
}

/* Text in blocks of 64 bytes with 64 readable bytes behind each, the last ones from a padded copy. */
typedef struct sa_stream {
  const uint8_t *text;      /* byte 0 of block 0 */
  int64_t n;                /* bytes */
  int64_t blocks;           /* ceil(n / 64) */
  int64_t at;               /* byte where the next block to read starts */
  int64_t tail_at;          /* byte where tail starts */
  u64 segments;             /* of the next block to read */
  u64 carry;                /* owned bytes at its start */
  sa_segments walker;
  uint8_t tail[256];
} sa_stream;

/* What sa_stream_begin and sa_stream_begin_words share; n, text and walker are set. */
static inline void sa_stream_start(sa_stream *s) {
  int64_t left;
  s->blocks = (s->n + 63) / 64;
  s->at = 0;
  s->tail_at = s->n / 64 * 64 - 64;
  if (s->tail_at < 0) s->tail_at = 0;
  left = s->n - s->tail_at;
  memset(s->tail, 0, sizeof s->tail);
  if (left > 0) memcpy(s->tail, s->text + s->tail_at, (size_t)left);
  s->segments = sa_segments_word(&s->walker, 0);
  s->carry = 0;
}

static inline void sa_stream_begin(sa_stream *s, const uint8_t *text, const void *offsets,
                                   int32_t bits, int64_t n_rows) {
  sa_segments_begin(&s->walker, offsets, bits, n_rows);
  s->n = sa_offset(offsets, bits, n_rows) - s->walker.base;
  s->text = s->n ? text + s->walker.base : s->tail;
  sa_stream_start(s);
}

/* The same with segment starts as a bitmap: n / 64 + 1 words, the bit of byte n set. */
static inline void sa_stream_begin_words(sa_stream *s, const uint8_t *text, int64_t n, const u64 *words) {
  const sa_segments walker = {words, n, 0, 0, 0, 1};
  s->walker = walker;
  s->n = n;
  s->text = n ? text : s->tail;
  sa_stream_start(s);
}

/* The block that starts at byte `at`, with 128 readable bytes. */
static inline const uint8_t *sa_stream_block(const sa_stream *s, int64_t at) {
  return at + 128 <= s->n ? s->text + at : s->tail + (at - s->tail_at);
}

typedef struct sa_pretok_cursor sa_pretok_cursor;

/* One const instance per instruction set. */
struct sa_backend {
  const char *name;
  /* Tags and character starts of a whole stream. */
  void (*classify)(const sa_alphabet *a, sa_stream *s, uint8_t *tags, uint64_t *starts);
  void (*remap)(const uint8_t *table, const uint8_t *tags, int64_t n, uint8_t *classes);
  /* The next words of piece starts; the count of them, 0 at the end. */
  int64_t (*pieces)(sa_pretok_cursor *c, uint64_t *starts, int64_t max_blocks);
  /* Positions of set bits + base, into out (room for 16 more than there are); how many. */
  int64_t (*extract)(const uint64_t *bits, size_t n_words, uint32_t base, uint32_t *out);
  /* The next block with bytes that are not UTF-8: their mask (0 at the end), its start in *where. */
  uint64_t (*utf8_errors)(sa_stream *s, int64_t *where);
};

extern const struct sa_backend sa_backend_scalar;
#if defined(__x86_64__) || defined(_M_X64)
extern const struct sa_backend sa_backend_avx2, sa_backend_avx512;
#elif defined(__aarch64__)
extern const struct sa_backend sa_backend_neon;
#endif

/* The back end in use, and one by its number (NULL where it is not available). */
const struct sa_backend *sa_backend_active(void);
const struct sa_backend *sa_backend_of(int32_t isa);

/* The tables of an alphabet (SA_ALPHABET_*) and of a scheme; NULL out of range. src/tables.c */
const sa_alphabet *sa_alphabet_of(int32_t alphabet);
const sa_scheme *sa_scheme_of(int32_t scheme);

#endif
