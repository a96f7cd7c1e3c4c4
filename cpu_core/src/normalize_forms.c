/* Normalization forms (UAX 15) and lower case. See normalize.h.
 *
 * Text is cut before every character that nothing before it can interact with; what lies between two cuts is
 * normalized by itself, and copied where its characters change in no way. */
#include <stdlib.h>

#include "normalization.h"
#include "normalize.h"
#include "utf8.h"

#define BLOCK 32            /* bytes looked at together: loops of this length become vector code */
#define FEW 64              /* characters that a cluster may have before its items go to the heap */
#define INSERTION 16        /* longer runs of marks are sorted by counting */

#define FIRST_MARK_LEAD 0xCC  /* lead byte of U+0300; the generator sees to it that below NFC changes nothing */

#define L_BASE 0x1100u
#define V_BASE 0x1161u
#define T_BASE 0x11A7u
#define S_BASE 0xAC00u
#define V_COUNT 21u
#define T_COUNT 28u
#define S_COUNT (19u * V_COUNT * T_COUNT)

static uint8_t flags_of(uint32_t c) { return sa_norm_flags_leaf[sa_norm_flags_index[c >> 6] * 64 + (c & 63)]; }

static const sa_norm_record *record_of(uint32_t c) {
  return &sa_norm_records[sa_norm_record_leaf[sa_norm_record_index[c >> 6] * 64 + (c & 63)]];
}

/* What a pair of characters composes to, 0 if to nothing. */
static uint32_t composite(uint32_t first, uint32_t second) {
  if (first - L_BASE < 19 && second - V_BASE < V_COUNT)
    return S_BASE + ((first - L_BASE) * V_COUNT + (second - V_BASE)) * T_COUNT;
  if (first - S_BASE < S_COUNT && (first - S_BASE) % T_COUNT == 0 && second - T_BASE - 1 < T_COUNT - 1)
    return first + (second - T_BASE);
  const uint64_t key = (uint64_t)first << 32 | second;
  int lo = 0, hi = SA_NORM_PAIRS;
  while (lo < hi) {
    const int mid = (lo + hi) / 2;
    if (sa_norm_pair[mid] < key) lo = mid + 1;
    else hi = mid;
  }
  return lo < SA_NORM_PAIRS && sa_norm_pair[lo] == key ? sa_norm_composite[lo] : 0;
}

static int composes(int form) { return form == SA_NORMALIZE_NFC || form == SA_NORMALIZE_NFKC; }
static int is_compat(int form) { return form == SA_NORMALIZE_NFKC || form == SA_NORMALIZE_NFKD; }
static uint8_t change_flag(int form) {
  static const uint8_t flag[] = {SA_NORM_NFC, SA_NORM_NFD, SA_NORM_NFKC, SA_NORM_NFKD};
  return flag[form];
}

typedef struct found {
  uint32_t point;
  int width;
  uint8_t flags;
} found;

/* High bits of the bytes of a little-endian word that are at least `below`, which is 0x80 or more. */
static uint64_t over(const uint8_t *p, uint8_t below) {
  const uint64_t each = 0x0101010101010101u;
  uint64_t w;
  memcpy(&w, p, 8);
  return ((w & 0x7F * each) + (uint64_t)(0x100 - below) * each) & w & 0x80 * each;
}

/* The first byte at or after `at` that is at least `below`, n if there is none. */
static int64_t skip_below(const uint8_t *text, int64_t at, int64_t n, uint8_t below) {
  uint64_t high;
  for (int near = 0; near < BLOCK / 8 && at + 8 <= n; near++, at += 8)
    if ((high = over(text + at, below)) != 0) return at + sa_ctz64(high) / 8;
  for (; at + BLOCK <= n; at += BLOCK) {
    uint8_t any = 0;
    for (int i = 0; i < BLOCK; i++) any |= text[at + i] >= below;
    if (any) break;
  }
  for (; at + 8 <= n; at += 8)
    if ((high = over(text + at, below)) != 0) return at + sa_ctz64(high) / 8;
  while (at < n && text[at] < below) at++;
  return at;
}

