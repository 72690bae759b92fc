// lines_kit.h - what the tests of formats of lines have in common:
// a text, the trace that comes of it, and all the ways to damage it.
#ifndef TARN_TESTS_TRACE_LINES_KIT_H_
#define TARN_TESTS_TRACE_LINES_KIT_H_

#include <stdlib.h>
#include <string.h>

#include "growing.h"
#include "support/effort.h"
#include "support/faults.h"
#include "support/run.h"
#include "support/trace_written.h"

static tarn_trace *trace;

static inline void begin(void) {
  trace = NULL;
}

static inline void end(void) {
  tarn_trace_destroy(trace);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

static inline tarn_status read_bytes_of(const void *bytes, size_t size,
                                        const tarn_trace_options *options) {
  tarn_trace_destroy(trace);
  trace = NULL;
  return read_exactly("made", bytes, size, options, &trace);
}

static inline tarn_status read_text(const char *text) {
  return read_bytes_of(text, strlen(text), NULL);
}

static inline tarn_status read_device(const char *text, uint32_t device) {
  tarn_trace_options options = {
      .struct_size = sizeof options, .choose_device = true, .device = device};
  return read_bytes_of(text, strlen(text), &options);
}

static inline void assert_refused(const char *text, const char *what) {
  assert_status(read_text(text), TARN_E_CORRUPT);
  ck_assert_msg(strcmp(tarn_last_error(), what) == 0, "'%s' is not '%s'",
                tarn_last_error(), what);
}

static inline void assert_event(size_t index, tarn_trace_kind kind,
                                uint64_t address, uint64_t size) {
  ck_assert_uint_lt(index, trace->event_count);
  const tarn_trace_event *event = &trace->events[index];
  ck_assert_int_eq(event->kind, kind);
  ck_assert_uint_eq(event->address, address);
  ck_assert_uint_eq(event->size, size);
  ck_assert_uint_eq(event->stack, TARN_TRACE_NO_STACK);
}

// Any bytes.
static inline tarn_status read_any(const void *bytes, size_t size) {
  tarn_status status = read_bytes_of(bytes, size, NULL);
  require(status == TARN_OK || status == TARN_E_CORRUPT);
  return status;
}

// Changes each byte of |from| to each other value, or, where that is dear, to
// every fifth, from another first one each; returns how many of these were
// refused.
enum { FLIPS = EFFORT(1, 5) };

static inline size_t flip_all(const char *from) {
  size_t refused = 0;
  size_t size = strlen(from);
  char *bytes = malloc(size);
  require(bytes != NULL);
  for (size_t i = 0; i < size; i++) {
    memcpy(bytes, from, size);
    for (size_t flip = 1 + i % FLIPS; flip < 256; flip += FLIPS) {
      bytes[i] = (char)((unsigned char)from[i] ^ flip);
      refused += read_any(bytes, size) != TARN_OK;
    }
  }
  free(bytes);
  return refused;
}

// A file that grows byte by byte: never refused, and at each moment the trace
// of its whole lines.
static inline void grow_all(const char *from, size_t first) {
  size_t events = 0;
  for (size_t size = first; size <= strlen(from); size++) {
    assert_ok(read_any(from, size));
    require(trace->unfinished == (from[size - 1] != '\n'));
    require(trace->event_count >= events);
    require(trace->event_count == events || from[size - 1] == '\n');
    events = trace->event_count;
  }
}

static inline void scenario_read(void *from) {
  tarn_trace *made = NULL;
  tarn_status status =
      tarn_trace_read_bytes(from, strlen(from), "made", NULL, &made);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  require((status == TARN_OK) == (made != NULL));
  tarn_trace_destroy(made);
}

#endif  // TARN_TESTS_TRACE_LINES_KIT_H_
