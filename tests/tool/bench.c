// `tarn bench pool`: rows, keys, wrong use. No figure is compared with a time.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/json_check.h"
#include "support/run.h"
#include "support/tool_assert.h"

#define FOUR "free_list,glibc,no_pool,page_unit_pool"  // are always there

// --- figures ---------------------------------------------------------------

#define RESULT "workloads.0.results."

static double figure(const char *json, int row, const char *key) {
  char path[128];
  snprintf(path, sizeof path, RESULT "%d.%s", row, key);
  return json_number(json, path);
}

static bool is_at(const char *json, int row, const char *key,
                  const char *value) {
  char path[128];
  snprintf(path, sizeof path, RESULT "%d.%s", row, key);
  return json_is(json, path, value);
}

// In the first |rows| rows of each workload.
static void assert_none_failed(const char *json, int workloads, int rows) {
  char path[64];
  for (int i = 0; i < workloads * rows; i++) {
    snprintf(path, sizeof path, "workloads.%d.results.%d.failed", i / rows,
             i % rows);
    ck_assert(json_is(json, path, "null"));
  }
}

TEST(json_has_the_published_keys) {
  tool_output o =
      tool_did("bench", "pool", "--workload", "@bert-layer", "--pool", FOUR,
               "--threads", "1", "--touched", "no", "-o", "json");
  assert_json_line(o.out);
  assert_keys(o.out, "", "workloads,machine");
  assert_keys(o.out, "workloads.0",
              "name,seeds,threads,spread,hogs,touched,results");
  ck_assert(json_is(o.out, "workloads.0.name", "\"@bert-layer\""));
  ck_assert(json_is(o.out, "workloads.0.threads", "1"));
  ck_assert(json_is(o.out, "workloads.0.touched", "false"));
  for (int row = 0; row < 4; row++) {
    char path[64];
    snprintf(path, sizeof path, RESULT "%d", row);
    assert_keys(o.out, path,
                "name,alloc_ns_median,free_ns_median,pair_ns,over_free_list,"
                "by_address_ns_median,alloc_ns_p99,iteration_ms,mops,"
                "reserved_over_live,varies_ms,no_pool_over_second,"
                "glibc_over_steady,failed");
  }
}

TEST(a_strategy_is_loaded) {
  tool_output o =
      tool_did("bench", "pool", "--workload", "@bert-layer", "--strategy",
               TARN_POWER_POOL, "--pool", "power_pool:least=4K", "--passes",
               "3", "--threads", "1", "-o", "json");
  ck_assert(is_at(o.out, 0, "name", "\"power_pool:least=4K\""));
  ck_assert(is_at(o.out, 0, "failed", "null"));
  o = tool_ended(1, tool_line("bench pool --strategy /nowhere.so"));
}

// --- allocators out of files -----------------------------------------------

static tool_output run_peer(const char *pool) {
  return tool_run("bench", "pool", "--workload", "@bert-layer", "--pool", pool,
                  "--passes", "3", "--threads", "1", "--touched", "no", "-o",
                  "json");
}

TEST(an_allocator_out_of_a_file) {
  tool_output o = tool_as_done(run_peer(TARN_BENCH_PEER));
  ck_assert(is_at(o.out, 0, "name", "\"" TARN_BENCH_PEER "\""));
  ck_assert(is_at(o.out, 0, "failed", "null"));
  ck_assert(is_at(o.out, 0, "by_address_ns_median", "null"));
  ck_assert_double_gt(figure(o.out, 0, "pair_ns"), 0);
  // It says that it holds 100 GiB of the 50 MiB that are live.
  ck_assert_double_gt(figure(o.out, 0, "reserved_over_live"), 1000);
}

TEST(what_an_allocator_out_of_a_file_lacks) {
  assert_contains(tool_ended(1, run_peer("./nowhere.so")).out,
                  "cannot be loaded: ./nowhere.so");
  assert_contains(tool_ended(1, run_peer(TARN_NO_PLUGIN)).out,
                  "it defines no tarn_peer_open");
  assert_contains(tool_ended(1, run_peer(TARN_BENCH_PEER ":small")).out,
                  "a request was refused: it returned NULL");
  // What is told to one may be wrong, so it is tried beforehand.
  assert_misuse(run_peer(TARN_BENCH_PEER ":closed"), "cpu:0 is closed");
}

