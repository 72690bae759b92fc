// Small random problems, and plans of them compared buffer by buffer.
#include "plan_model.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

uint64_t model_random(uint64_t *state, uint64_t limit) {
  assert(limit > 0);
  uint64_t x = *state += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return (x ^ (x >> 31)) % limit;
}

// --- making ------------------------------------------------------------------

static bool chance(uint64_t *state, uint64_t percent) {
  return model_random(state, 100) < percent;
}

static void make_gaps(model_scene *scene, size_t index, uint64_t *state) {
  tarn_plan_buffer *b = &scene->buffers[index];
  uint64_t from = b->first + 1;
  for (size_t i = 0; i < MODEL_GAPS && from + 1 < b->last; i++) {
    tarn_plan_gap *gap = &scene->gaps[index][i];
    gap->first = from + model_random(state, b->last - from - 1);
    gap->last = gap->first + 1 + model_random(state, b->last - gap->first - 1);
    b->gap_count = i + 1;
    from = gap->last + 1;
    if (chance(state, 50)) break;
  }
  b->gaps = b->gap_count > 0 ? scene->gaps[index] : NULL;
}

static void make_buffer(model_scene *scene, size_t index, unsigned kinds,
                        uint64_t *state, uint64_t steps) {
  static const uint64_t alignments[] = {0, 1, 2, 3, 4, 6, 8};
  tarn_plan_buffer *b = &scene->buffers[index];
  *b = (tarn_plan_buffer){.first = model_random(state, steps)};
  b->last = b->first + 1 + model_random(state, steps - b->first);
  b->size = 1 + model_random(state, chance(state, 50) ? 4 : 9);
  b->priority = model_random(state, 4);
  if ((kinds & MODEL_ALIGNED) != 0 && chance(state, 40)) {
    b->alignment = alignments[model_random(state, 7)];
  }
  if ((kinds & MODEL_FIXED) != 0 && chance(state, 20)) {
    uint64_t step = b->alignment == 0 ? 1 : b->alignment;
    b->flags = TARN_PLAN_FIXED;
    b->offset = model_random(state, 14 / step + 1) * step;
  }
}

static bool is_pair_already(const model_scene *scene, size_t a, size_t b) {
  for (size_t i = 0; i < scene->problem.pair_count; i++) {
    const tarn_plan_pair *pair = &scene->pairs[i];
    if (pair->giver == a && pair->taker == b) return true;
  }
  return false;
}

// Moves the taker in time so that it is one, unless it is part of another pair.
static void make_pair(model_scene *scene, uint64_t *state) {
  size_t count = scene->problem.count;
  size_t g = model_random(state, count);
  size_t t = model_random(state, count);
  tarn_plan_buffer *giver = &scene->buffers[g];
  tarn_plan_buffer *taker = &scene->buffers[t];
  if (g == t || giver->last - giver->first < 2 || is_pair_already(scene, g, t))
    return;
  if (taker->first != giver->last - 1) {
    for (size_t i = 0; i < scene->problem.pair_count; i++) {
      if (scene->pairs[i].giver == t || scene->pairs[i].taker == t) return;
    }
    uint64_t length = taker->last - taker->first;
    taker->first = giver->last - 1;
    taker->last = taker->first + length;
  }
  if (giver->first == taker->first) return;
  size_t number = scene->problem.pair_count++;
  scene->pairs[number] = (tarn_plan_pair){.giver = g, .taker = t};
}

static void point_at_parts(model_scene *scene) {
  scene->problem.struct_size = sizeof scene->problem;
  scene->problem.buffers = scene->buffers;
  scene->problem.pairs = scene->pairs;
}

void model_make(model_scene *scene, uint64_t seed, size_t most,
                unsigned kinds) {
  uint64_t state = seed * 7919 + 1;
  memset(scene, 0, sizeof *scene);
  point_at_parts(scene);
  scene->problem.count = 1 + model_random(&state, most);
  uint64_t steps = 2 + model_random(&state, 10);
  for (size_t i = 0; i < scene->problem.count; i++)
    make_buffer(scene, i, kinds, &state, steps);
  for (int i = 0; (kinds & MODEL_PAIRED) != 0 && i < MODEL_PAIRS; i++)
    make_pair(scene, &state);
  for (size_t i = 0; i < scene->problem.count; i++) {
    if ((kinds & MODEL_GAPPED) != 0 && chance(&state, 40)) {
      make_gaps(scene, i, &state);
    }
  }
}

void model_part(const model_scene *whole, uint32_t mask, model_scene *out) {
  size_t number_of[MODEL_MOST] = {0};
  size_t count = 0;
  memset(out, 0, sizeof *out);
  point_at_parts(out);
  for (size_t i = 0; i < whole->problem.count; i++) {
    if ((mask >> i & 1) == 0) continue;
    out->buffers[count] = whole->buffers[i];
    number_of[i] = count++;
  }
  out->problem.count = count;
  for (size_t i = 0; i < whole->problem.pair_count; i++) {
    tarn_plan_pair pair = whole->pairs[i];
    if ((mask >> pair.giver & mask >> pair.taker & 1) == 0) continue;
    out->pairs[out->problem.pair_count++] =
        (tarn_plan_pair){number_of[pair.giver], number_of[pair.taker]};
  }
}

