// The work of one process, and its view of each better plan.
#include "plan_job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "kit/memory.h"
#include "plan_models.h"
#include "tarn/plan_csv.h"

typedef struct solving {
  const plan_job *job;
  plan_job_result *out;
  tarn_plan_problem problem;
  uint64_t capacity;
  tarn_plan_table *table;
  plan_model model;
  plan_packing packing;
  double begin;  // of the processor's time
  uint64_t best;
} solving;

static double cpu_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool fail(solving *s, const char *what, const char *why) {
  snprintf(s->out->failed, sizeof s->out->failed, "%.60s: %.180s", what, why);
  return false;
}

static bool tell(solving *s, const char *what, tarn_status status) {
  return status == TARN_OK || fail(s, what, tarn_last_error());
}

// ---------------------------------------------------------------------------
// The problem
// ---------------------------------------------------------------------------

static bool open_file(solving *s) {
  if (!tell(s, "reading it",
            tarn_plan_table_read(s->job->path, NULL, &s->table))) {
    return false;
  }
  s->problem = *tarn_plan_table_problem(s->table);
  return true;
}

// Memory and time from before the clock starts are not measured.
static bool make_model(solving *s) {
  if (!tell(s, "making it", plan_model_make(s->job->model, &s->model))) {
    return false;
  }
  s->problem.buffers = s->model.buffers;
  s->problem.count = s->model.count;
  return true;
}

static bool make_packing(solving *s) {
  s->packing = plan_packing_make(*s->job->packing);
  s->problem.buffers = s->packing.buffers;
  s->problem.count = s->packing.count;
  return true;
}

static bool make_problem(solving *s) {
  s->problem.struct_size = sizeof s->problem;
  if (s->job->path != NULL) return open_file(s);
  bool made = s->job->model != NULL ? make_model(s) : make_packing(s);
  memory_forget_peak();
  s->begin = cpu_seconds();
  return made;
}

static bool aim(solving *s) {
  plan_job_result *out = s->out;
  out->buffers = s->problem.count;
  if (!tell(s, "its bound", tarn_plan_lower_bound(&s->problem, &out->bound))) {
    return false;
  }
  out->wanted = s->job->wanted != 0
                    ? s->job->wanted
                    : (uint64_t)(s->job->over_bound * (double)out->bound);
  if (!s->job->fit) return true;
  s->capacity = out->wanted;
  s->problem.capacities = &s->capacity;
  s->problem.arena_count = 1;
  return true;
}

// ---------------------------------------------------------------------------
// The plan
// ---------------------------------------------------------------------------

static void note(solving *s, uint64_t height, double now) {
  plan_job_result *out = s->out;
  if (height == 0 || (s->best != 0 && height >= s->best)) return;
  s->best = height;
  out->best_seconds = now;
  if (now <= PLAN_JOB_EARLY) out->early = height;
  if (height <= out->wanted && isnan(out->wanted_seconds)) {
    out->wanted_seconds = now;
  }
}

static bool watch(const tarn_plan_progress *progress, void *user) {
  solving *s = user;
  double now = cpu_seconds() - s->begin;
  note(s, progress->height, now);
  return now < s->job->seconds;
}

static bool check(solving *s, const tarn_plan *plan) {
  const uint64_t *offsets = tarn_plan_offsets(plan);
  uint64_t height = 0;
  if (offsets == NULL) return true;
  if (!tell(s, "a wrong plan",
            tarn_plan_verify(&s->problem, offsets, NULL, &height))) {
    return false;
  }
  return height == s->out->height ||
         fail(s, "a wrong plan", "its height is another");
}

static bool write_plan(solving *s, const tarn_plan *plan) {
  const uint64_t *offsets = tarn_plan_offsets(plan);
  if (s->job->output == NULL || s->table == NULL || offsets == NULL) {
    return true;
  }
  return tell(s, "writing it",
              tarn_plan_table_write(s->table, offsets, NULL, s->job->output));
}

static bool look_at(solving *s, const tarn_plan *plan) {
  tarn_plan_info info = {.struct_size = sizeof info};
  plan_job_result *out = s->out;
  if (!tell(s, "the plan", tarn_plan_query(plan, &info))) return false;
  out->height = info.height;
  out->proved = info.lower_bound;
  out->answer = info.answer;
  out->nodes = info.nodes;
  note(s, info.height, cpu_seconds() - s->begin);
  if (!write_plan(s, plan)) return false;
  out->seconds = cpu_seconds() - s->begin;
  out->peak = (double)memory_resident_peak();
  return check(s, plan);
}

static bool solve(solving *s) {
  tarn_plan *plan = NULL;
  tarn_plan_options options = {.struct_size = sizeof options,
                               .time_limit_s = INFINITY,
                               .progress = watch,
                               .user = s};
  if (!tell(s, "solving it", tarn_plan_solve(&s->problem, &options, &plan))) {
    return false;
  }
  bool good = look_at(s, plan);
  tarn_plan_destroy(plan);
  return good;
}

static void work(void *context, void *out_result) {
  solving s = {.job = context, .out = out_result};
  memory_forget_peak();
  s.out->seconds = s.out->wanted_seconds = s.out->best_seconds = NAN;
  s.out->peak = NAN;
  if (make_problem(&s) && aim(&s)) (void)solve(&s);
  plan_packing_free(&s.packing);
  plan_model_free(&s.model);
  tarn_plan_table_destroy(s.table);
}

plan_job_result plan_job_run(const plan_job *job) {
  plan_job_result result;
  plan_job copy = *job;
  char why[CHILD_TEXT_SIZE];
  // By the clock on the wall: other programs may have the processor too.
  child_limits limits = {.seconds = job->seconds * 20 + 60};
  if (!child_run(work, &copy, limits, &result, sizeof result, why)) {
    memcpy(result.failed, why, sizeof why);
    result.seconds = result.wanted_seconds = result.best_seconds = NAN;
    result.peak = NAN;
  }
  return result;
}
