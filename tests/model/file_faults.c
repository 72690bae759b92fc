// Parameters in files: refusals and failures, after which nothing has changed.
#include <inttypes.h>

#include "file_kit.h"

// --- wrong use -------------------------------------------------------------

TEST(wrong_arguments) {
  net n = net_beside_a_file(TARN_TRAIN, TARN_HOST);
  tarn_model_loaded loaded = {.struct_size = 3};
  assert_status(tarn_model_save(NULL, path, 0), TARN_E_INVALID);
  assert_status(tarn_model_save(n.model, NULL, 0), TARN_E_INVALID);
  assert_error_says("save: no path");
  assert_status(tarn_model_save(n.model, path, TARN_FILE_PARTIAL),
                TARN_E_INVALID);
  assert_error_says("small net: save: flags 0x2");
  assert_status(tarn_model_save(n.model, path, TARN_FILE_COPY), TARN_E_INVALID);
  assert_status(tarn_model_load(NULL, path, 0, NULL), TARN_E_INVALID);
  assert_status(tarn_model_load(n.model, NULL, 0, NULL), TARN_E_INVALID);
  assert_error_says("load: no path");
  assert_status(tarn_model_load(n.model, path, 0, &loaded), TARN_E_INVALID);
  assert_error_says("load: a struct_size of 3");
  assert_refuses(&n, 1u << 3, TARN_E_INVALID, "small net: load: flags 0x8");
  assert_ok(tarn_model_destroy(n.model));
}

TEST(not_placed) {
  net n = {0};
  net placed = net_beside_a_file(TARN_TRAIN, TARN_HOST);
  describe(&n);
  for (int round = 0; round < 2; round++) {
    assert_status(tarn_model_save(n.model, path, 0), TARN_E_STATE);
    assert_error_says("small net: param 'fc.weight' was never placed");
    assert_status(tarn_model_load(n.model, path, 0, NULL), TARN_E_STATE);
    assert_error_says("small net: param 'fc.weight' was never placed");
    if (round == 0) assert_ok(tarn_model_plan(n.model, NULL));
  }
  assert_ok(tarn_model_destroy(n.model));
  assert_refuses(&placed, TARN_FILE_PARTIAL | 64u, TARN_E_INVALID, "flags");
  assert_ok(tarn_model_destroy(placed.model));
}

TEST(states_of_a_net_that_does_not_train) {
  net n = net_beside_a_file(TARN_INFER, TARN_HOST);
  assert_status(tarn_model_save(n.model, path, TARN_FILE_STATES), TARN_E_STATE);
  assert_error_says("state 'fc.weight.momentum' was never placed");
  assert_refuses(&n, TARN_FILE_STATES, TARN_E_STATE,
                 "state 'fc.weight.momentum' was never placed");
  load(&n, 0);  // the file is still there
  assert_ok(tarn_model_destroy(n.model));
}

TEST(accesses_that_are_open) {
  tarn_access a;
  net n = net_beside_a_file(TARN_TRAIN, TARN_HOST);
  assert_ok(tarn_synced_begin(n.param[4]->data, 1, 2, TARN_HOST, TARN_READ,
                              NULL, &a));
  assert_status(tarn_model_load(n.model, path, 0, NULL), TARN_E_STATE);
  assert_error_says("small net: 'half': an access to it is open");
  assert_status(tarn_model_load(n.model, path, TARN_FILE_COPY, NULL),
                TARN_E_STATE);
  assert_ok(tarn_model_save(n.model, path, 0));
  assert_ok(tarn_synced_end(&a));
  assert_ok(tarn_synced_begin(n.tied->data, 1, 2, TARN_HOST, TARN_READ_WRITE,
                              NULL, &a));
  assert_status(tarn_model_save(n.model, path, 0), TARN_E_STATE);
  assert_error_says("fc.weight");
  assert_status(tarn_model_load(n.model, path, 0, NULL), TARN_E_STATE);
  assert_error_says("'fc.weight': an access to it is open");
  assert_ok(tarn_synced_end(&a));
  expect_net(&n, 2, TARN_HOST);
  load(&n, 0);
  expect_net(&n, 2, TARN_HOST);
  assert_ok(tarn_model_destroy(n.model));
}

// A new value is all that a parameter needs whose bytes were lost.
TEST(lost_bytes) {
  for (int round = 0; round < 2; round++) {
    net n = net_beside_a_file(TARN_TRAIN, TARN_HOST);
    assert_ok(tarn_synced_invalidate(n.param[4]->data, 100, 20));
    assert_status(tarn_model_save(n.model, path, 0), TARN_E_STATE);
    assert_error_says("half");
    assert_error_says("were invalidated");
    load(&n, round == 0 ? 0 : TARN_FILE_COPY);
    expect_net(&n, 1, TARN_HOST);
    assert_ok(tarn_model_destroy(n.model));
  }
}

