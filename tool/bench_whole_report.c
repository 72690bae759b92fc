// The figures of `tarn bench whole`: tables for people, figures for
// spreadsheets, an object for programs.
#include "bench_whole_report.h"

#include <math.h>
#include <stdio.h>

#include "kit/format.h"
#include "kit/json.h"
#include "kit/table.h"

static const table_column figure_columns[] = {
    {"device", "device", false},     {"type", "type", false},
    {"location", "location", false}, {"op", "op", false},
    {"row", "row_bytes", true},      {"indices", "indices", false},
    {"GB/s", "gbs", true},           {"x memcpy", "over_memcpy", true},
    {"x MPI", "over_mpi", true},     {"failed", "failed", false},
    {"ranks", "ranks", true},        {"table", "table_bytes", true},
    {"machine", "machine", false},
};
// People are told the last of these above the table.
enum {
  FIGURE_COLUMNS = sizeof figure_columns / sizeof *figure_columns,
  FIGURE_SAID_ONCE = 3
};

static const table_column made_columns[] = {
    {"device", "device", false},     {"type", "type", false},
    {"location", "location", false}, {"page", "page_size", true},
    {"huge", "huge_bytes", true},    {"table", "ready_bytes", true},
    {"ready ms", "ready_ms", true},  {"touch ms", "touch_ms", true},
    {"x touch", "over_touch", true}, {"failed", "failed", false},
};
enum { MADE_COLUMNS = sizeof made_columns / sizeof *made_columns };

static const table_column goal_columns[] = {
    {"goal", "name", false},    {"device", "device", false},
    {"type", "type", false},    {"location", "location", false},
    {"row", "row_bytes", true}, {"value", "value", true},
    {"wanted", "goal", false},  {"met", "met", false},
};
enum { GOAL_COLUMNS = sizeof goal_columns / sizeof *goal_columns };

static const char *indices_of(const whole_figure *f) {
  return f->op == WHOLE_MEMCPY ? "" : f->zipf ? "zipf" : "uniform";
}

// ---------------------------------------------------------------------------
// Tables
// ---------------------------------------------------------------------------

static void add_kind(table *t, const bench_whole_outcome *o, whole_kind kind) {
  table_text(t, o->bench.device);
  table_text(t, tarn_whole_type_name(kind.type));
  table_text(t, whole_kind_location(kind));
}

// A kind in the middle of a row.
static void add_rows(table *t, size_t row_bytes) {
  if (row_bytes == 0) {
    table_blank(t);
  } else {
    table_count(t, row_bytes);
  }
}

static void add_figure(table *t, const bench_whole_outcome *o,
                       const whole_figure *f) {
  add_kind(t, o, f->kind);
  table_text(t, whole_op_name(f->op));
  add_rows(t, f->row_bytes);
  table_text(t, indices_of(f));
  table_fixed(t, f->gbs, 2);
  table_fixed(t, f->over_memcpy, 3);
  table_fixed(t, f->over_mpi, 2);
  table_text(t, f->why);
}

static void write_figures(const bench_whole_outcome *outcomes, size_t count,
                          const char *machine, table_style style) {
  bool with_all = style == TABLE_CSV;
  table *t = table_create(
      figure_columns,
      with_all ? FIGURE_COLUMNS : FIGURE_COLUMNS - FIGURE_SAID_ONCE);
  for (size_t i = 0; i < count; i++) {
    const bench_whole_outcome *o = &outcomes[i];
    for (size_t j = 0; j < o->result.count; j++) {
      add_figure(t, o, &o->result.figures[j]);
      if (!with_all) continue;
      table_count(t, o->bench.ranks);
      table_bytes(t, o->bench.table_bytes);
      table_text(t, machine);
    }
  }
  table_write(t, style, tool_out());
  table_destroy(t);
}

// Pages that nobody can tell of are not 0.
static void add_pages(table *t, const whole_made *m) {
  if (m->page_size == 0) {
    table_blank(t);
    table_blank(t);
    return;
  }
  table_bytes(t, m->page_size);
  table_bytes(t, m->huge_bytes);
}

static void add_made(table *t, const bench_whole_outcome *o,
                     const whole_made *m) {
  add_kind(t, o, m->kind);
  add_pages(t, m);
  table_bytes(t, o->bench.ready_bytes);
  table_fixed(t, m->ready_ms, 0);
  table_fixed(t, m->touch_ms, 0);
  table_fixed(t, m->ready_ms / m->touch_ms, 2);
  table_text(t, m->why);
}

