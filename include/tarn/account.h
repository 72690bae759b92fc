// account.h - what a pool counts besides tarn_pool_stats, its last events, and
// what is charged to it.
//
// The sums of tarn_pool_stats are always kept. What costs more can be switched,
// at any time, with blocks out; `tarn bench counters` tells what each takes on
// a machine.
#ifndef TARN_ACCOUNT_H_
#define TARN_ACCOUNT_H_

#include "tarn/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

// What can be switched.
enum {
  // By tag: live bytes, their peak, live blocks. A block counts from its alloc
  // to its free if this was on at its alloc.
  TARN_COUNT_TAGS = 1 << 0,
  // live_peak_bytes is exact. Off: it is looked at when the device is asked,
  // when blocks are resized, and by tarn_pool_query.
  TARN_COUNT_PEAKS = 1 << 1,
  // The last events are kept, for tarn_pool_events. While it is on, arena_pool
  // plays no steps: each event is written when it comes.
  TARN_COUNT_EVENTS = 1 << 2,
  // ... with the time of each.
  TARN_COUNT_TIMES = 1 << 3,

  TARN_COUNT_DEFAULT = TARN_COUNT_TAGS | TARN_COUNT_PEAKS,
};

// Switches exactly |counters| on. Switching events off keeps those that were
// written. Steps that arena_pool has learned are learned anew if anything was
// switched.
//
// Cost:           O(1); events for the first time take the memory of the ring.
// TARN_E_INVALID  a bit that is none. Nothing has changed.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_account(tarn_pool *pool,
                                                       uint32_t counters);

// Sets how many events are kept: |count|, rounded up to a power of two; 4096
// unless set. The newest of those that were written stay. 0 frees the ring, and
// switches events off.
//
// Cost:           64 bytes of host memory for each; those that stay are copied.
// TARN_E_INVALID  too many. Nothing has changed.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_account_ring(tarn_pool *pool,
                                                            size_t count);

typedef enum tarn_pool_event_kind {
  TARN_POOL_EVENT_ALLOC = 1,    // a block was taken
  TARN_POOL_EVENT_FREE = 2,     // ... and has come back
  TARN_POOL_EVENT_RESIZE = 3,   // ... was |size_before| bytes
  TARN_POOL_EVENT_FAIL = 4,     // a request was not served; |status| says why
  TARN_POOL_EVENT_GROW = 5,     // memory of the device came
  TARN_POOL_EVENT_SHRINK = 6,   // ... and went
  TARN_POOL_EVENT_SWITCH = 7,   // the strategy was exchanged
  TARN_POOL_EVENT_MAP = 8,      // pages of a range got memory
  TARN_POOL_EVENT_UNMAP = 9,    // ... and lost it, be it to other pages
  TARN_POOL_EVENT_CHARGE = 10,  // others took memory of the device
  TARN_POOL_EVENT_DISCHARGE = 11,  // ... and gave it back
} tarn_pool_event_kind;

// Numbers are a pool's own, count up by one and never come again. Blocks of two
// allocs at one address are told apart by the free between them. Sums over GROW
// and MAP less those over SHRINK and UNMAP are reserved_bytes.
typedef struct tarn_pool_event {
  uint64_t number;
  uint64_t time_ns;    // of a clock that only goes forward; 0: not asked for
  tarn_addr address;   // of the block, or of the device's memory; 0: it has
                       // none, as pages that stand nowhere
  size_t size;         // bytes: of blocks those that were asked for
  size_t size_before;  // RESIZE; else 0
  uint64_t stream;     // serial: of the request, or in whose order the memory
                       // is free; 0: the host
  uint32_t thread;     // a number of the process's, from 1 on
  tarn_tag tag;        // of the block, or of the request
  tarn_pool_event_kind kind;
  tarn_status status;  // FAIL: why; else TARN_OK
} tarn_pool_event;

// Copies events from number |from| on, oldest first, |room| at most, to |out|.
// What is no more there is passed over: out[0].number less |from| are lost.
// |*out_next| is the number to go on with. As of one moment; none is taken out,
// so that several may read.
//
//   uint64_t next = 0;
//   do {
//     tarn_pool_events(pool, next, events, 256, &count, &next);
//     ... events[0] to events[count - 1] ...
//   } while (count == 256);
//
// Cost:           a copy, with the pool locked meanwhile.
// TARN_E_INVALID  |out| is NULL, and |room| is not 0.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_events(tarn_pool *pool, uint64_t from, tarn_pool_event *out,
                 size_t room, size_t *out_count, uint64_t *out_next);

// ---------------------------------------------------------------------------
// Charges
// ---------------------------------------------------------------------------

// Puts |size| bytes on the books of |pool| that somebody takes of its device at
// its place without it: the parts of a whole (tarn/whole.h), what a library of
// kernels keeps for itself. They count against the limit and under |tag|, as
// charged_bytes; reserved_bytes and live_bytes are without them, snapshots too,
// and no strategy knows of them. Charge before taking: who is refused then has
// nothing to give back.
//
// Where the limit leaves no room some is made, as for a block: idle memory goes
// back to the device, and then the program is asked (tarn_pool_on_full).
//
// Lifetime:       until tarn_pool_discharge; before, the pool cannot end, nor
//                 its device close.
// Cost:           O(1), if there is room.
// TARN_FULL       the limit leaves no room. The text says what that of
//                 tarn_pool_alloc does.
// TARN_E_INVALID  a tag that tarn_pool_tag has not given.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_charge(tarn_pool *pool,
                                                      size_t size,
                                                      tarn_tag tag);

// Takes |size| bytes of what is charged under |tag| off the books again, once
// the memory has gone back. It may be a part of one charge, or several.
//
// TARN_E_INVALID  not as much is charged, or no such tag. Nothing has changed.
TARN_API tarn_status tarn_pool_discharge(tarn_pool *pool, size_t size,
                                         tarn_tag tag);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_ACCOUNT_H_
