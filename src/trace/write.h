// write.h - a writer per format; write.c chooses.
#ifndef TARN_TRACE_WRITERS_H_
#define TARN_TRACE_WRITERS_H_

#include "trace/sink.h"

// Each puts all of |trace| into |sink|, whose own failures show at its end.
//
// TARN_E_NOMEM  no host memory for what it keeps meanwhile.
typedef tarn_status tarn__trace_writer(const tarn_trace *trace,
                                       tarn__trace_sink *sink);

TARN_MUST_CHECK tarn_status tarn__log_write(const tarn_trace *trace,
                                            tarn__trace_sink *sink);
TARN_MUST_CHECK tarn_status tarn__snapshot_write(const tarn_trace *trace,
                                                 tarn__trace_sink *sink);
TARN_MUST_CHECK tarn_status tarn__perfetto_write(const tarn_trace *trace,
                                                 tarn__trace_sink *sink);

#endif  // TARN_TRACE_WRITERS_H_
