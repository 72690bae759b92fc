// synced.h - buffers that a program uses at several places: the host and
// devices. Only missing bytes are copied.
//
// A synced buffer knows, for each byte, which places have the newest value. An
// access names a range and a place; bytes that are missing or stale there are
// copied, and no others.
//
//   tarn_synced *x;
//   tarn_synced_create(1 << 20, NULL, &x);             // nothing allocated yet
//   tarn_access a;
//   tarn_synced_begin(x, 0, TARN_ALL, TARN_HOST, TARN_WRITE_DISCARD, NULL, &a);
//   fill(a.pointer, a.size);
//   tarn_synced_end(&a);                   // the host has the newest bytes
//   tarn_synced_begin(x, 0, TARN_ALL, tarn_place_on(gpu), TARN_READ, s, &a);
//   ... kernels on |s| read a.address ...              // copied, on |s|
//   tarn_synced_end(&a);
//   tarn_synced_destroy(x);
//
// Places. The host is one place, with or without pinning, and cpu:0 is the
// host. Other places are a device's own memory and its unified memory. The
// first access at a place takes memory for the whole buffer from the pool of
// that place. Unwritten bytes read as zeros. A buffer can have 64 places.
//
// Ranges are (offset, size) in bytes, of any alignment; TARN_ALL as a size
// means up to the end. A range of size 0 is valid at any offset up to the end:
// it touches nothing, and its address is 0.
//
// Streams. With |stream| NULL the bytes are valid when the call returns, and
// the caller's work on them is done when it ends the access. With a stream both
// hold for work that is queued behind the call: copies are queued on the
// stream, or on a copy stream of the library that the stream waits for. The
// host waits only where this header says so. The next access of the bytes, at
// another place or on another stream, waits for that work and for no other.
//
// See also: tarn/traffic.h for counts of copies and for open buffers and
// accesses; docs/synced.md for the whole subject.
//
// Threads:  all functions may be called from any thread, except from a stream's
//           callback, where they return TARN_E_STATE. Threads that use one
//           buffer wait for each other only where their ranges overlap. One
//           thread may begin an access and another end it.
// Fork:     in a child of the process that created a buffer, its functions
//           return TARN_E_STATE; destroying it there frees host memory only.
// Cost:     an access of valid bytes takes O(log ranges), where a range is a
//           run of bytes with the same history. Buffers share no lock.
// Errors:   every function may return TARN_E_INVALID for a NULL buffer, a range
//           outside the buffer or an invalid place; TARN_E_STATE as above; and
//           TARN_E_NOMEM if the host has no memory for bookkeeping. After a
//           failure the buffer holds the contents committed last.
#ifndef TARN_SYNCED_H_
#define TARN_SYNCED_H_

#include "tarn/base.h"
#include "tarn/device.h"
#include "tarn/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

// A buffer, or a view of part of a buffer.
typedef struct tarn_synced tarn_synced;

// As a size: up to the end of the buffer or view.
#define TARN_ALL SIZE_MAX

// ---------------------------------------------------------------------------
// Buffers and views
// ---------------------------------------------------------------------------

// Makes stale pointers to host memory fault, or not: see "Debugging".
#define TARN_SYNCED_PROTECT (1u << 0)
#define TARN_SYNCED_NO_PROTECT (1u << 1)

typedef struct tarn_synced_options {
  size_t struct_size;
  const char *name;     // for texts and reports, copied; NULL: none
  tarn_device *device;  // the GPU of the calls of Caffe's SyncedMemory; it
                        // also pins host memory. NULL: none; calls that need
                        // the GPU return TARN_E_STATE
  size_t align;         // of the memory at each place, a power of two; 0: the
                        // pool's own
  tarn_tag tag;         // for the accounts of the pools
  uint32_t flags;       // TARN_SYNCED_...
} tarn_synced_options;

// Creates a buffer of |size| bytes, which may be 0. Allocates only bookkeeping
// memory. |options| NULL: all of them 0.
//
// Lifetime: until tarn_synced_destroy. A device cannot close while the buffer
//           has memory there.
// TARN_E_INVALID  |align| is not a power of two, |tag| does not exist, or
//                 |flags| are unknown or contradictory.
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_create(
    size_t size, const tarn_synced_options *options, tarn_synced **out_buffer);

