/* Stage bpe: the three ways of merging, chosen by a piece's length and the model. See bpe.h. */
#include "bpe.h"

#include <stdlib.h>
#include <string.h>

#include "hotpath.h"

#define WINDOW_BYTES 4096
#define JOIN_TRIES 8          /* token boundaries tried before the window doubles */
#define NONE UINT32_MAX

/* ---- long pieces ----
 * Symbols are a doubly linked list over positions 0..n-1 of the window; rank[p] is the rank of the pair that
 * starts at p, SA_NO_RANK where there is none or p was merged away. */
typedef struct window {
  uint32_t *ids, *rank, *prev, *next;
  uint32_t *entry_at, *entry_next;  /* pool of list entries, or the heap */
  uint64_t *heap;
  int64_t n_entries;
} window;

static int reserve(sa_merge_scratch *s, int64_t symbols, int64_t n_ranks) {
  if (symbols > s->symbols) {
    free(s->memory);
    s->symbols = 0;
    /* four arrays of symbols, then three entries of 8 bytes for each symbol */
    s->memory = malloc((size_t)symbols * (4 * sizeof(uint32_t) + 3 * sizeof(uint64_t)));
    if (!s->memory) return 0;
    s->symbols = symbols;
  }
  if (n_ranks > s->n_ranks) {
    const int64_t words = (n_ranks + 63) / 64;
    free(s->heads), free(s->busy), free(s->busy_words);
    s->n_ranks = 0;
    s->heads = malloc((size_t)n_ranks * sizeof *s->heads);
    s->busy = calloc((size_t)words, sizeof *s->busy);
    s->busy_words = calloc((size_t)(words + 63) / 64, sizeof *s->busy_words);
    if (!s->heads || !s->busy || !s->busy_words) return 0;
    s->n_ranks = n_ranks;
  }
  return 1;
}

static window window_of(const sa_merge_scratch *s) {
  window w;
  const int64_t n = s->symbols;
  w.heap = s->memory;
  w.entry_at = s->memory;
  w.entry_next = w.entry_at + 3 * n;
  w.ids = w.entry_next + 3 * n;
  w.rank = w.ids + n;
  w.prev = w.rank + n;
  w.next = w.prev + n;
  w.n_entries = 0;
  return w;
}

/* Joins the pair at p into one symbol; the ranks around it are the caller's to renew. */
static void join(const sa_bpe_tables *t, window *w, uint32_t p) {
  const uint32_t q = w->next[p];
  w->ids[p] = t->result[w->rank[p]];
  w->next[p] = w->next[q];
  if (w->next[q] != NONE) w->prev[w->next[q]] = p;
  w->rank[q] = SA_NO_RANK;
}

static uint32_t rank_at(const sa_bpe_tables *t, const window *w, uint32_t p) {
  return w->next[p] == NONE ? SA_NO_RANK : sa_pair_rank(t, w->ids[p], w->ids[w->next[p]]);
}

/* (Fetching the pairs of the next merges of a list ahead of time was tried: no gain, lists are short.)
 *
 * Monotone models: lists of positions by rank, emptied in ascending order of rank. Each pair enters one list
 * once, so the cost is linear. Positions in a list come in no order; that matters only where occurrences of a
 * pair overlap, which takes equal halves: those are merged run by run, from the run's left end. */
static void list_push(sa_merge_scratch *s, window *w, uint32_t rank, uint32_t p) {
  const uint64_t bit = (uint64_t)1 << (rank & 63);
  const int64_t e = w->n_entries++;
  w->entry_at[e] = p;
  w->entry_next[e] = s->busy[rank >> 6] & bit ? s->heads[rank] : NONE;
  s->heads[rank] = (uint32_t)e;
  s->busy[rank >> 6] |= bit;
  s->busy_words[rank >> 12] |= (uint64_t)1 << (rank >> 6 & 63);
}

static void renew(const sa_bpe_tables *t, sa_merge_scratch *s, window *w, uint32_t p) {
  w->rank[p] = rank_at(t, w, p);
  if (w->rank[p] != SA_NO_RANK) list_push(s, w, w->rank[p], p);
}

static void merge_at(const sa_bpe_tables *t, sa_merge_scratch *s, window *w, uint32_t p) {
  join(t, w, p);
  s->steps++;
  if (w->prev[p] != NONE) renew(t, s, w, w->prev[p]);
  renew(t, s, w, p);
}

static void merge_rank(const sa_bpe_tables *t, sa_merge_scratch *s, window *w, uint32_t rank,
                       uint32_t entry) {
  for (; entry != NONE; entry = w->entry_next[entry]) {
    uint32_t p = w->entry_at[entry];
    if (w->rank[p] != rank) continue; /* merged since */
    while (w->prev[p] != NONE && w->rank[w->prev[p]] == rank) p = w->prev[p];
    /* a run x x x x: the pairs at its 1st, 3rd, … symbol; each merge takes the next symbol with it */
    while (p != NONE && w->rank[p] == rank) {
      merge_at(t, s, w, p);
      p = w->next[p];
    }
  }
}

