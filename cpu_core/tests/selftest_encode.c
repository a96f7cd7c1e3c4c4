/* From rows to ids: a small model against merging done by the definition, text and ids beside unmapped pages. */
#include <stdlib.h>
#include <string.h>

#include "saphira.h"
#include "selftest.h"

#define MAX_IDS 700
#define MAX_BYTES 3000

typedef struct toy {
  int64_t n_ids, n_merges, offsets[MAX_IDS + 1];
  uint8_t bytes[1 << 14];
  uint32_t byte_ids[256], merges[3 * MAX_IDS];
} toy;

/* All bytes, then merges of what there is. monotone = 0 shuffles the ranks. */
static void toy_make(toy *t, int monotone) {
  static const char letters[] = "ab e\n'.\xc3\xa9";
  t->n_ids = 256;
  t->n_merges = 0;
  for (int b = 0; b < 256; b++) {
    t->bytes[b] = (uint8_t)(255 - b);
    t->byte_ids[255 - b] = (uint32_t)b;
    t->offsets[b] = b;
  }
  t->offsets[256] = 256;
  for (int tries = 0; tries < 4000 && t->n_ids < MAX_IDS && t->offsets[t->n_ids] < (1 << 14) - 80; tries++) {
    uint32_t pair[2];
    uint8_t joined[80];
    int64_t n = 0;
    for (int k = 0; k < 2; k++) {
      const int fresh = st_below(3) == 0;
      pair[k] = fresh || t->n_ids == 256 ? t->byte_ids[(uint8_t)letters[st_below(sizeof letters - 1)]]
                                         : 256 + st_below((uint32_t)t->n_ids - 256);
      const int64_t length = t->offsets[pair[k] + 1] - t->offsets[pair[k]];
      if (n + length > 40) break;
      memcpy(joined + n, t->bytes + t->offsets[pair[k]], (size_t)length);
      n += length;
    }
    int known = n < 2;
    for (int64_t id = 0; id < t->n_ids && !known; id++)
      known = t->offsets[id + 1] - t->offsets[id] == n && memcmp(t->bytes + t->offsets[id], joined, (size_t)n) == 0;
    if (known || t->offsets[pair[0] + 1] - t->offsets[pair[0]] + t->offsets[pair[1] + 1] - t->offsets[pair[1]] != n)
      continue;
    const uint32_t merge[3] = {pair[0], pair[1], (uint32_t)t->n_ids};
    memcpy(t->bytes + t->offsets[t->n_ids], joined, (size_t)n);
    t->offsets[t->n_ids + 1] = t->offsets[t->n_ids] + n;
    t->n_ids++;
    memcpy(t->merges + 3 * t->n_merges++, merge, sizeof merge);
  }
  for (int64_t k = t->n_merges - 1; !monotone && k > 0; k--) {
    const int64_t j = st_below((uint32_t)k + 1);
    uint32_t swap[3];
    memcpy(swap, t->merges + 3 * k, sizeof swap);
    memcpy(t->merges + 3 * k, t->merges + 3 * j, sizeof swap);
    memcpy(t->merges + 3 * j, swap, sizeof swap);
  }
}

/* The definition: the lowest rank in the piece, leftmost first, until none is left. */
static int64_t slow_bpe(const toy *t, const uint8_t *piece, int64_t n, uint32_t *ids) {
  for (int64_t i = 0; i < n; i++) ids[i] = t->byte_ids[piece[i]];
  for (int64_t k = 0; n > 1 && k < t->n_merges;) {
    const uint32_t *m = t->merges + 3 * k;
    int64_t i = 0;
    while (i + 1 < n && (ids[i] != m[0] || ids[i + 1] != m[1])) i++;
    if (i + 1 >= n) {
      k++;
      continue;
    }
    ids[i] = m[2];
    memmove(ids + i + 1, ids + i + 2, (size_t)(n - i - 2) * sizeof *ids);
    n--;
    k = 0; /* the new symbol may be part of a pair of lower rank */
  }
  return n;
}

static int64_t slow_row(const toy *t, const uint8_t *text, int64_t n, uint32_t *ids) {
  static st_char chars[MAX_BYTES];
  static uint8_t starts[MAX_BYTES + 1];
  int64_t count = 0;
  memset(starts, 0, sizeof starts);
  st_split_gpt2(chars, st_chars(SA_ALPHABET_SUPERATOMS, text, n, chars), starts);
  for (int64_t i = 0, end; i < n; i = end) {
    for (end = i + 1; end < n && !starts[end];) end++;
    count += slow_bpe(t, text + i, end - i, ids + count);
  }
  return count;
}

