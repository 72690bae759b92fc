// tarn bench pool: workloads through allocators, each in a process of its own.
//
// Nothing is written to stdout before the end: a reader of JSON gets one
// complete document or none.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "bench/peers.h"
#include "bench/pool_bench.h"
#include "bench_pool_report.h"
#include "bench_slack_report.h"
#include "kit/crossing.h"
#include "kit/memory.h"
#include "kit/options.h"
#include "kit/placement.h"

static const char help[] =
    "usage: tarn bench pool [OPTION]...\n"
    "\n"
    "Runs the requests of workloads through allocators and tells what an "
    "alloc\n"
    "and a free take, over a bare free list that knows each size beforehand:\n"
    "that is the limit. All of it takes up to 12 minutes.\n"
    "\n"
    "  --workload A,B   which (default: all that are built in)\n"
    "  --pool A,B       which rows (default: harness,free_list,glibc,mimalloc,"
    "\n"
    "                   jemalloc,tcmalloc,no_pool,page_unit_pool,buddy_pool,\n"
    "                   arena_pool); harness is the loop with no allocator;\n"
    "                   umf_disjoint and umf_disjoint_tuned are UMF's, where\n"
    "                   libumf is, or TARN_UMF says where;\n"
    "                   Tarn's pools may have options, as in\n"
    "                   page_unit_pool:page=65536; a path with a '/' is a "
    "shared\n"
    "                   object that defines bench/peer_abi.h, as in\n"
    "                   ./peer.so:OPTIONS\n"
    "  --slack A,B      curves: what each pool of --pool (default: "
    "arena_pool)\n"
    "                   takes and holds with the slack that it has by itself, "
    "and\n"
    "                   with each of these, as its option slack takes them\n"
    "  --threads A,B    how many, from 1 to 64 (default: 1,2); of several, "
    "each\n"
    "                   frees what another has allocated, or where the "
    "workload\n"
    "                   names threads, thread t is thread t % N\n"
    "  --spread         each of several threads keeps a processor, in turn;\n"
    "                   else the scheduler puts two on one or on two, as it "
    "comes\n"
    "  --hogs N         so many threads beside them, up to 64 (default: 0), "
    "take\n"
    "                   processors for 100 us each 500 us: a thread loses its\n"
    "                   processor wherever it is, inside a lock too\n"
    "  --touched WHICH  yes: each page of a block is written to; no; both\n"
    "                   (default)\n"
    "  --device NAME    the device of Tarn's pools (default: cpu:0)\n"
    "  --strategy FILE  load this strategy first; may be given several times\n"
    "  --seeds N        a pass has N draws of each workload, with seeds 1 to N "
    "(up\n"
    "                   to 64; default: one, with its own seed): a program "
    "that\n"
    "                   does not repeat cannot be learned from pass to pass\n"
    "  --passes N       passes that count, up to 1000000 (default: as many as\n"
    "                   take 0.25 s, but at least 31; 5 if one takes over "
    "0.1 s)\n"
    "  --seconds N      of all rows together without --passes (default: 690)"
    "\n"
    "  -o FORMAT        table (default), json, csv or md\n"
    "  -h, --help       this text\n"
    "\n"
    "How it measures. Each row has a fresh process, which may have 60% of the\n"
    "memory; one that crashes or is over a limit, or whose library is not\n"
    "installed, stays as a row that says so. A pass is all requests of a\n"
    "workload. Whole passes are timed; the median of all but the first two,\n"
    "divided by the count of allocs, is 'both ns': one alloc and one free. It\n"
    "is split as requests timed one by one say, less what timing nothing\n"
    "takes; 'alloc p99' is of those. 'by address' is both, where free has\n"
    "only the address. '1st' and '2nd ms' are the first two passes, 'steady\n"
    "ms' the median; of touched ones, less the touching of a buffer that is\n"
    "there already. 'over live' is the most memory held over the most in\n"
    "use. 'varies ms' is the median distance from the steady pass; 'no_pool /\n"
    "2nd' and 'glibc / steady' say what those rows take over this one, or "
    "over\n"
    "what it varies by, if that is more.\n"
    "\n"
    "Exit status: 1 if a row failed, which a missing library or a limit is "
    "not;\n"
    "2 if a workload, pool or device does not exist.\n";

