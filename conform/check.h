// check.h - what a check is, and what checks are written with.
//
//   static bool one_byte(conform_target *t) {
//     void *block = NULL;
//     return check_take(t, 1, &block) && check_put(t, block, "x", 1);
//   }
//
// A check returns true if it passed. A fault is reported by conform_fail, and
// by conform_quirk where Tarn copes with it; both return false, which the check
// returns. Memory, streams and events that a check takes through resources.c
// are given back when it has passed or found a quirk. After a failure the
// process ends, and nothing is given back.
#ifndef TARN_CONFORM_CHECK_H_
#define TARN_CONFORM_CHECK_H_

#include <stdint.h>

#include "conform.h"
#include "device/plugin.h"
#include "tarn/device_abi.h"
#include "tarn/device_ext.h"

enum {
  CHECK_BLOCKS_MAX = 512,
  CHECK_BUFFERS_MAX = 64,
  CHECK_HANDLES_MAX = 64,
  CHECK_NEEDS_MAX = 6,
  CHECK_DEVICES_MAX = 4096,
};

typedef struct check_block {
  struct C_Device_st *device;
  void *ptr;
  size_t size;
} check_block;

// The plug-in, and the check that runs.
typedef struct conform_target {
  tarn__device_plugin_entry entry;
  tarn__device_plugin *plugin;   // of its own, not in the registry
  const C_DeviceInterface *abi;  // NULL: the plug-in does not have it
  const tarn_device_ext *ext;    // likewise
  size_t wanted;                 // which device is tested
  bool ready;                    // initialised, and so are the devices:
  size_t count;
  size_t ids[CHECK_DEVICES_MAX];
  struct C_Device_st device;  // the tested one ...
  struct C_Device_st other;   // ... and another, if count is above 1
  size_t total;               // its memory
  size_t min_chunk;           // at least 1, whatever it answers

  size_t with;              // of the check that runs
  conform_outcome outcome;  // likewise

  check_block blocks[CHECK_BLOCKS_MAX];  // to be given back after it
  size_t block_count;
  void *buffers[CHECK_BUFFERS_MAX];
  size_t buffer_count;
  C_Stream streams[CHECK_HANDLES_MAX];
  size_t stream_count;
  C_Event events[CHECK_HANDLES_MAX];
  size_t event_count;
} conform_target;

typedef enum check_stage {
  CHECK_READY = 0,  // wants devices that are initialised
  CHECK_LOADED,     // wants the plug-in's table and no more
} check_stage;

typedef struct conform_check {
  const char *name;  // "memory.one_byte"
  bool (*run)(conform_target *t);
  const char *code;                   // the lines that show it
  size_t with;                        // which case, if checks share |run|
  uint16_t needs[CHECK_NEEDS_MAX];    // functions: NEED(...); 0: no more
  uint16_t extends[CHECK_NEEDS_MAX];  // slots of the extension: SLOT(...)
  check_stage stage;
  bool two;   // wants two devices
  bool last;  // the plug-in is of no use afterwards
} conform_check;

// How an entry begins: its name, its function, and what else it has.
#define CHECK(name_, ...) .name = (name_), .run = __VA_ARGS__
#define NEED(function) offsetof(C_DeviceInterface, function)
#define SLOT(function) offsetof(tarn_device_ext, function)

typedef struct conform_subject {
  const conform_check *checks;
  size_t count;
} conform_subject;

#define CONFORM_SUBJECT(array) \
  { array, sizeof(array) / sizeof(array)[0] }

extern const conform_subject conform_loading, conform_devices, conform_sizes,
    conform_memory, conform_host_memory, conform_copies, conform_streams,
    conform_queued, conform_events, conform_two_devices, conform_threads,
    conform_exhaustion, conform_extension, conform_ranges, conform_handles,
    conform_rows;

const conform_check *conform_at(size_t index);

// The place of the two checks without which no other makes sense.
size_t conform_accepted(void);
size_t conform_initialized(void);

