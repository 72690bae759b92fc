// Curves: time and memory against slack, a row for each point.
#include "bench_slack_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/figure.h"
#include "kit/sheet.h"
#include "report.h"

static size_t rows_of_pool(const options_list *slacks) {
  return 1 + slacks->count;
}

// The option as it was given: what it may be only the strategy knows.
static void add_name(options_list *out, const char *pool, const char *slack) {
  const char *gap = strchr(pool, ':') == NULL ? ":" : ",";
  size_t size = strlen(pool) + strlen(slack) + sizeof ":slack=";
  char *name = tool_array(size, 1);
  snprintf(name, size, "%s%sslack=%s", pool, gap, slack);
  options_list_add(out, name, strlen(name));
  free(name);
}

void bench_slack_names(const options_list *pools, const options_list *slacks,
                       options_list *out) {
  for (size_t i = 0; i < pools->count; i++) {
    options_list_add(out, pools->items[i], strlen(pools->items[i]));
    for (size_t k = 0; k < slacks->count; k++)
      add_name(out, pools->items[i], slacks->items[k]);
  }
}

// ---------------------------------------------------------------------------
// Rows
// ---------------------------------------------------------------------------

static void write_row(sheet *s, const bench_slack_report *r,
                      const bench_pool_report *of, size_t index) {
  size_t rows = rows_of_pool(r->slacks);
  size_t pool = index / rows, point = index % rows;
  const pool_bench_result *own = &of->results[index];
  const pool_bench_result *usual = &of->results[pool * rows];
  sheet_only(s, SHEET_CSV);
  sheet_text(s, NULL, "workload", of->name);
  bench_pool_report_scene(s, of);
  sheet_only(s, SHEET_ALL);
  sheet_text(s, "pool", "pool", r->pools->items[pool]);
  sheet_figure(s, "slack", "slack",
               point == 0 ? "default" : r->slacks->items[point - 1]);
  sheet_time(s, "both ns", "pair_ns", own->pair_ns, 1);
  sheet_number(s, "x default", "over_default", own->pair_ns / usual->pair_ns,
               2);
  sheet_number(s, "over live", "reserved_over_live", own->reserved_over_live,
               3);
  sheet_time(s, "1st ms", "first_ms", own->iteration_ms[POOL_BENCH_FIRST], 4);
  sheet_time(s, "2nd ms", "second_ms", own->iteration_ms[POOL_BENCH_SECOND], 4);
  sheet_time(s, "steady ms", "steady_ms", own->iteration_ms[POOL_BENCH_STEADY],
             4);
  sheet_number(s, "Mops", "mops", own->mops, 2);
  sheet_failed(s, "failed", own->failed);
  sheet_row_end(s);
}

static void write_workload(sheet *s, const bench_slack_report *r,
                           const bench_pool_report *of) {
  bench_pool_report_title(s, of);
  sheet_only(s, SHEET_JSON);
  sheet_text(s, NULL, "name", of->name);
  bench_pool_report_scene(s, of);
  sheet_uint(s, NULL, "live_peak_bytes", of->trace->live_peak_bytes,
             SHEET_BYTES);
  sheet_nest(s, "points");
  for (size_t i = 0; i < of->result_count; i++)
    write_row(s, r, of, i);
  sheet_unnest(s);
}

void bench_slack_report_write(const bench_slack_report *r,
                              options_output output) {
  sheet *s = bench_sheet_begin(output);
  sheet_list(s, "workloads");
  for (size_t i = 0; i < r->count; i++)
    write_workload(s, r, &r->reports[i]);
  sheet_end(s);
}
