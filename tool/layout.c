// Packs the addresses that were ever used.
#include "layout.h"

#include <stdlib.h>

#include "kit/tool.h"

// A gap up to this part of all that was used is not worth a fold.
enum { FOLD_PART = 128 };

static int compare_ranges(const void *a, const void *b) {
  const layout_range *x = a, *y = b;
  return (x->address > y->address) - (x->address < y->address);
}

static void add(layout *l, tarn_addr address, uint64_t size) {
  l->ranges[l->range_count++] =
      (layout_range){.address = address, .size = size > 0 ? size : 1};
}

// All that there is, sorted by address.
static layout collect(const tarn_trace_block *blocks,
                      const tarn_addr *addresses, size_t block_count,
                      const layout_range *others, size_t count) {
  layout l = {.ranges = tool_array(block_count + count, sizeof(layout_range))};
  for (size_t i = 0; i < block_count; i++) {
    if (addresses[i] != 0) add(&l, addresses[i], blocks[i].size);
  }
  for (size_t i = 0; i < count; i++)
    add(&l, others[i].address, others[i].size);
  qsort(l.ranges, l.range_count, sizeof *l.ranges, compare_ranges);
  return l;
}

// Joins sorted ranges that overlap or stand at most |gap| apart.
static void join(layout *l, uint64_t gap) {
  size_t count = 0;
  for (size_t i = 0; i < l->range_count; i++) {
    layout_range next = l->ranges[i];
    layout_range *last = count > 0 ? &l->ranges[count - 1] : NULL;
    uint64_t distance = last ? next.address - last->address : 0;
    if (last == NULL ||
        (distance > last->size && distance - last->size > gap)) {
      l->ranges[count++] = next;
    } else if (distance + next.size > last->size) {
      last->size = distance + next.size;
    }
  }
  l->range_count = count;
}

static uint64_t stack_up(layout *l) {
  uint64_t height = 0;
  for (size_t i = 0; i < l->range_count; i++) {
    l->ranges[i].height = height;
    height += l->ranges[i].size;
  }
  return height;
}

layout layout_make(const tarn_trace_block *blocks, const tarn_addr *addresses,
                   size_t block_count, const layout_range *others,
                   size_t count) {
  layout l = collect(blocks, addresses, block_count, others, count);
  join(&l, 0);
  join(&l, stack_up(&l) / FOLD_PART);
  l.height = stack_up(&l);
  return l;
}

uint64_t layout_height(const layout *l, tarn_addr address) {
  size_t low = 0, high = l->range_count;  // the range starts in [low, high)
  while (high - low > 1) {
    size_t middle = low + (high - low) / 2;
    if (l->ranges[middle].address <= address) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return l->ranges[low].height + (address - l->ranges[low].address);
}

void layout_deinit(layout *l) {
  free(l->ranges);
  *l = (layout){0};
}
