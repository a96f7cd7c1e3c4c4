/* Piece starts, tags and validity of random rows, at every length and alignment, with unmapped pages
 * around the text. */
#include <stdlib.h>
#include <string.h>

#include "pretok.h"
#include "saphira.h"
#include "selftest.h"

enum { MOST = 4096, SCHEMES = 32 };  /* longest random text; room for schemes */

static int32_t numbers_of[SCHEMES];

/* Bits that the slow routines expect for rows of text. */
static void expect(const uint8_t *text, const int64_t *offsets, int64_t n_rows,
                   uint64_t (*pieces)[MOST / 64 + 1], uint8_t *tags, uint8_t *invalid) {
  static st_char chars[MOST];
  static uint8_t marks[MOST];
  int64_t base = offsets[0], n = offsets[n_rows] - base;
  memset(pieces, 0, (size_t)st_n_schemes * sizeof *pieces);
  memset(tags, 0xFF, (size_t)n);
  for (int64_t r = 0; r < n_rows; r++) {
    const uint8_t *row = text + offsets[r];
    int64_t length = offsets[r + 1] - offsets[r], at = offsets[r] - base;
    int64_t count = st_chars(SA_ALPHABET_SUPERATOMS, row, length, chars);
    for (int64_t i = 0; i < count; i++) tags[at + chars[i].start] = (uint8_t)chars[i].tag;
    for (int k = 0; k < st_n_schemes; k++) {
      memset(marks, 0, (size_t)length);
      if (k == 0) st_split_gpt2(chars, count, marks);
      else st_split(k, chars, count, marks);
      for (int64_t i = 0; i < length; i++)
        if (marks[i]) pieces[k][(at + i) / 64] |= (uint64_t)1 << (at + i) % 64;
    }
    invalid[r] = (uint8_t)!st_is_utf8(row, length);
  }
}

static void compare(const char *what, const uint8_t *text, const int64_t *offsets, int64_t n_rows) {
  static uint64_t expected[SCHEMES][MOST / 64 + 1], words[MOST / 64 + 1], starts[MOST / 64 + 1];
  static uint8_t expected_tags[MOST], tags[MOST], expected_invalid[MOST], invalid[MOST];
  static uint32_t positions[MOST + 16];
  int64_t n = offsets[n_rows] - offsets[0], blocks = (n + 63) / 64;
  sa_rows rows = {text, offsets, 64, n_rows, NULL, 0};
  expect(text, offsets, n_rows, expected, expected_tags, expected_invalid);
  for (int32_t isa = 0; isa < SA_ISA_COUNT; isa++) {
    if (sa_isa_select(isa) != SA_OK) continue;
    const char *name = sa_isa_name(isa);
    for (int k = 0; k < st_n_schemes; k++) {
      sa_boundaries(numbers_of[k], &rows, words);
      int same = memcmp(words, expected[k], (size_t)blocks * 8) == 0;
      if (!st_check(same, "%s, %lld bytes, %lld rows, %s: piece starts of %s", what, (long long)n,
                    (long long)n_rows, name, st_schemes[k].name) && st_failures() <= 3) {
        for (int64_t i = 0; i < n; i++)
          st_check((words[i / 64] >> i % 64 & 1) == (expected[k][i / 64] >> i % 64 & 1),
                   "  byte %lld: %02x %02x %02x [%02x] %02x", (long long)i,
                   i > 2 ? text[offsets[0] + i - 3] : 0, i > 1 ? text[offsets[0] + i - 2] : 0,
                   i > 0 ? text[offsets[0] + i - 1] : 0, text[offsets[0] + i],
                   i + 1 < n ? text[offsets[0] + i + 1] : 0);
      }
      /* The same in steps of a few blocks. */
      sa_pretok_cursor c;
      int64_t got = 0, step;
      sa_pretok_begin(&c, numbers_of[k], text, offsets, n_rows);
      while ((step = sa_pretok_next(&c, words + got, 1 + (int64_t)st_below(3))) != 0) got += step;
      st_check(got == blocks && memcmp(words, expected[k], (size_t)blocks * 8) == 0,
               "%s, %lld bytes, %s: piece starts of %s in steps", what, (long long)n, name, st_schemes[k].name);
    }
    int64_t count = sa_backend_of(isa)->extract(expected[0], (size_t)blocks, 7, positions), at = 0, wrong = 0;
    for (int64_t i = 0; i < n; i++)
      if (expected[0][i / 64] >> i % 64 & 1) wrong |= at >= count || positions[at++] != i + 7;
    st_check(!wrong && at == count, "%s, %lld bytes, %s: positions", what, (long long)n, name);
    sa_classify(SA_ALPHABET_SUPERATOMS, &rows, tags, starts);
    st_check(memcmp(tags, expected_tags, (size_t)n) == 0, "%s, %lld bytes, %s: tags", what, (long long)n, name);
    sa_utf8_invalid(&rows, invalid);
    st_check(memcmp(invalid, expected_invalid, (size_t)n_rows) == 0, "%s, %lld bytes, %s: UTF-8", what,
             (long long)n, name);
  }
}