// Creates a view of |size| bytes of |buffer| from |offset| on. |buffer| may be
// a view. A view is used like a buffer; the buffer and all of its views share
// one map of validity, so writes through one are seen through the others. A
// view keeps the buffer's bytes alive; both may be destroyed in any order.
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_view(tarn_synced *buffer,
                                                      size_t offset,
                                                      size_t size,
                                                      tarn_synced **out_view);

// Destroys a buffer or view; NULL is allowed. Destroying the last handle frees
// the memory: the host waits for streams that use it, and memory borrowed with
// TARN_WRAP_SYNC_BACK gets the newest bytes first.
//
// TARN_E_STATE   accesses begun through the handle are open; the text names
//                one. Nothing has changed.
// TARN_E_DEVICE  the handle is destroyed, but a stream or copy failed, or the
//                device refused to free memory. Bytes to be synced back may be
//                lost; the text says which.
TARN_API tarn_status tarn_synced_destroy(tarn_synced *buffer);

// tarn_synced_destroy as the end of a tarn_counted (tarn/counted.h). A failure
// goes to the log.
TARN_API void tarn_synced_destroy_counted(void *buffer);

// The size in bytes; 0 for NULL.
TARN_API size_t tarn_synced_size(const tarn_synced *buffer);

// ---------------------------------------------------------------------------
// Accesses
// ---------------------------------------------------------------------------

typedef enum tarn_access_mode {
  TARN_READ = 1,           // any number at once
  TARN_WRITE_DISCARD = 2,  // overwrites all bytes: nothing is copied
  TARN_READ_WRITE = 3,     // reads and writes
} tarn_access_mode;

// Or-ed to a mode: wait for conflicting accesses to end, instead of failing
// with TARN_E_STATE. There is no queue: a write waits while reads overlap each
// other. A thread that waits for its own access waits forever.
#define TARN_ACCESS_WAIT (1u << 8)

// An access, in the caller's storage, which must not move between begin and
// end or cancel. The caller must not write the fields.
typedef struct tarn_access {
  tarn_addr address;    // of the range's first byte at the place
  void *pointer;        // the same for the host; NULL where it cannot touch it
  size_t size;          // bytes of the range
  tarn_synced *buffer;  // NULL: not open
  // The library's own:
  size_t offset;  // in the whole buffer, not in the view
  tarn_stream *stream;
  uint32_t mode;
  uint32_t side;
  tarn_list node;
  uint64_t reserved[2];  // not set yet
} tarn_access;

// Begins an access: until tarn_synced_end or tarn_synced_cancel the caller may
// use the range at |place| on |stream|, as |mode| says. Missing bytes are
// copied from the cheapest place that has them: directly from a device in
// reach, else through the host. Unwritten bytes are set to zero by the host,
// which waits for that.
//
// A range has any number of readers or one writer, over all places. A conflict
// is TARN_E_STATE, and the text names both places; with TARN_ACCESS_WAIT the
// call waits. With |stream| NULL the host waits for streams that use these
// bytes at |place|, and for the copies. |stream| must live until the access has
// ended.
//
// On failure |*out_access| is zero, and no byte is lost by the call.
//
// TARN_FULL           the pool of |place| has no room.
// TARN_E_STATE        a conflict; or bytes to be read are lost (the text says
//                     how) or were invalidated.
// TARN_E_UNSUPPORTED  |place| has no memory of that kind, or it is the buffer's
//                     65th place.
// TARN_E_DEVICE       a copy or a stream failed.
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_begin(
    tarn_synced *buffer, size_t offset, size_t size, tarn_place place,
    uint32_t mode, tarn_stream *stream, tarn_access *out_access);

// Ends an access. After a write the range has its newest value here, once the
// work queued on the stream is done, and becomes stale at all other places.
//
// TARN_E_INVALID  |access| is not open.
// TARN_E_DEVICE   the stream failed, or a stream that copied bytes into the
//                 range did. The access is closed; a write is cancelled, and
//                 the text says how many bytes are lost.
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_end(tarn_access *access);

