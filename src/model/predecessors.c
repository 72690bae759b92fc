// The order in which slots end, and which slots have bytes in common. Both are
// found once, when a model is placed, so that entering a step only looks up.
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

// Counts the pairs, and with |out| writes them. Compares all slots with each
// other: a net has a few hundred, and this happens once.
static size_t find_predecessors(const tarn__model_slots *slots, size_t *starts,
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
  size_t pairs = find_predecessors(placed->slots, NULL, NULL);
  placed->by_last = tarn__host_array(count, sizeof(size_t));
  placed->active = tarn__host_array(count, sizeof(bool));
  placed->predecessor_starts = tarn__host_array(count + 1, sizeof(size_t));
  placed->predecessors = tarn__host_array(pairs, sizeof(size_t));
  bool has_all = placed->by_last != NULL && placed->active != NULL &&
                 placed->predecessor_starts != NULL &&
                 placed->predecessors != NULL;
  if (has_all) {
    find_predecessors(placed->slots, placed->predecessor_starts,
                      placed->predecessors);
    if (order_by_last(placed) == TARN_OK) return TARN_OK;
  }
  // |predecessor_starts| may not be there to tell its length.
  if (placed->predecessors != NULL) {
    tarn__host_free_array(placed->predecessors, pairs, sizeof(size_t));
    placed->predecessors = NULL;
  }
  tarn__placed_free_order(placed);
  return TARN_E_NOMEM;
}

void tarn__placed_free_order(tarn__model_placed *placed) {
  size_t count = placed->slots->slots.count;
  if (placed->predecessors != NULL) {
    tarn__host_free_array(placed->predecessors,
                          placed->predecessor_starts[count], sizeof(size_t));
  }
  tarn__host_free_array(placed->predecessor_starts, count + 1, sizeof(size_t));
  tarn__host_free_array(placed->active, count, sizeof(bool));
  tarn__host_free_array(placed->by_last, count, sizeof(size_t));
  placed->predecessors = placed->predecessor_starts = placed->by_last = NULL;
  placed->active = NULL;
}
