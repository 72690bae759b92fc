// A set of buffers is solved over all choices of which pairs merge, around the
// solver of one instance. First come choices that look good: as many merged as
// bring each step down to the bound, all that can be, none. Then comes a search
// over the choices.
//
// A node of that search has some pairs decided. It is closed
//   - if what some step needs at least, whatever is decided further, is too
//     much;
//   - if the relaxed problem (below) has no plan that is low enough: then no
//     decision of the rest has one;
//   - if the relaxed problem's plan is proved to be the lowest, and nothing in
//     it collides: then it is a plan, and the node has no lower one.
// Else a pair that collides is decided: merged, then apart. Every plan has its
// pairs merged or apart, so that a search in which all nodes were closed has
// proved that nothing is lower than the best plan.
//
// Rounds of this search have limits that grow, of nodes for one instance and
// of nodes of its own. Before the first, and between them, sets of pairs that
// look good are tried as they are.
#include <string.h>

#include "plan/call.h"
#include "plan/overlap.h"
#include "plan/pairs.h"

enum {
  FIRST_NODES = 2000,  // of one instance at first
  LOOKS_GOOD = 4,      // times that for a choice that looks good
  FIRST_VISITS = 64,
  GROWTH = 4,
};

typedef struct relaxed {
  tarn_plan_problem problem;  // with |buffers|, and the pairs as they are
  tarn_plan_buffer *buffers;
  bool *left_out;   // by buffer: also if no step would be left
  uint64_t *steps;  // by buffer: in which it is needed still
  tarn__plan_memory memory;
} relaxed;

typedef struct level {
  size_t decided;  // how many were, before it
  uint32_t mate;
  bool apart;  // the second way
} level;

typedef struct choosing {
  tarn__plan_call *call;
  const tarn__plan_fill *set;
  tarn__plan_pairs pairs;
  relaxed less;
  uint64_t *offsets;  // by buffer, bytes: the caller's
  uint64_t *tried;    // by item, units
  uint64_t *places;   // by buffer, then by item: bytes
  bool *merged;       // by pair of the problem: those of the best plan
  level *levels;
  size_t depth;
  uint64_t height;  // bytes
  uint64_t bound;   // bytes
  uint64_t node_end;
  uint64_t node_limit;  // of one instance
  uint64_t visits;      // that the round has left
  bool open;            // something was not proved
  bool cut;             // by a limit that can grow
  tarn__plan_memory memory;
} choosing;

typedef enum verdict {
  CLOSED,
  AGAIN,   // there was a plan, and there may be a lower one
  DIVIDE,  // at |mate|
} verdict;

// --- the relaxed problem -----------------------------------------------------

// A problem that asks for less: the two of an undecided pair do not meet.
//
// One buffer of each undecided pair loses the step in which the two meet:
//
//        +-----+                          +----+
//        |  a  |                          | a  |
//        +---+-+-------+       becomes    +----+-------+
//            |    b    |                       |   b   |    (the larger keeps
//            +---------+                    +--+-------+     the step)
//
// Every plan of the problem, whether it merges the two or not, is a plan of the
// relaxed problem. So if that has no plan, neither has any decision; and a plan
// of it in which nothing collides is a plan of the problem.
//
// In each part either all givers or all takers of undecided pairs lose the
// step: the side that has fewer bytes, so that as much as possible is left. A
// buffer that is merged on its other side keeps the step of that; any other
// buffer that would lose its last step is left out.

static tarn_status make_relaxed(const tarn_plan_problem *problem,
                                relaxed *out) {
  size_t room = problem->count + 1;
  *out = (relaxed){.problem = *problem};
  out->buffers = tarn__plan_array(&out->memory, room, sizeof *out->buffers);
  out->left_out = tarn__plan_array(&out->memory, room, sizeof *out->left_out);
  out->steps = tarn__plan_array(&out->memory, room, sizeof *out->steps);
  out->problem.buffers = out->buffers;
  return tarn__plan_memory_status(&out->memory);
}

static uint64_t steps_of(const tarn_plan_buffer *b) {
  uint64_t steps = b->last - b->first;
  for (size_t i = 0; i < b->gap_count; i++) {
    steps -= b->gaps[i].last - b->gaps[i].first;
  }
  return steps;
}

