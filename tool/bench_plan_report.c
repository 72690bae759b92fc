// The rows of `tarn bench plan`, and what they come to: two tables for people,
// the rows for spreadsheets, one object for programs.
#include "bench_plan_report.h"

#include <math.h>
#include <stdio.h>

#include "kit/json.h"
#include "kit/table.h"
#include "kit/text.h"

static const table_column row_columns[] = {
    {"part", "part", false},
    {"of", "name", false},
    {"buffers", "buffers", true},
    {"bound", "lower_bound", true},
    {"wanted", "wanted", true},
    {"height", "height", true},
    {"x bound", "over_bound", true},
    {"answer", "answer", false},
    {"s", "seconds", true},
    {"within s", "limit", true},
    {"met", "met", false},
    {"MB", "peak_mb", true},
    {"peer s", "peer_seconds", true},
    {"peer MB", "peer_peak_mb", true},
    {"failed", "failed", false},
    {"machine", "machine", false},
};

// The columns above by where they begin.
enum {
  COLUMN_PEER = 12,
  COLUMN_MACHINE = 15,
  COLUMN_COUNT = sizeof row_columns / sizeof *row_columns
};

static const table_column sum_columns[] = {
    {"figure", "name", false}, {"value", "value", true},
    {"unit", "unit", false},   {"goal", "goal", false},
    {"met", "met", false},     {"what", "what", false},
};

// ---------------------------------------------------------------------------
// Cells
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

static bool is_figure_met(const plan_bench_figure *figure) {
  return figure->at_least ? figure->value >= figure->goal
                          : figure->value <= figure->goal;
}

static bool has_verdict(const plan_bench_figure *figure) {
  return !isnan(figure->goal) && !isnan(figure->value);
}

// ---------------------------------------------------------------------------
// Tables
// ---------------------------------------------------------------------------

static void add_height(table *t, const plan_bench_row *row) {
  if (has_plan(row)) {
    table_count(t, plan_bench_height(row));
  } else {
    table_blank(t);
  }
  table_fixed(t, over_bound(row), 4);
}

static void add_row(table *t, const plan_bench_row *row, const char *machine) {
  table_text(t, plan_bench_part_name(row->part));
  table_text(t, row->name);
  table_count(t, row->took.buffers);
  table_count(t, row->took.bound);
  table_count(t, row->took.wanted);
  add_height(t, row);
  table_text(t, row->took.failed[0] != '\0'
                    ? "failed"
                    : tarn_plan_answer_name(plan_bench_answer(row)));
  table_fixed(t, plan_bench_seconds(row), 3);
  table_fixed(t, row->limit, 1);
  table_text(t, plan_bench_is_met(row) ? "yes" : "NO");
  table_fixed(t, row->took.peak / 1e6, 1);
  table_fixed(t, row->peer_seconds, 3);
  table_fixed(t, row->peer_peak / 1e6, 1);
  table_text(t, failure_of(row));
  if (machine != NULL) table_text(t, machine);
}

static void write_rows(const plan_bench_result *r, const char *machine,
                       table_style style) {
  table *t = table_create(row_columns,
                          machine != NULL ? COLUMN_COUNT : COLUMN_MACHINE);
  for (size_t i = 0; i < r->count; i++)
    add_row(t, &r->rows[i], machine);
  table_write(t, style, tool_out());
  table_destroy(t);
}

// Bytes are whole.
static void add_figure(table *t, const plan_bench_figure *figure) {
  char goal[48];
  table_text(t, figure->name);
  table_fixed(t, figure->value, figure->unit[0] == 'b' ? 0 : 3);
  table_text(t, figure->unit);
  snprintf(goal, sizeof goal, "%s %.10g",
           figure->at_least ? ">=" : "<=", figure->goal);
  table_text(t, isnan(figure->goal) ? "" : goal);
  table_text(t, !has_verdict(figure)    ? ""
                : is_figure_met(figure) ? "yes"
                                        : "NO");
  table_text(t, figure->what);
}

