// record_kit.h - what the tests of `tarn record` have in common: a
// folder for traces, and the program that is recorded,
// support/record_program.c.
#ifndef TARN_TESTS_TOOL_RECORD_KIT_H_
#define TARN_TESTS_TOOL_RECORD_KIT_H_

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/run.h"
#include "support/tool_assert.h"
#include "tarn/trace.h"

#define MIB UINT64_C(1048576)

static const char *out;  // where the trace goes

static void set_up(void) {
  tool_files_begin();
  out = tool_file("x.tarn");
  setenv("TARN_RECORD_LIBRARY", TARN_RECORD_SO, 1);
}

#define record(...) tool_run("record", "--out", out, TARN_PROGRAM, __VA_ARGS__)

static inline bool is_there(const char *path) {
  return access(path, F_OK) == 0;
}

static inline tarn_trace *read_out(void) {
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_read(out, NULL, &trace));
  ck_assert_ptr_nonnull(trace);
  ck_assert_str_eq(trace->format, "tarn");
  return trace;
}

// The only block of |size| bytes.
static inline const tarn_trace_block *block_of(const tarn_trace *trace,
                                               uint64_t size) {
  const tarn_trace_block *found = NULL;
  for (size_t i = 0; i < trace->block_count; i++) {
    if (trace->blocks[i].size != size) continue;
    ck_assert_ptr_null(found);
    found = &trace->blocks[i];
  }
  ck_assert_msg(found != NULL, "no block of %llu bytes",
                (unsigned long long)size);
  return found;
}

FIXTURE(set_up, tool_files_end);

int main(void) {
#ifdef TARN_SANITIZED
  return skip_program(program_invocation_short_name,
                      "a sanitizer is to be the first that is loaded, and so "
                      "is the recorder");
#else
  return run_tests();
#endif
}

#endif  // TARN_TESTS_TOOL_RECORD_KIT_H_
