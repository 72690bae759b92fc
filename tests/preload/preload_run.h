// preload_run.h - runs programs by `tarn preload`.
//
//   FIXTURE(tool_files_begin, preload_end);
//
//   preload("family");                      the victim, in that mode
//   preload_line("--from 8K -- ls");        what the tool is told
//   ... ran.out ... preload_report("allocs") ...
#ifndef TARN_TESTS_PRELOAD_PRELOAD_RUN_H_
#define TARN_TESTS_PRELOAD_PRELOAD_RUN_H_

#include <stdbool.h>

#include "support/tool_run.h"

// What the program said last.
extern tool_output ran;

// Ends what tool_files_begin began.
void preload_end(void);

// Whether a sanitizer's malloc stands where the library would; then |main| is
// left with preload_skip.
bool preload_cannot(void);
int preload_skip(void);

// Runs the victim (preload_victim.c) in a mode. It has to succeed, and to be
// silent on stderr.
void preload(const char *mode);

// The same with a pool, "page_unit_pool".
void preload_on(const char *pool, const char *mode);

// Runs `tarn preload |line|`, whatever comes of it.
void preload_line(const char *line);

// A number of the report of the victim that ran last; of the last process that
// wrote one.
double preload_report(const char *key);

#endif  // TARN_TESTS_PRELOAD_PRELOAD_RUN_H_
