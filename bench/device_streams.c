// What streams and events cost, and whether a stream's work goes on while the
// host does something else.
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "device_figures.h"

enum {
  QUEUED = 1000,  // copies in a batch behind what holds the stream up
  BURST = 4,      // large copies that computing goes on beside
  PASSES = 9,     // of the two below, unless the probe says otherwise
  PASSES_QUEUED = 101,
  PASSES_MOST = 1001,
  ROUNDS = 1 << 20,  // of computing, to find out how long one takes
  ADOPTED = 1000,    // streams among which one is found
};
#define HOLD_NS 1000000000u  // the longest that a stream is held up

static size_t passes_of(const probe *p, size_t usual) {
  return probe_passes(p, usual, PASSES_MOST);
}

// ---------------------------------------------------------------------------
// Single calls
// ---------------------------------------------------------------------------

bool device_event(probe *p, size_t count) {
  tarn_event *event = NULL;
  tarn_status status = tarn_event_create(p->device, &event);
  for (size_t i = 0; i < count && status == TARN_OK; i++) {
    status = tarn_event_record(event, p->stream);
    if (status == TARN_OK) status = tarn_event_synchronize(event);
  }
  tarn_status ended = tarn_event_destroy(event);
  return status == TARN_OK && ended == TARN_OK;
}

bool device_stream(probe *p, size_t count) {
  for (size_t i = 0; i < count; i++) {
    tarn_stream *stream = NULL;
    if (tarn_stream_create(p->device, &stream) != TARN_OK) return false;
    if (tarn_stream_destroy(stream) != TARN_OK) return false;
  }
  return true;
}

bool device_memory(probe *p, size_t count) {
  tarn_place own = tarn_place_on(p->device);
  for (size_t i = 0; i < count; i++) {
    tarn_addr address = 0;
    if (tarn_device_allocate(own, p->size, &address) != TARN_OK) return false;
    if (tarn_device_deallocate(own, address, p->size) != TARN_OK) return false;
  }
  return true;
}

// ---------------------------------------------------------------------------
// Adopting
// ---------------------------------------------------------------------------

// In an order in which neighbours are far from each other: 387 and 1,000 have
// no divisor in common.
static bool adopt_all(tarn_device *device, tarn_stream *const *streams) {
  for (size_t i = 0; i < ADOPTED; i++) {
    tarn_stream *found = NULL;
    void *native = tarn_stream_native(streams[i * 387 % ADOPTED]);
    if (tarn_stream_adopt(device, native, &found) != TARN_OK) return false;
  }
  return true;
}

static bool destroy_all(tarn_stream **streams) {
  bool good = true;
  for (size_t i = 0; i < ADOPTED; i++)
    good = tarn_stream_destroy(streams[i]) == TARN_OK && good;
  return good;
}

static bool time_adopting(probe *p, tarn_stream **streams, double *out_ns) {
  double costs[PASSES_MOST];
  size_t passes = passes_of(p, PASSES_QUEUED);
  for (size_t i = 0; i < passes; i++) {
    uint64_t begin = stopwatch_now(p->watch);
    bool done = adopt_all(p->device, streams);
    double ticks = (double)stopwatch_since(p->watch, begin);
    costs[i] = stopwatch_ns(p->watch, ticks) / ADOPTED;
    if (!done || !destroy_all(streams)) return false;
  }
  *out_ns = probe_median(costs, passes);
  return true;
}

bool device_adopt(probe *p, probe_times *out, char *why) {
  static tarn_stream *streams[ADOPTED];
  bool good = true;
  memset(streams, 0, sizeof streams);
  for (size_t i = 0; i < ADOPTED && good; i++)
    good = tarn_stream_create(p->device, &streams[i]) == TARN_OK;
  good = good && time_adopting(p, streams, &out->ns);
  if (!good) (void)probe_refused(why);
  (void)destroy_all(streams);
  return good;
}

// ---------------------------------------------------------------------------
// A busy stream
// ---------------------------------------------------------------------------

static bool queue_copies(probe *p, size_t count) {
  for (size_t i = 0; i < count; i++) {
    tarn_status status =
        tarn_copy_h2d(p->device, p->here, p->source, p->size, p->stream);
    if (status != TARN_OK) return false;
  }
  return true;
}

// What holds a stream up: a callback that does not return before it is let go,
// or, should that never happen, before its time is over.
typedef struct hold {
  atomic_bool let_go;
  uint64_t until_ns;
  bool too_long;  // its time was over while copies were still being queued
} hold;

