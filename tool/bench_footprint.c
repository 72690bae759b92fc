// tarn bench whole --footprint: what each step has taken of a rank.
#include "bench_footprint.h"

#include <stdlib.h>

#include "bench/figure.h"
#include "kit/format.h"
#include "kit/json.h"
#include "kit/sheet.h"
#include "kit/tool.h"

static void write_kib(sheet *s, const char *title, const char *key,
                      double bytes) {
  sheet_number(s, title, NULL, bytes / 1024, 1);
  sheet_number(s, NULL, key, bytes, 0);
}

static void write_figure(sheet *s, const footprint_result *r, size_t step) {
  const footprint_figure *f = &r->figures[step];
  sheet_text(s, "step", "step", footprint_step_name((footprint_step)step));
  sheet_number(s, "messages", "messages", f->messages, 0);
  sheet_number(s, "mean", "messages_mean", f->messages_mean, 1);
  write_kib(s, "own KiB", "host_bytes", f->host_bytes);
  write_kib(s, "at most", "peak_bytes", f->peak_bytes);
  write_kib(s, "shared KiB", "shared_bytes", f->shared_bytes);
  write_kib(s, "mapped KiB", "mapped_bytes", f->mapped_bytes);
  sheet_number(s, "files", "descriptors", f->descriptors, 0);
  sheet_only(s, SHEET_CSV);
  sheet_uint(s, NULL, "ranks", r->ranks, SHEET_COUNT);
  sheet_uint(s, NULL, "machines", r->machines, SHEET_COUNT);
  sheet_row_end(s);
}

static void write_head(sheet *s, const whole_bench *b,
                       const footprint_result *r) {
  char size[FORMAT_SIZE];
  char batch[FORMAT_SIZE];
  json *out = sheet_json(s);
  if (out != NULL) {
    json_key_text(out, "device", b->device);
    json_key_uint(out, "ranks", r->ranks);
    json_key_uint(out, "machines", r->machines);
    json_key_uint(out, "table_bytes", b->table_bytes);
    json_key_uint(out, "batch_bytes", b->batch_bytes);
    json_key_uint(out, "row_bytes", b->row_bytes[0]);
  }
  sheet_note(s,
             "%s: %zu ranks on %zu machines, a table of %s, gathers of %s in "
             "rows of %zu bytes",
             b->device, r->ranks, r->machines,
             format_bytes(size, b->table_bytes),
             format_bytes(batch, b->batch_bytes), b->row_bytes[0]);
}

static void report(const whole_bench *b, const footprint_result *r,
                   options_output output) {
  sheet *s = bench_sheet_begin(output);
  write_head(s, b, r);
  sheet_list(s, "results");
  for (size_t i = 0; i < r->count; i++)
    write_figure(s, r, i);
  sheet_end(s);
}

tool_exit bench_footprint_measure(const tool_verb *verb,
                                  const whole_bench *whole,
                                  footprint_view joined,
                                  options_output output) {
  footprint_result result = {0};
  footprint_bench_run(whole, joined, &result);
  if (tarn_comm_rank(whole->comm) != 0) return TOOL_DONE;
  report(whole, &result, output);
  if (result.failed[0] == '\0') return TOOL_DONE;
  return tool_fail(verb, "%s: %s", whole->device, result.failed);
}
