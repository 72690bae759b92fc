// device_abi.h - be a device: the established plug-in ABI, for plug-ins only.
//
// This is the C interface through which deep-learning frameworks load custom
// devices (PaddlePaddle's C_DeviceInterface, version 0.1.1): a shared object
// exports InitPlugin, which fills a table of functions. The names are that
// interface's own and clash with a vendor's copy of its header, which is why
// they stand alone in this file and no other header of Tarn includes it.
// Programs that use devices want tarn/device.h.
//
// The table grew over the years while its version stayed the same. Bytes 0 to
// 471 are the same in every variant and hold all functions of memory, streams
// and events. Tarn reads and calls nothing beyond them.
//
// A plug-in
//   * clears and fills only the interface->size bytes that the host offers,
//     keeps |size|, and does not touch fields that it does not know;
//   * leaves an optional function that it lacks NULL: the host supplies a
//     stand-in (docs/devices.md lists them);
//   * lets no exception, longjmp or exit cross this boundary.
// LP64 only: every field is 8 bytes.
#ifndef TARN_DEVICE_ABI_H_
#define TARN_DEVICE_ABI_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum C_Status {
  C_SUCCESS = 0,         // done
  C_WARNING = 1,         // done, or for a query: not yet
  C_FAILED = 2,          // resource exhausted, or for a query: not yet
  C_ERROR = 3,           // bad argument or wrong use
  C_INTERNAL_ERROR = 4,  // the plug-in or its driver broke
} C_Status;

// One device of the plug-in's type. init_device may replace the id; later calls
// use the new one.
typedef struct C_Device_st {
  int id;
} * C_Device;

// Opaque to the host. Either may stay NULL on a synchronous device.
typedef struct C_Stream_st *C_Stream;
typedef struct C_Event_st *C_Event;

// Called when all work queued before it is done; |status| is its outcome.
typedef void (*C_Callback)(C_Device device, C_Stream stream, void *user_data,
                           C_Status *status);

typedef struct C_DeviceInterface {
  size_t size;  // bytes of the table that the host offers

  // --- the plug-in and its devices
  C_Status (*initialize)(void);
  C_Status (*finalize)(void);
  C_Status (*init_device)(const C_Device device);
  C_Status (*set_device)(const C_Device device);
  C_Status (*get_device)(const C_Device device);  // writes device->id
  C_Status (*deinit_device)(const C_Device device);

  // --- streams
  C_Status (*create_stream)(const C_Device device, C_Stream *stream);
  C_Status (*destroy_stream)(const C_Device device, C_Stream stream);
  C_Status (*query_stream)(const C_Device device, C_Stream stream);
  C_Status (*stream_add_callback)(const C_Device device, C_Stream stream,
                                  C_Callback callback, void *user_data);

  // --- events
  C_Status (*create_event)(const C_Device device, C_Event *event);
  C_Status (*record_event)(const C_Device device, C_Stream stream,
                           C_Event event);
  C_Status (*destroy_event)(const C_Device device, C_Event event);
  C_Status (*query_event)(const C_Device device, C_Event event);

  // --- waiting
  C_Status (*synchronize_device)(const C_Device device);
  C_Status (*synchronize_stream)(const C_Device device, C_Stream stream);
  C_Status (*synchronize_event)(const C_Device device, C_Event event);
  C_Status (*stream_wait_event)(const C_Device device, C_Stream stream,
                                C_Event event);

  void *reserved_dev_api[8];

  // --- memory
  C_Status (*device_memory_allocate)(const C_Device device, void **ptr,
                                     size_t size);
  C_Status (*device_memory_deallocate)(const C_Device device, void *ptr,
                                       size_t size);
  C_Status (*device_memory_set)(const C_Device device, void *ptr,
                                unsigned char value, size_t size);
  C_Status (*host_memory_allocate)(const C_Device device, void **ptr,
                                   size_t size);
  C_Status (*host_memory_deallocate)(const C_Device device, void *ptr,
                                     size_t size);
  C_Status (*unified_memory_allocate)(const C_Device device, void **ptr,
                                      size_t size);
  C_Status (*unified_memory_deallocate)(const C_Device device, void *ptr,
                                        size_t size);

  // --- copies
  C_Status (*memory_copy_h2d)(const C_Device device, void *dst, const void *src,
                              size_t size);
  C_Status (*memory_copy_d2h)(const C_Device device, void *dst, const void *src,
                              size_t size);
  C_Status (*memory_copy_d2d)(const C_Device device, void *dst, const void *src,
                              size_t size);
  C_Status (*memory_copy_p2p)(const C_Device dst_device,
                              const C_Device src_device, void *dst,
                              const void *src, size_t size);
  C_Status (*async_memory_copy_h2d)(const C_Device device, C_Stream stream,
                                    void *dst, const void *src, size_t size);
  C_Status (*async_memory_copy_d2h)(const C_Device device, C_Stream stream,
                                    void *dst, const void *src, size_t size);
  C_Status (*async_memory_copy_d2d)(const C_Device device, C_Stream stream,
                                    void *dst, const void *src, size_t size);
  C_Status (*async_memory_copy_p2p)(const C_Device dst_device,
                                    const C_Device src_device, C_Stream stream,
                                    void *dst, const void *src, size_t size);

  void *reserved_mem_api[8];

  // --- what there is
  C_Status (*get_device_count)(size_t *count);
  C_Status (*get_device_list)(size_t *ids);  // count of them
  C_Status (*device_memory_stats)(const C_Device device, size_t *total,
                                  size_t *free);
  C_Status (*device_min_chunk_size)(const C_Device device, size_t *size);
  C_Status (*device_max_chunk_size)(const C_Device device, size_t *size);
  C_Status (*device_max_alloc_size)(const C_Device device, size_t *size);
  C_Status (*device_extra_padding_size)(const C_Device device, size_t *size);
  C_Status (*device_init_alloc_size)(const C_Device device, size_t *size);
  C_Status (*device_realloc_size)(const C_Device device, size_t *size);

  // Byte 472: the rest differs between variants (collectives, profiler, graphs)
  // and is not used by Tarn. Its length here is that of the shortest variant.
  void *beyond[55];
} C_DeviceInterface;