// Rows for which there is no time stay, and are no failure.
TEST(seconds_of_all_rows) {
  tool_output o = tool_line(
      "bench pool --pool free_list,glibc,no_pool,page_unit_pool,arena_pool "
      "--workload all --threads 1 --touched no --seconds 1 -o json");
  ck_assert_int_eq(o.status, 0);
  assert_contains(o.out, "over the limit: the seconds of the whole benchmark");
  assert_misused("bench pool --seconds 0", "--seconds");
}

static void assert_row(const char *json, int row, const char *quoted_name) {
  double pair = figure(json, row, "pair_ns");
  double alloc = figure(json, row, "alloc_ns_median");
  double over = figure(json, row, "over_free_list");
  ck_assert(is_at(json, row, "name", quoted_name));
  ck_assert(is_at(json, row, "failed", "null"));
  ck_assert_double_gt(pair, 0);
  ck_assert_double_eq_tol(alloc + figure(json, row, "free_ns_median"), pair,
                          1e-6 * pair);
  ck_assert_double_gt(figure(json, row, "alloc_ns_p99"), 0);
  ck_assert_double_eq_tol(figure(json, row, "mops"), 2e3 / pair, 1e-6 / pair);
  ck_assert_double_eq_tol(over, pair / figure(json, 0, "pair_ns"), 1e-6 * over);
  // 192 requests are 96 pairs.
  ck_assert_double_eq_tol(figure(json, row, "iteration_ms.2"), 96 * pair / 1e6,
                          1e-6 * pair);
  ck_assert_double_gt(figure(json, row, "iteration_ms.0"), 0);
  ck_assert_double_gt(figure(json, row, "iteration_ms.1"), 0);
}

TEST(figures_agree) {
  tool_output o = tool_did("bench", "pool", "--workload", "@bert-layer",
                           "--pool", FOUR, "--threads", "1", "--touched", "no",
                           "--passes", "3", "-o", "json");
  assert_row(o.out, 0, "\"free_list\"");
  assert_row(o.out, 1, "\"glibc\"");
  assert_row(o.out, 2, "\"no_pool\"");
  assert_row(o.out, 3, "\"page_unit_pool\"");
  ck_assert_uint_eq(json_size(o.out, "workloads.0.results"), 4);
  ck_assert(is_at(o.out, 0, "over_free_list", "1"));
  ck_assert(is_at(o.out, 0, "by_address_ns_median", "null"));
  ck_assert(is_at(o.out, 1, "by_address_ns_median", "null"));
  ck_assert_double_gt(figure(o.out, 2, "by_address_ns_median"), 0);
  ck_assert_double_gt(figure(o.out, 3, "by_address_ns_median"), 0);
  ck_assert(is_at(o.out, 2, "reserved_over_live", "1"));
  ck_assert_double_ge(figure(o.out, 0, "reserved_over_live"), 1);
  ck_assert_double_ge(figure(o.out, 3, "reserved_over_live"), 1);
  // Over itself: 1, less where its passes vary by more than one takes.
  double second = figure(o.out, 2, "iteration_ms.1");
  ck_assert_double_eq_tol(figure(o.out, 2, "no_pool_over_second"),
                          fmin(1, second / figure(o.out, 2, "varies_ms")),
                          1e-6);
  ck_assert_double_gt(figure(o.out, 3, "no_pool_over_second"), 0);
  ck_assert_double_gt(figure(o.out, 3, "glibc_over_steady"), 0);
  ck_assert_double_ge(figure(o.out, 3, "varies_ms"), 0);
}

// Every pool first with its own slack, then with each that is given.
TEST(curves_against_slack) {
  tool_output o =
      tool_did("bench", "pool", "--workload", "@bert-layer", "--slack",
               "1M,16M", "--pool", "arena_pool:steps=0,arena_pool", "--touched",
               "no", "--threads", "1", "--passes", "3", "-o", "json");
  static const char *const slacks[] = {"\"default\"", "\"1M\"", "\"16M\""};
  assert_json_line(o.out);
  assert_keys(o.out, "workloads.0",
              "name,seeds,threads,spread,hogs,touched,live_peak_bytes,points");
  ck_assert_uint_eq(json_size(o.out, "workloads.0.points"), 6);
  for (int i = 0; i < 6; i++) {
    char path[64];
    snprintf(path, sizeof path, "workloads.0.points.%d", i);
    assert_keys(o.out, path,
                "pool,slack,pair_ns,over_default,reserved_over_live,first_ms,"
                "second_ms,steady_ms,mops,failed");
    snprintf(path, sizeof path, "workloads.0.points.%d.pool", i);
    ck_assert(json_is(o.out, path,
                      i < 3 ? "\"arena_pool:steps=0\"" : "\"arena_pool\""));
    snprintf(path, sizeof path, "workloads.0.points.%d.slack", i);
    ck_assert(json_is(o.out, path, slacks[i % 3]));
    snprintf(path, sizeof path, "workloads.0.points.%d.pair_ns", i);
    ck_assert_double_gt(json_number(o.out, path), 0);
    snprintf(path, sizeof path, "workloads.0.points.%d.reserved_over_live", i);
    ck_assert_double_ge(json_number(o.out, path), 1);
  }
  ck_assert(json_is(o.out, "workloads.0.points.3.over_default", "1"));
}

