/* Stage normalize: laws that hold for every text, on memory that ends where the text does. */
#include <stdlib.h>
#include <string.h>

#include "saphira.h"
#include "selftest.h"

#define LONGEST 200

static const struct range { uint32_t first, last; } kinds[] = {
    {0x20, 0x7E}, {0x41, 0x5A}, {0x09, 0x0D}, {0xA0, 0x24F}, {0x300, 0x36F}, {0x316, 0x334}, {0x370, 0x52F},
    {0x591, 0x6FF}, {0x900, 0xDFF}, {0xE00, 0xFFF}, {0x1100, 0x11FF}, {0x1E00, 0x1FFF}, {0x2000, 0x206F},
    {0x3040, 0x30FF}, {0x4E00, 0x4EFF}, {0xAC00, 0xD7A3}, {0xF900, 0xFDFF}, {0xFF00, 0xFFEE}, {0x10000, 0x110FF},
    {0x1D150, 0x1D1FF}, {0x2F800, 0x2FA1D}, {0x0, 0x10FFFF},
};

static int64_t put(uint8_t *to, uint32_t c) {
  if (c < 0x80) return to[0] = (uint8_t)c, 1;
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  for (int i = more; i > 0; i--, c >>= 6) to[i] = (uint8_t)(0x80 | (c & 0x3F));
  to[0] = (uint8_t)((0xF00 >> more) | c);
  return more + 1;
}

/* Characters of one kind or all, some of them not valid ones (surrogates), with or without wrong bytes. */
static int64_t random_text(uint8_t *text) {
  const uint32_t n_kinds = sizeof kinds / sizeof *kinds, kind = st_below(2 * n_kinds), wrong = st_below(3);
  const int64_t wanted = st_below(st_below(4) ? 24 : LONGEST - 4);
  int64_t n = 0;
  while (n < wanted) {
    const struct range r = kinds[kind < n_kinds && st_below(4) ? kind : st_below(n_kinds)];
    n += put(text + n, r.first + st_below(r.last - r.first + 1));
    if (wrong == 0 && st_below(6) == 0) text[n - 1] = (uint8_t)st_random();
  }
  return n;
}

static sa_normalizer *program(int64_t n, const uint8_t *steps, const char *pattern, const char *content) {
  int64_t offsets[2 * 8 + 1] = {0};
  uint8_t bytes[256];
  int64_t at = 0;
  char error[64];
  for (int64_t i = 0; i < n; i++) {
    const int has_pattern = steps[i] == SA_NORMALIZE_REPLACE;
    const int has_content = has_pattern || steps[i] == SA_NORMALIZE_PREPEND || steps[i] == SA_NORMALIZE_REPLACE_SPACES;
    for (const char *p = pattern; has_pattern && *p; p++) bytes[at++] = (uint8_t)*p;
    offsets[2 * i + 1] = at;
    for (const char *p = content; has_content && *p; p++) bytes[at++] = (uint8_t)*p;
    offsets[2 * i + 2] = at;
  }
  const sa_normalizer_plan plan = {n, steps, offsets, bytes};
  sa_normalizer *z = sa_normalizer_new(&plan, error, sizeof error);
  st_check(z != NULL, "normalize: %s", z ? "" : error);
  return z;
}

static int same(const sa_buffer *a, const uint8_t *b, int64_t n) {
  return a->n == n && (n == 0 || memcmp(a->data, b, (size_t)n) == 0);
}

/* form after before gives what form alone gives. */
static void absorbs(sa_normalizer *const *forms, int form, int before, const uint8_t *text, int64_t n) {
  sa_buffer alone = {0}, first = {0}, both = {0};
  sa_normalizer_run(forms[form], text, n, &alone, NULL);
  sa_normalizer_run(forms[before], text, n, &first, NULL);
  sa_normalizer_run(forms[form], first.data, first.n, &both, NULL);
  st_check(same(&alone, both.data, both.n), "normalize: form %d after form %d, %lld bytes", form, before, (long long)n);
  sa_buffer_release(&alone), sa_buffer_release(&first), sa_buffer_release(&both);
}

static void check(const sa_normalizer *z, int kept, const uint8_t *text, int64_t n) {
  static sa_buffer out, again;
  static sa_alignment spans;
  st_check(sa_normalizer_run(z, text, n, &out, NULL) == SA_OK, "normalize: status");
  st_check(sa_normalizer_run(z, text, n, &again, &spans) == SA_OK, "normalize: status with spans");
  st_check(same(&out, again.data, again.n), "normalize: another text with spans");
  st_check(spans.n == out.n, "normalize: %lld spans of %lld bytes", (long long)spans.n, (long long)out.n);
  int inside = 1;
  for (int64_t i = 0; i < spans.n; i++)
    inside &= spans.spans[2 * i] >= 0 && spans.spans[2 * i] < spans.spans[2 * i + 1] && spans.spans[2 * i + 1] <= n;
  st_check(inside, "normalize: a span outside the text");
  if (sa_normalizer_quick(z, text, n)) st_check(same(&out, text, n), "normalize: quick of %lld bytes", (long long)n);
  if (!kept) return;
  sa_normalizer_run(z, out.data, out.n, &again, NULL);
  st_check(same(&out, again.data, again.n), "normalize: twice is not once, %lld bytes", (long long)n);
}

static void literal(int kind, const char *text, const char *pattern, const char *content, const char *expected) {
  const uint8_t step = (uint8_t)kind;
  sa_normalizer *z = program(1, &step, pattern, content);
  sa_buffer out = {0};
  sa_normalizer_run(z, (const uint8_t *)text, (int64_t)strlen(text), &out, NULL);
  st_check(same(&out, (const uint8_t *)expected, (int64_t)strlen(expected)), "normalize: step %d of %s", kind, text);
  sa_buffer_release(&out);
  sa_normalizer_free(z);
}