static void merge_lists(const sa_bpe_tables *t, sa_merge_scratch *s, window *w, uint32_t n) {
  for (uint32_t p = n; p-- > 0;)
    if (w->rank[p] != SA_NO_RANK) list_push(s, w, w->rank[p], p);
  const int64_t words = (t->n_ranks + 4095) / 4096;
  for (int64_t i = 0; i < words; i++)
    while (s->busy_words[i]) {
      const int64_t word = i * 64 + __builtin_ctzll(s->busy_words[i]);
      while (s->busy[word]) {
        const uint32_t rank = (uint32_t)(word * 64 + __builtin_ctzll(s->busy[word]));
        s->busy[word] &= s->busy[word] - 1;
        merge_rank(t, s, w, rank, s->heads[rank]);
      }
      s->busy_words[i] &= ~((uint64_t)1 << (word & 63));
    }
}

/* Any model: a heap of (rank, position), which is the definition itself, at n log n. */
static void heap_push(window *w, uint64_t key) {
  int64_t i = w->n_entries++;
  for (; i > 0 && w->heap[(i - 1) / 2] > key; i = (i - 1) / 2) w->heap[i] = w->heap[(i - 1) / 2];
  w->heap[i] = key;
}

static uint64_t heap_pop(window *w) {
  const uint64_t top = w->heap[0], last = w->heap[--w->n_entries];
  int64_t i = 0;
  for (int64_t child = 1; child < w->n_entries; child = 2 * i + 1) {
    if (child + 1 < w->n_entries && w->heap[child + 1] < w->heap[child]) child++;
    if (w->heap[child] >= last) break;
    w->heap[i] = w->heap[child];
    i = child;
  }
  w->heap[i] = last;
  return top;
}

static void merge_heap(const sa_bpe_tables *t, sa_merge_scratch *s, window *w, uint32_t n, int64_t stop) {
  int64_t symbols = n;
  for (uint32_t p = 0; p < n; p++)
    if (w->rank[p] != SA_NO_RANK) heap_push(w, (uint64_t)w->rank[p] << 32 | p);
  while (w->n_entries && symbols > stop) {
    const uint64_t top = heap_pop(w);
    const uint32_t p = (uint32_t)top;
    if (w->rank[p] != top >> 32) continue;
    join(t, w, p);
    symbols--;
    s->steps++;
    const uint32_t around[2] = {w->prev[p], p};
    for (int k = 0; k < 2; k++) {
      const uint32_t q = around[k];
      if (q == NONE) continue;
      w->rank[q] = rank_at(t, w, q);
      if (w->rank[q] != SA_NO_RANK) heap_push(w, (uint64_t)w->rank[q] << 32 | q);
    }
  }
}

/* Symbols and ranks of n >= 1 bytes. */
static void load(const sa_bpe_tables *t, const uint8_t *bytes, int64_t n, int ends, uint32_t *ids, uint32_t *rank) {
  for (int64_t i = 0; i < n; i++) ids[i] = t->byte_ids[bytes[i]];
  for (int64_t i = 0; i + 1 < n; i++) rank[i] = t->byte_pair_rank[bytes[i] << 8 | bytes[i + 1]];
  rank[n - 1] = SA_NO_RANK;
  if (!ends || !t->has_ends) return;
  ids[n - 1] = t->byte_ids_end[bytes[n - 1]];
  if (n > 1) rank[n - 2] = sa_pair_rank(t, ids[n - 2], ids[n - 1]);
}

int64_t sa_bpe_window(const sa_bpe_tables *t, sa_merge_scratch *s, const uint8_t *bytes, int64_t n,
                      int ends, int64_t stop, uint32_t *out) {
  if (n <= SA_SHORT_SYMBOLS) {
    sa_merge_word word;
    word.bytes = bytes;
    word.n = (int32_t)n;
    sa_hot()->merge(t, &word, 1, ends, stop, &s->steps);
    memcpy(out, word.symbol, (size_t)word.count * sizeof *out);
    return word.count;
  }
  if (!reserve(s, n < WINDOW_BYTES ? WINDOW_BYTES : n, t->n_ranks)) return -1;
  window w = window_of(s);
  load(t, bytes, n, ends, w.ids, w.rank);
  for (int64_t i = 0; i < n; i++) {
    w.prev[i] = (uint32_t)i - 1; /* NONE for the first */
    w.next[i] = i + 1 < n ? (uint32_t)i + 1 : NONE;
  }
  if (t->monotone && stop == 1) merge_lists(t, s, &w, (uint32_t)n);
  else merge_heap(t, s, &w, (uint32_t)n, stop);
  int64_t count = 0;
  for (uint32_t p = 0; p != NONE; p = w.next[p]) out[count++] = w.ids[p];
  return count;
}

