// `tarn bench device`: figures, keys, goals, wrong use. No figure is compared
// with a time.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/device_bench.h"
#include "support/json_check.h"
#include "support/run.h"
#include "support/tool_assert.h"

// --- rows ------------------------------------------------------------------

// The row of that figure of that device; there must be one.
static size_t row_of(const char *json, const char *device, const char *name) {
  size_t count = json_size(json, "results");
  for (size_t i = 0; i < count; i++) {
    if (json_is_text(json, json_row(i, "device"), device) &&
        json_is_text(json, json_row(i, "name"), name)) {
      return i;
    }
  }
  ck_abort_msg("no %s of %s", name, device);
  return 0;
}

static bool has_row(const char *json, const char *name) {
  size_t count = json_size(json, "results");
  for (size_t i = 0; i < count; i++) {
    if (json_is_text(json, json_row(i, "name"), name)) return true;
  }
  return false;
}

static void assert_goal(const char *json, const char *device, const char *name,
                        const char *unit, const char *goal) {
  size_t row = row_of(json, device, name);
  ck_assert_msg(json_is_text(json, json_row(row, "unit"), unit), "unit of %s",
                name);
  ck_assert_msg(json_is(json, json_row(row, "goal"), goal), "goal of %s", name);
}

// --- figures ---------------------------------------------------------------

// Figures that a device which is built in has not, unless rows are asked for or
// a net is trained: two of the driver, seven of CUDA, two of rows beside cpu,
// twelve of rows alone, three of pools, two of the net.
enum {
  ALONE = 12,
  FOREIGN = 16 + ALONE,
  BUILT_IN = DEVICE_BENCH_FIGURES - FOREIGN
};

static void assert_rows(const char *json) {
  assert_keys(json, "", "results,machine");
  // The two that need a second device are sim's alone.
  size_t count = json_size(json, "results");
  ck_assert_uint_eq(count, 2 * BUILT_IN - 2);
  for (size_t i = 0; i < count; i++) {
    assert_keys(json, json_row(i, ""),
                "device,name,value,unit,goal,met,failed");
    ck_assert(json_is(json, json_row(i, "failed"), "null"));
  }
}

static void assert_goals(const char *json) {
  assert_goal(json, "cpu:0", "copy_4k", "x memcpy", "1.2");
  assert_goal(json, "cpu:0", "copy_4k_stream", "x memcpy", "null");
  assert_goal(json, "cpu:0", "copy_64m", "of memcpy", "0.95");
  assert_goal(json, "cpu:0", "queued_4k", "us", "0.5");
  assert_goal(json, "cpu:0", "adopt", "us", "0.02");
  assert_goal(json, "cpu:0", "overlap", "x longer", "1.1");
  assert_goal(json, "cpu:0", "h2d_4k", "us", "null");
  assert_goal(json, "cpu:0", "h2d_64m", "GB/s", "null");
  assert_goal(json, "sim:0", "h2d_4k", "us", "0.3");
  assert_goal(json, "sim:0", "d2h_4k", "us", "0.3");
  assert_goal(json, "sim:0", "d2d_4k", "us", "0.3");
  assert_goal(json, "sim:0", "p2p_4k", "us", "null");
  assert_goal(json, "sim:0", "copy_4k", "x memcpy", "null");
  assert_goal(json, "sim:0", "event", "us", "null");
  assert_goal(json, "sim:0", "stream", "us", "null");
  assert_goal(json, "sim:0", "memory_64m", "us", "null");
}

// Only the cost beyond a copy can come out as nothing.
static void assert_has_value(const char *json, size_t row) {
  double value = json_number(json, json_row(row, "value"));
  ck_assert(!isnan(value));
  if (!json_is(json, json_row(row, "name"), "\"queued_4k\"")) {
    ck_assert_double_gt(value, 0);
  }
}

static void assert_met(const char *json, size_t row) {
  double value = json_number(json, json_row(row, "value"));
  double goal = json_number(json, json_row(row, "goal"));
  bool is_rate = json_is(json, json_row(row, "unit"), "\"of memcpy\"") ||
                 json_is(json, json_row(row, "unit"), "\"of cpu\"");
  const char *met = "null";
  if (!isnan(goal)) {
    met = (is_rate ? value >= goal : value <= goal) ? "true" : "false";
  }
  ck_assert_msg(json_is(json, json_row(row, "met"), met), "row %zu", row);
}

