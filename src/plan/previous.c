// Buffers keep their offsets by being fixed: the rest is an ordinary problem.
//
// Buffers that have grown may collide at their old offsets. A first sweep over
// all of them keeps the larger ones; a second sweep, in which those are firm,
// adds the ones that collide with none that was kept.
//
// The kept buffers may leave no room for the rest. Then a half of them is kept,
// a quarter, an eighth, those of most bytes times steps; at last none.
#include "plan/call.h"

#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "plan/overlap.h"
#include "plan/pairs.h"

// How often it is tried to hold a part, and the nodes that a try has, or a
// plan made afresh to compare it with.
enum { TRIES = 4, TRY_NODES = 20000 };

typedef struct holding {
  tarn__plan_call *call;
  const tarn_plan_problem *problem;
  tarn_plan *plan;
  tarn_plan *tried;
  tarn_plan_problem held;     // with |buffers|
  tarn_plan_buffer *buffers;  // those that are held are fixed
  bool *stays;                // by buffer
  bool *left_out;             // by buffer: not in the arena in question
  uint64_t *offsets;          // by item
  bool *firm;                 // by item
  bool *left;                 // by item
  uint64_t ceiling;           // bytes; 0: the capacities alone
  tarn__plan_memory memory;
} holding;

// --- which could stay --------------------------------------------------------

static uint32_t arena_of(const holding *h, size_t buffer) {
  const uint32_t *arenas = h->call->options.previous_arenas;
  return arenas == NULL ? 0 : arenas[buffer];
}

// The highest end in |arena|, low enough for sums of it and all sizes.
static uint64_t limit_of(const holding *h, size_t arena) {
  uint64_t limit = tarn__plan_capacity(h->problem, arena);
  if (limit == 0 || limit > UINT64_C(1) << 62) limit = UINT64_C(1) << 62;
  return h->ceiling != 0 && h->ceiling < limit ? h->ceiling : limit;
}

static bool can_stay(const holding *h, size_t buffer) {
  const tarn_plan_buffer *b = &h->problem->buffers[buffer];
  uint64_t offset = h->call->options.previous[buffer];
  uint32_t arena = arena_of(h, buffer);
  if (offset == TARN_PLAN_NO_OFFSET) return false;
  if (arena >= tarn__plan_arena_count(h->problem)) return false;
  uint64_t limit = limit_of(h, arena);
  bool bound = (b->flags & TARN_PLAN_IN_ARENA) != 0;
  return (b->flags & TARN_PLAN_FIXED) == 0 && (!bound || b->arena == arena) &&
         offset % tarn__plan_alignment(b) == 0 && b->size <= limit &&
         offset <= limit - b->size;
}

static void fix(holding *h, size_t buffer) {
  tarn_plan_buffer *b = &h->buffers[buffer];
  b->flags |= TARN_PLAN_FIXED | TARN_PLAN_IN_ARENA;
  b->offset = h->call->options.previous[buffer];
  b->arena = arena_of(h, buffer);
}

static bool is_fixed(const holding *h, size_t buffer) {
  return (h->problem->buffers[buffer].flags & TARN_PLAN_FIXED) != 0;
}

// The problem's buffers, with those in |stays| fixed.
static void fix_all(holding *h) {
  memcpy(h->buffers, h->problem->buffers,
         h->problem->count * sizeof *h->buffers);
  for (size_t i = 0; i < h->problem->count; i++) {
    if (h->stays[i]) fix(h, i);
  }
}

// --- which do not collide ----------------------------------------------------

static tarn_status sift_twice(holding *h, const tarn__plan_instance *in) {
  for (size_t i = 0; i < in->item_count; i++)
    h->firm[i] = false;
  for (size_t i = 0; i < in->buffer_count; i++) {
    uint32_t item = in->item_of[i];
    if (item == TARN__PLAN_NO_ITEM) continue;
    h->offsets[item] = h->buffers[i].offset;
    h->firm[item] |= is_fixed(h, i);
  }
  tarn_status status =
      tarn__plan_overlap_sift(in, h->offsets, h->firm, h->left);
  if (status != TARN_OK) return status;
  memcpy(h->firm, h->left, in->item_count);
  status = tarn__plan_overlap_sift(in, h->offsets, h->firm, h->left);
  for (size_t i = 0; status == TARN_OK && i < in->buffer_count; i++) {
    uint32_t item = in->item_of[i];
    if (item != TARN__PLAN_NO_ITEM && !h->left[item]) h->stays[i] = false;
  }
  return status;
}

