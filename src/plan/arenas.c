// One arena after another: who has room there by what is live (sharing.h) is
// solved as a set. If that is too high, those go that are worth least of what
// stands beside what sticks out, and it is solved again; after some rounds all
// goes that sticks out. In the end those that went are put back, the first to
// choose first, wherever there is a gap for them.
//
//        capacity - - - - - - - +--x--+ - -
//                  +---------+  |     |       x sticks out: the least of
//                  |    a    |  +-----+-+     a, b and x goes on to the
//                  +---------+--+   b   |     next arena
//                               +-------+
//
// Invariant: what lies in an arena that was done fits there.
#include "plan/arenas.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"
#include "plan/set.h"
#include "plan/sharing.h"

// Rounds of one arena, and the nodes that a round has.
enum { ROUNDS = 8, ROUND_NODES = 20000 };

// Of what sticks out and what stands beside it, how many are compared.
enum { MOST_COMPARED = 1 << 27 };

typedef struct block {
  uint64_t offset;
  uint64_t top;
} block;

typedef struct filling {
  tarn__plan_call *call;
  const tarn__plan_fill *fill;
  tarn_plan *plan;
  tarn__plan_sharing sharing;
  uint32_t *bound_to;  // by arena: how many must lie in it
  bool *left_out;      // by buffer: not in the arena in question
  bool *goes;          // by buffer
  uint32_t *gone;      // those that went from the arena in question
  size_t gone_count;
  block *blocks;  // what is live with a buffer that is put back
  bool proved;    // that there is no plan
  bool optimal;   // of the arena in question
} filling;

static const tarn_plan_buffer *buffer_at(const filling *f, size_t index) {
  return &f->fill->problem->buffers[index];
}

// --- one arena ---------------------------------------------------------------

static bool is_bound(const filling *f, size_t buffer) {
  return (buffer_at(f, buffer)->flags & TARN_PLAN_IN_ARENA) != 0;
}

// Names those that lie in |arena|; |bound|: of those only who must.
static size_t name_set(filling *f, size_t arena, bool bound) {
  size_t count = 0;
  for (size_t i = 0; i < f->fill->problem->count; i++) {
    bool in = f->plan->arenas[i] == arena && (!bound || is_bound(f, i));
    f->left_out[i] = !in;
    count += in;
  }
  return count;
}

static tarn_status solve_set(filling *f, size_t arena, uint64_t nodes,
                             tarn__plan_laid *out) {
  tarn__plan_set set = {
      .problem = f->fill->problem,
      .left_out = f->left_out,
      .capacity = tarn__plan_capacity(f->fill->problem, arena),
      .minimise = f->fill->minimise,
      .node_limit = nodes};
  return tarn__plan_set_solve(f->call, &set, f->plan->offsets, out);
}

static bool fits(const tarn__plan_laid *placed) {
  return placed->answer == TARN_PLAN_OPTIMAL ||
         placed->answer == TARN_PLAN_FEASIBLE;
}

static void let_go(filling *f, uint32_t buffer) {
  f->plan->arenas[buffer] = TARN__PLAN_NOWHERE;
  f->gone[f->gone_count++] = buffer;
}

static bool meet(const tarn_plan_buffer *a, const tarn_plan_buffer *b) {
  return a->first < b->last && b->first < a->last;
}

static bool sticks_out(const filling *f, size_t buffer, size_t arena) {
  uint64_t capacity = tarn__plan_capacity(f->fill->problem, arena);
  return f->plan->arenas[buffer] == arena &&
         f->plan->offsets[buffer] + buffer_at(f, buffer)->size > capacity;
}

// The last to choose of those beside |buffer| that need not be here; NOWHERE:
// there is none.
static uint32_t least_beside(const filling *f, size_t buffer, size_t arena) {
  uint32_t least = TARN__PLAN_NOWHERE;
  for (uint32_t i = 0; i < f->fill->problem->count; i++) {
    if (f->plan->arenas[i] != arena || is_bound(f, i) ||
        !meet(buffer_at(f, i), buffer_at(f, buffer))) {
      continue;
    }
    if (least == TARN__PLAN_NOWHERE ||
        f->sharing.rank[i] > f->sharing.rank[least]) {
      least = i;
    }
  }
  return least;
}

