// `tarn replay`: figures, several traces, bad traces, refused requests.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot_kit.h"
#include "support/json_check.h"
#include "support/run.h"
#include "support/tool_assert.h"
#include "tarn/pool.h"
#include "tarn/trace.h"

#define TOO_MANY (UINT64_C(1) << 60)  // bytes: every device refuses

// --- snapshots made by hand ------------------------------------------------

// --- figures ---------------------------------------------------------------

static double number_at(const char *json, const char *path) {
  double value = json_number(json, path);
  ck_assert_msg(!isnan(value), "no number at %s in %s", path, json);
  return value;
}

static double iteration_at(const char *json, int pool, int iteration,
                           const char *key) {
  char path[128];
  snprintf(path, sizeof path, "results.%d.iterations.%d.%s", pool, iteration,
           key);
  return number_at(json, path);
}

static double result_at(const char *json, int pool, const char *key) {
  char path[128];
  snprintf(path, sizeof path, "results.%d.%s", pool, key);
  return number_at(json, path);
}

FIXTURE(tool_files_begin, tool_files_end);

TEST(json_has_the_published_keys) {
  tool_output o = tool_done("replay @bert-layer -o json");
  assert_json_line(o.out);
  assert_keys(o.out, "", "trace,events,live_peak_bytes,results,threads");
  assert_keys(o.out, "results.1",
              "pool,device,iterations,reserved_peak_bytes,reserved_over_live,"
              "moved_bytes,move_ms,"
              "failed");
  assert_keys(
      o.out, "results.1.iterations.1",
      "alloc_ms,alloc_ns_median,alloc_ns_p99,hits,misses,free_ms,pass_ms");
  ck_assert(json_is(o.out, "trace", "\"@bert-layer\""));
  ck_assert(json_is(o.out, "results.0.pool", "\"no_pool\""));
  ck_assert(json_is(o.out, "results.1.pool", "\"page_unit_pool\""));
  ck_assert(json_is(o.out, "results.2.pool", "\"arena_pool\""));
  ck_assert(json_is(o.out, "results.1.device", "\"cpu:0\""));
  ck_assert_uint_eq(json_size(o.out, "results"), 3);
  ck_assert_uint_eq(json_size(o.out, "results.0.iterations"), 2);
}

static double count_allocs(const tarn_trace *trace) {
  double count = 0;
  for (size_t i = 0; i < trace->event_count; i++) {
    count += trace->events[i].kind == TARN_TRACE_ALLOC;
  }
  return count;
}

static void assert_result(const char *json, int pool, double allocs) {
  for (int i = 0; i < 2; i++) {
    double hits = iteration_at(json, pool, i, "hits");
    double misses = iteration_at(json, pool, i, "misses");
    double median = iteration_at(json, pool, i, "alloc_ns_median");
    ck_assert_double_eq(hits + misses, allocs);
    ck_assert_double_gt(iteration_at(json, pool, i, "alloc_ms"), 0);
    ck_assert_double_gt(iteration_at(json, pool, i, "free_ms"), 0);
    ck_assert_double_ge(iteration_at(json, pool, i, "alloc_ns_p99"), median);
  }
  ck_assert_double_eq(result_at(json, pool, "failed"), 0);
  double over = result_at(json, pool, "reserved_over_live");
  ck_assert_double_ge(over, 1);
  ck_assert_double_eq_tol(over,
                          result_at(json, pool, "reserved_peak_bytes") /
                              json_number(json, "live_peak_bytes"),
                          1e-9);
}

TEST(figures_agree_with_the_trace) {
  tarn_trace *trace;
  assert_ok(tarn_trace_make("@bert-layer", &trace));
  tool_output o = tool_done("replay @bert-layer -o json --touch");
  ck_assert_double_eq(json_number(o.out, "events"),
                      (double)trace->request_count);
  ck_assert_double_eq(json_number(o.out, "live_peak_bytes"),
                      (double)trace->live_peak_bytes);
  assert_result(o.out, 0, count_allocs(trace));
  assert_result(o.out, 1, count_allocs(trace));
  // What the pool is for: the second time nothing is asked of the device.
  ck_assert_double_eq(iteration_at(o.out, 1, 1, "misses"), 0);
  ck_assert_double_eq(iteration_at(o.out, 0, 1, "hits"), 0);
  tarn_trace_destroy(trace);
}

