// device_ext.h - be a device: functions beyond the plug-in ABI.
//
// The established ABI (device_abi.h) has no alignment, no address ranges, no
// stream-ordered allocation, no error texts and no row gather. A plug-in that
// has them exports, beside InitPlugin, one more function:
//
//   static const tarn_device_ext ext = {
//       .struct_size = sizeof ext,
//       .version = TARN_DEVICE_EXT_VERSION,
//       .alignment = my_alignment,
//   };
//   const tarn_device_ext *TarnDeviceExt(void) { return &ext; }
//
// Other hosts ignore it. No name of the ABI occurs here, so that this header
// works together with any vendor's copy of device_abi.h: a device is the |id|
// in its C_Device, and |stream| is a C_Stream.
//
// Every slot may be NULL, and slots beyond |struct_size| count as NULL:
// docs/devices.md lists the stand-ins. Some slots come in sets. A table with
// part of a set is refused when the plug-in is loaded.
//
// Threads:  slots are called from any thread at any time, after init_device of
//           the device and with it as the thread's current one (set_device).
// Streams:  with |stream| NULL the work is done when the call returns.
//           Otherwise it is queued on the stream; if it fails later,
//           synchronising the stream reports it.
// Answers:  TARN_OK; TARN_FULL where the device has no room left; for a wrong
//           argument TARN_E_INVALID; TARN_E_UNSUPPORTED where this one device
//           cannot; TARN_E_NOMEM where nothing was queued for want of
//           resources; TARN_E_DEVICE for anything else. Outputs are set to 0
//           unless it is TARN_OK. No exception, no exit.
#ifndef TARN_DEVICE_EXT_H_
#define TARN_DEVICE_EXT_H_

#include "tarn/base.h"

