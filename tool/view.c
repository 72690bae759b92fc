// The page of `tarn view`: view.html with its marks filled in.
#include "view.h"

#include <stdlib.h>

#include "embedded.h"
#include "page.h"
#include "replay.h"
#include "view_data.h"

// Where blocks stand that have no addresses of their own.
static const char placing_pool[] = "arena_pool";

// ---------------------------------------------------------------------------
// Marks
// ---------------------------------------------------------------------------

static void write_title(const void *context, FILE *out) {
  const view_page *v = context;
  page_text(v->title, out);
}

static void write_verb(const void *context, FILE *out) {
  const view_page *v = context;
  page_text(v->verb, out);
}

static void write_about(const void *context, FILE *out) {
  const view_page *v = context;
  page_text(v->about, out);
}

static void write_figures(const void *context, FILE *out) {
  const view_page *v = context;
  if (v->figures != NULL) v->figures(v->context, out);
}

static void write_data(const void *context, FILE *out) {
  const view_page *v = context;
  view_data_write(&v->data, out);
}

static void write_css(const void *context, FILE *out) {
  (void)context;
  fputs(embedded_page_css, out);
  fputs(embedded_view_css, out);
}

static void write_script(const void *context, FILE *out) {
  static const char *const parts[] = {
      embedded_page_js,         embedded_view_model_js, embedded_view_raster_js,
      embedded_view_draw_js,    embedded_view_side_js,  embedded_view_act_js,
      embedded_view_measure_js,
  };
  (void)context;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    fputs(parts[i], out);
}

static const page_mark marks[] = {
    {"{{title}}", write_title},   {"{{verb}}", write_verb},
    {"{{about}}", write_about},   {"{{figures}}", write_figures},
    {"{{css}}", write_css},       {"{{data}}", write_data},
    {"{{script}}", write_script},
};

// ---------------------------------------------------------------------------
// Addresses
// ---------------------------------------------------------------------------

static bool has_addresses(const tarn_trace *trace) {
  for (size_t i = 0; i < trace->block_count; i++) {
    if (trace->blocks[i].address != 0) return true;
  }
  return trace->block_count == 0;
}

// The figures of a dry run, without memory. Free |out_result| in any case.
static tool_exit place(const tool_verb *verb, const tarn_trace *trace,
                       replay_result *out_result) {
  replay_options options = {
      .pool = placing_pool, .iterations = 1, .dry = true, .history = true};
  stopwatch watch = stopwatch_start();
  tool_progress progress;
  if (tarn_device_open("cpu:0", &options.device) != TARN_OK) {
    return tool_fail(verb, "%s", tarn_last_error());
  }
  tool_progress_begin(&progress, 1);
  bool done = replay_run(trace, &options, &watch, &progress, out_result);
  tool_progress_end(&progress);
  (void)tarn_device_close(options.device);
  if (done) return TOOL_DONE;
  return tool_fail(verb, "%s: %s", placing_pool, out_result->error);
}

// ---------------------------------------------------------------------------
// The page
// ---------------------------------------------------------------------------

tool_exit view_page_write(const tool_verb *verb, const view_page *v,
                          const char *path) {
  page p = {.html = embedded_view_html,
            .marks = marks,
            .mark_count = sizeof marks / sizeof *marks,
            .context = v};
  return page_write(verb, &p, path) ? TOOL_DONE : TOOL_NO;
}

static tool_exit write_placed(const tool_verb *verb, view_page *v,
                              const char *path) {
  replay_result result = {0};
  tool_exit status = place(verb, v->data.trace, &result);
  view_pool pool = {.name = placing_pool,
                    .addresses = result.history.addresses};
  v->data.pools = &pool;
  if (status == TOOL_DONE) status = view_page_write(verb, v, path);
  v->data.pools = NULL;
  replay_result_deinit(&result);
  return status;
}

static tool_exit write_recorded(const tool_verb *verb, view_page *v,
                                const char *path) {
  const tarn_trace *trace = v->data.trace;
  tarn_addr *addresses = tool_array(trace->block_count, sizeof *addresses);
  view_pool pool = {.addresses = addresses};
  for (size_t i = 0; i < trace->block_count; i++)
    addresses[i] = trace->blocks[i].address;
  v->data.pools = &pool;
  tool_exit status = view_page_write(verb, v, path);
  free(addresses);
  return status;
}

tool_exit view_write(const tool_verb *verb, const tarn_trace *trace,
                     const view_options *options) {
  view_page v = {
      .data = {.trace = trace,
               .roles = options->roles,
               .first = options->first,
               .whole_events = options->whole_events,
               .libraries = options->libraries,
               .pool_count = 1},
      .verb = "view",
      // A page is passed on: it names no folders.
      .title = options->title ? options->title : tool_base_name(trace->name),
      .about = "who holds the memory"};
  return has_addresses(trace) ? write_recorded(verb, &v, options->path)
                              : write_placed(verb, &v, options->path);
}
