// Everything is tried before the first measurement, so that wrong use is
// reported at once.
#include "bench_each.h"

#include <stdio.h>
#include <stdlib.h>

static void add_defaults(options_list *devices) {
  if (devices->count > 0) return;
  options_list_add(devices, "cpu:0", 5);
  options_list_add(devices, "sim:0", 5);
}

tool_exit bench_devices_prepare(const tool_verb *verb, options_list *devices,
                                const options_list *plugins,
                                bench_try_fn *try_device, const void *command) {
  char why[CHILD_TEXT_SIZE];
  add_defaults(devices);
  tool_exit status = options_once(verb, "device", devices);
  if (status == TOOL_DONE) status = options_plugins_load(verb, plugins);
  for (size_t i = 0; i < devices->count && status == TOOL_DONE; i++) {
    if (!try_device(command, i, why)) status = tool_misuse(verb, "%s", why);
  }
  return status;
}

tool_exit bench_device_measure(const tool_verb *verb, const char *device,
                               child_work *work, void *bench,
                               bench_figure_fn *figure_of, bench_figures *out) {
  char why[CHILD_TEXT_SIZE];
  tool_exit status = TOOL_DONE;
  if (!bench_figures_run(work, bench, out, why)) {
    snprintf(out->device, sizeof out->device, "%s", device);
    return tool_fail(verb, "%s: %s", device, why);
  }
  for (size_t i = 0; i < BENCH_FIGURES_MOST; i++) {
    if (out->failed[i][0] == '\0') continue;
    status = tool_fail(verb, "%s: %s: %s", out->device,
                       figure_of(i, out->device).name, out->failed[i]);
  }
  return status;
}

tool_exit bench_each(const options_list *names, size_t size,
                     bench_measure_fn *measure, bench_report_fn *report,
                     void *command) {
  tool_progress progress;
  tool_exit status = TOOL_DONE;
  char *results = tool_array(names->count, size);
  tool_progress_begin(&progress, names->count);
  for (size_t i = 0; i < names->count; i++) {
    tool_progress_step(&progress, names->items[i]);
    if (measure(command, i, results + i * size) != TOOL_DONE) status = TOOL_NO;
  }
  tool_progress_end(&progress);
  report(command, results);
  free(results);
  return status;
}