#ifdef __cplusplus
extern "C" {
#endif

// Rises when the meaning of a slot changes. Tarn ignores a table of another
// version. New slots come at the end and change |struct_size| only.
#define TARN_DEVICE_EXT_VERSION 1

// tarn_device_ext.flags: the driver keeps freed memory and reuses it quickly,
// so that a pool in front of it gains nothing.
#define TARN_EXT_RETAINS (UINT32_C(1) << 0)

// memory_create: the memory can be exported.
#define TARN_EXT_MEMORY_SHAREABLE (UINT32_C(1) << 0)

// Bytes of a handle of allocation_export.
#define TARN_EXT_HANDLE_SIZE 64

// range_set_access: the rights of a device to mapped bytes.
typedef enum tarn_ext_access {
  TARN_EXT_ACCESS_NONE = 0,
  TARN_EXT_ACCESS_READ = 1,
  TARN_EXT_ACCESS_READ_WRITE = 3,
} tarn_ext_access;

// The kind of memory at an address.
typedef enum tarn_ext_kind {
  TARN_EXT_KIND_HOST = 0,     // host memory, allocated by the device or
                              // registered
  TARN_EXT_KIND_DEVICE = 1,   // memory of the device, or mapped into a range
  TARN_EXT_KIND_UNIFIED = 2,  // one address for host and device
} tarn_ext_kind;

typedef struct tarn_ext_pointer {
  tarn_ext_kind kind;
  int id;         // the device that owns it, of this plug-in
  uint64_t base;  // of the allocation, mapping or registration
  size_t size;    // of the same; 0: the driver does not know it
} tarn_ext_pointer;

typedef struct tarn_device_ext {
  size_t struct_size;  // sizeof the struct that the plug-in was compiled with
  uint32_t version;    // TARN_DEVICE_EXT_VERSION
  uint32_t flags;      // TARN_EXT_RETAINS or 0

  // --- alignment -----------------------------------------------------------

  // The alignment of every address of device_memory_allocate, a power of two.
  tarn_status (*alignment)(int id, size_t *out_align);

  // device_memory_allocate at a multiple of |align|, a power of two.
  // device_memory_deallocate frees it.
  tarn_status (*allocate_aligned)(int id, size_t size, size_t align,
                                  uint64_t *out_addr);

  // --- address ranges: all of these eight or none --------------------------
  // Addresses and memory, allocated separately as in CUDA's virtual memory
  // management: a range is addresses only, memory is bytes only, a mapping
  // joins them. Addresses and sizes are multiples of the granularity.

  // A power of two.
  tarn_status (*range_granularity)(int id, size_t *out_size);

  // Reserves |size| bytes of addresses at a multiple of |align|: a power of
  // two, or 0 for the granularity.
  tarn_status (*range_reserve)(int id, size_t size, size_t align,
                               uint64_t *out_addr);

  // Releases exactly one reservation; nothing may be mapped in it.
  tarn_status (*range_release)(int id, uint64_t addr, size_t size);

  // Allocates |size| bytes of memory of the device, without an address. Handles
  // are never 0 and valid for all devices of the plug-in in this process.
  // |flags|: TARN_EXT_MEMORY_SHAREABLE or 0.
  tarn_status (*memory_create)(int id, size_t size, uint32_t flags,
                               uint64_t *out_memory);

  // Destroys the handle. The memory lives until its last mapping ends.
  tarn_status (*memory_destroy)(int id, uint64_t memory);

  // Maps all |size| bytes of |memory| at |addr| in a range of device |id|,
  // where nothing is mapped. No device may access it before range_set_access.
  // Memory that is not shareable can be mapped only once at a time
  // (TARN_E_INVALID).
  tarn_status (*range_map)(int id, uint64_t addr, size_t size, uint64_t memory);

  // Unmaps the whole mappings in [addr, addr + size), or parts of them as
  // range_move allows. Queued work must not use them any more.
  tarn_status (*range_unmap)(int id, uint64_t addr, size_t size);

  // Sets the rights of device |by| (of this plug-in, mostly |id| itself) to the
  // whole mappings in [addr, addr + size), or to parts of them as range_move
  // allows.
  tarn_status (*range_set_access)(int id, uint64_t addr, size_t size, int by,
                                  tarn_ext_access access);

  // --- memory of other processes: both or none, and only with ranges -------

  // Makes a file descriptor by which another process can import memory that was
  // created as shareable. The caller closes it.
  tarn_status (*memory_export)(int id, uint64_t memory, int *out_fd);

  // Makes a handle of memory that another process, or this one, exported. |fd|
  // stays the caller's. TARN_E_INVALID: the memory has another size, or |fd| is
  // not from this plug-in.
  tarn_status (*memory_import)(int id, int fd, size_t size,
                               uint64_t *out_memory);

  // --- stream-ordered allocation: both or none ----------------------------

  // device_memory_allocate in the order of |stream|: work queued there from now
  // on may use the memory, and other streams after they have waited for it.
  // device_memory_deallocate and deallocate_async free it.
  tarn_status (*allocate_async)(int id, void *stream, size_t size,
                                uint64_t *out_addr);

  // Frees memory when the work queued on |stream| is done, also memory of
  // device_memory_allocate and allocate_aligned.
  tarn_status (*deallocate_async)(int id, void *stream, uint64_t addr,
                                  size_t size);

  // --- host memory of the program: both or none ---------------------------

  // Pins |size| bytes at |ptr| and lets the device access them at that address.
  // Registrations must not overlap.
  tarn_status (*host_register)(int id, void *ptr, size_t size);
  tarn_status (*host_unregister)(int id, void *ptr);

  // --- queries -------------------------------------------------------------

  // TARN_E_INVALID: the driver does not know |addr|.
  tarn_status (*pointer_query)(int id, uint64_t addr, tarn_ext_pointer *out);

  // The reason of the last failure of a call of this plug-in on this thread;
  // or, with |stream|, the reason of that stream's failure. |id| is 0 where
  // initialize, get_device_count or get_device_list failed. One line without
  // '\n', cut to |out_size| bytes with the NUL; "" if there is none.
  void (*error_text)(int id, void *stream, char *out, size_t out_size);

  // --- rows ----------------------------------------------------------------
  // Table, dense rows and indices are at addresses that the device can access:
  // its own memory, mapped ranges, unified memory, host memory pinned by it or
  // registered. The library has checked |rows|, other than the indices, and has
  // set the strides. |rows| and the arrays of its reference live for the call
  // only. A bad index is TARN_E_INVALID, or the failure of the stream, and
  // error_text gives its value and position; then the rows written are
  // undefined. A flag that the plug-in does not know is TARN_E_UNSUPPORTED: the
  // library may be newer, and then uses its stand-in.
  tarn_status (*gather)(int id, void *stream, const tarn_rows *rows);
  tarn_status (*scatter)(int id, void *stream, const tarn_rows *rows);
  tarn_status (*scatter_add)(int id, void *stream, const tarn_rows *rows);

  // --- plain allocations of other processes: all of these three or none ----
  // For devices without ranges, like CUDA's IPC handles. A handle is
  // TARN_EXT_HANDLE_SIZE bytes, valid for this plug-in in any process of the
  // same user on this machine while the allocation exists.

  // Fills |out_handle| for the allocation of device_memory_allocate at |addr|,
  // of |size| bytes, which is not used meanwhile. TARN_E_INVALID: no allocation
  // of that size begins there. TARN_E_UNSUPPORTED: it is smaller than 64 KiB
  // and shares a page with others. The owner frees the memory after all
  // processes that imported it have closed it or have ended.
  tarn_status (*allocation_export)(int id, uint64_t addr, size_t size,
                                   void *out_handle);

  // Maps the whole allocation into this process. TARN_E_INVALID: the handle is
  // not of this plug-in, or its allocation is gone or has another size.
  // TARN_E_UNSUPPORTED: this process has exported the allocation itself, and
  // the driver cannot import it here.
  tarn_status (*allocation_import)(int id, const void *handle, size_t size,
                                   uint64_t *out_addr);

  // Unmaps an imported allocation, which device_memory_deallocate does not
  // take. Queued work must not use it any more.
  tarn_status (*allocation_close)(int id, uint64_t addr, size_t size);

  // --- the default stream --------------------------------------------------

  // The handle of the stream that frameworks name by NULL, cudaStreamLegacy for
  // CUDA. It is not NULL and stays the same until deinit_device. All functions
  // of the ABI and of this table take it, except for destroy_stream. Called
  // once.
  tarn_status (*default_stream)(int id, void **out_stream);

  // --- words for people ----------------------------------------------------

  // The device in one line without '\n', cut to |out_size| bytes with the NUL:
  // its name in the driver, and what the plug-in has chosen for it when it was
  // opened. Called once, after init_device.
  void (*describe)(int id, char *out, size_t out_size);

  // --- captured graphs -----------------------------------------------------

  // Whether work that is queued on |stream|, not NULL, is recorded for a graph
  // at the moment instead of being run, like cuStreamIsCapturing. Must not end
  // or spoil a capture, of this stream or of another.
  tarn_status (*stream_capturing)(int id, void *stream, bool *out_capturing);

  // --- moving mapped memory: only with ranges ------------------------------
  // For devices on which that is much cheaper than to unmap and to map, as in a
  // processor's memory.

  // Moves what is mapped in [from, from + size), without a gap, to [to, to +
  // size), where nothing is mapped, in the same or another range of device
  // |id|. Bytes, rights and handles go along: a handle stays that of its
  // memory, which is mapped at the new place now. The addresses at |from| stay
  // reserved. Queued work must not use them any more.
  //
  // A device with this slot takes mappings in parts: memory that is not
  // shareable is unmapped, moved and given rights at any multiples of the
  // granularity, and what is left stays mapped. If it has a handle, that can
  // only be destroyed from then on. Pieces without a handle that meet in one
  // range may become one mapping. Of shareable memory only whole mappings are
  // taken. TARN_E_NOMEM: there are no resources to note a part; nothing has
  // changed.
  //
  // |*out_moved|: so many bytes have moved, from |from| on; |size| if it is
  // TARN_OK. Where the system refuses in the middle, they may be fewer: then
  // the others are where they were. TARN_FULL: a move would take more of the
  // system's resources than it is worth; memory can still be unmapped, and
  // other memory mapped. Of 0 bytes nothing is done, whatever the addresses,
  // and TARN_E_UNSUPPORTED says that this one device cannot move memory: it is
  // asked so when it is opened.
  tarn_status (*range_move)(int id, uint64_t from, uint64_t to, size_t size,
                            size_t *out_moved);
} tarn_device_ext;

// The function that a plug-in exports; it may return NULL: no extension.
typedef const tarn_device_ext *tarn_device_ext_function(void);
__attribute__((visibility("default"))) const tarn_device_ext *TarnDeviceExt(
    void);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_DEVICE_EXT_H_