// Ends an access and discards its write: the range is no longer valid here, and
// as valid at other places as before. |*out_lost|, if not NULL, is the number
// of bytes whose only copy was here; reading them is TARN_E_STATE until they
// are written again. For a read the same as tarn_synced_end.
TARN_API tarn_status tarn_synced_cancel(tarn_access *access, size_t *out_lost);

// ---------------------------------------------------------------------------
// Ahead of an access, and after
// ---------------------------------------------------------------------------

// Queues on |stream| the copies that make the range valid at |place|, and
// records |event| behind them (NULL: none; else of the stream's device). Later
// accesses, on other streams or on the host, wait for the copies. With |stream|
// NULL the copies are done when the call returns, and |event| must be NULL.
// Errors as for tarn_synced_begin with TARN_READ.
TARN_API TARN_MUST_CHECK tarn_status
tarn_synced_prefetch(tarn_synced *buffer, size_t offset, size_t size,
                     tarn_place place, tarn_stream *stream, tarn_event *event);

// Prefetch to the device of the options (push) and to the host (pull).
//
// TARN_E_STATE  push: the options named no device.
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_push(tarn_synced *buffer,
                                                      size_t offset,
                                                      size_t size,
                                                      tarn_stream *stream,
                                                      tarn_event *event);
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_pull(tarn_synced *buffer,
                                                      size_t offset,
                                                      size_t size,
                                                      tarn_stream *stream,
                                                      tarn_event *event);

// Frees the memory of the whole buffer at |place|: returns it to its pool, or
// releases wrapped memory. Bytes whose only copy is there are copied first, to
// the host, or from the host to the device of the options. The host waits. For
// a view the same.
//
// TARN_OK        also if there was no memory.
// TARN_E_STATE   an access is open there; or an open write elsewhere would, if
//                cancelled, leave bytes without a copy; or the host has the
//                only copy and the options named no device.
// TARN_FULL, TARN_E_DEVICE  a copy failed: nothing has changed.
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_evict(tarn_synced *buffer,
                                                       tarn_place place);

// Discards the contents of the range at all places: the bytes are not copied
// any more, and reading them is TARN_E_STATE until they are written.
//
// TARN_E_STATE  an access is open in the range.
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_invalidate(tarn_synced *buffer,
                                                            size_t offset,
                                                            size_t size);

typedef struct tarn_synced_info {
  size_t struct_size;
  size_t memory;        // bytes of memory at the place: 0 or the buffer's size
  bool borrowed;        // wrapped memory without a deleter
  size_t valid;         // bytes of the range that are valid at the place, or
                        // are being copied there
  size_t pending;       // those of them whose copy is not done
  size_t unwritten;     // bytes of the range that were never written
  size_t lost;          // bytes of the range that are valid at no place
  size_t readers;       // open reads of the range, at any place
  size_t writers;       // open writes; several may write different parts
  size_t range_count;   // runs of bytes with the same history in the buffer
  size_t own_accesses;  // open accesses begun through this handle, which cannot
                        // be destroyed until they end
} tarn_synced_info;

// Describes the range at |place|. Does not wait.
TARN_API TARN_MUST_CHECK tarn_status
tarn_synced_query(tarn_synced *buffer, size_t offset, size_t size,
                  tarn_place place, tarn_synced_info *out_info);

// ---------------------------------------------------------------------------
// Caffe's SyncedMemory: the host, one device, and the whole range
// ---------------------------------------------------------------------------
// A pointer is valid until the next call on the buffer. While a conflicting
// access is open these calls return TARN_E_STATE and change nothing.
//
//   head     cpu_data    mutable_cpu  gpu_data    mutable_gpu  async_gpu_push
//   UNINIT   CPU  zeros  CPU  zeros   GPU  zeros  GPU  zeros   TARN_E_STATE
//   CPU      CPU         CPU          SYNCED h2d  GPU  h2d     SYNCED h2d
//   GPU      SYNCED d2h  CPU  d2h     GPU         GPU          TARN_E_STATE
//   SYNCED   SYNCED      CPU          SYNCED      GPU          TARN_E_STATE
//
// set_cpu_data always leads to CPU and set_gpu_data to GPU; neither copies. The
// memory stays the buffer's memory at that place, and later copies to the place
// are made into it, as in Caffe.
//
// A const call on an unwritten buffer makes its zeros the contents, which are
// copied when the other place reads them. If the device is cpu:0, both are one
// place: the head is SYNCED after any write, and nothing is copied.

