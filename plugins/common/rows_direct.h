// rows_direct.h - gather and scatter where every address is a pointer: what the
// files that do it share.
//
//   rows_direct.c   what is to be done, cut into shares, one for each thread
//   rows_share.c    a share: indices checked, rows found, in which order
//   rows_buckets.c  an order that goes through the table region by region
//   rows_threads.c  threads for one call
//
//   indices --admit--> row --place--> pair --window--> moved
//                     |            |
//                     +---sorted---+
#ifndef TARN_PLUGINS_COMMON_ROWS_DIRECT_H_
#define TARN_PLUGINS_COMMON_ROWS_DIRECT_H_

#include <string.h>

#include "base/rows.h"
#include "base/rows_move.h"
#include "tarn/base.h"

// --- rows_share.c ----------------------------------------------------------

typedef enum tarn__common_rows_fault_kind {
  TARN__ROWS_FINE,
  TARN__ROWS_BAD_INDEX,
  TARN__ROWS_IN_TWO,  // the row lies in two chunks
} tarn__common_rows_fault_kind;

// What was wrong first, if anything.
typedef struct tarn__common_rows_fault {
  tarn__common_rows_fault_kind kind;
  int64_t index;
  size_t position;
} tarn__common_rows_fault;

// What one thread does: those of the positions from |first| to |end| whose rows
// are its own.
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

typedef enum tarn__common_rows_verdict {
  TARN__ROWS_TAKE,
  TARN__ROWS_PASS,   // nothing is to be done here
  TARN__ROWS_CLEAR,  // the dense row is to be zero
  TARN__ROWS_STOP,   // |fault| is set
} tarn__common_rows_verdict;

static inline int64_t tarn__rows_index_at(const tarn_rows *rows,
                                          size_t position) {
  const unsigned char *indices = (unsigned char *)(uintptr_t)rows->indices;
  int32_t narrow = 0;
  int64_t wide = 0;
  if (rows->index_dtype == TARN_DTYPE_I64) {
    memcpy(&wide, indices + position * sizeof wide, sizeof wide);
    return wide;
  }
  memcpy(&narrow, indices + position * sizeof narrow, sizeof narrow);
  return narrow;
}

// Rows are dealt out by the upper bits of a product, so that those that stand
// together, as those that are wanted often may, come to different shares.
static inline bool tarn__rows_is_of(const tarn__common_rows_share *share,
                                    size_t row) {
  if (share->of == 1) return true;
  uint64_t mixed = ((uint64_t)row * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
  return (mixed * share->of) >> 32 == share->number;
}

// What to do with one that is out of range; |fault| is set.
tarn__common_rows_verdict tarn__rows_judge(tarn__common_rows_share *share,
                                           int64_t index, size_t position);

// What to do with the index at |position|, which becomes |*out|. |rows| are
// those of the share's plan, or a copy.
static inline tarn__common_rows_verdict tarn__rows_admit(
    tarn__common_rows_share *share, const tarn_rows *rows, size_t position,
    size_t *out) {
  int64_t index = tarn__rows_index_at(rows, position);
  *out = (size_t)index;
  if (!tarn__rows_has(rows, index)) {
    return tarn__rows_judge(share, index, position);
  }
  return tarn__rows_is_of(share, *out) ? TARN__ROWS_TAKE : TARN__ROWS_PASS;
}

// --- rows_buckets.c --------------------------------------------------------

// A batch of rows to move, by region of the table; within one, in the order of
// their positions.
typedef struct tarn__common_rows_entry {
  uint32_t position;  // from the first of the batch on
  uint32_t row;       // from the first of its region on
} tarn__common_rows_entry;

typedef struct tarn__common_rows_buckets {
  unsigned shift;  // a row is in region row >> shift
  size_t count;    // regions
  size_t batch;    // positions that are sorted at a time, at most
  uint32_t *ends;  // of each region's entries, and of those to clear
  tarn__common_rows_entry *entries;
} tarn__common_rows_buckets;

// False if it makes no sense for |share|, or there is no memory; then there is
// nothing to end.
//
// Cost: a quarter of a MiB at most, until it is ended.
bool tarn__rows_buckets_begin(tarn__common_rows_buckets *buckets,
                              const tarn__common_rows_share *share);
void tarn__rows_buckets_end(tarn__common_rows_buckets *buckets);

// Sorts |count| positions, at most |batch|, from |first| on. False: a fault.
bool tarn__rows_buckets_sort(tarn__common_rows_buckets *buckets,
                             tarn__common_rows_share *share, size_t first,
                             size_t count);

// --- rows_direct.c ---------------------------------------------------------

// As tarn__rows_run without |reach|.
TARN_MUST_CHECK tarn_status tarn__rows_direct(tarn__rows_action action,
                                              const tarn_rows *rows, char *text,
                                              size_t text_size);

// --- rows_threads.c --------------------------------------------------------

enum { TARN__ROWS_THREADS = 64 };  // at most

// Calls |work| with each of |count| things of |size| bytes at |things|, each in
// a thread of its own, the first in this one, and returns when all are done.
// What gets no thread is done here, after the first.
void tarn__rows_on_threads(void (*work)(void *thing), void *things, size_t size,
                           size_t count);

#endif  // TARN_PLUGINS_COMMON_ROWS_DIRECT_H_
