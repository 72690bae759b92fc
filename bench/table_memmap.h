// table_memmap.h - what NumPy's memmap gets out of a table in a file, row by
// row, when it has less memory than the table.
#ifndef TARN_BENCH_TABLE_MEMMAP_H_
#define TARN_BENCH_TABLE_MEMMAP_H_

#include <stddef.h>

#include "talk.h"

typedef struct table_memmap_job {
  const char *path;  // rows and nothing else
  size_t rows;
  size_t row_bytes;
  size_t memory;  // bytes that the process may have, in a control group of its
                  // own, besides what Python has without the table
  size_t batch;   // rows that are gathered at a time
} table_memmap_job;

// A process of Python that gathers uniform rows, with MADV_RANDOM. NULL: |why|,
// TABLE_TEXT_SIZE bytes, says why there is none: no NumPy, or no control group,
// for example. talk_stop, not at once, ends it, and removes the group.
talk *table_memmap_start(const table_memmap_job *job, char *why);

// Rows a second, in |seconds| from now. False: |why|.
bool table_memmap_measure(talk *memmap, double seconds, double *out_rows,
                          char *why);

#endif  // TARN_BENCH_TABLE_MEMMAP_H_
