// gpu.h - GPUs with a driver like CUDA's: the declarations that this plug-in's
// files share.
//
//   plugin.c     the tables, the devices' sizes
//   open.c       devices from initialize to finalize
//   extension.c  alignment, descriptions, the texts of errors
//   rows.c       gather and scatter by kernels
//   rows_plan.c  which kernels, and what they are told
//   kernels.c    the module of kernels, loaded when a device is opened
//   copy.c       copies and fills, at once and queued
//   event.c      events, and waits for them
//   stream.c     streams as the ABI's table has them
//   calls.c      callbacks of streams
//   queue.c      a stream's record, and streams for calls without one
//   faults.c     memory in which kernels note a bad row
//   pointer.c    queries of addresses; registered host memory
//   share.c      memory of other processes
//   range.c      addresses, and what is mapped in them
//   physical.c   memory without an address, by handle
//   memory.c     allocation, at once and queued
//   context.c    a device's context as the calling thread's current one
//   devices.c    the devices that there are, by number
//   options.c    TARN_CUDA_* or TARN_HIP_*
//   driver.c     the driver's library
//   cuda.c, hip.c  what differs between vendors; a module has one of them
//
// Each file calls only files further down.
//
// Memory. An address of the driver is an address of the ABI. The driver knows
// its blocks; the plug-in keeps account of ranges, mappings, and blocks that
// begin behind where the driver's memory does.
//
// Context. All is done in the primary context of a device, which runtimes and
// frameworks share. A call makes it the thread's current one, and puts back
// what was there before.
//
// Capture. While a program captures a graph in the mode GLOBAL, calls that
// might wait end it, from any thread. A call that queues nothing on a stream of
// the program's is made in the mode RELAXED.
//
// Streams. The handle of a stream is its CUstream, also of one that is adopted.
// Calls without a stream are queued on a stream of the plug-in's own, and wait
// for it: neither cuMemcpyDtoD nor cuMemsetD8 waits, and the legacy stream does
// not order with streams that are non-blocking. The handle of an event of the
// plug-in is a pointer to its record with the lowest bit set; that of an
// adopted one is its CUevent, in which that bit is clear.
//
// Failures. A bad index is found by a kernel. Kernels write what they found to
// pinned memory of the stream's record, which is read behind each wait and
// query. All other failures are the driver's: most of them stick to the context
// until the process ends, and then every call says so.
//
// Forks. A child of a process that has initialised the driver cannot use it.
// The driver is initialised when devices are first listed; in a child every
// call fails.
//
// Locks: that of open and close (devices.h), an event's, a stream record's,
// that of the map of records, those of the lists of events and of callbacks, a
// device's, that of memory without an address. A thread that holds one takes
// only locks further down. No lock is held while a callback runs, nor while the
// driver waits, but an event's: a record of it may wait for room in a queue.
#ifndef TARN_PLUGINS_CUDA_GPU_H_
#define TARN_PLUGINS_CUDA_GPU_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/range_map.h"
#include "base/rows.h"
#include "base/status.h"
#include "common/extents.h"
#include "common/slots.h"
#include "driver.h"
#include "rows_args.h"
#include "tarn/device_abi.h"
#include "tarn/device_ext.h"

// The functions of the tables: tarn__cuda_ and the name of the slot.
#define TARN__CUDA_DECLARE(name) TARN__COMMON_ABI_DECLARE(tarn__cuda_, name);
TARN__COMMON_ABI_SLOTS(TARN__CUDA_DECLARE)

// Slots of the extension: those of cpu and sim, and four more.
#define TARN__CUDA_EXT_SLOTS(X) \
  TARN__COMMON_EXT_SLOTS(X)     \
  X(error_text)                 \
  X(default_stream)             \
  X(describe)                   \
  X(stream_capturing)

#define TARN__CUDA_EXT_DECLARE(name) \
  TARN__COMMON_EXT_DECLARE(tarn__cuda_, name);
