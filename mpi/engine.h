// engine.h - messages by MPI, for communicators.
#ifndef TARN_MPI_ENGINE_H_
#define TARN_MPI_ENGINE_H_

#include <mpi.h>
#include <stdbool.h>

#include "tarn/comm.h"

// The |self| of the operations: a duplicate of |mpi|, with a guard (guard.h)
// for the deadline of the ranks. Collective.
//
// TARN_E_TIMEOUT           as tarn__mpi_duplicate; MPI is not to be finalized.
// TARN_E_NOMEM, TARN_E_IO  |text| then has MPI's words.
tarn_status tarn__mpi_engine_create(MPI_Comm mpi, uint64_t timeout_ms,
                                    char *text, size_t room, void **out_self,
                                    size_t *out_rank, size_t *out_size);

// The operations, as the thread level of MPI has them.
const tarn_comm_ops *tarn__mpi_engine_ops(void);

// Whether an engine was abandoned: then MPI must not be finalized.
bool tarn__mpi_is_abandoned(void);

#endif  // TARN_MPI_ENGINE_H_
