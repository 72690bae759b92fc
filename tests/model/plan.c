// Plans of nets: lifetimes, places in place, bounds, reports, and refusals.
#include <stdlib.h>
#include <string.h>

#include "bench/model_nets.h"
#include "support/faults.h"
#include "support/run.h"
#include "tarn/model_run.h"

// A chain y0 -> y1 -> ... of |count| outputs of 64 floats each, |y0| fed.
typedef struct chain {
  tarn_model *model;
  tarn_tensor *y[16];
  tarn_step *step[16];  // that writes y[i]
} chain;

static const int64_t row[] = {64};
static const tarn_shape shape = {row, 1};
enum { ROW = 256 };

static chain make_chain(size_t count, bool in_place) {
  chain c = {0};
  char name[] = {'y', 'a', '\0'};
  assert_ok(tarn_model_create(NULL, &c.model));
  for (size_t i = 0; i < count; i++, name[1]++) {
    assert_ok(tarn_model_add(c.model, TARN_OUTPUT, name, TARN_DTYPE_F32, shape,
                             &c.y[i]));
    if (i == 0) continue;
    assert_ok(tarn_model_step(c.model, name, &c.step[i]));
    if (in_place) {
      assert_ok(tarn_step_replaces(c.step[i], TARN_FORWARD, c.y[i - 1],
                                   TARN_DATA, c.y[i], TARN_DATA));
    } else {
      assert_ok(
          tarn_step_reads(c.step[i], TARN_FORWARD, c.y[i - 1], TARN_DATA));
      assert_ok(tarn_step_writes(c.step[i], TARN_FORWARD, c.y[i], TARN_DATA));
    }
  }
  return c;
}

static tarn_model_needs report_of(tarn_model *model) {
  tarn_model_needs report = {.struct_size = sizeof report};
  assert_ok(tarn_model_report(model, &report));
  return report;
}

// --- lifetimes -------------------------------------------------------------

static tarn_status keep_slot(void *context, const tarn_model_slot *slot) {
  tarn_model_slot **next = context;
  *(*next)++ = *slot;
  return TARN_OK;
}

TEST(test_a_chain_needs_two_at_a_time) {
  chain c = make_chain(6, false);
  tarn_model_slot slots[8];
  tarn_model_slot *next = slots;
  assert_ok(tarn_model_plan(c.model, NULL));
  tarn_model_needs report = report_of(c.model);
  ck_assert_uint_eq(report.naive, 5 * ROW);
  ck_assert_uint_eq(report.fed, ROW);
  ck_assert_uint_eq(report.planned, 2 * ROW);
  ck_assert_uint_eq(report.bound, 2 * ROW);
  ck_assert_int_eq(report.answer, TARN_PLAN_OPTIMAL);
  ck_assert_uint_eq(report.kinds[TARN_OUTPUT], 6 * ROW);
  ck_assert_uint_eq(report.total, 3 * ROW);
  assert_ok(tarn_model_each_slot(c.model, keep_slot, (void *)&next));
  ck_assert_int_eq(next - slots, 5);
  for (uint64_t i = 0; i < 5; i++) {
    ck_assert_ptr_eq(slots[i].tensor, c.y[i + 1]);
    ck_assert_uint_eq(slots[i].first, i);
    ck_assert_uint_eq(slots[i].last, i < 4 ? i + 1 : i);
  }
  assert_ok(tarn_model_destroy(c.model));
}

TEST(test_in_place_needs_one) {
  chain c = make_chain(6, true);
  assert_ok(tarn_model_plan(c.model, NULL));
  tarn_model_needs report = report_of(c.model);
  ck_assert_uint_eq(report.planned, ROW);
  ck_assert_uint_eq(report.in_place, 4);
  ck_assert(
      tarn_model_is_in_place(c.model, c.y[1], TARN_DATA, c.y[2], TARN_DATA));
  ck_assert(
      !tarn_model_is_in_place(c.model, c.y[1], TARN_DATA, c.y[3], TARN_DATA));
  ck_assert(
      !tarn_model_is_in_place(c.model, c.y[0], TARN_DATA, c.y[1], TARN_DATA));
  assert_ok(tarn_model_destroy(c.model));
}

