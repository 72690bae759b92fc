// Plans that are made at once: what they are made of, and that they are plans.
#include "plan/greedy.h"

#include <stdlib.h>
#include <string.h>

#include "bench/plan_models.h"
#include "plan/onepass.h"
#include "plan/placed.h"
#include "plan/ways.h"
#include "support/faults.h"
#include "support/run.h"

enum { MOST = 14, SCENES = 3000 };

// --- random problems ---------------------------------------------------------

typedef struct scene {
  uint64_t random;
  size_t count;
  tarn_plan_buffer buffers[MOST];
  tarn_plan_gap gaps[MOST];
  tarn_plan_pair pairs[MOST];
  bool merged[MOST];
  tarn_plan_problem problem;
  tarn__plan_instance in;
} scene;

static uint64_t below(scene *s, uint64_t limit) {
  s->random = s->random * UINT64_C(6364136223846793005) + 1442695040888963407;
  return (s->random >> 33) % limit;
}

static void make_buffer(scene *s, size_t index) {
  static const uint64_t alignments[] = {0, 1, 2, 3, 4, 8};
  tarn_plan_buffer *b = &s->buffers[index];
  *b = (tarn_plan_buffer){.first = below(s, 12), .size = 1 + below(s, 9)};
  b->last = b->first + 1 + below(s, 8);
  if (below(s, 3) == 0) b->alignment = alignments[below(s, 6)];
  if (b->last - b->first < 3 || below(s, 3) != 0) return;
  s->gaps[index].first = b->first + 1 + below(s, b->last - b->first - 2);
  s->gaps[index].last = s->gaps[index].first + 1;
  b->gaps = &s->gaps[index];
  b->gap_count = 1;
}

// Somewhere where no other fixed one is, whenever that is needed.
static void fix(scene *s, size_t index) {
  tarn_plan_buffer *b = &s->buffers[index];
  uint64_t alignment = b->alignment == 0 ? 1 : b->alignment;
  b->offset = below(s, 20) * alignment;
  for (size_t i = 0; i < index; i++) {
    const tarn_plan_buffer *other = &s->buffers[i];
    if ((other->flags & TARN_PLAN_FIXED) != 0 &&
        other->offset < b->offset + b->size &&
        b->offset < other->offset + other->size) {
      return;
    }
  }
  b->flags = TARN_PLAN_FIXED;
}

// The next one takes the place of this one, which ends where it begins.
static void pair_up(scene *s, size_t giver) {
  tarn_plan_buffer *a = &s->buffers[giver];
  tarn_plan_buffer *b = &s->buffers[giver + 1];
  if (a->last - a->first < 2) return;
  uint64_t by = a->last - 1;
  b->last = b->last - b->first + by;
  if (b->gap_count > 0) {
    b->gaps = NULL;
    b->gap_count = 0;
  }
  b->first = by;
  s->merged[s->problem.pair_count] = true;
  s->pairs[s->problem.pair_count++] = (tarn_plan_pair){giver, giver + 1};
}

static void make_scene(scene *s, uint64_t seed) {
  *s = (scene){.random = seed * 77777 + 5};
  s->count = 1 + below(s, MOST);
  s->problem = (tarn_plan_problem){.struct_size = sizeof s->problem,
                                   .buffers = s->buffers,
                                   .count = s->count,
                                   .pairs = s->pairs};
  for (size_t i = 0; i < s->count; i++)
    make_buffer(s, i);
  for (size_t i = 0; i + 1 < s->count; i++) {
    if (below(s, 6) == 0) pair_up(s, i++);
  }
  for (size_t i = s->problem.pair_count == 0 ? 0 : s->count; i < s->count;
       i++) {
    if (below(s, 5) == 0) fix(s, i);
  }
  tarn__plan_choice choice = {.merged = s->merged};
  assert_ok(tarn__plan_problem_check(&s->problem));
  assert_ok(tarn__plan_instance_make(&s->problem, &choice, &s->in));
}

// Whether two items lie in each other's way.
static bool collide(const tarn__plan_instance *in, const uint64_t *offsets,
                    size_t a, size_t b) {
  const tarn__plan_item *x = &in->items[a];
  const tarn__plan_item *y = &in->items[b];
  for (uint32_t i = 0; i < x->piece_count; i++) {
    const tarn__plan_piece *p = &in->pieces[x->piece + i];
    for (uint32_t j = 0; j < y->piece_count; j++) {
      const tarn__plan_piece *q = &in->pieces[y->piece + j];
      if (p->first < q->last && q->first < p->last &&
          offsets[a] < offsets[b] + q->size &&
          offsets[b] < offsets[a] + p->size) {
        return true;
      }
    }
  }
  return false;
}

