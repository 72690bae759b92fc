// view_trace.h - traces of any length to look at, always the same.
#ifndef TARN_BENCH_VIEW_TRACE_H_
#define TARN_BENCH_VIEW_TRACE_H_

#include <tarn/tarn.h>
#include <tarn/trace_build.h>

// Makes a trace of |events| events as training has them: weights that stay,
// steps in which activations pile up and are freed backwards, short-lived
// blocks in between, out of segments of the device, under some 300 frames. The
// same number always gives the same trace.
//
// Lifetime: free it with tarn_trace_destroy.
// Errors:   as of tarn_trace_builder_finish.
TARN_MUST_CHECK tarn_status view_trace_make(size_t events,
                                            tarn_trace **out_trace);

#endif  // TARN_BENCH_VIEW_TRACE_H_