static void fill(uint8_t *text, int64_t n) {
  static const char letters[] = "aaabe  \n'.s\xc3\xa9\0";
  const int kind = (int)st_below(4);
  for (int64_t i = 0; i < n; i++)
    text[i] = kind == 0 ? (uint8_t)st_below(256) : kind == 1 ? 'a' : (uint8_t)letters[st_below(sizeof letters - 1)];
}

/* Each row as a text of its own. ids, row_ids: of all rows. end: unmapped from there on. */
static void alone(sa_encoder *encoder, const sa_rows *rows, const uint32_t *ids, const int64_t *row_ids, uint32_t *end) {
  const int64_t *offsets = rows->offsets;
  for (int64_t i = 0; i < rows->n_rows; i++) {
    const int64_t n = offsets[i + 1] - offsets[i], n_ids = row_ids[i + 1] - row_ids[i];
    const uint8_t *text = rows->text + offsets[i];
    const int64_t got = sa_encode_text(encoder, text, n, SA_SPECIAL_PLAIN, end - n, n);
    st_check(got == n_ids && memcmp(end - n, ids + row_ids[i], (size_t)n_ids * sizeof *ids) == 0,
             "encode: a text of %lld bytes, %lld ids", (long long)n, (long long)got);
    st_check(sa_encode_text(encoder, text, n, SA_SPECIAL_PLAIN, NULL, 0) == n_ids, "encode: ids of a text counted");
    st_check(n == 0 || sa_encode_text(encoder, text, n, SA_SPECIAL_PLAIN, end - n, n - 1) == -SA_ERR_ARGUMENT,
             "encode: a text without room");
  }
}

static void compare(const toy *t, const sa_model *model) {
  const int64_t n_rows = 1 + st_below(12), most = st_below(6) ? 40 : MAX_BYTES / n_rows;
  int64_t offsets[16] = {0}, got[16], expected[16] = {0};
  static uint32_t ids[MAX_BYTES];
  for (int64_t i = 0; i < n_rows; i++) offsets[i + 1] = offsets[i] + st_below((uint32_t)most + 1);
  const int64_t n = offsets[n_rows];
  st_guard text = st_guarded((size_t)n, 1), out = st_guarded((size_t)n * sizeof *ids, 1);
  fill(text.data, n);
  for (int64_t i = 0; i < n_rows; i++)
    expected[i + 1] =
        expected[i] + slow_row(t, text.data + offsets[i], offsets[i + 1] - offsets[i], ids + expected[i]);
  const int64_t sizes[] = {0, SA_ISA_COUNT << 16, 1 << 20};
  for (int32_t isa = 0; isa < SA_ISA_COUNT; isa++) {
    if (sa_isa_select(isa) != SA_OK) continue;
    for (int k = 0; k < 3; k++) {
      sa_encoder *encoder = sa_encoder_new(model, sizes[k]);
      const sa_rows rows = {text.data, offsets, 64, n_rows, NULL, 0};
      for (int call = 0; call < 2; call++) { /* cold and warm */
        const sa_options options = {SA_SPECIAL_PLAIN, 1 + call, n};
        sa_report report;
        const int32_t status = sa_encode(encoder, &rows, &options, (uint32_t *)out.data, got, NULL, &report);
        st_check(status == SA_OK && memcmp(got, expected, (size_t)(n_rows + 1) * sizeof *got) == 0 &&
                     memcmp(out.data, ids, (size_t)expected[n_rows] * sizeof *ids) == 0,
                 "encode: %lld rows, %lld bytes, %s, cache %lld, call %d", (long long)n_rows, (long long)n,
                 sa_isa_name(isa), (long long)sizes[k], call);
      }
      alone(encoder, &rows, ids, expected, (uint32_t *)out.data + n);
      sa_encoder_free(encoder);
    }
  }
  st_unguard(text), st_unguard(out);
}

/* Tables that fill up and are emptied again and again: as with no cache at all. The text is words of a few letters
 * that come back now and then. */
