// trace_fuzz.h - any bytes as a trace: a status and nothing else may come of
// them, within the memory that tarn/trace.h promises. A target per format, so
// that each has a corpus of its own, includes this and is done.
#ifndef TARN_FUZZ_TRACE_FUZZ_H_
#define TARN_FUZZ_TRACE_FUZZ_H_

#include "fuzz.h"
#include "tarn/trace.h"

// Walks all that the trace points to, so that a sanitizer sees a bad index.
static uint64_t fuzz_touch(const tarn_trace *trace) {
  uint64_t sum = 0;
  for (size_t i = 0; i < trace->event_count; i++) {
    const tarn_trace_event *event = &trace->events[i];
    sum += (uint64_t)trace->tags[event->tag][0];
    if (event->block != TARN_TRACE_NO_BLOCK) {
      sum += trace->blocks[event->block].size;
    }
    if (event->stack != TARN_TRACE_NO_STACK) {
      sum += trace->stacks[event->stack].count;
    }
  }
  for (size_t i = 0; i < trace->block_count; i++) {
    sum += (uint64_t)trace->tags[trace->blocks[i].tag][0];
  }
  for (size_t i = 0; i < trace->frame_index_count; i++) {
    const tarn_trace_frame *frame = &trace->frames[trace->frame_indices[i]];
    sum += (uint64_t)frame->file[0] + (uint64_t)frame->function[0];
  }
  return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  tarn_trace *trace = NULL;
  fuzz_memory_begin();
  tarn_status status =
      tarn_trace_read_bytes(bytes, size, "fuzzed", NULL, &trace);
  require((status == TARN_OK) == (trace != NULL), "status and trace disagree");
  fuzz_memory_check(size);
  if (trace != NULL) {
    volatile uint64_t sum = fuzz_touch(trace);
    (void)sum;
  }
  tarn_trace_destroy(trace);
  fuzz_memory_end();
  return 0;
}

#endif  // TARN_FUZZ_TRACE_FUZZ_H_
