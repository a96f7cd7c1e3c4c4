/* Suite consumers: the planes that pretokenizer programs cut by, against slow walks over characters. */
#include <stdlib.h>
#include <string.h>

#include "consumers.h"
#include "selftest.h"

#define MAX_BYTES 700

/* Text dense in what the planes tell apart, whole characters and broken ones. */
static void random_text(uint8_t *text, int64_t n) {
  static const char *const parts[] = {"a", "B1", " ", "\n", "'", "/", "\xC3\xA9", "\xE2\x96\x81", "\xE4\xB8\xAD",
                                      "\xE3\x83\xBC", "\xD0\xB6", "\xF0\x9F\x98\x80", "\xCC\x81", "\xC0\xA0", "\xFF",
                                      "\xE4\xB8", "\x80", "\xED\xA0\x80", "\xF4\xBF\xBF\xBF", "        "};
  int64_t at = 0;
  const uint32_t kinds = 1 + st_below(20);
  while (at < n) {
    const char *part = parts[st_below(kinds)];
    for (; *part && at < n; part++) text[at++] = (uint8_t)*part;
  }
}

static void set(uint64_t *words, int64_t from, int64_t to) {
  for (; from < to; from++) words[from / 64] |= (uint64_t)1 << (from % 64);
}

static void check_planes(const uint8_t *text, const int64_t *offsets, int64_t n_rows) {
  const int64_t n = offsets[n_rows], n_words = (n + 63) / 64;
  const size_t size = (size_t)(n_words ? n_words : 1) * 8;
  uint64_t *want[7], *got[7];
  sa_scheme classes = {0};
  st_char *chars = malloc((size_t)(n + 1) * sizeof *chars);
  const uint32_t wanted = st_below(16);
  const uint8_t byte = n ? text[st_below((uint32_t)n)] : ' ';
  for (int i = 0; i < 7; i++) {
    want[i] = calloc(1, size);
    got[i] = calloc(1, size);
  }
  for (int i = 0; i < 32; i++) classes.bits[i] = (uint8_t)st_below(16);
  for (int i = 0; i < 128; i++) classes.ascii_bits[i] = classes.bits[sa_alphabet_of(0)->ascii[i]];
  for (int64_t r = 0; r < n_rows; r++) {
    const int64_t at = offsets[r], length = offsets[r + 1] - at;
    int64_t count = st_chars(SA_ALPHABET_SUPERATOMS, text + at, length, chars);
    uint32_t last = 0;
    for (int64_t i = 0; i < count; i++) {
      const int64_t start = at + chars[i].start, end = start + chars[i].width;
      for (int j = 0; j < 4; j++)
        if (wanted >> j & 1 && classes.bits[chars[i].tag] >> j & 1) set(want[j], start, end);
      set(want[4], start, start + 1);
    }
    count = st_chars(SA_ALPHABET_SCRIPTS, text + at, length, chars);
    if (length) set(want[5], at, at + 1);
    for (int64_t i = 0; i < count; i++) {
      const int64_t start = at + chars[i].start;
      if (chars[i].tag && chars[i].tag != last) {
        set(want[5], start, start + 1);
        last = chars[i].tag;
      }
      if (!last) set(want[6], start, start + chars[i].width);
    }
  }
  for (int32_t isa = 0; isa < SA_ISA_COUNT; isa++) {
    sa_stream s;
    if (sa_isa_select(isa) != SA_OK) continue;
    const struct sa_consumer_ops *ops = sa_consumer_ops_active();
    sa_stream_begin(&s, text, offsets, 64, n_rows);
    ops->classes(sa_alphabet_of(SA_ALPHABET_SUPERATOMS), &classes, wanted, &s, got[4], got);
    sa_stream_begin(&s, text, offsets, 64, n_rows);
    ops->scripts(sa_alphabet_of(SA_ALPHABET_SCRIPTS), &s, got[5], got[6]);
    for (int i = 0; i < 7; i++)
      st_check(memcmp(got[i], want[i], size) == 0, "consumers: plane %d, %s, %lld bytes", i, sa_isa_name(isa),
               (long long)n);
    sa_stream_begin(&s, text, offsets, 64, n_rows);
    ops->bytes(&s, byte, got[0]);
    for (int64_t i = 0; i < n; i++)
      if ((got[0][i / 64] >> (i % 64) & 1) != (text[i] == byte)) {
        st_check(0, "consumers: bytes %02x, %s", byte, sa_isa_name(isa));
        break;
      }
    memset(got[0], 0, size);
  }
  for (int i = 0; i < 7; i++) {
    free(want[i]);
    free(got[i]);
  }
  free(chars);
}

void st_consumers(void) {
  const int32_t before = sa_isa_active();
  for (int64_t k = 0; k < 3000 * st_size; k++) {
    const int64_t n = st_below(k % 4 ? 200 : MAX_BYTES);
    st_guard g = st_guarded((size_t)n, 1);
    int64_t offsets[6] = {0}, n_rows = 1 + st_below(5);
    random_text(g.data, n);
    for (int64_t i = 1; i <= n_rows; i++)
      offsets[i] = i == n_rows ? n : offsets[i - 1] + st_below((uint32_t)(n - offsets[i - 1] + 1));
    check_planes(g.data, offsets, n_rows);
    st_unguard(g);
  }
  sa_isa_select(before);
}
