// Batches: the present one within a plan, and a new largest one, also of a
// placed model, with failures.
#include "run_kit.h"
#include "support/effort.h"
#include "support/faults.h"

static const size_t sample = 4 * NET_WIDTH;

// --- within the plan -------------------------------------------------------

TEST_PLACES_OF_NET(test_zero_one_most_and_one_more) {
  net n = net_placed((net_where)_i, gpu);
  const int64_t batches[] = {NET_BATCH, 0, 1, NET_BATCH, 3};
  ck_assert_int_eq(tarn_model_batch(n.model), NET_BATCH);
  tarn_place places[] = {TARN_HOST, tarn_place_on(gpu)};
  uint64_t allocs = stats_of(TARN_HOST).allocs;
  for (size_t i = 0; i < 5; i++) {
    assert_ok(tarn_model_set_batch(n.model, batches[i]));
    ck_assert_int_eq(tarn_model_batch(n.model), batches[i]);
    ck_assert_uint_eq(tarn_tensor_size(n.y[0]), sample * (size_t)batches[i]);
    ck_assert_uint_eq(tarn_tensor_count(n.in[1]),
                      NET_WIDTH * (size_t)batches[i]);
    ck_assert_uint_eq(tarn_tensor_size(n.w[0]), n.w[0]->max_size);
    ck_assert_uint_eq(tarn_synced_size(n.y[0]->data), sample * NET_BATCH);
    net_round(&n, places[i % 2], NULL, (unsigned char)(20 * i));
  }
  const int64_t wrong[] = {-1, NET_BATCH + 1, INT64_MAX, INT64_MIN};
  for (size_t i = 0; i < 4; i++) {
    assert_status(tarn_model_set_batch(n.model, wrong[i]), TARN_E_INVALID);
    assert_error_says("where 0 to 8 are planned for");
    ck_assert_int_eq(tarn_model_batch(n.model), 3);
  }
  if (_i == AT_HOST) {  // what is planned and fed, and the parameters' diffs
    ck_assert_uint_le(stats_of(TARN_HOST).allocs, allocs + 1 + NET_STEPS);
  }
  assert_ok(tarn_model_destroy(n.model));
  all_is_back();
}

// --- another largest -------------------------------------------------------

static void keep_parameters(const net *n) {
  for (size_t i = 0; i < NET_STEPS; i++) {
    net_write(n->w[i]->data, n->w[i]->max_size, TARN_HOST, NULL,
              (unsigned char)(100 + i));
  }
  net_write(n->m->data, n->m->max_size, TARN_HOST, NULL, 99);
}

static void expect_parameters(const net *n, tarn_place place) {
  for (size_t i = 0; i < NET_STEPS; i++) {
    net_expect(n->w[i]->data, n->w[i]->max_size, place,
               (unsigned char)(100 + i));
  }
  net_expect(n->m->data, n->m->max_size, place, 99);
}

TEST_PLACES_OF_NET(test_another_largest_while_placed) {
  net n = net_placed((net_where)_i, gpu);
  tarn_place places[] = {TARN_HOST, tarn_place_on(gpu)};
  const int64_t batches[] = {50, 1, 2 * NET_BATCH, 7};
  keep_parameters(&n);
  tarn_synced *w = n.w[0]->data;
  for (size_t i = 0; i < 4; i++) {
    tarn_synced *view = NULL;
    net_enter(&n, 0, TARN_FORWARD);
    net_write(n.y[0]->data, sample, TARN_HOST, NULL, 6);
    net_write(n.x->data, sample, TARN_HOST, NULL, 6);
    assert_ok(tarn_synced_view(n.y[0]->data, 0, 1, &view));
    assert_ok(tarn_model_set_max_batch(n.model, batches[i]));
    net_refused(view, TARN_HOST);
    assert_error_says("its model has given its memory back");
    assert_ok(tarn_synced_destroy(view));
    ck_assert_int_eq(tarn_model_batch(n.model), batches[i]);
    ck_assert_uint_eq(n.y[0]->max_size, sample * (size_t)batches[i]);
    ck_assert_uint_eq(tarn_synced_size(n.in[1]->data), n.y[0]->max_size);
    ck_assert_ptr_eq(n.w[0]->data, w);
    expect_parameters(&n, places[i % 2]);
    net_refused(n.y[0]->data, TARN_HOST);  // the round is over as well
    net_expect(n.x->data, n.x->max_size, TARN_HOST, 0);
    net_round(&n, places[i % 2], NULL, (unsigned char)(30 * i));
  }
  assert_ok(tarn_model_destroy(n.model));
  all_is_back();
}