static void check_plan(const tarn__plan_instance *in, const uint64_t *offsets) {
  for (size_t i = 0; i < in->item_count; i++) {
    const tarn__plan_item *item = &in->items[i];
    require(offsets[i] % item->alignment == 0);
    require(!item->fixed || offsets[i] == item->offset);
    for (size_t j = 0; j < i; j++)
      require(!collide(in, offsets, i, j));
  }
}

static tarn__plan_stop never(atomic_bool *asked) {
  atomic_init(asked, false);
  return (tarn__plan_stop){.deadline_ns = UINT64_MAX, .asked = asked};
}

// --- what lies there ---------------------------------------------------------

// The lowest offset at which |index| meets none of those before it.
static uint64_t lowest_of_all(const tarn__plan_instance *in, uint64_t *offsets,
                              size_t index, uint64_t from) {
  const tarn__plan_item *item = &in->items[index];
  uint64_t at = tarn__plan_align_up(from, item->alignment);
  for (size_t i = 0; i < index; i++) {
    offsets[index] = at;
    if (!collide(in, offsets, index, i)) continue;
    at += item->alignment;
    i = SIZE_MAX;  // from the first again
  }
  return at;
}

static void place_in_turn(scene *s) {
  tarn__plan_placed placed;
  uint64_t offsets[MOST];
  assert_ok(tarn__plan_placed_make(&s->in, &placed));
  for (int round = 0; round < 2; round++) {
    for (size_t i = 0; i < s->in.item_count; i++) {
      const tarn__plan_item *item = &s->in.items[i];
      uint64_t from = below(s, 2) * below(s, 30);
      uint64_t at = tarn__plan_placed_lowest(&placed, item, from);
      require(at == lowest_of_all(&s->in, offsets, i, from));
      offsets[i] = at;
      assert_ok(tarn__plan_placed_add(&placed, item, at));
    }
    tarn__plan_placed_clear(&placed);
  }
  tarn__plan_placed_free(&placed);
}

START_TEST(an_item_is_put_where_none_lies) {
  for (uint64_t seed = 0; seed < SCENES; seed++) {
    scene s;
    make_scene(&s, seed);
    place_in_turn(&s);
    tarn__plan_instance_free(&s.in);
  }
}
END_TEST

START_TEST(nothing_to_free_is_allowed) {
  tarn__plan_placed placed = {0};
  tarn__plan_ways ways = {0};
  plan_model model = {0};
  tarn__plan_placed_free(&placed);
  tarn__plan_ways_free(&ways);
  plan_model_free(&model);
  ck_assert_ptr_null(placed.nodes);
}
END_TEST

// --- ways --------------------------------------------------------------------

static uint64_t crowd_of(const tarn__plan_instance *in, uint32_t index) {
  uint64_t most = 0;
  for (uint32_t s = in->items[index].first; s < in->items[index].last; s++) {
    if (most < in->live[s]) most = in->live[s];
  }
  return most;
}

// What must not grow along the order |way|.
static uint64_t rank_in(const tarn__plan_instance *in, uint32_t index,
                        tarn__plan_way way) {
  const tarn__plan_item *item = &in->items[index];
  uint32_t sections = item->last - item->first;
  switch (way) {
    case TARN__PLAN_BEGIN_IN_16:
      return (sections >= 16 ? 1000u : 0u) + 999 - item->first;
    case TARN__PLAN_END_IN_16:
      return (sections >= 16 ? 1000u : 0u) + item->last;
    case TARN__PLAN_BEGIN_IN_4:
      return (sections >= 4 ? 1000u : 0u) + (sections >= 16 ? 1000u : 0u) +
             999 - item->first;
    case TARN__PLAN_END_IN_4:
      return (sections >= 4 ? 1000u : 0u) + (sections >= 16 ? 1000u : 0u) +
             item->last;
    case TARN__PLAN_LONGEST:
      return item->length;
    case TARN__PLAN_LARGEST:
      return item->size;
    case TARN__PLAN_WIDEST:
      return item->size * item->length;
    case TARN__PLAN_SPREAD:
      return sections * UINT64_C(1000) + item->size;
    default:
      return crowd_of(in, index) * 1000 + sections;
  }
}