// Pairs with one previous offset are one item.
static tarn_status sift_arena(holding *h, size_t arena) {
  for (size_t i = 0; i < h->problem->count; i++) {
    const tarn_plan_buffer *b = &h->buffers[i];
    bool in = (b->flags & TARN_PLAN_FIXED) != 0 &&
              ((b->flags & TARN_PLAN_IN_ARENA) == 0 || b->arena == arena);
    h->left_out[i] = !in;
  }
  tarn__plan_instance in;
  tarn_status status = tarn__plan_pairs_instance(&h->held, h->left_out, &in);
  if (status == TARN_OK) status = sift_twice(h, &in);
  tarn__plan_instance_free(&in);
  return status;
}

static tarn_status sift(holding *h) {
  tarn_status status = TARN_OK;
  for (size_t i = 0; i < h->problem->count; i++)
    h->stays[i] = can_stay(h, i);
  fix_all(h);
  size_t arenas = tarn__plan_arena_count(h->problem);
  for (size_t i = 0; status == TARN_OK && i < arenas; i++) {
    status = sift_arena(h, i);
  }
  return status;
}

// --- holding -----------------------------------------------------------------

// Lets half of the buffers go, those of least worth.
static tarn_status let_half_go(holding *h) {
  size_t room = h->problem->count + 1;
  size_t count = 0;
  tarn__plan_sorted *all = tarn__host_array(room, sizeof *all);
  if (all == NULL) return TARN_E_NOMEM;
  for (uint32_t i = 0; i < h->problem->count; i++) {
    const tarn_plan_buffer *b = &h->problem->buffers[i];
    if (!h->stays[i]) continue;
    all[count++] =
        (tarn__plan_sorted){.minor = tarn__plan_worth(b), .buffer = i};
  }
  tarn__plan_sort(all, count);
  for (size_t i = count / 2; i < count; i++)
    h->stays[all[i].buffer] = false;
  tarn__host_free_array(all, room, sizeof *all);
  return TARN_OK;
}

static tarn_status hold(holding *h, bool *held) {
  tarn_status status = sift(h);
  *held = false;
  for (int i = 0; status == TARN_OK && i < TRIES && !*held; i++) {
    if (i > 0) status = let_half_go(h);
    if (status != TARN_OK || tarn__plan_call_over(h->call)) break;
    fix_all(h);
    tarn__plan_fill fill = {.problem = &h->held,
                            .capacity = h->ceiling,
                            .minimise = h->call->options.minimise,
                            .node_limit = TRY_NODES};
    status = tarn__plan_fill_in(h->call, &fill, h->tried);
    *held = status == TARN_OK && tarn__plan_fits(h->tried->info.answer) &&
            (h->ceiling == 0 || h->tried->info.height <= h->ceiling);
  }
  return status;
}

// --- the answer --------------------------------------------------------------

static bool all_in_first(const tarn_plan *plan) {
  for (size_t i = 0; i < plan->info.count; i++) {
    if (plan->arenas[i] != 0) return false;
  }
  return true;
}

// Completes a plan that has only offsets and arenas.
static void judge(tarn_plan *plan, uint64_t height, uint64_t bound) {
  plan->has_offsets = true;
  plan->info.height = height;
  plan->info.lower_bound = bound;
  bool optimal = height <= bound && all_in_first(plan);
  plan->info.answer = optimal ? TARN_PLAN_OPTIMAL : TARN_PLAN_FEASIBLE;
}

static void keep_previous(const tarn__plan_call *call,
                          const tarn_plan_problem *problem, tarn_plan *plan,
                          uint64_t height) {
  for (size_t i = 0; i < problem->count; i++) {
    const uint32_t *arenas = call->options.previous_arenas;
    uint64_t end = call->options.previous[i] + problem->buffers[i].size;
    plan->offsets[i] = call->options.previous[i];
    plan->arenas[i] = arenas == NULL ? 0 : arenas[i];
    uint64_t *top = &plan->heights[plan->arenas[i]];
    if (*top < end) *top = end;
  }
  judge(plan, height, call->bound);
}

static tarn_status fill_afresh(holding *h, uint64_t nodes, tarn_plan *plan) {
  tarn__plan_fill fill = {.problem = h->problem,
                          .minimise = h->call->options.minimise,
                          .is_whole = true,
                          .node_limit = nodes};
  return tarn__plan_fill_in(h->call, &fill, plan);
}

