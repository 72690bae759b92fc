// tarn bench pool: workloads through allocators, each in a process of its own.
//
// Nothing is written to stdout before all is done: a reader of JSON gets one
// whole document or none.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench/machine.h"
#include "bench/peers.h"
#include "bench/pool_bench.h"
#include "bench_pool_report.h"
#include "options.h"

static const char help[] =
    "usage: tarn bench pool [OPTION]...\n"
    "\n"
    "Runs the requests of workloads through allocators and tells what an "
    "alloc\n"
    "and a free take, over a bare free list that knows each size beforehand:\n"
    "that is the limit.\n"
    "\n"
    "  --workload A,B   which (default: @bert-layer,@resnet50-b8); 'all': all\n"
    "                   that are built in\n"
    "  --pool A,B       which rows (default: free_list,glibc,no_pool,\n"
    "                   page_unit_pool); Tarn's pools may have options, as in\n"
    "                   page_unit_pool:page=65536\n"
    "  --strategy FILE  load this strategy first; may be given several times\n"
    "  --passes N       passes that count, up to 1000000 (default: as many as\n"
    "                   take 0.25 s, but at least 31; 5 if one takes over "
    "0.1 s)\n"
    "  -o FORMAT        table (default), json, csv or md\n"
    "  -h, --help       this text\n"
    "\n"
    "How it measures. Each row has a fresh process; one that crashes stays as\n"
    "a row that says so. A pass is all requests of a workload; blocks are not\n"
    "written to. Whole passes are timed; the median of all but the first two,\n"
    "divided by the count of allocs, is 'both ns': one alloc and one free. It\n"
    "is split as requests timed one by one say, less what timing nothing\n"
    "takes; 'alloc p99' is of those. 'by address' is both, where free has\n"
    "only the address. '1st' and '2nd ms' are the first two passes, 'steady\n"
    "ms' the median. 'over live' is the most memory held over the most in\n"
    "use.\n"
    "\n"
    "Exit status: 1 if a row failed, 2 if a workload or pool does not exist.\n";

enum { PASSES_MAX = 1000000 };

typedef struct command {
  const tool_verb *verb;
  options_list workloads;
  options_list pools;
  options_list strategies;
  uint64_t passes;
  options_output output;

  stopwatch watch;
  tarn_trace **traces;         // of each workload ...
  request_list *requests;      // ... its requests ...
  bench_pool_report *reports;  // ... and what came of them
  pool_bench_result *results;  // workload by workload, pool by pool
} command;

// ---------------------------------------------------------------------------
// Options
// ---------------------------------------------------------------------------

// False on wrong use.
static bool obey(void *context, int option) {
  command *c = context;
  switch (option) {
    case 'w':
      options_pools_split(optarg, &c->workloads);
      return true;
    case 'p':
      options_pools_split(optarg, &c->pools);
      return true;
    case 'S':
      options_list_add(&c->strategies, optarg, strlen(optarg));
      return true;
    case 'n':
      return options_number_parse(c->verb, "--passes", optarg, 1, PASSES_MAX,
                                  &c->passes);
    case 'o':
      return options_output_parse(c->verb, optarg, &c->output);
    default:
      return false;
  }
}

static void take_all_workloads(command *c) {
  options_list_free(&c->workloads);
  for (size_t i = 0; tarn_trace_workload(i) != NULL; i++) {
    const char *name = tarn_trace_workload(i);
    options_list_add(&c->workloads, name, strlen(name));
  }
}

