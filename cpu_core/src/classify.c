/* Stages classify and remap on their own. */
#include "backend.h"

int32_t sa_classify(int32_t alphabet, const sa_rows *rows, uint8_t *tags, uint64_t *starts) {
  const sa_alphabet *a = sa_alphabet_of(alphabet);
  sa_stream s;
  if (!a) return SA_ERR_ARGUMENT;
  sa_stream_begin(&s, rows->text, rows->offsets, rows->offset_bits, rows->n_rows);
  sa_backend_active()->classify(a, &s, tags, starts);
  return SA_OK;
}

int32_t sa_remap(const uint8_t *table, const uint8_t *tags, int64_t n, uint8_t *classes) {
  sa_backend_active()->remap(table, tags, n, classes);
  return SA_OK;
}
