// opencl.h - devices with an OpenCL driver: the declarations that this
// plug-in's files share.
//
//   plugin.c     the tables, the devices' sizes
//   open.c       devices from initialize to finalize
//   extension.c  slots beyond the ABI, but rows
//   rows.c       gather and scatter by kernels
//   program.c    kernels, built for the dtypes of a call when they are needed
//   copy.c       copies and fills, at once and queued
//   event.c      events: markers in queues
//   stream.c     streams as the ABI's table has them
//   queue.c      a stream's record, and queues for calls without a stream
//   memory.c     blocks: taken, given back, and found by an address in them
//   method.c     the ways in which a driver gives memory an address
//   devices.c    the platforms and devices there are, by number
//   options.c    TARN_OPENCL and its kin
//   driver.c     libOpenCL.so.1
//
// Each file calls only files further down.
//
// Memory. An OpenCL buffer is an object, not an address. What has an address is
// unified memory (an extension of Intel's), shared virtual memory (SVM) and
// buffers with a device address; where a driver has none of these, a plain
// buffer gets a run of addresses in a window (common/window.h). A device
// chooses for each kind of memory once, at open. Blocks are kept by address, so
// that any address inside a block leads to its object and offset.
//
// Streams. The handle of a stream is its cl_command_queue, in order. The
// plug-in's record of it is found by the handle; an adopted queue has one only
// while work of the plug-in is under way. The handle of an event of the plug-in
// is a pointer to its record with the lowest bit set; that of an adopted one is
// its cl_event, in which that bit is clear.
//
// Failures. A driver tells a queued command's failure by the status of its
// event only: clFinish succeeds, and callbacks need not come. So a record keeps
// the event of each command until the command is known to be over. (PoCL 3.1
// also aborts the process when a command fails after its event was released.)
//
// Forks. A child of a process that has asked a driver for its devices cannot
// use the driver: its calls wait for threads that are not there. Nothing is
// asked before initialize, and in a child every call fails.
//
// Locks: that of open and close (devices.h); those of the lists of events and
// of callbacks that never came; a queue record's; that of the map of records; a
// device's, an event's, that of programs, that of the driver's words. A thread
// that holds one takes only locks further down. No lock is held while a
// callback runs.
#ifndef TARN_PLUGINS_OPENCL_OPENCL_H_
#define TARN_PLUGINS_OPENCL_OPENCL_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/range_map.h"
#include "base/rows.h"
#include "base/status.h"
#include "common/extents.h"
#include "common/slots.h"
#include "common/window.h"
#include "driver.h"
#include "rows_args.h"
#include "tarn/device_abi.h"
#include "tarn/device_ext.h"

// The functions of the tables: tarn__opencl_ and the name of the slot.
#define TARN__OPENCL_DECLARE(name) \
  TARN__COMMON_ABI_DECLARE(tarn__opencl_, name);
TARN__COMMON_ABI_SLOTS(TARN__OPENCL_DECLARE)

// Slots of the extension, but error_text.
#define TARN__OPENCL_EXT_SLOTS(X) \
  X(alignment)                    \
  X(allocate_aligned)             \
  X(pointer_query)                \
  X(gather)                       \
  X(scatter)                      \
  X(scatter_add)

#define TARN__OPENCL_EXT_DECLARE(name) \
  TARN__COMMON_EXT_DECLARE(tarn__opencl_, name);
TARN__OPENCL_EXT_SLOTS(TARN__OPENCL_EXT_DECLARE)

void tarn__opencl_describe(int id, char *out, size_t out_size);
void tarn__opencl_error_text(int id, void *stream, char *out, size_t out_size);

// --- options.c -------------------------------------------------------------

typedef enum tarn__opencl_kind {
  TARN__OPENCL_DEVICE,
  TARN__OPENCL_HOST,
  TARN__OPENCL_UNIFIED,
  TARN__OPENCL_KINDS,
} tarn__opencl_kind;

// How memory of a kind gets its address.
typedef enum tarn__opencl_method {
  TARN__OPENCL_NONE,     // not at all: there is no such memory
  TARN__OPENCL_USM,      // unified memory
  TARN__OPENCL_SVM,      // coarse SVM for DEVICE, else fine SVM
  TARN__OPENCL_ADDRESS,  // a buffer with a device address: DEVICE only
  TARN__OPENCL_WINDOW,   // a buffer, and addresses of a window: DEVICE only
  TARN__OPENCL_MAPPED,   // a buffer that stays mapped to the host: HOST only
  TARN__OPENCL_METHODS,
} tarn__opencl_method;