void model_show(const model_scene *scene) {
  for (size_t i = 0; i < scene->problem.count; i++) {
    const tarn_plan_buffer *b = &scene->buffers[i];
    fprintf(stderr,
            "  [%zu] = {.first = %" PRIu64 ", .last = %" PRIu64
            ", .size = %" PRIu64 ", .alignment = %" PRIu64
            ", .flags = %u, .offset = %" PRIu64
            ", .arena = %u, .priority = "
            "%" PRIu64 "}",
            i, b->first, b->last, b->size, b->alignment, b->flags, b->offset,
            b->arena, b->priority);
    for (size_t g = 0; g < b->gap_count; g++) {
      fprintf(stderr, " gap %" PRIu64 "-%" PRIu64, b->gaps[g].first,
              b->gaps[g].last);
    }
    fputc('\n', stderr);
  }
  for (size_t i = 0; i < scene->problem.pair_count; i++) {
    fprintf(stderr, "  pair %zu -> %zu\n", scene->pairs[i].giver,
            scene->pairs[i].taker);
  }
  for (size_t i = 0; i < scene->problem.arena_count; i++)
    fprintf(stderr, "  capacity %" PRIu64 "\n", scene->problem.capacities[i]);
}

// --- comparing ---------------------------------------------------------------

static bool are_pair(const tarn_plan_problem *problem, size_t a, size_t b) {
  for (size_t i = 0; i < problem->pair_count; i++) {
    const tarn_plan_pair *pair = &problem->pairs[i];
    if ((pair->giver == a && pair->taker == b) ||
        (pair->giver == b && pair->taker == a)) {
      return true;
    }
  }
  return false;
}

static bool may_lie(const tarn_plan_problem *problem, size_t index,
                    uint64_t offset, uint32_t arena) {
  const tarn_plan_buffer *b = &problem->buffers[index];
  size_t arenas = problem->arena_count == 0 ? 1 : problem->arena_count;
  uint64_t end = 0;
  if (__builtin_add_overflow(offset, b->size, &end) || arena >= arenas) {
    return false;
  }
  uint64_t capacity =
      problem->arena_count == 0 ? 0 : problem->capacities[arena];
  bool fits = capacity == 0 || end <= capacity;
  bool aligned = b->alignment == 0 || offset % b->alignment == 0;
  bool fixed = (b->flags & TARN_PLAN_FIXED) == 0 || b->offset == offset;
  bool at_home = (b->flags & TARN_PLAN_IN_ARENA) == 0 || b->arena == arena;
  return fits && aligned && fixed && at_home;
}

static bool are_apart(const tarn_plan_problem *problem, size_t a, uint64_t at_a,
                      size_t b, uint64_t at_b) {
  const tarn_plan_buffer *x = &problem->buffers[a];
  const tarn_plan_buffer *y = &problem->buffers[b];
  if (at_a >= at_b + y->size || at_b >= at_a + x->size) return true;
  if (at_a == at_b && are_pair(problem, a, b)) return true;
  return !model_meet(x, y);
}

bool model_is_plan(const tarn_plan_problem *problem, const uint64_t *offsets,
                   const uint32_t *arenas, uint64_t *out_height) {
  *out_height = 0;
  for (size_t i = 0; i < problem->count; i++) {
    uint32_t arena = arenas == NULL ? 0 : arenas[i];
    if (!may_lie(problem, i, offsets[i], arena)) return false;
    for (size_t j = 0; j < i; j++) {
      if (arenas != NULL && arenas[j] != arena) continue;
      if (!are_apart(problem, i, offsets[i], j, offsets[j])) return false;
    }
  }
  for (uint32_t a = 0; a == 0 || a < problem->arena_count; a++) {
    uint64_t height = 0;
    for (size_t i = 0; i < problem->count; i++) {
      if ((arenas == NULL ? 0 : arenas[i]) != a) continue;
      uint64_t end = offsets[i] + problem->buffers[i].size;
      if (end > height) height = end;
    }
    if (__builtin_add_overflow(*out_height, height, out_height)) return false;
  }
  return true;
}

// --- all offsets -------------------------------------------------------------

static uint64_t height_of(const model_scene *scene, const uint64_t *offsets,
                          size_t count) {
  uint64_t height = 0;
  for (size_t i = 0; i < count; i++) {
    uint64_t end = offsets[i] + scene->buffers[i].size;
    if (end > height) height = end;
  }
  return height;
}

static void try_offsets(const model_scene *scene, uint64_t *offsets,
                        size_t count, uint64_t *best) {
  if (height_of(scene, offsets, count) >= *best) return;
  if (count == scene->problem.count) {
    *best = height_of(scene, offsets, count);
    return;
  }
  for (uint64_t at = 0; at + scene->buffers[count].size < *best; at++) {
    if (!may_lie(&scene->problem, count, at, 0)) continue;
    bool apart = true;
    for (size_t i = 0; apart && i < count; i++)
      apart = are_apart(&scene->problem, count, at, i, offsets[i]);
    if (!apart) continue;
    offsets[count] = at;
    try_offsets(scene, offsets, count + 1, best);
  }
}

uint64_t model_least_of_all(const model_scene *scene, uint64_t limit) {
  uint64_t offsets[MODEL_MOST] = {0};
  uint64_t best = limit;
  try_offsets(scene, offsets, 0, &best);
  return best == limit ? UINT64_MAX : best;
}