TEST(test_another_largest_before) {
  net n = net_make();
  assert_ok(tarn_model_set_max_batch(n.model, 3));  // described
  ck_assert_uint_eq(n.y[0]->max_size, 3 * sample);
  ck_assert_uint_eq(n.mask[0]->max_size, 3 * NET_WIDTH / 8);
  net_place(&n, AT_HOST, NULL);
  assert_ok(tarn_model_release(n.model));
  size_t planned = net_planned(&n);
  assert_ok(tarn_model_set_max_batch(n.model, 30));  // planned
  ck_assert_uint_gt(net_planned(&n), 8 * planned);
  assert_ok(tarn_model_place(n.model));
  ck_assert_uint_eq(tarn_synced_size(n.y[0]->data), 30 * sample);
  net_round(&n, TARN_HOST, NULL, 1);
  assert_ok(tarn_model_destroy(n.model));
}

// --- where it fails --------------------------------------------------------

typedef struct before {
  int64_t batch;
  size_t planned;
  size_t max_size;
  tarn_synced *y, *w, *x;
} before;

static before look(const net *n) {
  return (before){tarn_model_batch(n->model),
                  net_planned(n),
                  n->y[1]->max_size,
                  n->y[1]->data,
                  n->w[0]->data,
                  n->x->data};
}

static void assert_same(const net *n, const before *was) {
  before is = look(n);
  require(is.batch == was->batch && is.planned == was->planned &&
          is.max_size == was->max_size && is.y == was->y && is.w == was->w &&
          is.x == was->x);
}

TEST(test_wrong_ones) {
  net n = net_placed(AT_HOST, NULL);
  net_round(&n, TARN_HOST, NULL, 1);
  keep_parameters(&n);
  before was = look(&n);
  const int64_t wrong[] = {0, -1, INT64_MIN, INT64_MAX, INT64_MAX / 64};
  for (size_t i = 0; i < 5; i++) {
    assert_status(tarn_model_set_max_batch(n.model, wrong[i]), TARN_E_INVALID);
    assert_same(&n, &was);
  }
  assert_ok(tarn_model_set_batch(n.model, NET_BATCH));
  expect_parameters(&n, TARN_HOST);
  net_round(&n, TARN_HOST, NULL, 2);
  assert_ok(tarn_model_destroy(n.model));
}

// A plan that may not be so large, and a device that is not: the round goes on
// as if nothing had been asked.
TEST_LOOP(test_too_large_a_batch, 2) {
  open_sim(SIM_MIB, 0);
  net n = net_make();
  tarn_model_plan_options options = net_options(HOST_AND_DEVICE, gpu);
  if (_i == 0) options.capacity = 8192;
  assert_ok(tarn_model_plan(n.model, &options));
  assert_ok(tarn_model_place(n.model));
  net_forward(&n, 0, TARN_HOST, NULL, 1);
  keep_parameters(&n);
  before was = look(&n);
  assert_status(tarn_model_set_max_batch(n.model, 40000), TARN_FULL);
  size_t held = tarn_host_memory();  // pools have seen so large a wish now
  assert_status(tarn_model_set_max_batch(n.model, 40000), TARN_FULL);
  if (_i == 0) assert_error_says("batch 40000 within 8192 bytes");
  assert_same(&n, &was);
  ck_assert_uint_eq(tarn_host_memory(), held);
  net_expect(n.y[0]->data, tarn_tensor_size(n.y[0]), TARN_HOST, 1);
  expect_parameters(&n, TARN_HOST);
  for (size_t i = 1; i < NET_STEPS; i++)
    net_forward(&n, i, TARN_HOST, NULL, 1);
  for (size_t i = NET_STEPS; i-- > 0;)
    net_backward(&n, i, TARN_HOST, NULL, 1);
  assert_ok(tarn_model_destroy(n.model));
  all_is_back();
}

