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

#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"
#include "plan/pairs.h"

// --- what is live ------------------------------------------------------------

// Node 1 is the root; the two below node i are 2 i and 2 i + 1. What is added
// to all runs of a node stays at the node.
//
// Invariant: the most of a node's runs is most[node] + added[node], and
// most[node] is the larger of those two sums below it.
//
// A tree over the runs of steps between which something begins or ends.
typedef struct live_sums {
  uint64_t *steps;  // where runs begin, ascending
  size_t count;
  uint64_t *most;   // by node: of its runs, without what is added above it
  uint64_t *added;  // by node: to all of its runs
  size_t nodes;
  tarn__plan_memory memory;
} live_sums;

static int by_value(const void *x, const void *y) {
  uint64_t a = *(const uint64_t *)x;
  uint64_t b = *(const uint64_t *)y;
  return (a > b) - (a < b);
}

static size_t list_steps(const tarn_plan_problem *problem, uint64_t *out) {
  size_t count = 0;
  for (size_t i = 0; i < problem->count; i++) {
    const tarn_plan_buffer *b = &problem->buffers[i];
    for (size_t g = 0; g <= b->gap_count; g++) {
      tarn_plan_gap run = tarn__plan_run_of(b, g);
      out[count++] = run.first;
      out[count++] = run.last;
    }
  }
  return count;
}

static void sort_steps(live_sums *sums, size_t count) {
  qsort(sums->steps, count, sizeof *sums->steps, by_value);
  for (size_t i = 0; i < count; i++) {
    if (i > 0 && sums->steps[i] == sums->steps[sums->count - 1]) continue;
    sums->steps[sums->count++] = sums->steps[i];
  }
}

// Only steps in which something begins or ends can be told apart.
static tarn_status make_sums(const tarn_plan_problem *problem,
                             live_sums *sums) {
  size_t room = 1;
  for (size_t i = 0; i < problem->count; i++)
    room += 2 + 2 * problem->buffers[i].gap_count;
  sums->steps = tarn__plan_array(&sums->memory, room, sizeof *sums->steps);
  if (sums->steps == NULL) return TARN_E_NOMEM;
  sort_steps(sums, list_steps(problem, sums->steps));
  sums->nodes = 2;
  while (sums->nodes < 2 * sums->count)
    sums->nodes *= 2;
  sums->most = tarn__plan_array(&sums->memory, sums->nodes, sizeof *sums->most);
  sums->added =
      tarn__plan_array(&sums->memory, sums->nodes, sizeof *sums->added);
  return tarn__plan_memory_status(&sums->memory);
}

static void clear_sums(live_sums *sums) {
  memset(sums->most, 0, sums->nodes * sizeof *sums->most);
  memset(sums->added, 0, sums->nodes * sizeof *sums->added);
}

