/* Classify: the tag of every byte of a block of 64, for any alphabet.
 *
 * ASCII: one 128-entry lookup. The rest by a trie walked with shuffles, never character by character:
 * a character's last byte chooses within a leaf of 64 tags, the bytes before it choose the leaf. A block
 * is done once per leaf that it holds (real text: one to four), all its characters of that leaf at once.
 *   2 bytes  lead -> leaf
 *   3 bytes  lead and second byte -> leaf, one shuffle per distinct lead; leads with one tag for all
 *            their characters (most Han, most Hangul) need no leaf
 *   4 bytes  the first three bytes -> leaf, one step per distinct triple
 *
 * Measured on 16 MB of text in many scripts (3.6 M characters outside ASCII, Zen 4): this way, decoding and
 * placing included, 1.9 ns a character with AVX-512 and 3.5 with AVX2. On code points already decoded,
 * without placing: trie by gather 1.0 (AVX-512) and 1.25 (AVX2), trie by scalar loads 0.7, count of sorted
 * thresholds 50 (2,481 of them below U+10000; AVX-512, 32 lanes).
 */

/* Lookups where the mask is set; other lanes stay as in `old`. Without vectors only those lanes cost. */
#ifndef SA_LOOKUP_WHERE
#define SA_LOOKUP_WHERE(width)                                                                        \
  static inline lanes sa_lookup##width##_where(lane_mask m, const u8 *table, lanes v, lanes old) { \
    return sa_blend(m, sa_lookup##width(table, v), old);                                              \
  }
#endif
SA_LOOKUP_WHERE(16)
SA_LOOKUP_WHERE(32)
SA_LOOKUP_WHERE(64)
SA_LOOKUP_WHERE(128)

static inline sa_byte_kinds sa_kinds(lanes v) {
  u64 high = sa_high(v), from_c0 = sa_at_least(v, 0xC0), from_e0 = sa_at_least(v, 0xE0);
  u64 from_f0 = sa_at_least(v, 0xF0), from_f5 = sa_at_least(v, 0xF5);
  sa_byte_kinds k = {high & ~from_c0, from_c0 & ~from_e0, from_e0 & ~from_f0, from_f0 & ~from_f5, from_f5};
  return k;
}

/* Tags of the block at p (128 readable bytes, v the first 64), whose high bytes are not all ASCII.
 * 0xFF on the bytes that other bytes' characters own. *carry as in sa_utf8_structure. */
static inline lanes sa_tags_wide(const sa_alphabet *a, const u8 *p, lanes v, u64 segments,
                                 u64 segments_next, u64 *carry, u64 *owned) {
  lanes behind = sa_load(p + 64), v1 = sa_load(p + 1), tags = sa_lookup128(a->ascii, v);
  u64 cont_next = sa_high(behind) & ~sa_at_least(behind, 0xC0), rest;
  sa_structure s = sa_utf8_structure(sa_kinds(v), segments, cont_next, segments_next, carry);
  u8 leaf_of[64];
  *owned = s.owned;
  rest = s.whole2;
  if (s.whole2 | s.whole3) {
    lanes leaf = sa_splat(0xFF), last = sa_mod64(v1);
    if (s.whole2)
      leaf = sa_lookup32_where(sa_mask_of(s.whole2), a->two, sa_and(v, 0x1F), leaf);
    if (s.whole3) {
      lane_mask three = sa_mask_of(s.whole3);
      u64 left;
      tags = sa_lookup16_where(three, a->uniform, sa_and(v, 0x0F), tags);
      left = s.whole3 & sa_eq(tags, 0xFF);
      if (left) {
        lanes second = last;
        u64 leads = left;
        last = sa_blend(three, sa_mod64(sa_load(p + 2)), last);
        do {
          u8 lead = p[sa_ctz64(leads)];
          lane_mask same = sa_eq_mask(v, lead);
          leaf = sa_lookup64_where(same, a->three[lead & 15], second, leaf);
          leads &= ~sa_mask_bits(same);
        } while (leads);
        rest |= left;
      }
    }
    if (rest) {
      sa_store(leaf_of, leaf);
      do {
        u8 number = leaf_of[sa_ctz64(rest)];
        lane_mask same = sa_eq_mask(leaf, number);
        tags = sa_lookup64_where(same, a->leaves + 64 * number, last, tags);
        rest &= ~sa_mask_bits(same);
      } while (rest);
    }
  }
  rest = s.whole4;
  if (rest) {
    lanes v2 = sa_load(p + 2), last = sa_mod64(sa_load(p + 3));
    do {
      const u8 *q = p + sa_ctz64(rest);
      u32 number = a->four[(q[0] & 7u) << 12 | (q[1] & 63u) << 6 | (q[2] & 63u)];
      lane_mask same = sa_mask_and(sa_mask_and(sa_eq_mask(v, q[0]), sa_eq_mask(v1, q[1])), sa_eq_mask(v2, q[2]));
      tags = sa_lookup64_where(same, a->leaves + 64 * number, last, tags);
      rest &= ~sa_mask_bits(same);
    } while (rest);
  }
  if (s.failed | s.alone) {
    tags = sa_blend(sa_mask_of(s.failed), sa_splat(a->failed), tags);
    tags = sa_lookup128_where(sa_mask_of(s.alone), a->alone, sa_flip_high(v), tags);
  }
  return sa_blend(sa_mask_of(s.owned), sa_splat(0xFF), tags);
}

