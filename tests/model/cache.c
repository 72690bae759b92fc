// Caches: pushes and pops by type, count and order, also of extra entries, and
// the time of their use.
#include "run_kit.h"
#include "support/faults.h"

static void push(const net *n, size_t step, tarn_dtype dtype, size_t count,
                 tarn_synced **out_buffer) {
  assert_ok(tarn_step_push(n->step[step], dtype, count, false, out_buffer));
  ck_assert_uint_eq(tarn_synced_size(*out_buffer),
                    count * tarn_dtype_size(dtype));
}

static void push_mask(const net *n, size_t step) {
  tarn_synced *mask = NULL;
  assert_ok(tarn_step_push(n->step[step], TARN_DTYPE_BOOL,
                           tarn_tensor_count(n->mask[step]), true, &mask));
  ck_assert_ptr_eq(mask, n->mask[step]->data);
}

static tarn_model_needs report_of(const net *n) {
  tarn_model_needs report = {.struct_size = sizeof report};
  assert_ok(tarn_model_report(n->model, &report));
  return report;
}

// --- as described ----------------------------------------------------------

TEST(test_type_and_count_are_checked) {
  net n = net_placed(AT_HOST, NULL);
  const size_t count = NET_BATCH * NET_WIDTH;
  const struct {
    tarn_dtype dtype;
    size_t count;
    bool bits;
    const char *text;
  } wrong[] = {
      {TARN_DTYPE_BOOL, 128, false,
       "step 's0': a cache of 128 bool, where 128 bool bits stand"},
      {TARN_DTYPE_BOOL, 127, true,
       "a cache of 127 bool bits, where 128 bool bits stand"},
      {TARN_DTYPE_U8, 128, false, "a cache of 128 u8, where 128 bool bits"},
      {TARN_DTYPE_U8, 128, true, "128 u8 bits, where 128 bool bits"},
  };
  tarn_synced *buffer = NULL;
  ck_assert_uint_eq(count, 128);
  ck_assert_uint_eq(tarn_tensor_size(n.mask[0]), 16);  // eight to a byte
  net_enter(&n, 0, TARN_FORWARD);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    buffer = n.x->data;
    assert_status(tarn_step_push(n.step[0], wrong[i].dtype, wrong[i].count,
                                 wrong[i].bits, &buffer),
                  TARN_E_INVALID);
    assert_error_says(wrong[i].text);
    ck_assert_ptr_null(buffer);
  }
  push_mask(&n, 0);  // what was refused is not there
  net_write(n.mask[0]->data, 16, TARN_HOST, NULL, 5);
  net_enter(&n, 0, TARN_BACKWARD);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_status(tarn_step_pop(n.step[0], wrong[i].dtype, wrong[i].count,
                                wrong[i].bits, &buffer),
                  TARN_E_INVALID);
    assert_error_says(wrong[i].text);
  }
  assert_ok(tarn_step_pop(n.step[0], TARN_DTYPE_BOOL, count, true, &buffer));
  net_expect(buffer, 16, TARN_HOST, 5);
  assert_status(tarn_step_pop(n.step[0], TARN_DTYPE_BOOL, count, true, &buffer),
                TARN_E_STATE);
  assert_error_says("step 's0': its cache is empty");
  assert_ok(tarn_model_destroy(n.model));
}

static void refuse_push(const net *n, size_t step) {
  tarn_synced *buffer = NULL;
  assert_status(
      tarn_step_push(n->step[step], TARN_DTYPE_BOOL, 128, true, &buffer),
      TARN_E_STATE);
  assert_error_says("a cache, but it was not entered forward");
}

static void refuse_pop(const net *n, size_t step) {
  tarn_synced *buffer = NULL;
  assert_status(
      tarn_step_pop(n->step[step], TARN_DTYPE_BOOL, 128, true, &buffer),
      TARN_E_STATE);
  assert_error_says("a cache, but it was not entered backward");
}

