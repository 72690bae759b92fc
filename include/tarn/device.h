// device.h - use a device: places, memory, copies.
//
// A device is what a plug-in offers under a name, "cpu:0", "cuda:1". Every
// plug-in comes in the ABI of device_abi.h; what it leaves out, this room
// supplies once at loading, so that no caller ever asks whether a function is
// there. `cpu` is built in and cpu:0 is always open.
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
// Errors:   besides what each function lists: TARN_E_STATE in a forked child,
//           TARN_E_NOMEM where host memory is needed. An argument that is NULL
//           where an object is needed is TARN_E_INVALID. TARN_E_STATE too where
//           a plug-in, or a function given to tarn_device_attach, that loading,
//           registering, listing, opening or closing waits for calls a function
//           that does one of these.
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

// Where memory may be. The zero place is plain host memory.
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

// True if memory of one place can stand for memory of the other: the same
// device and kind, and all places of cpu:0 are the zero place.
TARN_API bool tarn_place_equal(tarn_place a, tarn_place b);

// "host", "cuda:0", "cuda:0/host", "cuda:0/unified": into |out|, cut to
// |out_size| bytes with the NUL. Returns |out|.
TARN_API char *tarn_place_text(tarn_place place, char *out, size_t out_size);

// ---------------------------------------------------------------------------
// Plug-ins
// ---------------------------------------------------------------------------

// Loads a plug-in and makes its devices known under its own type name.
//
// |path| is absolute, or a file name without '/' that stands in the directory
// named by the environment variable TARN_PLUGIN_DIR (absolute; ignored in
// setuid programs). Nothing is ever looked for in the current directory or on
// the linker's path. The plug-in stays loaded until the process ends: a live
// plug-in cannot be closed safely.
//
// A plug-in is trusted code: its constructors run before any check can.
//
// TARN_E_INVALID      |path| is neither of the two.
// TARN_E_IO           the system cannot load it; the text says why.
// TARN_E_UNSUPPORTED  not a plug-in, a required function is missing, one half
//                     of a pair is missing: the text names it.
// TARN_E_STATE        a device type of that name is there already: the text
//                     says whose.
TARN_API TARN_MUST_CHECK tarn_status tarn_plugin_load(const char *path);

// What a plug-in exports, as types: InitPlugin of device_abi.h or of a vendor's
// copy of that header, which say what is in the struct, and TarnDeviceExt of
// device_ext.h. No header of the ABI is needed to name them.
struct CustomRuntimeParams;
struct tarn_device_ext;
typedef void tarn_plugin_init(struct CustomRuntimeParams *params);
typedef const struct tarn_device_ext *tarn_device_ext_function(void);

// Makes devices known that are part of the program itself: of a plug-in that is
// linked in, of a runtime that has a context of its own. |init| and |ext| are
// what a shared object would export; |ext| NULL: nothing beyond the ABI. All
// that is checked of a plug-in that is loaded is checked of this one too.
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
// The type of the devices is what |init| says. |name| says in errors, and as
// tarn_device_info.plugin, whose they are: 1 to 255 bytes, no control
// characters. Several types may have the same.
//
// C++: |init| may be a function, a static member or a lambda that captures
//      nothing. No exception may leave it, or a function that it names.
// Lifetime: for good, there is no way to take it back. Names and tables are
//      copied; the code that they name, and what that uses, stay until the
//      process exits. A shared object that registers what it contains is
//      linked with -z nodelete. At exit nothing of it is called.
// Threads: |init|, which may be called several times, and |ext| are called on
//      this thread, during the call, with the lock that opening and closing
//      take. What they call of the functions that take it is TARN_E_STATE.
//      Devices that are open go on meanwhile. The functions of the table are
//      called from any thread, as device_abi.h says.
// Fork: a child has what was registered before. What it registers is its own.
// Cost: some 15 KiB of host memory during the call; 3 KiB of them stay.
//
// TARN_E_INVALID      |init| is NULL, or |name| is none.
// TARN_E_UNSUPPORTED  |init| names no device type, a required function is
//                     missing, one half of a pair is missing: the text says
//                     which. Nothing of it stays: mend it and try again.
// TARN_E_STATE        a device type of that name is there already, built in,
//                     loaded or registered: the text says whose. Or this is a
//                     stream's callback, or a plug-in's function that opening,
//                     closing, listing, loading or registering waits for.
TARN_API TARN_MUST_CHECK tarn_status tarn_plugin_register(
    tarn_plugin_init *init, tarn_device_ext_function *ext, const char *name);

