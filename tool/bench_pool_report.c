// The figures of `tarn bench pool`: a table for each workload for people, a row
// for each figure's owner for spreadsheets, one object for programs.
#include "bench_pool_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kit/json.h"
#include "kit/table.h"
#include "report.h"

// pair_ns over that of the bare free list of the same run; NaN if that has
// none, and where blocks are touched: it does not take any of that time.
static double over_free_list(const bench_pool_report *r, size_t index) {
  if (r->touched) return NAN;
  for (size_t i = 0; i < r->result_count; i++) {
    if (strcmp(r->names[i], "free_list") != 0) continue;
    return r->results[index].pair_ns / r->results[i].pair_ns;
  }
  return NAN;
}

// What the row |name| takes in the pass |which| over what this row takes. Where
// that is less than steady passes vary, which after the touching is taken off
// can be 0 or below, it is that variation: the figure is one of "at least". NaN
// if there is no such row.
static double over_this(const bench_pool_report *r, size_t index,
                        const char *name, int which) {
  const pool_bench_result *own = &r->results[index];
  double ms = own->iteration_ms[which];
  if (ms < own->varies_ms) ms = own->varies_ms;
  for (size_t i = 0; i < r->result_count && ms > 0; i++) {
    if (strcmp(r->names[i], name) != 0) continue;
    return r->results[i].iteration_ms[which] / ms;
  }
  return NAN;
}

static double no_pool_over_second(const bench_pool_report *r, size_t index) {
  return over_this(r, index, "no_pool", POOL_BENCH_SECOND);
}

static double glibc_over_steady(const bench_pool_report *r, size_t index) {
  return over_this(r, index, "glibc", POOL_BENCH_STEADY);
}

static bool any_failed(const bench_pool_report *r) {
  for (size_t i = 0; i < r->result_count; i++) {
    if (r->results[i].failed[0] != '\0') return true;
  }
  return false;
}

// ---------------------------------------------------------------------------
// Rows
// ---------------------------------------------------------------------------

static const table_column columns[] = {
    {"workload", "workload", false},
    {"threads", "threads", true},
    {"touched", "touched", false},
    {"pool", "name", false},
    {"alloc ns", "alloc_ns_median", true},
    {"free ns", "free_ns_median", true},
    {"both ns", "pair_ns", true},
    {"x free_list", "over_free_list", true},
    {"by address", "by_address_ns_median", true},
    {"alloc p99", "alloc_ns_p99", true},
    {"1st ms", "first_ms", true},
    {"2nd ms", "second_ms", true},
    {"steady ms", "steady_ms", true},
    {"Mops", "mops", true},
    {"over live", "reserved_over_live", true},
    {"varies ms", "varies_ms", true},
    {"no_pool / 2nd", "no_pool_over_second", true},
    {"glibc / steady", "glibc_over_steady", true},
    {"failed", "failed", false},
    {"machine", "machine", false},
};

// The columns above by where they begin.
enum {
  COLUMN_NAME = 3,
  COLUMN_FAILED = 18,
  COLUMN_MACHINE = 19,
  COLUMN_COUNT = sizeof columns / sizeof columns[0]
};

static void add_figures(table *t, const bench_pool_report *r, size_t index) {
  const pool_bench_result *result = &r->results[index];
  table_text(t, r->names[index]);
  table_fixed(t, result->alloc_ns_median, 1);
  table_fixed(t, result->free_ns_median, 1);
  table_fixed(t, result->pair_ns, 1);
  table_fixed(t, over_free_list(r, index), 2);
  table_fixed(t, result->by_address_ns_median, 1);
  table_fixed(t, result->alloc_ns_p99, 1);
  for (size_t i = 0; i < 3; i++)
    table_fixed(t, result->iteration_ms[i], 4);
  table_fixed(t, result->mops, 2);
  table_fixed(t, result->reserved_over_live, 2);
  table_fixed(t, result->varies_ms, 4);
  table_fixed(t, no_pool_over_second(r, index), 1);
  table_fixed(t, glibc_over_steady(r, index), 1);
}

// ---------------------------------------------------------------------------
// Table and Markdown
// ---------------------------------------------------------------------------

static void write_title(const bench_pool_report *r, table_style style) {
  char text[REPORT_TEXT_SIZE];
  report_describe(r->trace, text, sizeof text);
  fprintf(tool_out(), "\n%s%s, %zu thread%s, %s\n%s\n\n",
          style == TABLE_MARKDOWN ? "### " : "", r->trace->name, r->threads,
          r->threads == 1 ? "" : "s", r->touched ? "touched" : "untouched",
          text);
}