static void exhaust(const sa_model *model) {
  enum { BYTES = 400000, WORDS = 9000 };
  static uint8_t words[WORDS][16], text[BYTES];
  static uint32_t expected[BYTES], got[BYTES];
  int64_t n = 0, offsets[2], row_ids[2];
  for (int w = 0; w < WORDS; w++)
    for (int k = 0; k < 16; k++) words[w][k] = "abeb"[st_below(4)];
  while (n < BYTES - 20) {
    const int length = 1 + (int)st_below(16);
    text[n++] = ' ';
    memcpy(text + n, words[st_below(WORDS)], (size_t)length);
    n += length;
  }
  offsets[0] = 0, offsets[1] = n;
  const sa_rows rows = {text, offsets, 64, 1, NULL, 0};
  const sa_options options = {SA_SPECIAL_PLAIN, 1, BYTES};
  for (int64_t size = 0; size <= 4 << 20; size = size ? 2 * size : 64 << 10) {
    sa_encoder *encoder = sa_encoder_new(model, size);
    for (int call = 0; call < 3; call++) {
      sa_report report;
      const int32_t status = sa_encode(encoder, &rows, &options, size ? got : expected, row_ids, NULL, &report);
      st_check(status == SA_OK && (!size || memcmp(got, expected, (size_t)report.tokens * sizeof *got) == 0),
               "encode: %lld bytes of words, cache %lld, call %d", (long long)n, (long long)size, call);
    }
    sa_encoder_free(encoder);
  }
}

/* Rows that several threads share, between short ones and beside an unmapped page: as by one thread. Pieces of any
 * length lie across the cuts. */
static void long_rows(const sa_model *model) {
  enum { ROWS = 6, MOST = 700000 };
  int64_t offsets[ROWS + 1] = {0}, expected[ROWS + 1], got[ROWS + 1];
  for (int64_t i = 0; i < ROWS; i++) {
    const int64_t whole_words = ~(int64_t)(st_below(2) ? 63 : 0);
    const int64_t length = MOST - 200000 + st_below(200000), between = st_below(4) ? st_below(3000) : 0;
    offsets[i + 1] = offsets[i] + (i % 2 ? length & whole_words : between);
  }
  const int64_t n = offsets[ROWS];
  st_guard text = st_guarded((size_t)n, 1), one = st_guarded((size_t)n * 4, 1), many = st_guarded((size_t)n * 4, 1);
  for (int64_t at = 0, to; at < n; at = to) {
    to = at + 1 + st_below(st_below(9) ? 4000 : 300000);
    if (to > n) to = n;
    if (st_below(3)) fill(text.data + at, to - at);
    else memset(text.data + at, "ab 1\n"[st_below(5)], (size_t)(to - at));
  }
  const uint8_t validity[] = {(uint8_t)(st_below(2) ? 0xFF : 0xF7)}; /* a long row may be null */
  const sa_rows rows = {text.data, offsets, 64, ROWS, validity, 0};
  sa_encoder *encoder = sa_encoder_new(model, 8 << 20);
  sa_report report;
  sa_options options = {SA_SPECIAL_PLAIN, 1, n};
  st_check(sa_encode(encoder, &rows, &options, (uint32_t *)one.data, expected, NULL, &report) == SA_OK, "encode: long rows");
  for (options.threads = 2; options.threads <= 5; options.threads++) {
    memset(many.data, 0, (size_t)n * 4);
    const int32_t status = sa_encode(encoder, &rows, &options, (uint32_t *)many.data, got, NULL, &report);
    st_check(status == SA_OK && memcmp(got, expected, sizeof got) == 0 &&
                 memcmp(many.data, one.data, (size_t)expected[ROWS] * 4) == 0,
             "encode: long rows of %lld bytes, %d threads", (long long)n, options.threads);
    const int32_t counted = sa_encode(encoder, &rows, &options, NULL, got, NULL, &report);
    st_check(counted == SA_OK && memcmp(got, expected, sizeof got) == 0, "encode: counts of long rows");
  }
  sa_encoder_free(encoder);
  st_unguard(text), st_unguard(one), st_unguard(many);
}

void st_encode(void) {
  const int32_t isa = sa_isa_active();
  static toy t;
  for (int64_t model_number = 0; model_number < 12 * st_size; model_number++) {
    char error[200];
    toy_make(&t, model_number % 3 != 0);
    const sa_plan plan = {.scheme = 0, .n_ids = t.n_ids, .token_offsets = t.offsets, .token_bytes = t.bytes,
                          .byte_ids = t.byte_ids, .n_merges = t.n_merges, .merges = t.merges};
    sa_model *model = sa_model_new(&plan, error, sizeof error);
    if (!st_check(model != NULL, "encode: %s", error)) continue;
    for (int k = 0; k < 25; k++) compare(&t, model);
    if (model_number < 2) exhaust(model), long_rows(model);
    sa_model_free(model);
  }
  sa_isa_select(isa);
}