/* The first valid character at or after `at` that has one of these flags, n if there is none. No character
 * whose lead byte is less than `below` has one. */
static int64_t next_flagged(const uint8_t *text, int64_t at, int64_t n, uint8_t wanted, uint8_t below, found *f) {
  while ((at = skip_below(text, at, n, below)) < n) {
    do {
      f->width = sa_char_at(text, at, n, &f->point);
      if (f->width) {
        f->flags = flags_of(f->point);
        if (f->flags & wanted) return at;
      }
      at += f->width ? f->width : 1;
    } while (at < n && text[at] >= below);
  }
  return n;
}

/* Class of the last mark in a character's decomposition: a mark of a lower class that follows the character goes
 * before that one, and may compose with what is left. */
static uint8_t last_class(uint32_t c) {
  const sa_norm_record *r = record_of(c);
  return r->n_canonical ? record_of(sa_norm_pool[r->canonical + r->n_canonical - 1])->ccc : 0;
}

/* Exact but where a mark follows a composed character whose last mark is of a higher class. */
int sa_form_unchanged(int form, const uint8_t *text, int64_t n) {
  const uint8_t changes = change_flag(form);
  const uint8_t wanted = changes | SA_NORM_MARK | (composes(form) ? SA_NORM_BACK : 0);
  const uint8_t below = form == SA_NORMALIZE_NFC ? FIRST_MARK_LEAD : 0x80;
  uint32_t starter = 0;     /* the character that `f` would compose with; 0: none, for U+0000 never does */
  uint8_t last = 0;         /* class of the mark before f; 0 if the starter is before it */
  int64_t at = 0, live = -1; /* where starter and last hold */
  found f;
  while ((at = next_flagged(text, at, n, wanted, below, &f)) < n) {
    if (f.flags & changes) return 0;
    if (at != live) {
      last = 0;
      if (at == 0 || !sa_char_before(text, 0, at, &starter)) starter = 0;
    }
    const uint8_t ccc = f.flags & SA_NORM_MARK ? record_of(f.point)->ccc : 0;
    if (ccc && ccc < last) return 0;
    if (composes(form) && f.flags & SA_NORM_BACK &&
        ((ccc && ccc < last_class(starter)) || ((last == 0 || last < ccc) && composite(starter, f.point))))
      return 0;
    if (ccc == 0) starter = f.point;
    last = ccc;
    live = at += f.width;
  }
  return 1;
}

/* ---- one cluster ---- */

/* A character on its way. change: 1 it is added, 0 it replaces one, -k it replaces one and k more go. */
typedef struct item {
  uint32_t point;
  int16_t change;
  uint8_t ccc;
} item;

typedef struct cluster {
  item few[FEW], *items, *sorted;
  int64_t n, capacity;      /* of items and, where it is not NULL, of sorted */
} cluster;

static int push(cluster *c, uint32_t point, int16_t change, uint8_t ccc) {
  if (c->n == c->capacity) {
    const int64_t capacity = 4 * c->capacity;
    item *grown = malloc((size_t)capacity * sizeof *grown);
    if (!grown) return 0;
    memcpy(grown, c->items, (size_t)c->n * sizeof *grown);
    if (c->items != c->few) free(c->items);
    free(c->sorted);
    c->sorted = NULL;
    c->items = grown;
    c->capacity = capacity;
  }
  c->items[c->n++] = (item){point, change, ccc};
  return 1;
}

static int decompose(cluster *c, int compat, uint32_t point) {
  if (point - S_BASE < S_COUNT) {
    const uint32_t s = point - S_BASE, t = s % T_COUNT;
    return push(c, L_BASE + s / (V_COUNT * T_COUNT), 0, 0) &&
           push(c, V_BASE + s % (V_COUNT * T_COUNT) / T_COUNT, 1, 0) && (t == 0 || push(c, T_BASE + t, 1, 0));
  }
  const sa_norm_record *r = record_of(point);
  const int n = compat ? r->n_compat : r->n_canonical;
  if (n == 0) return push(c, point, 0, r->ccc);
  const uint32_t *to = sa_norm_pool + (compat ? r->compat : r->canonical);
  for (int i = 0; i < n; i++)
    if (!push(c, to[i], i > 0, record_of(to[i])->ccc)) return 0;
  return 1;
}