static void copy_problem(const tarn__plan_pairs *pairs, relaxed *out) {
  const tarn_plan_problem *problem = pairs->problem;
  for (size_t i = 0; i < problem->count; i++) {
    out->buffers[i] = problem->buffers[i];
    out->left_out[i] = pairs->left_out != NULL && pairs->left_out[i];
    out->steps[i] = steps_of(&problem->buffers[i]);
  }
}

// --- one part ----------------------------------------------------------------

typedef enum side {
  GIVERS = 0,
  TAKERS,
} side;

static uint32_t buffer_of(const tarn__plan_mate *mate, side which) {
  return which == GIVERS ? mate->giver : mate->taker;
}

static bool can_lose(const tarn__plan_pairs *pairs, const relaxed *out,
                     uint32_t buffer, side which) {
  bool merged = which == GIVERS ? pairs->takes[buffer] : pairs->gives[buffer];
  return merged || out->steps[buffer] > 1;
}

// The bytes that the step would lose; UINT64_MAX if a buffer cannot lose it.
static uint64_t loss_of(const tarn__plan_pairs *pairs, const relaxed *out,
                        size_t from, size_t to, side which) {
  uint64_t *seen = which == GIVERS ? pairs->as_giver : pairs->as_taker;
  uint64_t loss = 0;
  bool possible = true;
  for (size_t i = from; i < to; i++) {
    uint32_t buffer = buffer_of(&pairs->mates[i], which);
    bool open = pairs->mates[i].fate == TARN__PLAN_UNDECIDED;
    if (!open || seen[buffer] != 0) continue;
    seen[buffer] = 1;
    loss += out->buffers[buffer].size;
    possible &= can_lose(pairs, out, buffer, which);
  }
  for (size_t i = from; i < to; i++)
    seen[buffer_of(&pairs->mates[i], which)] = 0;
  return possible ? loss : UINT64_MAX;
}

static void lose(const tarn__plan_pairs *pairs, relaxed *out, uint32_t buffer,
                 side which) {
  if (!can_lose(pairs, out, buffer, which)) {
    out->left_out[buffer] = true;
    return;
  }
  tarn_plan_buffer *b = &out->buffers[buffer];
  out->steps[buffer]--;
  if (which == GIVERS) {
    b->last--;
  } else {
    b->first++;
  }
}

static void relax_part(const tarn__plan_pairs *pairs, relaxed *out, size_t from,
                       size_t to) {
  uint64_t givers = loss_of(pairs, out, from, to, GIVERS);
  uint64_t takers = loss_of(pairs, out, from, to, TAKERS);
  side which = givers <= takers ? GIVERS : TAKERS;
  uint64_t *seen = which == GIVERS ? pairs->as_giver : pairs->as_taker;
  for (size_t i = from; i < to; i++) {
    uint32_t buffer = buffer_of(&pairs->mates[i], which);
    bool open = pairs->mates[i].fate == TARN__PLAN_UNDECIDED;
    if (open && seen[buffer] == 0) lose(pairs, out, buffer, which);
    if (open) seen[buffer] = 1;
  }
  for (size_t i = from; i < to; i++)
    seen[buffer_of(&pairs->mates[i], which)] = 0;
}

static void relax(const tarn__plan_pairs *pairs, relaxed *out) {
  copy_problem(pairs, out);
  for (size_t from = 0; from < pairs->count;) {
    size_t to = from;
    while (to < pairs->count &&
           pairs->mates[to].part == pairs->mates[from].part) {
      to++;
    }
    relax_part(pairs, out, from, to);
    from = to;
  }
}

// --- how far it is -----------------------------------------------------------

static bool wants_lowest(const choosing *s) {
  return s->set->minimise || s->set->capacity == 0;
}

// The greatest height of a plan that is better than the best so far.
static uint64_t welcome(const choosing *s) {
  uint64_t capacity = s->set->capacity == 0 ? UINT64_MAX : s->set->capacity;
  return s->height - 1 < capacity ? s->height - 1 : capacity;
}

static bool is_done(const choosing *s) {
  uint64_t capacity = s->set->capacity == 0 ? UINT64_MAX : s->set->capacity;
  uint64_t goal = wants_lowest(s) ? s->bound : capacity;
  return s->height <= goal || s->bound > capacity;
}

static bool is_over(const choosing *s) {
  return s->call->nodes >= s->node_end || tarn__plan_call_over(s->call);
}

static void raise_bound(choosing *s, uint64_t bound) {
  if (s->bound < bound) s->bound = bound;
  if (s->set->is_whole && s->call->bound < s->bound) {
    s->call->bound = s->bound;
  }
}

