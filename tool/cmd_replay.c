// tarn replay: traces through strategies, and what each of them costs.
//
//   options ─► pools, device, traces, room for pictures are there? ─► replay
//   each trace through each pool ─► pictures ─► report
//
// Nothing is written to stdout before the end: a reader of JSON gets one
// complete document or none.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/options.h"
#include "kit/text.h"
#include "load.h"
#include "picture.h"
#include "replay.h"
#include "report.h"
#include "verbs.h"

static const char help[] =
    "usage: tarn replay TRACE|@WORKLOAD... [OPTION]...\n"
    "\n"
    "Runs the requests of each trace through each pool and tells how long "
    "they\n"
    "took, how many were served without asking the device (hits), and how "
    "much\n"
    "memory the pool held of the device over what was alive at the peak.\n"
    "\n"
    "A TRACE is a PyTorch memory snapshot, or a file of any other format that\n"
    "Tarn reads; --list names the workloads that are built in.\n"
    "\n"
    "  --pool A,B          strategies (default:\n"
    "                      no_pool,page_unit_pool,arena_pool), with options "
    "as\n"
    "                      in page_unit_pool:page=65536\n"
    "  --device NAME       where (default: cpu:0); see 'tarn devices'\n"
    "  --iterations N      how often, up to 1000000 (default: 2)\n"
    "  --threads N         by so many threads, up to 64 (default: 1); thread t "
    "of a\n"
    "                      trace that names threads is thread t % N; of "
    "others,\n"
    "                      each frees what another has allocated\n"
    "  --touch             write to each page of each new block; that counts "
    "as\n"
    "                      part of its request\n"
    "  --dry               without any memory: what each pool would hold of a\n"
    "                      device, on a machine that has less\n"
    "  --limit BYTES       what the pool may hold at most, as in 40G\n"
    "  --trace-device N    of a snapshot of several devices, this one "
    "(default:\n"
    "                      the one with most events)\n"
    "  --plugin FILE       load this plug-in first; may be given several "
    "times\n"
    "  --strategy FILE     load this strategy first, likewise\n"
    "  --html FILE         draw where each pool put each block; with several\n"
    "                      traces FILE is a folder\n"
    "  --force             overwrite FILE even if it is not a page of tarn's\n"
    "  --list              name the workloads and pools, and stop\n"
    "  -o FORMAT           table (default), json, csv or md\n"
    "  -h, --help          this text\n"
    "\n"
    "How it measures. What was alive before the first event is taken first "
    "and\n"
    "not timed. Between iterations the replay returns to that state: what an\n"
    "iteration left alive is freed, what it freed of the baseline is taken\n"
    "again, and neither counts as a request. Each iteration is timed as a\n"
    "whole. Then the pool begins anew, and each request of as many iterations\n"
    "is timed by itself: that gives median and p99, and the proportion in "
    "which\n"
    "allocs and frees share the time of the whole. The cost of reading the\n"
    "clock is taken off. All requests are made for no stream. 'steady' is the\n"
    "median of all iterations from the second on, of an even number the "
    "faster\n"
    "of the middle two; frees, median, p99 and hits are those of that\n"
    "iteration.\n"
    "\n"
    "Exit status: 1 if a trace cannot be read, a picture not written, or a\n"
    "request failed, 2 if a pool, device or workload does not exist.\n";

enum { ITERATIONS_MAX = 1000000 };

typedef struct command {
  const tool_verb *verb;
  options_list traces;
  options_list pools;
  options_list plugins;
  options_list strategies;
  const char *device_name;
  const char *html;
  uint64_t iterations;
  uint64_t threads;
  bool touch;
  bool dry;
  bool list;
  bool force;
  size_t limit;
  tarn_trace_options trace_options;
  options_output output;

  options_list pictures;  // where each goes; empty: nowhere
  tarn_device *device;
  char device_text[128];   // its name, and whether it was asked for nothing
  tarn_trace **loaded;     // of each of traces
  replay_result *results;  // trace by trace, pool by pool
  report *reports;         // of each of traces
} command;

// ---------------------------------------------------------------------------
// Options
// ---------------------------------------------------------------------------

static void set_defaults(command *c) {
  if (c->pools.count == 0) {
    options_pools_split("no_pool,page_unit_pool,arena_pool", &c->pools);
  }
  if (c->device_name == NULL) c->device_name = "cpu:0";
  if (c->iterations == 0) c->iterations = 2;
  if (c->threads == 0) c->threads = 1;
}