// A later step reads it: it keeps its place.
TEST(test_what_is_read_later_keeps_its_place) {
  chain c = make_chain(4, true);
  assert_ok(tarn_step_reads(c.step[3], TARN_FORWARD, c.y[1], TARN_DATA));
  assert_ok(tarn_model_plan(c.model, NULL));
  ck_assert(
      !tarn_model_is_in_place(c.model, c.y[1], TARN_DATA, c.y[2], TARN_DATA));
  ck_assert_uint_eq(report_of(c.model).planned, 2 * ROW);
  assert_ok(tarn_model_destroy(c.model));
}

TEST(test_reading_before_writing) {
  chain c = make_chain(4, false);
  assert_ok(tarn_step_reads(c.step[1], TARN_FORWARD, c.y[3], TARN_DATA));
  assert_status(tarn_model_plan(c.model, NULL), TARN_E_INVALID);
  assert_error_says("step 'yb' reads the data of 'yd' forward");
  tarn_model_needs report = {.struct_size = sizeof report};
  assert_status(tarn_model_report(c.model, &report), TARN_E_INVALID);
  assert_ok(tarn_model_destroy(c.model));
  c = make_chain(3, false);
  assert_ok(tarn_step_reads(c.step[1], TARN_BACKWARD, c.y[1], TARN_DIFF));
  assert_status(tarn_model_plan(c.model, NULL), TARN_E_INVALID);
  assert_error_says("the diff of 'yb' backward");
  const tarn_model_plan_options infer = {.struct_size = sizeof infer,
                                         .mode = TARN_INFER};
  assert_ok(tarn_model_plan(c.model, &infer));  // it has no diffs
  assert_ok(tarn_model_destroy(c.model));
}

// A row of outputs: the second may take the place of the first, and then stands
// beside a third, where most is needed.
static tarn_model *make_peak_behind_a_pair(void) {
  static const int64_t lengths[] = {1024, 1024, 640};
  static const char *const names[] = {"makes", "in_place", "both"};
  tarn_model *model = NULL;
  tarn_tensor *y[3] = {0};
  tarn_step *step[3] = {0};
  assert_ok(tarn_model_create(NULL, &model));
  for (size_t i = 0; i < 3; i++) {
    assert_ok(tarn_model_add(model, TARN_OUTPUT, names[i], TARN_DTYPE_U8,
                             (tarn_shape){&lengths[i], 1}, &y[i]));
    assert_ok(tarn_model_step(model, names[i], &step[i]));
  }
  assert_ok(tarn_step_writes(step[0], TARN_FORWARD, y[0], TARN_DATA));
  assert_ok(tarn_step_replaces(step[1], TARN_FORWARD, y[0], TARN_DATA, y[1],
                               TARN_DATA));
  assert_ok(tarn_step_reads(step[2], TARN_FORWARD, y[1], TARN_DATA));
  assert_ok(tarn_step_writes(step[2], TARN_FORWARD, y[2], TARN_DATA));
  return model;
}

TEST(test_what_shares_counts_once_at_the_peak) {
  tarn_model *model = make_peak_behind_a_pair();
  tarn_model_plan_options options = {.struct_size = sizeof options,
                                     .capacity = 1663};
  assert_status(tarn_model_plan(model, &options), TARN_FULL);
  assert_error_says("at least 1664 are needed, most of all by step 'both'");
  options.capacity = 1664;
  assert_ok(tarn_model_plan(model, &options));
  tarn_model_needs report = report_of(model);
  ck_assert_uint_eq(report.peak_step, 2);
  ck_assert_int_eq(report.peak_pass, TARN_FORWARD);
  ck_assert_uint_eq(report.in_place, 1);
  assert_ok(tarn_model_destroy(model));
}

static bool count_calls(const tarn_plan_progress *progress, void *user) {
  ck_assert_ptr_nonnull(progress);
  ++*(unsigned *)user;
  return true;
}

// What they point to is the caller's, for the one call.
TEST(test_options_of_the_solver_are_not_kept) {
  chain c = make_chain(6, false);
  unsigned calls = 0;
  const tarn_plan_options solver = {
      .struct_size = sizeof solver, .progress = count_calls, .user = &calls};
  const tarn_model_plan_options options = {.struct_size = sizeof options,
                                           .solver = &solver};
  assert_ok(tarn_model_plan(c.model, &options));
  ck_assert_uint_gt(calls, 0);
  calls = 0;
  assert_ok(tarn_model_set_max_batch(c.model, 2));
  ck_assert_uint_eq(calls, 0);
  assert_ok(tarn_model_destroy(c.model));
}

// --- options, stages -------------------------------------------------------

