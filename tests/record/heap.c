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

static size_t count_kind(tarn_trace_kind kind) {
  size_t count = 0;
  for (size_t i = 0; i < trace->event_count; i++)
    count += trace->events[i].kind == kind;
  return count;
}

TEST(every_function_of_the_heap) {
  record("", "heap", NULL);
  recorded("");
  ck_assert_uint_eq(trace->block_count, 11);
  for (size_t i = 0; i <= 10; i++)
    ck_assert_uint_eq(record_count(LARGE + i, i != 9), 1);
  // malloc and realloc of more than there is; the third overflows.
  ck_assert_uint_eq(count_kind(TARN_TRACE_OOM), 2);
  ck_assert_uint_eq(trace->unknown_count, 0);
  ck_assert_uint_eq(trace->lost_count, 0);
}

TEST(mappings) {
  record("", "maps", NULL);
  recorded("");
  ck_assert_uint_eq(record_live_bytes(), strtoull(ran.out, NULL, 10));
  ck_assert_uint_eq(trace->lost_count, 0);
}

TEST(only_what_is_large) {
  record("TARN_RECORD_THRESHOLD=100009", "heap", NULL);
  recorded("");
  ck_assert_uint_eq(trace->block_count, 2);
  ck_assert_uint_eq(record_count(LARGE + 9, false), 1);
  ck_assert_uint_eq(record_count(LARGE + 10, true), 1);
}

// A process that records nothing makes no file.
TEST(nothing_to_say) {
  record("TARN_RECORD_THRESHOLD=99999999999999999999", "churn", "0");
  ck_assert_int_ne(access(record_path(""), F_OK), 0);
  record("TARN_RECORD_OUT=", "heap", NULL);
  ck_assert_int_ne(access(record_path(""), F_OK), 0);
}

// --- stacks ----------------------------------------------------------------

static const tarn_trace_frame *frame_of(const tarn_trace_stack *stack,
                                        uint32_t index) {
  return &trace->frames[trace->frame_indices[stack->first + index]];
}

static const tarn_trace_stack *stack_of(size_t block) {
  uint32_t stack = trace->blocks[block].stack;
  ck_assert_uint_ne(stack, TARN_TRACE_NO_STACK);
  return &trace->stacks[stack];
}

TEST(stacks_tell_the_caller) {
  record("", "places", NULL);
  recorded("");
  ck_assert_uint_eq(trace->block_count, 11);
  for (size_t i = 1; i < 10; i++)
    ck_assert_uint_eq(trace->blocks[i].stack, trace->blocks[0].stack);
  ck_assert_uint_ne(trace->blocks[10].stack, trace->blocks[0].stack);
  const tarn_trace_stack *stack = stack_of(0);
  ck_assert_uint_ge(stack->count, 3);  // here, places_of_calls, main
  const tarn_trace_stack *other = stack_of(10);
  for (uint32_t i = 0; i < 3; i++) {
    ck_assert_str_eq(frame_of(stack, i)->file, TARN_RECORD_VICTIM);
    ck_assert_int_eq(frame_of(stack, i)->function[0], '+');
  }
  ck_assert_str_ne(frame_of(stack, 0)->function, frame_of(other, 0)->function);
}

TEST(stacks_of_few_frames) {
  record("TARN_RECORD_FRAMES=2", "places", NULL);
  recorded("");
  ck_assert_uint_eq(stack_of(0)->count, 2);
}

TEST(without_stacks) {
  record("TARN_RECORD_STACKS=0", "places", NULL);
  recorded("");
  ck_assert_uint_eq(trace->block_count, 11);
  ck_assert_uint_eq(trace->stack_count, 0);
}

// --- threads and signals ---------------------------------------------------

TEST(threads_free_what_others_got) {
  char *end;
  record("", "threads", NULL);
  recorded("");
  ck_assert_uint_eq(record_live_bytes(), strtoull(ran.out, &end, 10));
  ck_assert_uint_eq(trace->block_count, strtoull(end, NULL, 10));
  ck_assert_uint_eq(trace->unknown_count, 0);
  ck_assert_uint_eq(trace->lost_count, 0);
}

// 2000 threads, one after the other: not a page of 4 KiB for each.
TEST(threads_leave_their_page_to_the_next) {
  struct stat file;
  record("", "short_threads", NULL);
  recorded("");
  ck_assert_uint_eq(trace->block_count, 2000);
  ck_assert_int_eq(stat(record_path(""), &file), 0);
  ck_assert_int_lt(file.st_size, (off_t)100 * 4096);
}

TEST(handlers_may_come_at_any_time) {
  record("", "in_handlers", NULL);
  recorded("");
  ck_assert_uint_eq(trace->lost_count, 0);
  ck_assert_uint_eq(trace->block_count, strtoull(ran.out, NULL, 10));
  ck_assert_uint_eq(record_live_bytes(), 0);
}

// --- plug-ins --------------------------------------------------------------

// The caller is found by the return address: a dlsym that called another would
// answer from the recorder's place in the order, and so with the C library's.
TEST(what_is_next_depends_on_who_asks) {
  record("", "look_up", NULL);
  ck_assert_str_eq(ran.out, TARN_RECORDER "\n");
}

TEST(memory_of_a_device) {
  record("", "plugin", TARN_TWIN_PLUGIN);
  recorded_device("", 1);
  ck_assert_uint_eq(trace->device_count, 3);
  ck_assert_uint_eq(trace->block_count, 2);
  ck_assert_uint_eq(record_count(LARGE, false), 1);
  ck_assert_uint_eq(record_count(LARGE + 1, true), 1);
  ck_assert_uint_ne(trace->blocks[0].stack, TARN_TRACE_NO_STACK);
  recorded_device("", 2);
  ck_assert_uint_eq(trace->block_count, 1);
  ck_assert_uint_eq(record_count(LARGE + 2, true), 1);
}

FIXTURE(tool_files_begin, record_end);

int main(void) {
  return record_cannot() ? record_skip() : run_tests();
}
