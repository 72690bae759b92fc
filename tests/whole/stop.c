// Ranks that stop, as under a debugger or on a machine that swaps: the others
// are told which one it is when their deadline is over. Who goes on later is
// told too, and ends like any other.
//
//   test_whole_stop      some steps of each scene
//   test_whole_stop all  at least 50
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "own_world.h"
#include "support/effort.h"
#include "support/run.h"
#include "support/strike.h"

enum { FIRST_MS = 250, MOST_MS = 8000, WORLD = 1 << 20, FEWEST = 50 };

// What may go by behind the deadline, on a busy machine.
static const double LATEST_S = 5.0;

typedef struct tally {
  size_t points;
  size_t told;
  double worst;    // of what was waited, as a part of the timeout
  double worst_s;  // ... and what went by behind it
} tally;

static tally *total;      // which all tests share
static size_t per_scene;  // points

// Where the machine is too busy for the timeout, it gets a longer one.
static strike_end stop_at(const scene *it, size_t ranks, size_t victim,
                          size_t step, uint64_t *out_ms) {
  strike_end end = {.too_slow = true};
  for (*out_ms = FIRST_MS; end.too_slow && *out_ms <= MOST_MS; *out_ms *= 2) {
    end = strike_run(&(strike){.scene = it,
                               .ranks = ranks,
                               .victim = victim,
                               .step = step,
                               .stops = true,
                               .timeout_ms = *out_ms});
  }
  *out_ms /= 2;
  ck_assert(!end.too_slow);
  return end;
}

static void add(const strike_end *end, uint64_t ms) {
  double timeout_s = (double)ms * 1e-3;
  ck_assert_double_lt(end->worst_s, timeout_s + LATEST_S);
  total->points++;
  total->told += end->told;
  if (end->worst_s / timeout_s > total->worst)
    total->worst = end->worst_s / timeout_s;
  if (end->worst_s - timeout_s > total->worst_s)
    total->worst_s = end->worst_s - timeout_s;
}

// Steps that lie all over the scene, which is as long as it was unstruck.
TEST_LOOP(stopped_at_a_step, (int)scene_count) {
  const scene *it = &scenes[_i];
  uint64_t ms = 0;
  bool is_own_world = own_world_enter(WORLD);
  if (!is_own_world) note_skipped(it->name, "no look at names: not permitted");
  size_t steps = stop_at(it, 2, 1, SIZE_MAX, &ms).steps;
  for (size_t i = 0; i < per_scene; i++) {
    size_t step = 1 + steps * 3 * i / (4 * per_scene);
    strike_end end = stop_at(it, 2 + i % 2, i / 2 % 2, step, &ms);
    if (end.struck) add(&end, ms);
  }
  if (is_own_world) ck_assert_uint_eq(own_world_names(), 0);
}

static int see_total(bool all) {
  printf(
      "%zu points, 0 hangs, nothing left; %zu ranks told, at worst after "
      "%.3f of the timeout, %.1f ms behind it\n",
      total->points, total->told, total->worst, total->worst_s * 1e3);
  return all && total->points < FEWEST ? EXIT_FAILURE : EXIT_SUCCESS;
}

SECONDS(600);

int main(int argc, char **argv) {
  if (!tracer_works()) {
    return skip_program("whole_stop", "processes cannot be traced here");
  }
  bool all = argc > 1 && strcmp(argv[1], "all") == 0;
  per_scene = all ? 8 : 1;
  total = mmap(NULL, sizeof *total, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (total == MAP_FAILED) return EXIT_FAILURE;
  int status = run_tests();
  return status == EXIT_SUCCESS ? see_total(all) : status;
}