// Calls |visit| for each device of each known type, "cpu:0" first; stops at
// the first status that is not TARN_OK and returns it.
//
// TARN_E_DEVICE  a plug-in cannot say what devices it has.
typedef tarn_status tarn_device_visit(void *context, const char *name);
TARN_API TARN_MUST_CHECK tarn_status tarn_device_each(tarn_device_visit *visit,
                                                      void *context);

// ---------------------------------------------------------------------------
// Devices
// ---------------------------------------------------------------------------

// Opens the device of that name, "type:ordinal"; "type" alone means ordinal 0.
// Counted: one object per device of the process, however often it is opened.
//
// Lifetime: each open needs its tarn_device_close.
// TARN_E_INVALID  no such type or ordinal; the text lists what there is.
// TARN_E_DEVICE   the plug-in failed to initialise it.
TARN_API TARN_MUST_CHECK tarn_status tarn_device_open(const char *name,
                                                      tarn_device **out_device);

// Lets go of one open. The last one asks whoever is attached (pools, ...),
// then lets them end, frees the staging memory and deinitialises the device.
//
// TARN_E_STATE   the last one, but memory, ranges, registered memory, streams
//                or events of it are in use, or a stream that was adopted and
//                destroyed is still at work: nothing happens and the device
//                stays open.
// TARN_E_DEVICE  deinitialising failed; the device is closed all the same.
TARN_API tarn_status tarn_device_close(tarn_device *device);

// "cuda:0". Lives as long as the device is open.
TARN_API const char *tarn_device_name(const tarn_device *device);

// What the plug-in itself provides of the optional functions; the others are
// stand-ins.
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

// "memory_copy_p2p", ...: the document's name of one function; NULL if |bit|
// is not one.
TARN_API const char *tarn_device_function_name(tarn_device_function bit);

// What a device has beyond the ABI, by its plug-in's extension table.
typedef enum tarn_device_extension {
  TARN_EXTENSION_ALIGNMENT = 1 << 0,     // says what addresses are aligned to
  TARN_EXTENSION_ALIGNED = 1 << 1,       // else some bytes more are taken
  TARN_EXTENSION_RANGES = 1 << 2,        // range.h; else TARN_E_UNSUPPORTED
  TARN_EXTENSION_SHARING = 1 << 3,       // of memory between processes
  TARN_EXTENSION_STREAM_ORDER = 1 << 4,  // else the calls wait
  TARN_EXTENSION_REGISTER = 1 << 5,      // else TARN_E_UNSUPPORTED
  TARN_EXTENSION_POINTERS = 1 << 6,      // else TARN_E_UNSUPPORTED
  TARN_EXTENSION_TEXTS = 1 << 7,         // the driver's words in error texts
  TARN_EXTENSION_GATHER = 1 << 8,        // rows.h; else row by row
  TARN_EXTENSION_SCATTER = 1 << 9,
  TARN_EXTENSION_SCATTER_ADD = 1 << 10,
  TARN_EXTENSION_RETAINS = 1 << 11,         // the driver keeps freed memory
  TARN_EXTENSION_HANDLES = 1 << 12,         // allocations for other processes
  TARN_EXTENSION_DEFAULT_STREAM = 1 << 13,  // tarn_stream_adopt of NULL
} tarn_device_extension;

// "alignment", "ranges", ...; NULL if |bit| is not one.
TARN_API const char *tarn_device_extension_name(tarn_device_extension bit);

