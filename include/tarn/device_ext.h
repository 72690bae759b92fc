// device_ext.h - be a device: what Tarn can use beyond the plug-in ABI.
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
// A host without Tarn never asks for it. No name of the ABI occurs here, so
// that this header goes together with any vendor's copy of that one: a device
// is the |id| in its C_Device, a |stream| is a C_Stream as it is.
//
// Every slot may be NULL, and slots behind |struct_size| are: docs/devices.md
// says what stands in. Slots that make sense only together come all or none;
// a table with part of such a set is refused when the plug-in is loaded.
//
// Threads:  slots are called from any thread at any time, after init_device of
//           the device and with it as the thread's current one (set_device).
// Streams:  |stream| NULL means that all is done when the call returns.
//           Otherwise the work is queued behind what is on the stream; if it
//           fails later, synchronising that stream says so.
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

// Rises when the meaning of a slot changes, which makes Tarn leave the whole
// table unused. New slots come at the end and change |struct_size| only.
#define TARN_DEVICE_EXT_VERSION 1

// tarn_device_ext.flags: the driver keeps memory that was given back to it and
// hands it out again quickly, so that a pool in front of it gains nothing.
#define TARN_EXT_RETAINS (UINT32_C(1) << 0)

// memory_create: the memory can be exported.
#define TARN_EXT_MEMORY_SHAREABLE (UINT32_C(1) << 0)

// Bytes of a handle of allocation_export.
#define TARN_EXT_HANDLE_SIZE 64

// range_set_access: what a device may do with mapped bytes.
typedef enum tarn_ext_access {
  TARN_EXT_ACCESS_NONE = 0,
  TARN_EXT_ACCESS_READ = 1,
  TARN_EXT_ACCESS_READ_WRITE = 3,
} tarn_ext_access;

// What an address belongs to.
typedef enum tarn_ext_kind {
  TARN_EXT_KIND_HOST = 0,     // host memory that the device knows: allocated
                              // by it, or registered
  TARN_EXT_KIND_DEVICE = 1,   // memory of the device, or mapped into a range
  TARN_EXT_KIND_UNIFIED = 2,  // one address for host and device
} tarn_ext_kind;

typedef struct tarn_ext_pointer {
  tarn_ext_kind kind;
  int id;         // whose memory it is: a device of this plug-in
  uint64_t base;  // where the allocation, mapping or registration begins
  size_t size;    // and its bytes; 0: the driver does not know
} tarn_ext_pointer;

