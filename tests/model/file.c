// Parameters of a model in files: saved, loaded, mapped and copied.
#include "file_kit.h"

static const int64_t five_seven[] = {5, 7};
static const tarn_shape weight_shape = {five_seven, 2};

// A file with pattern 1 of all parameters.
static void save_a_file(void) {
  net n = new_net(TARN_INFER, TARN_HOST);
  fill_net(&n, 1, TARN_HOST);
  assert_ok(tarn_model_save(n.model, path, 0));
  assert_ok(tarn_model_destroy(n.model));
}

// --- both ways -------------------------------------------------------------

TEST(what_was_saved_is_loaded) {
  save_a_file();
  net n = new_net(TARN_TRAIN, TARN_HOST);
  fill_net(&n, 2, TARN_HOST);
  tarn_model_loaded loaded = load(&n, 0);
  ck_assert_uint_eq(loaded.struct_size, sizeof loaded);
  ck_assert_uint_eq(loaded.mapped, COUNT - 1);
  ck_assert_uint_eq(loaded.copied, 1);  // without bytes
  ck_assert_uint_eq(loaded.missing, 0);
  ck_assert_uint_eq(loaded.unused, 0);
  ck_assert_uint_eq(loaded.bytes, PARAM_BYTES);
  expect_net(&n, 1, TARN_HOST);
  ck_assert(tensor_has(n.tied, 1, TARN_HOST));
  assert_ok(tarn_model_load(n.model, path, 0, NULL));
  expect_net(&n, 1, TARN_HOST);
  assert_ok(tarn_model_destroy(n.model));
}

// Names, dtypes and shapes stand in the file as any reader sees them.
TEST(the_file_has_each_once) {
  tarn_safetensors *file = NULL;
  save_a_file();
  assert_ok(tarn_safetensors_open(path, &file));
  ck_assert_uint_eq(tarn_safetensors_count(file), COUNT);
  for (size_t i = 0; i < COUNT; i++) {
    const tarn_safetensor *found = tarn_safetensors_find(file, sorts[i].name);
    ck_assert_ptr_nonnull(found);
    ck_assert_int_eq(found->dtype, sorts[i].dtype);
    ck_assert_uint_eq(found->shape.rank, sorts[i].rank);
    for (size_t k = 0; k < sorts[i].rank; k++)
      ck_assert_int_eq(found->shape.dims[k], sorts[i].dims[k]);
    ck_assert(found->aligned);
  }
  ck_assert_ptr_null(tarn_safetensors_find(file, "fc.tied"));
  tarn_safetensors_close(file);
}

TEST(what_nobody_wrote_is_zeros) {
  net n = new_net(TARN_INFER, TARN_HOST);
  size_t before = live_at(TARN_HOST);
  assert_ok(tarn_model_save(n.model, path, 0));
  ck_assert_uint_eq(live_at(TARN_HOST), before);
  fill_net(&n, 3, TARN_HOST);
  load(&n, 0);
  expect_net(&n, 0, TARN_HOST);
  assert_ok(tarn_model_destroy(n.model));
}

TEST(a_long_name_and_any_utf8) {
  enum { LONG = 10000 };
  static char name[LONG + 1];
  const char *const names[] = {name, "\xc3\xa9\n\"\\", "__metadata", " "};
  memset(name, 'n', LONG);
  for (int round = 0; round < 2; round++) {
    tarn_model *model = NULL;
    tarn_tensor *tensors[4];
    assert_ok(tarn_model_create(NULL, &model));
    for (size_t i = 0; i < 4; i++) {
      assert_ok(tarn_model_add(model, TARN_PARAM, names[i], TARN_DTYPE_F32,
                               weight_shape, &tensors[i]));
    }
    assert_ok(tarn_model_plan(model, NULL));
    assert_ok(tarn_model_place(model));
    for (size_t i = 0; i < 4; i++) {
      unsigned seed = 3 + (unsigned)i;
      if (round == 0) fill_tensor(tensors[i], seed, TARN_HOST);
    }
    if (round == 0) assert_ok(tarn_model_save(model, path, 0));
    if (round == 1) assert_ok(tarn_model_load(model, path, 0, NULL));
    for (size_t i = 0; i < 4; i++)
      ck_assert(tensor_has(tensors[i], 3 + (unsigned)i, TARN_HOST));
    assert_ok(tarn_model_destroy(model));
  }
}