// |s->tried| is a plan of |in|, whose pairs are merged as they are now.
static void take(choosing *s, const tarn__plan_instance *in, uint64_t height) {
  if (height >= s->height) return;
  s->height = height;
  if (s->set->is_whole && height < s->call->height) s->call->height = height;
  for (size_t i = 0; i < in->buffer_count; i++) {
    uint32_t item = in->item_of[i];
    if (item != TARN__PLAN_NO_ITEM) {
      s->offsets[i] = s->tried[item] * in->unit;
    }
  }
  memcpy(s->merged, s->pairs.merged, s->set->problem->pair_count);
}

// --- decisions as they are ---------------------------------------------------

static tarn_status make_decided(const choosing *s, tarn__plan_instance *out) {
  tarn__plan_choice choice = {.left_out = s->set->left_out,
                              .merged = s->pairs.merged};
  return tarn__plan_instance_make(s->set->problem, &choice, out);
}

// All of the share, or no more than |limit| (0: all) for one instance.
static uint64_t nodes_for(const choosing *s, uint64_t limit) {
  if (s->node_end == UINT64_MAX) return limit;
  uint64_t left =
      s->call->nodes < s->node_end ? s->node_end - s->call->nodes : 1;
  return limit == 0 || left < limit ? left : limit;
}

// Looks for a plan of |in| that is welcome, and takes it. |all|: nothing else
// can merge, so that its bound is that of the set.
static tarn_status solve_decided(choosing *s, const tarn__plan_instance *in,
                                 uint64_t limit, bool all,
                                 tarn__plan_found *found) {
  tarn__plan_share share = {.capacity = welcome(s) / in->unit,
                            .minimise = wants_lowest(s),
                            .node_limit = nodes_for(s, limit),
                            .is_plan = s->set->is_whole,
                            .is_bound = all && s->set->is_whole};
  tarn_status status = tarn__plan_solve(s->call, in, &share, s->tried, found);
  if (status == TARN_OK && found->height != UINT64_MAX) {
    take(s, in, found->height * in->unit);
  }
  return status;
}

static tarn_status try_decided(choosing *s, uint64_t limit) {
  tarn__plan_instance in;
  tarn_status status = make_decided(s, &in);
  if (status != TARN_OK) return status;
  tarn__plan_found found;
  status = solve_decided(s, &in, limit, false, &found);
  tarn__plan_instance_free(&in);
  return status;
}

// --- the search --------------------------------------------------------------

// The best plan's pairs once more, with more nodes.
static tarn_status try_best(choosing *s) {
  if (s->height == UINT64_MAX) return TARN_OK;
  size_t decided = s->pairs.decided;
  for (size_t i = 0; i < s->pairs.count; i++) {
    const tarn__plan_mate *mate = &s->pairs.mates[i];
    if (mate->fate != TARN__PLAN_UNDECIDED) continue;
    if (!s->merged[mate->pair] || !tarn__plan_pairs_merge(&s->pairs, i)) {
      tarn__plan_pairs_part(&s->pairs, i);
    }
  }
  tarn_status status = try_decided(s, s->node_limit * GROWTH * GROWTH);
  tarn__plan_pairs_undo(&s->pairs, decided);
  return status;
}

// --- a node ------------------------------------------------------------------

static bool first_undecided(const choosing *s, uint32_t *mate) {
  const tarn__plan_mate *mates = s->pairs.mates;
  bool found = false;
  for (size_t i = 0; i < s->pairs.count; i++) {
    if (mates[i].fate != TARN__PLAN_UNDECIDED) continue;
    if (!found || mates[i].saving > mates[*mate].saving) *mate = (uint32_t)i;
    found = true;
  }
  return found;
}

static bool missed_mate(const choosing *s, uint32_t *mate) {
  for (size_t i = 0; i < s->pairs.count; i++) {
    const tarn__plan_mate *m = &s->pairs.mates[i];
    if (m->fate == TARN__PLAN_UNDECIDED &&
        (s->places[m->giver] == TARN__PLAN_NOWHERE ||
         s->places[m->taker] == TARN__PLAN_NOWHERE)) {
      *mate = (uint32_t)i;
      return true;
    }
  }
  return false;
}

