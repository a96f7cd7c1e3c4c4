/* Builds a model from a plan. */
#include "model.h"

#include "consumers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A table of the short tokens that a piece can be as a whole, and a filter of the longer ones. */
static int32_t build_pieces(sa_model *m) {
  m->pieces = sa_map16_new(m->vocab.n_ids);
  m->short_bits = m->pieces.bits + 2;
  m->short_ones = calloc(((size_t)1 << m->short_bits) / 64, sizeof *m->short_ones);
  if (!m->pieces.entries || !m->short_ones) return SA_ERR_NOMEM;
  for (uint32_t id = 0; id < m->vocab.n_ids; id++) {
    const uint32_t n = m->bpe.length[id];
    if (!m->whole[id] || n == 0) continue;
    if (m->bpe.has_ends && !m->vocab.ends[id]) continue; /* a whole piece ends a word */
    if (n > SA_KEY16_BYTES) {
      const uint64_t bit = sa_long_one(m->vocab.bytes + m->vocab.offsets[id], n);
      m->long_ones[bit / 64] |= (uint64_t)1 << bit % 64;
      continue;
    }
    uint64_t words[2] = {0, 0};
    for (uint32_t i = 0; i < n; i++)
      words[i / 8] |= (uint64_t)m->vocab.bytes[m->vocab.offsets[id] + i] << (8 * (i % 8));
    if (n <= SA_KEY8_BYTES) words[0] = sa_key8(words[0], n);
    else words[1] = sa_key16_high(words[1], n);
    if (sa_map16_find(&m->pieces, words[0], words[1])) continue;
    sa_map16_add(&m->pieces, words[0], words[1], sa_value(&id, 1));
    const uint64_t bit = sa_hash16(words[0], words[1]) >> (32 - m->short_bits);
    m->short_ones[bit / 64] |= (uint64_t)1 << bit % 64;
  }
  return SA_OK;
}

static int32_t build(sa_model *m, const sa_plan *plan, char *error, int64_t capacity) {
  if (plan->scheme < -1 || plan->scheme >= sa_scheme_count() || plan->n_ids < 1) {
    snprintf(error, (size_t)capacity, "scheme %d of %d, %lld ids", plan->scheme, sa_scheme_count(),
             (long long)plan->n_ids);
    return SA_ERR_PLAN;
  }
  m->scheme = plan->scheme;
  m->add_prefix_space = plan->add_prefix_space;
  if (plan->scheme < 0 && !(m->program = sa_program_new(plan->stages, plan->n_stages))) {
    snprintf(error, (size_t)capacity, "one of %lld stages makes no sense", (long long)plan->n_stages);
    return SA_ERR_PLAN;
  }
  if (plan->normalizer && !(m->normalizer = sa_normalizer_new(plan->normalizer, error, capacity)))
    return SA_ERR_PLAN;
  m->whole_piece_first = plan->whole_piece_first;
  m->whole = calloc((size_t)plan->n_ids, 1);
  if (!m->whole) return SA_ERR_NOMEM;
  int32_t status = sa_vocab_build(&m->vocab, plan, error, capacity);
  if (status == SA_OK) status = sa_bpe_build(&m->bpe, plan, &m->vocab, m->whole, error, capacity);
  if (status == SA_OK) status = sa_added_build(&m->added, plan, m->normalizer);
  if (status == SA_OK && m->whole_piece_first)
    for (int64_t id = 0; id < plan->n_ids; id++) m->whole[id] = m->bpe.length[id] > 0;
  if (status == SA_OK) status = build_pieces(m);
  m->facts = (sa_model_facts){
      .pair_shift = m->bpe.pair_shift,
      .displace_shift = m->bpe.displace_shift,
      .n_ranks = m->bpe.n_ranks,
      .n_ids = m->vocab.n_ids,
      .monotone = m->bpe.monotone,
      .longest = m->bpe.longest,
      .has_ends = m->bpe.has_ends,
      .leaves_out = m->bpe.leaves_out,
      .whole_piece_first = m->whole_piece_first,
  };
  return status;
}

sa_model *sa_model_new(const sa_plan *plan, char *error, int64_t capacity) {
  sa_model *m = calloc(1, sizeof *m);
  if (capacity > 0) error[0] = 0;
  const int32_t status = m ? build(m, plan, error, capacity) : SA_ERR_NOMEM;
  if (status == SA_OK) return m;
  if (capacity > 0 && !error[0]) snprintf(error, (size_t)capacity, "out of memory");
  sa_model_free(m);
  return NULL;
}

void sa_model_free(sa_model *m) {
  if (!m) return;
  sa_program_free(m->program);
  if (m->normalizer) sa_normalizer_free(m->normalizer);
  sa_vocab_release(&m->vocab);
  sa_bpe_release(&m->bpe);
  sa_added_release(&m->added);
  free(m->whole);
  free(m->pieces.entries);
  free(m->short_ones);
  free(m);
}

int32_t sa_model_rewrites(const sa_model *m) {
  return m->normalizer || m->add_prefix_space || (m->program && m->program->rewrites);
}

const void *sa_model_table(const sa_model *m, const char *name, int64_t *bytes) {
  const sa_bpe_tables *t = &m->bpe;
  const int64_t n_ids = m->vocab.n_ids, pairs = (int64_t)1 << (64 - t->pair_shift);
  const struct {
    const char *name;
    const void *data;
    int64_t bytes;
  } tables[] = {
      {"byte_ids", t->byte_ids, sizeof t->byte_ids},
      {"byte_ids_end", t->byte_ids_end, sizeof t->byte_ids_end},
      {"left_out", t->left_out, sizeof t->left_out},
      {"byte_pair_rank", t->byte_pair_rank, 65536 * (int64_t)sizeof *t->byte_pair_rank},
      {"pairs", t->pairs, pairs * (int64_t)sizeof *t->pairs},
      {"displace", t->displace, ((int64_t)1 << (64 - t->displace_shift)) * (int64_t)sizeof *t->displace},
      {"result", t->result, t->n_ranks * (int64_t)sizeof *t->result},
      {"length", t->length, n_ids * (int64_t)sizeof *t->length},
      {"whole", m->whole, n_ids},
      {"token_offsets", m->vocab.offsets, (n_ids + 1) * (int64_t)sizeof *m->vocab.offsets},
      {"token_bytes", m->vocab.bytes, m->vocab.offsets[n_ids]},
      {"token_ends", m->vocab.ends, n_ids},
      {"facts", &m->facts, sizeof m->facts},
  };
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    if (strcmp(name, tables[i].name) != 0 || !tables[i].data) continue;
    if (bytes) *bytes = tables[i].bytes;
    return tables[i].data;
  }
  return sa_added_table(&m->added, name, bytes);
}

int64_t sa_bpe(const sa_model *m, const uint8_t *piece, int64_t n, uint32_t *ids, int64_t *steps) {
  sa_merge_scratch scratch = {0};
  int64_t count = 0;
  if (n > 0) count = sa_bpe_encode(&m->bpe, &scratch, piece, n);
  if (count > 0) memcpy(ids, scratch.out, (size_t)count * sizeof *ids);
  if (steps) *steps = scratch.steps;
  sa_merge_scratch_release(&scratch);
  return count;
}
