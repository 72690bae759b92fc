// rows.h - rows of whole memory by index: the arguments of a call, and copies
// of rows between two places whose devices may differ.
//
//   rows.c              the public calls: arguments, and mapped types
//   rows_carry.c        rows between two places
//   exchange.c          distributed types, and every scatter-add: collective
//   exchange_sort.c     indices by the rank that owns their row
//   exchange_staging.c  shared memory through which rows pass
//   exchange_loop.c     asking, serving, placing, in a loop
//   exchange_move.c     rows of one rank: its part, staging and dense rows
//   exchange_sink.c     dense rows that go elsewhere than into the table
#ifndef TARN_WHOLE_ROWS_H_
#define TARN_WHOLE_ROWS_H_

#include "base/rows.h"
#include "whole/whole.h"

// --- rows.c ----------------------------------------------------------------

// A dense row that has come to the owner of its row of the table.
typedef struct tarn__whole_arrival {
  uint64_t row;  // of this rank's part
  const void *values;
} tarn__whole_arrival;

// What takes the rows of a scatter-add at their owner, in place of sums: all
// those of rank 0, in the order of its indices, then those of rank 1, and so
// on. |values| are |width| elements of |dtype|, for the time of the call.
typedef struct tarn__whole_sink {
  tarn_status (*take)(void *context, const tarn__whole_arrival *arrivals,
                      size_t count, tarn_dtype dtype, size_t width);
  void *context;
} tarn__whole_sink;

// The arguments of a call, checked except for its indices.
typedef struct tarn__whole_rows_order {
  tarn__rows_action action;
  tarn__whole_tensor table;
  tarn_rows rows;    // without a table; strides and dtypes are set
  tarn_place place;  // of dense rows and indices
  tarn_stream *stream;
  const tarn__whole_sink *sink;  // NULL: rows are added to those of the table
} tarn__whole_rows_order;

// --- rows_carry.c ----------------------------------------------------------

// Rows of a table at one place; dense rows and indices at another. A table at a
// device's place on the host is registered with the device.
typedef struct tarn__whole_carriage {
  tarn__rows_action action;
  tarn_rows rows;
  tarn_place table;
  tarn_place dense;
  tarn_device *host;  // cpu:0
} tarn__whole_carriage;

// Moves them by a device that reaches both ends, in the order of |stream| if
// that is a stream of this device. If no device does, through a block of the
// pool of the table's device, some rows at a time. Rows that do not move in the
// order of |stream| move after the call has waited for it, and before it
// returns.
//
// TARN_E_INVALID  an index is out of range, as tarn_rows says.
// TARN_FULL       no memory for a block.
// All other errors as for tarn_rows_gather and for copies.
TARN_MUST_CHECK tarn_status
tarn__rows_carry(const tarn__whole_carriage *carriage, tarn_stream *stream);

// Whether the host can access memory at |place|.
bool tarn__rows_are_touchable(tarn_place place);

// Indices |first| to |first| + |count| - 1 of |rows| at |place|, unchecked, as
// 64-bit numbers of any alignment: in place, or in |room|, which has room for
// |count|.
//
// TARN_E_DEVICE  a driver failed.
TARN_MUST_CHECK tarn_status tarn__rows_view_indices(tarn_place place,
                                                    const tarn_rows *rows,
                                                    size_t first, size_t count,
                                                    int64_t *room,
                                                    const void **out_indices);

// Checks all indices of |rows| at |place|, unless bad ones are skipped. |room|
// holds |most| numbers, for use during the call.
//
// TARN_E_INVALID  an index is out of range; the text has its value and
//                 position.
// TARN_E_DEVICE   a driver failed.
TARN_MUST_CHECK tarn_status tarn__rows_check_indices(tarn_place place,
                                                     const tarn_rows *rows,
                                                     int64_t *room,
                                                     size_t most);

// --- rows.c ----------------------------------------------------------------

// Reads the arguments of a call, whose table is not NULL and of a usable whole
// memory. Errors as of the calls.
TARN_MUST_CHECK tarn_status
tarn__rows_order_read(tarn__rows_action action, const tarn_whole_tensor *table,
                      const tarn_whole_rows *given, tarn_stream *stream,
                      tarn__whole_rows_order *out);

// Moves the rows of a mapped type.
TARN_MUST_CHECK tarn_status
tarn__rows_move_mapped(const tarn__whole_rows_order *order);

// Whether ranks do it each for itself.
bool tarn__rows_are_alone(tarn__rows_action action, const tarn_whole *whole);

// The public call. |status|: what the caller's own checks said; if that is an
// error, others are told of it where the call is collective, and |rows| is not
// read.
TARN_MUST_CHECK tarn_status tarn__whole_rows_run(tarn__rows_action action,
                                                 const tarn_whole_tensor *table,
                                                 const tarn_whole_rows *rows,
                                                 tarn_stream *stream,
                                                 tarn_status status);

// --- exchange.c ------------------------------------------------------------

// Does |order|, together with all ranks. |status| is the result of this rank's
// checks of it. Rows that go to a sink must fit into a slot of staging, in each
// dtype (TARN_E_UNSUPPORTED): those of 8 KiB do with up to 250 ranks.
TARN_MUST_CHECK tarn_status tarn__exchange_run(
    tarn_whole *whole, const tarn__whole_rows_order *order, tarn_status status);

// All of it but moving rows, over |comm|, whose ranks are those of |whole|;
// what is made the first time is kept at |*io_kept|. |subject| is the call.
TARN_MUST_CHECK tarn_status tarn__exchange_prepare(
    tarn_whole *whole, tarn_comm *comm, const tarn__whole_subject *subject,
    const tarn__whole_rows_order *order, tarn_status status,
    struct tarn__whole_exchange **io_kept);

// --- exchange_loop.c -------------------------------------------------------

// Moves the rows, after that. May run in another thread than the collectives of
// the program, if it is the only one that uses that communicator.
TARN_MUST_CHECK tarn_status
tarn__exchange_go(struct tarn__whole_exchange *kept, tarn_whole *whole,
                  const tarn__whole_rows_order *order);

#endif  // TARN_WHOLE_ROWS_H_
