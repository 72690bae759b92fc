// The processes: the first rank, and the ranks that it forks.
//
//   tarn ─► first rank ─► the others
//                └──────► mpirun ─► ranks of Open MPI
//
// No device is open before the ranks exist. The first rank sends its results to
// the tool; the kernel ends the ranks that outlive it. Where a launcher has
// started the ranks, each of them measures in the tool's own process: MPI is
// not begun anew in a child.
#include "whole_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "crew.h"
#include "kit/tool.h"
#include "whole_scene.h"

_Static_assert(
    (int)WHOLE_TIMEOUT_MS >= 2 * WHOLE_PEER_WAIT_MS,
    "longer than any op takes on a machine that does other things as "
    "well, and than the first rank waits for MPI while others wait for it");
_Static_assert((int)WHOLE_RANKS_MOST <= (int)CREW_MOST,
               "all of them can be forked");

// ---------------------------------------------------------------------------
// A rank
// ---------------------------------------------------------------------------

static void measure_kinds(whole_scene *s, whole_result *out) {
  for (size_t i = 0; i < WHOLE_KINDS && !s->is_broken; i++) {
    s->kind = whole_kind_at(i);
    (void)whole_kind_measure(s, &out->made[i], out);
  }
}

// The first rank's, once the others have been made.
static void start_take(whole_scene *s, whole_result *out) {
  const char *why_not = s->bench->why_no_take;
  if (why_not != NULL) {
    snprintf(out->take_skipped, sizeof out->take_skipped, "%s", why_not);
  } else if (s->rank == 0) {
    s->take = whole_take_start(out->take_skipped);
  }
}

static void measure_as_rank(whole_scene *s, whole_result *out) {
  bool opened = s->comm != NULL && whole_scene_open(s);
  if (opened) start_take(s, out);
  if (opened) measure_kinds(s, out);
  if (!opened || s->is_broken)
    snprintf(out->failed, sizeof out->failed, "%s", s->why);
  talk_stop(s->take, true);
  whole_scene_close(s);
}

// What the first process hands to the ranks that it forks.
typedef struct start {
  whole_scene scene;
  whole_result *result;  // the first rank's
} start;

static bool be_rank(void *context, size_t rank, tarn_rendezvous *rendezvous) {
  start *as = context;
  whole_scene *s = &as->scene;
  bool is_first = rank == 0;
  whole_result *out = is_first ? as->result : tool_array(1, sizeof *out);
  s->rank = rank;
  if (!is_first) whole_peer_leave(s->peer);
  (void)whole_did(s, crew_join(rendezvous, rank, WHOLE_TIMEOUT_MS, &s->comm));
  measure_as_rank(s, out);
  (void)tarn_comm_destroy(s->comm);
  return out->failed[0] == '\0';
}

// ---------------------------------------------------------------------------
// The first process
// ---------------------------------------------------------------------------

static void measure_all(void *context, void *out_result) {
  whole_result *out = out_result;
  start as = {.scene.bench = context, .result = out};
  const whole_bench *bench = as.scene.bench;
  if (bench->mpi == NULL) {
    snprintf(out->mpi_skipped, sizeof out->mpi_skipped, "%s", bench->why_not);
  } else {
    as.scene.peer = whole_peer_start(bench, out->mpi_skipped);
  }
  whole_peer *peer = as.scene.peer;
  (void)crew_run(bench->ranks, be_rank, &as, out->failed, sizeof out->failed);
  whole_peer_stop(peer);
}

double whole_memcpy_gbs(const whole_result *result) {
  double sum = 0;
  size_t count = 0;
  for (size_t i = 0; i < result->count; i++) {
    const whole_figure *f = &result->figures[i];
    if (f->op != WHOLE_MEMCPY || isnan(f->gbs)) continue;
    sum += f->gbs;
    count++;
  }
  return count > 0 ? sum / (double)count : NAN;
}

// MPI within MPI does not run.
static void measure_here(const whole_bench *bench, whole_result *out) {
  whole_scene s = {
      .bench = bench, .comm = bench->comm, .rank = tarn_comm_rank(bench->comm)};
  snprintf(out->mpi_skipped, sizeof out->mpi_skipped,
           "these ranks are a launcher's");
  measure_as_rank(&s, out);
}

bool whole_bench_run(const whole_bench *bench, whole_result *out, char *why) {
  whole_bench what = *bench;
  if (bench->comm != NULL) {
    measure_here(bench, out);
  } else if (!child_run(measure_all, &what, (child_limits){0}, out, sizeof *out,
                        why)) {
    return false;
  }
  snprintf(why, CHILD_TEXT_SIZE, "%s", out->failed);
  return out->failed[0] == '\0' || out->count > 0;
}

static void only_open(void *context, void *out_result) {
  const whole_bench *bench = context;
  char *why = out_result;
  tarn_device *device = NULL;
  if (tarn_device_open(bench->device, &device) == TARN_OK) {
    (void)tarn_device_close(device);
  } else {
    snprintf(why, WHOLE_TEXT_SIZE, "%s", tarn_last_error());
  }
}

bool whole_bench_try(const whole_bench *bench, char *why) {
  char refused[WHOLE_TEXT_SIZE];
  whole_bench what = *bench;
  if (!child_run(only_open, &what, (child_limits){0}, refused, sizeof refused,
                 why)) {
    return false;
  }
  snprintf(why, CHILD_TEXT_SIZE, "%s", refused);
  return refused[0] == '\0';
}
