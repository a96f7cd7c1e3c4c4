/* Stage pretok: piece starts of rows. */
#include "pretok.h"

static void begin(sa_pretok_cursor *c, int32_t scheme) {
  c->backend = sa_backend_active();
  c->alphabet = sa_alphabet_of(SA_ALPHABET_SUPERATOMS);
  c->scheme = sa_scheme_of(scheme);
  c->given = 0;
  memset(&c->rules, 0, sizeof c->rules);
  c->stop_at[0] = c->stop_at[1] = -1;
  c->stop_good[0] = c->stop_good[1] = 0;
}

void sa_pretok_begin(sa_pretok_cursor *c, int32_t scheme, const uint8_t *text, const int64_t *offsets,
                     int64_t n_rows) {
  begin(c, scheme);
  sa_stream_begin(&c->stream, text, offsets, 64, n_rows);
}

void sa_pretok_begin_words(sa_pretok_cursor *c, int32_t scheme, const uint8_t *text, int64_t n,
                           const uint64_t *words) {
  begin(c, scheme);
  sa_stream_begin_words(&c->stream, text, n, (const u64 *)words);
}

int64_t sa_pretok_next(sa_pretok_cursor *c, uint64_t *starts, int64_t max_blocks) {
  return c->backend->pieces(c, starts, max_blocks);
}

int32_t sa_boundaries(int32_t scheme, const sa_rows *rows, uint64_t *starts) {
  sa_pretok_cursor c;
  if (!sa_scheme_of(scheme)) return SA_ERR_ARGUMENT;
  begin(&c, scheme);
  sa_stream_begin(&c.stream, rows->text, rows->offsets, rows->offset_bits, rows->n_rows);
  sa_pretok_next(&c, starts, INT64_MAX);
  return SA_OK;
}