static void write_made(const bench_whole_outcome *outcomes, size_t count,
                       table_style style) {
  table *t = table_create(made_columns, MADE_COLUMNS);
  for (size_t i = 0; i < count * WHOLE_KINDS; i++) {
    const bench_whole_outcome *o = &outcomes[i / WHOLE_KINDS];
    const whole_made *m = &o->result.made[i % WHOLE_KINDS];
    if (m->kind.type != 0) add_made(t, o, m);
  }
  table_write(t, style, tool_out());
  table_destroy(t);
}

static void add_goal(table *t, const bench_whole_outcome *o,
                     const whole_goal *g) {
  char wanted[32];
  snprintf(wanted, sizeof wanted, "%s %g", g->at_most ? "<=" : ">=", g->goal);
  table_text(t, g->name);
  add_kind(t, o, g->kind);
  add_rows(t, g->row_bytes);
  table_fixed(t, g->value, 3);
  table_text(t, wanted);
  if (isnan(g->value)) {
    table_blank(t);  // not measured is not missed
  } else {
    table_text(t, whole_goal_is_met(g) ? "yes" : "NO");
  }
}

static void write_goals(const bench_whole_outcome *outcomes, size_t count,
                        table_style style) {
  whole_goal goals[WHOLE_GOALS_MOST];
  size_t all = 0;
  table *t = table_create(goal_columns, GOAL_COLUMNS);
  for (size_t i = 0; i < count; i++) {
    size_t found = whole_goals(&outcomes[i].bench, &outcomes[i].result, goals);
    all += found;
    for (size_t j = 0; j < found; j++)
      add_goal(t, &outcomes[i], &goals[j]);
  }
  if (all > 0) fprintf(tool_out(), "\n");
  if (all > 0) table_write(t, style, tool_out());
  table_destroy(t);
}

// What is the same for all figures of a device.
static void write_heads(const bench_whole_outcome *outcomes, size_t count,
                        const char *machine) {
  char size[FORMAT_SIZE];
  char batch[FORMAT_SIZE];
  fprintf(tool_out(), "%s\n", machine);
  for (size_t i = 0; i < count; i++) {
    const whole_bench *b = &outcomes[i].bench;
    const whole_result *r = &outcomes[i].result;
    double gbs = whole_memcpy_gbs(r);
    fprintf(tool_out(), "%s: %zu ranks, tables of %s, batches of %s", b->device,
            b->ranks, format_bytes(size, b->table_bytes),
            format_bytes(batch, b->batch_bytes));
    if (!isnan(gbs)) fprintf(tool_out(), ", memcpy %.2f GB/s", gbs);
    if (r->mpi_skipped[0] != '\0')
      fprintf(tool_out(), "; Open MPI skipped: %s", r->mpi_skipped);
    fprintf(tool_out(), "\n");
  }
  fprintf(tool_out(), "\n");
}

static void write_tables(const bench_whole_outcome *outcomes, size_t count,
                         const char *machine, table_style style) {
  write_heads(outcomes, count, machine);
  write_figures(outcomes, count, machine, style);
  fprintf(tool_out(), "\n");
  write_made(outcomes, count, style);
  write_goals(outcomes, count, style);
}

// ---------------------------------------------------------------------------
// JSON
// ---------------------------------------------------------------------------

static void write_text(json *out, const char *key, const char *text) {
  json_key(out, key);
  json_text(out, text);
}

static void write_double(json *out, const char *key, double value) {
  json_key(out, key);
  json_double(out, value);
}

static void write_whole(json *out, const char *key, uint64_t value) {
  json_key(out, key);
  json_uint(out, value);
}

static void write_failed(json *out, const char *why) {
  json_key(out, "failed");
  if (why[0] == '\0') {
    json_double(out, NAN);  // null
  } else {
    json_text(out, why);
  }
}

static void write_kind(json *out, const bench_whole_outcome *o,
                       whole_kind kind) {
  write_text(out, "device", o->bench.device);
  write_text(out, "type", tarn_whole_type_name(kind.type));
  write_text(out, "location", whole_kind_location(kind));
}

