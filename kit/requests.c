// Turns events into requests.
#include "requests.h"

#include <stdlib.h>

#include "tool.h"

// ---------------------------------------------------------------------------
// Ranks of sizes
// ---------------------------------------------------------------------------

static size_t drop_repeated(uint64_t *sorted, size_t count) {
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    if (kept == 0 || sorted[i] != sorted[kept - 1]) sorted[kept++] = sorted[i];
  }
  return kept;
}

// The different sizes of all blocks, the smallest first. Free it.
static uint64_t *sizes_of(const tarn_trace *trace, size_t *out_count) {
  uint64_t *sizes = tool_array(trace->block_count, sizeof *sizes);
  for (size_t i = 0; i < trace->block_count; i++) {
    sizes[i] = trace->blocks[i].size;
  }
  qsort(sizes, trace->block_count, sizeof *sizes, tool_compare_uint64);
  *out_count = drop_repeated(sizes, trace->block_count);
  return sizes;
}

static uint32_t rank_of(const uint64_t *sizes, size_t count, uint64_t size) {
  const uint64_t *found =
      bsearch(&size, sizes, count, sizeof size, tool_compare_uint64);
  return (uint32_t)(found - sizes);
}

// ---------------------------------------------------------------------------
// The list
// ---------------------------------------------------------------------------

static bool is_request(const tarn_trace_event *event) {
  return event->kind == TARN_TRACE_ALLOC || event->kind == TARN_TRACE_FREE;
}

static bool names_threads(const tarn_trace *trace) {
  for (size_t i = 1; i < trace->event_count; i++) {
    if (trace->events[i].thread != trace->events[0].thread) return true;
  }
  return false;
}

static void note_threads(request_list *list, const tarn_trace *trace) {
  size_t count = 0;
  list->threads = tool_array(list->count, sizeof *list->threads);
  for (size_t i = 0; i < trace->event_count; i++) {
    if (!is_request(&trace->events[i])) continue;
    list->threads[count++] = trace->events[i].thread;
  }
}

request_list requests_make(const tarn_trace *trace) {
  request_list list = {.slot_count = trace->block_count};
  uint64_t *sizes = sizes_of(trace, &list.rank_count);
  list.items = tool_array(trace->request_count, sizeof *list.items);
  for (size_t i = 0; i < trace->event_count; i++) {
    const tarn_trace_event *event = &trace->events[i];
    if (!is_request(event)) continue;
    uint64_t size = trace->blocks[event->block].size;
    list.items[list.count++] = (request){
        .slot = event->block,
        .size_rank = rank_of(sizes, list.rank_count, size),
        .size = event->kind == TARN_TRACE_ALLOC ? size : 0,
    };
  }
  free(sizes);
  if (names_threads(trace)) note_threads(&list, trace);
  return list;
}

void requests_deinit(request_list *list) {
  free(list->items);
  free(list->threads);
  *list = (request_list){0};
}
