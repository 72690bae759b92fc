// The figures of `tarn bench synced`: one table for people and spreadsheets, an
// object for each figure for programs.
#include "bench_synced_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kit/json.h"
#include "kit/table.h"

static const table_column columns[] = {
    {"figure", "name", false}, {"device", "device", false},
    {"value", "value", true},  {"unit", "unit", false},
    {"goal", "goal", false},   {"met", "met", false},
    {"what", "what", false},   {"machine", "machine", false},
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

// What is counted is whole.
static int decimals_of(const synced_bench_figure *figure) {
  bool is_counted =
      strcmp(figure->unit, "copies") == 0 || strcmp(figure->unit, "bytes") == 0;
  return is_counted ? 0 : 3;
}

// "<= 1.8", "= 4"
static void add_goal(table *t, const synced_bench_figure *figure,
                     double value) {
  char text[32];
  snprintf(text, sizeof text, "%s %g",
           figure->is_exact ? "=" : "<=", figure->goal);
  table_text(t, text);
  if (isnan(value)) {
    table_blank(t);  // not measured is not missed
  } else {
    table_text(t, synced_bench_is_met(figure, value) ? "yes" : "NO");
  }
}

static void add_row(table *t, const synced_bench_result *r, size_t index) {
  synced_bench_figure figure = synced_bench_figure_at(index);
  table_text(t, figure.name);
  table_text(t, r->device);
  table_fixed(t, r->values[index], decimals_of(&figure));
  table_text(t, figure.unit);
  add_goal(t, &figure, r->values[index]);
  table_text(t, figure.what);
}

static void write_table(const synced_bench_result *results, size_t count,
                        const char *machine, table_style style) {
  bool with_machine = style == TABLE_CSV;
  table *t = table_create(columns, with_machine ? COLUMNS : COLUMNS - 1);
  for (size_t i = 0; i < count * SYNCED_BENCH_FIGURES; i++) {
    const synced_bench_result *r = &results[i / SYNCED_BENCH_FIGURES];
    if (!r->is_there[i % SYNCED_BENCH_FIGURES]) continue;
    add_row(t, r, i % SYNCED_BENCH_FIGURES);
    if (with_machine) table_text(t, machine);
  }
  if (!with_machine) fprintf(tool_out(), "%s\n\n", machine);
  table_write(t, style, tool_out());
  table_destroy(t);
}

static void write_row(json *out, const synced_bench_result *r, size_t index) {
  synced_bench_figure figure = synced_bench_figure_at(index);
  json_begin_object(out);
  json_key(out, "name");
  json_text(out, figure.name);
  json_key(out, "device");
  json_text(out, r->device);
  json_key(out, "value");
  json_double(out, r->values[index]);
  json_key(out, "unit");
  json_text(out, figure.unit);
  json_key(out, "goal");
  json_double(out, figure.goal);
  json_end_object(out);
}

static void write_json(const synced_bench_result *results, size_t count) {
  json out = json_to(tool_out());
  json_begin_object(&out);
  json_key(&out, "results");
  json_begin_array(&out);
  for (size_t i = 0; i < count * SYNCED_BENCH_FIGURES; i++) {
    const synced_bench_result *r = &results[i / SYNCED_BENCH_FIGURES];
    size_t index = i % SYNCED_BENCH_FIGURES;
    if (r->is_there[index]) write_row(&out, r, index);
  }
  json_end_array(&out);
  json_end_object(&out);
  json_finish(&out);
}

void bench_synced_report_write(const synced_bench_result *results, size_t count,
                               const char *machine, options_output output) {
  if (output == OUTPUT_JSON) {
    write_json(results, count);
  } else {
    write_table(results, count, machine, table_style_of(output));
  }
}
