// The figures of a device: their names and goals, and the process in which they
// are measured.
#include "device_bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device_cuda.h"
#include "device_figures.h"

enum { SMALL = 4 << 10, LARGE = 64 << 20 };

// What becomes of the times.
typedef enum reading {
  READ_RATIO,        // as it is
  READ_SPEED,        // what it is compared with over it: 1 is as fast
  READ_US,           // of one call
  READ_US_BESIDE,    // of one call of what it is compared with
  READ_RATE,         // GB/s
  READ_RATE_BESIDE,  // likewise, of what it is compared with
  READ_STEP,         // device_step, which comes before the device is opened
  READ_STEP_QUEUED,
} reading;

// What a device must have for the figure.
typedef enum need {
  NEED_NOTHING,
  NEED_NEXT,     // another device of its type
  NEED_HANDLES,  // of streams
  NEED_DRIVER,   // one that device_driver.c knows
  NEED_MODULE,   // a plug-in that is not built in
  NEED_GATHER,   // that, and a gather of its own
  NEED_NET,      // the command names a net
  NEED_ROWS,     // the command asks for them, and for nothing else
  NEED_CUDA,     // the driver of device_cuda.c
} need;

// |batch| is timed beside memcpy, or |measure| does it in a way of its own.
// Neighbours with the same |measure| read the same times.
typedef struct figure {
  const char *name;
  const char *unit;
  const char *what;
  size_t size;  // of the probe's buffers; 0: it needs none
  probe_batch *batch;
  device_measure *measure;
  reading reading;
  need need;
} figure;

