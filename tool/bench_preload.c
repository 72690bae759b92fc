// tarn bench preload: real programs under allocators that are preloaded.
//
// With --pools the columns are Tarn's pools in place of allocators, and what is
// told is what the document about pools tells: iterations and run time.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench/figure.h"
#include "bench/preload_bench.h"
#include "kit/options.h"
#include "launch.h"

static const char help[] =
    "usage: tarn bench preload [OPTION]...\n"
    "\n"
    "Runs programs, each under the C library's malloc, under jemalloc, "
    "tcmalloc\n"
    "and mimalloc, if they are installed, and under Tarn's pool (`tarn "
    "preload`),\n"
    "and tells what that took.\n"
    "\n"
    "  --programs A,B   of: blocks, gpt-fixed, gpt-varied, resnet-fixed,\n"
    "                   resnet-varied, numpy, images (default: these), "
    "resnet50,\n"
    "                   vgg16\n"
    "  --allocators A,B of: glibc, jemalloc, tcmalloc, mimalloc, tarn "
    "(default:\n"
    "                   all)\n"
    "  --pools A,B      Tarn alone, with each of these pools: iterations and "
    "run\n"
    "                   time\n"
    "  --passes N       that count, 1 to 1001 (default: 3)\n"
    "  --steps N        of each program, 2 to 100000 (default: its own)\n"
    "  --threads N      of PyTorch, BLAS and oiiotool, 1 to 1024 (default: 1)\n"
    "  --python FILE    an interpreter (default: /usr/bin/python3)\n"
    "  --work NAME      be a program of that kind: blocks, probe\n"
    "  -o FORMAT        table (default), json, csv or md\n"
    "  -h, --help       this text\n"
    "\n"
    "How it measures. Each pass runs every program under every allocator, one\n"
    "after the other, every other pass in turned order; of all passes the "
    "median\n"
    "counts. cpu s: the processor's time of the whole process, sys s: the\n"
    "kernel's part of it; faults: of pages, after the first step of the "
    "program,\n"
    "or all where it has no steps (images); MiB: the most that was resident.\n"
    "With --pools: the processor's time of the first step, of the second and "
    "of\n"
    "the others, in the median; run s is the clock's time.\n"
    "What is not installed is named in its row.\n"
    "\n"
    "Exit status: 1 if something that is installed failed.\n";

enum { PASSES = 3, PASSES_MOST = 1001, STEPS_MOST = 100000 };

typedef struct command {
  const tool_verb *verb;
  options_list programs;
  options_list allocators;
  options_list pools;
  const char *python;
  const char *work;  // NULL: measure
  uint64_t passes;
  uint64_t steps;
  uint64_t threads;
  options_output output;
  char *heap;  // libtarn-malloc.so
  preload_column *columns;
  size_t column_count;
  tool_progress progress;
} command;

// --- the command line ------------------------------------------------------

static const char *usual_program(size_t index) {
  return index < preload_usual() ? preload_program_name(index) : NULL;
}

// Fills an empty list, and checks one that is not.
static tool_exit complete(const tool_verb *verb, options_list *list,
                          const char *what, tool_name_fn *all,
                          tool_name_fn *usual) {
  for (size_t i = 0; i < list->count; i++) {
    if (!options_is_known(list->items[i], strlen(list->items[i]), all))
      return options_unknown(verb, what, list->items[i], all);
  }
  if (list->count > 0) return options_once(verb, what, list);
  for (size_t i = 0; usual(i) != NULL; i++)
    options_list_add(list, usual(i), strlen(usual(i)));
  return TOOL_DONE;
}

static tarn_status try_pool(const void *context, const char *pool) {
  (void)context;
  return options_pool_try_dry(TARN_HOST, pool, 0);
}

static tool_exit check(command *c) {
  if (c->pools.count > 0 && c->allocators.count > 0) {
    return tool_misuse(c->verb,
                       "--pools are Tarn's: there is no --allocators "
                       "with it");
  }
  tool_exit status = complete(c->verb, &c->programs, "program",
                              preload_program_name, usual_program);
  if (status == TOOL_DONE) {
    status = complete(c->verb, &c->allocators, "allocator",
                      preload_allocator_name, preload_allocator_name);
  }
  return status == TOOL_DONE
             ? options_pools_check(c->verb, &c->pools, try_pool, NULL)
             : status;
}

static void make_columns(command *c) {
  bool pools = c->pools.count > 0;
  c->column_count = pools ? c->pools.count : c->allocators.count;
  c->columns = tool_array(c->column_count, sizeof *c->columns);
  for (size_t i = 0; i < c->column_count; i++) {
    c->columns[i] =
        (preload_column){.allocator = pools ? "tarn" : c->allocators.items[i],
                         .pool = pools ? c->pools.items[i] : NULL};
  }
}

// --- the report ------------------------------------------------------------

static void write_costs(sheet *s, const preload_column *column,
                        const preload_result *result) {
  const double *v = result->values;
  sheet_text(s, "allocator", "allocator", column->allocator);
  sheet_number(s, "cpu s", "cpu_s", v[PRELOAD_CPU_S], 3);
  sheet_number(s, "sys s", "sys_s", v[PRELOAD_SYSTEM_S], 3);
  sheet_number(s, "faults", "faults", v[PRELOAD_FAULTS], 0);
  sheet_number(s, "MiB", "rss_mib", v[PRELOAD_PEAK] / (1 << 20), 1);
}