TEST(test_only_in_the_step) {
  net n = net_make();
  refuse_push(&n, 0);
  refuse_pop(&n, 0);
  net_place(&n, AT_HOST, NULL);
  refuse_push(&n, 0);
  net_enter(&n, 1, TARN_FORWARD);
  refuse_push(&n, 0);
  refuse_push(&n, 2);
  refuse_pop(&n, 1);
  push_mask(&n, 1);
  net_enter(&n, 1, TARN_BACKWARD);
  refuse_push(&n, 1);
  refuse_pop(&n, 0);
  refuse_pop(&n, 2);
  assert_ok(tarn_model_leave(n.model));
  refuse_push(&n, 1);
  refuse_pop(&n, 1);
  tarn_synced *buffer = NULL;
  assert_status(tarn_step_push(NULL, TARN_DTYPE_U8, 1, false, &buffer),
                TARN_E_INVALID);
  assert_status(tarn_step_pop(NULL, TARN_DTYPE_U8, 1, false, &buffer),
                TARN_E_INVALID);
  assert_status(tarn_step_push(n.step[0], TARN_DTYPE_U8, 1, false, NULL),
                TARN_E_INVALID);
  assert_status(tarn_step_pop(n.step[0], TARN_DTYPE_U8, 1, false, NULL),
                TARN_E_INVALID);
  assert_ok(tarn_model_destroy(n.model));
}

// What was pushed in a round is gone with it.
TEST(test_a_round_begins_with_nothing) {
  net n = net_placed(AT_HOST, NULL);
  tarn_synced *buffer = NULL;
  net_enter(&n, 0, TARN_FORWARD);
  push_mask(&n, 0);
  push(&n, 0, TARN_DTYPE_I64, 3, &buffer);
  net_enter(&n, 0, TARN_FORWARD);
  net_enter(&n, 0, TARN_BACKWARD);
  assert_status(tarn_step_pop(n.step[0], TARN_DTYPE_I64, 3, false, &buffer),
                TARN_E_STATE);
  assert_ok(tarn_model_destroy(n.model));
}

// The batch at the push counts, also if it changes later.
TEST(test_a_smaller_batch) {
  net n = net_placed(AT_HOST, NULL);
  for (int64_t batch = 0; batch <= NET_BATCH; batch++) {
    tarn_synced *buffer = NULL;
    size_t count = (size_t)batch * NET_WIDTH;
    assert_ok(tarn_model_set_batch(n.model, batch));
    net_enter(&n, 2, TARN_FORWARD);
    assert_status(
        tarn_step_push(n.step[2], TARN_DTYPE_BOOL, count + 1, true, &buffer),
        TARN_E_INVALID);
    push_mask(&n, 2);
    net_write(n.mask[2]->data, count / 8, TARN_HOST, NULL, 3);
    assert_ok(tarn_model_set_batch(n.model, NET_BATCH - batch));
    net_enter(&n, 2, TARN_BACKWARD);
    assert_ok(tarn_step_pop(n.step[2], TARN_DTYPE_BOOL, count, true, &buffer));
    net_expect(buffer, count / 8, TARN_HOST, 3);
    assert_ok(tarn_model_leave(n.model));
  }
  assert_ok(tarn_model_destroy(n.model));
}

// --- beyond the description ------------------------------------------------

TEST(test_order_and_contents) {
  net n = net_placed(AT_HOST, NULL);
  const size_t counts[] = {5, 0, 1000, 7};
  for (int round = 0; round < 3; round++) {
    net_enter(&n, 1, TARN_FORWARD);
    push_mask(&n, 1);
    for (size_t i = 0; i < 4; i++) {
      tarn_synced *buffer = NULL;
      push(&n, 1, TARN_DTYPE_I32, counts[i], &buffer);
      tarn_access a;
      if (counts[i] > 0) {  // it holds nothing, also when it was there before
        assert_status(
            tarn_synced_begin(buffer, 0, 4, TARN_HOST, TARN_READ, NULL, &a),
            TARN_E_STATE);
        assert_error_says("invalidated");
      }
      net_write(buffer, 4 * counts[i], TARN_HOST, NULL, (unsigned char)i);
    }
    net_enter(&n, 3, TARN_FORWARD);
    net_enter(&n, 1, TARN_BACKWARD);
    tarn_synced *buffer = NULL;
    for (size_t i = 4; i-- > 0;) {
      assert_status(
          tarn_step_pop(n.step[1], TARN_DTYPE_F32, counts[i], false, &buffer),
          TARN_E_INVALID);
      assert_ok(
          tarn_step_pop(n.step[1], TARN_DTYPE_I32, counts[i], false, &buffer));
      net_expect(buffer, 4 * counts[i], TARN_HOST, (unsigned char)i);
    }
    assert_ok(tarn_step_pop(n.step[1], TARN_DTYPE_BOOL, 128, true, &buffer));
    ck_assert_ptr_eq(buffer, n.mask[1]->data);
    assert_ok(tarn_model_leave(n.model));
  }
  tarn_model_needs report = report_of(&n);
  ck_assert_uint_eq(report.extra_pushes, 12);
  ck_assert_uint_eq(report.extra_bytes, (uint64_t)3 * 4 * 1012);
  assert_ok(tarn_model_destroy(n.model));
}