static void sa_classify_stream(const sa_alphabet *a, sa_stream *s, uint8_t *tags, uint64_t *starts) {
  u64 segments = s->segments, carry = s->carry;
  int64_t at = s->at, n = s->n, k = at / 64;
  for (; at < n; at += 64, k++) {
    const u8 *p = sa_stream_block(s, at);
    u64 segments_next = sa_segments_word(&s->walker, at + 64), owned = 0;
    lanes v = sa_load(p), t;
    if (sa_high(v)) t = sa_tags_wide(a, p, v, segments, segments_next, &carry, &owned);
    else t = sa_lookup128(a->ascii, v);
    if (at + 64 <= n) {
      sa_store(tags + at, t);
      starts[k] = ~owned;
    } else {
      u8 last[64];
      sa_store(last, t);
      memcpy(tags + at, last, (size_t)(n - at));
      starts[k] = ~owned & (~(u64)0 >> (64 - (n - at)));
    }
    segments = segments_next;
  }
  s->at = at;
  s->segments = segments;
  s->carry = carry;
}

/* classes[i] = table[tags[i]]; 0xFF stays. In place is allowed. */
static void sa_remap_bytes(const uint8_t *table, const uint8_t *tags, int64_t n, uint8_t *classes) {
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    lanes v = sa_load(tags + i);
    sa_store(classes + i, sa_blend(sa_eq_mask(v, 0xFF), v, sa_lookup32(table, sa_and(v, 31))));
  }
  for (; i < n; i++) classes[i] = tags[i] == 0xFF ? 0xFF : table[tags[i] & 31];
}

/* The next block with bytes that are not UTF-8 (as Python's strict decoder sees it, each row on its
 * own): the mask of the offending leads and lone bytes, and in *where its first byte; 0 at the end. */
static uint64_t sa_utf8_errors_next(sa_stream *s, int64_t *where) {
  while (s->at < s->n) {
    int64_t at = s->at;
    const u8 *p = sa_stream_block(s, at);
    u64 segments = s->segments, segments_next = sa_segments_word(&s->walker, at + 64);
    lanes v = sa_load(p);
    s->at = at + 64;
    s->segments = segments_next;
    if (sa_high(v)) {
      lanes behind = sa_load(p + 64), v1 = sa_load(p + 1);
      u64 cont_next = sa_high(behind) & ~sa_at_least(behind, 0xC0);
      sa_structure t = sa_utf8_structure(sa_kinds(v), segments, cont_next, segments_next, &s->carry);
      u64 from_a0 = sa_at_least(v1, 0xA0), from_90 = sa_at_least(v1, 0x90);
      u64 bad = t.failed | t.alone | (t.whole2 & ~sa_at_least(v, 0xC2)) |
                (t.whole3 & ((sa_eq(v, 0xE0) & ~from_a0) | (sa_eq(v, 0xED) & from_a0))) |
                (t.whole4 & ((sa_eq(v, 0xF0) & ~from_90) | (sa_eq(v, 0xF4) & from_90)));
      if (bad) {
        *where = at;
        return bad;
      }
    }
  }
  return 0;
}
