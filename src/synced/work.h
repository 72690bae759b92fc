// work.h - what streams are at, as a buffer sees it: marking it, waiting for
// it, and what becomes of it when a stream fails.
//
// All with the gate, which is left meanwhile where it says so.
#ifndef TARN_SYNCED_WORK_H_
#define TARN_SYNCED_WORK_H_

#include "synced/core.h"

// A place in a stream; timeline NULL: nothing that could be waited for.
typedef struct tarn__synced_position {
  tarn__synced_timeline *timeline;  // held
  uint64_t number;
} tarn__synced_position;

// Where |stream| stands now. If no point can be had the host waits for it, and
// the position is none. Leaves the gate.
//
// TARN_E_DEVICE  the stream has failed, and nothing of it runs any more; its
//                timeline was swept.
TARN_MUST_CHECK tarn_status
tarn__work_point(tarn__synced_core *core, tarn_stream *stream,
                 tarn__synced_position *out_position);

// Asks for the oldest position of |timeline|, which the caller holds, that is
// not known to be reached. Leaves the gate.
//
// TARN_OK        it is reached, and another one may be.
// TARN_PENDING   it is not, or there is none.
// TARN_E_DEVICE  the stream has failed; its timeline was swept.
TARN_MUST_CHECK tarn_status tarn__work_ask(tarn__synced_core *core,
                                           tarn__synced_timeline *timeline);

// The host waits for |stream|. Leaves the gate.
//
// TARN_E_DEVICE  as above.
TARN_MUST_CHECK tarn_status tarn__work_wait(tarn__synced_core *core,
                                            tarn_stream *stream);

static inline void tarn__work_release(tarn__synced_position position) {
  if (position.timeline != NULL) tarn__timeline_release(position.timeline);
}

// Takes a timeline that has failed out of all spans: what it was to write,
// behind what is known to be done, is valid there no more.
void tarn__work_sweep(tarn__synced_core *core, tarn__synced_timeline *timeline);

// Lets go of a point that was held, with what came of query or wait, and sweeps
// its timeline if that has failed.
void tarn__work_settle(tarn__synced_core *core, tarn__synced_point *point,
                       tarn_status status);

// Takes uses out of |span| whose positions are known to be reached: else they
// would keep it from its neighbours, and accesses from the short way, for ever.
void tarn__work_prune(tarn__synced_core *core, tarn__synced_span *span);

#endif  // TARN_SYNCED_WORK_H_
