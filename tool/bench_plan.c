// tarn bench plan: how quickly plans are found, and how low they are.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "bench_plan_report.h"
#include "kit/options.h"

static const char help[] =
    "usage: tarn bench plan [OPTION]... [DIR]\n"
    "\n"
    "Plans all DIR/*.csv, perfect packings and large models, and tells how "
    "low\n"
    "the plans are and after how many seconds of one processor they were "
    "there.\n"
    "\n"
    "  --peer PROGRAM  google/minimalloc's program, to be run on the same "
    "files\n"
    "  --part A,B      fit, early, low, wide, narrow, large (default: all;\n"
    "                  without DIR the last three)\n"
    "  --seconds N     for a file, in fit and low, 1 to 3600 (default: 60)\n"
    "  --rounds N      of wide and narrow, 1 to 100 (default: 1)\n"
    "  -o FORMAT       table (default), json, csv or md\n"
    "  -h, --help      this text\n"
    "\n"
    "  fit      a plan within the capacity, which X.1048576.csv has in its "
    "name;\n"
    "           else within the lower bound\n"
    "  early    the lowest plan after 0.1 seconds\n"
    "  low      the lowest plan within --seconds\n"
    "  wide     18 problems made from a plan without a hole\n"
    "  narrow   18 that are harder: of 20 to 60 steps of time\n"
    "  large    models of many thousand buffers\n"
    "\n"
    "Exit status: 1 if something could not be measured; a goal that is missed\n"
    "does not count.\n";

typedef struct command {
  const tool_verb *verb;
  plan_bench bench;
  bool has_parts;
  options_list folders;
  uint64_t seconds;
  options_output output;
  tool_progress progress;
} command;

// ---------------------------------------------------------------------------
// The command line
// ---------------------------------------------------------------------------

static bool choose_part(command *c, const char *name, size_t length) {
  char copy[32];
  const char *known;
  snprintf(copy, sizeof copy, "%.*s", (int)length, name);
  for (size_t i = 0; (known = plan_bench_part_name(i)) != NULL; i++) {
    if (strcmp(known, copy) != 0) continue;
    c->bench.parts[i] = true;
    return true;
  }
  options_unknown(c->verb, "part", copy, plan_bench_part_name);
  return false;
}

static bool choose_parts(void *context, const char *list) {
  command *c = context;
  c->has_parts = true;
  for (;;) {
    size_t length = strcspn(list, ",");
    if (!choose_part(c, list, length)) return false;
    if (list[length] == '\0') return true;
    list += length + 1;
  }
}

static bool wants_files(const command *c) {
  return c->bench.parts[PLAN_BENCH_FIT] || c->bench.parts[PLAN_BENCH_EARLY] ||
         c->bench.parts[PLAN_BENCH_LOW];
}

static tool_exit check(command *c) {
  if (c->folders.count > 0) c->bench.folder = c->folders.items[0];
  for (size_t i = 0; !c->has_parts && i < PLAN_BENCH_PARTS; i++) {
    c->bench.parts[i] = i >= PLAN_BENCH_WIDE || c->bench.folder != NULL;
  }
  if (c->folders.count > 1) {
    return tool_misuse(c->verb, "'%s' is unexpected: one folder is enough",
                       c->folders.items[1]);
  }
  if (wants_files(c) && c->bench.folder == NULL) {
    return tool_misuse(c->verb, "fit, early and low want a folder");
  }
  if (c->bench.peer != NULL && !c->bench.parts[PLAN_BENCH_FIT]) {
    return tool_misuse(c->verb, "--peer is for the part fit of a folder");
  }
  return TOOL_DONE;
}

// ---------------------------------------------------------------------------
// The command
// ---------------------------------------------------------------------------

static void step(void *context, size_t total, const char *what) {
  command *c = context;
  if (c->progress.total == 0) tool_progress_begin(&c->progress, total);
  tool_progress_step(&c->progress, what);
}

static tool_exit tell(const command *c, const plan_bench_result *result) {
  if (result->why[0] != '\0') return tool_fail(c->verb, "%s", result->why);
  bench_plan_report(result, c->output);
  if (result->failed == 0) return TOOL_DONE;
  return tool_fail(c->verb, "%zu of %zu rows failed", result->failed,
                   result->count);
}

static tool_exit measure(command *c) {
  c->bench.seconds = (double)c->seconds;
  c->bench.step = step;
  c->bench.context = c;
  plan_bench_result result = plan_bench_run(&c->bench);
  if (c->progress.total > 0) tool_progress_end(&c->progress);
  tool_exit status = tell(c, &result);
  plan_bench_result_free(&result);
  return status;
}

static tool_exit work(void *context) {
  command *c = context;
  tool_exit status = check(c);
  if (status != TOOL_DONE) return status;
  // Checked here, so that a failure is not taken for a failure of its plans.
  if (c->bench.peer != NULL && access(c->bench.peer, X_OK) != 0) {
    return tool_fail(c->verb, "%s: cannot be run", c->bench.peer);
  }
  return measure(c);
}

static const options_entry entries[] = {
    OPTION_TEXT("peer", bench.peer),
    OPTION_CALL("part", choose_parts),
    OPTION_NUMBER("seconds", seconds, 1, 3600),
    OPTION_NUMBER("rounds", bench.rounds, 1, 100),
    OPTION_OUTPUT(output),
    {0},
};

const tool_verb bench_of_plans = {
    .name = "bench plan",
    .summary = "how quickly plans are found, and how low they are",
    .help = help,
    .entries = entries,
    OPTIONS_COMMAND(.bench = {.rounds = 1}, .seconds = 60),
    .words = offsetof(command, folders),
    .work = work,
};
