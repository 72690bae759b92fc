// load.h - traces, by what the command line calls them.
#ifndef TARN_TOOL_LOAD_H_
#define TARN_TOOL_LOAD_H_

#include "kit/tool.h"

// Whether |name| is that of a workload, "@bert-layer", and not of a file.
bool load_is_workload(const char *name);

// Wrong use if |name| is a workload that there is not, or |options| choose a
// device of one. TOOL_DONE, or TOOL_MISUSE after a message.
tool_exit load_check(const tool_verb *verb, const char *name,
                     const tarn_trace_options *options);

// Reads or makes the trace, and reports its peculiarities on stderr: other
// devices, no history, parts that are left out, lost or unfinished. TOOL_DONE,
// or TOOL_NO after a message. Free it with tarn_trace_destroy.
tool_exit load_trace(const tool_verb *verb, const char *name,
                     const tarn_trace_options *options, tarn_trace **out_trace);

#endif  // TARN_TOOL_LOAD_H_