// --- files -----------------------------------------------------------------

TEST(files_that_are_not_there) {
  char other[128];
  net n = new_net(TARN_TRAIN, TARN_HOST);
  fill_net(&n, 2, TARN_HOST);
  assert_refuses(&n, 0, TARN_E_IO, "net.safetensors: No such file");
  snprintf(other, sizeof other, "%s/none/net.safetensors", folder);
  assert_status(tarn_model_save(n.model, other, 0), TARN_E_IO);
  assert_error_says(other);
  assert_status(tarn_model_load(n.model, folder, 0, NULL), TARN_E_IO);
  assert_error_says("not a regular file");
  assert_ok(tarn_model_destroy(n.model));
}

TEST(files_that_are_damaged) {
  size_t size = 0;
  net n = net_beside_a_file(TARN_TRAIN, TARN_HOST);
  unsigned char *bytes = read_whole(&size);
  for (size_t cut = 0; cut < size; cut += 1 + cut / 2) {
    write_whole(bytes, cut);
    assert_refuses(&n, 0, TARN_E_CORRUPT, "net.safetensors: ");
  }
  write_whole(bytes, size - 1);
  assert_refuses(&n, TARN_FILE_COPY, TARN_E_CORRUPT, "net.safetensors: ");
  free(bytes);
  assert_ok(tarn_model_destroy(n.model));
}

TEST(a_name_that_is_no_utf8) {
  const int64_t dims[] = {2};
  tarn_model *model = NULL;
  tarn_tensor *tensor = NULL;
  assert_ok(tarn_model_create(NULL, &model));
  assert_ok(tarn_model_add(model, TARN_PARAM, "a\xff", TARN_DTYPE_F32,
                           (tarn_shape){dims, 1}, &tensor));
  assert_ok(tarn_model_plan(model, NULL));
  assert_ok(tarn_model_place(model));
  assert_status(tarn_model_save(model, path, 0), TARN_E_INVALID);
  assert_error_says("tensor \"a\xff\"");
  ck_assert_int_ne(access(path, F_OK), 0);
  assert_ok(tarn_model_destroy(model));
}

// --- tensors that do not fit -----------------------------------------------

typedef struct other {
  size_t index;  // of the parameter that is another one in the file
  const char *name;
  tarn_dtype dtype;
  size_t rank;
  int64_t dims[3];
  const char *text;
} other;

static const other others[] = {
    {0,
     "fc.weigh",
     TARN_DTYPE_F32,
     2,
     {5, 7},
     "no tensor 'fc.weight', which "
     "small net needs"},
    {0,
     "fc.weight",
     TARN_DTYPE_F32,
     2,
     {7, 5},
     "'fc.weight' is F32 [7, 5], but 'fc.weight' of small net is f32 [5, 7]"},
    {0,
     "fc.tied",
     TARN_DTYPE_F32,
     1,
     {35},
     "'fc.tied' is F32 [35], but 'fc.weight' of small net is f32 [5, 7]"},
    {0, "fc.weight", TARN_DTYPE_I32, 2, {5, 7}, "is I32 [5, 7], but"},
    {1,
     "scale",
     TARN_DTYPE_F64,
     1,
     {1},
     "is F64 [1], but 'scale' of small "
     "net is f64 []"},
    {2, "mask", TARN_DTYPE_U8, 1, {3}, "is U8 [3], but"},
    {3, "none", TARN_DTYPE_F32, 3, {4, 0, 2}, "is F32 [4, 0, 2], but"},
};
enum { OTHERS = sizeof others / sizeof *others };

static void write_with(const net *n, const other *o) {
  tarn_safetensors_writer *writer = NULL;
  unsigned char *bytes = pattern_of(n->param[4], 1);  // enough for each
  assert_ok(tarn_safetensors_writer_create(&writer));
  for (size_t i = 0; i < COUNT; i++) {
    bool is_it = i == o->index;
    const sort *s = &sorts[i];
    assert_ok(tarn_safetensors_add(
        writer, is_it ? o->name : s->name, is_it ? o->dtype : s->dtype,
        (tarn_shape){is_it ? o->dims : s->dims, is_it ? o->rank : s->rank},
        bytes));
  }
  assert_ok(tarn_safetensors_write(writer, path));
  tarn_safetensors_writer_destroy(writer);
  free(bytes);
}

