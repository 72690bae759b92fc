// `tarn bench table`: parts, names, keys, goals, what is skipped, wrong use,
// and that nothing of it stays in the folder. No figure is compared with a
// time.
#include "bench/table_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/json_check.h"
#include "support/run.h"
#include "support/tool_assert.h"

#define SMALL "--passes", "2", "--size", "3M"

static char folder[64];

static void make_folder(const char *in) {
  snprintf(folder, sizeof folder, "%s/tarn-table-XXXXXX", in);
  ck_assert_ptr_nonnull(mkdtemp(folder));
}

// It is empty.
static void remove_folder(void) {
  ck_assert_int_eq(rmdir(folder), 0);
}

// --- figures ---------------------------------------------------------------

static bool is_skipped(const char *json, size_t row) {
  return !json_is(json, json_row(row, "failed"), "null");
}

static void assert_row(const char *json, size_t row, const bench_figure *f) {
  assert_keys(json, json_row(row, ""),
              "part,name,value,unit,goal,met,low,high,failed");
  ck_assert(json_is_text(json, json_row(row, "part"), "files"));
  ck_assert(json_is_text(json, json_row(row, "name"), f->name));
  ck_assert(json_is_text(json, json_row(row, "unit"), f->unit));
  ck_assert(
      json_is(json, json_row(row, "goal"), isnan(f->goal) ? "null" : "0.9"));
  double value = json_number(json, json_row(row, "value"));
  if (is_skipped(json, row)) {
    ck_assert(isnan(value));
    return;
  }
  ck_assert_double_gt(value, 0);
  ck_assert_double_le(json_number(json, json_row(row, "low")), value);
  ck_assert_double_ge(json_number(json, json_row(row, "high")), value);
}

static void try_ranks(const char *ranks) {
  const table_part *files = table_part_at(0);
  make_folder("/tmp");
  tool_output o = tool_did("bench", "table", "files", "-n", ranks, SMALL,
                           "--folder", folder, "-o", "json");
  remove_folder();
  assert_json_line(o.out);
  assert_keys(o.out, "", "results,machine");
  ck_assert_uint_eq(json_size(o.out, "results"), files->count);
  for (size_t i = 0; i < files->count; i++)
    assert_row(o.out, i, &files->figures[i]);
  ck_assert(!is_skipped(o.out, 0));
}

TEST(names_keys_and_goals) {
  try_ranks("2");
}

TEST(other_numbers_of_ranks) {
  try_ranks("1");
  try_ranks("3");
}

static const table_part *part_called(const char *name) {
  size_t i = 0;
  while (table_part_at(i) != NULL && strcmp(table_part_at(i)->name, name) != 0)
    i++;
  ck_assert_ptr_nonnull(table_part_at(i));
  return table_part_at(i);
}

// Other programs look for these.
static const struct {
  const char *part;
  const char *name;
  double goal;
} goals[] = {{"files", "load_over_pread", .9},
             {"files", "store_over_pwrite", .9},
             {"files", "cold_over_fio", .9},
             {"apply", "apply_sgd_over_gather", .6},
             {"apply", "apply_adagrad_over_gather", .6},
             {"apply", "apply_adam_over_gather", .6},
             {"apply", "apply_sgd_over_torch", 2.5},
             {"apply", "apply_adagrad_over_torch", 2.5},
             {"apply", "apply_adam_over_torch", 2.5},
             {"cache", "sieve_over_lru_misses", .84},
             {"cache", "hit_over_gather", 1.3},
             {"disk", "disk_zipf105_over_limit", .8},
             {"disk", "disk_zipf109_over_limit", .8},
             {"disk", "disk_zipf115_over_limit", .8},
             {"disk", "disk_uniform_over_limit", .8},
             {"disk", "resident_over_budget", 1.02}};
enum { GOALS = sizeof goals / sizeof goals[0] };

TEST_LOOP(the_names_of_the_goals, GOALS) {
  size_t found = 0;
  const table_part *part = part_called(goals[_i].part);
  for (size_t k = 0; k < part->count; k++) {
    bool same = strcmp(part->figures[k].name, goals[_i].name) == 0;
    found += same && part->figures[k].goal == goals[_i].goal;
  }
  ck_assert_uint_eq(found, 1);
}