// By size, so that buffers are taken, and their pages touched, but twice.
static const figure figures[] = {
    {"copy_4k", "x memcpy", "synchronous copy to the device", SMALL, device_h2d,
     NULL, READ_RATIO, NEED_NOTHING},
    {"copy_4k_stream", "x memcpy", "the same on an idle stream, and waiting",
     SMALL, device_h2d_on_stream, NULL, READ_RATIO, NEED_NOTHING},
    {"copy_4k_over_driver", "x driver", "that over the driver's own", SMALL,
     NULL, device_driver_copy, READ_RATIO, NEED_DRIVER},
    {"driver_4k", "us", "the driver's own on the same queue, and finish", SMALL,
     NULL, device_driver_copy, READ_US_BESIDE, NEED_DRIVER},
    {"queued_4k", "us", "copy on a busy stream, less memcpy", SMALL, NULL,
     device_queued, READ_US, NEED_NOTHING},
    {"h2d_4k", "us", "synchronous copy to the device", SMALL, device_h2d, NULL,
     READ_US, NEED_NOTHING},
    {"h2d_4k_stream", "us", "the same on an idle stream, and waiting", SMALL,
     device_h2d_on_stream, NULL, READ_US, NEED_NOTHING},
    {"d2h_4k", "us", "synchronous copy to the host", SMALL, device_d2h, NULL,
     READ_US, NEED_NOTHING},
    {"d2d_4k", "us", "synchronous copy within the device", SMALL, device_d2d,
     NULL, READ_US, NEED_NOTHING},
    {"p2p_4k", "us", "synchronous copy to the next device of its type", SMALL,
     device_p2p, NULL, READ_US, NEED_NEXT},
    {"event", "us", "record on an idle stream, and wait", SMALL, device_event,
     NULL, READ_US, NEED_NOTHING},
    {"stream", "us", "create and destroy, unused", SMALL, device_stream, NULL,
     READ_US, NEED_NOTHING},
    {"adopt", "us", "find one of 1,000 streams by its handle", SMALL, NULL,
     device_adopt, READ_US, NEED_HANDLES},
    {"memory_4k", "us", "allocate and deallocate, untouched", SMALL,
     device_memory, NULL, READ_US, NEED_NOTHING},
    {"memory_64m", "us", "the same, of 64 MiB", LARGE, device_memory, NULL,
     READ_US, NEED_NOTHING},
    {"copy_64m", "of memcpy", "rate of a synchronous copy to the device", LARGE,
     device_h2d, NULL, READ_SPEED, NEED_NOTHING},
    {"copy_64m_back", "of memcpy", "to the host", LARGE, device_d2h, NULL,
     READ_SPEED, NEED_NOTHING},
    {"copy_64m_within", "of memcpy", "within the device", LARGE, device_d2d,
     NULL, READ_SPEED, NEED_NOTHING},
    {"copy_64m_stream", "of memcpy", "to the device on an idle stream", LARGE,
     device_h2d_on_stream, NULL, READ_SPEED, NEED_NOTHING},
    {"copy_64m_back_stream", "of memcpy", "to the host", LARGE,
     device_d2h_on_stream, NULL, READ_SPEED, NEED_NOTHING},
    {"copy_64m_within_stream", "of memcpy", "within the device", LARGE,
     device_d2d_on_stream, NULL, READ_SPEED, NEED_NOTHING},
    {"overlap", "x longer", "computing and copying at once", LARGE, NULL,
     device_overlap, READ_RATIO, NEED_NOTHING},
    {"h2d_64m", "GB/s", "synchronous copy to the device", LARGE, device_h2d,
     NULL, READ_RATE, NEED_NOTHING},
    {"d2h_64m", "GB/s", "to the host", LARGE, device_d2h, NULL, READ_RATE,
     NEED_NOTHING},
    {"d2d_64m", "GB/s", "within the device", LARGE, device_d2d, NULL, READ_RATE,
     NEED_NOTHING},
    {"p2p_64m", "GB/s", "to the next device of its type", LARGE, device_p2p,
     NULL, READ_RATE, NEED_NEXT},
    {"pinned_h2d_64m", "of driver", "rate out of pinned memory, on a stream",
     LARGE, NULL, device_cuda_pinned_h2d, READ_SPEED, NEED_CUDA},
    {"pinned_h2d", "GB/s", "that rate itself", LARGE, NULL,
     device_cuda_pinned_h2d, READ_RATE, NEED_CUDA},
    {"driver_pinned_h2d", "GB/s", "the driver's", LARGE, NULL,
     device_cuda_pinned_h2d, READ_RATE_BESIDE, NEED_CUDA},
    {"pinned_d2h_64m", "of driver", "rate into pinned memory, on a stream",
     LARGE, NULL, device_cuda_pinned_d2h, READ_SPEED, NEED_CUDA},
    {"pinned_d2h", "GB/s", "that rate itself", LARGE, NULL,
     device_cuda_pinned_d2h, READ_RATE, NEED_CUDA},
    {"pageable_h2d_64m", "of driver", "rate out of plain memory", LARGE, NULL,
     device_cuda_pageable_h2d, READ_SPEED, NEED_CUDA},
    {"pageable_h2d", "GB/s", "that rate itself", LARGE, NULL,
     device_cuda_pageable_h2d, READ_RATE, NEED_CUDA},
    {"gather_over_cpu", "of cpu", "rate of a gather of rows of 256 bytes", 0,
     NULL, device_gather, READ_SPEED, NEED_GATHER},
    {"gather", "GB/s", "that rate itself", 0, NULL, device_gather, READ_RATE,
     NEED_GATHER},
    {"gather_64_of_copy", "of copy", "rate of a gather of rows of 64 bytes", 0,
     NULL, device_gather_64, READ_SPEED, NEED_ROWS},
    {"gather_64", "GB/s", "that rate itself", 0, NULL, device_gather_64,
     READ_RATE, NEED_ROWS},
    {"copy_within", "GB/s", "a copy of as many bytes within the device", 0,
     NULL, device_gather_64, READ_RATE_BESIDE, NEED_ROWS},
    {"gather_256_of_copy", "of copy", "of rows of 256 bytes", 0, NULL,
     device_gather_256, READ_SPEED, NEED_ROWS},
    {"gather_256", "GB/s", "that rate itself", 0, NULL, device_gather_256,
     READ_RATE, NEED_ROWS},
    {"gather_1024_of_copy", "of copy", "of rows of 1024 bytes", 0, NULL,
     device_gather_1024, READ_SPEED, NEED_ROWS},
    {"gather_1024", "GB/s", "that rate itself", 0, NULL, device_gather_1024,
     READ_RATE, NEED_ROWS},
    {"add_256", "GB/s", "rate of a scatter_add of rows of 256 bytes", 0, NULL,
     device_add_256, READ_RATE, NEED_ROWS},
    {"host_rows_256_of_link", "of link",
     "rate of a gather out of pinned memory", 0, NULL, device_host_rows_256,
     READ_SPEED, NEED_ROWS},
    {"host_rows_256", "GB/s", "that rate itself", 0, NULL, device_host_rows_256,
     READ_RATE, NEED_ROWS},
    {"host_rows_1024_of_link", "of link", "of rows of 1024 bytes", 0, NULL,
     device_host_rows_1024, READ_SPEED, NEED_ROWS},
    {"host_rows_1024", "GB/s", "that rate itself", 0, NULL,
     device_host_rows_1024, READ_RATE, NEED_ROWS},
    {"pool_hit_over_cpu", "x cpu",
     "alloc and free of an arena_pool, on a stream", 0, NULL, device_hit,
     READ_RATIO, NEED_MODULE},
    {"pool_hit", "us", "that time itself", 0, NULL, device_hit, READ_US,
     NEED_MODULE},
    {"pool_hit_calls", "of 1000", "hits that call the plug-in", 0, NULL,
     device_hit_calls, READ_RATIO, NEED_MODULE},
    {"step_over_cpu", "x cpu", "step of training a net", 0, NULL, NULL,
     READ_STEP, NEED_NET},
    {"step_queued_over_cpu", "x cpu", "the same, copies beside the layers", 0,
     NULL, NULL, READ_STEP_QUEUED, NEED_NET},
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
    {"cuda", "pinned_h2d_64m", 0.98, SHEET_AT_LEAST},
    {"cuda", "pinned_d2h_64m", 0.98, SHEET_AT_LEAST},
    {"cuda", "pageable_h2d_64m", 1.0, SHEET_AT_LEAST},
    {"cuda", "gather_64_of_copy", 0.5, SHEET_AT_LEAST},
    {"cuda", "gather_256_of_copy", 0.8, SHEET_AT_LEAST},
    {"cuda", "gather_1024_of_copy", 0.9, SHEET_AT_LEAST},
    {"cuda", "host_rows_256_of_link", 0.8, SHEET_AT_LEAST},
    {"cuda", "host_rows_1024_of_link", 0.9, SHEET_AT_LEAST},
    {"opencl", "copy_4k_over_driver", 1.3, SHEET_AT_MOST},
    {"opencl", "copy_64m", 0.9, SHEET_AT_LEAST},
    {"opencl", "copy_64m_back", 0.9, SHEET_AT_LEAST},
    {"opencl", "copy_64m_within", 0.85, SHEET_AT_LEAST},
    {"opencl", "copy_64m_stream", 0.9, SHEET_AT_LEAST},
    {"opencl", "copy_64m_back_stream", 0.9, SHEET_AT_LEAST},
    {"opencl", "copy_64m_within_stream", 0.85, SHEET_AT_LEAST},
    {"opencl", "gather_over_cpu", 0.8, SHEET_AT_LEAST},
    {"opencl", "pool_hit_over_cpu", 1.05, SHEET_AT_MOST},
    {"opencl", "pool_hit_calls", 0, SHEET_EXACTLY},
    {"opencl", "step_over_cpu", 1.05, SHEET_AT_MOST},
    {"opencl", "step_queued_over_cpu", 1.05, SHEET_AT_MOST},
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
    case READ_SPEED:
      return 1 / times->ratio;
    case READ_RATE:
      return (double)times->bytes / times->ns;
    case READ_RATE_BESIDE:
      return (double)times->bytes / times->beside;
    case READ_US:
      return times->ns / 1e3;
    case READ_US_BESIDE:
      return times->beside / 1e3;
    default:
      return times->ratio;
  }
}