// One run serves all three: it takes a second or two.
TEST(keys_goals_and_values) {
  tool_output o = tool_done("bench device --passes 1 -o json");
  assert_json_line(o.out);
  assert_rows(o.out);
  assert_goals(o.out);
  size_t count = json_size(o.out, "results");
  for (size_t i = 0; i < count; i++) {
    assert_has_value(o.out, i);
    assert_met(o.out, i);
  }
}

static void assert_rows_of(const char *json, const char *device) {
  static const char *const names[] = {"gather_64_of_copy",
                                      "gather_64",
                                      "copy_within",
                                      "gather_256_of_copy",
                                      "gather_256",
                                      "gather_1024_of_copy",
                                      "gather_1024",
                                      "add_256",
                                      "host_rows_256_of_link",
                                      "host_rows_256",
                                      "host_rows_1024_of_link",
                                      "host_rows_1024"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    size_t row = row_of(json, device, names[i]);
    assert_has_value(json, row);
    ck_assert(json_is(json, json_row(row, "goal"), "null"));
    ck_assert(json_is(json, json_row(row, "failed"), "null"));
  }
}

// With --rows they are all that is measured.
TEST(rows_alone) {
  tool_output o =
      tool_done("bench device --rows --table 1M --passes 1 -o json");
  ck_assert_uint_eq(json_size(o.out, "results"), 2 * ALONE);
  assert_rows_of(o.out, "cpu:0");
  assert_rows_of(o.out, "sim:0");
}

TEST(a_table_without_rows) {
  tool_output o = tool_line(
      "bench device --device cpu:0 --rows --table 512 --passes 1 -o json");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "gather_1024: the table has no row of 1024 bytes");
  size_t row = row_of(o.out, "cpu:0", "gather_256");
  ck_assert(json_is(o.out, json_row(row, "failed"), "null"));
}

TEST(which_devices) {
  tool_output o =
      tool_done("bench device --device sim:1 --device cpu --passes 1 -o json");
  ck_assert(json_is(o.out, "results.0.device", "\"sim:1\""));
  // sim:1 is the last of its type, and cpu:0 the only one.
  ck_assert(!has_row(o.out, "p2p_4k"));
  ck_assert_uint_eq(json_size(o.out, "results"), 2 * BUILT_IN - 4);
  (void)row_of(o.out, "cpu:0", "copy_4k");
}

// The small plug-in has 64 MiB, which is less than two large buffers.
TEST(what_cannot_be_measured_stays) {
  tool_output o =
      tool_ends(1, "bench", "device", "--plugin", TARN_SMALL_PLUGIN, "--device",
                "small:0", "--passes", "1", "-o", "json");
  assert_contains(o.err, "small:0: copy_64m: ");
  ck_assert(json_valid(o.out));
  size_t row = row_of(o.out, "small:0", "copy_64m");
  ck_assert(json_is(o.out, json_row(row, "value"), "null"));
  ck_assert(json_is(o.out, json_row(row, "met"), "null"));
  ck_assert(!json_is(o.out, json_row(row, "failed"), "null"));
  row = row_of(o.out, "small:0", "copy_4k");
  ck_assert(json_is(o.out, json_row(row, "failed"), "null"));
  assert_has_value(o.out, row);
  row = row_of(o.out, "small:0", "queued_4k");  // it has no streams
  ck_assert(json_is(o.out, json_row(row, "failed"), "null"));
  // It is a shared object, whose calls are seen.
  assert_value(o.out,
               json_row(row_of(o.out, "small:0", "pool_hit_calls"), "value"),
               "0");
  ck_assert(!has_row(o.out, "gather"));
}

// What was not measured has not missed its goal either.
TEST(no_value_misses_no_goal) {
  setenv("TARN_SIM_FAULTS", "memory_copy_d2d@1+", 1);
  tool_output o = tool_line("bench device --device sim:0 --passes 1 -o csv");
  unsetenv("TARN_SIM_FAULTS");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.out, "\nsim:0,d2d_4k,,us,<= 0.3,,");
}

static tool_output measure_faulty(const char *fault, const char *format) {
  setenv("TARN_FAULT", fault, 1);
  tool_output o =
      tool_run("bench", "device", "--plugin", TARN_FAULTY_PLUGIN, "--device",
               "faulty:0", "--passes", "1", "--table", "1M", "-o", format);
  unsetenv("TARN_FAULT");
  return o;
}

// Nothing holds a stream up to which no copy can be queued.
TEST(queued_where_nothing_queues) {
  tool_output o = measure_faulty("queues_no_copies", "json");
  size_t row = row_of(o.out, "faulty:0", "queued_4k");
  ck_assert(json_is(o.out, json_row(row, "failed"), "null"));
}

