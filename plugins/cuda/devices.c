// The devices by number, in the driver's order.
//
// The driver is initialised and asked for its devices once, for good: from then
// on a forked child cannot use it.
#include "devices.h"

#include <string.h>

tarn__cuda_registry tarn__cuda_devices = {.lock = PTHREAD_MUTEX_INITIALIZER};

typedef tarn__cuda_device cuda;
typedef tarn__cuda_registry registry;

C_Status tarn__cuda_find_driver(void) {
  registry *all = &tarn__cuda_devices;
  if (tarn__cuda_load() == NULL) return C_FAILED;
  pthread_mutex_lock(&all->lock);
  bool is_read = all->is_listed || tarn__cuda_options_read(&all->options);
  pthread_mutex_unlock(&all->lock);
  return is_read ? C_SUCCESS : C_ERROR;
}

// --- listing ---------------------------------------------------------------

int tarn__cuda_ask(const cuda *d, unsigned attribute) {
  int value = 0;
  tarn__cuda_result error =
      tarn__cuda_driver_get()->DeviceGetAttribute(&value, attribute, d->handle);
  return error == TARN__CU_SUCCESS ? value : 0;
}

static void read_name(cuda *d) {
  if (tarn__cuda_driver_get()->DeviceGetName(d->name, sizeof d->name,
                                             d->handle) != TARN__CU_SUCCESS) {
    tarn__text_copy("a device without a name", d->name, sizeof d->name);
  }
  d->name[sizeof d->name - 1] = '\0';
}

static C_Status add_device(registry *all, int ordinal) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  cuda *d = &all->devices[all->count];
  *d = (cuda){.id = (int)all->count};
  tarn__cuda_result error = cu->DeviceGet(&d->handle, ordinal);
  if (error != TARN__CU_SUCCESS) return tarn__cuda_say(error, "cuDeviceGet");
  error = cu->DeviceTotalMem(&d->total, d->handle);
  if (error != TARN__CU_SUCCESS)
    return tarn__cuda_say(error, "cuDeviceTotalMem");
  read_name(d);
  d->major =
      tarn__cuda_ask(d, TARN__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  d->minor =
      tarn__cuda_ask(d, TARN__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  pthread_mutex_init(&d->lock, NULL);
  all->count++;
  return C_SUCCESS;
}

// One device that is broken must not hide the others. The first failure.
static C_Status add_devices(registry *all, int count) {
  C_Status first = C_SUCCESS;
  if (count > TARN__CUDA_DEVICES_MAX) count = TARN__CUDA_DEVICES_MAX;
  for (int i = 0; i < count; i++) {
    C_Status status = add_device(all, i);
    if (first == C_SUCCESS) first = status;
  }
  return first;
}

static C_Status list(registry *all) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  int count = 0;
  tarn__cuda_result error = cu->Init(0);
  if (error != TARN__CU_SUCCESS) return tarn__cuda_say(error, "cuInit");
  error = cu->DeviceGetCount(&count);
  if (error != TARN__CU_SUCCESS)
    return tarn__cuda_say(error, "cuDeviceGetCount");
  if (cu->DriverGetVersion(&all->version) != TARN__CU_SUCCESS) all->version = 0;
  C_Status status = add_devices(all, count);
  all->generation = tarn__os_generation();
  all->is_listed = all->count != 0;
  if (all->is_listed || status != C_SUCCESS) {
    return all->is_listed ? C_SUCCESS : status;
  }
  (void)tarn__text_fail(TARN_E_DEVICE, "%s has no device",
                        tarn__cuda_vendor_of.library);
  return C_FAILED;
}

// Whether this is the process that listed the devices.
static bool is_at_home(const registry *all) {
  if (all->generation == tarn__os_generation()) return true;
  (void)tarn__text_fail(TARN_E_STATE,
                        "the driver was initialised before a fork: it does "
                        "not work in the child");
  return false;
}

C_Status tarn__cuda_find_devices(void) {
  registry *all = &tarn__cuda_devices;
  C_Status status = tarn__cuda_find_driver();
  if (status != C_SUCCESS) return status;
  pthread_mutex_lock(&all->lock);
  if (!all->is_listed) {
    status = list(all);
  } else if (!is_at_home(all)) {
    status = C_ERROR;
  }
  pthread_mutex_unlock(&all->lock);
  return status;
}

// --- by number -------------------------------------------------------------

cuda *tarn__cuda_nth(size_t number) {
  registry *all = &tarn__cuda_devices;
  return number < all->count ? &all->devices[number] : NULL;
}

cuda *tarn__cuda_listed(const struct C_Device_st *device) {
  cuda *d = device != NULL && device->id >= 0
                ? tarn__cuda_nth((size_t)device->id)
                : NULL;
  if (d == NULL) {
    (void)tarn__text_fail(TARN_E_INVALID, "there is no device %d",
                          device != NULL ? device->id : -1);
    return NULL;
  }
  return is_at_home(&tarn__cuda_devices) ? d : NULL;
}

cuda *tarn__cuda_device_of(const struct C_Device_st *device) {
  cuda *d = tarn__cuda_listed(device);
  if (d == NULL || atomic_load_explicit(&d->ready, memory_order_acquire)) {
    return d;
  }
  (void)tarn__text_fail(TARN_E_INVALID, "device %d is not initialised", d->id);
  return NULL;
}

tarn_status tarn__cuda_admit(int id, cuda **out) {
  struct C_Device_st device = {id};
  *out = tarn__cuda_device_of(&device);
  return *out != NULL ? TARN_OK : TARN_E_INVALID;
}

// --- abilities -------------------------------------------------------------

tarn_status tarn__cuda_admit_for(int id, tarn__cuda_ability ability,
                                 cuda **out) {
  TARN__TRY(tarn__cuda_admit(id, out));
  if ((*out)->can[ability]) return TARN_OK;
  return tarn__text_fail(
      TARN_E_UNSUPPORTED, "%s:%d is without %s: %s", tarn__cuda_vendor_of.type,
      id, tarn__cuda_ability_name(ability), (*out)->why_not[ability]);
}

void tarn__cuda_settle(cuda *d, tarn__cuda_ability ability, const char *why) {
  d->can[ability] = why == NULL;
  tarn__text_copy(why != NULL ? why : "", d->why_not[ability],
                  sizeof d->why_not[ability]);
}

bool tarn__cuda_is_wanted(cuda *d, tarn__cuda_ability ability,
                          const tarn__cuda_options *options) {
  if (!options->without[ability]) return true;
  tarn__cuda_settle(d, ability, "the environment asks for it");
  return false;
}
