// trace_write.h - traces into files that Tarn and others read.
#ifndef TARN_TRACE_WRITE_H_
#define TARN_TRACE_WRITE_H_

#include "tarn/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tarn_trace_format {
  // Tarn's own, compact: docs/trace-format.md. All of a trace.
  TARN_TRACE_FORMAT_TARN = 1,
  // What torch.cuda.memory._dump_snapshot() writes, in pickle protocol 4, for
  // PyTorch's own viewers. A trace without segments gets those that its blocks
  // need; tags become a frame of file "tag" at the outer end of stacks.
  TARN_TRACE_FORMAT_PYTORCH = 2,
  // JSON in the Chrome trace event format, for Perfetto: a span per block,
  // counters, and each stack and long text once. Not read back.
  TARN_TRACE_FORMAT_PERFETTO = 3,
} tarn_trace_format;

// "tarn", "pytorch", "perfetto"; NULL for what is none.
TARN_API const char *tarn_trace_format_name(tarn_trace_format format);

// Writes |trace| to the file at |path|. What stood there is replaced by a whole
// file or not at all.
//
// Cost:           linear in the trace; host memory for what its parts are
//                 numbered by, not for what is written.
// TARN_E_IO       the file cannot be written; the text says which and why.
// TARN_E_INVALID  no such format, or an argument is NULL.
// TARN_E_NOMEM    no host memory.
// TARN_E_UNSUPPORTED  blocks without an address, for which the format needs
//                 one, do not fit into 64 bits of addresses.
TARN_API TARN_MUST_CHECK tarn_status tarn_trace_write(const tarn_trace *trace,
                                                      tarn_trace_format format,
                                                      const char *path);

// Takes |size| bytes of a file, in order. Any status but TARN_OK ends the
// writing, and becomes its status.
typedef tarn_status tarn_trace_sink_fn(void *context, const void *bytes,
                                       size_t size);

// The same into |sink|, which is called with at most 64 KiB at a time.
TARN_API TARN_MUST_CHECK tarn_status
tarn_trace_write_to(const tarn_trace *trace, tarn_trace_format format,
                    tarn_trace_sink_fn *sink, void *context);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_TRACE_WRITE_H_
