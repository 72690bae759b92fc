// The processes: one that becomes the first rank, and those that it forks.
//
//   tarn ─► first rank ─► the others
//                └──────► mpirun ─► ranks of Open MPI
//
// No device is open before the ranks are there. What the first rank has found
// out goes back to the tool; who outlives it is ended by the kernel.
#include "whole_bench.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/tool.h"
#include "whole_scene.h"

// Longer than any op takes on a machine that does other things as well, and
// than the first rank waits for MPI while the others wait for it.
enum { TIMEOUT_MS = 2 * WHOLE_PEER_WAIT_MS };

// ---------------------------------------------------------------------------
// Names
// ---------------------------------------------------------------------------

whole_kind whole_kind_at(size_t index) {
  static const tarn_whole_type types[] = {
      TARN_WHOLE_CONTINUOUS, TARN_WHOLE_CHUNKED, TARN_WHOLE_DISTRIBUTED};
  return (whole_kind){types[index / 2], index % 2 == 1};
}

const char *whole_kind_location(whole_kind kind) {
  return kind.on_host ? "host" : "device";
}

const char *whole_op_name(whole_op op) {
  static const char *const names[WHOLE_OPS] = {
      "gather", "scatter",    "scatter_add",  "plain_gather",
      "memcpy", "mpi_window", "mpi_alltoallv"};
  return names[op];
}

// ---------------------------------------------------------------------------
// Sizes
// ---------------------------------------------------------------------------

size_t whole_batch_rows(const whole_bench *bench, size_t row_bytes) {
  return bench->batch_bytes / row_bytes;
}

size_t whole_granularity(const whole_bench *bench) {
  size_t most = 0;
  for (size_t i = 0; i < bench->row_count; i++) {
    if (bench->row_bytes[i] > most) most = bench->row_bytes[i];
  }
  return most;
}

// As tarn_whole_partition has it.
size_t whole_part_bytes(const whole_bench *bench) {
  size_t block = whole_granularity(bench);
  assert(bench->ranks > 0 && block > 0);
  size_t blocks = bench->table_bytes / block;
  return (blocks + bench->ranks - 1) / bench->ranks * block;
}

// ---------------------------------------------------------------------------
// Failures
// ---------------------------------------------------------------------------

bool whole_did(whole_scene *s, tarn_status status) {
  if (status == TARN_OK) return true;
  s->status = status;
  snprintf(s->why, sizeof s->why, "%s", tarn_last_error());
  return false;
}

// What each rank says of a step.
typedef struct verdict {
  uint64_t now;
  tarn_status status;
  char why[WHOLE_TEXT_SIZE];
} verdict;

// The first one that is not good counts.
static bool look_at(whole_scene *s, const verdict *all, uint64_t *out_last) {
  uint64_t last = 0;
  for (size_t r = s->bench->ranks; r-- > 0;) {
    if (all[r].now > last) last = all[r].now;
    if (all[r].status == TARN_OK) continue;
    s->status = all[r].status;
    memcpy(s->why, all[r].why, sizeof s->why);
  }
  if (out_last != NULL) *out_last = last;
  return s->status == TARN_OK;
}

bool whole_agree(whole_scene *s, bool mine, uint64_t now, uint64_t *out_last) {
  verdict all[WHOLE_RANKS_MOST];
  verdict own = {.now = now, .status = mine ? TARN_OK : s->status};
  if (s->is_broken) return false;
  if (!mine) memcpy(own.why, s->why, sizeof own.why);
  tarn_status status = tarn_comm_allgather(s->comm, &own, sizeof own, all);
  s->is_broken = !whole_did(s, status);
  if (s->is_broken) return false;
  s->status = TARN_OK;
  return look_at(s, all, out_last);
}

// ---------------------------------------------------------------------------
// A rank
// ---------------------------------------------------------------------------

static void measure_kinds(whole_scene *s, whole_result *out) {
  for (size_t i = 0; i < WHOLE_KINDS && !s->is_broken; i++) {
    s->kind = whole_kind_at(i);
    (void)whole_kind_measure(s, &out->made[i], out);
  }
}

static bool join(whole_scene *s, tarn_rendezvous *meeting) {
  tarn_comm_options options = {.struct_size = sizeof options,
                               .timeout_ms = TIMEOUT_MS};
  bool joined =
      whole_did(s, tarn_comm_join(meeting, s->rank, &options, &s->comm));
  tarn_rendezvous_destroy(meeting);
  return joined;
}

static void be_rank(whole_scene *s, tarn_rendezvous *meeting,
                    whole_result *out) {
  bool opened = join(s, meeting) && whole_scene_open(s);
  if (opened) measure_kinds(s, out);
  if (!opened || s->is_broken)
    snprintf(out->failed, sizeof out->failed, "%s", s->why);
  whole_scene_close(s);
  (void)tarn_comm_destroy(s->comm);
}

static _Noreturn void be_other_rank(whole_scene *s, tarn_rendezvous *meeting) {
  whole_result *unread = tool_array(1, sizeof *unread);
  whole_peer_leave(s->peer);
  be_rank(s, meeting, unread);
  _exit(unread->failed[0] == '\0' ? EXIT_SUCCESS : EXIT_FAILURE);
}

// Returns how many there are now, this one with them.
static size_t fork_others(whole_scene *s, tarn_rendezvous *meeting,
                          pid_t *out_pids) {
  pid_t first = getpid();
  for (size_t r = 1; r < s->bench->ranks; r++) {
    out_pids[r] = fork();
    if (out_pids[r] < 0) return r;
    if (out_pids[r] > 0) continue;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != first) _exit(EXIT_FAILURE);
    s->rank = r;
    be_other_rank(s, meeting);
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
  tarn_rendezvous *meeting = NULL;
  if (!whole_did(s, tarn_rendezvous_create(s->bench->ranks, &meeting))) {
    memcpy(out->failed, s->why, sizeof out->failed);
    return;
  }
  size_t count = fork_others(s, meeting, pids);
  be_rank(s, meeting, out);
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

bool whole_bench_run(const whole_bench *bench, whole_result *out, char *why) {
  whole_bench what = *bench;
  if (!child_run(measure_all, &what, (child_limits){0}, out, sizeof *out, why))
    return false;
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
