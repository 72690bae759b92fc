// Which pairs merge is searched for, around the solver of one instance.
//
// A node of this search has some pairs decided. It is closed
//   - if what some step needs at least, whatever is decided further, is too
//     much;
//   - if the relaxed problem (relax.h) has no plan that is low enough: then no
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
#include "plan/choices.h"

#include <string.h>

#include "plan/overlap.h"

enum { FIRST_VISITS = 64, GROWTH = 4 };

typedef enum verdict {
  CLOSED,
  AGAIN,   // there was a plan, and there may be a lower one
  DIVIDE,  // at |mate|
} verdict;

// The best plan's pairs once more, with more nodes.
static tarn_status try_best(tarn__plan_choosing *s) {
  if (s->height == UINT64_MAX) return TARN_OK;
  size_t decided = s->pairs.decided;
  for (size_t i = 0; i < s->pairs.count; i++) {
    const tarn__plan_mate *mate = &s->pairs.mates[i];
    if (mate->fate != TARN__PLAN_UNDECIDED) continue;
    if (!s->merged[mate->pair] || !tarn__plan_pairs_merge(&s->pairs, i)) {
      tarn__plan_pairs_part(&s->pairs, i);
    }
  }
  tarn_status status =
      tarn__plan_try_decided(s, s->node_limit * GROWTH * GROWTH);
  tarn__plan_pairs_undo(&s->pairs, decided);
  return status;
}

// --- a node ------------------------------------------------------------------

static bool first_undecided(const tarn__plan_choosing *s, uint32_t *mate) {
  const tarn__plan_mate *mates = s->pairs.mates;
  bool found = false;
  for (size_t i = 0; i < s->pairs.count; i++) {
    if (mates[i].fate != TARN__PLAN_UNDECIDED) continue;
    if (!found || mates[i].saving > mates[*mate].saving) *mate = (uint32_t)i;
    found = true;
  }
  return found;
}

static bool missed_mate(const tarn__plan_choosing *s, uint32_t *mate) {
  for (size_t i = 0; i < s->pairs.count; i++) {
    const tarn__plan_mate *m = &s->pairs.mates[i];
    if (m->fate == TARN__PLAN_UNDECIDED &&
        (s->places[m->giver] == TARN__PLAN_NOBODY ||
         s->places[m->taker] == TARN__PLAN_NOBODY)) {
      *mate = (uint32_t)i;
      return true;
    }
  }
  return false;
}

