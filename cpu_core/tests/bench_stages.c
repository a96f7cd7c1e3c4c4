/* The stages of encoding on one thread, each timed with those before it: a shared library that
 * bench/stages.py loads. Works on the core's own functions and tables, so it is built with them.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "encode.h"
#include "hotpath.h"
#include "pretok.h"

#define EXPORT __attribute__((visibility("default")))

enum { READ, BOUNDARIES, POSITIONS, PROBE, EMIT, ALL, COLD, STAGES };

/* What a pass found, for the caller to divide by; filled by bench_stages. */
typedef struct bench_counts {
  int64_t pieces, tokens;
  int64_t hot_misses;    /* pieces that the hot tables, as they are after warm passes, lack */
  int64_t merges_warm;   /* pieces merged in a warm pass, and in a cold one */
  int64_t merges_cold;
  int64_t open_ns;       /* least time that a context of its own takes to make, part of a cold pass */
} bench_counts;

/* Processor time of this thread: other processes take none of it. */
static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Cycles a nanosecond while this runs: a chain of additions, each of one cycle, that the compiler can't shorten. */
EXPORT double bench_clock_ghz(void) {
  const int64_t rounds = 4000000;
  double best = 0;
  for (int repeat = 0; repeat < 5; repeat++) {
    uint64_t x = 1, y = (uint64_t)repeat | 1;
    const int64_t start = now_ns();
    for (int64_t i = 0; i < rounds; i++) {
      /* The empty statements keep the eight additions apart. */
#define ADD x += y; __asm__ volatile("" : "+r"(x));
      ADD ADD ADD ADD ADD ADD ADD ADD
#undef ADD
    }
    const double ghz = 8.0 * (double)rounds / (double)(now_ns() - start);
    if (ghz > best) best = ghz;
  }
  return best;
}

EXPORT int32_t bench_isa(int32_t isa) { return sa_isa_select(isa); }

/* Slots of the cache that so many bytes give, at its largest: of the hot tables, and of those behind them. */
EXPORT int32_t bench_cache_slots(int64_t cache_bytes, int64_t *hot, int64_t *behind) {
  sa_cache cache;
  if (!sa_cache_init(&cache, cache_bytes, 0)) return SA_ERR_NOMEM;
  *hot = cache.on ? ((int64_t)1 << cache.hot8_max_bits) + ((int64_t)1 << cache.hot16_max_bits) : 0;
  *behind = cache.on ? ((int64_t)1 << cache.back.max_bits) + ((int64_t)1 << cache.longer.max_bits) : 0;
  sa_cache_release(&cache);
  return SA_OK;
}

static uint64_t read_all(const uint8_t *text, int64_t n) {
  uint64_t sum[8] = {0};
  for (int64_t i = 0; i + 64 <= n; i += 64)
    for (int k = 0; k < 8; k++) {
      uint64_t word;
      memcpy(&word, text + i + 8 * k, 8);
      sum[k] ^= word;
    }
  return sum[0] ^ sum[1] ^ sum[2] ^ sum[3] ^ sum[4] ^ sum[5] ^ sum[6] ^ sum[7];
}

/* The chunks of the encoder up to `stage`, tables left as they are: a piece they lack has a value of no ids. A
 * chunk's last piece, whose end is in the next one, is left out: the encoder takes it along with the next chunk's. Returns a number that
 * depends on all that was done. */
static int64_t pass(sa_context *c, int stage, const uint8_t *text, const int64_t *offsets, int64_t n_rows,
                    uint32_t *ids, int64_t *row_ids, bench_counts *counts) {
  const struct sa_backend *backend = sa_backend_active();
  const struct sa_hot_path *hot = sa_hot();
  sa_chunk *const k = &c->chunks[0];
  const uint8_t *const begin = text + offsets[0], *const end = text + offsets[n_rows];
  const int64_t base = offsets[0];
  int64_t chunk = 0, row = 0, sum = 0, pieces = 0, hot_misses = 0;
  uint32_t *out = ids;
  sa_pretok_cursor cursor;
  sa_pretok_begin(&cursor, c->model->scheme, text, offsets, n_rows);
  for (;;) {
    const int64_t words = sa_pretok_next(&cursor, c->bits, SA_CHUNK_BLOCKS);
    if (!words) break;
    sum += (int64_t)c->bits[0];
    if (stage >= POSITIONS) {
      const int64_t n = backend->extract(c->bits, (size_t)words, 0, k->starts);
      pieces += n;
      if (stage >= PROBE && n > 1) {
        int64_t sure = n - 1;
        while (sure > 0 && end - (begin + chunk + k->starts[sure]) < 16) sure--;
        hot_misses += hot->probe(&c->cache, begin + chunk, k->starts, sure, k->values, k->missed);
        if (stage >= EMIT)
          for (int64_t i = 0, to; i < sure; i = to) { /* a row at a time, as the encoder does */
            for (; row < n_rows && offsets[row + 1] - base <= chunk + k->starts[i]; row++)
              row_ids[row] = out - ids;
            const int64_t stop = offsets[row + 1] - base - chunk;
            to = sure;
            if (stop < k->starts[sure])
              for (to = i + 1; k->starts[to] < stop;) to++;
            out = hot->emit(c->cache.spill, k->values + i, to - i, out, end - (begin + chunk + k->starts[to]));
          }
      }
    }
    chunk += words * 64;
  }
  if (counts && stage >= POSITIONS) counts->pieces = pieces;
  if (counts && stage == PROBE) counts->hot_misses = hot_misses;
  return sum + pieces + hot_misses + (out - ids);
}

