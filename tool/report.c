// What a replay found: for people as a table, for spreadsheets as one row per
// iteration, for programs as JSON.
#include "report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kit/format.h"
#include "kit/json.h"
#include "kit/table.h"
#include "kit/text.h"

// ---------------------------------------------------------------------------
// In words
// ---------------------------------------------------------------------------

// Requests are the events that a replay repeats; a trace may have others.
static const char *describe_peak_event(const tarn_trace *trace, char *out) {
  char index[FORMAT_SIZE], count[FORMAT_SIZE];
  if (trace->live_peak_event == TARN_TRACE_BASELINE) {
    return "before the first event";
  }
  snprintf(out, FORMAT_SIZE, "at event %.20s of %.20s",
           format_count(index, trace->live_peak_event),
           format_count(count, trace->event_count));
  return out;
}

static const char *describe_baseline(const tarn_trace *trace, char *out,
                                     size_t out_size) {
  char bytes[FORMAT_SIZE], blocks[FORMAT_SIZE];
  if (trace->baseline_count == 0) return "";
  snprintf(out, out_size, "baseline %s in %s block%s, ",
           format_bytes(bytes, trace->baseline_bytes),
           format_count(blocks, trace->baseline_count),
           trace->baseline_count == 1 ? "" : "s");
  return out;
}

void report_describe(const tarn_trace *trace, char *out, size_t out_size) {
  char requests[FORMAT_SIZE], peak[FORMAT_SIZE], when[FORMAT_SIZE];
  char baseline[3 * FORMAT_SIZE];
  snprintf(out, out_size, "%s requests, %slive peak %s %s",
           format_count(requests, trace->request_count),
           describe_baseline(trace, baseline, sizeof baseline),
           format_bytes(peak, trace->live_peak_bytes),
           describe_peak_event(trace, when));
}

static const replay_result *yardstick(const report *r) {
  for (size_t i = 0; i < r->result_count; i++) {
    if (strcmp(r->results[i].pool, "no_pool") == 0) return &r->results[i];
  }
  return &r->results[0];
}

static const char *iteration_name(const replay_result *result) {
  switch (result->iteration_count) {
    case 1:
      return "first iteration";
    case 2:
      return "second iteration";
    default:
      return "steady iterations";
  }
}

bool report_compare(const report *r, const replay_result *result, char *out,
                    size_t out_size) {
  const replay_result *base = yardstick(r);
  double mine = replay_steady(result)->alloc_ms;
  double theirs = replay_steady(base)->alloc_ms;
  if (r->dry || result == base || !(mine > 0) || !(theirs > 0)) return false;
  if (result->failed > 0 || base->failed > 0) return false;
  bool faster = mine <= theirs;
  snprintf(out, out_size, "%s: %s %.1f x %s than %s.", result->pool,
           iteration_name(result), faster ? theirs / mine : mine / theirs,
           faster ? "faster" : "slower", base->pool);
  return true;
}

// ---------------------------------------------------------------------------
// Table and Markdown
// ---------------------------------------------------------------------------

static const table_column summary_columns[] = {
    {"pool", "pool", false},
    {"1st ms", "first_alloc_ms", true},
    {"2nd ms", "second_alloc_ms", true},
    {"steady ms", "steady_alloc_ms", true},
    {"frees ms", "free_ms", true},
    {"median ns", "alloc_ns_median", true},
    {"p99 ns", "alloc_ns_p99", true},
    {"hits", "hit_percent", true},
    {"reserved peak", "reserved_peak_bytes", true},
    {"over live", "reserved_over_live", true},
    {"failed", "failed", true},
};

enum { SUMMARY_MAX = sizeof summary_columns / sizeof summary_columns[0] };

// Columns that would be empty are left out: later iterations that were not
// run, failures if there were none.
typedef struct summary_shape {
  size_t iterations;
  bool failures;
} summary_shape;

static summary_shape shape_of(const report *r) {
  summary_shape shape = {.iterations = r->results[0].iteration_count};
  for (size_t i = 0; i < r->result_count; i++) {
    if (r->results[i].failed > 0) shape.failures = true;
  }
  return shape;
}

static size_t choose_columns(const summary_shape *shape, table_column *out) {
  size_t count = 0;
  for (size_t i = 0; i < SUMMARY_MAX; i++) {
    if (i == 2 && shape->iterations < 2) continue;
    if (i == 3 && shape->iterations < 3) continue;
    if (i == SUMMARY_MAX - 1 && !shape->failures) continue;
    out[count++] = summary_columns[i];
  }
  return count;
}

static void add_summary(table *t, const summary_shape *shape, const report *r,
                        const replay_result *result) {
  const replay_iteration *steady = replay_steady(result);
  table_text(t, result->pool);
  table_fixed(t, result->iterations[0].alloc_ms, 3);
  if (shape->iterations >= 2) {
    table_fixed(t, result->iterations[1].alloc_ms, 3);
  }
  if (shape->iterations >= 3) table_fixed(t, steady->alloc_ms, 3);
  table_fixed(t, steady->free_ms, 3);
  table_fixed(t, steady->alloc_ns_median, 0);
  table_fixed(t, steady->alloc_ns_p99, 0);
  table_percent(t, (double)steady->hits,
                (double)(steady->hits + steady->misses));
  table_bytes(t, result->reserved_peak_bytes);
  table_fixed(t, replay_over_live(r->trace, result), 2);
  if (shape->failures) table_count(t, result->failed);
}

static void write_title(const report *r, table_style style, FILE *out) {
  char text[REPORT_TEXT_SIZE];
  report_describe(r->trace, text, sizeof text);
  fputs(style == TABLE_MARKDOWN ? "### " : "", out);
  text_write(r->trace->name, out);
  fputs(" on ", out);
  text_write(r->device, out);
  fprintf(out, "\n%s\n\n", text);
}

