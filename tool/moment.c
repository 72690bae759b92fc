// Blocks and segments at a moment.
//
// Held memory is summed up, not replayed. Each range that counts is two steps,
// one up at its begin and one down at its end; a range that was taken later
// than the moment is turned around. Sorted by address, the steps add up to 1
// where memory was held:
//
//     at the end      |=========|   |======|        +1 ... -1
//     taken since                   |======|        -1 ... +1
//     given back          since         |=======|   +1 ... -1
//     held then       |=========|       |=======|
#include "moment.h"

#include <stdlib.h>

#include "kit/tool.h"

// ---------------------------------------------------------------------------
// Blocks
// ---------------------------------------------------------------------------

static bool lives(const tarn_trace_block *block, moment when) {
  if (when == TARN_TRACE_BASELINE) return block->born == TARN_TRACE_BASELINE;
  return (block->born == TARN_TRACE_BASELINE || block->born <= when) &&
         (block->died == TARN_TRACE_NEVER || block->died > when);
}

static bool churns(const tarn_trace_block *block, moment when) {
  return block->born != TARN_TRACE_BASELINE &&
         block->died != TARN_TRACE_NEVER && !lives(block, when);
}

static bool is_old(const tarn_trace_block *block, moment when) {
  (void)when;
  return block->born == TARN_TRACE_BASELINE;
}

typedef bool block_test(const tarn_trace_block *block, moment when);

static void take(block_set *set, const tarn_trace *trace, uint32_t block) {
  set->items[set->count++] = block;
  set->bytes += trace->blocks[block].size;
}

static block_set choose(const tarn_trace *trace, block_test *test,
                        moment when) {
  block_set set = {0};
  set.items = tool_array(trace->block_count + 1, sizeof *set.items);
  for (size_t i = 0; i < trace->block_count; i++) {
    if (test(&trace->blocks[i], when)) take(&set, trace, (uint32_t)i);
  }
  return set;
}

block_set moment_live(const tarn_trace *trace, moment when) {
  return choose(trace, lives, when);
}

block_set moment_churn(const tarn_trace *trace, moment when) {
  return choose(trace, churns, when);
}

block_set block_set_baseline(const tarn_trace *trace, const block_set *set) {
  block_set old = {0};
  old.items = tool_array(set->count + 1, sizeof *old.items);
  for (size_t i = 0; i < set->count; i++) {
    if (is_old(&trace->blocks[set->items[i]], 0)) {
      take(&old, trace, set->items[i]);
    }
  }
  return old;
}

void block_set_deinit(block_set *set) {
  free(set->items);
  *set = (block_set){0};
}

// ---------------------------------------------------------------------------
// Segments
// ---------------------------------------------------------------------------

// 1: the allocator has more after the event; -1: less; 0: as much.
static int direction(const tarn_trace_event *event) {
  switch (event->kind) {
    case TARN_TRACE_SEGMENT_ALLOC:
    case TARN_TRACE_SEGMENT_MAP:
      return 1;
    case TARN_TRACE_SEGMENT_FREE:
    case TARN_TRACE_SEGMENT_UNMAP:
      return -1;
    default:
      return 0;
  }
}

static bool is_mapping(const tarn_trace_event *event) {
  return event->kind == TARN_TRACE_SEGMENT_MAP ||
         event->kind == TARN_TRACE_SEGMENT_UNMAP;
}

bool moment_has_mappings(const tarn_trace *trace) {
  for (size_t i = 0; i < trace->event_count; i++) {
    if (is_mapping(&trace->events[i])) return true;
  }
  return false;
}

static size_t count_steps(const tarn_trace *trace) {
  size_t count = trace->segment_count;
  for (size_t i = 0; i < trace->event_count; i++)
    count += direction(&trace->events[i]) != 0;
  return count;
}

bool moment_knows_spans(const tarn_trace *trace) {
  return count_steps(trace) > 0;
}

typedef struct step {
  uint64_t address;
  uint64_t stream;
  int change;
  int begins;  // segments that begin here, separate from what is before
} step;

typedef struct step_list {
  step *items;
  size_t count;
} step_list;

// |sign| 1: [address, address + size) counts; -1: it does not. So does its
// beginning, where |begins|.
static void add_range(step_list *list, const tarn_trace_segment *range,
                      int sign, bool begins) {
  uint64_t end = range->address + range->size;
  if (range->size == 0 || end < range->address) return;
  list->items[list->count++] =
      (step){range->address, range->stream, sign, begins ? sign : 0};
  list->items[list->count++] = (step){end, range->stream, -sign, 0};
}