static void check_order(const tarn__plan_ways *ways, tarn__plan_way way) {
  bool seen[MOST] = {false};
  for (size_t i = 0; i < ways->in->item_count; i++) {
    uint32_t index = ways->order[i].item;
    require(index < ways->in->item_count && !seen[index]);
    require(ways->order[i].key == -(double)i);
    seen[index] = true;
    if (i == 0) continue;
    require(rank_in(ways->in, ways->order[i - 1].item, way) >=
            rank_in(ways->in, index, way));
  }
}

START_TEST(orders_are_what_they_are_called) {
  for (uint64_t seed = 0; seed < SCENES; seed++) {
    scene s;
    tarn__plan_ways ways;
    make_scene(&s, seed);
    assert_ok(tarn__plan_ways_make(&s.in, &ways));
    for (int way = 0; way < TARN__PLAN_WAYS; way++) {
      tarn__plan_ways_order(&ways, (tarn__plan_way)way);
      check_order(&ways, (tarn__plan_way)way);
    }
    tarn__plan_ways_free(&ways);
    tarn__plan_instance_free(&s.in);
  }
}
END_TEST

// --- plans -------------------------------------------------------------------

START_TEST(each_plan_is_one) {
  for (uint64_t seed = 0; seed < SCENES; seed++) {
    scene s;
    uint64_t offsets[MOST];
    uint64_t height = UINT64_MAX;
    atomic_bool asked;
    tarn__plan_stop stop = never(&asked);
    make_scene(&s, seed);
    assert_ok(tarn__plan_greedy(&s.in, s.in.bound, &stop, offsets, &height));
    check_plan(&s.in, offsets);
    require(height == tarn__plan_instance_height(&s.in, offsets));
    require(height >= s.in.bound);
    tarn__plan_instance_free(&s.in);
  }
}
END_TEST

START_TEST(one_pass_makes_a_plan) {
  for (uint64_t seed = 0; seed < SCENES; seed++) {
    scene s;
    uint64_t offsets[MOST];
    make_scene(&s, seed);
    assert_ok(tarn__plan_one_pass(&s.in, offsets));
    check_plan(&s.in, offsets);
    tarn__plan_instance_free(&s.in);
  }
}
END_TEST

START_TEST(a_plan_that_is_there_only_gets_better) {
  for (uint64_t seed = 0; seed < SCENES; seed++) {
    scene s;
    uint64_t offsets[MOST];
    uint64_t before[MOST];
    atomic_bool asked;
    tarn__plan_stop stop = never(&asked);
    make_scene(&s, seed);
    assert_ok(tarn__plan_one_pass(&s.in, offsets));
    memcpy(before, offsets, sizeof before);
    uint64_t first = tarn__plan_instance_height(&s.in, offsets);
    uint64_t height = first;
    uint64_t target = below(&s, 2) == 0 ? s.in.bound : first;
    assert_ok(tarn__plan_greedy(&s.in, target, &stop, offsets, &height));
    require(height == tarn__plan_instance_height(&s.in, offsets));
    require(height <= first);
    check_plan(&s.in, offsets);
    if (height == first) {
      require(memcmp(before, offsets, s.in.item_count * sizeof *offsets) == 0);
    }
    tarn__plan_instance_free(&s.in);
  }
}
END_TEST

START_TEST(no_items_have_no_height) {
  tarn_plan_problem problem = {.struct_size = sizeof problem};
  tarn__plan_instance in;
  uint64_t height = UINT64_MAX;
  atomic_bool asked;
  tarn__plan_stop stop = never(&asked);
  assert_ok(tarn__plan_instance_make(&problem, NULL, &in));
  assert_ok(tarn__plan_greedy(&in, 0, &stop, NULL, &height));
  ck_assert_uint_eq(height, 0);
  tarn__plan_instance_free(&in);
}
END_TEST

// --- large models ------------------------------------------------------------

typedef struct large {
  plan_model model;
  tarn__plan_instance in;
  uint64_t *offsets;
} large;

