// Which slots begin and end in which order, and which have bytes in common:
// found once, when a net is placed, so that entering a step looks up and no
// more.
#include <stdlib.h>

#include "base/hostmem.h"
#include "model/placed.h"

typedef struct ending {
  uint64_t last;
  size_t slot;
} ending;

static int compare_endings(const void *a, const void *b) {
  const ending *x = a;
  const ending *y = b;
  if (x->last != y->last) return x->last < y->last ? -1 : 1;
  return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static tarn_status order_by_last(tarn__model_placed *placed) {
  size_t count = placed->slots->slots.count;
  ending *endings = tarn__host_array(count, sizeof *endings);
  if (endings == NULL) return TARN_E_NOMEM;
  for (size_t i = 0; i < count; i++)
    endings[i] = (ending){tarn__slot_at(placed->slots, i)->last, i};
  qsort(endings, count, sizeof *endings, compare_endings);
  for (size_t i = 0; i < count; i++)
    placed->by_last[i] = endings[i].slot;
  tarn__host_free_array(endings, count, sizeof *endings);
  return TARN_OK;
}

static bool meet(const tarn__model_slot *a, const tarn__model_slot *b) {
  return a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

// Counts the pairs, and with |out| writes them. All with all: a net has a few
// hundred slots, and this is done once.
static size_t find_formers(const tarn__model_slots *slots, size_t *starts,
                           size_t *out) {
  size_t found = 0;
  size_t count = slots->slots.count;
  for (size_t i = 0; i < count; i++) {
    if (starts != NULL) starts[i] = found;
    const tarn__model_slot *slot = tarn__slot_at(slots, i);
    for (size_t j = 0; j < count; j++) {
      if (j == i || !meet(slot, tarn__slot_at(slots, j))) continue;
      if (out != NULL) out[found] = j;
      found++;
    }
  }
  if (starts != NULL) starts[count] = found;
  return found;
}

tarn_status tarn__placed_order(tarn__model_placed *placed) {
  size_t count = placed->slots->slots.count;
  size_t pairs = find_formers(placed->slots, NULL, NULL);
  placed->by_last = tarn__host_array(count, sizeof(size_t));
  placed->active = tarn__host_array(count, sizeof(bool));
  placed->former_starts = tarn__host_array(count + 1, sizeof(size_t));
  placed->formers = tarn__host_array(pairs, sizeof(size_t));
  bool has_all = placed->by_last != NULL && placed->active != NULL &&
                 placed->former_starts != NULL && placed->formers != NULL;
  if (has_all) {
    find_formers(placed->slots, placed->former_starts, placed->formers);
    if (order_by_last(placed) == TARN_OK) return TARN_OK;
  }
  if (placed->formers != NULL) {  // freed by the count that stands at the end
    tarn__host_free_array(placed->formers, pairs, sizeof(size_t));
    placed->formers = NULL;
  }
  tarn__placed_free_order(placed);
  return TARN_E_NOMEM;
}

void tarn__placed_free_order(tarn__model_placed *placed) {
  size_t count = placed->slots->slots.count;
  if (placed->formers != NULL) {
    tarn__host_free_array(placed->formers, placed->former_starts[count],
                          sizeof(size_t));
  }
  tarn__host_free_array(placed->former_starts, count + 1, sizeof(size_t));
  tarn__host_free_array(placed->active, count, sizeof(bool));
  tarn__host_free_array(placed->by_last, count, sizeof(size_t));
  placed->formers = placed->former_starts = placed->by_last = NULL;
  placed->active = NULL;
}
