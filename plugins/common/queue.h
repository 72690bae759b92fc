// queue.h - real asynchronous streams and events, for plug-ins whose device is
// the host's processor: cpu and sim.
//
//   queue.c     a stream's queue, and the one thread at a time that runs it
//   stream.c    streams as the ABI's table has them
//   event.c     events: marks in queues
//   registry.c  all streams and events that are alive
//
// An operation of a queue is a plug-in's function with a few words of context.
// A stream or event belongs to a home, which is a device of a plug-in; the
// functions of the table check that it is of the device that they are given and
// answer C_ERROR to a wrong use. What they call relies on it.
//
// Locks do not nest: a stream's, an event's and the registry's lock are each
// taken alone.
#ifndef TARN_PLUGINS_COMMON_QUEUE_H_
#define TARN_PLUGINS_COMMON_QUEUE_H_

#include <pthread.h>
#include <stdatomic.h>

#include "base/os.h"
#include "common/plugin.h"
#include "tarn/base.h"
#include "tarn/device_abi.h"

// The device of streams and events. Its address identifies it; callbacks get
// its id. It outlives its streams and events.
typedef struct tarn__common_queue_home {
  int id;
} tarn__common_queue_home;

// --- registry.c: what is alive ---------------------------------------------

// Embedded in each stream and event.
typedef struct tarn__common_queue_entry {
  tarn_list node;
  const tarn__common_queue_home *home;
  uint64_t serial;      // rises with each entry
  uint32_t generation;  // of the process that made it; never written again
} tarn__common_queue_entry;

typedef enum tarn__common_queue_kind {
  TARN__QUEUE_STREAM,
  TARN__QUEUE_EVENT,
  TARN__QUEUE_KINDS,
} tarn__common_queue_kind;

void tarn__queue_enlist(tarn__common_queue_kind kind,
                        const tarn__common_queue_home *home,
                        tarn__common_queue_entry *entry);
void tarn__queue_delist(tarn__common_queue_entry *entry);

// The number of the newest entry.
uint64_t tarn__queue_newest(void);

// The first stream of |home| behind number |serial|, held; NULL if there is
// none.
C_Stream tarn__queue_stream_behind(const tarn__common_queue_home *home,
                                   uint64_t serial);

// Any one entry of |home|, NULL if there is none. Only for the end of all.
tarn__common_queue_entry *tarn__queue_any(tarn__common_queue_kind kind,
                                          const tarn__common_queue_home *home);

// True in a child of the process that made |entry|: its worker is not there,
// and its locks may be held for ever by threads that are not there either.
static inline bool tarn__queue_is_stale(const tarn__common_queue_entry *entry) {
  return entry->generation != tarn__os_generation();
}

// True if |entry| is one of |device|.
static inline bool tarn__queue_is_at(const tarn__common_queue_entry *entry,
                                     const struct C_Device_st *device) {
  return device != NULL && device->id == entry->home->id;
}

// --- queue.c: a stream's queue ---------------------------------------------

// A place in a stream's order: reached when |ticket| of its operations are
// done. One that is kept holds its stream.
typedef struct tarn__common_queue_mark {
  C_Stream stream;  // NULL: a mark that is reached
  uint64_t ticket;
} tarn__common_queue_mark;

typedef struct tarn__common_queue_op {
  struct tarn__common_queue_op *next;
  void (*run)(const struct tarn__common_queue_op *op);
  bool brief;  // may be run under the lock when the stream is idle
  tarn__common_queue_mark
      mark;     // the target of a wait; dropped when the op has run
  void *owned;  // host memory that goes with the op; NULL: none
  size_t owned_size;
  union {
    struct {
      void *dst;
      const void *src;
      size_t size;
    } copy;
    struct {
      C_Callback function;
      void *user_data;
      C_Stream stream;
    } call;
    uint64_t words[9];  // a plug-in's own
  };
} tarn__common_queue_op;

struct C_Stream_st {
  tarn__common_queue_entry entry;
  atomic_uint holds;            // the handle, and every mark that is kept
  _Atomic(C_Status) failure;    // the first of its operations; sticks
  char why[TARN__COMMON_LINE];  // written before |failure|, never again,
  uint64_t failed_at;           // as is the ticket of that operation

