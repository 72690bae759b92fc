// device.h - use a device: places, memory, copies.
//
// A plug-in offers devices under names such as "cpu:0" and "cuda:1". Every
// plug-in has the ABI of device_abi.h. The library replaces each optional
// function that a plug-in lacks with a stand-in, so that callers need not ask.
// `cpu` is built in, and cpu:0 is always open.
//
//   tarn_device *gpu;
//   tarn_device_open("cuda:0", &gpu);
//   tarn_addr a;
//   tarn_device_allocate(tarn_place_on(gpu), 4096, &a);
//   tarn_copy_h2d(gpu, a, bytes, 4096, NULL);          // NULL: synchronous
//   tarn_copy_h2d(gpu, a, bytes, 4096, stream);        // queued: **keep bytes
//   tarn_stream_synchronize(stream);                   // until this returns**
//   tarn_device_deallocate(tarn_place_on(gpu), a, 4096);
//   tarn_device_close(gpu);
//
// Threads:  every function may be called from any thread at any time, but an
//           object must not be destroyed while another thread uses it.
// Fork:     objects made before a fork answer TARN_E_STATE in the child;
//           destroying them there frees host memory only.
// Errors:   besides those that each function lists: TARN_E_STATE in a forked
//           child; TARN_E_NOMEM without host memory; TARN_E_INVALID for NULL in
//           place of an object. Loading, registering, listing, opening and
//           closing call plug-ins and functions given to tarn_device_attach;
//           when these call one of the five in turn, it is TARN_E_STATE.
#ifndef TARN_DEVICE_H_
#define TARN_DEVICE_H_

#include "tarn/base.h"
#include "tarn/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---------------------------------------------------------------------------
// Places
// ---------------------------------------------------------------------------

typedef enum tarn_place_kind {
  TARN_PLACE_HOST = 0,     // host memory pinned by the device, where it can
  TARN_PLACE_DEVICE = 1,   // the device's own memory
  TARN_PLACE_UNIFIED = 2,  // one address for host and device
} tarn_place_kind;

// A kind of memory of a device. The zero place is plain host memory.
typedef struct tarn_place {
  tarn_device *device;  // NULL: no device, plain host memory
  tarn_place_kind kind;
} tarn_place;

#ifdef __cplusplus
#define TARN_HOST (tarn_place{nullptr, TARN_PLACE_HOST})
#else
#define TARN_HOST ((tarn_place){NULL, TARN_PLACE_HOST})
#endif

// The device's own memory.
static inline tarn_place tarn_place_on(tarn_device *device) {
  tarn_place place = {device, TARN_PLACE_DEVICE};
  return place;
}

// True if the places are the same memory: device and kind are equal. All places
// of cpu:0 equal the zero place.
TARN_API bool tarn_place_equal(tarn_place a, tarn_place b);

// Writes "host", "cuda:0", "cuda:0/host" or "cuda:0/unified" to |out|, cut to
// |out_size| bytes with the NUL. Returns |out|.
TARN_API char *tarn_place_text(tarn_place place, char *out, size_t out_size);

// ---------------------------------------------------------------------------
// Plug-ins
// ---------------------------------------------------------------------------

// Loads a plug-in and makes its devices known under its own type name.
//
// |path| is absolute, or a file name without '/' in the directory that the
// environment variable TARN_PLUGIN_DIR names (absolute; ignored in setuid
// programs). The current directory and the linker's path are never searched.
// The plug-in stays loaded until the process ends, since its threads and
// objects may be alive.
//
// A plug-in that stands where tarn_device_open finds it need not be loaded.
//
// A plug-in is trusted code: its constructors run before any check.
//
// TARN_E_INVALID      |path| is neither absolute nor a file name.
// TARN_E_IO           the system cannot load it; the text says why.
// TARN_E_UNSUPPORTED  not a plug-in, or a required function or one half of a
//                     pair is missing: the text names it.
// TARN_E_STATE        a device type of that name exists already: the text names
//                     its plug-in.
TARN_API TARN_MUST_CHECK tarn_status tarn_plugin_load(const char *path);

