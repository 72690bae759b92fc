// Several arenas, the best first. Buffers go by priority, then by size times
// lifetime, each to the earliest arena that has room for it beside the live
// buffers of that arena. Arenas are filled one after another: the buffers that
// an arena gets are solved as a set; if the plan is too high, the least
// valuable buffers beside those that stick out are dropped, and the set is
// solved again. After some rounds all buffers that stick out are dropped.
// Finally the dropped ones are put back in order of their rank, wherever there
// is a gap for them.
//
//        capacity - - - - - - - +--x--+ - -
//                  +---------+  |     |       x sticks out: the least of
//                  |    a    |  +-----+-+     a, b and x goes on to the
//                  +---------+--+   b   |     next arena
//                               +-------+
//
// Invariant: the buffers of an arena that was filled fit there.
#include "plan/call.h"

#include <string.h>

#include "base/status.h"
#include "plan/pairs.h"

// --- sharing -----------------------------------------------------------------

// A buffer in which a pair ends or begins needs less in the step that it shares
// with a mate that is in the arena too. The solver says whether that comes
// true.
#define NO_ARENA UINT32_MAX

// Rounds of one arena, and the nodes that a round has.
enum { ROUNDS = 8, ROUND_NODES = 20000 };

// Of what sticks out and what stands beside it, how many are compared.
enum { MOST_COMPARED = 1 << 27 };

typedef struct filling {
  tarn__plan_call *call;
  const tarn__plan_fill *fill;
  const tarn_plan_problem *problem;
  tarn_plan *plan;
  uint32_t *arenas;  // of the plan: by buffer; NO_ARENA: none yet
  uint32_t *order;   // buffers, the first to choose first
  uint32_t *rank;    // by buffer
  tarn__plan_pairs pairs;
  uint32_t *mate_of[TARN__PLAN_SIDES];  // by buffer: a mate of it, + 1
  bool proved;                          // that there is no plan
  // Of the arena in question.
  bool *merges[TARN__PLAN_SIDES];  // by buffer: as giver, and as taker
  uint64_t *most;   // by node: of its runs, without what is added above it
  uint64_t *added;  // by node: to all of its runs
  size_t nodes;
  bool *left_out;  // by buffer: not in it
  bool *goes;      // by buffer
  bool *gone;      // by buffer: went from it
  size_t gone_count;
  tarn__plan_range *blocks;  // live buffers beside one that is put back
  uint64_t *kept;            // by buffer: offsets of a plan that is improved
  bool optimal;
  tarn__plan_memory memory;
} filling;

static bool is_taken(const filling *f, size_t buffer) {
  return tarn__plan_is_in(f->fill->left_out, buffer);
}

static bool is_bound(const filling *f, size_t buffer) {
  return (f->problem->buffers[buffer].flags & TARN_PLAN_IN_ARENA) != 0;
}

static uint64_t end_of(const filling *f, size_t buffer) {
  return f->plan->offsets[buffer] + f->problem->buffers[buffer].size;
}

// --- what is live ------------------------------------------------------------

// A tree over the runs of steps between the changes of the pairs. Node 1 is the
// root; the two below node i are 2 i and 2 i + 1. An addition to all runs of a
// node is stored at the node.
//
// Invariant: the most of a node's runs is most[node] + added[node], and
// most[node] is the larger of those two sums below it.

// The run that begins with |step|.
static size_t run_of(const filling *f, uint64_t step) {
  if (step == 0) return 0;
  return tarn__plan_first_above(f->pairs.changes, sizeof *f->pairs.changes,
                                offsetof(tarn__plan_change, step),
                                f->pairs.change_count, step - 1);
}

// So many bytes more in the runs [first, last).
typedef struct need {
  size_t first;
  size_t last;
  uint64_t size;
} need;

