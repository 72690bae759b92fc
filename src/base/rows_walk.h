// rows_walk.h - moves rows of memory that is reached by calls.
#ifndef TARN_BASE_ROWS_WALK_H_
#define TARN_BASE_ROWS_WALK_H_

#include "base/rows.h"

// How memory is reached. A call is for a piece of the indices, for one row of
// the table, and for as many dense rows as are adjacent; or, of rows that do
// not fit into the room, for a span of one.
typedef struct tarn__rows_reach {
  // Makes |*bytes| the address of the |size| bytes at |at|; or leaves it, which
  // is room, and copies them there if they are |read|.
  tarn_status (*view)(void *context, tarn_addr at, size_t size, bool read,
                      unsigned char **bytes);
  // Copies |bytes|, of the room, to |to|.
  tarn_status (*write)(void *context, tarn_addr to, unsigned char *bytes,
                       size_t size);
  // Copies a whole row. NULL: rows go through the room, or are viewed.
  tarn_status (*copy)(void *context, tarn_addr to, tarn_addr from, size_t size);
  void *context;
  unsigned char *room;
  size_t room_size;  // at least 128
} tarn__rows_reach;

// Moves |rows|, which were checked, in order: an index that occurs twice adds
// twice. All indices are checked before a row moves. |text| says what is wrong
// with an index, and is "" if nothing is.
//
// TARN_E_INVALID  an index is out of range, or its row lies in two chunks.
// All errors of |reach|.
TARN_MUST_CHECK tarn_status tarn__rows_walk(tarn__rows_action action,
                                            const tarn_rows *rows,
                                            const tarn__rows_reach *reach,
                                            char *text, size_t text_size);

#endif  // TARN_BASE_ROWS_WALK_H_