// Buffers of parameters stay when a model is released and planned anew.
TEST(a_released_model_has_its_parameters) {
  save_a_file();
  net n = new_net(TARN_INFER, TARN_HOST);
  assert_ok(tarn_model_release(n.model));
  load(&n, 0);
  assert_ok(tarn_model_forget(n.model));
  assert_ok(tarn_model_plan(n.model, NULL));
  assert_ok(tarn_model_place(n.model));
  expect_net(&n, 1, TARN_HOST);
  assert_ok(tarn_model_release(n.model));
  assert_ok(tarn_model_forget(n.model));
  assert_ok(tarn_model_save(n.model, path, 0));
  load(&n, TARN_FILE_COPY);
  expect_net(&n, 1, TARN_HOST);
  assert_ok(tarn_model_destroy(n.model));
}

// --- mapped ----------------------------------------------------------------

TEST(mapped_tensors_take_no_memory) {
  save_a_file();
  net n = new_net(TARN_INFER, TARN_HOST);
  size_t before = live_at(TARN_HOST);
  load(&n, 0);
  expect_net(&n, 1, TARN_HOST);
  ck_assert_uint_eq(live_at(TARN_HOST), before);
  ck_assert_uint_eq(mappings(), 1);
  for (size_t i = 0; i < COUNT; i++) {
    tarn_synced_info info = {.struct_size = sizeof info};
    assert_ok(
        tarn_synced_query(n.param[i]->data, 0, TARN_ALL, TARN_HOST, &info));
    ck_assert_uint_eq(info.valid, n.param[i]->max_size);
  }
  assert_ok(tarn_model_destroy(n.model));
  ck_assert_uint_eq(mappings(), 0);
}

// Former memory goes back to its pool.
TEST(a_load_lets_go_of_what_was_there) {
  save_a_file();
  net n = new_net(TARN_INFER, TARN_HOST);
  size_t before = live_at(TARN_HOST);
  fill_net(&n, 2, TARN_HOST);
  ck_assert_uint_ge(live_at(TARN_HOST), before + PARAM_BYTES);
  load(&n, 0);
  ck_assert_uint_eq(live_at(TARN_HOST), before);
  assert_ok(tarn_model_destroy(n.model));
}

TEST(the_first_write_moves) {
  size_t size = 0;
  save_a_file();
  unsigned char *was = read_whole(&size);
  net n = new_net(TARN_TRAIN, TARN_HOST);
  size_t before = live_at(TARN_HOST);
  load(&n, 0);
  fill_tensor(n.param[0], 2, TARN_HOST);
  ck_assert_uint_ge(live_at(TARN_HOST), before + n.param[0]->max_size);
  ck_assert_uint_lt(live_at(TARN_HOST), before + n.param[4]->max_size);
  ck_assert(tensor_has(n.param[0], 2, TARN_HOST));
  ck_assert(tensor_has(n.tied, 2, TARN_HOST));
  tarn_access a;  // a part of it: the rest is brought along
  unsigned char *half = pattern_of(n.param[4], 1);
  assert_ok(tarn_synced_begin(n.param[4]->data, 1000, 10, TARN_HOST,
                              TARN_WRITE_DISCARD, NULL, &a));
  memset(a.pointer, 9, 10);
  memset(half + 1000, 9, 10);
  assert_ok(tarn_synced_end(&a));
  assert_ok(tarn_synced_begin(n.param[4]->data, 0, TARN_ALL, TARN_HOST,
                              TARN_READ, NULL, &a));
  ck_assert_mem_eq(a.pointer, half, a.size);
  assert_ok(tarn_synced_end(&a));
  ck_assert_uint_eq(mappings(), 1);
  fill_net(&n, 2, TARN_HOST);
  ck_assert_uint_eq(mappings(), 0);  // the last one has left
  size_t now = 0;
  unsigned char *is = read_whole(&now);
  ck_assert_uint_eq(now, size);
  ck_assert_mem_eq(is, was, size);
  expect_net(&n, 2, TARN_HOST);
  assert_ok(tarn_model_destroy(n.model));
  free(half);
  free(is);
  free(was);
}