static uint64_t max_of(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

// Adds the need to what |node| stands for, the runs [from, to); returns the
// most of those that need it.
static uint64_t raise(filling *f, const need *n, size_t node, size_t from,
                      size_t to) {
  if (n->last <= from || to <= n->first) return 0;
  if (n->first <= from && to <= n->last) {
    f->added[node] += n->size;
    return f->most[node] + f->added[node];
  }
  size_t middle = from + (to - from) / 2;
  size_t below = 2 * node;
  uint64_t most = max_of(raise(f, n, below, from, middle),
                         raise(f, n, below + 1, middle, to));
  f->most[node] = max_of(f->most[below] + f->added[below],
                         f->most[below + 1] + f->added[below + 1]);
  return most + f->added[node];
}

// --- coming and going --------------------------------------------------------

static tarn_status make_filling(filling *f) {
  tarn__plan_memory *memory = &f->memory;
  size_t count = f->problem->count;
  size_t room = count + 1;
  TARN__TRY(tarn__plan_pairs_make(f->problem, f->fill->left_out, &f->pairs));
  f->nodes = 2;
  while (f->nodes < 2 * f->pairs.change_count)
    f->nodes *= 2;
  f->most = tarn__plan_array(memory, f->nodes, sizeof *f->most);
  f->added = tarn__plan_array(memory, f->nodes, sizeof *f->added);
  f->order = tarn__plan_array(memory, room, sizeof *f->order);
  f->rank = tarn__plan_array(memory, room, sizeof *f->rank);
  for (int i = 0; i < TARN__PLAN_SIDES; i++) {
    f->mate_of[i] = tarn__plan_array(memory, room, sizeof(uint32_t));
    f->merges[i] = tarn__plan_array(memory, room, sizeof(bool));
  }
  f->left_out = tarn__plan_array(memory, room, sizeof *f->left_out);
  f->goes = tarn__plan_array(memory, room, sizeof *f->goes);
  f->gone = tarn__plan_array(memory, room, sizeof *f->gone);
  f->blocks = tarn__plan_array(memory, room, sizeof *f->blocks);
  f->kept = tarn__plan_array(memory, room, sizeof *f->kept);
  if (memory->failed) return TARN_E_NOMEM;
  for (uint32_t i = 0; i < f->pairs.count; i++) {
    for (int side = 0; side < TARN__PLAN_SIDES; side++)
      f->mate_of[side][f->pairs.mates[i].buffer[side]] = i + 1;
  }
  for (uint32_t i = 0; i < count; i++) {
    f->arenas[i] = NO_ARENA;
    f->order[i] = i;
  }
  TARN__TRY(
      tarn__plan_sort(f->problem, TARN__PLAN_BY_PRIORITY, f->order, count));
  for (uint32_t i = 0; i < count; i++)
    f->rank[f->order[i]] = i;
  return TARN_OK;
}

// --- what fits ---------------------------------------------------------------

// The mate of |buffer|, as giver or as taker, that saves most in the same arena
// and is not merged otherwise; NULL: none.
static const tarn__plan_mate *best_mate(const filling *f, uint32_t buffer,
                                        tarn__plan_side side, size_t arena) {
  uint32_t first = f->mate_of[side][buffer];
  const tarn__plan_mate *best = NULL;
  if (first == 0) return NULL;
  uint32_t at = first - 1;
  do {
    const tarn__plan_mate *mate = &f->pairs.mates[at];
    uint32_t other = mate->buffer[!side];
    if (!f->merges[!side][other] && f->arenas[other] == arena &&
        (best == NULL || mate->saving > best->saving)) {
      best = mate;
    }
    at = mate->next[side];
  } while (at != first - 1);
  return best;
}

// Whether |size| bytes more in the steps [first, last) leave no more than
// |capacity| live; with |put| they are added.
static bool meets(filling *f, uint64_t first, uint64_t last, uint64_t size,
                  uint64_t capacity, bool put) {
  if (first >= last) return true;
  need n = {run_of(f, first), run_of(f, last), put ? size : 0};
  uint64_t live = raise(f, &n, 1, 0, f->nodes / 2);
  return size <= capacity && live <= capacity - size;
}

// All runs of a buffer, with what its mates save in its first and last step.
static bool all_meet(filling *f, uint32_t buffer,
                     const tarn__plan_mate *const mates[TARN__PLAN_SIDES],
                     uint64_t capacity, bool put) {
  const tarn_plan_buffer *b = &f->problem->buffers[buffer];
  const tarn__plan_mate *before = mates[TARN__PLAN_TAKER];
  const tarn__plan_mate *after = mates[TARN__PLAN_GIVER];
  bool good = true;
  for (size_t i = 0; i <= b->gap_count; i++) {
    tarn_plan_gap run = tarn__plan_run_of(b, i);
    if (i == 0 && before != NULL) run.first++;
    if (i == b->gap_count && after != NULL) run.last--;
    good &= meets(f, run.first, run.last, b->size, capacity, put);
  }
  if (before != NULL) {
    good &= meets(f, b->first, b->first + 1, b->size - before->saving, capacity,
                  put);
  }
  if (after != NULL) {
    good &=
        meets(f, b->last - 1, b->last, b->size - after->saving, capacity, put);
  }
  return good;
}

static void put(filling *f, uint32_t buffer, size_t arena, uint64_t capacity,
                bool must) {
  const tarn__plan_mate *mates[TARN__PLAN_SIDES];
  for (int i = 0; i < TARN__PLAN_SIDES; i++)
    mates[i] = best_mate(f, buffer, (tarn__plan_side)i, arena);
  if (!must && !all_meet(f, buffer, mates, capacity, false)) return;
  (void)all_meet(f, buffer, mates, capacity, true);
  f->arenas[buffer] = (uint32_t)arena;
  for (int i = 0; i < TARN__PLAN_SIDES; i++) {
    for (int side = 0; mates[i] != NULL && side < TARN__PLAN_SIDES; side++)
      f->merges[side][mates[i]->buffer[side]] = true;
  }
}

// Puts the buffers into |arena| that are bound to it, then, in order of rank,
// each that has no arena yet and has room beside those before it.
static void choose(filling *f, size_t arena) {
  uint64_t capacity = tarn__plan_capacity(f->problem, arena);
  if (capacity == 0) capacity = UINT64_MAX;
  memset(f->most, 0, f->nodes * sizeof *f->most);
  memset(f->added, 0, f->nodes * sizeof *f->added);
  for (int i = 0; i < TARN__PLAN_SIDES; i++)
    memset(f->merges[i], 0, f->problem->count * sizeof(bool));
  for (int must = 1; must >= 0; must--) {
    for (size_t i = 0; i < f->problem->count; i++) {
      uint32_t buffer = f->order[i];
      if (is_bound(f, buffer) != (must != 0) || !is_taken(f, buffer) ||
          f->arenas[buffer] != NO_ARENA ||
          !tarn__plan_may_lie_in(&f->problem->buffers[buffer], arena)) {
        continue;
      }
      put(f, buffer, arena, capacity, must != 0);
    }
  }
}

// --- one arena ---------------------------------------------------------------

// Marks the buffers of |arena|; |bound|: only those that are bound to it.
static size_t name_set(filling *f, size_t arena, bool bound) {
  size_t count = 0;
  for (size_t i = 0; i < f->problem->count; i++) {
    bool in = f->arenas[i] == arena && (!bound || is_bound(f, i));
    f->left_out[i] = !in;
    count += in;
  }
  return count;
}

static tarn_status solve_set(filling *f, size_t arena, uint64_t nodes,
                             tarn__plan_found *out) {
  tarn__plan_fill set = {.problem = f->problem,
                         .left_out = f->left_out,
                         .capacity = tarn__plan_capacity(f->problem, arena),
                         .minimise = f->fill->minimise,
                         .node_limit = nodes};
  return tarn__plan_set_solve(f->call, &set, f->plan->offsets, out);
}

static void let_go(filling *f, uint32_t buffer) {
  f->arenas[buffer] = NO_ARENA;
  f->gone[buffer] = true;
  f->gone_count++;
}

static bool live_together(const filling *f, size_t x, size_t y) {
  const tarn_plan_buffer *a = &f->problem->buffers[x];
  const tarn_plan_buffer *b = &f->problem->buffers[y];
  return a->first < b->last && b->first < a->last;
}

static bool sticks_out(const filling *f, size_t buffer, size_t arena) {
  return f->arenas[buffer] == arena &&
         end_of(f, buffer) > tarn__plan_capacity(f->problem, arena);
}

// The last to choose of those beside |buffer| that need not be here; NO_ARENA:
// there is none.
static uint32_t least_beside(const filling *f, size_t buffer, size_t arena) {
  uint32_t least = NO_ARENA;
  for (uint32_t i = 0; i < f->problem->count; i++) {
    if (f->arenas[i] != arena || is_bound(f, i) ||
        !live_together(f, i, buffer)) {
      continue;
    }
    if (least == NO_ARENA || f->rank[i] > f->rank[least]) least = i;
  }
  return least;
}

static size_t count_sticking_out(const filling *f, size_t arena) {
  size_t count = 0;
  for (size_t i = 0; i < f->problem->count; i++)
    count += sticks_out(f, i, arena);
  return count;
}

// Lets the least go that stand beside what sticks out, or all that does: also
// where there is too much to compare.
static size_t let_least_go(filling *f, size_t arena, bool all) {
  size_t before = f->gone_count;
  size_t count = f->problem->count;
  all |= count_sticking_out(f, arena) > MOST_COMPARED / (count + 1);
  memset(f->goes, 0, count);
  for (uint32_t i = 0; i < count; i++) {
    if (!sticks_out(f, i, arena)) continue;
    uint32_t who = all && !is_bound(f, i) ? i : least_beside(f, i, arena);
    if (who != NO_ARENA) f->goes[who] = true;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (f->goes[i]) let_go(f, i);
  }
  return f->gone_count - before;
}

// Lets the last to choose go, |most| of them.
static size_t let_last_go(filling *f, size_t arena, size_t most) {
  size_t before = f->gone_count;
  for (size_t i = f->problem->count; i > 0; i--) {
    uint32_t buffer = f->order[i - 1];
    if (f->arenas[buffer] != arena || is_bound(f, buffer)) continue;
    if (f->gone_count - before == most) break;
    let_go(f, buffer);
  }
  return f->gone_count - before;
}

// Whether all that sticks out may go, so that the rest is a plan.
static bool rest_is_plan(const filling *f, size_t arena) {
  for (size_t i = 0; i < f->problem->count; i++) {
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

static void put_back(filling *f, uint32_t buffer, size_t arena) {
  const tarn_plan_buffer *b = &f->problem->buffers[buffer];
  uint32_t count = 0;
  uint64_t at = 0;
  for (size_t i = 0; i < f->problem->count; i++) {
    if (f->arenas[i] != arena || !live_together(f, i, buffer)) continue;
    f->blocks[count++] = (tarn__plan_range){f->plan->offsets[i], end_of(f, i)};
  }
  tarn__plan_ranges_sort(f->blocks, count);
  (void)tarn__plan_lift(f->blocks, 0, count, b->size, tarn__plan_alignment(b),
                        &at);
  if (at + b->size > tarn__plan_capacity(f->problem, arena)) return;
  f->plan->offsets[buffer] = at;
  f->arenas[buffer] = (uint32_t)arena;
}

// Tries the buffers that left the arena, the first to choose first.
static void put_all_back(filling *f, size_t arena) {
  size_t done = 0;
  for (size_t i = 0; i < f->problem->count && f->gone_count > 0; i++) {
    uint32_t buffer = f->order[i];
    if (!f->gone[buffer]) continue;
    if (done++ % 64 == 63 && tarn__plan_call_late(f->call)) break;
    put_back(f, buffer, arena);
    f->gone_count--;
  }
  memset(f->gone, 0, f->problem->count);
  f->gone_count = 0;
}

// --- an arena ----------------------------------------------------------------

// Solves the buffers of |arena|, and drops some, until they fit. |*settled|
// false: not even the bound ones fit.
static tarn_status settle(filling *f, size_t arena, bool *settled) {
  *settled = false;
  for (int round = 0; !*settled; round++) {
    tarn__plan_found placed;
    (void)name_set(f, arena, false);
    TARN__TRY(solve_set(f, arena, ROUND_NODES, &placed));
    f->optimal = placed.answer == TARN_PLAN_OPTIMAL;
    *settled = tarn__plan_fits(placed.answer);
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
  for (size_t i = 0; i < f->problem->count; i++) {
    if (is_taken(f, i) && f->arenas[i] == NO_ARENA) return true;
  }
  return false;
}

// With nothing left to place, the arena may spend all that is left.
static tarn_status improve(filling *f, size_t arena) {
  uint64_t capacity = tarn__plan_capacity(f->problem, arena);
  bool wanted = f->fill->minimise || capacity == 0;
  if (!wanted || f->optimal || tarn__plan_call_over(f->call)) return TARN_OK;
  if (anyone_left(f)) return TARN_OK;
  size_t size = f->problem->count * sizeof *f->kept;
  tarn__plan_found placed;
  memcpy(f->kept, f->plan->offsets, size);
  (void)name_set(f, arena, false);
  tarn_status status = solve_set(f, arena, f->fill->node_limit, &placed);
  if (status != TARN_OK || !tarn__plan_fits(placed.answer)) {
    memcpy(f->plan->offsets, f->kept, size);
  }
  return TARN_OK;  // there is a plan
}

// Buffers that are bound to |arena| and do not fit are a proof.
static tarn_status check_bound(filling *f, size_t arena) {
  tarn__plan_found placed;
  if (name_set(f, arena, true) == 0) return TARN_OK;
  TARN__TRY(solve_set(f, arena, ROUND_NODES, &placed));
  f->proved = placed.answer == TARN_PLAN_INFEASIBLE;
  return TARN_OK;
}

static tarn_status fill_arena(filling *f, size_t arena, bool *settled) {
  choose(f, arena);
  tarn_status status = check_bound(f, arena);
  if (status != TARN_OK || f->proved) return status;
  *settled = true;
  if (name_set(f, arena, false) == 0) return TARN_OK;
  TARN__TRY(settle(f, arena, settled));
  if (*settled) TARN__TRY(improve(f, arena));
  return TARN_OK;
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

// --- the whole ---------------------------------------------------------------

static tarn_status fill_or_prove(filling *f) {
  tarn_plan *plan = f->plan;
  uint64_t bound = tarn__plan_pairs_bound(&f->pairs);
  if (f->fill->is_whole && f->call->bound < bound) f->call->bound = bound;
  f->proved =
      bound > tarn__plan_room(f->problem) ||
      tarn__plan_misfit(f->problem, f->fill->left_out) != f->problem->count;
  if (!f->proved) TARN__TRY(fill_arenas(f));
  plan->info.lower_bound = bound;
  plan->info.answer = f->proved ? TARN_PLAN_INFEASIBLE : TARN_PLAN_OUT_OF_TIME;
  if (plan->has_offsets) {
    tarn__plan_complete(f->problem, f->fill->left_out, bound, plan);
  }
  return TARN_OK;
}

// As tarn__plan_fill_in, for several arenas.
static tarn_status fill_several(tarn__plan_call *call,
                                const tarn__plan_fill *fill, tarn_plan *plan) {
  filling f = {.call = call,
               .fill = fill,
               .problem = fill->problem,
               .plan = plan,
               .arenas = plan->arenas};
  plan->has_offsets = false;
  memset(plan->heights, 0, plan->arena_count * sizeof *plan->heights);
  tarn_status status = make_filling(&f);
  if (status == TARN_OK) status = fill_or_prove(&f);
  tarn__plan_pairs_free(&f.pairs);
  tarn__plan_memory_free(&f.memory);
  return status;
}

// --- one arena, or several ---------------------------------------------------

static tarn_status fill_one(tarn__plan_call *call, const tarn__plan_fill *fill,
                            tarn_plan *plan) {
  tarn__plan_fill set = *fill;
  tarn__plan_found placed;
  uint64_t own = tarn__plan_capacity(fill->problem, 0);
  if (set.capacity == 0 || (own != 0 && own < set.capacity)) set.capacity = own;
  TARN__TRY(tarn__plan_set_solve(call, &set, plan->offsets, &placed));
  plan->info.answer = placed.answer;
  plan->info.lower_bound = placed.bound;
  plan->has_offsets = tarn__plan_fits(placed.answer);
  plan->info.height = plan->has_offsets ? placed.height : 0;
  plan->heights[0] = plan->info.height;
  memset(plan->arenas, 0, fill->problem->count * sizeof *plan->arenas);
  return TARN_OK;
}

tarn_status tarn__plan_fill_in(tarn__plan_call *call,
                               const tarn__plan_fill *fill, tarn_plan *plan) {
  return plan->arena_count == 1 ? fill_one(call, fill, plan)
                                : fill_several(call, fill, plan);
}
