/* Consumers: the stages that cut pieces smaller, each a pass over words of 64 bytes. */
#define _GNU_SOURCE  /* memmem */
#include "consumers.h"
#include "pretok.h"

static u64 behind(u64 word, u64 *carry) {
  const u64 result = (word << 1) | *carry;
  *carry = word >> 63;
  return result;
}

/* The word `by` bytes ahead of word k; by in 1..63. */
static u64 ahead(const uint64_t *words, int64_t k, int64_t n_words, int by) {
  const u64 next = k + 1 < n_words ? words[k + 1] : 0;
  return (words[k] >> by) | (next << (64 - by));
}

/* Puts back what holds for every set of cuts: bit n, and nothing behind it. */
static void close_cuts(sa_draft *w) {
  const int64_t k = w->n / 64;
  const u64 end = (u64)1 << (w->n % 64);
  w->cuts[k] = (w->cuts[k] & (end - 1)) | end;
}

/* ---- classes ---- */

/* The last word of the planes, where it holds no byte of text, is not written by the passes over blocks. */
static void clear_last(const sa_draft *w, uint64_t *words) {
  if (w->n % 64 == 0) words[w->n / 64] = 0;
}

static void cut_classes(sa_draft *w, const sa_step *step) {
  u64 drop_before = 0, run_before = 0, after_before = 0;
  sa_stream s;
  sa_stream_begin_words(&s, w->text, w->n, (const u64 *)w->cuts);
  sa_consumer_ops_active()->classes(sa_alphabet_of(SA_ALPHABET_SUPERATOMS), &step->classes, step->wanted, &s,
                                    w->starts, w->planes);
  clear_last(w, w->starts);
  for (int j = 0; j < SA_CLASS_PLANES; j++)
    if (step->wanted >> j & 1) clear_last(w, w->planes[j]);
    else memset(w->planes[j], 0, (size_t)w->n_words * 8);
  for (int64_t k = 0; k < w->n_words; k++) {
    const u64 drop = w->planes[0][k], run = w->planes[1][k], before = w->planes[2][k], after = w->planes[3][k];
    u64 cuts = drop ^ behind(drop, &drop_before);
    cuts |= run ^ behind(run, &run_before);
    cuts |= (before | behind(after, &after_before)) & w->starts[k];
    w->cuts[k] |= cuts;
    w->drop[k] |= drop;
  }
  close_cuts(w);
}

/* ---- matches ---- */

/* Cuts by matches: w->starts are their first bytes, w->planes[0] all their bytes. */
static void cut_matches(sa_draft *w, int32_t how) {
  const uint64_t *matched = w->planes[0];
  u64 carry = 0;
  for (int64_t k = 0; k < w->n_words; k++) {
    const u64 starts = w->starts[k], in = matched[k], in_before = behind(in, &carry);
    const u64 ends = in_before & (starts | ~in);
    u64 cuts = 0;
    if (how & (SA_CUT_RUN | SA_CUT_DROP)) cuts |= in ^ in_before;
    if (how & (SA_CUT_BEFORE | SA_CUT_DROP_REST)) cuts |= starts;
    if (how & (SA_CUT_AFTER | SA_CUT_DROP_REST)) cuts |= ends;
    w->cuts[k] |= cuts;
    if (how & SA_CUT_DROP) w->drop[k] |= in;
    if (how & SA_CUT_DROP_REST) w->drop[k] |= ~in;
  }
  close_cuts(w);
}

static void set_bit(uint64_t *words, int64_t at) { words[at / 64] |= (uint64_t)1 << (at % 64); }

/* Sets bits [from, to). */
static void set_bits(uint64_t *words, int64_t from, int64_t to) {
  while (from < to) {
    const int64_t k = from / 64, stop = (k + 1) * 64 < to ? (k + 1) * 64 : to;
    words[k] |= (~(uint64_t)0 >> (64 - (stop - from))) << (from % 64);
    from = stop;
  }
}

/* Whether a piece starts in [from, to). */
static int is_cut(const sa_draft *w, int64_t from, int64_t to) {
  for (int64_t k = from / 64; k * 64 < to; k++) {
    u64 word = w->cuts[k];
    if (k * 64 < from) word &= ~(u64)0 << (from % 64);
    if ((k + 1) * 64 > to) word &= ~(u64)0 >> (64 - (to - k * 64));
    if (word) return 1;
  }
  return 0;
}

static void clear_matches(sa_draft *w) {
  memset(w->starts, 0, (size_t)w->n_words * 8);
  memset(w->planes[0], 0, (size_t)w->n_words * 8);
}

