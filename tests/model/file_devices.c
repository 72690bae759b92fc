// Parameters in files, with a device as the model's home: no room, failures
// half way, and the state afterwards.
#include "file_kit.h"

// Room for some of them only. Not on fake:0, whose pinned memory comes out of
// the same capacity.
TEST_LOOP(a_device_without_room, TEST_DEVICES) {
  if (strcmp(test_devices[_i], "fake:0") == 0) return;
  tarn_device *device = open_small_device(_i, (size_t)256 << 10);
  if (device == NULL) return;
  net n = new_net(TARN_TRAIN, tarn_place_on(device));
  fill_net(&n, 1, TARN_HOST);
  assert_ok(tarn_model_save(n.model, path, 0));
  fill_net(&n, 2, TARN_HOST);
  assert_refuses(&n, TARN_FILE_COPY, TARN_FULL, tarn_device_name(device));
  load(&n, 0);
  expect_net(&n, 1, TARN_HOST);
  assert_ok(tarn_model_destroy(n.model));
}

// Parameters that have no value yet have none after that.
TEST_LOOP(a_device_without_room_at_first, TEST_DEVICES) {
  tarn_device *device = open_small_device(_i, (size_t)256 << 10);
  if (device == NULL) return;
  net n = new_net(TARN_TRAIN, TARN_HOST);
  fill_net(&n, 1, TARN_HOST);
  assert_ok(tarn_model_save(n.model, path, 0));
  assert_ok(tarn_model_destroy(n.model));
  n = new_net(TARN_TRAIN, tarn_place_on(device));
  assert_status(tarn_model_load(n.model, path, TARN_FILE_COPY, NULL),
                TARN_FULL);
  for (size_t i = 0; i < COUNT; i++) {
    tarn_synced_info info = {.struct_size = sizeof info};
    assert_ok(
        tarn_synced_query(n.param[i]->data, 0, TARN_ALL, TARN_HOST, &info));
    ck_assert_uint_eq(info.unwritten, n.param[i]->max_size);
  }
  assert_ok(tarn_model_destroy(n.model));
}

TEST(a_copy_that_fails_half_way) {
  size_t lost = 0;
  tarn_device *sim = sim_open("sim:0");
  tarn_place home = tarn_place_on(sim);
  net n = net_beside_a_file(TARN_TRAIN, home);
  assert_ok(tarn_sim_faults("memory_copy_h2d@3"));
  assert_status(tarn_model_load(n.model, path, TARN_FILE_COPY, NULL),
                TARN_E_DEVICE);
  assert_error_says("net.safetensors: only 2 of 7 tensors were loaded: ");
  assert_ok(tarn_sim_faults(NULL));
  ck_assert_uint_eq(count_new(&n, TARN_HOST, &lost), 2);
  ck_assert_uint_eq(lost, 1);
  ck_assert_uint_eq(mappings(), 0);
  load(&n, TARN_FILE_COPY);
  expect_net(&n, 1, home);
  fill_net(&n, 2, home);
  expect_net(&n, 2, TARN_HOST);  // and there is a copy at the host now
  assert_ok(tarn_sim_faults("memory_copy_h2d@1"));
  assert_status(tarn_model_load(n.model, path, TARN_FILE_COPY, NULL),
                TARN_E_DEVICE);
  assert_ok(tarn_sim_faults(NULL));
  expect_net(&n, 2, TARN_HOST);
  assert_ok(tarn_model_destroy(n.model));
  assert_ok(tarn_device_close(sim));
}