typedef struct tarn_device_info {
  size_t struct_size;
  const char *name;      // "cuda:0"
  const char *type;      // "cuda"
  const char *plugin;    // path of its shared object, "built-in", or the name
                         // that it was registered with
  int id;                // what the plug-in calls it
  uint32_t functions;    // tarn_device_function bits of what is its own
  bool host_accessible;  // the host can touch the device's own memory

  // Sizes, in bytes. A block of a pool takes its size and the padding, rounded
  // up to a multiple of min_chunk; tarn_block.size is that, less the padding.
  size_t min_chunk;     // a power of two; every size that a pool asks the
                        // device for is a multiple of it
  size_t max_chunk;     // blocks that take more than this are asked of the
                        // device one by one, and go back when they are freed;
                        // 0: all blocks are
  size_t max_alloc;     // largest single allocation; without the plug-in's
                        // function, the memory available now
  size_t padding;       // bytes at the end of each block that stay unused
  size_t init_size;     // of a pool's first allocation
  size_t realloc_size;  // of a pool's later allocations

  uint32_t extensions;  // tarn_device_extension bits
  size_t alignment;     // every address of the device's own memory is a
                        // multiple of it; 1: nothing is promised
} tarn_device_info;

// Fills |*out_info|. The text in it lives as long as the device is open.
//
// max_alloc, max_chunk, init_size and realloc_size are asked for in each call.
// Without the plug-in's own function, |functions| lacks its bit: then max_alloc
// is the memory available now, and the other three are max_alloc. The pools
// (pool.h) obey max_chunk, init_size and realloc_size only where |functions|
// has the bit, and only for the device's own memory: not for pinned and
// unified memory; init_size and realloc_size only where the device has no
// ranges (range.h). Where a size is missing, a pool decides by itself.
//
// If the driver cannot say how much memory there is, these four are as they
// were when the device was opened.
//
// Cost: calls of the driver. The four functions below make none.
TARN_API TARN_MUST_CHECK tarn_status
tarn_device_query(tarn_device *device, tarn_device_info *out_info);

// The |type|, |functions|, |extensions| and |host_accessible| of a device's
// info, which do not change while it is open.
//
// Cost: none; the driver is not called.
TARN_API const char *tarn_device_type(const tarn_device *device);
TARN_API uint32_t tarn_device_functions(const tarn_device *device);
TARN_API uint32_t tarn_device_extensions(const tarn_device *device);
TARN_API bool tarn_device_host_accessible(const tarn_device *device);

// Memory of the device in bytes, as its driver says it now. What it says is
// not trusted: a free count above the total is cut to the total.
//
// TARN_E_DEVICE  the driver failed.
TARN_API TARN_MUST_CHECK tarn_status tarn_device_memory(tarn_device *device,
                                                        size_t *out_total,
                                                        size_t *out_free);

// Waits until all that was queued on all streams of |device| is done.
//
// TARN_E_DEVICE  the driver failed.
TARN_API tarn_status tarn_device_synchronize(tarn_device *device);

// ---------------------------------------------------------------------------
// Memory, straight from the driver (pools are in pool.h)
// ---------------------------------------------------------------------------

// Takes |size| bytes at |place|. Not cleared; aligned as the driver likes.
//
// Lifetime: give it back with tarn_device_deallocate and the same size.
// Cost:     one call of the driver, often microseconds.
// TARN_FULL           the driver has no memory left.
// TARN_E_INVALID      size 0.
// TARN_E_UNSUPPORTED  UNIFIED on a device that has none.
// TARN_E_DEVICE       the driver failed in another way.
TARN_API TARN_MUST_CHECK tarn_status tarn_device_allocate(tarn_place place,
                                                          size_t size,
                                                          tarn_addr *out_addr);

// The same at a multiple of |align|, a power of two.
//
// Cost: of pinned and unified memory, and on a device without
//       TARN_EXTENSION_ALIGNED: up to |align| - 1 bytes more where the driver's
//       address does not happen to fit, and a search when memory is given back.
// TARN_E_INVALID  |align| is no power of two.
TARN_API TARN_MUST_CHECK tarn_status tarn_device_allocate_aligned(
    tarn_place place, size_t size, size_t align, tarn_addr *out_addr);

// Gives back what either of the two has taken. Nothing queued may still use it.
//
// TARN_E_INVALID  address 0.
// TARN_E_DEVICE   the driver refused; the memory counts as gone.
TARN_API tarn_status tarn_device_deallocate(tarn_place place, tarn_addr addr,
                                            size_t size);