// An undecided mate of what collides, at best between the two.
static bool colliding_mate(const choosing *s, const tarn__plan_instance *in,
                           const uint32_t items[2], uint32_t *mate) {
  bool any = false;
  for (size_t i = 0; i < s->pairs.count; i++) {
    const tarn__plan_mate *m = &s->pairs.mates[i];
    if (m->fate != TARN__PLAN_UNDECIDED) continue;
    uint32_t a = in->item_of[m->giver];
    uint32_t b = in->item_of[m->taker];
    bool first = a == items[0] || a == items[1];
    bool second = b == items[0] || b == items[1];
    if (!first && !second) continue;
    if (!any || (first && second && a != b)) *mate = (uint32_t)i;
    if (first && second && a != b) return true;
    any = true;
  }
  return any;
}

static void place_buffers(choosing *s, const tarn__plan_instance *in) {
  for (size_t i = 0; i < in->buffer_count; i++) {
    uint32_t item = in->item_of[i];
    s->places[i] = item == TARN__PLAN_NO_ITEM ? TARN__PLAN_NOWHERE
                                              : s->tried[item] * in->unit;
  }
}

// Decides all undecided pairs by the offsets of a relaxed plan.
static void decide_by_places(choosing *s) {
  for (size_t i = 0; i < s->pairs.count; i++) {
    const tarn__plan_mate *mate = &s->pairs.mates[i];
    if (mate->fate != TARN__PLAN_UNDECIDED) continue;
    bool beside = s->places[mate->giver] != s->places[mate->taker];
    if (beside || !tarn__plan_pairs_merge(&s->pairs, i)) {
      tarn__plan_pairs_part(&s->pairs, i);
    }
  }
}

// By item in place of by buffer. Items are in the order of their heads, which
// are not after the buffers that they are read from.
static void place_items(choosing *s, const tarn__plan_instance *in) {
  for (size_t i = 0; i < in->buffer_count; i++) {
    uint32_t item = in->item_of[i];
    if (item != TARN__PLAN_NO_ITEM) s->tried[item] = s->places[i];
  }
  memcpy(s->places, s->tried, in->item_count * sizeof *s->places);
}

// A relaxed plan that has all buffers is a plan of the problem if nothing
// collides; if something does, its merged pairs may still be a good choice.
static tarn_status complete(choosing *s, uint64_t height, uint32_t *mate,
                            verdict *out) {
  size_t decided = s->pairs.decided;
  uint32_t items[2] = {TARN__PLAN_NO_ITEM, TARN__PLAN_NO_ITEM};
  tarn__plan_instance in;
  decide_by_places(s);
  tarn_status status = make_decided(s, &in);
  if (status != TARN_OK) return status;
  place_items(s, &in);
  status = tarn__plan_overlap_find(&in, s->places, items);
  if (status == TARN_OK && items[0] == TARN__PLAN_NO_ITEM) {
    for (size_t i = 0; i < in.item_count; i++)
      s->tried[i] = s->places[i] / in.unit;
    take(s, &in, height);
    *out = AGAIN;
  } else if (status == TARN_OK) {
    tarn__plan_found found;
    status = solve_decided(s, &in, s->node_limit / GROWTH, false, &found);
  }
  tarn__plan_pairs_undo(&s->pairs, decided);
  if (status == TARN_OK && *out == DIVIDE &&
      !colliding_mate(s, &in, items, mate)) {
    *out = CLOSED;
  }
  tarn__plan_instance_free(&in);
  return status;
}

static tarn_status solve_relaxed(choosing *s, tarn__plan_found *found,
                                 uint64_t *unit) {
  tarn__plan_instance in;
  relax(&s->pairs, &s->less);
  tarn__plan_choice choice = {.left_out = s->less.left_out,
                              .merged = s->pairs.merged};
  tarn_status status = tarn__plan_instance_make(&s->less.problem, &choice, &in);
  if (status != TARN_OK) return status;
  tarn__plan_share share = {.capacity = welcome(s) / in.unit,
                            .minimise = wants_lowest(s),
                            .node_limit = nodes_for(s, s->node_limit),
                            .is_bound = s->set->is_whole && s->depth == 0};
  uint64_t before = s->call->nodes;
  status = tarn__plan_solve(s->call, &in, &share, s->tried, found);
  if (found->answer == TARN_PLAN_OUT_OF_TIME) {
    s->cut |= s->call->nodes - before >= share.node_limit;
  }
  *unit = in.unit;
  place_buffers(s, &in);
  tarn__plan_instance_free(&in);
  return status;
}