// "usm", "svm", "address", "window", "mapped"; "none".
const char *tarn__opencl_method_name(tarn__opencl_method method);
const char *tarn__opencl_kind_name(tarn__opencl_kind kind);

typedef struct tarn__opencl_options {
  char select[256];  // part of the name of a platform or device; "": all
  // The method that is asked for; NONE with |is_set| false: the best one.
  tarn__opencl_method methods[TARN__OPENCL_KINDS];
  bool is_set[TARN__OPENCL_KINDS];
  size_t capacity;  // most bytes of a device; 0: what it has
} tarn__opencl_options;

// Reads the environment. False, with the thread's text: a value is bad.
TARN_MUST_CHECK bool tarn__opencl_options_read(tarn__opencl_options *out);

// --- devices.c -------------------------------------------------------------

// Functions of a platform's extensions: NULL where it lacks them.
typedef struct tarn__opencl_extensions {
  clDeviceMemAllocINTEL_fn device_mem_alloc;
  clHostMemAllocINTEL_fn host_mem_alloc;
  clSharedMemAllocINTEL_fn shared_mem_alloc;
  clMemFreeINTEL_fn mem_free;
  clEnqueueMemcpyINTEL_fn enqueue_memcpy;
  clEnqueueMemFillINTEL_fn enqueue_mem_fill;
  clSetKernelArgMemPointerINTEL_fn set_mem_pointer;
  tarn__opencl_set_device_pointer *set_device_pointer;
} tarn__opencl_extensions;

enum { TARN__OPENCL_DEVICES_MAX = 64, TARN__OPENCL_NAME = 128 };

typedef struct tarn__opencl_platform {
  cl_platform_id handle;
  char name[TARN__OPENCL_NAME];
  tarn__opencl_extensions ext;
  cl_context context;  // of all its devices; NULL: none of them is open
  size_t open_devices;
} tarn__opencl_platform;

typedef struct tarn__opencl_queue tarn__opencl_queue;

typedef struct tarn__opencl_device {
  int id;
  cl_device_id handle;
  tarn__opencl_platform *platform;
  size_t rank;  // among the devices of the platform's context
  char name[TARN__OPENCL_NAME];
  atomic_bool ready;  // between init_device and deinit_device
  cl_context context;

  // Settled when the devices are listed: hosts ask for sizes before they open.
  size_t capacity;   // bytes that the plug-in gives out
  size_t max_alloc;  // bytes of a block
  size_t align;      // of every address, a power of two
  size_t units;      // of computation
  size_t group;      // most work items of a group
  bool is_gpu;
  bool has_f64;
  bool has_denorms;  // floats have subnormals, and are rounded to the nearest

  // Settled at open.
  tarn__opencl_method methods[TARN__OPENCL_KINDS];
  bool maps;          // where memory is the host's own, a copy at once to or
                      // from SVM is a map, which costs nothing
  bool copies_plain;  // SVM copies take plain memory of the host

  pthread_mutex_t lock;                             // guards all below
  tarn__common_extents blocks[TARN__OPENCL_KINDS];  // but those of a window;
                                                    // |record|: a block
  tarn__common_window window;
  size_t used;               // of |capacity|
  uint64_t serial;           // of the newest block that is not in the window
  tarn__opencl_queue *idle;  // queues for calls without a stream
} tarn__opencl_device;

// The device that |device| names, which is open, and in this process; NULL,
// with the thread's text, if there is none.
tarn__opencl_device *tarn__opencl_device_of(const struct C_Device_st *device);

// The device with that number, open or not; NULL: there are not as many.
tarn__opencl_device *tarn__opencl_nth(size_t number);

// A number that the driver tells of a device, of |size| bytes; 0 where it does
// not know it.
cl_ulong tarn__opencl_ask(const tarn__opencl_device *device,
                          cl_device_info what, size_t size);

// An open device by number, for slots of the extension.
TARN_MUST_CHECK tarn_status tarn__opencl_admit(int id,
                                               tarn__opencl_device **out);

// --- method.c --------------------------------------------------------------

// Chooses a method for each kind of memory, as the options ask or the best
// there is. C_FAILED: the driver lacks a method that is asked for; the text
// names both.
TARN_MUST_CHECK C_Status tarn__opencl_choose(
    tarn__opencl_device *device, const tarn__opencl_options *options);

// --- memory.c --------------------------------------------------------------

