// trace_data.h - a trace for the scripts of a page, as JSON.
//
// Long lists are base64 of little-endian arrays.
#ifndef TARN_TOOL_TRACE_DATA_H_
#define TARN_TOOL_TRACE_DATA_H_

#include <tarn/tarn.h>

#include "kit/json.h"
#include "layout.h"

// Writes into the object that |out| is in:
//
//    "events", "baseline",
//    "born": u32, "died": u32, "stack": u32, "size": f64      of each block
//    "time": f64 in us of each event, then the end; null without a clock
//    "frames": ["function  file:7", ...], "stacks": [[frame, ...], ...]
//
// A block of the baseline is born at 0; one never freed dies at |events|; one
// without a stack has stack 2^32 - 1.
void trace_data_write(json *out, const tarn_trace *trace);

// The keys "height" and "ranges": [["0x7f00", size, height], ...].
void trace_data_layout(json *out, const layout *l);

// One value of an array, of element |index|.
typedef uint32_t trace_data_uint(const void *context, size_t index);
typedef double trace_data_double(const void *context, size_t index);

// The key |key| with |count| values.
void trace_data_uints(json *out, const char *key, size_t count,
                      trace_data_uint *value_of, const void *context);
void trace_data_doubles(json *out, const char *key, size_t count,
                        trace_data_double *value_of, const void *context);

#endif  // TARN_TOOL_TRACE_DATA_H_
