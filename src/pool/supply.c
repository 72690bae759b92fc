// The device as the supply of a pool: each call is one of the device room's;
// and memory of the caller's.
#include "pool/supply.h"

#include "base/os.h"
#include "device/memory.h"

static tarn_status most(const tarn__pool_supply *supply, size_t *out_most) {
  return tarn__device_most(supply->device, out_most);
}

// A device knows its own memory. What it gives of the host's is the host's, and
// unified memory may be more than either has.
static tarn_status memory(const tarn__pool_supply *supply, size_t *out_total,
                          size_t *out_free) {
  tarn_place place = supply->place;
  if (place.kind == TARN_PLACE_DEVICE || tarn_place_equal(place, TARN_HOST)) {
    return tarn__device_room(supply->device, out_total, out_free);
  }
  *out_total = *out_free = 0;
  if (place.kind == TARN_PLACE_HOST) tarn__os_memory(out_total, out_free);
  return TARN_OK;
}

static tarn_status take(const tarn__pool_supply *supply, uint64_t serial,
                        size_t size, tarn_addr *out_addr) {
  return tarn__device_take_on(supply->place, serial, size, out_addr);
}

static tarn_status give(const tarn__pool_supply *supply, uint64_t serial,
                        tarn_addr addr, size_t size) {
  return tarn__device_give_on(supply->place, serial, addr, size);
}

static tarn_status reserve(const tarn__pool_supply *supply, size_t size,
                           size_t align, tarn_addr *out_addr) {
  return tarn__range_reserve(supply->device, size, align, out_addr);
}

static tarn_status release(const tarn__pool_supply *supply, tarn_addr addr,
                           size_t size) {
  return tarn__range_release(supply->device, addr, size);
}

static tarn_status create(const tarn__pool_supply *supply, size_t size,
                          tarn_memory *out_memory) {
  return tarn__memory_create(supply->device, size, 0, out_memory);
}

static tarn_status destroy(const tarn__pool_supply *supply,
                           tarn_memory handle) {
  return tarn__memory_destroy(supply->device, handle);
}

static tarn_status map(const tarn__pool_supply *supply, tarn_addr addr,
                       size_t size, tarn_memory handle) {
  return tarn_range_map(supply->device, addr, size, handle);
}

static tarn_status unmap(const tarn__pool_supply *supply, tarn_addr addr,
                         size_t size) {
  return tarn_range_unmap(supply->device, addr, size);
}

static tarn_status set_access(const tarn__pool_supply *supply, tarn_addr addr,
                              size_t size) {
  return tarn_range_set_access(supply->device, addr, size, supply->device,
                               TARN_RIGHTS_READ_WRITE);
}

static const tarn__pool_supply_calls device_calls = {
    .most = most,
    .memory = memory,
    .take = take,
    .give = give,
    .reserve = reserve,
    .release = release,
    .create = create,
    .destroy = destroy,
    .map = map,
    .unmap = unmap,
    .set_access = set_access,
};

void tarn__supply_init(tarn__pool_supply *supply, tarn_place place,
                       tarn_device *device) {
  *supply = (tarn__pool_supply){
      .calls = &device_calls, .place = place, .device = device};
}

// --- memory of the caller's ------------------------------------------------

// What is not in a block is idle, and nothing is free beside that.
static tarn_status own_memory(const tarn__pool_supply *supply,
                              size_t *out_total, size_t *out_free) {
  *out_total = supply->own.size;
  *out_free = 0;
  return TARN_OK;
}

// It is the caller's again without a call.
static tarn_status leave(const tarn__pool_supply *supply, uint64_t serial,
                         tarn_addr addr, size_t size) {
  (void)supply;
  (void)serial;
  (void)addr;
  (void)size;
  return TARN_OK;
}

static const tarn__pool_supply_calls own_calls = {
    .memory = own_memory,
    .give = leave,
};

void tarn__supply_init_own(tarn__pool_supply *supply, tarn_place place,
                           tarn_device *device, tarn_pool_memory memory) {
  *supply = (tarn__pool_supply){
      .calls = &own_calls, .place = place, .device = device, .own = memory};
}
