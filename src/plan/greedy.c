// STUB: first fit by size, to be replaced.
#include "plan/greedy.h"

#include "base/hostmem.h"

static bool shares(const tarn__plan_instance *in, size_t a, size_t b) {
  const tarn__plan_item *x = &in->items[a], *y = &in->items[b];
  return x->first < y->last && y->first < x->last;  // hulls: safe
}

tarn_status tarn__plan_greedy(const tarn__plan_instance *in, uint64_t target,
                              tarn__plan_stop *stop, uint64_t *offsets,
                              uint64_t *height) {
  (void)stop;
  if (*height <= target) return TARN_OK;
  uint64_t top = 0;
  for (size_t i = 0; i < in->item_count; i++) {
    if (in->items[i].fixed) offsets[i] = in->items[i].offset;
  }
  for (size_t i = 0; i < in->item_count; i++) {
    const tarn__plan_item *item = &in->items[i];
    uint64_t at = item->fixed ? item->offset : 0;
    for (bool moved = !item->fixed; moved;) {
      moved = false;
      for (size_t j = 0; j < in->item_count; j++) {
        if ((j >= i && !in->items[j].fixed) || !shares(in, i, j)) continue;
        if (at < offsets[j] + in->items[j].size &&
            offsets[j] < at + item->size) {
          at = tarn__plan_align_up(offsets[j] + in->items[j].size,
                                   item->alignment);
          moved = true;
        }
      }
    }
    offsets[i] = at;
    if (at + item->size > top) top = at + item->size;
  }
  *height = top;
  return TARN_OK;
}
