// work.h - what streams are at, as a buffer sees it: marking it, waiting for
// it, and what becomes of it when a stream fails.
//
// All with the lock, which is left meanwhile where it says so.
#ifndef TARN_SYNCED_WORK_H_
#define TARN_SYNCED_WORK_H_

#include "synced/core.h"

// A place in a stream; timeline NULL: nothing that could be waited for.
typedef struct tarn__synced_position {
  tarn__synced_timeline *timeline;  // held
  uint64_t number;
} tarn__synced_position;

// Where |stream| stands now. If no point can be had the host waits for it, and
// the position is none. Leaves the lock.
//
// TARN_E_DEVICE  the stream has failed, and nothing of it runs any more; its
//                timeline was swept.
TARN_MUST_CHECK tarn_status
tarn__work_point(tarn__synced_core *core, tarn_stream *stream,
                 tarn__synced_position *out_position);

// Asks for the oldest position of |timeline|, which the caller holds, that is
// not known to be reached. Leaves the lock.
//
// TARN_OK        it is reached, and another one may be.
// TARN_PENDING   it is not, or there is none.
// TARN_E_DEVICE  the stream has failed; its timeline was swept.
TARN_MUST_CHECK tarn_status tarn__work_ask(tarn__synced_core *core,
                                           tarn__synced_timeline *timeline);

// The host waits for |stream|. Leaves the lock.
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

// Returns when no use of the side's memory is left in the range: the host waits
// for streams, and for threads. |side| TARN__NO_SIDE: of any side. With the
// lock, which is left meanwhile; while it is held nothing new comes. A timeline
// that failed is taken out of the spans, and what it was to write is void.
//
// TARN_E_NOMEM, or TARN_E_STATE in a callback: uses are left.
TARN_MUST_CHECK tarn_status tarn__side_rest(tarn__synced_core *core,
                                            uint32_t side, size_t start,
                                            size_t end);

// --- looking, without waiting
// ------------------------------------------------- A bit of a span's |valid|
// says that the newest bytes are at a side, or will be. Bytes under way show in
// the uses; bytes that a failed stream was to bring are void, even before the
// span says so.

// Asks all streams that are at work on the buffer how far they are, and waits
// for none. With the lock, which is left meanwhile.
void tarn__core_settle(tarn__synced_core *core);

// The sides that have the newest bytes, or will have.
uint64_t tarn__span_newest(const tarn__synced_span *span);

// The sides to which bytes are still on their way.
uint64_t tarn__span_pending(const tarn__synced_span *span);

// Whether there is a use of the side's memory; with the lock.
bool tarn__core_is_in_use(const tarn__synced_core *core, uint32_t side);

// Whether a thread of the library copies in the range just now, which it will
// commit; with the lock.
bool tarn__core_is_copying(const tarn__synced_core *core, size_t start,
                           size_t end);

// A run of bytes.
typedef struct tarn__synced_run {
  size_t start;
  size_t end;
} tarn__synced_run;

// Whether a span is one of those that are looked for.
typedef bool tarn__synced_span_test(const tarn__synced_span *span,
                                    uint32_t side);

// Written, and valid at |side| alone; where an open access writes it does not
// count.
tarn__synced_span_test tarn__span_is_only_at;

// Not lost, and not valid at |side|.
tarn__synced_span_test tarn__span_is_missing_at;

// The first run at or behind |from| of spans that all pass the test, if there
// is one. With the lock.
bool tarn__core_find_run(const tarn__synced_core *core, size_t from,
                         uint32_t side, tarn__synced_span_test *test,
                         tarn__synced_run *out_run);

#endif  // TARN_SYNCED_WORK_H_
