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
// others to do so, and MPI is finalized, for which it has 10 s. For an MPICH
// UCX_TCP_TX_SEG_SIZE=64k is set before, unless it is set already: its own
// default uses half of a link of 1 Gbit/s.
//
// Messages are two-sided. Of the threads, MPI asks what it says: below
// MPI_THREAD_SERIALIZED only the thread that has initialized MPI may use the
// communicator.
//
// Failure. MPI does not tell that a rank has ended or is cut off. The library
// keeps the deadline of the options and names the rank, and the network
// interfaces that MPI may use (comm.h). After that MPI is not called any more,
// nor finalized: the program ends by its own decision, and where libraries of
// MPI keep it from ending, it is ended 2 s after exit was called.
//
// A call of MPI can itself hang when a link is cut. Each communicator has a
// thread that watches over that and needs no MPI. If a call has not returned
// when the deadline and a tenth of it, and at least a second, have passed, it
// prints a line on stderr that names the rank and the call, and ends the
// process with status 1, 2 s later. This is the only way in which the library
// ends a process before exit. The thread takes no signals, and ends with the
// communicator.
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
// Lifetime:       independent of |mpi|, which is duplicated. The duplicate
// stays
//                 until MPI is finalized.
// TARN_E_STATE    MPI is not initialized, or is finalized, or does not allow
//                 this thread to call it.
// TARN_E_TIMEOUT  a rank has not come within the timeout, or is out of reach:
// the
//                 text names it, and the network interfaces. MPI must not be
//                 finalized.
// TARN_E_IO       MPI fails; the text is its own.
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_from_mpi(
    MPI_Comm mpi, const tarn_comm_options *options, tarn_comm **out_comm);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_MPI_H_
