// A device under measurement, and the timing of batches.
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  PASSES_LEAST = 11,
  PASSES_MOST = 2001,
  COUNT_MOST = 1 << 16  // calls of a batch
};
#define BATCH_NS 2e4   // at least, unless one call takes longer
#define ENOUGH_NS 2e8  // for all passes together

bool probe_refused(char *why) {
  snprintf(why, PROBE_TEXT_SIZE, "%s", tarn_last_error());
  return false;
}

// ---------------------------------------------------------------------------
// Opening
// ---------------------------------------------------------------------------

// "sim:1" after "sim:0"; NULL if there is none.
static tarn_device *open_next(const char *name) {
  char next[PROBE_TEXT_SIZE];
  tarn_device *device = NULL;
  const char *colon = strrchr(name, ':');
  if (colon == NULL) return NULL;
  snprintf(next, sizeof next, "%.*s:%lu", (int)(colon - name), name,
           strtoul(colon + 1, NULL, 10) + 1);
  return tarn_device_open(next, &device) == TARN_OK ? device : NULL;
}

bool probe_open(probe *p, const char *name, char *why) {
  if (tarn_device_open(name, &p->device) != TARN_OK) return probe_refused(why);
  p->next = open_next(tarn_device_name(p->device));
  if (tarn_stream_create(p->device, &p->stream) == TARN_OK) return true;
  (void)probe_refused(why);
  probe_close(p);
  return false;
}

void probe_close(probe *p) {
  (void)tarn_stream_destroy(p->stream);
  if (p->next != NULL) (void)tarn_device_close(p->next);
  (void)tarn_device_close(p->device);
  p->stream = NULL;
  p->device = p->next = NULL;
}

// ---------------------------------------------------------------------------
// Buffers
// ---------------------------------------------------------------------------

static bool take(tarn_place place, size_t size, tarn_addr *out) {
  return tarn_device_allocate(place, size, out) == TARN_OK;
}

static void give(tarn_place place, size_t size, tarn_addr *address) {
  if (*address != 0) (void)tarn_device_deallocate(place, *address, size);
  *address = 0;
}

// memcpy copies the very same bytes where the host can touch the device's
// memory, and otherwise as many.
static bool take_target(probe *p) {
  void *view = NULL;
  tarn_place own = tarn_place_on(p->device);
  if (tarn_device_host_view(own, p->here, p->size, &view) != TARN_OK) {
    if (!take(TARN_HOST, p->size, &p->target_place)) return false;
    view = (void *)(uintptr_t)p->target_place;
  }
  p->target = view;
  return true;
}

static bool take_all(probe *p) {
  tarn_place own = tarn_place_on(p->device);
  bool taken = take(TARN_HOST, p->size, &p->source_place) &&
               take(own, p->size, &p->here) && take(own, p->size, &p->beside);
  if (taken && p->next != NULL) {
    taken = take(tarn_place_on(p->next), p->size, &p->away);
  }
  return taken && take_target(p);
}

// First touches cost page faults, which are no part of a copy.
static bool touch_all(probe *p) {
  p->source = (void *)(uintptr_t)p->source_place;
  memset(p->source, 0x5a, p->size);
  memset(p->target, 0x5a, p->size);
  tarn_status status =
      tarn_copy_h2d(p->device, p->here, p->source, p->size, NULL);
  if (status == TARN_OK) {
    status = tarn_copy_h2d(p->device, p->beside, p->source, p->size, NULL);
  }
  if (status == TARN_OK && p->away != 0) {
    status = tarn_copy_h2d(p->next, p->away, p->source, p->size, NULL);
  }
  return status == TARN_OK;
}

bool probe_take(probe *p, size_t size, char *why) {
  p->size = size;
  if (take_all(p) && touch_all(p)) return true;
  (void)probe_refused(why);
  probe_give(p);
  return false;
}

void probe_give(probe *p) {
  tarn_place own = tarn_place_on(p->device);
  give(TARN_HOST, p->size, &p->target_place);
  give(tarn_place_on(p->next), p->size, &p->away);
  give(own, p->size, &p->beside);
  give(own, p->size, &p->here);
  give(TARN_HOST, p->size, &p->source_place);
  p->source = p->target = NULL;
  p->size = 0;
}

// ---------------------------------------------------------------------------
// Timing
// ---------------------------------------------------------------------------

bool probe_memcpy(probe *p, size_t count) {
  for (size_t i = 0; i < count; i++) {
    memcpy(p->target, p->source, p->size);
    __asm__ volatile("" : : "r"(p->target) : "memory");  // each one is wanted
  }
  return true;
}

double probe_once(probe *p, probe_batch *batch, size_t count) {
  uint64_t begin = stopwatch_now(p->watch);
  bool done = batch(p, count);
  uint64_t ticks = stopwatch_since(p->watch, begin);
  return done ? stopwatch_ns(p->watch, (double)ticks) : -1;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

double probe_median(double *values, size_t count) {
  qsort(values, count, sizeof *values, compare);
  return values[count / 2];
}

typedef struct samples {
  probe_batch *batch;
  probe_batch *beside;
  double ns[PASSES_MOST];
  double beside_ns[PASSES_MOST];
  double ratio[PASSES_MOST];
  size_t passes;
  size_t count;  // calls of a batch
} samples;

size_t probe_passes(const probe *p, size_t usual, size_t most) {
  size_t passes = p->passes > 0 ? p->passes : usual;
  return passes < most ? passes : most;
}

// The number of calls in a batch that is long enough to time, and the number of
// batches that fit the time. The first call of all warms up.
static bool choose(probe *p, samples *s) {
  double ns = probe_once(p, s->batch, 1);
  for (s->count = 1; s->count <= COUNT_MOST / 2; s->count *= 2) {
    ns = probe_once(p, s->batch, s->count);
    if (ns < 0 || ns >= BATCH_NS) break;
  }
  double beside = ns < 0 ? ns : probe_once(p, s->beside, s->count);
  if (beside < 0) return false;
  double passes = ENOUGH_NS / (ns + beside);
  size_t enough = passes < PASSES_MOST ? (size_t)passes : PASSES_MOST;
  if (enough < PASSES_LEAST) enough = PASSES_LEAST;
  s->passes = probe_passes(p, enough, PASSES_MOST);
  return true;
}

static bool time_pair(probe *p, samples *s, size_t pass) {
  bool beside_first = pass % 2 == 0;
  double beside = beside_first ? probe_once(p, s->beside, s->count) : 0;
  double ns = probe_once(p, s->batch, s->count);
  if (!beside_first) beside = probe_once(p, s->beside, s->count);
  s->ns[pass] = ns / (double)s->count;
  s->beside_ns[pass] = beside / (double)s->count;
  s->ratio[pass] = ns / beside;
  return ns >= 0 && beside >= 0;
}

bool probe_time_beside(probe *p, probe_batch *batch, probe_batch *beside,
                       probe_times *out, char *why) {
  samples s = {.batch = batch, .beside = beside};
  if (!choose(p, &s)) return probe_refused(why);
  for (size_t i = 0; i < s.passes; i++) {
    if (!time_pair(p, &s, i)) return probe_refused(why);
  }
  out->ns = probe_median(s.ns, s.passes);
  out->beside = probe_median(s.beside_ns, s.passes);
  out->ratio = probe_median(s.ratio, s.passes);
  out->bytes = p->size;
  return true;
}

bool probe_time(probe *p, probe_batch *batch, probe_times *out, char *why) {
  return probe_time_beside(p, batch, probe_memcpy, out, why);
}
