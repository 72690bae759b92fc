// What comes before main, and the end of the addresses.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload_run.h"
#include "support/json_check.h"
#include "support/run.h"

TEST(blocks_from_before_main) {
  preload("early");
  ck_assert_double_ge(preload_report("allocs"), 1);
}

// Under a limit on addresses a program gets as much as the C library would give
// it, within a tenth and what the library itself takes, and whatever it had
// before.
TEST(a_limit_on_addresses) {
  preload("addresses");
  char *here = ran.out;
  tool_output alone = tool_run_line(TARN_PRELOAD_VICTIM, "addresses");
  ck_assert_int_eq(alone.status, 0);
  char *there = alone.out;
  for (int i = 0; i < 7; i++) {
    long size = strtol(here, &here, 10);
    ck_assert_int_eq(size, strtol(there, &there, 10));
    long got = strtol(here + 1, &here, 10);
    long gets = strtol(there + 1, &there, 10);
    ck_assert_msg(got + gets / 10 + 16 >= gets,
                  "blocks of %ld bytes: %ld MiB, not %ld", size, got, gets);
  }
}

// Settings that are wrong are told, and the program runs.
TEST(wrong_settings) {
  setenv("TARN_POOL", "puddle", 1);
  ran = tool_run_program(
      "/usr/bin/env", -1,
      (const char *const[]){"env", "LD_PRELOAD=" TARN_MALLOC,
                            "TARN_PRELOAD_FROM=many", "TARN_PRELOAD_WHY=QUUX",
                            TARN_PRELOAD_VICTIM, "family", NULL});
  unsetenv("TARN_POOL");
  ck_assert_int_eq(ran.status, 0);
  ck_assert_ptr_nonnull(
      strstr(ran.err, "TARN_PRELOAD_FROM: 'many' is no number of bytes"));
  ck_assert_ptr_nonnull(
      strstr(ran.err, "TARN_PRELOAD_WHY: 'QUUX' is no signal"));
  ck_assert_ptr_nonnull(strstr(ran.err,
                               "no pool, so all requests are the C "
                               "library's: "));
  ck_assert_ptr_nonnull(strstr(ran.err, "puddle"));
}

FIXTURE(tool_files_begin, preload_end);

int main(void) {
  return preload_cannot() ? preload_skip() : run_tests();
}
