// Ranks on two hosts, which are network namespaces (hosts.sh): what crosses the
// link is counted, and the link is cut.
#include "mpi_kit.h"

static bool can_try(int i) {
  if (!is_there(i)) return false;
  if (system(TARN_HOSTS " probe >/dev/null 2>&1") == 0) return true;
  note_skipped("two hosts",
               "no network namespaces: not root, no ip, or a "
               "container without the right");
  return false;
}

static int run_on_hosts(size_t each, const char *words) {
  char command[512];
  snprintf(command, sizeof command, "exec 2>&1; timeout 120 %s %s %zu %s %s",
           TARN_HOSTS, m->name, each, TARN_RANKS_PROGRAM, words);
  return run(command);
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

// On each side of the cut, ranks are told one of the other side. The launcher
// may end some before they say so.
TEST_LOOP(a_host_that_is_cut_off_is_named, MPIS) {
  if (!can_try(_i)) return;
  setenv("TARN_CUT", "1", 1);
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
    ck_assert_ptr_nonnull(strstr(at, " did not arrive within 1000 ms\n"));
  }
  ck_assert_msg(told > 0, "nobody was told:\n%s", output);
  ck_assert_uint_eq(number_of("left"), 0);
}

SECONDS(600);
