// The functions of the heap under libtarn-malloc.so, on each strategy.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload_run.h"
#include "support/json_check.h"
#include "support/run.h"

static const char *const pools[] = {"arena_pool", "page_unit_pool", "no_pool",
                                    "buddy_pool",
                                    "arena_pool:page=64K,slack=1M"};
enum { POOLS = sizeof pools / sizeof *pools };

TEST_LOOP(every_function, POOLS) {
  preload_on(pools[_i], "family");
  ck_assert_double_ge(preload_report("allocs"), 70);
  ck_assert_double_eq(preload_report("left"), 0);
}

// Contents, zeros of calloc, and what realloc keeps.
TEST_LOOP(mixed, POOLS) {
  preload_on(pools[_i], "random");
  ck_assert_double_ge(preload_report("allocs"), 500);
}

// A pool that debugs fills blocks: what was never handed out is no zero then.
TEST(mixed_while_the_pool_debugs) {
  setenv("TARN_POOL_DEBUG", "all", 1);
  preload("random");
  unsetenv("TARN_POOL_DEBUG");
  ck_assert_double_ge(preload_report("allocs"), 500);
}

TEST(what_calloc_gives_is_resident_when_touched) {
  preload("sparse");
  ck_assert_double_eq(preload_report("left"), 0);
}

TEST(calloc_of_pages_that_are_locked) {
  preload("locked");
  if (strcmp(ran.out, "locked\n") != 0) {
    note_skipped("locked pages", "the user may not lock 40 MiB");
  }
}

TEST(a_block_grows_where_it_stands) {
  preload("growth");
  ck_assert_str_eq(ran.out, "0\n");
  ck_assert_double_eq(preload_report("allocs"), 1);
}

TEST(blocks_of_the_c_library) {
  preload("foreign");
}

// What is large is for the user to say.
TEST(only_what_is_large) {
  preload_line("--from 1G --report -- " TARN_PRELOAD_VICTIM " family");
  ck_assert_int_eq(ran.status, 0);
  ck_assert_str_eq(ran.err, "");
  preload_line("--from 4K --report -- " TARN_PRELOAD_VICTIM " family");
  ck_assert_int_eq(ran.status, 0);
  ck_assert_ptr_nonnull(strstr(ran.err, "% without the system"));
}

FIXTURE(tool_files_begin, preload_end);

int main(void) {
  return preload_cannot() ? preload_skip() : run_tests();
}