static void add_event(step_list *list, const tarn_trace_event *event, int sign,
                      bool begins) {
  tarn_trace_segment range = {event->address, event->size, event->stream};
  add_range(list, &range, sign * direction(event), begins);
}

static bool is_after(size_t event, moment when) {
  return when == TARN_TRACE_BASELINE || event > when;
}

// Where ranges begin: without mappings each is a segment. With them the ranges
// of the end may begin anywhere within a segment, so that only those segments
// begin which were seen to be allocated before |when|.
static step_list collect(const tarn_trace *trace, moment when) {
  step_list list = {0};
  bool back = trace->segment_count > 0, maps = moment_has_mappings(trace);
  list.items = tool_array(3 * count_steps(trace) + 1, sizeof *list.items);
  for (size_t i = 0; i < trace->segment_count; i++)
    add_range(&list, &trace->segments[i], 1, !maps);
  for (size_t i = 0; i < trace->event_count; i++) {
    const tarn_trace_event *event = &trace->events[i];
    if (direction(event) == 0) continue;
    if (is_after(i, when) == back)
      add_event(&list, event, back ? -1 : 1, !maps);
    if (maps && event->kind == TARN_TRACE_SEGMENT_ALLOC && !is_after(i, when)) {
      list.items[list.count++] = (step){event->address, event->stream, 0, 1};
    }
  }
  return list;
}

static int compare_steps(const void *a, const void *b) {
  const step *x = a, *y = b;
  return (x->address > y->address) - (x->address < y->address);
}

static void extend(span_list *list, const step *from, uint64_t to,
                   bool begins) {
  span *last = list->count > 0 ? &list->items[list->count - 1] : NULL;
  uint64_t size = to - from->address;
  list->bytes += size;
  if (last != NULL && last->address + last->size == from->address && !begins) {
    last->size += size;
    return;
  }
  list->items[list->count++] = (span){from->address, size, from->stream};
}

// All steps at the address of the first of |count|: how many they are, their
// sum, and which of them stands for the range that they begin.
typedef struct landing {
  size_t count;
  int change;
  int begins;
  const step *first;
} landing;

static landing land(const step *steps, size_t count) {
  landing l = {.first = steps};
  for (; l.count < count && steps[l.count].address == steps->address;
       l.count++) {
    const step *s = &steps[l.count];
    l.change += s->change;
    if (s->change > 0 && l.first->change <= 0) l.first = s;
    l.begins += s->begins;
  }
  return l;
}

static span_list sweep(const step_list *steps) {
  span_list list = {0};
  long height = 0;
  list.items = tool_array(steps->count + 1, sizeof *list.items);
  for (size_t i = 0; i < steps->count;) {
    landing l = land(&steps->items[i], steps->count - i);
    i += l.count;
    height += l.change;
    if (height <= 0 || i == steps->count) continue;
    extend(&list, l.first, steps->items[i].address, l.begins > 0);
  }
  return list;
}

span_list moment_spans(const tarn_trace *trace, moment when) {
  step_list steps = collect(trace, when);
  qsort(steps.items, steps.count, sizeof *steps.items, compare_steps);
  span_list list = sweep(&steps);
  free(steps.items);
  return list;
}

void span_list_deinit(span_list *list) {
  free(list->items);
  *list = (span_list){0};
}

static void raise_to(uint64_t *most, uint64_t value) {
  if (value > *most) *most = value;
}

// From where the sums are known on: the end, or the begin.
uint64_t moment_held_peak(const tarn_trace *trace, uint64_t refused_most,
                          uint64_t *out_wanted) {
  span_list first = moment_spans(trace, TARN_TRACE_BASELINE);
  uint64_t held = first.bytes, peak = first.bytes, wanted = 0;
  span_list_deinit(&first);
  for (size_t i = 0; i < trace->event_count; i++) {
    const tarn_trace_event *event = &trace->events[i];
    int way = direction(event);
    if (way > 0) held += event->size;
    if (way < 0) held -= event->size < held ? event->size : held;
    raise_to(&peak, held);
    if (event->kind != TARN_TRACE_OOM || event->size > refused_most) continue;
    bool fits = event->size <= UINT64_MAX - held;
    raise_to(&wanted, fits ? held + event->size : UINT64_MAX);
  }
  *out_wanted = wanted > peak ? wanted : peak;
  return peak;
}
