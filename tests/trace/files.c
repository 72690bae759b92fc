// The snapshots of a real training run and a real inference run, where they
// are at hand: in TARN_TEST_DATA, or beside the project.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/faults.h"
#include "support/run.h"
#include "tarn/trace.h"

#ifndef TARN_SHARED_DATA
#define TARN_SHARED_DATA "../shared/data"
#endif

static const struct file {
  const char *name;
  size_t size;
  size_t events;
  size_t allocs;
  size_t frees;
  size_t baseline_count;
  uint64_t baseline_bytes;
  uint64_t live_peak_bytes;
  size_t held_count;  // of the baseline: known from the segments alone
  uint64_t held_bytes;
  size_t segments;
  size_t stacks;
} files[] = {
    {"torch-gpt-medium-128-training.pickle", 3145433, 19136, 6526, 6305, 664,
     5095321600, 7013335044, 226, 1709854720, 377, 170},
    {"torch-gpt-medium-512-inference.pickle", 1624625, 4998, 1666, 1666, 223,
     1701482496, 1949343744, 223, 1701482496, 101, 106},
};

static bool is_there(const char *name, char *path, size_t path_size) {
  const char *data = getenv("TARN_TEST_DATA");
  snprintf(path, path_size, "%s/traces/%s",
           data != NULL ? data : TARN_SHARED_DATA, name);
  return access(path, R_OK) == 0;
}

static bool find(const char *name, char *path, size_t path_size) {
  if (is_there(name, path, path_size)) return true;
  note_skipped(name, "not in TARN_TEST_DATA nor beside the project");
  return false;
}

static size_t count_kind(const tarn_trace *trace, tarn_trace_kind kind) {
  size_t count = 0;
  for (size_t i = 0; i < trace->event_count; i++) {
    if (trace->events[i].kind == kind) count++;
  }
  return count;
}

// Of the baseline, what no event concerns.
static size_t count_held(const tarn_trace *trace, uint64_t *out_bytes) {
  size_t count = 0;
  *out_bytes = 0;
  for (size_t i = 0; i < trace->baseline_count; i++) {
    if (trace->blocks[i].died != TARN_TRACE_NEVER) continue;
    *out_bytes += trace->blocks[i].size;
    count++;
  }
  return count;
}

TEST_LOOP(real_snapshots_add_up, 2) {
  char path[512];
  tarn_trace *trace = NULL;
  uint64_t held_bytes = 0;
  const struct file *want = &files[_i];
  if (!find(want->name, path, sizeof path)) return;
  faults_peak_reset();
  assert_ok(tarn_trace_read(path, NULL, &trace));
  ck_assert_uint_le(faults_peak(), 16 * want->size);
  ck_assert_str_eq(trace->name, path);
  ck_assert_uint_eq(trace->event_count, want->events);
  ck_assert_uint_eq(count_kind(trace, TARN_TRACE_ALLOC), want->allocs);
  ck_assert_uint_eq(count_kind(trace, TARN_TRACE_FREE), want->frees);
  ck_assert_uint_eq(trace->request_count, want->allocs + want->frees);
  ck_assert_uint_eq(trace->baseline_count, want->baseline_count);
  ck_assert_uint_eq(trace->baseline_bytes, want->baseline_bytes);
  ck_assert_uint_eq(trace->live_peak_bytes, want->live_peak_bytes);
  ck_assert_uint_eq(count_held(trace, &held_bytes), want->held_count);
  ck_assert_uint_eq(held_bytes, want->held_bytes);
  ck_assert_uint_eq(trace->segment_count, want->segments);
  ck_assert_uint_eq(trace->stack_count, want->stacks);
  tarn_trace_destroy(trace);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// Every index within its array, every birth before its death.
TEST_LOOP(real_snapshots_are_whole, 2) {
  char path[512];
  tarn_trace *trace = NULL;
  if (!find(files[_i].name, path, sizeof path)) return;
  assert_ok(tarn_trace_read(path, NULL, &trace));
  for (size_t i = 0; i < trace->event_count; i++) {
    const tarn_trace_event *event = &trace->events[i];
    ck_assert_uint_lt(event->block, trace->block_count);
    ck_assert_uint_lt(event->stack, trace->stack_count);
    const tarn_trace_block *block = &trace->blocks[event->block];
    ck_assert_uint_eq(block->address, event->address);
    if (event->kind == TARN_TRACE_ALLOC) ck_assert_uint_eq(block->born, i);
    if (event->kind == TARN_TRACE_FREE) ck_assert_uint_eq(block->died, i);
  }
  for (size_t i = 0; i < trace->block_count; i++) {
    const tarn_trace_block *block = &trace->blocks[i];
    bool baseline = block->born == TARN_TRACE_BASELINE;
    ck_assert_int_eq(baseline, i < trace->baseline_count);
    if (!baseline) ck_assert_uint_lt(block->born, block->died);
    ck_assert_uint_gt(block->size, 0);
  }
  for (size_t i = 0; i < trace->stack_count; i++) {
    const tarn_trace_stack *stack = &trace->stacks[i];
    ck_assert_uint_le(stack->first + stack->count, trace->frame_index_count);
    for (uint32_t j = 0; j < stack->count; j++) {
      ck_assert_uint_lt(trace->frame_indices[stack->first + j],
                        trace->frame_count);
    }
  }
  tarn_trace_destroy(trace);
}

int main(void) {
  char path[512];
  if (!is_there(files[0].name, path, sizeof path) &&
      !is_there(files[1].name, path, sizeof path)) {
    return skip_program("trace_files",
                        "no torch-gpt-medium-*.pickle in TARN_TEST_DATA nor "
                        "beside the project");
  }
  faults_install();
  return run_tests();
}
