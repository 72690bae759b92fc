// The problems that are made from their lowest plans: they are what they are
// said to be, and the same each time.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/plan_packings.h"
#include "support/run.h"

static void assert_perfect(plan_packing_spec spec) {
  plan_packing made = plan_packing_make(spec);
  tarn_plan_problem problem = {.struct_size = sizeof problem,
                               .buffers = made.buffers,
                               .count = made.count};
  uint64_t height = 0;
  uint64_t area = 0;
  ck_assert_uint_eq(made.count, spec.count);
  assert_ok(tarn_plan_verify(&problem, made.offsets, NULL, &height));
  ck_assert_uint_eq(height, PLAN_PACKING_HEIGHT);
  for (size_t i = 0; i < made.count; i++) {
    const tarn_plan_buffer *b = &made.buffers[i];
    require(b->last <= spec.steps);
    require(b->size % 1024 == 0);
    area += (b->last - b->first) * b->size;
  }
  ck_assert_uint_eq(area, spec.steps * PLAN_PACKING_HEIGHT);
  plan_packing_free(&made);
  ck_assert_ptr_null(made.buffers);
}

TEST(no_byte_is_free) {
  size_t wide = 0;
  for (size_t i = 0; i < PLAN_PACKINGS; i++) {
    plan_packing_spec spec = plan_packing_at(i, 0);
    assert_perfect(spec);
    wide += plan_packing_is_wide(spec);
    ck_assert(spec.count >= 60 && spec.count <= 400);
    ck_assert(spec.steps >= 20 && spec.steps <= 1000);
  }
  ck_assert_uint_eq(wide, PLAN_PACKINGS / 2);
}

TEST(the_smallest) {
  assert_perfect((plan_packing_spec){.count = 1, .steps = 1, .seed = 1});
  assert_perfect((plan_packing_spec){.count = 1024, .steps = 1, .seed = 7});
  plan_packing made = plan_packing_make(
      (plan_packing_spec){.count = 9999, .steps = 2, .seed = 1});
  ck_assert_uint_eq(made.count, 2048);  // there are no more parts to be had
  plan_packing_free(&made);
}

TEST(the_same_each_time_and_others_by_seed) {
  plan_packing_spec spec = plan_packing_at(3, 0);
  plan_packing first = plan_packing_make(spec);
  plan_packing again = plan_packing_make(spec);
  plan_packing other = plan_packing_make(plan_packing_at(3, 1));
  size_t size = first.count * sizeof *first.buffers;
  ck_assert_uint_eq(first.count, other.count);
  ck_assert_mem_eq(first.buffers, again.buffers, size);
  ck_assert_mem_ne(first.buffers, other.buffers, size);
  // Known for good: figures of other days are of the same problems.
  ck_assert_uint_eq(first.buffers[0].size, 1033216);
  ck_assert_uint_eq(first.buffers[0].first, 22);
  plan_packing_free(&first);
  plan_packing_free(&again);
  plan_packing_free(&other);
}

// These need the search for what is scarce: without it 800,000 nodes were not
// enough.
TEST(the_scarce_are_found) {
  static const size_t at[] = {4, 8};
  for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
    plan_packing made = plan_packing_make(plan_packing_at(at[i], 0));
    tarn_plan_problem problem = {.struct_size = sizeof problem,
                                 .buffers = made.buffers,
                                 .count = made.count};
    tarn_plan_options options = {.struct_size = sizeof options,
                                 .time_limit_s = INFINITY,
                                 .node_limit = 60000};
    tarn_plan *plan;
    tarn_plan_info info = {.struct_size = sizeof info};
    assert_ok(tarn_plan_solve(&problem, &options, &plan));
    assert_ok(tarn_plan_query(plan, &info));
    ck_assert_uint_eq(info.height, PLAN_PACKING_HEIGHT);
    ck_assert_int_eq(info.answer, TARN_PLAN_OPTIMAL);
    tarn_plan_destroy(plan);
    plan_packing_free(&made);
  }
}

TEST(names_tell_what_they_are) {
  char name[PLAN_PACKING_NAME];
  ck_assert_str_eq(plan_packing_name(plan_packing_at(0, 0), name), "60x100.1");
  ck_assert_str_eq(plan_packing_name(plan_packing_at(35, 4), name), "400x60.5");
}
