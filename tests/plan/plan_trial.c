// Small problems, solved by trying.
//
// Take, of all plans of least height, one whose offsets have the least sum.
// What lies at one offset and shares in place moves together, so call it a
// group. No group can go lower while the others stay. One that begins above it
// is not in its way, so what keeps it up begins below: it lies as low as it can
// among the fixed ones and those groups that begin lower. So this plan comes
// up when groups are put in the order of their offsets, each as low as it goes,
// and all orders are tried, for all choices of pairs that share.
#include <string.h>

#include "plan_model.h"

// Those that lie at one offset because they share in place.
typedef struct group {
  uint32_t members;
  uint64_t alignment;
  bool fixed;
  uint64_t offset;
} group;

typedef struct trial {
  const model_scene *scene;
  uint32_t mask;
  uint32_t conflicts[MODEL_MOST];  // with whom a byte may not be shared
  group groups[MODEL_MOST];
  size_t group_count;
  uint64_t offsets[MODEL_MOST];
  uint64_t best;
  uint64_t enough;  // a height at which to stop
} trial;

static uint64_t gcd(uint64_t a, uint64_t b) {
  return b == 0 ? a : gcd(b, a % b);
}

// Two of a chosen pair may share, all others that meet may not.
static void find_conflicts(trial *t, uint32_t chosen) {
  size_t count = t->scene->problem.count;
  memset(t->conflicts, 0, sizeof t->conflicts);
  for (size_t a = 0; a < count; a++) {
    for (size_t b = 0; b < count; b++) {
      if (a == b || !model_meet(&t->scene->buffers[a], &t->scene->buffers[b]))
        continue;
      t->conflicts[a] |= 1u << b;
    }
  }
  for (size_t i = 0; i < t->scene->problem.pair_count; i++) {
    const tarn_plan_pair *pair = &t->scene->pairs[i];
    if ((chosen >> i & 1) == 0) continue;
    t->conflicts[pair->giver] &= ~(1u << pair->taker);
    t->conflicts[pair->taker] &= ~(1u << pair->giver);
  }
}

// All that hangs together with |members| by chosen pairs.
static uint32_t closure(const trial *t, uint32_t chosen, uint32_t members) {
  uint32_t before = 0;
  while (before != members) {
    before = members;
    for (size_t i = 0; i < t->scene->problem.pair_count; i++) {
      const tarn_plan_pair *pair = &t->scene->pairs[i];
      uint32_t both = 1u << pair->giver | 1u << pair->taker;
      if ((chosen >> i & 1) != 0 && (members & both) != 0) members |= both;
    }
  }
  return members;
}

// False if its members cannot lie at one offset.
static bool make_group(trial *t, uint32_t members, group *out) {
  *out = (group){.members = members, .alignment = 1};
  for (size_t i = 0; i < t->scene->problem.count; i++) {
    const tarn_plan_buffer *b = &t->scene->buffers[i];
    uint64_t alignment = b->alignment == 0 ? 1 : b->alignment;
    if ((members >> i & 1) == 0) continue;
    if ((t->conflicts[i] & members) != 0) return false;
    out->alignment *= alignment / gcd(out->alignment, alignment);
    if ((b->flags & TARN_PLAN_FIXED) == 0) continue;
    if (out->fixed && out->offset != b->offset) return false;
    out->fixed = true;
    out->offset = b->offset;
  }
  return !out->fixed || out->offset % out->alignment == 0;
}

static bool make_groups(trial *t, uint32_t chosen) {
  uint32_t left = t->mask;
  t->group_count = 0;
  while (left != 0) {
    uint32_t members = closure(t, chosen, left & (~left + 1));
    if (!make_group(t, members, &t->groups[t->group_count++])) return false;
    left &= ~members;
  }
  return true;
}

// Where a member of |g| at |offset| must go at least, because of the placed.
static uint64_t pushed_to(const trial *t, const group *g, uint64_t offset,
                          uint32_t placed) {
  for (size_t i = 0; i < t->scene->problem.count; i++) {
    if ((g->members >> i & 1) == 0) continue;
    uint64_t end = offset + t->scene->buffers[i].size;
    for (size_t j = 0; j < t->scene->problem.count; j++) {
      if ((placed & t->conflicts[i] & 1u << j) == 0) continue;
      uint64_t other = t->offsets[j] + t->scene->buffers[j].size;
      if (offset < other && t->offsets[j] < end) return other;
    }
  }
  return offset;
}

static uint64_t lowest_place(const trial *t, const group *g, uint32_t placed) {
  uint64_t offset = g->fixed ? g->offset : 0;
  for (;;) {
    uint64_t to = pushed_to(t, g, offset, placed);
    if (to == offset) return offset;
    if (g->fixed) return UINT64_MAX;
    offset = (to + g->alignment - 1) / g->alignment * g->alignment;
  }
}

// The height with |g| at |offset|.
static uint64_t put(trial *t, const group *g, uint64_t offset,
                    uint64_t height) {
  for (size_t i = 0; i < t->scene->problem.count; i++) {
    if ((g->members >> i & 1) == 0) continue;
    t->offsets[i] = offset;
    uint64_t end = offset + t->scene->buffers[i].size;
    if (end > height) height = end;
  }
  return height;
}

