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

#include "base/status.h"
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
} relaxed;

typedef struct level {
  size_t decided;  // how many were, before it
  uint32_t mate;
  bool apart;  // the second way
} level;

typedef struct choosing {
  tarn__plan_call *call;
  const tarn__plan_fill *set;
  tarn__plan_share share;   // the wanted bytes
  tarn__plan_found *found;  // so far, in bytes
  tarn__plan_pairs pairs;
  relaxed less;
  uint64_t *offsets;  // by buffer, bytes: the caller's
  uint64_t *tried;    // by item, units
  uint64_t *places;   // by buffer, then by item: bytes
  bool *merged;       // by pair of the problem: those of the best plan
  level *levels;
  size_t depth;
  uint64_t node_end;      // 0: no limit
  uint64_t node_limit;    // of one instance
  uint64_t visits;        // that the round has left
  bool open;              // something was not proved
  bool cut;               // by a limit that can grow
  uint32_t mate;          // at which to divide
  uint32_t colliding[2];  // items of |in|
  const tarn__plan_instance *in;
  bool collides;       // fixed items
  tarn_status status;  // of the first failure
  tarn__plan_memory memory;
} choosing;

typedef enum verdict {
  CLOSED,
  AGAIN,   // there was a plan, and there may be a lower one
  DIVIDE,  // at a mate
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
    out->left_out[i] = !tarn__plan_is_in(pairs->left_out, i);
    out->steps[i] = steps_of(&problem->buffers[i]);
  }
}

// --- one part ----------------------------------------------------------------

static bool can_lose(const tarn__plan_pairs *pairs, const relaxed *out,
                     uint32_t buffer, tarn__plan_side which) {
  return pairs->merges[!which][buffer] || out->steps[buffer] > 1;
}

static void lose(const tarn__plan_pairs *pairs, relaxed *out, uint32_t buffer,
                 tarn__plan_side which) {
  if (!can_lose(pairs, out, buffer, which)) {
    out->left_out[buffer] = true;
    return;
  }
  tarn_plan_buffer *b = &out->buffers[buffer];
  out->steps[buffer]--;
  if (which == TARN__PLAN_GIVER) {
    b->last--;
  } else {
    b->first++;
  }
}

// The bytes that the step would lose, or, if |really|, has lost; UINT64_MAX if
// a buffer cannot lose it.
static uint64_t relax_side(const tarn__plan_pairs *pairs, relaxed *out,
                           size_t from, size_t to, tarn__plan_side which,
                           bool really) {
  uint64_t *seen = pairs->seen[which];
  uint64_t loss = 0;
  bool possible = true;
  for (size_t i = from; i < to; i++) {
    uint32_t buffer = pairs->mates[i].buffer[which];
    bool open = pairs->mates[i].fate == TARN__PLAN_UNDECIDED;
    if (!open || seen[buffer] != 0) continue;
    seen[buffer] = 1;
    loss += out->buffers[buffer].size;
    possible &= can_lose(pairs, out, buffer, which);
    if (really) lose(pairs, out, buffer, which);
  }
  for (size_t i = from; i < to; i++)
    seen[pairs->mates[i].buffer[which]] = 0;
  return possible ? loss : UINT64_MAX;
}

static void relax(const tarn__plan_pairs *pairs, relaxed *out) {
  copy_problem(pairs, out);
  for (size_t from = 0, to; from < pairs->count; from = to) {
    to = tarn__plan_part_end(pairs, from, pairs->count);
    uint64_t givers = relax_side(pairs, out, from, to, TARN__PLAN_GIVER, false);
    uint64_t takers = relax_side(pairs, out, from, to, TARN__PLAN_TAKER, false);
    tarn__plan_side which =
        givers <= takers ? TARN__PLAN_GIVER : TARN__PLAN_TAKER;
    (void)relax_side(pairs, out, from, to, which, true);
  }
}

// --- how far it is -----------------------------------------------------------

static bool is_done(const choosing *s) {
  return tarn__plan_is_done(&s->share, s->found);
}

static bool is_over(const choosing *s) {
  bool spent = s->node_end != 0 && s->call->nodes >= s->node_end;
  return s->status != TARN_OK || spent || tarn__plan_call_over(s->call);
}

static void raise_bound(choosing *s, uint64_t bound) {
  if (s->found->bound < bound) s->found->bound = bound;
  if (s->set->is_whole && s->call->bound < s->found->bound) {
    s->call->bound = s->found->bound;
  }
}