static void write_comparisons(const report *r, FILE *out) {
  char text[REPORT_TEXT_SIZE];
  bool any = false;
  for (size_t i = 0; i < r->result_count; i++) {
    if (!report_compare(r, &r->results[i], text, sizeof text)) continue;
    if (!any) fputc('\n', out);
    text_write(text, out);
    fputc('\n', out);
    any = true;
  }
}

static void write_summary(const report *r, table_style style, FILE *out) {
  table_column columns[SUMMARY_MAX];
  summary_shape shape = shape_of(r);
  table *t = table_create(columns, choose_columns(&shape, columns));
  for (size_t i = 0; i < r->result_count; i++) {
    add_summary(t, &shape, r, &r->results[i]);
  }
  write_title(r, style, out);
  table_write(t, style, out);
  write_comparisons(r, out);
  table_destroy(t);
}

// ---------------------------------------------------------------------------
// CSV
// ---------------------------------------------------------------------------

static const table_column csv_columns[] = {
    {"trace", "trace", false},
    {"pool", "pool", false},
    {"device", "device", false},
    {"iteration", "iteration", true},
    {"alloc ms", "alloc_ms", true},
    {"free ms", "free_ms", true},
    {"median ns", "alloc_ns_median", true},
    {"p99 ns", "alloc_ns_p99", true},
    {"hits", "hits", true},
    {"misses", "misses", true},
    {"live peak", "live_peak_bytes", true},
    {"reserved peak", "reserved_peak_bytes", true},
    {"over live", "reserved_over_live", true},
    {"failed", "failed", true},
};

static void add_iteration(table *t, const report *r,
                          const replay_result *result, size_t index) {
  const replay_iteration *iteration = &result->iterations[index];
  table_text(t, r->trace->name);
  table_text(t, result->pool);
  table_text(t, r->device);
  table_count(t, index + 1);
  table_fixed(t, iteration->alloc_ms, 3);
  table_fixed(t, iteration->free_ms, 3);
  table_fixed(t, iteration->alloc_ns_median, 0);
  table_fixed(t, iteration->alloc_ns_p99, 0);
  table_count(t, iteration->hits);
  table_count(t, iteration->misses);
  table_bytes(t, r->trace->live_peak_bytes);
  table_bytes(t, result->reserved_peak_bytes);
  table_fixed(t, replay_over_live(r->trace, result), 2);
  table_count(t, result->failed);
}

static void add_report(table *t, const report *r) {
  for (size_t i = 0; i < r->result_count; i++) {
    for (size_t k = 0; k < r->results[i].iteration_count; k++) {
      add_iteration(t, r, &r->results[i], k);
    }
  }
}

static void write_csv(const report *reports, size_t count, FILE *out) {
  table *t =
      table_create(csv_columns, sizeof csv_columns / sizeof csv_columns[0]);
  for (size_t i = 0; i < count; i++)
    add_report(t, &reports[i]);
  table_write(t, TABLE_CSV, out);
  table_destroy(t);
}

// ---------------------------------------------------------------------------
// JSON
// ---------------------------------------------------------------------------

static void write_json_iteration(json *out, const replay_iteration *iteration) {
  json_begin_object(out);
  json_key_double(out, "alloc_ms", iteration->alloc_ms);
  json_key_double(out, "alloc_ns_median", iteration->alloc_ns_median);
  json_key_double(out, "alloc_ns_p99", iteration->alloc_ns_p99);
  json_key_uint(out, "hits", iteration->hits);
  json_key_uint(out, "misses", iteration->misses);
  json_key_double(out, "free_ms", iteration->free_ms);
  json_end_object(out);
}

static void write_json_result(json *out, const report *r,
                              const replay_result *result) {
  json_begin_object(out);
  json_key_text(out, "pool", result->pool);
  json_key_text(out, "device", r->device);
  json_key_array(out, "iterations");
  for (size_t i = 0; i < result->iteration_count; i++) {
    write_json_iteration(out, &result->iterations[i]);
  }
  json_end_array(out);
  json_key_uint(out, "reserved_peak_bytes", result->reserved_peak_bytes);
  json_key_double(out, "reserved_over_live",
                  replay_over_live(r->trace, result));
  json_key_uint(out, "failed", result->failed);
  json_end_object(out);
}

static void write_json_report(json *out, const report *r) {
  json_begin_object(out);
  json_key_text(out, "trace", r->trace->name);
  json_key_uint(out, "events", r->trace->request_count);
  json_key_uint(out, "live_peak_bytes", r->trace->live_peak_bytes);
  json_key_array(out, "results");
  for (size_t i = 0; i < r->result_count; i++) {
    write_json_result(out, r, &r->results[i]);
  }
  json_end_array(out);
  json_end_object(out);
}

static void write_json(const report *reports, size_t count, FILE *out) {
  json writer = json_to(out);
  if (count > 1) json_begin_array(&writer);
  for (size_t i = 0; i < count; i++)
    write_json_report(&writer, &reports[i]);
  if (count > 1) json_end_array(&writer);
  json_finish(&writer);
}

// ---------------------------------------------------------------------------
// All of them
// ---------------------------------------------------------------------------

static void write_summaries(const report *reports, size_t count,
                            table_style style, FILE *out) {
  for (size_t i = 0; i < count; i++) {
    if (i > 0) fputc('\n', out);
    write_summary(&reports[i], style, out);
  }
}

void report_write(const report *reports, size_t count, options_output output,
                  FILE *out) {
  if (output == OUTPUT_JSON) {
    write_json(reports, count, out);
  } else if (output == OUTPUT_CSV) {
    write_csv(reports, count, out);
  } else {
    write_summaries(reports, count, table_style_of(output), out);
  }
}
