// Copies: every one is checked, made through the table, and its failure put
// on the stream that it was queued on.
#include <string.h>

#include "device/device.h"

// |stream| NULL: the calling thread waits. TARN_OK means that the plug-in may
// be called.
static tarn_status prepare(tarn_device *device, tarn_stream *stream,
                           bool has_ends) {
  TARN__TRY(tarn__device_check(device));
  if (!has_ends) {
    return tarn__fail(TARN_E_INVALID, "%s: copy: an end is NULL", device->name);
  }
  if (stream != NULL) {
    TARN__TRY(tarn__stream_check(stream, device));
  }
  return tarn__device_enter(device);
}

static tarn_status finish(tarn_device *device, tarn_stream *stream,
                          const char *call, size_t size, C_Status result) {
  if (result == C_SUCCESS) return TARN_OK;
  tarn_status status = tarn__device_queued(device, call, size, result);
  return tarn__stream_settle(stream, status);
}

// --- on one device ---------------------------------------------------------

typedef C_Status copy_call(const C_Device device, void *to, const void *from,
                           size_t size);
typedef C_Status queue_call(const C_Device device, C_Stream stream, void *to,
                            const void *from, size_t size);

typedef enum direction {
  H2D,
  D2H,
  D2D,
} direction;

static const struct {
  tarn__device_table_entry make;
  size_t queue;
} copies[] = {
    [H2D] = {TARN__ABI_ENTRY(memory_copy_h2d),
             offsetof(C_DeviceInterface, async_memory_copy_h2d)},
    [D2H] = {TARN__ABI_ENTRY(memory_copy_d2h),
             offsetof(C_DeviceInterface, async_memory_copy_d2h)},
    [D2D] = {TARN__ABI_ENTRY(memory_copy_d2d),
             offsetof(C_DeviceInterface, async_memory_copy_d2d)},
};

// Not inlined into copy_quickly() below, which must stay short.
__attribute__((noinline)) static tarn_status copy(direction way,
                                                  tarn_device *device, void *to,
                                                  const void *from, size_t size,
                                                  tarn_stream *stream) {
  bool has_ends = size == 0 || (to != NULL && from != NULL);
  tarn_status status = prepare(device, stream, has_ends);
  if (status != TARN_OK || size == 0) return status;
  C_Status result = C_SUCCESS;
  C_Device at = &device->handle;
  if (tarn__stream_queues(stream)) {
    result = ((queue_call *)tarn__table_at(device->abi, copies[way].queue))(
        at, stream->native, to, from, size);
  } else {
    result = ((copy_call *)tarn__table_at(
        device->abi, copies[way].make.offset))(at, to, from, size);
  }
  return finish(device, stream, copies[way].make.name, size, result);
}

static inline bool is_apart(const void *a, const void *b, size_t size) {
  uintptr_t x = (uintptr_t)a;
  uintptr_t y = (uintptr_t)b;
  return (x < y ? y - x : x - y) >= size;
}

// What nearly all synchronous copies of the host's device are: nothing of
// copy() above would stop them, and the plug-in would only say memcpy. So that
// is what they are: 4 KiB take the time of a dozen calls.
static inline bool is_plain(const tarn_device *device, const void *to,
                            const void *from, size_t size,
                            const tarn_stream *stream) {
  return stream == NULL && device != NULL && to != NULL && from != NULL &&
         size != 0 && device->generation == tarn__os_generation() &&
         tarn__callbacks_running == 0 && device->plugin->is_host &&
         is_apart(to, from, size);
}

// |way| is a constant where this is used, and becomes part of it.
__attribute__((always_inline)) static inline tarn_status copy_quickly(
    direction way, tarn_device *device, void *to, const void *from, size_t size,
    tarn_stream *stream) {
  if (!is_plain(device, to, from, size, stream)) {
    return copy(way, device, to, from, size, stream);
  }
  memcpy(to, from, size);
  return TARN_OK;
}

tarn_status tarn_copy_h2d(tarn_device *device, tarn_addr dst, const void *src,
                          size_t size, tarn_stream *stream) {
  return copy_quickly(H2D, device, tarn__pointer(dst), src, size, stream);
}

tarn_status tarn_copy_d2h(tarn_device *device, void *dst, tarn_addr src,
                          size_t size, tarn_stream *stream) {
  return copy_quickly(D2H, device, dst, tarn__pointer(src), size, stream);
}

tarn_status tarn_copy_d2d(tarn_device *device, tarn_addr dst, tarn_addr src,
                          size_t size, tarn_stream *stream) {
  return copy_quickly(D2D, device, tarn__pointer(dst), tarn__pointer(src), size,
                      stream);
}

tarn_status tarn_device_set(tarn_device *device, tarn_addr addr,
                            unsigned char value, size_t size,
                            tarn_stream *stream) {
  tarn_status status = prepare(device, stream, size == 0 || addr != 0);
  if (status != TARN_OK || size == 0) return status;
  if (stream != NULL) {
    TARN__TRY(tarn_stream_synchronize(stream));
  }
  C_Status result = device->abi->device_memory_set(
      &device->handle, tarn__pointer(addr), value, size);
  return finish(device, stream, "device_memory_set", size, result);
}

// --- between devices -------------------------------------------------------

// Both ends belong to one plug-in, which knows them.
static tarn_status copy_within(tarn_device *dst_device, tarn_addr dst,
                               tarn_device *src_device, tarn_addr src,
                               size_t size, tarn_stream *stream) {
  void *to = tarn__pointer(dst);
  const void *from = tarn__pointer(src);
  C_Device at = &src_device->handle;
  C_Status result =
      tarn__stream_queues(stream)
          ? src_device->abi->async_memory_copy_p2p(
                &dst_device->handle, at, stream->native, to, from, size)
          : src_device->abi->memory_copy_p2p(&dst_device->handle, at, to, from,
                                             size);
  return finish(src_device, stream, "memory_copy_p2p", size, result);
}

// The plug-ins do not know each other: the bytes pass through the host, in one
// step where one of the two ends is the host's own memory.
static tarn_status copy_across(tarn_device *dst_device, tarn_addr dst,
                               tarn_device *src_device, tarn_addr src,
                               size_t size, tarn_stream *stream) {
  if (stream != NULL) {
    TARN__TRY(tarn_stream_synchronize(stream));
  }
  if (src_device->info.host_accessible) {
    return tarn_copy_h2d(dst_device, dst, tarn__pointer(src), size, NULL);
  }
  if (dst_device->info.host_accessible) {
    return tarn_copy_d2h(src_device, tarn__pointer(dst), src, size, NULL);
  }
  tarn_device *at = NULL;
  C_Status result = tarn__table_copy_across(
      &dst_device->handle, &src_device->handle, tarn__pointer(dst),
      tarn__pointer(src), size, &at);
  return tarn__device_queued(at, "a copy through the host", size, result);
}

tarn_status tarn_copy_p2p(tarn_device *dst_device, tarn_addr dst,
                          tarn_device *src_device, tarn_addr src, size_t size,
                          tarn_stream *stream) {
  TARN__TRY(tarn__device_check(dst_device));
  bool has_ends = size == 0 || (dst != 0 && src != 0);
  tarn_status status = prepare(src_device, stream, has_ends);
  if (status != TARN_OK || size == 0) return status;
  return dst_device->plugin == src_device->plugin
             ? copy_within(dst_device, dst, src_device, src, size, stream)
             : copy_across(dst_device, dst, src_device, src, size, stream);
}
