// DLPack: exports of a model's tensors.
#include <pthread.h>
#include <sys/wait.h>

#include "file_kit.h"

// What an output holds before a call that is to make it NULL.
static tarn_dlpack_managed not_exported;
static tarn_dlpack_versioned not_exported_either;

TEST(an_export) {
  tarn_dlpack_managed *plain = NULL;
  tarn_dlpack_versioned *versioned = NULL;
  net n = new_net(TARN_TRAIN, TARN_HOST);
  fill_net(&n, 1, TARN_HOST);
  unsigned char *bytes = pattern_of(n.param[0], 1);
  assert_ok(tarn_tensor_to_dlpack(n.param[0], TARN_DATA, TARN_HOST, TARN_READ,
                                  &plain));
  const tarn_dlpack_tensor *t = &plain->tensor;
  ck_assert_int_eq(t->device.type, TARN_DLPACK_CPU);
  ck_assert_int_eq(t->ndim, 2);
  ck_assert_int_eq(t->shape[0], 5);
  ck_assert_int_eq(t->shape[1], 7);
  ck_assert_int_eq(t->strides[0], 7);
  ck_assert_int_eq(t->strides[1], 1);
  ck_assert_int_eq(t->dtype.code, TARN_DLPACK_FLOAT);
  ck_assert_int_eq(t->dtype.bits, 32);
  ck_assert_uint_eq(t->byte_offset, 0);
  ck_assert_mem_eq(t->data, bytes, 140);
  assert_ok(tarn_tensor_to_dlpack_versioned(n.tied, TARN_DATA, TARN_HOST,
                                            TARN_READ, &versioned));
  ck_assert_uint_eq(versioned->flags, TARN_DLPACK_READ_ONLY);
  ck_assert_uint_eq(versioned->version.major, 1);
  ck_assert_ptr_eq(versioned->tensor.data, t->data);
  tarn_dlpack_release(plain);
  tarn_dlpack_release_versioned(versioned);
  assert_ok(tarn_tensor_to_dlpack_versioned(n.param[1], TARN_DIFF, TARN_HOST,
                                            TARN_READ_WRITE, &versioned));
  ck_assert_uint_eq(versioned->flags, 0);
  ck_assert_int_eq(versioned->tensor.ndim, 0);
  *(double *)versioned->tensor.data = 0.5;
  tarn_dlpack_release_versioned(versioned);
  ck_assert_double_eq(*(const double *)host_pointer(n.param[1]->diff), 0.5);
  free(bytes);
  assert_ok(tarn_model_destroy(n.model));
}

TEST(every_parameter_can_be_exported) {
  net n = new_net(TARN_TRAIN, TARN_HOST);
  fill_net(&n, 1, TARN_HOST);
  for (size_t i = 0; i < COUNT; i++) {
    tarn_dlpack_managed *exported = NULL;
    tarn_dlpack_view view;
    assert_ok(tarn_tensor_to_dlpack(n.param[i], TARN_DATA, TARN_HOST, TARN_READ,
                                    &exported));
    assert_ok(tarn_dlpack_check(exported, &view));
    ck_assert_int_eq(view.dtype, sorts[i].dtype);
    ck_assert_uint_eq(view.size, n.param[i]->max_size);
    ck_assert_uint_eq(view.shape.rank, sorts[i].rank);
    tarn_dlpack_release(exported);
  }
  assert_ok(tarn_model_destroy(n.model));
}

TEST(the_present_batch_is_exported) {
  tarn_dlpack_managed *exported = NULL;
  net n = new_net(TARN_INFER, TARN_HOST);
  assert_ok(tarn_model_set_batch(n.model, 2));
  assert_ok(tarn_tensor_to_dlpack(n.fed, TARN_DATA, TARN_HOST, TARN_READ_WRITE,
                                  &exported));
  ck_assert_int_eq(exported->tensor.shape[0], 2);
  ck_assert_int_eq(exported->tensor.shape[1], 3);
  memset(exported->tensor.data, 5, 24);
  tarn_synced_info info = {.struct_size = sizeof info};
  tarn_dlpack_release(exported);
  assert_ok(tarn_synced_query(n.fed->data, 0, TARN_ALL, TARN_HOST, &info));
  ck_assert_uint_eq(info.unwritten, 24);  // the other two samples
  assert_ok(tarn_model_set_batch(n.model, 0));
  assert_ok(
      tarn_tensor_to_dlpack(n.fed, TARN_DATA, TARN_HOST, TARN_READ, &exported));
  ck_assert_int_eq(exported->tensor.shape[0], 0);
  assert_ok(tarn_model_destroy(n.model));  // no byte of it is lent
  tarn_dlpack_release(exported);
}

