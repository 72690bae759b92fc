// trace_write.h - writes traces to files, in Tarn's format and others'.
//
//   tarn_trace_write(trace, TARN_TRACE_FORMAT_PERFETTO, "run.json");
#ifndef TARN_TRACE_WRITE_H_
#define TARN_TRACE_WRITE_H_

#include "tarn/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tarn_trace_format {
  // Tarn's own, compact: docs/trace-format.md. Keeps all of a trace.
  TARN_TRACE_FORMAT_TARN = 1,
  // The format of torch.cuda.memory._dump_snapshot(), in pickle protocol 4, for
  // PyTorch's own viewers. Blocks outside all segments get segments of their
  // own; a tag becomes a frame of file "tag" at the outer end of the stack.
  TARN_TRACE_FORMAT_PYTORCH = 2,
  // JSON in the Chrome trace event format, for Perfetto: a span per block,
  // counters, and each stack and long text once. Not read back.
  TARN_TRACE_FORMAT_PERFETTO = 3,
} tarn_trace_format;

// "tarn", "pytorch", "perfetto"; NULL for an unknown format.
TARN_API const char *tarn_trace_format_name(tarn_trace_format format);

// Writes |trace| to the file at |path|. An existing file is replaced as a whole
// or not at all.
//
// Cost:           linear in the trace; host memory for tables of numbers, not
//                 for the written bytes.
// TARN_E_IO       the file cannot be written; the text says which and why.
// TARN_E_INVALID  no such format, or an argument is NULL.
// TARN_E_NOMEM    no host memory.
// TARN_E_UNSUPPORTED  the format needs addresses, and the trace's blocks
//                 without one do not fit into 64 bits of addresses.
TARN_API TARN_MUST_CHECK tarn_status tarn_trace_write(const tarn_trace *trace,
                                                      tarn_trace_format format,
                                                      const char *path);

// Receives the next |size| bytes of a file. A status other than TARN_OK ends
// the writing and is returned by it.
typedef tarn_status tarn_trace_sink_fn(void *context, const void *bytes,
                                       size_t size);

// Writes to |sink|, at most 64 KiB at a time.
TARN_API TARN_MUST_CHECK tarn_status
tarn_trace_write_to(const tarn_trace *trace, tarn_trace_format format,
                    tarn_trace_sink_fn *sink, void *context);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_TRACE_WRITE_H_
