// Cutting a trace: first which blocks are in it, then which stacks these have,
// then which frames.
#include "slice.h"

#include <stdlib.h>
#include <string.h>

#include "kit/tool.h"

static const uint32_t NOWHERE = UINT32_MAX;

typedef struct cutter {
  const tarn_trace *whole;
  uint32_t from, to;
  uint32_t *block_now;  // of each block of the whole, its number in the slice
  uint32_t *stack_now;  // of each stack; NOWHERE
  uint32_t *frame_now;
} cutter;

static uint32_t *make_numbers(size_t count) {
  uint32_t *numbers = tool_array(count + 1, sizeof *numbers);
  memset(numbers, 0xff, (count + 1) * sizeof *numbers);
  return numbers;
}

// ---------------------------------------------------------------------------
// Blocks and events
// ---------------------------------------------------------------------------

static bool is_in(const cutter *c, const tarn_trace_block *block) {
  bool begun = block->born == TARN_TRACE_BASELINE || block->born < c->to;
  return begun && block->died >= c->from;
}

static bool is_old(const cutter *c, const tarn_trace_block *block) {
  return block->born == TARN_TRACE_BASELINE || block->born < c->from;
}

static tarn_trace_block cut_block(const cutter *c,
                                  const tarn_trace_block *block) {
  tarn_trace_block cut = *block;
  cut.born = is_old(c, block) ? TARN_TRACE_BASELINE : block->born - c->from;
  cut.died = block->died < c->to ? block->died - c->from : TARN_TRACE_NEVER;
  return cut;
}

static void cut_blocks(cutter *c, slice *s) {
  const tarn_trace *whole = c->whole;
  size_t count = 0;
  for (size_t i = 0; i < whole->block_count; i++)
    count += is_in(c, &whole->blocks[i]);
  tarn_trace_block *blocks = tool_array(count + 1, sizeof *blocks);
  s->block = tool_array(count + 1, sizeof *s->block);
  count = 0;
  for (size_t i = 0; i < whole->block_count; i++) {
    const tarn_trace_block *block = &whole->blocks[i];
    if (!is_in(c, block)) continue;
    c->block_now[i] = (uint32_t)count;
    s->block[count] = (uint32_t)i;
    s->trace.baseline_count += is_old(c, block);
    blocks[count++] = cut_block(c, block);
  }
  s->trace.blocks = blocks;
  s->trace.block_count = count;
}

static void cut_events(const cutter *c, slice *s) {
  size_t count = c->to - c->from;
  tarn_trace_event *events = tool_array(count + 1, sizeof *events);
  for (size_t i = 0; i < count; i++) {
    events[i] = c->whole->events[c->from + i];
    if (events[i].block != TARN_TRACE_NO_BLOCK)
      events[i].block = c->block_now[events[i].block];
  }
  s->trace.events = events;
  s->trace.event_count = count;
}

// ---------------------------------------------------------------------------
// Stacks
// ---------------------------------------------------------------------------

// The number of |old| in the slice, where |*count| are in it so far.
static uint32_t number(uint32_t *now, uint32_t old, size_t *count) {
  if (now[old] == NOWHERE) now[old] = (uint32_t)(*count)++;
  return now[old];
}

static void number_stack(const cutter *c, uint32_t *stack, size_t *count) {
  if (*stack != TARN_TRACE_NO_STACK)
    *stack = number(c->stack_now, *stack, count);
}

// Of what the slice has; their events and blocks are its own to be written to.
static size_t number_stacks(const cutter *c, slice *s) {
  tarn_trace_event *events = (tarn_trace_event *)s->trace.events;
  tarn_trace_block *blocks = (tarn_trace_block *)s->trace.blocks;
  size_t count = 0;
  for (size_t i = 0; i < s->trace.event_count; i++)
    number_stack(c, &events[i].stack, &count);
  for (size_t i = 0; i < s->trace.block_count; i++)
    number_stack(c, &blocks[i].stack, &count);
  return count;
}

static void copy_stacks(const cutter *c, slice *s) {
  const tarn_trace *whole = c->whole;
  tarn_trace_stack *stacks = (tarn_trace_stack *)s->trace.stacks;
  size_t used = 0, frames = 0;
  for (size_t i = 0; i < whole->stack_count; i++)
    if (c->stack_now[i] != NOWHERE) used += whole->stacks[i].count;
  uint32_t *indices = tool_array(used + 1, sizeof *indices);
  used = 0;
  for (size_t i = 0; i < whole->stack_count; i++) {
    const tarn_trace_stack *old = &whole->stacks[i];
    if (c->stack_now[i] == NOWHERE) continue;
    stacks[c->stack_now[i]] = (tarn_trace_stack){(uint32_t)used, old->count};
    for (uint32_t k = 0; k < old->count; k++)
      indices[used++] =
          number(c->frame_now, whole->frame_indices[old->first + k], &frames);
  }
  s->trace.frame_indices = indices;
  s->trace.frame_index_count = used;
  s->trace.frame_count = frames;
}