TEST(an_export_is_an_access) {
  tarn_dlpack_managed *exported[2] = {NULL, NULL};
  tarn_dlpack_managed *none = &not_exported;
  tarn_access a;
  net n = new_net(TARN_TRAIN, TARN_HOST);
  fill_net(&n, 1, TARN_HOST);
  for (int i = 0; i < 2; i++) {
    assert_ok(tarn_tensor_to_dlpack(n.param[0], TARN_DATA, TARN_HOST, TARN_READ,
                                    &exported[i]));
  }
  assert_status(tarn_tensor_to_dlpack(n.param[0], TARN_DATA, TARN_HOST,
                                      TARN_READ_WRITE, &none),
                TARN_E_STATE);
  ck_assert_ptr_null(none);
  assert_status(tarn_synced_begin(n.param[0]->data, 0, 4, TARN_HOST,
                                  TARN_READ_WRITE, NULL, &a),
                TARN_E_STATE);
  assert_ok(tarn_model_save(n.model, path, 0));
  assert_status(tarn_model_load(n.model, path, 0, NULL), TARN_E_STATE);
  tarn_dlpack_release(exported[0]);
  tarn_dlpack_release(exported[1]);
  assert_ok(tarn_tensor_to_dlpack(n.param[0], TARN_DATA, TARN_HOST,
                                  TARN_READ_WRITE, &exported[0]));
  assert_status(tarn_model_save(n.model, path, 0), TARN_E_STATE);
  tarn_dlpack_release(exported[0]);
  expect_net(&n, 1, TARN_HOST);
  assert_ok(tarn_model_destroy(n.model));
}

static void *release_there(void *exported) {
  tarn_dlpack_release(exported);
  return NULL;
}

// The model has ended, and another thread is the last to know of the bytes.
TEST(a_parameter_outlives_its_model) {
  tarn_dlpack_managed *exported = NULL;
  pthread_t thread;
  net n = new_net(TARN_TRAIN, TARN_HOST);
  unsigned char *bytes = pattern_of(n.param[4], 1);
  size_t before = live_at(TARN_HOST);
  fill_net(&n, 1, TARN_HOST);
  assert_ok(tarn_tensor_to_dlpack(n.param[4], TARN_DATA, TARN_HOST,
                                  TARN_READ_WRITE, &exported));
  size_t held = tarn_host_memory();
  assert_ok(tarn_model_destroy(n.model));
  ck_assert_mem_eq(exported->tensor.data, bytes, 300000);
  memset(exported->tensor.data, 3, 300000);
  ck_assert_uint_ge(live_at(TARN_HOST), 300000);
  ck_assert_int_eq(pthread_create(&thread, NULL, release_there, exported), 0);
  pthread_join(thread, NULL);
  ck_assert_uint_lt(live_at(TARN_HOST), before + 1);
  ck_assert_uint_lt(tarn_host_memory(), held);
  free(bytes);
}

TEST(a_mapped_parameter_outlives_its_model) {
  tarn_dlpack_versioned *exported = NULL;
  net n = new_net(TARN_INFER, TARN_HOST);
  unsigned char *bytes = pattern_of(n.param[4], 1);
  fill_net(&n, 1, TARN_HOST);
  assert_ok(tarn_model_save(n.model, path, 0));
  load(&n, 0);
  assert_ok(tarn_tensor_to_dlpack_versioned(n.param[4], TARN_DATA, TARN_HOST,
                                            TARN_READ, &exported));
  assert_ok(tarn_model_destroy(n.model));
  ck_assert_uint_eq(mappings(), 1);
  ck_assert_mem_eq(exported->tensor.data, bytes, 300000);
  tarn_dlpack_release_versioned(exported);
  ck_assert_uint_eq(mappings(), 0);
  free(bytes);
}

