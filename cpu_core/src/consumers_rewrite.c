/* Consumers: the stages that make new text. Each byte of it knows which bytes of the given text its character
 * comes from; what a stage puts in front of a piece comes from the piece's first character.
 */
#include "consumers.h"
#include "utf8.h"

/* Where the new text grows. */
typedef struct made {
  uint8_t *text;
  uint32_t *from, *to;
  int64_t n;
} made;

static void put(made *m, const uint8_t *bytes, int64_t n, uint32_t from, uint32_t to) {
  for (int64_t i = 0; i < n; i++) {
    m->text[m->n + i] = bytes[i];
    m->from[m->n + i] = from;
    m->to[m->n + i] = to;
  }
  m->n += n;
}

/* Bytes of the character at `at` of a piece that ends at `end`, and where it comes from. */
static inline int64_t char_at(const sa_draft *w, int64_t at, int64_t end, uint32_t *from, uint32_t *to) {
  uint32_t code;
  int kind;
  const int length = w->text[at] < 0x80 ? 1 : sa_utf8_decode(w->text + at, w->text + end, &code, &kind);
  *from = w->from ? w->from[at] : (uint32_t)at;
  *to = w->from ? w->to[at] : (uint32_t)(at + length);
  return length;
}

static int begins_with(const uint8_t *text, int64_t n, const uint8_t *bytes, int64_t length) {
  return n >= length && memcmp(text, bytes, (size_t)length) == 0;
}

/* Copies bytes as they are. */
static void copy(const sa_draft *w, made *m, int64_t at, int64_t end) {
  const int64_t n = end - at;
  uint32_t *from = m->from + m->n, *to = m->to + m->n;
  memcpy(m->text + m->n, w->text + at, (size_t)n);
  m->n += n;
  if (w->from) {
    memcpy(from, w->from + at, 4 * (size_t)n);
    memcpy(to, w->to + at, 4 * (size_t)n);
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    from[i] = (uint32_t)(at + i);
    to[i] = (uint32_t)(at + i + 1);
  }
  for (int64_t i = 0; i < n;) {  /* characters of several bytes */
    u64 eight = 0;
    if (n - i >= 8) memcpy(&eight, w->text + at + i, 8);
    if (n - i >= 8 && !(eight & 0x8080808080808080ull)) {
      i += 8;
      continue;
    }
    uint32_t first, last;
    const int64_t length = char_at(w, at + i, end, &first, &last);
    for (int64_t j = 0; j < length; j++) from[i + j] = first, to[i + j] = last;
    i += length;
  }
}

/* Copies a piece with other bytes for U+0020. */
static void copy_replaced(const sa_draft *w, made *m, int64_t at, int64_t end, const uint8_t *bytes,
                          int64_t n_bytes) {
  while (at < end) {
    const uint8_t *space = memchr(w->text + at, ' ', (size_t)(end - at));
    const int64_t stop = space ? space - w->text : end;
    uint32_t from, to;
    copy(w, m, at, stop);
    if (!space) return;
    char_at(w, stop, end, &from, &to);
    put(m, bytes, n_bytes, from, to);
    at = stop + 1;
  }
}

/* The symbols of the byte alphabet in UTF-8: one byte or two. */
typedef struct symbols {
  uint8_t bytes[256][2], size[256];
} symbols;

static void symbols_init(symbols *s) {
  const uint16_t *codes = sa_table("sa_bytemap_symbol", NULL);
  for (int i = 0; i < 256; i++) {
    const uint16_t code = codes[i];
    s->size[i] = code < 0x80 ? 1 : 2;
    s->bytes[i][0] = (uint8_t)(code < 0x80 ? code : 0xC0 | code >> 6);
    s->bytes[i][1] = (uint8_t)(0x80 | (code & 63));
  }
}

/* Writes two bytes and the sources of two; returns how many of them count. */
static inline int64_t put_symbol(made *m, int64_t n, const symbols *s, uint8_t byte, uint32_t from, uint32_t to) {
  const uint32_t two_from[2] = {from, from}, two_to[2] = {to, to};
  memcpy(m->text + n, s->bytes[byte], 2);
  memcpy(m->from + n, two_from, 8);
  memcpy(m->to + n, two_to, 8);
  return s->size[byte];
}

