// Queries of addresses, and registered host memory.
//
// A query is never a misuse: an unknown address is only reported as such. A
// registration does nothing to the memory, which this processor can access
// anyway; it is kept to report wrong uses.
#include "base/status.h"
#include "extension.h"

// --- queries ---------------------------------------------------------------

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
  pthread_mutex_lock(&device->lock);
  bool found =
      find_in(&device->blocks.extents, device, TARN_EXT_KIND_DEVICE, address,
              out) ||
      find_in(&device->mapped[TARN__SIM_UNIFIED], device, TARN_EXT_KIND_UNIFIED,
              address, out) ||
      find_in(&device->mapped[TARN__SIM_HOST], device, TARN_EXT_KIND_HOST,
              address, out) ||
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
  return tarn__text_fail(TARN_E_INVALID,
                         "sim:%d: nothing is known of address 0x%llx", id,
                         (unsigned long long)addr);
}

// --- registrations ---------------------------------------------------------

static tarn_status refuse(tarn__sim_call call, const tarn__sim_device *device,
                          const void *ptr, size_t size, const char *words) {
  return tarn__sim_answer(
      tarn__sim_misuse("sim:%d: %s of %zu bytes at %p: %s", device->home.id,
                       tarn__sim_call_name(call), size, ptr, words));
}

static const char *check_run(const void *ptr, size_t size) {
  uintptr_t begin = (uintptr_t)ptr;
  if (ptr == NULL) return "no address";
  if (size == 0) return "no bytes";
  if (begin > UINTPTR_MAX - size) return "beyond the last address";
  if (tarn__sim_owner(ptr) != NULL ||
      tarn__sim_owner((const char *)ptr + (size - 1)) != NULL) {
    return "wrong direction: an address of a device";
  }
  return NULL;
}

// Its fault; NULL: none, and |*out_added| says whether there was host memory to
// keep it.
static const char *add_locked(tarn__sim_device *device, tarn__common_run run,
                              bool *out_added) {
  if (tarn__common_extents_in(&device->registered, run) != NULL ||
      tarn__common_extents_in(&device->mapped[TARN__SIM_HOST], run) != NULL ||
      tarn__common_extents_in(&device->mapped[TARN__SIM_UNIFIED], run) !=
          NULL) {
    return "some of it is known already";
  }
  *out_added = tarn__common_extents_add(&device->registered, run, run.size,
                                        device->serial + 1) != NULL;
  if (*out_added) device->serial++;
  return NULL;
}

tarn_status tarn__sim_host_register(int id, void *ptr, size_t size) {
  tarn__sim_call call = TARN__SIM_host_register;
  tarn__sim_device *device = NULL;
  bool added = false;
  TARN__TRY(tarn__sim_admit(call, id, &device));
  const char *words = check_run(ptr, size);
  if (words != NULL) return refuse(call, device, ptr, size, words);
  pthread_mutex_lock(&device->lock);
  words = add_locked(device, (tarn__common_run){(uintptr_t)ptr, size}, &added);
  pthread_mutex_unlock(&device->lock);
  if (words != NULL) return refuse(call, device, ptr, size, words);
  return added ? TARN_OK : tarn__sim_no_resources(device, "host memory");
}

tarn_status tarn__sim_host_unregister(int id, void *ptr) {
  tarn__sim_call call = TARN__SIM_host_unregister;
  tarn__sim_device *device = NULL;
  TARN__TRY(tarn__sim_admit(call, id, &device));
  pthread_mutex_lock(&device->lock);
  tarn__common_extent *extent =
      tarn__common_extents_find(&device->registered, (uintptr_t)ptr);
  bool begins = extent != NULL && extent->node.start == (uintptr_t)ptr;
  if (begins) tarn__common_extents_remove(&device->registered, extent);
  pthread_mutex_unlock(&device->lock);
  if (begins) return TARN_OK;
  return refuse(call, device, ptr, 0, "no registered memory begins there");
}
