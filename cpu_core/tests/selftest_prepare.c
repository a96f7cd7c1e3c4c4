/* Prepared text: byte for byte what sa_encode encodes, seen through a model without merges, whose ids are bytes. */
#include <stdlib.h>
#include <string.h>

#include "saphira.h"
#include "selftest.h"

#define BYTES 600
#define ROWS 40
#define ADDED 6

static sa_model *model_of(int prefix, const uint8_t *steps, int64_t n_steps, int flags_seed) {
  static const char *const contents[ADDED] = {"<x>", "<X>y", " ", "  ", "\xC3\xA9", "A"};
  int64_t token_offsets[256 + ADDED + 1], added_offsets[ADDED + 1] = {0}, step_offsets[9] = {0};
  uint8_t token_bytes[256 + ADDED], added_bytes[64], flags[ADDED];
  uint32_t byte_ids[256], added_ids[ADDED];
  for (int i = 0; i < 256; i++) byte_ids[i] = (uint32_t)i, token_bytes[i] = (uint8_t)i;
  for (int i = 0; i <= 256 + ADDED; i++) token_offsets[i] = i < 256 ? i : 256;
  for (int i = 0; i < ADDED; i++) {
    const int64_t n = (int64_t)strlen(contents[i]);
    memcpy(added_bytes + added_offsets[i], contents[i], (size_t)n);
    added_offsets[i + 1] = added_offsets[i] + n;
    added_ids[i] = 256 + (uint32_t)i;
    flags[i] = (uint8_t)((flags_seed * 7919 + i * 104729) >> 3 & 31);
  }
  for (int64_t i = 0; i < 2 * n_steps; i++) step_offsets[i + 1] = step_offsets[i] + (steps[i / 2] == SA_NORMALIZE_PREPEND && i % 2);
  const sa_normalizer_plan normalizer = {n_steps, steps, step_offsets, (const uint8_t *)"____"};
  const sa_plan plan = {.scheme = 0, .add_prefix_space = prefix, .normalizer = n_steps ? &normalizer : NULL,
                        .n_ids = 256 + ADDED, .token_offsets = token_offsets, .token_bytes = token_bytes,
                        .byte_ids = byte_ids, .n_added = ADDED, .added_offsets = added_offsets,
                        .added_bytes = added_bytes, .added_ids = added_ids, .added_flags = flags};
  char error[128] = "";
  sa_model *model = sa_model_new(&plan, error, sizeof error);
  st_check(model != NULL, "prepare: %s", error);
  return model;
}

static void fill(uint8_t *text, int64_t n) {
  static const char *const parts[] = {"<x>", "<X>y", " ", "   ", "e\xCC\x81", "\xC3\xA9", "A", "a", "\n", "\xFF", ".....", "\xEF\xAC\x81"};
  for (int64_t i = 0; i < n;) {
    const char *part = parts[st_below(sizeof parts / sizeof *parts)];
    for (; *part && i < n; part++) text[i++] = (uint8_t)*part;
  }
}

/* Each row as a text of its own, with more ids than bytes among them. ids, id_offsets: of all rows, as far as the status
 * says. A null row is left out. */
static void alone(sa_encoder *encoder, const uint8_t *text, const int64_t *offsets, int64_t n_rows, int32_t special,
                  const uint32_t *ids, const int64_t *id_offsets, const sa_report *report) {
  static uint32_t got[64 * BYTES];
  for (int64_t i = 0; i < n_rows; i++) {
    const int64_t n = offsets[i + 1] - offsets[i], n_ids = id_offsets[i + 1] - id_offsets[i];
    if (report->error_row >= 0) {
      if (i != report->error_row) continue;
      const int64_t status = sa_encode_text(encoder, text + offsets[i], n, special, got, 64 * BYTES);
      st_check(status == -SA_ERR_SPECIAL, "prepare: a text with an added token, %lld", (long long)status);
    } else if (n_ids) {
      const int64_t n_got = sa_encode_text(encoder, text + offsets[i], n, special, got, 64 * BYTES);
      st_check(n_got == n_ids && memcmp(got, ids + id_offsets[i], (size_t)n_ids * sizeof *ids) == 0,
               "prepare: a text of %lld bytes, %lld ids", (long long)n, (long long)n_got);
      const int64_t counted = sa_encode_text(encoder, text + offsets[i], n, special, NULL, 0);
      st_check(counted == n_ids, "prepare: ids of a text counted, %lld", (long long)counted);
      const int64_t status = sa_encode_text(encoder, text + offsets[i], n, special, got, n_ids - 1);
      st_check(status == -SA_ERR_CAPACITY || (n >= n_ids && status == -SA_ERR_ARGUMENT),
               "prepare: a text without room, %lld", (long long)status);
    }
  }
}

