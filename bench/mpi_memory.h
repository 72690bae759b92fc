// mpi_memory.h - memory of programs that MPI ends on an error.
#ifndef TARN_BENCH_MPI_MEMORY_H_
#define TARN_BENCH_MPI_MEMORY_H_

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Resident memory. Without it, the ranks end.
static inline void *mpi_array(size_t size) {
  void *bytes = malloc(size != 0 ? size : 1);
  if (bytes == NULL) {
    fprintf(stderr, "no %zu bytes of memory\n", size);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(EXIT_FAILURE);
  }
  memset(bytes, 1, size);
  return bytes;
}

#endif  // TARN_BENCH_MPI_MEMORY_H_
