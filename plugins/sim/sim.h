// sim.h - several discrete devices in RAM: the declarations that this plug-in's
// files share.
//
//   plugin.c   the tables, streams and events, the devices' sizes
//   devices.c  the devices, from initialize to finalize; checks of callers
//   options.c  what tarn_sim_configure and TARN_SIM_* ask for
//   faults.c   calls that fail on purpose
//   capture.c  a stream that captures a graph, and the calls that break it
//   report.c   the report of misuse
//   memory.c   windows, and the memory behind; blocks: take and give back
//   check.c    what is wrong with an address, and the words for it
//   copy.c     copies, at once and queued
//
//   extension.c  checks of calls beyond the ABI, and the texts of their errors
//   range.c      addresses without memory, and what is mapped there
//   physical.c   memory without an address, and other processes'
//   move.c       mapped memory that moves
//   share.c      blocks of other processes
//   allocate.c   blocks at alignments, and in the order of a stream
//   pointer.c    queries of addresses, and registered host memory
//   rows.c       gather and scatter
//
// The functions of the table check their arguments. A wrong use answers C_ERROR
// and is in the report; the functions that they call rely on the check.
//
// Locks: that of ranges, then a device's; that of the options, then that of the
// plan of faults. Inside a device's lock nothing is taken, nor inside the
// plan's and the report's. Those of ranges, devices and the report may be taken
// inside a stream's, by a copy that runs there.
#ifndef TARN_PLUGINS_SIM_SIM_H_
#define TARN_PLUGINS_SIM_SIM_H_

#include "common/queue.h"
#include "common/slots.h"
#include "common/window.h"

// --- the table's functions, by number --------------------------------------

#define TARN__SIM_CALL_LIST(X) \
  TARN__COMMON_ABI_SLOTS(X)    \
  TARN__COMMON_EXT_SLOTS(X) TARN__COMMON_EXT_MORE_SLOTS(X)

#define TARN__SIM_CALL_NUMBER(name) TARN__SIM_##name,
typedef enum tarn__sim_call {
  TARN__SIM_CALL_LIST(TARN__SIM_CALL_NUMBER) TARN__SIM_CALLS
} tarn__sim_call;

const char *tarn__sim_call_name(tarn__sim_call call);

// The functions of the table: tarn__sim_ and the name of the slot.
#define TARN__SIM_DECLARE(name) TARN__COMMON_ABI_DECLARE(tarn__sim_, name);
TARN__COMMON_ABI_SLOTS(TARN__SIM_DECLARE)

// --- options.c -------------------------------------------------------------

enum {
  TARN__SIM_DEVICES_MAX = 64,
  TARN__SIM_FAULTS_MAX = 32,
  TARN__SIM_PATH_SIZE = 1024,
};

typedef struct tarn__sim_fault {
  tarn__sim_call call;  // TARN__SIM_CALLS: any
  uint64_t nth;         // 1 is the first call
  bool onwards;         // and every later one
} tarn__sim_fault;

// Calls that are to fail; zero-filled: none.
typedef struct tarn__sim_plan {
  tarn__sim_fault entries[TARN__SIM_FAULTS_MAX];
  size_t count;
} tarn__sim_plan;

typedef struct tarn__sim_options {
  size_t devices;
  size_t capacity;      // bytes of each device
  uint64_t latency_ns;  // of each copy and set
  size_t bandwidth;     // bytes per second to and from a device; 0: no limit
  size_t no_ranges;     // 1: devices say that they have no address ranges
  uint64_t map_latency_ns;  // of each call that maps, unmaps or sets a right
  size_t no_moves;  // 1: devices say that they do not move mapped memory
  tarn__sim_plan plan;
  char report[TARN__SIM_PATH_SIZE];  // file of the report; "": none
} tarn__sim_options;

// Fills |*out| with the settings of the program and the environment, and
// settles them: the program cannot change them from now on. False: a value is
// bad, the report says which, |*out| holds the defaults and nothing is settled.
TARN_MUST_CHECK bool tarn__sim_options_settle(tarn__sim_options *out);

// There are no devices any more.
void tarn__sim_options_unsettle(void);

// --- faults.c --------------------------------------------------------------

// Arms the plan and counts from 0.
void tarn__sim_faults_set(const tarn__sim_plan *plan);

// Counts one call; true if it is to fail.
bool tarn__sim_faults_inject(tarn__sim_call call);

