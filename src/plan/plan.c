// What a caller sees: options are checked, solvers called, and what they
// found is kept in bytes.
#include <math.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "plan/instance.h"
#include "plan/result.h"
#include "plan/solve.h"

static const double default_seconds = 10;

typedef struct making {
  const tarn_plan_problem *problem;
  tarn_plan_options options;
  tarn_plan *plan;
  uint64_t began_ns;
  atomic_bool asked;
  uint64_t unit;  // of what is being solved
} making;

static double seconds_since(uint64_t ns) {
  return (double)(tarn__os_now_ns() - ns) * 1e-9;
}

// --- options
// -------------------------------------------------------------------

static tarn_status take_options(const tarn_plan_options *given,
                                tarn_plan_options *out) {
  size_t known;
  *out = (tarn_plan_options){.time_limit = default_seconds, .threads = 1};
  if (given == NULL) return TARN_OK;
  if (!tarn__struct_size(given->struct_size,
                         TARN__SIZE_UP_TO(tarn_plan_options, user), sizeof *out,
                         &known)) {
    return tarn__fail(TARN_E_INVALID, "plan options: struct_size");
  }
  memcpy(out, given, known);
  if (isnan(out->time_limit) || out->time_limit < 0) {
    return tarn__fail(TARN_E_INVALID, "plan options: a time limit of %g s",
                      out->time_limit);
  }
  if (out->threads > 1024) {
    return tarn__fail(TARN_E_INVALID, "plan options: %u threads", out->threads);
  }
  if (out->time_limit == 0) out->time_limit = default_seconds;
  if (out->threads == 0) out->threads = 1;
  return TARN_OK;
}

static uint64_t deadline_of(const making *m) {
  double ns = m->options.time_limit * 1e9;
  if (ns >= 9e18) return UINT64_MAX;
  return m->began_ns + (uint64_t)ns;
}

static bool tell(void *user, uint64_t height, uint64_t bound, uint64_t nodes) {
  making *m = user;
  tarn_plan_progress progress = {
      .height = height == UINT64_MAX ? 0 : height * m->unit,
      .lower_bound = bound * m->unit,
      .nodes = nodes,
      .seconds = seconds_since(m->began_ns)};
  bool go_on = m->options.progress(&progress, m->options.user);
  if (!go_on) m->plan->info.cancelled = true;
  return go_on;
}

// --- solving
// -------------------------------------------------------------------

static void keep(making *m, const tarn__plan_instance *in,
                 const uint64_t *offsets, const tarn__plan_found *found) {
  tarn_plan *plan = m->plan;
  plan->info.answer = found->answer;
  plan->info.lower_bound = found->bound * in->unit;
  plan->info.nodes = found->nodes;
  plan->has_offsets =
      found->answer == TARN_PLAN_OPTIMAL || found->answer == TARN_PLAN_FEASIBLE;
  if (!plan->has_offsets) return;
  plan->info.height = plan->heights[0] = found->height * in->unit;
  for (size_t i = 0; i < in->buffer_count; i++) {
    plan->offsets[i] = offsets[in->item_of[i]] * in->unit;
  }
}

static tarn_status solve_instance(making *m, const tarn__plan_instance *in) {
  uint64_t *offsets = tarn__host_array(in->item_count + 1, sizeof *offsets);
  if (offsets == NULL) return TARN_E_NOMEM;
  tarn__plan_watcher watcher = {.tell = tell, .user = m};
  tarn__plan_aim aim = {
      .capacity = tarn__plan_units(in, tarn__plan_capacity(m->problem, 0)),
      .minimise = m->options.minimise,
      .node_limit = m->options.node_limit,
      .threads = m->options.threads,
      .deadline_ns = deadline_of(m),
      .asked = &m->asked,
      .watcher = m->options.progress != NULL ? &watcher : NULL};
  tarn__plan_found found = {.height = UINT64_MAX};
  m->unit = in->unit;
  tarn_status status = tarn__plan_solve(in, &aim, offsets, &found);
  if (status == TARN_OK) keep(m, in, offsets, &found);
  tarn__host_free_array(offsets, in->item_count + 1, sizeof *offsets);
  return status;
}

static tarn_status solve(making *m) {
  tarn__plan_instance in;
  tarn_status status = tarn__plan_instance_make(m->problem, NULL, &in);
  if (status != TARN_OK) return status;
  status = solve_instance(m, &in);
  tarn__plan_instance_free(&in);
  return status;
}

