/* The C self-test: every instruction set against slow routines written apart from the core. */
#ifndef SAPHIRA_SELFTEST_H
#define SAPHIRA_SELFTEST_H

#include <stddef.h>
#include <stdint.h>

/* ---- counting (selftest.c) ---- */

/* One check; on failure prints the text and the number of the failure. Returns ok. */
int st_check(int ok, const char *format, ...) __attribute__((format(printf, 2, 3)));
int64_t st_failures(void);

/* ---- randomness and memory (selftest.c) ---- */

uint64_t st_random(void);
uint32_t st_below(uint32_t n);  /* 0 .. n - 1 */
extern int64_t st_size;         /* how many times the usual number of random cases */

/* Room for n bytes that end at (or, at_end = 0, start at) an unmapped page; st_unguard frees it. */
typedef struct st_guard {
  uint8_t *map, *data;
  size_t bytes;
} st_guard;
st_guard st_guarded(size_t n, int at_end);
void st_unguard(st_guard g);

/* ---- slow routines (selftest_slow.c) ---- */

/* A character by the byte contract. */
typedef struct st_char {
  int64_t start, width;
  uint32_t tag;
  int literal;  /* the byte, if it is ASCII, else -1 */
  int64_t code; /* the code point, -1 for a byte that is in no character */
} st_char;

/* Characters of one segment; out: n of them at most. alphabet as in sa_classify. Returns how many. */
int64_t st_chars(int alphabet, const uint8_t *text, int64_t n, st_char *out);

/* Piece starts of one segment by GPT-2's pattern, tried alternative by alternative: starts[i] = 1. */
void st_split_gpt2(const st_char *chars, int64_t n_chars, uint8_t *starts);

/* Strict UTF-8, as the standard's table of byte sequences has it. */
int st_is_utf8(const uint8_t *text, int64_t n);

/* ---- split patterns (selftest_regex.c) ---- */

typedef struct st_regex st_regex;
st_regex *st_regex_new(const char *pattern);
/* Starts of the matches of one segment and of what lies between them: starts[i] = 1. */
void st_regex_split(const st_regex *r, const st_char *chars, int64_t n, uint8_t *starts);

/* ---- schemes (selftest_schemes.c) ---- */

typedef struct st_scheme {
  const char *name, *pattern;
  int flags;
} st_scheme;
extern const st_scheme st_schemes[];
extern const int st_n_schemes;
/* Piece starts of one segment by scheme k of st_schemes: starts[i] = 1. */
void st_split(int k, const st_char *chars, int64_t n_chars, uint8_t *starts);

/* ---- suites ---- */

void st_classify(void);
void st_pretok(void);
void st_normalize(void);
void st_encode(void);
void st_prepare(void);
void st_consumers(void);

#endif