// What waits for the hold to end is no figure.
TEST(queued_where_queues_are_short) {
  tool_output o = measure_faulty("queue_is_short", "json");
  ck_assert_int_eq(o.status, 1);
  size_t row = row_of(o.out, "faulty:0", "queued_4k");
  ck_assert(json_is(o.out, json_row(row, "value"), "null"));
  assert_contains(o.out, "copies cannot be queued");
}

TEST(tables) {
  tool_output o = tool_done("bench device --passes 1");
  assert_contains(o.out, "Linux ");  // the machine
  assert_contains(o.out, "\ncpu:0\n\nfigure ");
  assert_contains(o.out, "\nsim:0\n\nfigure ");
  assert_contains(o.out, "\noverlap ");
  assert_contains(o.out, "  <= 1.1  ");
  assert_contains(o.out, "  >= 0.95 ");
  ck_assert_ptr_null(strstr(o.out, "failed"));
  o = tool_done("bench device --device sim:0 --passes 1 -o csv");
  assert_contains(o.out, "device,name,value,unit,goal,met,what,failed,machine");
  assert_contains(o.out, "\nsim:0,copy_4k,");
  assert_contains(o.out, "\nsim:0,memory_64m,");
  o = tool_done("bench device --device cpu:0 --passes 1 -o md");
  assert_contains(o.out, "\n### cpu:0\n\n| figure ");
}

// --- a driver ----------------------------------------------------------------

#if defined(TARN_OPENCL_PLUGIN)

// Whether there is a device that the plug-in can open.
static bool has_opencl(void) {
  setenv("POCL_CACHE_DIR", tool_file("pocl"), 0);
  tool_output o =
      tool_run("devices", "--plugin", TARN_OPENCL_PLUGIN, "-o", "json");
  if (strstr(o.out, "\"opencl:0\"") != NULL) return true;
  note_skipped("opencl:0", "no driver gives a device");
  return false;
}

static tool_output measure_opencl(const char *format) {
  return tool_ends(0, "bench", "device", "--plugin", TARN_OPENCL_PLUGIN,
                   "--device", "opencl:0", "--passes", "1", "--table", "1M",
                   "-o", format);
}

static void assert_opencl_goals(const char *json) {
  assert_goal(json, "opencl:0", "copy_64m", "of memcpy", "0.9");
  assert_goal(json, "opencl:0", "copy_64m_back", "of memcpy", "0.9");
  assert_goal(json, "opencl:0", "copy_64m_within", "of memcpy", "0.85");
  assert_goal(json, "opencl:0", "copy_64m_stream", "of memcpy", "0.9");
  assert_goal(json, "opencl:0", "copy_64m_back_stream", "of memcpy", "0.9");
  assert_goal(json, "opencl:0", "copy_64m_within_stream", "of memcpy", "0.85");
  assert_goal(json, "opencl:0", "gather_over_cpu", "of cpu", "0.8");
  assert_goal(json, "opencl:0", "pool_hit_over_cpu", "x cpu", "1.05");
  assert_goal(json, "opencl:0", "pool_hit_calls", "of 1000", "0");
  assert_goal(json, "opencl:0", "copy_4k", "x memcpy", "null");
}

static void assert_opencl_values(const char *json) {
  size_t count = json_size(json, "results");
  for (size_t i = 0; i < count; i++)
    ck_assert(json_is(json, json_row(i, "failed"), "null"));
  size_t row = row_of(json, "opencl:0", "pool_hit_calls");
  assert_number(json, json_row(row, "value"), 0);
  ck_assert(json_is(json, json_row(row, "met"), "true"));
  assert_has_value(json, row_of(json, "opencl:0", "gather"));
  assert_met(json, row_of(json, "opencl:0", "gather_over_cpu"));
  assert_has_value(json, row_of(json, "opencl:0", "pool_hit"));
}

// Where the headers were there, the driver is asked for itself.
static void assert_driver(const char *json) {
  if (!has_row(json, "driver_4k")) {
    note_skipped("driver_4k", "built without the headers of OpenCL");
    return;
  }
  assert_goal(json, "opencl:0", "copy_4k_over_driver", "x driver", "1.3");
  assert_has_value(json, row_of(json, "opencl:0", "copy_4k_over_driver"));
  assert_has_value(json, row_of(json, "opencl:0", "driver_4k"));
}

TEST(opencl_over_its_driver_and_cpu) {
  tool_files_begin();
  if (has_opencl()) {
    tool_output o = measure_opencl("json");
    assert_opencl_goals(o.out);
    assert_opencl_values(o.out);
    assert_driver(o.out);
  }
  tool_files_end();
}

