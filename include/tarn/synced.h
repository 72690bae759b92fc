// synced.h - one buffer, many places, no byte copied in vain.
//
// A synced buffer is |size| bytes that programs see at whatever place they ask
// for them: the host, one device, another. It knows for each byte at which
// places the newest value stands. An access names a range and a place; what is
// missing there is copied, and nothing else.
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
// Places. The host is one place, whoever pins its memory, and cpu:0 is the
// host. Other places are a device's own memory and its unified memory. Memory
// of a place is taken from its pool, for the whole buffer, when an access first
// needs it; bytes that nobody has written read as zeros. A buffer may be at 64
// places.
//
// Ranges are (offset, size) in bytes, of any alignment; TARN_ALL as a size
// means up to the end. A range of size 0 is good at any offset up to the end:
// it touches nothing, and its address is 0.
//
// Streams. With |stream| NULL bytes are there when the call returns, and the
// caller's work on them is over when it ends the access. With a stream the same
// is true of what is queued on it: copies are queued on it, or on a stream of
// the library's that it is made to wait for, and the host waits only where a
// header says so. Whoever wants the bytes next, elsewhere or on another stream,
// waits for that work and no other.
//
// Beside this header: tarn/traffic.h, what was copied and what was not, and
// which buffers and accesses are open. docs/synced.md tells all of it at
// length.
//
// Threads:  everything here may be called from any thread at any time, but not
//           from a stream's callback: there it answers TARN_E_STATE. Threads
//           that use one buffer hold each other up only where their ranges
//           meet. An access may be ended by another thread than began it.
// Fork:     in a child of the process that made it, a buffer answers
//           TARN_E_STATE; destroying it there frees host memory only.
// Cost:     an access of bytes that are valid takes O(log ranges), where ranges
//           are runs of bytes with the same past; no lock is shared between
//           buffers.
// Errors:   besides what each function lists: TARN_E_INVALID for NULL where a
//           buffer is wanted, for a range that does not lie in the buffer and
//           for a place that is none; TARN_E_STATE as above; TARN_E_NOMEM if
//           the host has no memory for the books. After any failure the buffer
//           holds what was committed last.
#ifndef TARN_SYNCED_H_
#define TARN_SYNCED_H_

#include "tarn/base.h"
#include "tarn/device.h"
#include "tarn/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

// A buffer, or a view of a part of one.
typedef struct tarn_synced tarn_synced;

// As a size: up to the end of the buffer or view.
#define TARN_ALL SIZE_MAX

// ---------------------------------------------------------------------------
// Buffers and views
// ---------------------------------------------------------------------------

// A stale pointer to the host's memory is to fault: see "Debugging".
#define TARN_SYNCED_PROTECT (1u << 0)
#define TARN_SYNCED_NO_PROTECT (1u << 1)

typedef struct tarn_synced_options {
  size_t struct_size;
  const char *name;     // for texts and reports, copied; NULL: none
  tarn_device *device;  // what the document's calls call the GPU, and who pins
                        // the host's memory; NULL: none, and then the former
                        // answer TARN_E_STATE
  size_t align;         // of the memory at each place, a power of two; 0: as
                        // the pools have it
  tarn_tag tag;         // under which the pools account for it
  uint32_t flags;       // TARN_SYNCED_...
} tarn_synced_options;

// A buffer of |size| bytes, which may be 0. No memory but the books is taken.
// |options| NULL: all of them 0.
//
// Lifetime: until tarn_synced_destroy, which must come before a device closes
//           where it has memory.
// TARN_E_INVALID  no power of two, a tag that is none, unknown or contradicting
//                 flags.
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_create(
    size_t size, const tarn_synced_options *options, tarn_synced **out_buffer);

// |size| bytes of |buffer|, itself maybe a view, from |offset| on. A view is
// used like a buffer; what is written through it is seen by the buffer and by
// its other views, since there is one map of what is valid where. It keeps the
// whole alive, so that both may be destroyed in any order.
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_view(tarn_synced *buffer,
                                                      size_t offset,
                                                      size_t size,
                                                      tarn_synced **out_view);

// Ends a buffer or view; NULL is allowed. With the last of them the memory goes
// back: the host waits for streams that may still be at work there, and what
// was borrowed with TARN_WRAP_SYNC_BACK gets the newest bytes first.
//
// TARN_E_STATE   accesses begun through it are open, and the text names one:
//                nothing has changed.
// TARN_E_DEVICE  it has ended, but a stream or copy failed, or the device
//                refused its memory; bytes that were to be synced back may be
//                lost: the text says which.
TARN_API tarn_status tarn_synced_destroy(tarn_synced *buffer);