static tarn_status make_plan(const tarn_plan_problem *problem,
                             tarn_plan **out_plan) {
  tarn_plan *plan = tarn__host_alloc(sizeof *plan);
  *out_plan = plan;
  if (plan == NULL) return TARN_E_NOMEM;
  plan->info.struct_size = sizeof plan->info;
  plan->info.count = problem->count;
  plan->arena_count = tarn__plan_arena_count(problem);
  plan->offsets = tarn__host_array(problem->count + 1, sizeof *plan->offsets);
  plan->arenas = tarn__host_array(problem->count + 1, sizeof *plan->arenas);
  plan->heights = tarn__host_array(plan->arena_count, sizeof *plan->heights);
  plan->conflict = tarn__host_array(problem->count + 1, sizeof *plan->conflict);
  bool made = plan->offsets != NULL && plan->arenas != NULL &&
              plan->heights != NULL && plan->conflict != NULL;
  return made ? TARN_OK : TARN_E_NOMEM;
}

tarn_status tarn_plan_solve(const tarn_plan_problem *problem,
                            const tarn_plan_options *options,
                            tarn_plan **out_plan) {
  if (out_plan == NULL) return tarn__fail(TARN_E_INVALID, "plan: NULL");
  *out_plan = NULL;
  making m = {.problem = problem, .began_ns = tarn__os_now_ns()};
  tarn_status status = tarn__plan_problem_check(problem);
  if (status == TARN_OK) status = take_options(options, &m.options);
  if (status == TARN_OK) status = make_plan(problem, &m.plan);
  if (status == TARN_OK) status = solve(&m);
  if (status != TARN_OK) {
    tarn_plan_destroy(m.plan);
    return status;
  }
  m.plan->info.seconds = seconds_since(m.began_ns);
  *out_plan = m.plan;
  return TARN_OK;
}

void tarn_plan_destroy(tarn_plan *plan) {
  if (plan == NULL) return;
  size_t room = plan->info.count + 1;
  tarn__host_free_array(plan->offsets, room, sizeof *plan->offsets);
  tarn__host_free_array(plan->arenas, room, sizeof *plan->arenas);
  tarn__host_free_array(plan->heights, plan->arena_count,
                        sizeof *plan->heights);
  tarn__host_free_array(plan->conflict, room, sizeof *plan->conflict);
  tarn__host_free(plan, sizeof *plan);
}

tarn_status tarn_plan_lower_bound(const tarn_plan_problem *problem,
                                  uint64_t *out_bound) {
  if (out_bound == NULL) return tarn__fail(TARN_E_INVALID, "plan: NULL");
  *out_bound = 0;
  tarn__plan_instance in;
  tarn_status status = tarn__plan_problem_check(problem);
  if (status == TARN_OK) status = tarn__plan_instance_make(problem, NULL, &in);
  if (status != TARN_OK) return status;
  *out_bound = in.bound * in.unit;
  tarn__plan_instance_free(&in);
  return TARN_OK;
}

// --- what it says
// ----------------------------------------------------------------

const char *tarn_plan_answer_name(tarn_plan_answer answer) {
  static const char *const names[] = {"optimal", "feasible", "infeasible",
                                      "out_of_time"};
  size_t index = (size_t)answer;
  return index < sizeof names / sizeof *names ? names[index] : "?";
}

tarn_status tarn_plan_query(const tarn_plan *plan, tarn_plan_info *out_info) {
  size_t size;
  if (plan == NULL || out_info == NULL ||
      !tarn__struct_size(out_info->struct_size,
                         TARN__SIZE_UP_TO(tarn_plan_info, conflict_minimal),
                         sizeof *out_info, &size)) {
    return tarn__fail(TARN_E_INVALID, "plan info: NULL or struct_size");
  }
  memcpy(out_info, &plan->info, size);
  out_info->struct_size = size;
  return TARN_OK;
}

const uint64_t *tarn_plan_offsets(const tarn_plan *plan) {
  return plan->has_offsets ? plan->offsets : NULL;
}

const uint32_t *tarn_plan_arenas(const tarn_plan *plan) {
  return plan->has_offsets ? plan->arenas : NULL;
}

uint64_t tarn_plan_height(const tarn_plan *plan, size_t arena) {
  return arena < plan->arena_count ? plan->heights[arena] : 0;
}

const size_t *tarn_plan_conflict(const tarn_plan *plan) {
  return plan->info.conflict_count > 0 ? plan->conflict : NULL;
}