/* A literal of up to eight bytes: its places are where the planes of its bytes line up. */
static void find_short(sa_draft *w, const uint8_t *literal, int64_t length, int overlaps) {
  uint64_t *matched = w->planes[0], *plane = w->planes[1];
  sa_stream s;
  int64_t free_from = 0;
  sa_stream_begin_words(&s, w->text, w->n, (const u64 *)w->cuts);
  for (int64_t i = 0; i < length; i++) {
    uint64_t *into = i ? plane : w->starts;
    sa_consumer_ops_active()->bytes(&s, literal[i], into);
    clear_last(w, into);
    if (i == 0) continue;
    for (int64_t k = 0; k < w->n_words; k++)
      w->starts[k] &= ahead(plane, k, w->n_words, (int)i) & ~ahead(w->cuts, k, w->n_words, (int)i);
  }
  for (int64_t k = 0; overlaps && k < w->n_words; k++) {
    for (u64 left = w->starts[k]; left; left &= left - 1) {
      const int64_t at = 64 * k + sa_ctz64(left);
      if (at < free_from) w->starts[k] &= ~(left & (0 - left));
      else free_from = at + length;
    }
  }
  u64 before = 0;
  for (int64_t k = 0; k < w->n_words; k++) {
    const u64 word = w->starts[k];
    matched[k] = word;
    for (int64_t i = 1; i < length; i++) matched[k] |= (word << i) | (before >> (64 - i));
    before = word;
  }
}

static void find_long(sa_draft *w, const uint8_t *literal, int64_t length) {
  clear_matches(w);
  for (int64_t at = 0; w->n - at >= length;) {
    const uint8_t *hit = memmem(w->text + at, (size_t)(w->n - at), literal, (size_t)length);
    if (!hit) break;
    at = hit - w->text;
    if (is_cut(w, at + 1, at + length)) {
      at++;
      continue;
    }
    set_bit(w->starts, at);
    set_bits(w->planes[0], at, at + length);
    at += length;
  }
}

static int is_digit(uint8_t byte) { return byte >= '0' && byte <= '9'; }

static void find_digits3(sa_draft *w) {
  const uint8_t *text = w->text;
  clear_matches(w);
  for (int64_t i = 2; i < w->n;) {
    if (!is_digit(text[i])) i += 3;
    else if (!is_digit(text[i - 1])) i += 2;
    else if (!is_digit(text[i - 2]) || is_cut(w, i - 1, i + 1)) i += 1;
    else {
      set_bit(w->starts, i - 2);
      set_bits(w->planes[0], i - 2, i + 1);
      i += 3;
    }
  }
}

/* ---- schemes, scripts, lengths ---- */

static void cut_scheme(sa_draft *w, int32_t scheme) {
  sa_pretok_cursor c;
  sa_pretok_begin_words(&c, scheme, w->text, w->n, w->cuts);
  sa_pretok_next(&c, w->starts, INT64_MAX);
  clear_last(w, w->starts);
  for (int64_t k = 0; k < w->n_words; k++) w->cuts[k] |= w->starts[k];
  close_cuts(w);
}

static void cut_scripts(sa_draft *w) {
  sa_stream s;
  sa_stream_begin_words(&s, w->text, w->n, (const u64 *)w->cuts);
  sa_consumer_ops_active()->scripts(sa_alphabet_of(SA_ALPHABET_SCRIPTS), &s, w->starts, w->planes[0]);
  clear_last(w, w->starts);
  clear_last(w, w->planes[0]);
  for (int64_t k = 0; k < w->n_words; k++) {
    w->cuts[k] |= w->starts[k];
    w->drop[k] |= w->planes[0][k];
  }
  close_cuts(w);
}

static void cut_length(sa_draft *w, const sa_step *step) {
  const int64_t length = step->stage.number;
  int64_t left = 0;  /* characters until the next cut */
  sa_stream s;
  sa_stream_begin_words(&s, w->text, w->n, (const u64 *)w->cuts);
  sa_consumer_ops_active()->classes(sa_alphabet_of(SA_ALPHABET_SUPERATOMS), &step->classes, 0, &s, w->starts,
                                    w->planes);
  clear_last(w, w->starts);
  for (int64_t k = 0; k < w->n_words; k++) {
    u64 rest = w->starts[k], segments = w->cuts[k], result = segments;
    while (rest) {  /* up to the next segment's start */
      const u64 next = segments & (0 - segments), here = next ? rest & (next - 1) : rest;
      u64 x = here;
      int64_t n = sa_popcount64(x);
      for (; left < n; left = length) {
        n -= left;
        for (; left; left--) x &= x - 1;
        result |= x & (0 - x);
      }
      left -= n;
      rest &= ~here;
      if (next) left = 0;
      segments &= ~next;
    }
    w->cuts[k] = result;
  }
  close_cuts(w);
}

int32_t sa_step_cut(sa_draft *w, const sa_step *step) {
  const sa_stage *stage = &step->stage;
  int32_t status = SA_OK;
  switch (stage->kind) {
    case SA_STAGE_CLASSES:
      cut_classes(w, step);
      return SA_OK;
    case SA_STAGE_SCHEME:
      cut_scheme(w, (int32_t)stage->number);
      return SA_OK;
    case SA_STAGE_SCRIPTS:
      cut_scripts(w);
      return SA_OK;
    case SA_STAGE_LENGTH:
      cut_length(w, step);
      return SA_OK;
    case SA_STAGE_LITERAL:
      if (stage->n_bytes <= 8) find_short(w, stage->bytes, stage->n_bytes, step->overlaps);
      else find_long(w, stage->bytes, stage->n_bytes);
      break;
    case SA_STAGE_DIGITS3:
      find_digits3(w);
      break;
    default:
      clear_matches(w);
      status = stage->match(stage->context, w->text, w->n, w->cuts, w->drop, w->starts, w->planes[0]);
  }
  if (status == SA_OK) cut_matches(w, stage->cuts);
  return status;
}
