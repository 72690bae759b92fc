// `tarn bench whole` as ranks of mpirun, on one machine and on what its ranks
// say are several. No figure is compared with a time.
#include "mpi_kit.h"
#include "support/json_check.h"

#define QUICK "--size 1M --batch 32K --passes 1 --rows 64 -o json"

static char result[1 << 16];

// Of --hosts: two kinds of indices and three short requests, each by both
// types.
enum { JOBS = 5, TYPES = 2 };

// |hosts|: on as many machines as ranks; what is printed is in |output|.
static int launch_with(const char *variable, size_t ranks, bool hosts,
                       const char *words) {
  char command[1536];
  char host[64] = "";
  if (hosts) snprintf(host, sizeof host, "TARN_HOST=host-$%s ", m->rank);
  snprintf(command, sizeof command,
           "exec 2>&1; timeout 120 %s -n %zu sh -c "
           "'%s%sexec %s bench whole %s'",
           m->run, ranks, host, variable, TARN_TOOL, words);
  return run(command);
}

static int launch(size_t ranks, bool hosts, const char *words) {
  return launch_with("", ranks, hosts, words);
}

// The one line that is JSON: the launcher says things of its own.
static const char *find_json(void) {
  const char *begin = strstr(output, "{\"");
  ck_assert_msg(begin != NULL, "no JSON in:\n%s", output);
  size_t length = strcspn(begin, "\n");
  memcpy(result, begin, length);
  result[length] = '\0';
  ck_assert_msg(strstr(begin + length, "\n{\"") == NULL, "two in:\n%s", output);
  ck_assert(json_valid(result));
  return result;
}

TEST_LOOP(ranks_of_mpirun_measure, MPIS) {
  if (!is_there(_i)) return;
  (void)launch(2, false, "--device cpu --no-numpy " QUICK);
  const char *json = find_json();
  ck_assert(json_is(json, "ranks", "2"));
  ck_assert_uint_eq(json_size(json, "results"), 4 * 5 + 2 * 4);
  ck_assert(
      json_is_text(json, "skipped.0.why", "these ranks are a launcher's"));
}

// By MPI they have figures in any case.
TEST_LOOP(ranks_of_two_machines_measure, MPIS) {
  if (!is_there(_i)) return;
  (void)launch(2, true, "--hosts " QUICK);
  const char *json = find_json();
  ck_assert(json_is(json, "ranks", "2"));
  ck_assert(json_is(json, "machines", "2"));
  ck_assert_double_gt(json_number(json, "link_one_gbs"), 0);
  ck_assert_double_gt(json_number(json, "link_both_gbs"), 0);
  ck_assert_double_gt(json_number(json, "link_round_us"), 0);
  ck_assert_uint_eq(json_size(json, "results"), JOBS * (1 + TYPES));
  ck_assert(json_is_text(json, "results.0.op", "mpi_alltoallv"));
  ck_assert(json_is_text(json, "results.1.op", "gather"));
  ck_assert(json_is_text(json, "results.2.type", "hierarchical"));
  ck_assert(json_is_text(json, "results.3.indices", "zipf"));
  ck_assert_double_gt(json_number(json, "results.0.gbs"), 0);
  ck_assert_double_gt(json_number(json, "results.0.needed_bytes"), 0);
  ck_assert_uint_eq(json_size(json, "skipped"), 0);
}

// Without the first it is another benchmark's.
TEST_LOOP(what_machines_are_there_is_told, MPIS) {
  if (!is_there(_i)) return;
  ck_assert_int_ne(launch(2, false, "--hosts " QUICK), 0);
  assert_says("tarn bench whole: --hosts: all 2 ranks are on one machine");
  ck_assert_int_ne(launch(2, true, QUICK), 0);
  assert_says(
      "tarn bench whole: the ranks are on 2 machines, which --hosts is "
      "for");
}

// Of each step; messages where they are counted.
TEST_LOOP(ranks_of_several_machines_tell_what_they_take, MPIS) {
  char preload[512];
  if (!is_there(_i)) return;
  const char *name = strrchr(m->library, '/');
  ck_assert_ptr_nonnull(name);
  snprintf(preload, sizeof preload, "LD_PRELOAD=%.*s/libtarn_bench_%s.so ",
           (int)(name - m->library), m->library, m->name);
  for (int counts = 0; counts <= 1; counts++) {
    (void)launch_with(counts ? preload : "", 3, true,
                      "--footprint --batch 64K -o json");
    const char *json = find_json();
    ck_assert(json_is(json, "ranks", "3"));
    ck_assert(json_is(json, "machines", "3"));
    ck_assert_uint_eq(json_size(json, "results"), 5);
    ck_assert(json_is_text(json, "results.0.step", "communicator"));
    for (size_t i = 0; i < 5; i++) {
      if (!counts) {
        ck_assert(json_is(json, json_row(i, "messages"), "null"));
      } else {
        ck_assert_double_gt(json_number(json, json_row(i, "messages")), 0);
      }
    }
    ck_assert_double_gt(json_number(json, "results.2.shared_bytes"), 0);
  }
}

TEST_LOOP(hosts_without_mpi_to_compare_with, MPIS) {
  if (!is_there(_i)) return;
  (void)launch(2, true, "--hosts --no-mpi " QUICK);
  const char *json = find_json();
  ck_assert_uint_eq(json_size(json, "results"), JOBS * TYPES);
  ck_assert(json_is_text(json, "skipped.0.what", "mpi"));
  ck_assert(json_is_text(json, "skipped.0.why", "not asked for"));
}

FIXTURE(allow_ranks, NULL);
SECONDS(300);
