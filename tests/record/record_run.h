// record_run.h - runs a program with the recorder preloaded, and reads what it
// wrote.
//
//   tool_files_begin();
//   tool_output o = record("", "heap", NULL);
//   tarn_trace *trace = recorded("");
#ifndef TARN_TESTS_RECORD_RECORD_RUN_H_
#define TARN_TESTS_RECORD_RECORD_RUN_H_

#include <stdbool.h>

#include "support/tool_run.h"
#include "tarn/trace.h"

// Whether a sanitizer's malloc stands where the recorder would; then |main| is
// left with record_skip.
bool record_cannot(void);
int record_skip(void);

// Runs the victim (record_victim.c) in a mode, perhaps with an argument, and
// with one more setting "NAME=VALUE", or "". It has to succeed.
tool_output record(const char *setting, const char *mode, const char *argument);

// The file that the recorder was told, with a suffix; until the next call.
const char *record_path(const char *suffix);

// That file's trace. The device: of the host, or of those of a plug-in.
tarn_trace *recorded(const char *suffix);
tarn_trace *recorded_device(const char *suffix, uint32_t device);

// What nobody freed.
uint64_t record_live_bytes(const tarn_trace *trace);

// How many blocks of |size| bytes there are that were freed, or were not.
size_t record_count(const tarn_trace *trace, uint64_t size, bool freed);

// Becomes the victim, with its stdout as it is; in a child.
_Noreturn void record_become(const char *mode);

#endif  // TARN_TESTS_RECORD_RECORD_RUN_H_
