// core.h - the state that a buffer shares with all of its views.
//
// Operations that may take long (memory, copies, waits) have three steps. With
// the lock held the operation is planned and entered into the map, which keeps
// other threads from those bytes. Without the lock it is done. With the lock
// again it is committed or taken back.
//
//   begin ──► plan ──(lock left)──► wait, copy ──(lock)──► commit ──► open
//               │                        │ failed: back, and again or error
//               └─ conflict: TARN_E_STATE, or sleep on |changed|
#ifndef TARN_SYNCED_CORE_H_
#define TARN_SYNCED_CORE_H_

#include "base/biased_lock.h"
#include "base/os.h"
#include "synced/routes.h"
#include "synced/spans.h"
#include "synced/timelines.h"
#include "tarn/synced.h"
#include "tarn/traffic.h"

enum { TARN__MOST_SIDES = 64, TARN__HOST_SIDE = 0 };

#define TARN__NO_SIDE UINT32_MAX

// One place of a buffer, and its memory there.
typedef struct tarn__synced_side {
  tarn__synced_end end;          // address 0: no memory yet
  tarn_block block;              // of a pool; pool NULL: outside memory or none
  tarn_synced_deleter *deleter;  // of outside memory
  void *context;
  size_t fresh;          // written bytes that are valid here
  uint32_t wrap;         // TARN_WRAP_... of outside memory
  bool outside;          // it has outside memory
  unsigned char *pages;  // access of each page; NULL: not protected
  bool busy;             // a thread allocates, moves or frees the memory
  uint32_t transfers;    // to here, under way
} tarn__synced_side;

// Counts of one pair of sides; see tarn_traffic.
typedef struct tarn__synced_counts {
  uint64_t copies, moved, valid, discarded, outside, stalls, stalled_ns;
} tarn__synced_counts;

// Why bytes are valid nowhere.
typedef enum tarn__synced_loss_cause {
  TARN__LOSS_UNKNOWN = 0,
  TARN__LOSS_CANCELLED,    // a write at the side was cancelled
  TARN__LOSS_FAILED,       // a stream that wrote there failed
  TARN__LOSS_INVALIDATED,  // the program discarded them
} tarn__synced_loss_cause;

typedef struct tarn__synced_loss {
  size_t start;
  size_t end;
  uint32_t side;
  tarn__synced_loss_cause cause;
} tarn__synced_loss;

enum { TARN__MOST_LOSSES = 32 };

typedef struct tarn__synced_core tarn__synced_core;

// Asks a buffer whether |device| may close, or, with |commit|, tells it that
// the device closes. Called with the lock of the device room's registry, which
// comes before a lock. With |commit| the result is TARN_OK.
//
// TARN_E_STATE  the buffer has memory there, or uses the device without its
//               lock; the text names it.
typedef tarn_status tarn__synced_on_close(tarn__synced_core *core,
                                          const tarn_device *device,
                                          bool commit);

// What an access of the whole buffer gets, while the buffer is one span without
// uses that is valid at the place, and nothing bars the short way. Another with
// the same arguments differs only in its mode and its stream. Set by accesses
// that enter the lock by the short way. Those and their ends keep to all this;
// whoever enters otherwise clears it.
typedef struct tarn__synced_ready {
  const tarn_synced *buffer;  // NULL: nothing is ready
  size_t offset;              // the arguments
  size_t size;
  tarn_place place;
  uint32_t side;
  tarn_addr address;
  void *pointer;
  uint64_t *valid;  // the count of bytes that were valid there
} tarn__synced_ready;