// Takes |size| bytes of the device's own memory, which work on |stream| may use
// from now on, and other streams when they have waited for it. It is given back
// by either of tarn_device_deallocate and tarn_device_deallocate_on.
//
// Cost:   on a device without TARN_EXTENSION_STREAM_ORDER, as
//         tarn_device_allocate.
// Errors: as tarn_device_allocate, and those of |stream|.
TARN_API TARN_MUST_CHECK tarn_status
tarn_device_allocate_on(tarn_stream *stream, size_t size, tarn_addr *out_addr);

// Gives the device's own memory, of any of the three functions that take it,
// back when what is queued on |stream| is done; until then only that may use
// it. On a device without TARN_EXTENSION_STREAM_ORDER the call waits for it, as
// it does on a stream that has failed.
//
// TARN_E_INVALID  address 0.
// TARN_E_NOMEM    nothing was queued: the memory is still there.
// TARN_E_DEVICE   the driver refused, or the stream has failed; the memory
//                 counts as gone.
TARN_API tarn_status tarn_device_deallocate_on(tarn_stream *stream,
                                               tarn_addr addr, size_t size);

// By which another process reaches an allocation: bytes, to be sent by whatever
// way there is.
#define TARN_DEVICE_HANDLE_SIZE 64
typedef struct tarn_device_handle {
  unsigned char bytes[TARN_DEVICE_HANDLE_SIZE];
} tarn_device_handle;

// A handle for the device's own memory at |addr|, of |size| bytes: all of what
// one call of tarn_device_allocate has taken. Nothing may use the memory during
// the call. Devices with TARN_EXTENSION_SHARING share memory without an address
// instead (range.h).
//
// Lifetime: the handle is of use while this process runs and has the memory.
//           Give that back when every process that imported it has closed it or
//           has ended: before, it is undefined what they find there.
// TARN_E_UNSUPPORTED  no TARN_EXTENSION_HANDLES; or less than 64 KiB, where the
//                     device would have to share other memory with it.
// TARN_E_INVALID      address or size 0, or no allocation of that size is
//                     there.
// TARN_E_NOMEM, TARN_E_DEVICE
//                     the driver has no resources for it, or failed.
TARN_API TARN_MUST_CHECK tarn_status
tarn_device_export(tarn_device *device, tarn_addr addr, size_t size,
                   tarn_device_handle *out_handle);

// The address at which |device|, of this process, reaches the |size| bytes of
// memory that another process has exported.
//
// Lifetime: until tarn_device_import_close; a device cannot be closed before.
// TARN_E_UNSUPPORTED  no TARN_EXTENSION_HANDLES; or this process has exported
//                     it itself, and the driver cannot open it there too.
// TARN_E_INVALID      size 0; or the handle is none, is of another type of
//                     device, or names no memory of that size that is there.
// TARN_FULL           the device has no addresses left.
// TARN_E_NOMEM, TARN_E_DEVICE  as above.
TARN_API TARN_MUST_CHECK tarn_status
tarn_device_import(tarn_device *device, const tarn_device_handle *handle,
                   size_t size, tarn_addr *out_addr);

// Lets go of it. Nothing queued may still use it.
//
// TARN_E_INVALID  nothing was imported there.
// TARN_E_DEVICE   the driver refused; it counts as gone.
TARN_API tarn_status tarn_device_import_close(tarn_device *device,
                                              tarn_addr addr, size_t size);

// Pins |size| bytes of the program's own memory at |ptr|, which makes copies
// faster, and lets the device reach them at that address. Copies from and to
// memory that is not registered work as well.
//
// Lifetime: until tarn_device_host_unregister, which must come before the
//           memory is freed; a device cannot be closed before.
// TARN_E_UNSUPPORTED  no TARN_EXTENSION_REGISTER.
// TARN_E_INVALID      NULL, size 0, or some of it is registered already.
TARN_API TARN_MUST_CHECK tarn_status
tarn_device_host_register(tarn_device *device, void *ptr, size_t size);

// TARN_E_INVALID  |ptr| is not where registered memory begins.
TARN_API tarn_status tarn_device_host_unregister(tarn_device *device,
                                                 void *ptr);

typedef struct tarn_pointer_info {
  tarn_place place;  // whose it is, and of what kind
  tarn_addr base;    // where the allocation, mapping or registration begins
  size_t size;       // and its bytes; 0: the driver does not know, and |base|
                     // may be 0 too
  uint64_t reserved[2];  // 0
} tarn_pointer_info;

