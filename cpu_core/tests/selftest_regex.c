/* A small backtracking matcher for the split patterns, over characters of the byte contract: the
 * patterns as the references have them, so that the mask algebra is tested against something that
 * shares no rule with it. Knows alternation, (?:..), (?i:..), (?!..), classes, ranges of letters, \p{..}, \s,
 * \S, $, greedy and possessive quantifiers. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "selftest.h"

enum kind { SET, GROUP, NOT_AHEAD, END };

typedef struct set {
  uint32_t tags;     /* bit t: characters with tag t */
  uint8_t bytes[64]; /* literal bytes */
  int n_bytes, negative, any_case;
} set;

typedef struct item item;
typedef struct sequence {
  item *items;
  int n;
} sequence;

struct item {
  enum kind kind;
  set chars;
  sequence *choices;
  int n_choices;
  int64_t min, max;
  int possessive;
};

struct st_regex {
  sequence *choices;
  int n_choices;
};

/* ---- reading a pattern ---- */

#define T(t) (1u << (t))
static const struct property {
  const char *name;
  uint32_t tags;
} properties[] = {
    {"L", T(7) | T(9) | T(11) | T(18) | T(21) | T(25)},
    {"Lu", T(7)}, {"Lt", T(7)}, {"Ll", T(9)},
    {"Lm", T(11) | T(18) | T(21) | T(25)}, {"Lo", T(11) | T(18) | T(21) | T(25)},
    {"M", T(13) | T(22) | T(26) | T(29)},
    {"N", T(6) | T(12) | T(19)},
    {"P", T(4) | T(8) | T(14) | T(24) | T(28) | T(30) | T(31)},
    {"S", T(5) | T(10) | T(16) | T(17) | T(23)},
    {"Han", T(17) | T(18) | T(19) | T(25) | T(28) | T(29)},
};
#define WHITE (T(1) | T(2) | T(3))

static void fail(const char *p) {
  fprintf(stderr, "selftest: cannot read the pattern at: %s\n", p);
  exit(2);
}

static const char *read_property(const char *p, set *s) {  /* behind \p */
  char name[8] = {0};
  for (int i = 0; i < 7 && p[1 + i] && p[1 + i] != '}'; i++) name[i] = p[1 + i];
  for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
    if (strcmp(name, properties[i].name) == 0) {
      s->tags |= properties[i].tags;
      return p + strlen(name) + 2;
    }
  fail(p);
  return p;
}

static const char *read_escape(const char *p, set *s) {  /* at the backslash */
  switch (p[1]) {
    case 'p': return read_property(p + 2, s);
    case 's': s->tags |= WHITE; break;
    case 'S': s->tags |= ~WHITE; break;
    case 'r': s->bytes[s->n_bytes++] = '\r'; break;
    case 'n': s->bytes[s->n_bytes++] = '\n'; break;
    default:
      if (!ispunct((unsigned char)p[1])) fail(p);
      s->bytes[s->n_bytes++] = (uint8_t)p[1];
  }
  return p + 2;
}

static const char *read_class(const char *p, set *s) {  /* behind the [ */
  if (*p == '^') {
    s->negative = 1;
    p++;
  }
  while (*p != ']') {
    if (p[0] == '&' && p[1] == '&' && p[2] == '[') {
      set other = {0};
      p = read_class(p + 3, &other);
      s->tags &= other.negative ? ~other.tags : other.tags;
    } else if (*p == '[') {
      p = read_class(p + 1, s);
    } else if (*p == '\\') {
      p = read_escape(p, s);
    } else if (isalpha((unsigned char)p[0]) && p[1] == '-') {
      for (int c = p[0]; c <= p[2]; c++) s->bytes[s->n_bytes++] = (uint8_t)c;
      p += 3;
    } else {
      s->bytes[s->n_bytes++] = (uint8_t)*p++;
    }
  }
  return p + 1;
}

static const char *read_choices(const char *p, int any_case, sequence **out, int *n);