typedef struct tarn_device_ext {
  size_t struct_size;  // sizeof the struct that the plug-in was compiled with
  uint32_t version;    // TARN_DEVICE_EXT_VERSION
  uint32_t flags;      // TARN_EXT_RETAINS or 0

  // --- alignment -----------------------------------------------------------

  // What every address of device_memory_allocate is a multiple of: a power of
  // two.
  tarn_status (*alignment)(int id, size_t *out_align);

  // device_memory_allocate with an address that is a multiple of |align|, a
  // power of two. device_memory_deallocate takes it back.
  tarn_status (*allocate_aligned)(int id, size_t size, size_t align,
                                  uint64_t *out_addr);

  // --- address ranges: all of these eight or none --------------------------
  // Addresses and memory apart from each other, as in CUDA's virtual memory
  // management: a range is addresses only, memory is bytes only, a mapping
  // joins them. Addresses and sizes are multiples of the granularity.

  // A power of two.
  tarn_status (*range_granularity)(int id, size_t *out_size);

  // |size| bytes of addresses with nothing behind them, at a multiple of
  // |align|: a power of two, or 0 for the granularity.
  tarn_status (*range_reserve)(int id, size_t size, size_t align,
                               uint64_t *out_addr);

  // Gives back exactly what was reserved; nothing may be mapped in it.
  tarn_status (*range_release)(int id, uint64_t addr, size_t size);

  // |size| bytes of memory of the device, without an address. Handles are
  // never 0 and mean the same to all devices of the plug-in in this process.
  // |flags|: TARN_EXT_MEMORY_SHAREABLE or 0.
  tarn_status (*memory_create)(int id, size_t size, uint32_t flags,
                               uint64_t *out_memory);

  // Drops the handle. The memory itself lives until its last mapping goes.
  tarn_status (*memory_destroy)(int id, uint64_t memory);

  // Puts the whole of |memory|, |size| bytes, at |addr| in a range of device
  // |id|, where nothing is mapped. Nobody may touch it before
  // range_set_access. Memory that is not shareable is mapped once at a time
  // (TARN_E_INVALID otherwise).
  tarn_status (*range_map)(int id, uint64_t addr, size_t size, uint64_t memory);

  // Takes out the mappings in [addr, addr + size), which must be whole ones.
  // What is queued must not use them any more.
  tarn_status (*range_unmap)(int id, uint64_t addr, size_t size);

  // What device |by| (of this plug-in, and mostly |id| itself) may do with the
  // mapped bytes in [addr, addr + size), which must be whole mappings.
  tarn_status (*range_set_access)(int id, uint64_t addr, size_t size, int by,
                                  tarn_ext_access access);

  // --- memory of other processes: both or none, and only with ranges -------

  // A file descriptor, the caller's to close, by which another process gets
  // at memory that was created as shareable.
  tarn_status (*memory_export)(int id, uint64_t memory, int *out_fd);

  // A handle for memory that another process, or this one, exported. |fd| stays
  // the caller's. TARN_E_INVALID: |size| is not that of the memory, or |fd| is
  // not of this plug-in's making.
  tarn_status (*memory_import)(int id, int fd, size_t size,
                               uint64_t *out_memory);

  // --- stream-ordered allocation: both or none ----------------------------

  // device_memory_allocate of memory that work on |stream| may use from now on,
  // and other streams when they have waited for it. Either of
  // device_memory_deallocate and deallocate_async takes it back.
  tarn_status (*allocate_async)(int id, void *stream, size_t size,
                                uint64_t *out_addr);

  // Gives memory back when what is queued on |stream| is done: that of
  // device_memory_allocate and allocate_aligned too.
  tarn_status (*deallocate_async)(int id, void *stream, uint64_t addr,
                                  size_t size);

  // --- host memory of the program: both or none ---------------------------

  // Pins |size| bytes at |ptr| and lets the device reach them at that address.
  // Ranges that are registered must not overlap.
  tarn_status (*host_register)(int id, void *ptr, size_t size);
  tarn_status (*host_unregister)(int id, void *ptr);

  // --- what is known -------------------------------------------------------

  // TARN_E_INVALID: the driver knows nothing of |addr|.
  tarn_status (*pointer_query)(int id, uint64_t addr, tarn_ext_pointer *out);

  // Why the last call of this plug-in that failed on this thread did; or, with
  // |stream|, why that stream failed. One line without its '\n', cut to
  // |out_size| bytes with the NUL; "" if there is nothing to say.
  void (*error_text)(int id, void *stream, char *out, size_t out_size);

  // --- rows ----------------------------------------------------------------
  // Table, dense rows and indices are at addresses that the device reaches:
  // its own memory, mapped ranges, unified memory, host memory that is pinned
  // by it or registered. |rows| has been checked as far as that goes without
  // looking at the indices, and its strides are set; it is the caller's and
  // lives for the call only, with the arrays of its reference. A bad index is
  // TARN_E_INVALID, or the failure of the stream, and error_text gives its
  // value and position; then the dense or table rows are undefined. A flag that
  // the plug-in does not know is TARN_E_UNSUPPORTED: the library may be newer,
  // and then stands in.
  tarn_status (*gather)(int id, void *stream, const tarn_rows *rows);
  tarn_status (*scatter)(int id, void *stream, const tarn_rows *rows);
  tarn_status (*scatter_add)(int id, void *stream, const tarn_rows *rows);

  // --- plain allocations of other processes: all of these three or none ----
  // For devices without ranges, as CUDA's IPC handles are. A handle is
  // TARN_EXT_HANDLE_SIZE bytes that mean something to this plug-in in any
  // process of the same user on this machine, as long as the allocation is
  // there.

  // Fills |out_handle| for the allocation of device_memory_allocate at |addr|,
  // of |size| bytes. Nothing may use it meanwhile. TARN_E_INVALID: no
  // allocation begins there, or not of that size. TARN_E_UNSUPPORTED: it is
  // smaller than 64 KiB, and others would be shared with it. The owner gives
  // the memory back when all who imported it have closed it or have ended; a
  // plug-in need not stand it earlier.
  tarn_status (*allocation_export)(int id, uint64_t addr, size_t size,
                                   void *out_handle);

  // The address of the whole allocation in this process. TARN_E_INVALID: the
  // handle is not of this plug-in, names nothing that is there, or something of
  // another size. TARN_E_UNSUPPORTED: this process has exported it itself, and
  // the driver cannot open it there too.
  tarn_status (*allocation_import)(int id, const void *handle, size_t size,
                                   uint64_t *out_addr);

  // Takes the address back. What is queued must not use it any more.
  // device_memory_deallocate does not take it.
  tarn_status (*allocation_close)(int id, uint64_t addr, size_t size);

  // --- streams of others ---------------------------------------------------

  // The handle of the stream that frameworks name by NULL, cudaStreamLegacy for
  // CUDA. It is not NULL, all functions of the ABI and this table take it but
  // destroy_stream, and it stays the same until deinit_device. Asked for once.
  tarn_status (*default_stream)(int id, void **out_stream);
} tarn_device_ext;

// What the plug-in exports; NULL means that there is no extension after all.
typedef const tarn_device_ext *tarn_device_ext_function(void);
__attribute__((visibility("default"))) const tarn_device_ext *TarnDeviceExt(
    void);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_DEVICE_EXT_H_