// What |addr| belongs to, as the driver of |device| knows it. The place's
// device may be another one of the same type; it is NULL if that is not open.
//
// TARN_E_UNSUPPORTED  no TARN_EXTENSION_POINTERS.
// TARN_E_INVALID      the driver knows nothing of |addr|.
TARN_API TARN_MUST_CHECK tarn_status tarn_device_pointer_query(
    tarn_device *device, tarn_addr addr, tarn_pointer_info *out_info);

// The pointer through which the host can touch |size| bytes at |addr|. All
// host and unified memory has one; a device's own memory where
// tarn_device_info.host_accessible says so.
//
// TARN_E_UNSUPPORTED  the host cannot touch it: copy instead.
TARN_API TARN_MUST_CHECK tarn_status tarn_device_host_view(tarn_place place,
                                                           tarn_addr addr,
                                                           size_t size,
                                                           void **out_ptr);

// ---------------------------------------------------------------------------
// Copies
// ---------------------------------------------------------------------------
// With |stream| NULL the bytes are there when the call returns. With a stream
// the copy is queued behind what is on it; a device that cannot queue copies
// before the call returns. Size 0 does nothing. The ranges must not overlap.
//
// **A queued copy reads and writes memory when it runs, not when it is called.
// Until it is done, memory at both ends must not be freed, nor the source
// written, nor a local variable go out of scope.** That holds for pinned and
// pageable memory, on every device: nothing is staged at the call, unlike
// cudaMemcpyAsync from pageable memory. A copy is done when
// tarn_stream_synchronize, or tarn_event_synchronize of an event behind it, has
// returned. Where the source is to be free at once: |stream| NULL, or a buffer
// of tarn/synced.h, which waits for its copies by itself.
//
// TARN_E_INVALID  an end is NULL or 0, or |stream| is of another device.
// TARN_E_NOMEM    the driver or the host has no resources for it: nothing was
//                 queued.
// TARN_E_DEVICE   the driver failed. If the copy was queued, the failure may
//                 show later instead, and sticks to the stream.

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

// Between two devices; |stream| is of |src_device|. Between devices that cannot
// reach each other the bytes go through the source's staging memory, in
// pieces, and the call returns when they are there.
TARN_API TARN_MUST_CHECK tarn_status tarn_copy_p2p(tarn_device *dst_device,
                                                   tarn_addr dst,
                                                   tarn_device *src_device,
                                                   tarn_addr src, size_t size,
                                                   tarn_stream *stream);

// Sets |size| bytes at |addr| to |value|. The ABI has no queued form: with a
// stream, the call first waits for what is on it.
TARN_API TARN_MUST_CHECK tarn_status tarn_device_set(tarn_device *device,
                                                     tarn_addr addr,
                                                     unsigned char value,
                                                     size_t size,
                                                     tarn_stream *stream);

// ---------------------------------------------------------------------------
// Attachments: what other rooms keep per device
// ---------------------------------------------------------------------------

typedef enum tarn_device_slot {
  TARN_SLOT_POOL = 0,
  TARN_SLOT_SYNCED = 1,
  TARN_SLOT_WHOLE = 2,
  TARN_SLOT_MODEL = 3,
  TARN_SLOT_USER = 4,   // for programs that link the library
  TARN_SLOT_COUNT = 5,  // of this version: it may rise
} tarn_device_slot;

// What is called when a device is about to close, higher slots first: once
// with |commit| false, to ask (any status but TARN_OK keeps the device open),
// and if nobody objects once with |commit| true, to end. In a forked child it
// is called with |commit| only, and frees host memory only.
typedef tarn_status tarn_device_on_close(tarn_device *device, void *pointer,
                                         bool commit);

// Keeps |pointer| in |slot|, one of TARN_SLOT_...
//
// TARN_E_STATE  the slot is taken: tarn_device_attached tells by what.
TARN_API TARN_MUST_CHECK tarn_status
tarn_device_attach(tarn_device *device, tarn_device_slot slot, void *pointer,
                   tarn_device_on_close *on_close);

// What stands in |slot|, or NULL.
TARN_API void *tarn_device_attached(tarn_device *device, tarn_device_slot slot);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_DEVICE_H_
