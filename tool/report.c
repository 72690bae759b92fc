// The results of a replay: for people as a table, for spreadsheets as one row
// per iteration, for programs as JSON.
#include "report.h"

#include <stdio.h>
#include <string.h>

#include "kit/format.h"
#include "kit/json.h"
#include "kit/sheet.h"
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
  return result->iteration_count == 1   ? "first iteration"
         : result->iteration_count == 2 ? "second iteration"
                                        : "steady iterations";
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

static bool has_failures(const report *r) {
  for (size_t i = 0; i < r->result_count; i++) {
    if (r->results[i].failed > 0) return true;
  }
  return false;
}

// Cells that would be empty in all rows are left out: later iterations that
// were not run, failures if there were none.
static void add_summary(sheet *s, const report *r,
                        const replay_result *result) {
  const replay_iteration *first = &result->iterations[0];
  const replay_iteration *steady = replay_steady(result);
  size_t iterations = r->results[0].iteration_count;
  sheet_text(s, "pool", NULL, result->pool);
  sheet_time(s, "1st ms", NULL, first->alloc_ms, 3);
  if (iterations >= 2) sheet_time(s, "2nd ms", NULL, first[1].alloc_ms, 3);
  if (iterations >= 3) sheet_time(s, "steady ms", NULL, steady->alloc_ms, 3);
  sheet_time(s, "frees ms", NULL, steady->free_ms, 3);
  sheet_time(s, "median ns", NULL, steady->alloc_ns_median, 0);
  sheet_time(s, "p99 ns", NULL, steady->alloc_ns_p99, 0);
  sheet_percent(s, "hits", NULL, (double)steady->hits,
                (double)(steady->hits + steady->misses));
  sheet_uint(s, "reserved peak", NULL, result->reserved_peak_bytes,
             SHEET_BYTES);
  sheet_number(s, "over live", NULL, replay_over_live(r->trace, result), 2);
  sheet_uint(s, "moved", NULL, result->moved_bytes, SHEET_BYTES);
  if (has_failures(r))
    sheet_uint(s, "failed", NULL, result->failed, SHEET_COUNT);
  sheet_row_end(s);
}

static void write_title(const report *r, options_output output, FILE *out) {
  char text[REPORT_TEXT_SIZE];
  report_describe(r->trace, text, sizeof text);
  fputs(output == OUTPUT_MARKDOWN ? "### " : "", out);
  text_write(r->trace->name, out);
  fputs(" on ", out);
  text_write(r->device, out);
  if (r->threads > 1) fprintf(out, ", %zu threads", r->threads);
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

static void write_summary(const report *r, options_output output, FILE *out) {
  write_title(r, output, out);
  sheet *s = sheet_begin_on(out, output, NULL);
  for (size_t i = 0; i < r->result_count; i++)
    add_summary(s, r, &r->results[i]);
  sheet_end(s);
  write_comparisons(r, out);
}

// ---------------------------------------------------------------------------
// CSV
// ---------------------------------------------------------------------------

static void add_iteration(sheet *s, const report *r,
                          const replay_result *result, size_t index) {
  const replay_iteration *iteration = &result->iterations[index];
  sheet_text(s, NULL, "trace", r->trace->name);
  sheet_text(s, NULL, "pool", result->pool);
  sheet_text(s, NULL, "device", r->device);
  sheet_uint(s, NULL, "iteration", index + 1, SHEET_COUNT);
  sheet_time(s, NULL, "alloc_ms", iteration->alloc_ms, 3);
  sheet_time(s, NULL, "free_ms", iteration->free_ms, 3);
  sheet_time(s, NULL, "alloc_ns_median", iteration->alloc_ns_median, 0);
  sheet_time(s, NULL, "alloc_ns_p99", iteration->alloc_ns_p99, 0);
  sheet_uint(s, NULL, "hits", iteration->hits, SHEET_COUNT);
  sheet_uint(s, NULL, "misses", iteration->misses, SHEET_COUNT);
  sheet_uint(s, NULL, "live_peak_bytes", r->trace->live_peak_bytes,
             SHEET_BYTES);
  sheet_uint(s, NULL, "reserved_peak_bytes", result->reserved_peak_bytes,
             SHEET_BYTES);
  sheet_number(s, NULL, "reserved_over_live",
               replay_over_live(r->trace, result), 2);
  sheet_uint(s, NULL, "moved_bytes", result->moved_bytes, SHEET_BYTES);
  sheet_number(s, NULL, "move_ms", result->move_ms, 3);
  sheet_uint(s, NULL, "failed", result->failed, SHEET_COUNT);
  sheet_time(s, NULL, "pass_ms", iteration->pass_ms, 3);
  sheet_uint(s, NULL, "threads", r->threads, SHEET_COUNT);
  sheet_row_end(s);
}

static void add_report(sheet *s, const report *r) {
  for (size_t i = 0; i < r->result_count; i++) {
    for (size_t k = 0; k < r->results[i].iteration_count; k++)
      add_iteration(s, r, &r->results[i], k);
  }
}

static void write_csv(const report *reports, size_t count, FILE *out) {
  sheet *s = sheet_begin_on(out, OUTPUT_CSV, NULL);
  for (size_t i = 0; i < count; i++)
    add_report(s, &reports[i]);
  sheet_end(s);
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
  json_key_double(out, "pass_ms", iteration->pass_ms);
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
  json_key_uint(out, "moved_bytes", result->moved_bytes);
  json_key_double(out, "move_ms", result->move_ms);
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
  json_key_uint(out, "threads", r->threads);
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

void report_write(const report *reports, size_t count, options_output output,
                  FILE *out) {
  if (output == OUTPUT_JSON) {
    write_json(reports, count, out);
  } else if (output == OUTPUT_CSV) {
    write_csv(reports, count, out);
  } else {
    for (size_t i = 0; i < count; i++) {
      if (i > 0) fputc('\n', out);
      write_summary(&reports[i], output, out);
    }
  }
}