// The types of the functions that a plug-in exports: InitPlugin of device_abi.h
// (or of a vendor's copy, either of which defines the struct) and TarnDeviceExt
// of device_ext.h. Neither header is needed to name them.
struct CustomRuntimeParams;
struct tarn_device_ext;
typedef void tarn_plugin_init(struct CustomRuntimeParams *params);
typedef const struct tarn_device_ext *tarn_device_ext_function(void);

// Registers a plug-in that is part of the program itself: one that is linked
// in, or a runtime with a context of its own. |init| and |ext| are the
// functions that a shared object would export; |ext| NULL means no extension.
// The checks are those of tarn_plugin_load.
//
//   static void init(CustomRuntimeParams *params) {   // of device_abi.h
//     memset((char *)params->interface + 8, 0, params->interface->size - 8);
//     params->interface->get_device_count = count_devices;
//     ...                                              // docs/devices.md
//     params->version.minor = params->version.patch = 1;
//     params->device_type = type;                      // char type[] = "mine"
//   }
//   tarn_plugin_register(init, NULL, "my runtime");
//   tarn_device_open("mine:0", &device);
//
// |init| sets the type of the devices. |name| is the plug-in's name in errors
// and in tarn_device_info.plugin: 1 to 255 bytes, no control characters.
// Several types may share a name.
//
// C++: |init| may be a function, a static member or a lambda without captures.
//      No exception may leave it or a function of its table.
// Lifetime: until the process exits; a registration cannot be undone. Names and
//      tables are copied. The code and its data must stay, so a shared object
//      that registers itself is linked with -z nodelete. Nothing is called at
//      exit.
// Threads: |init|, possibly several times, and |ext| are called on this thread,
//      during the call, under the lock of opening and closing. Functions that
//      take that lock return TARN_E_STATE to them. Open devices can be used
//      meanwhile. The functions of the table are called from any thread.
// Fork: a child inherits registrations. Those that it adds are its own.
// Cost: some 15 KiB of host memory during the call, 3 KiB afterwards.
//
// TARN_E_INVALID      |init| is NULL, or |name| breaks the rules above.
// TARN_E_UNSUPPORTED  |init| names no device type, or a required function or
//                     one half of a pair is missing: the text names it. Nothing
//                     is registered; the call may be repeated.
// TARN_E_STATE        a device type of that name exists already: the text names
//                     its plug-in. Or the call comes from a stream's callback,
//                     or from a plug-in that opening, closing, listing, loading
//                     or registering has called.
TARN_API TARN_MUST_CHECK tarn_status tarn_plugin_register(
    tarn_plugin_init *init, tarn_device_ext_function *ext, const char *name);

// Calls |visit| for each device of each type, "cpu:0" first; stops at the first
// status that is not TARN_OK and returns it. Modules that tarn_device_open
// would find are loaded. One that cannot be used here, since there is no driver
// for instance, is left out; tarn_plugin_each tells why.
//
// Cost: that of tarn_plugin_each.
// TARN_E_DEVICE  a plug-in that was loaded or registered by the program, or is
//                built in, failed to list its devices.
typedef tarn_status tarn_device_visit(void *context, const char *name);
TARN_API TARN_MUST_CHECK tarn_status tarn_device_each(tarn_device_visit *visit,
                                                      void *context);

// A plug-in: one that is known, or a module that is found by the name of its
// file.
typedef struct tarn_plugin_info {
  size_t struct_size;   // set by the library
  const char *type;     // "cuda"; of a module that does not load, what the
                        // file's name says
  const char *origin;   // path of its shared object, "built-in", or the name
                        // given to tarn_plugin_register
  size_t device_count;  // 0: it has none here, or it cannot be used
  const char *reason;   // why it cannot be used, in one line, with the driver's
                        // words where there are any; "": it can
  tarn_status status;   // the same as a status; TARN_OK: it can
} tarn_plugin_info;

typedef tarn_status tarn_plugin_visit(void *context,
                                      const tarn_plugin_info *info);

