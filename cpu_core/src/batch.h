/* Rows over threads: work items, their order, the contexts of an encoder. */
#ifndef SA_BATCH_H
#define SA_BATCH_H

#include <pthread.h>

#include "encode.h"

/* Memory for the ids of an item that is ahead of its turn. */
typedef struct sa_slab {
  uint32_t *ids;
  int64_t capacity;
} sa_slab;

struct sa_encoder {
  const sa_model *model;
  int64_t cache_bytes;
  pthread_mutex_t lock;
  sa_context **idle;        /* contexts not in use */
  int32_t n_idle, idle_capacity;
  sa_slab *slabs;           /* slabs not in use */
  int32_t n_slabs, slabs_capacity;
};

/* One of the encoder's contexts, or a new one for so many bytes of text; NULL: out of memory. And back. (encoder.c) */
sa_context *sa_take_context(sa_encoder *encoder, int64_t text);
void sa_give_context(sa_encoder *encoder, sa_context *context);

/* A slab for n ids; ids is NULL when out of memory. And back. */
sa_slab sa_take_slab(sa_encoder *encoder, int64_t n);
void sa_give_slab(sa_encoder *encoder, sa_slab slab);

/* What the rows before `row` weigh: their bytes and a little for each. */
int64_t sa_weight(const sa_rows *rows, int64_t row);

/* The first row that has at least this weight before it, n_rows if none has. */
int64_t sa_row_at(const sa_rows *rows, int64_t wanted);

#endif
