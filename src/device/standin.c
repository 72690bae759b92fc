// The stand-ins for what a plug-in's table lacks, and putting them in.
//
//   absent                      stands in
//   async_memory_copy_*         wait for the stream, then the synchronous copy
//   memory_copy_p2p             d2h + h2d through the staging ring, in pieces
//   device_memory_set           h2d of a filled staging slot, in pieces
//   host_memory_*               the host's plain memory
//   streams, events             everything is synchronous
//   query_*                     wait, then yes
//   synchronize_device          wait for each of its streams
//   stream_add_callback         wait, then call it
//   stream_wait_event           the host waits
//   init_device and the like    nothing to do
#include <string.h>

#include "device/device.h"

// --- devices, streams, events ----------------------------------------------

static tarn_device *device_of(const C_Device handle) {
  return tarn_list_entry(handle, tarn_device, handle);
}

static const C_DeviceInterface *abi_of(const C_Device handle) {
  return device_of(handle)->abi;
}

static C_Status nothing(void) {
  return C_SUCCESS;
}

static C_Status nothing_for_device(const C_Device device) {
  (void)device;
  return C_SUCCESS;
}

static C_Status no_stream(const C_Device device, C_Stream *stream) {
  (void)device;
  *stream = NULL;
  return C_SUCCESS;
}

static C_Status query_stream(const C_Device device, C_Stream stream) {
  return abi_of(device)->synchronize_stream(device, stream);
}

static C_Status add_callback(const C_Device device, C_Stream stream,
                             C_Callback callback, void *user_data) {
  C_Status status = abi_of(device)->synchronize_stream(device, stream);
  callback(device, stream, user_data, &status);
  return C_SUCCESS;
}

static C_Status synchronize_streams(const C_Device device) {
  tarn_status status = tarn__streams_synchronize(device_of(device));
  return status == TARN_OK ? C_SUCCESS : C_INTERNAL_ERROR;
}

static C_Status no_event(const C_Device device, C_Event *event) {
  (void)device;
  *event = NULL;
  return C_SUCCESS;
}

static C_Status query_event(const C_Device device, C_Event event) {
  return abi_of(device)->synchronize_event(device, event);
}

static C_Status wait_event(const C_Device device, C_Stream stream,
                           C_Event event) {
  (void)stream;
  return abi_of(device)->synchronize_event(device, event);
}

// --- memory and copies -----------------------------------------------------

// The host's plain memory is the cpu plug-in's.
static C_Status host_allocate(const C_Device device, void **ptr, size_t size) {
  (void)device;
  tarn_addr addr = 0;
  tarn_status status = tarn__device_take(TARN_HOST, size, &addr);
  *ptr = tarn__pointer(addr);
  if (status == TARN_OK) return C_SUCCESS;
  return status == TARN_FULL ? C_FAILED : C_ERROR;
}

static C_Status host_deallocate(const C_Device device, void *ptr, size_t size) {
  (void)device;
  tarn_status status = tarn__device_give(TARN_HOST, tarn__address(ptr), size);
  return status == TARN_OK ? C_SUCCESS : C_ERROR;
}

static size_t piece_of(size_t left) {
  return left < TARN__STAGING_SLOT_SIZE ? left : TARN__STAGING_SLOT_SIZE;
}

static C_Status memory_set(const C_Device device, void *ptr,
                           unsigned char value, size_t size) {
  void *slot = NULL;
  C_Status status = C_SUCCESS;
  if (tarn__staging_acquire(device_of(device), &slot) != TARN_OK) {
    return C_FAILED;
  }
  memset(slot, value, piece_of(size));
  for (size_t done = 0; status == C_SUCCESS && done < size;) {
    size_t piece = piece_of(size - done);
    status = abi_of(device)->memory_copy_h2d(device, (char *)ptr + done, slot,
                                             piece);
    if (status == C_WARNING) status = C_SUCCESS;
    done += piece;
  }
  tarn__staging_release(device_of(device), slot);
  return status;
}

