// `tarn bench counters`: rows, keys, wrong use. No figure is compared with a
// time.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/counters_bench.h"
#include "support/json_check.h"
#include "support/places.h"
#include "support/run.h"
#include "support/tool_assert.h"

// --- figures ---------------------------------------------------------------

static void assert_row(const char *json, size_t row, const char *pool) {
  char text[128];
  assert_keys(json, json_row(row, ""),
              "pool,name,ns,more_ns,by_address_ns,by_address_more_ns,"
              "failed");
  ck_assert(json_is(json, json_row(row, "pool"), pool));
  snprintf(text, sizeof text, "\"%s\"",
           counters_bench_row_at(row % COUNTERS_BENCH_ROWS).name);
  ck_assert(json_is(json, json_row(row, "name"), text));
  ck_assert(json_is(json, json_row(row, "failed"), "null"));
  ck_assert_double_gt(json_number(json, json_row(row, "ns")), 0);
  ck_assert_double_gt(json_number(json, json_row(row, "by_address_ns")), 0);
  ck_assert(!isnan(json_number(json, json_row(row, "more_ns"))));
  ck_assert(!isnan(json_number(json, json_row(row, "by_address_more_ns"))));
}

TEST(json_has_the_published_keys) {
  tool_output o = tool_done("bench counters --passes 3 -o json");
  assert_json_line(o.out);
  assert_keys(o.out, "", "results,machine");
  enum { RESULTS = 2 * COUNTERS_BENCH_ROWS };
  ck_assert_uint_eq(json_size(o.out, "results"), RESULTS);
  for (size_t i = 0; i < COUNTERS_BENCH_ROWS; i++) {
    assert_row(o.out, i, "\"page_unit_pool\"");
    assert_row(o.out, i + COUNTERS_BENCH_ROWS, "\"arena_pool:steps=0\"");
  }
  // The default is no more than itself.
  ck_assert_double_eq(json_number(o.out, json_row(0, "more_ns")), 0);
  ck_assert_double_eq(json_number(o.out, json_row(0, "by_address_more_ns")), 0);
}

TEST_LOOP(which_pools_and_where, LIBRARY_DEVICES) {
  tool_output o =
      tool_run("bench", "counters", "--strategy", TARN_POWER_POOL, "--pool",
               "power_pool,page_unit_pool:page=65536", "--device",
               test_devices[_i], "--passes", "1", "-o", "json");
  assert_done(&o);
  assert_row(o.out, 0, "\"power_pool\"");
  assert_row(o.out, COUNTERS_BENCH_ROWS, "\"page_unit_pool:page=65536\"");
}

TEST(tables) {
  tool_output o = tool_done("bench counters --passes 1");
  assert_contains(o.out, "Linux ");  // the machine
  assert_contains(o.out, "\npage_unit_pool\n\ncounting ");
  assert_contains(o.out, "\nevents_times ");
  ck_assert_ptr_null(strstr(o.out, "failed"));
  o = tool_done("bench counters --pool arena_pool --passes 1 -o csv");
  assert_contains(o.out,
                  "pool,name,ns,more_ns,by_address_ns,by_address_more_ns,what,"
                  "failed,machine");
  assert_contains(o.out, "\narena_pool,nothing,");
  o = tool_done("bench counters --pool arena_pool --passes 1 -o md");
  assert_contains(o.out, "\n### arena_pool\n\n| counting ");
}

// A device that has no room for a block stays as rows without figures.
TEST(what_cannot_be_measured_stays) {
  setenv("TARN_SIM_FAULTS", "device_memory_allocate@1+", 1);
  tool_output o = tool_line(
      "bench counters --pool page_unit_pool --device sim:0 --passes 1 -o json");
  unsetenv("TARN_SIM_FAULTS");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "page_unit_pool: ");
  ck_assert(json_valid(o.out));
  ck_assert(json_is(o.out, json_row(0, "ns"), "null"));
  ck_assert(!json_is(o.out, json_row(0, "failed"), "null"));
}

// --- wrong use -------------------------------------------------------------

TEST(help) {
  tool_output o = tool_done("bench counters --help");
  assert_contains(o.out, "usage: tarn bench counters ");
}

TEST(wrong_names_and_values) {
  assert_misused("bench counters --pool abacus", "'abacus'");
  assert_misused("bench counters --pool glibc", "'glibc'");
  assert_misused("bench counters --pool arena_pool:x=1", "option 'x'");
  assert_misused("bench counters --pool arena_pool,arena_pool", "named twice");
  assert_misused("bench counters --device abacus", "abacus");
  assert_misused("bench counters arena_pool", "'arena_pool' is unexpected");
  assert_misused("bench counters --passes 0", "--passes wants a whole number");
  assert_misused("bench counters --passes 100002",
                 "--passes wants a whole number");
  assert_misused("bench counters -o xml", "'xml' is not a format");
  assert_misused("bench counter", "counters");
}
