// rows.h - rows of wholes by index: what was asked for, and rows between two
// places whatever devices reach them.
//
//   rows.c              the public calls: arguments, and mapped types
//   rows_carry.c        rows between two places
//   exchange.c          distributed types, and every scatter-add: together
//   exchange_sort.c     indices by the rank that owns their row
//   exchange_staging.c  memory that ranks share to hand rows over
//   exchange_round.c    asking, serving, placing
#ifndef TARN_WHOLE_ROWS_H_
#define TARN_WHOLE_ROWS_H_

#include "base/rows.h"
#include "whole/whole.h"

// --- rows.c ----------------------------------------------------------------

// What a call asks for, checked as far as that can be done without indices.
typedef struct tarn__whole_rows_order {
  tarn__rows_action action;
  tarn__whole_tensor table;
  tarn_rows rows;    // without a table; strides and dtypes are set
  tarn_place place;  // of dense rows and indices
  tarn_stream *stream;
} tarn__whole_rows_order;

// --- rows_carry.c ----------------------------------------------------------

// Rows of a table at one place, dense rows and indices at another. A table that
// is at a device's place on the host is registered with the device.
typedef struct tarn__whole_carriage {
  tarn__rows_action action;
  tarn_rows rows;
  tarn_place table;
  tarn_place dense;
  tarn_device *host;  // cpu:0
} tarn__whole_carriage;

// Moves them: by a device that reaches both ends, in the order of |stream| if
// it is that device's; else by way of a block of the pool of the table's
// device, some at a time. What is not done in the order of |stream| begins when
// that is idle and is done when the call returns.
//
// TARN_E_INVALID  an index is not one, as tarn_rows tells.
// TARN_FULL       no room for a block.
// Besides as of tarn_rows_gather and of copies.
TARN_MUST_CHECK tarn_status
tarn__rows_carry(const tarn__whole_carriage *carriage, tarn_stream *stream);

// Whether the host can touch memory at |place|.
bool tarn__rows_are_touchable(tarn_place place);

// Numbers |first| to |first| + |count| of the indices of |rows|, which are at
// |place|, good or bad, as 64-bit ones of any alignment: where they stand, or
// in |room|, which is for as many.
//
// TARN_E_DEVICE  a driver failed.
TARN_MUST_CHECK tarn_status tarn__rows_view_indices(tarn_place place,
                                                    const tarn_rows *rows,
                                                    size_t first, size_t count,
                                                    int64_t *room,
                                                    const void **out_indices);

// Whether all of |rows|' indices at |place| are good, or are passed over where
// they are not. |room|: of |most| numbers, for use meanwhile.
//
// TARN_E_INVALID  one is not; the text has its value and position.
// TARN_E_DEVICE   a driver failed.
TARN_MUST_CHECK tarn_status tarn__rows_check_indices(tarn_place place,
                                                     const tarn_rows *rows,
                                                     int64_t *room,
                                                     size_t most);

// --- exchange.c ------------------------------------------------------------

// Does |order| together with all ranks; |status| is what this rank has found
// wrong with it.
TARN_MUST_CHECK tarn_status tarn__exchange_run(
    tarn_whole *whole, const tarn__whole_rows_order *order, tarn_status status);

#endif  // TARN_WHOLE_ROWS_H_
