// cpu.h - host memory as a device: what the files of this plug-in share.
//
//   plugin.c    the table, the one device, its sizes
//   memory.c    take and give back
//   copy.c      copies, at once and queued
//   queue.c     a stream's queue, and the one thread at a time that runs it
//   stream.c    streams as the table has them
//   event.c     events: marks in queues
//   registry.c  all streams and events that are alive
//
// The functions of the table check what they are given and answer C_ERROR to
// a wrong use; what they call relies on it.
//
// Locks, in the order in which they may nest: none does. A stream's, an
// event's and the registry's lock are each taken alone.
#ifndef TARN_PLUGINS_CPU_CPU_H_
#define TARN_PLUGINS_CPU_CPU_H_

#include <pthread.h>
#include <stdatomic.h>

#include "base/os.h"
#include "tarn/base.h"
#include "tarn/device_abi.h"

// There is one device, and its id is 0.
static inline bool tarn__cpu_is_device(const struct C_Device_st *device) {
  return device != NULL && device->id == 0;
}

// --- registry.c: what is alive ---------------------------------------------

// Embedded in each stream and event.
typedef struct tarn__cpu_entry {
  tarn_list node;
  uint64_t serial;      // rises with each entry
  uint32_t generation;  // of the process that made it; never written again
} tarn__cpu_entry;

typedef enum tarn__cpu_kind {
  TARN__CPU_STREAM,
  TARN__CPU_EVENT,
  TARN__CPU_KINDS,
} tarn__cpu_kind;

void tarn__cpu_enlist(tarn__cpu_kind kind, tarn__cpu_entry *entry);
void tarn__cpu_delist(tarn__cpu_entry *entry);

// The number of the newest entry.
uint64_t tarn__cpu_newest(void);

// The first stream behind number |serial|, held; NULL if there is none.
C_Stream tarn__cpu_stream_behind(uint64_t serial);

// Any one entry of |kind|, NULL if there is none. Only for the end of all.
tarn__cpu_entry *tarn__cpu_any(tarn__cpu_kind kind);

// True in a child of the process that made |entry|: its worker is not there,
// and its locks may be held for ever by threads that are not there either.
static inline bool tarn__cpu_is_stale(const tarn__cpu_entry *entry) {
  return entry->generation != tarn__os_generation();
}

// --- queue.c: a stream's queue ---------------------------------------------

// A place in a stream's order: reached when |ticket| of its operations are
// done. One that is kept holds its stream.
typedef struct tarn__cpu_mark {
  C_Stream stream;  // NULL: a mark that is reached
  uint64_t ticket;
} tarn__cpu_mark;

typedef struct tarn__cpu_op {
  struct tarn__cpu_op *next;
  void (*run)(const struct tarn__cpu_op *op);
  bool brief;           // may be run under the lock when the stream is idle
  tarn__cpu_mark mark;  // what a wait waits for; dropped when the op has run
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
  };
} tarn__cpu_op;

struct C_Stream_st {
  tarn__cpu_entry entry;
  atomic_uint holds;  // the handle, and every mark that is kept

  pthread_mutex_t lock;     // guards all below
  pthread_cond_t work;      // the worker sleeps here
  pthread_cond_t progress;  // whoever waits for a ticket sleeps here
  uint64_t queued;          // operations so far: the newest ticket
  uint64_t done;            // how many of them have run
  uint64_t awaited;         // the lowest ticket slept for; UINT64_MAX: none
  tarn__cpu_op *first;      // what is to run, in order
  tarn__cpu_op *last;
  tarn__cpu_op *running;  // taken from the list by the one who runs it
  tarn__cpu_op *spare;    // ops to be used again
  size_t spares;
  pthread_t worker;
  bool has_worker;
  bool closing;
};

// A stream held once, by its handle; NULL if there is no memory.
C_Stream tarn__cpu_stream_open(void);

// Runs what is queued, ends the worker and drops the handle's hold. In a
// forked child, nothing is run: only memory is freed.
void tarn__cpu_stream_close(C_Stream stream);

void tarn__cpu_stream_hold(C_Stream stream);
void tarn__cpu_stream_drop(C_Stream stream);  // NULL is allowed

// Queues a copy of |*op|, or runs it at once if it is brief and the stream
// idle. C_FAILED if there is no memory: then |op->mark| is still the caller's.
C_Status tarn__cpu_submit(C_Stream stream, const tarn__cpu_op *op);

// The mark behind all that is queued now. Does not hold the stream.
tarn__cpu_mark tarn__cpu_mark_now(C_Stream stream);

bool tarn__cpu_mark_reached(tarn__cpu_mark mark);

// Returns when |mark| is reached. The caller runs operations itself when
// nobody else does.
void tarn__cpu_mark_help(tarn__cpu_mark mark);

// The same, but only waits: for whoever runs another stream's operation.
void tarn__cpu_mark_await(tarn__cpu_mark mark);

// --- the table -------------------------------------------------------------

// memory.c
C_Status tarn__cpu_allocate(const C_Device device, void **ptr, size_t size);
C_Status tarn__cpu_deallocate(const C_Device device, void *ptr, size_t size);
C_Status tarn__cpu_memory_set(const C_Device device, void *ptr,
                              unsigned char value, size_t size);

// copy.c
C_Status tarn__cpu_copy(const C_Device device, void *dst, const void *src,
                        size_t size);
C_Status tarn__cpu_copy_p2p(const C_Device dst_device,
                            const C_Device src_device, void *dst,
                            const void *src, size_t size);
C_Status tarn__cpu_async_copy(const C_Device device, C_Stream stream, void *dst,
                              const void *src, size_t size);
C_Status tarn__cpu_async_copy_p2p(const C_Device dst_device,
                                  const C_Device src_device, C_Stream stream,
                                  void *dst, const void *src, size_t size);

// stream.c
C_Status tarn__cpu_create_stream(const C_Device device, C_Stream *stream);
C_Status tarn__cpu_destroy_stream(const C_Device device, C_Stream stream);
C_Status tarn__cpu_query_stream(const C_Device device, C_Stream stream);
C_Status tarn__cpu_add_callback(const C_Device device, C_Stream stream,
                                C_Callback callback, void *user_data);
C_Status tarn__cpu_synchronize_stream(const C_Device device, C_Stream stream);
C_Status tarn__cpu_synchronize_device(const C_Device device);
bool tarn__cpu_is_stream(const struct C_Device_st *device,
                         const struct C_Stream_st *stream);
void tarn__cpu_destroy_streams(void);  // all that are left

// event.c
C_Status tarn__cpu_create_event(const C_Device device, C_Event *event);
C_Status tarn__cpu_destroy_event(const C_Device device, C_Event event);
C_Status tarn__cpu_record_event(const C_Device device, C_Stream stream,
                                C_Event event);
C_Status tarn__cpu_query_event(const C_Device device, C_Event event);
C_Status tarn__cpu_synchronize_event(const C_Device device, C_Event event);
C_Status tarn__cpu_stream_wait_event(const C_Device device, C_Stream stream,
                                     C_Event event);
void tarn__cpu_destroy_events(void);  // all that are left

#endif  // TARN_PLUGINS_CPU_CPU_H_
