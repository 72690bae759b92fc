// tarn bench blocks: blocks by addresses inside of them.
#include <math.h>
#include <stdio.h>

#include "bench.h"
#include "bench/blocks_bench.h"
#include "bench/figure.h"
#include "kit/options.h"
#include "kit/sheet.h"

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
} command;

static void report(const command *c) {
  static const char *const titles[BLOCKS_BENCH_WAYS][2] = {
      {"place ns", "place_ns"},
      {"pool ns", "pool_ns"},
      {"place waits", "place_waits_ns"},
      {"pool waits", "pool_waits_ns"},
  };
  sheet *s = bench_sheet_begin(c->output);
  sheet_list(s, "results");
  for (size_t row = 0; row < c->rows; row++) {
    sheet_uint(s, "blocks", "blocks", c->blocks[row], SHEET_COUNT);
    for (size_t way = 0; way < BLOCKS_BENCH_WAYS; way++)
      sheet_number(s, titles[way][0], titles[way][1], c->results[row].ns[way],
                   1);
    sheet_row_end(s);
  }
  sheet_end(s);
}

// ---------------------------------------------------------------------------
// The command
// ---------------------------------------------------------------------------

static bool add_row(void *context, const char *text) {
  command *c = context;
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
  tool_exit status = measure_all(c);
  report(c);
  return status;
}

static const options_entry entries[] = {
    OPTION_CALL("blocks", add_row),
    OPTION_NUMBER("passes", passes, 1, PASSES_MOST),
    OPTION_OUTPUT(output),
    {0},
};

const tool_verb bench_of_blocks = {
    .name = "bench blocks",
    .summary = "what finding a block by an address inside takes",
    .help = help,
    .entries = entries,
    OPTIONS_COMMAND(.passes = PASSES),
    .work = work,
};