enum { PASSES_MAX = 1000000, SEEDS_MAX = 64, PATH_SIZE = 4096, NAME_SIZE = 96 };

// The time of the whole benchmark without --passes.
enum { SECONDS_USUAL = 690, SECONDS_MAX = 86400 };

#define DEFAULT_POOLS                                           \
  "harness,free_list,glibc,mimalloc,jemalloc,tcmalloc,no_pool," \
  "page_unit_pool,buddy_pool,arena_pool"

typedef struct command {
  const tool_verb *verb;
  options_list workloads;
  options_list pools;   // the rows
  options_list slacks;  // empty: no curves
  options_list curves;  // the pools that they are of
  options_list strategies;
  size_t threads[CROSSING_THREADS_MOST];  // by rising number
  size_t threads_count;
  bool untouched, touched;  // neither: both
  const char *device;
  bool spread;
  uint64_t hogs;
  uint64_t passes;
  uint64_t seeds;
  uint64_t seconds;
  options_output output;

  stopwatch watch;
  uint64_t begin_ns;
  tarn_trace **traces;         // of each workload, by draws ...
  request_list *requests;      // ... the requests of all its draws
  bench_pool_report *reports;  // of each workload, by threads and touching
  size_t report_count;
  pool_bench_result *results;  // report by report, pool by pool
  size_t rows_done;
} command;

// ---------------------------------------------------------------------------
// Options
// ---------------------------------------------------------------------------

// |words|: for the first of the two, for the second, and for both.
static bool take_either(const char *text, const char *const words[3],
                        bool *first, bool *second) {
  *first = strcmp(text, words[1]) != 0;
  *second = strcmp(text, words[0]) != 0;
  return !*first || !*second || strcmp(text, words[2]) == 0;
}

static bool refuse_threads(const command *c, const char *text) {
  tool_misuse(c->verb,
              "--threads wants numbers from 1 to %d that rise, as in 1,2,4, "
              "not '%s'",
              CROSSING_THREADS_MOST, text);
  return false;
}

// The number at |*text|, which is moved behind it and the comma; 0 if there is
// none.
static size_t take_number(const char **text) {
  size_t digits = strspn(*text, "0123456789");
  size_t number = 0;
  if (digits == 0 || digits > 3) return 0;
  for (size_t i = 0; i < digits; i++)
    number = number * 10 + (size_t)((*text)[i] - '0');
  *text += digits;
  if (**text == ',' && (*text)[1] != '\0') {
    ++*text;
  } else if (**text != '\0') {
    return 0;
  }
  return number;
}

static bool take_threads(void *context, const char *text) {
  command *c = context;
  const char *rest = text;
  size_t last = 0;
  c->threads_count = 0;
  do {
    size_t number = take_number(&rest);
    if (number <= last || number > CROSSING_THREADS_MOST) {
      return refuse_threads(c, text);
    }
    c->threads[c->threads_count++] = last = number;
  } while (*rest != '\0');
  return true;
}

static bool take_touched(void *context, const char *text) {
  command *c = context;
  static const char *const words[] = {"no", "yes", "both"};
  if (take_either(text, words, &c->untouched, &c->touched)) return true;
  tool_misuse(c->verb, "--touched wants yes, no or both, not '%s'", text);
  return false;
}

static void take_all_workloads(command *c) {
  options_list_free(&c->workloads);
  for (size_t i = 0; tarn_trace_workload(i) != NULL; i++) {
    const char *name = tarn_trace_workload(i);
    options_list_add(&c->workloads, name, strlen(name));
  }
}

// The rows are the points of the curves.
static void make_curves(command *c) {
  c->curves = c->pools;
  c->pools = (options_list){0};
  if (c->curves.count == 0) options_pools_split("arena_pool", &c->curves);
  bench_slack_names(&c->curves, &c->slacks, &c->pools);
}