// |s->tried| is a plan of |in|, whose pairs are merged as they are now.
static void take(choosing *s, const tarn__plan_instance *in, uint64_t height) {
  if (height >= s->found->height) return;
  s->found->height = height;
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

// An instance of the pairs that are merged now. False: a failure.
static bool make_decided(choosing *s, tarn__plan_instance *out) {
  s->status = tarn__plan_instance_make(s->set->problem, s->set->left_out,
                                       s->pairs.merged, out);
  return s->status == TARN_OK;
}

static tarn__plan_share share_of(const choosing *s,
                                 const tarn__plan_instance *in, uint64_t limit,
                                 bool is_plan, bool is_bound) {
  return (tarn__plan_share){
      .capacity = tarn__plan_below_best(&s->share, s->found) / in->unit,
      .minimise = tarn__plan_wants_lowest(&s->share),
      .node_limit = tarn__plan_nodes_left(s->node_end, s->call->nodes, limit),
      .is_plan = is_plan && s->set->is_whole,
      .is_bound = is_bound && s->set->is_whole};
}

// Looks for a plan of |in| that is welcome, and takes it. |all|: nothing else
// can merge, so that its bound is that of the set.
static tarn__plan_found solve_decided(choosing *s,
                                      const tarn__plan_instance *in,
                                      uint64_t limit, bool all) {
  tarn__plan_found found;
  tarn__plan_share share = share_of(s, in, limit, true, all);
  s->status = tarn__plan_solve(s->call, in, &share, s->tried, &found);
  if (s->status == TARN_OK && found.height != UINT64_MAX) {
    take(s, in, found.height * in->unit);
  }
  return found;
}

static void try_decided(choosing *s, uint64_t limit) {
  tarn__plan_instance in;
  if (!make_decided(s, &in)) return;
  (void)solve_decided(s, &in, limit, false);
  tarn__plan_instance_free(&in);
}

// The best plan's pairs once more, with more nodes.
static void try_best(choosing *s) {
  if (s->found->height == UINT64_MAX) return;
  size_t decided = s->pairs.decided;
  for (size_t i = 0; i < s->pairs.count; i++) {
    bool merged = s->merged[s->pairs.mates[i].pair];
    (void)tarn__plan_pairs_decide(&s->pairs, i, merged);
  }
  try_decided(s, s->node_limit * GROWTH * GROWTH);
  tarn__plan_pairs_undo(&s->pairs, decided);
}

// --- where to divide ---------------------------------------------------------

// Chooses the first of the undecided mates that count most. False: none counts.
static bool choose_mate(choosing *s,
                        uint64_t (*count)(const choosing *s, uint32_t giver,
                                          uint32_t taker)) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < s->pairs.count; i++) {
    const tarn__plan_mate *mate = &s->pairs.mates[i];
    if (mate->fate != TARN__PLAN_UNDECIDED) continue;
    uint64_t own = count(s, mate->buffer[TARN__PLAN_GIVER],
                         mate->buffer[TARN__PLAN_TAKER]);
    if (own <= most) continue;
    most = own;
    s->mate = i;
  }
  return most > 0;
}

static uint64_t count_saving(const choosing *s, uint32_t giver,
                             uint32_t taker) {
  const tarn_plan_buffer *buffers = s->set->problem->buffers;
  return tarn__lesser(buffers[giver].size, buffers[taker].size);
}

static uint64_t count_missed(const choosing *s, uint32_t giver,
                             uint32_t taker) {
  return s->places[giver] == TARN__PLAN_NOWHERE ||
         s->places[taker] == TARN__PLAN_NOWHERE;
}

// Of what collides, at best between the two.
static uint64_t count_colliding(const choosing *s, uint32_t giver,
                                uint32_t taker) {
  const uint32_t *items = s->colliding;
  uint32_t a = s->in->item_of[giver];
  uint32_t b = s->in->item_of[taker];
  bool first = a == items[0] || a == items[1];
  bool second = b == items[0] || b == items[1];
  return first && second && a != b ? 2 : first || second;
}

