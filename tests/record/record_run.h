// record_run.h - runs a program with the recorder preloaded, and reads what it
// wrote.
//
//   FIXTURE(tool_files_begin, record_end);
//
//   record("", "heap", NULL);
//   recorded("");
//   ... ran.out ... trace->blocks ...
#ifndef TARN_TESTS_RECORD_RECORD_RUN_H_
#define TARN_TESTS_RECORD_RECORD_RUN_H_

#include <stdbool.h>

#include "support/tool_run.h"
#include "tarn/trace.h"

// What the program said last, and the trace that was read last.
extern tool_output ran;
extern tarn_trace *trace;

// Frees both, and ends what tool_files_begin began.
void record_end(void);

// Whether a sanitizer's malloc stands where the recorder would; then |main| is
// left with record_skip.
bool record_cannot(void);
int record_skip(void);

// Runs the victim (record_victim.c) in a mode, perhaps with an argument, and
// with one more setting "NAME=VALUE", or "". It has to succeed.
void record(const char *setting, const char *mode, const char *argument);

// "NAME=VALUE": what preloads the recorder, and what tells it the file.
const char *record_preload(void);
const char *record_setting(void);

// The file that the recorder was told, with a suffix; until the next call.
const char *record_path(const char *suffix);

// The suffix of the process whose number |pid| begins with; until the next
// call.
const char *record_of(const char *pid);

// Reads that file's trace. The device: of the host, or of those of a plug-in.
void recorded(const char *suffix);
void recorded_device(const char *suffix, uint32_t device);

// The bytes of the trace that were not freed.
uint64_t record_live_bytes(void);

// How many blocks of |size| bytes there are that were freed, or were not.
size_t record_count(uint64_t size, bool freed);

// Becomes the victim, with its stdout as it is; in a child.
_Noreturn void record_become(const char *mode);

#endif  // TARN_TESTS_RECORD_RECORD_RUN_H_