// Each allocation fails once, and all from it on.
TEST_LOOP_ON_LIBRARY(test_no_memory_half_way, NET_PLACES, TEST_NEEDS_DISCRETE,
                     use_gpu) {
  net n = net_make();
  tarn_plan_options solver = {.struct_size = sizeof solver, .node_limit = 100};
  tarn_model_plan_options options = net_options((net_where)_i, gpu);
  options.solver = &solver;
  assert_ok(tarn_model_plan(n.model, &options));
  assert_ok(tarn_model_place(n.model));
  keep_parameters(&n);
  size_t failed = 0;
  for (int mode = FAULTS_ONCE; mode <= FAULTS_FROM_NOW; mode++) {
    bool struck = true;
    for (size_t met = 1; struck; met += EFFORT(1, 5)) {
      net_forward(&n, 0, TARN_HOST, NULL, 1);
      before was = look(&n);
      size_t held = tarn_host_memory();
      faults_arm(met, (faults_mode)mode);
      tarn_status status =
          tarn_model_set_max_batch(n.model, was.batch == 20 ? 5 : 20);
      struck = faults_disarm();
      if (status == TARN_OK) continue;
      require(status == TARN_E_NOMEM || status == TARN_FULL);
      failed++;
      assert_same(&n, &was);
      require(tarn_host_memory() == held);
      net_expect(n.y[0]->data, tarn_tensor_size(n.y[0]), TARN_HOST, 1);
    }
  }
  ck_assert_uint_gt(failed, EFFORT(100, 20));
  expect_parameters(&n, TARN_HOST);
  net_round(&n, TARN_HOST, NULL, 1);
  assert_ok(tarn_model_destroy(n.model));
  all_is_back();
}

// A copy that fails in a round loses no parameter and stops no model.
TEST(test_copies_fail) {
  open_sim(SIM_MIB, 0);
  net n = net_placed(HOST_AND_DEVICE, gpu);
  for (unsigned i = 1; i < 6; i++) {
    char plan[64];
    snprintf(plan, sizeof plan, "memory_copy_h2d@%u+", i);
    net_forward(&n, 0, TARN_HOST, NULL, 1);
    keep_parameters(&n);
    assert_ok(tarn_sim_faults(plan));
    size_t failed = 0;
    for (size_t k = 0; k < 8; k++) {
      tarn_access a;
      tarn_synced *buffer = k % 2 == 0 ? n.y[0]->data : n.w[k / 2]->data;
      tarn_status status = tarn_synced_begin(buffer, 0, 8, tarn_place_on(gpu),
                                             TARN_READ_WRITE, NULL, &a);
      failed += status != TARN_OK;
      if (status == TARN_OK) assert_ok(tarn_synced_end(&a));
    }
    ck_assert_uint_gt(failed, 0);
    assert_ok(tarn_sim_faults(""));
    expect_parameters(&n, TARN_HOST);
    net_expect(n.y[0]->data, tarn_tensor_size(n.y[0]), TARN_HOST, 1);
    assert_ok(tarn_model_set_max_batch(n.model, (int64_t)i));
  }
  net_round(&n, tarn_place_on(gpu), NULL, 1);
  assert_ok(tarn_model_destroy(n.model));
  all_is_back();
}

// Host memory is counted from the first on.
int main(void) {
  faults_install();
  return run_tests();
}
