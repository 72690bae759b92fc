// What an address belongs to. A question is never a misuse: an address that
// nobody knows is only told so.
#include "extension.h"

static bool holds(const tarn__common_extent *extent, uint64_t address) {
  return extent != NULL && address - extent->node.start < extent->asked;
}

// In |extents|, which |device|'s lock guards.
static bool find_in(const tarn__common_extents *extents,
                    const tarn__sim_device *device, tarn_ext_kind kind,
                    uint64_t address, tarn_ext_pointer *out) {
  const tarn__common_extent *extent =
      tarn__common_extents_find(extents, address);
  if (!holds(extent, address)) return false;
  *out = (tarn_ext_pointer){kind, device->home.id, extent->node.start,
                            extent->asked};
  return true;
}

static bool find_known(tarn__sim_device *device, uint64_t address,
                       tarn_ext_pointer *out) {
  const tarn__common_extents *blocks = device->blocks;
  pthread_mutex_lock(&device->lock);
  bool found =
      find_in(&blocks[TARN__SIM_DEVICE], device, TARN_EXT_KIND_DEVICE, address,
              out) ||
      find_in(&blocks[TARN__SIM_UNIFIED], device, TARN_EXT_KIND_UNIFIED,
              address, out) ||
      find_in(&blocks[TARN__SIM_HOST], device, TARN_EXT_KIND_HOST, address,
              out) ||
      find_in(&device->registered, device, TARN_EXT_KIND_HOST, address, out);
  pthread_mutex_unlock(&device->lock);
  return found;
}

static bool find_mapping(const tarn__sim_device *owner, uint64_t address,
                         tarn_ext_pointer *out) {
  tarn__sim_lock_ranges();
  const tarn__common_extent *extent =
      tarn__common_extents_find(&owner->mappings, address);
  if (extent != NULL) {
    const tarn__sim_mapping *mapping = extent->record;
    *out =
        (tarn_ext_pointer){TARN_EXT_KIND_DEVICE, mapping->memory->home->home.id,
                           extent->node.start, extent->size};
  }
  tarn__sim_unlock_ranges();
  return extent != NULL;
}

// What |device| knows first: host memory may be registered with several.
static bool find_anywhere(tarn__sim_device *device, uint64_t address,
                          tarn_ext_pointer *out) {
  tarn__sim_device *other = NULL;
  if (find_known(device, address, out)) return true;
  for (size_t i = 0; (other = tarn__sim_nth(i)) != NULL; i++) {
    if (other != device && find_known(other, address, out)) return true;
  }
  other = tarn__sim_owner((const void *)(uintptr_t)address);
  return other != NULL && find_mapping(other, address, out);
}

tarn_status tarn__sim_pointer_query(int id, uint64_t addr,
                                    tarn_ext_pointer *out) {
  tarn__sim_device *device = NULL;
  *out = (tarn_ext_pointer){.id = 0};
  tarn_status status = tarn__sim_admit(TARN__SIM_pointer_query, id, &device);
  if (status != TARN_OK || find_anywhere(device, addr, out)) return status;
  return tarn__text_fail(&tarn__sim_text, TARN_E_INVALID,
                         "sim:%d: nothing is known of address 0x%llx", id,
                         (unsigned long long)addr);
}
