// rows_direct.h - gather and scatter where every address is a pointer.
//
//   rows_direct.c   a call: cut into shares, one for each thread
//   rows_share.c    a share: indices checked, rows found, sorted and moved
//
//   indices --admit--> row --place--> pair --window--> moved
//                     |            |
//                     +---sorted---+
#ifndef TARN_PLUGINS_COMMON_ROWS_DIRECT_H_
#define TARN_PLUGINS_COMMON_ROWS_DIRECT_H_

#include "base/rows.h"
#include "base/rows_move.h"
#include "tarn/base.h"

// The first index that is out of range, or whose row lies in two chunks.
typedef struct tarn__common_rows_fault {
  int64_t index;
  size_t position;  // SIZE_MAX: there is none
} tarn__common_rows_fault;

// The share of one thread: its rows of the positions from |first| to |end|.
typedef struct tarn__common_rows_share {
  const tarn__rows_plan *plan;
  size_t first;
  size_t end;
  uint32_t number;  // of |of| shares among which the rows of the table are
  uint32_t of;      // divided; 1: all are its own
  tarn__common_rows_fault fault;
} tarn__common_rows_share;

// Does it, and sets |fault|.
void tarn__rows_share_run(tarn__common_rows_share *share);

// As tarn__rows_run without |reach|.
TARN_MUST_CHECK tarn_status tarn__rows_direct(tarn__rows_action action,
                                              const tarn_rows *rows, char *text,
                                              size_t text_size);

#endif  // TARN_PLUGINS_COMMON_ROWS_DIRECT_H_
