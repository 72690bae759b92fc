// Memory of the host that a device knows. Nothing is done to it: the host's
// memory is in this processor's reach. What is kept is what can be told wrong.
#include "extension.h"

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

// What is wrong with it; NULL: nothing, and |*out_added| says whether there
// was host memory to keep it.
static const char *add_locked(tarn__sim_device *device, tarn__common_run run,
                              bool *out_added) {
  if (tarn__common_extents_in(&device->registered, run) != NULL ||
      tarn__common_extents_in(&device->blocks[TARN__SIM_HOST], run) != NULL ||
      tarn__common_extents_in(&device->blocks[TARN__SIM_UNIFIED], run) !=
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
  tarn_status status = tarn__sim_admit(call, id, &device);
  if (status != TARN_OK) return status;
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
  tarn_status status = tarn__sim_admit(call, id, &device);
  if (status != TARN_OK) return status;
  pthread_mutex_lock(&device->lock);
  tarn__common_extent *extent =
      tarn__common_extents_find(&device->registered, (uintptr_t)ptr);
  bool begins = extent != NULL && extent->node.start == (uintptr_t)ptr;
  if (begins) tarn__common_extents_remove(&device->registered, extent);
  pthread_mutex_unlock(&device->lock);
  if (begins) return TARN_OK;
  return refuse(call, device, ptr, 0, "no registered memory begins there");
}