/* Sorts a run of marks by class, equal ones as they stand. */
static int sort_marks(cluster *c, item *marks, int64_t n) {
  if (n <= INSERTION) {
    for (int64_t k = 1; k < n; k++) {
      const item moving = marks[k];
      int64_t to = k;
      for (; to > 0 && marks[to - 1].ccc > moving.ccc; to--) marks[to] = marks[to - 1];
      marks[to] = moving;
    }
    return 1;
  }
  if (!c->sorted && !(c->sorted = malloc((size_t)c->capacity * sizeof *c->sorted))) return 0;
  int64_t place[257] = {0};
  for (int64_t k = 0; k < n; k++) place[marks[k].ccc + 1]++;
  for (int i = 1; i < 257; i++) place[i] += place[i - 1];
  for (int64_t k = 0; k < n; k++) c->sorted[place[marks[k].ccc]++] = marks[k];
  memcpy(marks, c->sorted, (size_t)n * sizeof *marks);
  return 1;
}

static int order(cluster *c) {
  for (int64_t k = 0; k < c->n;) {
    int64_t end = k;
    while (end < c->n && c->items[end].ccc) end++;
    if (!sort_marks(c, c->items + k, end - k)) return 0;
    k = end + 1;
  }
  return 1;
}

static void compose(cluster *c) {
  item *const items = c->items;
  int64_t n = 0, starter = -1;
  uint8_t last = 0; /* class of the mark that was kept last, 0 right after the starter */
  for (int64_t k = 0; k < c->n; k++) {
    const item it = items[k];
    const uint32_t made = starter >= 0 && (last == 0 || last < it.ccc) ? composite(items[starter].point, it.point) : 0;
    if (made) {
      items[starter].point = made;
      items[starter].change = (int16_t)(items[starter].change + it.change - 1);
      continue;
    }
    if (it.ccc == 0) starter = n;
    last = it.ccc;
    items[n++] = it;
  }
  c->n = n;
}

static int emit(const cluster *c, const sa_source *source, int64_t from, sa_target *target) {
  if (!sa_target_reserve(target, 4 * c->n)) return 0;
  int64_t at = from; /* the source character to be replaced next */
  uint32_t ignored;
  for (int64_t k = 0; k < c->n; k++) {
    const item it = c->items[k];
    const int64_t first = target->text->n;
    target->text->n += sa_put_char(target->text->data + first, it.point);
    if (!target->spans) continue;
    const int64_t *span = source->spans + 2 * (it.change > 0 ? at - 1 : at);
    for (int64_t i = first; i < target->text->n; i++) memcpy(target->spans->spans + 2 * i, span, 2 * sizeof *span);
    target->spans->n = target->text->n;
    for (int gone = it.change > 0 ? 0 : 1 - it.change; gone > 0; gone--)
      at += sa_char_at(source->text, at, source->n, &ignored);
  }
  return 1;
}

/* Characters [from, to), all valid. */
static int run_cluster(int form, cluster *c, const sa_source *source, int64_t from, int64_t to, sa_target *target) {
  uint32_t point = 0;
  c->n = 0;
  for (int64_t at = from; at < to;) {
    at += sa_char_at(source->text, at, to, &point);
    if (!decompose(c, is_compat(form), point)) return 0;
  }
  if (!order(c)) return 0;
  if (composes(form)) compose(c);
  return emit(c, source, from, target);
}

