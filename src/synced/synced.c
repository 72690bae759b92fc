// To be written.
#include "base/status.h"
#include "synced/core.h"

tarn_status tarn_synced_create(size_t size, const tarn_synced_options *options,
                               tarn_synced **out_buffer) {
  (void)size;
  (void)options;
  (void)out_buffer;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}

tarn_status tarn_synced_view(tarn_synced *buffer, size_t offset, size_t size,
                             tarn_synced **out_view) {
  (void)buffer;
  (void)offset;
  (void)size;
  (void)out_view;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}

tarn_status tarn_synced_destroy(tarn_synced *buffer) {
  (void)buffer;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}

size_t tarn_synced_size(const tarn_synced *buffer) {
  (void)buffer;
  return 0;
}