// Its bytes; 0 for NULL.
TARN_API size_t tarn_synced_size(const tarn_synced *buffer);

// ---------------------------------------------------------------------------
// Accesses
// ---------------------------------------------------------------------------

typedef enum tarn_access_mode {
  TARN_READ = 1,           // the bytes are wanted; many at once
  TARN_WRITE_DISCARD = 2,  // all of them will be written: nothing is copied
  TARN_READ_WRITE = 3,     // both
} tarn_access_mode;

// Or-ed to a mode: where others are in the way, wait until they have ended,
// instead of TARN_E_STATE. Nobody keeps a place in a queue: a write waits for
// as long as reads overlap each other. Who waits for an access of his own waits
// for ever.
#define TARN_ACCESS_WAIT (1u << 8)

// One access, in the caller's storage, which must stay where it is from begin
// until end or cancel. The fields are to be read only.
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
// use the range at |place|, as |mode| says, from |stream|. What is missing is
// copied, from the cheapest place that has it: of a device in reach directly,
// else by way of the host. Bytes that nobody wrote are set to zero, for which
// the host waits.
//
// Many may read a range, or one may write it, wherever they do so; a conflict
// is TARN_E_STATE and the text names both places, or is waited for with
// TARN_ACCESS_WAIT. With |stream| NULL the host waits for streams still at work
// on these bytes at this place, and for its copies. |stream| must live until
// the access has ended.
//
// On failure |*out_access| is zero, and nothing is lost that was not before.
//
// TARN_FULL           the place's pool has no room.
// TARN_E_STATE        a conflict; or bytes are wanted that are lost, which the
//                     text says how, or were invalidated.
// TARN_E_UNSUPPORTED  no memory of that kind there, or a 65th place.
// TARN_E_DEVICE       a copy or a stream failed.
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_begin(
    tarn_synced *buffer, size_t offset, size_t size, tarn_place place,
    uint32_t mode, tarn_stream *stream, tarn_access *out_access);

// Ends it. Of a write all that is queued on the stream by now becomes the
// newest value of the range, and only now are other places stale.
//
// TARN_E_INVALID  not an open access.
// TARN_E_DEVICE   the stream has failed, or is known by now that one has which
//                 was to bring bytes of the range: a write is cancelled
//                 instead, and the text says if bytes are lost. The access is
//                 closed.
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_end(tarn_access *access);

// Ends it, and a write has not happened: other places are as valid as they were
// before, and this one is not any more. |*out_lost|, if not NULL, is how many
// bytes had their only copy here: to read them is TARN_E_STATE until they are
// written again. Of a read: as tarn_synced_end.
TARN_API tarn_status tarn_synced_cancel(tarn_access *access, size_t *out_lost);

// ---------------------------------------------------------------------------
// Ahead of an access, and after
// ---------------------------------------------------------------------------

// Queues the copies on |stream| that make the range valid at |place|, and
// records |event| (NULL: none), which is of the stream's device, behind them.
// Later accesses on other streams, and the host, wait for the copies by
// themselves. With |stream| NULL the copies are done when the call returns, and
// |event| must be NULL. Errors as tarn_synced_begin for TARN_READ.
TARN_API TARN_MUST_CHECK tarn_status
tarn_synced_prefetch(tarn_synced *buffer, size_t offset, size_t size,
                     tarn_place place, tarn_stream *stream, tarn_event *event);

// The same from wherever it is to the device of the options, and to the host.
//
// TARN_E_STATE  no device was named.
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

// Gives the memory at |place| back to its pool, or lets go of what was wrapped
// there. Bytes whose only copy it has are copied first: to the host, and from
// the host to the device of the options. The host waits. Of the whole buffer,
// also where |buffer| is a view.
//
// TARN_OK        also where there was none.
// TARN_E_STATE   an access is open there, or one writes elsewhere what would be
//                nowhere if it were cancelled; or the host has the only copy
//                and no device was named.
// TARN_FULL, TARN_E_DEVICE  the copy could not be made: nothing has changed.
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_evict(tarn_synced *buffer,
                                                       tarn_place place);

// Declares the bytes of the range to be worthless, everywhere: they are not
// copied any more, and to read them is TARN_E_STATE until they are written.
//
// TARN_E_STATE  an access is open in the range.
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_invalidate(tarn_synced *buffer,
                                                            size_t offset,
                                                            size_t size);