// Calls |visit| for each plug-in: the known ones, "cpu" first, and then modules
// that cannot be loaded. Stops at the first status that is not TARN_OK and
// returns it. That a plug-in cannot be used is no failure of this call.
//
//   static tarn_status tell(void *context, const tarn_plugin_info *info) {
//     if (info->status != TARN_OK)
//       fprintf(context, "%s: cannot be used: %s: %s\n", info->type,
//               info->origin, info->reason);
//     return TARN_OK;
//   }
//   tarn_plugin_each(tell, stderr);
//
// The statuses of |info|, besides TARN_OK: TARN_E_IO, the system cannot load
// the file; TARN_E_UNSUPPORTED, as tarn_plugin_load, or its type is not the one
// that the file is named after; TARN_E_DEVICE, it failed to initialise or to
// list its devices; TARN_E_STATE, a parent process initialised it before a
// fork.
//
// Lifetime: |info| and its texts are there during the call of |visit|.
// Threads:  |visit| is called on this thread with no lock held, and may call
//           the library.
// Fork:     each plug-in is initialised, and few drivers survive a fork:
//           processes that fork later should not list before.
// Cost:     loading and initialising each plug-in, once in a process; those
//           that failed are tried again in each call.
TARN_API TARN_MUST_CHECK tarn_status tarn_plugin_each(tarn_plugin_visit *visit,
                                                      void *context);

// ---------------------------------------------------------------------------
// Devices
// ---------------------------------------------------------------------------

// Opens the device of that name, "type:ordinal"; "type" alone means ordinal 0.
// Opening a device again gives the same object and counts the open.
//
// If no plug-in of that type is known, a file tarn_TYPE.so is looked for, and
// loaded as by tarn_plugin_load: beside the library, in the folders "plugins",
// as in a tree where it is built, and "tarn", as in one where it is installed;
// from an installed program that holds the library itself, in LIBDIR/tarn; then
// in the directory that TARN_PLUGIN_DIR names. The first that is there counts.
// A folder beside the library counts if it belongs to the user, to root or to
// the owner of the library, and not everyone may write there.
//
// Lifetime: each open needs its tarn_device_close.
// TARN_E_INVALID      no such type or ordinal; the text lists those that exist.
// TARN_E_IO           there is a file for the type, and the system cannot load
//                     it; the text says why.
// TARN_E_UNSUPPORTED  the file is no plug-in, or one of another type.
// TARN_E_DEVICE       the plug-in failed to initialise it.
TARN_API TARN_MUST_CHECK tarn_status tarn_device_open(const char *name,
                                                      tarn_device **out_device);

// Undoes one open. The last close asks the attachments (pools, ...) whether the
// device may close, ends them, frees the staging memory and deinitialises the
// device.
//
// TARN_E_STATE   the last close, while memory, ranges, registered memory,
//                streams or events of the device exist, or an adopted stream
//                that was destroyed still has work queued: nothing happens and
//                the device stays open.
// TARN_E_DEVICE  deinitialising failed; the device is closed all the same.
TARN_API tarn_status tarn_device_close(tarn_device *device);

// "cuda:0". Lives as long as the device is open.
TARN_API const char *tarn_device_name(const tarn_device *device);

// Optional functions, or groups of them, that the plug-in has itself. The
// others are stand-ins.
typedef enum tarn_device_function {
  TARN_FN_COPY_P2P = 1 << 0,
  TARN_FN_ASYNC_H2D = 1 << 1,
  TARN_FN_ASYNC_D2H = 1 << 2,
  TARN_FN_ASYNC_D2D = 1 << 3,
  TARN_FN_ASYNC_P2P = 1 << 4,
  TARN_FN_MEMORY_SET = 1 << 5,
  TARN_FN_HOST_MEMORY = 1 << 6,     // else plain memory, not pinned
  TARN_FN_UNIFIED_MEMORY = 1 << 7,  // else TARN_E_UNSUPPORTED
  TARN_FN_MAX_CHUNK = 1 << 8,
  TARN_FN_MAX_ALLOC = 1 << 9,
  TARN_FN_PADDING = 1 << 10,
  TARN_FN_INIT_SIZE = 1 << 11,
  TARN_FN_REALLOC_SIZE = 1 << 12,
  TARN_FN_STREAMS = 1 << 13,    // else every stream is synchronous
  TARN_FN_EVENTS = 1 << 14,     // else recording waits for the stream
  TARN_FN_CALLBACKS = 1 << 15,  // else adding one waits for the stream
} tarn_device_function;