static const char *const snippets[] = {
    "a", "b", "s", "t", "LL", "Re", "S", "ll", "ve", "re", "d", "m", "l", "v", "r", "S", "'", "'", "'s", "'ll", "'re", " ", " ",
    "  ", "\t", "\n", "\r\n", "1", "23", "4567", ".", ",", "-", "/", "\xC3\xA9", "\xC3\x89", "\xD0\xB6", "\xD7\x90",
    "\xC2\xA0", "\xC2\x85", "\xE2\x80\x83", "\xE3\x80\x80", "\xE1\x9A\x80", "\xE4\xB8\xAD", "\xE6\x96\x87",
    "\xE9\xBF\xBF", "\xED\x9E\xA3", "\xEA\xB0\x80", "\xE3\x81\x82", "\xE3\x82\xA2", "\xE0\xA4\x95",
    "\xE0\xA5\x8D", "\xE2\x82\xAC", "\xC2\xB2", "\xE2\x85\xA7", "\xD9\xA3", "\xCC\x81", "\xF0\x9F\x98\x80",
    "\xF0\x9D\x9F\x98", "\xF0\xA0\x80\x80", "\xF0\x90\x90\x80", "\xE2\x80\x8D", "\xEF\xB8\x8F", "\xC5\xBF",
    "\xE3\x80\x87", "\xE2\xBA\x80", "\xF0\x96\xBF\xA2", "\xF0\x96\xBF\xB0", "\xE3\x83\xBB", "\xE3\x82\x99", "\xE3\x81\x80",
    "<|endoftext|>", "<|startoftext|>", "<|", "|>",
};
static const char *const broken[] = {
    "\x80", "\xBF", "\xA0", "\xC0\xA0", "\xC0\xA7", "\xC1\x81", "\xE0\x80\xA0", "\xF0\x80\x80\xA0", "\xF0\x80\x80\x8A",
    "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF5", "\xFF", "\xC3", "\xE4\xB8", "\xE4", "\xF0\x9F\x98", "\xF0\x9F",
    "\xF0", "\xE3\x80",
};

/* A character or two of each class that rules tell apart. */
static const char *const dense[] = {"A", "b", "\xE4\xB8\xAD", "\xCC\x81", "'", "s", "-", "/", "\n", " ", "1", "\t",
                                    "\xD9\xA3", "LL", "re", "\xC2\xA0", "\xE3\x80\x87", "\xE2\xBA\x80", "\xF0\x96\xBF\xB0",
                                    "\xE3\x83\xBB", "\xE3\x82\x99", "\xE3\x81\x82", "\x01", "<|endoftext|>", "<"};

/* Random text of up to `most` bytes (cut anywhere) from the snippets; how much of it is broken.
 * few: from eight snippets only, 2 = of the dense ones. */
