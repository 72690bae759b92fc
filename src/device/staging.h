// staging.h - a device's ring of pinned host memory for copies that cannot go
// directly.
//
// A few slots of fixed size, made when first needed, never from a pool. Who
// takes a slot gives it back before it takes another, so waiting for one
// always ends.
#ifndef TARN_DEVICE_STAGING_H_
#define TARN_DEVICE_STAGING_H_

#include <pthread.h>

#include "tarn/device.h"

enum {
  TARN__STAGING_SLOTS = 4,
  TARN__STAGING_SLOT_SIZE = 1 << 20,
};

typedef struct tarn__device_staging {
  pthread_mutex_t lock;  // guards all below
  pthread_cond_t freed;
  void *slots[TARN__STAGING_SLOTS];  // NULL: not made yet
  bool taken[TARN__STAGING_SLOTS];
} tarn__device_staging;

void tarn__staging_init(tarn__device_staging *staging);

void tarn__staging_deinit(tarn__device_staging *staging);

// Gives the slots back to the device; nobody may hold one.
void tarn__staging_free(tarn_device *device);

// Takes a slot of TARN__STAGING_SLOT_SIZE bytes; waits if all are taken.
//
// TARN_FULL, TARN_E_DEVICE  there is no slot yet and none can be made.
TARN_MUST_CHECK tarn_status tarn__staging_acquire(tarn_device *device,
                                                  void **out_slot);
void tarn__staging_release(tarn_device *device, void *slot);

#endif  // TARN_DEVICE_STAGING_H_
