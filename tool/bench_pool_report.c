// The figures of `tarn bench pool`: a table for each workload for people, a row
// for each figure's owner for spreadsheets, one object for programs.
#include "bench_pool_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/figure.h"
#include "kit/sheet.h"
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

// The time of the row |name| in the pass |which| over the time of this row. If
// that is less than the variation of steady passes, which can make it 0 or
// negative after the touching is subtracted, the variation is used: the figure
// is then "at least". NaN if there is no such row.
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

// ---------------------------------------------------------------------------
// Rows
// ---------------------------------------------------------------------------

static void write_iterations(sheet *s, const pool_bench_result *result) {
  static const char *const titles[][2] = {{"1st ms", "first_ms"},
                                          {"2nd ms", "second_ms"},
                                          {"steady ms", "steady_ms"}};
  sheet_only(s, SHEET_PEOPLE | SHEET_CSV);
  for (size_t i = 0; i < 3; i++)
    sheet_time(s, titles[i][0], titles[i][1], result->iteration_ms[i], 4);
  sheet_only(s, SHEET_ALL);
  sheet_numbers(s, "iteration_ms", result->iteration_ms, 3);
}

void bench_pool_report_scene(sheet *s, const bench_pool_report *r) {
  sheet_uint(s, NULL, "seeds", r->seeds, SHEET_COUNT);
  sheet_uint(s, NULL, "threads", r->threads, SHEET_COUNT);
  sheet_bool(s, NULL, "spread", r->spread);
  sheet_uint(s, NULL, "hogs", r->hogs, SHEET_COUNT);
  sheet_bool(s, NULL, "touched", r->touched);
}

static void write_row(sheet *s, const bench_pool_report *r, size_t index) {
  const pool_bench_result *result = &r->results[index];
  sheet_only(s, SHEET_CSV);
  sheet_text(s, NULL, "workload", r->name);
  bench_pool_report_scene(s, r);
  sheet_only(s, SHEET_ALL);
  sheet_text(s, "pool", "name", r->names[index]);
  sheet_time(s, "alloc ns", "alloc_ns_median", result->alloc_ns_median, 1);
  sheet_time(s, "free ns", "free_ns_median", result->free_ns_median, 1);
  sheet_time(s, "both ns", "pair_ns", result->pair_ns, 1);
  sheet_number(s, "x free_list", "over_free_list", over_free_list(r, index), 2);
  sheet_time(s, "by address", "by_address_ns_median",
             result->by_address_ns_median, 1);
  sheet_time(s, "alloc p99", "alloc_ns_p99", result->alloc_ns_p99, 1);
  write_iterations(s, result);
  sheet_number(s, "Mops", "mops", result->mops, 2);
  sheet_number(s, "over live", "reserved_over_live", result->reserved_over_live,
               2);
  sheet_number(s, "varies ms", "varies_ms", result->varies_ms, 4);
  sheet_number(s, "no_pool / 2nd", "no_pool_over_second",
               no_pool_over_second(r, index), 1);
  sheet_number(s, "glibc / steady", "glibc_over_steady",
               glibc_over_steady(r, index), 1);
  sheet_failed(s, "failed", result->failed);
  sheet_row_end(s);
}

// ---------------------------------------------------------------------------
// Workloads
// ---------------------------------------------------------------------------

void bench_pool_report_title(sheet *s, const bench_pool_report *r) {
  char text[REPORT_TEXT_SIZE];
  char title[2 * REPORT_TEXT_SIZE + 192];
  char draws[32] = "";
  char hogs[48] = "";
  report_describe(r->trace, text, sizeof text);
  if (r->seeds > 1) snprintf(draws, sizeof draws, ", %zu draws", r->seeds);
  if (r->hogs > 0) snprintf(hogs, sizeof hogs, " beside %zu hogs", r->hogs);
  snprintf(title, sizeof title, "%.256s%s, %zu thread%s%s%s, %s\n%s%s", r->name,
           draws, r->threads, r->threads == 1 ? "" : "s",
           r->spread ? " spread" : "", hogs,
           r->touched ? "touched" : "untouched",
           r->seeds > 1 ? "the draw with the highest peak: " : "", text);
  sheet_group(s, title);
}

static void write_workload(sheet *s, const bench_pool_report *r) {
  bench_pool_report_title(s, r);
  sheet_only(s, SHEET_JSON);
  sheet_text(s, NULL, "name", r->name);
  bench_pool_report_scene(s, r);
  sheet_nest(s, "results");
  for (size_t i = 0; i < r->result_count; i++)
    write_row(s, r, i);
  sheet_unnest(s);
}

void bench_pool_report_write(const bench_pool_report *reports, size_t count,
                             options_output output) {
  sheet *s = bench_sheet_begin(output);
  sheet_list(s, "workloads");
  for (size_t i = 0; i < count; i++)
    write_workload(s, &reports[i]);
  sheet_end(s);
}
