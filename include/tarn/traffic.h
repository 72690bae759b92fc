// traffic.h - counts of the copies of synced buffers and of copies avoided, a
// trace of their events, and a list of open buffers.
//
//   static tarn_status print(void *context, const tarn_traffic *t) {
//     (void)context;
//     printf("%llu copies, %llu bytes\n", (unsigned long long)t->copies,
//            (unsigned long long)t->bytes_moved);
//     return TARN_OK;
//   }
//   ...
//   tarn_synced_traffic_reset(NULL);
//   train_one_batch();
//   tarn_synced_traffic(NULL, print, NULL);  // for each pair of places
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

// Copies from one place to another since the buffer was created or the counts
// were reset. Bytes that were not copied count for the place that a scheme of
// whole buffers would have copied from; bytes that were valid have |from| equal
// to |to|.
typedef struct tarn_traffic {
  size_t struct_size;
  tarn_place from;
  tarn_place to;
  uint64_t copies;           // calls of copy functions
  uint64_t bytes_moved;      // by these copies
  uint64_t bytes_valid;      // accessed, and valid before
  uint64_t bytes_discarded;  // stale, but overwritten by the access
  uint64_t bytes_outside;    // stale, but outside the range of the access
  uint64_t stalls;           // waits of the host for streams or other threads
  uint64_t stalled_ns;
} tarn_traffic;

// Called for each pair of places with a count other than 0. A status other than
// TARN_OK stops the calls and is returned. The function may call the library.
typedef tarn_status tarn_traffic_visit(void *context,
                                       const tarn_traffic *traffic);

// Tells the counts of a buffer, also if |buffer| is a view of a part; NULL: the
// sums over all buffers that exist now.
//
// Cost: a copy of the counts of the buffer, or of all buffers.
TARN_API TARN_MUST_CHECK tarn_status tarn_synced_traffic(
    tarn_synced *buffer, tarn_traffic_visit *visit, void *context);

// Resets the counts to 0; NULL: those of all buffers.
TARN_API tarn_status tarn_synced_traffic_reset(tarn_synced *buffer);

// ---------------------------------------------------------------------------
// Trace
// ---------------------------------------------------------------------------

typedef enum tarn_synced_happening {
  TARN_SYNCED_CREATED = 1,
  TARN_SYNCED_DESTROYED = 2,
  TARN_SYNCED_ALLOCATED = 3,  // memory at |to|
  TARN_SYNCED_RELEASED = 4,   // memory at |to|, to its pool or owner
  TARN_SYNCED_WRAPPED = 5,    // outside memory at |to|
  TARN_SYNCED_COPIED = 6,     // one copy from |from| to |to|
  TARN_SYNCED_ZEROED = 7,     // unwritten bytes at |to|
  TARN_SYNCED_STALLED = 8,    // the host waited |ns| before an access at |to|
  TARN_SYNCED_LOST = 9,       // bytes whose only copy was at |from|
} tarn_synced_happening;

typedef struct tarn_synced_event {
  size_t struct_size;
  tarn_synced_happening what;
  bool queued;       // a copy that is queued on a stream
  uint64_t id;       // of the buffer, unique in this process
  const char *name;  // of the buffer's options; "" if none
  tarn_place from;   // TARN_HOST where it does not apply
  tarn_place to;
  size_t offset;  // range of the event in the whole buffer
  size_t size;
  uint64_t ns;  // duration of a stall, else 0
} tarn_synced_event;

typedef void tarn_synced_trace_fn(void *context,
                                  const tarn_synced_event *event);

// Sets the function that is told the events of all buffers; NULL: none, the
// default. It is called on the thread that causes the event, with no lock held,
// and must not call functions of synced.h or of this header. When this call
// returns, no thread is inside the previous function.
//
// Cost: accesses of valid bytes cause no event and cost nothing more.
// TARN_E_STATE  called from within such a function.
TARN_API TARN_MUST_CHECK tarn_status
tarn_synced_trace(tarn_synced_trace_fn *function, void *context);

// "created", "copied", ...; NULL for an unknown event.
TARN_API const char *tarn_synced_happening_name(tarn_synced_happening what);

// ---------------------------------------------------------------------------
// Open buffers
// ---------------------------------------------------------------------------

typedef struct tarn_synced_open {
  size_t struct_size;
  uint64_t id;
  const char *name;  // "" if none
  size_t size;
  size_t handles;   // of the buffer and its views
  size_t accesses;  // open ones
  size_t memory;    // bytes from pools, at all places
  size_t borrowed;  // bytes of outside memory, at all places
  // The access that has been open longest, if there is one:
  tarn_place place;
  uint32_t mode;
  size_t access_offset;
  size_t access_size;
} tarn_synced_open;

// The name in |open| lives for the call. The call may destroy the buffer.
typedef tarn_status tarn_synced_open_visit(void *context,
                                           const tarn_synced_open *open);

// Calls |visit| for each buffer, the oldest first; at the end of a program, for
// those it forgot to destroy. A status other than TARN_OK stops the calls and
// is returned. |visit| may call the library.
TARN_API TARN_MUST_CHECK tarn_status
tarn_synced_each_open(tarn_synced_open_visit *visit, void *context);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_TRAFFIC_H_