TEST(curves_for_people) {
  tool_output o = tool_done(
      "bench pool --workload @bert-layer --slack 4M --touched no "
      "--threads 1 --passes 1 -o md");
  assert_contains(o.out, "\n| pool       |   slack | both ns | x default |");
  assert_contains(o.out, "\n| arena_pool | default |");
  assert_contains(o.out, "\n| arena_pool |      4M |");
  o = tool_done(
      "bench pool --workload @bert-layer --slack 4M --touched no "
      "--threads 1 --passes 1 -o csv");
  assert_contains(o.out,
                  "workload,seeds,threads,spread,hogs,touched,pool,slack,");
  assert_contains(o.out, "\n@bert-layer,1,1,false,0,false,arena_pool,4M,");
}

// A default strategy that does not exist: Tarn's rows cannot begin.
TEST(a_row_that_fails_stays) {
  setenv("TARN_POOL", "no_such_pool", 1);
  tool_output o = tool_ends(1, "bench", "pool", "--workload", "@bert-layer",
                            "--pool", FOUR, "--threads", "1", "--touched", "no",
                            "--passes", "1", "-o", "json");
  assert_contains(o.err, "@bert-layer: no_pool: no strategy 'no_such_pool'");
  ck_assert(json_valid(o.out));
  ck_assert(is_at(o.out, 1, "failed", "null"));
  ck_assert(is_at(o.out, 2, "name", "\"no_pool\""));
  ck_assert(!is_at(o.out, 2, "failed", "null"));
  ck_assert(is_at(o.out, 2, "pair_ns", "null"));
  ck_assert(is_at(o.out, 2, "iteration_ms.2", "null"));
  ck_assert(is_at(o.out, 2, "over_free_list", "null"));
  o = tool_ends(1, "bench", "pool", "--workload", "@bert-layer", "--pool", FOUR,
                "--threads", "1", "--touched", "no", "--passes", "1");
  assert_contains(o.out, "  failed\n");
}

TEST(another_device) {
  tool_output o = tool_done(
      "bench pool --workload @bert-layer --device sim:0 --pool glibc,no_pool "
      "--passes 1 -o json");
  ck_assert(is_at(o.out, 1, "failed", "null"));
  ck_assert_double_gt(figure(o.out, 1, "pair_ns"), 0);
  ck_assert(json_is(o.out, "workloads.3.results.1.failed", "null"));
}

// --- wrong use -------------------------------------------------------------

TEST(help) {
  tool_output o = tool_done("bench --help");
  assert_contains(o.out, "usage: tarn bench blocks ");
  assert_contains(o.out, "\n       tarn bench counters ");
  assert_contains(o.out, "\n       tarn bench device ");
  assert_contains(o.out, "\n       tarn bench pool ");
  o = tool_done("bench pool -h");
  assert_contains(o.out, "usage: tarn bench pool ");
}

TEST(wrong_names) {
  assert_misuse(tool_run("bench"),
                "There are: blocks, counters, device, model, plan, pool, "
                "preload, record, synced, table, view, whole, why\n");
  assert_misused("bench pol", "did you mean 'pool'?");
  assert_misused("bench --passes 1", "no benchmark is named");
  assert_misused("bench pool @bert-layer", "is unexpected");
  assert_misused("bench pool --workload bert-layer",
                 "did you mean '@bert-layer'?");
  assert_misused("bench pool --workload all,@random",
                 "'all' stands for every workload: it is named alone");
  assert_misused("bench pool --workload @random,all", "it is named alone");
  assert_misused("bench pool --workload @random,@random",
                 "workload '@random' is named twice");
  assert_misused("bench pool --pool no_pool,glibc,no_pool",
                 "pool 'no_pool' is named twice");
  assert_misused("bench pool --workload @random:seed=2 --seeds 2",
                 "--seeds is for workloads without a seed: @random:seed=2");
  assert_misused("bench pool --workload @random:seed=x", "may only be :seed=");
  assert_misused("bench pool --seeds 65", "--seeds wants a whole number");
  assert_misused("bench pool --slack 1M,1M",
                 "pool 'arena_pool:slack=1M' is named twice");
  assert_misused("bench pool --slack tiny", "slack=tiny");
  assert_misused("bench pool --slack 1M --pool no_pool", "no_pool");
  assert_misused("bench pool --pool gilbc", "did you mean 'glibc'?");
  assert_misused("bench pool --pool glibc:page=1",
                 "no pool is named 'glibc:page=1'");
  assert_misused("bench pool --pool page_unit_pool:page=3",
                 "page=3 is not a power of two");
}

