// The recorder: what one process allocates, by every function there is.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record_run.h"
#include "support/run.h"

enum { LARGE = 100000 };  // as record_victim.c has it

// --- entry points ----------------------------------------------------------

static size_t count_kind(const tarn_trace *trace, tarn_trace_kind kind) {
  size_t count = 0;
  for (size_t i = 0; i < trace->event_count; i++)
    count += trace->events[i].kind == kind;
  return count;
}

TEST(every_function_of_the_heap) {
  tool_output o = record("", "heap", NULL);
  tarn_trace *trace = recorded("");
  ck_assert_uint_eq(trace->block_count, 11);
  for (size_t i = 0; i <= 10; i++)
    ck_assert_uint_eq(record_count(trace, LARGE + i, i != 9), 1);
  // malloc and realloc of more than there is; the third overflows.
  ck_assert_uint_eq(count_kind(trace, TARN_TRACE_OOM), 2);
  ck_assert_uint_eq(trace->unknown_count, 0);
  ck_assert_uint_eq(trace->lost_count, 0);
  tarn_trace_destroy(trace);
  tool_output_free(&o);
}

TEST(mappings) {
  tool_output o = record("", "maps", NULL);
  tarn_trace *trace = recorded("");
  ck_assert_uint_eq(record_live_bytes(trace), strtoull(o.out, NULL, 10));
  ck_assert_uint_eq(trace->lost_count, 0);
  tarn_trace_destroy(trace);
  tool_output_free(&o);
}

TEST(only_what_is_large) {
  tool_output o = record("TARN_RECORD_THRESHOLD=100009", "heap", NULL);
  tarn_trace *trace = recorded("");
  ck_assert_uint_eq(trace->block_count, 2);
  ck_assert_uint_eq(record_count(trace, LARGE + 9, false), 1);
  ck_assert_uint_eq(record_count(trace, LARGE + 10, true), 1);
  tarn_trace_destroy(trace);
  tool_output_free(&o);
}

// A file for one that has nothing to say is none.
TEST(nothing_to_say) {
  tool_output o =
      record("TARN_RECORD_THRESHOLD=99999999999999999999", "churn", "0");
  ck_assert_int_ne(access(record_path(""), F_OK), 0);
  tool_output_free(&o);
  o = record("TARN_RECORD_OUT=", "heap", NULL);
  ck_assert_int_ne(access(record_path(""), F_OK), 0);
  tool_output_free(&o);
}

// --- stacks ----------------------------------------------------------------

static const tarn_trace_frame *frame_of(const tarn_trace *trace,
                                        const tarn_trace_stack *stack,
                                        uint32_t index) {
  return &trace->frames[trace->frame_indices[stack->first + index]];
}

static const tarn_trace_stack *stack_of(const tarn_trace *trace, size_t block) {
  uint32_t stack = trace->blocks[block].stack;
  ck_assert_uint_ne(stack, TARN_TRACE_NO_STACK);
  return &trace->stacks[stack];
}

TEST(stacks_tell_the_caller) {
  tool_output o = record("", "places", NULL);
  tarn_trace *trace = recorded("");
  ck_assert_uint_eq(trace->block_count, 11);
  for (size_t i = 1; i < 10; i++)
    ck_assert_uint_eq(trace->blocks[i].stack, trace->blocks[0].stack);
  ck_assert_uint_ne(trace->blocks[10].stack, trace->blocks[0].stack);
  const tarn_trace_stack *stack = stack_of(trace, 0);
  ck_assert_uint_ge(stack->count, 3);  // here, places_of_calls, main
  const tarn_trace_stack *other = stack_of(trace, 10);
  for (uint32_t i = 0; i < 3; i++) {
    ck_assert_str_eq(frame_of(trace, stack, i)->file, TARN_RECORD_VICTIM);
    ck_assert_int_eq(frame_of(trace, stack, i)->function[0], '+');
  }
  ck_assert_str_ne(frame_of(trace, stack, 0)->function,
                   frame_of(trace, other, 0)->function);
  tarn_trace_destroy(trace);
  tool_output_free(&o);
}

TEST(stacks_of_few_frames) {
  tool_output o = record("TARN_RECORD_FRAMES=2", "places", NULL);
  tarn_trace *trace = recorded("");
  ck_assert_uint_eq(stack_of(trace, 0)->count, 2);
  tarn_trace_destroy(trace);
  tool_output_free(&o);
}

TEST(without_stacks) {
  tool_output o = record("TARN_RECORD_STACKS=0", "places", NULL);
  tarn_trace *trace = recorded("");
  ck_assert_uint_eq(trace->block_count, 11);
  ck_assert_uint_eq(trace->stack_count, 0);
  tarn_trace_destroy(trace);
  tool_output_free(&o);
}

// --- threads and signals ---------------------------------------------------

TEST(threads_free_what_others_got) {
  char *end;
  tool_output o = record("", "threads", NULL);
  tarn_trace *trace = recorded("");
  ck_assert_uint_eq(record_live_bytes(trace), strtoull(o.out, &end, 10));
  ck_assert_uint_eq(trace->block_count, strtoull(end, NULL, 10));
  ck_assert_uint_eq(trace->unknown_count, 0);
  ck_assert_uint_eq(trace->lost_count, 0);
  tarn_trace_destroy(trace);
  tool_output_free(&o);
}

// 2000 threads, one after the other: not a page of 4 KiB for each.
TEST(threads_leave_their_page_to_the_next) {
  struct stat file;
  tool_output o = record("", "short_threads", NULL);
  tarn_trace *trace = recorded("");
  ck_assert_uint_eq(trace->block_count, 2000);
  ck_assert_int_eq(stat(record_path(""), &file), 0);
  ck_assert_int_lt(file.st_size, (off_t)100 * 4096);
  tarn_trace_destroy(trace);
  tool_output_free(&o);
}

TEST(handlers_may_come_at_any_time) {
  tool_output o = record("", "in_handlers", NULL);
  tarn_trace *trace = recorded("");
  ck_assert_uint_eq(trace->lost_count, 0);
  ck_assert_uint_eq(trace->block_count, strtoull(o.out, NULL, 10));
  ck_assert_uint_eq(record_live_bytes(trace), 0);
  tarn_trace_destroy(trace);
  tool_output_free(&o);
}

// --- plug-ins --------------------------------------------------------------

// The caller is found by the return address: a dlsym that called another would
// answer from the recorder's place in the order, and so with the C library's.
TEST(what_is_next_depends_on_who_asks) {
  tool_output o = record("", "look_up", NULL);
  ck_assert_str_eq(o.out, TARN_RECORDER "\n");
  tool_output_free(&o);
}

TEST(memory_of_a_device) {
  tool_output o = record("", "plugin", TARN_TWIN_PLUGIN);
  tarn_trace *trace = recorded_device("", 1);
  ck_assert_uint_eq(trace->device_count, 3);
  ck_assert_uint_eq(trace->block_count, 2);
  ck_assert_uint_eq(record_count(trace, LARGE, false), 1);
  ck_assert_uint_eq(record_count(trace, LARGE + 1, true), 1);
  ck_assert_uint_ne(trace->blocks[0].stack, TARN_TRACE_NO_STACK);
  tarn_trace_destroy(trace);
  trace = recorded_device("", 2);
  ck_assert_uint_eq(trace->block_count, 1);
  ck_assert_uint_eq(record_count(trace, LARGE + 2, true), 1);
  tarn_trace_destroy(trace);
  tool_output_free(&o);
}

FIXTURE(tool_files_begin, tool_files_end);

int main(void) {
  return record_cannot() ? record_skip() : run_tests();
}
