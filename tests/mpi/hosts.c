// Ranks on two hosts, which are network namespaces (scripts/hosts): what
// crosses the link is counted, and the link is cut.
#include "host_kit.h"
#include "support/row_trial.h"

static int run_program(const char *options, const char *program, size_t each,
                       const char *words) {
  char command[512];
  snprintf(command, sizeof command,
           "exec 2>&1; timeout 120 %s --seconds 100 %s %s %zu %s %s",
           TARN_HOSTS, options, m->name, each, program, words);
  return run(command);
}

static int run_on_hosts(size_t each, const char *words) {
  return run_program("", TARN_RANKS_PROGRAM, each, words);
}

// The number behind |word| at the begin of a line.
static size_t number_of(const char *word) {
  char line[32];
  snprintf(line, sizeof line, "\n%s ", word);
  const char *at = strstr(output, line);
  ck_assert_msg(at != NULL, "no '%s' in:\n%s", word, output);
  return strtoull(at + strlen(line), NULL, 10);
}

// Nobody takes another way than the link. MPICH's MPI_Finalize does not always
// return here (mpi/world.c), which its launcher takes for a failure.
TEST_LOOP(collectives_cross_the_link, MPIS) {
  if (!can_try(_i)) return;
  for (size_t each = 1; each <= 2; each++) {
    char line[32];
    ck_assert_int_eq(run_on_hosts(each, "all"), 0);
    snprintf(line, sizeof line, "%zu ranks by mpi\n", 2 * each);
    assert_says(line);
    if (_i == 0) ck_assert_uint_eq(number_of("status"), 0);
    ck_assert_uint_eq(number_of("left"), 0);
    ck_assert_uint_gt(number_of("crossed"), (size_t)20 << 20);
  }
}

TEST_LOOP(ranks_of_a_host_share_memory, MPIS) {
  if (!can_try(_i)) return;
  ck_assert_int_eq(run_on_hosts(2, "near"), 0);
  for (int rank = 0; rank < 4; rank++) {
    char line[64];
    snprintf(line, sizeof line, "rank %d: %d of 2 by local, 2 machines\n", rank,
             rank % 2);
    assert_says(line);
  }
  ck_assert_uint_eq(number_of("left"), 0);
}

// Also over more ranks than processors; each of the types that can.
TEST_LOOP(rows_cross_the_link, MPIS) {
  if (!can_try(_i)) return;
  for (size_t each = 1; each <= 2; each++) {
    char line[80];
    ck_assert_int_eq(run_program("", TARN_ROWS_PROGRAM, each, ""), 0);
    for (int kind = 0; kind < ROW_KINDS; kind++) {
      snprintf(line, sizeof line, "%s rows of %zu ranks by mpi are right\n",
               row_kinds[kind].name, 2 * each);
      assert_says(line);
    }
    ck_assert_uint_eq(number_of("left"), 0);
  }
}

TEST_LOOP(rows_have_checksums, MPIS) {
  if (!can_try(_i)) return;
  setenv("TARN_COMM_CHECK", "1", 1);
  ck_assert_int_eq(run_program("", TARN_ROWS_PROGRAM, 1, ""), 0);
  assert_says(" rows of 2 ranks by mpi are right\n");
  ck_assert_uint_eq(number_of("left"), 0);
}

// Each row of the other host once, whether one rank wants it or two do, and how
// often.
TEST_LOOP(rows_that_all_want_cross_once, MPIS) {
  if (!can_try(_i)) return;
  for (size_t each = 1; each <= 2; each++) {
    ck_assert_int_eq(run_program("", TARN_ROWS_PROGRAM, each, "same"), 0);
    ck_assert_uint_ge(number_of("crossed"), ROWS_SAME);
    ck_assert_uint_le(number_of("crossed"),
                      ROWS_SAME + ROWS_SAME / 20 + ((size_t)1 << 20));
    ck_assert_uint_eq(number_of("left"), 0);
  }
}

// A rank that waits for another of its machine learns of it as well.
TEST_LOOP(a_cut_ends_a_gather, MPIS) {
  if (!can_try(_i)) return;
  setenv("TARN_FAULT", "cut", 1);
  setenv("TARN_COMM_TIMEOUT_MS", "1000", 1);
  ck_assert_int_eq(run_program("", TARN_ROWS_PROGRAM, 2, "until parts"), 0);
  assert_says(": TARN_E_TIMEOUT: comm: rank ");
  assert_says(" did not arrive within 1000 ms in tarn_whole_gather of whole 1");
  assert_says("v1 10.231.77.1");
  ck_assert_uint_eq(number_of("left"), 0);
}

// Rank 0, of the same host, sees it, and tells the others. The launcher sees it
// later.
TEST_LOOP(the_end_of_a_rank_is_told_to_all, MPIS) {
  if (!can_try(_i)) return;
  setenv("TARN_HIDE", "1", 1);
  ck_assert_int_eq(run_on_hosts(2, "ended"), 0);
  for (int rank = 0; rank < 4; rank++) {
    char line[112];
    if (rank == 1) continue;
    snprintf(line, sizeof line,
             "rank %d: TARN_E_PEER_LOST: comm: rank 1 has ended, missed in "
             "tarn_comm_barrier\n",
             rank);
    assert_says(line);
    snprintf(line, sizeof line, "rank %d: told soon\n", rank);
    assert_says(line);
  }
  ck_assert_uint_eq(number_of("left"), 0);
}

// On each side of the cut, ranks are told one of the other side. The launcher
// may end some before they say so.
TEST_LOOP(a_host_that_is_cut_off_is_named, MPIS) {
  if (!can_try(_i)) return;
  setenv("TARN_FAULT", "cut", 1);
  setenv("TARN_COMM_TIMEOUT_MS", "1000", 1);
  ck_assert_int_eq(run_on_hosts(2, "cut"), 0);
  int told = 0;
  for (int rank = 0; rank < 4; rank++) {
    char line[96];
    int far = rank < 2 ? 2 : 0;
    snprintf(line, sizeof line, "rank %d: TARN_E_TIMEOUT: comm: rank ", rank);
    const char *at = strstr(output, line);
    if (at == NULL) continue;
    told++;
    int named = atoi(at + strlen(line));
    ck_assert_msg(named == far || named == far + 1, "rank %d: rank %d", rank,
                  named);
    ck_assert_ptr_nonnull(
        strstr(at, " did not arrive within 1000 ms in tarn_comm_b"));
    assert_says(rank < 2 ? ", over v1 10.231.77.1" : ", over v2 10.231.77.2");
  }
  ck_assert_msg(told > 0, "nobody was told:\n%s", output);
  ck_assert_uint_eq(number_of("left"), 0);
}

// Open MPI begins, and its messages do not arrive: who cannot be reached is
// named. MPICH does not begin, and names the address.
TEST_LOOP(a_wrong_interface_is_named, MPIS) {
  if (!can_try(_i)) return;
  setenv("TARN_COMM_TIMEOUT_MS", "1000", 1);
  ck_assert_int_eq(run_program("--apart", TARN_RANKS_PROGRAM, 2, "all"), 0);
  if (_i == 0) {
    assert_says(
        ": TARN_E_TIMEOUT: tarn_comm_from_environment: rank 2 has not come, or "
        "is out of reach, within 1000 ms, over d0 10.231.78.1 "
        "(btl_tcp_if_include=d0)\n");
  } else {
    assert_says("10.231.78.");
  }
  ck_assert_uint_ne(number_of("status"), 0);
  ck_assert_uint_eq(number_of("left"), 0);
}

SECONDS(600);