TEST(tensors_that_do_not_fit) {
  net n = new_net(TARN_TRAIN, TARN_HOST);
  fill_net(&n, 2, TARN_HOST);
  for (size_t i = 0; i < OTHERS; i++) {
    write_with(&n, &others[i]);
    assert_refuses(&n, 0, TARN_E_INVALID, others[i].text);
    assert_error_says(path);
    if (i > 0) {
      assert_refuses(&n, TARN_FILE_PARTIAL, TARN_E_INVALID, others[i].text);
    }
  }
  assert_ok(tarn_model_destroy(n.model));
}

// An unknown dtype, and more dimensions than a text has room for.
TEST(strange_tensors) {
  enum { DIMS = 300 };
  static const char unknown[] =
      "{\"w\":{\"dtype\":\"F8_E4M3\",\"shape\":[2],\"data_offsets\":[0,2]}}";
  static int64_t dims[DIMS];
  unsigned char bytes[8 + sizeof unknown + 1] = {sizeof unknown - 1};
  tarn_model *model = NULL;
  tarn_tensor *tensor = NULL;
  for (size_t i = 0; i < DIMS; i++)
    dims[i] = i == 0 ? INT64_MAX : 0;
  assert_ok(tarn_model_create(NULL, &model));
  assert_ok(tarn_model_add(model, TARN_PARAM, "w", TARN_DTYPE_U8,
                           (tarn_shape){dims + 1, DIMS - 1}, &tensor));
  assert_ok(tarn_model_plan(model, NULL));
  assert_ok(tarn_model_place(model));
  memcpy(bytes + 8, unknown, sizeof unknown - 1);
  write_whole(bytes, sizeof bytes);
  assert_status(tarn_model_load(model, path, 0, NULL), TARN_E_INVALID);
  assert_error_says("'w' is F8_E4M3 [2], but 'w' of model is u8 [0, 0, ");
  assert_error_says(", ...]");
  assert_ok(tarn_model_destroy(model));
}

// --- no memory -------------------------------------------------------------

typedef struct sweep {
  net n;
  uint32_t flags;
} sweep;

static void load_scenario(void *context) {
  const sweep *s = context;
  size_t lost = 0;
  tarn_status status = tarn_model_load(s->n.model, path, s->flags, NULL);
  (void)faults_disarm();
  require(status == TARN_OK || status == TARN_E_NOMEM);
  require(count_new(&s->n, TARN_HOST, &lost) ==
          (status == TARN_OK ? COUNT - 1 : 0));
  require(lost == 0);
  fill_net(&s->n, 2, TARN_HOST);
  require(mappings() == 0);
}

TEST(any_allocation_of_a_load_may_fail) {
  sweep s = {.n = net_beside_a_file(TARN_TRAIN, TARN_HOST)};
  ck_assert_uint_gt(faults_sweep(load_scenario, &s), 10);
  s.flags = TARN_FILE_COPY;
  ck_assert_uint_gt(faults_sweep(load_scenario, &s), 10);
  assert_ok(tarn_model_destroy(s.n.model));
}

static void save_scenario(void *context) {
  const sweep *s = context;
  tarn_status status = tarn_model_save(s->n.model, path, s->flags);
  (void)faults_disarm();
  require(status == TARN_OK || status == TARN_E_NOMEM);
  tarn_safetensors *file = NULL;
  assert_ok(tarn_safetensors_open(path, &file));
  const tarn_safetensor *half = tarn_safetensors_find(file, "half");
  require(half != NULL);
  const unsigned char *bytes = half->data;
  unsigned seed = status == TARN_OK ? 2 : 1;
  for (size_t i = 0; i < half->size; i++)
    require(bytes[i] == byte_of(s->n.param[4], seed, i));
  tarn_safetensors_close(file);
  expect_net(&s->n, 2, TARN_HOST);
  fill_net(&s->n, 1, TARN_HOST);
  assert_ok(tarn_model_save(s->n.model, path, 0));
  fill_net(&s->n, 2, TARN_HOST);
}

TEST(any_allocation_of_a_save_may_fail) {
  sweep s = {.n = net_beside_a_file(TARN_TRAIN, TARN_HOST)};
  ck_assert_uint_gt(faults_sweep(save_scenario, &s), 10);
  s.flags = TARN_FILE_STATES;
  ck_assert_uint_gt(faults_sweep(save_scenario, &s), 10);
  assert_ok(tarn_model_destroy(s.n.model));
}

int main(void) {
  faults_install();
  return run_tests();
}