static void make_large(large *l, const char *name) {
  assert_ok(plan_model_make(name, &l->model));
  tarn_plan_problem problem = {.struct_size = sizeof problem,
                               .buffers = l->model.buffers,
                               .count = l->model.count};
  assert_ok(tarn__plan_problem_check(&problem));
  assert_ok(tarn__plan_instance_make(&problem, NULL, &l->in));
  l->offsets = calloc(l->in.item_count, sizeof *l->offsets);
  ck_assert_ptr_nonnull(l->offsets);
}

static void free_large(large *l) {
  free(l->offsets);
  tarn__plan_instance_free(&l->in);
  plan_model_free(&l->model);
}

typedef struct lying {
  uint64_t low;
  uint64_t high;
  uint32_t last;  // section
} lying;

// Puts |item| between those that lie there; none of them may touch it.
static size_t lie_down(lying *there, size_t count, const tarn__plan_item *item,
                       uint64_t low) {
  size_t at = 0;
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    if (there[i].last > item->first) there[kept++] = there[i];
  }
  while (at < kept && there[at].low < low)
    at++;
  require(at == 0 || there[at - 1].high <= low);
  require(at == kept || there[at].low >= low + item->size);
  memmove(there + at + 1, there + at, (kept - at) * sizeof *there);
  there[at] = (lying){low, low + item->size, item->last};
  return kept + 1;
}

// Items without gaps, in the order of their first sections.
static void check_large(const large *l) {
  lying *there = calloc(l->in.item_count + 1, sizeof *there);
  size_t count = 0;
  uint32_t before = 0;
  ck_assert_ptr_nonnull(there);
  for (size_t i = 0; i < l->in.item_count; i++) {
    const tarn__plan_item *item = &l->in.items[i];
    require(item->first >= before);
    before = item->first;
    count = lie_down(there, count, item, l->offsets[i]);
  }
  free(there);
}

static void plan_large(large *l, uint64_t *out_height) {
  atomic_bool asked;
  tarn__plan_stop stop = never(&asked);
  *out_height = UINT64_MAX;
  assert_ok(
      tarn__plan_greedy(&l->in, l->in.bound, &stop, l->offsets, out_height));
  ck_assert_uint_eq(*out_height,
                    tarn__plan_instance_height(&l->in, l->offsets));
}

// At most a hundredth above the bound, which is the figure that is asked for.
static void check_model(const char *name, size_t least, size_t most) {
  large l;
  uint64_t height;
  make_large(&l, name);
  ck_assert_uint_ge(l.model.count, least);
  ck_assert_uint_le(l.model.count, most);
  plan_large(&l, &height);
  check_large(&l);
  ck_assert_msg((height - l.in.bound) * 100 <= l.in.bound, "%s: %g x bound",
                name, (double)height / (double)l.in.bound);
  free_large(&l);
}

START_TEST(small_models_are_planned_closely) {
  check_model("transformer-2k", 1900, 2100);
}
END_TEST

START_TEST(large_models_are_planned_closely) {
  check_model("transformer-20k", 19000, 21000);
  check_model("encoder-20k", 19000, 21000);
  check_model("experts-20k", 19000, 21000);
}
END_TEST

START_TEST(larger_models_are_planned_closely) {
  check_model("transformer-60k", 58000, 63000);
}
END_TEST

START_TEST(one_pass_plans_large_models) {
  large l;
  make_large(&l, "transformer-2k");
  assert_ok(tarn__plan_one_pass(&l.in, l.offsets));
  check_large(&l);
  uint64_t height = tarn__plan_instance_height(&l.in, l.offsets);
  ck_assert_uint_le(height, l.in.bound + l.in.bound / 4);
  free_large(&l);
}
END_TEST

START_TEST(the_same_plan_comes_again) {
  large a;
  large b;
  uint64_t heights[2];
  make_large(&a, "transformer-2k");
  make_large(&b, "transformer-2k");
  plan_large(&a, &heights[0]);
  plan_large(&b, &heights[1]);
  ck_assert_uint_eq(heights[0], heights[1]);
  ck_assert_mem_eq(a.offsets, b.offsets, a.in.item_count * sizeof *a.offsets);
  free_large(&a);
  free_large(&b);
}
END_TEST

START_TEST(models_have_names) {
  plan_model model;
  size_t count = 0;
  while (plan_models_name(count) != NULL)
    count++;
  ck_assert_uint_ge(count, 5);
  ck_assert_str_eq(plan_models_name(0), "transformer-2k");
  assert_status(plan_model_make("transformer", &model), TARN_E_INVALID);
  ck_assert_ptr_null(model.buffers);
}
END_TEST

