// host_kit.h - ranks on two hosts, by scripts/hosts.
#ifndef TARN_TESTS_MPI_HOST_KIT_H_
#define TARN_TESTS_MPI_HOST_KIT_H_

#include "mpi_kit.h"

// Whether there is that MPI, and there can be two hosts (scripts/hosts).
static inline bool can_try(int i) {
  if (!is_there(i)) return false;
  if (system(TARN_HOSTS " probe >/dev/null 2>&1") == 0) return true;
  note_skipped("two hosts",
               "no network namespaces: not root, no ip, or a "
               "container without the right");
  return false;
}

#endif  // TARN_TESTS_MPI_HOST_KIT_H_