static const char *read_sequence(const char *p, int any_case, sequence *out) {
  out->items = NULL;
  out->n = 0;
  while (*p && *p != '|' && *p != ')') {
    item it;
    memset(&it, 0, sizeof it);
    it.min = it.max = 1;
    it.chars.any_case = any_case;
    if (*p == '(') {
      if (strncmp(p, "(?!", 3) == 0) {
        it.kind = NOT_AHEAD;
        p = p[3] == '\\' ? read_escape(p + 3, &it.chars) : read_class(p + 4, &it.chars);
        if (*p++ != ')') fail(p);
      } else {
        int fold = strncmp(p, "(?i:", 4) == 0;
        if (!fold && strncmp(p, "(?:", 3) != 0) fail(p);
        it.kind = GROUP;
        p = read_choices(p + (fold ? 4 : 3), fold || any_case, &it.choices, &it.n_choices);
        if (*p++ != ')') fail(p);
      }
    } else if (*p == '[') {
      p = read_class(p + 1, &it.chars);
    } else if (*p == '\\') {
      p = read_escape(p, &it.chars);
    } else if (*p == '$') {
      it.kind = END;
      p++;
    } else {
      it.chars.bytes[it.chars.n_bytes++] = (uint8_t)*p++;
    }
    if (*p == '?' || *p == '*' || *p == '+') {
      it.min = *p == '+';
      it.max = *p == '?' ? 1 : INT64_MAX;
      p++;
      if (*p == '+') it.possessive = 1, p++;
    } else if (*p == '{') {
      char *end;
      it.min = strtoll(p + 1, &end, 10);
      it.max = *end == ',' ? strtoll(end + 1, &end, 10) : it.min;
      if (*end != '}') fail(p);
      p = end + 1;
      if (*p == '+') it.possessive = 1, p++;
    }
    out->items = realloc(out->items, (size_t)(out->n + 1) * sizeof it);
    out->items[out->n++] = it;
  }
  return p;
}

static const char *read_choices(const char *p, int any_case, sequence **out, int *n) {
  *out = NULL;
  *n = 0;
  for (;; p++) {
    *out = realloc(*out, (size_t)(*n + 1) * sizeof **out);
    p = read_sequence(p, any_case, &(*out)[(*n)++]);
    if (*p != '|') return p;
  }
}

st_regex *st_regex_new(const char *pattern) {
  st_regex *r = malloc(sizeof *r);
  const char *end = read_choices(pattern, 0, &r->choices, &r->n_choices);
  if (*end) fail(end);
  return r;
}

/* ---- matching ---- */

typedef struct rest {
  const item *items;
  int n;
  const struct rest *next;
} rest;

typedef struct subject {
  const st_char *chars;
  int64_t n;
} subject;

static int is_in(const set *s, const st_char *c) {
  int found = s->tags >> c->tag & 1;
  for (int i = 0; i < s->n_bytes && !found; i++) {
    int byte = s->bytes[i];
    found = c->literal == byte;
    if (s->any_case && isalpha(byte))
      found = (c->literal >= 0 && tolower(c->literal) == tolower(byte)) ||
              (tolower(byte) == 's' && c->code == 0x17F);
  }
  return found != s->negative;
}

/* Where the match of the rest ends, or -1. */
static int64_t match(const subject *s, const rest *r, int64_t at) {
  if (!r) return at;
  if (r->n == 0) return match(s, r->next, at);
  const item *it = r->items;
  rest then = {it + 1, r->n - 1, r->next};
  int64_t count = 0, end;
  switch (it->kind) {
    case END: return at == s->n ? match(s, &then, at) : -1;
    case NOT_AHEAD: return at < s->n && is_in(&it->chars, &s->chars[at]) ? -1 : match(s, &then, at);
    case GROUP:
      for (int i = 0; i < it->n_choices; i++) {
        rest inner = {it->choices[i].items, it->choices[i].n, &then};
        if ((end = match(s, &inner, at)) >= 0) return end;
      }
      return it->min == 0 ? match(s, &then, at) : -1;
    default:
      while (count < it->max && at + count < s->n && is_in(&it->chars, &s->chars[at + count])) count++;
      for (; count >= it->min; count--) {
        if ((end = match(s, &then, at + count)) >= 0) return end;
        if (it->possessive) return -1;
      }
      return -1;
  }
}

void st_regex_split(const st_regex *r, const st_char *chars, int64_t n, uint8_t *starts) {
  subject s = {chars, n};
  int gap = 0;
  for (int64_t at = 0, end; at < n; at = end) {
    if (!gap) starts[chars[at].start] = 1;
    end = -1;
    for (int i = 0; i < r->n_choices && end < 0; i++) {
      rest all = {r->choices[i].items, r->choices[i].n, NULL};
      end = match(&s, &all, at);
    }
    if (end > at && gap) starts[chars[at].start] = 1;
    gap = end <= at;  /* what lies between matches is a piece */
    if (gap) end = at + 1;
  }
}
