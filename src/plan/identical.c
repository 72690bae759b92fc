// Sorted by all that makes them what they are, identical are beside each other.
#include "plan/identical.h"

#include <stdlib.h>

#include "base/hostmem.h"

typedef struct candidate {
  const tarn__plan_item *item;
  const tarn__plan_piece *pieces;
} candidate;

static int by_number(uint64_t a, uint64_t b) {
  return (a > b) - (a < b);
}

static int by_piece(const tarn__plan_piece *a, const tarn__plan_piece *b) {
  if (a->first != b->first) return by_number(a->first, b->first);
  if (a->last != b->last) return by_number(a->last, b->last);
  return by_number(a->size, b->size);
}

static int by_nature(const void *x, const void *y) {
  const candidate *a = x;
  const candidate *b = y;
  int order = by_number(a->item->piece_count, b->item->piece_count);
  if (order == 0) order = by_number(a->item->alignment, b->item->alignment);
  for (uint32_t p = 0; order == 0 && p < a->item->piece_count; p++) {
    order = by_piece(&a->pieces[p], &b->pieces[p]);
  }
  return order;
}

static int by_nature_and_index(const void *x, const void *y) {
  const candidate *a = x;
  const candidate *b = y;
  int order = by_nature(x, y);
  return order != 0 ? order : (a->item > b->item) - (a->item < b->item);
}

static void close_ring(const tarn__plan_instance *in, const candidate *sorted,
                       size_t begin, size_t end, uint32_t *next) {
  for (size_t i = begin; i < end; i++) {
    size_t after = i + 1 < end ? i + 1 : begin;
    next[sorted[i].item - in->items] =
        (uint32_t)(sorted[after].item - in->items);
  }
}

tarn_status tarn__plan_identical(const tarn__plan_instance *instance,
                                 uint32_t *next) {
  size_t count = instance->item_count;
  candidate *sorted = tarn__host_array(count + 1, sizeof *sorted);
  if (sorted == NULL) return TARN_E_NOMEM;
  for (size_t i = 0; i < count; i++) {
    const tarn__plan_item *item = &instance->items[i];
    sorted[i] = (candidate){item, tarn__plan_pieces(instance, item)};
  }
  qsort(sorted, count, sizeof *sorted, by_nature_and_index);
  for (size_t begin = 0, end = 0; begin < count; begin = end) {
    while (end < count && by_nature(&sorted[begin], &sorted[end]) == 0)
      end++;
    close_ring(instance, sorted, begin, end, next);
  }
  tarn__host_free_array(sorted, count + 1, sizeof *sorted);
  return TARN_OK;
}