TEST(a_view_keeps_the_file) {
  tarn_synced *view = NULL;
  tarn_access a;
  save_a_file();
  net n = new_net(TARN_INFER, TARN_HOST);
  unsigned char *bytes = pattern_of(n.param[0], 1);
  load(&n, 0);
  assert_ok(tarn_synced_view(n.param[0]->data, 4, 8, &view));
  assert_ok(tarn_model_destroy(n.model));
  ck_assert_uint_eq(mappings(), 1);
  assert_ok(
      tarn_synced_begin(view, 0, TARN_ALL, TARN_HOST, TARN_READ, NULL, &a));
  ck_assert_mem_eq(a.pointer, bytes + 4, 8);
  assert_ok(tarn_synced_end(&a));
  assert_ok(tarn_synced_destroy(view));
  ck_assert_uint_eq(mappings(), 0);
  free(bytes);
}

// The new file takes the place of the old, which stays as long as it is used.
TEST(a_model_is_saved_over_its_own_file) {
  save_a_file();
  net n = new_net(TARN_INFER, TARN_HOST);
  load(&n, 0);
  fill_tensor(n.param[0], 2, TARN_HOST);
  assert_ok(tarn_model_save(n.model, path, 0));
  ck_assert(tensor_has(n.param[4], 1, TARN_HOST));
  load(&n, 0);
  ck_assert_uint_eq(mappings(), 1);
  ck_assert(tensor_has(n.param[0], 2, TARN_HOST));
  ck_assert(tensor_has(n.param[4], 1, TARN_HOST));
  assert_ok(tarn_model_destroy(n.model));
}

// --- copied ----------------------------------------------------------------

TEST(a_copy_leaves_the_file) {
  save_a_file();
  net n = new_net(TARN_INFER, TARN_HOST);
  fill_tensor(n.param[0], 2, TARN_HOST);  // some have values, some have none
  tarn_model_loaded loaded = load(&n, TARN_FILE_COPY);
  ck_assert_uint_eq(loaded.mapped, 0);
  ck_assert_uint_eq(loaded.copied, COUNT);
  ck_assert_uint_eq(loaded.bytes, PARAM_BYTES);
  ck_assert_uint_eq(mappings(), 0);
  write_whole("", 0);
  expect_net(&n, 1, TARN_HOST);
  ck_assert_uint_ge(live_at(TARN_HOST), PARAM_BYTES);
  assert_ok(tarn_model_destroy(n.model));
}

// A header of another length: nothing but bytes is aligned then.
TEST(what_is_not_aligned_is_copied) {
  size_t size = 0;
  save_a_file();
  unsigned char *bytes = read_whole(&size);
  size_t data = 8 + bytes[0] + (size_t)bytes[1] * 256;
  memmove(bytes + data + 1, bytes + data, size - data);
  bytes[data] = ' ';
  bytes[0]++;
  write_whole(bytes, size + 1);
  free(bytes);
  net n = new_net(TARN_INFER, TARN_HOST);
  tarn_model_loaded loaded = load(&n, 0);
  ck_assert_uint_eq(loaded.mapped, 2);  // bool and i8
  ck_assert_uint_eq(loaded.copied, 5);
  expect_net(&n, 1, TARN_HOST);
  assert_ok(tarn_model_destroy(n.model));
}

// --- which of them ---------------------------------------------------------

TEST(states_are_asked_for) {
  net n = new_net(TARN_TRAIN, TARN_HOST);
  fill_net(&n, 1, TARN_HOST);
  fill_tensor(n.state, 5, TARN_HOST);
  assert_ok(tarn_model_save(n.model, path, TARN_FILE_STATES));
  fill_tensor(n.state, 6, TARN_HOST);
  tarn_model_loaded loaded = load(&n, 0);
  ck_assert_uint_eq(loaded.unused, 1);
  ck_assert(tensor_has(n.state, 6, TARN_HOST));
  loaded = load(&n, TARN_FILE_STATES);
  ck_assert_uint_eq(loaded.unused, 0);
  ck_assert_uint_eq(loaded.mapped, COUNT);
  ck_assert_uint_eq(loaded.bytes, PARAM_BYTES + STATE_BYTES);
  ck_assert(tensor_has(n.state, 5, TARN_HOST));
  assert_ok(tarn_model_save(n.model, path, 0));
  fill_tensor(n.state, 7, TARN_HOST);
  loaded = load(&n, TARN_FILE_STATES);
  ck_assert_uint_eq(loaded.missing, 1);
  ck_assert(tensor_has(n.state, 7, TARN_HOST));
  assert_ok(tarn_model_destroy(n.model));
}

