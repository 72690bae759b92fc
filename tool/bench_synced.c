// tarn bench synced: what synced buffers cost, and what they do not copy, each
// device in a process of its own.
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
  bench_figures none;
  synced_bench bench = what_to_measure(context, index);
  return bench_figures_run(synced_bench_open, &bench, &none, why);
}

// ---------------------------------------------------------------------------
// The work
// ---------------------------------------------------------------------------

static tool_exit measure_device(void *context, size_t index, void *result) {
  const command *c = context;
  synced_bench bench = what_to_measure(c, index);
  return bench_device_measure(c->verb, bench.device, synced_bench_measure,
                              &bench, synced_bench_figure_of, result);
}

static void report(const void *context, const void *results) {
  const command *c = context;
  sheet *s = bench_sheet_begin(c->output);
  sheet_list(s, "results");
  for (size_t i = 0; i < c->devices.count * SYNCED_BENCH_FIGURES; i++) {
    const bench_figures *r =
        (const bench_figures *)results + i / SYNCED_BENCH_FIGURES;
    size_t k = i % SYNCED_BENCH_FIGURES;
    bench_figure figure = synced_bench_figure_of(k, r->device);
    if (!r->is_there[k]) continue;
    bench_figure_write(s, &figure, r->device, r->values[k], NULL);
  }
  sheet_end(s);
}

static tool_exit work(void *context) {
  command *c = context;
  tool_exit status =
      bench_devices_prepare(c->verb, &c->devices, &c->plugins, try_device, c);
  if (status != TOOL_DONE) return status;
  return bench_each(&c->devices, sizeof(bench_figures), measure_device, report,
                    c);
}

static const options_entry entries[] = {
    OPTION_LIST("device", devices),
    OPTION_LIST("plugin", plugins),
    OPTION_NUMBER("images", images, 1, IMAGES_MAX),
    OPTION_NUMBER("rows", rows, 1, ROWS_MAX),
    OPTION_NUMBER("passes", passes, 1, PASSES_MAX),
    OPTION_OUTPUT(output),
    {0},
};

const tool_verb bench_of_synced = {
    .name = "bench synced",
    .summary = "what synced buffers cost, and what they do not copy",
    .help = help,
    .entries = entries,
    OPTIONS_COMMAND(.images = 128, .rows = 1000),
    .work = work,
};
