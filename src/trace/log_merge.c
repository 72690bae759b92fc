// Merges pages, each of which is in order, by a heap of their next events.
//
// Invariants: heap[i] is not above its children 2i + 1 and 2i + 2; each page in
// the heap has an event left, which it holds decoded.
#include "trace/log_read.h"

#include <assert.h>

#include "base/status.h"

typedef struct page {
  tarn__trace_log_cursor cursor;
  tarn__trace_log_record next;
} page;

typedef struct head {
  uint64_t number;
  uint32_t page;
} head;

void tarn__log_merge_init(tarn__trace_log_merge *merge,
                          const tarn__trace_input *input) {
  *merge = (tarn__trace_log_merge){.input = input,
                                   .pages = TARN__ARRAY_OF(page),
                                   .heap = TARN__ARRAY_OF(head)};
}

void tarn__log_merge_deinit(tarn__trace_log_merge *merge) {
  tarn__array_free(merge->input->budget, &merge->heap);
  tarn__array_free(merge->input->budget, &merge->pages);
}

// Moves |of| to its next event. False: it has none left.
static bool advance(const tarn__trace_log_merge *merge, page *of) {
  bool cut = false;
  while (of->cursor.at != of->cursor.end) {
    tarn_status status =
        tarn__log_next(merge->input, &of->cursor, &of->next, &cut);
    if (status != TARN_OK || cut) return false;  // seen in the first pass
    if (tarn__log_is_ordered(of->next.event.kind)) return true;
  }
  return false;
}

tarn_status tarn__log_merge_add(tarn__trace_log_merge *merge,
                                tarn__trace_log_cursor cursor) {
  void *place = NULL;
  tarn__budget *budget = merge->input->budget;
  page added = {.cursor = cursor};
  if (!advance(merge, &added)) return TARN_OK;
  tarn_status status = tarn__array_reserve(budget, &merge->pages, 1);
  if (status == TARN_OK) {
    status = tarn__array_grow(budget, &merge->heap, 1, &place);
  }
  if (status != TARN_OK) return status;
  *(head *)place = (head){.number = added.next.event.number,
                          .page = (uint32_t)merge->pages.count};
  status = tarn__array_grow(budget, &merge->pages, 1, &place);
  if (status == TARN_OK) *(page *)place = added;
  return status;
}

// --- the heap --------------------------------------------------------------

static void sink(tarn__trace_log_merge *merge, size_t at) {
  head *heap = merge->heap.items;
  size_t count = merge->heap.count;
  head moved = heap[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= count) break;
    if (child + 1 < count && heap[child + 1].number < heap[child].number) {
      child++;
    }
    if (moved.number <= heap[child].number) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = moved;
}

void tarn__log_merge_begin(tarn__trace_log_merge *merge) {
  for (size_t i = merge->heap.count / 2; i > 0; i--)
    sink(merge, i - 1);
}

// --- events ----------------------------------------------------------------

static tarn_status check_number(tarn__trace_log_merge *merge,
                                const tarn__trace_log_record *record) {
  uint64_t number = record->event.number;
  if (merge->any && number == merge->number) {
    return tarn__log_corrupt(merge->input, record->begin,
                             "a second event of number %llu",
                             (unsigned long long)number);
  }
  if (merge->any && number != merge->number + 1) merge->gap = true;
  merge->any = true;
  merge->number = number;
  return TARN_OK;
}

tarn_status tarn__log_merge_next(tarn__trace_log_merge *merge,
                                 tarn__trace_log_record *out_record) {
  head *top = merge->heap.items;
  assert(top != NULL);
  page *of = (page *)merge->pages.items + top->page;
  *out_record = of->next;
  if (advance(merge, of)) {
    top->number = of->next.event.number;
  } else {
    *top = top[merge->heap.count - 1];
    tarn__array_drop(&merge->heap, 1);
  }
  if (merge->heap.count != 0) {
    sink(merge, 0);
    const page *pages = merge->pages.items;
    merge->soon = pages[top->page].next.event.address;
  }
  return check_number(merge, out_record);
}
