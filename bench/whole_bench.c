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

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit/tool.h"
#include "whole_scene.h"

_Static_assert(
    (int)WHOLE_TIMEOUT_MS >= 2 * WHOLE_PEER_WAIT_MS,
    "longer than any op takes on a machine that does other things as "
    "well, and than the first rank waits for MPI while others wait for it");

// ---------------------------------------------------------------------------
// A rank
// ---------------------------------------------------------------------------

static void measure_kinds(whole_scene *s, whole_result *out) {
  for (size_t i = 0; i < WHOLE_KINDS && !s->is_broken; i++) {
    s->kind = whole_kind_at(i);
    (void)whole_kind_measure(s, &out->made[i], out);
  }
}

static bool join(whole_scene *s, tarn_rendezvous *rendezvous) {
  tarn_comm_options options = {.struct_size = sizeof options,
                               .timeout_ms = WHOLE_TIMEOUT_MS};
  bool joined =
      whole_did(s, tarn_comm_join(rendezvous, s->rank, &options, &s->comm));
  tarn_rendezvous_destroy(rendezvous);
  return joined;
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
  whole_take_stop(s->take);
  whole_scene_close(s);
}

static void be_rank(whole_scene *s, tarn_rendezvous *rendezvous,
                    whole_result *out) {
  (void)join(s, rendezvous);
  measure_as_rank(s, out);
  (void)tarn_comm_destroy(s->comm);
}

static _Noreturn void be_other_rank(whole_scene *s,
                                    tarn_rendezvous *rendezvous) {
  whole_result *unread = tool_array(1, sizeof *unread);
  whole_peer_leave(s->peer);
  be_rank(s, rendezvous, unread);
  _exit(unread->failed[0] == '\0' ? EXIT_SUCCESS : EXIT_FAILURE);
}

// Returns how many there are now, this one with them.
static size_t fork_others(whole_scene *s, tarn_rendezvous *rendezvous,
                          pid_t *out_pids) {
  pid_t first = getpid();
  for (size_t r = 1; r < s->bench->ranks; r++) {
    out_pids[r] = fork();
    if (out_pids[r] < 0) return r;
    if (out_pids[r] > 0) continue;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != first) _exit(EXIT_FAILURE);
    s->rank = r;
    be_other_rank(s, rendezvous);
  }
  return s->bench->ranks;
}

static void wait_for(const pid_t *pids, size_t count) {
  for (size_t r = 1; r < count; r++) {
    while (waitpid(pids[r], NULL, 0) < 0 && errno == EINTR) {
    }
  }
}

// ---------------------------------------------------------------------------
// The first process
// ---------------------------------------------------------------------------

static void run_ranks(whole_scene *s, whole_result *out) {
  pid_t pids[WHOLE_RANKS_MOST];
  tarn_rendezvous *rendezvous = NULL;
  if (!whole_did(s, tarn_rendezvous_create(s->bench->ranks, &rendezvous))) {
    memcpy(out->failed, s->why, sizeof out->failed);
    return;
  }
  size_t count = fork_others(s, rendezvous, pids);
  be_rank(s, rendezvous, out);
  wait_for(pids, count);
}

static void measure_all(void *context, void *out_result) {
  whole_result *out = out_result;
  whole_scene s = {.bench = context};
  if (s.bench->mpi == NULL) {
    snprintf(out->mpi_skipped, sizeof out->mpi_skipped, "%s", s.bench->why_not);
  } else {
    s.peer = whole_peer_start(s.bench, out->mpi_skipped);
  }
  run_ranks(&s, out);
  whole_peer_stop(s.peer);
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