// What nobody asked for is left out.
static void write_sums(const plan_bench_result *r, table_style style) {
  table *t =
      table_create(sum_columns, sizeof sum_columns / sizeof *sum_columns);
  for (size_t i = 0; i < PLAN_BENCH_SUMS; i++) {
    if (!isnan(r->sums[i].value)) add_figure(t, &r->sums[i]);
  }
  table_write(t, style, tool_out());
  table_destroy(t);
}

static void write_tables(const plan_bench_result *r, const char *machine,
                         table_style style) {
  fprintf(tool_out(), "%s\n\n", machine);
  write_rows(r, NULL, style);
  fprintf(tool_out(), "\n");
  write_sums(r, style);
}

// ---------------------------------------------------------------------------
// JSON
// ---------------------------------------------------------------------------

static void write_failed(json *out, const char *key, const char *why) {
  json_key(out, key);
  if (why[0] == '\0') {
    json_double(out, NAN);  // null
  } else {
    json_text(out, why);
  }
}

static void write_whole(json *out, const char *key, uint64_t value) {
  json_key(out, key);
  json_uint(out, value);
}

static void write_double(json *out, const char *key, double value) {
  json_key(out, key);
  json_double(out, value);
}

static void write_plan(json *out, const plan_bench_row *row) {
  write_whole(out, "buffers", row->took.buffers);
  write_whole(out, "lower_bound", row->took.bound);
  write_whole(out, "wanted", row->took.wanted);
  write_whole(out, "height", plan_bench_height(row));
  write_double(out, "over_bound", over_bound(row));
  json_key(out, "status");
  json_text(out, tarn_plan_answer_name(plan_bench_answer(row)));
  write_whole(out, "proved", row->took.proved);
  write_whole(out, "nodes", row->took.nodes);
}

static void write_row(json *out, const plan_bench_row *row) {
  json_begin_object(out);
  json_key(out, "part");
  json_text(out, plan_bench_part_name(row->part));
  json_key(out, "name");
  json_text(out, row->name);
  write_plan(out, row);
  write_double(out, "seconds", plan_bench_seconds(row));
  write_double(out, "all_seconds", row->took.seconds);
  write_double(out, "limit", row->limit);
  json_key(out, "met");
  json_bool(out, plan_bench_is_met(row));
  write_double(out, "peak_bytes", row->took.peak);
  write_double(out, "peer_seconds", row->peer_seconds);
  write_double(out, "peer_peak_bytes", row->peer_peak);
  write_failed(out, "peer_failed", row->peer_failed);
  write_failed(out, "failed", row->took.failed);
  json_end_object(out);
}

static void write_figure(json *out, const plan_bench_figure *figure) {
  json_begin_object(out);
  json_key(out, "name");
  json_text(out, figure->name);
  write_double(out, "value", figure->value);
  json_key(out, "unit");
  json_text(out, figure->unit);
  write_double(out, "goal", figure->goal);
  json_key(out, "met");
  if (has_verdict(figure)) {
    json_bool(out, is_figure_met(figure));
  } else {
    json_double(out, NAN);  // null
  }
  json_end_object(out);
}

static void write_json(const plan_bench_result *r, const char *machine) {
  json out = json_to(tool_out());
  json_begin_object(&out);
  json_key(&out, "results");
  json_begin_array(&out);
  for (size_t i = 0; i < r->count; i++)
    write_row(&out, &r->rows[i]);
  json_end_array(&out);
  json_key(&out, "sums");
  json_begin_array(&out);
  for (size_t i = 0; i < PLAN_BENCH_SUMS; i++)
    write_figure(&out, &r->sums[i]);
  json_end_array(&out);
  json_key(&out, "machine");
  json_text(&out, machine);
  json_end_object(&out);
  json_finish(&out);
}

void bench_plan_report(const plan_bench_result *result, const char *machine,
                       options_output output) {
  if (output == OUTPUT_JSON) {
    write_json(result, machine);
  } else if (output == OUTPUT_CSV) {
    write_rows(result, machine, TABLE_CSV);
  } else {
    write_tables(result, machine, table_style_of(output));
  }
}