/* ns[stage * repeats + r]: nanoseconds of a pass over all rows; stages in turn within a repeat. ids: one per byte of
 * text. row_ids: n_rows. The model has a compiled scheme. Returns a status. */
EXPORT int32_t bench_stages(const sa_plan *plan, const uint8_t *text, const int64_t *offsets, int64_t n_rows,
                            int64_t cache_bytes, int64_t repeats, uint32_t *ids, int64_t *row_ids, int64_t *ns,
                            bench_counts *counts) {
  char error[256];
  sa_model *model = sa_model_new(plan, error, sizeof error);
  if (!model || model->program) {
    sa_model_free(model);
    return SA_ERR_PLAN;
  }
  const int64_t n = offsets[n_rows] - offsets[0];
  volatile uint64_t sink = 0; /* or the compiler would leave out what nobody reads */
  int32_t status = SA_ERR_NOMEM;
  sa_context *warm = sa_context_new(model, cache_bytes, n), *cold = NULL;
  if (!warm) goto done;
  for (int k = 0; k < 2; k++)
    if (sa_encode_rows(warm, text, offsets, n_rows, ids, row_ids, 0) < 0) goto done;
  for (int64_t r = 0; r < repeats; r++) {
    int64_t start = now_ns();
    sink ^= read_all(text + offsets[0], n);
    ns[READ * repeats + r] = now_ns() - start;
    for (int stage = BOUNDARIES; stage <= EMIT; stage++) {
      start = now_ns();
      sink ^= (uint64_t)pass(warm, stage, text, offsets, n_rows, ids, row_ids, counts);
      ns[stage * repeats + r] = now_ns() - start;
    }
    const int64_t before = warm->misses;
    start = now_ns();
    counts->tokens = sa_encode_rows(warm, text, offsets, n_rows, ids, row_ids, 0);
    ns[ALL * repeats + r] = now_ns() - start;
    counts->merges_warm = warm->misses - before;
    if (counts->tokens < 0) goto done;
    start = now_ns();
    cold = sa_context_new(model, cache_bytes, n); /* its tables are part of a first call */
    const int64_t open = now_ns() - start;
    if (r == 0 || open < counts->open_ns) counts->open_ns = open;
    if (!cold || sa_encode_rows(cold, text, offsets, n_rows, ids, row_ids, 0) < 0) goto done;
    ns[COLD * repeats + r] = now_ns() - start;
    counts->merges_cold = cold->misses;
    sa_context_free(cold);
    cold = NULL;
  }
  status = SA_OK;
done:
  (void)sink;
  sa_context_free(cold);
  sa_context_free(warm);
  sa_model_free(model);
  return status;
}

/* Nanoseconds of one sa_encode_text: the least of some rounds of `calls` each. Negative: it failed. */
EXPORT double bench_small_ns(const sa_plan *plan, const uint8_t *text, int64_t n, int64_t calls, int64_t rounds) {
  char error[256];
  sa_model *model = sa_model_new(plan, error, sizeof error);
  sa_encoder *encoder = model ? sa_encoder_new(model, 64 << 20) : NULL;
  uint32_t *ids = malloc((size_t)(n + 1) * sizeof *ids);
  double least = -1;
  int64_t done = encoder && ids ? sa_encode_text(encoder, text, n, SA_SPECIAL_PLAIN, ids, n) : -1;
  for (int64_t r = 0; r < rounds && done >= 0; r++) {
    const int64_t start = now_ns();
    for (int64_t i = 0; i < calls && done >= 0; i++) done = sa_encode_text(encoder, text, n, SA_SPECIAL_PLAIN, ids, n);
    const double ns = (double)(now_ns() - start) / (double)calls;
    if (least < 0 || ns < least) least = ns;
  }
  free(ids);
  sa_encoder_free(encoder);
  sa_model_free(model);
  return done < 0 ? -1 : least;
}
