// What keeps a device open that wholes are on, be it that they have no byte
// there: one for each device, from its first whole until it closes.
#include <stdatomic.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "whole/whole.h"

typedef struct device_ref {
  atomic_size_t wholes;
} device_ref;

static tarn_status on_close(tarn_device *device, void *pointer, bool commit) {
  device_ref *attached = pointer;
  if (commit) {
    tarn__host_free(attached, sizeof *attached);
    return TARN_OK;
  }
  size_t wholes = atomic_load(&attached->wholes);
  if (wholes == 0) return TARN_OK;
  return tarn__fail(TARN_E_STATE, "%s: cannot close: %zu wholes are there",
                    tarn_device_name(device), wholes);
}

static tarn_status attach(tarn_device *device, device_ref **out) {
  device_ref *made = tarn__host_alloc(sizeof *made);
  if (made == NULL) return TARN_E_NOMEM;
  tarn_status status =
      tarn_device_attach(device, TARN_SLOT_WHOLE, made, on_close);
  if (status == TARN_OK) {
    *out = made;
    return TARN_OK;
  }
  tarn__host_free(made, sizeof *made);
  *out = tarn_device_attached(device, TARN_SLOT_WHOLE);
  return *out != NULL ? TARN_OK : status;  // another thread was quicker
}

tarn_status tarn__whole_ref_device(tarn_device *device) {
  if (device == NULL) return TARN_OK;
  tarn_status status = TARN_OK;
  device_ref *found = tarn_device_attached(device, TARN_SLOT_WHOLE);
  if (found == NULL) status = attach(device, &found);
  if (status == TARN_OK) atomic_fetch_add(&found->wholes, 1);
  return status;
}

void tarn__whole_unref_device(tarn_device *device) {
  if (device == NULL) return;
  device_ref *found = tarn_device_attached(device, TARN_SLOT_WHOLE);
  if (found != NULL) atomic_fetch_sub(&found->wholes, 1);
}
