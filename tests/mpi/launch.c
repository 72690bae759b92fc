// Ranks that mpirun starts, of each MPI that is installed: by the environment,
// in a program that is linked with none, and by the program's own MPI. Ranks of
// different TARN_HOST communicate by messages of MPI, as those of different
// machines do.
#include "mpi_kit.h"

// Each rank is on a machine of its own, as it says, or two are on one.
enum { TOGETHER, APART, IN_PAIRS };

static int launch(size_t ranks, int how, const char *program,
                  const char *words) {
  char command[1024];
  char host[64] = "";
  if (how != TOGETHER) {
    snprintf(host, sizeof host, "TARN_HOST=host-$(($%s / %d)) ", m->rank, how);
  }
  snprintf(command, sizeof command,
           "exec 2>&1; timeout 120 %s -n %zu sh -c '%sexec %s %s'", m->run,
           ranks, host, program, words);
  return run(command);
}

// --- that go well ----------------------------------------------------------

static void check_all(size_t ranks, int how) {
  char line[64];
  bool by_mpi = how != TOGETHER && ranks > 1;
  int status = launch(ranks, how, TARN_RANKS_PROGRAM, "all");
  ck_assert_msg(status == 0, "status %d:\n%s", status, output);
  snprintf(line, sizeof line, "%zu ranks by %s\n", ranks,
           by_mpi ? "mpi" : "local");
  assert_says(line);
}

TEST_LOOP(ranks_of_one_machine_share_memory, MPIS) {
  if (!is_there(_i)) return;
  for (size_t ranks = 1; ranks <= 5; ranks += 2)
    check_all(ranks, TOGETHER);
}

TEST_LOOP(ranks_of_several_machines_pass_messages, MPIS) {
  if (!is_there(_i)) return;
  for (size_t ranks = 1; ranks <= 5; ranks++)
    check_all(ranks, APART);
}

TEST_LOOP(ranks_of_a_machine_share_memory_within_several, MPIS) {
  if (!is_there(_i)) return;
  int status = launch(5, IN_PAIRS, TARN_RANKS_PROGRAM, "near");
  ck_assert_msg(status == 0, "status %d:\n%s", status, output);
  assert_says("rank 2: 0 of 2 by local, 3 machines\n");
  assert_says("rank 3: 1 of 2 by local, 3 machines\n");
  assert_says("rank 4: 0 of 1 by local, 3 machines\n");
}

TEST(the_same_program_runs_under_tarn_run) {
  ck_assert_int_eq(run(TARN_TOOL " run -n 3 -- " TARN_RANKS_PROGRAM " all"), 0);
  assert_says("3 ranks by local\n");
  ck_assert_int_eq(run(TARN_RANKS_PROGRAM " all"), 0);
  assert_says("1 ranks by local\n");
}

TEST(the_same_program_runs_under_srun) {
  if (system("command -v srun >/dev/null && srun -n 2 true 2>/dev/null") != 0) {
    note_skipped("srun", "it is not installed, or has no nodes here");
    return;
  }
  ck_assert_int_eq(
      run("exec 2>&1; timeout 120 srun --mpi=pmix -n 2 " TARN_RANKS_PROGRAM
          " all"),
      0);
  assert_says("2 ranks by local\n");
}

TEST_LOOP(a_program_has_an_mpi_of_its_own, MPIS) {
  static const char *const words[] = {"levels 0", "levels 1", "levels 2",
                                      "levels 3", "early 3",  "thread 1"};
  if (!is_there(_i)) return;
  for (size_t k = 0; k < 2 * sizeof words / sizeof *words; k++) {
    int status =
        launch(3, k % 2 != 0 ? APART : TOGETHER, m->program, words[k / 2]);
    ck_assert_msg(status == 0, "%s: status %d:\n%s", words[k / 2], status,
                  output);
    assert_says("done\n");
  }
}

// --- that fail -------------------------------------------------------------

static void check_lost(int how, const char *what, const char *says) {
  ck_assert_int_ne(launch(4, how, TARN_RANKS_PROGRAM, what), 0);
  if (says != NULL) assert_says(says);
}

// The launcher may end some ranks before they say what they were told.
TEST_LOOP(a_silent_rank_is_named_and_the_job_ends, MPIS) {
  if (!is_there(_i)) return;
  setenv("TARN_COMM_TIMEOUT_MS", "1000", 1);
  for (int how = TOGETHER; how <= APART; how++) {
    check_lost(how, "silent",
               ": TARN_E_TIMEOUT: comm: rank 1 did not arrive within 1000 ms");
  }
}

// On a machine the others are told at once; else the launcher says so.
TEST_LOOP(a_killed_rank_ends_the_job, MPIS) {
  if (!is_there(_i)) return;
  check_lost(TOGETHER, "killed", NULL);
  check_lost(APART, "killed", NULL);
  assert_says("illed");
}

FIXTURE(allow_ranks, NULL);
