// The cost of an access without a copy, and the number of copies that the
// example of Caffe's SyncedMemory makes.
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "kit/stopwatch.h"
#include "probe.h"
#include "synced_figures.h"

enum {
  SIZE = 1 << 20,
  BATCH = 4096,
  WARMING = 8,  // batches
  PASSES = 501,
  PASSES_MOST = 1001
};

// ---------------------------------------------------------------------------
// A valid access
// ---------------------------------------------------------------------------

static bool access_batch(tarn_synced *buffer, tarn_place place) {
  tarn_access access;
  for (size_t i = 0; i < BATCH; i++) {
    if (tarn_synced_begin(buffer, 0, TARN_ALL, place, TARN_READ, NULL,
                          &access) != TARN_OK ||
        tarn_synced_end(&access) != TARN_OK) {
      return false;
    }
  }
  return true;
}

// The least cost of a lock and an unlock. Each has a cache line of its own.
static void locked_batch(void) {
  static _Alignas(64) atomic_size_t first;
  static _Alignas(64) atomic_size_t second;
  for (size_t i = 0; i < BATCH; i++) {
    atomic_fetch_add(&first, 1);
    atomic_fetch_add(&second, 1);
  }
}

static double time_locked(void) {
  double begin = stopwatch_cpu_ns();
  locked_batch();
  return stopwatch_cpu_ns() - begin;
}

// Negative if an access fails.
static double time_access(const synced_scene *s, tarn_synced *buffer) {
  double begin = stopwatch_cpu_ns();
  bool done = access_batch(buffer, s->place);
  double ns = stopwatch_cpu_ns() - begin;
  return done ? ns : -1;
}

static double ratio_of(const synced_scene *s, tarn_synced *buffer,
                       size_t pass) {
  bool locked_first = pass % 2 == 0;
  double locked = locked_first ? time_locked() : 0;
  double access = time_access(s, buffer);
  if (!locked_first) locked = time_locked();
  return access / locked;
}

static bool write_all(const synced_scene *s, tarn_synced *buffer) {
  tarn_access access;
  return tarn_synced_begin(buffer, 0, TARN_ALL, s->place, TARN_WRITE_DISCARD,
                           NULL, &access) == TARN_OK &&
         tarn_synced_end(&access) == TARN_OK;
}

static bool time_passes(const synced_scene *s, tarn_synced *buffer,
                        double *out) {
  double ratios[PASSES_MOST];
  size_t passes = synced_passes(s, PASSES, PASSES_MOST);
  if (!write_all(s, buffer)) return false;
  for (size_t i = 0; i < WARMING; i++) {
    if (!access_batch(buffer, s->place)) return false;
  }
  for (size_t i = 0; i < passes; i++) {
    ratios[i] = ratio_of(s, buffer, i);
    if (ratios[i] < 0) return false;
  }
  *out = probe_median(ratios, passes);
  return true;
}

bool synced_access(const synced_scene *s, double *out, char *why) {
  tarn_synced *buffer = NULL;
  bool done = tarn_synced_create(SIZE, NULL, &buffer) == TARN_OK &&
              time_passes(s, buffer, out);
  if (!done) (void)synced_refused(why);
  (void)tarn_synced_destroy(buffer);
  return done;
}

// ---------------------------------------------------------------------------
// The nine accesses of Caffe's SyncedMemory
// ---------------------------------------------------------------------------

static const char wanted_order[] = "h2d, d2h, h2d, d2h";

typedef struct seen {
  char order[256];
} seen;

static void see(void *context, const tarn_synced_event *event) {
  seen *s = context;
  size_t length = strlen(s->order);
  if (event->what != TARN_SYNCED_COPIED) return;
  snprintf(s->order + length, sizeof s->order - length, "%s%s",
           length > 0 ? ", " : "",
           tarn_place_equal(event->to, TARN_HOST) ? "d2h" : "h2d");
}

// A blob whose data are on the CPU at first, and what a net does with it.
static bool make_accesses(tarn_synced *x) {
  const void *read = NULL;
  void *written = NULL;
  tarn_addr there = 0;
  return tarn_synced_gpu_data(x, &there) == TARN_OK &&            // h2d
         tarn_synced_cpu_data(x, &read) == TARN_OK &&             //
         tarn_synced_mutable_gpu_data(x, &there) == TARN_OK &&    //
         tarn_synced_mutable_gpu_data(x, &there) == TARN_OK &&    //
         tarn_synced_cpu_data(x, &read) == TARN_OK &&             // d2h
         tarn_synced_gpu_data(x, &there) == TARN_OK &&            //
         tarn_synced_mutable_cpu_data(x, &written) == TARN_OK &&  //
         tarn_synced_mutable_gpu_data(x, &there) == TARN_OK &&    // h2d
         tarn_synced_mutable_cpu_data(x, &written) == TARN_OK;    // d2h
}

static bool count_copies(tarn_synced *x, double *out, char *why) {
  void *data = NULL;
  synced_moved moved;
  if (tarn_synced_mutable_cpu_data(x, &data) != TARN_OK ||
      tarn_synced_traffic_reset(x) != TARN_OK || !make_accesses(x) ||
      !synced_read_moved(x, &moved)) {
    return synced_refused(why);
  }
  *out = (double)(moved.copies_in + moved.copies_out);
  return true;
}

// Tells |order| of all copies meanwhile.
static bool count_traced(tarn_synced *x, seen *order, double *out, char *why) {
  if (tarn_synced_trace(see, order) != TARN_OK) return synced_refused(why);
  bool done = count_copies(x, out, why);
  return tarn_synced_trace(NULL, NULL) == TARN_OK && done;
}

static bool check_order(const seen *order, char *why) {
  if (strcmp(order->order, wanted_order) == 0) return true;
  snprintf(why, BENCH_TEXT_SIZE, "copied %.100s, not %s",
           order->order[0] != '\0' ? order->order : "nothing", wanted_order);
  return false;
}

bool synced_document(const synced_scene *s, double *out, char *why) {
  tarn_synced_options options = {.struct_size = sizeof options,
                                 .device = s->device};
  tarn_synced *buffer = NULL;
  seen order = {{0}};
  if (tarn_synced_create(SIZE, &options, &buffer) != TARN_OK)
    return synced_refused(why);
  bool done = count_traced(buffer, &order, out, why);
  (void)tarn_synced_destroy(buffer);
  return done && check_order(&order, why);
}
