// Checks of the functions beyond the ABI, and the reasons of failures.
#include <errno.h>
#include <string.h>

#include "cpu.h"

tarn_status tarn__cpu_check_id(int id) {
  if (id == 0) return TARN_OK;
  return tarn__text_fail(TARN_E_INVALID, "there is no device %d", id);
}

tarn_status tarn__cpu_check_stream(int id, C_Stream stream) {
  tarn_status status = tarn__cpu_check_id(id);
  if (status != TARN_OK || stream == NULL) return status;
  struct C_Device_st device = {.id = id};
  if (tarn__queue_is_stream(&device, stream)) return TARN_OK;
  return tarn__text_fail(TARN_E_INVALID, "not a stream of this device");
}

tarn_status tarn__cpu_refused(const char *what, size_t size) {
  int reason = errno;
  bool full = reason == ENOMEM || reason == ENOSPC || reason == EAGAIN ||
              reason == EMFILE || reason == ENFILE || reason == EFBIG;
  return tarn__text_fail(full ? TARN_FULL : TARN_E_DEVICE,
                         "%s of %zu bytes: %s", what, size, strerror(reason));
}