static void be_held(void *context, tarn_status status) {
  hold *h = context;
  (void)status;
  while (!atomic_load_explicit(&h->let_go, memory_order_acquire) &&
         stopwatch_clock_ns() < h->until_ns) {
  }
}

// Where callbacks run on the caller's own thread, or a copy waits for earlier
// work, no thread could release the stream: there every copy is made at once,
// and nothing is queued.
static bool can_hold(const probe *p) {
  const uint32_t needed = TARN_FN_CALLBACKS | TARN_FN_ASYNC_H2D;
  tarn_device_info info = {.struct_size = sizeof info};
  return tarn_stream_native(p->stream) != NULL &&
         tarn_device_query(p->device, &info) == TARN_OK &&
         (info.functions & needed) == needed;
}

static bool queue_and_run(probe *p, size_t count, hold *h) {
  bool queued = queue_copies(p, count);
  h->too_long = stopwatch_clock_ns() >= h->until_ns;
  atomic_store_explicit(&h->let_go, true, memory_order_release);
  return tarn_stream_synchronize(p->stream) == TARN_OK && queued;
}

// A copy that waited for the hold to end would have its time in the figure.
static bool time_queued(probe *p, size_t count, double *out_ns, char *why) {
  hold h = {.until_ns = stopwatch_clock_ns() + HOLD_NS};
  bool held = can_hold(p);
  if (held && tarn_stream_add_callback(p->stream, be_held, &h) != TARN_OK) {
    return probe_refused(why);
  }
  uint64_t begin = stopwatch_now(p->watch);
  bool done = queue_and_run(p, count, &h);
  uint64_t ticks = stopwatch_since(p->watch, begin);
  *out_ns = stopwatch_ns(p->watch, (double)ticks);
  if (!done) return probe_refused(why);
  if (!held || !h.too_long) return true;
  snprintf(why, PROBE_TEXT_SIZE,
           "%zu copies cannot be queued behind what is on the stream", count);
  return false;
}

bool device_queued(probe *p, probe_times *out, char *why) {
  double costs[PASSES_MOST];
  double queued = 0;
  size_t passes = passes_of(p, PASSES_QUEUED);
  if (!time_queued(p, QUEUED, &queued, why)) return false;  // starts the worker
  for (size_t i = 0; i < passes; i++) {
    double plain = probe_once(p, probe_memcpy, QUEUED);
    if (!time_queued(p, QUEUED, &queued, why)) return false;
    costs[i] = (queued - plain) / QUEUED;
  }
  out->ns = probe_median(costs, passes);
  return true;
}

// ---------------------------------------------------------------------------
// Copying beside computing
// ---------------------------------------------------------------------------

// Each round needs the one before it, and no memory. The result is given out,
// or there would be nothing to compute.
static void compute(uint64_t rounds) {
  uint64_t state = 1;
  for (uint64_t i = 0; i < rounds; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    __asm__ volatile("" : "+r"(state));
  }
}

typedef struct both {
  uint64_t rounds;  // of computing; 0: none
  size_t copies;    // 0: none
} both;

static double time_both(probe *p, both b) {
  uint64_t begin = stopwatch_now(p->watch);
  bool done = queue_copies(p, b.copies);
  compute(b.rounds);
  done = tarn_stream_synchronize(p->stream) == TARN_OK && done;
  uint64_t ticks = stopwatch_since(p->watch, begin);
  return done ? stopwatch_ns(p->watch, (double)ticks) : -1;
}

// As many rounds as take |ns|.
static uint64_t rounds_for(probe *p, double ns) {
  (void)time_both(p, (both){.rounds = ROUNDS});  // the processor wakes up
  double some = time_both(p, (both){.rounds = ROUNDS});
  return (uint64_t)(ROUNDS * ns / some);
}

static double overlap_once(probe *p, uint64_t rounds) {
  double computing = time_both(p, (both){.rounds = rounds});
  double copying = time_both(p, (both){.copies = BURST});
  double at_once = time_both(p, (both){rounds, BURST});
  if (copying < 0 || at_once < 0) return -1;
  return at_once / (computing > copying ? computing : copying);
}

bool device_overlap(probe *p, probe_times *out, char *why) {
  double ratios[PASSES_MOST];
  size_t passes = passes_of(p, PASSES);
  (void)time_both(p, (both){.copies = BURST});  // warms up
  double copying = time_both(p, (both){.copies = BURST});
  if (copying < 0) return probe_refused(why);
  uint64_t rounds = rounds_for(p, copying);
  for (size_t i = 0; i < passes; i++) {
    ratios[i] = overlap_once(p, rounds);
    if (ratios[i] < 0) return probe_refused(why);
  }
  out->ratio = probe_median(ratios, passes);
  return true;
}
