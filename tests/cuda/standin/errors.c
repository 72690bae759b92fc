// Errors: their names, and words of the stand-in's own for them.
#include <stddef.h>

#include "api.h"

#define NAMES(X)                                                              \
  X(SUCCESS, "no error")                                                      \
  X(ERROR_INVALID_VALUE, "invalid argument")                                  \
  X(ERROR_OUT_OF_MEMORY, "out of memory")                                     \
  X(ERROR_NOT_INITIALIZED, "initialization error")                            \
  X(ERROR_DEINITIALIZED, "driver shutting down")                              \
  X(ERROR_DEVICE_UNAVAILABLE, "device(s) is/are busy or unavailable")         \
  X(ERROR_NO_DEVICE, "no device is detected")                                 \
  X(ERROR_INVALID_DEVICE, "invalid device ordinal")                           \
  X(ERROR_INVALID_IMAGE, "device kernel image is invalid")                    \
  X(ERROR_INVALID_CONTEXT, "invalid device context")                          \
  X(ERROR_NO_BINARY_FOR_GPU, "no kernel image for this device")               \
  X(ERROR_UNSUPPORTED_PTX_VERSION, "the PTX needs a newer driver")            \
  X(ERROR_INVALID_HANDLE, "invalid resource handle")                          \
  X(ERROR_NOT_FOUND, "named symbol not found")                                \
  X(ERROR_NOT_READY, "device not ready")                                      \
  X(ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered")        \
  X(ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested")            \
  X(ERROR_CONTEXT_IS_DESTROYED, "context is destroyed")                       \
  X(ERROR_ASSERT, "device-side assert triggered")                             \
  X(ERROR_HOST_MEMORY_ALREADY_REGISTERED, "memory already registered")        \
  X(ERROR_HOST_MEMORY_NOT_REGISTERED, "memory has not been registered")       \
  X(ERROR_LAUNCH_FAILED, "unspecified launch failure")                        \
  X(ERROR_NOT_PERMITTED, "operation not permitted")                           \
  X(ERROR_NOT_SUPPORTED, "operation not supported")                           \
  X(ERROR_STREAM_CAPTURE_UNSUPPORTED,                                         \
    "operation not permitted when a stream is capturing")                     \
  X(ERROR_STREAM_CAPTURE_INVALIDATED, "the capture is invalid")               \
  X(ERROR_STREAM_CAPTURE_MERGE, "two captures would be merged")               \
  X(ERROR_STREAM_CAPTURE_UNMATCHED, "the capture began elsewhere")            \
  X(ERROR_STREAM_CAPTURE_UNJOINED, "a stream was not joined")                 \
  X(ERROR_STREAM_CAPTURE_ISOLATION, "a dependency crosses the capture")       \
  X(ERROR_STREAM_CAPTURE_IMPLICIT, "a dependency on the legacy stream")       \
  X(ERROR_CAPTURED_EVENT, "the event was recorded in a capture")              \
  X(ERROR_STREAM_CAPTURE_WRONG_THREAD, "the capture began in another thread") \
  X(ERROR_UNKNOWN, "unknown error")

static const struct {
  tarn__cuda_result error;
  const char *name;
  const char *text;
} TABLE[] = {
#define ROW(name, text) {TARN__CU_##name, "CUDA_" #name, text},
    NAMES(ROW)
#undef ROW
};

static tarn__cuda_result find(tarn__cuda_result error, size_t *out) {
  for (size_t i = 0; i < sizeof TABLE / sizeof *TABLE; i++) {
    if (TABLE[i].error != error) continue;
    *out = i;
    return TARN__CU_SUCCESS;
  }
  return TARN__CU_ERROR_INVALID_VALUE;
}

// Neither counts as a call: they fail never, and work always.
tarn__cuda_result cuGetErrorName(tarn__cuda_result error, const char **out) {
  size_t at = 0;
  tarn__cuda_result result = find(error, &at);
  *out = result == TARN__CU_SUCCESS ? TABLE[at].name : NULL;
  return result;
}

tarn__cuda_result cuGetErrorString(tarn__cuda_result error, const char **out) {
  size_t at = 0;
  tarn__cuda_result result = find(error, &at);
  *out = result == TARN__CU_SUCCESS ? TABLE[at].text : NULL;
  return result;
}