// The two devices may be of different plug-ins, so each is made current first.
static C_Status copy_piece(const C_Device dst_device, const C_Device src_device,
                           void *dst, const void *src, void *slot, size_t size,
                           tarn_device **out_at) {
  *out_at = device_of(src_device);
  if (tarn__device_enter(device_of(src_device)) != TARN_OK) return C_ERROR;
  C_Status status =
      abi_of(src_device)->memory_copy_d2h(src_device, slot, src, size);
  if (status != C_SUCCESS && status != C_WARNING) return status;
  *out_at = device_of(dst_device);
  if (tarn__device_enter(device_of(dst_device)) != TARN_OK) return C_ERROR;
  return abi_of(dst_device)->memory_copy_h2d(dst_device, dst, slot, size);
}

C_Status tarn__table_copy_across(const C_Device dst_device,
                                 const C_Device src_device, void *dst,
                                 const void *src, size_t size,
                                 tarn_device **out_at) {
  void *slot = NULL;
  *out_at = device_of(src_device);
  if (tarn__staging_acquire(device_of(src_device), &slot) != TARN_OK) {
    return C_FAILED;
  }
  C_Status status = C_SUCCESS;
  for (size_t done = 0; status == C_SUCCESS && done < size;) {
    size_t piece = piece_of(size - done);
    status = copy_piece(dst_device, src_device, (char *)dst + done,
                        (const char *)src + done, slot, piece, out_at);
    if (status == C_WARNING) status = C_SUCCESS;
    done += piece;
  }
  tarn__staging_release(device_of(src_device), slot);
  return status;
}

static C_Status copy_p2p(const C_Device dst_device, const C_Device src_device,
                         void *dst, const void *src, size_t size) {
  tarn_device *at = NULL;
  return tarn__table_copy_across(dst_device, src_device, dst, src, size, &at);
}

// An asynchronous copy's stand-in: waits for queued work, then copies.
#define DEFINE_ASYNC(direction)                                                \
  static C_Status async_##direction(const C_Device device, C_Stream stream,    \
                                    void *dst, const void *src, size_t size) { \
    C_Status status = abi_of(device)->synchronize_stream(device, stream);      \
    if (status != C_SUCCESS && status != C_WARNING) return status;             \
    return abi_of(device)->memory_copy_##direction(device, dst, src, size);    \
  }

DEFINE_ASYNC(h2d)
DEFINE_ASYNC(d2h)
DEFINE_ASYNC(d2d)

static C_Status async_p2p(const C_Device dst_device, const C_Device src_device,
                          C_Stream stream, void *dst, const void *src,
                          size_t size) {
  const C_DeviceInterface *abi = abi_of(src_device);
  C_Status status = abi->synchronize_stream(src_device, stream);
  if (status != C_SUCCESS && status != C_WARNING) return status;
  return abi->memory_copy_p2p(dst_device, src_device, dst, src, size);
}

// --- completing ------------------------------------------------------------

static const C_DeviceInterface stand_ins = {
    .initialize = nothing,
    .finalize = nothing,
    .init_device = nothing_for_device,
    .set_device = nothing_for_device,
    .deinit_device = nothing_for_device,
    .create_stream = no_stream,
    .query_stream = query_stream,
    .stream_add_callback = add_callback,
    .create_event = no_event,
    .query_event = query_event,
    .synchronize_device = synchronize_streams,
    .stream_wait_event = wait_event,
    .device_memory_set = memory_set,
    .host_memory_allocate = host_allocate,
    .host_memory_deallocate = host_deallocate,
    .memory_copy_p2p = copy_p2p,
    .async_memory_copy_h2d = async_h2d,
    .async_memory_copy_d2h = async_d2h,
    .async_memory_copy_d2d = async_d2d,
    .async_memory_copy_p2p = async_p2p,
};

uint32_t tarn__table_complete(C_DeviceInterface *abi) {
  if (abi->create_stream == NULL) {  // nothing that is queued can be its own
    abi->async_memory_copy_h2d = NULL;
    abi->async_memory_copy_d2h = NULL;
    abi->async_memory_copy_d2d = NULL;
    abi->async_memory_copy_p2p = NULL;
    abi->stream_add_callback = NULL;
  }
  uint32_t own = tarn__table_bits(abi);
  const size_t end = offsetof(C_DeviceInterface, beyond);
  for (size_t at = sizeof abi->size; at < end; at += sizeof(void *)) {
    if (tarn__table_at(abi, at) != NULL) continue;
    memcpy((char *)abi + at, (const char *)&stand_ins + at, sizeof(void *));
  }
  return own;
}
