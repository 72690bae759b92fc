// preload.h - programs into which no library can be preloaded.
#ifndef TARN_TOOL_PRELOAD_H_
#define TARN_TOOL_PRELOAD_H_

#include <stdbool.h>

// Why the system preloads nothing into |program|, found as execvp does, as in
// "is linked statically"; NULL if nothing is known against it.
const char *preload_refused(const char *program);

// Whether |program|, found likewise, has a malloc of its own, which it calls
// whatever is preloaded. False if that cannot be read.
bool preload_has_malloc(const char *program);

#endif  // TARN_TOOL_PRELOAD_H_