/* Copies a piece in the byte alphabet. */
static void copy_symbols(const sa_draft *w, made *m, int64_t at, int64_t end, const symbols *s) {
  const uint8_t *text = w->text;
  made out = *m;
  int64_t n = out.n;
  while (at < end) {
    uint32_t from, to;
    for (; at < end && text[at] < 0x80; at++) {
      from = w->from ? w->from[at] : (uint32_t)at;
      to = w->from ? w->to[at] : (uint32_t)at + 1;
      n += put_symbol(&out, n, s, text[at], from, to);
    }
    if (at == end) break;
    for (int64_t length = char_at(w, at, end, &from, &to); length; length--, at++)
      n += put_symbol(&out, n, s, text[at], from, to);
  }
  m->n = n;
}

static void rewrite_piece(const sa_draft *w, made *m, const sa_stage *stage, int at_row_start, int64_t at,
                          int64_t end, const symbols *s) {
  const uint8_t *p = w->text + at;
  if (stage->kind == SA_STAGE_BYTEMAP) {
    copy_symbols(w, m, at, end, s);
    return;
  }
  const int replace = stage->kind == SA_STAGE_REPLACE;
  const int wanted = !replace || stage->number == SA_PREFIX_ALWAYS ||
                     (stage->number == SA_PREFIX_FIRST && at_row_start);
  const int there = begins_with(p, end - at, stage->bytes, stage->n_bytes) || (replace && *p == ' ');
  if (wanted && !there) {
    uint32_t from, to;
    char_at(w, at, end, &from, &to);
    put(m, stage->bytes, stage->n_bytes, from, to);
  }
  if (replace) copy_replaced(w, m, at, end, stage->bytes, stage->n_bytes);
  else copy(w, m, at, end);
}

/* The next piece at or after byte *at. */
static int next_piece(const sa_draft *w, int64_t *at, int64_t *end) {
  int64_t k = *at / 64;
  if (*at >= w->n) return 0;
  u64 word = sa_piece_starts(w, k) & ~(u64)0 << (*at % 64);
  while (!word) {
    if (++k == w->n_words) return 0;
    word = sa_piece_starts(w, k);
  }
  *at = 64 * k + sa_ctz64(word);
  k = (*at + 1) / 64;
  word = w->cuts[k] & ~(u64)0 << ((*at + 1) % 64);
  while (!word) word = w->cuts[++k];  /* bit n is set */
  *end = 64 * k + sa_ctz64(word);
  return 1;
}

int32_t sa_step_rewrite(sa_draft *w, const sa_step *step) {
  const sa_stage *stage = &step->stage;
  symbols table;
  const int64_t grows = stage->kind == SA_STAGE_BYTEMAP ? 2
                        : stage->kind == SA_STAGE_PREFIX ? 1 + stage->n_bytes
                                                         : 2 * stage->n_bytes;
  int64_t bound, row = 0, at = 0, end, pieces = 0;
  const int which = w->which;
  made m = {.n = 0};
  if (w->n > (UINT32_MAX - 2) / grows) return SA_ERR_ARGUMENT;
  bound = w->n * grows + 2;
  m.text = sa_draft_room(w, SA_ROOM_TEXT + which, bound);
  m.from = sa_draft_room(w, SA_ROOM_FROM + which, 4 * bound);
  m.to = sa_draft_room(w, SA_ROOM_TO + which, 4 * bound);
  /* where pieces start, until the bitmaps are written anew */
  uint32_t *first = sa_draft_room(w, SA_ROOM_PIECES, 4 * (w->n + 1));
  if (!m.text || !m.from || !m.to || !first) return SA_ERR_NOMEM;
  symbols_init(&table);
  while (next_piece(w, &at, &end)) {
    uint32_t from, to;
    while (w->rows[row + 1] <= at) w->rows[++row] = m.n;
    char_at(w, at, end, &from, &to);
    first[pieces++] = (uint32_t)m.n;
    rewrite_piece(w, &m, stage, from == w->given[row], at, end, &table);
    at = end;
  }
  while (row < w->n_rows) w->rows[++row] = m.n;
  w->rows[0] = 0;
  w->text = m.text;
  w->n = m.n;
  w->from = m.from;
  w->to = m.to;
  w->which = 1 - which;
  const int32_t status = sa_draft_words(w);
  if (status != SA_OK) return status;
  for (int64_t i = 0; i < pieces; i++) w->cuts[first[i] / 64] |= (uint64_t)1 << (first[i] % 64);
  return SA_OK;
}