TEST(threads_that_lose_their_processors) {
  tool_output o = tool_line(
      "bench pool --workload @bert-layer --pool free_list,arena_pool "
      "--threads 1,3 --spread --hogs 2 --touched no --passes 2 -o json");
  ck_assert_int_eq(o.status, 0);
  ck_assert(json_is(o.out, "workloads.0.spread", "false"));  // one thread
  ck_assert(json_is(o.out, "workloads.1.spread", "true"));
  ck_assert(json_is(o.out, "workloads.0.hogs", "2"));
  assert_none_failed(o.out, 2, 2);
  assert_misused("bench pool --hogs 65", "--hogs wants a whole number");
}

TEST(wrong_values) {
  assert_misused("bench pool --passes 0", "--passes wants a whole number");
  assert_misused("bench pool --passes many", "--passes wants a whole number");
  static const char *const threads[] = {"0",    "65",   "2,2", "4,2",
                                        "1,",   ",1",   "1;2", "-1",
                                        "1,2x", "many", "1,0", "0001"};
  for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
    char line[64];
    snprintf(line, sizeof line, "bench pool --threads %s", threads[i]);
    assert_misused(line, "--threads wants numbers from 1 to 64 that rise");
  }
  assert_misused("bench pool --touched maybe",
                 "--touched wants yes, no or both, not 'maybe'");
  assert_misused("bench pool --device abacus:0", "abacus");
  assert_misused("bench pool -o xml", "'xml' is not a format");
  assert_misused("bench pool --thred 2", "no option is named '--thred'");
}

// --- many rows -------------------------------------------------------------

// Of the same code as above; each row is measured for a while.
PART("rows");

// Every row by its name, with figures or with the reason why there are none.
TEST(rows_by_default) {
  static const char *const names[] = {
      "\"harness\"",    "\"free_list\"", "\"glibc\"",   "\"mimalloc\"",
      "\"jemalloc\"",   "\"tcmalloc\"",  "\"no_pool\"", "\"page_unit_pool\"",
      "\"buddy_pool\"", "\"arena_pool\""};
  tool_output o =
      tool_line("bench pool --workload @bert-layer --passes 1 -o json");
  ck_assert_msg(o.status == 0, "exit %d: %s", o.status, o.err);
  ck_assert_uint_eq(json_size(o.out, "workloads"), 4);
  ck_assert_uint_eq(json_size(o.out, "workloads.0.results"), 10);
  for (int row = 0; row < 10; row++) {
    ck_assert(is_at(o.out, row, "name", names[row]));
    if (is_at(o.out, row, "failed", "null")) continue;
    assert_contains(o.out, "\"failed\":\"not installed: lib");
    assert_contains(o.err, ": not installed: lib");
  }
  ck_assert(json_is(o.out, "workloads.1.touched", "true"));
  ck_assert(json_is(o.out, "workloads.1.results.0.over_free_list", "null"));
  ck_assert(json_is(o.out, "workloads.2.threads", "2"));
  ck_assert(json_is(o.out, "workloads.2.touched", "false"));
  ck_assert(json_is(o.out, "workloads.3.threads", "2"));
}

TEST(rows_as_they_were_asked_for) {
  tool_output o = tool_done(
      "bench pool --workload all --pool page_unit_pool:page=65536,no_pool "
      "--passes 1 --threads 1 --touched no -o json");
  ck_assert_uint_eq(json_size(o.out, "workloads"), 8);
  ck_assert(json_is(o.out, "workloads.3.name", "\"@kv-decode\""));
  ck_assert_uint_eq(json_size(o.out, "workloads.4.results"), 2);
  ck_assert(is_at(o.out, 0, "name", "\"page_unit_pool:page=65536\""));
  ck_assert(is_at(o.out, 1, "name", "\"no_pool\""));
  ck_assert(is_at(o.out, 0, "over_free_list", "null"));
  ck_assert(is_at(o.out, 0, "glibc_over_steady", "null"));
}