typedef struct tarn_synced_info {
  size_t struct_size;
  size_t memory;        // bytes that the buffer has at the place, 0 or its size
  bool borrowed;        // they are the program's, without a deleter
  size_t valid;         // bytes of the range whose newest value is there, or is
                        // being brought there
  size_t pending;       // of them, those that have not landed yet
  size_t unwritten;     // bytes of the range that nobody has written
  size_t lost;          // bytes of the range that are valid nowhere
  size_t readers;       // open accesses of the range, at any place
  size_t writers;       // 0 or more, since they may write different parts
  size_t range_count;   // runs of bytes with the same past in the whole buffer
  size_t own_accesses;  // open, wherever, and begun through this very buffer or
                        // view: it cannot be destroyed
} tarn_synced_info;

// What the buffer is like at |place|. Nobody is waited for.
TARN_API TARN_MUST_CHECK tarn_status
tarn_synced_query(tarn_synced *buffer, size_t offset, size_t size,
                  tarn_place place, tarn_synced_info *out_info);

// ---------------------------------------------------------------------------
// The document's calls: the host, one device, and the whole range
// ---------------------------------------------------------------------------
// A pointer is good until the next call on the buffer. They change nothing
// where an access is open that is in their way: TARN_E_STATE.
//
//   head     cpu_data    mutable_cpu  gpu_data    mutable_gpu  async_gpu_push
//   UNINIT   CPU  zeros  CPU  zeros   GPU  zeros  GPU  zeros   TARN_E_STATE
//   CPU      CPU         CPU          SYNCED h2d  GPU  h2d     SYNCED h2d
//   GPU      SYNCED d2h  CPU  d2h     GPU         GPU          TARN_E_STATE
//   SYNCED   SYNCED      CPU          SYNCED      GPU          TARN_E_STATE
//
// set_cpu_data always leads to CPU and set_gpu_data to GPU, and copy nothing.
// The memory that was set stays the buffer's memory at that place: later copies
// to the place are made into it, as in the document.
//
// A const call where nobody has written anything makes the zeros contents like
// others: read at the other place, they are copied. Where the device is cpu:0
// the two are one place: the head is SYNCED as soon as something was written,
// whoever wrote it, and nothing is ever copied.

typedef enum tarn_synced_state {
  TARN_UNINITIALIZED = 0,
  TARN_HEAD_AT_CPU = 1,
  TARN_HEAD_AT_GPU = 2,
  TARN_SYNCED = 3,
  TARN_HEAD_ELSEWHERE = 4,  // beyond the document: neither of the two has all
                            // of them, for parts differ, bytes are lost, or the
                            // newest are at a third place
} tarn_synced_state;

// Where the newest bytes of the buffer or view are; TARN_UNINITIALIZED for
// NULL, and where errors are as above. What nobody wrote does not count, and a
// copy not before it has landed: streams are asked, and none is waited for.
TARN_API tarn_synced_state tarn_synced_head(tarn_synced *buffer);

// "UNINITIALIZED", "HEAD_AT_CPU", ...; NULL for what is none.
TARN_API const char *tarn_synced_state_name(tarn_synced_state state);

// Errors as tarn_synced_begin with |stream| NULL. gpu_: TARN_E_STATE where no
// device was named.
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
// Lifetime: the memory stays the caller's, who frees it after another wrap, an
//           evict of the place, or the end of the buffer and its views.
// TARN_E_INVALID  NULL or 0, |buffer| is a view of a part, or the memory is
//                 another place's.
// TARN_E_STATE    gpu_: no device was named; or as tarn_synced_wrap.
// and all others of tarn_synced_wrap.
TARN_API TARN_MUST_CHECK tarn_status
tarn_synced_set_cpu_data(tarn_synced *buffer, void *data);
TARN_API TARN_MUST_CHECK tarn_status
tarn_synced_set_gpu_data(tarn_synced *buffer, tarn_addr data);

// Queues the copy of all bytes from the host to the device on |stream|. The
// head is SYNCED when it has landed.
//
// TARN_E_STATE    the head is not at the CPU; or no device was named. Where the
//                 two are one place, SYNCED is as good, and nothing is queued.
// TARN_E_INVALID  |stream| is NULL or of another device.
TARN_API TARN_MUST_CHECK tarn_status
tarn_synced_async_gpu_push(tarn_synced *buffer, tarn_stream *stream);

// ---------------------------------------------------------------------------
// Outside memory
// ---------------------------------------------------------------------------

// Whoever allocates frees: called once when the buffer does not use |address|
// any more, with no lock held, on the thread of the call that let it go.
typedef void tarn_synced_deleter(void *context, tarn_place place,
                                 tarn_addr address, size_t size);

