// Where the memory of a pool comes from: its device, its caller, or, in a dry
// run, nowhere.
//
//   0 ........ 2^47 ............ 2^55 |== block ==| ... |== range ==| ... 2^56
//   addresses of processes            addresses of dry pools
//
// The addresses of a dry run are those that no process has, so whatever is
// touched there by mistake faults, and no block of another pool stands at one.
// An arena deals them out, so that they are used again and a run never comes to
// their end. Memory has no address to tell it from other memory: a handle is
// its size.
//
// The pool's limit bounds the memory. Without a limit there is more than any
// one device has, for traces of devices larger than this machine's. The pool
// compares with its limit before it asks; only addresses can run out here.
#include "pool/supply.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "device/memory.h"
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

// --- what there is ---------------------------------------------------------

// Whatever a dry run pretends to have can be had at once.
tarn_status tarn__supply_most(const tarn__pool_supply *supply,
                              size_t *out_most) {
  const tarn__pool_dry *dry = supply->dry;
  tarn_status status = tarn__device_most(supply->device, out_most);
  if (dry != NULL && *out_most < dry->total) *out_most = dry->total;
  return status;
}

// A device reports its own memory. Its host allocations take the host's memory,
// and unified memory may exceed either.
tarn_status tarn__supply_memory(const tarn__pool_supply *supply,
                                size_t *out_total, size_t *out_free) {
  tarn__pool_dry *dry = supply->dry;
  tarn_place place = supply->place;
  *out_total = supply->own.size;
  *out_free = 0;
  if (supply->own.size != 0) return TARN_OK;
  if (dry != NULL) {
    size_t given = atomic_load_explicit(&dry->given, memory_order_relaxed);
    // A limit that it began with may be gone by now.
    size_t all = dry->total > UNLIMITED ? dry->total : UNLIMITED;
    *out_total = dry->total;
    *out_free = given < all ? all - given : 0;
    return TARN_OK;
  }
  if (place.kind == TARN_PLACE_DEVICE || tarn_place_equal(place, TARN_HOST)) {
    return tarn__device_room(supply->device, out_total, out_free);
  }
  if (place.kind == TARN_PLACE_HOST) tarn__os_memory(out_total, out_free);
  return TARN_OK;
}

static void count_given(tarn__pool_dry *dry, size_t size) {
  atomic_fetch_add_explicit(&dry->given, size, memory_order_relaxed);
}

static void count_back(tarn__pool_dry *dry, size_t size) {
  atomic_fetch_sub_explicit(&dry->given, size, memory_order_relaxed);
}

// --- addresses -------------------------------------------------------------

tarn_status tarn__supply_reserve(const tarn__pool_supply *supply, size_t size,
                                 size_t align, tarn_addr *out_addr) {
  tarn__pool_dry *dry = supply->dry;
  size_t offset = 0;
  if (dry == NULL) {
    return tarn__range_reserve(supply->device, size, align, out_addr);
  }
  *out_addr = 0;
  pthread_mutex_lock(&dry->lock);
  tarn_status status = tarn_arena_alloc(dry->arena, size, align, &offset);
  pthread_mutex_unlock(&dry->lock);
  if (status == TARN_OK) *out_addr = BASE + offset;
  return status;
}

tarn_status tarn__supply_release(const tarn__pool_supply *supply,
                                 tarn_addr addr, size_t size) {
  tarn__pool_dry *dry = supply->dry;
  if (dry == NULL) return tarn__range_release(supply->device, addr, size);
  pthread_mutex_lock(&dry->lock);
  tarn_status status = tarn_arena_free(dry->arena, (size_t)(addr - BASE));
  pthread_mutex_unlock(&dry->lock);
  return status;
}

// --- memory with addresses -------------------------------------------------

tarn_status tarn__supply_take(const tarn__pool_supply *supply, uint64_t serial,
                              size_t size, tarn_addr *out_addr) {
  if (supply->dry == NULL) {
    return tarn__device_take_on(supply->place, serial, size, out_addr);
  }
  TARN__TRY(tarn__supply_reserve(supply, size, 0, out_addr));
  count_given(supply->dry, size);
  return TARN_OK;
}

// Memory of the caller needs no call to be the caller's again.
tarn_status tarn__supply_give(const tarn__pool_supply *supply, uint64_t serial,
                              tarn_addr addr, size_t size) {
  if (supply->own.size != 0) return TARN_OK;
  if (supply->dry == NULL) {
    return tarn__device_give_on(supply->place, serial, addr, size);
  }
  count_back(supply->dry, size);
  return tarn__supply_release(supply, addr, size);
}

