/* Stage decode: ids to bytes, one pass that checks and measures, one that copies. */
#include <string.h>

#include "saphira.h"

#define WIDE 16 /* bytes copied at once, whatever the token's length */

static int kept(const sa_tokens *tokens, uint32_t id, int32_t skip_special) {
  return !(skip_special && tokens->kinds[id] == SA_TOKEN_SPECIAL);
}

int64_t sa_decode_lengths(const sa_tokens *tokens, const uint32_t *ids, const int64_t *id_offsets, int64_t n_rows,
                          int32_t skip_special, int64_t *byte_offsets) {
  int64_t total = 0;
  byte_offsets[0] = 0;
  for (int64_t row = 0; row < n_rows; row++) {
    for (int64_t i = id_offsets[row]; i < id_offsets[row + 1]; i++) {
      const uint32_t id = ids[i];
      if (id >= tokens->n || tokens->kinds[id] == SA_TOKEN_NONE) return i;
      if (kept(tokens, id, skip_special)) total += tokens->offsets[id + 1] - tokens->offsets[id];
    }
    byte_offsets[row + 1] = total;
  }
  return -1;
}

void sa_decode(const sa_tokens *tokens, const uint32_t *ids, int64_t n, int32_t skip_special, uint8_t *out,
               int64_t capacity) {
  const int64_t readable = tokens->offsets[tokens->n];
  int64_t at = 0;
  for (int64_t i = 0; i < n; i++) {
    const uint32_t id = ids[i];
    if (!kept(tokens, id, skip_special)) continue;
    const int64_t from = tokens->offsets[id], length = tokens->offsets[id + 1] - from;
    /* what a wide copy writes behind the token, the next one overwrites */
    if (length <= WIDE && from + WIDE <= readable && at + WIDE <= capacity)
      memcpy(out + at, tokens->bytes + from, WIDE);
    else
      memcpy(out + at, tokens->bytes + from, (size_t)length);
    at += length;
  }
}
