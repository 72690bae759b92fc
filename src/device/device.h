// device.h - the device room's own view of its objects.
//
// Locks, outermost first: registry, streams, device, stream. The registry's
// lock guards the plug-ins, the open devices, and every open and close; the
// streams' lock the map of all streams; a device's lock its counts and
// attachments; a stream's lock its failure. The lock of the natives, which
// guards which object stands for which handle, is taken alone. Plug-ins are
// called under the registry's lock when a device is opened or closed, and
// otherwise under none.
#ifndef TARN_DEVICE_DEVICE_H_
#define TARN_DEVICE_DEVICE_H_

#include <pthread.h>
#include <stdatomic.h>

#include "base/os.h"
#include "base/status.h"
#include "device/memory.h"
#include "device/natives.h"
#include "device/plugin.h"
#include "device/streams.h"
#include "tarn/device.h"
#include "tarn/device_abi.h"
#include "tarn/device_ext.h"

// --- aligned allocations ---------------------------------------------------
// If a driver cannot align, a larger allocation is made and an address within
// it handed out. The device keeps a note of each of these, and looks for one
// when memory is freed, unless there are none.

typedef struct tarn__device_aligned {
  tarn_list notes;       // guarded by the device's lock
  _Atomic size_t count;  // of the notes; written under the lock
} tarn__device_aligned;

// Frees the notes, but not the memory that they describe.
void tarn__aligned_free(tarn__device_aligned *aligned);

// Whether the stand-in handed out |addr|. If so, sets |*out_base| and
// |*out_size| to the driver's allocation and removes the note.
bool tarn__aligned_take_note(tarn_device *device, tarn_place_kind kind,
                             tarn_addr addr, tarn_addr *out_base,
                             size_t *out_size);

// Whether the stand-in handed out |addr| of the device's own memory. The note
// stays.
bool tarn__aligned_is_noted(tarn_device *device, tarn_addr addr);

// --- staging memory --------------------------------------------------------
// A device's ring of pinned host memory, for copies that cannot go directly: a
// few slots of fixed size, allocated at first use and never from a pool. A
// thread holds at most one slot, so a wait for a slot always ends.

enum {
  TARN__STAGING_SLOTS = 4,
  TARN__STAGING_SLOT_SIZE = 1 << 20,
};

typedef struct tarn__device_staging {
  pthread_mutex_t lock;  // guards all below
  pthread_cond_t freed;
  void *slots[TARN__STAGING_SLOTS];  // NULL: not made yet
  bool taken[TARN__STAGING_SLOTS];
} tarn__device_staging;

// Frees the slots; none may be in use.
void tarn__staging_free(tarn_device *device);

// Takes a slot of TARN__STAGING_SLOT_SIZE bytes; waits if all are taken.
//
// TARN_FULL, TARN_E_DEVICE  there is no slot yet and none can be made.
TARN_MUST_CHECK tarn_status tarn__staging_acquire(tarn_device *device,
                                                  void **out_slot);
void tarn__staging_release(tarn_device *device, void *slot);

// Set once, so that readers of |pointer| need no lock.
typedef struct tarn__device_attached {
  _Atomic(void *) pointer;
  tarn_device_on_close *on_close;
} tarn__device_attached;

struct tarn_device {
  struct C_Device_st handle;  // what every plug-in call is given
  tarn__device_plugin *plugin;
  const C_DeviceInterface *abi;  // the plug-in's completed table
  const tarn_device_ext *ext;    // the plug-in's, with NULLs in it
  char *name;
  size_t ordinal;
  uint32_t generation;
  size_t open_count;  // guarded by the registry's lock, as is the next
  tarn_list node;     // in the registry's list of open devices
  tarn_device_info info;
  char description[TARN__ERROR_TEXT / 2];
  size_t granularity;              // of ranges; 0: the device has none
  bool is_open;                    // it has been asked for all of its sizes
  _Atomic(void *) default_stream;  // its handle, once it was asked for

  pthread_mutex_t lock;  // guards all below
  tarn__device_attached attachments[TARN_SLOT_COUNT];
  size_t streams;
  size_t events;
  size_t allocations;  // taken by tarn_device_allocate and its kin, not by
                       // pools; so are the next two
  size_t ranges;
  size_t memories;       // handles of tarn_memory_create and _import
  size_t registrations;  // of host memory
  size_t imports;        // allocations of other processes
  tarn__device_aligned aligned;
  tarn__device_staging staging;
};

// The usual path of the checks before every call is inline: beside a copy of a
// few KiB, a function call for each of them is noticeable.

// Reports why |device| cannot be used: TARN_E_INVALID if it is NULL,
// TARN_E_STATE if it is a parent process's.
__attribute__((cold)) TARN_MUST_CHECK tarn_status
tarn__device_refuse(const tarn_device *device);

