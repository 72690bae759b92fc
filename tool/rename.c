// A trace, taken apart and built again with other frames.
#include "rename.h"

#include <stdlib.h>

#include <tarn/trace_build.h>

#include "kit/tool.h"

// What frame |i| of the trace became: items[first[i] .. first[i + 1]).
typedef struct renamed {
  tarn_trace_frame *items;
  size_t count;
  size_t room;
  size_t *first;
} renamed;

typedef struct copy {
  const tarn_trace *trace;
  tarn_trace_builder *builder;
  renamed frames;
  uint32_t *stacks;  // of the copy, by their numbers in the trace
  uint32_t *tags;
} copy;

// --- frames ----------------------------------------------------------------

static void add(renamed *frames, const tarn_trace_frame *more, size_t count) {
  if (frames->room - frames->count < count) {
    size_t room = 2 * frames->room + count;
    tarn_trace_frame *items = tool_array(room, sizeof *items);
    for (size_t i = 0; i < frames->count; i++)
      items[i] = frames->items[i];
    free(frames->items);
    frames->items = items;
    frames->room = room;
  }
  for (size_t i = 0; i < count; i++)
    frames->items[frames->count++] = more[i];
}

static void rename_frames(copy *to, rename_fn *rename, void *context) {
  const tarn_trace *trace = to->trace;
  renamed *frames = &to->frames;
  frames->first = tool_array(trace->frame_count + 1, sizeof *frames->first);
  for (size_t i = 0; i < trace->frame_count; i++) {
    tarn_trace_frame names[RENAME_MOST];
    size_t count = rename(context, &trace->frames[i], names);
    if (count == 0) {
      add(frames, &trace->frames[i], 1);
    } else {
      add(frames, names, count);
    }
    frames->first[i + 1] = frames->count;
  }
}

static tarn_status copy_stack(copy *to, const tarn_trace_stack *stack,
                              uint32_t *out_stack) {
  renamed all = {0};
  const uint32_t *indices = to->trace->frame_indices + stack->first;
  for (uint32_t i = 0; i < stack->count; i++) {
    size_t first = to->frames.first[indices[i]];
    add(&all, to->frames.items + first,
        to->frames.first[indices[i] + 1] - first);
  }
  tarn_status status =
      tarn_trace_builder_stack(to->builder, all.items, all.count, out_stack);
  free(all.items);
  return status;
}

// --- the rest --------------------------------------------------------------

static tarn_status copy_names(copy *to) {
  const tarn_trace *trace = to->trace;
  tarn_status status = TARN_OK;
  to->stacks = tool_array(trace->stack_count, sizeof *to->stacks);
  to->tags = tool_array(trace->tag_count, sizeof *to->tags);
  for (size_t i = 0; status == TARN_OK && i < trace->stack_count; i++)
    status = copy_stack(to, &trace->stacks[i], &to->stacks[i]);
  for (size_t i = 0; status == TARN_OK && i < trace->tag_count; i++)
    status = tarn_trace_builder_tag(to->builder, trace->tags[i], &to->tags[i]);
  return status;
}

static uint32_t stack_of(const copy *to, uint32_t stack) {
  return stack == TARN_TRACE_NO_STACK ? stack : to->stacks[stack];
}

static tarn_status copy_baseline(copy *to) {
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK && i < to->trace->baseline_count; i++) {
    tarn_trace_block block = to->trace->blocks[i];
    block.stack = stack_of(to, block.stack);
    block.tag = to->tags[block.tag];
    status = tarn_trace_builder_old(to->builder, &block);
  }
  return status;
}

static tarn_status copy_events(copy *to) {
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK && i < to->trace->event_count; i++) {
    tarn_trace_event event = to->trace->events[i];
    event.stack = stack_of(to, event.stack);
    event.tag = to->tags[event.tag];
    status = tarn_trace_builder_event(to->builder, &event);
  }
  return status;
}

static tarn_status copy_segments(copy *to) {
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK && i < to->trace->segment_count; i++)
    status = tarn_trace_builder_segment(to->builder, &to->trace->segments[i]);
  return status;
}

static tarn_status copy_all(copy *to) {
  tarn_status status = copy_names(to);
  if (status == TARN_OK) status = copy_baseline(to);
  if (status == TARN_OK) status = copy_events(to);
  if (status == TARN_OK) status = copy_segments(to);
  tarn_trace_builder_lost(to->builder, to->trace->lost_count);
  return status;
}

// Fields that the builder does not set. The copy is not shared yet.
static void copy_counts(const tarn_trace *trace, tarn_trace *out) {
  out->unknown_count = trace->unknown_count;
  out->ignored_count = trace->ignored_count;
  out->ignored_bytes = trace->ignored_bytes;
  out->unfinished = trace->unfinished;
}

tarn_status rename_trace(const tarn_trace *trace, const char *name,
                         rename_fn *rename, void *context,
                         tarn_trace **out_trace) {
  copy to = {.trace = trace};
  *out_trace = NULL;
  tarn_status status = tarn_trace_builder_create(name, &to.builder);
  if (status != TARN_OK) return status;
  rename_frames(&to, rename, context);
  status = copy_all(&to);
  if (status == TARN_OK) {
    status = tarn_trace_builder_finish(to.builder, out_trace);
    if (status == TARN_OK) copy_counts(trace, *out_trace);
  } else {
    tarn_trace_builder_destroy(to.builder);
  }
  free(to.frames.items);
  free(to.frames.first);
  free(to.stacks);
  free(to.tags);
  return status;
}
