// table_parts.h - the parts of table_bench.h, each in a file of its own.
#ifndef TARN_BENCH_TABLE_PARTS_H_
#define TARN_BENCH_TABLE_PARTS_H_

#include "table_bench.h"

// Tables into and out of files, beside preads and pwrites of 1 MiB by as many
// processes and, past the page cache, beside fio.
extern const table_part table_files_part;

// Optimizers of embeddings, beside gathers of the same rows, and beside those
// of PyTorch.
extern const table_part table_apply_part;

// Rows kept near their user: what SIEVE misses over LRU, and hits over gathers.
extern const table_part table_cache_part;

// A table on a disk with a quarter of its bytes as memory, beside fio and
// NumPy's memmap.
extern const table_part table_disk_part;

#endif  // TARN_BENCH_TABLE_PARTS_H_