// Runs one check; |t->outcome| has its outcome.
void conform_check_run(conform_target *t, const conform_check *check);

// --- target.c --------------------------------------------------------------

// Finds the plug-in. False if it is not found: tarn_last_error() says why.
bool conform_target_find(conform_target *t, const conform_request *request,
                         char *out_origin);

// Takes in its table. False: it was refused, as tarn_last_error() says.
bool conform_target_load(conform_target *t, const char *origin);

// Initialises it and its devices. The plug-in's own functions are called, with
// more room for ids than the library leaves, so that a check finds a plug-in
// that writes too many, and not a crash.
typedef enum conform_readiness {
  CONFORM_READY,
  CONFORM_NOT_READY,  // |t->outcome| says why
  CONFORM_NOT_THERE,  // likewise: there is no device of the number wanted
} conform_readiness;
conform_readiness conform_target_initialize(conform_target *t);

// Ends all that there is, and frees |t->plugin|.
void conform_target_end(conform_target *t);

// --- functions.c -----------------------------------------------------------

// The name of the function at |offset| of the table, and what Tarn does where
// a plug-in has none.
const char *conform_function_name(size_t offset);
const char *conform_stand_in(size_t offset);
const char *conform_slot_name(size_t offset);

// Whether |table|, of either kind, has what stands at |offset|.
bool conform_has(const void *table, size_t offset);

// "C_FAILED", or "status 17" for an unknown one.
const char *conform_status(C_Status status);

// --- outcome.c --------------------------------------------------------------

// Sets the outcome. True for a note, something worth telling of a check that
// passes; else false. The text of a quirk ends with what Tarn does about it.
bool conform_say(conform_target *t, conform_result result, conform_level level,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));

#define conform_fail(t, ...) \
  conform_say((t), CONFORM_FAIL, CONFORM_FAULT, __VA_ARGS__)
#define conform_quirk(t, ...) \
  conform_say((t), CONFORM_PASS, CONFORM_QUIRK, __VA_ARGS__)
#define conform_skip(t, ...) \
  conform_say((t), CONFORM_SKIP, CONFORM_NONE, __VA_ARGS__)
#define conform_note(t, ...) \
  conform_say((t), CONFORM_PASS, CONFORM_NOTE, __VA_ARGS__)

#define EXPECT(t, condition, ...)                            \
  do {                                                       \
    if (!(condition)) return conform_fail((t), __VA_ARGS__); \
  } while (0)

#define EXPECT_QUIRK(t, condition, ...)                       \
  do {                                                        \
    if (!(condition)) return conform_quirk((t), __VA_ARGS__); \
  } while (0)

// True if a call answered C_SUCCESS or C_WARNING.
bool conform_went_well(conform_target *t, const char *function, C_Status got);