static void write_figure(json *out, const bench_whole_outcome *o,
                         const whole_figure *f) {
  json_begin_object(out);
  write_kind(out, o, f->kind);
  write_text(out, "op", whole_op_name(f->op));
  write_whole(out, "row_bytes", f->row_bytes);
  write_double(out, "gbs", f->gbs);
  write_double(out, "over_memcpy", f->over_memcpy);
  write_text(out, "indices", indices_of(f));
  write_double(out, "over_mpi", f->over_mpi);
  write_double(out, "alone_gbs", f->alone_gbs);
  write_failed(out, f->why);
  json_end_object(out);
}

static void write_table(json *out, const bench_whole_outcome *o,
                        const whole_made *m) {
  json_begin_object(out);
  write_kind(out, o, m->kind);
  write_whole(out, "table_bytes", o->bench.table_bytes);
  write_whole(out, "page_size", m->page_size);
  write_whole(out, "huge_bytes", m->huge_bytes);
  write_whole(out, "ready_bytes", o->bench.ready_bytes);
  write_double(out, "ready_ms", m->ready_ms);
  write_double(out, "touch_ms", m->touch_ms);
  write_double(out, "ready_over_touch", m->ready_ms / m->touch_ms);
  write_failed(out, m->why);
  json_end_object(out);
}

static void write_goal(json *out, const bench_whole_outcome *o,
                       const whole_goal *g) {
  json_begin_object(out);
  write_text(out, "name", g->name);
  write_kind(out, o, g->kind);
  write_whole(out, "row_bytes", g->row_bytes);
  write_double(out, "value", g->value);
  write_double(out, "goal", g->goal);
  json_key(out, "met");
  if (isnan(g->value)) {
    json_double(out, NAN);  // null
  } else {
    json_bool(out, whole_goal_is_met(g));
  }
  json_end_object(out);
}

static void write_all_figures(json *out, const bench_whole_outcome *o) {
  for (size_t i = 0; i < o->result.count; i++)
    write_figure(out, o, &o->result.figures[i]);
}

static void write_all_tables(json *out, const bench_whole_outcome *o) {
  for (size_t i = 0; i < WHOLE_KINDS; i++) {
    if (o->result.made[i].kind.type != 0)
      write_table(out, o, &o->result.made[i]);
  }
}

static void write_all_goals(json *out, const bench_whole_outcome *o) {
  whole_goal goals[WHOLE_GOALS_MOST];
  size_t count = whole_goals(&o->bench, &o->result, goals);
  for (size_t i = 0; i < count; i++)
    write_goal(out, o, &goals[i]);
}

static void write_skipped(json *out, const bench_whole_outcome *o) {
  if (o->result.mpi_skipped[0] == '\0') return;
  json_begin_object(out);
  write_text(out, "device", o->bench.device);
  write_text(out, "what", "mpi");
  write_text(out, "why", o->result.mpi_skipped);
  json_end_object(out);
}

typedef void write_fn(json *out, const bench_whole_outcome *o);

static void write_list(json *out, const char *key,
                       const bench_whole_outcome *outcomes, size_t count,
                       write_fn *write) {
  json_key(out, key);
  json_begin_array(out);
  for (size_t i = 0; i < count; i++)
    write(out, &outcomes[i]);
  json_end_array(out);
}

static void write_json(const bench_whole_outcome *outcomes, size_t count,
                       const char *machine) {
  json out = json_to(tool_out());
  json_begin_object(&out);
  write_whole(&out, "ranks", outcomes[0].bench.ranks);
  write_double(&out, "memcpy_gbs", whole_memcpy_gbs(&outcomes[0].result));
  write_list(&out, "results", outcomes, count, write_all_figures);
  write_list(&out, "tables", outcomes, count, write_all_tables);
  write_list(&out, "goals", outcomes, count, write_all_goals);
  write_list(&out, "skipped", outcomes, count, write_skipped);
  write_text(&out, "machine", machine);
  json_end_object(&out);
  json_finish(&out);
}

void bench_whole_report_write(const bench_whole_outcome *outcomes, size_t count,
                              const char *machine, options_output output) {
  if (output == OUTPUT_JSON) {
    write_json(outcomes, count, machine);
  } else if (output == OUTPUT_CSV) {
    write_figures(outcomes, count, machine, TABLE_CSV);
  } else {
    write_tables(outcomes, count, machine, table_style_of(output));
  }
}