// What the driver gave for a block.
typedef struct tarn__opencl_block {
  tarn__opencl_method method;
  cl_mem buffer;  // ADDRESS, WINDOW, MAPPED; else NULL
  uint64_t base;  // where the driver's memory begins; of a WINDOW, its address
} tarn__opencl_block;

// A block of |kind| at a multiple of |align|, a power of two.
//
// C_ERROR   no bytes, or there is no such memory.
// C_FAILED  no room; the text says whose.
TARN_MUST_CHECK C_Status tarn__opencl_take(tarn__opencl_device *device,
                                           tarn__opencl_kind kind, size_t size,
                                           size_t align, uint64_t *out_address);

// C_ERROR  no block of |kind| begins there.
C_Status tarn__opencl_give(tarn__opencl_device *device, tarn__opencl_kind kind,
                           uint64_t address);

// Gives back whatever is left.
void tarn__opencl_memory_close(tarn__opencl_device *device);

// An address as the driver wants it.
typedef struct tarn__opencl_span {
  tarn__opencl_kind kind;
  tarn__opencl_method method;  // NONE: memory that the device does not know,
                               // plain memory of the host
  uint64_t address;
  uint64_t start;  // of the block, as its caller knows it
  size_t size;     // of the block
  cl_mem buffer;   // ADDRESS, WINDOW, MAPPED; else NULL
  uint64_t base;   // as of the block
  size_t offset;   // of |address| from |base|, and in the buffer
} tarn__opencl_span;

// What is at |address|. False: a block begins before and ends within the
// |size| bytes there; the thread's text says so.
TARN_MUST_CHECK bool tarn__opencl_find(tarn__opencl_device *device,
                                       uint64_t address, size_t size,
                                       tarn__opencl_span *out);

// The open device that has a block at |address|, |device| first; NULL: none.
const tarn__opencl_device *tarn__opencl_owner(tarn__opencl_device *device,
                                              uint64_t address,
                                              tarn__opencl_span *out);

// Whether memory of |method| has a pointer for SVM or unified memory.
static inline bool tarn__opencl_is_pointer(tarn__opencl_method method) {
  return method == TARN__OPENCL_USM || method == TARN__OPENCL_SVM;
}

// The answer of a query that ends with |status|: C_FAILED would mean 'not yet'.
static inline C_Status tarn__opencl_query_answer(C_Status status) {
  return status == C_FAILED ? C_INTERNAL_ERROR : status;
}

// Whether it is a buffer to the driver. One that is mapped is the host's.
static inline bool tarn__opencl_is_buffer(tarn__opencl_method method) {
  return method == TARN__OPENCL_ADDRESS || method == TARN__OPENCL_WINDOW;
}

// --- queue.c ---------------------------------------------------------------

// A command that was queued.
typedef struct tarn__opencl_command {
  cl_event event;
  const char *call;  // what queued it
} tarn__opencl_command;

// A stream's record, or that of a queue for calls without a stream.
struct tarn__opencl_queue {
  tarn__range_map_node node;  // |start| is the handle, of a stream's
  tarn__opencl_device *device;
  cl_command_queue handle;
  bool is_adopted;
  bool is_detached;          // guarded by the lock; it is in no map any more
  tarn__opencl_queue *next;  // of the device's idle queues
  atomic_uint holds;         // the map or the idle list; each user, event, call

  pthread_mutex_t lock;            // guards all below, but reads of |failure|
  tarn__opencl_command *commands;  // a ring: those not known to be over
  size_t room;                     // a power of two
  size_t first;
  size_t count;
  _Atomic(C_Status) failure;    // the first; sticks
  char why[TARN__COMMON_LINE];  // written before |failure|, never again
  bool is_shared;               // the program queues work of its own there
  tarn_list calls;              // callbacks that have not returned (stream.c)
  uint64_t calls_added;
  pthread_cond_t called;    // one has returned
  cl_mem faults;            // a tarn__opencl_fault; NULL: no rows so far
  tarn__opencl_fault seen;  // a copy, as of the newest fetch that is done
  uint64_t rows;            // the serial of the newest call of rows
  uint64_t fetched;         // that of the newest fetch
};

// Work that is being queued: between begin and end the record is locked.
typedef struct tarn__opencl_work {
  tarn__opencl_device *device;
  tarn__opencl_queue *record;
  cl_command_queue queue;
  bool waits;  // there is no stream: the work is done when the call returns
} tarn__opencl_work;

// A stream of |device|: a new queue. C_FAILED: no host memory, or the driver
// gives none.
TARN_MUST_CHECK C_Status tarn__opencl_queue_open(tarn__opencl_device *device,
                                                 C_Stream *out);

