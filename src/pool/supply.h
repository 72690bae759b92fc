// supply.h - where the memory of a pool comes from: its device, its caller, or,
// in a dry run, nowhere.
//
//   strategy ─► source, chunks, regions ─► supply ─┬► the device
//                                                  ├► memory of the caller's
//                                                  └► a made-up address space
//
// Statistics are kept above the supply, so that only the source knows which
// kind it is: the caller's memory is adopted (tarn__source_adopt), not
// allocated. Every call is made without the pool's lock.
#ifndef TARN_POOL_SUPPLY_H_
#define TARN_POOL_SUPPLY_H_

#include "tarn/device.h"
#include "tarn/pool.h"
#include "tarn/range.h"

// In the pool's struct.
typedef struct tarn__pool_supply {
  tarn_place place;
  tarn_device *device;         // of that place
  struct tarn__pool_dry *dry;  // of a dry run; else NULL
  tarn_pool_memory own;        // of the caller's; else all 0
} tarn__pool_supply;

// Makes it a dry run: addresses without memory, as if the device had |total|
// bytes; 0: 1 TiB, or what the device has if that is more.
TARN_MUST_CHECK tarn_status tarn__supply_begin_dry(tarn__pool_supply *supply,
                                                   size_t total);

// Frees the host memory of a dry run. A zero-filled supply is allowed.
void tarn__supply_deinit(tarn__pool_supply *supply);

// All below are as the functions of device/memory.h and tarn/range.h of these
// names. Of memory of the caller's only |memory| and |give| are called: it is
// cut up, and never grows.
//
// What can be had at once; what there is in all and free now. 0 in all, or
// SIZE_MAX free: unknown.
TARN_MUST_CHECK tarn_status tarn__supply_most(const tarn__pool_supply *supply,
                                              size_t *out_most);
TARN_MUST_CHECK tarn_status tarn__supply_memory(const tarn__pool_supply *supply,
                                                size_t *out_total,
                                                size_t *out_free);

// In the order of the stream with |serial|; 0: at once.
TARN_MUST_CHECK tarn_status tarn__supply_take(const tarn__pool_supply *supply,
                                              uint64_t serial, size_t size,
                                              tarn_addr *out_addr);
tarn_status tarn__supply_give(const tarn__pool_supply *supply, uint64_t serial,
                              tarn_addr addr, size_t size);

// Addresses, memory, and mappings of memory at addresses.
TARN_MUST_CHECK tarn_status
tarn__supply_reserve(const tarn__pool_supply *supply, size_t size, size_t align,
                     tarn_addr *out_addr);
tarn_status tarn__supply_release(const tarn__pool_supply *supply,
                                 tarn_addr addr, size_t size);
TARN_MUST_CHECK tarn_status tarn__supply_create(const tarn__pool_supply *supply,
                                                size_t size,
                                                tarn_memory *out_memory);
tarn_status tarn__supply_destroy(const tarn__pool_supply *supply,
                                 tarn_memory memory);
TARN_MUST_CHECK tarn_status tarn__supply_map(const tarn__pool_supply *supply,
                                             tarn_addr addr, size_t size,
                                             tarn_memory memory);
tarn_status tarn__supply_unmap(const tarn__pool_supply *supply, tarn_addr addr,
                               size_t size);
TARN_MUST_CHECK tarn_status tarn__supply_set_access(
    const tarn__pool_supply *supply, tarn_addr addr, size_t size);

// Whether the memory at addresses moves to others, and is cut into parts: then
// it needs no handles, and the next three may be called.
bool tarn__supply_moves(const tarn__pool_supply *supply);

// New memory, accessible, at |size| bytes of bare addresses. |*out_lost|: it
// failed, and they are in an unknown state.
TARN_MUST_CHECK tarn_status tarn__supply_fill(const tarn__pool_supply *supply,
                                              tarn_addr addr, size_t size,
                                              bool *out_lost);

// Gives memory of fill back, any whole pages of it; the addresses are bare
// again.
tarn_status tarn__supply_clear(const tarn__pool_supply *supply, tarn_addr addr,
                               size_t size);

// Moves such memory to bare addresses; |*out_moved| bytes of it if it fails.
TARN_MUST_CHECK tarn_status tarn__supply_move(const tarn__pool_supply *supply,
                                              tarn_addr from, tarn_addr to,
                                              size_t size, size_t *out_moved);

#endif  // TARN_POOL_SUPPLY_H_
