// Forks, other programs, and ends of programs under libtarn-malloc.so.
#include <check.h>
#include <string.h>

#include "preload_run.h"
#include "support/json_check.h"
#include "support/run.h"

static const char *const pools[] = {"arena_pool", "page_unit_pool", "no_pool"};
enum { POOLS = sizeof pools / sizeof *pools };

TEST_LOOP(a_child_has_a_copy, POOLS) {
  preload_on(pools[_i], "fork");
}

TEST_LOOP(forks_while_threads_allocate, POOLS) {
  preload_on(pools[_i], "fork_busy");
  ck_assert_double_ge(preload_report("allocs"), 24);
}

TEST(programs_that_are_started) {
  preload("spawn");
  ck_assert_str_eq(ran.out, "here\n");
}

TEST(a_program_that_becomes_another) {
  preload("exec");
  ck_assert_str_eq(ran.out, "here\n");
  ck_assert_double_ge(preload_report("allocs"), 24);
  ck_assert_double_le(preload_report("allocs"), 24 + 1);
}

TEST(a_program_that_is_killed) {
  preload_line("--report -- " TARN_PRELOAD_VICTIM " kill");
  ck_assert_int_eq(ran.status, 128 + 9);
  ck_assert_str_eq(ran.err, "");
}

FIXTURE(tool_files_begin, preload_end);

int main(void) {
  return preload_cannot() ? preload_skip() : run_tests();
}