static bool has_limits(const tarn_plan_problem *problem) {
  for (size_t i = 0; i < tarn__plan_arena_count(problem); i++) {
    if (tarn__plan_capacity(problem, i) == 0) return false;
  }
  return true;
}

// A plan to fall back on. With limits one that is found at once will do, since
// the tries to keep offsets may take all of the time; without limits its height
// is the ceiling, so it gets some nodes.
static tarn_status fill_first(holding *h) {
  bool limited = has_limits(h->problem);
  tarn_status status = fill_afresh(h, limited ? 1 : TRY_NODES, h->plan);
  if (!limited) h->ceiling = h->plan->info.height;
  return status;
}

// No offset could be kept: improves the first plan, if a better one is wanted.
static tarn_status improve(holding *h) {
  bool planned = tarn__plan_fits(h->plan->info.answer);
  bool lowest = h->call->options.minimise || h->ceiling != 0;
  bool enough = planned && (!lowest || tarn__plan_call_over(h->call) ||
                            h->plan->info.answer == TARN_PLAN_OPTIMAL);
  if (enough) return TARN_OK;
  tarn_status status = fill_afresh(h, 0, h->tried);
  if (status != TARN_OK) return status;
  bool better = tarn__plan_fits(h->tried->info.answer) &&
                h->tried->info.height <= h->plan->info.height;
  if (better || !planned) tarn__plan_swap(h->plan, h->tried);
  return TARN_OK;
}

static tarn_status hold_or_not(holding *h) {
  bool held = false;
  tarn_status status = fill_first(h);
  if (status != TARN_OK) return status;
  if (h->plan->info.answer == TARN_PLAN_INFEASIBLE) return TARN_OK;
  uint64_t bound = h->plan->info.lower_bound;
  bool planned = tarn__plan_fits(h->plan->info.answer);
  status = hold(h, &held);
  if (held) {
    judge(h->tried, h->tried->info.height, bound);
    tarn__plan_swap(h->plan, h->tried);
  } else if (status == TARN_OK) {
    status = improve(h);
  }
  return planned ? TARN_OK : status;  // only a better plan is missing
}

static void count_moved(holding *h) {
  tarn_plan *plan = h->plan;
  if (!plan->has_offsets) return;
  for (size_t i = 0; i < h->problem->count; i++) {
    bool same = plan->offsets[i] == h->call->options.previous[i] &&
                plan->arenas[i] == arena_of(h, i);
    bool was = h->call->options.previous[i] != TARN_PLAN_NO_OFFSET;
    plan->info.moved_count += was && !same;
  }
}

static tarn_status make_anew(holding *h) {
  tarn__plan_memory *memory = &h->memory;
  size_t room = h->problem->count + 1;
  tarn_status status = tarn__plan_make(h->problem, &h->tried);
  h->buffers = tarn__plan_array(memory, room, sizeof *h->buffers);
  h->stays = tarn__plan_array(memory, room, sizeof *h->stays);
  h->left_out = tarn__plan_array(memory, room, sizeof *h->left_out);
  h->offsets = tarn__plan_array(memory, room, sizeof *h->offsets);
  h->firm = tarn__plan_array(memory, room, sizeof *h->firm);
  h->left = tarn__plan_array(memory, room, sizeof *h->left);
  if (status != TARN_OK || memory->failed) return TARN_E_NOMEM;
  h->held = *h->problem;
  h->held.buffers = h->buffers;
  status = hold_or_not(h);
  if (status == TARN_OK) count_moved(h);
  return status;
}

tarn_status tarn__plan_from_previous(tarn__plan_call *call,
                                     const tarn_plan_problem *problem,
                                     tarn_plan *plan) {
  uint64_t height = 0;
  tarn_status status = tarn_plan_lower_bound(problem, &call->bound);
  if (status != TARN_OK) return status;
  status = tarn_plan_verify(problem, call->options.previous,
                            call->options.previous_arenas, &height);
  if (status == TARN_OK) {
    keep_previous(call, problem, plan, height);
    return TARN_OK;
  }
  if (status != TARN_E_CORRUPT) return status;
  holding h = {.call = call, .problem = problem, .plan = plan};
  status = make_anew(&h);
  tarn_plan_destroy(h.tried);
  tarn__plan_memory_free(&h.memory);
  return status;
}