// TARN_OK if |device| is not NULL and belongs to this process.
TARN_MUST_CHECK static inline tarn_status tarn__device_check(
    const tarn_device *device) {
  if (device == NULL || device->generation != tarn__os_generation()) {
    return tarn__device_refuse(device);
  }
  return tarn__not_in_callback();
}

// TARN_OK if tarn__device_check says so, and the device has |ability|.
// TARN_E_UNSUPPORTED: it has not; the text names |what|.
TARN_MUST_CHECK tarn_status tarn__extension_check(const tarn_device *device,
                                                  tarn_device_extension ability,
                                                  const char *what);

// NULL: nothing is attached there.
static inline void *tarn__device_attachment(const tarn_device *device,
                                            tarn_device_slot slot) {
  return atomic_load_explicit(&device->attachments[slot].pointer,
                              memory_order_acquire);
}

// cpu:0, which is opened by the first call and stays open.
TARN_MUST_CHECK tarn_status tarn__device_host(tarn_device **out_device);

// Calls the plug-in's set_device.
TARN_MUST_CHECK tarn_status tarn__device_select(tarn_device *device);

// Makes |device| the current one of the calling thread, for its plug-in. A
// program may change that behind Tarn's back, so it is done before each call.
TARN_MUST_CHECK static inline tarn_status tarn__device_enter(
    tarn_device *device) {
  return device->plugin->is_host ? TARN_OK : tarn__device_select(device);
}

// Whether a child process can destroy the plug-in's objects of its parent, and
// the device handle for that: only of the built-in cpu, whose objects are host
// memory.
static inline bool tarn__plugin_ends_after_fork(
    const tarn__device_plugin *plugin, struct C_Device_st *out) {
  out->id = plugin->is_host ? (int)plugin->ids[0] : -1;
  return plugin->is_host;
}

// A device of |plugin|, initialised and asked for its sizes, not yet listed.
// Caller holds the registry's lock, as for the next two.
TARN_MUST_CHECK tarn_status tarn__device_create(tarn__device_plugin *plugin,
                                                size_t ordinal,
                                                tarn_device **out_device);

// Ends the attachments and deinitialises the device. TARN_E_STATE: the device
// is in use and nothing has happened. With any other status it has ended.
TARN_MUST_CHECK tarn_status tarn__device_end(tarn_device *device);

// Lets the attachments of a parent's device free their host memory.
void tarn__device_forget(tarn_device *device);

// Frees the host memory of a device, after one of the two above.
void tarn__device_free(tarn_device *device);

// Changes one of the counts of |device|, which never falls below 0.
void tarn__device_count(tarn_device *device, size_t *count, int change);

// Whether memory counts as freed after freeing it returned |status|. It does
// after a failure of the driver, since otherwise the device could never close.
static inline bool tarn__is_gone(tarn_status status) {
  return status == TARN_OK || status == TARN_E_DEVICE;
}

// Adds |change|, 1 or -1, to the allocations at |place|.
void tarn__place_count(tarn_place place, int change);

// Looks at the address that |call| gave for memory of the device's own: 0 is
// TARN_FULL; a misaligned address is freed and TARN_E_DEVICE.
TARN_MUST_CHECK tarn_status tarn__device_accept(tarn_device *device,
                                                const char *call, size_t size,
                                                size_t align, tarn_addr addr);

// The device of |plugin| that the plug-in calls |id|, if it is open in this
// process; NULL if not. Takes the registry's lock, unless the thread has it.
tarn_device *tarn__device_find(const tarn__device_plugin *plugin, int id);

// --- what a plug-in answers ------------------------------------------------
// The texts end with the driver's text, if the plug-in gives one.

// The status for a plug-in's answer to |call|. C_WARNING counts as success and
// is logged. |size| is for the text; 0: none.
TARN_MUST_CHECK tarn_status tarn__device_result(tarn_device *device,
                                                const char *call, size_t size,
                                                C_Status result);

// TARN_FULL for |size| bytes that were refused |where|. A plug-in that answered
// C_FAILED may say why; one that gave no address has no words for it.
tarn_status tarn__device_full(tarn_device *device, const char *where,
                              size_t size, C_Status result);

// The same for a call that queues or makes something: C_FAILED is TARN_E_NOMEM,
// nothing was queued, and nothing sticks to a stream.
TARN_MUST_CHECK tarn_status tarn__device_queued(tarn_device *device,
                                                const char *call, size_t size,
                                                C_Status result);

// The same for a call that waits for or queries the work on |stream|.
TARN_MUST_CHECK tarn_status tarn__stream_result(tarn_stream *stream,
                                                const char *call,
                                                C_Status result);

// The meaning of an answer of a slot of the extension: a status that slots may
// give stands, any other number is TARN_E_DEVICE.
TARN_MUST_CHECK tarn_status tarn__extension_result(tarn_device *device,
                                                   const char *slot,
                                                   size_t size,
                                                   tarn_status answer);