static void write_iterations(sheet *s, const preload_column *column,
                             const preload_result *result) {
  const double *v = result->values;
  sheet_text(s, "pool", "pool", column->pool);
  sheet_number(s, "first ms", "first_ms", v[PRELOAD_FIRST_S] * 1e3, 1);
  sheet_number(s, "second ms", "second_ms", v[PRELOAD_SECOND_S] * 1e3, 1);
  sheet_number(s, "steady ms", "steady_ms", v[PRELOAD_STEADY_S] * 1e3, 1);
  sheet_number(s, "without the system", "share", v[PRELOAD_SHARE], 4);
  sheet_number(s, "cpu s", "cpu_s", v[PRELOAD_CPU_S], 2);
  sheet_number(s, "sys s", "sys_s", v[PRELOAD_SYSTEM_S], 2);
  sheet_number(s, "run s", "run_s", v[PRELOAD_RUN_S], 2);
  sheet_number(s, "MiB", "rss_mib", v[PRELOAD_PEAK] / (1 << 20), 1);
}

static void write_row(const command *c, sheet *s, size_t at,
                      const preload_result *result) {
  if (c->pools.count > 0) {
    write_iterations(s, &c->columns[at], result);
  } else {
    write_costs(s, &c->columns[at], result);
  }
  sheet_failed(s, "failed", result->failed);
  sheet_row_end(s);
}

// JSON has the rows of a program within it.
static void write_program(const command *c, sheet *s, size_t program,
                          const preload_result *results) {
  bool nested = c->output == OUTPUT_JSON;
  if (nested) {
    sheet_text(s, NULL, "name", c->programs.items[program]);
    sheet_nest(s, "results");
  }
  for (size_t i = 0; i < c->column_count; i++) {
    if (!nested) {
      sheet_text(s, "program", "program", c->programs.items[program]);
    }
    write_row(c, s, i, &results[i]);
  }
  if (!nested) return;
  sheet_unnest(s);
  sheet_row_end(s);
}

// What is not installed is no failure.
static bool is_absent(const preload_result *result) {
  return strncmp(result->failed, "not installed: ", 15) == 0;
}

static tool_exit report(const command *c, const preload_result *results) {
  tool_exit status = TOOL_DONE;
  sheet *s = bench_sheet_begin(c->output);
  sheet_list(s, "programs");
  for (size_t i = 0; i < c->programs.count; i++)
    write_program(c, s, i, &results[i * c->column_count]);
  sheet_end(s);
  for (size_t i = 0; i < c->programs.count * c->column_count; i++) {
    const preload_result *r = &results[i];
    if (r->failed[0] == '\0' || is_absent(r)) continue;
    status = tool_fail(c->verb, "%s: %s",
                       c->programs.items[i / c->column_count], r->failed);
  }
  return status;
}

// --- measuring -------------------------------------------------------------

static void step(void *context, const char *what) {
  tool_progress_step(context, what);
}

static tool_exit measure(command *c) {
  make_columns(c);
  size_t cells = c->programs.count * c->column_count;
  preload_result *results = tool_array(cells, sizeof *results);
  preload_bench bench = {
      .scale = {.tool = "/proc/self/exe",
                .python = c->python,
                .steps = c->steps,
                .threads = c->threads},
      .heap = c->heap,
      .programs = (const char *const *)c->programs.items,
      .program_count = c->programs.count,
      .columns = c->columns,
      .column_count = c->column_count,
      .passes = c->passes,
      .step = step,
      .context = &c->progress,
  };
  tool_progress_begin(&c->progress, cells * c->passes);
  preload_bench_run(&bench, results);
  tool_progress_end(&c->progress);
  tool_exit status = report(c, results);
  free(results);
  return status;
}

static tool_exit be(const command *c) {
  int status = preload_work(c->work, c->steps != 0 ? c->steps : 1);
  if (status >= 0) return (tool_exit)status;
  return tool_misuse(c->verb, "--work wants blocks or probe, not '%s'",
                     c->work);
}

static tool_exit work(void *context) {
  command *c = context;
  if (c->work != NULL) return be(c);
  tool_exit status = check(c);
  if (status != TOOL_DONE) return status;
  c->heap = launch_library(c->verb, &launch_malloc);
  return c->heap != NULL ? measure(c) : TOOL_NO;
}

static void deinit(void *context) {
  command *c = context;
  free(c->columns);
  free(c->heap);
}

static const options_entry entries[] = {
    OPTION_NAMES("programs", programs),
    OPTION_NAMES("allocators", allocators),
    OPTION_POOLS("pools", pools),
    OPTION_NUMBER("passes", passes, 1, PASSES_MOST),
    OPTION_NUMBER("steps", steps, 2, STEPS_MOST),
    OPTION_NUMBER("threads", threads, 1, 1024),
    OPTION_TEXT("python", python),
    OPTION_TEXT("work", work),
    OPTION_OUTPUT(output),
    {0},
};

const tool_verb bench_of_preloads = {
    .name = "bench preload",
    .summary = "real programs under allocators",
    .help = help,
    .entries = entries,
    OPTIONS_COMMAND(.passes = PASSES, .threads = 1,
                    .python = "/usr/bin/python3"),
    .work = work,
    .end = deinit,
};
