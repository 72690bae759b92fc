// Turns: in each pass the link is measured, and then each op of each size of
// rows, every other pass in turned order. Both ops of a pair have the same
// indices, and ratios are of figures of the same pass.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hosts_scene.h"
#include "kit/tool.h"
#include "probe.h"

static const size_t counts[HOSTS_COUNTS] = {10, 100, 1000};

// A line of the report, and its samples, one for each pass.
typedef struct turn {
  hosts_job job;
  size_t peer;  // the turn of the same rows by MPI
  hosts_sample samples[WHOLE_PASSES_MOST];
  char why[WHOLE_TEXT_SIZE];
  bool is_skipped;
} turn;

typedef struct turns {
  turn *all;
  size_t count;
  hosts_link links[WHOLE_PASSES_MOST];
} turns;

// ---------------------------------------------------------------------------
// Which there are
// ---------------------------------------------------------------------------

static void add(turns *t, hosts_job job, size_t peer) {
  t->all[t->count] = (turn){.job = job, .peer = peer};
  t->count++;
}

// The same rows by MPI, and by each type.
static void add_all(turns *t, hosts_job job) {
  size_t peer = t->count;
  job.op = HOSTS_ALLTOALLV;
  job.type = TARN_WHOLE_DISTRIBUTED;
  add(t, job, peer);
  job.op = HOSTS_GATHER;
  for (size_t i = 0; i < HOSTS_TYPES; i++) {
    job.type = hosts_types[i];
    add(t, job, peer);
  }
}

static void make_turns(const hosts_scene *s, turns *t) {
  const whole_bench *b = &s->bench->whole;
  for (size_t r = 0; r < b->row_count; r++) {
    size_t row = b->row_bytes[r];
    size_t batch = whole_batch_rows(b, row);
    hosts_job job = {.row_bytes = row, .rows = batch, .calls = 1};
    add_all(t, job);
    job.zipf = true;
    add_all(t, job);
    job.zipf = false;
    job.calls = HOSTS_CALLS;
    for (size_t i = 0; i < HOSTS_COUNTS; i++) {
      job.rows = counts[i] < batch ? counts[i] : batch;
      add_all(t, job);
    }
  }
}

// ---------------------------------------------------------------------------
// Passes
// ---------------------------------------------------------------------------

static const hosts_sample none = {NAN, NAN, NAN, NAN, NAN, NAN};

// What has failed once is not tried again.
static void note(turn *of, const whole_scene *s) {
  memcpy(of->why, s->why, sizeof of->why);
  of->is_skipped = s->status == TARN_E_UNSUPPORTED;
  for (size_t i = 0; i < WHOLE_PASSES_MOST; i++)
    of->samples[i] = none;
}

static bool has_peer(const hosts_scene *s, const turn *of) {
  return of->job.op != HOSTS_ALLTOALLV || s->alltoallv != NULL;
}

// False: the communicator is broken.
static bool take_turn(hosts_scene *s, turn *of, uint64_t seed,
                      hosts_sample *out) {
  *out = none;
  if (of->why[0] != '\0' || !has_peer(s, of)) return true;
  if (hosts_job_do(s, of->job, seed, out)) return true;
  *out = none;
  note(of, &s->whole);
  return !s->whole.is_broken;
}

static bool pass_through(hosts_scene *s, turns *t, size_t pass,
                         bool is_counted) {
  hosts_sample sample;
  hosts_link link;
  if (!hosts_link_measure(s, &link)) return false;
  if (is_counted) t->links[pass] = link;
  for (size_t i = 0; i < t->count; i++) {
    turn *of = &t->all[pass % 2 == 0 ? i : t->count - 1 - i];
    uint64_t seed = 1 + pass * t->count + of->peer;
    if (!take_turn(s, of, seed, &sample)) return false;
    if (is_counted) of->samples[pass] = sample;
  }
  return true;
}