// After each failing call all values are old or new, except one.
TEST(any_call_of_the_device_may_fail) {
  static const uint32_t flags[] = {0, TARN_FILE_COPY};
  char plan[32];
  size_t failures = 0;
  tarn_device *sim = sim_open("sim:0");
  tarn_place home = tarn_place_on(sim);
  net n = net_beside_a_file(TARN_TRAIN, home);
  for (int n_th = 1; n_th <= 120; n_th++) {
    size_t lost = 0;
    uint32_t how = flags[n_th % 2];
    snprintf(plan, sizeof plan, "*@%d", (n_th + 1) / 2);
    fill_net(&n, 2, n_th % 4 < 2 ? home : TARN_HOST);
    assert_ok(tarn_sim_faults(plan));
    tarn_status status = tarn_model_load(n.model, path, how, NULL);
    assert_ok(tarn_sim_faults(NULL));
    size_t news = count_new(&n, TARN_HOST, &lost);
    require(status == TARN_OK || status == TARN_E_DEVICE ||
            status == TARN_FULL);
    require(status == TARN_OK ? news == COUNT - 1 && lost == 0 : lost <= 1);
    if (status == TARN_FULL) require(news == 0 && lost == 0);
    failures += status != TARN_OK;
  }
  ck_assert_uint_gt(failures, 5);
  ck_assert_uint_lt(failures, 60);
  assert_ok(tarn_model_destroy(n.model));
  assert_ok(tarn_device_close(sim));
}

TEST(a_save_from_a_device_that_fails) {
  char plan[32];
  size_t failures = 0;
  size_t size = 0;
  tarn_device *sim = sim_open("sim:0");
  tarn_place home = tarn_place_on(sim);
  net n = net_beside_a_file(TARN_TRAIN, home);
  unsigned char *was = read_whole(&size);
  for (int n_th = 1; n_th <= 40; n_th++) {
    snprintf(plan, sizeof plan, "*@%d", n_th);
    assert_ok(tarn_sim_faults(plan));
    tarn_status status = tarn_model_save(n.model, path, 0);
    assert_ok(tarn_sim_faults(NULL));
    expect_net(&n, 2, home);
    if (status == TARN_OK) break;
    require(status == TARN_E_DEVICE);
    unsigned char *is = read_whole(NULL);
    require(memcmp(is, was, size) == 0);
    free(is);
    failures++;
  }
  ck_assert_uint_ge(failures, COUNT - 1);  // each of them is a copy at least
  ck_assert_uint_lt(failures, 40);
  load(&n, 0);
  expect_net(&n, 2, TARN_HOST);
  free(was);
  assert_ok(tarn_model_destroy(n.model));
  assert_ok(tarn_device_close(sim));
}

// What was there wants its bytes back first, which the device does not give.
TEST(memory_that_cannot_be_exchanged) {
  static unsigned char borrowed[1 << 19];
  tarn_device *sim = sim_open("sim:0");
  net n = net_beside_a_file(TARN_TRAIN, TARN_HOST);
  const tarn_wrap_options options = {.struct_size = sizeof options,
                                     .flags = TARN_WRAP_SYNC_BACK};
  memset(borrowed, 9, sizeof borrowed);
  assert_ok(tarn_synced_wrap(n.param[4]->data, TARN_HOST,
                             (tarn_addr)(uintptr_t)(void *)borrowed, &options));
  fill_tensor(n.param[4], 2, tarn_place_on(sim));
  assert_ok(tarn_sim_faults("memory_copy_d2h@1"));
  assert_status(tarn_model_load(n.model, path, 0, NULL), TARN_E_DEVICE);
  assert_error_says("net.safetensors: only 3 of 7 tensors were loaded: ");
  assert_ok(tarn_sim_faults(NULL));
  ck_assert_uint_eq(borrowed[5], 9);
  for (size_t i = 0; i < COUNT; i++)
    ck_assert(tensor_has(n.param[i], i < 3 ? 1 : 2, TARN_HOST));
  load(&n, 0);
  expect_net(&n, 1, TARN_HOST);
  ck_assert_uint_eq(borrowed[5], byte_of(n.param[4], 2, 5));
  assert_ok(tarn_model_destroy(n.model));
  ck_assert_uint_eq(mappings(), 0);
  assert_ok(tarn_device_close(sim));
}