static void set_defaults(command *c) {
  bool all =
      c->workloads.count == 1 && strcmp(c->workloads.items[0], "all") == 0;
  if (c->workloads.count == 0 || all) take_all_workloads(c);
  if (c->slacks.count > 0) make_curves(c);
  if (c->pools.count == 0) options_pools_split(DEFAULT_POOLS, &c->pools);
  if (c->threads_count == 0) (void)take_threads(c, "1,2");
  if (!c->untouched && !c->touched) c->untouched = c->touched = true;
}

// ---------------------------------------------------------------------------
// Is all there that was named?
// ---------------------------------------------------------------------------

static tool_exit check_workloads(const command *c) {
  for (size_t i = 0; i < c->workloads.count; i++) {
    const char *name = c->workloads.items[i];
    if (strcmp(name, "all") == 0) {
      return tool_misuse(c->verb,
                         "'all' stands for every workload: it is named alone");
    }
    if (!options_is_known(name, strcspn(name, ":"), tarn_trace_workload)) {
      return options_unknown(c->verb, "workload", name, tarn_trace_workload);
    }
  }
  return TOOL_DONE;
}

static tool_exit check_pool_names(const command *c) {
  for (size_t i = 0; i < c->pools.count; i++) {
    const char *name = c->pools.items[i];
    if (peer_find(name) == NULL) {
      return options_unknown(c->verb, "pool", name, peer_name);
    }
  }
  return TOOL_DONE;
}

// One draw is that of the workload's own seed; several have seeds from 1 on.
static tool_exit make_trace(const command *c, size_t workload, size_t draw) {
  char name[NAME_SIZE];
  tarn_trace **out = &c->traces[workload * c->seeds + draw];
  snprintf(name, sizeof name, "%s", c->workloads.items[workload]);
  if (c->seeds > 1 && strchr(name, ':') != NULL) {
    return tool_misuse(c->verb, "--seeds is for workloads without a seed: %s",
                       name);
  }
  if (c->seeds > 1) {
    snprintf(name, sizeof name, "%.64s:seed=%zu", c->workloads.items[workload],
             draw + 1);
  }
  tarn_status status = tarn_trace_make(name, out);
  if (status == TARN_OK) return TOOL_DONE;
  return status == TARN_E_INVALID
             ? tool_misuse(c->verb, "%s", tarn_last_error())
             : tool_fail(c->verb, "%s", tarn_last_error());
}

static tool_exit make_requests(command *c) {
  size_t traces = c->workloads.count * c->seeds;
  c->traces = tool_array(traces, sizeof(tarn_trace *));
  c->requests = tool_array(c->workloads.count, sizeof *c->requests);
  for (size_t i = 0; i < traces; i++) {
    tool_exit status = make_trace(c, i / c->seeds, i % c->seeds);
    if (status != TOOL_DONE) return status;
  }
  for (size_t i = 0; i < c->workloads.count; i++) {
    c->requests[i] = requests_join(
        (const tarn_trace *const *)&c->traces[i * c->seeds], c->seeds);
  }
  return TOOL_DONE;
}

// The draw with the highest live peak.
static const tarn_trace *highest_of(const command *c, size_t workload) {
  const tarn_trace *highest = c->traces[workload * c->seeds];
  for (size_t i = 1; i < c->seeds; i++) {
    const tarn_trace *other = c->traces[workload * c->seeds + i];
    if (other->live_peak_bytes > highest->live_peak_bytes) highest = other;
  }
  return highest;
}

static bool is_tarns(const char *pool) {
  return peer_find(pool)->on_device;
}

// Only the pool itself can say whether it has those options, or that device.
static tool_exit check_pool_options(const command *c) {
  char why[CHILD_TEXT_SIZE];
  for (size_t i = 0; i < c->pools.count; i++) {
    pool_bench bench = {.requests = &c->requests[0],
                        .name = c->pools.items[i],
                        .device = c->device,
                        .threads = 1};
    bool may_be_wrong = strchr(bench.name, ':') != NULL ||
                        (c->device != NULL && is_tarns(bench.name));
    if (may_be_wrong && !pool_bench_try(&bench, why)) {
      return tool_misuse(c->verb, "%s", why);
    }
  }
  return TOOL_DONE;
}