// Calls a function of the table, which must go well.
#define CALL(t, function, ...)                                  \
  do {                                                          \
    C_Status got_ = (t)->abi->function(__VA_ARGS__);            \
    if (!conform_went_well((t), #function, got_)) return false; \
  } while (0)

// A device may be unable to do what its plug-in has a slot for: then it is as
// if the slot were missing. Skips the check in that case.
bool conform_can(conform_target *t, const char *slot, tarn_status got);

// Fails unless |what|, which makes no sense, is answered TARN_E_INVALID.
bool conform_was_refused(conform_target *t, const char *what, tarn_status got);

// Calls a slot of the extension, which must answer TARN_OK.
bool conform_was_ok(conform_target *t, const char *slot, tarn_status got);
#define EXTENSION(t, slot, ...)                          \
  do {                                                   \
    tarn_status got_ = (t)->ext->slot(__VA_ARGS__);      \
    if (!conform_was_ok((t), #slot, got_)) return false; \
  } while (0)

// --- resources.c -----------------------------------------------------------

#define KIB(count) ((size_t)(count) << 10)
#define MIB(count) ((size_t)(count) << 20)
#define GIB(count) ((size_t)(count) << 30)

static inline uint64_t check_address(const void *pointer) {
  return (uint64_t)(uintptr_t)pointer;
}

static inline void *check_pointer(uint64_t address) {
  return (void *)(uintptr_t)address;
}

static inline unsigned char *check_at(void *block, size_t offset) {
  return (unsigned char *)block + offset;
}

// Makes |device| the calling thread's current one, if the plug-in has
// set_device, which must go well.
bool check_enter(conform_target *t, struct C_Device_st *device);

// |size| bytes of the device that is tested, or of |device|.
bool check_take(conform_target *t, size_t size, void **out);
bool check_take_of(conform_target *t, struct C_Device_st *device, size_t size,
                   void **out);

// Gives back what check_take gave, before the end of the check.
bool check_give(conform_target *t, void *ptr);

// Forgets a block that the check frees itself.
void check_forget(conform_target *t, const void *ptr);

// Host memory, zero.
bool check_buffer(conform_target *t, size_t size, unsigned char **out);

// A stream or an event with a handle; skips where the plug-in sets none.
bool check_stream(conform_target *t, C_Stream *out);
bool check_event(conform_target *t, C_Event *out);
void check_forget_stream(conform_target *t, C_Stream stream);
void check_forget_event(conform_target *t, C_Event event);

// Gives all back. False: |t->outcome| has failed.
bool check_tidy(conform_target *t);

// Bytes that differ from place to place and from seed to seed.
void check_fill(unsigned char *bytes, size_t size, unsigned seed);

// Fails unless |got| is |expected|: names the first byte that differs, and its
// offset.
bool check_same(conform_target *t, const char *what, const unsigned char *got,
                const unsigned char *expected, size_t size);

// Fails unless |got| is what check_fill made of |seed|.
bool check_is_filled(conform_target *t, const char *what,
                     const unsigned char *got, size_t size, unsigned seed);

// Plain copies to and from the device that is tested.
bool check_put(conform_target *t, void *dst, const void *src, size_t size);
bool check_get(conform_target *t, void *dst, const void *src, size_t size);

// Fills a block of the device from the host, and looks at it again.
bool check_write(conform_target *t, void *dst, size_t size, unsigned seed);
bool check_verify(conform_target *t, const char *what, const void *src,
                  size_t size, unsigned seed);

// Takes a block, writes all of it, reads it back, and gives it back.
bool check_use(conform_target *t, const char *what, size_t size, unsigned seed);

// Whether a block of |size| bytes can be had at all; skips if not.
bool check_has_room(conform_target *t, size_t size);

// Whether the device keeps account of what it gave: free memory falls at once
// by the size of a block, though nothing was written to it. Where it does not,
// the memory is the host's, which other programs take and give back as well.
bool check_keeps_account(conform_target *t, bool *out);

// Waits for a stream.
bool check_wait(conform_target *t, C_Stream stream);

// Copies on a stream: bytes -> block -> back.
typedef struct check_work {
  C_Stream stream;
  void *block;
  unsigned char *bytes;
  unsigned char *back;
  size_t size;
} check_work;

// Makes all but the stream, and fills |bytes|.
bool check_make_work(conform_target *t, size_t size, unsigned seed,
                     check_work *w);

// Queues |times| copies to the block; the copy back; both.
bool check_queue_put(conform_target *t, const check_work *w, int times);
bool check_queue_get(conform_target *t, const check_work *w);
bool check_queue(conform_target *t, const check_work *w, int times);

// Whether what came back are the bytes.
bool check_came_back(conform_target *t, const check_work *w, const char *what);

// Sizes that are easily got wrong, up to 1 MiB and a byte; 0 ends them.
extern const size_t check_lengths[];

// --- measure.c -------------------------------------------------------------

typedef struct measure_sink {
  void (*copy)(void *context, const conform_copy *row);
  void (*allocation)(void *context, const conform_allocation *row);
  void *context;
} measure_sink;

// Measures row after row. Stops at a call that fails: |t->outcome|.
bool conform_measure(conform_target *t, const measure_sink *sink);

#endif  // TARN_CONFORM_CHECK_H_