// The run that begins with |step|.
static size_t run_of(const live_sums *sums, uint64_t step) {
  size_t low = 0;
  size_t high = sums->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (sums->steps[middle] < step) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Runs that a node stands for, and those in question.
typedef struct runs {
  size_t node;
  size_t from;
  size_t to;
  size_t first;
  size_t last;
} runs;

static runs half_of(const runs *r, bool upper) {
  size_t middle = r->from + (r->to - r->from) / 2;
  return (runs){.node = 2 * r->node + upper,
                .from = upper ? middle : r->from,
                .to = upper ? r->to : middle,
                .first = r->first,
                .last = r->last};
}

static uint64_t max_of(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

static void add_to(live_sums *sums, runs r, uint64_t size) {
  if (r.last <= r.from || r.to <= r.first) return;
  if (r.first <= r.from && r.to <= r.last) {
    sums->added[r.node] += size;
    return;
  }
  add_to(sums, half_of(&r, false), size);
  add_to(sums, half_of(&r, true), size);
  size_t below = 2 * r.node;
  sums->most[r.node] = max_of(sums->most[below] + sums->added[below],
                              sums->most[below + 1] + sums->added[below + 1]);
}

static uint64_t most_of(const live_sums *sums, runs r) {
  if (r.first <= r.from && r.to <= r.last) {
    return sums->most[r.node] + sums->added[r.node];
  }
  size_t middle = r.from + (r.to - r.from) / 2;
  uint64_t value = 0;
  if (r.first < middle) value = most_of(sums, half_of(&r, false));
  if (r.last > middle) value = max_of(value, most_of(sums, half_of(&r, true)));
  return value + sums->added[r.node];
}

static runs whole(const live_sums *sums, uint64_t first, uint64_t last) {
  return (runs){.node = 1,
                .to = sums->nodes / 2,
                .first = run_of(sums, first),
                .last = run_of(sums, last)};
}

// Adds |size| in [first, last); less than 0 modulo 2^64 takes away.
static void add_live(live_sums *sums, uint64_t first, uint64_t last,
                     uint64_t size) {
  if (first < last) add_to(sums, whole(sums, first, last), size);
}

// The most_of that is live in a step of [first, last); 0 for an empty run.
static uint64_t most_live(const live_sums *sums, uint64_t first,
                          uint64_t last) {
  return first < last ? most_of(sums, whole(sums, first, last)) : 0;
}

// --- sharing -----------------------------------------------------------------

// A buffer in which a pair ends or begins needs less in the step that it shares
// with a mate that is in the arena too. The solver says whether that comes
// true.
#define NO_ARENA UINT32_MAX

typedef struct sharing {
  const tarn_plan_problem *problem;
  uint32_t *order;       // buffers, the first to choose first
  uint32_t *rank;        // by buffer
  uint32_t *arenas;      // by buffer: where it is; NO_ARENA: none yet
  const bool *left_out;  // by buffer; NULL: none
  live_sums sums;        // of the arena in question
  tarn__plan_pairs pairs;
  uint32_t *giver_mate;  // by buffer: a mate of which it is the giver, + 1
  uint32_t *taker_mate;  // by buffer: the taker
  bool *gives;           // by buffer: in the arena in question
  bool *takes;
  tarn__plan_memory memory;
} sharing;

static bool is_taken(const sharing *s, size_t buffer) {
  return s->left_out == NULL || !s->left_out[buffer];
}

// --- rank --------------------------------------------------------------------

static tarn_status rank(sharing *s) {
  size_t count = s->problem->count;
  tarn__plan_sorted *claims = tarn__host_array(count + 1, sizeof *claims);
  if (claims == NULL) return TARN_E_NOMEM;
  for (uint32_t i = 0; i < count; i++) {
    const tarn_plan_buffer *b = &s->problem->buffers[i];
    claims[i] = (tarn__plan_sorted){b->priority, tarn__plan_worth(b), i};
  }
  tarn__plan_sort(claims, count);
  for (uint32_t i = 0; i < count; i++) {
    s->order[i] = claims[i].buffer;
    s->rank[claims[i].buffer] = i;
  }
  tarn__host_free_array(claims, count + 1, sizeof *claims);
  return TARN_OK;
}

// --- coming and going --------------------------------------------------------

static tarn_status make_sharing(const tarn_plan_problem *problem,
                                const bool *left_out, uint32_t *arenas,
                                sharing *s) {
  tarn__plan_memory *memory = &s->memory;
  size_t room = problem->count + 1;
  *s = (sharing){.problem = problem, .left_out = left_out, .arenas = arenas};
  s->order = tarn__plan_array(memory, room, sizeof *s->order);
  s->rank = tarn__plan_array(memory, room, sizeof *s->rank);
  s->giver_mate = tarn__plan_array(memory, room, sizeof *s->giver_mate);
  s->taker_mate = tarn__plan_array(memory, room, sizeof *s->taker_mate);
  s->gives = tarn__plan_array(memory, room, sizeof *s->gives);
  s->takes = tarn__plan_array(memory, room, sizeof *s->takes);
  if (memory->failed) return TARN_E_NOMEM;
  tarn_status status = rank(s);
  if (status == TARN_OK) status = make_sums(problem, &s->sums);
  if (status == TARN_OK) {
    status = tarn__plan_pairs_make(problem, left_out, &s->pairs);
  }
  if (status != TARN_OK) return status;
  for (uint32_t i = 0; i < s->pairs.count; i++) {
    s->giver_mate[s->pairs.mates[i].giver] = i + 1;
    s->taker_mate[s->pairs.mates[i].taker] = i + 1;
  }
  for (size_t i = 0; i < problem->count; i++)
    arenas[i] = NO_ARENA;
  return TARN_OK;
}

static void free_sharing(sharing *s) {
  tarn__plan_memory_free(&s->memory);
  tarn__plan_memory_free(&s->sums.memory);
  tarn__plan_pairs_free(&s->pairs);
}

// --- what is live ------------------------------------------------------------

// The mate of |buffer|, as giver or as taker, that saves most in the same arena
// and is not merged otherwise; NULL: none.
static const tarn__plan_mate *best_mate(const sharing *s, uint32_t buffer,
                                        bool as_giver, size_t arena) {
  uint32_t first = as_giver ? s->giver_mate[buffer] : s->taker_mate[buffer];
  const tarn__plan_mate *best = NULL;
  if (first == 0) return NULL;
  uint32_t at = first - 1;
  do {
    const tarn__plan_mate *mate = &s->pairs.mates[at];
    uint32_t other = as_giver ? mate->taker : mate->giver;
    bool free = as_giver ? !s->takes[other] : !s->gives[other];
    if (free && s->arenas[other] == arena &&
        (best == NULL || mate->saving > best->saving)) {
      best = mate;
    }
    at = as_giver ? mate->next_of_giver : mate->next_of_taker;
  } while (at != first - 1);
  return best;
}

// A run of steps in which a buffer needs |size|.
typedef struct need {
  uint64_t first;
  uint64_t last;
  uint64_t size;
} need;

// Whether |n| leaves no more than |capacity| live; with |put| it is added.
static bool meets(sharing *s, need n, uint64_t capacity, bool put) {
  if (n.first >= n.last) return true;
  if (put) add_live(&s->sums, n.first, n.last, n.size);
  uint64_t live = put ? 0 : most_live(&s->sums, n.first, n.last);
  return put || (n.size <= capacity && live <= capacity - n.size);
}

// All runs of a buffer, with what its mates save in its first and last step.
static bool all_meet(sharing *s, uint32_t buffer, const tarn__plan_mate *before,
                     const tarn__plan_mate *after, uint64_t capacity,
                     bool put) {
  const tarn_plan_buffer *b = &s->problem->buffers[buffer];
  uint64_t from = b->first + (before != NULL);
  uint64_t to = b->last - (after != NULL);
  bool good = true;
  for (size_t i = 0; i <= b->gap_count; i++) {
    tarn_plan_gap run = tarn__plan_run_of(b, i);
    if (i == 0) run.first = from;
    if (i == b->gap_count) run.last = to;
    good &= meets(s, (need){run.first, run.last, b->size}, capacity, put);
  }
  if (before != NULL) {
    need n = {b->first, b->first + 1, b->size - before->saving};
    good &= meets(s, n, capacity, put);
  }
  if (after != NULL) {
    need n = {b->last - 1, b->last, b->size - after->saving};
    good &= meets(s, n, capacity, put);
  }
  return good;
}

static bool put(sharing *s, uint32_t buffer, size_t arena, uint64_t capacity,
                bool must) {
  const tarn__plan_mate *before = best_mate(s, buffer, false, arena);
  const tarn__plan_mate *after = best_mate(s, buffer, true, arena);
  if (!must && !all_meet(s, buffer, before, after, capacity, false)) {
    return false;
  }
  (void)all_meet(s, buffer, before, after, capacity, true);
  s->arenas[buffer] = (uint32_t)arena;
  if (before != NULL) s->gives[before->giver] = s->takes[buffer] = true;
  if (after != NULL) s->gives[buffer] = s->takes[after->taker] = true;
  return true;
}

// Puts the buffers into |arena| that are bound to it, then, in order of rank,
// each that has no arena yet and has room beside those before it.
static void choose(sharing *s, size_t arena) {
  uint64_t capacity = tarn__plan_capacity(s->problem, arena);
  if (capacity == 0) capacity = UINT64_MAX;
  clear_sums(&s->sums);
  memset(s->gives, 0, s->problem->count * sizeof *s->gives);
  memset(s->takes, 0, s->problem->count * sizeof *s->takes);
  for (int must = 1; must >= 0; must--) {
    for (size_t i = 0; i < s->problem->count; i++) {
      uint32_t buffer = s->order[i];
      uint32_t flags = s->problem->buffers[buffer].flags;
      bool bound = (flags & TARN_PLAN_IN_ARENA) != 0;
      if (bound != (must != 0) || !is_taken(s, buffer) ||
          s->arenas[buffer] != NO_ARENA ||
          !tarn__plan_may_lie_in(&s->problem->buffers[buffer], arena)) {
        continue;
      }
      put(s, buffer, arena, capacity, bound);
    }
  }
}

// --- filling -----------------------------------------------------------------

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
  sharing shared;
  uint32_t *bound_to;  // by arena: how many must lie in it
  bool *left_out;      // by buffer: not in the arena in question
  bool *goes;          // by buffer
  uint32_t *gone;      // those that went from the arena in question
  size_t gone_count;
  block *blocks;  // what is live with a buffer that is put back
  bool proved;    // that there is no plan
  bool optimal;   // of the arena in question
  tarn__plan_memory memory;
} filling;

static const tarn_plan_buffer *buffer_at(const filling *f, size_t index) {
  return &f->fill->problem->buffers[index];
}

// --- one arena ---------------------------------------------------------------

static bool is_bound(const filling *f, size_t buffer) {
  return (buffer_at(f, buffer)->flags & TARN_PLAN_IN_ARENA) != 0;
}

// Marks the buffers of |arena|; |bound|: only those that are bound to it.
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
                             tarn__plan_found *out) {
  tarn__plan_fill set = {
      .problem = f->fill->problem,
      .left_out = f->left_out,
      .capacity = tarn__plan_capacity(f->fill->problem, arena),
      .minimise = f->fill->minimise,
      .node_limit = nodes};
  return tarn__plan_set_solve(f->call, &set, f->plan->offsets, out);
}