static int64_t fill(uint8_t *out, int64_t most, uint32_t broken_per_mille, int few) {
  const char *choice[8];
  int64_t n = 0;
  for (int i = 0; i < 8; i++)
    choice[i] = few == 2 ? dense[st_below(sizeof dense / sizeof *dense)]
                         : snippets[st_below(sizeof snippets / sizeof *snippets)];
  while (n < most) {
    const char *s = st_below(1000) < broken_per_mille ? broken[st_below(sizeof broken / sizeof *broken)]
                    : few ? choice[st_below(8)]
                          : snippets[st_below(sizeof snippets / sizeof *snippets)];
    uint32_t repeat = st_below(40) == 0 ? 1 + st_below(st_below(4) ? 90 : 400) : 1;
    for (; repeat > 0; repeat--)
      for (const char *p = s; *p && n < most; p++) out[n++] = (uint8_t)*p;
  }
  return n;
}

/* Cuts [first, first + n) into rows; how dense: one cut in `every` bytes, 0 = one row. */
static int64_t cut(int64_t first, int64_t n, uint32_t every, int64_t *offsets) {
  int64_t rows = 0;
  offsets[0] = first;
  for (int64_t i = 0; i <= n && every; i++)
    while (rows < MOST / 2 - 2 && st_below(every) == 0) offsets[++rows] = first + i;
  offsets[++rows] = first + n;
  return rows;
}

static void one(int64_t lead, int64_t n, uint32_t per_mille, int few, uint32_t every, int at_end) {
  static int64_t offsets[MOST];
  st_guard g = st_guarded((size_t)(lead + n), at_end);
  memset(g.data, 0x98, (size_t)lead);  /* before the rows: must not matter */
  fill(g.data + lead, n, per_mille, few);
  int64_t rows = cut(lead, n, every, offsets);
  compare("random", g.data, offsets, rows);
  st_unguard(g);
}

static const uint32_t cuts[] = {0, 0, 100, 20, 5, 2};
static const uint32_t rates[] = {0, 0, 20, 200, 800};

static void spans_of(const char *text, int64_t n, const char *expected) {
  int64_t offsets[2] = {0, n};
  uint64_t words[8], want = 0;
  sa_rows rows = {(const uint8_t *)text, offsets, 64, 1, NULL, 0};
  for (int64_t i = 0; i < n; i++) want |= (uint64_t)(expected[i] == '|') << i;
  for (int32_t isa = 0; isa < SA_ISA_COUNT; isa++) {
    if (sa_isa_select(isa) != SA_OK) continue;
    sa_boundaries(0, &rows, words);
    st_check(words[0] == want, "\"%s\", %s", text, sa_isa_name(isa));
  }
}

void st_pretok(void) {
  for (int k = 0; k < st_n_schemes; k++) {
    numbers_of[k] = 0;
    while (numbers_of[k] < sa_scheme_count() && strcmp(sa_scheme_name(numbers_of[k]), st_schemes[k].name) != 0)
      numbers_of[k]++;
    st_check(numbers_of[k] < sa_scheme_count(), "no scheme %s", st_schemes[k].name);
  }
  st_check(sa_scheme_count() == st_n_schemes, "%d schemes, %d with a pattern here", sa_scheme_count(), st_n_schemes);
  /* Under each text, | where a piece starts. */
  spans_of("Hello world", 11, "|....|.....");
  spans_of("I'm  don't 'sa's", 16, "||.||...|.|.|.|.");
  spans_of("a\n\n b  ", 7, "||.|.|.");
  spans_of("'lla 've've", 11, "|..||.|.|..");
  spans_of("x1.y''s", 7, "|||||.|");
  spans_of("\xE4\xB8" "A", 3, "|.|");
  spans_of(" \xC0\xA0" "b", 4, "||.|");
  for (int64_t n = 0; n <= 300; n++)
    for (int64_t align = 0; align < 64; align++)
      one(align, n, rates[st_below(5)], (int)st_below(3), cuts[st_below(6)], 1);
  for (int64_t i = 0; i < 20000 * st_size; i++)
    one(st_below(3) ? 0 : st_below(200), st_below(st_below(20) ? 400 : MOST / 2), rates[st_below(5)],
        (int)st_below(3), cuts[st_below(6)], st_below(4) != 0);
}
