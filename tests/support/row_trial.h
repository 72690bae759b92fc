// row_trial.h - rows of tables that ranks exchange, against a model that each
// rank has.
#ifndef TARN_TESTS_ROW_TRIAL_H_
#define TARN_TESTS_ROW_TRIAL_H_

#include "tarn/whole.h"

typedef struct row_kind {
  const char *name;
  tarn_whole_type type;
  tarn_whole_spread spread;
} row_kind;

enum { ROW_DISTRIBUTED, ROW_PARTS, ROW_COPIES, ROW_KINDS };
extern const row_kind row_kinds[ROW_KINDS];

// Gathers, scatters and adds rows of tables of |kind| of several shapes, of
// which the first |shapes| are tried, from small to large. Ends the process if
// one is wrong.
#define ROW_SHAPES 7
void try_rows(tarn_comm *comm, const row_kind *kind, size_t shapes);

// Gathers all rows of a table, of ROWS_SAME bytes, in parts: all ranks the same
// rows, each twice.
#define ROWS_SAME ((size_t)32 << 20)
void gather_same(tarn_comm *comm);

// Gathers until that fails, or what is |between| two gathers does, which may be
// NULL; returns how. Rank 0 calls |begun| before.
tarn_status gather_until(tarn_comm *comm, const row_kind *kind,
                         void begun(void),
                         tarn_status between(tarn_comm *comm));

#endif  // TARN_TESTS_ROW_TRIAL_H_