static void refused(uint8_t kind, const char *pattern, const char *content) {
  const int64_t offsets[3] = {0, (int64_t)strlen(pattern), (int64_t)(strlen(pattern) + strlen(content))};
  char bytes[16], error[64] = "";
  strcpy(bytes, pattern), strcat(bytes, content);
  const sa_normalizer_plan plan = {1, &kind, offsets, (const uint8_t *)bytes};
  sa_normalizer *z = sa_normalizer_new(&plan, error, sizeof error);
  st_check(z == NULL && error[0], "normalize: step %d is not refused", kind);
  sa_normalizer_free(z);
}

static void megabyte(const sa_normalizer *z, int kept, const char *unit) {
  const int64_t width = (int64_t)strlen(unit), n = (1 << 20) / width * width;
  uint8_t *text = malloc((size_t)n);
  for (int64_t i = 0; i < n; i++) text[i] = (uint8_t)unit[i % width];
  check(z, kept, text, n);
  free(text);
}

void st_normalize(void) {
  literal(SA_NORMALIZE_NFC, "e\xCC\x81", "", "", "\xC3\xA9");
  literal(SA_NORMALIZE_NFD, "\xEA\xB0\x81", "", "", "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8");
  literal(SA_NORMALIZE_NFC, "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8", "", "", "\xEA\xB0\x81");
  literal(SA_NORMALIZE_NFC, "e\xFF\xCC\x81", "", "", "e\xFF\xCC\x81");
  literal(SA_NORMALIZE_NFKD, "\xEF\xAC\x81\xC2\xB2", "", "", "fi2");
  literal(SA_NORMALIZE_LOWERCASE, "A\xC4\xB0\xFFZ", "", "", "ai\xCC\x87\xFFz");
  literal(SA_NORMALIZE_REPLACE, "aaa", "aa", "b", "ba");
  literal(SA_NORMALIZE_REPLACE_SPACES, " a \t\xE3\x80\x80\xFF ", "", "_", "_a_\xFF_");
  literal(SA_NORMALIZE_STRIP_LEFT, " \xC2\xA0\xFF ", "", "", "\xFF ");
  literal(SA_NORMALIZE_STRIP_RIGHT, " a\xC2\xA0\n", "", "", " a");
  literal(SA_NORMALIZE_PREPEND, "a", "", "__", "__a");
  literal(SA_NORMALIZE_PREPEND, "", "", "__", "");
  refused(SA_NORMALIZE_COUNT, "", "");
  refused(SA_NORMALIZE_REPLACE, "", "x");
  refused(SA_NORMALIZE_REPLACE, "\xFF", "x");
  refused(SA_NORMALIZE_PREPEND, "", "\xC3");

  sa_normalizer *one[SA_NORMALIZE_COUNT];
  for (uint8_t kind = 0; kind < SA_NORMALIZE_COUNT; kind++) one[kind] = program(1, &kind, " ", "\xE2\x96\x81");
  static const uint8_t clip[] = {SA_NORMALIZE_NFC, SA_NORMALIZE_REPLACE_SPACES, SA_NORMALIZE_LOWERCASE};
  static const uint8_t many[] = {SA_NORMALIZE_NFKD, SA_NORMALIZE_REPLACE, SA_NORMALIZE_STRIP_LEFT,
                                 SA_NORMALIZE_LOWERCASE, SA_NORMALIZE_PREPEND, SA_NORMALIZE_NFC};
  sa_normalizer *programs[] = {program(3, clip, "", " "), program(6, many, "a", ""), program(0, clip, "", "")};

  uint8_t text[LONGEST + 8];
  for (int64_t i = 0; i < 20000 * st_size; i++) {
    const int64_t n = random_text(text);
    st_guard g = st_guarded((size_t)n, (int)(i & 1));
    if (n) memcpy(g.data, text, (size_t)n);
    for (int kind = 0; kind < SA_NORMALIZE_COUNT; kind++) check(one[kind], kind != SA_NORMALIZE_PREPEND, g.data, n);
    for (int k = 0; k < 3; k++) check(programs[k], k == 2, g.data, n); /* the others may have more to do */
    st_unguard(g);
    absorbs(one, SA_NORMALIZE_NFC, SA_NORMALIZE_NFD, text, n);
    absorbs(one, SA_NORMALIZE_NFD, SA_NORMALIZE_NFC, text, n);
    absorbs(one, SA_NORMALIZE_NFKC, SA_NORMALIZE_NFD, text, n);
    absorbs(one, SA_NORMALIZE_NFKC, SA_NORMALIZE_NFKD, text, n);
    absorbs(one, SA_NORMALIZE_NFKD, SA_NORMALIZE_NFKC, text, n);
  }
  static const char *const units[] = {"\xE2\x83\x90\xCC\x96", "\xCC\xB4", "\xE1\x85\xA1",
                                      "\xEF\xB7\xBA",         "\xC4\xB0", "\xFF"};
  for (int kind = 0; kind < SA_NORMALIZE_COUNT; kind++)
    for (int k = 0; k < 6; k++) megabyte(one[kind], kind != SA_NORMALIZE_PREPEND, units[k]);
  for (int kind = 0; kind < SA_NORMALIZE_COUNT; kind++) sa_normalizer_free(one[kind]);
  for (int k = 0; k < 3; k++) sa_normalizer_free(programs[k]);
}