TEST(every_workload_replays) {
  for (size_t i = 0; tarn_trace_workload(i) != NULL; i++) {
    tool_output o = tool_did("replay", tarn_trace_workload(i), "-o", "json",
                             "--pool", "page_unit_pool");
    ck_assert_double_eq(iteration_at(o.out, 0, 1, "misses"), 0);
  }
}

TEST(several_traces_are_an_array) {
  tool_output o = tool_done(
      "replay @bert-layer @bert-layer -o json --iterations 3 --pool "
      "page_unit_pool:page=65536,no_pool");
  ck_assert(json_valid(o.out));
  ck_assert_uint_eq(json_size(o.out, ""), 2);
  ck_assert_uint_eq(json_size(o.out, "1.results.0.iterations"), 3);
  ck_assert(
      json_is(o.out, "1.results.0.pool", "\"page_unit_pool:page=65536\""));
}

TEST(table_for_people) {
  tool_output o = tool_done("replay @bert-layer");
  assert_contains(o.out, "@bert-layer on cpu:0\n192 requests, live peak ");
  assert_contains(o.out, "\npage_unit_pool ");
  assert_contains(o.out, "100.0%");
  assert_contains(o.out, "\npage_unit_pool: second iteration ");
  assert_contains(o.out, " than no_pool.\n");
}

// The 55 GB of a large machine, on none: what is held is what a device would
// have had to give.
TEST(a_dry_run_holds_nothing) {
  begin_snapshot_of_block(0x10000, (uint64_t)64 << 30, (uint64_t)40 << 30,
                          (uint64_t)40 << 30);
  for (uint64_t i = 0; i < 3; i++) {
    uint64_t address = 0x10000 + ((40 + i * 5) << 30);
    pickle_event(&w, "alloc", address, (uint64_t)5 << 30);
  }
  const char *path = write_snapshot("large.pickle");
  tool_output o = tool_did("replay", path, "--dry", "-o", "json", "--pool",
                           "page_unit_pool,arena_pool,no_pool");
  ck_assert(json_is(o.out, "results.0.device", "\"cpu:0 (dry)\""));
  for (int i = 0; i < 3; i++) {
    ck_assert_double_eq(result_at(o.out, i, "failed"), 0);
    ck_assert_double_eq(result_at(o.out, i, "reserved_peak_bytes"),
                        (double)((uint64_t)55 << 30));
  }
  o = tool_ends(1, "replay", path, "--dry", "--limit", "54G", "-o", "json");
  assert_contains(o.err,
                  "would exceed the limit of 54.00 GiB (57982058496 bytes)");
  ck_assert_double_eq(result_at(o.out, 0, "failed"), 2);  // iterations
  ck_assert_double_eq(result_at(o.out, 0, "reserved_peak_bytes"),
                      (double)((uint64_t)50 << 30));
}

static void assert_refused_by_all(tool_output *o) {
  ck_assert_int_eq(o->status, 1);
  ck_assert_int_lt(o->peak_kib, 1 << 20);
  assert_contains(o->err, "no room for 32.00 TiB (35184372088832 bytes): ");
  assert_contains(o->err, "there are only ");
  for (int pool = 0; pool < 5; pool++) {
    ck_assert_double_eq(result_at(o->out, pool, "failed"), 2);
    ck_assert_double_eq(result_at(o->out, pool, "reserved_peak_bytes"), 0);
  }
}

