// `tarn bench synced`: names, keys, goals, wrong use, and that what is copied
// in vain is nothing. No figure is compared with a time.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/synced_bench.h"
#include "support/json_check.h"
#include "support/run.h"
#include "support/tool_assert.h"

#define SMALL "--passes", "1", "--images", "1", "--rows", "40"

// --- rows ------------------------------------------------------------------

typedef struct wanted {
  const char *name;
  const char *device;
  const char *unit;
  const char *goal;
} wanted;

static const wanted all[] = {
    {"valid_access_over_two_locked_operations", "cpu:0", "ratio", "1.8"},
    {"valid_access_over_two_locked_operations", "sim:0", "ratio", "1.8"},
    {"document_copies", "sim:0", "copies", "4"},
    {"prefetch_d2h_bytes", "sim:0", "bytes", "0"},
    {"prefetch_over_max", "sim:0", "ratio", "1.1"},
    {"scattered_extra_bytes", "sim:0", "bytes", "0"},
    {"scattered_us_per_row", "sim:0", "us", "0.5"},
};
enum { ALL = sizeof all / sizeof all[0] };

static void assert_row(const char *json, size_t row, const wanted *w) {
  assert_keys(json, json_row(row, ""), "name,device,value,unit,goal,met");
  ck_assert_msg(json_is_text(json, json_row(row, "name"), w->name), "row %zu",
                row);
  ck_assert_msg(json_is_text(json, json_row(row, "device"), w->device),
                "row %zu", row);
  ck_assert_msg(json_is_text(json, json_row(row, "unit"), w->unit), "row %zu",
                row);
  ck_assert_msg(json_is(json, json_row(row, "goal"), w->goal), "row %zu", row);
  ck_assert_msg(!isnan(json_number(json, json_row(row, "value"))), "row %zu",
                row);
}

// --- figures ---------------------------------------------------------------

TEST(names_keys_and_goals) {
  tool_output o = tool_did("bench", "synced", SMALL, "-o", "json");
  assert_json_line(o.out);
  assert_keys(o.out, "", "results,machine");
  ck_assert_uint_eq(json_size(o.out, "results"), ALL);
  for (size_t i = 0; i < ALL; i++)
    assert_row(o.out, i, &all[i]);
}

// Counts are the same on every machine.
TEST(nothing_is_copied_in_vain) {
  tool_output o = tool_done(
      "bench synced --device sim:0 --passes 1 --images 2 --rows 300 -o json");
  ck_assert(json_is(o.out, json_row(1, "value"), "4"));
  ck_assert(json_is(o.out, json_row(2, "value"), "0"));
  ck_assert(json_is(o.out, json_row(4, "value"), "0"));
}

// One row is one run; there is none adjacent, and nothing to shuffle.
TEST(one_row) {
  tool_output o = tool_done(
      "bench synced --device sim:0 --passes 1 --images 1 --rows 1 -o json");
  ck_assert(json_is(o.out, json_row(4, "value"), "0"));
}

TEST(which_devices) {
  tool_output o = tool_did("bench", "synced", "--device", "sim:1", "--device",
                           "cpu", SMALL, "-o", "json");
  ck_assert_uint_eq(json_size(o.out, "results"), SYNCED_BENCH_FIGURES + 1);
  ck_assert(json_is_text(o.out, json_row(0, "device"), "sim:1"));
  ck_assert(
      json_is_text(o.out, json_row(SYNCED_BENCH_FIGURES, "device"), "cpu:0"));
}

// The small plug-in has no streams and no pinned memory.
TEST(on_a_plugin) {
  tool_output o = tool_did("bench", "synced", "--plugin", TARN_SMALL_PLUGIN,
                           "--device", "small:0", SMALL, "-o", "json");
  ck_assert_uint_eq(json_size(o.out, "results"), SYNCED_BENCH_FIGURES);
  ck_assert(json_is(o.out, json_row(1, "value"), "4"));
}

TEST(what_cannot_be_measured_stays) {
  setenv("TARN_SIM_FAULTS", "memory_copy_h2d@1+", 1);
  tool_output o = tool_ends(1, "bench", "synced", SMALL, "-o", "json");
  assert_contains(o.err, "sim:0: scattered_extra_bytes: ");
  ck_assert(json_valid(o.out));
  ck_assert_uint_eq(json_size(o.out, "results"), ALL);
  ck_assert(json_is(o.out, json_row(5, "value"), "null"));
  ck_assert(!json_is(o.out, json_row(0, "value"), "null"));
  o = tool_run("bench", "synced", "--device", "sim:0", SMALL, "-o", "csv");
  unsetenv("TARN_SIM_FAULTS");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.out, "\nscattered_extra_bytes,sim:0,,bytes,<= 0,,");
}

TEST(tables) {
  tool_output o = tool_did("bench", "synced", SMALL);
  assert_contains(o.out, "Linux ");  // the machine
  assert_contains(o.out, "\n\nfigure ");
  assert_contains(o.out, "\ndocument_copies ");
  assert_contains(o.out, "  = 4     yes  ");
  assert_contains(o.out, "  <= 1.8  ");
  o = tool_run("bench", "synced", "--device", "sim:0", SMALL, "-o", "csv");
  assert_done(&o);
  assert_contains(o.out, "name,device,value,unit,goal,met,what,machine\n");
  assert_contains(o.out, "\nprefetch_d2h_bytes,sim:0,0,bytes,<= 0,yes,");
  o = tool_did("bench", "synced", "--device", "cpu:0", SMALL, "-o", "md");
  assert_contains(o.out, "\n| figure ");
  ck_assert_ptr_null(strstr(o.out, "document_copies"));
}

// --- wrong use -------------------------------------------------------------

TEST(help) {
  tool_output o = tool_done("bench synced --help");
  assert_contains(o.out, "usage: tarn bench synced ");
  o = tool_line("bench --help");
  assert_contains(o.out, "\n       tarn bench synced ");
}

TEST(wrong_names_and_values) {
  assert_misused("bench synced --device cpu:7", "cpu:7");
  assert_misused("bench synced --device sim:0 --device sim:0",
                 "device 'sim:0' is named twice");
  assert_misused("bench synced cpu:0", "'cpu:0' is unexpected");
  assert_misused("bench synced --passes 1002", "--passes wants a whole number");
  assert_misused("bench synced --images 0", "--images wants a whole number");
  assert_misused("bench synced --rows 100001", "--rows wants a whole number");
  assert_misused("bench synced -o xml", "'xml' is not a format");
  tool_output o = tool_ended(1, tool_line("bench synced --plugin /nowhere.so"));
  ck_assert_str_eq(o.out, "");
}

// --- parts -----------------------------------------------------------------

TEST(goals_are_met_or_not) {
  bench_figure most = synced_bench_figure_of(0, "sim:1");
  ck_assert(sheet_is_met(1.8, most.bound, most.goal));
  ck_assert(!sheet_is_met(1.81, most.bound, most.goal));
  bench_figure exact = synced_bench_figure_of(1, "sim:1");
  ck_assert(sheet_is_met(4, exact.bound, exact.goal));
  ck_assert(!sheet_is_met(3, exact.bound, exact.goal));
  ck_assert(!sheet_is_met(5, exact.bound, exact.goal));
}
