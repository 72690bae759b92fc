// looks.h - what a file that is no trace looks like, by its first bytes.
#ifndef TARN_TOOL_LOOKS_H_
#define TARN_TOOL_LOOKS_H_

#include <stdbool.h>

// Whether |error|, tarn_trace_read's text, says that the file is of no format
// that has traces, and not that it is a damaged one.
bool looks_foreign(const char *error);

// "a checkpoint or another zip archive"; NULL if nothing is known of it or it
// cannot be read.
const char *looks_like(const char *path);

#endif  // TARN_TOOL_LOOKS_H_
