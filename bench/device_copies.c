// Copies that the caller waits for, in every direction.
#include "device_figures.h"

bool device_h2d(probe *p, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (tarn_copy_h2d(p->device, p->here, p->source, p->size, NULL) != TARN_OK)
      return false;
  }
  return true;
}

bool device_h2d_on_stream(probe *p, size_t count) {
  for (size_t i = 0; i < count; i++) {
    tarn_status status =
        tarn_copy_h2d(p->device, p->here, p->source, p->size, p->stream);
    if (status == TARN_OK) status = tarn_stream_synchronize(p->stream);
    if (status != TARN_OK) return false;
  }
  return true;
}

bool device_d2h(probe *p, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (tarn_copy_d2h(p->device, p->source, p->here, p->size, NULL) != TARN_OK)
      return false;
  }
  return true;
}

bool device_d2d(probe *p, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (tarn_copy_d2d(p->device, p->here, p->beside, p->size, NULL) != TARN_OK)
      return false;
  }
  return true;
}

bool device_d2h_on_stream(probe *p, size_t count) {
  for (size_t i = 0; i < count; i++) {
    tarn_status status =
        tarn_copy_d2h(p->device, p->source, p->here, p->size, p->stream);
    if (status == TARN_OK) status = tarn_stream_synchronize(p->stream);
    if (status != TARN_OK) return false;
  }
  return true;
}

bool device_d2d_on_stream(probe *p, size_t count) {
  for (size_t i = 0; i < count; i++) {
    tarn_status status =
        tarn_copy_d2d(p->device, p->here, p->beside, p->size, p->stream);
    if (status == TARN_OK) status = tarn_stream_synchronize(p->stream);
    if (status != TARN_OK) return false;
  }
  return true;
}

bool device_p2p(probe *p, size_t count) {
  for (size_t i = 0; i < count; i++) {
    tarn_status status =
        tarn_copy_p2p(p->next, p->away, p->device, p->here, p->size, NULL);
    if (status != TARN_OK) return false;
  }
  return true;
}