// Where the driver knows no address of the plug-in's, it copies to a buffer of
// its own.
TEST(opencl_without_addresses) {
  tool_files_begin();
  if (has_opencl()) {
    setenv("TARN_OPENCL_MEMORY", "device=window,unified=none", 1);
    tool_output o = measure_opencl("md");
    unsetenv("TARN_OPENCL_MEMORY");
    assert_contains(o.out, "\n### opencl:0\n\n");
    assert_contains(o.out, "\n| gather_over_cpu ");
    assert_contains(o.out, "memory device=window,");
  }
  tool_files_end();
}

#endif

// --- a net -----------------------------------------------------------------

// The one row of `tarn bench device --net` with a program that does |what|.
static tool_output measure_net(int status, const char *what) {
  char script[256];
  snprintf(script, sizeof script, "#!/bin/sh\n%s\n", what);
  const char *net = tool_write_file(tool_file("net"), script);
  ck_assert_int_eq(chmod(net, 0700), 0);
  return tool_ends(status, "bench", "device", "--device", "sim:0", "--passes",
                   "1", "--net", net, "-o", "json");
}

// $2 is the device, and the words behind it what a program is promised.
TEST(a_step_over_that_on_cpu) {
  tool_files_begin();
  tool_output o =
      measure_net(0,
                  "[ \"$1 $3 $5 $6\" = '--device --steps -o json' ] || exit 1\n"
                  "[ $2 = sim:0 ] && rate=2 || rate=5\n"
                  "echo 'more words'\n"
                  "echo \"{\\\"steps_per_s\\\":$rate.0}\"");
  size_t row = row_of(o.out, "sim:0", "step_over_cpu");
  assert_number(o.out, json_row(row, "value"), 2.5);
  assert_goal(o.out, "sim:0", "step_over_cpu", "x cpu", "null");
  tool_files_end();
}

TEST(a_net_that_fails) {
  tool_files_begin();
  tool_output o = measure_net(1, "exit 3");
  assert_contains(o.err, "the net's process on cpu:0 ended with status 3");
  ck_assert(json_is(o.out,
                    json_row(row_of(o.out, "sim:0", "step_over_cpu"), "value"),
                    "null"));
  o = measure_net(1, "echo '{\"steps_per_s\":null}'");
  assert_contains(o.err, "the net's process on cpu:0 told no steps_per_s");
  tool_files_end();
}

// --- wrong use -------------------------------------------------------------

TEST(help) {
  tool_output o = tool_done("bench device --help");
  assert_contains(o.out, "usage: tarn bench device ");
}

TEST(wrong_names_and_values) {
  assert_misused("bench device --device cpu:7", "cpu:7");
  assert_misused("bench device --device abacus", "abacus");
  assert_misused("bench device --device sim:0 --device sim:0",
                 "device 'sim:0' is named twice");
  assert_misused("bench device cpu:0", "'cpu:0' is unexpected");
  assert_misused("bench device --passes 0", "--passes wants a whole number");
  assert_misused("bench device --passes 1002", "--passes wants a whole number");
  assert_misused("bench device --table 0",
                 "--table 0 is not a number of bytes");
  assert_misused("bench device -o xml", "'xml' is not a format");
  assert_misused("bench device --pool glibc", "no option is named '--pool'");
  tool_output o = tool_ended(1, tool_line("bench device --plugin /nowhere.so"));
  ck_assert_str_eq(o.out, "");
}

// --- parts -----------------------------------------------------------------

TEST(a_goal_is_a_type_s) {
  bench_figure figure = device_bench_figure_of(0, "cpu:0");
  ck_assert_str_eq(figure.name, "copy_4k");
  ck_assert(sheet_is_met(1.2, figure.bound, figure.goal));
  ck_assert(!sheet_is_met(1.21, figure.bound, figure.goal));
  ck_assert(isnan(device_bench_figure_of(0, "cpu2:0").goal));
  ck_assert(isnan(device_bench_figure_of(0, "sim:0").goal));
  ck_assert(isnan(device_bench_figure_of(0, "cp").goal));
  ck_assert(sheet_is_met(2, SHEET_AT_LEAST, 2));
  ck_assert(!sheet_is_met(1.99, SHEET_AT_LEAST, 2));
}

TEST(medians) {
  double odd[] = {5, 1, 3};
  double one[] = {7};
  ck_assert_double_eq(probe_median(odd, 3), 3);
  ck_assert_double_eq(probe_median(one, 1), 7);
}
