// tarn bench blocks: blocks by addresses inside of them.
#include <math.h>
#include <stdio.h>

#include "bench.h"
#include "bench/blocks_bench.h"
#include "bench/machine.h"
#include "kit/json.h"
#include "kit/options.h"
#include "kit/table.h"

static const char help[] =
    "usage: tarn bench blocks [OPTION]...\n"
    "\n"
    "Tells what it takes to find the block that has a random address in it, "
    "in\n"
    "nanoseconds: at a place (tarn_block_of) and in a pool\n"
    "(tarn_pool_block_of) that has many.\n"
    "\n"
    "  --blocks N   how many, 1 to 10000000; may be given several times\n"
    "               (default: 1000, 100000 and 1000000)\n"
    "  --passes N   passes that count, 1 to 100001 (default: 501)\n"
    "  -o FORMAT    table (default), json, csv or md\n"
    "  -h, --help   this text\n"
    "\n"
    "How it measures. Each row has a fresh process, whose pool has blocks of\n"
    "256 to 2047 bytes. A pass is a thousand calls each way; the median of "
    "all\n"
    "passes counts. 'waits' is the same where no call begins before the "
    "answer\n"
    "of the one before is there.\n"
    "\n"
    "Exit status: 1 if something could not be measured.\n";

enum { ROWS_MOST = 16, PASSES = 501, PASSES_MOST = 100001 };
static const uint64_t BLOCKS_MOST = 10000000;

typedef struct command {
  const tool_verb *verb;
  size_t rows;
  uint64_t blocks[ROWS_MOST];
  blocks_bench_result results[ROWS_MOST];
  uint64_t passes;
  options_output output;
  char machine[MACHINE_SIZE];
} command;

// ---------------------------------------------------------------------------
// The report
// ---------------------------------------------------------------------------

static const table_column columns[] = {
    {"blocks", "blocks", true},
    {"place ns", "place_ns", true},
    {"pool ns", "pool_ns", true},
    {"place waits", "place_waits_ns", true},
    {"pool waits", "pool_waits_ns", true},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

_Static_assert(COLUMNS == 1 + BLOCKS_BENCH_WAYS, "a column for each way");

static void write_table(const command *c, table_style style) {
  table *t = table_create(columns, COLUMNS);
  if (style != TABLE_CSV) fprintf(tool_out(), "%s\n\n", c->machine);
  for (size_t row = 0; row < c->rows; row++) {
    table_count(t, c->blocks[row]);
    for (size_t way = 0; way < BLOCKS_BENCH_WAYS; way++)
      table_fixed(t, c->results[row].ns[way], 1);
  }
  table_write(t, style, tool_out());
  table_destroy(t);
}

static void write_row(json *out, uint64_t blocks,
                      const blocks_bench_result *result) {
  json_begin_object(out);
  json_key(out, "blocks");
  json_uint(out, blocks);
  for (size_t way = 0; way < BLOCKS_BENCH_WAYS; way++) {
    json_key(out, columns[1 + way].key);
    json_double(out, result->ns[way]);
  }
  json_end_object(out);
}

static void write_json(const command *c) {
  json out = json_to(tool_out());
  json_begin_object(&out);
  json_key(&out, "results");
  json_begin_array(&out);
  for (size_t row = 0; row < c->rows; row++)
    write_row(&out, c->blocks[row], &c->results[row]);
  json_end_array(&out);
  json_key(&out, "machine");
  json_text(&out, c->machine);
  json_end_object(&out);
  json_finish(&out);
}

// ---------------------------------------------------------------------------
// The command
// ---------------------------------------------------------------------------

static bool add_row(command *c, const char *text) {
  uint64_t blocks = 0;
  if (!options_number_parse(c->verb, "--blocks", text, 1, BLOCKS_MOST,
                            &blocks)) {
    return false;
  }
  if (c->rows == ROWS_MOST) {
    tool_misuse(c->verb, "--blocks: more than %d of them", ROWS_MOST);
    return false;
  }
  c->blocks[c->rows++] = blocks;
  return true;
}

// False on wrong use.
static bool obey(void *context, int option) {
  command *c = context;
  switch (option) {
    case 'b':
      return add_row(c, optarg);
    case 'n':
      return options_number_parse(c->verb, "--passes", optarg, 1, PASSES_MOST,
                                  &c->passes);
    case 'o':
      return options_output_parse(c->verb, optarg, &c->output);
    default:
      return false;
  }
}

static tool_exit measure_all(command *c) {
  tool_exit status = TOOL_DONE;
  stopwatch watch = stopwatch_start();
  for (size_t row = 0; row < c->rows; row++) {
    blocks_bench bench = {.blocks = (size_t)c->blocks[row],
                          .watch = &watch,
                          .passes = (size_t)c->passes};
    c->results[row] = blocks_bench_run(&bench);
    if (c->results[row].failed[0] == '\0') continue;
    status = tool_fail(c->verb, "%zu blocks: %s", bench.blocks,
                       c->results[row].failed);
  }
  return status;
}

static tool_exit work(void *context) {
  command *c = context;
  static const uint64_t defaults[] = {1000, 100000, 1000000};
  if (c->rows == 0) {
    c->rows = sizeof defaults / sizeof *defaults;
    for (size_t i = 0; i < c->rows; i++)
      c->blocks[i] = defaults[i];
  }
  machine_describe(c->machine);
  tool_exit status = measure_all(c);
  if (c->output == OUTPUT_JSON) {
    write_json(c);
  } else {
    write_table(c, table_style_of(c->output));
  }
  return status;
}

static tool_exit run(const tool_verb *verb, int argc, char **argv) {
  static const struct option known[] = {
      {"blocks", required_argument, NULL, 'b'},
      {"passes", required_argument, NULL, 'n'},
      {"output", required_argument, NULL, 'o'},
      {"help", no_argument, NULL, 'h'},
      {0},
  };
  command c = {.verb = verb, .passes = PASSES};
  options_spec spec = {.verb = verb, .known = known, .obey = obey, .run = work};
  return options_run(&spec, &c, argc, argv);
}

const tool_verb bench_of_blocks = {
    .name = "bench blocks",
    .summary = "what finding a block by an address inside takes",
    .help = help,
    .run = run,
};