// The times of the figure before, if they were measured in the same way.
typedef struct last_times {
  device_measure *measure;
  probe_times times;
} last_times;

static bool measure_times(const figure *f, probe *p, last_times *last,
                          char *why) {
  bool is_same = f->measure != NULL && f->measure == last->measure;
  if (is_same) return true;
  last->times = (probe_times){.bytes = 0};
  bool measured = f->measure != NULL
                      ? f->measure(p, &last->times, why)
                      : probe_time(p, f->batch, &last->times, why);
  last->measure = measured ? f->measure : NULL;
  return measured;
}

// With the buffers of the figure before, if they are of its size.
static bool measure_figure(const figure *f, probe *p, last_times *last,
                           double *out, char *why) {
  if (p->size != f->size) {
    probe_give(p);
    if (f->size != 0 && !probe_take(p, f->size, why)) return false;
  }
  if (!measure_times(f, p, last, why)) return false;
  *out = read_times(f, &last->times);
  return true;
}

// ---------------------------------------------------------------------------
// The process
// ---------------------------------------------------------------------------

static bool open_device(const device_bench *bench, probe *p, bench_figures *f) {
  *p = (probe){
      .watch = bench->watch, .passes = bench->passes, .table = bench->table};
  if (!probe_open(p, bench->device, f->why)) return false;
  snprintf(f->device, sizeof f->device, "%s", tarn_device_name(p->device));
  return true;
}