// The name of a function in PaddlePaddle's custom device interface,
// "memory_copy_p2p", ...; NULL if |bit| is not one bit of the enumeration.
TARN_API const char *tarn_device_function_name(tarn_device_function bit);

// Abilities beyond the ABI, of the plug-in's extension table (device_ext.h).
typedef enum tarn_device_extension {
  TARN_EXTENSION_ALIGNMENT = 1 << 0,     // reports the alignment of addresses
  TARN_EXTENSION_ALIGNED = 1 << 1,       // else allocations are padded
  TARN_EXTENSION_RANGES = 1 << 2,        // range.h; else TARN_E_UNSUPPORTED
  TARN_EXTENSION_SHARING = 1 << 3,       // shares ranges between processes
  TARN_EXTENSION_STREAM_ORDER = 1 << 4,  // else the calls wait
  TARN_EXTENSION_REGISTER = 1 << 5,      // else TARN_E_UNSUPPORTED
  TARN_EXTENSION_POINTERS = 1 << 6,      // else TARN_E_UNSUPPORTED
  TARN_EXTENSION_TEXTS = 1 << 7,         // error texts of the driver
  TARN_EXTENSION_GATHER = 1 << 8,        // rows.h; else row by row
  TARN_EXTENSION_SCATTER = 1 << 9,
  TARN_EXTENSION_SCATTER_ADD = 1 << 10,
  TARN_EXTENSION_RETAINS = 1 << 11,           // the driver keeps freed memory
  TARN_EXTENSION_HANDLES = 1 << 12,           // tarn_device_export and _import
  TARN_EXTENSION_DEFAULT_STREAM = 1 << 13,    // tarn_stream_adopt of NULL
  TARN_EXTENSION_STREAM_CAPTURING = 1 << 14,  // tells streams that capture
  TARN_EXTENSION_MOVES = 1 << 15,             // tarn_range_move
} tarn_device_extension;

// "alignment", "ranges", ...; NULL if |bit| is not one bit of the enumeration.
TARN_API const char *tarn_device_extension_name(tarn_device_extension bit);

typedef struct tarn_device_info {
  size_t struct_size;
  const char *name;      // "cuda:0"
  const char *type;      // "cuda"
  const char *plugin;    // path of its shared object, "built-in", or the name
                         // given to tarn_plugin_register
  int id;                // the plug-in's number of the device
  uint32_t functions;    // tarn_device_function bits, without stand-ins
  bool host_accessible;  // the host can access the device's own memory

  // Sizes, in bytes. A block of a pool takes its size and the padding, rounded
  // up to a multiple of min_chunk; tarn_block.size is that, less the padding.
  size_t min_chunk;     // a power of two; pools request multiples of it
  size_t max_chunk;     // each block larger than this is an allocation of its
                        // own, which is freed with the block; 0: each block is
  size_t max_alloc;     // largest single allocation; without the plug-in's
                        // function, the memory available now
  size_t padding;       // unused bytes at the end of each block
  size_t init_size;     // of a pool's first allocation
  size_t realloc_size;  // of a pool's later allocations

  uint32_t extensions;  // tarn_device_extension bits
  size_t alignment;     // of each address of the device's own memory;
                        // 1: not known
  const char
      *description;  // the plug-in's words for it, one line, as "Intel(R)
                     // Xeon(R) Processor, device memory svm"; "": none
} tarn_device_info;