typedef enum tarn_synced_state {
  TARN_UNINITIALIZED = 0,
  TARN_HEAD_AT_CPU = 1,
  TARN_HEAD_AT_GPU = 2,
  TARN_SYNCED = 3,
  TARN_HEAD_ELSEWHERE = 4,  // not in Caffe: neither place has all the newest
                            // bytes; parts differ, bytes are lost, or a third
                            // place has them
} tarn_synced_state;

// The place of the newest bytes of the buffer or view; TARN_UNINITIALIZED for
// NULL and on errors. Unwritten bytes do not count, nor do copies before they
// are done. Queries streams and waits for none.
TARN_API tarn_synced_state tarn_synced_head(tarn_synced *buffer);

// "UNINITIALIZED", "HEAD_AT_CPU", ...; NULL for an unknown state.
TARN_API const char *tarn_synced_state_name(tarn_synced_state state);

// Errors as for tarn_synced_begin with |stream| NULL. gpu_: TARN_E_STATE if the
// options named no device.
TARN_API TARN_MUST_CHECK tarn_status
tarn_synced_cpu_data(tarn_synced *buffer, const void **out_data);
TARN_API TARN_MUST_CHECK tarn_status
tarn_synced_mutable_cpu_data(tarn_synced *buffer, void **out_data);
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_gpu_data(tarn_synced *buffer,
                                                          tarn_addr *out_data);
TARN_API TARN_MUST_CHECK tarn_status
tarn_synced_mutable_gpu_data(tarn_synced *buffer, tarn_addr *out_data);

// tarn_synced_wrap with TARN_WRAP_FILL at the host, or at the device.
//
// Lifetime: the caller frees the memory after another wrap, an evict of the
//           place, or the end of the buffer and its views.
// TARN_E_INVALID  |data| is NULL or 0, |buffer| is a view of a part, or the
//                 memory belongs to another place.
// TARN_E_STATE    gpu_: the options named no device; or as tarn_synced_wrap.
// All others of tarn_synced_wrap.
TARN_API TARN_MUST_CHECK tarn_status
tarn_synced_set_cpu_data(tarn_synced *buffer, void *data);
TARN_API TARN_MUST_CHECK tarn_status
tarn_synced_set_gpu_data(tarn_synced *buffer, tarn_addr data);

// Queues on |stream| the copy of all bytes from the host to the device. The
// head is SYNCED when the copy is done.
//
// TARN_E_STATE    the head is not at the CPU, or the options named no device.
//                 If both are one place, SYNCED is accepted, and nothing is
//                 queued.
// TARN_E_INVALID  |stream| is NULL or of another device.
TARN_API TARN_MUST_CHECK tarn_status
tarn_synced_async_gpu_push(tarn_synced *buffer, tarn_stream *stream);

// ---------------------------------------------------------------------------
// Outside memory
// ---------------------------------------------------------------------------

// Frees memory of the caller. Called once, when the buffer no longer uses
// |address|, with no lock held, on the thread of the call that released it.
typedef void tarn_synced_deleter(void *context, tarn_place place,
                                 tarn_addr address, size_t size);

// The memory is never written. A write access first moves the place to memory
// of its own.
#define TARN_WRAP_READ_ONLY (1u << 0)
// Copies may be made into the memory, as accesses at the place need them.
// Memory with a deleter has this flag unless it is read-only.
#define TARN_WRAP_FILL (1u << 1)
// The same, and the newest bytes are copied into the memory before its release.
#define TARN_WRAP_SYNC_BACK (1u << 2)
// The contents of the memory are ignored: no byte becomes valid or stale. The
// buffer's memory at the place must not have the only copy of a byte. This flag
// and the two above cannot be combined with TARN_WRAP_READ_ONLY.
#define TARN_WRAP_EMPTY (1u << 3)

typedef struct tarn_wrap_options {
  size_t struct_size;
  uint32_t flags;                // TARN_WRAP_...; 0: accesses at the place may
                                 // write it, no copies are made into it
  tarn_synced_deleter *deleter;  // NULL: the memory is borrowed
  void *context;                 // for the deleter
} tarn_wrap_options;

