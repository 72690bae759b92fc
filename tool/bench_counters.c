// tarn bench counters: the cost of counting for an alloc and a free. Each pool
// runs in a process of its own.
//
// Nothing is written to stdout before the end, as in bench_pool.c.
#include <string.h>

#include "bench.h"
#include "bench/counters_bench.h"
#include "bench/figure.h"
#include "bench_each.h"
#include "kit/sheet.h"

static const char help[] =
    "usage: tarn bench counters [OPTION]...\n"
    "\n"
    "Tells what each of the counters that a pool can be told to keep takes of\n"
    "an alloc and a free that hit, in nanoseconds.\n"
    "\n"
    "  --pool A,B       which strategies (default: "
    "page_unit_pool,arena_pool:steps=0);\n"
    "                   they may have options\n"
    "  --device NAME    the device of the pools (default: cpu:0)\n"
    "  --strategy FILE  load this strategy first; may be given several times\n"
    "  --passes N       passes that count, 1 to 100001 (default: 501)\n"
    "  -o FORMAT        table (default), json, csv or md\n"
    "  -h, --help       this text\n"
    "\n"
    "How it measures. Each pool has a fresh process. One block of 4 KiB is\n"
    "taken and given back a thousand times in a row, with one set of counters\n"
    "after the other, by handle and by address; every other pass in turned\n"
    "order. The median of all passes counts: 'both ns' is one alloc and one\n"
    "free, 'more' the difference to the default in the same pass.\n"
    "\n"
    "Exit status: 1 if something could not be measured, 2 if a pool or device\n"
    "does not exist.\n";

enum { PASSES = 501, PASSES_MOST = 100001 };

typedef struct command {
  const tool_verb *verb;
  options_list pools;
  options_list strategies;
  const char *device;
  uint64_t passes;
  options_output output;

  stopwatch watch;
} command;

// ---------------------------------------------------------------------------
// Options
// ---------------------------------------------------------------------------

static counters_bench what_to_measure(const command *c, size_t index) {
  return (counters_bench){.pool = c->pools.items[index],
                          .device = c->device,
                          .watch = &c->watch,
                          .passes = c->passes};
}

// Only the pool itself can say whether it has those options, or that device.
static tool_exit check_pool(const command *c, size_t index) {
  char why[CHILD_TEXT_SIZE];
  const char *name = c->pools.items[index];
  if (!options_is_known(name, strcspn(name, ":"), tarn_pool_strategy_name)) {
    return options_unknown(c->verb, "pool", name, tarn_pool_strategy_name);
  }
  counters_bench bench = what_to_measure(c, index);
  if (!counters_bench_try(&bench, why)) return tool_misuse(c->verb, "%s", why);
  return TOOL_DONE;
}

static tool_exit prepare(command *c) {
  if (c->pools.count == 0) {
    options_pools_split("page_unit_pool,arena_pool:steps=0", &c->pools);
  }
  tool_exit status = options_strategies_load(c->verb, &c->strategies);
  if (status == TOOL_DONE) status = options_once(c->verb, "pool", &c->pools);
  for (size_t i = 0; i < c->pools.count && status == TOOL_DONE; i++)
    status = check_pool(c, i);
  return status;
}

// ---------------------------------------------------------------------------
// The work
// ---------------------------------------------------------------------------

static tool_exit measure_pool(void *context, size_t index, void *out_result) {
  const command *c = context;
  counters_bench bench = what_to_measure(c, index);
  counters_bench_result *result = out_result;
  *result = counters_bench_run(&bench);
  if (result->failed[0] == '\0') return TOOL_DONE;
  return tool_fail(c->verb, "%s: %s", bench.pool, result->failed);
}

static void write_row(sheet *s, const char *pool,
                      const counters_bench_result *r, size_t index) {
  counters_bench_row row = counters_bench_row_at(index);
  const counters_bench_figures *f = &r->rows[index];
  sheet_only(s, SHEET_CSV | SHEET_JSON);
  sheet_text(s, "pool", "pool", pool);
  sheet_only(s, SHEET_ALL);
  sheet_text(s, "counting", "name", row.name);
  sheet_number(s, "both ns", "ns", f->by_handle, 1);
  sheet_number(s, "more", "more_ns", f->more_by_handle, 1);
  sheet_number(s, "by address", "by_address_ns", f->by_address, 1);
  sheet_number(s, "more", "by_address_more_ns", f->more_by_address, 1);
  sheet_only(s, SHEET_PEOPLE | SHEET_CSV);
  sheet_text(s, "what", "what", row.what);
  sheet_only(s, SHEET_ALL);
  sheet_failed(s, "failed", r->failed);
  sheet_row_end(s);
}

static void report(const void *context, const void *results) {
  const command *c = context;
  sheet *s = bench_sheet_begin(c->output);
  sheet_list(s, "results");
  for (size_t i = 0; i < c->pools.count; i++) {
    const counters_bench_result *r = (const counters_bench_result *)results + i;
    sheet_group(s, c->pools.items[i]);
    for (size_t row = 0; row < COUNTERS_BENCH_ROWS; row++)
      write_row(s, c->pools.items[i], r, row);
  }
  sheet_end(s);
}

static tool_exit work(void *context) {
  command *c = context;
  tool_exit status = prepare(c);
  if (status != TOOL_DONE) return status;
  c->watch = stopwatch_start();
  return bench_each(&c->pools, sizeof(counters_bench_result), measure_pool,
                    report, c);
}

static const options_entry entries[] = {
    OPTION_POOLS("pool", pools),
    OPTION_TEXT("device", device),
    OPTION_LIST("strategy", strategies),
    OPTION_NUMBER("passes", passes, 1, PASSES_MOST),
    OPTION_OUTPUT(output),
    {0},
};

const tool_verb bench_of_counters = {
    .name = "bench counters",
    .summary = "what counting takes of an alloc and a free",
    .help = help,
    .entries = entries,
    OPTIONS_COMMAND(.device = "cpu:0", .passes = PASSES),
    .work = work,
};
