// log_kit.h - a file of Tarn's own format that is made by hand, and
// the trace that is read from it, for the tests of its reader.
#ifndef TARN_TESTS_TRACE_LOG_KIT_H_
#define TARN_TESTS_TRACE_LOG_KIT_H_

#include "support/faults.h"
#include "support/log_file.h"
#include "support/run.h"
#include "tarn/trace.h"

static log_file file;
static tarn_trace *trace;

static inline void begin(void) {
  log_begin(&file);
  trace = NULL;
}

static inline void end(void) {
  log_free(&file);
  tarn_trace_destroy(trace);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

static inline void read_made(void) {
  tarn_trace_destroy(trace);
  assert_ok(tarn_trace_read_bytes(file.bytes, file.size, "made", NULL, &trace));
}

// Event |index| is |kind| of |size| bytes at |address|.
static inline const tarn_trace_event *assert_event(size_t index,
                                                   tarn_trace_kind kind,
                                                   uint64_t address,
                                                   uint64_t size) {
  ck_assert_uint_lt(index, trace->event_count);
  const tarn_trace_event *event = &trace->events[index];
  ck_assert_int_eq(event->kind, kind);
  ck_assert_uint_eq(event->address, address);
  ck_assert_uint_eq(event->size, size);
  return event;
}

// The innermost frame of event |index|.
static inline void assert_frame(size_t index, const char *in_file,
                                const char *function, uint32_t line) {
  uint32_t stack = trace->events[index].stack;
  ck_assert_uint_lt(stack, trace->stack_count);
  const tarn_trace_frame *frame =
      &trace->frames[trace->frame_indices[trace->stacks[stack].first]];
  ck_assert_str_eq(frame->file, in_file);
  ck_assert_str_eq(frame->function, function);
  ck_assert_uint_eq(frame->line, line);
}

#endif  // TARN_TESTS_TRACE_LOG_KIT_H_