// A small file can ask for more than any machine has.
TEST(what_no_machine_has_is_refused_at_once) {
  begin_snapshot();
  pickle_event(&w, "alloc", 0x10000, UINT64_C(1) << 45);
  const char *path = write_snapshot("hostile.pickle");
  static const char *const pools =
      "arena_pool,page_unit_pool,no_pool,buddy_pool,async_pool";
  tool_output o = tool_run("replay", path, "-o", "json", "--pool", pools);
  assert_refused_by_all(&o);
  o = tool_run("replay", path, "-o", "json", "--pool", pools, "--dry");
  assert_refused_by_all(&o);
  o = tool_run("why", path);
  assert_contains(o.err, "32.00 TiB were needed at once");
}

// A dry run tells what a run would hold.
TEST(a_dry_run_is_true) {
  static const char *const pools =
      "page_unit_pool,arena_pool,buddy_pool:init=1M,no_pool";
  tool_output real =
      tool_run("replay", "@resnet50-b8", "--pool", pools, "-o", "json");
  tool_output dry = tool_run("replay", "@resnet50-b8", "--pool", pools, "-o",
                             "json", "--dry");
  assert_done(&real);
  assert_done(&dry);
  for (int i = 0; i < 4; i++) {
    ck_assert_double_eq(result_at(real.out, i, "reserved_peak_bytes"),
                        result_at(dry.out, i, "reserved_peak_bytes"));
    ck_assert_double_eq(iteration_at(real.out, i, 1, "hits"),
                        iteration_at(dry.out, i, 1, "hits"));
  }
}

TEST(a_dry_table_compares_no_times) {
  tool_output o = tool_done("replay @bert-layer --dry");
  assert_contains(o.out, "@bert-layer on cpu:0 (dry)\n");
  ck_assert_ptr_null(strstr(o.out, " than no_pool"));
}

// With a limit a real run gives idle memory back on the way, too.
TEST(the_limit_holds) {
  for (int i = 0; i < 3; i++) {
    static const char *const more[] = {"--dry", "--touch", "--iterations=2"};
    tool_output o = tool_did("replay", "@bert-layer", "--limit", "60M",
                             "--pool", "page_unit_pool", "-o", "json", more[i]);
    ck_assert_double_le(result_at(o.out, 0, "reserved_peak_bytes"), 60 << 20);
  }
}

static size_t count_lines(const char *text) {
  size_t count = 0;
  for (; *text; text++)
    count += *text == '\n';
  return count;
}

TEST(csv_has_a_row_per_iteration) {
  tool_output o = tool_done("replay @bert-layer -o csv --iterations 4");
  assert_contains(o.out, "trace,pool,device,iteration,alloc_ms,");
  assert_contains(o.out, "\n@bert-layer,page_unit_pool,cpu:0,4,");
  ck_assert_uint_eq(count_lines(o.out), 1 + 3 * 4);
}

TEST(list_names_workloads_and_pools) {
  tool_output o = tool_done("replay --list");
  assert_contains(o.out, "\n  @bert-layer\n");
  assert_contains(o.out, "\n  page_unit_pool\n");
}

TEST(a_strategy_is_loaded) {
  tool_output o = tool_did("replay", "--strategy", TARN_POWER_POOL, "--list");
  assert_contains(o.out, "\n  power_pool\n");
  o = tool_did("replay", "@bert-layer", "--strategy", TARN_POWER_POOL, "--pool",
               "power_pool:least=4K,no_pool", "-o", "csv");
  assert_contains(o.out, "\n@bert-layer,power_pool:least=4K,cpu:0,2,");
  assert_exits(tool_line("replay @bert-layer --strategy ./nothing.so"), 1,
               "./nothing.so: No such file");
  assert_exits(tool_run("replay", "--strategy", TARN_SMALL_PLUGIN, "--list"), 1,
               "it has no TarnPoolStrategy");
}

// --- baseline, sizes, refusals ---------------------------------------------

