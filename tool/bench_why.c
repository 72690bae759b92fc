// tarn bench why: a large snapshot, read and asked about.
#include "bench.h"
#include "bench/figure.h"
#include "bench/why_bench.h"
#include "kit/options.h"

static const char help[] =
    "usage: tarn bench why [OPTION]...\n"
    "\n"
    "Makes a PyTorch snapshot of 8 million pickle opcodes, and tells what\n"
    "reading it and 'tarn why FILE -o json' take, in seconds and in bytes "
    "that\n"
    "are resident at most.\n"
    "\n"
    "  --opcodes N  about how many, 1000 to 1000000000 (default: 8000000);\n"
    "               some 30000 are always there\n"
    "  --passes N   processes of each kind, 1 to 101 (default: 5)\n"
    "  --keep FILE  where the snapshot stays (default: it is removed)\n"
    "  -o FORMAT    table (default), json, csv or md\n"
    "  -h, --help   this text\n"
    "\n"
    "Each measurement is a process of its own. Of times the median counts, of\n"
    "bytes the most.\n"
    "\n"
    "Exit status: 1 if something could not be measured; a goal that is missed\n"
    "does not count.\n";

typedef struct command {
  const tool_verb *verb;
  uint64_t opcodes;
  uint64_t passes;
  const char *keep;
  options_output output;
} command;

static void report(const command *c, const why_bench_result *result) {
  sheet *s = bench_sheet_begin(c->output);
  sheet_list(s, "results");
  for (why_bench_row i = 0; i < WHY_BENCH_ROWS; i++)
    bench_figure_write(s, why_bench_figure_at(i), NULL, result->values[i],
                       NULL);
  sheet_end(s);
}

// ---------------------------------------------------------------------------
// The command
// ---------------------------------------------------------------------------

static tool_exit work(void *context) {
  command *c = context;
  why_bench bench = {
      .opcodes = c->opcodes, .passes = (size_t)c->passes, .keep = c->keep};
  why_bench_result result = why_bench_run(&bench);
  report(c, &result);
  if (result.failed[0] == '\0') return TOOL_DONE;
  return tool_fail(c->verb, "%s", result.failed);
}

static const options_entry entries[] = {
    OPTION_NUMBER("opcodes", opcodes, 1000, 1000000000),
    OPTION_NUMBER("passes", passes, 1, 101),
    OPTION_TEXT("keep", keep),
    OPTION_OUTPUT(output),
    {0},
};

const tool_verb bench_of_why = {
    .name = "bench why",
    .summary = "a large snapshot, read and asked about",
    .help = help,
    .entries = entries,
    OPTIONS_COMMAND(.opcodes = WHY_TRACE_OPCODES, .passes = 5),
    .work = work,
};
