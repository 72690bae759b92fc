// rename.h - a copy of a trace that calls its frames something else.
#ifndef TARN_TOOL_RENAME_H_
#define TARN_TOOL_RENAME_H_

#include <tarn/trace.h>

enum { RENAME_MOST = 32 };  // frames that one frame can become

// Writes to |out| what |frame| becomes, innermost first, and returns how many
// those are; 0: it stays. Called once for each frame of a trace. The texts are
// needed until rename_trace returns.
typedef size_t rename_fn(void *context, const tarn_trace_frame *frame,
                         tarn_trace_frame out[RENAME_MOST]);

// Called |name|, all of |trace| but which device of several it is. Free it with
// tarn_trace_destroy. Fails as a tarn_trace_builder does.
TARN_MUST_CHECK tarn_status rename_trace(const tarn_trace *trace,
                                         const char *name, rename_fn *rename,
                                         void *context, tarn_trace **out_trace);

#endif  // TARN_TOOL_RENAME_H_