// --- stopping ----------------------------------------------------------------

static bool say_stop(void *user, uint64_t nodes) {
  ck_assert_uint_eq(nodes, 0);
  ++*(int *)user;
  return false;
}

START_TEST(who_stops_it_gets_the_first_plan) {
  large l;
  uint64_t heights[2];
  atomic_bool asked;
  make_large(&l, "transformer-2k");
  plan_large(&l, &heights[0]);
  tarn__plan_stop stop = never(&asked);
  atomic_store(&asked, true);
  heights[1] = UINT64_MAX;
  assert_ok(tarn__plan_greedy(&l.in, 0, &stop, l.offsets, &heights[1]));
  check_large(&l);
  ck_assert_uint_eq(heights[1], tarn__plan_instance_height(&l.in, l.offsets));
  ck_assert_uint_gt(heights[1], heights[0]);
  free_large(&l);
}
END_TEST

START_TEST(a_watcher_stops_it) {
  large l;
  uint64_t height = UINT64_MAX;
  int told = 0;
  atomic_bool asked;
  make_large(&l, "transformer-2k");
  tarn__plan_stop stop = never(&asked);
  stop.watch = say_stop;
  stop.user = &told;
  assert_ok(tarn__plan_greedy(&l.in, 0, &stop, l.offsets, &height));
  check_large(&l);
  ck_assert_int_eq(told, 1);
  ck_assert(atomic_load(&asked));
  free_large(&l);
}
END_TEST

START_TEST(who_stops_it_keeps_what_is_there) {
  large l;
  atomic_bool asked;
  make_large(&l, "transformer-2k");
  tarn__plan_stop stop = never(&asked);
  stop.deadline_ns = 0;
  uint64_t height = l.in.bound * 2;
  assert_ok(tarn__plan_greedy(&l.in, 0, &stop, l.offsets, &height));
  ck_assert_uint_eq(height, l.in.bound * 2);
  for (size_t i = 0; i < l.in.item_count; i++)
    require(l.offsets[i] == 0);
  free_large(&l);
}
END_TEST

// --- too little memory -------------------------------------------------------

static void plan_small(void *context) {
  scene *s = context;
  uint64_t offsets[MOST];
  uint64_t height = UINT64_MAX;
  atomic_bool asked;
  tarn__plan_stop stop = never(&asked);
  tarn_status status =
      tarn__plan_greedy(&s->in, s->in.bound, &stop, offsets, &height);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  require(status == TARN_E_NOMEM || height != UINT64_MAX);
  if (height == UINT64_MAX) return;
  check_plan(&s->in, offsets);
  require(height == tarn__plan_instance_height(&s->in, offsets));
}

static void pass_small(void *context) {
  scene *s = context;
  uint64_t offsets[MOST];
  tarn_status status = tarn__plan_one_pass(&s->in, offsets);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  if (status == TARN_OK) check_plan(&s->in, offsets);
}

START_TEST(too_little_memory_is_said) {
  for (uint64_t seed = 0; seed < 20; seed++) {
    scene s;
    make_scene(&s, seed);
    ck_assert_uint_gt(faults_sweep(plan_small, &s), 0);
    ck_assert_uint_gt(faults_sweep(pass_small, &s), 0);
    tarn__plan_instance_free(&s.in);
  }
}
END_TEST

int main(void) {
  faults_install();
  Suite *suite = suite_create("plan_greedy");
  ADD_CASE(suite, "parts", an_item_is_put_where_none_lies,
           nothing_to_free_is_allowed, orders_are_what_they_are_called);
  ADD_CASE(suite, "plans", each_plan_is_one, one_pass_makes_a_plan,
           a_plan_that_is_there_only_gets_better, no_items_have_no_height);
  ADD_CASE(suite, "models", small_models_are_planned_closely,
           large_models_are_planned_closely, larger_models_are_planned_closely,
           one_pass_plans_large_models, the_same_plan_comes_again,
           models_have_names);
  ADD_CASE(suite, "ends", who_stops_it_gets_the_first_plan, a_watcher_stops_it,
           who_stops_it_keeps_what_is_there, too_little_memory_is_said);
  return run_suite(suite);
}
