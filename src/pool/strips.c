// Strips: pages of memory that are taken out of holes.
#include "pool/region.h"

// A slot, with nodes for what it takes if there is host memory for any: with
// what nodes there are memory can still be given back.
static tarn__pool_stripped *open_slot(tarn__pool_strips *strips,
                                      tarn__pool_extents *zone) {
  if (strips->count == TARN__STRIPS) return NULL;
  (void)!tarn__extents_reserve(zone, 0);
  tarn__pool_stripped *slot = &strips->list[strips->count];
  *slot = (tarn__pool_stripped){.extent = NULL};
  strips->zones[strips->count] = zone;
  return slot;
}

static size_t fill_slot(tarn__pool_strips *strips, tarn__pool_extent *extent) {
  tarn__pool_stripped *slot = &strips->list[strips->count];
  if (extent == NULL) return 0;
  slot->extent = extent;
  if (strips->count > 0) strips->list[strips->count - 1].next = slot;
  strips->count++;
  return extent->size;
}

size_t tarn__strips_take_idle(tarn__pool_strips *strips,
                              tarn__pool_extents *zone, size_t most) {
  size_t taken = 0;
  while (taken < most && open_slot(strips, zone) != NULL) {
    size_t size = fill_slot(strips, tarn__extents_strip(zone, most - taken));
    if (size == 0) break;
    taken += size;
  }
  return taken;
}

size_t tarn__strips_take_any(tarn__pool_strips *strips,
                             tarn__pool_extents *zone, uint64_t *cursor,
                             size_t most) {
  size_t taken = 0;
  tarn__pool_stripped *slot = NULL;
  while (taken < most && (slot = open_slot(strips, zone)) != NULL) {
    size_t size = fill_slot(
        strips,
        tarn__extents_strip_run(zone, cursor, most - taken, &slot->waits));
    if (size == 0) {
      *cursor = UINT64_MAX;
      break;
    }
    taken += size;
  }
  return taken;
}

void tarn__strips_settle(const tarn__pool_strips *strips) {
  for (size_t i = 0; i < strips->count; i++) {
    const tarn__pool_stripped *stripped = &strips->list[i];
    tarn__pool_extents *zone = strips->zones[i];
    if (stripped->end == TARN__STRIP_KEPT) {
      (void)tarn__extents_give(zone, stripped->extent, 0);
    } else {
      bool lost = stripped->end == TARN__STRIP_LOST;
      tarn__extents_end_strip(zone, stripped->extent,
                              lost ? TARN__EXTENT_LOST : TARN__EXTENT_BARE);
    }
  }
}