static void write_list(void) {
  fputs("workloads:\n", tool_out());
  for (size_t i = 0; tarn_trace_workload(i) != NULL; i++) {
    fprintf(tool_out(), "  %s\n", tarn_trace_workload(i));
  }
  fputs("pools:\n", tool_out());
  for (size_t i = 0; tarn_pool_strategy_name(i) != NULL; i++) {
    fprintf(tool_out(), "  %s\n", tarn_pool_strategy_name(i));
  }
}

// ---------------------------------------------------------------------------
// Is all there that was named?
// ---------------------------------------------------------------------------

// In a dry run the device's own pool stays as it is.
static tarn_status try_pool(const void *context, const char *pool) {
  const command *c = context;
  tarn_place place = tarn_place_on(c->device);
  if (c->dry) return options_pool_try_dry(place, pool, c->limit);
  tarn_pool *tried = NULL;
  tarn_status status = tarn_pool_of(place, &tried);
  return status == TARN_OK ? tarn_pool_set_strategy(tried, pool) : status;
}

static tool_exit open_device(command *c) {
  tarn_status status = tarn_device_open(c->device_name, &c->device);
  if (status == TARN_OK) return TOOL_DONE;
  return status == TARN_E_INVALID
             ? tool_misuse(c->verb, "%s", tarn_last_error())
             : tool_fail(c->verb, "%s", tarn_last_error());
}

static tool_exit check_workloads(const command *c) {
  for (size_t i = 0; i < c->traces.count; i++) {
    tool_exit status =
        load_check(c->verb, c->traces.items[i], &c->trace_options);
    if (status != TOOL_DONE) return status;
  }
  return TOOL_DONE;
}

static tool_exit load_traces(command *c) {
  c->loaded = tool_array(c->traces.count, sizeof(tarn_trace *));
  for (size_t i = 0; i < c->traces.count; i++) {
    tool_exit status = load_trace(c->verb, c->traces.items[i],
                                  &c->trace_options, &c->loaded[i]);
    if (status != TOOL_DONE) return status;
  }
  return TOOL_DONE;
}

// Nothing is replayed for pictures that have no place.
static tool_exit prepare_pictures(command *c) {
  if (c->html == NULL) return TOOL_DONE;
  outfile_rules rules = {
      .verb = c->verb, .inputs = &c->traces, .force = c->force};
  return picture_paths_make(&rules, c->html, &c->pictures) ? TOOL_DONE
                                                           : TOOL_NO;
}

static bool page_is_stdout(const command *c) {
  return c->html != NULL && outfile_is_stdout(c->html);
}

static tool_exit check_words(const command *c) {
  if (c->traces.count == 0) {
    return tool_misuse(c->verb, "which trace? --list names the workloads");
  }
  if (c->dry && c->touch) {
    return tool_misuse(c->verb, "--dry has no memory for --touch to write to");
  }
  if (page_is_stdout(c) && c->output != OUTPUT_TABLE) {
    return tool_misuse(c->verb, "--html %s and -o both want stdout", c->html);
  }
  return TOOL_DONE;
}

static tool_exit prepare(command *c) {
  tool_exit status = check_words(c);
  if (status == TOOL_DONE) status = check_workloads(c);
  if (status == TOOL_DONE) status = options_once(c->verb, "pool", &c->pools);
  if (status == TOOL_DONE) status = options_plugins_load(c->verb, &c->plugins);
  if (status == TOOL_DONE) status = open_device(c);
  if (status == TOOL_DONE) {
    status = options_pools_check(c->verb, &c->pools, try_pool, c);
  }
  if (status == TOOL_DONE) status = load_traces(c);
  if (status == TOOL_DONE) status = prepare_pictures(c);
  return status;
}

// ---------------------------------------------------------------------------
// The work
// ---------------------------------------------------------------------------

static bool replay_one(command *c, const stopwatch *watch,
                       tool_progress *progress, size_t trace, size_t pool) {
  replay_result *result = &c->results[trace * c->pools.count + pool];
  replay_options options = {.device = c->device,
                            .pool = c->pools.items[pool],
                            .iterations = c->iterations,
                            .threads = c->threads,
                            .touch = c->touch,
                            .dry = c->dry,
                            .limit = c->limit,
                            .history = c->html != NULL};
  if (replay_run(c->loaded[trace], &options, watch, progress, result)) {
    return true;
  }
  tool_progress_end(progress);
  tool_say(c->verb, "%s: %s: %s", c->traces.items[trace], options.pool,
           result->error);
  return false;
}

