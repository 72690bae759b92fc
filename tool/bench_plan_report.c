// The rows of `tarn bench plan`, and their sums: two tables for people, the
// rows for spreadsheets, one object for programs.
#include "bench_plan_report.h"

#include <math.h>
#include <stdio.h>

#include "bench/figure.h"

static const unsigned not_json = SHEET_PEOPLE | SHEET_CSV;

// ---------------------------------------------------------------------------
// A row
// ---------------------------------------------------------------------------

static bool has_plan(const plan_bench_row *row) {
  return plan_bench_height(row) != 0;
}

static double over_bound(const plan_bench_row *row) {
  if (!has_plan(row)) return NAN;
  return (double)plan_bench_height(row) / (double)row->took.bound;
}

static const char *failure_of(const plan_bench_row *row) {
  return row->took.failed[0] != '\0' ? row->took.failed : row->peer_failed;
}

static void write_plan(sheet *s, const plan_bench_row *row) {
  const char *answer = tarn_plan_answer_name(plan_bench_answer(row));
  bool has_failed = row->took.failed[0] != '\0';
  sheet_uint(s, "buffers", "buffers", row->took.buffers, SHEET_COUNT);
  sheet_uint(s, "bound", "lower_bound", row->took.bound, SHEET_COUNT);
  sheet_uint(s, "wanted", "wanted", row->took.wanted, SHEET_COUNT);
  sheet_uint(s, "height", "height", plan_bench_height(row),
             has_plan(row) ? SHEET_COUNT : SHEET_UNKNOWN);
  sheet_number(s, "x bound", "over_bound", over_bound(row), 4);
  sheet_only(s, not_json);
  sheet_text(s, "answer", "answer", has_failed ? "failed" : answer);
  sheet_only(s, SHEET_JSON);
  sheet_text(s, NULL, "status", answer);
  sheet_uint(s, NULL, "proved", row->took.proved, SHEET_COUNT);
  sheet_uint(s, NULL, "nodes", row->took.nodes, SHEET_COUNT);
  sheet_number(s, NULL, "all_seconds", row->took.seconds, 3);
  sheet_number(s, NULL, "peak_bytes", row->took.peak, 0);
  sheet_number(s, NULL, "peer_peak_bytes", row->peer_peak, 0);
  sheet_failed(s, "peer_failed", row->peer_failed);
  sheet_failed(s, "failed", row->took.failed);
  sheet_only(s, SHEET_ALL);
}

static void write_row(sheet *s, const plan_bench_row *row) {
  sheet_text(s, "part", "part", plan_bench_part_name(row->part));
  sheet_text(s, "of", "name", row->name);
  write_plan(s, row);
  sheet_number(s, "s", "seconds", plan_bench_seconds(row), 3);
  sheet_number(s, "within s", "limit", row->limit, 1);
  sheet_met(s, plan_bench_is_met(row));
  sheet_only(s, not_json);
  sheet_number(s, "MB", "peak_mb", row->took.peak / 1e6, 1);
  sheet_only(s, SHEET_ALL);
  sheet_number(s, "peer s", "peer_seconds", row->peer_seconds, 3);
  sheet_only(s, not_json);
  sheet_number(s, "peer MB", "peer_peak_mb", row->peer_peak / 1e6, 1);
  sheet_failed(s, "failed", failure_of(row));
  sheet_row_end(s);
}

// ---------------------------------------------------------------------------
// All
// ---------------------------------------------------------------------------

// A sum that was not measured is left out for people.
void bench_plan_report(const plan_bench_result *result, options_output output) {
  sheet *s = bench_sheet_begin(output);
  sheet_list(s, "results");
  for (size_t i = 0; i < result->count; i++)
    write_row(s, &result->rows[i]);
  sheet_list(s, "sums");
  for (size_t i = 0; i < PLAN_BENCH_SUMS; i++) {
    const plan_bench_figure *sum = &result->sums[i];
    if (output != OUTPUT_JSON && isnan(sum->value)) continue;
    bench_figure_write(s, &sum->shown, NULL, sum->value, NULL);
  }
  sheet_end(s);
}
