// device_figures.h - how each figure of device_bench.h is measured.
//
// Each function measures on an open probe with buffers of the figure's size.
// False: |why|, PROBE_TEXT_SIZE bytes, says why there is no value.
#ifndef TARN_BENCH_DEVICE_FIGURES_H_
#define TARN_BENCH_DEVICE_FIGURES_H_

#include "device_bench.h"

// Fills of |out| what the figure reads.
typedef bool device_measure(probe *p, probe_times *out, char *why);

// --- device_copies.c: one call that waits for its copy -------------------

probe_batch device_h2d;
probe_batch device_d2h;
probe_batch device_d2d;
probe_batch device_p2p;

// Queued on an idle stream, then waited for.
probe_batch device_h2d_on_stream;
probe_batch device_d2h_on_stream;
probe_batch device_d2d_on_stream;

// --- device_streams.c: work that goes on meanwhile, and what carries it ------

probe_batch device_event;   // record on an idle stream, and wait
probe_batch device_stream;  // create, destroy
probe_batch device_memory;  // allocate, deallocate: not touched

// |ns| of a copy that is queued on a busy stream, less those of memcpy.
//
// The stream is held up until all copies of a batch are queued, and then let
// go: queueing them and running them are timed one after the other, so that
// nothing of one hides behind the other on a second core, as it would in a
// program. The sum, divided by the count, less memcpy of the same bytes in the
// same pass, is what a queued copy costs over all threads.
device_measure device_queued;

// |ns| of tarn_stream_adopt for a handle that is known, of as many streams as
// the name of the figure says, in no order.
device_measure device_adopt;

// One thread computes, in registers only, while a stream copies for as long:
// |ratio| is the time of both at once over that of the longer one alone. 2
// means one after the other.
device_measure device_overlap;

// --- device_driver.c: what the driver itself takes ---------------------------

// Whether this build knows the driver of the device's streams.
bool device_driver_is_known(const probe *p);

// Its version in its own words, BENCH_NAME_SIZE bytes; "": it is not known.
void device_driver_version(const probe *p, char *out);

// device_h2d_on_stream beside the driver's own copy of the same bytes on the
// same queue.
device_measure device_driver_copy;

// --- device_rows.c -----------------------------------------------------------

// The device's gather of rows of 256 bytes out of |p->table| bytes, beside that
// of cpu:0 with two threads.
device_measure device_gather;

// --- device_tables.c ---------------------------------------------------------

// Rows of so many bytes out of |p->table| bytes, or added to it, beside a copy
// of as many bytes within the device.
device_measure device_gather_64;
device_measure device_gather_256;
device_measure device_gather_1024;
device_measure device_add_256;

// Out of host memory that the device has pinned, 2 GiB of it at most, beside a
// copy of as many bytes from there.
device_measure device_host_rows_256;
device_measure device_host_rows_1024;

// --- device_pool.c -----------------------------------------------------------

// An alloc and a free of arena_pool, served by what the pool has, beside the
// same on cpu:0.
device_measure device_hit;

// |ratio|: how many of 1,000 hits call a function of the plug-in, which must be
// a shared object.
device_measure device_hit_calls;

// --- device_step.c -----------------------------------------------------------

// A step of |bench->net| on the device over one on cpu:0. For a process that
// has not opened the device. |queued|: its copies to the device go on beside
// the layers.
bool device_step(const device_bench *bench, bool queued, double *out_ratio,
                 char *why);

#endif  // TARN_BENCH_DEVICE_FIGURES_H_