// Fills |*out_info|. Its strings live as long as the device is open.
//
// The driver is asked for max_alloc, max_chunk, init_size and realloc_size in
// each call. If the plug-in lacks the function, |functions| lacks its bit,
// max_alloc is the memory available now, and the other three are max_alloc.
// Pools (pool.h) follow max_chunk, init_size and realloc_size only where
// |functions| has the bit, and only for the device's own memory; init_size and
// realloc_size only on devices without ranges (range.h). Otherwise a pool
// chooses the sizes.
//
// If the driver fails to report its memory, the four sizes are those from when
// the device was opened.
//
// Cost: calls of the driver. The four functions below make none.
TARN_API TARN_MUST_CHECK tarn_status
tarn_device_query(tarn_device *device, tarn_device_info *out_info);

// Fields of tarn_device_info that do not change while the device is open.
//
// Cost: none; the driver is not called.
TARN_API const char *tarn_device_type(const tarn_device *device);
TARN_API uint32_t tarn_device_functions(const tarn_device *device);
TARN_API uint32_t tarn_device_extensions(const tarn_device *device);
TARN_API bool tarn_device_host_accessible(const tarn_device *device);

// Memory of the device in bytes, as the driver reports it now. Free memory
// above the total is cut to the total.
//
// TARN_E_DEVICE  the driver failed.
TARN_API TARN_MUST_CHECK tarn_status tarn_device_memory(tarn_device *device,
                                                        size_t *out_total,
                                                        size_t *out_free);

// Waits for all work queued on all streams of |device|.
//
// TARN_E_DEVICE  the driver failed.
TARN_API tarn_status tarn_device_synchronize(tarn_device *device);

// ---------------------------------------------------------------------------
// Memory, straight from the driver (pools are in pool.h)
// ---------------------------------------------------------------------------

// Allocates |size| bytes at |place|. The memory is not cleared; the driver
// chooses the alignment.
//
// Lifetime: free it by tarn_device_deallocate with the same size.
// Cost:     one call of the driver, often microseconds.
// TARN_FULL           the driver has no memory left.
// TARN_E_INVALID      size 0.
// TARN_E_UNSUPPORTED  unified memory of a device that has none.
// TARN_E_DEVICE       the driver failed in another way.
TARN_API TARN_MUST_CHECK tarn_status tarn_device_allocate(tarn_place place,
                                                          size_t size,
                                                          tarn_addr *out_addr);

// The same at a multiple of |align|, a power of two.
//
// Cost: of pinned and unified memory, and on a device without
//       TARN_EXTENSION_ALIGNED: up to |align| - 1 bytes more where the driver's
//       address is not aligned, and a search in tarn_device_deallocate.
// TARN_E_INVALID  |align| is not a power of two.
TARN_API TARN_MUST_CHECK tarn_status tarn_device_allocate_aligned(
    tarn_place place, size_t size, size_t align, tarn_addr *out_addr);

// Frees memory of either function above. Queued work must not use it any more.
//
// TARN_E_INVALID  address 0.
// TARN_E_DEVICE   the driver failed; the memory counts as freed.
TARN_API tarn_status tarn_device_deallocate(tarn_place place, tarn_addr addr,
                                            size_t size);

// Allocates |size| bytes of the device's own memory in the order of |stream|.
// Work queued there from now on may use it; other streams may after they have
// waited for |stream|. tarn_device_deallocate and tarn_device_deallocate_on
// free it.
//
// Cost:   on a device without TARN_EXTENSION_STREAM_ORDER, as
//         tarn_device_allocate.
// Errors: as tarn_device_allocate, and those of |stream|.
TARN_API TARN_MUST_CHECK tarn_status
tarn_device_allocate_on(tarn_stream *stream, size_t size, tarn_addr *out_addr);

// Frees the device's own memory, of any of the three functions above, when all
// work queued on |stream| is done; until then only that work may use it. On a
// device without TARN_EXTENSION_STREAM_ORDER, and on a stream that has failed,
// the call waits.
//
// TARN_E_INVALID  address 0.
// TARN_E_NOMEM    nothing was queued: the memory is still allocated.
// TARN_E_DEVICE   the driver or the stream has failed; the memory counts as
//                 freed.
TARN_API tarn_status tarn_device_deallocate_on(tarn_stream *stream,
                                               tarn_addr addr, size_t size);