// Parses a plan into |*out|: false if |text| is not a plan. NULL and "" are
// plans without entries.
TARN_MUST_CHECK bool tarn__sim_faults_parse(const char *text,
                                            tarn__sim_plan *out);

// --- capture.c -------------------------------------------------------------

// Whether |stream| captures a graph.
bool tarn__sim_captures(C_Stream stream);

// C_SUCCESS, unless a stream captures and |call| would break that: then it is a
// misuse, of device |id|.
C_Status tarn__sim_spare_capture(tarn__sim_call call, int id);

// --- report.c --------------------------------------------------------------

// The file that lines are appended to; "": none.
void tarn__sim_report_to(const char *path);

// Adds a line, which also goes to the log and is the thread's text. Returns
// C_ERROR.
__attribute__((format(printf, 1, 2), cold)) C_Status tarn__sim_misuse(
    const char *format, ...);

// --- devices.c -------------------------------------------------------------

typedef enum tarn__sim_kind {
  TARN__SIM_HOST,
  TARN__SIM_UNIFIED,
  TARN__SIM_DEVICE,  // the last: those before are memory of the process
} tarn__sim_kind;

// The record of a block that was given back.
typedef struct tarn__sim_freed {
  tarn__common_run run;
  uint64_t serial;
} tarn__sim_freed;

enum { TARN__SIM_FREED_KEPT = 256 };

typedef struct tarn__sim_device {
  tarn__common_queue_home home;
  atomic_bool ready;      // between init_device and deinit_device
  unsigned char *mirror;  // its memory, at the offsets of |blocks|; no caller
                          // knows its address
  size_t capacity;

  pthread_mutex_t lock;  // guards all from here to |default_stream|
  // Blocks of kind DEVICE. Physical memory stands there as well, which has no
  // address: nothing is asked for there. |record| is not NULL where a stream
  // will give the block back.
  tarn__common_window blocks;
  tarn__common_extents mapped[TARN__SIM_DEVICE];  // blocks of the other kinds
  tarn__common_extents registered;                // memory of the host
  tarn__common_extents shared;  // blocks that other processes reach, and those
                                // of others; |record|: a tarn__sim_shared
  size_t used;                  // of |capacity|
  uint64_t serial;              // of the newest block
  tarn__sim_freed freed[TARN__SIM_FREED_KEPT];
  uint64_t freed_count;     // ever; the newest stands at (count - 1) % KEPT
  C_Stream default_stream;  // NULL: it was never asked for

  // Guarded by the lock of ranges.
  tarn__common_window ranges;
  tarn__common_extents mappings;  // |record|: a tarn__sim_mapping
} tarn__sim_device;

// The memory behind an address of the window of blocks.
static inline unsigned char *tarn__sim_mirror(const tarn__sim_device *device,
                                              uint64_t address) {
  return device->mirror + (address - device->blocks.begin);
}

C_Status tarn__sim_initialize(void);
C_Status tarn__sim_finalize(void);
C_Status tarn__sim_device_count(size_t *count);
C_Status tarn__sim_device_list(size_t *ids);

// The device that |device| names, which must be initialised, and by this
// process; else C_ERROR and a line in the report.
C_Status tarn__sim_look_up(tarn__sim_call call,
                           const struct C_Device_st *device,
                           tarn__sim_device **out);

// The same, and the call is counted: where every function of the table begins.
// Anything but C_SUCCESS is its answer, and nothing has happened.
C_Status tarn__sim_enter(tarn__sim_call call, const struct C_Device_st *device,
                         tarn__sim_device **out);

// The device in one of whose windows |ptr| is, NULL if it is in none.
tarn__sim_device *tarn__sim_owner(const void *ptr);

// The device of that number; NULL if there are not as many.
tarn__sim_device *tarn__sim_nth(size_t number);

// True if devices are to have no address ranges, or not to move what is mapped.
bool tarn__sim_lacks_ranges(void);
bool tarn__sim_lacks_moves(void);

// What a call answers that is to fail, and its text.
C_Status tarn__sim_strike(tarn__sim_call call);

// True if copies take time on purpose.
bool tarn__sim_is_slow(void);

// Returns when an operation that began at |begin_ns| may be over; |size| is
// what went to or from the device.
void tarn__sim_linger(uint64_t begin_ns, size_t size);

// Waits as long as a call takes that changes mappings.
void tarn__sim_linger_mapping(void);

// --- memory.c --------------------------------------------------------------

// Maps what the device needs. False if the system refuses.
TARN_MUST_CHECK bool tarn__sim_memory_open(tarn__sim_device *device,
                                           size_t capacity);