// A node that the solver did not settle, with a pair to decide or without.
static verdict undecided(choosing *s, uint32_t *mate) {
  if (first_undecided(s, mate)) return DIVIDE;
  s->open = true;
  return CLOSED;
}

static tarn_status visit(choosing *s, uint32_t *mate, verdict *out) {
  tarn__plan_found found;
  uint64_t unit = 1;
  *out = CLOSED;
  s->call->nodes++;
  if (tarn__plan_pairs_bound(&s->pairs) > welcome(s)) return TARN_OK;
  tarn_status status = solve_relaxed(s, &found, &unit);
  if (status != TARN_OK || found.answer == TARN_PLAN_INFEASIBLE) return status;
  if (s->depth == 0) raise_bound(s, found.bound * unit);
  if (found.answer == TARN_PLAN_OUT_OF_TIME) {
    *out = undecided(s, mate);
    return TARN_OK;
  }
  *out = DIVIDE;
  if (missed_mate(s, mate)) return TARN_OK;
  status = complete(s, found.height * unit, mate, out);
  bool lowest = found.bound * unit > welcome(s);
  if (status != TARN_OK || lowest) {
    *out = CLOSED;
  } else if (*out == CLOSED) {  // nothing to decide by: cannot be
    *out = undecided(s, mate);
  }
  return status;
}

// --- the search --------------------------------------------------------------

static void go_down(choosing *s, uint32_t mate) {
  level *l = &s->levels[s->depth++];
  *l = (level){.decided = s->pairs.decided, .mate = mate};
  if (!tarn__plan_pairs_merge(&s->pairs, mate)) {
    l->apart = true;
    tarn__plan_pairs_part(&s->pairs, mate);
  }
}

// False: there is no node left.
static bool go_on(choosing *s) {
  while (s->depth > 0) {
    level *l = &s->levels[s->depth - 1];
    tarn__plan_pairs_undo(&s->pairs, l->decided);
    if (!l->apart) {
      l->apart = true;
      tarn__plan_pairs_part(&s->pairs, l->mate);
      return true;
    }
    s->depth--;
  }
  return false;
}

static void go_back(choosing *s) {
  if (s->depth > 0) tarn__plan_pairs_undo(&s->pairs, s->levels[0].decided);
  s->depth = 0;
}

static tarn_status search_once(choosing *s) {
  tarn_status status = TARN_OK;
  bool more = true;
  while (more && status == TARN_OK && !is_done(s)) {
    verdict what = CLOSED;
    uint32_t mate = 0;
    if (s->visits == 0 || is_over(s)) {
      s->open = s->cut = true;
      break;
    }
    s->visits--;
    status = visit(s, &mate, &what);
    if (what == DIVIDE) go_down(s, mate);
    if (what == CLOSED) more = go_on(s);
  }
  go_back(s);
  return status;
}

// All nodes were closed: no plan is lower than the one found.
static void conclude(choosing *s) {
  uint64_t capacity = s->set->capacity == 0 ? UINT64_MAX : s->set->capacity;
  if (s->pairs.inexact || is_done(s)) return;
  raise_bound(s, s->height > capacity ? capacity + 1 : s->height);
}

static tarn_status search_choices(choosing *s) {
  tarn_status status = TARN_OK;
  uint64_t visits = FIRST_VISITS;
  do {
    s->open = s->cut = false;
    s->visits = visits;
    status = search_once(s);
    if (status == TARN_OK && !s->open) conclude(s);
    bool goes_on = status == TARN_OK && s->open && s->cut;
    if (!goes_on || is_done(s) || is_over(s)) return status;
    status = try_best(s);
    s->node_limit *= GROWTH;
    visits *= GROWTH;
  } while (status == TARN_OK && !is_done(s) && !is_over(s));
  return status;
}

// --- what looks good ---------------------------------------------------------

// Merges pairs until at most |enough| bytes are needed, and tries that choice.
static tarn_status try_match(choosing *s, uint64_t enough) {
  size_t decided = s->pairs.decided;
  tarn__plan_pairs_match(&s->pairs, enough);
  tarn_status status = TARN_OK;
  if (s->height == UINT64_MAX ||
      (!is_over(s) && tarn__plan_pairs_bound(&s->pairs) <= welcome(s))) {
    status = try_decided(s, LOOKS_GOOD * s->node_limit);
  }
  tarn__plan_pairs_undo(&s->pairs, decided);
  return status;
}

