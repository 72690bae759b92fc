// Threads under libtarn-malloc.so: blocks that wander, a thousand threads, and
// what is freed at the end of a thread or of the program.
#include <check.h>

#include "preload_run.h"
#include "support/json_check.h"
#include "support/run.h"

static const char *const pools[] = {"arena_pool", "page_unit_pool", "no_pool"};
enum { POOLS = sizeof pools / sizeof *pools };

TEST_LOOP(blocks_go_from_thread_to_thread, POOLS) {
  preload_on(pools[_i], "threads");
  ck_assert_double_ge(preload_report("allocs"), 8 * 1000);
}

TEST_LOOP(a_thousand_threads, POOLS) {
  preload_on(pools[_i], "thousand");
  ck_assert_double_ge(preload_report("allocs"), 1000 * 5);
}

TEST_LOOP(frees_at_the_end, POOLS) {
  preload_on(pools[_i], "last");
  ck_assert_double_ge(preload_report("allocs"), 600);
}

FIXTURE(tool_files_begin, preload_end);

int main(void) {
  return preload_cannot() ? preload_skip() : run_tests();
}
