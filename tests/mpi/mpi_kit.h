// mpi_kit.h - commands that run ranks of each MPI that is installed, and what
// they print.
#ifndef TARN_TESTS_MPI_MPI_KIT_H_
#define TARN_TESTS_MPI_MPI_KIT_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "support/run.h"

typedef struct mpi {
  const char *name;
  const char *run;
  const char *rank;  // the variable with a rank's number
  const char *library;
  const char *program;
} mpi;

static const mpi mpis[] = {
    {"openmpi", "mpirun.openmpi", "OMPI_COMM_WORLD_RANK", TARN_MPI_OPENMPI,
     TARN_PROGRAM_OPENMPI},
    {"mpich", "mpirun.mpich", "PMI_RANK", TARN_MPI_MPICH, TARN_PROGRAM_MPICH}};
enum { MPIS = sizeof mpis / sizeof *mpis };

static char output[1 << 16];
static const mpi *m;

// Debian's names; with one MPI alone it may have no other.
static inline bool is_there(int i) {
  char command[128];
  m = &mpis[i];
  snprintf(command, sizeof command, "command -v %s >/dev/null", m->run);
  if (m->library[0] != '\0' && system(command) == 0) return true;
  note_skipped(m->name, "it is not installed, or was not at build time");
  return false;
}

// Open MPI refuses to run as root, and more ranks than processors.
static inline void allow_ranks(void) {
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
  setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
}

static inline int run(const char *command) {
  FILE *pipe = popen(command, "r");
  ck_assert_ptr_nonnull(pipe);
  size_t size = fread(output, 1, sizeof output - 1, pipe);
  output[size] = '\0';
  int status = pclose(pipe);
  ck_assert_int_ne(status, -1);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static inline void assert_says(const char *text) {
  ck_assert_msg(strstr(output, text) != NULL, "'%s' is not in:\n%s", text,
                output);
}

#endif  // TARN_TESTS_MPI_MPI_KIT_H_