// Unmaps it, and whatever blocks are left.
void tarn__sim_memory_close(tarn__sim_device *device);

// Takes a block at a multiple of |align|, a power of two, at least 256; 0 if
// there is no room.
uint64_t tarn__sim_take_block(tarn__sim_device *device, size_t size,
                              size_t align);

// |size| bytes of addresses with whole pages of the mirror behind them, which
// do not count; usable as a block is. 0 if there is no room. Caller holds the
// device's lock, as for the next one, which takes them back.
uint64_t tarn__sim_take_import(tarn__sim_device *device, size_t size);
void tarn__sim_give_import(tarn__sim_device *device, uint64_t address);

// The block at |address| goes, if it is number |serial|.
void tarn__sim_give_block(tarn__sim_device *device, uint64_t address,
                          uint64_t serial);

// |size| bytes of the mirror, whole pages, for memory without an address: its
// address is a name for where they are. 0 if there is no room, of the capacity
// too if it is |counted|.
uint64_t tarn__sim_take_bytes(tarn__sim_device *device, size_t size,
                              bool counted);
void tarn__sim_give_bytes(tarn__sim_device *device, uint64_t address,
                          bool counted);

// Cuts bytes that were taken at |address| behind the first |size|: both parts
// are given back by themselves. False: no host memory.
TARN_MUST_CHECK bool tarn__sim_cut_bytes(tarn__sim_device *device,
                                         uint64_t address, size_t size);

// --- check.c ---------------------------------------------------------------

// How bytes are asked for.
enum {
  TARN__SIM_TO_WRITE = 1 << 0,  // else to read
  TARN__SIM_LATE = 1 << 1,      // they were looked at when this was queued
  TARN__SIM_PIECE = 1 << 2,     // of mapped ones, the first mapping's will do
};

// The caller and its request, as the report writes them.
typedef struct tarn__sim_request {
  const tarn__sim_device *device;
  tarn__sim_call call;
  const void *address;
  size_t size;
  unsigned how;  // TARN__SIM_... bits
} tarn__sim_request;

typedef enum tarn__sim_verdict {
  TARN__SIM_FINE,
  TARN__SIM_BEYOND,     // it begins in a block and ends behind it
  TARN__SIM_INSIDE,     // to be given back, but not where a block begins
  TARN__SIM_MISMATCH,   // to be given back, but of another size
  TARN__SIM_GONE,       // in a block that was given back
  TARN__SIM_NOWHERE,    // in no block that is known
  TARN__SIM_UNMAPPED,   // of a range, with nothing mapped there
  TARN__SIM_FORBIDDEN,  // mapped, but not for this device
  TARN__SIM_CHANGED,    // mapped, but not as it was when a copy was queued
} tarn__sim_verdict;

typedef struct tarn__sim_finding {
  tarn__sim_verdict verdict;
  tarn__common_extent *extent;  // FINE: the block
  tarn__sim_freed block;        // else: the block that the text names
  size_t before;                // bytes that are fine before what is not
} tarn__sim_finding;

// Whether |size| bytes at |address| are a block of |kind| that can be given
// back. Caller holds the device's lock.
tarn__sim_finding tarn__sim_find_block(const tarn__sim_device *device,
                                       tarn__sim_kind kind, uint64_t address,
                                       size_t size);

// A line for a finding of tarn__sim_find_block; C_ERROR.
C_Status tarn__sim_refuse_free(const tarn__sim_request *request,
                               const tarn__sim_finding *finding);

// One end of a copy.
typedef struct tarn__sim_end {
  tarn__sim_device *device;  // NULL: it is the host's
  const void *address;       // as the caller says it
  uint64_t serial;           // of the block, or all mappings; 0: not yet known
} tarn__sim_end;

// Bytes that stand together.
typedef struct tarn__sim_piece {
  unsigned char *bytes;
  size_t size;
} tarn__sim_piece;

// Checks that |size| bytes at |end->address| are what |end| says, and sets its
// serial; if that is set, that they still are. |*out| is where the first of
// them are, as many as stand together: all, but for mapped ones. Else C_ERROR,
// and a line in the report that begins with |device| and |call|. |how|: bits as
// above.
C_Status tarn__sim_resolve(const tarn__sim_device *device, tarn__sim_call call,
                           unsigned how, size_t size, tarn__sim_end *end,
                           tarn__sim_piece *out);

#endif  // TARN_PLUGINS_SIM_SIM_H_