// --- memory without --------------------------------------------------------

tarn_status tarn__supply_create(const tarn__pool_supply *supply, size_t size,
                                tarn_memory *out_memory) {
  if (supply->dry == NULL) {
    return tarn__memory_create(supply->device, size, 0, out_memory);
  }
  count_given(supply->dry, size);
  *out_memory = size;
  return TARN_OK;
}

tarn_status tarn__supply_destroy(const tarn__pool_supply *supply,
                                 tarn_memory memory) {
  if (supply->dry == NULL) return tarn__memory_destroy(supply->device, memory);
  count_back(supply->dry, (size_t)memory);
  return TARN_OK;
}

tarn_status tarn__supply_map(const tarn__pool_supply *supply, tarn_addr addr,
                             size_t size, tarn_memory memory) {
  return supply->dry != NULL
             ? TARN_OK
             : tarn_range_map(supply->device, addr, size, memory);
}

tarn_status tarn__supply_unmap(const tarn__pool_supply *supply, tarn_addr addr,
                               size_t size) {
  return supply->dry != NULL ? TARN_OK
                             : tarn_range_unmap(supply->device, addr, size);
}

tarn_status tarn__supply_set_access(const tarn__pool_supply *supply,
                                    tarn_addr addr, size_t size) {
  if (supply->dry != NULL) return TARN_OK;
  return tarn_range_set_access(supply->device, addr, size, supply->device,
                               TARN_RIGHTS_READ_WRITE);
}

// --- memory without handles ------------------------------------------------

bool tarn__supply_moves(const tarn__pool_supply *supply) {
  return (tarn_device_extensions(supply->device) & TARN_EXTENSION_MOVES) != 0;
}

// Its handle ends at once, so that it can be cut.
static tarn_status map_new(tarn_device *device, tarn_addr addr, size_t size,
                           tarn_memory memory, bool *out_mapped) {
  tarn_status status = tarn_range_map(device, addr, size, memory);
  *out_mapped = status == TARN_OK;
  if (*out_mapped) {
    status = tarn_range_set_access(device, addr, size, device,
                                   TARN_RIGHTS_READ_WRITE);
  }
  tarn__keep_first(&status, tarn__memory_destroy(device, memory));
  return status;
}

tarn_status tarn__supply_fill(const tarn__pool_supply *supply, tarn_addr addr,
                              size_t size, bool *out_lost) {
  tarn_device *device = supply->device;
  tarn_memory memory = 0;
  bool mapped = false;
  *out_lost = false;
  if (supply->dry != NULL) {
    count_given(supply->dry, size);
    return TARN_OK;
  }
  TARN__TRY(tarn__memory_create(device, size, 0, &memory));
  tarn_status status = map_new(device, addr, size, memory, &mapped);
  if (status != TARN_OK && mapped) {
    *out_lost = tarn_range_unmap(device, addr, size) != TARN_OK;
  }
  return status;
}

tarn_status tarn__supply_clear(const tarn__pool_supply *supply, tarn_addr addr,
                               size_t size) {
  if (supply->dry == NULL) return tarn_range_unmap(supply->device, addr, size);
  count_back(supply->dry, size);
  return TARN_OK;
}

tarn_status tarn__supply_move(const tarn__pool_supply *supply, tarn_addr from,
                              tarn_addr to, size_t size, size_t *out_moved) {
  *out_moved = size;
  if (supply->dry != NULL) return TARN_OK;
  return tarn_range_move(supply->device, from, to, size, out_moved);
}

// --- beginning and end of a dry run ----------------------------------------

static tarn_status start(tarn__pool_dry *dry, tarn_device *device,
                         size_t total) {
  tarn_arena_options options = {
      .struct_size = sizeof options, .size = SPACE, .granule = STEP};
  size_t available = 0;
  dry->total = total;
  if (total == 0) {
    TARN__TRY(tarn_device_memory(device, &dry->total, &available));
    if (dry->total < UNLIMITED) dry->total = UNLIMITED;
  }
  return tarn_arena_create(&options, &dry->arena);
}

tarn_status tarn__supply_begin_dry(tarn__pool_supply *supply, size_t total) {
  tarn__pool_dry *dry = tarn__host_alloc(sizeof *dry);
  if (dry == NULL) return TARN_E_NOMEM;
  tarn_status status = start(dry, supply->device, total);
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