TEST(planned_parts_keep_their_model) {
  tarn_dlpack_managed *exported = NULL;
  net n = new_net(TARN_INFER, TARN_HOST);
  assert_status(tarn_tensor_to_dlpack(n.out, TARN_DATA, TARN_HOST,
                                      TARN_READ_WRITE, &exported),
                TARN_E_STATE);
  assert_error_says("its lifetime in the plan has not begun or is over");
  assert_ok(tarn_model_enter(n.step, TARN_FORWARD));
  fill_tensor(n.out, 1, TARN_HOST);
  assert_ok(tarn_tensor_to_dlpack(n.out, TARN_DATA, TARN_HOST, TARN_READ_WRITE,
                                  &exported));
  assert_status(tarn_model_release(n.model), TARN_E_STATE);
  assert_error_says("'y': an access to it is open");
  assert_status(tarn_model_destroy(n.model), TARN_E_STATE);
  assert_status(tarn_model_leave(n.model), TARN_E_STATE);
  tarn_dlpack_release(exported);
  assert_ok(tarn_model_leave(n.model));
  assert_ok(tarn_model_destroy(n.model));
}

// DLPack has a number for some types of devices; of others nothing is exported
// where it is.
TEST_ON(what_a_device_has_is_brought_to_the_host, TEST_NEEDS_DISCRETE) {
  tarn_dlpack_managed *exported = NULL;
  tarn_dlpack_device number;
  tarn_place home = tarn_place_on(device);
  if (tarn_dlpack_from_place(home, &number) == TARN_OK) return;
  net n = new_net(TARN_TRAIN, home);
  unsigned char *bytes = pattern_of(n.param[0], 1);
  fill_net(&n, 1, home);
  assert_status(
      tarn_tensor_to_dlpack(n.param[0], TARN_DATA, home, TARN_READ, &exported),
      TARN_E_UNSUPPORTED);
  assert_error_names("no DLPack device for ", device, "");
  assert_ok(tarn_tensor_to_dlpack(n.param[0], TARN_DATA, TARN_HOST,
                                  TARN_READ_WRITE, &exported));
  ck_assert_mem_eq(exported->tensor.data, bytes, 140);
  for (size_t i = 0; i < 140; i++)
    ((unsigned char *)exported->tensor.data)[i] = byte_of(n.param[0], 2, i);
  tarn_dlpack_release(exported);
  ck_assert(tensor_has(n.param[0], 2, home));
  const tarn_place pinned = {device, TARN_PLACE_HOST};
  assert_ok(tarn_tensor_to_dlpack(n.param[0], TARN_DATA, pinned, TARN_READ,
                                  &exported));
  ck_assert_int_eq(exported->tensor.device.type, TARN_DLPACK_CPU);
  ck_assert_ptr_eq(exported->tensor.data, host_pointer(n.param[0]->data));
  tarn_dlpack_release(exported);
  free(bytes);
  assert_ok(tarn_model_destroy(n.model));
}

static void assert_not_exported(tarn_tensor *tensor, tarn_part part,
                                uint32_t mode, tarn_status status,
                                const char *text) {
  tarn_dlpack_managed *plain = &not_exported;
  tarn_dlpack_versioned *versioned = &not_exported_either;
  assert_status(tarn_tensor_to_dlpack(tensor, part, TARN_HOST, mode, &plain),
                status);
  assert_error_says(text);
  ck_assert_ptr_null(plain);
  assert_status(tarn_tensor_to_dlpack_versioned(tensor, part, TARN_HOST, mode,
                                                &versioned),
                status);
  assert_error_says(text);
  ck_assert_ptr_null(versioned);
}

