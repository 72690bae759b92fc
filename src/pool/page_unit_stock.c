// The stock of page_unit_pool: how its pieces leave their shelves, and become
// segments again.
//
//   shelf    [ piece ][ piece ]
//                │ marked as leaving
//   segment  [ hole | hole | out | hole ]      joined, cut anew, or given back
//
// A piece that leaves needs room on the host for what its stream may still use;
// where there is none the stream is waited for, and the lock released: then the
// walk over the classes begins anew.
#include "base/status.h"
#include "device/memory.h"
#include "pool/page_unit.h"

// Gives the bytes of |piece|, which is on no shelf, back to the stock, where
// there is room on the host for what |serial| may still use. Returns the hole.
static tarn__pool_extent *join_stock(tarn__pool_page_unit *self,
                                     tarn__pool_piece *piece, uint64_t serial) {
  tarn__pool_extent *e = piece->home;
  tarn__source_join(&self->base, piece);
  return tarn__stock_give(&self->stock, e, serial);
}

tarn_status tarn__page_unit_join(tarn__pool_page_unit *self,
                                 tarn__pool_piece *piece,
                                 tarn__pool_extent **out_hole) {
  uint64_t serial = piece->freed_on;
  tarn_status status = TARN_OK;
  if (!tarn__stock_expect(&self->stock, serial)) {
    status = tarn__source_wait(&self->base, serial);
    serial = 0;
  }
  *out_hole = join_stock(self, piece, serial);
  return status;
}

static tarn__pool_piece *piece_at(const tarn__pool_page_unit *self,
                                  const tarn__pool_extent *e) {
  return e->kind == TARN__EXTENT_TAKEN
             ? tarn__pieces_find(&self->base.pool->pieces, e->offset)
             : NULL;
}

// Marks the pieces of the segment that begins with |e| if none of it is out.
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

// What is on a shelf and comes from the stock.
static void mark_all(tarn__pool_page_unit *self, uint8_t mark) {
  for (size_t i = 0; i < self->class_slots; i++) {
    const tarn__pool_size_class *c = self->classes[i];
    for (size_t j = 0; c != NULL && j < c->shelf_count; j++) {
      for (tarn__pool_piece *p = c->shelves[j].first; p != NULL; p = p->next)
        if (tarn__page_unit_is_stocked(p)) p->zone = mark;
    }
  }
}

// False: a piece is still there that is to leave, for want of host memory.
static bool clear_shelf(tarn__pool_page_unit *self, tarn__pool_size_class *c,
                        tarn__pool_shelf *s) {
  tarn__pool_piece **link = &s->first;
  bool cleared = true;
  while (*link != NULL) {
    tarn__pool_piece *piece = *link;
    bool leaves = piece->zone == TARN__PAGE_UNIT_LEAVING;
    if (leaves && tarn__stock_expect(&self->stock, piece->freed_on)) {
      *link = piece->next;
      piece->next = NULL;
      c->pieces--;
      (void)join_stock(self, piece, piece->freed_on);
    } else {
      cleared = cleared && !leaves;
      link = &piece->next;
    }
  }
  return cleared;
}

// A piece that is to leave, taken off its shelf.
static tarn__pool_piece *pop_leaving(tarn__pool_size_class *c) {
  for (size_t i = 0; c != NULL && i < c->shelf_count; i++) {
    tarn__pool_piece **link = &c->shelves[i].first;
    while (*link != NULL && (*link)->zone != TARN__PAGE_UNIT_LEAVING)
      link = &(*link)->next;
    tarn__pool_piece *piece = *link;
    if (piece == NULL) continue;
    *link = piece->next;
    piece->next = NULL;
    piece->zone = TARN__PAGE_UNIT_OUT;
    c->pieces--;
    return piece;
  }
  return NULL;
}

// The rest, once those that need no host memory are gone. While a stream is
// waited for the classes may change.
static tarn_status wait_and_clear(tarn__pool_page_unit *self) {
  tarn_status first = TARN_OK;
  tarn__pool_extent *hole = NULL;
  for (size_t i = 0; i < self->class_slots;) {
    tarn__pool_piece *piece = pop_leaving(self->classes[i]);
    tarn__keep_first(&first, piece != NULL
                                 ? tarn__page_unit_join(self, piece, &hole)
                                 : TARN_OK);
    i = piece != NULL ? 0 : i + 1;
  }
  return first;
}

// Of all pieces that are marked; unless |waits|, those stay that would need it.
static tarn_status clear_shelves(tarn__pool_page_unit *self, bool waits) {
  bool cleared = true;
  for (size_t i = 0; i < self->class_slots; i++) {
    tarn__pool_size_class *c = self->classes[i];
    for (size_t j = 0; c != NULL && j < c->shelf_count; j++)
      cleared = clear_shelf(self, c, &c->shelves[j]) && cleared;
  }
  tarn_status status = cleared || !waits ? TARN_OK : wait_and_clear(self);
  if (!cleared && !waits) mark_all(self, TARN__PAGE_UNIT_ON_SHELF);
  tarn__page_unit_drop_unused(self);
  return status;
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
  tarn_status status = tarn__stock_trim(&self->stock, &self->base, target, how);
  return status != TARN_OK ? status : vacated;
}

// |size| bytes of the stock. Where neither the device nor idle segments have
// room, what is on the shelves is joined: that it is of one size each would
// keep the request from memory that nobody uses.
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
