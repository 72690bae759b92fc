// launcher.h - ranks that another launcher than `tarn run` has started.
#ifndef TARN_COMM_LAUNCHER_H_
#define TARN_COMM_LAUNCHER_H_

#include "tarn/comm.h"

// What libtarn_mpi_NAME.so exports as TARN__COMM_WORLD: fills in |out| for all
// ranks of the launcher. Initializes MPI if nobody has.
typedef struct tarn__comm_world {
  size_t struct_size;
  uint64_t timeout_ms;  // of the caller
  const tarn_comm_ops *ops;
  void *self;
  size_t rank;
  size_t size;
  char text[256];  // on failure
} tarn__comm_world;
typedef tarn_status tarn__comm_world_fn(tarn__comm_world *out);
#define TARN__COMM_WORLD "tarn_mpi_world"

// Joins the ranks that a launcher has started. |*out_found|: there is one, of
// several ranks; otherwise nothing was done.
//
// TARN_E_STATE  its ranks cannot join without more: the text says how.
TARN_MUST_CHECK tarn_status tarn__launcher_join(
    const tarn_comm_options *options, bool *out_found, tarn_comm **out_comm);

#endif  // TARN_COMM_LAUNCHER_H_