// --- a node ------------------------------------------------------------------

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
    const uint32_t *of = s->pairs.mates[i].buffer;
    bool at_one =
        s->places[of[TARN__PLAN_GIVER]] == s->places[of[TARN__PLAN_TAKER]];
    (void)tarn__plan_pairs_decide(&s->pairs, i, at_one);
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
static verdict complete(choosing *s, uint64_t height) {
  size_t decided = s->pairs.decided;
  verdict what = DIVIDE;
  tarn__plan_instance in;
  decide_by_places(s);
  if (!make_decided(s, &in)) return CLOSED;
  place_items(s, &in);
  s->in = &in;
  s->status = tarn__plan_overlap_find(&in, s->places, s->colliding);
  if (s->status == TARN_OK && s->colliding[0] == TARN__PLAN_NO_ITEM) {
    for (size_t i = 0; i < in.item_count; i++)
      s->tried[i] = s->places[i] / in.unit;
    take(s, &in, height);
    what = AGAIN;
  } else if (s->status == TARN_OK) {
    (void)solve_decided(s, &in, s->node_limit / GROWTH, false);
  }
  tarn__plan_pairs_undo(&s->pairs, decided);
  if (what == DIVIDE && !choose_mate(s, count_colliding)) what = CLOSED;
  tarn__plan_instance_free(&in);
  return what;
}

// Returns the unit of |found|.
static uint64_t solve_relaxed(choosing *s, tarn__plan_found *found) {
  tarn__plan_instance in;
  relax(&s->pairs, &s->less);
  s->status = tarn__plan_instance_make(&s->less.problem, s->less.left_out,
                                       s->pairs.merged, &in);
  if (s->status != TARN_OK) return 1;
  tarn__plan_share share =
      share_of(s, &in, s->node_limit, false, s->depth == 0);
  uint64_t before = s->call->nodes;
  s->status = tarn__plan_solve(s->call, &in, &share, s->tried, found);
  if (found->answer == TARN_PLAN_OUT_OF_TIME) {
    s->cut |= s->call->nodes - before >= share.node_limit;
  }
  place_buffers(s, &in);
  uint64_t unit = in.unit;
  tarn__plan_instance_free(&in);
  return unit;
}

// A node that the solver did not settle, with a pair to decide or without.
static verdict undecided(choosing *s) {
  if (choose_mate(s, count_saving)) return DIVIDE;
  s->open = true;
  return CLOSED;
}

static verdict visit(choosing *s) {
  tarn__plan_found found;
  s->call->nodes++;
  if (tarn__plan_pairs_bound(&s->pairs) >
      tarn__plan_below_best(&s->share, s->found)) {
    return CLOSED;
  }
  uint64_t unit = solve_relaxed(s, &found);
  if (s->status != TARN_OK || found.answer == TARN_PLAN_INFEASIBLE) {
    return CLOSED;
  }
  if (s->depth == 0) raise_bound(s, found.bound * unit);
  if (found.answer == TARN_PLAN_OUT_OF_TIME) return undecided(s);
  if (choose_mate(s, count_missed)) return DIVIDE;
  verdict what = complete(s, found.height * unit);
  bool lowest = found.bound * unit > tarn__plan_below_best(&s->share, s->found);
  if (s->status != TARN_OK || lowest) return CLOSED;
  // Else there is nothing to decide by, which cannot be.
  return what == CLOSED ? undecided(s) : what;
}

// --- the search --------------------------------------------------------------

static void go_down(choosing *s) {
  level *l = &s->levels[s->depth++];
  *l = (level){.decided = s->pairs.decided, .mate = s->mate};
  l->apart = !tarn__plan_pairs_decide(&s->pairs, s->mate, true);
}

