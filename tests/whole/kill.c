// The kill matrix: a rank is killed at each of its system calls, before the
// kernel makes it and behind, in all that ranks do together. Each rank that
// is left is told which rank it was, frees what it holds and ends; nothing of
// any of them stays.
//
//   test_whole_kill      every so many steps of each scene
//   test_whole_kill all  every step; under a sanitizer every fifth
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "own_world.h"
#include "support/effort.h"
#include "support/run.h"
#include "support/strike.h"

enum { TIMEOUT_MS = 30000, WORLD = 1 << 20, FEWEST = 300 };

static size_t stride;  // from one step to the next

// No rank is told later than this: far more than it takes on a busy machine,
// and far less than the timeout.
static const double LATEST_S = 5.0;

typedef struct tally {
  size_t points;
  size_t told;
  double worst_s;
} tally;

static tally *total;  // which all tests share

static void add(tally *sum, size_t points, size_t told, double worst_s) {
  sum->points += points;
  sum->told += told;
  if (worst_s > sum->worst_s) sum->worst_s = worst_s;
}

typedef struct cast {
  size_t ranks;
  size_t victim;
  size_t every;  // so many of the steps
} cast;

static const cast casts[] = {{2, 0, 3}, {2, 1, 3}, {3, 1, 1}};
enum { CASTS = sizeof casts / sizeof *casts };

static tally kill_at_each_step(const scene *it, const cast *who) {
  tally sum = {0};
  for (size_t step = 1;; step += stride * who->every) {
    strike_end end = strike_run(&(strike){.scene = it,
                                          .ranks = who->ranks,
                                          .victim = who->victim,
                                          .step = step,
                                          .timeout_ms = TIMEOUT_MS});
    if (!end.struck) break;
    ck_assert_double_lt(end.worst_s, LATEST_S);
    add(&sum, 1, end.told, end.worst_s);
  }
  ck_assert_uint_gt(sum.points, 0);
  return sum;
}

static void report(const scene *it, const cast *who, const tally *sum) {
  printf(
      "%-32s %zu ranks, rank %zu killed: %4zu points, %4zu told, "
      "%6.1f ms at worst\n",
      it->name, who->ranks, who->victim, sum->points, sum->told,
      sum->worst_s * 1e3);
  fflush(stdout);
}

TEST_LOOP(killed_at_each_step, (int)scene_count) {
  const scene *it = &scenes[_i];
  bool is_own_world = own_world_enter(WORLD);
  if (!is_own_world) note_skipped(it->name, "no look at names: not permitted");
  for (int i = 0; i < CASTS; i++) {
    tally sum = kill_at_each_step(it, &casts[i]);
    report(it, &casts[i], &sum);
    add(total, sum.points, sum.told, sum.worst_s);
  }
  if (is_own_world) ck_assert_uint_eq(own_world_names(), 0);
}

// All of them are only there if the whole suite has run.
static int see_total(void) {
  printf(
      "%zu points, 0 hangs, nothing left; %zu ranks told, %.1f ms at "
      "worst\n",
      total->points, total->told, total->worst_s * 1e3);
  return stride == 1 && total->points < FEWEST ? EXIT_FAILURE : EXIT_SUCCESS;
}

SECONDS(600);

int main(int argc, char **argv) {
  if (!tracer_works()) {
    return skip_program("whole_kill", "processes cannot be traced here");
  }
  bool all = argc > 1 && strcmp(argv[1], "all") == 0;
  stride = all ? EFFORT(1, 5) : EFFORT(13, 29);
  total = mmap(NULL, sizeof *total, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (total == MAP_FAILED) return EXIT_FAILURE;
  int status = run_tests();
  return status == EXIT_SUCCESS ? see_total() : status;
}