static size_t count_sticking_out(const filling *f, size_t arena) {
  size_t count = 0;
  for (size_t i = 0; i < f->fill->problem->count; i++)
    count += sticks_out(f, i, arena);
  return count;
}

// Lets the least go that stand beside what sticks out, or all that does: also
// where there is too much to compare.
static size_t let_least_go(filling *f, size_t arena, bool all) {
  size_t before = f->gone_count;
  size_t count = f->fill->problem->count;
  all |= count_sticking_out(f, arena) > MOST_COMPARED / (count + 1);
  memset(f->goes, 0, count);
  for (uint32_t i = 0; i < count; i++) {
    if (!sticks_out(f, i, arena)) continue;
    uint32_t who = all && !is_bound(f, i) ? i : least_beside(f, i, arena);
    if (who != TARN__PLAN_NOWHERE) f->goes[who] = true;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (f->goes[i]) let_go(f, i);
  }
  return f->gone_count - before;
}

// Lets the last to choose go, |most| of them.
static size_t let_last_go(filling *f, size_t arena, size_t most) {
  size_t before = f->gone_count;
  for (size_t i = f->fill->problem->count; i > 0; i--) {
    uint32_t buffer = f->sharing.order[i - 1];
    if (f->plan->arenas[buffer] != arena || is_bound(f, buffer)) continue;
    if (f->gone_count - before == most) break;
    let_go(f, buffer);
  }
  return f->gone_count - before;
}

// Whether all that sticks out may go, so that the rest is a plan.
static bool rest_is_plan(const filling *f, size_t arena) {
  for (size_t i = 0; i < f->fill->problem->count; i++) {
    if (sticks_out(f, i, arena) && is_bound(f, i)) return false;
  }
  return true;
}

// A set that is too high loses some; false: there is none to lose.
static bool lose_some(filling *f, size_t arena, int round, bool has_plan) {
  if (!has_plan) return let_last_go(f, arena, (size_t)1 << round) > 0;
  return let_least_go(f, arena, false) > 0;
}

// --- putting back ------------------------------------------------------------

static int by_offset(const void *x, const void *y) {
  const block *a = x;
  const block *b = y;
  return (a->offset > b->offset) - (a->offset < b->offset);
}

static size_t list_beside(filling *f, size_t buffer, size_t arena) {
  size_t count = 0;
  for (size_t i = 0; i < f->fill->problem->count; i++) {
    if (f->plan->arenas[i] != arena ||
        !meet(buffer_at(f, i), buffer_at(f, buffer))) {
      continue;
    }
    uint64_t offset = f->plan->offsets[i];
    f->blocks[count++] = (block){offset, offset + buffer_at(f, i)->size};
  }
  qsort(f->blocks, count, sizeof *f->blocks, by_offset);
  return count;
}

static void put_back(filling *f, uint32_t buffer, size_t arena) {
  const tarn_plan_buffer *b = buffer_at(f, buffer);
  uint64_t alignment = tarn__plan_alignment(b);
  size_t count = list_beside(f, buffer, arena);
  uint64_t at = 0;
  for (size_t i = 0; i < count; i++) {
    if (f->blocks[i].offset >= at + b->size) break;
    if (f->blocks[i].top > at) {
      at = tarn__plan_align_up(f->blocks[i].top, alignment);
    }
  }
  if (at + b->size > tarn__plan_capacity(f->fill->problem, arena)) return;
  f->plan->offsets[buffer] = at;
  f->plan->arenas[buffer] = (uint32_t)arena;
}

static int by_number(const void *x, const void *y) {
  uint32_t a = *(const uint32_t *)x;
  uint32_t b = *(const uint32_t *)y;
  return (a > b) - (a < b);
}

static void put_all_back(filling *f, size_t arena) {
  for (size_t i = 0; i < f->gone_count; i++)
    f->gone[i] = f->sharing.rank[f->gone[i]];
  qsort(f->gone, f->gone_count, sizeof *f->gone, by_number);
  for (size_t i = 0; i < f->gone_count; i++) {
    if (i % 64 == 63 && tarn__plan_call_late(f->call)) break;
    put_back(f, f->sharing.order[f->gone[i]], arena);
  }
  f->gone_count = 0;
}