int32_t sa_form_run(int form, const sa_source *source, sa_target *target) {
  const uint8_t *text = source->text;
  const int64_t n = source->n;
  const uint8_t wanted = change_flag(form) | SA_NORM_INNER; /* INNER includes BACK and MARK */
  const uint8_t below = form == SA_NORMALIZE_NFC ? FIRST_MARK_LEAD : 0x80;
  cluster c;
  c.items = c.few, c.sorted = NULL, c.n = 0, c.capacity = FEW;
  int64_t at = 0, done = 0;
  int ok = 1;
  found f;
  while (ok && (at = next_flagged(text, at, n, wanted, below, &f)) < n) {
    int64_t from = at;
    uint32_t point;
    if (f.flags & SA_NORM_INNER && at > done) from -= sa_char_before(text, done, at, &point);
    at += f.width;
    for (int width; at < n && (width = sa_char_at(text, at, n, &point)) != 0; at += width)
      if (!(flags_of(point) & SA_NORM_INNER)) break;
    ok = sa_target_copy(target, source, done, from) && run_cluster(form, &c, source, from, at, target);
    done = at;
  }
  ok = ok && sa_target_copy(target, source, done, n);
  if (c.items != c.few) free(c.items);
  free(c.sorted);
  return ok ? SA_OK : SA_ERR_NOMEM;
}

/* ---- lower case ---- */

static int32_t lower_delta(uint32_t c) { return sa_lower_delta[sa_lower_leaf[sa_lower_index[c >> 6] * 64 + (c & 63)]]; }

int sa_lower_unchanged(const uint8_t *text, int64_t n) {
  int64_t at = 0;
  while (at < n) {
    for (; at + BLOCK <= n; at += BLOCK) {
      uint8_t stop = 0;
      for (int i = 0; i < BLOCK; i++) {
        const uint8_t c = text[at + i];
        stop |= (uint8_t)((uint8_t)(c - 'A') < 26) | (c >= 0x80);
      }
      if (stop) break;
    }
    for (int64_t plain = 0; at < n && plain < BLOCK;) {
      uint32_t point;
      const int width = sa_char_at(text, at, n, &point);
      if (width && lower_delta(point)) return 0;
      at += width ? width : 1;
      plain = width == 1 ? plain + 1 : 0;
    }
  }
  return 1;
}

int32_t sa_lower_run(const sa_source *source, sa_target *target) {
  const uint8_t *text = source->text;
  const int64_t n = source->n;
  /* At most three bytes for two (U+023A, U+0130). */
  if (!sa_target_reserve(target, n + n / 2 + 4)) return SA_ERR_NOMEM;
  uint8_t *const out = target->text->data;
  int64_t to = target->text->n, at = 0;
  while (at < n) {
    int64_t from = at;
    uint8_t over = 0;
    for (; at + BLOCK <= n; at += BLOCK) {
      for (int i = 0; i < BLOCK; i++) over |= text[at + i];
      if (over & 0x80) break;
      for (int i = 0; i < BLOCK; i++) {
        const uint8_t c = text[at + i];
        out[to + at - from + i] = (uint8_t)(c + ((uint8_t)(c - 'A') < 26 ? 32 : 0));
      }
    }
    if (target->spans && at > from)
      memcpy(target->spans->spans + 2 * to, source->spans + 2 * from, (size_t)(at - from) * 2 * sizeof(int64_t));
    to += at - from;
    for (int64_t plain = 0; at < n && plain < BLOCK;) {
      uint32_t point;
      const int width = sa_char_at(text, at, n, &point);
      int made = 1;
      if (!width) {
        out[to] = text[at];
      } else if (point == SA_LOWER_LONG) {
        made = sa_put_char(out + to, SA_LOWER_LONG_FIRST);
        made += sa_put_char(out + to + made, SA_LOWER_LONG_SECOND);
      } else {
        made = sa_put_char(out + to, (uint32_t)((int32_t)point + lower_delta(point)));
      }
      if (target->spans)
        for (int i = 0; i < made; i++)
          memcpy(target->spans->spans + 2 * (to + i), source->spans + 2 * at, 2 * sizeof(int64_t));
      to += made;
      at += width ? width : 1;
      plain = width == 1 ? plain + 1 : 0;
    }
  }
  target->text->n = to;
  if (target->spans) target->spans->n = to;
  return SA_OK;
}
