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

// The path of |key| of the |row|-th result, until the next call.
static const char *at(size_t row, const char *key) {
  static char path[64];
  snprintf(path, sizeof path, "results.%zu%s%s", row, *key ? "." : "", key);
  return path;
}

// --- figures ---------------------------------------------------------------

static void assert_row(const char *json, size_t row) {
  char text[128];
  const bench_figure *figure = record_bench_figure_at(row);
  ck_assert_str_eq(json_keys(json, at(row, ""), text, sizeof text),
                   "name,value,unit,goal,met,failed");
  snprintf(text, sizeof text, "\"%s\"", figure->name);
  ck_assert(json_is(json, at(row, "name"), text));
  ck_assert(json_is(json, at(row, "failed"), "null"));
  ck_assert(!isnan(json_number(json, at(row, "value"))));
  ck_assert(json_is(json, at(row, "met"), "null") == isnan(figure->goal));
}

TEST_LOOP(json_has_the_published_keys, FIGURES) {
  char keys[64];
  tool_output o = tool_run("bench", "record", "--allocations", "1000",
                           "--passes", "1", "-o", "json");
  assert_done(&o);
  ck_assert(json_valid(o.out));
  ck_assert_str_eq(json_keys(o.out, "", keys, sizeof keys), "results,machine");
  ck_assert_uint_eq(json_size(o.out, "results"), RECORD_BENCH_FIGURES);
  for (size_t i = 0; i < RECORD_BENCH_FIGURES; i++)
    assert_row(o.out, i);
  // What a kill takes has nothing to do with how fast the machine is.
  ck_assert(json_is(o.out, at(RECORD_BENCH_FIGURES - 1, "name"), "\"killed\""));
  ck_assert(json_is(o.out, at(RECORD_BENCH_FIGURES - 1, "met"), "true"));
}

TEST_LOOP(tables, FIGURES) {
  tool_output o = tool_run("bench", "record", "--allocations", "1000",
                           "--passes", "2", "-o", "md");
  assert_done(&o);
  assert_contains(o.out, "Linux ");  // the machine
  assert_contains(o.out, "\n| figure ");
  assert_contains(o.out, "touched_no_stacks");
  ck_assert_ptr_null(strstr(o.out, "failed"));
  o = tool_run("bench", "record", "--allocations", "1000", "--passes", "1",
               "-o", "csv");
  assert_done(&o);
  assert_contains(o.out, "name,value,unit,goal,met,what,failed,machine");
}

// --- failures --------------------------------------------------------------

// What is preloaded there records nothing.
TEST_LOOP(a_recorder_that_is_none, FIGURES) {
  setenv("TARN_RECORD_LIBRARY", TARN_POWER_POOL, 1);
  tool_output o = tool_run("bench", "record", "--allocations", "1000",
                           "--passes", "1", "-o", "json");
  unsetenv("TARN_RECORD_LIBRARY");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "touched: ");
  ck_assert(json_valid(o.out));
  ck_assert(json_is(o.out, at(0, "value"), "null"));
  ck_assert(!json_is(o.out, at(0, "failed"), "null"));
}

TEST(no_folder_for_the_files) {
  setenv("TMPDIR", "/no/such/folder", 1);
  tool_output o =
      tool_run("bench", "record", "--allocations", "1000", "-o", "json");
  unsetenv("TMPDIR");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "/no/such/folder/");
}

TEST(help) {
  tool_output o = tool_run("bench", "record", "--help");
  assert_done(&o);
  assert_contains(o.out, "usage: tarn bench record ");
}

TEST(wrong_names_and_values) {
  assert_misuse(tool_run("bench", "record", "--passes", "0"),
                "--passes wants a whole number");
  assert_misuse(tool_run("bench", "record", "--allocations", "999"),
                "--allocations wants a whole number");
  assert_misuse(tool_run("bench", "record", "--work", "hard"), "'hard'");
  assert_misuse(tool_run("bench", "record", "program"),
                "'program' is unexpected");
  assert_misuse(tool_run("bench", "record", "-o", "xml"),
                "'xml' is not a format");
  assert_misuse(tool_run("bench", "recorder"), "record");
}

int main(void) {
  if (!FIGURES) {
    note_skipped("figures of bench record",
                 "this build's sanitizer has a malloc of its own");
  }
  return run_tests();
}