// An undecided mate of what collides, at best between the two.
static bool colliding_mate(const tarn__plan_choosing *s,
                           const tarn__plan_instance *in,
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

static void place_buffers(tarn__plan_choosing *s,
                          const tarn__plan_instance *in) {
  for (size_t i = 0; i < in->buffer_count; i++) {
    uint32_t item = in->item_of[i];
    s->places[i] = item == TARN__PLAN_NO_ITEM ? TARN__PLAN_NOBODY
                                              : s->tried[item] * in->unit;
  }
}

// Decides all that is undecided as the places of a relaxed plan have it.
static void decide_by_places(tarn__plan_choosing *s) {
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
static void place_items(tarn__plan_choosing *s, const tarn__plan_instance *in) {
  for (size_t i = 0; i < in->buffer_count; i++) {
    uint32_t item = in->item_of[i];
    if (item != TARN__PLAN_NO_ITEM) s->tried[item] = s->places[i];
  }
  memcpy(s->places, s->tried, in->item_count * sizeof *s->places);
}

// A relaxed plan that has all buffers is one of the problem if nothing
// collides; if something does, what it merges may still be a good choice.
static tarn_status complete(tarn__plan_choosing *s, uint64_t height,
                            uint32_t *mate, verdict *out) {
  size_t decided = s->pairs.decided;
  uint32_t items[2] = {TARN__PLAN_NO_ITEM, TARN__PLAN_NO_ITEM};
  tarn__plan_instance in;
  decide_by_places(s);
  tarn_status status = tarn__plan_make_decided(s, &in);
  if (status != TARN_OK) return status;
  place_items(s, &in);
  status = tarn__plan_overlap_find(&in, s->places, items);
  if (status == TARN_OK && items[0] == TARN__PLAN_NO_ITEM) {
    for (size_t i = 0; i < in.item_count; i++)
      s->tried[i] = s->places[i] / in.unit;
    tarn__plan_take(s, &in, height);
    *out = AGAIN;
  } else if (status == TARN_OK) {
    status = tarn__plan_solve_decided(s, &in, s->node_limit / GROWTH);
  }
  tarn__plan_pairs_undo(&s->pairs, decided);
  if (status == TARN_OK && *out == DIVIDE &&
      !colliding_mate(s, &in, items, mate)) {
    *out = CLOSED;
  }
  tarn__plan_instance_free(&in);
  return status;
}

static tarn_status solve_relaxed(tarn__plan_choosing *s,
                                 tarn__plan_found *found, uint64_t *unit) {
  tarn__plan_instance in;
  tarn__plan_relax(&s->pairs, &s->relaxed);
  tarn__plan_choice choice = {.left_out = s->relaxed.left_out,
                              .merged = s->pairs.merged};
  tarn_status status =
      tarn__plan_instance_make(&s->relaxed.problem, &choice, &in);
  if (status != TARN_OK) return status;
  tarn__plan_try share = {.capacity = tarn__plan_welcome(s) / in.unit,
                          .minimise = tarn__plan_wants_lowest(s),
                          .node_limit = tarn__plan_nodes_for(s, s->node_limit),
                          .is_bound = s->set->is_whole && s->depth == 0};
  *found = (tarn__plan_found){.height = UINT64_MAX};
  uint64_t before = s->call->nodes;
  status = tarn__plan_call_solve(s->call, &in, &share, s->tried, found);
  if (found->answer == TARN_PLAN_OUT_OF_TIME) {
    s->cut |= s->call->nodes - before >= share.node_limit;
  }
  *unit = in.unit;
  place_buffers(s, &in);
  tarn__plan_instance_free(&in);
  return status;
}

// What the search could say nothing of, with a pair to decide or without.
static verdict undecided(tarn__plan_choosing *s, uint32_t *mate) {
  if (first_undecided(s, mate)) return DIVIDE;
  s->open = true;
  return CLOSED;
}

static tarn_status visit(tarn__plan_choosing *s, uint32_t *mate, verdict *out) {
  tarn__plan_found found;
  uint64_t unit = 1;
  *out = CLOSED;
  s->call->nodes++;
  if (tarn__plan_pairs_bound(&s->pairs) > tarn__plan_welcome(s)) return TARN_OK;
  tarn_status status = solve_relaxed(s, &found, &unit);
  if (status != TARN_OK || found.answer == TARN_PLAN_INFEASIBLE) return status;
  if (s->depth == 0) tarn__plan_raise_bound(s, found.bound * unit);
  if (found.answer == TARN_PLAN_OUT_OF_TIME) {
    *out = undecided(s, mate);
    return TARN_OK;
  }
  *out = DIVIDE;
  if (missed_mate(s, mate)) return TARN_OK;
  status = complete(s, found.height * unit, mate, out);
  bool lowest = found.bound * unit > tarn__plan_welcome(s);
  if (status != TARN_OK || lowest) {
    *out = CLOSED;
  } else if (*out == CLOSED) {  // nothing to decide by: cannot be
    *out = undecided(s, mate);
  }
  return status;
}

// --- the search --------------------------------------------------------------

static void go_down(tarn__plan_choosing *s, uint32_t mate) {
  tarn__plan_level *l = &s->levels[s->depth++];
  *l = (tarn__plan_level){.decided = s->pairs.decided, .mate = mate};
  if (!tarn__plan_pairs_merge(&s->pairs, mate)) {
    l->apart = true;
    tarn__plan_pairs_part(&s->pairs, mate);
  }
}

// False: there is no node left.
static bool go_on(tarn__plan_choosing *s) {
  while (s->depth > 0) {
    tarn__plan_level *l = &s->levels[s->depth - 1];
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

static void go_back(tarn__plan_choosing *s) {
  if (s->depth > 0) tarn__plan_pairs_undo(&s->pairs, s->levels[0].decided);
  s->depth = 0;
}

static tarn_status search(tarn__plan_choosing *s) {
  tarn_status status = TARN_OK;
  bool more = true;
  while (more && status == TARN_OK && !tarn__plan_is_done(s)) {
    verdict what = CLOSED;
    uint32_t mate = 0;
    if (s->visits == 0 || tarn__plan_is_over(s)) {
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

// Everything was looked at: nothing is lower than what was found.
static void conclude(tarn__plan_choosing *s) {
  uint64_t capacity = s->set->capacity == 0 ? UINT64_MAX : s->set->capacity;
  if (s->pairs.inexact || tarn__plan_is_done(s)) return;
  tarn__plan_raise_bound(s, s->height > capacity ? capacity + 1 : s->height);
}

tarn_status tarn__plan_choices_search(tarn__plan_choosing *s) {
  tarn_status status = TARN_OK;
  uint64_t visits = FIRST_VISITS;
  do {
    s->open = s->cut = false;
    s->visits = visits;
    status = search(s);
    if (status == TARN_OK && !s->open) conclude(s);
    bool goes_on = status == TARN_OK && s->open && s->cut;
    if (!goes_on || tarn__plan_is_done(s) || tarn__plan_is_over(s))
      return status;
    status = try_best(s);
    s->node_limit *= GROWTH;
    visits *= GROWTH;
  } while (status == TARN_OK && !tarn__plan_is_done(s) &&
           !tarn__plan_is_over(s));
  return status;
}
