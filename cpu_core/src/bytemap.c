/* Stage bytemap: byte-alphabet symbols back to the bytes they stand for.
 *
 * The core encodes bytes, so the byte alphabet only matters where a stage of pretok sees it: ByteLevel with other
 * stages behind it. The program then ends with text of symbols, one to a byte, and this undoes it.
 */
#include "consumers.h"

int32_t sa_draft_unmap(sa_draft *w) {
  if (!w->mapped) return SA_OK;
  const int16_t *byte_of = sa_table("sa_bytemap_byte", NULL);
  uint8_t *text = (uint8_t *)w->text; /* the program's own */
  int64_t n = 0, row = 0;
  for (int64_t at = 0; at <= w->n; at++) {
    for (; row <= w->n_rows && w->rows[row] == at; row++) w->rows[row] = n;
    if (at == w->n) break;
    const uint64_t cut = w->cuts[at / 64] >> (at % 64) & 1, drop = w->drop[at / 64] >> (at % 64) & 1;
    const int width = text[at] < 0x80 ? 1 : 2;
    const uint32_t symbol = width == 1 ? text[at] : (uint32_t)(text[at] & 0x1F) << 6 | (text[at + 1] & 0x3F);
    /* bits only move down, to words already read */
    w->cuts[n / 64] = (w->cuts[n / 64] & ~((uint64_t)1 << (n % 64))) | cut << (n % 64);
    w->drop[n / 64] = (w->drop[n / 64] & ~((uint64_t)1 << (n % 64))) | drop << (n % 64);
    text[n++] = (uint8_t)byte_of[symbol];
    at += width - 1;
  }
  w->n = n;
  return SA_OK;
}
