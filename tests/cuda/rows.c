// Rows by the plug-in's kernels, through the library, over the stand-in: beside
// a model, with bad indices, in host memory, and where the driver has no use
// for the kernels and the library stands in.
#include "tarn/rows.h"

#include "cuda/api.h"
#include "device/rows_model.h"
#include "over.h"

static tarn_device *open_zero(const char *settings) {
  over_set(settings);
  over_register();
  return open_device("cuda:0");
}

static void close_zero(tarn_device *device, size_t number) {
  close_device(device);
  over_assert_clean("rows", number);
}

static tarn_stream *make_stream(tarn_device *device) {
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  return stream;
}

static const rows_shape plain = {.table_dtype = TARN_DTYPE_F32,
                                 .dense_dtype = TARN_DTYPE_F32,
                                 .index_dtype = TARN_DTYPE_I64,
                                 .width = 16,
                                 .table_count = 50,
                                 .index_count = 1000};

// --- against the model -----------------------------------------------------

static const rows_shape shapes[] = {
    {.width = 16, .table_count = 40, .index_count = 25},
    {.width = 1, .table_count = 300, .index_count = 200},
    {.width = 3, .table_count = 40, .index_count = 25, .table_gap = 8},
    {.width = 130, .table_count = 40, .index_count = 25, .dense_gap = 8},
    {.width = 5, .table_count = 9, .index_count = 31, .offset = 24},
    {.width = 7, .table_count = 12, .index_count = 11, .in_chunks = true},
    {.width = 64, .table_count = 12, .index_count = 400, .flags = 1},
    {.width = 4, .table_count = 0, .index_count = 5, .offset = 8, .flags = 1},
    {.width = 0, .table_count = 8, .index_count = 5, .offset = 8},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void try_shape(tarn_device *device, const rows_shape *c,
                      tarn_stream *stream) {
  for (int a = ROWS_GATHER; a < ROWS_ACTIONS; a++) {
    rows_stage s;
    rows_stage_set_up(&s, device, c);
    if (a == ROWS_SCATTER && c->index_count <= c->table_count)
      rows_stage_make_distinct(&s);
    assert_ok(rows_stage_run(&s, (rows_action)a, stream));
    if (stream != NULL) assert_ok(tarn_stream_synchronize(stream));
    rows_stage_model(&s, (rows_action)a);
    rows_stage_expect(&s);
    rows_stage_tear_down(&s);
  }
}

static const tarn_dtype pairs[][2] = {
    {TARN_DTYPE_F32, TARN_DTYPE_F32},
    {TARN_DTYPE_BF16, TARN_DTYPE_F32},
    {TARN_DTYPE_U8, TARN_DTYPE_I64},
};

// The last time as the library does it, of a device without kernels.
TEST_LOOP(every_shape, 3) {
  static const char *const settings[] = {"", "LATE=300", "IMAGES=222"};
  tarn_device *device = open_zero(settings[_i]);
  tarn_stream *stream = make_stream(device);
  for (size_t i = 0; i < SHAPES; i++) {
    for (size_t k = 0; k < 3; k++) {
      rows_shape c = shapes[i];
      c.table_dtype = pairs[k][0];
      c.dense_dtype = pairs[k][1];
      c.index_dtype = (i + k) % 2 == 0 ? TARN_DTYPE_I64 : TARN_DTYPE_I32;
      try_shape(device, &c, k == 0 ? NULL : stream);
    }
  }
  tarn_stream_destroy(stream);
  close_zero(device, (size_t)_i);
}

// --- launches --------------------------------------------------------------

TEST(kernels_do_the_work) {
  tarn_device *device = open_zero("");
  rows_stage s;
  rows_stage_set_up(&s, device, &plain);
  uint64_t before = tarn_standin_calls("cuLaunchKernel");
  assert_ok(tarn_rows_gather(device, &s.rows, NULL));
  ck_assert_uint_eq(tarn_standin_calls("cuLaunchKernel"), before + 1);
  s.rows.index_count = 0;
  assert_ok(tarn_rows_gather(device, &s.rows, NULL));
  ck_assert_uint_eq(tarn_standin_calls("cuLaunchKernel"), before + 1);
  rows_stage_tear_down(&s);
  close_zero(device, 0);
}

TEST(a_launch_that_is_refused_is_no_wrong_argument) {
  tarn_device *device = open_zero("");
  rows_stage s;
  rows_stage_set_up(&s, device, &plain);
  tarn_standin_fail_call("cuLaunchKernel", 1, TARN__CU_ERROR_INVALID_VALUE,
                         false);
  assert_fails(tarn_rows_gather(device, &s.rows, NULL), TARN_E_DEVICE,
               "cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1)");
  assert_ok(tarn_rows_gather(device, &s.rows, NULL));
  rows_stage_tear_down(&s);
  close_zero(device, 0);
}

// --- bad indices -----------------------------------------------------------

TEST_LOOP(a_bad_index_is_told_at_once, ROWS_ACTIONS) {
  tarn_device *device = open_zero("");
  rows_stage s;
  rows_stage_set_up(&s, device, &plain);
  s.indices[990] = 50;
  s.indices[991] = -1;
  rows_stage_upload_indices(&s);
  assert_fails(rows_stage_run(&s, (rows_action)_i, NULL), TARN_E_INVALID,
               "index 50 at position 990 is not in 0..49");
  s.indices[990] = s.indices[991] = 0;
  rows_stage_upload_indices(&s);
  assert_ok(rows_stage_run(&s, (rows_action)_i, NULL));
  rows_stage_tear_down(&s);
  close_zero(device, (size_t)_i);
}

// The first call that fails is told, and not the one behind it.
TEST_LOOP(a_bad_index_fails_the_stream, ROWS_ACTIONS) {
  tarn_device *device = open_zero("");
  tarn_stream *stream = make_stream(device);
  rows_stage first;
  rows_stage second;
  rows_stage_set_up(&first, device, &plain);
  rows_stage_set_up(&second, device, &plain);
  first.indices[700] = 1 << 20;
  second.indices[3] = -7;
  rows_stage_upload_indices(&first);
  rows_stage_upload_indices(&second);
  (void)!rows_stage_run(&first, (rows_action)_i, stream);
  (void)!rows_stage_run(&second, (rows_action)_i, stream);
  assert_fails(tarn_stream_synchronize(stream), TARN_E_DEVICE,
               "index 1048576 at position 700 is not in 0..49");
  tarn_stream_destroy(stream);
  rows_stage_tear_down(&first);
  rows_stage_tear_down(&second);
  close_zero(device, (size_t)_i);
}

// --- memory of the host ----------------------------------------------------

// Rows are read where they are.
TEST(a_table_in_pinned_memory) {
  tarn_device *device = open_zero("");
  tarn_place host = {device, TARN_PLACE_HOST};
  tarn_addr table = 0;
  rows_stage s;
  rows_stage_set_up(&s, device, &plain);
  assert_ok(tarn_device_allocate(host, s.table_size, &table));
  memcpy((void *)(uintptr_t)table, s.table, s.table_size);
  const tarn_addr chunks[] = {table};
  const tarn_addr *own = s.rows.table.chunks;
  s.rows.table.chunks = chunks;
  assert_ok(tarn_rows_gather(device, &s.rows, NULL));
  s.rows.table.chunks = own;
  rows_stage_model(&s, ROWS_GATHER);
  rows_stage_expect(&s);
  assert_ok(tarn_device_deallocate(host, table, s.table_size));
  rows_stage_tear_down(&s);
  close_zero(device, 0);
}

// --- without kernels -------------------------------------------------------

static void expect_without(const char *why) {
  tarn_device *device = open_device("cuda:0");
  tarn_device_info info = {.struct_size = sizeof info};
  rows_stage s;
  assert_ok(tarn_device_query(device, &info));
  ck_assert_msg(strstr(info.description, why) != NULL, "'%s' lacks '%s'",
                info.description, why);
  rows_stage_set_up(&s, device, &plain);
  uint64_t launches = tarn_standin_calls("cuLaunchKernel");
  assert_ok(tarn_rows_gather(device, &s.rows, NULL));
  ck_assert_uint_eq(tarn_standin_calls("cuLaunchKernel"), launches);
  rows_stage_model(&s, ROWS_GATHER);
  rows_stage_expect(&s);
  rows_stage_tear_down(&s);
  close_zero(device, 0);
}

TEST(a_driver_that_is_too_old_for_the_image) {
  over_set("IMAGES=222");
  over_register();
  expect_without(
      "without rows: cuModuleLoadData: "
      "CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)");
}

TEST(a_gpu_that_the_image_is_not_for) {
  over_set("IMAGES=209");
  over_register();
  expect_without(
      "without rows: cuModuleLoadData: "
      "CUDA_ERROR_NO_BINARY_FOR_GPU (209)");
}

// The module is given back.
TEST(an_image_that_lacks_a_kernel) {
  over_set("");
  over_register();
  tarn_standin_fail_call("cuModuleGetFunction", 5, 500, false);
  expect_without("without rows: cuModuleGetFunction: CUDA_ERROR_NOT_FOUND");
}
