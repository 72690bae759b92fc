// range.h - addresses and memory of a device, allocated separately.
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
// Only some devices have ranges: tarn_device_info.extensions has
// TARN_EXTENSION_RANGES, TARN_EXTENSION_SHARING for other processes, and
// TARN_EXTENSION_MOVES for tarn_range_move. On other devices every function
// here is TARN_E_UNSUPPORTED; there is no stand-in.
//
// Addresses and sizes are multiples of tarn_range_granularity. A device cannot
// be closed while ranges and memory of it exist. They are freed through the
// device that they were taken from, and count as freed if its driver then
// fails.
//
// Threads:  every function from any thread at any time.
// Errors:   besides what each function lists: TARN_E_UNSUPPORTED as above;
//           TARN_E_INVALID for a wrong address, size or handle;
//           TARN_E_DEVICE if the driver failed; TARN_E_STATE in a forked child.
#ifndef TARN_RANGE_H_
#define TARN_RANGE_H_

#include "tarn/device.h"

#ifdef __cplusplus
extern "C" {
#endif

// A handle of memory of a device, never 0. It is valid for all devices of the
// type in this process.
typedef uint64_t tarn_memory;

// What addresses and sizes must be multiples of: a power of two.
TARN_API TARN_MUST_CHECK tarn_status tarn_range_granularity(tarn_device *device,
                                                            size_t *out_size);

// Reserves |size| bytes of addresses at a multiple of |align|: a power of two,
// or 0 for the granularity.
//
// Lifetime: until tarn_range_release with the same size.
// TARN_FULL  the device has not enough addresses left.
TARN_API TARN_MUST_CHECK tarn_status tarn_range_reserve(tarn_device *device,
                                                        size_t size,
                                                        size_t align,
                                                        tarn_addr *out_addr);

// Releases a whole range.
//
// TARN_E_INVALID  not a whole range, or memory is mapped in it.
TARN_API tarn_status tarn_range_release(tarn_device *device, tarn_addr addr,
                                        size_t size);

// The memory can be exported to other processes, and mapped at several
// addresses at once.
#define TARN_MEMORY_SHAREABLE (1u << 0)

// Allocates |size| bytes of the device's memory. |flags|: 0 or TARN_MEMORY_...
//
// Lifetime: until tarn_memory_destroy, and as long as it is mapped.
// TARN_FULL           the device has not enough memory left.
// TARN_E_UNSUPPORTED  TARN_MEMORY_SHAREABLE without TARN_EXTENSION_SHARING.
TARN_API TARN_MUST_CHECK tarn_status tarn_memory_create(
    tarn_device *device, size_t size, unsigned flags, tarn_memory *out_memory);

// Destroys the handle. The memory stays allocated while it is mapped.
TARN_API tarn_status tarn_memory_destroy(tarn_device *device,
                                         tarn_memory memory);

// Maps all |size| bytes of |memory| at |addr|. They cannot be accessed before
// tarn_range_set_access.
//
// TARN_E_INVALID  memory is mapped there already, |size| is not the size of
//                 |memory|, or |memory| is mapped elsewhere and not shareable.
TARN_API TARN_MUST_CHECK tarn_status tarn_range_map(tarn_device *device,
                                                    tarn_addr addr, size_t size,
                                                    tarn_memory memory);

// Unmaps the whole mappings in the range, or parts as tarn_range_move tells.
// Queued work must not use them any more.
//
// TARN_FULL, TARN_E_DEVICE  the system refused one of them; those before it may
//                           be unmapped.
TARN_API tarn_status tarn_range_unmap(tarn_device *device, tarn_addr addr,
                                      size_t size);

typedef enum tarn_rights {
  TARN_RIGHTS_NONE = 0,
  TARN_RIGHTS_READ = 1,
  TARN_RIGHTS_READ_WRITE = 3,
} tarn_rights;

// Sets the rights of device |by|, of the same type as |device|, to the whole
// mappings in the range, or to parts as tarn_range_move tells.
//
// TARN_FULL  a device that commits memory only here has not enough left.
TARN_API TARN_MUST_CHECK tarn_status tarn_range_set_access(tarn_device *device,
                                                           tarn_addr addr,
                                                           size_t size,
                                                           tarn_device *by,
                                                           tarn_rights right);

// Moves what is mapped in |size| bytes at |from|, without a gap, to reserved
// addresses at |to| where nothing is mapped, in the same or another range of
// the device. Its bytes, its rights and its handles go along: a handle is that
// of the same memory, which is mapped at the new place now. The addresses at
// |from| stay reserved. Queued work must not use them any more.
//
// A device that can do so takes mappings in parts: memory that is not shareable
// can be unmapped, moved and given rights at any multiples of the granularity;
// the rest stays mapped. If it has a handle, that can only be destroyed from
// then on. Pieces without a handle that meet may become one mapping. Of
// shareable memory only whole mappings are taken. TARN_E_NOMEM of these calls:
// there is no host memory to note a part, and nothing has changed.
//
// |*out_moved|: so many bytes have moved, from the first on; all if TARN_OK is
// returned. Otherwise they may be fewer, and the others are where they were.
//
// Cost: on cpu a fraction of what unmapping and mapping takes, and less the
// larger the piece is that has been mapped at once.
// TARN_FULL           the device will not move so much, since it takes more of
//                     the system's resources than that is worth. It can still
//                     be unmapped, and other memory be mapped in its place.
// TARN_E_UNSUPPORTED  no TARN_EXTENSION_MOVES.
// TARN_E_INVALID      something is mapped at |to|, something is not at |from|,
//                     or only a part of a mapping of shareable memory.
// TARN_E_DEVICE       the system refused.
TARN_API TARN_MUST_CHECK tarn_status tarn_range_move(tarn_device *device,
                                                     tarn_addr from,
                                                     tarn_addr to, size_t size,
                                                     size_t *out_moved);

// Makes a file descriptor by which another process can import |memory|: send it
// over a Unix socket. The caller closes it.
//
// TARN_E_INVALID  the memory was not created as shareable.
TARN_API TARN_MUST_CHECK tarn_status tarn_memory_export(tarn_device *device,
                                                        tarn_memory memory,
                                                        int *out_fd);

// Imports memory of |size| bytes that another process, or this one, has
// exported. |fd| stays the caller's.
//
// Lifetime: the memory lives as long as one process holds or maps it.
// TARN_E_INVALID  |fd| is not memory of such a device, or has another size.
TARN_API TARN_MUST_CHECK tarn_status tarn_memory_import(
    tarn_device *device, int fd, size_t size, tarn_memory *out_memory);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_RANGE_H_