// Calls |function| of the plug-in's table, or a slot of its extension, with
// |arguments|, which stand in parentheses. The status of its answer, as above.
#define TARN__DEVICE_CALL(device, function, size, arguments) \
  tarn__device_result(device, #function, size,               \
                      (device)->abi->function arguments)
#define TARN__DEVICE_QUEUE(device, function, size, arguments) \
  tarn__device_queued(device, #function, size,                \
                      (device)->abi->function arguments)
#define TARN__EXTENSION_CALL(device, slot, size, arguments) \
  tarn__extension_result(device, #slot, size, (device)->ext->slot arguments)

// --- streams ---------------------------------------------------------------

struct tarn_stream {
  tarn_device *device;
  const tarn__device_plugin *plugin;  // the device's, for when that is gone
  C_Stream native;  // NULL: whatever is put on it is done at once
  uint64_t serial;
  uint32_t generation;
  tarn__device_native known;  // by its handle
  tarn_event *last;           // of an adopted stream: recorded when it departs

  tarn__range_map_node by_serial;  // these are guarded by the lock of streams.c
  tarn_list node;                  // among the departed
  size_t pins;   // how many are about to queue something on it
  size_t holds;  // how many wait for its work
  bool ends;     // its end has begun: other streams need not wait for work
                 // queued from now on
  bool departed;
  bool over;  // departed, and |last| is reached

  pthread_mutex_t lock;  // guards all below but reads of |failure|
  tarn_list calls;       // callbacks that have not come yet
  uint64_t last_call;
  _Atomic(tarn_status) failure;
  char text[TARN__ERROR_TEXT];
};

// Fails because |stream| belongs to another device (TARN_E_INVALID) or was made
// by the parent process (TARN_E_STATE).
__attribute__((cold)) TARN_MUST_CHECK tarn_status
tarn__stream_refuse(const tarn_stream *stream, const tarn_device *device);

// TARN_OK if |stream| is one of |device| (NULL: of any) and of this process.
TARN_MUST_CHECK static inline tarn_status tarn__stream_belongs(
    const tarn_stream *stream, const tarn_device *device) {
  if (stream == NULL || stream->generation != tarn__os_generation() ||
      (device != NULL && stream->device != device)) {
    return tarn__stream_refuse(stream, device);
  }
  return tarn__not_in_callback();
}

// The failure that sticks to |stream|, which has one; its text becomes the last
// error.
__attribute__((cold)) tarn_status tarn__stream_tell_failure(
    tarn_stream *stream);

// The same, if there is one.
static inline tarn_status tarn__stream_failure(tarn_stream *stream) {
  tarn_status failure =
      atomic_load_explicit(&stream->failure, memory_order_acquire);
  return failure == TARN_OK ? TARN_OK : tarn__stream_tell_failure(stream);
}

// TARN_OK if |stream| belongs as above and has not failed.
TARN_MUST_CHECK static inline tarn_status tarn__stream_check(
    tarn_stream *stream, const tarn_device *device) {
  tarn_status status = tarn__stream_belongs(stream, device);
  return status != TARN_OK ? status : tarn__stream_failure(stream);
}

// Whether work can be queued on |stream|; if not, or for NULL, it is done at
// once.
static inline bool tarn__stream_queues(const tarn_stream *stream) {
  return stream != NULL && stream->native != NULL;
}

// Whether |event| is known to be reached, or to have failed. Unlike
// tarn_event_query it never waits: other answers than yes are no.
bool tarn__event_is_reached(tarn_event *event);

// Makes TARN_E_DEVICE stick to |stream| (NULL: to nothing), with the last error
// as its text. Returns |status|.
tarn_status tarn__stream_settle(tarn_stream *stream, tarn_status status);

// Frees the host memory of a stream that is not entered; in a child of fork
// also the work that its parent had queued on the host.
void tarn__stream_free(tarn_stream *stream);
void tarn__stream_free_after_fork(tarn_stream *stream);

// Calls the callbacks that the driver has not called.
tarn_status tarn__stream_call_the_forgotten(tarn_stream *stream);

// Creates an event of the caller alone: it does not keep the device open, and
// tarn_event_adopt does not find it. tarn__event_free destroys it.
TARN_MUST_CHECK tarn_status tarn__event_make(tarn_device *device,
                                             tarn_event **out_event);
tarn_status tarn__event_free(tarn_event *event);

static inline void *tarn__pointer(tarn_addr addr) {
  return (void *)(uintptr_t)addr;
}

static inline tarn_addr tarn__address(const void *ptr) {
  return (tarn_addr)(uintptr_t)ptr;
}

#endif  // TARN_DEVICE_DEVICE_H_
