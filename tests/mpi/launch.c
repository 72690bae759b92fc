// Ranks that mpirun starts, of each MPI that is installed: by the environment,
// in a program that is linked with none, and by the program's own MPI. Ranks of
// different TARN_HOST communicate by messages of MPI, as those of different
// machines do.
#include "mpi_kit.h"

static void set_up(void) {
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
  setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
}

// |apart|: each rank is on a machine of its own, as it says.
static int launch(size_t ranks, bool apart, const char *program,
                  const char *words) {
  char command[1024];
  char host[64] = "";
  if (apart) snprintf(host, sizeof host, "TARN_HOST=host-$%s ", m->rank);
  snprintf(command, sizeof command,
           "exec 2>&1; timeout 120 %s -n %zu sh -c '%sexec %s %s'", m->run,
           ranks, host, program, words);
  return run(command);
}

// --- that go well ----------------------------------------------------------

static void check_all(size_t ranks, bool apart) {
  char line[64];
  bool by_mpi = apart && ranks > 1;
  int status = launch(ranks, apart, TARN_RANKS_PROGRAM, "all");
  ck_assert_msg(status == 0, "status %d:\n%s", status, output);
  snprintf(line, sizeof line, "%zu ranks by %s\n", ranks,
           by_mpi ? "mpi" : "local");
  assert_says(line);
}

TEST_LOOP(ranks_of_one_machine_share_memory, MPIS) {
  if (!is_there(_i)) return;
  for (size_t ranks = 1; ranks <= 5; ranks += 2)
    check_all(ranks, false);
}

TEST_LOOP(ranks_of_several_machines_pass_messages, MPIS) {
  if (!is_there(_i)) return;
  for (size_t ranks = 1; ranks <= 5; ranks++)
    check_all(ranks, true);
}

TEST(the_same_program_runs_under_tarn_run) {
  ck_assert_int_eq(run(TARN_TOOL " run -n 3 -- " TARN_RANKS_PROGRAM " all"), 0);
  assert_says("3 ranks by local\n");
  ck_assert_int_eq(run(TARN_RANKS_PROGRAM " all"), 0);
  assert_says("1 ranks by local\n");
}

TEST_LOOP(a_program_has_an_mpi_of_its_own, MPIS) {
  static const char *const words[] = {"levels 0", "levels 1", "levels 2",
                                      "levels 3", "early 3",  "thread 1"};
  if (!is_there(_i)) return;
  for (size_t k = 0; k < 2 * sizeof words / sizeof *words; k++) {
    int status = launch(3, k % 2 != 0, m->program, words[k / 2]);
    ck_assert_msg(status == 0, "%s: status %d:\n%s", words[k / 2], status,
                  output);
    assert_says("done\n");
  }
}

// --- that fail -------------------------------------------------------------

static void check_lost(bool apart, const char *how, const char *says) {
  ck_assert_int_ne(launch(4, apart, TARN_RANKS_PROGRAM, how), 0);
  if (says != NULL) assert_says(says);
}

// The launcher may end some ranks before they say what they were told.
TEST_LOOP(a_silent_rank_is_named_and_the_job_ends, MPIS) {
  if (!is_there(_i)) return;
  setenv("TARN_COMM_TIMEOUT_MS", "1000", 1);
  for (int apart = 0; apart < 2; apart++) {
    check_lost(apart != 0, "silent",
               ": TARN_E_TIMEOUT: comm: rank 1 did not arrive within 1000 ms");
  }
}

// On a machine the others are told at once; else the launcher says so.
TEST_LOOP(a_killed_rank_ends_the_job, MPIS) {
  if (!is_there(_i)) return;
  check_lost(false, "killed", NULL);
  check_lost(true, "killed", NULL);
  assert_says("illed");
}

FIXTURE(set_up, NULL);
