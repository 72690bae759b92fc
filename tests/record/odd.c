// The recorder in programs that do what few do: they run as without it, and
// nothing of them is lost.
#include <stdio.h>
#include <stdlib.h>

#include "record_late.h"
#include "record_run.h"
#include "support/run.h"

enum { LARGE = 100000 };  // as record_odd.c has it

// The trace with |suffix| has that many events, and lost none.
static void recorded_whole(const char *suffix, size_t events) {
  recorded(suffix);
  ck_assert_uint_eq(trace->lost_count, 0);
  ck_assert_uint_eq(trace->request_count, events);
}

TEST(addresses_are_few) {
  record("", "few_addresses", NULL);
  recorded_whole("", 200004);
}

TEST(a_fork_that_tells_nobody) {
  record("", "raw_fork", NULL);
  recorded_whole("", 2003);
  ck_assert_uint_eq(record_count(LARGE + 1, false), 0);
  ck_assert_uint_eq(record_count(LARGE + 2, false), 1);
  recorded_whole(record_of(ran.out), 2001);
  ck_assert_uint_eq(record_count(LARGE + 1, false), 1);
}

TEST(a_fork_while_the_loader_is_locked) {
  record("", "fork_in_a_lock", NULL);
  recorded_whole(record_of(ran.out), 1);
  uint32_t number = trace->blocks[0].stack;
  ck_assert_uint_ne(number, TARN_TRACE_NO_STACK);
  const tarn_trace_stack *stack = &trace->stacks[number];
  ck_assert_uint_ge(stack->count, 2);
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t frame = trace->frame_indices[stack->first + i];
    ck_assert_str_eq(trace->frames[frame].file, TARN_RECORD_VICTIM);
  }
}

TEST(a_thread_of_16_kib) {
  record("", "small_stack", NULL);
  recorded_whole("", 6);
}

TEST(all_threads_begin_at_once) {
  record("", "begin_at_once", NULL);
  recorded_whole("", 32000);
}

TEST(what_libraries_do_at_the_end) {
  record("", "late", NULL);
  recorded_whole("", 10002);
  ck_assert_uint_eq(record_count(RECORD_LATE_BYTES, true), 5000);
}

FIXTURE(tool_files_begin, record_end);

int main(void) {
  if (record_cannot()) return record_skip();
  return run_tests();
}