  pthread_mutex_t lock;      // guards all below, but reads of these two
  _Atomic(uint64_t) queued;  // operations so far: the newest ticket
  _Atomic(uint64_t) done;    // how many of them have run
  pthread_cond_t work;       // the worker sleeps here
  pthread_cond_t progress;   // threads that wait for a ticket sleep here
  uint64_t awaited;          // the lowest ticket slept for; UINT64_MAX: none
  tarn__common_queue_op *first;  // operations to run, in order
  tarn__common_queue_op *last;
  tarn__common_queue_op *running;  // taken from the list, by its thread
  tarn__common_queue_op *spare;    // ops to be used again
  size_t spares;
  pthread_t worker;
  bool has_worker;
  bool closing;
};

// True if |stream| is one of |device|, of this process.
static inline bool tarn__queue_is_stream(const struct C_Device_st *device,
                                         const struct C_Stream_st *stream) {
  return stream != NULL && tarn__queue_is_at(&stream->entry, device) &&
         !tarn__queue_is_stale(&stream->entry);
}

// A stream held once, by its handle; NULL if there is no memory.
C_Stream tarn__queue_stream_open(void);

// Runs the queue, ends the worker and drops the handle's hold. In a
// forked child, nothing is run: only memory is freed.
void tarn__queue_stream_close(C_Stream stream);

void tarn__queue_stream_hold(C_Stream stream);
void tarn__queue_stream_drop(C_Stream stream);  // NULL is allowed

// Whether all work that was queued before the call has finished. Its writes are
// visible then.
static inline bool tarn__queue_is_idle(const struct C_Stream_st *stream) {
  uint64_t queued = atomic_load_explicit(&stream->queued, memory_order_acquire);
  return atomic_load_explicit(&stream->done, memory_order_acquire) >= queued;
}

// Queues a copy of |*op|, or runs it at once if it is brief and the stream
// idle. C_FAILED if there is no memory: then |op->mark| and |op->owned| are
// still the caller's.
C_Status tarn__queue_submit(C_Stream stream, const tarn__common_queue_op *op);

// Called by an operation of |stream| that fails while it runs: sets the status
// of later callbacks, queries and synchronisations of the stream, and its
// reason, one line. The first failure stays.
void tarn__queue_fail(C_Stream stream, C_Status failure, const char *why);

// Why |stream| failed; "" if it has not.
const char *tarn__queue_why(C_Stream stream);

// The mark behind all that is queued now. Does not hold the stream.
tarn__common_queue_mark tarn__queue_mark_now(C_Stream stream);

bool tarn__queue_mark_reached(tarn__common_queue_mark mark);

// C_SUCCESS if all that is before |mark|, which is reached, went well; else the
// stream's failure. What fails behind it is not its.
C_Status tarn__queue_mark_outcome(tarn__common_queue_mark mark);

// Returns when |mark| is reached. The caller runs operations itself when no
// other thread does.
void tarn__queue_mark_help(tarn__common_queue_mark mark);

// The same, but only waits: for an operation of another stream.
void tarn__queue_mark_await(tarn__common_queue_mark mark);

// --- stream.c and event.c: functions for the table -------------------------

// |home| NULL, which means that the plug-in has no such device: C_ERROR.
C_Status tarn__queue_create_stream(const tarn__common_queue_home *home,
                                   C_Stream *stream);
C_Status tarn__queue_destroy_stream(const C_Device device, C_Stream stream);
C_Status tarn__queue_query_stream(const C_Device device, C_Stream stream);
C_Status tarn__queue_stream_add_callback(const C_Device device, C_Stream stream,
                                         C_Callback callback, void *user_data);
C_Status tarn__queue_synchronize_stream(const C_Device device, C_Stream stream);

// The thread's text becomes that of the first stream that failed.
C_Status tarn__queue_synchronize_device(const tarn__common_queue_home *home);

// error_text of the extension table: the failure of |stream|, of device |id|,
// or with NULL the text of the calling thread. Takes no lock.
void tarn__queue_error_text(int id, void *stream, char *out, size_t out_size);

C_Status tarn__queue_create_event(const tarn__common_queue_home *home,
                                  C_Event *event);
C_Status tarn__queue_destroy_event(const C_Device device, C_Event event);
C_Status tarn__queue_record_event(const C_Device device, C_Stream stream,
                                  C_Event event);
C_Status tarn__queue_query_event(const C_Device device, C_Event event);
C_Status tarn__queue_synchronize_event(const C_Device device, C_Event event);

// |event| may be one of another device of the plug-in.
C_Status tarn__queue_stream_wait_event(const C_Device device, C_Stream stream,
                                       C_Event event);

// Destroys all objects of |home|; streams finish their work first.
void tarn__queue_destroy_all(const tarn__common_queue_home *home);
void tarn__queue_destroy_events(const tarn__common_queue_home *home);

#endif  // TARN_PLUGINS_COMMON_QUEUE_H_