static bool is_module(const probe *p) {
  tarn_device_info info = {.struct_size = sizeof info};
  return tarn_device_query(p->device, &info) == TARN_OK &&
         info.plugin[0] == '/';
}

static bool is_asked_for(const device_bench *bench, const figure *f) {
  return bench->rows == (f->need == NEED_ROWS);
}

static bool can(const probe *p, const figure *f) {
  switch (f->need) {
    case NEED_NEXT:
      return p->next != NULL;
    case NEED_HANDLES:
      return tarn_stream_native(p->stream) != NULL;
    case NEED_DRIVER:
      return device_driver_is_known(p);
    case NEED_MODULE:
      return is_module(p);
    case NEED_GATHER:
      return is_module(p) &&
             (tarn_device_extensions(p->device) & TARN_EXTENSION_GATHER) != 0;
    case NEED_CUDA:
      return device_cuda_is_known(p);
    default:
      return true;
  }
}

static bool is_step(const figure *f) {
  return f->reading == READ_STEP || f->reading == READ_STEP_QUEUED;
}

// Processes are started while this one has not opened the device: some drivers
// do not survive a fork.
static void measure_step(const device_bench *bench, bench_figures *r) {
  for (size_t i = 0; i < DEVICE_BENCH_FIGURES; i++) {
    r->values[i] = NAN;
    if (!is_step(&figures[i]) || bench->net == NULL || bench->rows) continue;
    bool queued = figures[i].reading == READ_STEP_QUEUED;
    r->is_there[i] = true;
    (void)device_step(bench, queued, &r->values[i], r->failed[i]);
  }
}

static void measure_open(const device_bench *bench, probe *p,
                         bench_figures *r) {
  last_times last = {.measure = NULL};
  for (size_t i = 0; i < DEVICE_BENCH_FIGURES; i++) {
    const figure *f = &figures[i];
    if (is_step(f)) continue;
    r->is_there[i] = is_asked_for(bench, f) && can(p, f);
    if (r->is_there[i])
      (void)measure_figure(f, p, &last, &r->values[i], r->failed[i]);
  }
}

// As the plug-in describes the device, and the version of its driver.
static void describe(const probe *p, char *out) {
  char version[BENCH_NAME_SIZE];
  tarn_device_info info = {.struct_size = sizeof info};
  if (tarn_device_query(p->device, &info) != TARN_OK ||
      *info.description == '\0')
    return;
  device_driver_version(p, version);
  snprintf(out, BENCH_ABOUT_SIZE, "%s%s%s", info.description,
           *version != '\0' ? ", driver " : "", version);
}

void device_bench_measure(void *bench, void *out_figures) {
  bench_figures *r = out_figures;
  probe p;
  measure_step(bench, r);
  if (!open_device(bench, &p, r)) return;
  describe(&p, r->about);
  measure_open(bench, &p, r);
  probe_give(&p);
  probe_close(&p);
}

void device_bench_open(void *bench, void *out_figures) {
  probe p;
  if (open_device(bench, &p, out_figures)) probe_close(&p);
}
