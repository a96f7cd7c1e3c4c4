/* The rule families of kernels/shared/rules_*.h as the boundary kernels see them: which planes a family makes of a
 * block's class bits, which of them the block on the left needs, how a carry is packed, and where runs stop.
 *
 * The planes are those of cpu_core/generic/planes.inl. */
#ifndef SAPHIRA_FAMILIES_CUH
#define SAPHIRA_FAMILIES_CUH

#include "shared/class_bits.h"
#include "shared/rules_cl100k.h"
#include "shared/rules_deepseek.h"
#include "shared/rules_gpt2.h"
#include "shared/rules_o200k.h"

/* A block before a family makes its planes of it. */
struct block_bits {
  u64 plane[8];        /* class bits, on first bytes of characters and in front of `owned` within the block */
  u64 owned, segments; /* bytes within characters; segment starts */
  u64 newline, space, apostrophe, less, slash, high; /* the bytes 0A and 0D, 20, 27, 3C, 2F, 80..FF */
};

/* Options as launch code packs them. */
#define SA_OPTION_NUMBERS(options) ((int)((options) & 3))
#define SA_OPTION_FLAG(options) ((int)((options) >> 2 & 1)) /* whole_end, suffixes or literals */

/* A carry's fields to or from bits of a word, one after the other. */
struct packer {
  u64 word;
  u32 at;
  __device__ __forceinline__ void operator()(u64 value, u32 bits) {
    word |= value << at;
    at += bits;
  }
};
struct unpacker {
  u64 word;
  __device__ __forceinline__ void operator()(u64 &value, u32 bits) {
    value = word & (((u64)1 << bits) - 1);
    word >>= bits;
  }
};

/* Each family names the fields of its carry once, by fields(p, c), for both ways. */
template <class family>
static __device__ __forceinline__ u64 pack_carry(typename family::carry c) {
  packer p = {0, 0};
  family::canonical(c);
  family::fields(p, c);
  return p.word;
}
template <class family>
static __device__ __forceinline__ typename family::carry unpack_carry(u64 word) {
  unpacker p = {word};
  typename family::carry c;
  family::fields(p, c);
  return c;
}

/* A class's plane: `before` has the class bits of the byte before the block, whose character may go on into it. */
template <u32 class_bit>
static __device__ __forceinline__ u64 class_plane(const block_bits &b, u32 before) {
  constexpr int p = class_bit == 1 ? 0 : class_bit == 2 ? 1 : class_bit == 4 ? 2 : class_bit == 8 ? 3
                  : class_bit == 16 ? 4 : class_bit == 32 ? 5 : class_bit == 64 ? 6 : 7;
  return sa_spread(b.plane[p], b.owned, before & class_bit ? (u64)1 << 63 : 0);
}
/* Bit 0: the byte before the block is of this class. */
static __device__ __forceinline__ u64 class_before(u32 before, u32 class_bit) { return before & class_bit ? 1 : 0; }

struct gpt2_family {
  typedef sa_gpt2_planes planes;
  typedef sa_gpt2_carry carry;
  static constexpr u32 bits = SA_BIT_LETTER | SA_BIT_NUMBER | SA_BIT_WHITE;
  static constexpr int kinds = 0, sent = 3;

  static __device__ __forceinline__ planes make(const block_bits &r, u32 before, u32 options) {
    planes b;
    b.letter = class_plane<SA_BIT_LETTER>(r, before);
    b.number = class_plane<SA_BIT_NUMBER>(r, before);
    b.white = class_plane<SA_BIT_WHITE>(r, before);
    b.space = r.space;
    b.apostrophe = r.apostrophe;
    b.starts = ~r.owned;
    b.segments = r.segments;
    if (SA_OPTION_NUMBERS(options))
      b.segments |= b.starts & (b.number | sa_prev(b.number, class_before(before, SA_BIT_NUMBER)));
    if (SA_OPTION_FLAG(options)) {
      b.apostrophe |= r.less;
      b.segments |= b.white ^ sa_prev(b.white, class_before(before, SA_BIT_WHITE));
    }
    return b;
  }
  static __device__ __forceinline__ void send(const planes &b, u64 *v) {
    v[0] = b.starts;
    v[1] = b.white;
    v[2] = b.segments;
  }
  static __device__ __forceinline__ planes receive(const u64 *v) {
    planes b = {};
    b.starts = v[0];
    b.white = v[1];
    b.segments = v[2];
    return b;
  }
  static __device__ __forceinline__ u64 starts(const planes &b, const planes &next, u32, const u8 *text, carry *c, u64 *) {
    return sa_gpt2_starts(&b, &next, text, c);
  }
  static __device__ __forceinline__ void stops(const planes &, u32, int, u64 *stop, u64 *good) { *stop = *good = 0; }
  static __device__ __forceinline__ void canonical(carry &) {}
  template <class bits_of>
  static __device__ __forceinline__ void fields(bits_of &p, carry &c) {
    p(c.letter, 1);
    p(c.number, 1);
    p(c.white, 1);
    p(c.space, 1);
    p(c.other, 1);
    p(c.force, 15);
    p(c.suppress, 14);
  }
};

