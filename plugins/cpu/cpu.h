// cpu.h - host memory as a device: the declarations that this plug-in's files
// share.
//
//   plugin.c     the tables, the one device, its sizes
//   memory.c     allocation, at once and queued
//   copy.c       copies, at once and queued
//   extension.c  checks of calls beyond the ABI, and the texts of their errors
//   range.c      addresses: ranges and what is mapped in them
//   mappings.c   what is mapped, by address
//   backing.c    memory without addresses, and its handles
//   share.c      memory as callers and other processes have it
//   pointer.c    queries of addresses; registered host memory
//   rows.c       gather and scatter
//
// Streams and events are those of plugins/common.
//
// The functions of the ABI's table check what they are given and answer C_ERROR
// to a wrong use, those of the extension TARN_E_INVALID with a text; what they
// call relies on it.
//
// Locks: that of ranges, and that of registrations. Each is taken alone, and
// around a fork. A child has the ranges and memory of its parent: private bytes
// are copied on write, shareable ones stay shared.
#ifndef TARN_PLUGINS_CPU_CPU_H_
#define TARN_PLUGINS_CPU_CPU_H_

#include "common/plugin.h"
#include "common/queue.h"
#include "common/slots.h"
#include "tarn/base.h"
#include "tarn/device_abi.h"
#include "tarn/device_ext.h"

// The functions of the extension: tarn__cpu_ and the name of the slot.
#define TARN__CPU_DECLARE(name) TARN__COMMON_EXT_DECLARE(tarn__cpu_, name);
TARN__COMMON_EXT_SLOTS(TARN__CPU_DECLARE)
TARN__COMMON_MOVE_SLOT(TARN__CPU_DECLARE)

// There is one device, and its id is 0.
static inline bool tarn__cpu_is_device(const struct C_Device_st *device) {
  return device != NULL && device->id == 0;
}

// The calling thread itself does work of up to this size on an idle stream,
// under the stream's lock. That takes a few microseconds, less than waking the
// worker.
enum { TARN__CPU_BRIEF_SIZE = 64 << 10 };

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

// extension.c

// TARN_E_INVALID unless |id| is the device's.
TARN_MUST_CHECK tarn_status tarn__cpu_check_id(int id);

// The same, and |stream| NULL or one of its streams.
TARN_MUST_CHECK tarn_status tarn__cpu_check_stream(int id, C_Stream stream);

// Turns errno into a status: TARN_FULL if the kernel has run out of a resource,
// else TARN_E_DEVICE.
tarn_status tarn__cpu_refused(const char *what, size_t size);

// range.c
enum { TARN__CPU_GRANULARITY = 64 << 10 };

void tarn__cpu_lock_ranges(void);
void tarn__cpu_unlock_ranges(void);

// False if |addr| is in no range. Base 0: nothing is mapped there.
bool tarn__cpu_range_query(uint64_t addr, uint64_t *out_base, size_t *out_size);

// Frees all ranges and memory that are left.
void tarn__cpu_range_forget(void);

// What has become of pages that were mapped for callers.
typedef enum tarn__cpu_pages {
  TARN__CPU_PAGES_GONE,   // given back, or moved away
  TARN__CPU_PAGES_FRESH,  // there, and zero
  TARN__CPU_PAGES_USED,   // there; they may hold anything
} tarn__cpu_pages;

// memory.c: |watch| is told of all mapped pages from now on, before callers get
// them, and before others can have their addresses. It is called with a lock
// held and must not call the library. To be set once, before there are any.
typedef void tarn__cpu_watch_fn(uint64_t addr, size_t size,
                                tarn__cpu_pages what);
void tarn__cpu_watch(tarn__cpu_watch_fn *watch);
void tarn__cpu_tell(uint64_t addr, size_t size, tarn__cpu_pages what);

// pointer.c: ends all registrations that are left.
void tarn__cpu_pointer_forget(void);

#endif  // TARN_PLUGINS_CPU_CPU_H_
