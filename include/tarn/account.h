// account.h - optional counters of a pool, its last events, and charges.
//
// The sums in tarn_pool_stats are always kept. Counters that cost more can be
// switched at any time, also with live blocks; `tarn bench counters` measures
// the cost of each.
//
//   tarn_pool_account(pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS);
//   ... requests and frees ...
//   tarn_pool_events(pool, 0, events, 256, &count, &next);
#ifndef TARN_ACCOUNT_H_
#define TARN_ACCOUNT_H_

#include "tarn/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

// The counters.
enum {
  // Live bytes, their peak and live blocks of each tag. A block is counted if
  // this was on when it was allocated.
  TARN_COUNT_TAGS = 1 << 0,
  // An exact live_peak_bytes. Off: it is updated by calls of the device,
  // tarn_pool_resize and tarn_pool_query.
  TARN_COUNT_PEAKS = 1 << 1,
  // The last events, for tarn_pool_events. While this is on, arena_pool follows
  // no steps: each event is written when it happens.
  TARN_COUNT_EVENTS = 1 << 2,
  // The time of each event.
  TARN_COUNT_TIMES = 1 << 3,

  TARN_COUNT_DEFAULT = TARN_COUNT_TAGS | TARN_COUNT_PEAKS,
};

// Switches exactly |counters| on. Events that were written stay readable when
// events are switched off. A change makes arena_pool learn its steps anew.
//
// Cost:           O(1); switching events on for the first time allocates the
//                 ring.
// TARN_E_INVALID  an unknown bit. Nothing has changed.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_account(tarn_pool *pool,
                                                       uint32_t counters);

// Sets how many events are kept: |count| rounded up to a power of two, 4096 by
// default. The newest events stay. 0 frees the ring and switches events off.
//
// Cost:           64 bytes of host memory for each event; kept events are
//                 copied.
// TARN_E_INVALID  too many. Nothing has changed.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_account_ring(tarn_pool *pool,
                                                            size_t count);

typedef enum tarn_pool_event_kind {
  TARN_POOL_EVENT_ALLOC = 1,   // a block was allocated
  TARN_POOL_EVENT_FREE = 2,    // ... and freed
  TARN_POOL_EVENT_RESIZE = 3,  // ... resized from |size_before| bytes
  TARN_POOL_EVENT_FAIL = 4,    // a request failed with |status|
  TARN_POOL_EVENT_GROW = 5,    // memory came from the device
  TARN_POOL_EVENT_SHRINK = 6,  // ... and went back
  TARN_POOL_EVENT_SWITCH = 7,  // the strategy was replaced
  TARN_POOL_EVENT_MAP = 8,     // pages of a range got memory
  TARN_POOL_EVENT_UNMAP =
      9,  // ... and lost it, to the device or to other pages
  TARN_POOL_EVENT_CHARGE = 10,     // others took memory of the device
  TARN_POOL_EVENT_DISCHARGE = 11,  // ... and gave it back
} tarn_pool_event_kind;

// Numbers belong to the pool, count up by one and are never reused. Two allocs
// at one address have the free between them. The sum of GROW and MAP less
// SHRINK and UNMAP is reserved_bytes.
typedef struct tarn_pool_event {
  uint64_t number;
  uint64_t time_ns;    // of a monotonic clock; 0: not recorded
  tarn_addr address;   // of the block or the device's memory; 0: none, as for
                       // pages that are not mapped
  size_t size;         // bytes; of blocks as requested
  size_t size_before;  // RESIZE; else 0
  uint64_t stream;     // serial of the request's stream, or of the stream in
                       // whose order the memory is free; 0: the host
  uint32_t thread;     // number of the thread in the process, from 1
  tarn_tag tag;        // of the block, or of the request
  tarn_pool_event_kind kind;
  tarn_status status;  // FAIL: why; else TARN_OK
} tarn_pool_event;

// Copies at most |room| events to |out|, oldest first, from number |from| on.
// Events that are no longer kept are skipped: out[0].number - from are lost.
// |*out_next| is the number to continue with. The copy is consistent and
// removes nothing, so several readers are possible.
//
//   uint64_t next = 0;
//   do {
//     tarn_pool_events(pool, next, events, 256, &count, &next);
//     ... events[0] to events[count - 1] ...
//   } while (count == 256);
//
// Cost:           a copy, with the pool locked meanwhile.
// TARN_E_INVALID  |out| is NULL and |room| is not 0.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_events(tarn_pool *pool, uint64_t from, tarn_pool_event *out,
                 size_t room, size_t *out_count, uint64_t *out_next);

// ---------------------------------------------------------------------------
// Charges
// ---------------------------------------------------------------------------

// Counts |size| bytes in |pool| that others allocate from its device without
// it: parts of whole memory (tarn/whole.h), workspace of a library of kernels.
// They count against the limit and under |tag| as charged_bytes, but not in
// reserved_bytes, live_bytes or snapshots, and strategies do not see them.
// Charge before allocating: then a refusal needs no clean-up.
//
// If the limit leaves no room, idle memory is reclaimed as for a block, and
// then the program's function is called (tarn_pool_on_full).
//
// Lifetime:       until tarn_pool_discharge, before which neither the pool can
//                 be destroyed nor its device closed.
// Cost:           O(1), if there is room.
// TARN_FULL       the limit leaves no room, with the text of tarn_pool_alloc.
// TARN_E_INVALID  a tag that tarn_pool_tag has not returned.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_charge(tarn_pool *pool,
                                                      size_t size,
                                                      tarn_tag tag);

// Ends the charge of |size| bytes under |tag|, after the memory has gone back.
// They may be a part of one charge, or several charges.
//
// TARN_E_INVALID  less is charged, or no such tag. Nothing has changed.
TARN_API tarn_status tarn_pool_discharge(tarn_pool *pool, size_t size,
                                         tarn_tag tag);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_ACCOUNT_H_