TEST(what_cannot_be_exported) {
  static int64_t ones[TARN_DLPACK_MAX_NDIM + 1];
  const tarn_shape long_shape = {ones, TARN_DLPACK_MAX_NDIM + 1};
  const int64_t dims[] = {TARN_DIM_BATCH, 5};
  tarn_tensor *mask = NULL;
  tarn_tensor *deep = NULL;
  tarn_tensor orphan = {.name = "orphan"};
  net n = {0};
  for (size_t i = 0; i < long_shape.rank; i++)
    ones[i] = 1;
  describe(&n);
  assert_ok(tarn_step_caches(n.step, "bits", TARN_DTYPE_BOOL,
                             (tarn_shape){dims, 2}, true, &mask));
  assert_ok(tarn_model_add(n.model, TARN_PARAM, "deep", TARN_DTYPE_F32,
                           long_shape, &deep));
  assert_not_exported(n.param[0], TARN_DATA, TARN_READ, TARN_E_STATE,
                      "the data of 'fc.weight' is not placed");
  assert_ok(tarn_model_plan(n.model, NULL));
  assert_ok(tarn_model_place(n.model));
  assert_not_exported(NULL, TARN_DATA, TARN_READ, TARN_E_INVALID, "no tensor");
  assert_not_exported(&orphan, TARN_DATA, TARN_READ, TARN_E_INVALID,
                      "no tensor of a model");
  assert_not_exported(n.param[0], (tarn_part)2, TARN_READ, TARN_E_INVALID,
                      "param 'fc.weight' has no part 2");
  assert_not_exported(n.state, TARN_DIFF, TARN_READ, TARN_E_INVALID,
                      "state 'fc.weight.momentum' has no part 1");
  assert_not_exported(n.param[0], TARN_DATA, TARN_WRITE_DISCARD, TARN_E_INVALID,
                      "dlpack: a mode of 0x2");
  assert_not_exported(n.param[0], TARN_DATA, TARN_READ | TARN_ACCESS_WAIT,
                      TARN_E_INVALID, "dlpack: a mode of 0x101");
  assert_not_exported(n.fed, TARN_DIFF, TARN_READ, TARN_E_STATE,
                      "the diff of 'x' is not placed");
  assert_not_exported(mask, TARN_DATA, TARN_READ, TARN_E_UNSUPPORTED,
                      "'bits' is a mask of bits");
  assert_not_exported(deep, TARN_DATA, TARN_READ, TARN_E_INVALID,
                      "'deep' has 1025 dimensions");
  assert_status(
      tarn_tensor_to_dlpack(n.param[0], TARN_DATA, TARN_HOST, TARN_READ, NULL),
      TARN_E_INVALID);
  assert_status(tarn_tensor_to_dlpack_versioned(n.param[0], TARN_DATA,
                                                TARN_HOST, TARN_READ, NULL),
                TARN_E_INVALID);
  assert_ok(tarn_model_destroy(n.model));
}

static void give_scenario(void *context) {
  const net *n = context;
  tarn_dlpack_managed *plain = NULL;
  tarn_dlpack_versioned *versioned = NULL;
  tarn_status status = tarn_tensor_to_dlpack(n->param[0], TARN_DATA, TARN_HOST,
                                             TARN_READ_WRITE, &plain);
  require(status == TARN_OK ? plain != NULL
                            : status == TARN_E_NOMEM && plain == NULL);
  tarn_dlpack_release(plain);
  status = tarn_tensor_to_dlpack_versioned(n->param[4], TARN_DATA, TARN_HOST,
                                           TARN_READ, &versioned);
  require(status == TARN_OK ? versioned != NULL
                            : status == TARN_E_NOMEM && versioned == NULL);
  tarn_dlpack_release_versioned(versioned);
  (void)faults_disarm();
  expect_net(n, 1, TARN_HOST);
}

TEST(any_allocation_of_an_export_may_fail) {
  net n = new_net(TARN_TRAIN, TARN_HOST);
  fill_net(&n, 1, TARN_HOST);
  ck_assert_uint_gt(faults_sweep(give_scenario, &n), 5);
  assert_ok(tarn_model_destroy(n.model));
}

// A child has no model any more, but can throw away what it knows of it.
static bool child_forgets(const net *n, tarn_dlpack_managed *exported) {
  tarn_dlpack_managed *none = &not_exported;
  bool refused =
      tarn_model_save(n->model, path, 0) == TARN_E_STATE &&
      tarn_model_load(n->model, path, 0, NULL) == TARN_E_STATE &&
      tarn_tensor_to_dlpack(n->param[0], TARN_DATA, TARN_HOST, TARN_READ,
                            &none) == TARN_E_STATE &&
      none == NULL &&
      tarn_tensor_from_dlpack(n->param[0], TARN_DATA, exported) == TARN_E_STATE;
  tarn_dlpack_release(exported);
  return refused && tarn_model_destroy(n->model) == TARN_OK;
}

TEST(in_a_child_of_a_fork) {
  int status = -1;
  tarn_dlpack_managed *exported = NULL;
  net n = new_net(TARN_INFER, TARN_HOST);
  fill_net(&n, 1, TARN_HOST);
  assert_ok(tarn_model_save(n.model, path, 0));
  load(&n, 0);
  assert_ok(tarn_tensor_to_dlpack(n.param[4], TARN_DATA, TARN_HOST, TARN_READ,
                                  &exported));
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) _exit(child_forgets(&n, exported) ? 0 : 1);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  expect_net(&n, 1, TARN_HOST);
  tarn_dlpack_release(exported);
  assert_ok(tarn_model_destroy(n.model));
  ck_assert_uint_eq(mappings(), 0);
}

int main(void) {
  faults_install();
  return run_tests();
}
