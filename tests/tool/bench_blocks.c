// `tarn bench blocks`: its rows and keys, wrong use. No figure is compared with
// a time.
#include <stdio.h>
#include <stdlib.h>

#include "support/json_check.h"
#include "support/run.h"
#include "support/tool_assert.h"

static const char *at(size_t row, const char *key) {
  static char path[64];
  snprintf(path, sizeof path, "results.%zu%s%s", row, *key ? "." : "", key);
  return path;
}

TEST(json_has_the_published_keys) {
  static const char *const keys[] = {"place_ns", "pool_ns", "place_waits_ns",
                                     "pool_waits_ns"};
  char text[128];
  tool_output o = tool_run("bench", "blocks", "--blocks", "1", "--blocks",
                           "3000", "--passes", "3", "-o", "json");
  assert_done(&o);
  ck_assert(json_valid(o.out));
  ck_assert_str_eq(json_keys(o.out, "", text, sizeof text), "results,machine");
  ck_assert_uint_eq(json_size(o.out, "results"), 2);
  ck_assert(json_is(o.out, at(0, "blocks"), "1"));
  ck_assert(json_is(o.out, at(1, "blocks"), "3000"));
  for (size_t row = 0; row < 2; row++) {
    ck_assert_str_eq(json_keys(o.out, at(row, ""), text, sizeof text),
                     "blocks,place_ns,pool_ns,place_waits_ns,pool_waits_ns");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
      ck_assert_double_gt(json_number(o.out, at(row, keys[i])), 0);
  }
}

TEST(tables) {
  tool_output o =
      tool_run("bench", "blocks", "--blocks", "100", "--passes", "1");
  assert_done(&o);
  assert_contains(o.out, "Linux ");  // the machine
  assert_contains(o.out, "place waits");
  o = tool_run("bench", "blocks", "--blocks", "100", "--passes", "1", "-o",
               "csv");
  assert_done(&o);
  assert_contains(
      o.out,
      "blocks,place_ns,pool_ns,place_waits_ns,pool_waits_ns,machine\n100,");
}

// The pool has no room for so many.
TEST(what_cannot_be_measured_stays) {
  setenv("TARN_POOL", "arena_pool:limit=1", 1);
  tool_output o = tool_run("bench", "blocks", "--blocks", "100", "--passes",
                           "1", "-o", "json");
  unsetenv("TARN_POOL");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "100 blocks: ");
  ck_assert(json_is(o.out, at(0, "place_ns"), "null"));
}

TEST(help_and_wrong_use) {
  tool_output o = tool_run("bench", "blocks", "--help");
  assert_done(&o);
  assert_contains(o.out, "usage: tarn bench blocks ");
  assert_misuse(tool_run("bench", "blocks", "--blocks", "0"),
                "--blocks wants a whole number");
  assert_misuse(tool_run("bench", "blocks", "--passes", "0"),
                "--passes wants a whole number");
  assert_misuse(tool_run("bench", "blocks", "-o", "xml"),
                "'xml' is not a format");
  assert_misuse(tool_run("bench", "blocks", "file"), "'file' is unexpected");
}
