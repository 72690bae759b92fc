// tarn bench record: what the recorder costs the program that it records.
//
// Nothing is written to stdout before the end, as in bench_pool.c.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench/figure.h"
#include "bench/record_bench.h"
#include "kit/options.h"
#include "launch.h"

static const char help[] =
    "usage: tarn bench record [OPTION]...\n"
    "\n"
    "Tells what `tarn record` costs a program, and what is lost when that is\n"
    "killed.\n"
    "\n"
    "  --allocations N  that the program makes, 1000 to 100000000\n"
    "                   (default: 1000000)\n"
    "  --passes N       passes that count, 1 to 1001 (default: 3)\n"
    "  --work NAME      be the program that is measured: touched, bare, told\n"
    "  -o FORMAT        table (default), json, csv or md\n"
    "  -h, --help       this text\n"
    "\n"
    "How it measures. The program replaces blocks, one of 64 at a time, by "
    "new\n"
    "ones of 64 KiB to 1 MiB, through 4 to 19 functions that call each other.\n"
    "touched: it writes to all of each, as programs do; bare: to none. Each\n"
    "pass runs it without the recorder, without stacks and with stacks, every\n"
    "other pass in turned order. The processor's time of the whole process is\n"
    "taken, the kernel's for it included; of the ratios in each pass the\n"
    "median counts. python: a program of Python does the same, a twentieth as\n"
    "often, also without its frames in stacks, and under memray if that is\n"
    "installed (TARN_BENCH_PYTHON names another Python than python3); it "
    "tells\n"
    "its own time. killed: ten runs that tell each event are killed with -9;\n"
    "what they told and the file has not is missing.\n"
    "\n"
    "Exit status: 1 if something could not be measured.\n";

enum {
  PASSES = 3,
  PASSES_MOST = 1001,
  ALLOCATIONS = 1000000,
  ALLOCATIONS_LEAST = 1000,
  ALLOCATIONS_MOST = 100000000
};

typedef struct command {
  const tool_verb *verb;
  const char *work;  // NULL: measure
  uint64_t allocations;
  uint64_t passes;
  options_output output;
  tool_progress progress;
} command;

static bool take_work(void *context, const char *name) {
  command *c = context;
  c->work = name;
  if (strcmp(name, "touched") == 0 || strcmp(name, "bare") == 0 ||
      strcmp(name, "told") == 0) {
    return true;
  }
  (void)tool_misuse(c->verb, "--work wants touched, bare or told, not '%s'",
                    name);
  return false;
}

static void step(void *context, const char *what) {
  tool_progress_step(context, what);
}

static tool_exit report(const command *c, const record_bench_result *result) {
  tool_exit status = TOOL_DONE;
  if (result->failed[0] != '\0')
    status = tool_fail(c->verb, "%s", result->failed);
  sheet *s = bench_sheet_begin(c->output);
  sheet_list(s, "results");
  for (size_t i = 0; i < RECORD_BENCH_FIGURES; i++) {
    double value = result->values[i];
    const char *failed = result->missing[i];
    if (*failed == '\0' && isnan(value)) failed = result->failed;
    bench_figure_write(s, record_bench_figure_at(i), NULL, value, failed);
  }
  sheet_end(s);
  return status;
}

static tool_exit measure(command *c, const char *recorder) {
  record_bench bench = {.program = "/proc/self/exe",
                        .recorder = recorder,
                        .allocations = c->allocations,
                        .passes = c->passes,
                        .step = step,
                        .context = &c->progress};
  tool_progress_begin(&c->progress, record_bench_steps(&bench));
  record_bench_result result = record_bench_run(&bench);
  tool_progress_end(&c->progress);
  return report(c, &result);
}

static tool_exit work(void *context) {
  command *c = context;
  if (c->work != NULL)
    return record_bench_work(c->work, c->allocations) ? TOOL_DONE : TOOL_NO;
  char *recorder = launch_library(c->verb, &launch_recorder);
  if (recorder == NULL) return TOOL_NO;
  tool_exit status = measure(c, recorder);
  free(recorder);
  return status;
}

static const options_entry entries[] = {
    OPTION_NUMBER("allocations", allocations, ALLOCATIONS_LEAST,
                  ALLOCATIONS_MOST),
    OPTION_NUMBER("passes", passes, 1, PASSES_MOST),
    OPTION_CALL("work", take_work),
    OPTION_OUTPUT(output),
    {0},
};

const tool_verb bench_of_recorder = {
    .name = "bench record",
    .summary = "what recording costs a program",
    .help = help,
    .entries = entries,
    OPTIONS_COMMAND(.allocations = ALLOCATIONS, .passes = PASSES),
    .work = work,
};
