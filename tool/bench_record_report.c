// The figures of `tarn bench record`: a table for people, a row for each
// figure for spreadsheets, one object for programs.
#include "bench_record_report.h"

#include <math.h>
#include <stdio.h>

#include "kit/json.h"
#include "kit/table.h"

static const table_column columns[] = {
    {"figure", "name", false},   {"value", "value", true},
    {"unit", "unit", false},     {"goal", "goal", false},
    {"met", "met", false},       {"what", "what", false},
    {"failed", "failed", false}, {"machine", "machine", false},
};

// The columns above by where they begin.
enum {
  COLUMN_FAILED = 6,
  COLUMN_MACHINE = 7,
  COLUMN_COUNT = sizeof columns / sizeof columns[0]
};

// ---------------------------------------------------------------------------
// Tables
// ---------------------------------------------------------------------------

// What was not measured is not missed.
static void add_goal(table *t, double goal, double value) {
  char text[32];
  if (isnan(goal)) {
    table_blank(t);
    table_blank(t);
    return;
  }
  snprintf(text, sizeof text, "<= %g", goal);
  table_text(t, text);
  if (isnan(value)) {
    table_blank(t);
  } else {
    table_text(t, value <= goal ? "yes" : "NO");
  }
}

static void add_figure(table *t, const record_bench_result *r, size_t index) {
  record_bench_figure figure = record_bench_figure_at(index);
  table_text(t, figure.name);
  table_fixed(t, r->values[index], 3);
  table_text(t, figure.unit);
  add_goal(t, figure.goal, r->values[index]);
  table_text(t, figure.what);
}

// The column for failures is left out if there are none.
static void write_table(const record_bench_result *r, const char *machine,
                        table_style style) {
  bool failed = r->failed[0] != '\0';
  table *t = table_create(columns, failed ? COLUMN_MACHINE : COLUMN_FAILED);
  for (size_t i = 0; i < RECORD_BENCH_FIGURES; i++) {
    add_figure(t, r, i);
    if (failed) table_text(t, isnan(r->values[i]) ? r->failed : "");
  }
  fprintf(tool_out(), "%s\n\n", machine);
  table_write(t, style, tool_out());
  table_destroy(t);
}

static void write_csv(const record_bench_result *r, const char *machine) {
  table *t = table_create(columns, COLUMN_COUNT);
  for (size_t i = 0; i < RECORD_BENCH_FIGURES; i++) {
    add_figure(t, r, i);
    table_text(t, isnan(r->values[i]) ? r->failed : "");
    table_text(t, machine);
  }
  table_write(t, TABLE_CSV, tool_out());
  table_destroy(t);
}

// ---------------------------------------------------------------------------
// JSON
// ---------------------------------------------------------------------------

static void write_met(json *out, double goal, double value) {
  json_key(out, "met");
  if (isnan(goal) || isnan(value)) {
    json_double(out, NAN);  // null
  } else {
    json_bool(out, value <= goal);
  }
}

static void write_failed(json *out, const record_bench_result *r,
                         double value) {
  json_key(out, "failed");
  if (isnan(value)) {
    json_text(out, r->failed);
  } else {
    json_double(out, NAN);  // null
  }
}

static void write_row(json *out, const record_bench_result *r, size_t index) {
  record_bench_figure figure = record_bench_figure_at(index);
  json_begin_object(out);
  json_key(out, "name");
  json_text(out, figure.name);
  json_key(out, "value");
  json_double(out, r->values[index]);
  json_key(out, "unit");
  json_text(out, figure.unit);
  json_key(out, "goal");
  json_double(out, figure.goal);
  write_met(out, figure.goal, r->values[index]);
  write_failed(out, r, r->values[index]);
  json_end_object(out);
}

static void write_json(const record_bench_result *r, const char *machine) {
  json out = json_to(tool_out());
  json_begin_object(&out);
  json_key(&out, "results");
  json_begin_array(&out);
  for (size_t i = 0; i < RECORD_BENCH_FIGURES; i++)
    write_row(&out, r, i);
  json_end_array(&out);
  json_key(&out, "machine");
  json_text(&out, machine);
  json_end_object(&out);
  json_finish(&out);
}

void bench_record_report_write(const record_bench_result *result,
                               const char *machine, options_output output) {
  if (output == OUTPUT_JSON) {
    write_json(result, machine);
  } else if (output == OUTPUT_CSV) {
    write_csv(result, machine);
  } else {
    write_table(result, machine, table_style_of(output));
  }
}
