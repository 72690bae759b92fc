// Counting, by what the library offers for it: a host allocator of the
// program's own, and the pools' statistics.
#include "meter.h"

#include <stdatomic.h>
#include <stdlib.h>

// --- the library's own memory ----------------------------------------------

static atomic_ullong host_allocations;

static void *allocate(void *context, size_t size, size_t align) {
  (void)context;
  void *at = NULL;
  atomic_fetch_add_explicit(&host_allocations, 1, memory_order_relaxed);
  return posix_memalign(&at, align, size) == 0 ? at : NULL;
}

static void deallocate(void *context, void *at, size_t size, size_t align) {
  (void)context;
  (void)size;
  (void)align;
  free(at);
}

tarn_status net_meter_install(void) {
  const tarn_host_allocator counting = {.struct_size = sizeof counting,
                                        .allocate = allocate,
                                        .deallocate = deallocate};
  return tarn_host_allocator_set(&counting);
}

// --- the pools -------------------------------------------------------------

typedef tarn_status pool_visit(tarn_pool *pool, void *context);

static tarn_status each_pool(const net_meter *meter, pool_visit *visit,
                             void *context) {
  for (size_t i = 0; i < meter->place_count; i++) {
    tarn_pool *pool = NULL;
    tarn_status status = tarn_pool_of(meter->places[i], &pool);
    if (status == TARN_OK) status = visit(pool, context);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

static tarn_status add_stats(tarn_pool *pool, void *context) {
  tarn_pool_stats *sum = context;
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  tarn_status status = tarn_pool_query(pool, &stats);
  if (status != TARN_OK) return status;
  sum->live_bytes += stats.live_bytes;
  sum->reserved_bytes += stats.reserved_bytes;
  sum->reserved_peak_bytes += stats.reserved_peak_bytes;
  sum->allocs += stats.allocs;
  sum->device_allocs += stats.device_allocs;
  return TARN_OK;
}

static tarn_status sum_of(const net_meter *meter, tarn_pool_stats *out_sum) {
  *out_sum = (tarn_pool_stats){.struct_size = sizeof *out_sum};
  return each_pool(meter, add_stats, out_sum);
}

// A buffer of one byte: with the first that is at a place, its pool and the
// synced buffers make books, and keep them.
static tarn_status use_once(tarn_place place, tarn_device *device) {
  const tarn_synced_options options = {.struct_size = sizeof options,
                                       .device = device};
  tarn_synced *buffer = NULL;
  tarn_access access;
  tarn_status status = tarn_synced_create(1, &options, &buffer);
  if (status == TARN_OK)
    status = tarn_synced_begin(buffer, 0, TARN_ALL, place, TARN_WRITE_DISCARD,
                               NULL, &access);
  if (status == TARN_OK) status = tarn_synced_end(&access);
  tarn_status ended = tarn_synced_destroy(buffer);
  return status == TARN_OK ? ended : status;
}

// A fresh strategy, with the metadata of one buffer, and nothing reserved.
static tarn_status refresh(tarn_pool *pool, void *context) {
  tarn_device *cpu = context;  // NULL: home is another device
  tarn_place place = tarn_pool_place(pool);
  tarn_status status = tarn_pool_set_strategy(pool, NULL);
  if (status == TARN_OK)
    status = use_once(place, place.device != NULL ? place.device : cpu);
  if (status == TARN_OK) status = tarn_pool_trim(pool, 0);
  return status == TARN_OK ? tarn_pool_reset_peaks(pool) : status;
}

static tarn_status refresh_all(const net_meter *meter) {
  bool at_host = meter->place_count == 1;
  return each_pool(meter, refresh, at_host ? meter->places[0].device : NULL);
}

tarn_status net_meter_begin(net_meter *meter, tarn_place home) {
  const tarn_place pinned = {home.device, TARN_PLACE_HOST};
  *meter = (net_meter){.places = {home, pinned, TARN_HOST}, .place_count = 3};
  if (tarn_place_equal(home, TARN_HOST)) meter->place_count = 1;
  tarn_status status = refresh_all(meter);
  meter->books = tarn_host_memory();
  return status;
}

tarn_status net_meter_allocations(const net_meter *meter, uint64_t *out_count) {
  tarn_pool_stats sum;
  tarn_status status = sum_of(meter, &sum);
  *out_count = sum.allocs + sum.device_allocs + atomic_load(&host_allocations);
  return status;
}

tarn_status net_meter_peak(const net_meter *meter, size_t *out_bytes) {
  tarn_pool_stats sum;
  tarn_status status = sum_of(meter, &sum);
  *out_bytes = sum.reserved_peak_bytes;
  return status;
}

tarn_status net_meter_left(const net_meter *meter, size_t *out_bytes) {
  tarn_pool_stats sum;
  tarn_status status = sum_of(meter, &sum);
  if (status == TARN_OK) status = refresh_all(meter);
  size_t books = tarn_host_memory();
  *out_bytes = sum.live_bytes;
  if (books > meter->books) *out_bytes += books - meter->books;
  return status;
}
