// bench_each.h - for benchmarks that measure a list of devices or pools, each
// in a process of its own.
#ifndef TARN_TOOL_BENCH_EACH_H_
#define TARN_TOOL_BENCH_EACH_H_

#include "bench/figure.h"
#include "kit/options.h"

// Whether the thing at |index| can be measured; if not, why.
typedef bool bench_try_fn(const void *command, size_t index,
                          char why[CHILD_TEXT_SIZE]);

// Makes |devices| the default, cpu:0 and sim:0, if they are none, loads
// |plugins|, and tries each device. TOOL_DONE, or TOOL_MISUSE or TOOL_NO after
// a message.
tool_exit bench_devices_prepare(const tool_verb *verb, options_list *devices,
                                const options_list *plugins,
                                bench_try_fn *try_device, const void *command);

// The figure at |index|, with its goal for |device|.
typedef bench_figure bench_figure_fn(size_t index, const char *device);

// Measures |device| by |work| on |bench|. TOOL_NO after a message for each
// figure that failed, and for a device without figures, whose name is all that
// |out| has then.
tool_exit bench_device_measure(const tool_verb *verb, const char *device,
                               child_work *work, void *bench,
                               bench_figure_fn *figure_of, bench_figures *out);

// Measures the thing at |index| into |result|; TOOL_NO after a message.
typedef tool_exit bench_measure_fn(void *command, size_t index, void *result);

// Writes the report of all |results|.
typedef void bench_report_fn(const void *command, const void *results);

// Measures each of |names|, in order and with a bar, whatever becomes of the
// others, into a result of |size| bytes, and reports. TOOL_NO if one could not
// be measured.
tool_exit bench_each(const options_list *names, size_t size,
                     bench_measure_fn *measure, bench_report_fn *report,
                     void *command);

#endif  // TARN_TOOL_BENCH_EACH_H_