// Each figure has a value, or says why not.
static tool_output measure(const table_part *part) {
  make_folder("/tmp");
  tool_output o = tool_did("bench", "table", part->name, SMALL, "--folder",
                           folder, "-o", "json");
  remove_folder();
  ck_assert_uint_eq(json_size(o.out, "results"), part->count);
  for (size_t i = 0; i < part->count; i++) {
    ck_assert(json_is_text(o.out, json_row(i, "part"), part->name));
    ck_assert(json_is_text(o.out, json_row(i, "name"), part->figures[i].name));
    if (!is_skipped(o.out, i))
      ck_assert_double_gt(json_number(o.out, json_row(i, "value")), 0);
  }
  return o;
}

TEST(optimizers_are_measured) {
  tool_output o = measure(part_called("apply"));
  ck_assert(!is_skipped(o.out, 0));
}

TEST(a_cache_has_misses_and_hits) {
  const table_part *cache = part_called("cache");
  tool_output o = measure(cache);
  for (size_t i = 0; i < cache->count; i++)
    ck_assert(!is_skipped(o.out, i));
  // Misses do not depend on the machine.
  ck_assert(json_is(o.out, json_row(0, "met"), "true"));
  ck_assert(json_is(o.out, json_row(1, "met"), "true"));
  ck_assert(json_is_text(o.out, json_row(0, "name"), "sieve_over_lru_misses"));
}

// --- what cannot be measured -----------------------------------------------

static size_t find(const char *json, const char *name) {
  size_t row = 0;
  while (!json_is_text(json, json_row(row, "name"), name))
    ck_assert_uint_lt(row++, json_size(json, "results"));
  return row;
}

TEST(a_folder_in_memory_has_no_cold_part) {
  make_folder("/dev/shm");
  tool_output o = tool_did("bench", "table", "files", SMALL, "--folder", folder,
                           "-o", "json");
  remove_folder();
  size_t row = find(o.out, "cold_over_fio");
  ck_assert(json_is(o.out, json_row(row, "value"), "null"));
  ck_assert(json_is_text(o.out, json_row(row, "failed"),
                         "the folder is in memory: --folder names another"));
  ck_assert(!is_skipped(o.out, find(o.out, "store_over_pwrite")));
}

TEST(no_fio_is_no_failure) {
  make_folder("/tmp");
  setenv("PATH", folder, 1);
  tool_output o = tool_did("bench", "table", "files", SMALL, "--folder", folder,
                           "-o", "json");
  remove_folder();
  size_t row = find(o.out, "cold_over_fio");
  bool passes = !is_skipped(o.out, find(o.out, "cold_load"));
  if (!passes) note_skipped("cold loads", "not on the file system of /tmp");
  ck_assert(is_skipped(o.out, row));
  ck_assert(!passes || json_is_text(o.out, json_row(row, "failed"),
                                    "fio is not installed"));
}

TEST(a_folder_that_is_not_there) {
  tool_output o = tool_ends(1, "bench", "table", "files", SMALL, "--folder",
                            "/nowhere/at/all");
  assert_contains(o.err, "tarn bench table: files: /nowhere/at/all: No such");
}

// --- wrong use -------------------------------------------------------------

TEST(help) {
  tool_output o = tool_done("bench table --help");
  assert_contains(o.out, "usage: tarn bench table ");
  o = tool_done("bench --help");
  assert_contains(o.out, "\n       tarn bench table ");
}

TEST(misuse) {
  assert_misused("bench table fils", "no part is named 'fils'");
  assert_misused("bench table files files", "part 'files' is named twice");
  assert_misused("bench table -n 0", "--ranks wants a whole number");
  assert_misused("bench table --row 6", "--row wants a multiple of 4, not '6'");
  assert_misused("bench table --passes 102", "--passes wants a whole number");
  assert_misused("bench table -o xml", "'xml' is not a format");
}