struct tarn__synced_core {
  tarn__biased_lock lock;  // guards the fields below that can change
  size_t sleepers;         // threads that wait for news
  tarn__news changed;      // with the lock: a busy thing is not busy any more
  uint32_t generation;     // of forks; never changes, nor do the next eight
  uint64_t id;
  size_t size;
  size_t align;
  tarn_tag tag;
  bool protect;  // pages of the host permit open accesses only
  tarn__synced_on_close *on_close;  // tarn__core_on_close
  tarn_device *device;              // becomes NULL when it closes; NULL: none
  char *name;                       // NULL: none
  size_t loose_start;     // bytes that may be written until the buffer is
  size_t loose_end;       // called again; see protect.h
  uint64_t device_asks;   // how often a close of |device| has asked
  uint32_t device_users;  // threads that use it without the lock
  bool device_closing;    // no thread may begin to use it: see work.c
  bool slow;              // accesses must not take the short way
  const char *suspended;  // why the buffer is suspended; NULL: it is not
  size_t handles;         // buffers and views that are not destroyed
  tarn_list accesses;     // open ones, by their nodes, oldest first
  tarn__synced_spans spans;
  tarn__synced_timelines timelines;
  uint64_t transfers;        // numbers given to transfers so far
  tarn__synced_side *sides;  // |side_room| of them; moves when it grows
  uint32_t side_count;
  uint32_t side_room;
  tarn__synced_ready ready;
  uint32_t last_side;     // the answer when it was last asked for a place ...
  tarn_place last_place;  // ... as the program named it
  size_t live;            // written bytes that are not lost
  tarn__synced_counts *counts;  // of pairs: see tarn__core_counts
  uint32_t count_room;          // pairs among so many sides
  tarn__synced_loss
      *losses;           // the newest, a ring of TARN__MOST_LOSSES; NULL: none
  uint64_t loss_count;   // so far
  uint64_t losses_told;  // to the trace
  tarn_list all;         // in the list of all buffers; guarded by its lock,
  uint32_t visitors;     // as is this: visitors in tarn__registry_each
};

struct tarn_synced {
  tarn__synced_core *core;
  size_t offset;
  size_t size;
};

// --- before anything else ---------------------------------------------------

// Whether this thread may use |buffer| now.
//
// TARN_E_INVALID  |buffer| is NULL.
// TARN_E_STATE    the buffer was created before a fork, or the caller is a
//                 stream's callback.
TARN_MUST_CHECK tarn_status tarn__synced_check(const tarn_synced *buffer);

// The same, and the range in the whole buffer. |size| may be TARN_ALL.
//
// TARN_E_INVALID  the range is not in |buffer|.
TARN_MUST_CHECK tarn_status tarn__synced_range(const tarn_synced *buffer,
                                               size_t offset, size_t size,
                                               size_t *out_start,
                                               size_t *out_end);

// Whether operations are allowed now. Ends the validity of pointers that were
// valid until the next call. With the lock.
//
// TARN_E_STATE  the buffer is suspended.
TARN_MUST_CHECK tarn_status tarn__core_admit(tarn__synced_core *core);

// As tarn__synced_check, and the place of the device of the options.
//
// TARN_E_STATE  also if the options named no device.
TARN_MUST_CHECK tarn_status tarn__synced_device(const tarn_synced *buffer,
                                                tarn_place *out_place);

// "buffer 7 ('weights')" into |out|, for texts.
enum { TARN__CORE_TEXT = 96 };
char *tarn__core_text(const tarn__synced_core *core, char *out);

// "sim:0" into |out|, for texts. With the lock.
enum { TARN__SIDE_TEXT = 48 };
char *tarn__side_text(const tarn__synced_core *core, uint32_t side, char *out);

// --- the lock ----------------------------------------------------------------

static inline void tarn__core_enter(tarn__synced_core *core) {
  tarn__biased_lock_enter(&core->lock);
  core->ready.buffer = NULL;
}

// Leaves the lock and tells the trace of new losses. Keeps the thread's last
// error.
void tarn__core_leave(tarn__synced_core *core);

// Sleeps until something has changed; may return without a reason.
void tarn__core_sleep(tarn__synced_core *core);

// Wakes all sleepers.
static inline void tarn__core_wake(tarn__synced_core *core) {
  if (core->sleepers > 0) tarn__news_tell(&core->changed);
}

// --- validity ----------------------------------------------------------------
// All with the lock.

static inline uint64_t tarn__side_bit(uint32_t side) {
  return (uint64_t)1 << side;
}

// The only way to change |valid| and |written| of a span: keeps the sums |live|
// and |fresh|.
void tarn__span_set(tarn__synced_core *core, tarn__synced_span *span,
                    uint64_t valid, bool written);

// Written, and valid nowhere.
static inline bool tarn__span_is_lost(const tarn__synced_span *span) {
  return span->written && span->valid == 0;
}