struct cl100k_family {
  typedef sa_cl100k_planes planes;
  typedef sa_cl100k_carry carry;
  static constexpr u32 bits = SA_BIT_LETTER | SA_BIT_NUMBER | SA_BIT_WHITE;
  static constexpr int kinds = 1, sent = 4;

  static __device__ __forceinline__ sa_cl100k_options options_of(u32 options) {
    sa_cl100k_options o = {SA_OPTION_NUMBERS(options), SA_OPTION_FLAG(options)};
    return o;
  }
  static __device__ __forceinline__ planes make(const block_bits &r, u32 before, u32) {
    planes b;
    b.letter = class_plane<SA_BIT_LETTER>(r, before);
    b.number = class_plane<SA_BIT_NUMBER>(r, before);
    b.white = class_plane<SA_BIT_WHITE>(r, before);
    b.newline = r.newline;
    b.space = r.space;
    b.apostrophe = r.apostrophe;
    b.starts = ~r.owned;
    b.segments = r.segments;
    return b;
  }
  static __device__ __forceinline__ void send(const planes &b, u64 *v) {
    v[0] = b.starts;
    v[1] = b.white;
    v[2] = b.segments;
    v[3] = b.newline;
  }
  static __device__ __forceinline__ planes receive(const u64 *v) {
    planes b = {};
    b.starts = v[0];
    b.white = v[1];
    b.segments = v[2];
    b.newline = v[3];
    return b;
  }
  static __device__ __forceinline__ u64 starts(const planes &b, const planes &next, u32 options, const u8 *text, carry *c,
                                               u64 *open) {
    sa_cl100k_options o = options_of(options);
    return sa_cl100k_starts(&b, &next, &o, text, c, open);
  }
  static __device__ __forceinline__ void stops(const planes &b, u32 options, int, u64 *stop, u64 *good) {
    sa_cl100k_options o = options_of(options);
    sa_cl100k_stops(&b, &o, stop, good);
  }
  /* The count says nothing where no number comes before: 0 then, so that equal states are equal words. */
  static __device__ __forceinline__ void canonical(carry &c) {
    if (!c.number) c.count = 0;
  }
  template <class bits_of>
  static __device__ __forceinline__ void fields(bits_of &p, carry &c) {
    p(c.letter, 1);
    p(c.number, 1);
    p(c.space, 1);
    p(c.other, 1);
    p(c.other_start, 1);
    p(c.blank, 1);
    p(c.white, 1);
    p(c.newline, 1);
    p(c.taken, 1);
    p(c.count, 2);
    p(c.force, 3);
  }
};

/* han: Kimi's, a constant, so that the others don't pay for it. */
template <int han>
struct o200k_family {
  typedef sa_o200k_planes planes;
  typedef sa_o200k_carry carry;
  static constexpr u32 bits = SA_BIT_UPPER | SA_BIT_LOWER | SA_BIT_CASELESS | SA_BIT_MARK | SA_BIT_NUMBER | SA_BIT_WHITE |
                              (han ? SA_BIT_APART : 0);
  static constexpr int kinds = 2, sent = 6;

