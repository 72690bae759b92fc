// The stock of page_unit_pool: how its pieces leave their shelves, and become
// segments again.
//
//   shelf    [ piece ][ piece ]
//                │ marked as leaving
//   segment  [ hole | hole | out | hole ]      joined, cut anew, or given back
//
// A piece that leaves needs room on the host to note its stream. Without host
// memory the call waits for the stream, and releases the lock: then the walk
// over the classes begins anew.
#include "base/status.h"
#include "device/memory.h"
#include "pool/page_unit.h"

// Makes room on the host to take back bytes that the stream with |serial| may
// still use. False: no host memory.
static bool expect(tarn__pool_page_unit *self, uint64_t serial) {
  return serial == 0 || tarn__extents_reserve(&self->stock.zone, serial);
}

tarn_status tarn__page_unit_join(tarn__pool_page_unit *self,
                                 tarn__pool_piece *piece,
                                 tarn__pool_extent **out_hole) {
  uint64_t serial = piece->freed_on;
  tarn_status status = TARN_OK;
  if (!expect(self, serial)) {
    status = tarn__source_wait(&self->base, serial);
    serial = 0;
  }
  tarn__pool_extent *e = piece->home;
  tarn__source_join(&self->base, piece);
  *out_hole = tarn__extents_give(&self->stock.zone, e, serial);
  return status;
}

static tarn__pool_piece *piece_at(const tarn__pool_page_unit *self,
                                  const tarn__pool_extent *e) {
  return e->kind == TARN__EXTENT_TAKEN
             ? tarn__pieces_find(&self->base.pool->pieces, e->offset)
             : NULL;
}

// Marks the pieces of the segment that begins with |e|, if it has no block.
// Returns its bytes, or 0.
static size_t mark_segment(const tarn__pool_page_unit *self,
                           const tarn__pool_extent *e) {
  const tarn__pool_extent *first = e;
  size_t size = 0;
  for (; e->kind != TARN__EXTENT_OUTSIDE && (e == first || !e->wall);
       e = e->after) {
    const tarn__pool_piece *piece = piece_at(self, e);
    bool idle = e->kind == TARN__EXTENT_OPEN ||
                (piece != NULL && piece->zone == TARN__PAGE_UNIT_ON_SHELF);
    if (!idle) return 0;
    size += e->size;
  }
  for (const tarn__pool_extent *end = e; first != end; first = first->after) {
    tarn__pool_piece *piece = piece_at(self, first);
    if (piece != NULL) piece->zone = TARN__PAGE_UNIT_LEAVING;
  }
  return size;
}

// The pieces on shelves that were cut from the stock.
static void mark_all(tarn__pool_page_unit *self, uint8_t mark) {
  for (size_t i = 0; i < self->class_slots; i++) {
    const tarn__pool_size_class *c = self->classes[i];
    for (size_t j = 0; c != NULL && j < c->shelf_count; j++) {
      for (tarn__pool_piece *p = c->shelves[j].first; p != NULL; p = p->next)
        if (tarn__page_unit_is_stocked(p)) p->zone = mark;
    }
  }
}

// Takes the marked pieces of |c| off their shelves. Without host memory for a
// piece it stays, or, if |waits|, the call waits for its stream, and the walk
// ends: the classes may have changed during the wait. True: the walk ended so.
static bool clear_class(tarn__pool_page_unit *self, tarn__pool_size_class *c,
                        bool waits, tarn_status *first) {
  tarn__pool_extent *hole = NULL;
  for (size_t i = 0; c != NULL && i < c->shelf_count; i++) {
    tarn__pool_piece **link = &c->shelves[i].first;
    while (*link != NULL) {
      tarn__pool_piece *piece = *link;
      bool leaves = piece->zone == TARN__PAGE_UNIT_LEAVING;
      bool known = leaves && expect(self, piece->freed_on);
      if (leaves && !known && !waits) piece->zone = TARN__PAGE_UNIT_ON_SHELF;
      if (piece->zone != TARN__PAGE_UNIT_LEAVING) {
        link = &piece->next;
        continue;
      }
      *link = piece->next;
      piece->next = NULL;
      c->pieces--;
      tarn__keep_first(first, tarn__page_unit_join(self, piece, &hole));
      if (!known) return true;
    }
  }
  return false;
}

// All marked pieces; unless |waits|, those that need a wait stay.
static tarn_status clear_shelves(tarn__pool_page_unit *self, bool waits) {
  tarn_status first = TARN_OK;
  for (size_t i = 0; i < self->class_slots; i++) {
    while (clear_class(self, self->classes[i], waits, &first))
      i = 0;
  }
  return first;
}

// Segments of which no piece is out lose their pieces, until |enough| bytes can
// be given back. A strategy that was replaced keeps no piece at all.
static tarn_status vacate(tarn__pool_page_unit *self, size_t enough,
                          bool waits) {
  size_t found = 0;
  if (self->base.pool->current != &self->base) {
    mark_all(self, TARN__PAGE_UNIT_LEAVING);
    return clear_shelves(self, waits);
  }
  for (tarn__pool_extent *e = self->stock.zone.first; e != NULL; e = e->after)
    if (e->wall && found < enough) found += mark_segment(self, e);
  return clear_shelves(self, waits);
}

tarn_status tarn__page_unit_trim_stock(tarn__pool_page_unit *self,
                                       size_t target, unsigned how) {
  bool unused = (how & TARN__TRIM_NO_WAIT) != 0;
  size_t held = self->base.pool->stats.reserved_bytes;
  if (held <= target) return TARN_OK;
  tarn_status vacated = vacate(self, held - target, !unused);
  TARN__TRY(tarn__segments_trim(&self->stock.segments, &self->base,
                                &self->stock.zone, target, how));
  return vacated;
}

// |size| bytes of the stock. If neither the device nor idle segments have room,
// pieces on the shelves are joined: otherwise their fixed sizes would keep the
// request from unused memory.
tarn_status tarn__page_unit_take_stock(tarn__pool_page_unit *self,
                                       tarn__pool_request *request, size_t size,
                                       tarn__pool_extent **out,
                                       uint64_t *out_serial) {
  tarn_status status = self->stock.serves
                           ? tarn__stock_take(&self->stock, &self->base,
                                              request, size, out, out_serial)
                           : TARN_FULL;
  if (status != TARN_FULL || !self->stock.open ||
      tarn__front_keeps(self->base.pool)) {
    return status;
  }
  mark_all(self, TARN__PAGE_UNIT_LEAVING);
  (void)clear_shelves(self, !request->no_wait);
  *out = tarn__stock_find(&self->stock, request, size, out_serial);
  return *out != NULL ? TARN_OK : TARN_FULL;
}