static int out_reserve(sa_merge_scratch *s, int64_t ids) {
  if (ids <= s->out_capacity) return 1;
  const int64_t capacity = s->out_capacity * 2 > ids ? s->out_capacity * 2 : ids;
  uint32_t *grown = realloc(s->out, (size_t)capacity * sizeof *grown);
  if (!grown) return 0;
  s->out = grown;
  s->out_capacity = capacity;
  return 1;
}

/* 1 if the bytes of left and right, which end and start at `at`, encode to just these two tokens;
 * -1 out of memory. */
static int joins(const sa_bpe_tables *t, sa_merge_scratch *s, const uint8_t *at, int ends, uint32_t left,
                 uint32_t right) {
  uint32_t ids[2 * SA_MAX_TOKEN_BYTES];
  const int64_t before = t->length[left], after = t->length[right];
  const int64_t n = sa_bpe_window(t, s, at - before, before + after, ends, 1, ids);
  if (n < 0) return -1;
  return n == 2 && ids[0] == left && ids[1] == right;
}

/* Encodes a piece in windows; 0 where no boundary joined two of them (then a larger window is tried). */
static int64_t encode_windows(const sa_bpe_tables *t, sa_merge_scratch *s, const uint8_t *piece, int64_t n,
                              int64_t size) {
  int64_t start = 0, end = n < size ? n : size;
  if (!out_reserve(s, end)) return -1;
  int64_t before = s->steps, kept = 0, count = sa_bpe_window(t, s, piece, end, end == n, 1, s->out);
  int64_t steps = s->steps - before; /* of the last window that was merged */
  while (count >= 0 && end < n) {
    /* out[0, kept) is final; out[kept, kept + count) encodes [start, end). Its tokens near the end may be
     * wrong for want of what follows: go on from a boundary some tokens before. */
    int64_t j = 0, at = start;
    const int64_t limit = end - 2 * t->longest;
    while (at + t->length[s->out[kept + j]] <= limit) at += t->length[s->out[kept + j++]];
    int joined = 0;
    for (int tries = 0; tries < JOIN_TRIES && j > 0; tries++) {
      const uint32_t expected = s->out[kept + j];
      const int again = tries == 0 && n - at > size && memcmp(piece + at, piece + start, (size_t)size) == 0;
      end = n - at < size ? n : at + size;
      if (!out_reserve(s, kept + j + end - at)) return -1;
      if (again) { /* a run of one letter, say: the same bytes, the same ids; its merges count again */
        memmove(s->out + kept + j, s->out + kept, (size_t)count * sizeof *s->out);
        s->steps += steps;
      } else {
        before = s->steps;
        count = sa_bpe_window(t, s, piece + at, end - at, end == n, 1, s->out + kept + j);
        steps = s->steps - before;
      }
      if (count < 0) return -1;
      const uint32_t left = s->out[kept + j - 1], right = s->out[kept + j];
      joined = right == expected ? 1 : joins(t, s, piece + at, at + t->length[right] == n, left, right);
      if (joined) break;
      at -= t->length[s->out[kept + --j]];
    }
    if (joined < 0) return -1;
    if (!joined) return 0;
    kept += j;
    start = at;
  }
  return count < 0 ? -1 : kept + count;
}

/* The piece without the bytes left out: *piece and *n; 0 out of memory. */
static int leave_out(const sa_bpe_tables *t, sa_merge_scratch *s, const uint8_t **piece, int64_t *n) {
  int64_t first = 0;
  while (first < *n && !t->left_out[(*piece)[first]]) first++;
  if (first == *n) return 1;
  if (*n > s->kept_capacity) {
    uint8_t *grown = realloc(s->kept, (size_t)*n * 2);
    if (!grown) return 0;
    s->kept = grown;
    s->kept_capacity = *n * 2;
  }
  memcpy(s->kept, *piece, (size_t)first);
  int64_t kept = first;
  for (int64_t i = first; i < *n; i++) {
    s->kept[kept] = (*piece)[i];
    kept += !t->left_out[(*piece)[i]];
  }
  *piece = s->kept;
  *n = kept;
  return 1;
}

int64_t sa_bpe_encode(const sa_bpe_tables *t, sa_merge_scratch *s, const uint8_t *piece, int64_t n) {
  if (t->leaves_out && !leave_out(t, s, &piece, &n)) return -1;
  if (n == 0) return 0;
  if (n <= WINDOW_BYTES) {
    if (!out_reserve(s, n)) return -1;
    return sa_bpe_window(t, s, piece, n, 1, 1, s->out);
  }
  int64_t size = 8 * (int64_t)t->longest > WINDOW_BYTES ? 8 * (int64_t)t->longest : WINDOW_BYTES;
  for (;; size *= 2) {
    /* positions within a window are 32-bit, three list entries each */
    const int64_t ids = size > SA_MAX_WINDOW ? -1 : encode_windows(t, s, piece, n, size);
    if (ids != 0) return ids;
  }
}

void sa_merge_scratch_release(sa_merge_scratch *s) {
  free(s->memory), free(s->heads), free(s->busy), free(s->busy_words), free(s->out), free(s->kept);
  memset(s, 0, sizeof *s);
}