// Names an allocation to other processes. The bytes can be sent by any means.
#define TARN_DEVICE_HANDLE_SIZE 64
typedef struct tarn_device_handle {
  unsigned char bytes[TARN_DEVICE_HANDLE_SIZE];
} tarn_device_handle;

// Makes a handle for the |size| bytes of the device's own memory at |addr|, one
// whole allocation of tarn_device_allocate. The memory must not be used during
// the call. Devices with TARN_EXTENSION_SHARING export memory handles instead
// (range.h).
//
// Lifetime: the handle is valid while this process runs and holds the memory.
//           Free the memory when every process that imported it has closed it
//           or has ended; before that, their view of it is undefined.
// TARN_E_UNSUPPORTED  no TARN_EXTENSION_HANDLES; or the allocation is smaller
//                     than 64 KiB and shares a page with others.
// TARN_E_INVALID      address or size 0, or no allocation of that size begins
//                     at |addr|.
// TARN_E_NOMEM, TARN_E_DEVICE
//                     the driver has no resources for it, or failed.
TARN_API TARN_MUST_CHECK tarn_status
tarn_device_export(tarn_device *device, tarn_addr addr, size_t size,
                   tarn_device_handle *out_handle);

// Maps |size| bytes of memory that another process has exported, and gives
// their address on |device| in this process.
//
// Lifetime: until tarn_device_import_close; a device cannot be closed before.
// TARN_E_UNSUPPORTED  no TARN_EXTENSION_HANDLES; or this process has exported
//                     the memory itself, and the driver cannot import it here.
// TARN_E_INVALID      size 0; or the bytes are not a handle of this type of
//                     device, or its memory is gone or has another size.
// TARN_FULL           the device has no addresses left.
// TARN_E_NOMEM, TARN_E_DEVICE  as above.
TARN_API TARN_MUST_CHECK tarn_status
tarn_device_import(tarn_device *device, const tarn_device_handle *handle,
                   size_t size, tarn_addr *out_addr);

// Unmaps imported memory. Queued work must not use it any more.
//
// TARN_E_INVALID  nothing was imported at |addr|.
// TARN_E_DEVICE   the driver failed; the import counts as closed.
TARN_API tarn_status tarn_device_import_close(tarn_device *device,
                                              tarn_addr addr, size_t size);

// Pins |size| bytes of the program's own memory at |ptr|, which makes copies
// faster, and lets the device access them at that address. Copies also work
// with memory that is not registered.
//
// Lifetime: until tarn_device_host_unregister, which must come before the
//           memory is freed; a device cannot be closed before.
// TARN_E_UNSUPPORTED  no TARN_EXTENSION_REGISTER.
// TARN_E_INVALID      NULL, size 0, or part of it is registered already.
TARN_API TARN_MUST_CHECK tarn_status
tarn_device_host_register(tarn_device *device, void *ptr, size_t size);

// TARN_E_INVALID  no registered memory begins at |ptr|.
TARN_API tarn_status tarn_device_host_unregister(tarn_device *device,
                                                 void *ptr);

typedef struct tarn_pointer_info {
  tarn_place place;  // the device that owns it, and its kind
  tarn_addr base;    // of the allocation, mapping or registration
  size_t size;       // of the same; 0: the driver does not know it, and |base|
                     // may be 0 too
  uint64_t reserved[2];  // 0
} tarn_pointer_info;

// Asks the driver of |device| which allocation |addr| belongs to. The device in
// |place| may be another one of the same type; it is NULL if that is not open.
//
// TARN_E_UNSUPPORTED  no TARN_EXTENSION_POINTERS.
// TARN_E_INVALID      the driver does not know |addr|.
TARN_API TARN_MUST_CHECK tarn_status tarn_device_pointer_query(
    tarn_device *device, tarn_addr addr, tarn_pointer_info *out_info);

// The pointer through which the host can access |size| bytes at |addr|. All
// host and unified memory has one, and a device's own memory if
// tarn_device_info.host_accessible is true.
//
// TARN_E_UNSUPPORTED  the host cannot access it: copy instead.
TARN_API TARN_MUST_CHECK tarn_status tarn_device_host_view(tarn_place place,
                                                           tarn_addr addr,
                                                           size_t size,
                                                           void **out_ptr);

