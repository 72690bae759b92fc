// rows_move.h - moves rows between two pointers, by a loop for each kind of
// row.
#ifndef TARN_BASE_ROWS_MOVE_H_
#define TARN_BASE_ROWS_MOVE_H_

#include "base/rows.h"

enum { TARN__ROWS_AHEAD = 24 };  // rows that are fetched before, at most

// A row at both ends. |table| NULL: the dense row is cleared.
typedef struct tarn__rows_pair {
  unsigned char *table;
  unsigned char *dense;
} tarn__rows_pair;

struct tarn__rows_plan;

// Moves |count| rows. Behind them stand TARN__ROWS_AHEAD more pairs, of rows
// that may come next.
typedef void tarn__rows_mover(const struct tarn__rows_plan *plan,
                              const tarn__rows_pair *pairs, size_t count);

// The plan of a call, shared by its threads.
typedef struct tarn__rows_plan {
  tarn__rows_action action;
  const tarn_rows *rows;
  size_t table_bytes;  // of a row
  size_t dense_bytes;
  tarn__rows_mover *move;
  bool streams;  // it writes past the caches
  size_t ahead;  // rows that are fetched before they are moved
} tarn__rows_plan;

// The plan for |rows|, with the fastest mover there is.
tarn__rows_plan tarn__rows_choose(tarn__rows_action action,
                                  const tarn_rows *rows);

// Makes rows that this thread has written past the caches visible to others.
void tarn__rows_settle(void);

#endif  // TARN_BASE_ROWS_MOVE_H_
