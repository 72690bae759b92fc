// `tarn bench record`: figures, keys, wrong use. No figure is compared with a
// time.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/record_bench.h"
#include "support/json_check.h"
#include "support/run.h"
#include "support/tool_assert.h"

// How often the tests of figures run.
#define FIGURES (*TARN_SANITIZE == '\0')

// --- figures ---------------------------------------------------------------

// Of Python and memray alone.
static bool is_missing(const char *json, size_t row) {
  const char *name = record_bench_figure_at(row)->name;
  if (strncmp(name, "python", 6) != 0) return false;
  bool is =
      json_is(json, json_row(row, "failed"), "\"not installed: memray\"") ||
      json_is(json, json_row(row, "failed"), "\"not installed: python3\"");
  if (is) note_skipped(name, "python3 or memray is not installed");
  return is;
}

static void assert_row(const char *json, size_t row) {
  char text[128];
  const bench_figure *figure = record_bench_figure_at(row);
  assert_keys(json, json_row(row, ""), "name,value,unit,goal,met,failed");
  snprintf(text, sizeof text, "\"%s\"", figure->name);
  ck_assert(json_is(json, json_row(row, "name"), text));
  if (is_missing(json, row)) return;
  ck_assert(json_is(json, json_row(row, "failed"), "null"));
  ck_assert(!isnan(json_number(json, json_row(row, "value"))));
  ck_assert(json_is(json, json_row(row, "met"), "null") == isnan(figure->goal));
}

TEST_LOOP(json_has_the_published_keys, FIGURES) {
  tool_output o =
      tool_done("bench record --allocations 1000 --passes 1 -o json");
  ck_assert(json_valid(o.out));
  assert_keys(o.out, "", "results,machine");
  ck_assert_uint_eq(json_size(o.out, "results"), RECORD_BENCH_FIGURES);
  for (size_t i = 0; i < RECORD_BENCH_FIGURES; i++)
    assert_row(o.out, i);
  // What a kill takes has nothing to do with how fast the machine is.
  ck_assert(
      json_is(o.out, json_row(RECORD_BENCH_FIGURES - 1, "name"), "\"killed\""));
  ck_assert(json_is(o.out, json_row(RECORD_BENCH_FIGURES - 1, "met"), "true"));
}

TEST_LOOP(tables, FIGURES) {
  tool_output o = tool_done("bench record --allocations 1000 --passes 2 -o md");
  assert_contains(o.out, "Linux ");  // the machine
  assert_contains(o.out, "\n| figure ");
  assert_contains(o.out, "touched_no_stacks");
  o = tool_done("bench record --allocations 1000 --passes 1 -o csv");
  assert_contains(o.out, "name,value,unit,goal,met,what,failed,machine");
}

// --- failures --------------------------------------------------------------

// What is preloaded there records nothing.
TEST_LOOP(a_recorder_that_is_none, FIGURES) {
  setenv("TARN_RECORD_LIBRARY", TARN_POWER_POOL, 1);
  tool_output o =
      tool_line("bench record --allocations 1000 --passes 1 -o json");
  unsetenv("TARN_RECORD_LIBRARY");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "touched: ");
  ck_assert(json_valid(o.out));
  ck_assert(json_is(o.out, json_row(0, "value"), "null"));
  ck_assert(!json_is(o.out, json_row(0, "failed"), "null"));
}

TEST(no_folder_for_the_files) {
  setenv("TMPDIR", "/no/such/folder", 1);
  tool_output o = tool_line("bench record --allocations 1000 -o json");
  unsetenv("TMPDIR");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "/no/such/folder/");
}

TEST(help) {
  tool_output o = tool_done("bench record --help");
  assert_contains(o.out, "usage: tarn bench record ");
}

TEST(wrong_names_and_values) {
  assert_misused("bench record --passes 0", "--passes wants a whole number");
  assert_misused("bench record --allocations 999",
                 "--allocations wants a whole number");
  assert_misused("bench record --work hard", "'hard'");
  assert_misused("bench record program", "'program' is unexpected");
  assert_misused("bench record -o xml", "'xml' is not a format");
  assert_misused("bench recorder", "record");
}

int main(void) {
  if (!FIGURES) {
    note_skipped("figures of bench record",
                 "this build's sanitizer has a malloc of its own");
  }
  return run_tests();
}
