// bench_each.h - for benchmarks that measure a list of devices or pools, each
// in a process of its own.
#ifndef TARN_TOOL_BENCH_EACH_H_
#define TARN_TOOL_BENCH_EACH_H_

#include "kit/child.h"
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

// Measures the thing at |index|; TOOL_NO after a message.
typedef tool_exit bench_measure_fn(void *command, size_t index);

// Measures each of |names|, in order and with a bar, whatever becomes of the
// others. TOOL_NO if one could not be.
tool_exit bench_each(const options_list *names, bench_measure_fn *measure,
                     void *command);

#endif  // TARN_TOOL_BENCH_EACH_H_