// A file by another program, with that tensor and an unknown one.
static void write_file_of(const char *name, const tarn_tensor *like) {
  tarn_safetensors_writer *writer = NULL;
  unsigned char *bytes = pattern_of(like, 4);
  assert_ok(tarn_safetensors_writer_create(&writer));
  assert_ok(
      tarn_safetensors_add(writer, name, like->dtype, like->shape, bytes));
  assert_ok(tarn_safetensors_add(writer, "x", like->dtype, like->shape, bytes));
  assert_ok(tarn_safetensors_write(writer, path));
  tarn_safetensors_writer_destroy(writer);
  free(bytes);
}

TEST(some_may_be_missing) {
  net n = new_net(TARN_TRAIN, TARN_HOST);
  fill_net(&n, 2, TARN_HOST);
  write_file_of("half", n.param[4]);
  tarn_model_loaded loaded = load(&n, TARN_FILE_PARTIAL);
  ck_assert_uint_eq(loaded.mapped, 1);
  ck_assert_uint_eq(loaded.missing, COUNT - 1);
  ck_assert_uint_eq(loaded.unused, 1);  // "x" is no parameter
  for (size_t i = 0; i < COUNT; i++)
    ck_assert(tensor_has(n.param[i], i == 4 ? 4 : 2, TARN_HOST));
  assert_ok(tarn_model_destroy(n.model));
}

TEST(a_tied_parameter_has_two_names) {
  net n = new_net(TARN_TRAIN, TARN_HOST);
  write_file_of("fc.tied", n.param[0]);
  tarn_model_loaded loaded = load(&n, TARN_FILE_PARTIAL);
  ck_assert_uint_eq(loaded.mapped, 1);
  ck_assert_uint_eq(loaded.missing, COUNT - 1);
  ck_assert_uint_eq(loaded.unused, 1);
  ck_assert(tensor_has(n.param[0], 4, TARN_HOST));
  ck_assert(tensor_has(n.tied, 4, TARN_HOST));
  assert_ok(tarn_model_destroy(n.model));
}

// --- devices ---------------------------------------------------------------

static tarn_place pinned(tarn_device *device) {
  return (tarn_place){device, TARN_PLACE_HOST};
}

TEST_ON(parameters_on_a_device, TEST_NEEDS_DISCRETE) {
  tarn_place home = tarn_place_on(device);
  net n = new_net(TARN_TRAIN, home);
  fill_net(&n, 1, home);
  size_t host = live_at(TARN_HOST) + live_at(pinned(device));
  assert_ok(tarn_model_save(n.model, path, 0));
  ck_assert_uint_eq(live_at(TARN_HOST) + live_at(pinned(device)), host);
  size_t size = 0;
  unsigned char *was = read_whole(&size);
  fill_net(&n, 2, home);
  tarn_model_loaded loaded = load(&n, 0);
  ck_assert_uint_eq(loaded.mapped, COUNT - 1);
  expect_net(&n, 1, home);
  expect_net(&n, 1, TARN_HOST);
  ck_assert_uint_eq(live_at(TARN_HOST) + live_at(pinned(device)), host);
  fill_net(&n, 3, home);
  expect_net(&n, 3, home);
  expect_net(&n, 3, TARN_HOST);  // which has memory of its own now
  unsigned char *is = read_whole(NULL);
  ck_assert_mem_eq(is, was, size);
  ck_assert_uint_eq(mappings(), 0);
  assert_ok(tarn_model_destroy(n.model));
  ck_assert_uint_eq(sim_misuses(), 0);
  free(is);
  free(was);
}

