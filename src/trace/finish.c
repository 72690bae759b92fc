// Turns a history into a trace: sorts blocks and moves the arrays.
//
// Every array of a trace has exactly as many items as its count says, so that
// the trace alone is enough to destroy it.
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "trace/history.h"

// A trace and what it owns beyond its arrays.
typedef struct owner {
  tarn_trace trace;
  char *name;
  char *texts;  // of the frames, each ending in a zero byte
  size_t texts_size;
  char *tag_texts;  // likewise
  size_t tag_texts_size;
} owner;

// --- the baseline to the front ---------------------------------------------

// Copies blocks to |sorted|, the baseline first, each part in its old order;
// |moved| tells where each went.
static void partition(const tarn__trace_history *history,
                      tarn_trace_block *sorted, uint32_t *moved) {
  const tarn_trace_block *blocks = history->blocks.items;
  uint32_t old = 0;
  uint32_t young = (uint32_t)history->trace.baseline_count;
  for (size_t i = 0; i < history->blocks.count; i++) {
    uint32_t to = blocks[i].born == TARN_TRACE_BASELINE ? old++ : young++;
    sorted[to] = blocks[i];
    moved[i] = to;
  }
}

static void renumber(tarn__trace_history *history, const uint32_t *moved) {
  tarn_trace_event *events = history->events.items;
  for (size_t i = 0; i < history->events.count; i++) {
    if (events[i].block == TARN_TRACE_NO_BLOCK) continue;
    events[i].block = moved[events[i].block];
  }
}

static tarn_status sort_blocks(tarn__trace_history *history) {
  size_t count = history->blocks.count;
  tarn__array sorted = TARN__ARRAY_OF(tarn_trace_block);
  tarn__array moved = TARN__ARRAY_OF(uint32_t);
  tarn_status status = tarn__array_make(history->budget, &sorted, count);
  if (status == TARN_OK) {
    status = tarn__array_make(history->budget, &moved, count);
  }
  if (status == TARN_OK) {
    partition(history, sorted.items, moved.items);
    renumber(history, moved.items);
    tarn__array unsorted = history->blocks;
    history->blocks = sorted;
    sorted = unsorted;
  }
  tarn__array_free(history->budget, &moved);
  tarn__array_free(history->budget, &sorted);
  return status;
}

// --- ownership -------------------------------------------------------------

// Moves the items out of |array|, after shrinking it to their number. The
// budget still counts them.
static void *take(tarn__array *array, size_t *out_count) {
  void *items = array->items;
  *out_count = array->count;
  *array = (tarn__array){.item_size = array->item_size};
  return items;
}

static tarn_status fit(tarn__trace_history *history) {
  tarn__array *const arrays[] = {&history->events,
                                 &history->blocks,
                                 &history->segments,
                                 &history->stacks.texts.bytes,
                                 &history->stacks.stacks.bytes,
                                 &history->tags.bytes};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
    TARN__TRY(tarn__array_fit(history->budget, arrays[i]));
  }
  return TARN_OK;
}

static void take_arrays(tarn__trace_history *history, owner *made) {
  tarn_trace *trace = &made->trace;
  size_t index_bytes = 0;
  trace->events = take(&history->events, &trace->event_count);
  trace->blocks = take(&history->blocks, &trace->block_count);
  trace->segments = take(&history->segments, &trace->segment_count);
  made->texts = take(&history->stacks.texts.bytes, &made->texts_size);
  made->tag_texts = take(&history->tags.bytes, &made->tag_texts_size);
  trace->frame_indices = take(&history->stacks.stacks.bytes, &index_bytes);
  trace->frame_index_count = index_bytes / sizeof *trace->frame_indices;
}

// --- frames and stacks -----------------------------------------------------

static tarn_status make_frames(tarn__trace_history *history, owner *made) {
  const tarn__trace_frame *from = history->stacks.frames.bytes.items;
  const tarn__string *texts = history->stacks.texts.spans.items;
  tarn__array shown = TARN__ARRAY_OF(tarn_trace_frame);
  TARN__TRY(tarn__array_make(history->budget, &shown,
                             history->stacks.frames.spans.count));
  tarn_trace_frame *frames = shown.items;
  for (size_t i = 0; i < shown.count; i++) {
    frames[i].file = made->texts + texts[from[i].file].first;
    frames[i].function = made->texts + texts[from[i].function].first;
    frames[i].line = from[i].line;
  }
  made->trace.frames = take(&shown, &made->trace.frame_count);
  return TARN_OK;
}

