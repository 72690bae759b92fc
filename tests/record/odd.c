// The recorder in programs that do what few do: they run as without it, and
// nothing of them is lost.
#include <stdio.h>
#include <stdlib.h>

#include "record_late.h"
#include "record_run.h"
#include "support/run.h"

enum { LARGE = 100000 };  // as record_odd.c has it

// The trace with |suffix| has that many events, and lost none.
static tarn_trace *recorded_whole(const char *suffix, size_t events) {
  tarn_trace *trace = recorded(suffix);
  ck_assert_uint_eq(trace->lost_count, 0);
  ck_assert_uint_eq(trace->request_count, events);
  return trace;
}

static const char *dot(const char *pid) {
  static char suffix[32];
  snprintf(suffix, sizeof suffix, ".%ld", strtol(pid, NULL, 10));
  return suffix;
}

TEST(addresses_are_few) {
  tool_output o = record("", "few_addresses", NULL);
  tarn_trace_destroy(recorded_whole("", 200004));
  tool_output_free(&o);
}

TEST(a_fork_that_tells_nobody) {
  tool_output o = record("", "raw_fork", NULL);
  tarn_trace *trace = recorded_whole("", 2003);
  ck_assert_uint_eq(record_count(trace, LARGE + 1, false), 0);
  ck_assert_uint_eq(record_count(trace, LARGE + 2, false), 1);
  tarn_trace_destroy(trace);
  trace = recorded_whole(dot(o.out), 2001);
  ck_assert_uint_eq(record_count(trace, LARGE + 1, false), 1);
  tarn_trace_destroy(trace);
  tool_output_free(&o);
}

TEST(a_fork_while_the_loader_is_locked) {
  tool_output o = record("", "fork_in_a_lock", NULL);
  tarn_trace *trace = recorded_whole(dot(o.out), 1);
  uint32_t number = trace->blocks[0].stack;
  ck_assert_uint_ne(number, TARN_TRACE_NO_STACK);
  const tarn_trace_stack *stack = &trace->stacks[number];
  ck_assert_uint_ge(stack->count, 2);
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t frame = trace->frame_indices[stack->first + i];
    ck_assert_str_eq(trace->frames[frame].file, TARN_RECORD_VICTIM);
  }
  tarn_trace_destroy(trace);
  tool_output_free(&o);
}

TEST(a_thread_of_16_kib) {
  tool_output o = record("", "small_stack", NULL);
  tarn_trace_destroy(recorded_whole("", 6));
  tool_output_free(&o);
}

TEST(all_threads_begin_at_once) {
  tool_output o = record("", "begin_at_once", NULL);
  tarn_trace_destroy(recorded_whole("", 32000));
  tool_output_free(&o);
}

TEST(what_libraries_do_at_the_end) {
  tool_output o = record("", "late", NULL);
  tarn_trace *trace = recorded_whole("", 10002);
  ck_assert_uint_eq(record_count(trace, RECORD_LATE_BYTES, true), 5000);
  tarn_trace_destroy(trace);
  tool_output_free(&o);
}

FIXTURE(tool_files_begin, tool_files_end);

int main(void) {
  if (record_cannot()) return record_skip();
  return run_tests();
}