// The column for failures is left out if there are none.
static void write_one(const bench_pool_report *r, table_style style) {
  bool failures = any_failed(r);
  size_t end = failures ? COLUMN_MACHINE : COLUMN_FAILED;
  table *t = table_create(&columns[COLUMN_NAME], end - COLUMN_NAME);
  for (size_t i = 0; i < r->result_count; i++) {
    add_figures(t, r, i);
    if (failures) table_text(t, r->results[i].failed);
  }
  write_title(r, style);
  table_write(t, style, tool_out());
  table_destroy(t);
}

static void write_tables(const bench_pool_report *reports, size_t count,
                         const char *machine, table_style style) {
  fprintf(tool_out(), "%s\n", machine);
  for (size_t i = 0; i < count; i++)
    write_one(&reports[i], style);
}

// ---------------------------------------------------------------------------
// CSV
// ---------------------------------------------------------------------------

static void add_row(table *t, const bench_pool_report *r, size_t index,
                    const char *machine) {
  table_text(t, r->trace->name);
  table_count(t, r->threads);
  table_text(t, r->touched ? "true" : "false");
  add_figures(t, r, index);
  table_text(t, r->results[index].failed);
  table_text(t, machine);
}

static void write_csv(const bench_pool_report *reports, size_t count,
                      const char *machine) {
  table *t = table_create(columns, COLUMN_COUNT);
  for (size_t i = 0; i < count; i++) {
    for (size_t k = 0; k < reports[i].result_count; k++) {
      add_row(t, &reports[i], k, machine);
    }
  }
  table_write(t, TABLE_CSV, tool_out());
  table_destroy(t);
}

// ---------------------------------------------------------------------------
// JSON
// ---------------------------------------------------------------------------

static void write_figure(json *out, const char *key, double value) {
  json_key(out, key);
  json_double(out, value);
}

static void write_iterations(json *out, const pool_bench_result *result) {
  json_key(out, "iteration_ms");
  json_begin_array(out);
  for (size_t i = 0; i < 3; i++)
    json_double(out, result->iteration_ms[i]);
  json_end_array(out);
}

static void write_failed(json *out, const char *failed) {
  json_key(out, "failed");
  if (*failed == '\0') {
    json_double(out, NAN);  // null
  } else {
    json_text(out, failed);
  }
}

static void write_result(json *out, const bench_pool_report *r, size_t index) {
  const pool_bench_result *result = &r->results[index];
  json_begin_object(out);
  json_key(out, "name");
  json_text(out, r->names[index]);
  write_figure(out, "alloc_ns_median", result->alloc_ns_median);
  write_figure(out, "free_ns_median", result->free_ns_median);
  write_figure(out, "alloc_ns_p99", result->alloc_ns_p99);
  write_figure(out, "by_address_ns_median", result->by_address_ns_median);
  write_iterations(out, result);
  write_figure(out, "mops", result->mops);
  write_figure(out, "reserved_over_live", result->reserved_over_live);
  write_failed(out, result->failed);
  write_figure(out, "pair_ns", result->pair_ns);
  write_figure(out, "over_free_list", over_free_list(r, index));
  write_figure(out, "varies_ms", result->varies_ms);
  write_figure(out, "no_pool_over_second", no_pool_over_second(r, index));
  write_figure(out, "glibc_over_steady", glibc_over_steady(r, index));
  json_end_object(out);
}

static void write_workload(json *out, const bench_pool_report *r) {
  json_begin_object(out);
  json_key(out, "name");
  json_text(out, r->trace->name);
  json_key(out, "threads");
  json_uint(out, r->threads);
  json_key(out, "touched");
  json_bool(out, r->touched);
  json_key(out, "results");
  json_begin_array(out);
  for (size_t i = 0; i < r->result_count; i++)
    write_result(out, r, i);
  json_end_array(out);
  json_end_object(out);
}

static void write_json(const bench_pool_report *reports, size_t count,
                       const char *machine) {
  json out = json_to(tool_out());
  json_begin_object(&out);
  json_key(&out, "workloads");
  json_begin_array(&out);
  for (size_t i = 0; i < count; i++)
    write_workload(&out, &reports[i]);
  json_end_array(&out);
  json_key(&out, "machine");
  json_text(&out, machine);
  json_end_object(&out);
  json_finish(&out);
}

// ---------------------------------------------------------------------------
// All of them
// ---------------------------------------------------------------------------

void bench_pool_report_write(const bench_pool_report *reports, size_t count,
                             const char *machine, options_output output) {
  if (output == OUTPUT_JSON) {
    write_json(reports, count, machine);
  } else if (output == OUTPUT_CSV) {
    write_csv(reports, count, machine);
  } else {
    write_tables(reports, count, machine, table_style_of(output));
  }
}