// --- an arena ----------------------------------------------------------------

// Solves what lies in |arena|, and less and less of it, until it fits. False:
// not even what must lie there does.
static tarn_status settle(filling *f, size_t arena, bool *settled) {
  *settled = false;
  for (int round = 0; !*settled; round++) {
    tarn__plan_laid placed;
    (void)name_set(f, arena, false);
    tarn_status status = solve_set(f, arena, ROUND_NODES, &placed);
    if (status != TARN_OK) return status;
    f->optimal = placed.answer == TARN_PLAN_OPTIMAL;
    *settled = fits(&placed);
    if (*settled) break;
    bool has_plan = placed.height != UINT64_MAX;
    bool last = round >= ROUNDS || tarn__plan_call_over(f->call);
    if (last && has_plan && rest_is_plan(f, arena)) {
      (void)let_least_go(f, arena, true);
      *settled = true;
    } else if (!lose_some(f, arena, last ? 31 : round, has_plan && !last)) {
      return TARN_OK;
    }
  }
  put_all_back(f, arena);
  return TARN_OK;
}

static bool anyone_left(const filling *f) {
  for (size_t i = 0; i < f->fill->problem->count; i++) {
    if (tarn__plan_sharing_has(&f->sharing, i) &&
        f->plan->arenas[i] == TARN__PLAN_NOWHERE) {
      return true;
    }
  }
  return false;
}

// If nothing is left to place, it may have all that is left to spend.
static tarn_status improve(filling *f, size_t arena) {
  uint64_t capacity = tarn__plan_capacity(f->fill->problem, arena);
  bool wanted = f->fill->minimise || capacity == 0;
  if (!wanted || f->optimal || tarn__plan_call_over(f->call)) return TARN_OK;
  if (anyone_left(f)) return TARN_OK;
  tarn_plan *other = NULL;
  tarn_status status = tarn__plan_make(f->fill->problem, &other);
  tarn__plan_laid placed = {.height = UINT64_MAX};
  if (status == TARN_OK) {
    memcpy(other->offsets, f->plan->offsets,
           f->fill->problem->count * sizeof *other->offsets);
    (void)name_set(f, arena, false);
    status = solve_set(f, arena, f->fill->node_limit, &placed);
  }
  if (other != NULL && (status != TARN_OK || !fits(&placed))) {
    uint64_t *offsets = f->plan->offsets;
    f->plan->offsets = other->offsets;
    other->offsets = offsets;
  }
  tarn_plan_destroy(other);
  return TARN_OK;  // there is a plan
}

// What must lie in |arena| and cannot is a proof.
static tarn_status check_bound(filling *f, size_t arena) {
  tarn__plan_laid placed;
  if (f->bound_to[arena] == 0) return TARN_OK;
  (void)name_set(f, arena, true);
  tarn_status status = solve_set(f, arena, ROUND_NODES, &placed);
  if (status == TARN_OK) f->proved = placed.answer == TARN_PLAN_INFEASIBLE;
  return status;
}

static tarn_status fill_arena(filling *f, size_t arena, bool *settled) {
  tarn__plan_sharing_choose(&f->sharing, arena);
  tarn_status status = check_bound(f, arena);
  if (status != TARN_OK || f->proved) return status;
  *settled = true;
  if (name_set(f, arena, false) == 0) return TARN_OK;
  status = settle(f, arena, settled);
  if (status == TARN_OK && *settled) status = improve(f, arena);
  return status;
}

static tarn_status fill_arenas(filling *f) {
  bool settled = true;
  bool left = anyone_left(f);
  for (size_t i = 0; i < f->plan->arena_count && left; i++) {
    tarn_status status = fill_arena(f, i, &settled);
    if (status != TARN_OK || f->proved || !settled) return status;
    left = anyone_left(f);
  }
  f->plan->has_offsets = !left;
  return TARN_OK;
}

// --- what is proved ----------------------------------------------------------

