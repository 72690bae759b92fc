// device_figures.h - how each figure of device_bench.h is measured.
//
// Each function measures on an open probe with buffers of the figure's size.
// False: |why|, PROBE_TEXT_SIZE bytes, says why there is no value.
#ifndef TARN_BENCH_DEVICE_FIGURES_H_
#define TARN_BENCH_DEVICE_FIGURES_H_

#include "probe.h"

// --- device_copies.c: one call that waits for its copy -------------------

probe_batch device_h2d;
probe_batch device_h2d_on_stream;  // queued on an idle stream, then waited for
probe_batch device_d2h;
probe_batch device_d2d;
probe_batch device_p2p;

// --- device_streams.c: work that goes on meanwhile, and what carries it ------

probe_batch device_event;   // record on an idle stream, and wait
probe_batch device_stream;  // create, destroy
probe_batch device_memory;  // allocate, deallocate: not touched

// Nanoseconds of a copy that is queued on a busy stream, less those of memcpy.
//
// The stream is held up until all copies of a batch are queued, and then let
// go: queueing them and running them are timed one after the other, so that
// nothing of one hides behind the other on a second core, as it would in a
// program. The sum, divided by the count, less memcpy of the same bytes in the
// same pass, is what a queued copy costs over all threads.
bool device_queued(probe *p, double *out_ns, char *why);

// Nanoseconds of tarn_stream_adopt for a handle that is known, of as many
// streams as the name of the figure says, in no order.
bool device_adopt(probe *p, double *out_ns, char *why);

// One thread computes, in registers only, while a stream copies for as long:
// the time of both at once over that of the longer one alone. 2 means one after
// the other.
bool device_overlap(probe *p, double *out_ratio, char *why);

#endif  // TARN_BENCH_DEVICE_FIGURES_H_