// ---------------------------------------------------------------------------
// Copies
// ---------------------------------------------------------------------------
// With |stream| NULL the copy is done when the call returns. With a stream it
// is queued behind the work there; a device that cannot queue a copy makes it
// before the call returns. Size 0 does nothing. The ranges must not overlap.
//
// **A queued copy reads and writes memory when it runs, not when it is called.
// Until it is done, memory at both ends must not be freed, nor the source
// written, nor a local variable go out of scope.** That holds for pinned and
// pageable memory, on every device: nothing is staged at the call, unlike
// cudaMemcpyAsync from pageable memory. A copy is done when
// tarn_stream_synchronize, or tarn_event_synchronize of an event behind it, has
// returned. To reuse the source at once, pass |stream| NULL, or use a buffer of
// tarn/synced.h, which waits for its own copies.
//
// TARN_E_INVALID  an end is NULL or 0, or |stream| is of another device.
// TARN_E_NOMEM    the driver or the host has no resources: nothing was queued.
// TARN_E_DEVICE   the driver failed. A queued copy may fail later; then the
//                 stream keeps the failure.

TARN_API TARN_MUST_CHECK tarn_status tarn_copy_h2d(tarn_device *device,
                                                   tarn_addr dst,
                                                   const void *src, size_t size,
                                                   tarn_stream *stream);
TARN_API TARN_MUST_CHECK tarn_status tarn_copy_d2h(tarn_device *device,
                                                   void *dst, tarn_addr src,
                                                   size_t size,
                                                   tarn_stream *stream);
TARN_API TARN_MUST_CHECK tarn_status tarn_copy_d2d(tarn_device *device,
                                                   tarn_addr dst, tarn_addr src,
                                                   size_t size,
                                                   tarn_stream *stream);

// Copies between two devices; |stream| is of |src_device|. Between devices that
// cannot access each other, the bytes go through the staging memory of
// |src_device| in pieces, and the call returns when all are copied.
TARN_API TARN_MUST_CHECK tarn_status tarn_copy_p2p(tarn_device *dst_device,
                                                   tarn_addr dst,
                                                   tarn_device *src_device,
                                                   tarn_addr src, size_t size,
                                                   tarn_stream *stream);

// Sets |size| bytes at |addr| to |value|. The ABI has no queued form: with a
// stream, the call first waits for the work queued there.
TARN_API TARN_MUST_CHECK tarn_status tarn_device_set(tarn_device *device,
                                                     tarn_addr addr,
                                                     unsigned char value,
                                                     size_t size,
                                                     tarn_stream *stream);

// ---------------------------------------------------------------------------
// Attachments: data of other parts of the library, per device
// ---------------------------------------------------------------------------

typedef enum tarn_device_slot {
  TARN_SLOT_POOL = 0,
  TARN_SLOT_SYNCED = 1,
  TARN_SLOT_WHOLE = 2,
  TARN_SLOT_MODEL = 3,
  TARN_SLOT_USER = 4,   // for programs that link the library
  TARN_SLOT_COUNT = 5,  // of this version: it may rise
} tarn_device_slot;

// Called before a device closes, higher slots first: with |commit| false to ask
// (any status other than TARN_OK keeps the device open), then, if all agree,
// with |commit| true to end. In a forked child only the call with |commit| true
// comes, and it must free host memory only.
typedef tarn_status tarn_device_on_close(tarn_device *device, void *pointer,
                                         bool commit);

// Keeps |pointer| in |slot|, one of TARN_SLOT_...
//
// TARN_E_STATE  the slot is in use: tarn_device_attached gives its pointer.
TARN_API TARN_MUST_CHECK tarn_status
tarn_device_attach(tarn_device *device, tarn_device_slot slot, void *pointer,
                   tarn_device_on_close *on_close);

// The pointer in |slot|, or NULL.
TARN_API void *tarn_device_attached(tarn_device *device, tarn_device_slot slot);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_DEVICE_H_
