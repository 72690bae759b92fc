// The figures of `tarn bench whole --hosts`.
#include <math.h>

#include "bench/figure.h"
#include "bench_hosts.h"
#include "kit/format.h"
#include "kit/json.h"
#include "kit/sheet.h"

static void write_what(sheet *s, const hosts_figure *f) {
  sheet_text(s, "type", "type", tarn_whole_type_name(f->type));
  sheet_text(s, "op", "op", hosts_op_name(f->op));
  sheet_uint(s, "row", "row_bytes", f->row_bytes, SHEET_COUNT);
  sheet_uint(s, "rows", "rows", f->rows, SHEET_COUNT);
  sheet_text(s, "indices", "indices", f->zipf ? "zipf" : "uniform");
}

static void write_figure(sheet *s, const hosts_bench *b, const hosts_result *r,
                         const hosts_figure *f) {
  write_what(s, f);
  sheet_number(s, "us", "us", f->us, 0);
  sheet_number(s, "GB/s", "gbs", f->gbs, 3);
  sheet_number(s, "x alltoallv", "over_mpi", f->over_alltoallv, 2);
  sheet_number(s, "x link", "over_link", f->over_link, 3);
  sheet_number(s, "wire MB", NULL, f->wire_bytes / 1e6, 3);
  sheet_number(s, NULL, "wire_bytes", f->wire_bytes, 0);
  sheet_number(s, NULL, "needed_bytes", f->needed_bytes, 0);
  sheet_number(s, "x needed", "wire_over_needed", f->wire_over_needed, 3);
  sheet_number(s, "messages", "messages", f->messages, 0);
  sheet_failed(s, "failed", f->why);
  sheet_only(s, SHEET_CSV);
  sheet_uint(s, NULL, "ranks", b->whole.ranks, SHEET_COUNT);
  sheet_uint(s, NULL, "machines", r->machines, SHEET_COUNT);
  sheet_number(s, NULL, "link_both_gbs", r->link.both_gbs, 3);
  sheet_number(s, NULL, "memory_bytes", r->memory_bytes, 0);
  sheet_row_end(s);
}

static void write_goal(sheet *s, const hosts_goal *g) {
  sheet_text(s, "goal", "name", g->name);
  sheet_text(s, "type", "type", tarn_whole_type_name(g->figure->type));
  sheet_uint(s, "row", "row_bytes", g->figure->row_bytes, SHEET_COUNT);
  sheet_uint(s, "rows", "rows", g->figure->rows, SHEET_COUNT);
  sheet_number(s, "value", "value", g->value, 3);
  sheet_goal(s, "wanted", g->value, SHEET_AT_LEAST, g->goal);
  sheet_row_end(s);
}

static void write_goals(sheet *s, const hosts_result *r) {
  hosts_goal goals[HOSTS_GOALS_MOST];
  size_t count = hosts_goals(r, goals);
  for (size_t i = 0; i < count; i++)
    write_goal(s, &goals[i]);
}

// What all rows have in common.
static void write_head(sheet *s, const hosts_bench *b, const hosts_result *r) {
  char size[FORMAT_SIZE];
  char batch[FORMAT_SIZE];
  const hosts_link *link = &r->link;
  const char *why = r->peer_skipped;
  sheet_note(s,
             "%s: %zu ranks on %zu machines, tables of %s, batches of %s%s%s",
             b->whole.device, b->whole.ranks, r->machines,
             format_bytes(size, b->whole.table_bytes),
             format_bytes(batch, b->whole.batch_bytes),
             *why ? "; MPI_Alltoallv skipped: " : "", why);
  if (r->count == 0) return;
  sheet_note(s,
             "link %s: %.3f GB/s one way, %.3f each way at a time, %.0f us "
             "there and back",
             link->interface, link->one_gbs, link->both_gbs, link->round_us);
  if (!isnan(r->memory_bytes))
    sheet_note(s, "gathers add at most %.1f MiB to a rank",
               r->memory_bytes / (1 << 20));
}

static void write_link(json *out, const hosts_result *r) {
  json_key_text(out, "interface", r->link.interface);
  json_key_double(out, "link_one_gbs", r->link.one_gbs);
  json_key_double(out, "link_both_gbs", r->link.both_gbs);
  json_key_double(out, "link_round_us", r->link.round_us);
  json_key_double(out, "memory_bytes", r->memory_bytes);
}

static void write_skipped(sheet *s, const hosts_bench *b,
                          const hosts_result *r) {
  if (r->peer_skipped[0] == '\0') return;
  sheet_text(s, NULL, "device", b->whole.device);
  sheet_text(s, NULL, "what", "mpi");
  sheet_text(s, NULL, "why", r->peer_skipped);
  sheet_row_end(s);
}

void bench_hosts_report_write(const hosts_bench *bench,
                              const hosts_result *result,
                              options_output output) {
  sheet *s = bench_sheet_begin(output);
  json *out = sheet_json(s);
  if (out != NULL) {
    json_key_text(out, "device", bench->whole.device);
    json_key_uint(out, "ranks", bench->whole.ranks);
    json_key_uint(out, "machines", result->machines);
    json_key_uint(out, "table_bytes", bench->whole.table_bytes);
    write_link(out, result);
  }
  write_head(s, bench, result);
  sheet_list(s, "results");
  for (size_t i = 0; i < result->count; i++)
    write_figure(s, bench, result, &result->figures[i]);
  sheet_list(s, "goals");
  write_goals(s, result);
  sheet_list(s, "skipped");
  write_skipped(s, bench, result);
  sheet_end(s);
}