// Before anything is timed: wrong rows have no speed.
static bool check_all(hosts_scene *s, turns *t) {
  hosts_sample unused;
  for (size_t i = 0; i < t->count; i++) {
    turn *of = &t->all[i];
    if (!has_peer(s, of)) continue;
    bool did = hosts_job_do(s, of->job, 1 + i, &unused);
    if (s->whole.is_broken) return false;
    if (did) did = whole_agree(&s->whole, hosts_job_check(s, of->job), 0, NULL);
    if (!did) note(of, &s->whole);
    if (s->whole.is_broken) return false;
  }
  return true;
}

// ---------------------------------------------------------------------------
// Memory
// ---------------------------------------------------------------------------

// "VmRSS:" or "VmHWM:" of this process, in bytes; 0: not told.
static size_t resident(const char *what) {
  char line[128];
  size_t kib = 0;
  FILE *in = fopen("/proc/self/status", "re");
  while (in != NULL && fgets(line, sizeof line, in) != NULL) {
    if (strncmp(line, what, strlen(what)) == 0)
      kib = strtoull(line + strlen(what), NULL, 10);
  }
  if (in != NULL) (void)fclose(in);
  return kib * 1024;
}

// The highest from now on is counted anew.
static bool forget_highest(void) {
  FILE *out = fopen("/proc/self/clear_refs", "we");
  if (out == NULL) return false;
  bool wrote = fputs("5\n", out) >= 0;
  return fclose(out) == 0 && wrote;
}

// What one gather of each size adds to a rank at most; the batches are touched
// before. Figures that fail do so again later, and say why there; NaN if all
// do.
static bool measure_memory(hosts_scene *s, const turns *t, double *out) {
  whole_scene *w = &s->whole;
  memset(w->numbers, 0, w->indices_size);
  (void)whole_put(w, w->indices, w->numbers, w->indices_size);
  size_t before = resident("VmRSS:");
  bool can = forget_highest();
  hosts_sample unused;
  uint64_t most = 0;
  bool any = false;
  for (size_t i = 0; i < t->count; i++) {
    if (t->all[i].job.op == HOSTS_ALLTOALLV) continue;
    any |= hosts_job_do(s, t->all[i].job, 1, &unused);
    if (s->whole.is_broken) return false;
  }
  size_t after = resident("VmHWM:");
  uint64_t added = can && after > before ? after - before : 0;
  if (!whole_agree(&s->whole, true, added, &most)) return false;
  *out = any && most != 0 ? (double)most : NAN;
  return true;
}

// ---------------------------------------------------------------------------
// Figures
// ---------------------------------------------------------------------------

// Of |count| values that may be NaN; NaN if all are.
static double median_of(const double *values, size_t count) {
  double there[WHOLE_PASSES_MOST];
  size_t used = 0;
  for (size_t i = 0; i < count; i++) {
    if (!isnan(values[i])) there[used++] = values[i];
  }
  return used > 0 ? probe_median(there, used) : NAN;
}

typedef double value_fn(const turns *t, const turn *of, size_t pass);

static double us_of(const turns *t, const turn *of, size_t pass) {
  (void)t;
  return of->samples[pass].us;
}

static double gbs_of(const turns *t, const turn *of, size_t pass) {
  (void)t;
  return of->samples[pass].gbs;
}

static double over_peer(const turns *t, const turn *of, size_t pass) {
  const turn *peer = &t->all[of->peer];
  return peer != of ? peer->samples[pass].us / of->samples[pass].us : NAN;
}

// A few rows fit into the bucket of a link whose rate is limited.
static double over_link(const turns *t, const turn *of, size_t pass) {
  if (of->job.calls > 1) return NAN;
  return of->samples[pass].crossed_gbs / t->links[pass].both_gbs;
}

static double wire_of(const turns *t, const turn *of, size_t pass) {
  (void)t;
  return of->samples[pass].wire_bytes;
}

static double needed_of(const turns *t, const turn *of, size_t pass) {
  (void)t;
  return of->samples[pass].needed_bytes;
}

static double wire_over_needed(const turns *t, const turn *of, size_t pass) {
  (void)t;
  double needed = of->samples[pass].needed_bytes;
  return needed > 0 ? of->samples[pass].wire_bytes / needed : NAN;
}