// It is never written, not even by an access: one that writes there moves the
// place to memory of its own first.
#define TARN_WRAP_READ_ONLY (1u << 0)
// Copies may be made into it, as accesses at the place need them. Memory with a
// deleter is always so, unless it is read-only.
#define TARN_WRAP_FILL (1u << 1)
// And before it is let go, the newest bytes are copied into it.
#define TARN_WRAP_SYNC_BACK (1u << 2)
// What stands there does not count: no byte becomes valid or stale. The
// buffer's memory at the place must not have the only copy of any byte. Not
// with TARN_WRAP_READ_ONLY, nor are the two above.
#define TARN_WRAP_EMPTY (1u << 3)

typedef struct tarn_wrap_options {
  size_t struct_size;
  uint32_t flags;                // TARN_WRAP_...; 0: accesses at the place may
                                 // write it, copies are not made into it
  tarn_synced_deleter *deleter;  // NULL: it is borrowed
  void *context;                 // the deleter's
} tarn_wrap_options;

// Makes |address|, |buffer|'s size in bytes, the buffer's memory at |place|.
// Its contents become the newest value: all other places are stale. What the
// buffer had there goes back to its pool or owner; nothing is copied. |options|
// NULL: all of them 0.
//
// The memory must be of |place|. A device with TARN_EXTENSION_POINTERS is asked
// about the first and the last byte: at its own place memory of another device,
// of the host, and memory that it does not know are refused, and so is a
// device's own memory at the host. Where the host can touch the device's
// memory, what is unknown is taken; other devices are believed, and only the
// first copy tells.
//
// Where bytes of another place are wanted in borrowed memory without
// TARN_WRAP_FILL, the place takes memory of its own, and lets the borrowed one
// go; TARN_E_STATE while another access there is open, or TARN_ACCESS_WAIT.
//
// Cost:     to ask, at most two calls of the driver; none where it cannot tell.
//           At the host the device of the options cannot close meanwhile:
//           tarn_device_close in another thread is TARN_E_STATE. One that has
//           begun to close is waited for.
// Lifetime: until it was let go: by another wrap, tarn_synced_evict, the case
//           above, or the end of the buffer and all of its views.
// TARN_E_STATE    an access is open anywhere in the buffer, or with
//                 TARN_WRAP_EMPTY bytes would be lost, or without it the
//                 buffer is suspended.
// TARN_E_INVALID  address 0, a view of a part, flags that contradict, or memory
//                 that is not of |place|: the text says whose it is.
// TARN_E_DEVICE   the driver could not say whose memory it is; or what was
//                 there wants the newest bytes back, and they could not be
//                 copied; likewise TARN_FULL.
// In all cases nothing has changed and the deleter is not called. A device that
// refuses memory which is given back is only logged, as by tarn_synced_evict.
TARN_API TARN_MUST_CHECK tarn_status
tarn_synced_wrap(tarn_synced *buffer, tarn_place place, tarn_addr address,
                 const tarn_wrap_options *options);

// ---------------------------------------------------------------------------
// Memory that buffers have in turn
// ---------------------------------------------------------------------------
// Several buffers may be wrapped (TARN_WRAP_EMPTY | TARN_WRAP_FILL) around the
// same bytes, if they are used one after the other: a plan of a net's memory
// does so. While it is another's turn a buffer is suspended.

// Declares all bytes of the buffer to be worthless, as tarn_synced_invalidate
// does, and refuses what would use them from now on, through any view, with
// TARN_E_STATE and a text that ends with |why|. Suspended already: only |why|
// changes. It may still be queried, suspended, resumed, wrapped around memory
// that counts for nothing (TARN_WRAP_EMPTY), evicted and destroyed.
//
// Lifetime: |why| (NULL: no reason) is the caller's, until tarn_synced_resume,
//           the next suspend or the end.
// Cost:     O(ranges); no memory is taken.
// TARN_E_STATE  an access is open, of at least one byte.
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_suspend(tarn_synced *buffer,
                                                         const char *why);

// It is the buffer's turn. Not suspended: nothing happens.
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_resume(tarn_synced *buffer);

// Says that |buffer| has bytes that were |former|'s: whoever uses |buffer| next
// at a place waits for what is still queued on |former|'s memory at that place,
// as if it were queued on its own. Nobody waits in this call.
//
// Cost: O(streams and ranges of |former|); nothing where none is at work.
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_follow(tarn_synced *buffer,
                                                        tarn_synced *former);

// ---------------------------------------------------------------------------
// Debugging
// ---------------------------------------------------------------------------
// With TARN_SYNCED_PROTECT, or in a library that was built for debugging, the
// pages of the host's own memory allow what is open there and no more: stale
// bytes fault when they are touched, and valid ones when they are written after
// the access has ended, or after the next call on the buffer. So a pointer that
// was kept too long is noticed where it is used. The environment variable
// TARN_SYNCED_PROTECT, 0 or 1, decides where the flags do not. It costs pages
// of its own and some system calls for each access.

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_SYNCED_H_
