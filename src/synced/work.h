// work.h - the work of streams on a buffer: points, waits, and failed streams.
//
// All with the lock. "Leaves the lock": it is released and taken again.
#ifndef TARN_SYNCED_WORK_H_
#define TARN_SYNCED_WORK_H_

#include "synced/core.h"

// A point in a stream; timeline NULL: there is nothing to wait for.
typedef struct tarn__synced_position {
  tarn__synced_timeline *timeline;  // held
  uint64_t number;
} tarn__synced_position;

// Makes a point at the current end of |stream|. If that fails, the host waits
// for the stream and the timeline is NULL. Leaves the lock.
//
// TARN_E_DEVICE  the stream has failed and its work is over; its timeline was
//                swept.
TARN_MUST_CHECK tarn_status
tarn__work_point(tarn__synced_core *core, tarn_stream *stream,
                 tarn__synced_position *out_position);

// The host waits for |stream|. Leaves the lock.
//
// TARN_E_DEVICE  as above.
TARN_MUST_CHECK tarn_status tarn__work_wait(tarn__synced_core *core,
                                            tarn_stream *stream);

static inline void tarn__work_release(tarn__synced_position position) {
  if (position.timeline != NULL) tarn__timeline_release(position.timeline);
}

// Releases a held point with the result of a query or wait, and sweeps its
// timeline if that has failed.
void tarn__work_settle(tarn__synced_core *core, tarn__synced_point *point,
                       tarn_status status);

// Removes uses of |span| whose points are known to be reached. Otherwise they
// would prevent joins, and the short way of accesses, forever.
void tarn__work_prune(tarn__synced_core *core, tarn__synced_span *span);

// Waits until the range has no uses of the side's memory (TARN__NO_SIDE: of any
// side): the host waits for streams and threads. Failed timelines are swept.
// Leaves the lock; on return, with the lock held, there are no uses.
//
// TARN_E_NOMEM, or TARN_E_STATE in a callback: uses are left.
TARN_MUST_CHECK tarn_status tarn__side_rest(tarn__synced_core *core,
                                            uint32_t side, size_t start,
                                            size_t end);

// --- looking, without waiting ------------------------------------------------
// A bit of |valid| says that a side has the newest bytes or will have them.
// Copies under way are uses.

// Queries all streams that use the buffer, without waiting. Leaves the lock.
void tarn__core_settle(tarn__synced_core *core);

// The sides with writes under way.
uint64_t tarn__span_pending(const tarn__synced_span *span);

// Whether the side's memory has a use that is not known to be over.
bool tarn__core_is_in_use(tarn__synced_core *core, uint32_t side);

// Whether a thread copies into the range now, and will commit.
bool tarn__core_is_copying(const tarn__synced_core *core, size_t start,
                           size_t end);

// A run of bytes.
typedef struct tarn__synced_run {
  size_t start;
  size_t end;
} tarn__synced_run;

// A condition on a span.
typedef bool tarn__synced_span_test(const tarn__synced_span *span,
                                    uint32_t side);

// Written, and valid at |side| alone, not counting the side of an open write.
tarn__synced_span_test tarn__span_is_only_at;

// Not lost, and not valid at |side|.
tarn__synced_span_test tarn__span_is_missing_at;

// The first run at or behind |from| of spans that pass the test; false: none.
bool tarn__core_find_run(const tarn__synced_core *core, size_t from,
                         uint32_t side, tarn__synced_span_test *test,
                         tarn__synced_run *out_run);

#endif  // TARN_SYNCED_WORK_H_