static double messages_of(const turns *t, const turn *of, size_t pass) {
  (void)t;
  bool counted = of->job.op == HOSTS_GATHER;
  return counted ? of->samples[pass].messages : NAN;
}

static double over_passes(const hosts_scene *s, const turns *t, const turn *of,
                          value_fn *value) {
  double values[WHOLE_PASSES_MOST];
  for (size_t i = 0; i < s->bench->whole.passes; i++)
    values[i] = value(t, of, i);
  return median_of(values, s->bench->whole.passes);
}

static hosts_figure figure_of(const hosts_scene *s, const turns *t,
                              const turn *of) {
  hosts_figure f = {.type = of->job.type,
                    .op = of->job.op,
                    .zipf = of->job.zipf,
                    .row_bytes = of->job.row_bytes,
                    .rows = of->job.rows,
                    .is_small = of->job.calls > 1,
                    .is_skipped = of->is_skipped};
  f.gbs = over_passes(s, t, of, gbs_of);
  f.us = over_passes(s, t, of, us_of);
  f.over_alltoallv = over_passes(s, t, of, over_peer);
  f.over_link = over_passes(s, t, of, over_link);
  f.wire_bytes = over_passes(s, t, of, wire_of);
  f.needed_bytes = over_passes(s, t, of, needed_of);
  f.wire_over_needed = over_passes(s, t, of, wire_over_needed);
  f.messages = over_passes(s, t, of, messages_of);
  memcpy(f.why, of->why, sizeof f.why);
  return f;
}

static void report_link(const hosts_scene *s, const turns *t, hosts_link *out) {
  double one[WHOLE_PASSES_MOST];
  double both[WHOLE_PASSES_MOST];
  double round[WHOLE_PASSES_MOST];
  size_t passes = s->bench->whole.passes;
  for (size_t i = 0; i < passes; i++) {
    one[i] = t->links[i].one_gbs;
    both[i] = t->links[i].both_gbs;
    round[i] = t->links[i].round_us;
  }
  memcpy(out->interface, s->interface, sizeof out->interface);
  out->one_gbs = probe_median(one, passes);
  out->both_gbs = probe_median(both, passes);
  out->round_us = probe_median(round, passes);
}

static void report(const hosts_scene *s, const turns *t, hosts_result *out) {
  report_link(s, t, &out->link);
  for (size_t i = 0; i < t->count; i++) {
    if (has_peer(s, &t->all[i]))
      out->figures[out->count++] = figure_of(s, t, &t->all[i]);
  }
}

// ---------------------------------------------------------------------------
// All
// ---------------------------------------------------------------------------

static void start_peer(hosts_scene *s) {
  const whole_bench *b = &s->bench->whole;
  size_t rows = 0;
  for (size_t i = 0; i < b->row_count; i++) {
    if (whole_batch_rows(b, b->row_bytes[i]) > rows)
      rows = whole_batch_rows(b, b->row_bytes[i]);
  }
  if (s->peer != NULL)
    s->alltoallv = s->peer->make(rows, b->batch_bytes, sizeof *s->numbers);
}

// The first pass is not counted.
static bool measure(hosts_scene *s, turns *t, hosts_result *out) {
  if (!measure_memory(s, t, &out->memory_bytes)) return false;
  start_peer(s);
  if (!check_all(s, t) || !pass_through(s, t, 0, false)) return false;
  for (size_t pass = 0; pass < s->bench->whole.passes; pass++) {
    if (!pass_through(s, t, pass, true)) return false;
  }
  report(s, t, out);
  return true;
}

bool hosts_measure(hosts_scene *s, hosts_result *out) {
  turns t = {.all = tool_array(HOSTS_FIGURES_MOST, sizeof *t.all)};
  make_turns(s, &t);
  bool did = measure(s, &t, out);
  if (s->alltoallv != NULL) s->peer->unmake(s->alltoallv);
  free(t.all);
  return did;
}
