// The figures of `tarn bench whole`: tables for people, figures for
// spreadsheets, an object for programs.
#include "bench_whole_report.h"

#include <math.h>
#include <stdio.h>

#include "bench/figure.h"
#include "kit/format.h"
#include "kit/json.h"
#include "kit/sheet.h"

static void write_kind(sheet *s, const bench_whole_outcome *o,
                       whole_kind kind) {
  sheet_text(s, "device", "device", o->bench.device);
  sheet_text(s, "type", "type", tarn_whole_type_name(kind.type));
  sheet_text(s, "location", "location", whole_kind_location(kind));
}

static void write_row_bytes(sheet *s, size_t row_bytes) {
  sheet_uint(s, "row", "row_bytes", row_bytes,
             row_bytes == 0 ? SHEET_UNKNOWN : SHEET_COUNT);
}

// ---------------------------------------------------------------------------
// Rows
// ---------------------------------------------------------------------------

static void write_figure(sheet *s, const bench_whole_outcome *o,
                         const whole_figure *f) {
  const char *indices = f->zipf ? "zipf" : "uniform";
  write_kind(s, o, f->kind);
  sheet_text(s, "op", "op", whole_op_name(f->op));
  write_row_bytes(s, f->row_bytes);
  sheet_text(s, "indices", "indices", f->op == WHOLE_MEMCPY ? "" : indices);
  sheet_number(s, "GB/s", "gbs", f->gbs, 2);
  sheet_number(s, "x memcpy", "over_memcpy", f->over_memcpy, 3);
  sheet_number(s, "x MPI", "over_mpi", f->over_mpi, 2);
  sheet_only(s, SHEET_JSON);
  sheet_number(s, NULL, "alone_gbs", f->alone_gbs, 2);
  sheet_only(s, SHEET_ALL);
  sheet_failed(s, "failed", f->why);
  sheet_only(s, SHEET_CSV);
  sheet_uint(s, NULL, "ranks", o->bench.ranks, SHEET_COUNT);
  sheet_uint(s, NULL, "table_bytes", o->bench.table_bytes, SHEET_BYTES);
  sheet_row_end(s);
}

static void write_made(sheet *s, const bench_whole_outcome *o,
                       const whole_made *m) {
  sheet_unit pages = m->page_size == 0 ? SHEET_UNKNOWN : SHEET_BYTES;
  write_kind(s, o, m->kind);
  sheet_uint(s, NULL, "table_bytes", o->bench.table_bytes, SHEET_BYTES);
  sheet_uint(s, "page", "page_size", m->page_size, pages);
  sheet_uint(s, "huge", "huge_bytes", m->huge_bytes, pages);
  sheet_uint(s, "table", "ready_bytes", o->bench.ready_bytes, SHEET_BYTES);
  sheet_number(s, "ready ms", "ready_ms", m->ready_ms, 0);
  sheet_number(s, "touch ms", "touch_ms", m->touch_ms, 0);
  sheet_number(s, "x touch", "ready_over_touch", m->ready_ms / m->touch_ms, 2);
  sheet_failed(s, "failed", m->why);
  sheet_row_end(s);
}

static void write_small(sheet *s, const bench_whole_outcome *o,
                        const whole_small *small) {
  write_kind(s, o, small->kind);
  write_row_bytes(s, small->row_bytes);
  sheet_uint(s, "rows", "rows", small->rows, SHEET_COUNT);
  sheet_number(s, "gather us", "gather_us", small->gather_us, 2);
  sheet_number(s, "take us", "take_us", small->take_us, 2);
  sheet_number(s, "x take", "over_take", small->over_take, 2);
  sheet_failed(s, "failed", small->why);
  sheet_row_end(s);
}

static void write_goals(sheet *s, const bench_whole_outcome *o) {
  whole_goal goals[WHOLE_GOALS_MOST];
  size_t count = whole_goals(&o->bench, &o->result, goals);
  for (size_t i = 0; i < count; i++) {
    const whole_goal *g = &goals[i];
    sheet_text(s, "goal", "name", g->name);
    write_kind(s, o, g->kind);
    write_row_bytes(s, g->row_bytes);
    sheet_number(s, "value", "value", g->value, 3);
    sheet_goal(s, "wanted", g->value,
               g->at_most ? SHEET_AT_MOST : SHEET_AT_LEAST, g->goal);
    sheet_row_end(s);
  }
}

static void write_one_skipped(sheet *s, const bench_whole_outcome *o,
                              const char *what, const char *why) {
  if (why[0] == '\0') return;
  sheet_text(s, NULL, "device", o->bench.device);
  sheet_text(s, NULL, "what", what);
  sheet_text(s, NULL, "why", why);
  sheet_row_end(s);
}

static void write_skipped(sheet *s, const bench_whole_outcome *o) {
  write_one_skipped(s, o, "mpi", o->result.mpi_skipped);
  write_one_skipped(s, o, "numpy", o->result.take_skipped);
}

// ---------------------------------------------------------------------------
// All
// ---------------------------------------------------------------------------

// What all rows of a device have in common.
static void write_head(sheet *s, const bench_whole_outcome *o) {
  char size[FORMAT_SIZE];
  char batch[FORMAT_SIZE];
  char memcpy_gbs[FORMAT_SIZE + 32] = "";
  const whole_bench *b = &o->bench;
  const char *skipped = o->result.mpi_skipped;
  const char *no_take = o->result.take_skipped;
  double gbs = whole_memcpy_gbs(&o->result);
  if (!isnan(gbs))
    snprintf(memcpy_gbs, sizeof memcpy_gbs, ", memcpy %.2f GB/s", gbs);
  sheet_note(s, "%s: %zu ranks, tables of %s, batches of %s%s%s%s%s%s",
             b->device, b->ranks, format_bytes(size, b->table_bytes),
             format_bytes(batch, b->batch_bytes), memcpy_gbs,
             *skipped ? "; Open MPI skipped: " : "", skipped,
             *no_take ? "; NumPy skipped: " : "", no_take);
}

void bench_whole_report_write(const bench_whole_outcome *outcomes, size_t count,
                              options_output output) {
  sheet *s = bench_sheet_begin(output);
  json *out = sheet_json(s);
  if (out != NULL) {
    json_key_uint(out, "ranks", outcomes[0].bench.ranks);
    json_key_double(out, "memcpy_gbs", whole_memcpy_gbs(&outcomes[0].result));
  }
  for (size_t i = 0; i < count; i++)
    write_head(s, &outcomes[i]);
  sheet_list(s, "results");
  for (size_t i = 0; i < count; i++) {
    for (size_t k = 0; k < outcomes[i].result.count; k++)
      write_figure(s, &outcomes[i], &outcomes[i].result.figures[k]);
  }
  sheet_list(s, "tables");
  for (size_t i = 0; i < count * WHOLE_KINDS; i++) {
    const bench_whole_outcome *o = &outcomes[i / WHOLE_KINDS];
    const whole_made *m = &o->result.made[i % WHOLE_KINDS];
    if (m->kind.type != 0) write_made(s, o, m);
  }
  sheet_list(s, "small_gathers");
  for (size_t i = 0; i < count; i++) {
    for (size_t k = 0; k < outcomes[i].result.small_count; k++)
      write_small(s, &outcomes[i], &outcomes[i].result.smalls[k]);
  }
  sheet_list(s, "goals");
  for (size_t i = 0; i < count; i++)
    write_goals(s, &outcomes[i]);
  sheet_list(s, "skipped");
  for (size_t i = 0; i < count; i++)
    write_skipped(s, &outcomes[i]);
  sheet_end(s);
}
