// The figures of a device: their names and goals, and the process in which they
// are measured.
#include "device_bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device_figures.h"

enum { SMALL = 4 << 10, LARGE = 64 << 20 };

// What becomes of the times of a batch.
typedef enum reading {
  READ_RATIO,    // over memcpy
  READ_SPEED,    // of memcpy over it: 1 is as fast
  READ_US,       // of one call
  READ_RATE,     // GB/s
  READ_QUEUED,   // device_queued, in us
  READ_OVERLAP,  // device_overlap
  READ_ADOPT,    // device_adopt, in us
} reading;

typedef struct figure {
  const char *name;
  const char *unit;
  const char *what;
  reading reading;
  size_t size;
  probe_batch *batch;
} figure;

// By size, so that buffers are taken, and their pages touched, but twice.
static const figure figures[] = {
    {"copy_4k", "x memcpy", "synchronous copy to the device", READ_RATIO, SMALL,
     device_h2d},
    {"copy_4k_stream", "x memcpy", "the same on an idle stream, and waiting",
     READ_RATIO, SMALL, device_h2d_on_stream},
    {"queued_4k", "us", "copy on a busy stream, less memcpy", READ_QUEUED,
     SMALL, NULL},
    {"h2d_4k", "us", "synchronous copy to the device", READ_US, SMALL,
     device_h2d},
    {"h2d_4k_stream", "us", "the same on an idle stream, and waiting", READ_US,
     SMALL, device_h2d_on_stream},
    {"d2h_4k", "us", "synchronous copy to the host", READ_US, SMALL,
     device_d2h},
    {"d2d_4k", "us", "synchronous copy within the device", READ_US, SMALL,
     device_d2d},
    {"p2p_4k", "us", "synchronous copy to the next device of its type", READ_US,
     SMALL, device_p2p},
    {"event", "us", "record on an idle stream, and wait", READ_US, SMALL,
     device_event},
    {"stream", "us", "create and destroy, unused", READ_US, SMALL,
     device_stream},
    {"adopt", "us", "find one of 1,000 streams by its handle", READ_ADOPT,
     SMALL, NULL},
    {"memory_4k", "us", "allocate and deallocate, untouched", READ_US, SMALL,
     device_memory},
    {"memory_64m", "us", "the same, of 64 MiB", READ_US, LARGE, device_memory},
    {"copy_64m", "of memcpy", "rate of a synchronous copy to the device",
     READ_SPEED, LARGE, device_h2d},
    {"overlap", "x longer", "computing and copying at once", READ_OVERLAP,
     LARGE, NULL},
    {"h2d_64m", "GB/s", "synchronous copy to the device", READ_RATE, LARGE,
     device_h2d},
    {"d2h_64m", "GB/s", "to the host", READ_RATE, LARGE, device_d2h},
    {"d2d_64m", "GB/s", "within the device", READ_RATE, LARGE, device_d2d},
    {"p2p_64m", "GB/s", "to the next device of its type", READ_RATE, LARGE,
     device_p2p},
};

_Static_assert(sizeof figures / sizeof figures[0] == DEVICE_BENCH_FIGURES &&
                   (int)DEVICE_BENCH_FIGURES <= (int)BENCH_FIGURES_MOST,
               "every figure has its place in a result");

// ---------------------------------------------------------------------------
// Goals
// ---------------------------------------------------------------------------

// A synchronous copy is one without a stream, as the ABI has it: on a stream
// two calls, and two of the plug-in, do what one does there.
static const struct goal {
  const char *type;  // of the device
  const char *name;  // of the figure
  double goal;
  sheet_bound bound;
} goals[] = {
    {"cpu", "copy_4k", 1.2, SHEET_AT_MOST},
    {"cpu", "copy_64m", 0.95, SHEET_AT_LEAST},
    {"cpu", "queued_4k", 0.5, SHEET_AT_MOST},
    {"cpu", "overlap", 1.1, SHEET_AT_MOST},
    {"cpu", "adopt", 0.02, SHEET_AT_MOST},
    {"sim", "h2d_4k", 0.3, SHEET_AT_MOST},
    {"sim", "d2h_4k", 0.3, SHEET_AT_MOST},
    {"sim", "d2d_4k", 0.3, SHEET_AT_MOST},
};
enum { GOALS = sizeof goals / sizeof goals[0] };

// Whether |device| is "cpu:0" where |type| is "cpu".
static bool is_of(const char *device, const char *type) {
  size_t length = strlen(type);
  return strncmp(device, type, length) == 0 && device[length] == ':';
}

bench_figure device_bench_figure_of(size_t index, const char *device) {
  const figure *f = &figures[index];
  bench_figure found = {f->name, f->unit, f->what, NAN, SHEET_AT_MOST};
  for (size_t i = 0; i < GOALS; i++) {
    const struct goal *g = &goals[i];
    if (strcmp(g->name, f->name) != 0 || !is_of(device, g->type)) continue;
    found.goal = g->goal;
    found.bound = g->bound;
  }
  return found;
}

// ---------------------------------------------------------------------------
// One figure
// ---------------------------------------------------------------------------

static double read_times(const figure *f, const probe_times *times) {
  switch (f->reading) {
    case READ_RATIO:
      return times->ratio;
    case READ_SPEED:
      return 1 / times->ratio;
    case READ_RATE:
      return (double)f->size / times->ns;
    default:
      return times->ns / 1e3;
  }
}

static bool measure_taken(const figure *f, probe *p, double *out, char *why) {
  probe_times times = {0};
  if (f->reading == READ_OVERLAP) return device_overlap(p, out, why);
  if (f->reading == READ_QUEUED || f->reading == READ_ADOPT) {
    bool done = f->reading == READ_QUEUED ? device_queued(p, out, why)
                                          : device_adopt(p, out, why);
    *out /= 1e3;
    return done;
  }
  if (!probe_time(p, f->batch, &times, why)) return false;
  *out = read_times(f, &times);
  return true;
}

// With the buffers of the figure before, if they are of its size.
static bool measure_figure(const figure *f, probe *p, double *out, char *why) {
  if (p->size != f->size) {
    probe_give(p);
    if (!probe_take(p, f->size, why)) return false;
  }
  if (measure_taken(f, p, out, why)) return true;
  *out = NAN;
  return false;
}

// ---------------------------------------------------------------------------
// The process
// ---------------------------------------------------------------------------

static bool open_device(const device_bench *bench, probe *p, bench_figures *f) {
  *p = (probe){.watch = bench->watch, .passes = bench->passes};
  if (!probe_open(p, bench->device, f->why)) return false;
  snprintf(f->device, sizeof f->device, "%s", tarn_device_name(p->device));
  return true;
}

// Another device, and streams with handles, are not everywhere.
static bool can(const probe *p, const figure *f) {
  if (f->batch == device_p2p) return p->next != NULL;
  return f->reading != READ_ADOPT || tarn_stream_native(p->stream) != NULL;
}

void device_bench_measure(void *bench, void *out_figures) {
  bench_figures *r = out_figures;
  probe p;
  if (!open_device(bench, &p, r)) return;
  for (size_t i = 0; i < DEVICE_BENCH_FIGURES; i++) {
    r->values[i] = NAN;
    r->is_there[i] = can(&p, &figures[i]);
    if (!r->is_there[i]) continue;
    (void)measure_figure(&figures[i], &p, &r->values[i], r->failed[i]);
  }
  probe_give(&p);
  probe_close(&p);
}

void device_bench_open(void *bench, void *out_figures) {
  probe p;
  if (open_device(bench, &p, out_figures)) probe_close(&p);
}
