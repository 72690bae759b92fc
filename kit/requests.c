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

typedef struct trace_set {
  const tarn_trace *const *traces;
  size_t count;
} trace_set;

static size_t blocks_of(const trace_set *set) {
  size_t count = 0;
  for (size_t i = 0; i < set->count; i++)
    count += set->traces[i]->block_count;
  return count;
}

// The different sizes of all blocks, the smallest first. Free it.
static uint64_t *sizes_of(const trace_set *set, size_t *out_count) {
  size_t blocks = blocks_of(set), count = 0;
  uint64_t *sizes = tool_array(blocks, sizeof *sizes);
  for (size_t i = 0; i < set->count; i++) {
    for (size_t k = 0; k < set->traces[i]->block_count; k++)
      sizes[count++] = set->traces[i]->blocks[k].size;
  }
  qsort(sizes, blocks, sizeof *sizes, tool_compare_uint64);
  *out_count = drop_repeated(sizes, blocks);
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

static bool names_threads(const request_list *list) {
  for (size_t i = 1; i < list->count; i++) {
    if (list->threads[i] != list->threads[0]) return true;
  }
  return false;
}

static void append(request_list *list, const tarn_trace *trace,
                   const uint64_t *sizes) {
  for (size_t i = 0; i < trace->event_count; i++) {
    const tarn_trace_event *event = &trace->events[i];
    if (!is_request(event)) continue;
    uint64_t size = trace->blocks[event->block].size;
    list->threads[list->count] = event->thread;
    list->items[list->count++] = (request){
        .slot = (uint32_t)list->slot_count + event->block,
        .size_rank = rank_of(sizes, list->rank_count, size),
        .size = event->kind == TARN_TRACE_ALLOC ? size : 0,
    };
  }
  list->slot_count += trace->block_count;
}

request_list requests_join(const tarn_trace *const *traces, size_t count) {
  trace_set set = {.traces = traces, .count = count};
  request_list list = {0};
  uint64_t *sizes = sizes_of(&set, &list.rank_count);
  size_t requests = 0;
  for (size_t i = 0; i < count; i++)
    requests += traces[i]->request_count;
  list.items = tool_array(requests, sizeof *list.items);
  list.threads = tool_array(requests, sizeof *list.threads);
  for (size_t i = 0; i < count; i++)
    append(&list, traces[i], sizes);
  free(sizes);
  if (names_threads(&list)) return list;
  free(list.threads);
  list.threads = NULL;
  return list;
}

request_list requests_make(const tarn_trace *trace) {
  return requests_join(&trace, 1);
}

void requests_deinit(request_list *list) {
  free(list->items);
  free(list->threads);
  *list = (request_list){0};
}
