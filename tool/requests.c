// Turns events into requests.
#include "requests.h"

#include <stdlib.h>

#include "tool.h"

size_t requests_size(const tarn_trace *trace, uint32_t block) {
  size_t size = trace->blocks[block].size;
  return size > 0 ? size : 1;
}

// ---------------------------------------------------------------------------
// Ranks of sizes
// ---------------------------------------------------------------------------

static int compare(const void *a, const void *b) {
  size_t x = *(const size_t *)a, y = *(const size_t *)b;
  return (x > y) - (x < y);
}

static size_t drop_repeated(size_t *sorted, size_t count) {
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    if (kept == 0 || sorted[i] != sorted[kept - 1]) sorted[kept++] = sorted[i];
  }
  return kept;
}

// The different sizes of all blocks, the smallest first. Free it.
static size_t *sizes_of(const tarn_trace *trace, size_t *out_count) {
  size_t *sizes = tool_array(trace->block_count, sizeof *sizes);
  for (size_t i = 0; i < trace->block_count; i++) {
    sizes[i] = requests_size(trace, (uint32_t)i);
  }
  qsort(sizes, trace->block_count, sizeof *sizes, compare);
  *out_count = drop_repeated(sizes, trace->block_count);
  return sizes;
}

static uint32_t rank_of(const size_t *sizes, size_t count, size_t size) {
  const size_t *found = bsearch(&size, sizes, count, sizeof size, compare);
  return (uint32_t)(found - sizes);
}

// ---------------------------------------------------------------------------
// The list
// ---------------------------------------------------------------------------

static bool is_request(const tarn_trace_event *event) {
  return event->kind == TARN_TRACE_ALLOC || event->kind == TARN_TRACE_FREE;
}

request_list requests_make(const tarn_trace *trace) {
  request_list list = {.slot_count = trace->block_count};
  size_t *sizes = sizes_of(trace, &list.rank_count);
  list.items = tool_array(trace->request_count, sizeof *list.items);
  for (size_t i = 0; i < trace->event_count; i++) {
    const tarn_trace_event *event = &trace->events[i];
    if (!is_request(event)) continue;
    size_t size = requests_size(trace, event->block);
    list.items[list.count++] = (request){
        .slot = event->block,
        .size_rank = rank_of(sizes, list.rank_count, size),
        .size = event->kind == TARN_TRACE_ALLOC ? size : 0,
    };
  }
  free(sizes);
  return list;
}

void requests_deinit(request_list *list) {
  free(list->items);
  *list = (request_list){0};
}