// False: there is no node left.
static bool go_on(choosing *s) {
  while (s->depth > 0) {
    level *l = &s->levels[s->depth - 1];
    tarn__plan_pairs_undo(&s->pairs, l->decided);
    if (!l->apart) {
      l->apart = true;
      (void)tarn__plan_pairs_decide(&s->pairs, l->mate, false);
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

static void search_once(choosing *s) {
  bool more = true;
  while (more && !is_done(s)) {
    if (s->visits == 0 || is_over(s)) {
      s->open = s->cut = true;
      break;
    }
    s->visits--;
    verdict what = visit(s);
    if (what == DIVIDE) go_down(s);
    if (what == CLOSED) more = go_on(s);
  }
  go_back(s);
}

// All nodes were closed: no plan is lower than the one found.
static void conclude(choosing *s) {
  if (s->pairs.inexact || is_done(s)) return;
  bool fits = s->found->height <= s->share.capacity;
  raise_bound(s, fits ? s->found->height : s->share.capacity + 1);
}

static void search_choices(choosing *s) {
  for (uint64_t visits = FIRST_VISITS; !is_done(s) && !is_over(s);
       visits *= GROWTH) {
    s->open = s->cut = false;
    s->visits = visits;
    search_once(s);
    if (s->status == TARN_OK && !s->open) conclude(s);
    if (!s->open || !s->cut || is_done(s) || is_over(s)) return;
    try_best(s);
    s->node_limit *= GROWTH;
  }
}

// --- what looks good ---------------------------------------------------------

// Merges pairs until at most |enough| bytes are needed, and tries that choice.
static void try_match(choosing *s, uint64_t enough) {
  size_t decided = s->pairs.decided;
  tarn__plan_pairs_match(&s->pairs, enough);
  if (s->found->height == UINT64_MAX ||
      (!is_over(s) && tarn__plan_pairs_bound(&s->pairs) <=
                          tarn__plan_below_best(&s->share, s->found))) {
    try_decided(s, LOOKS_GOOD * s->node_limit);
  }
  tarn__plan_pairs_undo(&s->pairs, decided);
}

// No pair is left to decide: one instance, whose bound is that of the set.
static void solve_alone(choosing *s) {
  tarn__plan_instance in;
  if (!make_decided(s, &in)) return;
  uint64_t capacity = tarn__plan_below_best(&s->share, s->found) / in.unit;
  tarn__plan_found found = solve_decided(s, &in, 0, true);
  if (s->status == TARN_OK) {
    s->collides =
        found.answer == TARN_PLAN_INFEASIBLE && found.bound <= capacity;
    raise_bound(s, found.bound * in.unit);
  }
  tarn__plan_instance_free(&in);
}

// Fixed offsets that collide do so whatever else is merged.
static void find_collision(choosing *s) {
  size_t decided = s->pairs.decided;
  tarn__plan_instance in;
  uint32_t items[2];
  tarn__plan_pairs_match(&s->pairs, UINT64_MAX);
  bool made = make_decided(s, &in);
  tarn__plan_pairs_undo(&s->pairs, decided);
  if (!made) return;
  s->status = tarn__plan_fixed_overlap(&in, items);
  s->collides = s->status == TARN_OK && items[0] != TARN__PLAN_NO_ITEM;
  tarn__plan_instance_free(&in);
}

static void solve_pairs(choosing *s) {
  find_collision(s);
  if (s->collides) return;
  const uint64_t enough[] = {s->found->bound, 0, UINT64_MAX};
  for (int i = 0; s->status == TARN_OK && i < 3 && !is_done(s); i++)
    try_match(s, enough[i]);
  search_choices(s);
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

static tarn_status make_relaxed(choosing *s) {
  relaxed *less = &s->less;
  size_t room = s->set->problem->count + 1;
  less->problem = *s->set->problem;
  less->buffers = tarn__plan_array(&s->memory, room, sizeof *less->buffers);
  less->left_out = tarn__plan_array(&s->memory, room, sizeof *less->left_out);
  less->steps = tarn__plan_array(&s->memory, room, sizeof *less->steps);
  less->problem.buffers = less->buffers;
  return tarn__plan_memory_status(&s->memory);
}

static tarn_status solve(choosing *s) {
  const tarn_plan_problem *problem = s->set->problem;
  TARN__TRY(tarn__plan_pairs_make(problem, s->set->left_out, &s->pairs));
  TARN__TRY(make_arrays(s));
  raise_bound(s, tarn__plan_pairs_bound(&s->pairs));
  if (s->pairs.decided == s->pairs.count) {
    solve_alone(s);
  } else {
    TARN__TRY(make_relaxed(s));
    solve_pairs(s);
  }
  return s->status;
}

tarn_status tarn__plan_set_solve(tarn__plan_call *call,
                                 const tarn__plan_fill *set, uint64_t *offsets,
                                 tarn__plan_found *out) {
  choosing s = {
      .call = call,
      .set = set,
      .share = {.capacity = set->capacity == 0 ? UINT64_MAX : set->capacity,
                .minimise = set->minimise},
      .found = out,
      .offsets = offsets,
      .node_limit = FIRST_NODES,
      .node_end = set->node_limit == 0 ? 0 : call->nodes + set->node_limit};
  *out = (tarn__plan_found){.height = UINT64_MAX};
  tarn_status status = solve(&s);
  out->answer = s.collides && !s.pairs.inexact
                    ? TARN_PLAN_INFEASIBLE
                    : tarn__plan_answer_of(&s.share, out);
  tarn__plan_pairs_free(&s.pairs);
  tarn__plan_memory_free(&s.memory);
  // If there is a plan, only a better one is missing.
  return out->height == UINT64_MAX ? status : TARN_OK;
}
