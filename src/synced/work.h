// work.h - what streams are at, as a buffer sees it: marking it, waiting for
// it, and what becomes of it when a stream fails.
//
// All with the gate, which is left meanwhile where it says so.
#ifndef TARN_SYNCED_WORK_H_
#define TARN_SYNCED_WORK_H_

#include "synced/core.h"

// A place in a stream; lane NULL: nothing that could be waited for.
typedef struct tarn__synced_position {
  tarn__synced_timeline *lane;  // held
  uint64_t number;
} tarn__synced_position;

// Where |stream| stands now. If no mark can be had the host waits for it, and
// the position is none. Leaves the gate.
//
// TARN_E_DEVICE  the stream has failed, and nothing of it runs any more; its
//                lane was swept.
TARN_MUST_CHECK tarn_status
tarn__work_mark(tarn__synced_core *core, tarn_stream *stream,
                tarn__synced_position *out_position);

// Asks for the oldest position of |lane|, which the caller holds, that is not
// known to be reached. Leaves the gate.
//
// TARN_OK        it is reached, and another one may be.
// TARN_PENDING   it is not, or there is none.
// TARN_E_DEVICE  the stream has failed; its lane was swept.
TARN_MUST_CHECK tarn_status tarn__work_ask(tarn__synced_core *core,
                                           tarn__synced_timeline *lane);

// The host waits for |stream|. Leaves the gate.
//
// TARN_E_DEVICE  as above.
TARN_MUST_CHECK tarn_status tarn__work_wait(tarn__synced_core *core,
                                            tarn_stream *stream);

static inline void tarn__work_release(tarn__synced_position position) {
  if (position.lane != NULL) tarn__lane_release(position.lane);
}

// Takes a lane that has failed out of all spans: what it was to write, behind
// what is known to be done, is valid there no more.
void tarn__work_sweep(tarn__synced_core *core, tarn__synced_timeline *lane);

// Lets go of a mark that was held, with what came of query or wait, and sweeps
// its lane if that has failed.
void tarn__work_settle(tarn__synced_core *core, tarn__synced_point *mark,
                       tarn_status status);

// Takes uses out of |span| whose positions are known to be reached: else they
// would keep it from its neighbours, and accesses from the short way, for ever.
void tarn__work_prune(tarn__synced_core *core, tarn__synced_span *span);

#endif  // TARN_SYNCED_WORK_H_
