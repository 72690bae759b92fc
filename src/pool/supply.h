// supply.h - where the memory of a pool comes from: its device, its caller, or,
// in a dry run, nowhere.
//
//   strategy ─► source, chunks, regions ─► supply ─┬► the device
//                                                  ├► memory of the caller's
//                                                  └► a made-up address space
//
// Statistics are kept in front of it, so that nothing there knows which of them
// it is, but the source: memory of the caller's is not asked for, it is there
// (tarn__source_adopt). Every call is made with the pool's lock let go.
#ifndef TARN_POOL_SUPPLY_H_
#define TARN_POOL_SUPPLY_H_

#include "tarn/device.h"
#include "tarn/pool.h"
#include "tarn/range.h"

typedef struct tarn__pool_supply tarn__pool_supply;

// As the functions of device/memory.h and tarn/range.h of these names.
typedef struct tarn__pool_supply_calls {
  // What can be had at once; what there is in all and free now. 0 in all, or
  // SIZE_MAX free: unknown.
  tarn_status (*most)(const tarn__pool_supply *supply, size_t *out_most);
  tarn_status (*memory)(const tarn__pool_supply *supply, size_t *out_total,
                        size_t *out_free);

  // In the order of the stream with |serial|; 0: at once.
  tarn_status (*take)(const tarn__pool_supply *supply, uint64_t serial,
                      size_t size, tarn_addr *out_addr);
  tarn_status (*give)(const tarn__pool_supply *supply, uint64_t serial,
                      tarn_addr addr, size_t size);

  // Addresses, memory, and the one behind the other.
  tarn_status (*reserve)(const tarn__pool_supply *supply, size_t size,
                         size_t align, tarn_addr *out_addr);
  tarn_status (*release)(const tarn__pool_supply *supply, tarn_addr addr,
                         size_t size);
  tarn_status (*create)(const tarn__pool_supply *supply, size_t size,
                        tarn_memory *out_memory);
  tarn_status (*destroy)(const tarn__pool_supply *supply, tarn_memory memory);
  tarn_status (*map)(const tarn__pool_supply *supply, tarn_addr addr,
                     size_t size, tarn_memory memory);
  tarn_status (*unmap)(const tarn__pool_supply *supply, tarn_addr addr,
                       size_t size);
  tarn_status (*set_access)(const tarn__pool_supply *supply, tarn_addr addr,
                            size_t size);
} tarn__pool_supply_calls;

// In the pool's struct.
struct tarn__pool_supply {
  const tarn__pool_supply_calls *calls;
  tarn_place place;
  tarn_device *device;
  struct tarn__pool_dry *dry;  // of a dry run; else NULL
  tarn_pool_memory own;        // of the caller's; else all 0
};

// The memory of |place|, which is one of |device|.
void tarn__supply_init(tarn__pool_supply *supply, tarn_place place,
                       tarn_device *device);

// |memory| of the caller's, at |place|. Only |memory| and |give| of the calls
// are there: it is cut up, and never grows.
void tarn__supply_init_own(tarn__pool_supply *supply, tarn_place place,
                           tarn_device *device, tarn_pool_memory memory);

// Addresses without memory, as if |device| had |total| bytes; 0: 1 TiB, or what
// the device has if that is more.
TARN_MUST_CHECK tarn_status tarn__supply_init_dry(tarn__pool_supply *supply,
                                                  tarn_place place,
                                                  tarn_device *device,
                                                  size_t total);

// Frees what a dry run has on the host. Of a zero-filled supply as well.
void tarn__supply_deinit(tarn__pool_supply *supply);

#endif  // TARN_POOL_SUPPLY_H_