// Records a loss, for texts and the trace.
void tarn__core_note_loss(tarn__synced_core *core,
                          tarn__synced_loss_cause cause, uint32_t side,
                          size_t start, size_t end);

// Discards the bytes of a range that is not empty. Nodes for its cuts are
// reserved (the whole buffer needs none).
void tarn__core_drop(tarn__synced_core *core, size_t start, size_t end);

// TARN_E_STATE, with a text that says how the bytes of |span| were lost.
TARN_MUST_CHECK tarn_status tarn__core_tell_loss(const tarn__synced_core *core,
                                                 const tarn__synced_span *span);

// Pairs come in the order of the later side of both, so that they stay where
// they are when sides are added:  0,0  0,1  1,1  1,0  0,2  1,2  2,2  2,1 ...
static inline tarn__synced_counts *tarn__core_counts(tarn__synced_core *core,
                                                     uint32_t from,
                                                     uint32_t to) {
  size_t later = from > to ? from : to;
  return &core->counts[later * later + later + from - to];
}

// --- open accesses -----------------------------------------------------------

// Whether an access and a range that is not empty overlap.
static inline bool tarn__access_meets(const tarn_access *access, size_t start,
                                      size_t end) {
  return access->size > 0 && access->offset < end &&
         start < access->offset + access->size;
}

// An open access that overlaps the range at |side| (TARN__NO_SIDE: at any
// side); NULL: none. With the lock.
const tarn_access *tarn__access_in(const tarn__synced_core *core, uint32_t side,
                                   size_t start, size_t end);

// TARN_E_STATE, "buffer 7 is open for reading at sim:0 (bytes 0..4096):
// |what|". With the lock.
TARN_MUST_CHECK tarn_status tarn__access_is_in_the_way(
    const tarn__synced_core *core, const tarn_access *access, const char *what);

// TARN_E_STATE with that text if there is such an access. With the lock.
TARN_MUST_CHECK tarn_status
tarn__access_check_none(const tarn__synced_core *core, uint32_t side,
                        size_t start, size_t end, const char *what);

// --- the device of the options -----------------------------------------------

// Keeps the device of |core| open until tarn__core_release_device; NULL: there
// is none, or it has closed. Waits for a close that is under way, so without
// the lock. A thread that cannot wait, as in a stream's callback, gets NULL.
tarn_device *tarn__core_hold_device(tarn__synced_core *core);
void tarn__core_release_device(tarn__synced_core *core);

// The place of sides of a device that has closed. No program can name it.
static const tarn_place tarn__nowhere = {NULL, TARN_PLACE_DEVICE};

tarn__synced_on_close tarn__core_on_close;

// --- all buffers, the oldest first -------------------------------------------
// One lock, taken when a buffer is made or destroyed and for each step along
// the list, never by an access. Nothing is called or locked while it is held.

// A number that is unique in this process.
uint64_t tarn__registry_number(void);

void tarn__registry_add(tarn__synced_core *core);

// Waits until no visitor has the buffer.
void tarn__registry_remove(tarn__synced_core *core);

// Calls |visit| for each buffer that was created in this process, without a
// lock. The buffer is not destroyed meanwhile, so |visit| must not destroy it.
// Stops at the first status other than TARN_OK and returns it.
typedef tarn_status tarn__synced_registry_visit(void *context,
                                                tarn__synced_core *core);
TARN_MUST_CHECK tarn_status
tarn__registry_each(tarn__synced_registry_visit *visit, void *context);

// --- the trace ---------------------------------------------------------------

// Whether the program has set a trace function. One relaxed load.
bool tarn__synced_is_traced(void);

// Calls the trace function, if there is one, with |event|, whose size, id and
// name are set here. Without the lock.
void tarn__synced_tell(const tarn__synced_core *core, tarn_synced_event event);

// The same for an event of the whole buffer.
static inline void tarn__synced_tell_all(const tarn__synced_core *core,
                                         tarn_synced_happening what,
                                         tarn_place to) {
  tarn__synced_tell(
      core, (tarn_synced_event){.what = what, .to = to, .size = core->size});
}

// Checks sums and spans and returns the first error as a text, or NULL. For
// tests.
const char *tarn__core_verify(const tarn__synced_core *core);

#endif  // TARN_SYNCED_CORE_H_
