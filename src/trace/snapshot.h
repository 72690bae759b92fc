// snapshot.h - PyTorch memory snapshots as traces.
#ifndef TARN_TRACE_SNAPSHOT_H_
#define TARN_TRACE_SNAPSHOT_H_

#include "base/budget.h"
#include "tarn/trace.h"

// As tarn_trace_read_bytes, within |budget|; |options| are whole.
TARN_MUST_CHECK tarn_status tarn__snapshot_read(
    tarn__budget *budget, const char *name, const void *bytes, size_t size,
    const tarn_trace_options *options, tarn_trace **out_trace);

#endif  // TARN_TRACE_SNAPSHOT_H_
