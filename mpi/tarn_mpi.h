// tarn_mpi.h - communicators of an MPI.
//
// libtarn_mpi_openmpi.so is for programs that use Open MPI,
// libtarn_mpi_mpich.so for those that use MPICH; link the one of your MPI.
//
//   MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
//   tarn_comm *comm;
//   tarn_comm_from_mpi(MPI_COMM_WORLD, NULL, &comm);
//   ...
//   tarn_comm_destroy(comm);
//   MPI_Finalize();
//
// A program that needs nothing else of MPI is not linked with it: under mpirun,
// tarn_comm_from_environment finds the library beside libtarn.so, and MPI is
// initialized there. When the process exits with status 0, it waits for the
// others to do so, and MPI is finalized, for which it has 10 s.
//
// Messages are two-sided. Of the threads, MPI asks what it says: below
// MPI_THREAD_SERIALIZED only the thread that has initialized MPI may use the
// communicator.
//
// Failure. MPI does not tell that a rank has ended or is cut off. The library
// keeps the deadline of the options and names the rank (comm.h). After that MPI
// is not called any more, nor finalized: the program ends by its own decision,
// and where libraries of MPI keep it from ending, it is ended 2 s after exit
// was called.
#ifndef TARN_MPI_H_
#define TARN_MPI_H_

#include <mpi.h>

#include "tarn/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

// Creates a communicator of the ranks of |mpi|, with the same numbers: as
// tarn_comm_from_engine. Collective.
//
// Lifetime:     independent of |mpi|, which is duplicated. The duplicate stays
//               until MPI is finalized.
// TARN_E_STATE  MPI is not initialized, or is finalized, or does not allow this
//               thread to call it.
// TARN_E_IO     MPI fails; the text is its own.
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_from_mpi(
    MPI_Comm mpi, const tarn_comm_options *options, tarn_comm **out_comm);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_MPI_H_