TARN__CUDA_EXT_SLOTS(TARN__CUDA_EXT_DECLARE)

// --- options.c -------------------------------------------------------------

// What a device can do beyond the least.
typedef enum tarn__cuda_ability {
  TARN__CUDA_RANGES,    // address ranges
  TARN__CUDA_SHARING,   // memory by file descriptors
  TARN__CUDA_POOLS,     // stream-ordered allocation
  TARN__CUDA_MANAGED,   // unified memory
  TARN__CUDA_REGISTER,  // host memory of the program, at its own address
  TARN__CUDA_ROWS,      // kernels for rows
  TARN__CUDA_ABILITIES,
} tarn__cuda_ability;

// "ranges", "sharing", "pools", "managed", "register", "rows".
const char *tarn__cuda_ability_name(tarn__cuda_ability ability);

typedef struct tarn__cuda_options {
  bool without[TARN__CUDA_ABILITIES];  // not to be used, though they are there
  uint64_t release_threshold;  // bytes that the driver's pool keeps when a
                               // stream is waited for; UINT64_MAX: all
} tarn__cuda_options;

// Reads the environment: TARN_CUDA_WITHOUT, a list such as ranges,pools, and
// TARN_CUDA_RELEASE_THRESHOLD; with HIP for CUDA in their names for that
// vendor. False, with the thread's text: a value is bad.
TARN_MUST_CHECK bool tarn__cuda_options_read(tarn__cuda_options *out);

// --- devices.c -------------------------------------------------------------

enum { TARN__CUDA_DEVICES_MAX = 64, TARN__CUDA_NAME = 128 };

// Every address of cuMemAlloc is a multiple of this.
enum { TARN__CUDA_ALIGN = 256 };

typedef struct tarn__cuda_queue tarn__cuda_queue;
typedef struct tarn__cuda_page tarn__cuda_page;

typedef struct tarn__cuda_device {
  int id;
  CUdevice handle;
  char name[TARN__CUDA_NAME];
  atomic_bool ready;  // between init_device and deinit_device

  // Settled when the devices are listed.
  size_t total;  // bytes of memory
  int major;     // compute capability
  int minor;

  // Settled at open.
  CUcontext context;
  bool can[TARN__CUDA_ABILITIES];
  char why_not[TARN__CUDA_ABILITIES][TARN__COMMON_LINE];  // "" where it can
  size_t granularity;                                     // of ranges
  bool is_rdma;       // memory can be reached by network cards
  CUmemoryPool pool;  // NULL without TARN__CUDA_POOLS
  CUmodule module;    // NULL without TARN__CUDA_ROWS
  size_t units;       // multiprocessors
  CUfunction kernels[TARN__CUDA_KERNEL_NAMES][2];  // for one chunk; for many

  pthread_mutex_t lock;           // guards all below
  tarn__common_extents ranges;    // reservations
  tarn__common_extents mappings;  // in them; |record|: tarn__cuda_physical
  tarn__common_extents offset;    // blocks that begin behind the driver's;
                                  // |record|: the driver's address
  tarn__cuda_queue *idle;         // streams for calls without one
  tarn__cuda_page *pages;         // pinned memory for faults
} tarn__cuda_device;

// The device that |device| names, which is open, and in this process; NULL,
// with the thread's text, if there is none.
tarn__cuda_device *tarn__cuda_device_of(const struct C_Device_st *device);

// The device with that number, open or not; NULL: there are not as many.
tarn__cuda_device *tarn__cuda_nth(size_t number);

// An open device by number, for slots of the extension.
TARN_MUST_CHECK tarn_status tarn__cuda_admit(int id, tarn__cuda_device **out);

// The same, for a slot that needs |ability|. TARN_E_UNSUPPORTED: the device
// lacks it; the text says why.
TARN_MUST_CHECK tarn_status tarn__cuda_admit_for(int id,
                                                 tarn__cuda_ability ability,
                                                 tarn__cuda_device **out);

