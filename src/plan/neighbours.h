// neighbours.h - who shares sections with whom.
//
// Items that share a section cannot lie beside each other in it: one of the
// two lies above the other, by the size that the lower one has there.
#ifndef TARN_PLAN_NEIGHBOURS_H_
#define TARN_PLAN_NEIGHBOURS_H_

#include "plan/instance.h"

typedef struct tarn__plan_neighbours {
  const tarn__plan_instance *in;
  uint32_t *first;  // by item, and one more: where its neighbours begin
  uint32_t *item;   // the neighbours
  // Only where some item has pieces of several sizes, else NULL and an item's
  // size is the answer: by how much its neighbour lies above the item, if it
  // does, and the other way round.
  uint64_t *above;
  uint64_t *below;
  uint32_t *begin;    // by section, and one more: where what is in it begins
  uint32_t *present;  // items, by section
  size_t edge_room;   // of |item|, |above|, |below|
} tarn__plan_neighbours;

// |instance| must live as long.
//
// Lifetime:     tarn__plan_neighbours_free.
// Cost:         O(n + the size of the lists).
// TARN_FULL     the lists would have more than |most| bytes.
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status
tarn__plan_neighbours_make(const tarn__plan_instance *instance, size_t most,
                           tarn__plan_neighbours *out_neighbours);

// Leaves it zero-filled; one that is so is allowed.
void tarn__plan_neighbours_free(tarn__plan_neighbours *neighbours);

// How far above |item| its neighbour at |edge| must lie, and how far above that
// one |item| must.
static inline uint64_t tarn__plan_above(const tarn__plan_neighbours *n,
                                        uint32_t item, uint32_t edge) {
  return n->above == NULL ? n->in->items[item].size : n->above[edge];
}

static inline uint64_t tarn__plan_below(const tarn__plan_neighbours *n,
                                        uint32_t edge) {
  return n->below == NULL ? n->in->items[n->item[edge]].size : n->below[edge];
}

#endif  // TARN_PLAN_NEIGHBOURS_H_
