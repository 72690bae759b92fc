// Holes: segments less blocks, both by address.
#include "holes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kit/tool.h"

enum { UNIT_OF_PYTORCH = 512 };

typedef struct range {
  uint64_t address;
  uint64_t end;
} range;

static uint64_t round_up(uint64_t size, uint64_t unit) {
  uint64_t rest = size % unit;
  if (rest == 0 || size > UINT64_MAX - unit) return size;
  return size + (unit - rest);
}

static int compare_ranges(const void *a, const void *b) {
  const range *x = a, *y = b;
  return (x->address > y->address) - (x->address < y->address);
}

static bool is_sorted(const range *ranges, size_t count) {
  for (size_t i = 1; i < count; i++) {
    if (ranges[i].address < ranges[i - 1].address) return false;
  }
  return true;
}

uint64_t holes_unit(const tarn_trace *trace) {
  bool pytorch = strcmp(trace->format, "pytorch-snapshot") == 0;
  return pytorch ? UNIT_OF_PYTORCH : 1;
}

// The ranges of the blocks, by address.
static range *occupied(const tarn_trace *trace, const block_set *live) {
  uint64_t unit = holes_unit(trace);
  range *ranges = tool_array(live->count + 1, sizeof *ranges);
  for (size_t i = 0; i < live->count; i++) {
    const tarn_trace_block *block = &trace->blocks[live->items[i]];
    uint64_t end = block->address + round_up(block->size, unit);
    if (end < block->address) end = UINT64_MAX;
    ranges[i] = (range){block->address, end};
  }
  if (!is_sorted(ranges, live->count)) {
    qsort(ranges, live->count, sizeof *ranges, compare_ranges);
  }
  return ranges;
}

static void note_hole(holes *h, uint64_t size, bool of_stream) {
  if (size == 0) return;
  h->count++;
  h->free_bytes += size;
  if (size > h->largest) h->largest = size;
  if (of_stream && size > h->largest_of_stream) h->largest_of_stream = size;
}

// Notes the holes of one segment; |*at| is the first range that may reach into
// it, and then the first that may reach into the next.
static void search(holes *h, const span *held, const range *ranges,
                   size_t count, size_t *at, bool of_stream) {
  uint64_t from = held->address, end = held->address + held->size;
  while (*at < count && ranges[*at].end <= from)
    (*at)++;
  size_t i = *at;
  for (; i < count && ranges[i].address < end; i++) {
    if (ranges[i].address > from) {
      note_hole(h, ranges[i].address - from, of_stream);
    }
    if (ranges[i].end > from) from = ranges[i].end;
  }
  if (from < end) note_hole(h, end - from, of_stream);
  *at = i > *at && ranges[i - 1].end > end ? i - 1 : i;
}

holes holes_find(const tarn_trace *trace, const block_set *live, moment when,
                 uint64_t stream) {
  holes h = {.known = moment_knows_spans(trace), .fragmentation = NAN};
  if (!h.known) return h;
  span_list held = moment_spans(trace, when);
  range *ranges = occupied(trace, live);
  size_t at = 0;
  h.reserved_bytes = held.bytes;
  for (size_t i = 0; i < held.count; i++) {
    search(&h, &held.items[i], ranges, live->count, &at,
           held.items[i].stream == stream);
  }
  if (h.free_bytes > 0) {
    h.fragmentation = 1 - (double)h.largest / (double)h.free_bytes;
  }
  free(ranges);
  span_list_deinit(&held);
  return h;
}