TEST(test_bits_beyond_the_description) {
  net n = net_placed(AT_HOST, NULL);
  tarn_synced *buffer = NULL;
  net_enter(&n, 1, TARN_FORWARD);
  push_mask(&n, 1);
  assert_ok(tarn_step_push(n.step[1], TARN_DTYPE_BOOL, 17, true, &buffer));
  ck_assert_uint_eq(tarn_synced_size(buffer), 3);
  assert_status(tarn_step_push(n.step[1], TARN_DTYPE_F32, 17, true, &buffer),
                TARN_E_INVALID);
  assert_error_says("cache: 17 elements of type f32, as bits");
  assert_status(tarn_step_push(n.step[1], (tarn_dtype)999, 17, false, &buffer),
                TARN_E_INVALID);
  assert_status(
      tarn_step_push(n.step[1], TARN_DTYPE_F64, SIZE_MAX / 4, false, &buffer),
      TARN_E_INVALID);
  assert_ok(tarn_model_leave(n.model));
  assert_ok(tarn_model_destroy(n.model));
}

// --- the list of caches ----------------------------------------------------

// Each entry beyond the description is a tensor, by list, by prefix and by
// name, and stays one.
static void expect_listed(const net *n, size_t index, const char *name,
                          size_t count, const tarn_synced *buffer) {
  tarn_tensor *tensor = tarn_model_get(n->model, TARN_CACHE, name);
  ck_assert_ptr_nonnull(tensor);
  ck_assert_int_eq(tensor->kind, TARN_CACHE);
  ck_assert_int_eq(tensor->dtype, TARN_DTYPE_I32);
  ck_assert_uint_eq(tarn_tensor_count(tensor), count);
  ck_assert_uint_eq(tarn_tensor_size(tensor), 4 * count);
  ck_assert_ptr_eq(tensor->data, buffer);
  ck_assert_ptr_null(tensor->diff);
  tarn_list *node = NULL;
  size_t at = 0;
  tarn_list_for_each (node, tarn_model_list(n->model, TARN_CACHE)) {
    if (at++ == index) {
      ck_assert_ptr_eq(tarn_list_entry(node, tarn_tensor, node), tensor);
    }
  }
  ck_assert_uint_gt(at, index);
}

static void push_two(const net *n, size_t first, size_t second,
                     tarn_synced *out[2]) {
  net_enter(n, 1, TARN_FORWARD);
  push_mask(n, 1);
  push(n, 1, TARN_DTYPE_I32, first, &out[0]);
  push(n, 1, TARN_DTYPE_I32, second, &out[1]);
}

static tarn_status count_visit(void *context, tarn_tensor *tensor) {
  (void)tensor;
  ++*(size_t *)context;
  return TARN_OK;
}

TEST(test_what_is_beyond_is_listed) {
  net n = net_placed(AT_HOST, NULL);
  size_t described = tarn_model_count(n.model, TARN_CACHE);
  size_t bytes = report_of(&n).kinds[TARN_CACHE];
  tarn_synced *pushed[2];
  for (size_t round = 1; round < 4; round++) {
    push_two(&n, round * 10, round * 20, pushed);
    ck_assert_uint_eq(tarn_model_count(n.model, TARN_CACHE), described + 2);
    expect_listed(&n, described, "s1.cache1", round * 10, pushed[0]);
    expect_listed(&n, described + 1, "s1.cache2", round * 20, pushed[1]);
    assert_ok(tarn_model_leave(n.model));
  }
  size_t seen = 0;
  assert_ok(
      tarn_model_each(n.model, TARN_CACHE, "s1.cache", count_visit, &seen));
  ck_assert_uint_eq(seen, 2);
  ck_assert_uint_eq(report_of(&n).kinds[TARN_CACHE], bytes);
  assert_ok(tarn_model_set_max_batch(n.model, (int64_t)2 * NET_BATCH));
  expect_listed(&n, described, "s1.cache1", 30, NULL);
  assert_ok(tarn_model_release(n.model));
  assert_ok(tarn_model_forget(n.model));
  assert_status(
      tarn_step_writes(n.step[1], TARN_FORWARD,
                       tarn_model_get(n.model, TARN_CACHE, "s1.cache1"),
                       TARN_DATA),
      TARN_E_INVALID);
  assert_error_says("'s1.cache1' was pushed without a description");
  net_place(&n, AT_HOST, NULL);
  push_two(&n, 5, 6, pushed);
  expect_listed(&n, described, "s1.cache1", 5, pushed[0]);
  expect_listed(&n, described + 1, "s1.cache2", 6, pushed[1]);
  ck_assert_uint_eq(tarn_model_count(n.model, TARN_CACHE), described + 2);
  assert_ok(tarn_model_destroy(n.model));
  ck_assert_uint_eq(stats_of(TARN_HOST).live_bytes, 0);
}

