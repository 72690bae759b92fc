// The figures of `tarn bench counters`: a table for each pool for people, a row
// for each figure for spreadsheets, one object for programs.
#include "bench_counters_report.h"

#include <math.h>
#include <stdio.h>

#include "kit/json.h"
#include "kit/table.h"

static const table_column columns[] = {
    {"pool", "pool", false},
    {"counting", "name", false},
    {"both ns", "ns", true},
    {"more", "more_ns", true},
    {"by address", "by_address_ns", true},
    {"more", "by_address_more_ns", true},
    {"what", "what", false},
    {"failed", "failed", false},
    {"machine", "machine", false},
};

// The columns above by where they begin.
enum {
  COLUMN_NAME = 1,
  COLUMN_FAILED = 7,
  COLUMN_MACHINE = 8,
  COLUMN_COUNT = sizeof columns / sizeof columns[0]
};

// ---------------------------------------------------------------------------
// Tables
// ---------------------------------------------------------------------------

static void add_row(table *t, const counters_bench_result *r, size_t index) {
  counters_bench_row row = counters_bench_row_at(index);
  const counters_bench_figures *f = &r->rows[index];
  table_text(t, row.name);
  table_fixed(t, f->by_handle, 1);
  table_fixed(t, f->more_by_handle, 1);
  table_fixed(t, f->by_address, 1);
  table_fixed(t, f->more_by_address, 1);
  table_text(t, row.what);
}

// The column for failures is left out if there are none.
static void write_one(const counters_bench_result *r, const char *pool,
                      table_style style) {
  bool failed = r->failed[0] != '\0';
  size_t end = failed ? COLUMN_MACHINE : COLUMN_FAILED;
  table *t = table_create(&columns[COLUMN_NAME], end - COLUMN_NAME);
  for (size_t i = 0; i < COUNTERS_BENCH_ROWS; i++) {
    add_row(t, r, i);
    if (failed) table_text(t, r->failed);
  }
  fprintf(tool_out(), "\n%s%s\n\n", style == TABLE_MARKDOWN ? "### " : "",
          pool);
  table_write(t, style, tool_out());
  table_destroy(t);
}

static void write_tables(const counters_bench_result *results,
                         const options_list *pools, const char *machine,
                         table_style style) {
  fprintf(tool_out(), "%s\n", machine);
  for (size_t i = 0; i < pools->count; i++)
    write_one(&results[i], pools->items[i], style);
}

static void write_csv(const counters_bench_result *results,
                      const options_list *pools, const char *machine) {
  table *t = table_create(columns, COLUMN_COUNT);
  for (size_t i = 0; i < pools->count * COUNTERS_BENCH_ROWS; i++) {
    size_t pool = i / COUNTERS_BENCH_ROWS;
    table_text(t, pools->items[pool]);
    add_row(t, &results[pool], i % COUNTERS_BENCH_ROWS);
    table_text(t, results[pool].failed);
    table_text(t, machine);
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

static void write_failed(json *out, const char *failed) {
  json_key(out, "failed");
  if (*failed == '\0') {
    json_double(out, NAN);  // null
  } else {
    json_text(out, failed);
  }
}

static void write_row(json *out, const counters_bench_result *r,
                      const char *pool, size_t index) {
  const counters_bench_figures *f = &r->rows[index];
  json_begin_object(out);
  json_key(out, "pool");
  json_text(out, pool);
  json_key(out, "name");
  json_text(out, counters_bench_row_at(index).name);
  write_figure(out, "ns", f->by_handle);
  write_figure(out, "more_ns", f->more_by_handle);
  write_figure(out, "by_address_ns", f->by_address);
  write_figure(out, "by_address_more_ns", f->more_by_address);
  write_failed(out, r->failed);
  json_end_object(out);
}

static void write_json(const counters_bench_result *results,
                       const options_list *pools, const char *machine) {
  json out = json_to(tool_out());
  json_begin_object(&out);
  json_key(&out, "results");
  json_begin_array(&out);
  for (size_t i = 0; i < pools->count * COUNTERS_BENCH_ROWS; i++) {
    size_t pool = i / COUNTERS_BENCH_ROWS;
    write_row(&out, &results[pool], pools->items[pool],
              i % COUNTERS_BENCH_ROWS);
  }
  json_end_array(&out);
  json_key(&out, "machine");
  json_text(&out, machine);
  json_end_object(&out);
  json_finish(&out);
}

// ---------------------------------------------------------------------------
// All of them
// ---------------------------------------------------------------------------

void bench_counters_report_write(const counters_bench_result *results,
                                 const options_list *pools, const char *machine,
                                 options_output output) {
  if (output == OUTPUT_JSON) {
    write_json(results, pools, machine);
  } else if (output == OUTPUT_CSV) {
    write_csv(results, pools, machine);
  } else {
    write_tables(results, pools, machine, table_style_of(output));
  }
}
