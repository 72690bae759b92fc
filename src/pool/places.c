// Which pool belongs to which place: each device carries its own, by kind.
#include <stdio.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/front.h"

enum { KINDS = TARN_PLACE_UNIFIED + 1 };

typedef struct fronts {
  pthread_mutex_t lock;  // guards the making of each
  tarn_pool *by_kind[KINDS];
} fronts;

// --- the device's end ------------------------------------------------------

static tarn_status object_if_used(tarn_device *device, tarn_pool *pool) {
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  tarn_status status = tarn_pool_query(pool, &stats);
  if (status != TARN_OK || stats.live_blocks == 0) return status;
  char holders[256];
  tarn__gate_enter(&pool->gate);
  tarn__front_holders(pool, holders, sizeof holders);
  tarn__gate_leave(&pool->gate);
  return tarn__fail(
      TARN_E_STATE, "%s: cannot close: %zu blocks of %zu bytes are out: %s",
      tarn_device_name(device), stats.live_blocks, stats.live_bytes, holders);
}

static tarn_status on_close(tarn_device *device, void *pointer, bool commit) {
  fronts *all = pointer;
  tarn_status first = TARN_OK;
  for (int kind = 0; kind < KINDS; kind++) {
    tarn_pool *pool = all->by_kind[kind];
    if (pool == NULL) continue;
    tarn_status status =
        commit ? tarn__front_destroy(pool) : object_if_used(device, pool);
    if (first == TARN_OK) first = status;
  }
  if (commit) {
    pthread_mutex_destroy(&all->lock);
    tarn__host_free(all, sizeof *all);
  }
  return first;
}

// --- finding and making ----------------------------------------------------

static tarn_status fronts_of(tarn_device *device, fronts **out) {
  *out = tarn_device_attached(device, TARN_SLOT_POOL);
  if (*out != NULL) return TARN_OK;
  fronts *made = tarn__host_alloc(sizeof *made);
  if (made == NULL) return TARN_E_NOMEM;
  pthread_mutex_init(&made->lock, NULL);
  tarn_status status =
      tarn_device_attach(device, TARN_SLOT_POOL, made, on_close);
  if (status == TARN_OK) {
    *out = made;
    return TARN_OK;
  }
  pthread_mutex_destroy(&made->lock);
  tarn__host_free(made, sizeof *made);
  if (status != TARN_E_STATE) return status;
  *out = tarn_device_attached(device, TARN_SLOT_POOL);  // another was quicker
  return TARN_OK;
}

// All places of cpu:0 are one.
static tarn_place canonical(tarn_place place) {
  return tarn_place_equal(place, TARN_HOST) ? TARN_HOST : place;
}

tarn_status tarn_pool_of(tarn_place place, tarn_pool **out_pool) {
  *out_pool = NULL;
  tarn_device *device = NULL;
  fronts *all = NULL;
  tarn_status status = tarn__place_device(place, &device);
  if (status == TARN_OK) status = fronts_of(device, &all);
  if (status != TARN_OK) return status;
  place = canonical(place);
  pthread_mutex_lock(&all->lock);
  if (all->by_kind[place.kind] == NULL) {
    status = tarn__front_create(place, &all->by_kind[place.kind]);
  }
  *out_pool = all->by_kind[place.kind];
  pthread_mutex_unlock(&all->lock);
  return status;
}

tarn_status tarn_pool_use(tarn_place place, const char *strategy) {
  tarn_pool *pool = NULL;
  tarn__strategy *fresh = NULL;
  tarn_status status = tarn_pool_of(place, &pool);
  if (status == TARN_OK) status = tarn__strategy_create(pool, strategy, &fresh);
  if (status != TARN_OK) return status;
  return tarn__front_switch(pool, fresh);
}

tarn_status tarn_pool_remove(tarn_place place) {
  return tarn_pool_use(place, tarn__strategy_default());
}