static void compare(const sa_model *model) {
  int64_t offsets[ROWS + 1] = {0}, id_offsets[ROWS + 1], hits[2][ADDED] = {{0}, {0}};
  int32_t small[ROWS + 1];
  uint8_t validity[ROWS / 8 + 1];
  static uint32_t ids[64 * BYTES];
  const int64_t n_rows = st_below(ROWS + 1), most = 1 + st_below(40);
  for (int64_t i = 0; i < n_rows; i++) {
    const int64_t end = offsets[i] + st_below((uint32_t)most);
    offsets[i + 1] = end < BYTES ? end : BYTES;
  }
  for (int64_t i = 0; i <= n_rows; i++) small[i] = (int32_t)offsets[i];
  for (size_t i = 0; i < sizeof validity; i++) validity[i] = (uint8_t)(st_random() | st_random());
  const st_guard text = st_guarded((size_t)offsets[n_rows], 1);
  fill(text.data, offsets[n_rows]);
  const int wide = (int)st_below(2), nulls = (int)st_below(2), count = (int)st_below(2);
  const sa_rows rows = {text.data, wide ? (const void *)offsets : small, wide ? 64 : 32, n_rows, nulls ? validity : NULL, 0};
  const sa_options options = {(int32_t)st_below(4), 1 + (int32_t)st_below(4), sizeof ids / sizeof *ids};
  sa_report encoded, made;
  sa_prepared prepared;
  sa_encoder *encoder = sa_encoder_new(model, 0);
  const int32_t expected = sa_encode(encoder, &rows, &options, ids, id_offsets, count ? hits[0] : NULL, &encoded);
  const int32_t status = sa_prepare(model, &rows, &options, &prepared, count ? hits[1] : NULL, &made);
  alone(encoder, text.data, offsets, n_rows, options.special, ids, id_offsets, &encoded);
  sa_encoder_free(encoder);
  st_check(status == expected, "prepare: status %d, not %d", status, expected);
  if (status == SA_ERR_SPECIAL)
    st_check(made.error_row == encoded.error_row && made.error_byte == encoded.error_byte &&
                 made.error_added == encoded.error_added, "prepare: another error, (%lld %lld %lld) for (%lld %lld %lld)",
             (long long)made.error_row, (long long)made.error_byte, (long long)made.error_added,
             (long long)encoded.error_row, (long long)encoded.error_byte, (long long)encoded.error_added);
  if (status == SA_OK && expected == SA_OK) {
    int same = prepared.n == id_offsets[n_rows] && made.bytes == prepared.n && prepared.row_offsets[0] == 0;
    int64_t k = 0;
    for (int64_t i = 0; i < n_rows; i++) same &= prepared.row_offsets[i + 1] == id_offsets[i + 1];
    for (int64_t i = 0; i < prepared.n && same; i++) {
      const int fixed = k < prepared.n_fixed && prepared.fixed_at[k] == i;
      same = (fixed ? prepared.fixed_ids[k] : prepared.text[i]) == ids[i];
      k += fixed;
    }
    st_check(same && k == prepared.n_fixed, "prepare: another text, %lld bytes", (long long)prepared.n);
    for (int i = 0; i < 64; i++) same &= prepared.text[prepared.n + i] == 0;
    st_check(same, "prepare: no zeros behind the text");
    st_check(memcmp(hits[0], hits[1], sizeof *hits) == 0, "prepare: other hits");
  }
  sa_prepared_release(&prepared);
  st_unguard(text);
}

void st_prepare(void) {
  static const uint8_t steps[][2] = {
      {SA_NORMALIZE_NFC, SA_NORMALIZE_LOWERCASE}, {SA_NORMALIZE_PREPEND, SA_NORMALIZE_NFKC},
      {SA_NORMALIZE_STRIP_LEFT, SA_NORMALIZE_STRIP_RIGHT}, {SA_NORMALIZE_LOWERCASE, SA_NORMALIZE_PREPEND}};
  for (int k = 0; k < 40 * st_size; k++) {
    const int prefix = k % 2, n_steps = k % 10 == 5 ? 0 : 1 + k % 2 * (k % 3 > 0);
    sa_model *model = model_of(prefix, steps[st_below(4)], n_steps, (int)st_below(1000));
    for (int i = 0; i < 60 && model; i++) compare(model);
    const int32_t descending[3] = {0, 3, 1};
    const sa_rows rows = {(const uint8_t *)"abcd", descending, 32, 2, NULL, 0};
    const sa_options options = {SA_SPECIAL_PLAIN, 1, 0};
    sa_prepared prepared;
    sa_report report;
    st_check(sa_prepare(model, &rows, &options, &prepared, NULL, &report) == SA_ERR_ARGUMENT, "prepare: descending");
    sa_model_free(model);
  }
}
