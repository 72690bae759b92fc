// page_unit.h - the classes and shelves of page_unit_pool, and its stock.
//
//   class ─► shelf ─► piece of the device's            goes back by itself
//                 └─► piece out of the stock           joins its segment again
//                     (page_unit_stock.c)
//
// Guarded by the pool's lock.
#ifndef TARN_POOL_PAGE_UNIT_H_
#define TARN_POOL_PAGE_UNIT_H_

#include "pool/front.h"
#include "pool/segments.h"

typedef struct tarn__pool_shelf {
  uint64_t serial;          // of the stream of their last use; 0: the host's
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

// The mark of a piece on a shelf, and of one that is about to leave it for the
// stock; in its |zone|.
enum {
  TARN__PAGE_UNIT_OUT,
  TARN__PAGE_UNIT_ON_SHELF,
  TARN__PAGE_UNIT_LEAVING,
};

// A piece out of the stock has its extent for a home, which knows the class.
static inline bool tarn__page_unit_is_stocked(const tarn__pool_piece *piece) {
  return piece->base_size == 0;
}

// Gives the bytes of |piece|, which was cut from the stock and is on no shelf,
// back to the stock. Without host memory to note their stream, the call waits
// for it, without the lock. |*out_hole|: the hole that they are part of now.
tarn_status tarn__page_unit_join(tarn__pool_page_unit *self,
                                 tarn__pool_piece *piece,
                                 tarn__pool_extent **out_hole);

// Takes |size| bytes of the stock. Releases the lock.
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
