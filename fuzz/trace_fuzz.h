// trace_fuzz.h - any bytes as a trace: a status and nothing else may come of
// them, within the memory that tarn/trace.h promises. A target per format, so
// that each has a corpus of its own, includes this and is done.
#ifndef TARN_FUZZ_TRACE_FUZZ_H_
#define TARN_FUZZ_TRACE_FUZZ_H_

#include <stdio.h>
#include <stdlib.h>

#include "tarn/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static size_t fuzz_held;
static size_t fuzz_peak;

static void *fuzz_allocate(void *context, size_t size, size_t align) {
  void *ptr = NULL;
  (void)context;
  if (posix_memalign(&ptr, align, size) != 0) return NULL;
  fuzz_held += size;
  if (fuzz_held > fuzz_peak) fuzz_peak = fuzz_held;
  return ptr;
}

static void fuzz_deallocate(void *context, void *ptr, size_t size,
                            size_t align) {
  (void)context;
  (void)align;
  fuzz_held -= size;
  free(ptr);
}

static void fuzz_require(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "fuzz: %s\n", what);
  abort();
}

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
  static const tarn_host_allocator allocator = {.allocate = fuzz_allocate,
                                                .deallocate = fuzz_deallocate};
  tarn_trace *trace = NULL;
  fuzz_require(tarn_host_allocator_set(&allocator) == TARN_OK, "a leak before");
  fuzz_peak = 0;
  tarn_status status =
      tarn_trace_read_bytes(bytes, size, "fuzzed", NULL, &trace);
  fuzz_require((status == TARN_OK) == (trace != NULL),
               "status and trace disagree");
  fuzz_require(fuzz_peak <= 64 * size + (1 << 20),
               "more memory than was promised");
  if (trace != NULL) {
    volatile uint64_t sum = fuzz_touch(trace);
    (void)sum;
  }
  tarn_trace_destroy(trace);
  fuzz_require(fuzz_held == 0 && tarn_host_memory() == 0, "a leak");
  return 0;
}

#endif  // TARN_FUZZ_TRACE_FUZZ_H_