static void copy_frames(const cutter *c, slice *s) {
  tarn_trace_frame *frames =
      tool_array(s->trace.frame_count + 1, sizeof *frames);
  for (size_t i = 0; i < c->whole->frame_count; i++) {
    if (c->frame_now[i] != NOWHERE)
      frames[c->frame_now[i]] = c->whole->frames[i];
  }
  s->trace.frames = frames;
}

static void cut_stacks(const cutter *c, slice *s) {
  s->trace.stack_count = number_stacks(c, s);
  s->trace.stacks =
      tool_array(s->trace.stack_count + 1, sizeof *s->trace.stacks);
  copy_stacks(c, s);
  copy_frames(c, s);
}

// ---------------------------------------------------------------------------
// Segments and sums
// ---------------------------------------------------------------------------

static void cut_segments(const cutter *c, slice *s) {
  if (!moment_knows_spans(c->whole)) return;
  span_list held = moment_spans(c->whole, c->to - 1);
  tarn_trace_segment *segments = tool_array(held.count + 1, sizeof *segments);
  for (size_t i = 0; i < held.count; i++) {
    segments[i] = (tarn_trace_segment){
        held.items[i].address, held.items[i].size, held.items[i].stream};
  }
  s->trace.segments = segments;
  s->trace.segment_count = held.count;
  span_list_deinit(&held);
}

static void add_up(tarn_trace *trace) {
  uint64_t live = 0;
  for (size_t i = 0; i < trace->baseline_count; i++)
    live += trace->blocks[i].size;
  trace->baseline_bytes = trace->live_peak_bytes = live;
  trace->live_peak_event = TARN_TRACE_BASELINE;
  trace->request_count = 0;
  for (size_t i = 0; i < trace->event_count; i++) {
    const tarn_trace_event *e = &trace->events[i];
    if (e->kind != TARN_TRACE_ALLOC && e->kind != TARN_TRACE_FREE) continue;
    uint64_t size = trace->blocks[e->block].size;
    live = e->kind == TARN_TRACE_ALLOC ? live + size : live - size;
    trace->request_count++;
    if (live <= trace->live_peak_bytes) continue;
    trace->live_peak_bytes = live;
    trace->live_peak_event = (uint32_t)i;
  }
}

// ---------------------------------------------------------------------------
// All
// ---------------------------------------------------------------------------

slice slice_make(const tarn_trace *whole, uint32_t from, uint32_t to) {
  slice s = {.trace = *whole, .first = from};
  cutter c = {.whole = whole,
              .from = from,
              .to = to,
              .block_now = make_numbers(whole->block_count),
              .stack_now = make_numbers(whole->stack_count),
              .frame_now = make_numbers(whole->frame_count)};
  s.trace.baseline_count = s.trace.segment_count = 0;
  s.trace.segments = NULL;
  cut_blocks(&c, &s);
  cut_events(&c, &s);
  cut_stacks(&c, &s);
  cut_segments(&c, &s);
  add_up(&s.trace);
  free(c.block_now);
  free(c.stack_now);
  free(c.frame_now);
  return s;
}

void slice_deinit(slice *s) {
  free((void *)s->trace.events);
  free((void *)s->trace.blocks);
  free((void *)s->trace.stacks);
  free((void *)s->trace.frame_indices);
  free((void *)s->trace.frames);
  free((void *)s->trace.segments);
  free(s->block);
  *s = (slice){0};
}

// The passes, without those that end before it.
static void cut_runs(const slice *s, const phases *whole, phases *out) {
  uint32_t count = (uint32_t)s->trace.event_count, end = s->first + count;
  out->runs = tool_array(whole->run_count + 1, sizeof *out->runs);
  for (size_t i = 0; i < whole->run_count; i++) {
    phase_run run = whole->runs[i];
    if (run.end <= s->first || run.first >= end) continue;
    run.first = run.first > s->first ? run.first - s->first : 0;
    run.end = run.end < end ? run.end - s->first : count;
    out->runs[out->run_count++] = run;
  }
}

roles slice_roles(const slice *s, const roles *r) {
  size_t count = s->trace.event_count;
  roles cut = {.rule_of = tool_array(s->trace.block_count + 1, 1)};
  for (size_t i = 0; i < s->trace.block_count; i++)
    cut.rule_of[i] = r->rule_of[s->block[i]];
  cut.phases.of_event = tool_array(count + 1, 1);
  memcpy(cut.phases.of_event, r->phases.of_event + s->first, count);
  memcpy(cut.phases.has, r->phases.has, sizeof cut.phases.has);
  cut_runs(s, &r->phases, &cut.phases);
  return cut;
}