// None goes below |from|, where the one before it lies, whose number is
// |number| - 1; those at one offset, which are not in each other's way, go in
// the order of their numbers.
static void try_orders(trial *t, uint32_t placed, uint64_t from, size_t number,
                       uint64_t height) {
  if (height >= t->best || t->best <= t->enough) return;
  if (placed == t->mask) {
    t->best = height;
    return;
  }
  for (size_t i = 0; i < t->group_count; i++) {
    const group *g = &t->groups[i];
    if ((placed & g->members) != 0) continue;
    uint64_t offset = lowest_place(t, g, placed);
    if (offset == UINT64_MAX || offset < from) continue;
    if (offset == from && i < number) continue;
    try_orders(t, placed | g->members, offset, i + 1,
               put(t, g, offset, height));
  }
}

static bool is_live(const tarn_plan_buffer *b, uint64_t step) {
  for (size_t i = 0; i <= b->gap_count; i++) {
    if (model_part_first(b, i) <= step && step < model_part_last(b, i))
      return true;
  }
  return false;
}

// What |step| needs at least.
static uint64_t needed_in(const trial *t, uint64_t step) {
  uint64_t sum = 0;
  for (size_t g = 0; g < t->group_count; g++) {
    uint64_t most = 0;
    for (size_t i = 0; i < t->scene->problem.count; i++) {
      const tarn_plan_buffer *b = &t->scene->buffers[i];
      if ((t->groups[g].members >> i & 1) == 0 || !is_live(b, step)) continue;
      if (b->size > most) most = b->size;
    }
    sum += most;
  }
  return sum;
}

static bool is_hopeless(const trial *t) {
  for (size_t i = 0; i < t->scene->problem.count; i++) {
    if ((t->mask >> i & 1) == 0) continue;
    const tarn_plan_buffer *b = &t->scene->buffers[i];
    for (size_t part = 0; part <= b->gap_count; part++) {
      if (needed_in(t, model_part_first(b, part)) >= t->best) return true;
    }
  }
  return false;
}

// Fixed ones are there before all others.
static void try_choice(trial *t, uint32_t chosen) {
  uint32_t placed = 0;
  uint64_t height = 0;
  find_conflicts(t, chosen);
  if (!make_groups(t, chosen) || is_hopeless(t)) return;
  for (size_t i = 0; i < t->group_count; i++) {
    const group *g = &t->groups[i];
    if (!g->fixed) continue;
    if (lowest_place(t, g, placed) == UINT64_MAX) return;
    height = put(t, g, g->offset, height);
    placed |= g->members;
  }
  try_orders(t, placed, 0, 0, height);
}

// The least height that is below |limit|, or one that is |enough|; |limit| if
// there is none.
static uint64_t try_all(const model_scene *scene, uint32_t mask, uint64_t limit,
                        uint64_t enough) {
  trial t = {.scene = scene, .mask = mask, .best = limit, .enough = enough};
  uint32_t possible = 0;
  if (mask == 0) return 0;
  for (size_t i = 0; i < scene->problem.pair_count; i++) {
    const tarn_plan_pair *pair = &scene->pairs[i];
    possible |= (mask >> pair->giver & mask >> pair->taker & 1) << i;
  }
  for (uint32_t chosen = 0; chosen <= possible; chosen++) {
    if ((chosen & ~possible) == 0) try_choice(&t, chosen);
  }
  return t.best;
}

uint64_t model_least(const model_scene *scene, uint32_t mask) {
  return try_all(scene, mask, UINT64_MAX, 0);
}

uint64_t model_least_merged(const model_scene *scene) {
  trial t = {.scene = scene,
             .mask = (1u << scene->problem.count) - 1,
             .best = UINT64_MAX};
  try_choice(&t, (1u << scene->problem.pair_count) - 1);
  return t.best;
}

// --- arenas ------------------------------------------------------------------

static bool may_be_in(const tarn_plan_buffer *b, size_t arena) {
  return (b->flags & TARN_PLAN_IN_ARENA) == 0 || b->arena == arena;
}

// Sets of those left that fit into arena |arena|, and the rest behind it.
static bool fits_from(const model_scene *scene, uint32_t left,
                      const uint64_t *capacities, size_t arenas, size_t arena) {
  if (left == 0) return true;
  if (arena == arenas) return false;
  for (uint32_t part = left;; part = (part - 1) & left) {
    bool may = true;
    for (size_t i = 0; i < scene->problem.count; i++) {
      if ((part >> i & 1) != 0 && !may_be_in(&scene->buffers[i], arena)) {
        may = false;
      }
    }
    uint64_t capacity =
        capacities[arena] == 0 ? UINT64_MAX - 1 : capacities[arena];
    if (may && try_all(scene, part, capacity + 1, capacity) <= capacity &&
        fits_from(scene, left & ~part, capacities, arenas, arena + 1)) {
      return true;
    }
    if (part == 0) return false;
  }
}

bool model_fits(const model_scene *scene, uint32_t mask,
                const uint64_t *capacities, size_t arenas) {
  return fits_from(scene, mask, capacities, arenas, 0);
}