// Settles that |device| has |ability|, or |why| not; NULL: it has.
void tarn__cuda_settle(tarn__cuda_device *device, tarn__cuda_ability ability,
                       const char *why);

// False: the options ask to do without |ability|, and that is settled.
bool tarn__cuda_is_wanted(tarn__cuda_device *device, tarn__cuda_ability ability,
                          const tarn__cuda_options *options);

// --- context.c -------------------------------------------------------------

// What the calling thread had before a call.
typedef struct tarn__cuda_scope {
  bool is_pushed;   // another context was current
  bool is_relaxed;  // another mode of capture was set
  unsigned mode;
} tarn__cuda_scope;

// Makes the context of |device| the thread's current one. |relaxed|: and waits
// allowed while another thread captures.
//
// C_INTERNAL_ERROR  the driver refuses: the context was destroyed.
TARN_MUST_CHECK C_Status tarn__cuda_enter(const tarn__cuda_device *device,
                                          bool relaxed, tarn__cuda_scope *out);

// Puts back what was there.
void tarn__cuda_leave(const tarn__cuda_scope *scope);

// --- memory.c --------------------------------------------------------------

// Finds out whether the device has a pool, and makes it.
void tarn__cuda_memory_open(tarn__cuda_device *device,
                            const tarn__cuda_options *options);
void tarn__cuda_memory_close(tarn__cuda_device *device);

// Gives back what the pool keeps unused. The context is current.
void tarn__cuda_memory_trim(const tarn__cuda_device *device);

// --- physical.c ------------------------------------------------------------

// Memory without an address.
typedef struct tarn__cuda_physical {
  CUmemGenericAllocationHandle handle;
  size_t size;
  int id;  // of the device that made or imported it
  bool is_shareable;
  unsigned holds;     // creations and imports that gave the handle
  unsigned mappings;  // of it, on whatever device
} tarn__cuda_physical;

// What memory of |device| is created with.
struct CUmemAllocationProp_st tarn__cuda_properties(
    const tarn__cuda_device *device, bool is_shareable);

// Enters memory that the driver has given. False: no host memory.
TARN_MUST_CHECK bool tarn__cuda_physical_note(const tarn__cuda_device *device,
                                              uint64_t handle, size_t size,
                                              bool is_shareable);

// A copy of what is known of a handle. False: nothing is.
TARN_MUST_CHECK bool tarn__cuda_physical_look(uint64_t handle,
                                              tarn__cuda_physical *out);

// Counts a mapping of all |size| bytes. NULL: it must not be mapped, for which
// |*out_words| is the reason.
tarn__cuda_physical *tarn__cuda_physical_map(uint64_t handle, size_t size,
                                             const char **out_words);
void tarn__cuda_physical_unmap(tarn__cuda_physical *memory);

// Lets go of the memory of |device| that is held.
void tarn__cuda_physical_close(const tarn__cuda_device *device);

// TARN_E_INVALID: |size| is 0 or no multiple of the granularity of ranges.
TARN_MUST_CHECK tarn_status tarn__cuda_check_size(
    const tarn__cuda_device *device, const char *call, size_t size);

// --- range.c ---------------------------------------------------------------

// Finds out whether ranges work, by a use of each of their calls.
void tarn__cuda_range_open(tarn__cuda_device *device,
                           const tarn__cuda_options *options);

// Unmaps and releases all that is left.
void tarn__cuda_range_close(tarn__cuda_device *device);

// The bytes of the |size| at |address| that one copy may take: up to the end of
// the mapping that holds |address|, where the driver gets copies over several
// wrong; else |size|.
size_t tarn__cuda_piece(tarn__cuda_device *device, uint64_t address,
                        size_t size);

// --- share.c ---------------------------------------------------------------