// No pair is left to decide: one instance, whose bound is that of the set.
static tarn_status solve_alone(choosing *s, bool *collides) {
  tarn__plan_instance in;
  tarn__plan_found found;
  tarn_status status = make_decided(s, &in);
  if (status != TARN_OK) return status;
  uint64_t capacity = welcome(s) / in.unit;
  status = solve_decided(s, &in, 0, true, &found);
  if (status == TARN_OK) {
    *collides = found.answer == TARN_PLAN_INFEASIBLE && found.bound <= capacity;
    raise_bound(s, found.bound * in.unit);
  }
  tarn__plan_instance_free(&in);
  return status;
}

// Fixed offsets that collide do so whatever else is merged.
static tarn_status find_collision(choosing *s, bool *collides) {
  size_t decided = s->pairs.decided;
  tarn__plan_pairs_match(&s->pairs, UINT64_MAX);
  tarn__plan_instance in;
  tarn_status status = make_decided(s, &in);
  tarn__plan_pairs_undo(&s->pairs, decided);
  if (status != TARN_OK) return status;
  status = tarn__plan_fixed_collide(&in, collides);
  tarn__plan_instance_free(&in);
  return status;
}

static tarn_status solve_pairs(choosing *s, bool *collides) {
  tarn_status status = find_collision(s, collides);
  if (status != TARN_OK || *collides) return status;
  const uint64_t enough[] = {s->bound, 0, UINT64_MAX};
  for (size_t i = 0; status == TARN_OK && i < 3 && !is_done(s); i++) {
    status = try_match(s, enough[i]);
  }
  if (status == TARN_OK && !is_done(s) && !is_over(s))
    status = search_choices(s);
  return status;
}

// --- the whole ---------------------------------------------------------------

static tarn_status make_arrays(choosing *s) {
  const tarn_plan_problem *problem = s->set->problem;
  size_t buffers = problem->count + 1;
  size_t pairs = problem->pair_count + 1;
  s->tried = tarn__plan_array(&s->memory, buffers, sizeof *s->tried);
  s->places = tarn__plan_array(&s->memory, buffers, sizeof *s->places);
  s->merged = tarn__plan_array(&s->memory, pairs, sizeof *s->merged);
  s->levels = tarn__plan_array(&s->memory, pairs, sizeof *s->levels);
  return tarn__plan_memory_status(&s->memory);
}

static tarn_status solve(choosing *s, bool *collides) {
  const tarn_plan_problem *problem = s->set->problem;
  tarn_status status =
      tarn__plan_pairs_make(problem, s->set->left_out, &s->pairs);
  if (status == TARN_OK) status = make_arrays(s);
  if (status != TARN_OK) return status;
  raise_bound(s, tarn__plan_pairs_bound(&s->pairs));
  bool all_decided = s->pairs.decided == s->pairs.count;
  if (all_decided) return solve_alone(s, collides);
  status = make_relaxed(problem, &s->less);
  return status == TARN_OK ? solve_pairs(s, collides) : status;
}

static tarn_plan_answer answer_of(const choosing *s, bool collides) {
  uint64_t capacity = s->set->capacity == 0 ? UINT64_MAX : s->set->capacity;
  if (collides && !s->pairs.inexact) return TARN_PLAN_INFEASIBLE;
  if (s->bound > capacity) return TARN_PLAN_INFEASIBLE;
  if (s->height <= s->bound) return TARN_PLAN_OPTIMAL;
  bool fits = s->height != UINT64_MAX && s->height <= capacity;
  return fits ? TARN_PLAN_FEASIBLE : TARN_PLAN_OUT_OF_TIME;
}

tarn_status tarn__plan_set_solve(tarn__plan_call *call,
                                 const tarn__plan_fill *set, uint64_t *offsets,
                                 tarn__plan_found *out) {
  choosing s = {.call = call,
                .set = set,
                .offsets = offsets,
                .height = UINT64_MAX,
                .node_limit = FIRST_NODES,
                .node_end = set->node_limit == 0
                                ? UINT64_MAX
                                : call->nodes + set->node_limit};
  bool collides = false;
  tarn_status status = solve(&s, &collides);
  *out = (tarn__plan_found){
      .answer = answer_of(&s, collides), .height = s.height, .bound = s.bound};
  tarn__plan_pairs_free(&s.pairs);
  tarn__plan_memory_free(&s.less.memory);
  tarn__plan_memory_free(&s.memory);
  // If there is a plan, only a better one is missing.
  return s.height == UINT64_MAX ? status : TARN_OK;
}
