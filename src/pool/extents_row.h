// extents_row.h - the row that extents stand in, for the files that work on it.
//
// What "hangs" is in its bin or in the list of bare extents; an extent must
// hang nowhere while its size or kind changes.
#ifndef TARN_POOL_EXTENTS_ROW_H_
#define TARN_POOL_EXTENTS_ROW_H_

#include "pool/extents.h"

static inline tarn__pool_extent *tarn__extent_of_node(tarn_list *node) {
  return tarn_list_entry(node, tarn__pool_extent, node);
}

static inline uint64_t tarn__extent_end(const tarn__pool_extent *e) {
  return e->offset + e->size;
}

static inline uint64_t tarn__extent_serial(const tarn__pool_extent *e) {
  return e->bins != NULL ? e->bins->serial : 0;
}

static inline uint64_t tarn__align_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) & ~(unit - 1);
}

static inline uint64_t tarn__align_down(uint64_t value, uint64_t unit) {
  return value & ~(unit - 1);
}

// The bins of the stream with |serial|; NULL: it has none.
tarn__pool_bins *tarn__row_bins(const tarn__pool_extents *extents,
                                uint64_t serial);

// Cuts |e| at |offset|, which is inside. The part behind is like it; both hang
// nowhere.
tarn__pool_extent *tarn__row_cut(tarn__pool_extents *extents,
                                 tarn__pool_extent *e, uint64_t offset);

// Makes |e| and what stands behind it one. Both hang nowhere.
void tarn__row_join(tarn__pool_extents *extents, tarn__pool_extent *e);

// Hangs |e|, which is of |kind| from now on, as one with its neighbours.
tarn__pool_extent *tarn__row_settle(tarn__pool_extents *extents,
                                    tarn__pool_extent *e,
                                    tarn__pool_extent_kind kind,
                                    tarn__pool_bins *bins);

// Takes the bytes from |from| to |to| out of |e|, which hangs: they are taken.
tarn__pool_extent *tarn__row_carve(tarn__pool_extents *extents,
                                   tarn__pool_extent *e, uint64_t from,
                                   uint64_t to);

#endif  // TARN_POOL_EXTENTS_ROW_H_
