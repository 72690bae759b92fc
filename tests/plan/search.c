// The exact search: against all ways to place a few items, tried one by one.
#include "plan_model.h"
#include "search_kit.h"
#include "support/effort.h"

enum { BUFFERS = 7, HIGH = 180 };

// Keeps pairs that can be merged all together, which they are.
static void keep_pairs(model_scene *scene) {
  uint32_t gives = 0;
  uint32_t takes = 0;
  size_t kept = 0;
  for (size_t i = 0; i < scene->problem.pair_count; i++) {
    tarn_plan_pair pair = scene->pairs[i];
    uint32_t flags =
        scene->buffers[pair.giver].flags | scene->buffers[pair.taker].flags;
    if ((flags & TARN_PLAN_FIXED) != 0 || (gives >> pair.giver & 1) != 0 ||
        (takes >> pair.taker & 1) != 0) {
      continue;
    }
    gives |= 1u << pair.giver;
    takes |= 1u << pair.taker;
    scene->pairs[kept++] = pair;
  }
  scene->problem.pair_count = kept;
}

// Then the unit of the instance is a multiple of |by|.
static void scale(model_scene *scene, uint64_t by) {
  for (size_t i = 0; i < scene->problem.count; i++) {
    tarn_plan_buffer *b = &scene->buffers[i];
    b->size *= by;
    b->offset *= by;
    b->alignment *= by;
  }
}

static size_t seen[3];  // by outcome

static void require_same(const model_scene *scene, const field *f,
                         tarn__plan_search *search, uint64_t capacity,
                         bool fits) {
  answer got;
  uint64_t offsets[MODEL_MOST];
  uint64_t height;
  tarn__plan_run run = {
      .capacity = capacity / f->in.unit,
      .order = (tarn__plan_order)random_below(TARN__PLAN_ORDERS),
      .scarce_first = chance(2),
      .seed = chance(2) ? 0 : random_below(100)};
  require(run_with(search, run, &got) == TARN_OK);
  require(got.outcome == (fits ? TARN__PLAN_FOUND : TARN__PLAN_NONE));
  seen[got.outcome]++;
  if (!fits) return;
  for (size_t i = 0; i < scene->problem.count; i++)
    offsets[i] = got.units[f->in.item_of[i]] * f->in.unit;
  require(model_is_plan(&scene->problem, offsets, NULL, &height));
  require(height <= capacity);
}

// With an empty table, and with what the runs before stored.
static void compare(const model_scene *scene) {
  const bool merged[MODEL_PAIRS] = {true, true, true, true};
  field f;
  open_field(&scene->problem, merged, &f);
  tarn__plan_search *search = search_of(&f);
  uint64_t least = model_least_merged(scene);
  bool any = least != UINT64_MAX;
  if (any) require_same(scene, &f, search, least + random_below(9), true);
  for (int i = 0; i < 2; i++) {
    if (any) require_same(scene, &f, search, least, true);
    require_same(scene, &f, search, any ? least - 1 : HIGH, false);
  }
  if (any) require_same(scene, &f, search, least, true);
  close_field(&f);
}

TEST_LOOP(it_finds_what_trying_finds, MODEL_KINDS) {
  size_t count = EFFORT(3000, 600);
  memset(seen, 0, sizeof seen);
  for (uint64_t i = 0; i < count; i++) {
    model_scene scene;
    model_make(&scene, i * MODEL_KINDS + (uint64_t)_i, BUFFERS, (unsigned)_i);
    keep_pairs(&scene);
    scale(&scene, 1 + i % 3);
    compare(&scene);
  }
  ck_assert_uint_gt(seen[TARN__PLAN_FOUND], count);
  ck_assert_uint_gt(seen[TARN__PLAN_NONE], count);
}
