// `tarn bench blocks`: its rows and keys, wrong use. No figure is compared with
// a time.
#include <stdio.h>
#include <stdlib.h>

#include "support/json_check.h"
#include "support/run.h"
#include "support/tool_assert.h"

TEST(json_has_the_published_keys) {
  static const char *const keys[] = {"place_ns", "pool_ns", "place_waits_ns",
                                     "pool_waits_ns"};
  tool_output o =
      tool_done("bench blocks --blocks 1 --blocks 3000 --passes 3 -o json");
  ck_assert(json_valid(o.out));
  assert_keys(o.out, "", "results,machine");
  ck_assert_uint_eq(json_size(o.out, "results"), 2);
  ck_assert(json_is(o.out, json_row(0, "blocks"), "1"));
  ck_assert(json_is(o.out, json_row(1, "blocks"), "3000"));
  for (size_t row = 0; row < 2; row++) {
    assert_keys(o.out, json_row(row, ""),
                "blocks,place_ns,pool_ns,place_waits_ns,pool_waits_ns");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
      ck_assert_double_gt(json_number(o.out, json_row(row, keys[i])), 0);
  }
}

TEST(tables) {
  tool_output o = tool_done("bench blocks --blocks 100 --passes 1");
  assert_contains(o.out, "Linux ");  // the machine
  assert_contains(o.out, "place waits");
  o = tool_done("bench blocks --blocks 100 --passes 1 -o csv");
  assert_contains(
      o.out,
      "blocks,place_ns,pool_ns,place_waits_ns,pool_waits_ns,machine\n100,");
}

// The pool has no room for so many.
TEST(what_cannot_be_measured_stays) {
  setenv("TARN_POOL", "arena_pool:limit=1", 1);
  tool_output o = tool_line("bench blocks --blocks 100 --passes 1 -o json");
  unsetenv("TARN_POOL");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "100 blocks: ");
  ck_assert(json_is(o.out, json_row(0, "place_ns"), "null"));
}

TEST(help_and_wrong_use) {
  tool_output o = tool_done("bench blocks --help");
  assert_contains(o.out, "usage: tarn bench blocks ");
  assert_misused("bench blocks --blocks 0", "--blocks wants a whole number");
  assert_misused("bench blocks --passes 0", "--passes wants a whole number");
  assert_misused("bench blocks -o xml", "'xml' is not a format");
  assert_misused("bench blocks file", "'file' is unexpected");
}