TEST(rows_for_each_count_of_threads) {
  tool_output o =
      tool_did("bench", "pool", "--workload", "@bert-layer", "--pool",
               "free_list,arena_pool", "--threads", "1,3,8", "--touched", "no",
               "--passes", "2", "-o", "json");
  ck_assert_uint_eq(json_size(o.out, "workloads"), 3);
  ck_assert(json_is(o.out, "workloads.0.threads", "1"));
  ck_assert(json_is(o.out, "workloads.1.threads", "3"));
  ck_assert(json_is(o.out, "workloads.2.threads", "8"));
  assert_none_failed(o.out, 3, 2);
}

// Four programs in a row are a pass: none is like another.
TEST(several_draws_are_a_pass) {
  tool_output o =
      tool_did("bench", "pool", "--workload", "@dataloader,@bert-layer",
               "--pool", "harness,page_unit_pool", "--seeds", "4", "--touched",
               "no", "--passes", "2", "-o", "json");
  ck_assert_uint_eq(json_size(o.out, "workloads"), 4);
  ck_assert(json_is(o.out, "workloads.0.name", "\"@dataloader\""));
  ck_assert(json_is(o.out, "workloads.2.name", "\"@bert-layer\""));
  ck_assert(json_is(o.out, "workloads.1.threads", "2"));
  for (int i = 0; i < 4; i++) {
    char path[64];
    snprintf(path, sizeof path, "workloads.%d.seeds", i);
    ck_assert(json_is(o.out, path, "4"));
  }
  assert_none_failed(o.out, 4, 2);
  // 96 pairs of one draw, 384 of four.
  ck_assert_double_eq_tol(
      json_number(o.out, "workloads.2.results.1.iteration_ms.2"),
      384 * json_number(o.out, "workloads.2.results.1.pair_ns") / 1e6, 1e-9);
  o = tool_did("bench", "pool", "--workload", "@dataloader", "--pool",
               "page_unit_pool", "--seeds", "2", "--touched", "no", "--threads",
               "1", "--passes", "1");
  assert_contains(o.out,
                  "\n@dataloader, 2 draws, 1 thread, untouched\nthe draw "
                  "with the highest peak: 20,000 requests, ");
}

TEST(table_for_people) {
  tool_output o = tool_did(
      "bench", "pool", "--workload", "@bert-layer,@resnet50-b8", "--pool", FOUR,
      "--touched", "no", "--threads", "1", "--passes", "1");
  char *end = strchr(o.out, '\n');
  ck_assert_ptr_nonnull(end);
  *end = '\0';
  assert_contains(o.out, "Linux ");  // the machine
  assert_contains(end + 1, "\n@bert-layer, 1 thread, untouched\n192 requests");
  assert_contains(end + 1, "\n@resnet50-b8, 1 thread, untouched\n");
  assert_contains(end + 1, "  x free_list ");
  assert_contains(end + 1, "\nfree_list ");
  assert_contains(end + 1, "\npage_unit_pool ");
  ck_assert_ptr_null(strstr(end + 1, "failed"));
  o = tool_did("bench", "pool", "--workload", "@bert-layer", "--pool", FOUR,
               "--touched", "no", "--passes", "1");
  assert_contains(o.out, "\n@bert-layer, 1 thread, untouched\n");
  assert_contains(o.out, "\n@bert-layer, 2 threads, untouched\n");
  ck_assert_ptr_null(strstr(o.out, "failed"));
}

TEST(tables_for_programs) {
  tool_output o = tool_did(
      "bench", "pool", "--workload", "@bert-layer,@resnet50-b8", "--pool", FOUR,
      "--touched", "no", "--threads", "1", "--passes", "1", "-o", "csv");
  assert_contains(o.out, "workload,seeds,threads,spread,hogs,touched,name,");
  assert_contains(o.out, "\n@bert-layer,1,1,false,0,false,free_list,");
  assert_contains(o.out, "\n@resnet50-b8,1,1,false,0,false,page_unit_pool,");
  o = tool_did("bench", "pool", "--workload", "@bert-layer", "--pool", FOUR,
               "--passes", "1", "-o", "md");
  assert_contains(o.out, "\n### @bert-layer, 1 thread, untouched\n");
  assert_contains(o.out, "\n### @bert-layer, 2 threads, touched\n");
  assert_contains(o.out, "\n| pool ");
}
