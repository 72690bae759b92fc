// traffic.h - what synced buffers copied, what they did not have to, and what
// is still open.
//
// Threads, fork, errors: as in tarn/synced.h.
#ifndef TARN_TRAFFIC_H_
#define TARN_TRAFFIC_H_

#include "tarn/synced.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---------------------------------------------------------------------------
// Counts
// ---------------------------------------------------------------------------

// From one place to another, since the buffer was made or the counts were
// reset. Bytes that were not copied are counted for the place that a scheme of
// whole buffers would have copied from; those that were valid already have the
// same place at both ends.
typedef struct tarn_traffic {
  size_t struct_size;
  tarn_place from;
  tarn_place to;
  uint64_t copies;           // calls of the device room
  uint64_t bytes_moved;      // by them
  uint64_t bytes_valid;      // asked for, and valid already
  uint64_t bytes_discarded;  // stale, but to be overwritten anyway
  uint64_t bytes_outside;    // stale, but outside of the range that was asked
  uint64_t stalls;           // waits of the host for streams or other threads
  uint64_t stalled_ns;
} tarn_traffic;

// Called for each pair of places of which a count is not 0, until a status is
// not TARN_OK, which is returned then. It may call the library.
typedef tarn_status tarn_traffic_visit(void *context,
                                       const tarn_traffic *traffic);

// The counts of one buffer, whole also where |buffer| is a view; NULL: sums
// over all buffers that there are now.
//
// Cost: a copy of the counts; with NULL of those of all buffers.
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_traffic(
    tarn_synced *buffer, tarn_traffic_visit *visit, void *context);

// Lets the counts begin again at 0; NULL: those of all buffers.
TARN_API tarn_status tarn_synced_traffic_reset(tarn_synced *buffer);

// ---------------------------------------------------------------------------
// Trace
// ---------------------------------------------------------------------------

typedef enum tarn_synced_happening {
  TARN_SYNCED_CREATED = 1,
  TARN_SYNCED_DESTROYED = 2,
  TARN_SYNCED_ALLOCATED = 3,  // memory at |to|
  TARN_SYNCED_RELEASED = 4,   // the same, given back or let go
  TARN_SYNCED_WRAPPED = 5,    // outside memory at |to|
  TARN_SYNCED_COPIED = 6,   // one call of the device room, from |from| to |to|
  TARN_SYNCED_ZEROED = 7,   // unwritten bytes at |to|
  TARN_SYNCED_STALLED = 8,  // the host waited |ns| before an access at |to|
  TARN_SYNCED_LOST = 9,     // the only copy was at |from|
} tarn_synced_happening;

typedef struct tarn_synced_event {
  size_t struct_size;
  tarn_synced_happening what;
  bool queued;       // a copy on a stream, not done yet
  uint64_t id;       // of the buffer: no other of this process has it
  const char *name;  // of its options; "" if none
  tarn_place from;   // TARN_HOST where it says nothing
  tarn_place to;
  size_t offset;  // bytes of the whole buffer that it is about
  size_t size;
  uint64_t ns;  // how long a stall took, else 0
} tarn_synced_event;

typedef void tarn_synced_trace_fn(void *context,
                                  const tarn_synced_event *event);

// Tells |function| what happens to all buffers; NULL: nobody, as at the start.
// It is called on the thread of the call that does it, with no lock held, and
// must not call this room. When this returns no thread is in the former one any
// more.
//
// Cost: accesses of valid bytes are not told and cost nothing more.
// TARN_E_STATE  called from within such a function.
TARN_API TARN_MUST_CHECK tarn_status
tarn_synced_trace(tarn_synced_trace_fn *function, void *context);

// "created", "copied", ...; NULL for what is none.
TARN_API const char *tarn_synced_happening_name(tarn_synced_happening what);

// ---------------------------------------------------------------------------
// What is open
// ---------------------------------------------------------------------------

typedef struct tarn_synced_open {
  size_t struct_size;
  uint64_t id;
  const char *name;  // "" if none
  size_t size;
  size_t handles;   // the buffer and its views that are not destroyed
  size_t accesses;  // that are open
  size_t memory;    // bytes from pools, at all places
  size_t borrowed;  // bytes of outside memory, at all places
  // Of the access that has been open longest, where there is one:
  tarn_place place;
  uint32_t mode;
  size_t access_offset;
  size_t access_size;
} tarn_synced_open;

// The text of |open| lives for the call, in which the buffer may end.
typedef tarn_status tarn_synced_open_visit(void *context,
                                           const tarn_synced_open *open);

// Calls |visit| for each buffer that is not ended, the oldest first, until a
// status is not TARN_OK, which is returned then. At the end of a program: what
// it forgot. |visit| may call the library.
TARN_API TARN_MUST_CHECK tarn_status
tarn_synced_each_open(tarn_synced_open_visit *visit, void *context);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_TRAFFIC_H_
