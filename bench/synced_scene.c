// What the figures of synced buffers share.
#include <stdio.h>

#include "synced_figures.h"

bool synced_refused(char *why) {
  snprintf(why, BENCH_TEXT_SIZE, "%s", tarn_last_error());
  return false;
}

size_t synced_passes(const synced_scene *s, size_t usual, size_t most) {
  size_t asked = s->bench->passes;
  if (asked == 0) return usual;
  return asked < most ? asked : most;
}

static tarn_status add_moved(void *context, const tarn_traffic *traffic) {
  synced_moved *sum = context;
  if (tarn_place_equal(traffic->from, TARN_HOST)) {
    sum->copies_in += traffic->copies;
    sum->bytes_in += traffic->bytes_moved;
  } else {
    sum->copies_out += traffic->copies;
    sum->bytes_out += traffic->bytes_moved;
  }
  return TARN_OK;
}

bool synced_read_moved(tarn_synced *buffer, synced_moved *out) {
  *out = (synced_moved){0};
  return tarn_synced_traffic(buffer, add_moved, out) == TARN_OK;
}

static bool take(tarn_place place, size_t size, tarn_block *out) {
  tarn_pool *pool = NULL;
  return tarn_pool_of(place, &pool) == TARN_OK &&
         tarn_pool_alloc(pool, size, 0, NULL, out) == TARN_OK;
}

bool synced_pair_take(const synced_scene *s, size_t size, synced_pair *out) {
  tarn_place pinned = {s->device, TARN_PLACE_HOST};
  return take(pinned, size, &out->here) && take(s->place, size, &out->there);
}

void synced_pair_give(synced_pair *pair) {
  if (pair->there.pool != NULL) (void)tarn_pool_free(&pair->there, NULL);
  if (pair->here.pool != NULL) (void)tarn_pool_free(&pair->here, NULL);
}