// The baseline is freed within the trace, and two blocks stay alive at its end:
// every iteration must find the same state again.
TEST(iterations_start_alike) {
  begin_snapshot();
  pickle_event(&w, "free_completed", 0x1000, 5000);
  pickle_event(&w, "alloc", 0x2000, 5000);
  pickle_event(&w, "alloc", 0x3000, 1);
  tool_output o = tool_did("replay", write_snapshot("a.pickle"), "-o", "json",
                           "--iterations", "3", "--pool", "page_unit_pool");
  ck_assert_double_eq(json_number(o.out, "events"), 3);
  ck_assert_double_eq(json_number(o.out, "live_peak_bytes"), 5001);
  for (int i = 0; i < 3; i++) {
    double hits = iteration_at(o.out, 0, i, "hits");
    double misses = iteration_at(o.out, 0, i, "misses");
    ck_assert_double_eq(hits + misses, 2);
    ck_assert_double_eq(misses, i == 0 ? 1 : 0);
  }
}

// The same by several threads, more of them than requests as well.
TEST_LOOP(threads_start_alike, 3) {
  static const char *const threads[] = {"2", "3", "64"};
  begin_snapshot();
  pickle_event(&w, "free_completed", 0x1000, 5000);
  pickle_event(&w, "alloc", 0x2000, 5000);
  pickle_event(&w, "alloc", 0x4000, 9000);
  pickle_event(&w, "free_completed", 0x4000, 9000);
  tool_output o = tool_did("replay", write_snapshot("t.pickle"), "-o", "json",
                           "--iterations", "5", "--pool", "page_unit_pool",
                           "--threads", threads[_i]);
  ck_assert(json_is(o.out, "threads", threads[_i]));
  ck_assert_double_eq(result_at(o.out, 0, "failed"), 0);
  for (int i = 0; i < 5; i++) {
    double hits = iteration_at(o.out, 0, i, "hits");
    double misses = iteration_at(o.out, 0, i, "misses");
    ck_assert_double_eq(hits + misses, 2);
    ck_assert_double_gt(iteration_at(o.out, 0, i, "free_ms"), 0);
  }
}

TEST(threads_of_programs) {
  static const char *const names[] = {"@serving", "@dataloader", "@kv-decode"};
  for (size_t i = 0; i < 3; i++) {
    tool_output o = tool_did("replay", names[i], "-o", "json", "--pool",
                             "page_unit_pool", "--threads", "3");
    ck_assert_double_eq(result_at(o.out, 0, "failed"), 0);
    double hits = iteration_at(o.out, 0, 1, "hits");
    double misses = iteration_at(o.out, 0, 1, "misses");
    ck_assert_double_eq(hits + misses, json_number(o.out, "events") / 2);
  }
  tool_output o = tool_done("replay @bert-layer --threads 2 --pool no_pool");
  assert_contains(o.out, "@bert-layer on cpu:0, 2 threads\n192 requests");
  o = tool_done("replay @bert-layer --threads 2 --touch --pool no_pool");
  assert_contains(o.out, "2 threads");
  o = tool_done("replay @bert-layer --threads 2 --dry --pool no_pool");
  assert_contains(o.out, "cpu:0 (dry), 2 threads");
}

TEST(refused_requests_are_counted) {
  begin_snapshot();
  pickle_event(&w, "alloc", 0x1000, 4096);
  pickle_event(&w, "alloc", 0x2000, TOO_MANY);
  pickle_event(&w, "free_completed", 0x2000, TOO_MANY);
  pickle_event(&w, "free_completed", 0x1000, 4096);
  tool_output o =
      tool_ends(1, "replay", write_snapshot("big.pickle"), "-o", "json");
  ck_assert(json_valid(o.out));
  ck_assert_double_eq(result_at(o.out, 0, "failed"), 2);
  ck_assert_double_eq(result_at(o.out, 1, "failed"), 2);
  assert_contains(o.err, "no_pool: 2 requests failed, the first: ");
  assert_contains(o.err, "page_unit_pool: 2 requests failed, the first: ");
  o = tool_ends(1, "replay", tool_file("big.pickle"), "-o", "json", "--threads",
                "2");
  ck_assert_double_eq(result_at(o.out, 1, "failed"), 2);
}

