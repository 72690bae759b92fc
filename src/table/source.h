// source.h - which bytes of which files are the rows of this rank.
//
// Rows of a tensor follow one another through its files (one, or raw ones that
// are concatenated), or are dealt out to ranks |deal| at a time. The rows of a
// rank are then runs: consecutive bytes of a file, and of the rank's rows.
//
//   deal 2, of 2 ranks   file    | 0 1 | 2 3 | 4 5 | 6 7 |
//                        rank 0  | 0 1 |     | 2 3 |         two runs
#ifndef TARN_TABLE_SOURCE_H_
#define TARN_TABLE_SOURCE_H_

#include "table/file.h"
#include "table/rows.h"

// A tensor, and the array that it is in the files.
typedef struct tarn__table_array {
  tarn__table_rows rows;
  size_t file;    // the first of its files
  size_t files;   // 1, but for raw ones
  uint64_t at;    // of its row 0 in that file
  size_t length;  // rows that are there
  size_t skip;    // of them before row 0 of the tensor
} tarn__table_array;

typedef struct tarn__table_source {
  tarn__table_file *files;
  size_t file_count;
  tarn__table_array *arrays;
  size_t array_count;
  size_t deal;  // 0: none
  size_t rank;
  size_t ranks;
} tarn__table_source;

// Where one is among the runs of this rank. Zero: before the first.
typedef struct tarn__table_cursor {
  size_t array;
  size_t row;  // of this rank, in that array
} tarn__table_cursor;

typedef struct tarn__table_run {
  const tarn__table_rows *rows;
  size_t file;
  uint64_t at;      // of its first byte in the file
  uint64_t offset;  // of the same in |rows|
  uint64_t size;    // above 0
} tarn__table_run;

// Brings the arrays into the order in which the file has them.
void tarn__table_sort(tarn__table_source *source);

// The next run; false: there is none. Within a file they ascend.
bool tarn__table_next_run(const tarn__table_source *source,
                          tarn__table_cursor *io_cursor, tarn__table_run *out);

// Whether the files can be read by io_uring.
bool tarn__table_allows_ring(const tarn__table_source *source);

// Bytes of all runs of this rank.
uint64_t tarn__table_run_bytes(const tarn__table_source *source);

// What a reader or a writer has done so far.
typedef struct tarn__table_tally {
  uint64_t moved;    // bytes of runs
  uint64_t direct;   // of the file, past the page cache
  uint64_t checked;  // of the file, by checksums
} tarn__table_tally;

#endif  // TARN_TABLE_SOURCE_H_
