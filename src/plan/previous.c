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
  uint32_t *sorted;           // buffers
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
  for (int i = 0; i < 2; i++) {
    TARN__TRY(tarn__plan_overlap_sift(in, h->offsets, h->firm, h->left));
    memcpy(h->firm, h->left, in->item_count);
  }
  for (size_t i = 0; i < in->buffer_count; i++) {
    uint32_t item = in->item_of[i];
    if (item != TARN__PLAN_NO_ITEM && !h->left[item]) h->stays[i] = false;
  }
  return TARN_OK;
}

// Pairs with one previous offset are one item.
static tarn_status sift_arena(holding *h, size_t arena) {
  tarn__plan_instance in;
  tarn_status status =
      tarn__plan_fixed_instance(&h->held, arena, h->left_out, &in);
  if (status == TARN_OK) status = sift_twice(h, &in);
  tarn__plan_instance_free(&in);
  return status;
}

static tarn_status sift(holding *h) {
  for (size_t i = 0; i < h->problem->count; i++)
    h->stays[i] = can_stay(h, i);
  fix_all(h);
  for (size_t i = 0; i < tarn__plan_arena_count(h->problem); i++)
    TARN__TRY(sift_arena(h, i));
  return TARN_OK;
}

// --- holding -----------------------------------------------------------------

// Lets half of the buffers go, those of least worth.
static tarn_status let_half_go(holding *h) {
  size_t count = 0;
  for (uint32_t i = 0; i < h->problem->count; i++) {
    if (h->stays[i]) h->sorted[count++] = i;
  }
  TARN__TRY(tarn__plan_sort(h->problem, TARN__PLAN_BY_WORTH, h->sorted, count));
  for (size_t i = count / 2; i < count; i++)
    h->stays[h->sorted[i]] = false;
  return TARN_OK;
}

// |problem|: with what is held, or as it is.
static tarn_status fill(holding *h, const tarn_plan_problem *problem,
                        uint64_t nodes, tarn_plan *plan) {
  bool is_whole = problem == h->problem;
  tarn__plan_fill fill = {.problem = problem,
                          .capacity = is_whole ? 0 : h->ceiling,
                          .minimise = h->call->options.minimise,
                          .is_whole = is_whole,
                          .node_limit = nodes};
  return tarn__plan_fill_in(h->call, &fill, plan);
}

static tarn_status hold(holding *h, bool *held) {
  TARN__TRY(sift(h));
  for (int i = 0; i < TRIES && !*held; i++) {
    if (i > 0) TARN__TRY(let_half_go(h));
    if (tarn__plan_call_over(h->call)) break;
    fix_all(h);
    TARN__TRY(fill(h, &h->held, TRY_NODES, h->tried));
    *held = tarn__plan_fits(h->tried->info.answer) &&
            (h->ceiling == 0 || h->tried->info.height <= h->ceiling);
  }
  return TARN_OK;
}

// --- the answer --------------------------------------------------------------

static void keep_previous(const tarn__plan_call *call,
                          const tarn_plan_problem *problem, tarn_plan *plan) {
  const uint32_t *arenas = call->options.previous_arenas;
  for (size_t i = 0; i < problem->count; i++) {
    plan->offsets[i] = call->options.previous[i];
    plan->arenas[i] = arenas == NULL ? 0 : arenas[i];
  }
  tarn__plan_complete(problem, NULL, call->bound, plan);
}

// A plan to fall back on. With limits one that is found at once will do, since
// the tries to keep offsets may take all of the time; without limits its height
// is the ceiling, so it gets some nodes.
static tarn_status fill_first(holding *h) {
  bool limited = tarn__plan_room(h->problem) != UINT64_MAX;
  tarn_status status = fill(h, h->problem, limited ? 1 : TRY_NODES, h->plan);
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
  TARN__TRY(fill(h, h->problem, 0, h->tried));
  bool better = tarn__plan_fits(h->tried->info.answer) &&
                h->tried->info.height <= h->plan->info.height;
  if (better || !planned) tarn__plan_swap(h->plan, h->tried);
  return TARN_OK;
}

static tarn_status hold_or_not(holding *h) {
  bool held = false;
  TARN__TRY(fill_first(h));
  if (h->plan->info.answer == TARN_PLAN_INFEASIBLE) return TARN_OK;
  uint64_t bound = h->plan->info.lower_bound;
  bool planned = tarn__plan_fits(h->plan->info.answer);
  tarn_status status = hold(h, &held);
  if (held) {
    tarn__plan_complete(h->problem, NULL, bound, h->tried);
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
  h->sorted = tarn__plan_array(memory, room, sizeof *h->sorted);
  h->left_out = tarn__plan_array(memory, room, sizeof *h->left_out);
  h->offsets = tarn__plan_array(memory, room, sizeof *h->offsets);
  h->firm = tarn__plan_array(memory, room, sizeof *h->firm);
  h->left = tarn__plan_array(memory, room, sizeof *h->left);
  if (status != TARN_OK || memory->failed) return TARN_E_NOMEM;
  h->held = *h->problem;
  h->held.buffers = h->buffers;
  TARN__TRY(hold_or_not(h));
  count_moved(h);
  return TARN_OK;
}

tarn_status tarn__plan_from_previous(tarn__plan_call *call,
                                     const tarn_plan_problem *problem,
                                     tarn_plan *plan) {
  uint64_t height = 0;
  TARN__TRY(tarn_plan_lower_bound(problem, &call->bound));
  tarn_status status = tarn_plan_verify(problem, call->options.previous,
                                        call->options.previous_arenas, &height);
  if (status == TARN_OK) {
    keep_previous(call, problem, plan);
    return TARN_OK;
  }
  if (status != TARN_E_CORRUPT) return status;
  holding h = {.call = call, .problem = problem, .plan = plan};
  status = make_anew(&h);
  tarn_plan_destroy(h.tried);
  tarn__plan_memory_free(&h.memory);
  return status;
}
