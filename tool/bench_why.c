// tarn bench why: a large snapshot, read and asked about.
#include <math.h>
#include <stdio.h>

#include "bench.h"
#include "bench/machine.h"
#include "bench/why_bench.h"
#include "kit/json.h"
#include "kit/options.h"
#include "kit/table.h"

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
  char machine[MACHINE_SIZE];
} command;

// ---------------------------------------------------------------------------
// The report
// ---------------------------------------------------------------------------

static const table_column columns[] = {
    {"figure", "name", false}, {"value", "value", true},
    {"unit", "unit", false},   {"goal", "goal", false},
    {"met", "met", false},     {"what", "what", false},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

// Bytes and opcodes are whole, times are not.
static int decimals_of(const why_bench_figure *figure, double value) {
  if (figure->unit[0] == 's') return 3;
  return value < 1000 && value != (double)(long)value ? 1 : 0;
}

static void add_row(table *t, why_bench_row row, double value) {
  why_bench_figure figure = why_bench_figure_at(row);
  table_text(t, figure.name);
  table_fixed(t, value, decimals_of(&figure, value));
  table_text(t, figure.unit);
  if (isnan(figure.goal)) {
    table_blank(t);
    table_blank(t);
  } else {
    char text[32];
    snprintf(text, sizeof text, "<= %.0f", figure.goal);
    table_text(t, text);
    table_text(t, isnan(value) ? "" : value <= figure.goal ? "yes" : "NO");
  }
  table_text(t, figure.what);
}

static void write_table(const command *c, const why_bench_result *result,
                        table_style style) {
  table *t = table_create(columns, COLUMNS);
  if (style != TABLE_CSV) fprintf(tool_out(), "%s\n\n", c->machine);
  for (why_bench_row i = 0; i < WHY_BENCH_ROWS; i++)
    add_row(t, i, result->values[i]);
  table_write(t, style, tool_out());
  table_destroy(t);
}

static void write_row(json *out, why_bench_row row, double value) {
  why_bench_figure figure = why_bench_figure_at(row);
  json_begin_object(out);
  json_key(out, "name");
  json_text(out, figure.name);
  json_key(out, "value");
  json_double(out, value);
  json_key(out, "unit");
  json_text(out, figure.unit);
  json_key(out, "goal");
  json_double(out, figure.goal);
  json_end_object(out);
}

static void write_json(const command *c, const why_bench_result *result) {
  json out = json_to(tool_out());
  json_begin_object(&out);
  json_key(&out, "results");
  json_begin_array(&out);
  for (why_bench_row i = 0; i < WHY_BENCH_ROWS; i++)
    write_row(&out, i, result->values[i]);
  json_end_array(&out);
  json_key(&out, "machine");
  json_text(&out, c->machine);
  json_end_object(&out);
  json_finish(&out);
}

static void write_report(const command *c, const why_bench_result *result) {
  if (c->output == OUTPUT_JSON) {
    write_json(c, result);
  } else {
    write_table(c, result, table_style_of(c->output));
  }
}

// ---------------------------------------------------------------------------
// The command
// ---------------------------------------------------------------------------

// False on wrong use.
static bool obey(void *context, int option) {
  command *c = context;
  switch (option) {
    case 'c':
      return options_number_parse(c->verb, "--opcodes", optarg, 1000,
                                  1000000000, &c->opcodes);
    case 'n':
      return options_number_parse(c->verb, "--passes", optarg, 1, 101,
                                  &c->passes);
    case 'k':
      c->keep = optarg;
      return true;
    case 'o':
      return options_output_parse(c->verb, optarg, &c->output);
    default:
      return false;
  }
}

static tool_exit work(void *context) {
  command *c = context;
  why_bench bench = {
      .opcodes = c->opcodes, .passes = (size_t)c->passes, .keep = c->keep};
  machine_describe(c->machine);
  why_bench_result result = why_bench_run(&bench);
  write_report(c, &result);
  if (result.failed[0] == '\0') return TOOL_DONE;
  return tool_fail(c->verb, "%s", result.failed);
}

static tool_exit run(const tool_verb *verb, int argc, char **argv) {
  static const struct option known[] = {
      {"opcodes", required_argument, NULL, 'c'},
      {"passes", required_argument, NULL, 'n'},
      {"keep", required_argument, NULL, 'k'},
      {"output", required_argument, NULL, 'o'},
      {"help", no_argument, NULL, 'h'},
      {0},
  };
  command c = {.verb = verb, .opcodes = WHY_TRACE_OPCODES, .passes = 5};
  options_spec spec = {.verb = verb, .known = known, .obey = obey, .run = work};
  return options_run(&spec, &c, argc, argv);
}

const tool_verb bench_of_why = {
    .name = "bench why",
    .summary = "a large snapshot, read and asked about",
    .help = help,
    .run = run,
};
