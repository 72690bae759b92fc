// range.h - addresses and memory of a device apart from each other.
//
// A range is addresses with nothing behind them; memory is bytes without an
// address; a mapping joins the two. So a pool grows in place, memory moves
// without a copy, and processes share memory at an address of their own.
//
//   tarn_addr range;
//   tarn_memory memory;
//   tarn_range_reserve(gpu, (size_t)64 << 30, 0, &range);    // costs nothing
//   tarn_memory_create(gpu, (size_t)2 << 20, 0, &memory);
//   tarn_range_map(gpu, range, (size_t)2 << 20, memory);
//   tarn_range_set_access(gpu, range, (size_t)2 << 20, gpu,
//                         TARN_RIGHTS_READ_WRITE);
//
// Only some devices can: tarn_device_info.extensions has TARN_EXTENSION_RANGES,
// and TARN_EXTENSION_SHARING for other processes. Nothing could stand in, so
// on the others every function here is TARN_E_UNSUPPORTED and says so.
//
// Addresses and sizes are multiples of tarn_range_granularity. A device cannot
// be closed while ranges and memory of it are held; they are given back by the
// device that they were taken from, and count as gone if its driver then fails.
//
// Threads:  every function from any thread at any time.
// Errors:   besides what each function lists: TARN_E_UNSUPPORTED as above;
//           TARN_E_INVALID for an address, size or handle that is none;
//           TARN_E_DEVICE if the driver failed; TARN_E_STATE in a forked child.
#ifndef TARN_RANGE_H_
#define TARN_RANGE_H_

#include "tarn/device.h"

#ifdef __cplusplus
extern "C" {
#endif

// A piece of a device's memory. Never 0. It means the same to all devices of a
// type, in this process.
typedef uint64_t tarn_memory;

// What addresses and sizes must be multiples of: a power of two.
TARN_API TARN_MUST_CHECK tarn_status tarn_range_granularity(tarn_device *device,
                                                            size_t *out_size);

// Reserves |size| bytes of addresses at a multiple of |align|: a power of two,
// or 0 for the granularity.
//
// Lifetime: give it back with tarn_range_release and the same size.
// TARN_FULL  there are not as many addresses left.
TARN_API TARN_MUST_CHECK tarn_status tarn_range_reserve(tarn_device *device,
                                                        size_t size,
                                                        size_t align,
                                                        tarn_addr *out_addr);

// TARN_E_INVALID  not a whole range, or something is mapped in it.
TARN_API tarn_status tarn_range_release(tarn_device *device, tarn_addr addr,
                                        size_t size);

// The memory can be given to other processes, and be mapped at several
// addresses at once.
#define TARN_MEMORY_SHAREABLE (1u << 0)

// Takes |size| bytes of the device's memory. |flags|: 0 or TARN_MEMORY_...
//
// Lifetime: until tarn_memory_destroy, and as long as it is mapped.
// TARN_FULL           the device has not as much left.
// TARN_E_UNSUPPORTED  TARN_MEMORY_SHAREABLE without TARN_EXTENSION_SHARING.
TARN_API TARN_MUST_CHECK tarn_status tarn_memory_create(
    tarn_device *device, size_t size, unsigned flags, tarn_memory *out_memory);

// Drops the handle; the memory lives on in its mappings.
TARN_API tarn_status tarn_memory_destroy(tarn_device *device,
                                         tarn_memory memory);

// Puts the whole of |memory|, which has |size| bytes, at |addr|. It cannot be
// touched before tarn_range_set_access.
//
// TARN_E_INVALID  something is mapped there already, |size| is not that of
//                 |memory|, or the memory is mapped elsewhere and not
//                 shareable.
TARN_API TARN_MUST_CHECK tarn_status tarn_range_map(tarn_device *device,
                                                    tarn_addr addr, size_t size,
                                                    tarn_memory memory);

// Takes the mappings in the range out; they must be whole ones. What is queued
// must not use them any more.
//
// TARN_FULL, TARN_E_DEVICE  the system refused one of them: those before it may
//                           be out.
TARN_API tarn_status tarn_range_unmap(tarn_device *device, tarn_addr addr,
                                      size_t size);

typedef enum tarn_rights {
  TARN_RIGHTS_NONE = 0,
  TARN_RIGHTS_READ = 1,
  TARN_RIGHTS_READ_WRITE = 3,
} tarn_rights;

// What device |by|, of the same type as |device|, may do with the mappings in
// the range, which must be whole ones.
//
// TARN_FULL  a device that promises memory only here has not as much left.
TARN_API TARN_MUST_CHECK tarn_status tarn_range_set_access(tarn_device *device,
                                                           tarn_addr addr,
                                                           size_t size,
                                                           tarn_device *by,
                                                           tarn_rights right);

// A file descriptor by which another process can import |memory|: send it over
// a Unix socket. It is the caller's to close.
//
// TARN_E_INVALID  the memory was not created as shareable.
TARN_API TARN_MUST_CHECK tarn_status tarn_memory_export(tarn_device *device,
                                                        tarn_memory memory,
                                                        int *out_fd);

// Memory of |size| bytes that another process, or this one, has exported. |fd|
// stays the caller's.
//
// Lifetime: the memory lives as long as one process holds or maps it.
// TARN_E_INVALID  |fd| is not memory of such a device, or not of that size.
TARN_API TARN_MUST_CHECK tarn_status tarn_memory_import(
    tarn_device *device, int fd, size_t size, tarn_memory *out_memory);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_RANGE_H_
