// settle.h - looking at a buffer: what has landed, without waiting for it, who
// is at work there, and runs of bytes that have something in common.
//
// A bit of a span's |valid| says that the newest bytes are at a side, or will
// be. What is still on its way shows in the uses; what a stream that failed was
// to bring is void, also where nobody has taken it out yet.
#ifndef TARN_SYNCED_SETTLE_H_
#define TARN_SYNCED_SETTLE_H_

#include "synced/core.h"

// Asks all streams that are at work on the buffer how far they are, and waits
// for none. With the gate, which is left meanwhile.
void tarn__core_settle(tarn__synced_core *core);

// The sides that have the newest bytes, or will have.
uint64_t tarn__span_newest(const tarn__synced_span *span);

// The sides to which bytes are still on their way.
uint64_t tarn__span_pending(const tarn__synced_span *span);

// TARN_E_INVALID  no place.
TARN_MUST_CHECK tarn_status tarn__place_check(tarn_place place);

// Whether there is a use of the side's memory; with the gate.
bool tarn__core_is_in_use(const tarn__synced_core *core, uint32_t side);

// Whether a thread of the library copies in the range just now, which it will
// commit; with the gate.
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
// is one. With the gate.
bool tarn__core_find_run(const tarn__synced_core *core, size_t from,
                         uint32_t side, tarn__synced_span_test *test,
                         tarn__synced_run *out_run);

// Makes such runs of the whole buffer valid at |place|; none is left if nobody
// is quick to make one. With the gate, which is left meanwhile.
//
// Errors as of tarn_synced_begin; those before are valid there then.
TARN_MUST_CHECK tarn_status tarn__core_fetch_runs(tarn__synced_core *core,
                                                  uint32_t side,
                                                  tarn__synced_span_test *test,
                                                  tarn_place place);

#endif  // TARN_SYNCED_SETTLE_H_
