// reach.h - a duplicate of a communicator of MPI, within a deadline.
#ifndef TARN_MPI_REACH_H_
#define TARN_MPI_REACH_H_

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/comm.h"

// Duplicates |mpi|. Collective. Leaves a message of this file at ranks that are
// found out of reach, and what it needs of memory, until the process ends.
//
// TARN_E_TIMEOUT  not all ranks have come within |timeout_ms|: |text| names the
//                 lowest that cannot be reached, or has not come, and the
//                 network interfaces.
// TARN_E_NOMEM, TARN_E_IO  |text| then has MPI's words.
tarn_status tarn__mpi_duplicate(MPI_Comm mpi, uint64_t timeout_ms, char *text,
                                size_t room, MPI_Comm *out);

// MPI's words for |code| into |text|; TARN_E_IO.
tarn_status tarn__mpi_refuse(int code, char *text, size_t room);

#endif  // TARN_MPI_REACH_H_
