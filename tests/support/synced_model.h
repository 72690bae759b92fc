// synced_model.h - a naive synced buffer that says beforehand what a real one
// will do, byte by byte.
//
// For each byte it keeps the newest value, whether it was written, and at
// which places it is valid. An operation first says with sm_need which bytes
// have to be copied where, then the real one is called, and what the trace
// tells must be exactly that: each byte once, from a place that has it and is
// not dearer than another, and no byte in vain.
//
// What differs ends the test with the seed and the operation in the text.
#ifndef TARN_TESTS_SUPPORT_SYNCED_MODEL_H_
#define TARN_TESTS_SUPPORT_SYNCED_MODEL_H_

#include "tarn/synced.h"
#include "tarn/traffic.h"

enum {
  SM_DEVICES = 8,
  SM_PLACES = 1 + 2 * SM_DEVICES,  // the host, devices, their unified memory
  SM_SIZE = 1600,
  SM_HANDLES = 5,
  SM_OPENS = 10,
  SM_EVENTS = 4096,
};

// Memory of the program that was given to a buffer.
typedef struct sm_outside {
  bool used;
  bool let_go;   // the buffer has told so
  bool deleted;  // the deleter was called
  bool deleter;  // there is one
  uint32_t flags;
  unsigned place;
  tarn_addr address;
  size_t size;
  unsigned char shadow[SM_SIZE];  // what must stand there
  bool known[SM_SIZE];            // unless a cancelled write went over it
} sm_outside;

typedef struct sm_side {
  bool own;             // memory of a pool
  sm_outside *outside;  // or of the program
} sm_side;

typedef struct sm_handle {
  tarn_synced *real;  // NULL: none
  size_t offset;
  size_t size;
  size_t opens;
} sm_handle;

typedef struct sm_open {
  bool open;
  sm_handle *handle;
  unsigned place;
  uint32_t mode;
  int stream;  // -1: none
  size_t offset;
  size_t size;
  uint64_t order;
  tarn_access access;
} sm_open;

typedef struct sm_counts {
  uint64_t copies, moved;
} sm_counts;

// One buffer with all of its views.
typedef struct sm_root {
  bool alive;
  size_t size;
  unsigned device;  // the place that is "the device"; 0: none
  uint64_t id;
  char name[16];
  unsigned char value[SM_SIZE];
  uint32_t valid[SM_SIZE];  // a bit for each place
  bool written[SM_SIZE];
  uint32_t need[SM_SIZE];  // places that this operation has to copy it to
  uint32_t zero[SM_SIZE];  // places where it has to be set to zero
  sm_side sides[SM_PLACES];
  sm_handle handles[SM_HANDLES];
  sm_open opens[SM_OPENS];
  sm_counts counts[SM_PLACES][SM_PLACES];
  uint64_t kept[SM_PLACES];       // bytes_valid at each place
  uint64_t discarded[SM_PLACES];  // bytes_discarded towards each place
  size_t told_lost;               // bytes, in this operation
} sm_root;

// What the model is in the middle of, for texts.
typedef struct sm_now {
  unsigned long seed;
  unsigned long operation;
  char what[200];
} sm_now;

extern sm_now sm_now_at;

void sm_fail(const char *format, ...)
    __attribute__((format(printf, 1, 2), noreturn));

#define sm_require(condition)                    \
  do {                                           \
    if (!(condition)) sm_fail("%s", #condition); \
  } while (0)

// |got| is |expected|, or the test ends.
void sm_status(tarn_status got, tarn_status expected);

// The places that there are: |sm_place(i)|, i below |sm_place_count|.
extern tarn_place sm_places[SM_PLACES];
extern size_t sm_place_count;
unsigned sm_place_index(tarn_place place);

// --- what is true ----------------------------------------------------------

static inline bool sm_is_lost(const sm_root *r, size_t i) {
  return r->written[i] && r->valid[i] == 0;
}

bool sm_any_lost(const sm_root *r, size_t offset, size_t size);
size_t sm_count_lost(const sm_root *r, size_t offset, size_t size);

// Places of open accesses that are in the way, as bits; 0: none.
uint32_t sm_conflicts(const sm_root *r, size_t offset, size_t size,
                      bool writes);

// Accesses of more than 0 bytes that are open at a place; SM_PLACES: anywhere.
size_t sm_open_at(const sm_root *r, unsigned place);

tarn_synced_state sm_head(const sm_root *r, size_t offset, size_t size);

// --- what has to happen ----------------------------------------------------

void sm_need_nothing(sm_root *r);

// Prepares an access: the needs, and the status that it must answer.
tarn_status sm_plan_access(sm_root *r, unsigned place, size_t offset,
                           size_t size, uint32_t mode);
// And what is true when it has begun.
void sm_access_begun(sm_root *r, unsigned place, size_t offset, size_t size,
                     uint32_t mode);

// All bytes that are stale at |place| are copied there: sync back.
void sm_need_back(sm_root *r, unsigned place);

// Evicting |place|; TARN_PENDING: either TARN_OK or TARN_E_STATE is right.
tarn_status sm_plan_evict(sm_root *r, unsigned place);
void sm_evicted(sm_root *r, unsigned place);

// --- what has happened -----------------------------------------------------

// Listens to the trace.
void sm_listen(void);

// Compares what was told since the last call with what had to happen.
void sm_heard(sm_root *r);

// The same of an operation that failed half-way: what it did was right, but it
// need not have done all.
void sm_heard_some(sm_root *r);

// The bytes are the newest, and only there.
void sm_stored(sm_root *r, unsigned place, size_t offset, size_t size,
               const unsigned char *bytes);

// Bytes at |place| may be anything.
void sm_spoiled(sm_root *r, unsigned place, size_t offset, size_t size);

#endif  // TARN_TESTS_SUPPORT_SYNCED_MODEL_H_
