// tarn bench device: the time of copies, streams and events. Each device runs
// in a process of its own.
//
// Nothing is written to stdout before the end, as in bench_pool.c.
#include "bench.h"
#include "bench/device_bench.h"
#include "bench/figure.h"
#include "bench_each.h"
#include "kit/options.h"

static const char help[] =
    "usage: tarn bench device [OPTION]...\n"
    "\n"
    "Tells what copies, streams and events of devices take, in one run with\n"
    "memcpy of the same bytes, and what is asked of some of them.\n"
    "\n"
    "  --device NAME    which, any number of times (default: cpu:0 and "
    "sim:0);\n"
    "                   see 'tarn devices'\n"
    "  --plugin PATH    a plug-in to load beforehand, any number of times\n"
    "  --passes N       passes that count, up to 1001 (default: as many as "
    "take\n"
    "                   0.2 s, but 11 to 2001)\n"
    "  --table SIZE     bytes of the table that rows are gathered out of\n"
    "                   (default: 1G)\n"
    "  --rows           instead: rows of 64, 256 and 1024 bytes out of that "
    "table,\n"
    "                   over a copy within the device, and out of pinned memory"
    "\n"
    "  --net PROGRAM    a program that trains a net, as examples/resnet: its\n"
    "                   step on the device, over one on cpu:0\n"
    "  -o FORMAT        table (default), json, csv or md\n"
    "  -h, --help       this text\n"
    "\n"
    "How it measures. Each device has a fresh process. Calls are timed in\n"
    "batches of at least 20 microseconds, by turns with batches of memcpy of\n"
    "as many bytes; the median over all pairs counts, of the ratio or of the\n"
    "time. 'x memcpy' is the time over that of memcpy, 'of memcpy' the rate\n"
    "over its rate. 'queued_4k': 1000 copies are queued on a stream that is\n"
    "held up, and then run; both times together, less memcpy, over 1000.\n"
    "'overlap': 4 copies of 64 MiB and as much computing at once, over the\n"
    "longer of the two alone. Of these two, the medians of 101 and of 9\n"
    "passes, unless --passes says otherwise.\n"
    "\n"
    "'x driver' is the time over that of the driver's own commands on the "
    "same\n"
    "queue, where this build knows the driver: OpenCL, CUDA. Of a plug-in that "
    "is "
    "not\n"
    "built in: 'gather', by random indices, over the gather of cpu:0 with two\n"
    "threads; 'pool_hit', over that of a pool on cpu:0; and 'pool_hit_calls',\n"
    "how many of 1000 hits call a function of the plug-in. A net's program "
    "runs\n"
    "on the device and on cpu:0 by turns, 9 times.\n"
    "\n"
    "Exit status: 1 if something could not be measured (a goal that is missed\n"
    "does not count), 2 if a device does not exist.\n";

enum { PASSES_MAX = 1001 };  // as many as the figures with the least take

typedef struct command {
  const tool_verb *verb;
  options_list devices;
  options_list plugins;
  uint64_t passes;
  size_t table;
  bool rows;
  const char *net;
  options_output output;

  stopwatch watch;
} command;

// ---------------------------------------------------------------------------
// Options
// ---------------------------------------------------------------------------

static device_bench what_to_measure(const command *c, size_t index) {
  return (device_bench){
      .device = c->devices.items[index],
      .watch = &c->watch,
      .passes = c->passes,
      .table = c->table,
      .rows = c->rows,
      .net = c->net,
      .plugin = c->plugins.count > 0 ? c->plugins.items[0] : NULL};
}

static bool try_device(const void *context, size_t index,
                       char why[CHILD_TEXT_SIZE]) {
  bench_figures none;
  device_bench bench = what_to_measure(context, index);
  return bench_figures_run(device_bench_open, &bench, &none, why);
}

// ---------------------------------------------------------------------------
// The work
// ---------------------------------------------------------------------------

static tool_exit measure_device(void *context, size_t index, void *result) {
  const command *c = context;
  device_bench bench = what_to_measure(c, index);
  return bench_device_measure(c->verb, bench.device, device_bench_measure,
                              &bench, device_bench_figure_of, result);
}

// A device without figures stays in the report, with no rows.
static void report(const void *context, const void *results) {
  const command *c = context;
  sheet *s = bench_sheet_begin(c->output);
  sheet_list(s, "results");
  for (size_t i = 0; i < c->devices.count; i++) {
    const bench_figures *r = (const bench_figures *)results + i;
    sheet_group(s, r->device);
    if (r->about[0] != '\0') sheet_note(s, "%s", r->about);
    for (size_t k = 0; k < DEVICE_BENCH_FIGURES; k++) {
      bench_figure figure = device_bench_figure_of(k, r->device);
      if (!r->is_there[k]) continue;
      sheet_only(s, SHEET_CSV | SHEET_JSON);
      sheet_text(s, NULL, "device", r->device);
      sheet_only(s, SHEET_ALL);
      bench_figure_write(s, &figure, NULL, r->values[k], r->failed[k]);
    }
  }
  sheet_end(s);
}

static tool_exit work(void *context) {
  command *c = context;
  tool_exit status =
      bench_devices_prepare(c->verb, &c->devices, &c->plugins, try_device, c);
  if (status != TOOL_DONE) return status;
  c->watch = stopwatch_start();
  return bench_each(&c->devices, sizeof(bench_figures), measure_device, report,
                    c);
}

static const options_entry entries[] = {
    OPTION_LIST("device", devices),
    OPTION_LIST("plugin", plugins),
    OPTION_NUMBER("passes", passes, 1, PASSES_MAX),
    OPTION_BYTES("table", table),
    OPTION_FLAG("rows", rows),
    OPTION_TEXT("net", net),
    OPTION_OUTPUT(output),
    {0},
};

const tool_verb bench_of_devices = {
    .name = "bench device",
    .summary = "what copies, streams and events of devices take, over memcpy",
    .help = help,
    .entries = entries,
    OPTIONS_COMMAND(.table = (size_t)1 << 30),
    .work = work,
};
