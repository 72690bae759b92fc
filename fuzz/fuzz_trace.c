// Any bytes as a trace: a status and nothing else may come of them, within the
// memory that the header promises.
#include <stdio.h>
#include <stdlib.h>

#include "tarn/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static size_t held;
static size_t peak;

static void *allocate(void *context, size_t size, size_t align) {
  void *ptr = NULL;
  (void)context;
  if (posix_memalign(&ptr, align, size) != 0) return NULL;
  held += size;
  if (held > peak) peak = held;
  return ptr;
}

static void deallocate(void *context, void *ptr, size_t size, size_t align) {
  (void)context;
  (void)align;
  held -= size;
  free(ptr);
}

static void require(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "fuzz_trace: %s\n", what);
  abort();
}

// Walks all that the trace points to, so that a sanitizer sees a bad index.
static uint64_t touch(const tarn_trace *trace) {
  uint64_t sum = 0;
  for (size_t i = 0; i < trace->event_count; i++) {
    const tarn_trace_event *event = &trace->events[i];
    if (event->block != TARN_TRACE_NO_BLOCK) {
      sum += trace->blocks[event->block].size;
    }
    if (event->stack != TARN_TRACE_NO_STACK) {
      sum += trace->stacks[event->stack].count;
    }
  }
  for (size_t i = 0; i < trace->frame_index_count; i++) {
    const tarn_trace_frame *frame = &trace->frames[trace->frame_indices[i]];
    sum += (uint64_t)frame->file[0] + (uint64_t)frame->function[0];
  }
  return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static const tarn_host_allocator allocator = {.allocate = allocate,
                                                .deallocate = deallocate};
  tarn_trace *trace = NULL;
  require(tarn_host_allocator_set(&allocator) == TARN_OK, "a leak before");
  peak = 0;
  tarn_status status =
      tarn_trace_read_bytes(bytes, size, "fuzzed", NULL, &trace);
  require((status == TARN_OK) == (trace != NULL), "status and trace disagree");
  require(peak <= 64 * size + (1 << 20), "more memory than was promised");
  if (trace != NULL) {
    volatile uint64_t sum = touch(trace);
    (void)sum;
  }
  tarn_trace_destroy(trace);
  require(held == 0 && tarn_host_memory() == 0, "a leak");
  return 0;
}
