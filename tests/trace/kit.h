// kit.h - what the tests of hand-made snapshots have in common: one
// pickle, written before it is read, and the trace that comes of it.
#ifndef TARN_TESTS_TRACE_KIT_H_
#define TARN_TESTS_TRACE_KIT_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/faults.h"
#include "support/pickle_writer.h"
#include "support/run.h"
#include "tarn/trace.h"

static pickle_writer w;
static tarn_trace *trace;

static inline void begin(void) {
  w = (pickle_writer){0};
  trace = NULL;
}

static inline void end(void) {
  pickle_free(&w);
  tarn_trace_destroy(trace);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

static inline tarn_status read_made(void) {
  tarn_status status =
      tarn_trace_read_bytes(w.bytes, w.size, "made", NULL, &trace);
  ck_assert((status == TARN_OK) == (trace != NULL));
  return status;
}

static inline void assert_refused(const char *text) {
  assert_status(read_made(), TARN_E_CORRUPT);
  assert_error_says("made: byte ");
  assert_error_says(text);
}

static inline void assert_refused_at(size_t byte, const char *text) {
  char want[320];
  snprintf(want, sizeof want, "made: byte %zu: ", byte);
  assert_refused(text);
  assert_error_says(want);
}

#endif  // TARN_TESTS_TRACE_KIT_H_