// Straight to the device, without memory at the host.
TEST_ON(a_copy_to_a_device, TEST_NEEDS_DISCRETE) {
  save_a_file();
  tarn_place home = tarn_place_on(device);
  for (int round = 0; round < 2; round++) {
    net n = new_net(TARN_INFER, home);
    if (round == 1) fill_net(&n, 2, home);
    size_t host = live_at(TARN_HOST) + live_at(pinned(device));
    tarn_model_loaded loaded = load(&n, TARN_FILE_COPY);
    ck_assert_uint_eq(loaded.copied, COUNT);
    ck_assert_uint_eq(mappings(), 0);
    expect_net(&n, 1, home);
    ck_assert_uint_eq(live_at(TARN_HOST) + live_at(pinned(device)), host);
    assert_ok(tarn_model_destroy(n.model));
  }
  ck_assert_uint_eq(sim_misuses(), 0);
}

// At a place that the model does not know: the host gets it, and gives it back.
TEST_ON(parameters_elsewhere, TEST_NEEDS_DISCRETE) {
  net n = new_net(TARN_INFER, TARN_HOST);
  size_t host = live_at(TARN_HOST);
  fill_net(&n, 1, tarn_place_on(device));
  assert_ok(tarn_model_save(n.model, path, 0));
  ck_assert_uint_eq(live_at(TARN_HOST), host);
  fill_net(&n, 2, tarn_place_on(device));
  load(&n, 0);
  expect_net(&n, 1, tarn_place_on(device));
  assert_ok(tarn_model_destroy(n.model));
}

// The newest bytes of one parameter are at two places.
TEST_ON(parameters_in_two_halves, TEST_NEEDS_DISCRETE) {
  tarn_access a;
  net n = new_net(TARN_INFER, tarn_place_on(device));
  fill_net(&n, 1, TARN_HOST);
  expect_net(&n, 1, tarn_place_on(device));
  unsigned char *bytes = pattern_of(n.param[4], 1);
  assert_ok(tarn_synced_begin(n.param[4]->data, 100, 50, TARN_HOST,
                              TARN_READ_WRITE, NULL, &a));
  memset(a.pointer, 8, 50);
  memset(bytes + 100, 8, 50);
  assert_ok(tarn_synced_end(&a));
  assert_ok(tarn_synced_begin(n.param[4]->data, 2000, 70, tarn_place_on(device),
                              TARN_READ_WRITE, NULL, &a));
  assert_ok(tarn_device_set(device, a.address, 7, 70, NULL));
  memset(bytes + 2000, 7, 70);
  assert_ok(tarn_synced_end(&a));
  assert_ok(tarn_model_save(n.model, path, 0));
  load(&n, 0);
  assert_ok(tarn_synced_begin(n.param[4]->data, 0, TARN_ALL, TARN_HOST,
                              TARN_READ, NULL, &a));
  ck_assert_mem_eq(a.pointer, bytes, a.size);
  assert_ok(tarn_synced_end(&a));
  assert_ok(tarn_model_destroy(n.model));
  free(bytes);
}

// Streams still read and write what is to be replaced: they are waited for.
TEST(a_load_behind_streams) {
  const tarn_sim_options slow = {.struct_size = sizeof slow,
                                 .latency_ns = 20000000};
  save_a_file();
  assert_ok(tarn_sim_configure(&slow));
  tarn_device *sim = sim_open("sim:0");
  tarn_place home = tarn_place_on(sim);
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(sim, &stream));
  for (int round = 0; round < 4; round++) {
    tarn_access a;
    net n = new_net(TARN_INFER, home);
    unsigned char *bytes = pattern_of(n.param[4], 3);
    fill_tensor(n.param[4], 2, TARN_HOST);
    assert_ok(tarn_synced_begin(n.param[4]->data, 0, TARN_ALL, home,
                                round < 2 ? TARN_READ : TARN_WRITE_DISCARD,
                                stream, &a));
    if (round >= 2) {
      assert_ok(tarn_copy_h2d(sim, a.address, bytes, a.size, stream));
    }
    assert_ok(tarn_synced_end(&a));
    load(&n, round % 2 == 0 ? 0 : TARN_FILE_COPY);
    ck_assert(tensor_has(n.param[4], 1, TARN_HOST));
    assert_ok(tarn_stream_synchronize(stream));
    ck_assert(tensor_has(n.param[4], 1, home));
    ck_assert(tensor_has(n.param[4], 1, TARN_HOST));
    free(bytes);
    assert_ok(tarn_model_destroy(n.model));
  }
  ck_assert_uint_eq(sim_misuses(), 0);
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_device_close(sim));
}