// No time is so short that it is written as 0.
TEST(no_time_is_nothing) {
  static const char *const formats[] = {"table", "csv", "md"};
  for (size_t i = 0; i < 3; i++) {
    tool_output o = tool_did("replay", "@bert-layer", "--iterations", "9",
                             "--pool", "arena_pool", "-o", formats[i]);
    ck_assert_ptr_null(strstr(o.out, " 0.000 "));
    ck_assert_ptr_null(strstr(o.out, ",0.000,"));
    ck_assert_ptr_null(strstr(o.out, ",0,0,0,"));
  }
}

TEST(a_trace_of_nothing) {
  begin_snapshot();
  pickle_event(&w, "snapshot", 0, 0);
  const char *path = write_snapshot("empty.pickle");
  tool_output o = tool_did("replay", path, "-o", "json");
  ck_assert(json_valid(o.out));
  ck_assert_double_eq(json_number(o.out, "events"), 0);
  ck_assert(json_is(o.out, "results.0.reserved_over_live", "null"));
  o = tool_did("replay", path);
  assert_contains(o.out, "\nno_pool ");
}

// Figures that were never measured are none: NaN in words is '-'.
TEST(no_alloc_no_figures) {
  begin_snapshot();
  pickle_event(&w, "free_completed", 0x1000, 4096);
  const char *path = write_snapshot("frees.pickle");
  tool_output o = tool_did("replay", path, "-o", "json");
  ck_assert(json_is(o.out, "results.0.iterations.1.alloc_ms", "null"));
  ck_assert(json_is(o.out, "results.0.iterations.1.alloc_ns_median", "null"));
  ck_assert(json_is(o.out, "results.0.iterations.1.alloc_ns_p99", "null"));
  ck_assert_double_ge(iteration_at(o.out, 0, 1, "free_ms"), 0);
  o = tool_did("replay", path, "--pool", "no_pool");
  assert_contains(o.out, "\nno_pool       -       -  ");
}

// Blocks that are alive, and nothing of how they came to be.
TEST(no_history_is_told) {
  begin_snapshot_of_block(0x10000, 1 << 20, 4096, 4096);
  tool_output o =
      tool_ends(0, "replay", write_snapshot("no.pickle"), "-o", "json");
  assert_contains(o.err,
                  "no.pickle: no events recorded; call "
                  "torch.cuda.memory._record_memory_history() first\n");
  ck_assert(json_valid(o.out));
  ck_assert_double_eq(json_number(o.out, "live_peak_bytes"), 4096);
  ck_assert(json_is(o.out, "results.0.iterations.0.alloc_ms", "null"));
  ck_assert(json_is(o.out, "results.0.iterations.0.free_ms", "null"));
}

// The events saw this one freed: what stands there now came after them.
TEST(what_came_after_the_events_is_told) {
  begin_snapshot_of_block(0x10000, 1 << 20, 4096, 4096);
  pickle_event(&w, "alloc", 0x10000, 4096);
  pickle_event(&w, "free_completed", 0x10000, 4096);
  assert_ended(tool_run("replay", write_snapshot("late.pickle")), 0,
               "late.pickle: 4.00 KiB in 1 block left out: alive at "
               "the end, but born after the last event\n");
}

// Device 0 has three requests, device 1 has one.
static const char *write_two_devices(void) {
  begin_snapshot();
  pickle_event(&w, "alloc", 0x1000, 4096);
  pickle_event(&w, "alloc", 0x3000, 4096);
  pickle_event(&w, "free_completed", 0x1000, 4096);
  pickle_close_list(&w);
  pickle_open_list(&w);
  pickle_event(&w, "alloc", 0x1000, 1 << 20);
  return write_snapshot("two.pickle");
}

TEST(one_of_several_devices) {
  const char *path = write_two_devices();
  tool_output o = tool_ends(0, "replay", path, "-o", "json");
  assert_contains(o.err,
                  "two.pickle: 2 devices have a history; this is device "
                  "0 (--trace-device chooses another)");
  ck_assert_double_eq(json_number(o.out, "events"), 3);
  o = tool_did("replay", path, "-o", "json", "--trace-device", "1");
  ck_assert_double_eq(json_number(o.out, "events"), 1);
  ck_assert_double_eq(json_number(o.out, "live_peak_bytes"), 1 << 20);
}

