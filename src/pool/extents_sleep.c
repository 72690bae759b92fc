// Blocks without memory: what becomes of the holes around them.
//
//   | S1      | hole | S2     | hole                | a block   |
//   |  page   |  page     |  page      |  page       |  page     |
//                without memory         with
//
// A block that sleeps stays taken. A hole in a page that it has lost is asleep:
// nobody can be given it, but it is not bare either, since what has no memory
// there is less than a page. It is open again when the page has memory, and
// bare with the whole page when the last block in it is freed.
#include "pool/extents.h"

// Makes the bytes from |from| to |to| of |e| |kind|.
static tarn__pool_extent *turn(tarn__pool_extents *extents,
                               tarn__pool_extent *e, uint64_t from, uint64_t to,
                               tarn__pool_extent_kind kind) {
  if (from < e->offset) from = e->offset;
  if (to > tarn__extent_end(e)) to = tarn__extent_end(e);
  e = tarn__row_carve(extents, e, from, to);
  return tarn__row_settle(extents, e, kind, extents->bins);
}

static bool is_kind(const tarn__pool_extent *e, tarn__pool_extent_kind kind) {
  return e != NULL && e->kind == kind;
}

void tarn__extents_lull(tarn__pool_extents *extents, tarn__pool_extent *extent,
                        uint64_t from, uint64_t to, tarn__pool_waits *waits) {
  tarn__pool_extent *e = extent->before;
  while (is_kind(e, TARN__EXTENT_OPEN) && tarn__extent_end(e) > from) {
    tarn__waits_add(waits, tarn__extent_serial(e));
    e = turn(extents, e, from, to, TARN__EXTENT_ASLEEP)->before;
  }
  e = extent->after;
  while (is_kind(e, TARN__EXTENT_OPEN) && e->offset < to) {
    tarn__waits_add(waits, tarn__extent_serial(e));
    e = turn(extents, e, from, to, TARN__EXTENT_ASLEEP)->after;
  }
}

void tarn__extents_rouse(tarn__pool_extents *extents, tarn__pool_extent *extent,
                         uint64_t from, uint64_t to) {
  tarn__pool_extent *e = extent->before;
  if (is_kind(e, TARN__EXTENT_ASLEEP) && tarn__extent_end(e) > from) {
    (void)turn(extents, e, from, to, TARN__EXTENT_OPEN);
  }
  e = extent->after;
  if (is_kind(e, TARN__EXTENT_ASLEEP) && e->offset < to) {
    (void)turn(extents, e, from, to, TARN__EXTENT_OPEN);
  }
}

// The whole pages of what is asleep in |e|; returns their bytes.
static size_t end_pages(tarn__pool_extents *extents, tarn__pool_extent *e,
                        tarn__pool_extent_kind kind) {
  uint64_t from = tarn__align_up(e->offset, extents->page);
  uint64_t to = tarn__align_down(tarn__extent_end(e), extents->page);
  if (from >= to) return 0;
  (void)turn(extents, e, from, to, kind);
  return (size_t)(to - from);
}

void tarn__extents_give_asleep(tarn__pool_extents *extents,
                               tarn__pool_extent *extent, uint64_t from,
                               uint64_t to, uint64_t serial,
                               tarn__pool_extent_kind kind, size_t *out_size) {
  tarn__pool_extent *e = extent;
  tarn__pool_bins *bins = tarn__row_bins(extents, serial);
  extents->taken_bytes -= e->size;
  *out_size = 0;
  if (from == to) {
    (void)tarn__row_settle(extents, e, TARN__EXTENT_OPEN, bins);
    return;
  }
  if (to < tarn__extent_end(e)) {
    tarn__pool_extent *rest = tarn__row_cut(extents, e, to);
    (void)tarn__row_settle(extents, rest, TARN__EXTENT_OPEN, bins);
  }
  if (from > e->offset) {
    tarn__pool_extent *front = e;
    e = tarn__row_cut(extents, e, from);
    (void)tarn__row_settle(extents, front, TARN__EXTENT_OPEN, bins);
  }
  e = tarn__row_settle(extents, e, TARN__EXTENT_ASLEEP, NULL);
  *out_size = end_pages(extents, e, kind);
}
