// Ranks of Open MPI, each in valgrind: what the communicator and the exchange
// of rows read, write and leave. Ranks say that they are on machines of their
// own, or two are on one. The rules of openmpi.supp are for MPI itself alone.
#include "mpi_kit.h"

// Whatever is found ends a rank with this status, and the job with it.
#define VALGRIND                                                          \
  "valgrind -q --error-exitcode=9 --num-callers=40 --keep-debuginfo=yes " \
  "--leak-check=full --show-leak-kinds=definite "                         \
  "--errors-for-leak-kinds=definite --suppressions=" TARN_SUPPRESSIONS

static bool can_try(void) {
  if (!is_there(0)) return false;
  if (system("command -v valgrind >/dev/null") != 0) {
    note_skipped("ranks in valgrind", "it is not installed");
    return false;
  }
  if (system("valgrind -q true >/dev/null 2>&1") == 0) return true;
  note_skipped("ranks in valgrind", "it does not run here");
  return false;
}

static void set_up(void) {
  allow_ranks();
  setenv("TARN_COMM_TIMEOUT_MS", "120000", 1);
}

// |each| ranks say that they are on one machine.
static void see_nothing_found(size_t ranks, int each, const char *words,
                              const char *says) {
  char command[2048];
  if (!can_try()) return;
  snprintf(command, sizeof command,
           "exec 2>&1; timeout 280 %s -n %zu sh -c 'TARN_HOST=host-$(($%s / "
           "%d)) LD_PRELOAD=%s exec %s %s'",
           m->run, ranks, m->rank, each, TARN_NO_PIDFD, VALGRIND, words);
  int status = run(command);
  ck_assert_msg(status == 0, "status %d:\n%.3000s", status, output);
  assert_says(says);
}

TEST(collectives_in_valgrind) {
  see_nothing_found(3, 1, TARN_RANKS_PROGRAM " all", "3 ranks by mpi\n");
}

TEST(rows_in_valgrind) {
  see_nothing_found(3, 2, TARN_ROWS_PROGRAM " few",
                    "hierarchical in copies rows of 3 ranks by mpi are right");
}

FIXTURE(set_up, NULL);
SECONDS(300);
