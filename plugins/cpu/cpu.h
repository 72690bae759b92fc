// cpu.h - host memory as a device: what the files of this plug-in share.
//
//   plugin.c  the table, the one device, its sizes
//   memory.c  take and give back
//   copy.c    copies, at once and queued
//
// Streams and events are those of plugins/common.
//
// The functions of the table check what they are given and answer C_ERROR to
// a wrong use; what they call relies on it.
#ifndef TARN_PLUGINS_CPU_CPU_H_
#define TARN_PLUGINS_CPU_CPU_H_

#include "common/queue.h"
#include "tarn/base.h"
#include "tarn/device_abi.h"

// There is one device, and its id is 0.
static inline bool tarn__cpu_is_device(const struct C_Device_st *device) {
  return device != NULL && device->id == 0;
}

// memory.c
C_Status tarn__cpu_allocate(const C_Device device, void **ptr, size_t size);
C_Status tarn__cpu_deallocate(const C_Device device, void *ptr, size_t size);
C_Status tarn__cpu_memory_set(const C_Device device, void *ptr,
                              unsigned char value, size_t size);

// copy.c
C_Status tarn__cpu_copy(const C_Device device, void *dst, const void *src,
                        size_t size);
C_Status tarn__cpu_copy_p2p(const C_Device dst_device,
                            const C_Device src_device, void *dst,
                            const void *src, size_t size);
C_Status tarn__cpu_async_copy(const C_Device device, C_Stream stream, void *dst,
                              const void *src, size_t size);
C_Status tarn__cpu_async_copy_p2p(const C_Device dst_device,
                                  const C_Device src_device, C_Stream stream,
                                  void *dst, const void *src, size_t size);

#endif  // TARN_PLUGINS_CPU_CPU_H_
