// Segments over time: a set of ranges that are held now, sorted by address and
// apart from each other, and a list of those whose time is over.
#include "view_segments.h"

#include <stdlib.h>
#include <string.h>

#include "kit/tool.h"
#include "moment.h"

typedef struct list {
  view_segment *items;
  size_t count;
  size_t capacity;
} list;

typedef struct history {
  list held;  // by address, none overlaps another; died is not yet known
  list over;
  bool maps;  // the trace tells of memory that was mapped
} history;

// ---------------------------------------------------------------------------
// Lists
// ---------------------------------------------------------------------------

static void insert(list *l, size_t index, view_segment item) {
  if (l->count == l->capacity) {
    size_t capacity = l->capacity ? l->capacity * 2 : 64;
    view_segment *items = tool_array(capacity, sizeof *items);
    if (l->count > 0) memcpy(items, l->items, l->count * sizeof *items);
    free(l->items);
    l->items = items;
    l->capacity = capacity;
  }
  memmove(&l->items[index + 1], &l->items[index],
          (l->count - index) * sizeof *l->items);
  l->items[index] = item;
  l->count++;
}

static void append(list *l, view_segment item) {
  if (item.size > 0) insert(l, l->count, item);
}

static uint64_t end_of(const view_segment *s) {
  return s->address + s->size;
}

// The first that ends beyond |address|.
static size_t find(const list *l, uint64_t address) {
  size_t low = 0, high = l->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (end_of(&l->items[middle]) <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// ---------------------------------------------------------------------------
// Taking and giving back
// ---------------------------------------------------------------------------

static void hold(history *h, view_segment item) {
  if (item.size > 0) insert(&h->held, find(&h->held, item.address), item);
}

// Replaces held[index] by its parts outside of |range|; the part within ends.
static void cut(history *h, size_t index, const view_segment *range) {
  view_segment whole = h->held.items[index];
  view_segment left = whole, within = whole, right = whole;
  uint64_t from =
      whole.address > range->address ? whole.address : range->address;
  uint64_t to = end_of(&whole) < end_of(range) ? end_of(&whole) : end_of(range);
  memmove(&h->held.items[index], &h->held.items[index + 1],
          (h->held.count - index - 1) * sizeof whole);
  h->held.count--;
  left.size = from - whole.address;
  within.begins = whole.begins && from == whole.address;
  within.address = from;
  within.size = to - from;
  within.died = range->died;
  right.address = to;
  right.size = end_of(&whole) - to;
  right.begins = false;
  hold(h, left);
  hold(h, right);
  append(&h->over, within);
}

// Adds the parts of |range| that are not held to |out|, with the birth and
// death of |range|.
static void collect_gaps(const history *h, const view_segment *range,
                         list *out) {
  uint64_t at = range->address;
  size_t i = find(&h->held, at);
  for (; i < h->held.count; i++) {
    const view_segment *next = &h->held.items[i];
    if (next->address >= end_of(range)) break;
    view_segment gap = *range;
    gap.address = at;
    gap.size = next->address > at ? next->address - at : 0;
    append(out, gap);
    at = end_of(next);
  }
  view_segment rest = *range;
  rest.address = at;
  rest.size = at < end_of(range) ? end_of(range) - at : 0;
  append(out, rest);
}

static void end_all_within(history *h, const view_segment *range) {
  size_t i = find(&h->held, range->address);
  while (i < h->held.count && h->held.items[i].address < end_of(range)) {
    cut(h, i, range);
    i = find(&h->held, range->address);
  }
}

static void give_back(history *h, view_segment range) {
  collect_gaps(h, &range, &h->over);  // held, it seems, from the beginning
  end_all_within(h, &range);
}

static void take(history *h, view_segment range) {
  range.died = range.born;
  end_all_within(h, &range);
  hold(h, range);
}

static void obey(history *h, const tarn_trace_event *event, uint32_t index) {
  view_segment range = {.address = event->address,
                        .size = event->size,
                        .born = TARN_TRACE_BASELINE,
                        .begins = !h->maps};
  if (range.size == 0 || range.address > UINT64_MAX - range.size) return;
  switch (event->kind) {
    case TARN_TRACE_SEGMENT_ALLOC:
    case TARN_TRACE_SEGMENT_MAP:
      range.born = index;
      range.begins |= event->kind == TARN_TRACE_SEGMENT_ALLOC;
      take(h, range);
      return;
    case TARN_TRACE_SEGMENT_FREE:
    case TARN_TRACE_SEGMENT_UNMAP:
      range.died = index;
      give_back(h, range);
      return;
    case TARN_TRACE_ALLOC:
    case TARN_TRACE_FREE:
    case TARN_TRACE_FREE_REQUESTED:
    case TARN_TRACE_OOM:
    case TARN_TRACE_SNAPSHOT:
      return;
  }
}

// ---------------------------------------------------------------------------
// All
// ---------------------------------------------------------------------------

static void add_end(history *h, const tarn_trace *trace) {
  list fresh = {0};
  for (size_t i = 0; i < trace->segment_count; i++) {
    const tarn_trace_segment *s = &trace->segments[i];
    view_segment range = {.address = s->address,
                          .size = s->size,
                          .born = TARN_TRACE_BASELINE,
                          .begins = !h->maps};
    if (s->size == 0 || s->address > UINT64_MAX - s->size) continue;
    collect_gaps(h, &range, &fresh);
    for (size_t k = 0; k < fresh.count; k++)
      hold(h, fresh.items[k]);
    fresh.count = 0;
  }
  free(fresh.items);
}

view_segments view_segments_make(const tarn_trace *trace) {
  history h = {.maps = moment_has_mappings(trace)};
  for (size_t i = 0; i < trace->event_count; i++)
    obey(&h, &trace->events[i], (uint32_t)i);
  add_end(&h, trace);
  for (size_t i = 0; i < h.held.count; i++) {
    h.held.items[i].died = (uint32_t)trace->event_count;
    append(&h.over, h.held.items[i]);
  }
  free(h.held.items);
  return (view_segments){.items = h.over.items, .count = h.over.count};
}

void view_segments_deinit(view_segments *s) {
  free(s->items);
  *s = (view_segments){0};
}
