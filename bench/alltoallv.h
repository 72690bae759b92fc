// alltoallv.h - a gather of rows that have several owners, as one writes it
// with MPI_Alltoallv: how many, indices to the owners, rows back, and each to
// its place.
//
// Errors of MPI end the job, as is MPI's default, and so does a lack of memory.
#ifndef TARN_BENCH_ALLTOALLV_H_
#define TARN_BENCH_ALLTOALLV_H_

#include <stddef.h>

enum { ALLTOALLV_RANKS_MOST = 64 };

typedef struct alltoallv alltoallv;

// One gather. Rank r owns rows r * |part_rows| and so on; |part| are this
// rank's.
typedef struct alltoallv_rows {
  const unsigned char *part;
  size_t part_rows;
  size_t row_bytes;
  const void *indices;  // |count| of them
  size_t count;
  unsigned char *dense;  // |count| rows
} alltoallv_rows;

// The functions, for who finds them by name in a library for an MPI.
typedef struct alltoallv_ops {
  // For gathers of at most |rows_most| rows, |bytes_most| together, by indices
  // of |index_bytes|, 4 or 8. All is touched.
  alltoallv *(*make)(size_t rows_most, size_t bytes_most, size_t index_bytes);
  // Collective.
  void (*gather)(alltoallv *a, const alltoallv_rows *rows);
  void (*unmake)(alltoallv *a);
} alltoallv_ops;

extern const alltoallv_ops tarn_bench_alltoallv;
#define ALLTOALLV_NAME "tarn_bench_alltoallv"

// A library for an MPI that is preloaded counts the messages that this process
// sends by MPI_Isend, as Tarn does: a uint64_t.
#define ALLTOALLV_SENDS "tarn_bench_sends"

#endif  // TARN_BENCH_ALLTOALLV_H_