static bool replay_all(command *c) {
  tool_progress progress;
  stopwatch watch = stopwatch_start();
  size_t runs = c->traces.count * c->pools.count;
  c->results = tool_array(runs, sizeof *c->results);
  tool_progress_begin(&progress, 2 * runs * c->iterations);
  for (size_t i = 0; i < runs; i++) {
    if (!replay_one(c, &watch, &progress, i / c->pools.count,
                    i % c->pools.count)) {
      return false;
    }
  }
  tool_progress_end(&progress);
  return true;
}

static void make_reports(command *c) {
  snprintf(c->device_text, sizeof c->device_text, "%s%s",
           tarn_device_name(c->device), c->dry ? " (dry)" : "");
  c->reports = tool_array(c->traces.count, sizeof *c->reports);
  for (size_t i = 0; i < c->traces.count; i++) {
    c->reports[i] = (report){.trace = c->loaded[i],
                             .device = c->device_text,
                             .dry = c->dry,
                             .threads = c->threads,
                             .results = &c->results[i * c->pools.count],
                             .result_count = c->pools.count};
  }
}

static tool_exit tell_failures(const command *c) {
  tool_exit status = TOOL_DONE;
  for (size_t i = 0; i < c->traces.count * c->pools.count; i++) {
    const replay_result *result = &c->results[i];
    if (result->failed == 0) continue;
    status =
        tool_fail(c->verb, "%s: %s: %llu requests failed, the first: %s",
                  c->traces.items[i / c->pools.count], result->pool,
                  (unsigned long long)result->failed, result->first_failure);
  }
  return status;
}

static void tell_pictures(const command *c, FILE *out) {
  for (size_t i = 0; i < c->pictures.count; i++) {
    fputs(i == 0 ? "\npicture  " : "picture  ", out);
    text_write(c->pictures.items[i], out);
    fputc('\n', out);
  }
}

// The results are reported even if they cannot be drawn.
static tool_exit replay_and_tell(command *c) {
  if (!replay_all(c)) return TOOL_NO;
  make_reports(c);
  tool_exit status = tell_failures(c);
  bool drawn = picture_write_all(c->verb, c->reports, &c->pictures);
  if (!drawn) status = TOOL_NO;
  FILE *out = page_is_stdout(c) ? stderr : tool_out();
  report_write(c->reports, c->traces.count, c->output, out);
  if (drawn && c->output == OUTPUT_TABLE) tell_pictures(c, out);
  return status;
}

static tool_exit work(void *context) {
  command *c = context;
  tool_exit status = options_strategies_load(c->verb, &c->strategies);
  if (status != TOOL_DONE) return status;
  if (c->list) {
    write_list();
    return TOOL_DONE;
  }
  set_defaults(c);
  status = prepare(c);
  return status == TOOL_DONE ? replay_and_tell(c) : status;
}

static void deinit(void *context) {
  command *c = context;
  size_t runs = c->results ? c->traces.count * c->pools.count : 0;
  for (size_t i = 0; i < runs; i++)
    replay_result_deinit(&c->results[i]);
  for (size_t i = 0; c->loaded != NULL && i < c->traces.count; i++) {
    tarn_trace_destroy(c->loaded[i]);
  }
  if (c->device != NULL) (void)tarn_device_close(c->device);
  free(c->reports);
  free(c->results);
  free(c->loaded);
  options_list_free(&c->pictures);
}

static const options_entry entries[] = {
    OPTION_POOLS("pool", pools),
    OPTION_TEXT("device", device_name),
    OPTION_NUMBER("iterations", iterations, 1, ITERATIONS_MAX),
    OPTION_NUMBER("threads", threads, 1, CROSSING_THREADS_MOST),
    OPTION_FLAG("touch", touch),
    OPTION_FLAG("dry", dry),
    OPTION_BYTES("limit", limit),
    OPTION_TRACE_DEVICE(trace_options),
    OPTION_LIST("plugin", plugins),
    OPTION_LIST("strategy", strategies),
    OPTION_TEXT("html", html),
    OPTION_FLAG("force", force),
    OPTION_FLAG("list", list),
    OPTION_OUTPUT(output),
    {0},
};

const tool_verb verb_replay = {
    .name = "replay",
    .summary = "traces through pools: time, hits, memory held; a picture",
    .help = help,
    .entries = entries,
    .size = sizeof(command),
    .words = offsetof(command, traces),
    .work = work,
    .end = deinit,
};