// No name of a file reaches the terminal as it is, in any format.
TEST(hostile_names_are_neutral) {
  static const char *const formats[] = {"table", "json", "csv", "md"};
  begin_snapshot();
  pickle_event(&w, "alloc", 0x1000, 4096);
  const char *path = write_snapshot("a\x1b[2J\xc2\x9b\xe2\x80\xae\x9b.pickle");
  for (size_t i = 0; i < 4; i++) {
    tool_output o = tool_did("replay", path, "-o", formats[i]);
    assert_contains(
        o.out, i == 1 ? "[2J\\u009b\\u202e\\ufffd.pickle" : "a?[2J???.pickle");
    ck_assert_ptr_null(strchr(o.out, 0x1b));
    ck_assert_ptr_null(strchr(o.out, (char)0x9b));
  }
}

static long peak_kib(const char *option) {
  tool_output o =
      tool_did("replay", "@bert-layer", "--pool", "no_pool", option);
  long peak = o.peak_kib;
  return peak;
}

// 50 MiB are alive at the peak; memory that is not written to is not there.
TEST(touching_writes_to_each_page) {
  ck_assert_int_gt(peak_kib("--touch"), peak_kib("--iterations=2") + 30 * 1024);
}

// The host cannot write to this device's memory: touching goes through the
// device, for which Tarn stands in.
TEST(another_device) {
  tool_output o = tool_did("replay", "@bert-layer", "--plugin",
                           TARN_SMALL_PLUGIN, "--device", "small:0", "--touch",
                           "--pool", "no_pool", "-o", "json");
  ck_assert(json_is(o.out, "results.0.device", "\"small:0\""));
  ck_assert_double_eq(result_at(o.out, 0, "failed"), 0);
}

// A device with the functions of PaddlePaddle's document and nothing else has
// no ranges, and names no sizes. What is held there over what is alive.
TEST(a_device_without_ranges) {
  static const struct {
    const char *trace;
    double arena;
    double buddy;
  } held[] = {{"@bert-layer", 1.15, 2.0},
              {"@resnet50-b8", 1.06, 1.3},
              {"@resnet50-b32", 1.03, 1.3},
              {"@kv-decode", 1.35, 2.0},
              {"@random", 1.75, 3.2}};
  for (size_t i = 0; i < sizeof held / sizeof *held; i++) {
    tool_output o = tool_did("replay", held[i].trace, "--plugin",
                             TARN_PLAIN_PLUGIN, "--device", "plain:0", "--pool",
                             "arena_pool,buddy_pool", "-o", "json");
    ck_assert_double_le(result_at(o.out, 0, "reserved_over_live"),
                        held[i].arena);
    ck_assert_double_le(result_at(o.out, 1, "reserved_over_live"),
                        held[i].buddy);
  }
}

// 64 MiB do not hold what page_unit_pool keeps of 32 images.
TEST(a_device_too_small) {
  tool_output o = tool_ends(1, "replay", "@resnet50-b32", "--plugin",
                            TARN_SMALL_PLUGIN, "--device", "small:0");
  assert_contains(o.err, "requests failed, the first: ");
  assert_contains(o.out, "  failed\n");
}

// Of 64 MiB free, 57.6 may be held when pages are touched. page_unit_pool would
// hold 84: it has to give idle memory back on the way.
TEST(touching_leaves_room) {
  tool_output o = tool_did("replay", "@bert-layer", "--plugin",
                           TARN_SMALL_PLUGIN, "--device", "small:0", "--touch",
                           "--pool", "page_unit_pool", "-o", "json");
  double held = result_at(o.out, 0, "reserved_peak_bytes");
  ck_assert_double_gt(held, 0.7 * (64 << 20));
  ck_assert_double_le(held, 0.9 * (64 << 20) + 1);
}