static tool_exit prepare(command *c) {
  tool_exit status = check_workloads(c);
  if (status == TOOL_DONE) {
    status = options_once(c->verb, "workload", &c->workloads);
  }
  if (status == TOOL_DONE) status = options_once(c->verb, "pool", &c->pools);
  if (status == TOOL_DONE) status = check_pool_names(c);
  if (status == TOOL_DONE) status = make_requests(c);
  if (status == TOOL_DONE) status = check_pool_options(c);
  return status;
}

// ---------------------------------------------------------------------------
// The work
// ---------------------------------------------------------------------------

// Without --passes the rows share the time that is left: one row may take a few
// times its share.
static child_limits limits_now(const command *c) {
  enum { SHARES = 4 };
  child_limits limits = {.bytes = memory_of_machine() / 10 * 6};
  if (c->passes > 0) return limits;
  double used = (double)(stopwatch_clock_ns() - c->begin_ns) / 1e9;
  size_t rows = c->report_count * c->pools.count - c->rows_done;
  limits.seconds = SHARES * ((double)c->seconds - used) / (double)rows;
  return limits;
}

static pool_bench_result run_row(const command *c, const bench_pool_report *r,
                                 size_t pool) {
  size_t scenes = c->report_count / c->workloads.count;
  size_t workload = (size_t)(r - c->reports) / scenes;
  pool_bench bench = {.requests = &c->requests[workload],
                      .live_peak_bytes = r->trace->live_peak_bytes,
                      .watch = &c->watch,
                      .name = r->names[pool],
                      .device = c->device,
                      .threads = r->threads,
                      .spread = c->spread,
                      .hogs = c->hogs,
                      .touched = r->touched,
                      .limits = limits_now(c),
                      .passes = c->passes};
  if (c->passes > 0 || bench.limits.seconds >= 1) return pool_bench_run(&bench);
  return pool_bench_not_run(CHILD_OVER "the seconds of the whole benchmark");
}

static tool_exit measure_row(command *c, tool_progress *progress,
                             const bench_pool_report *r, size_t pool) {
  char step[CHILD_TEXT_SIZE];
  snprintf(step, sizeof step, "%.64s, %.64s, %zu thread%s, %s", r->names[pool],
           r->name, r->threads, r->threads == 1 ? "" : "s",
           r->touched ? "touched" : "untouched");
  tool_progress_step(progress, step);
  pool_bench_result *result = &r->results[pool];
  *result = run_row(c, r, pool);
  c->rows_done++;
  if (result->failed[0] == '\0') return TOOL_DONE;
  tool_progress_end(progress);
  tool_say(c->verb, "%s: %s: %s", r->name, r->names[pool], result->failed);
  return pool_bench_is_finding(result) ? TOOL_DONE : TOOL_NO;
}

static void add_report(command *c, size_t workload, size_t threads,
                       bool touched) {
  size_t first = c->report_count * c->pools.count;
  c->reports[c->report_count++] =
      (bench_pool_report){.name = c->workloads.items[workload],
                          .trace = highest_of(c, workload),
                          .seeds = c->seeds,
                          .threads = threads,
                          .spread = c->spread && threads > 1,
                          .hogs = c->hogs,
                          .touched = touched,
                          .names = c->pools.items,
                          .results = &c->results[first],
                          .result_count = c->pools.count};
}

static void make_reports(command *c) {
  size_t most = c->workloads.count * c->threads_count * 2;
  c->reports = tool_array(most, sizeof *c->reports);
  c->results = tool_array(most * c->pools.count, sizeof *c->results);
  for (size_t i = 0; i < c->workloads.count; i++) {
    for (size_t k = 0; k < c->threads_count; k++) {
      if (c->untouched) add_report(c, i, c->threads[k], false);
      if (c->touched) add_report(c, i, c->threads[k], true);
    }
  }
}

