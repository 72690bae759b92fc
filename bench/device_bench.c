// The figures of a device: which there are, what is asked of them, and the
// process in which they are measured.
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
} reading;

typedef struct figure {
  device_bench_figure shown;
  reading reading;
  size_t size;
  probe_batch *batch;
  bool needs_next;        // the device must not be the only one of its type
  const char *goal_type;  // the type of device that has a goal; NULL: none
  device_bench_goal goal;
} figure;

#define AT_MOST(limit) \
  { .value = (limit), .is_least = false }
#define AT_LEAST(limit) \
  { .value = (limit), .is_least = true }

static const figure figures[] = {
    {{"copy_4k", "x memcpy", "synchronous copy to the device"},
     READ_RATIO,
     SMALL,
     device_h2d,
     false,
     "cpu",
     AT_MOST(1.2)},
    {{"copy_4k_stream", "x memcpy", "the same, on an idle stream, and waiting"},
     READ_RATIO,
     SMALL,
     device_h2d_on_stream,
     false,
     "cpu",
     AT_MOST(1.2)},
    {{"copy_64m", "of memcpy", "rate of a large synchronous copy"},
     READ_SPEED,
     LARGE,
     device_h2d,
     false,
     "cpu",
     AT_LEAST(0.95)},
    {{"queued_4k", "us", "cost of a copy on a busy stream, less memcpy"},
     READ_QUEUED,
     SMALL,
     NULL,
     false,
     "cpu",
     AT_MOST(0.5)},
    {{"overlap", "x longer", "computing and copying at once"},
     READ_OVERLAP,
     LARGE,
     NULL,
     false,
     "cpu",
     AT_MOST(1.1)},
    {{"h2d_4k", "us", "synchronous copy to the device"},
     READ_US,
     SMALL,
     device_h2d,
     false,
     "sim",
     AT_MOST(0.3)},
    {{"h2d_4k_stream", "us", "the same, on an idle stream, and waiting"},
     READ_US,
     SMALL,
     device_h2d_on_stream,
     false,
     NULL,
     AT_MOST(NAN)},
    {{"d2h_4k", "us", "synchronous copy to the host"},
     READ_US,
     SMALL,
     device_d2h,
     false,
     "sim",
     AT_MOST(0.3)},
    {{"d2d_4k", "us", "synchronous copy within the device"},
     READ_US,
     SMALL,
     device_d2d,
     false,
     "sim",
     AT_MOST(0.3)},
    {{"p2p_4k", "us", "synchronous copy to the next device of its type"},
     READ_US,
     SMALL,
     device_p2p,
     true,
     NULL,
     AT_MOST(NAN)},
    {{"h2d_64m", "GB/s", "the same with 64 MiB"},
     READ_RATE,
     LARGE,
     device_h2d,
     false,
     NULL,
     AT_MOST(NAN)},
    {{"d2h_64m", "GB/s", "to the host"},
     READ_RATE,
     LARGE,
     device_d2h,
     false,
     NULL,
     AT_MOST(NAN)},
    {{"d2d_64m", "GB/s", "within the device"},
     READ_RATE,
     LARGE,
     device_d2d,
     false,
     NULL,
     AT_MOST(NAN)},
    {{"p2p_64m", "GB/s", "to the next device"},
     READ_RATE,
     LARGE,
     device_p2p,
     true,
     NULL,
     AT_MOST(NAN)},
    {{"event", "us", "record on an idle stream, and wait"},
     READ_US,
     SMALL,
     device_event,
     false,
     NULL,
     AT_MOST(NAN)},
    {{"stream", "us", "create and destroy, unused"},
     READ_US,
     SMALL,
     device_stream,
     false,
     NULL,
     AT_MOST(NAN)},
    {{"memory_4k", "us", "allocate and deallocate, untouched"},
     READ_US,
     SMALL,
     device_memory,
     false,
     NULL,
     AT_MOST(NAN)},
    {{"memory_1m", "us", "allocate and deallocate, untouched"},
     READ_US,
     1 << 20,
     device_memory,
     false,
     NULL,
     AT_MOST(NAN)},
    {{"memory_64m", "us", "allocate and deallocate, untouched"},
     READ_US,
     LARGE,
     device_memory,
     false,
     NULL,
     AT_MOST(NAN)},
};

_Static_assert(sizeof figures / sizeof figures[0] == DEVICE_BENCH_FIGURES,
               "every figure has its place in a result");

const device_bench_figure *device_bench_figure_at(size_t index) {
  return index < DEVICE_BENCH_FIGURES ? &figures[index].shown : NULL;
}

// ---------------------------------------------------------------------------
// Goals
// ---------------------------------------------------------------------------

device_bench_goal device_bench_goal_of(size_t index, const char *device) {
  device_bench_goal none = {.value = NAN};
  const char *type = figures[index].goal_type;
  if (type == NULL) return none;
  size_t length = strlen(type);
  bool has = strncmp(device, type, length) == 0 && device[length] == ':';
  return has ? figures[index].goal : none;
}

bool device_bench_is_met(device_bench_goal goal, double value) {
  return goal.is_least ? value >= goal.value : value <= goal.value;
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
  if (f->reading == READ_QUEUED) {
    bool done = device_queued(p, out, why);
    *out /= 1e3;
    return done;
  }
  if (!probe_time(p, f->batch, &times, why)) return false;
  *out = read_times(f, &times);
  return true;
}

static bool measure_figure(const figure *f, probe *p, double *out, char *why) {
  if (!probe_take(p, f->size, why)) return false;
  bool done = measure_taken(f, p, out, why);
  probe_give(p);
  if (!done) *out = NAN;
  return done;
}

// ---------------------------------------------------------------------------
// The process
// ---------------------------------------------------------------------------

// What travels back: the figures, or why there are none.
typedef struct answer {
  device_bench_result result;
  char why[PROBE_TEXT_SIZE];
} answer;

static bool open_device(const device_bench *bench, probe *p, answer *a) {
  *p = (probe){.watch = bench->watch, .passes = bench->passes};
  if (!probe_open(p, bench->device, a->why)) return false;
  snprintf(a->result.device, sizeof a->result.device, "%s",
           tarn_device_name(p->device));
  return true;
}

static void measure_all(void *context, void *out_result) {
  answer *a = out_result;
  probe p;
  if (!open_device(context, &p, a)) return;
  for (size_t i = 0; i < DEVICE_BENCH_FIGURES; i++) {
    device_bench_result *r = &a->result;
    r->values[i] = NAN;
    r->is_there[i] = p.next != NULL || !figures[i].needs_next;
    if (!r->is_there[i]) continue;
    (void)measure_figure(&figures[i], &p, &r->values[i], r->failed[i]);
  }
  probe_close(&p);
}

static void only_open(void *context, void *out_result) {
  probe p;
  if (open_device(context, &p, out_result)) probe_close(&p);
}

static bool run(const device_bench *bench, child_work *work,
                device_bench_result *out, char *why) {
  answer a;
  device_bench what = *bench;
  bool ended = child_run(work, &what, &a, sizeof a, why);
  *out = a.result;
  if (!ended) return false;
  snprintf(why, CHILD_TEXT_SIZE, "%s", a.why);
  return *why == '\0';
}

bool device_bench_run(const device_bench *bench, device_bench_result *out,
                      char *why) {
  return run(bench, measure_all, out, why);
}

bool device_bench_try(const device_bench *bench, char *why) {
  device_bench_result none;
  return run(bench, only_open, &none, why);
}