TEST(test_capacity) {
  chain c = make_chain(6, false);
  tarn_model_plan_options options = {.struct_size = sizeof options,
                                     .capacity = 2 * ROW - 1};
  assert_status(tarn_model_plan(c.model, &options), TARN_FULL);
  assert_error_says("there is no plan");
  assert_error_says("at least 512 are needed");
  options.capacity = 2 * ROW;
  assert_ok(tarn_model_plan(c.model, &options));
  assert_ok(tarn_model_destroy(c.model));
}

TEST(test_wrong_options) {
  chain c = make_chain(3, false);
  tarn_model_plan_options options = {.struct_size = sizeof options};
  options.align = 48;
  assert_status(tarn_model_plan(c.model, &options), TARN_E_INVALID);
  options = (tarn_model_plan_options){.struct_size = sizeof options,
                                      .mode = (tarn_model_mode)7};
  assert_status(tarn_model_plan(c.model, &options), TARN_E_INVALID);
  options = (tarn_model_plan_options){.struct_size = 1};
  assert_status(tarn_model_plan(c.model, &options), TARN_E_INVALID);
  assert_status(tarn_model_plan(NULL, NULL), TARN_E_INVALID);
  assert_status(tarn_model_report(c.model, NULL), TARN_E_INVALID);
  assert_status(tarn_model_each_slot(c.model, keep_slot, NULL), TARN_E_STATE);
  assert_ok(tarn_model_destroy(c.model));
}

// Found out when it is placed, and planned it is all the same.
TEST(test_a_home_that_is_none) {
  chain c = make_chain(3, false);
  const tarn_model_plan_options options = {.struct_size = sizeof options,
                                           .home = {NULL, TARN_PLACE_DEVICE}};
  assert_ok(tarn_model_plan(c.model, &options));
  assert_status(tarn_model_place(c.model), TARN_E_INVALID);
  ck_assert_ptr_null(c.y[1]->data);
  ck_assert_uint_eq(report_of(c.model).planned, 2 * ROW);
  assert_ok(tarn_model_forget(c.model));
  assert_ok(tarn_model_plan(c.model, NULL));
  assert_ok(tarn_model_place(c.model));
  assert_ok(tarn_model_destroy(c.model));
}

TEST(test_a_planned_model_is_closed) {
  chain c = make_chain(3, false);
  tarn_tensor *tensor = NULL;
  tarn_step *step = NULL;
  assert_ok(tarn_model_plan(c.model, NULL));
  assert_status(tarn_model_plan(c.model, NULL), TARN_E_STATE);
  assert_status(
      tarn_model_add(c.model, TARN_OUTPUT, "z", TARN_DTYPE_F32, shape, &tensor),
      TARN_E_STATE);
  assert_status(tarn_model_step(c.model, "z", &step), TARN_E_STATE);
  assert_status(tarn_step_reads(c.step[1], TARN_FORWARD, c.y[0], TARN_DATA),
                TARN_E_STATE);
  assert_ok(tarn_model_forget(c.model));
  assert_ok(tarn_model_forget(c.model));
  assert_ok(tarn_model_add(c.model, TARN_OUTPUT, "z", TARN_DTYPE_F32, shape,
                           &tensor));
  assert_ok(tarn_model_plan(c.model, NULL));
  assert_ok(tarn_model_destroy(c.model));
}

TEST(test_a_model_without_steps) {
  tarn_model *model = NULL;
  tarn_tensor *tensor = NULL;
  assert_ok(tarn_model_create(NULL, &model));
  assert_ok(
      tarn_model_add(model, TARN_PARAM, "p", TARN_DTYPE_F32, shape, &tensor));
  assert_ok(tarn_model_plan(model, NULL));
  tarn_model_needs report = report_of(model);
  ck_assert_uint_eq(report.planned, 0);
  ck_assert_uint_eq(report.kinds[TARN_PARAM], ROW);
  ck_assert_uint_eq(report.diffs[TARN_PARAM], ROW);
  ck_assert(report.fits);
  assert_ok(tarn_model_destroy(model));
}

// --- whole nets ------------------------------------------------------------

static tarn_model_needs plan_net(const model_net *net, tarn_model_mode mode,
                                 tarn_model **out_model) {
  const tarn_model_options options = {.struct_size = sizeof options,
                                      .max_batch = net->batch};
  const tarn_model_plan_options how = {.struct_size = sizeof how, .mode = mode};
  assert_ok(tarn_model_create(&options, out_model));
  assert_ok(net->describe(*out_model));
  assert_ok(tarn_model_plan(*out_model, &how));
  return report_of(*out_model);
}