// Makes |address|, as many bytes as |buffer| has, the buffer's memory at
// |place|. Its contents become the newest value; all other places become stale.
// The memory that the buffer had there goes back to its pool or owner. Nothing
// is copied. |options| NULL: all of them 0.
//
// The memory must belong to |place|. A device with TARN_EXTENSION_POINTERS is
// asked about the first and the last byte. At a place of the device, memory of
// another device, of the host and unknown memory are refused; at the host,
// memory of a device is refused. If the host can access the device's memory,
// unknown memory is accepted. Without the extension a wrong address shows at
// the first copy.
//
// If bytes must be copied into borrowed memory without TARN_WRAP_FILL, the
// place takes memory of its own and releases the borrowed memory. That is
// TARN_E_STATE while another access is open there; TARN_ACCESS_WAIT waits for
// it.
//
// Cost:     at most two calls of the driver to check the address. At the host,
//           tarn_device_close of the device of the options is TARN_E_STATE
//           meanwhile; a close that has begun is waited for.
// Lifetime: until the release of the memory: by another wrap,
//           tarn_synced_evict, the case above, or the end of the buffer and all
//           of its views.
// TARN_E_STATE    an access is open in the buffer; or TARN_WRAP_EMPTY would
//                 lose bytes; or the buffer is suspended and TARN_WRAP_EMPTY is
//                 not set.
// TARN_E_INVALID  |address| is 0, |buffer| is a view of a part, the flags are
//                 contradictory, or the memory does not belong to |place|: the
//                 text says where it belongs.
// TARN_E_DEVICE   the driver failed to identify the memory; or the newest bytes
//                 could not be copied into the previous memory
//                 (TARN_WRAP_SYNC_BACK); TARN_FULL likewise.
// After each of these nothing has changed, and the deleter is not called. A
// device that refuses to free the previous memory is logged, as by
// tarn_synced_evict.
TARN_API TARN_MUST_CHECK tarn_status
tarn_synced_wrap(tarn_synced *buffer, tarn_place place, tarn_addr address,
                 const tarn_wrap_options *options);

// ---------------------------------------------------------------------------
// Memory that buffers use in turn
// ---------------------------------------------------------------------------
// Several buffers can be wrapped (TARN_WRAP_EMPTY | TARN_WRAP_FILL) around the
// same bytes if they are used one after the other, as in a plan of a net's
// memory. A buffer is suspended while another one uses the bytes.

// Discards the contents, as tarn_synced_invalidate does, and suspends the
// buffer: accesses through it and its views return TARN_E_STATE, and the text
// ends with |why|. If the buffer is suspended already, only |why| changes. A
// suspended buffer may be queried, suspended, resumed, wrapped with
// TARN_WRAP_EMPTY, evicted and destroyed.
//
// Lifetime: |why| (NULL: no reason) must live until tarn_synced_resume, the
// next
//           suspend or the end of the buffer.
// Cost:     O(ranges); no memory is allocated.
// TARN_E_STATE  an access of at least one byte is open.
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_suspend(tarn_synced *buffer,
                                                         const char *why);

// Ends the suspension. Does nothing if the buffer is not suspended.
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_resume(tarn_synced *buffer);

// Tells |buffer| that it reuses memory of |former|: the next access of |buffer|
// at a place waits for the work that is queued on |former|'s memory there, as
// if it were queued on its own. This call does not wait.
//
// Cost: O(streams and ranges of |former|), if streams use it; else O(1).
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_follow(tarn_synced *buffer,
                                                        tarn_synced *former);

// ---------------------------------------------------------------------------
// Debugging
// ---------------------------------------------------------------------------
// With TARN_SYNCED_PROTECT, or in a debug build of the library, the pages of
// host memory permit what open accesses permit: touching a stale byte faults,
// and so does writing a valid byte after the access has ended or after the next
// call on the buffer. So a pointer that was kept too long faults where it is
// used. Without either flag, the environment variable TARN_SYNCED_PROTECT (0 or
// 1) decides. Protection costs pages of its own and some system calls for each
// access.

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_SYNCED_H_
