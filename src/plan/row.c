// The row is sorted by |low|; of equals those come first that came first.
#include "plan/row.h"

#include <string.h>

#include "base/hostmem.h"

tarn_status tarn__plan_row_make(const tarn__plan_instance *in,
                                tarn__plan_row *out_row) {
  *out_row = (tarn__plan_row){.in = in};
  out_row->list = tarn__host_array(in->item_count + 1, sizeof *out_row->list);
  return out_row->list == NULL ? TARN_E_NOMEM : TARN_OK;
}

void tarn__plan_row_free(tarn__plan_row *row) {
  if (row->in != NULL) {
    tarn__host_free_array(row->list, row->in->item_count + 1,
                          sizeof *row->list);
  }
  *row = (tarn__plan_row){0};
}

static uint64_t find_lowest(const tarn__plan_row *row, uint32_t index) {
  const tarn__plan_item *item = &row->in->items[index];
  uint64_t at = 0;
  for (size_t i = 0; i < row->count; i++) {
    const tarn__plan_lying *other = &row->list[i];
    if (other->high <= at || other->first >= item->last ||
        item->first >= other->last ||
        !tarn__plan_items_meet(row->in, index, other->item)) {
      continue;
    }
    if (other->low >= at + item->size) break;
    at = tarn__plan_align_up(other->high, item->alignment);
  }
  return at;
}

// The number of those that lie no higher than |offset|.
static size_t place_of(const tarn__plan_row *row, uint64_t offset) {
  size_t low = 0, high = row->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (row->list[middle].low <= offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

void tarn__plan_row_put_at(tarn__plan_row *row, uint32_t index,
                           uint64_t offset) {
  const tarn__plan_item *item = &row->in->items[index];
  size_t at = place_of(row, offset);
  memmove(row->list + at + 1, row->list + at,
          (row->count - at) * sizeof *row->list);
  row->count++;
  row->list[at] = (tarn__plan_lying){.low = offset,
                                     .high = offset + item->size,
                                     .first = item->first,
                                     .last = item->last,
                                     .item = index};
}

uint64_t tarn__plan_row_put(tarn__plan_row *row, uint32_t index) {
  uint64_t at = find_lowest(row, index);
  tarn__plan_row_put_at(row, index, at);
  return at;
}