static void let_go(filling *f, uint32_t buffer) {
  f->plan->arenas[buffer] = NO_ARENA;
  f->gone[f->gone_count++] = buffer;
}

static bool live_together(const tarn_plan_buffer *a,
                          const tarn_plan_buffer *b) {
  return a->first < b->last && b->first < a->last;
}

static bool sticks_out(const filling *f, size_t buffer, size_t arena) {
  uint64_t capacity = tarn__plan_capacity(f->fill->problem, arena);
  return f->plan->arenas[buffer] == arena &&
         f->plan->offsets[buffer] + buffer_at(f, buffer)->size > capacity;
}

// The last to choose of those beside |buffer| that need not be here; NO_ARENA:
// there is none.
static uint32_t least_beside(const filling *f, size_t buffer, size_t arena) {
  uint32_t least = NO_ARENA;
  for (uint32_t i = 0; i < f->fill->problem->count; i++) {
    if (f->plan->arenas[i] != arena || is_bound(f, i) ||
        !live_together(buffer_at(f, i), buffer_at(f, buffer))) {
      continue;
    }
    if (least == NO_ARENA || f->shared.rank[i] > f->shared.rank[least]) {
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
  for (size_t i = f->fill->problem->count; i > 0; i--) {
    uint32_t buffer = f->shared.order[i - 1];
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
        !live_together(buffer_at(f, i), buffer_at(f, buffer))) {
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
    f->gone[i] = f->shared.rank[f->gone[i]];
  qsort(f->gone, f->gone_count, sizeof *f->gone, by_number);
  for (size_t i = 0; i < f->gone_count; i++) {
    if (i % 64 == 63 && tarn__plan_call_late(f->call)) break;
    put_back(f, f->shared.order[f->gone[i]], arena);
  }
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
    tarn_status status = solve_set(f, arena, ROUND_NODES, &placed);
    if (status != TARN_OK) return status;
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
  for (size_t i = 0; i < f->fill->problem->count; i++) {
    if (is_taken(&f->shared, i) && f->plan->arenas[i] == NO_ARENA) {
      return true;
    }
  }
  return false;
}

// With nothing left to place, the arena may spend all that is left.
static tarn_status improve(filling *f, size_t arena) {
  uint64_t capacity = tarn__plan_capacity(f->fill->problem, arena);
  bool wanted = f->fill->minimise || capacity == 0;
  if (!wanted || f->optimal || tarn__plan_call_over(f->call)) return TARN_OK;
  if (anyone_left(f)) return TARN_OK;
  tarn_plan *other = NULL;
  tarn_status status = tarn__plan_make(f->fill->problem, &other);
  tarn__plan_found placed = {.height = UINT64_MAX};
  if (status == TARN_OK) {
    memcpy(other->offsets, f->plan->offsets,
           f->fill->problem->count * sizeof *other->offsets);
    (void)name_set(f, arena, false);
    status = solve_set(f, arena, f->fill->node_limit, &placed);
  }
  if (other != NULL && (status != TARN_OK || !tarn__plan_fits(placed.answer))) {
    uint64_t *offsets = f->plan->offsets;
    f->plan->offsets = other->offsets;
    other->offsets = offsets;
  }
  tarn_plan_destroy(other);
  return TARN_OK;  // there is a plan
}

// Buffers that are bound to |arena| and do not fit are a proof.
static tarn_status check_bound(filling *f, size_t arena) {
  tarn__plan_found placed;
  if (f->bound_to[arena] == 0) return TARN_OK;
  (void)name_set(f, arena, true);
  tarn_status status = solve_set(f, arena, ROUND_NODES, &placed);
  if (status == TARN_OK) f->proved = placed.answer == TARN_PLAN_INFEASIBLE;
  return status;
}

static tarn_status fill_arena(filling *f, size_t arena, bool *settled) {
  choose(&f->shared, arena);
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
    if (is_taken(&f->shared, i) &&
        !tarn__plan_fits_alone(problem, buffer_at(f, i), largest)) {
      return true;
    }
  }
  return tarn__plan_pairs_bound(&f->shared.pairs) > tarn__plan_room(problem);
}

static void count_bound(filling *f) {
  for (size_t i = 0; i < f->fill->problem->count; i++) {
    if (is_taken(&f->shared, i) && is_bound(f, i)) {
      f->bound_to[buffer_at(f, i)->arena]++;
    }
  }
}

static bool measure(filling *f) {
  bool all_in_first = true;
  for (size_t i = 0; i < f->fill->problem->count; i++) {
    if (!is_taken(&f->shared, i)) continue;
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
  tarn__plan_memory *memory = &f->memory;
  size_t room = f->fill->problem->count + 1;
  f->bound_to =
      tarn__plan_array(memory, f->plan->arena_count, sizeof *f->bound_to);
  f->left_out = tarn__plan_array(memory, room, sizeof *f->left_out);
  f->goes = tarn__plan_array(memory, room, sizeof *f->goes);
  f->gone = tarn__plan_array(memory, room, sizeof *f->gone);
  f->blocks = tarn__plan_array(memory, room, sizeof *f->blocks);
  return tarn__plan_memory_status(memory);
}

static tarn_status fill_or_prove(filling *f) {
  uint64_t bound = tarn__plan_pairs_bound(&f->shared.pairs);
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
  tarn_status status =
      make_sharing(fill->problem, fill->left_out, plan->arenas, &f.shared);
  if (status == TARN_OK) status = make_filling(&f);
  if (status == TARN_OK) status = fill_or_prove(&f);
  if (status == TARN_OK) conclude(&f);
  free_sharing(&f.shared);
  tarn__plan_memory_free(&f.memory);
  return status;
}
