// A dry run: a supply of addresses behind which there is nothing.
//
//   0 ........ 2^47 ............ 2^55 |== block ==| ... |== range ==| ... 2^56
//   addresses of processes            addresses of dry pools
//
// The addresses are those that no process has, so whatever is touched there by
// mistake faults, and no block of another pool stands at one. An arena deals
// them out, so that they are used again and a run never comes to their end.
// Memory has no address to tell it from other memory: a handle is its size.
//
// How much there is the pool's limit says. Without one it is more than any one
// device has, for traces of devices larger than the one at hand. The pool
// compares before it asks; here only addresses can be lacking.
#include <pthread.h>
#include <stdatomic.h>

#include "base/hostmem.h"
#include "device/memory.h"
#include "pool/supply.h"
#include "tarn/arena.h"

static const tarn_addr BASE = UINT64_C(1) << 55;
static const size_t SPACE = (size_t)1 << 55;

// As well aligned as any driver aligns, since addresses cost nothing.
static const size_t STEP = (size_t)2 << 20;

// What there is without a limit, if the device has less.
static const size_t UNLIMITED = (size_t)1 << 40;

typedef struct tarn__pool_dry {
  pthread_mutex_t lock;  // guards |arena|
  tarn_arena *arena;     // of the addresses, less BASE
  size_t total;          // bytes that the device is said to have
  atomic_size_t given;   // of them, and not yet given back
} tarn__pool_dry;

// --- what the device is like -----------------------------------------------

// Whatever it pretends to have can be had at once.
static tarn_status most(const tarn__pool_supply *supply, size_t *out_most) {
  tarn_status status = tarn__device_most(supply->device, out_most);
  if (*out_most < supply->dry->total) *out_most = supply->dry->total;
  return status;
}

static tarn_status memory(const tarn__pool_supply *supply, size_t *out_total,
                          size_t *out_free) {
  tarn__pool_dry *dry = supply->dry;
  size_t given = atomic_load_explicit(&dry->given, memory_order_relaxed);
  // A limit that it began with may be gone by now.
  size_t all = dry->total > UNLIMITED ? dry->total : UNLIMITED;
  *out_total = dry->total;
  *out_free = given < all ? all - given : 0;
  return TARN_OK;
}

static void count_given(tarn__pool_dry *dry, size_t size) {
  atomic_fetch_add_explicit(&dry->given, size, memory_order_relaxed);
}

static void count_back(tarn__pool_dry *dry, size_t size) {
  atomic_fetch_sub_explicit(&dry->given, size, memory_order_relaxed);
}

// --- addresses -------------------------------------------------------------

static tarn_status reserve(const tarn__pool_supply *supply, size_t size,
                           size_t align, tarn_addr *out_addr) {
  tarn__pool_dry *dry = supply->dry;
  size_t offset = 0;
  *out_addr = 0;
  pthread_mutex_lock(&dry->lock);
  tarn_status status = tarn_arena_alloc(dry->arena, size, align, &offset);
  pthread_mutex_unlock(&dry->lock);
  if (status == TARN_OK) *out_addr = BASE + offset;
  return status;
}

static tarn_status release(const tarn__pool_supply *supply, tarn_addr addr,
                           size_t size) {
  tarn__pool_dry *dry = supply->dry;
  (void)size;
  pthread_mutex_lock(&dry->lock);
  tarn_status status = tarn_arena_free(dry->arena, (size_t)(addr - BASE));
  pthread_mutex_unlock(&dry->lock);
  return status;
}

static tarn_status take(const tarn__pool_supply *supply, uint64_t serial,
                        size_t size, tarn_addr *out_addr) {
  (void)serial;
  tarn_status status = reserve(supply, size, 0, out_addr);
  if (status == TARN_OK) count_given(supply->dry, size);
  return status;
}

static tarn_status give(const tarn__pool_supply *supply, uint64_t serial,
                        tarn_addr addr, size_t size) {
  (void)serial;
  count_back(supply->dry, size);
  return release(supply, addr, size);
}

// --- memory ----------------------------------------------------------------

static tarn_status create(const tarn__pool_supply *supply, size_t size,
                          tarn_memory *out_memory) {
  count_given(supply->dry, size);
  *out_memory = size;
  return TARN_OK;
}

static tarn_status destroy(const tarn__pool_supply *supply,
                           tarn_memory handle) {
  count_back(supply->dry, (size_t)handle);
  return TARN_OK;
}

static tarn_status map(const tarn__pool_supply *supply, tarn_addr addr,
                       size_t size, tarn_memory handle) {
  (void)supply;
  (void)addr;
  (void)size;
  (void)handle;
  return TARN_OK;
}

static tarn_status do_nothing(const tarn__pool_supply *supply, tarn_addr addr,
                              size_t size) {
  (void)supply;
  (void)addr;
  (void)size;
  return TARN_OK;
}

static const tarn__pool_supply_calls dry_calls = {
    .most = most,
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

static tarn_status start(tarn__pool_dry *dry, tarn_device *device,
                         size_t total) {
  tarn_arena_options options = {
      .struct_size = sizeof options, .size = SPACE, .granule = STEP};
  size_t available = 0;
  tarn_status status = TARN_OK;
  dry->total = total;
  if (total == 0) {
    status = tarn_device_memory(device, &dry->total, &available);
    if (dry->total < UNLIMITED) dry->total = UNLIMITED;
  }
  return status != TARN_OK ? status : tarn_arena_create(&options, &dry->arena);
}

tarn_status tarn__supply_init_dry(tarn__pool_supply *supply, tarn_place place,
                                  tarn_device *device, size_t total) {
  *supply = (tarn__pool_supply){
      .calls = &dry_calls, .place = place, .device = device};
  tarn__pool_dry *dry = tarn__host_alloc(sizeof *dry);
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
void tarn__supply_deinit(tarn__pool_supply *supply) {
  tarn__pool_dry *dry = supply->dry;
  supply->dry = NULL;
  if (dry == NULL || pthread_mutex_trylock(&dry->lock) != 0) return;
  pthread_mutex_unlock(&dry->lock);
  tarn_arena_destroy(dry->arena);
  pthread_mutex_destroy(&dry->lock);
  tarn__host_free(dry, sizeof *dry);
}