// Finds out whether memory can be exported, by an export and an import.
void tarn__cuda_share_open(tarn__cuda_device *device,
                           const tarn__cuda_options *options);

// Whether the context of |device| is the thread's current one. Where it is not
// while the device is closed, it was destroyed, and all that was in it.
static inline bool tarn__cuda_is_entered(const tarn__cuda_device *device) {
  CUcontext current = NULL;
  return tarn__cuda_driver_get()->CtxGetCurrent(&current) == TARN__CU_SUCCESS &&
         current == device->context;
}

// --- faults.c --------------------------------------------------------------

// Pinned memory for one fault, zero-filled. Pinned memory has one address for
// the host and for devices. Caller has entered the context.
//
// C_FAILED  no host memory, or the driver gives no pinned memory.
TARN_MUST_CHECK C_Status tarn__cuda_fault_take(tarn__cuda_device *device,
                                               tarn__cuda_fault **out);

// Gives it back: no kernel writes there any more. Makes no call of the driver.
void tarn__cuda_fault_put(tarn__cuda_device *device,
                          const tarn__cuda_fault *fault);

// Frees all of it.
void tarn__cuda_faults_close(tarn__cuda_device *device);

// --- queue.c ---------------------------------------------------------------

// The record of a stream: every one of the plug-in's own has one, an adopted
// one while rows on it are not known to be over.
struct tarn__cuda_queue {
  tarn__range_map_node node;  // |start| is the stream's key
  tarn__cuda_device *device;
  CUstream handle;
  bool is_adopted;
  tarn__cuda_queue *next;  // of the device's idle ones
  atomic_uint holds;       // the map or the idle list; each user, event, call

  pthread_mutex_t lock;     // guards all below, but reads of |failure|
  bool is_detached;         // it is in no map any more
  tarn__cuda_fault *fault;  // in pinned memory; NULL: no rows so far
  bool is_fault_kept;       // kernels may run at any time that write there
  uint64_t rows;            // the serial of the newest call of rows
  unsigned queuing;         // calls of rows whose kernels may not be queued yet
  _Atomic(C_Status) failure;    // of a stream of the plug-in's own: sticks
  char why[TARN__COMMON_LINE];  // written before |failure|, never again
};

// A stream of |device|, whose context is current.
//
// C_FAILED          no host memory, or the driver gives no stream.
// C_INTERNAL_ERROR  the driver is broken.
TARN_MUST_CHECK C_Status tarn__cuda_queue_open(tarn__cuda_device *device,
                                               C_Stream *out);

// Destroys a stream of the plug-in's own, whose work is done. The driver's
// answer.
tarn__cuda_result tarn__cuda_queue_close(tarn__cuda_queue *queue);

// The same where the stream is gone with its context: only the record ends.
void tarn__cuda_queue_forget(tarn__cuda_queue *queue);

// Destroys all streams of |device|, whose work is done, and lets go of all
// records.
void tarn__cuda_queues_close(tarn__cuda_device *device);

// The record of a stream of the plug-in's own, held; NULL: it is none.
tarn__cuda_queue *tarn__cuda_queue_known(C_Stream stream);

// Drops a hold. NULL is allowed.
void tarn__cuda_queue_drop(tarn__cuda_queue *queue);

// Waits for a stream, and once more where the driver refuses, so that nothing
// is under way behind this. The first answer.
tarn__cuda_result tarn__cuda_drain(CUstream stream);

// The same for all of the current context.
tarn__cuda_result tarn__cuda_drain_context(void);

// Whether a wait that ended with |error| tells of a failure: not where a
// capture forbids it to wait.
static inline bool tarn__cuda_has_failed(tarn__cuda_result error) {
  enum { CAPTURES = 10 };  // errors from the first of captures on
  return error != TARN__CU_SUCCESS &&
         (error < TARN__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED ||
          error >= TARN__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED + CAPTURES);
}

