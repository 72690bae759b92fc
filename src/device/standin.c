// The stand-ins for what a plug-in's table lacks, and putting them in.
//
//   absent                      stands in
//   async_memory_copy_*         wait for the stream, then the synchronous copy
//   memory_copy_p2p             d2h + h2d through the staging ring, in pieces
//   device_memory_set           h2d of a filled staging slot, in pieces
//   host_memory_*               the host's plain memory
//   unified_memory_*            'unsupported'
//   device_max_alloc_size       memory available now
//   device_max_chunk_size       max_alloc_size, as are init and realloc
//   device_extra_padding_size   0
//   streams, events             everything is synchronous
//   query_*                     wait, then yes
//   synchronize_device          wait for each of its streams
//   stream_add_callback         wait, then call it
//   stream_wait_event           the host waits
//   init_device and the like    nothing to do
#include <string.h>

#include "device/device.h"
#include "device/plugin.h"

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

static C_Status count_up_ids(size_t *ids) {
  (void)ids;  // the caller has filled them already
  return C_SUCCESS;
}

static C_Status no_stream(const C_Device device, C_Stream *stream) {
  (void)device;
  *stream = NULL;
  return C_SUCCESS;
}

static C_Status nothing_on_stream(const C_Device device, C_Stream stream) {
  (void)device;
  (void)stream;
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

static C_Status add_callback_now(const C_Device device, C_Stream stream,
                                 C_Callback callback, void *user_data) {
  C_Status status = C_SUCCESS;
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

static C_Status record_event(const C_Device device, C_Stream stream,
                             C_Event event) {
  (void)event;
  return abi_of(device)->synchronize_stream(device, stream);
}

static C_Status nothing_for_event(const C_Device device, C_Event event) {
  (void)device;
  (void)event;
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

static C_Status unified_allocate(const C_Device device, void **ptr,
                                 size_t size) {
  (void)device;
  (void)size;
  *ptr = NULL;
  return TARN__C_UNSUPPORTED;
}

static C_Status unified_deallocate(const C_Device device, void *ptr,
                                   size_t size) {
  (void)device;
  (void)ptr;
  (void)size;
  return TARN__C_UNSUPPORTED;
}

static size_t piece_of(size_t left) {
  return left < TARN__STAGING_SLOT_SIZE ? left : TARN__STAGING_SLOT_SIZE;
}

static C_Status set_through(const C_Device device, void *slot, char *dst,
                            size_t size) {
  C_Status status = C_SUCCESS;
  while (status == C_SUCCESS && size > 0) {
    size_t piece = piece_of(size);
    status = abi_of(device)->memory_copy_h2d(device, dst, slot, piece);
    if (status == C_WARNING) status = C_SUCCESS;
    dst += piece;
    size -= piece;
  }
  return status;
}

static C_Status memory_set(const C_Device device, void *ptr,
                           unsigned char value, size_t size) {
  void *slot = NULL;
  if (tarn__staging_acquire(device_of(device), &slot) != TARN_OK) {
    return C_FAILED;
  }
  memset(slot, value, piece_of(size));
  C_Status status = set_through(device, slot, ptr, size);
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

// An asynchronous copy's stand-in: what is queued first, then the copy.
#define DEFINE_ASYNC(direction)                                                \
  static C_Status async_##direction(const C_Device device, C_Stream stream,    \
                                    void *dst, const void *src, size_t size) { \
    C_Status status = abi_of(device)->synchronize_stream(device, stream);      \
    if (status != C_SUCCESS && status != C_WARNING) return status;             \
    return abi_of(device)->memory_copy_##direction(device, dst, src, size);    \
  }                                                                            \
  static C_Status now_##direction(const C_Device device, C_Stream stream,      \
                                  void *dst, const void *src, size_t size) {   \
    (void)stream;                                                              \
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

static C_Status now_p2p(const C_Device dst_device, const C_Device src_device,
                        C_Stream stream, void *dst, const void *src,
                        size_t size) {
  (void)stream;
  return abi_of(src_device)
      ->memory_copy_p2p(dst_device, src_device, dst, src, size);
}

// --- sizes -----------------------------------------------------------------

static C_Status available_now(C_Device device, size_t *size) {
  size_t total = 0;
  return abi_of(device)->device_memory_stats(device, &total, size);
}

static C_Status max_alloc(C_Device device, size_t *size) {
  return abi_of(device)->device_max_alloc_size(device, size);
}

static C_Status no_padding(C_Device device, size_t *size) {
  (void)device;
  *size = 0;
  return C_SUCCESS;
}

// --- completing ------------------------------------------------------------

// Sets |function| if it is NULL; true if it was the plug-in's own.
#define COMPLETE(function, stand_in) \
  (abi->function != NULL ? true : (abi->function = (stand_in), false))

static void complete_devices(C_DeviceInterface *abi) {
  (void)COMPLETE(initialize, nothing);
  (void)COMPLETE(finalize, nothing);
  (void)COMPLETE(init_device, nothing_for_device);
  (void)COMPLETE(set_device, nothing_for_device);
  (void)COMPLETE(get_device, nothing_for_device);
  (void)COMPLETE(deinit_device, nothing_for_device);
  (void)COMPLETE(synchronize_device, synchronize_streams);
  (void)COMPLETE(get_device_list, count_up_ids);
}

static uint32_t complete_streams(C_DeviceInterface *abi) {
  uint32_t own = 0;
  if (COMPLETE(create_stream, no_stream)) {
    own |= TARN_FN_STREAMS;
  } else {  // without streams, nothing that is queued can be its own
    abi->async_memory_copy_h2d = NULL;
    abi->async_memory_copy_d2h = NULL;
    abi->async_memory_copy_d2d = NULL;
    abi->async_memory_copy_p2p = NULL;
    abi->stream_add_callback = NULL;
  }
  (void)COMPLETE(destroy_stream, nothing_on_stream);
  (void)COMPLETE(synchronize_stream, nothing_on_stream);
  (void)COMPLETE(query_stream, query_stream);
  if (COMPLETE(stream_add_callback, add_callback)) own |= TARN_FN_CALLBACKS;
  return own;
}

static uint32_t complete_events(C_DeviceInterface *abi) {
  uint32_t own = 0;
  if (COMPLETE(create_event, no_event)) own |= TARN_FN_EVENTS;
  (void)COMPLETE(record_event, record_event);
  (void)COMPLETE(destroy_event, nothing_for_event);
  (void)COMPLETE(query_event, query_event);
  (void)COMPLETE(synchronize_event, nothing_for_event);
  (void)COMPLETE(stream_wait_event, wait_event);
  return own;
}

static uint32_t complete_memory(C_DeviceInterface *abi) {
  uint32_t own = 0;
  if (COMPLETE(device_memory_set, memory_set)) own |= TARN_FN_MEMORY_SET;
  if (COMPLETE(host_memory_allocate, host_allocate)) own |= TARN_FN_HOST_MEMORY;
  (void)COMPLETE(host_memory_deallocate, host_deallocate);
  if (COMPLETE(unified_memory_allocate, unified_allocate)) {
    own |= TARN_FN_UNIFIED_MEMORY;
  }
  (void)COMPLETE(unified_memory_deallocate, unified_deallocate);
  return own;
}

static uint32_t complete_copies(C_DeviceInterface *abi) {
  uint32_t own = 0;
  if (COMPLETE(memory_copy_p2p, copy_p2p)) own |= TARN_FN_COPY_P2P;
  if (COMPLETE(async_memory_copy_h2d, async_h2d)) own |= TARN_FN_ASYNC_H2D;
  if (COMPLETE(async_memory_copy_d2h, async_d2h)) own |= TARN_FN_ASYNC_D2H;
  if (COMPLETE(async_memory_copy_d2d, async_d2d)) own |= TARN_FN_ASYNC_D2D;
  if (COMPLETE(async_memory_copy_p2p, async_p2p)) own |= TARN_FN_ASYNC_P2P;
  return own;
}

static uint32_t complete_sizes(C_DeviceInterface *abi) {
  uint32_t own = 0;
  if (COMPLETE(device_max_alloc_size, available_now)) own |= TARN_FN_MAX_ALLOC;
  if (COMPLETE(device_max_chunk_size, max_alloc)) own |= TARN_FN_MAX_CHUNK;
  if (COMPLETE(device_extra_padding_size, no_padding)) own |= TARN_FN_PADDING;
  if (COMPLETE(device_init_alloc_size, max_alloc)) own |= TARN_FN_INIT_SIZE;
  if (COMPLETE(device_realloc_size, max_alloc)) own |= TARN_FN_REALLOC_SIZE;
  return own;
}

uint32_t tarn__table_complete(C_DeviceInterface *abi) {
  complete_devices(abi);
  uint32_t own = complete_streams(abi);
  own |= complete_events(abi);
  own |= complete_memory(abi);
  own |= complete_copies(abi);
  return own | complete_sizes(abi);
}

void tarn__table_make_sync(C_DeviceInterface *abi) {
  abi->destroy_stream = nothing_on_stream;
  abi->query_stream = nothing_on_stream;
  abi->synchronize_stream = nothing_on_stream;
  abi->stream_add_callback = add_callback_now;
  abi->async_memory_copy_h2d = now_h2d;
  abi->async_memory_copy_d2h = now_d2h;
  abi->async_memory_copy_d2d = now_d2d;
  abi->async_memory_copy_p2p = now_p2p;
}
