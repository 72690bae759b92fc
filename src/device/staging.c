// The staging ring.
//
//   slots  [ taken | free | taken | not made ]
//
// A free slot is preferred to a new one, a new one to waiting; if no more can
// be made, waiting for one of those there are is still right.
#include "device/device.h"

static tarn_place place_of(tarn_device *device) {
  return (tarn_place){device, TARN_PLACE_HOST};
}

void tarn__staging_free(tarn_device *device) {
  tarn__device_staging *staging = &device->staging;
  for (size_t i = 0; i < TARN__STAGING_SLOTS; i++) {
    if (staging->slots[i] == NULL) continue;
    (void)tarn__device_give(place_of(device), tarn__address(staging->slots[i]),
                            TARN__STAGING_SLOT_SIZE);
    staging->slots[i] = NULL;
  }
}

static bool take_free(tarn__device_staging *staging, void **out_slot) {
  for (size_t i = 0; i < TARN__STAGING_SLOTS; i++) {
    if (staging->slots[i] == NULL || staging->taken[i]) continue;
    staging->taken[i] = true;
    *out_slot = staging->slots[i];
    return true;
  }
  return false;
}

static tarn_status take_new(tarn_device *device, void **out_slot) {
  tarn__device_staging *staging = &device->staging;
  size_t i = 0;
  while (i < TARN__STAGING_SLOTS && staging->slots[i] != NULL)
    i++;
  if (i == TARN__STAGING_SLOTS) return TARN_FULL;
  tarn_addr addr = 0;
  TARN__TRY(
      tarn__device_take(place_of(device), TARN__STAGING_SLOT_SIZE, &addr));
  staging->slots[i] = tarn__pointer(addr);
  staging->taken[i] = true;
  *out_slot = staging->slots[i];
  return TARN_OK;
}

static tarn_status acquire_locked(tarn_device *device, void **out_slot) {
  tarn__device_staging *staging = &device->staging;
  if (take_free(staging, out_slot)) return TARN_OK;
  tarn_status status = take_new(device, out_slot);
  if (status == TARN_OK || staging->slots[0] == NULL) return status;
  while (!take_free(staging, out_slot)) {
    pthread_cond_wait(&staging->freed, &staging->lock);
  }
  return TARN_OK;
}

tarn_status tarn__staging_acquire(tarn_device *device, void **out_slot) {
  *out_slot = NULL;
  pthread_mutex_lock(&device->staging.lock);
  tarn_status status = acquire_locked(device, out_slot);
  pthread_mutex_unlock(&device->staging.lock);
  return status;
}

void tarn__staging_release(tarn_device *device, void *slot) {
  tarn__device_staging *staging = &device->staging;
  pthread_mutex_lock(&staging->lock);
  for (size_t i = 0; i < TARN__STAGING_SLOTS; i++) {
    if (staging->slots[i] == slot) staging->taken[i] = false;
  }
  pthread_cond_signal(&staging->freed);
  pthread_mutex_unlock(&staging->lock);
}