static bool is_impossible(const filling *f) {
  const tarn_plan_problem *problem = f->fill->problem;
  uint64_t largest = tarn__plan_largest(problem);
  for (size_t i = 0; i < problem->count; i++) {
    if (tarn__plan_sharing_has(&f->sharing, i) &&
        !tarn__plan_fits(problem, buffer_at(f, i), largest)) {
      return true;
    }
  }
  return tarn__plan_pairs_bound(&f->sharing.pairs) > tarn__plan_room(problem);
}

static void count_bound(filling *f) {
  for (size_t i = 0; i < f->fill->problem->count; i++) {
    if (tarn__plan_sharing_has(&f->sharing, i) && is_bound(f, i)) {
      f->bound_to[buffer_at(f, i)->arena]++;
    }
  }
}

static bool measure(filling *f) {
  bool all_in_first = true;
  for (size_t i = 0; i < f->fill->problem->count; i++) {
    if (!tarn__plan_sharing_has(&f->sharing, i)) continue;
    uint64_t end = f->plan->offsets[i] + buffer_at(f, i)->size;
    uint64_t *height = &f->plan->heights[f->plan->arenas[i]];
    if (*height < end) *height = end;
    all_in_first &= f->plan->arenas[i] == 0;
  }
  f->plan->info.height = 0;
  for (size_t i = 0; i < f->plan->arena_count; i++)
    f->plan->info.height += f->plan->heights[i];
  return all_in_first;
}

static void conclude(filling *f) {
  tarn_plan *plan = f->plan;
  bool all_in_first = plan->has_offsets && measure(f);
  plan->info.answer = TARN_PLAN_OUT_OF_TIME;
  if (f->proved) plan->info.answer = TARN_PLAN_INFEASIBLE;
  if (!plan->has_offsets) return;
  bool optimal = all_in_first && plan->info.height <= plan->info.lower_bound;
  plan->info.answer = optimal ? TARN_PLAN_OPTIMAL : TARN_PLAN_FEASIBLE;
}

// --- the whole ---------------------------------------------------------------

static tarn_status make_filling(filling *f) {
  size_t room = f->fill->problem->count + 1;
  f->bound_to = tarn__host_array(f->plan->arena_count, sizeof *f->bound_to);
  f->left_out = tarn__host_array(room, sizeof *f->left_out);
  f->goes = tarn__host_array(room, sizeof *f->goes);
  f->gone = tarn__host_array(room, sizeof *f->gone);
  f->blocks = tarn__host_array(room, sizeof *f->blocks);
  bool made = f->bound_to != NULL && f->left_out != NULL && f->goes != NULL &&
              f->gone != NULL && f->blocks != NULL;
  return made ? TARN_OK : TARN_E_NOMEM;
}

static void free_filling(filling *f) {
  size_t room = f->fill->problem->count + 1;
  tarn__host_free_array(f->bound_to, f->plan->arena_count, sizeof *f->bound_to);
  tarn__host_free_array(f->left_out, room, sizeof *f->left_out);
  tarn__host_free_array(f->goes, room, sizeof *f->goes);
  tarn__host_free_array(f->gone, room, sizeof *f->gone);
  tarn__host_free_array(f->blocks, room, sizeof *f->blocks);
  tarn__plan_sharing_free(&f->sharing);
}

static tarn_status fill_or_prove(filling *f) {
  uint64_t bound = tarn__plan_pairs_bound(&f->sharing.pairs);
  f->plan->info.lower_bound = bound;
  if (f->fill->is_whole && f->call->bound < bound) f->call->bound = bound;
  f->proved = is_impossible(f);
  count_bound(f);
  return f->proved ? TARN_OK : fill_arenas(f);
}

tarn_status tarn__plan_arenas_fill(tarn__plan_call *call,
                                   const tarn__plan_fill *fill,
                                   tarn_plan *plan) {
  filling f = {.call = call, .fill = fill, .plan = plan};
  plan->has_offsets = false;
  memset(plan->heights, 0, plan->arena_count * sizeof *plan->heights);
  tarn_status status = tarn__plan_sharing_make(fill->problem, fill->left_out,
                                               plan->arenas, &f.sharing);
  if (status == TARN_OK) status = make_filling(&f);
  if (status == TARN_OK) status = fill_or_prove(&f);
  if (status == TARN_OK) conclude(&f);
  free_filling(&f);
  return status;
}
