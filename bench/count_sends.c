// Counts what this process sends by MPI_Isend, where this library is preloaded:
// then others find it here before they find that of MPI.
#include <mpi.h>
#include <stdint.h>

#include "alltoallv.h"

#define SHOWN __attribute__((visibility("default")))

extern SHOWN uint64_t tarn_bench_sends;
uint64_t tarn_bench_sends;

SHOWN int MPI_Isend(const void *data, int count, MPI_Datatype type, int rank,
                    int tag, MPI_Comm comm, MPI_Request *request) {
  tarn_bench_sends++;
  // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): the caller waits
  return PMPI_Isend(data, count, type, rank, tag, comm, request);
}