// What is described after pushes moves no listed cache to another place.
TEST(test_places_that_are_described_later) {
  static const int64_t dims[] = {10};
  net n = net_placed(AT_HOST, NULL);
  tarn_tensor *cache = NULL;
  tarn_synced *pushed[2];
  push_two(&n, 10, 20, pushed);
  assert_ok(tarn_model_leave(n.model));
  assert_ok(tarn_model_release(n.model));
  assert_ok(tarn_model_forget(n.model));
  assert_status(tarn_step_caches(n.step[1], "s1.cache1", TARN_DTYPE_I32,
                                 (tarn_shape){dims, 1}, false, &cache),
                TARN_E_STATE);
  assert_ok(tarn_step_caches(n.step[1], "mine", TARN_DTYPE_I32,
                             (tarn_shape){dims, 1}, false, &cache));
  net_place(&n, AT_HOST, NULL);
  for (size_t round = 0; round < 2; round++) {
    tarn_synced *third = NULL;
    push_two(&n, 10, 20, pushed);
    push(&n, 1, TARN_DTYPE_I32, 30, &third);
    ck_assert_ptr_eq(cache->data, pushed[0]);
    ck_assert_ptr_null(tarn_model_get(n.model, TARN_CACHE, "s1.cache1")->data);
    ck_assert_ptr_eq(tarn_model_get(n.model, TARN_CACHE, "s1.cache2")->data,
                     pushed[1]);
    ck_assert_ptr_eq(tarn_model_get(n.model, TARN_CACHE, "s1.cache3")->data,
                     third);
    assert_ok(tarn_model_leave(n.model));
  }
  assert_ok(tarn_model_destroy(n.model));
}

TEST(test_a_listed_name_that_is_taken) {
  net n = net_make();
  tarn_synced *pushed[2];
  (void)net_add(&n, TARN_OUTPUT, "s1.cache", 1, TARN_DIM_BATCH);
  net_place(&n, AT_HOST, NULL);
  push_two(&n, 10, 20, pushed);
  ck_assert_int_eq(tarn_model_get(n.model, TARN_KIND_ALL, "s1.cache1")->kind,
                   TARN_OUTPUT);
  ck_assert_ptr_eq(tarn_model_get(n.model, TARN_CACHE, "s1.cache1.1")->data,
                   pushed[0]);
  ck_assert_ptr_eq(tarn_model_get(n.model, TARN_CACHE, "s1.cache2")->data,
                   pushed[1]);
  assert_ok(tarn_model_destroy(n.model));
}

// May be used from the push until the backward pass is over.
TEST(test_its_lifetime) {
  net n = net_placed(AT_HOST, NULL);
  tarn_synced *buffer = NULL;
  tarn_synced *view = NULL;
  tarn_access a;
  for (int round = 0; round < 3; round++) {
    net_enter(&n, 2, TARN_FORWARD);
    push_mask(&n, 2);
    push(&n, 2, TARN_DTYPE_U8, 32, &buffer);
    if (view == NULL) assert_ok(tarn_synced_view(buffer, 8, 8, &view));
    net_write(buffer, 32, TARN_HOST, NULL, 8);
    net_enter(&n, 3, TARN_BACKWARD);
    net_expect(buffer, 32, TARN_HOST, 8);
    net_enter(&n, 2, TARN_BACKWARD);
    net_expect(view, 8, TARN_HOST, 8);
    assert_ok(tarn_synced_begin(view, 0, 8, TARN_HOST, TARN_READ, NULL, &a));
    assert_status(tarn_model_enter(n.step[1], TARN_BACKWARD), TARN_E_STATE);
    assert_error_says("'s2': an access to it is open");
    assert_status(tarn_model_leave(n.model), TARN_E_STATE);
    assert_status(tarn_model_release(n.model), TARN_E_STATE);
    assert_status(tarn_model_set_max_batch(n.model, 2), TARN_E_STATE);
    assert_status(tarn_model_destroy(n.model), TARN_E_STATE);
    net_expect(buffer, 32, TARN_HOST, 8);
    assert_ok(tarn_synced_end(&a));
    if (round == 0) net_enter(&n, 1, TARN_BACKWARD);
    if (round == 1) net_enter(&n, 0, TARN_FORWARD);
    if (round == 2) assert_ok(tarn_model_leave(n.model));
    net_refused(buffer, TARN_HOST);
    net_refused(view, TARN_HOST);
    assert_ok(tarn_model_leave(n.model));
  }
  assert_ok(tarn_model_destroy(n.model));
  net_refused(view, TARN_HOST);
  assert_error_says("its model has given its memory back");
  assert_ok(tarn_synced_destroy(view));
}

