/* Slow routines that share nothing with the core but the generated run tables. */
#include <stdlib.h>
#include <string.h>

#include "saphira.h"
#include "selftest.h"

enum { OTHER = 0, WS_OTHER = 1, NEWLINE = 2, SPACE = 3, PUNCT = 4, APOSTROPHE = 30, SLASH = 31 };

/* Id of a code point by its run: binary search, where the core looks up leaves. */
static uint32_t run_id(int alphabet, uint32_t code) {
  int64_t bytes = 0, low = 0, high;
  const uint32_t *first = sa_table(alphabet ? "sa_script_first" : "sa_superatom_first", &bytes);
  const uint8_t *id = sa_table(alphabet ? "sa_script_tag" : "sa_superatom_tag", NULL);
  high = bytes / 4;
  while (high - low > 1) {
    int64_t middle = (low + high) / 2;
    if (first[middle] <= code) low = middle;
    else high = middle;
  }
  return id[low];
}

/* Id of the visible character that stands for a byte: itself if it is one, else the next from U+0100. */
static uint32_t symbol_id(int alphabet, uint8_t byte) {
  uint32_t code = 0x100;
  for (int b = 0; b <= byte; b++) {
    int visible = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    if (b == byte) return run_id(alphabet, visible ? byte : code);
    if (!visible) code++;
  }
  return 0;
}

int64_t st_chars(int alphabet, const uint8_t *text, int64_t n, st_char *out) {
  int64_t i = 0, count = 0;
  while (i < n) {
    uint8_t lead = text[i];
    st_char c = {i, 1, 0, -1, -1};
    int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1, have = 0;
    if (lead < 0x80) {
      c.tag = run_id(alphabet, lead);
      c.literal = lead;
      c.code = lead;
    } else if (lead < 0xC0 || lead > 0xF4) {
      c.tag = symbol_id(alphabet, lead);
    } else {
      while (have < more && i + 1 + have < n && text[i + 1 + have] >= 0x80 && text[i + 1 + have] < 0xC0)
        have++;
      if (have == more) {
        uint32_t code = more == 1 ? lead - 0xC0u : more == 2 ? lead - 0xE0u : lead - 0xF0u;
        for (int k = 1; k <= more; k++) code = code * 64 + (text[i + k] - 0x80u);
        c.width = more + 1;
        c.code = code;
        c.tag = code > 0x10FFFF ? OTHER : run_id(alphabet, code);
        if (code < 0x80 && alphabet == SA_ALPHABET_SUPERATOMS) {
          if (code == ' ' || code == '\n' || code == '\r') c.tag = WS_OTHER;
          if (code == '\'' || code == '/') c.tag = PUNCT;
        }
      } else if (i + 1 + have == n) {
        c.tag = symbol_id(alphabet, lead);
      } else {
        c.tag = OTHER;
      }
    }
    i += c.width;
    out[count++] = c;
  }
  return count;
}

static int is_white(const st_char *c) { return c->tag >= WS_OTHER && c->tag <= SPACE; }

/* 'L', 'N', or 'O' for the rest that is not white space; 'W'. */
static char kind(const st_char *c) {
  switch (c->tag) {
    case 7: case 9: case 11: case 18: case 21: case 25: return 'L';
    case 6: case 12: case 19: return 'N';
    case WS_OTHER: case NEWLINE: case SPACE: return 'W';
    default: return 'O';
  }
}

static int literal(const st_char *chars, int64_t n, int64_t i, char byte) {
  return i < n && chars[i].literal == byte;
}

/* Characters that the pattern's first matching alternative takes at i. */
static int64_t gpt2_match(const st_char *c, int64_t n, int64_t i) {
  int64_t j;
  if (literal(c, n, i, '\'')) {
    for (const char *p = "sdmt"; *p; p++)
      if (literal(c, n, i + 1, *p)) return 2;
    if (literal(c, n, i + 1, 'l') && literal(c, n, i + 2, 'l')) return 3;
    if (literal(c, n, i + 1, 'v') && literal(c, n, i + 2, 'e')) return 3;
    if (literal(c, n, i + 1, 'r') && literal(c, n, i + 2, 'e')) return 3;
  }
  for (const char *p = "LNO"; *p; p++) {
    j = literal(c, n, i, ' ') ? i + 1 : i;
    int64_t from = j;
    while (j < n && kind(c + j) == *p) j++;
    if (j > from) return j - i;
  }
  j = i;
  while (j < n && is_white(c + j)) j++;
  if (j < n && j - i > 1) j--; /* \s+(?!\S) gives one back; \s+ takes a single one */
  return j - i;
}

void st_split_gpt2(const st_char *chars, int64_t n_chars, uint8_t *starts) {
  for (int64_t i = 0; i < n_chars; i += gpt2_match(chars, n_chars, i)) starts[chars[i].start] = 1;
}

int st_is_utf8(const uint8_t *s, int64_t n) {
  for (int64_t i = 0; i < n;) {
    uint8_t a = s[i], low = 0x80, high = 0xBF;
    int more;
    if (a < 0x80) more = 0;
    else if (a >= 0xC2 && a <= 0xDF) more = 1;
    else if (a >= 0xE0 && a <= 0xEF) more = 2;
    else if (a >= 0xF0 && a <= 0xF4) more = 3;
    else return 0;
    if (a == 0xE0) low = 0xA0;
    if (a == 0xED) high = 0x9F;
    if (a == 0xF0) low = 0x90;
    if (a == 0xF4) high = 0x8F;
    for (int k = 1; k <= more; k++) {
      if (i + k >= n || s[i + k] < low || s[i + k] > high) return 0;
      low = 0x80;
      high = 0xBF;
    }
    i += more + 1;
  }
  return 1;
}
