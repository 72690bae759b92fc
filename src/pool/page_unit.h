// page_unit.h - the classes and shelves of page_unit_pool, and its stock.
//
//   class ─► shelf ─► piece of the device's            goes back by itself
//                 └─► piece out of the stock           joins its segment again
//                     (stock.c)
//
// Guarded by the pool's lock.
#ifndef TARN_POOL_PAGE_UNIT_H_
#define TARN_POOL_PAGE_UNIT_H_

#include "pool/front.h"
#include "pool/segments.h"

typedef struct tarn__pool_shelf {
  uint64_t serial;          // of the stream of their last use; 0: none
  tarn__pool_piece *first;  // NULL: the shelf may be given to another stream
} tarn__pool_shelf;

// Stays where it is for as long as the strategy: pieces point to it.
typedef struct tarn__pool_size_class {
  size_t size;  // that the device is asked for: the padding included, rounded
  size_t align;
  tarn__pool_shelf *shelves;
  size_t shelf_count;
  size_t pieces;  // that are its own, idle or out or being taken
} tarn__pool_size_class;

typedef struct tarn__pool_page_unit {
  tarn__pool_strategy base;
  size_t page;
  tarn__pool_size_class **classes;  // open addressing; NULL: an empty slot
  size_t class_slots;               // a power of two, or 0
  size_t class_count;
  tarn__pool_stock stock;
} tarn__pool_page_unit;

// The mark of a piece that is on a shelf, and then of one that is to leave it
// for the stock; in its |zone|.
enum {
  TARN__PAGE_UNIT_OUT,
  TARN__PAGE_UNIT_ON_SHELF,
  TARN__PAGE_UNIT_LEAVING,
};

// A piece out of the stock has its extent for a home, which knows the class.
static inline bool tarn__page_unit_is_stocked(const tarn__pool_piece *piece) {
  return piece->base_size == 0;
}

// NULL: it was asked of the device by itself.
static inline tarn__pool_size_class *tarn__page_unit_class_at(
    const tarn__pool_piece *piece) {
  const tarn__pool_extent *e = piece->home;
  return tarn__page_unit_is_stocked(piece) ? e->taker : piece->home;
}

// Where the class stands in the table, or would stand.
static inline tarn__pool_size_class **tarn__page_unit_slot(
    const tarn__pool_page_unit *self, size_t size, size_t align) {
  uint64_t product = (size ^ (align << 7)) * 0x9e3779b97f4a7c15u;
  size_t mask = self->class_slots - 1;
  for (size_t at = (size_t)(product >> 32) & mask;; at = (at + 1) & mask) {
    tarn__pool_size_class **slot = &self->classes[at];
    if (*slot == NULL) return slot;
    if ((*slot)->size == size && (*slot)->align == align) return slot;
  }
}

TARN_MUST_CHECK tarn_status
tarn__page_unit_add_class(tarn__pool_page_unit *self, size_t size, size_t align,
                          tarn__pool_size_class **out);
void tarn__page_unit_free_class(tarn__pool_size_class *c);

// The class of |size| and |align|, added if it is new. TARN_E_NOMEM.
static inline tarn_status tarn__page_unit_class_of(
    tarn__pool_page_unit *self, size_t size, size_t align,
    tarn__pool_size_class **out) {
  *out =
      self->class_slots != 0 ? *tarn__page_unit_slot(self, size, align) : NULL;
  return *out != NULL ? TARN_OK
                      : tarn__page_unit_add_class(self, size, align, out);
}

// Classes of which there is no piece leave nothing behind. Without host memory
// for a smaller table the present one stays.
void tarn__page_unit_drop_unused(tarn__pool_page_unit *self);

// Gives the bytes of |piece|, which comes from the stock and is on no shelf,
// back to the stock. Where the host has no memory to note whose they are, the
// stream is waited for, without the lock. |*out_hole| is what they are part
// of now.
tarn_status tarn__page_unit_join(tarn__pool_page_unit *self,
                                 tarn__pool_piece *piece,
                                 tarn__pool_extent **out_hole);

// |size| bytes of the stock. The lock is released meanwhile.
//
// TARN_FULL  there is no room.
TARN_MUST_CHECK tarn_status tarn__page_unit_take_stock(
    tarn__pool_page_unit *self, tarn__pool_request *request, size_t size,
    tarn__pool_extent **out, uint64_t *out_serial);

// Gives segments of which no piece is out back to the device, until the pool
// holds at most |target| bytes. |how|: TARN__TRIM_... bits.
tarn_status tarn__page_unit_trim_stock(tarn__pool_page_unit *self,
                                       size_t target, unsigned how);

#endif  // TARN_POOL_PAGE_UNIT_H_