// A point in a stream: the calls of rows that were queued before it.
typedef struct tarn__cuda_mark {
  tarn__cuda_queue *queue;  // held; NULL: there were none
  uint64_t rows;            // the serial of the newest
  bool is_behind_all;       // no other call was about to queue its kernels
} tarn__cuda_mark;

// The point at the end of |stream|. It is taken before the driver is asked for
// what it stands for.
tarn__cuda_mark tarn__cuda_mark_of(tarn__cuda_device *device, C_Stream stream);

// A second one. tarn__cuda_mark_drop ends each.
tarn__cuda_mark tarn__cuda_mark_again(tarn__cuda_mark mark);
void tarn__cuda_mark_drop(tarn__cuda_mark mark);

// The outcome of rows before |mark|, which it drops and which the stream has
// reached. |is_told|: the program has waited for the stream itself, and need
// not be told again where that is an adopted one. Makes no call of the driver.
//
// C_ERROR  an index was bad; the thread's text says which.
C_Status tarn__cuda_mark_settle(tarn__cuda_mark mark, bool is_told);

// The outcome of all rows of |device|, all streams of which are done.
C_Status tarn__cuda_queues_outcome(const tarn__cuda_device *device);

// The answer of a query that ends with |status|: C_FAILED would mean 'not yet'.
static inline C_Status tarn__cuda_query_answer(C_Status status) {
  return status == C_FAILED ? C_INTERNAL_ERROR : status;
}

// A call that queues work: between begin and end the context is current.
typedef struct tarn__cuda_work {
  tarn__cuda_device *device;
  CUstream stream;
  tarn__cuda_queue *own;   // a stream for this call alone; NULL: the caller has
                           // named one
  tarn__cuda_queue *rows;  // the record that tarn__cuda_rows_note used; held
  tarn__cuda_scope scope;
} tarn__cuda_work;

// Begins work on |stream|; NULL: on a stream of the plug-in's own, in the mode
// RELAXED.
//
// C_FAILED          no host memory, or the driver gives no stream.
// C_INTERNAL_ERROR  the context was destroyed.
TARN_MUST_CHECK C_Status tarn__cuda_begin(tarn__cuda_device *device,
                                          C_Stream stream,
                                          tarn__cuda_work *out);

// Ends it. |error| is the driver's answer to |call|. Without a stream it waits
// for the work, and its answer is the outcome of that, of rows too.
C_Status tarn__cuda_end(tarn__cuda_work *work, const char *call,
                        tarn__cuda_result error);

// The memory in which kernels of this work note a bad row, as the device sees
// it, and the serial of this call of rows. The record of the stream is made if
// it has none. Called once for each work.
//
// C_FAILED  no host memory, or the driver gives no pinned memory.
TARN_MUST_CHECK C_Status tarn__cuda_rows_note(tarn__cuda_work *work,
                                              CUdeviceptr *out_fault,
                                              uint64_t *out_serial);

// --- event.c ---------------------------------------------------------------

// Ends the events of |device| that are left, before its queues.
void tarn__cuda_events_close(const tarn__cuda_device *device);

// --- calls.c ---------------------------------------------------------------

// Makes the calls of |stream| that have not come, with |failure|, of which the
// thread's text is the reason, and waits for those that run: a wait for the
// stream, or for an event on it, has failed. Returns |failure|, with its text.
C_Status tarn__cuda_calls_fail(const tarn__cuda_device *device, C_Stream stream,
                               C_Status failure);

// Waits for all work in the context, and forgets calls that have not come:
// before all else is closed.
void tarn__cuda_calls_close(const tarn__cuda_device *device);

// --- kernels.c -------------------------------------------------------------

// Loads the kernels; where that fails, why_not says why.
void tarn__cuda_kernels_open(tarn__cuda_device *device,
                             const tarn__cuda_options *options);
void tarn__cuda_kernels_close(tarn__cuda_device *device);

#endif  // TARN_PLUGINS_CUDA_GPU_H_