// Releases the queue of a stream of the plug-in's own, on which no work is
// left.
void tarn__opencl_queue_close(tarn__opencl_queue *queue);

// The same for all queues of |device|; waits for their work.
void tarn__opencl_queues_close(tarn__opencl_device *device);

// The record of |stream|, held, which is made for an adopted queue that has
// none. NULL, with the thread's text: it is not an in-order queue of the
// device's context.
tarn__opencl_queue *tarn__opencl_queue_of(tarn__opencl_device *device,
                                          C_Stream stream);

// The same, of one that has a record.
tarn__opencl_queue *tarn__opencl_queue_known(C_Stream stream);

// The first stream of |device| whose handle is above |handle|, held.
tarn__opencl_queue *tarn__opencl_queue_behind(const tarn__opencl_device *device,
                                              uint64_t handle);

void tarn__opencl_queue_hold(tarn__opencl_queue *queue);
void tarn__opencl_queue_drop(tarn__opencl_queue *queue);

// Begins work on |stream|; NULL: on a queue of the device's own.
//
// C_ERROR   not an in-order queue of the device's context.
// C_FAILED  no host memory, or the driver gives no queue.
TARN_MUST_CHECK C_Status tarn__opencl_begin(tarn__opencl_device *device,
                                            C_Stream stream,
                                            tarn__opencl_work *out);

// The same on a record, of which it takes the hold.
tarn__opencl_work tarn__opencl_begin_on(tarn__opencl_queue *queue);

// Makes room for |commands| more that a call will keep; for a few there is room
// as it is. False: no host memory, and nothing is to be queued.
TARN_MUST_CHECK bool tarn__opencl_reserve(tarn__opencl_work *work,
                                          size_t commands);

// Keeps |event|, which it takes, of a command that |call| has queued. NULL: no
// command was.
void tarn__opencl_keep(tarn__opencl_queue *queue, const char *call,
                       cl_event event);

// Finishes a queue, and once more where the driver refuses, so that nothing is
// under way behind this. The first answer.
cl_int tarn__opencl_drain(cl_command_queue handle);

// The event of the newest command, retained; NULL: none is known to be under
// way. Caller holds the record's lock.
cl_event tarn__opencl_newest(const tarn__opencl_queue *queue);

// Ends work or a look at a record without a command: unlocks it, and drops the
// hold.
void tarn__opencl_queue_leave(tarn__opencl_queue *queue);

// Ends it. |error| is the driver's answer to |call|, and |event|, which it
// takes, is the event of the last command that was queued; NULL: none was.
// Without a stream it waits, and its answer is the outcome of the work.
C_Status tarn__opencl_end(tarn__opencl_work *work, const char *call,
                          cl_int error, cl_event event);

// For rows: the buffer with the tarn__opencl_fault of the work's queue, made at
// the first call, and the serial of the call. Of work that has begun.
TARN_MUST_CHECK C_Status tarn__opencl_faults(tarn__opencl_work *work,
                                             cl_mem *out_buffer,
                                             uint64_t *out_serial);

// Queues a copy of the faults to |seen| if rows came since the last one, so
// that what is queued behind it finds them there.
cl_int tarn__opencl_fetch(tarn__opencl_work *work);

// The status of an event: CL_COMPLETE, above it: under way, below it: failed.
cl_int tarn__opencl_status_of(cl_event event);

// Lets go of commands that are over: C_WARNING if some are under way, else the
// outcome of all so far. Caller holds the record's lock.
C_Status tarn__opencl_settle(tarn__opencl_queue *queue);

// The outcome of the rows that were fetched before |fetched|. Caller holds the
// record's lock, and those are done.
C_Status tarn__opencl_rows_outcome(tarn__opencl_queue *queue, uint64_t fetched);

// Notes the first failure, with its reason. Caller holds the record's lock.
void tarn__opencl_fail(tarn__opencl_queue *queue, C_Status failure,
                       const char *why);

// --- event.c ---------------------------------------------------------------

// Ends the events of |device| that are left.
void tarn__opencl_events_close(const tarn__opencl_device *device);

// --- stream.c --------------------------------------------------------------

// Frees the callbacks that the driver has not called, and cannot any more.
void tarn__opencl_forget_calls(const tarn__opencl_device *device);

// --- program.c -------------------------------------------------------------

// Releases the programs of |device|, of which no kernel is taken. What they
// were built to is kept for the next time that it is open.
void tarn__opencl_programs_close(tarn__opencl_device *device);

#endif  // TARN_PLUGINS_OPENCL_OPENCL_H_
