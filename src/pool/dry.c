// A dry run: a supply of addresses behind which there is nothing.
//
//   0 ........ 2^47 ............ 2^55 |== block ==| ... |== range ==| ... 2^56
//   what a process may have           what is given out here
//
// The addresses are those that no process has, so whatever is touched there by
// mistake faults, and no block of another pool stands at one. An arena deals
// them out, so that they are used again and a run never comes to their end.
// Memory has no address to tell it from other memory: all handles are one.
//
// How much there is, is for the pool's limit to say, which is checked before
// anything is asked for here.
#include <pthread.h>

#include "base/hostmem.h"
#include "pool/supply.h"
#include "tarn/arena.h"

static const tarn_addr BASE = UINT64_C(1) << 55;
static const size_t SPACE = (size_t)1 << 55;

// As well aligned as any driver aligns, since addresses cost nothing.
static const size_t STEP = (size_t)2 << 20;

static const tarn_memory HANDLE = 1;

typedef struct tarn__dry {
  pthread_mutex_t lock;  // guards |arena|
  tarn_arena *arena;     // of the addresses, less BASE
  size_t total;          // bytes that the device is said to have
} tarn__dry;

// --- what the device is like -----------------------------------------------

// Whatever it pretends to have can be had at once.
static tarn_status query(const tarn__supply *supply,
                         tarn_device_info *out_info) {
  tarn_status status = tarn_device_query(supply->device, out_info);
  if (status == TARN_OK && out_info->max_alloc < supply->dry->total) {
    out_info->max_alloc = supply->dry->total;
  }
  return status;
}

static tarn_status memory(const tarn__supply *supply, size_t *out_total) {
  *out_total = supply->dry->total;
  return TARN_OK;
}

// --- addresses -------------------------------------------------------------

static tarn_status reserve(const tarn__supply *supply, size_t size,
                           size_t align, tarn_addr *out_addr) {
  tarn__dry *dry = supply->dry;
  size_t offset = 0;
  *out_addr = 0;
  pthread_mutex_lock(&dry->lock);
  tarn_status status = tarn_arena_alloc(dry->arena, size, align, &offset);
  pthread_mutex_unlock(&dry->lock);
  if (status == TARN_OK) *out_addr = BASE + offset;
  return status;
}

static tarn_status release(const tarn__supply *supply, tarn_addr addr,
                           size_t size) {
  tarn__dry *dry = supply->dry;
  (void)size;
  pthread_mutex_lock(&dry->lock);
  tarn_status status = tarn_arena_free(dry->arena, (size_t)(addr - BASE));
  pthread_mutex_unlock(&dry->lock);
  return status;
}

static tarn_status take(const tarn__supply *supply, uint64_t serial,
                        size_t size, tarn_addr *out_addr) {
  (void)serial;
  return reserve(supply, size, 0, out_addr);
}

static tarn_status give(const tarn__supply *supply, uint64_t serial,
                        tarn_addr addr, size_t size) {
  (void)serial;
  return release(supply, addr, size);
}

// --- memory ----------------------------------------------------------------

static tarn_status create(const tarn__supply *supply, size_t size,
                          tarn_memory *out_memory) {
  (void)supply;
  (void)size;
  *out_memory = HANDLE;
  return TARN_OK;
}

static tarn_status destroy(const tarn__supply *supply, tarn_memory handle) {
  (void)supply;
  (void)handle;
  return TARN_OK;
}

static tarn_status map(const tarn__supply *supply, tarn_addr addr, size_t size,
                       tarn_memory handle) {
  (void)addr;
  (void)size;
  return destroy(supply, handle);
}

static tarn_status do_nothing(const tarn__supply *supply, tarn_addr addr,
                              size_t size) {
  (void)supply;
  (void)addr;
  (void)size;
  return TARN_OK;
}

static const tarn__supply_calls dry_calls = {
    .query = query,
    .memory = memory,
    .take = take,
    .give = give,
    .reserve = reserve,
    .release = release,
    .create = create,
    .destroy = destroy,
    .map = map,
    .unmap = do_nothing,
    .set_access = do_nothing,
};

// --- beginning and end -----------------------------------------------------

static tarn_status start(tarn__dry *dry, tarn_device *device, size_t total) {
  tarn_arena_options options = {
      .struct_size = sizeof options, .size = SPACE, .granule = STEP};
  size_t available = 0;
  dry->total = total;
  tarn_status status =
      total != 0 ? TARN_OK
                 : tarn_device_memory(device, &dry->total, &available);
  return status != TARN_OK ? status : tarn_arena_create(&options, &dry->arena);
}

tarn_status tarn__supply_init_dry(tarn__supply *supply, tarn_place place,
                                  tarn_device *device, size_t total) {
  *supply =
      (tarn__supply){.calls = &dry_calls, .place = place, .device = device};
  tarn__dry *dry = tarn__host_alloc(sizeof *dry);
  if (dry == NULL) return TARN_E_NOMEM;
  tarn_status status = start(dry, device, total);
  if (status != TARN_OK) {
    tarn__host_free(dry, sizeof *dry);
    return status;
  }
  pthread_mutex_init(&dry->lock, NULL);
  supply->dry = dry;
  return TARN_OK;
}

// In a child of fork another thread of the parent may have been inside: then it
// is left behind, as it is.
void tarn__supply_deinit(tarn__supply *supply) {
  tarn__dry *dry = supply->dry;
  supply->dry = NULL;
  if (dry == NULL || pthread_mutex_trylock(&dry->lock) != 0) return;
  pthread_mutex_unlock(&dry->lock);
  tarn_arena_destroy(dry->arena);
  pthread_mutex_destroy(&dry->lock);
  tarn__host_free(dry, sizeof *dry);
}