static tarn_status make_stacks(tarn__trace_history *history,
                               tarn_trace *trace) {
  const tarn__string *spans = history->stacks.stacks.spans.items;
  tarn__array shown = TARN__ARRAY_OF(tarn_trace_stack);
  TARN__TRY(tarn__array_make(history->budget, &shown,
                             history->stacks.stacks.spans.count));
  tarn_trace_stack *stacks = shown.items;
  for (size_t i = 0; i < shown.count; i++) {
    stacks[i].first = (uint32_t)(spans[i].first / sizeof(uint32_t));
    stacks[i].count = (uint32_t)(spans[i].size / sizeof(uint32_t));
  }
  trace->stacks = take(&shown, &trace->stack_count);
  return TARN_OK;
}

static tarn_status make_tags(tarn__trace_history *history, owner *made) {
  const tarn__string *spans = history->tags.spans.items;
  size_t count = history->tags.spans.count;
  tarn__array shown = TARN__ARRAY_OF(const char *);
  TARN__TRY(tarn__array_make(history->budget, &shown, count == 0 ? 1 : count));
  const char **tags = shown.items;
  tags[TARN_TRACE_NO_TAG] = "";
  for (size_t i = 1; i < count; i++)
    tags[i] = made->tag_texts + spans[i].first;
  made->trace.tags = take(&shown, &made->trace.tag_count);
  return TARN_OK;
}

// --- the whole -------------------------------------------------------------

static tarn_status fill(tarn__trace_history *history, owner *made) {
  tarn_trace *trace = &made->trace;
  made->name = tarn__host_text(history->name);
  if (made->name == NULL) return TARN_E_NOMEM;
  trace->name = made->name;
  TARN__TRY(sort_blocks(history));
  TARN__TRY(fit(history));
  take_arrays(history, made);
  TARN__TRY(make_frames(history, made));
  TARN__TRY(make_stacks(history, trace));
  return make_tags(history, made);
}

static tarn_status make(tarn__trace_history *history, const char *format,
                        tarn_trace **out_trace) {
  TARN__TRY(tarn__budget_charge(history->budget,
                                sizeof(owner) + strlen(history->name) + 1));
  owner *made = tarn__host_alloc(sizeof *made);
  if (made == NULL) return TARN_E_NOMEM;
  made->trace = history->trace;
  made->trace.struct_size = sizeof made->trace;
  made->trace.format = format;
  tarn_status status = fill(history, made);
  if (status == TARN_OK) {
    *out_trace = &made->trace;
  } else {
    tarn_trace_destroy(&made->trace);
  }
  return status;
}

tarn_status tarn__history_finish(tarn__trace_history *history,
                                 tarn_status status, const char *format,
                                 tarn_trace **out_trace) {
  *out_trace = NULL;
  if (status == TARN_OK) status = make(history, format, out_trace);
  tarn__history_deinit(history);
  return status;
}

// The arrays are const in the public struct.
static void free_array(const void *items, size_t count, size_t size) {
  tarn__host_free_array((void *)(uintptr_t)items, count, size);
}

void tarn_trace_destroy(tarn_trace *trace) {
  if (trace == NULL) return;
  owner *made = (owner *)(void *)trace;  // its first member
  free_array(trace->tags, trace->tag_count, sizeof *trace->tags);
  free_array(trace->stacks, trace->stack_count, sizeof *trace->stacks);
  free_array(trace->frames, trace->frame_count, sizeof *trace->frames);
  free_array(trace->frame_indices, trace->frame_index_count,
             sizeof *trace->frame_indices);
  free_array(made->tag_texts, made->tag_texts_size, 1);
  free_array(made->texts, made->texts_size, 1);
  free_array(trace->segments, trace->segment_count, sizeof *trace->segments);
  free_array(trace->blocks, trace->block_count, sizeof *trace->blocks);
  free_array(trace->events, trace->event_count, sizeof *trace->events);
  tarn__host_free_text(made->name);
  tarn__host_free(made, sizeof *made);
}
