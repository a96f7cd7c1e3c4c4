/* The planes that pretokenizer programs cut by: classes, scripts, bytes. */
#include "consumers.h"

/* The bits of the block at `at` that are text. */
static inline u64 sa_text_bits(const sa_stream *s, int64_t at) {
  return at + 64 <= s->n ? ~(u64)0 : ~(u64)0 >> (64 - (s->n - at));
}

/* planes[j]: bytes of characters whose class has bit j, for j in `wanted`. starts: first bytes of characters. */
static void sa_consumer_classes(const sa_alphabet *a, const sa_scheme *classes, uint32_t wanted, sa_stream *s,
                                uint64_t *starts, uint64_t *const *planes) {
  u64 before[SA_CLASS_PLANES] = {0};
  for (int64_t k = 0; s->at < s->n; k++) {
    const u8 *p = sa_stream_block(s, s->at);
    u64 owned, text = sa_text_bits(s, s->at), next = sa_segments_word(&s->walker, s->at + 64);
    lanes bits = sa_class_bits(a, classes, p, sa_load(p), s->segments, next, &s->carry, &owned);
    starts[k] = ~owned & text;
    for (int j = 0; j < SA_CLASS_PLANES; j++) {
      u64 plane;
      if (!(wanted >> j & 1)) continue;
      plane = sa_test(bits, (u8)(1 << j));
      if (owned) plane = sa_spread(plane, owned, before[j]);
      before[j] = plane;
      planes[j][k] = plane & text;
    }
    s->segments = next;
    s->at += 64;
  }
}

#define NO_SCRIPT 0xFE  /* no character of the segment so far has a script */

/* cuts: first bytes of characters whose script is not that of the last character that has one, and segment
 * starts. none: bytes before the segment's first character that has a script. Script 0 (Any) is no script. */
static void sa_consumer_scripts(const sa_alphabet *a, sa_stream *s, uint64_t *cuts, uint64_t *none) {
  u8 window[128];  /* 64 times the script before the block, then the block's */
  memset(window, NO_SCRIPT, sizeof window);
  for (int64_t k = 0; s->at < s->n; k++) {
    const u8 *p = sa_stream_block(s, s->at);
    u64 owned = 0, holes, text = sa_text_bits(s, s->at), next = sa_segments_word(&s->walker, s->at + 64);
    lanes v = sa_load(p), tags;
    if (sa_high(v)) tags = sa_tags_wide(a, p, v, s->segments, next, &s->carry, &owned);
    else tags = sa_lookup128(a->ascii, v);
    holes = sa_eq(tags, 0) | owned;
    if (holes & s->segments) {
      tags = sa_blend(sa_mask_of(holes & s->segments), sa_splat(NO_SCRIPT), tags);
      holes &= ~s->segments;
    }
    sa_store(window, sa_splat(window[127]));
    sa_store(window + 64, tags);
    for (int by = 1; holes; by *= 2) {  /* a hole takes what stands `by` bytes before it, hole or not */
      tags = sa_blend(sa_mask_of(holes), sa_load(window + 64 - by), tags);
      sa_store(window + 64, tags);
      holes = by < 64 ? holes & (holes << by) : 0;
    }
    cuts[k] = (~sa_same(tags, sa_load(window + 63)) | s->segments) & text;
    none[k] = sa_eq(tags, NO_SCRIPT) & text;
    s->segments = next;
    s->at += 64;
  }
}

/* Bytes equal to `byte`. */
static void sa_consumer_bytes(const sa_stream *s, uint8_t byte, uint64_t *plane) {
  for (int64_t at = 0, k = 0; at < s->n; at += 64, k++)
    plane[k] = sa_eq(sa_load(sa_stream_block(s, at)), byte) & sa_text_bits(s, at);
}

const struct sa_consumer_ops SA_CONSUMER_OPS = {
    .classes = sa_consumer_classes,
    .scripts = sa_consumer_scripts,
    .bytes = sa_consumer_bytes,
};