static void assert_near(double value, double expected) {
  ck_assert_double_ge(value, expected * 0.95);
  ck_assert_double_le(value, expected * 1.05);
}

TEST(test_nets_come_to_what_they_do_by_hand) {
  const double mib = 1 << 20;
  const model_net *net = NULL;
  for (size_t i = 0; (net = model_net_at(i)) != NULL; i++) {
    for (int mode = 0; mode < 2; mode++) {
      tarn_model *model = NULL;
      tarn_model_needs r = plan_net(net, (tarn_model_mode)mode, &model);
      assert_near((double)r.naive / mib, net->naive[mode]);
      assert_near((double)r.bound / mib, net->bound[mode]);
      ck_assert_uint_ge(r.planned, r.bound);
      ck_assert_double_le((double)r.planned, 1.05 * (double)r.bound);
      assert_ok(tarn_model_destroy(model));
    }
  }
}

typedef struct rectangles {
  tarn_model_slot *slots;
  size_t count;
} rectangles;

static tarn_status collect(void *context, const tarn_model_slot *slot) {
  rectangles *r = context;
  r->slots[r->count++] = *slot;
  return TARN_OK;
}

static bool share(tarn_model *model, const tarn_model_slot *a,
                  const tarn_model_slot *b) {
  return tarn_model_is_in_place(model, a->tensor, a->part, b->tensor, b->part);
}

static bool meet(const tarn_model_slot *a, const tarn_model_slot *b) {
  return a->first <= b->last && b->first <= a->last &&
         a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

// Each with each, by hand.
TEST(test_no_two_that_live_together_share_bytes) {
  const model_net *net = model_net_find("resnet-50");
  tarn_model *model = NULL;
  tarn_model_needs report = plan_net(net, TARN_TRAIN, &model);
  rectangles r = {.slots = calloc(4096, sizeof(tarn_model_slot))};
  ck_assert_ptr_nonnull(r.slots);
  assert_ok(tarn_model_each_slot(model, collect, &r));
  ck_assert_uint_gt(r.count, 300);
  for (size_t i = 0; i < r.count; i++) {
    require(r.slots[i].offset + r.slots[i].size <= report.planned);
    for (size_t j = 0; j < i; j++) {
      if (!meet(&r.slots[i], &r.slots[j])) continue;
      require(share(model, &r.slots[i], &r.slots[j]) ||
              share(model, &r.slots[j], &r.slots[i]));
    }
  }
  free(r.slots);
  assert_ok(tarn_model_destroy(model));
}

// A larger batch is planned anew; one that cannot be leaves all as it was.
TEST(test_another_largest_batch) {
  const model_net *net = model_net_find("mlp");
  tarn_model *model = NULL;
  tarn_model_needs report = plan_net(net, TARN_TRAIN, &model);
  assert_ok(tarn_model_set_max_batch(model, 2 * net->batch));
  tarn_model_needs twice = report_of(model);
  ck_assert_uint_ge(twice.planned, 2 * report.bound - 4096);
  assert_ok(tarn_model_set_max_batch(model, net->batch));
  ck_assert_uint_eq(report_of(model).planned, report.planned);
  assert_status(tarn_model_set_max_batch(model, INT64_MAX / 8), TARN_E_INVALID);
  ck_assert_uint_eq(report_of(model).planned, report.planned);
  assert_ok(tarn_model_destroy(model));
}

// --- without memory --------------------------------------------------------

static void scenario(void *context) {
  chain *c = context;
  tarn_status status = tarn_model_plan(c->model, NULL);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  tarn_model_needs report = {.struct_size = sizeof report};
  tarn_status told = tarn_model_report(c->model, &report);
  require(told == TARN_OK || told == TARN_E_NOMEM);
  tarn_status larger = tarn_model_set_max_batch(c->model, 1);
  require(larger == TARN_OK || larger == TARN_E_NOMEM);
  if (status == TARN_OK && told == TARN_OK) require(report.planned != 0);
  require(tarn_model_forget(c->model) == TARN_OK);
}

TEST(test_any_allocation_may_fail) {
  chain c = make_chain(5, true);
  report_of(c.model);  // opens cpu:0, which stays
  ck_assert_uint_gt(faults_sweep(scenario, &c), 10);
  assert_ok(tarn_model_plan(c.model, NULL));
  ck_assert_uint_eq(report_of(c.model).planned, ROW);
  assert_ok(tarn_model_destroy(c.model));
}

int main(void) {
  faults_install();
  return run_tests();
}
