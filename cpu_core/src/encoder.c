/* What an encoder keeps between calls: contexts and memory for ids. See batch.h. */
#include "batch.h"

#include <stdlib.h>

#define SLAB_KEPT (4 << 20)        /* larger slabs, in ids, are not kept */

sa_encoder *sa_encoder_new(const sa_model *model, int64_t cache_bytes) {
  sa_encoder *e = calloc(1, sizeof *e);
  if (!e) return NULL;
  e->model = model;
  e->cache_bytes = cache_bytes;
  pthread_mutex_init(&e->lock, NULL);
  return e;
}

void sa_encoder_free(sa_encoder *e) {
  if (!e) return;
  for (int32_t i = 0; i < e->n_idle; i++) sa_context_free(e->idle[i]);
  for (int32_t i = 0; i < e->n_slabs; i++) free(e->slabs[i].ids);
  free(e->idle);
  free(e->slabs);
  pthread_mutex_destroy(&e->lock);
  free(e);
}

/* Room for one more in a list; 0 where there is none. */
static int list_room(void **list, int32_t n, int32_t *capacity, size_t size) {
  if (n < *capacity) return 1;
  const int32_t wanted = *capacity ? 2 * *capacity : 16;
  void *grown = realloc(*list, (size_t)wanted * size);
  if (!grown) return 0;
  *list = grown;
  *capacity = wanted;
  return 1;
}

sa_context *sa_take_context(sa_encoder *e, int64_t text) {
  pthread_mutex_lock(&e->lock);
  sa_context *context = e->n_idle ? e->idle[--e->n_idle] : NULL;
  pthread_mutex_unlock(&e->lock);
  return context ? context : sa_context_new(e->model, e->cache_bytes, text);
}

void sa_give_context(sa_encoder *e, sa_context *context) {
  pthread_mutex_lock(&e->lock);
  const int room = list_room((void **)&e->idle, e->n_idle, &e->idle_capacity, sizeof *e->idle);
  if (room) e->idle[e->n_idle++] = context;
  pthread_mutex_unlock(&e->lock);
  if (!room) sa_context_free(context);
}

sa_slab sa_take_slab(sa_encoder *e, int64_t n) {
  sa_slab slab = {NULL, 0};
  pthread_mutex_lock(&e->lock);
  if (e->n_slabs) slab = e->slabs[--e->n_slabs];
  pthread_mutex_unlock(&e->lock);
  if (slab.capacity < n) {
    free(slab.ids);
    slab.ids = malloc((size_t)n * sizeof *slab.ids);
    slab.capacity = n;
  }
  return slab;
}

void sa_give_slab(sa_encoder *e, sa_slab slab) {
  pthread_mutex_lock(&e->lock);
  const int room = slab.capacity <= SLAB_KEPT &&
                   list_room((void **)&e->slabs, e->n_slabs, &e->slabs_capacity, sizeof *e->slabs);
  if (room) e->slabs[e->n_slabs++] = slab;
  pthread_mutex_unlock(&e->lock);
  if (!room) free(slab.ids);
}