static void set_defaults(command *c) {
  if (c->workloads.count == 0) {
    options_pools_split("@bert-layer,@resnet50-b8", &c->workloads);
  } else if (c->workloads.count == 1 &&
             strcmp(c->workloads.items[0], "all") == 0) {
    take_all_workloads(c);
  }
  if (c->pools.count == 0) {
    options_pools_split("free_list,glibc,no_pool,page_unit_pool", &c->pools);
  }
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
    if (!options_is_known(name, strlen(name), tarn_trace_workload)) {
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

static tool_exit make_requests(command *c) {
  c->traces = tool_array(c->workloads.count, sizeof(tarn_trace *));
  c->requests = tool_array(c->workloads.count, sizeof *c->requests);
  for (size_t i = 0; i < c->workloads.count; i++) {
    tarn_status status = tarn_trace_make(c->workloads.items[i], &c->traces[i]);
    if (status != TARN_OK) return tool_fail(c->verb, "%s", tarn_last_error());
    c->requests[i] = requests_make(c->traces[i]);
  }
  return TOOL_DONE;
}

static pool_bench what_to_measure(const command *c, size_t workload,
                                  size_t pool) {
  return (pool_bench){.trace = c->traces[workload],
                      .requests = &c->requests[workload],
                      .watch = &c->watch,
                      .name = c->pools.items[pool],
                      .passes = c->passes};
}

// Only the pool itself can say whether it has those options.
static tool_exit check_pool_options(const command *c) {
  char why[CHILD_TEXT_SIZE];
  for (size_t i = 0; i < c->pools.count; i++) {
    pool_bench bench = what_to_measure(c, 0, i);
    bool has_options = strchr(bench.name, ':') != NULL;
    if (has_options && !pool_bench_try(&bench, why)) {
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

static tool_exit measure_row(command *c, tool_progress *progress,
                             size_t workload, size_t pool) {
  char step[CHILD_TEXT_SIZE];
  pool_bench bench = what_to_measure(c, workload, pool);
  snprintf(step, sizeof step, "%.64s, %.64s", bench.name, bench.trace->name);
  tool_progress_step(progress, step);
  pool_bench_result *result = &c->reports[workload].results[pool];
  *result = pool_bench_run(&bench);
  if (result->failed[0] == '\0') return TOOL_DONE;
  tool_progress_end(progress);
  return tool_fail(c->verb, "%s: %s: %s", bench.trace->name, bench.name,
                   result->failed);
}

static void make_reports(command *c) {
  c->reports = tool_array(c->workloads.count, sizeof *c->reports);
  c->results =
      tool_array(c->workloads.count * c->pools.count, sizeof *c->results);
  for (size_t i = 0; i < c->workloads.count; i++) {
    c->reports[i] =
        (bench_pool_report){.trace = c->traces[i],
                            .threads = 1,
                            .names = c->pools.items,
                            .results = &c->results[i * c->pools.count],
                            .result_count = c->pools.count};
  }
}

static tool_exit measure_all(command *c) {
  char machine[MACHINE_SIZE];
  tool_progress progress;
  tool_exit status = TOOL_DONE;
  size_t rows = c->workloads.count * c->pools.count;
  c->watch = stopwatch_start();
  make_reports(c);
  tool_progress_begin(&progress, rows);
  for (size_t i = 0; i < rows; i++) {
    tool_exit row =
        measure_row(c, &progress, i / c->pools.count, i % c->pools.count);
    if (row != TOOL_DONE) status = row;
  }
  tool_progress_end(&progress);
  bench_pool_report_write(c->reports, c->workloads.count,
                          machine_describe(machine), c->output);
  return status;
}

static void deinit(command *c) {
  for (size_t i = 0; c->requests != NULL && i < c->workloads.count; i++) {
    requests_deinit(&c->requests[i]);
    tarn_trace_destroy(c->traces[i]);
  }
  free(c->results);
  free(c->reports);
  free(c->requests);
  free(c->traces);
  options_list_free(&c->workloads);
  options_list_free(&c->pools);
  options_list_free(&c->strategies);
}

static tool_exit work(void *context) {
  command *c = context;
  tool_exit status = options_strategies_load(c->verb, &c->strategies);
  if (status != TOOL_DONE) return status;
  set_defaults(c);
  status = prepare(c);
  return status == TOOL_DONE ? measure_all(c) : status;
}

static tool_exit run(const tool_verb *verb, int argc, char **argv) {
  static const struct option known[] = {
      {"workload", required_argument, NULL, 'w'},
      {"pool", required_argument, NULL, 'p'},
      {"strategy", required_argument, NULL, 'S'},
      {"passes", required_argument, NULL, 'n'},
      {"output", required_argument, NULL, 'o'},
      {"help", no_argument, NULL, 'h'},
      {0},
  };
  command c = {.verb = verb};
  options_spec spec = {.verb = verb, .known = known, .obey = obey, .run = work};
  tool_exit status = options_run(&spec, &c, argc, argv);
  deinit(&c);
  return status;
}

const tool_verb bench_of_pools = {
    .name = "bench pool",
    .summary = "what an alloc and a free take, over a bare free list",
    .help = help,
    .run = run,
};
