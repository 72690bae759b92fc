// A trace's blocks and refused requests, as buffers.
#include "trace_problem.h"

#include <stdlib.h>

#include "kit/tool.h"

static uint64_t first_step(uint32_t born) {
  return born == TARN_TRACE_BASELINE ? 0 : (uint64_t)born + 1;
}

static uint64_t last_step(const tarn_trace *trace, uint32_t died) {
  return died == TARN_TRACE_NEVER ? (uint64_t)trace->event_count + 1
                                  : (uint64_t)died + 1;
}

// Too large a size stays as it is: the planner refuses it, with a text.
static uint64_t round_up(uint64_t size, uint64_t unit) {
  uint64_t over = size % unit;
  if (over == 0 || size > UINT64_MAX - unit) return size;
  return size + (unit - over);
}

static bool counts(const tarn_trace_event *event, uint64_t refused_most) {
  return event->kind == TARN_TRACE_OOM && event->size > 0 &&
         event->size <= refused_most;
}

static size_t count_refused(const tarn_trace *trace, uint64_t refused_most) {
  size_t count = 0;
  for (size_t i = 0; i < trace->event_count; i++)
    count += counts(&trace->events[i], refused_most);
  return count;
}

static void add_blocks(trace_problem *p, uint64_t alignment) {
  const tarn_trace *trace = p->trace;
  for (size_t i = 0; i < trace->block_count; i++) {
    const tarn_trace_block *block = &trace->blocks[i];
    p->buffers[i] = (tarn_plan_buffer){.first = first_step(block->born),
                                       .last = last_step(trace, block->died),
                                       .size = round_up(block->size, alignment),
                                       .alignment = alignment};
  }
  p->problem.count = trace->block_count;
}

static void add_refused(trace_problem *p, uint64_t alignment,
                        uint64_t refused_most) {
  const tarn_trace *trace = p->trace;
  for (size_t i = 0; i < trace->event_count; i++) {
    const tarn_trace_event *event = &trace->events[i];
    if (!counts(event, refused_most)) continue;
    p->buffers[p->problem.count++] =
        (tarn_plan_buffer){.first = (uint64_t)i + 1,
                           .last = (uint64_t)i + 2,
                           .size = round_up(event->size, alignment),
                           .alignment = alignment};
  }
}

trace_problem trace_problem_make(const tarn_trace *trace, uint64_t alignment,
                                 uint64_t refused_most) {
  trace_problem p = {.trace = trace};
  size_t refused = count_refused(trace, refused_most);
  if (alignment == 0) alignment = TRACE_PROBLEM_ALIGNMENT;
  p.buffers = tool_array(trace->block_count + refused + 1, sizeof *p.buffers);
  add_blocks(&p, alignment);
  add_refused(&p, alignment, refused_most);
  p.problem.struct_size = sizeof p.problem;
  p.problem.buffers = p.buffers;
  return p;
}

void trace_problem_deinit(trace_problem *p) {
  free(p->buffers);
  *p = (trace_problem){0};
}

bool trace_problem_is_old(const trace_problem *p, size_t buffer) {
  return buffer < p->trace->baseline_count;
}
