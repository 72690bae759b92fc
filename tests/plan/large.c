// Plans of large models that are made at once: how close they come, and how a
// program stops the search.
#include <stdlib.h>
#include <string.h>

#include "bench/plan_models.h"
#include "plan/greedy.h"
#include "support/run.h"

static tarn__plan_stop never(atomic_bool *asked) {
  atomic_init(asked, false);
  return (tarn__plan_stop){.deadline_ns = UINT64_MAX, .asked = asked};
}

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
  assert_ok(tarn__plan_instance_make(&problem, NULL, NULL, &l->in));
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

TEST(small_models_are_planned_closely) {
  check_model("transformer-2k", 1900, 2100);
}

TEST(large_models_are_planned_closely) {
  check_model("transformer-20k", 19000, 21000);
  check_model("encoder-20k", 19000, 21000);
  check_model("experts-20k", 19000, 21000);
}

TEST(larger_models_are_planned_closely) {
  check_model("transformer-60k", 58000, 63000);
}

TEST(one_pass_plans_large_models) {
  large l;
  make_large(&l, "transformer-2k");
  assert_ok(tarn__plan_one_pass(&l.in, l.offsets));
  check_large(&l);
  uint64_t height = tarn__plan_instance_height(&l.in, l.offsets);
  ck_assert_uint_le(height, l.in.bound + l.in.bound / 4);
  free_large(&l);
}

TEST(the_same_plan_comes_again) {
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

TEST(models_have_names) {
  plan_model model;
  size_t count = 0;
  while (plan_models_name(count) != NULL)
    count++;
  ck_assert_uint_ge(count, 5);
  ck_assert_str_eq(plan_models_name(0), "transformer-2k");
  assert_status(plan_model_make("transformer", &model), TARN_E_INVALID);
  ck_assert_ptr_null(model.buffers);
}

TEST(no_model_can_be_freed) {
  plan_model model = {0};
  plan_model_free(&model);
  ck_assert_uint_eq(model.count, 0);
}

// --- stopping ----------------------------------------------------------------

static bool say_stop(void *user, uint64_t nodes) {
  ck_assert_uint_eq(nodes, 0);
  ++*(int *)user;
  return false;
}

TEST(who_stops_it_gets_the_first_plan) {
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

TEST(a_watcher_stops_it) {
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

TEST(who_stops_it_keeps_what_is_there) {
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
