// tarn bench synced: what synced buffers cost, and what they do not copy, each
// device in a process of its own.
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "bench/figure.h"
#include "bench/synced_bench.h"
#include "bench_each.h"
#include "kit/options.h"

static const char help[] =
    "usage: tarn bench synced [OPTION]...\n"
    "\n"
    "Tells what an access of a synced buffer costs, and that no byte is "
    "copied\n"
    "without need: in the example of Caffe's SyncedMemory, in the prefetch "
    "loop\n"
    "of training, and where rows of a table are written.\n"
    "\n"
    "  --device NAME    which, any number of times (default: cpu:0 and "
    "sim:0);\n"
    "                   of cpu:0, which is the host, only the first figure\n"
    "  --plugin PATH    a plug-in to load beforehand, any number of times\n"
    "  --images N       of 3 x 224 x 224 floats in a batch, 1 to 1024 "
    "(default: 128)\n"
    "  --rows N         rows that are written, 1 to 100000 (default: 1000)\n"
    "  --passes N       passes that count, 1 to 1001 (default: 9 of the\n"
    "                   prefetch loop, 201 of rows, 501 of accesses)\n"
    "  -o FORMAT        table (default), json, csv or md\n"
    "  -h, --help       this text\n"
    "\n"
    "Exit status: 1 if something could not be measured, or was copied wrongly\n"
    "(a goal that is missed does not count), 2 if a device does not exist.\n";

enum { PASSES_MAX = 1001, IMAGES_MAX = 1024, ROWS_MAX = 100000 };

typedef struct command {
  const tool_verb *verb;
  options_list devices;
  options_list plugins;
  uint64_t passes;
  uint64_t images;
  uint64_t rows;
  options_output output;

  synced_bench_result *results;  // of each device
} command;

// ---------------------------------------------------------------------------
// Options
// ---------------------------------------------------------------------------

static synced_bench what_to_measure(const command *c, size_t index) {
  return (synced_bench){.device = c->devices.items[index],
                        .passes = (size_t)c->passes,
                        .images = (size_t)c->images,
                        .rows = (size_t)c->rows};
}

static bool try_device(const void *context, size_t index,
                       char why[CHILD_TEXT_SIZE]) {
  synced_bench bench = what_to_measure(context, index);
  return synced_bench_try(&bench, why);
}

// ---------------------------------------------------------------------------
// The work
// ---------------------------------------------------------------------------

static tool_exit check_figures(const command *c,
                               const synced_bench_result *result) {
  tool_exit status = TOOL_DONE;
  for (size_t i = 0; i < SYNCED_BENCH_FIGURES; i++) {
    if (result->failed[i][0] == '\0') continue;
    status = tool_fail(c->verb, "%s: %s: %s", result->device,
                       synced_bench_figure_at(i)->name, result->failed[i]);
  }
  return status;
}

static tool_exit measure_device(void *context, size_t index) {
  command *c = context;
  char why[CHILD_TEXT_SIZE];
  synced_bench bench = what_to_measure(c, index);
  synced_bench_result *result = &c->results[index];
  if (synced_bench_run(&bench, result, why)) return check_figures(c, result);
  return tool_fail(c->verb, "%s: %s", bench.device, why);
}

static void report(const command *c) {
  sheet *s = bench_sheet_begin(c->output);
  sheet_list(s, "results");
  for (size_t i = 0; i < c->devices.count * SYNCED_BENCH_FIGURES; i++) {
    const synced_bench_result *r = &c->results[i / SYNCED_BENCH_FIGURES];
    size_t k = i % SYNCED_BENCH_FIGURES;
    if (!r->is_there[k]) continue;
    bench_figure_write(s, synced_bench_figure_at(k), r->device, r->values[k],
                       NULL);
  }
  sheet_end(s);
}

static tool_exit measure_all(command *c) {
  c->results = tool_array(c->devices.count, sizeof *c->results);
  tool_exit status = bench_each(&c->devices, measure_device, c);
  report(c);
  free(c->results);
  return status;
}

static tool_exit work(void *context) {
  command *c = context;
  tool_exit status =
      bench_devices_prepare(c->verb, &c->devices, &c->plugins, try_device, c);
  return status == TOOL_DONE ? measure_all(c) : status;
}

static tool_exit run(const tool_verb *verb, int argc, char **argv) {
  command c = {.verb = verb, .images = 128, .rows = 1000};
  const options_entry entries[] = {
      OPTION_LIST("device", &c.devices),
      OPTION_LIST("plugin", &c.plugins),
      OPTION_NUMBER("images", &c.images, 1, IMAGES_MAX),
      OPTION_NUMBER("rows", &c.rows, 1, ROWS_MAX),
      OPTION_NUMBER("passes", &c.passes, 1, PASSES_MAX),
      OPTION_OUTPUT(&c.output),
      {0},
  };
  options_spec spec = {.verb = verb, .entries = entries, .run = work};
  return options_run(&spec, &c, argc, argv);
}

const tool_verb bench_of_synced = {
    .name = "bench synced",
    .summary = "what synced buffers cost, and what they do not copy",
    .help = help,
    .run = run,
};
