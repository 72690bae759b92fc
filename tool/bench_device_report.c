// The figures of `tarn bench device`: a table for each device for people, a row
// for each figure for spreadsheets, one object for programs.
#include "bench_device_report.h"

#include <math.h>
#include <stdio.h>

#include "kit/json.h"
#include "kit/table.h"

// What is shown of a figure; a device has those that |r->is_there|.
typedef struct row {
  device_bench_figure figure;
  const char *device;
  double value;
  device_bench_goal goal;
  const char *failed;
} row;

static row row_of(const device_bench_result *r, size_t index) {
  return (row){.figure = device_bench_figure_at(index),
               .device = r->device,
               .value = r->values[index],
               .goal = device_bench_goal_of(index, r->device),
               .failed = r->failed[index]};
}

static bool has_goal(const row *r) {
  return !isnan(r->goal.value);
}

static bool any_failed(const device_bench_result *r) {
  for (size_t i = 0; i < DEVICE_BENCH_FIGURES; i++) {
    if (r->failed[i][0] != '\0') return true;
  }
  return false;
}

// ---------------------------------------------------------------------------
// Rows
// ---------------------------------------------------------------------------

static const table_column columns[] = {
    {"device", "device", false},   {"figure", "name", false},
    {"value", "value", true},      {"unit", "unit", false},
    {"goal", "goal", false},       {"met", "met", false},
    {"what", "what", false},       {"failed", "failed", false},
    {"machine", "machine", false},
};

// The columns above by where they begin.
enum {
  COLUMN_NAME = 1,
  COLUMN_FAILED = 7,
  COLUMN_MACHINE = 8,
  COLUMN_COUNT = sizeof columns / sizeof columns[0]
};

// "<= 1.2"
static void add_goal(table *t, const row *r) {
  char text[32];
  if (!has_goal(r)) {
    table_blank(t);
    table_blank(t);
    return;
  }
  snprintf(text, sizeof text, "%s %g",
           r->goal.is_least ? ">=" : "<=", r->goal.value);
  table_text(t, text);
  if (isnan(r->value)) {
    table_blank(t);  // not measured is not missed
  } else {
    table_text(t, device_bench_is_met(r->goal, r->value) ? "yes" : "NO");
  }
}

static void add_figure(table *t, const row *r) {
  table_text(t, r->figure.name);
  table_fixed(t, r->value, 3);
  table_text(t, r->figure.unit);
  add_goal(t, r);
  table_text(t, r->figure.what);
}

// ---------------------------------------------------------------------------
// Table and Markdown
// ---------------------------------------------------------------------------

// The column for failures is left out if there are none.
static void write_one(const device_bench_result *r, table_style style) {
  bool failures = any_failed(r);
  size_t end = failures ? COLUMN_MACHINE : COLUMN_FAILED;
  table *t = table_create(&columns[COLUMN_NAME], end - COLUMN_NAME);
  for (size_t i = 0; i < DEVICE_BENCH_FIGURES; i++) {
    row one = row_of(r, i);
    if (!r->is_there[i]) continue;
    add_figure(t, &one);
    if (failures) table_text(t, one.failed);
  }
  fprintf(tool_out(), "\n%s%s\n\n", style == TABLE_MARKDOWN ? "### " : "",
          r->device);
  table_write(t, style, tool_out());
  table_destroy(t);
}

static void write_tables(const device_bench_result *results, size_t count,
                         const char *machine, table_style style) {
  fprintf(tool_out(), "%s\n", machine);
  for (size_t i = 0; i < count; i++)
    write_one(&results[i], style);
}

// ---------------------------------------------------------------------------
// CSV and JSON
// ---------------------------------------------------------------------------

static void write_csv(const device_bench_result *results, size_t count,
                      const char *machine) {
  table *t = table_create(columns, COLUMN_COUNT);
  for (size_t i = 0; i < count * DEVICE_BENCH_FIGURES; i++) {
    const device_bench_result *r = &results[i / DEVICE_BENCH_FIGURES];
    row one = row_of(r, i % DEVICE_BENCH_FIGURES);
    if (!r->is_there[i % DEVICE_BENCH_FIGURES]) continue;
    table_text(t, one.device);
    add_figure(t, &one);
    table_text(t, one.failed);
    table_text(t, machine);
  }
  table_write(t, TABLE_CSV, tool_out());
  table_destroy(t);
}

static void write_met(json *out, const row *r) {
  json_key(out, "met");
  if (!has_goal(r) || isnan(r->value)) {
    json_double(out, NAN);  // null
  } else {
    json_bool(out, device_bench_is_met(r->goal, r->value));
  }
}

static void write_failed(json *out, const row *r) {
  json_key(out, "failed");
  if (*r->failed == '\0') {
    json_double(out, NAN);  // null
  } else {
    json_text(out, r->failed);
  }
}

static void write_row(json *out, const row *r) {
  json_begin_object(out);
  json_key(out, "name");
  json_text(out, r->figure.name);
  json_key(out, "device");
  json_text(out, r->device);
  json_key(out, "value");
  json_double(out, r->value);
  json_key(out, "unit");
  json_text(out, r->figure.unit);
  json_key(out, "goal");
  json_double(out, r->goal.value);
  write_met(out, r);
  write_failed(out, r);
  json_end_object(out);
}

static void write_rows(json *out, const device_bench_result *r) {
  for (size_t i = 0; i < DEVICE_BENCH_FIGURES; i++) {
    row one = row_of(r, i);
    if (r->is_there[i]) write_row(out, &one);
  }
}

static void write_json(const device_bench_result *results, size_t count,
                       const char *machine) {
  json out = json_to(tool_out());
  json_begin_object(&out);
  json_key(&out, "results");
  json_begin_array(&out);
  for (size_t i = 0; i < count; i++)
    write_rows(&out, &results[i]);
  json_end_array(&out);
  json_key(&out, "machine");
  json_text(&out, machine);
  json_end_object(&out);
  json_finish(&out);
}

// ---------------------------------------------------------------------------
// All of them
// ---------------------------------------------------------------------------

void bench_device_report_write(const device_bench_result *results, size_t count,
                               const char *machine, options_output output) {
  if (output == OUTPUT_JSON) {
    write_json(results, count, machine);
  } else if (output == OUTPUT_CSV) {
    write_csv(results, count, machine);
  } else {
    write_tables(results, count, machine, table_style_of(output));
  }
}
