// First what looks good: as many merged as bring each step down to the bound,
// all that can be, none. Then the search over what merges.
#include "plan/set.h"

#include "base/hostmem.h"
#include "plan/choices.h"
#include "plan/choosing.h"
#include "plan/overlap.h"

// Nodes of one instance at first, and times that of one that looks good.
enum { FIRST_NODES = 2000, LOOKS_GOOD = 4 };

// Merges as many as bring what is needed down to |enough|, and tries that.
static tarn_status try_match(tarn__plan_choosing *s, uint64_t enough) {
  size_t decided = s->pairs.decided;
  tarn__plan_pairs_match(&s->pairs, enough);
  tarn_status status = TARN_OK;
  if (s->height == UINT64_MAX ||
      (!tarn__plan_is_over(s) &&
       tarn__plan_pairs_bound(&s->pairs) <= tarn__plan_welcome(s))) {
    status = tarn__plan_try_decided(s, LOOKS_GOOD * s->node_limit);
  }
  tarn__plan_pairs_undo(&s->pairs, decided);
  return status;
}

// What is undecided never merges: one instance. Its bound is that of all.
static tarn_status solve_alone(tarn__plan_choosing *s, bool *collides) {
  tarn__plan_instance in;
  tarn_status status = tarn__plan_make_decided(s, &in);
  if (status != TARN_OK) return status;
  tarn__plan_try share = {.capacity = tarn__plan_units(&in, s->set->capacity),
                          .minimise = s->set->minimise,
                          .node_limit = tarn__plan_nodes_for(s, 0),
                          .is_plan = s->set->is_whole,
                          .is_bound = s->set->is_whole};
  tarn__plan_found found = {.height = UINT64_MAX};
  status = tarn__plan_call_solve(s->call, &in, &share, s->tried, &found);
  if (status == TARN_OK) {
    *collides =
        found.answer == TARN_PLAN_INFEASIBLE && found.bound <= share.capacity;
    if (found.height != UINT64_MAX)
      tarn__plan_take(s, &in, found.height * in.unit);
    tarn__plan_raise_bound(s, found.bound * in.unit);
  }
  tarn__plan_instance_free(&in);
  return status;
}

// Fixed offsets that collide do so whatever else is merged.
static tarn_status find_collision(tarn__plan_choosing *s, bool *collides) {
  size_t decided = s->pairs.decided;
  tarn__plan_pairs_match(&s->pairs, UINT64_MAX);
  tarn__plan_instance in;
  tarn_status status = tarn__plan_make_decided(s, &in);
  tarn__plan_pairs_undo(&s->pairs, decided);
  if (status != TARN_OK) return status;
  status = tarn__plan_fixed_collide(&in, collides);
  tarn__plan_instance_free(&in);
  return status;
}

static tarn_status solve_pairs(tarn__plan_choosing *s, bool *collides) {
  tarn_status status = find_collision(s, collides);
  if (status != TARN_OK || *collides) return status;
  const uint64_t enough[] = {s->bound, 0, UINT64_MAX};
  for (size_t i = 0; status == TARN_OK && i < 3 && !tarn__plan_is_done(s);
       i++) {
    status = try_match(s, enough[i]);
  }
  if (status == TARN_OK && !tarn__plan_is_done(s) && !tarn__plan_is_over(s))
    status = tarn__plan_choices_search(s);
  return status;
}

// --- the whole ---------------------------------------------------------------

static tarn_status make_arrays(tarn__plan_choosing *s) {
  const tarn_plan_problem *problem = s->set->problem;
  size_t buffers = problem->count + 1;
  size_t pairs = problem->pair_count + 1;
  s->tried = tarn__host_array(buffers, sizeof *s->tried);
  s->places = tarn__host_array(buffers, sizeof *s->places);
  s->merged = tarn__host_array(pairs, sizeof *s->merged);
  s->levels = tarn__host_array(pairs, sizeof *s->levels);
  bool made = s->tried != NULL && s->places != NULL && s->merged != NULL &&
              s->levels != NULL;
  return made ? TARN_OK : TARN_E_NOMEM;
}

static void free_arrays(tarn__plan_choosing *s) {
  size_t buffers = s->set->problem->count + 1;
  size_t pairs = s->set->problem->pair_count + 1;
  tarn__host_free_array(s->tried, buffers, sizeof *s->tried);
  tarn__host_free_array(s->places, buffers, sizeof *s->places);
  tarn__host_free_array(s->merged, pairs, sizeof *s->merged);
  tarn__host_free_array(s->levels, pairs, sizeof *s->levels);
  tarn__plan_pairs_free(&s->pairs);
  tarn__plan_relaxed_free(&s->relaxed);
}

static tarn_status solve(tarn__plan_choosing *s, bool *collides) {
  const tarn_plan_problem *problem = s->set->problem;
  tarn_status status =
      tarn__plan_pairs_make(problem, s->set->left_out, &s->pairs);
  if (status == TARN_OK) status = make_arrays(s);
  if (status != TARN_OK) return status;
  tarn__plan_raise_bound(s, tarn__plan_pairs_bound(&s->pairs));
  bool all_decided = s->pairs.decided == s->pairs.count;
  if (all_decided) return solve_alone(s, collides);
  status = tarn__plan_relaxed_make(problem, &s->relaxed);
  return status == TARN_OK ? solve_pairs(s, collides) : status;
}

static tarn_plan_answer answer_of(const tarn__plan_choosing *s, bool collides) {
  uint64_t capacity = s->set->capacity == 0 ? UINT64_MAX : s->set->capacity;
  if (collides && !s->pairs.inexact) return TARN_PLAN_INFEASIBLE;
  if (s->bound > capacity) return TARN_PLAN_INFEASIBLE;
  if (s->height <= s->bound) return TARN_PLAN_OPTIMAL;
  bool fits = s->height != UINT64_MAX && s->height <= capacity;
  return fits ? TARN_PLAN_FEASIBLE : TARN_PLAN_OUT_OF_TIME;
}

tarn_status tarn__plan_set_solve(tarn__plan_call *call,
                                 const tarn__plan_set *set, uint64_t *offsets,
                                 tarn__plan_laid *out) {
  tarn__plan_choosing s = {.call = call,
                           .set = set,
                           .offsets = offsets,
                           .height = UINT64_MAX,
                           .node_limit = FIRST_NODES,
                           .node_end = set->node_limit == 0
                                           ? UINT64_MAX
                                           : call->nodes + set->node_limit};
  bool collides = false;
  tarn_status status = solve(&s, &collides);
  *out = (tarn__plan_laid){
      .answer = answer_of(&s, collides), .height = s.height, .bound = s.bound};
  free_arrays(&s);
  // With a plan, what is missing is only a better one.
  return s.height == UINT64_MAX ? status : TARN_OK;
}