typedef struct C_RuntimeVersion {
  size_t major;
  size_t minor;
  size_t patch;
} C_RuntimeVersion;

// The argument of InitPlugin in the later variants. In the first variant it
// ends 8 bytes earlier (CustomRuntimeParamsA); |size| tells which.
typedef struct CustomRuntimeParams {
  size_t size;
  C_DeviceInterface *interface;
  C_RuntimeVersion version;  // of the ABI that the plug-in was written for
  char *device_type;         // "cuda": required
  char *sub_device_type;     // may stay NULL
  void *other_interface;     // of a later variant; unused by Tarn
  char reserved[32];
} CustomRuntimeParams;

typedef struct CustomRuntimeParamsA {
  size_t size;
  C_DeviceInterface *interface;
  C_RuntimeVersion version;
  char *device_type;
  char *sub_device_type;
  char reserved[32];
} CustomRuntimeParamsA;

// The one symbol that a plug-in exports.
__attribute__((visibility("default"))) void InitPlugin(
    CustomRuntimeParams *params);

// --- the layout, byte by byte ----------------------------------------------

#ifdef __cplusplus
#define TARN_ABI_ASSERT(condition, text) static_assert(condition, text)
#else
#define TARN_ABI_ASSERT(condition, text) _Static_assert(condition, text)
#endif
#define TARN_ABI_OFFSET(field, bytes)                            \
  TARN_ABI_ASSERT(offsetof(C_DeviceInterface, field) == (bytes), \
                  #field " stands at byte " #bytes " of the table")
#define TARN_ABI_PARAM(type, field, bytes)          \
  TARN_ABI_ASSERT(offsetof(type, field) == (bytes), \
                  #field " stands at byte " #bytes " of " #type)

TARN_ABI_ASSERT(sizeof(void *) == 8 && sizeof(size_t) == 8, "LP64");
TARN_ABI_ASSERT(sizeof(C_Status) == 4, "the enum is an int");
TARN_ABI_OFFSET(size, 0);
TARN_ABI_OFFSET(initialize, 8);
TARN_ABI_OFFSET(finalize, 16);
TARN_ABI_OFFSET(init_device, 24);
TARN_ABI_OFFSET(set_device, 32);
TARN_ABI_OFFSET(get_device, 40);
TARN_ABI_OFFSET(deinit_device, 48);
TARN_ABI_OFFSET(create_stream, 56);
TARN_ABI_OFFSET(destroy_stream, 64);
TARN_ABI_OFFSET(query_stream, 72);
TARN_ABI_OFFSET(stream_add_callback, 80);
TARN_ABI_OFFSET(create_event, 88);
TARN_ABI_OFFSET(record_event, 96);
TARN_ABI_OFFSET(destroy_event, 104);
TARN_ABI_OFFSET(query_event, 112);
TARN_ABI_OFFSET(synchronize_device, 120);
TARN_ABI_OFFSET(synchronize_stream, 128);
TARN_ABI_OFFSET(synchronize_event, 136);
TARN_ABI_OFFSET(stream_wait_event, 144);
TARN_ABI_OFFSET(reserved_dev_api, 152);
TARN_ABI_OFFSET(device_memory_allocate, 216);
TARN_ABI_OFFSET(device_memory_deallocate, 224);
TARN_ABI_OFFSET(device_memory_set, 232);
TARN_ABI_OFFSET(host_memory_allocate, 240);
TARN_ABI_OFFSET(host_memory_deallocate, 248);
TARN_ABI_OFFSET(unified_memory_allocate, 256);
TARN_ABI_OFFSET(unified_memory_deallocate, 264);
TARN_ABI_OFFSET(memory_copy_h2d, 272);
TARN_ABI_OFFSET(memory_copy_d2h, 280);
TARN_ABI_OFFSET(memory_copy_d2d, 288);
TARN_ABI_OFFSET(memory_copy_p2p, 296);
TARN_ABI_OFFSET(async_memory_copy_h2d, 304);
TARN_ABI_OFFSET(async_memory_copy_d2h, 312);
TARN_ABI_OFFSET(async_memory_copy_d2d, 320);
TARN_ABI_OFFSET(async_memory_copy_p2p, 328);
TARN_ABI_OFFSET(reserved_mem_api, 336);
TARN_ABI_OFFSET(get_device_count, 400);
TARN_ABI_OFFSET(get_device_list, 408);
TARN_ABI_OFFSET(device_memory_stats, 416);
TARN_ABI_OFFSET(device_min_chunk_size, 424);
TARN_ABI_OFFSET(device_max_chunk_size, 432);
TARN_ABI_OFFSET(device_max_alloc_size, 440);
TARN_ABI_OFFSET(device_extra_padding_size, 448);
TARN_ABI_OFFSET(device_init_alloc_size, 456);
TARN_ABI_OFFSET(device_realloc_size, 464);
TARN_ABI_OFFSET(beyond, 472);
TARN_ABI_ASSERT(sizeof(C_DeviceInterface) == 912, "the shortest variant");
TARN_ABI_PARAM(CustomRuntimeParams, interface, 8);
TARN_ABI_PARAM(CustomRuntimeParams, version, 16);
TARN_ABI_PARAM(CustomRuntimeParams, device_type, 40);
TARN_ABI_PARAM(CustomRuntimeParams, sub_device_type, 48);
TARN_ABI_PARAM(CustomRuntimeParams, reserved, 64);
TARN_ABI_ASSERT(sizeof(CustomRuntimeParams) == 96, "variants D and E");
TARN_ABI_PARAM(CustomRuntimeParamsA, interface, 8);
TARN_ABI_PARAM(CustomRuntimeParamsA, version, 16);
TARN_ABI_PARAM(CustomRuntimeParamsA, device_type, 40);
TARN_ABI_PARAM(CustomRuntimeParamsA, sub_device_type, 48);
TARN_ABI_PARAM(CustomRuntimeParamsA, reserved, 56);
TARN_ABI_ASSERT(sizeof(CustomRuntimeParamsA) == 88, "variant A");

#undef TARN_ABI_PARAM
#undef TARN_ABI_OFFSET
#undef TARN_ABI_ASSERT

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_DEVICE_ABI_H_