// Its memory is there again in the next round, as long as the sizes are.
TEST(test_rounds_take_no_more) {
  net n = net_placed(AT_HOST, NULL);
  uint64_t allocs = 0;
  size_t live = 0;
  size_t held = 0;
  for (unsigned round = 0; round < 20; round++) {
    if (round == 3) {
      allocs = stats_of(TARN_HOST).allocs;
      live = stats_of(TARN_HOST).live_bytes;
      held = tarn_host_memory();
    }
    for (size_t i = 0; i < NET_STEPS; i++) {
      tarn_synced *buffer = NULL;
      net_enter(&n, i, TARN_FORWARD);
      push_mask(&n, i);
      push(&n, i, TARN_DTYPE_F64, 10 + i, &buffer);
      net_write(buffer, 80 + 8 * i, TARN_HOST, NULL, 1);
    }
  }
  ck_assert_uint_eq(stats_of(TARN_HOST).allocs, allocs);
  ck_assert_uint_eq(stats_of(TARN_HOST).live_bytes, live);
  ck_assert_uint_eq(tarn_host_memory(), held);
  // Another size, and the former memory is gone.
  for (size_t count = 100; count < 110; count++) {
    tarn_synced *buffer = NULL;
    net_enter(&n, 0, TARN_FORWARD);
    push_mask(&n, 0);
    push(&n, 0, TARN_DTYPE_F64, count, &buffer);
    net_write(buffer, 8 * count, TARN_HOST, NULL, 1);
  }
  tarn_pool_stats stats = stats_of(TARN_HOST);
  ck_assert_uint_eq(stats.allocs, allocs + 10);
  ck_assert_uint_le(stats.live_bytes, live + 1024);
  ck_assert_uint_eq(report_of(&n).extra_pushes, 20 * NET_STEPS + 10);
  assert_ok(tarn_model_destroy(n.model));
  ck_assert_uint_eq(stats_of(TARN_HOST).live_bytes, 0);
}

// --- faults ----------------------------------------------------------------

// What failed has pushed nothing, and the next goes on.
TEST(test_no_memory_to_push) {
  faults_install();
  net n = net_placed(AT_HOST, NULL);
  size_t failed = 0;
  for (int mode = FAULTS_ONCE; mode <= FAULTS_FROM_NOW; mode++) {
    bool struck = true;
    for (size_t met = 1; struck; met++) {
      tarn_synced *buffer = NULL;
      net_enter(&n, 1, TARN_FORWARD);
      push_mask(&n, 1);
      faults_arm(met, (faults_mode)mode);
      tarn_status status =
          tarn_step_push(n.step[1], TARN_DTYPE_U8, 100 + met, false, &buffer);
      struck = faults_disarm();
      ck_assert((buffer == NULL) == (status != TARN_OK));
      if (status != TARN_OK) {
        assert_status(status, TARN_E_NOMEM);
        failed++;
        push(&n, 1, TARN_DTYPE_U8, 100 + met, &buffer);
      }
      net_write(buffer, 100, TARN_HOST, NULL, 2);
      net_enter(&n, 1, TARN_BACKWARD);
      assert_ok(
          tarn_step_pop(n.step[1], TARN_DTYPE_U8, 100 + met, false, &buffer));
      net_expect(buffer, 100, TARN_HOST, 2);
      assert_ok(tarn_step_pop(n.step[1], TARN_DTYPE_BOOL, 128, true, &buffer));
      assert_ok(tarn_model_leave(n.model));
    }
    assert_ok(tarn_model_release(n.model));  // and the stacks with it
    assert_ok(tarn_model_place(n.model));
  }
  ck_assert_uint_ge(failed, 6);
  assert_ok(tarn_model_destroy(n.model));
}