  static __device__ __forceinline__ planes make(const block_bits &r, u32 before, u32) {
    planes b;
    b.upper = class_plane<SA_BIT_UPPER>(r, before);
    b.lower = class_plane<SA_BIT_LOWER>(r, before);
    b.number = class_plane<SA_BIT_NUMBER>(r, before);
    b.white = class_plane<SA_BIT_WHITE>(r, before);
    b.caseless = class_plane<SA_BIT_CASELESS>(r, before);
    b.mark = class_plane<SA_BIT_MARK>(r, before);
    b.newline = r.newline;
    b.space = r.space;
    b.apostrophe = r.apostrophe;
    b.slash = han ? 0 : r.slash;
    b.starts = ~r.owned;
    b.segments = r.segments;
    b.han = b.han_other = 0;
    if (han) {
      b.han = class_plane<SA_BIT_APART>(r, before);
      b.han_other = b.han & ~b.number & ~b.caseless;
      b.caseless &= ~b.han;
      b.mark &= ~b.han;
    }
    return b;
  }
  static __device__ __forceinline__ void send(const planes &b, u64 *v) {
    v[0] = b.starts;
    v[1] = b.white;
    v[2] = b.segments;
    v[3] = b.newline;
    v[4] = b.upper;
    v[5] = b.lower | b.caseless | b.mark;
  }
  static __device__ __forceinline__ planes receive(const u64 *v) {
    planes b = {};
    b.starts = v[0];
    b.white = v[1];
    b.segments = v[2];
    b.newline = v[3];
    b.upper = v[4];
    b.lower = v[5];
    return b;
  }
  static __device__ __forceinline__ u64 starts(const planes &b, const planes &next, u32 options, const u8 *text, carry *c,
                                               u64 *open) {
    sa_o200k_options o = {SA_OPTION_NUMBERS(options), SA_OPTION_FLAG(options), han};
    return sa_o200k_starts(&b, &next, &o, text, c, &open[0], &open[1]);
  }
  static __device__ __forceinline__ void stops(const planes &b, u32, int kind, u64 *stop, u64 *good) {
    if (kind == 0) sa_o200k_white_stops(&b, stop, good);
    else sa_o200k_upper_stops(&b, stop, good);
  }
  /* The count says nothing where no number comes before: 0 then, so that equal states are equal words. */
  static __device__ __forceinline__ void canonical(carry &c) {
    if (!c.number) c.count = 0;
  }
  template <class bits_of>
  static __device__ __forceinline__ void fields(bits_of &p, carry &c) {
    p(c.number, 1);
    p(c.space, 1);
    p(c.blank, 1);
    p(c.white, 1);
    p(c.newline, 1);
    p(c.taken, 1);
    p(c.punct, 1);
    p(c.inner, 1);
    p(c.prefix, 1);
    p(c.word, 1);
    p(c.late, 1);
    p(c.early, 1);
    p(c.han, 1);
    p(c.count, 2);
    p(c.force, 3);
    p(c.suffix, 2);
  }
};

struct deepseek_family {
  typedef sa_deepseek_planes planes;
  typedef sa_deepseek_carry carry;
  static constexpr u32 bits = SA_BIT_LETTER | SA_BIT_PUNCT | SA_BIT_NUMBER | SA_BIT_WHITE | SA_BIT_APART;
  static constexpr int kinds = 1, sent = 6;

  static __device__ __forceinline__ planes make(const block_bits &r, u32 before, u32) {
    planes b;
    b.word = class_plane<SA_BIT_LETTER>(r, before);
    b.punct = class_plane<SA_BIT_PUNCT>(r, before);
    b.number = class_plane<SA_BIT_NUMBER>(r, before);
    b.white = class_plane<SA_BIT_WHITE>(r, before);
    b.apart = class_plane<SA_BIT_APART>(r, before);
    b.newline = r.newline;
    b.space = r.space;
    b.ascii = ~r.high;
    b.starts = ~r.owned;
    b.segments = r.segments | (b.number ^ sa_prev(b.number, class_before(before, SA_BIT_NUMBER))) |
                 (b.apart ^ sa_prev(b.apart, class_before(before, SA_BIT_APART)));
    return b;
  }
  static __device__ __forceinline__ void send(const planes &b, u64 *v) {
    v[0] = b.starts;
    v[1] = b.white;
    v[2] = b.segments;
    v[3] = b.newline;
    v[4] = b.word;
    v[5] = sa_deepseek_other(&b);
  }
  static __device__ __forceinline__ planes receive(const u64 *v) {
    planes b = {};
    b.starts = v[0];
    b.white = v[1];
    b.segments = v[2];
    b.newline = v[3];
    b.word = v[4];
    b.punct = ~(v[4] | v[1] | v[5]); /* all that is none of these three */
    return b;
  }
  static __device__ __forceinline__ u64 starts(const planes &b, const planes &next, u32, const u8 *, carry *c, u64 *open) {
    return sa_deepseek_starts(&b, &next, c, open);
  }
  static __device__ __forceinline__ void stops(const planes &b, u32, int, u64 *stop, u64 *good) {
    sa_deepseek_stops(&b, stop, good);
  }
  /* The count says nothing where no number comes before: 0 then, so that equal states are equal words. */
  static __device__ __forceinline__ void canonical(carry &c) {
    if (!c.number) c.count = 0;
  }
  template <class bits_of>
  static __device__ __forceinline__ void fields(bits_of &p, carry &c) {
    p(c.word, 1);
    p(c.punct, 1);
    p(c.number, 1);
    p(c.other, 1);
    p(c.space, 1);
    p(c.blank, 1);
    p(c.white, 1);
    p(c.newline, 1);
    p(c.taken, 1);
    p(c.sign, 1);
    p(c.tail, 1);
    p(c.count, 2);
  }
};

#endif