// Blocks that are touched take the longest, and so come last: where time runs
// out, it is there.
static tool_exit measure_where(command *c, tool_progress *progress,
                               bool touched) {
  tool_exit status = TOOL_DONE;
  for (size_t i = 0; i < c->report_count * c->pools.count; i++) {
    const bench_pool_report *r = &c->reports[i / c->pools.count];
    if (r->touched != touched) continue;
    tool_exit row = measure_row(c, progress, r, i % c->pools.count);
    if (row != TOOL_DONE) status = row;
  }
  return status;
}

static void write_reports(const command *c) {
  bench_slack_report curves = {.reports = c->reports,
                               .count = c->report_count,
                               .pools = &c->curves,
                               .slacks = &c->slacks};
  if (c->slacks.count > 0) {
    bench_slack_report_write(&curves, c->output);
  } else {
    bench_pool_report_write(c->reports, c->report_count, c->output);
  }
}

static tool_exit measure_all(command *c) {
  tool_progress progress;
  tool_exit status;
  c->watch = stopwatch_start();
  c->begin_ns = stopwatch_clock_ns();
  make_reports(c);
  tool_progress_begin(&progress, c->report_count * c->pools.count);
  status = measure_where(c, &progress, false);
  if (measure_where(c, &progress, true) != TOOL_DONE) status = TOOL_NO;
  tool_progress_end(&progress);
  write_reports(c);
  return status;
}

static void deinit(void *context) {
  command *c = context;
  for (size_t i = 0; c->requests != NULL && i < c->workloads.count; i++) {
    requests_deinit(&c->requests[i]);
    for (size_t k = 0; k < c->seeds; k++)
      tarn_trace_destroy(c->traces[i * c->seeds + k]);
  }
  options_list_free(&c->curves);
  free(c->results);
  free(c->reports);
  free(c->requests);
  free(c->traces);
}

static tool_exit work(void *context) {
  command *c = context;
  tool_exit status = options_strategies_load(c->verb, &c->strategies);
  if (status != TOOL_DONE) return status;
  set_defaults(c);
  status = prepare(c);
  return status == TOOL_DONE ? measure_all(c) : status;
}

// jemalloc keeps more data for each thread than the C library has room for in
// libraries that are loaded late, unless a setting at the start of the process
// changes that. Where it cannot be set, jemalloc's rows say that it cannot be
// loaded.
static void restart_with_room(int argc, char **argv) {
  static const char tunables[] = "GLIBC_TUNABLES";
  char self[PATH_SIZE];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  if (length <= 0 || length >= PATH_SIZE || getenv(tunables) != NULL) return;
  self[length] = '\0';
  char **words = tool_array((size_t)argc + 3, sizeof *words);
  words[0] = "tarn";
  words[1] = "bench";
  words[2] = "pool";
  for (int i = 1; i < argc; i++)
    words[i + 2] = argv[i];
  if (setenv(tunables, "glibc.rtld.optional_static_tls=16384", 1) == 0) {
    (void)execv(self, words);
  }
  free(words);
}

static tool_exit run(const tool_verb *verb, int argc, char **argv) {
  restart_with_room(argc, argv);
  return options_run(verb, argc, argv);
}

static const options_entry entries[] = {
    OPTION_POOLS("workload", workloads),
    OPTION_POOLS("pool", pools),
    OPTION_NAMES("slack", slacks),
    OPTION_CALL("threads", take_threads),
    OPTION_FLAG("spread", spread),
    OPTION_NUMBER("hogs", hogs, 0, PLACEMENT_HOGS_MOST),
    OPTION_CALL("touched", take_touched),
    OPTION_TEXT("device", device),
    OPTION_LIST("strategy", strategies),
    OPTION_NUMBER("seeds", seeds, 1, SEEDS_MAX),
    OPTION_NUMBER("passes", passes, 1, PASSES_MAX),
    OPTION_NUMBER("seconds", seconds, 1, SECONDS_MAX),
    OPTION_OUTPUT(output),
    {0},
};

const tool_verb bench_of_pools = {
    .name = "bench pool",
    .summary = "what an alloc and a free take, over a bare free list",
    .help = help,
    .run = run,
    .entries = entries,
    OPTIONS_COMMAND(.seconds = SECONDS_USUAL, .seeds = 1),
    .work = work,
    .end = deinit,
};
