// DLPack: imports into a model.
#include "file_kit.h"
#include "support/fake_plugin.h"

// --- another library -------------------------------------------------------

enum { MOST = 400000 };  // beyond each of the parameters

// Another library's tensor, in memory of its own size.
typedef struct foreign {
  tarn_dlpack_managed plain;
  tarn_dlpack_versioned versioned;
  int64_t dims[4];
  int64_t strides[4];
  size_t deleted;
  _Alignas(64) unsigned char bytes[MOST];
} foreign;

static foreign theirs[2];

static void delete_plain(tarn_dlpack_managed *self) {
  ((foreign *)self->context)->deleted++;
}

static void delete_versioned(tarn_dlpack_versioned *self) {
  ((foreign *)self->context)->deleted++;
}

// Like |tensor| at the present batch, with |seed| in its bytes.
static foreign *make_foreign(int which, const tarn_tensor *tensor,
                             unsigned seed) {
  foreign *f = &theirs[which];
  memset(f, 0, sizeof *f);
  tarn_dlpack_tensor t = {.data = f->bytes,
                          .device = {TARN_DLPACK_CPU, 0},
                          .ndim = (int32_t)tensor->shape.rank,
                          .shape = f->dims};
  assert_ok(tarn_dlpack_from_dtype(tensor->dtype, &t.dtype));
  for (size_t i = 0; i < tensor->shape.rank; i++) {
    int64_t length = tensor->shape.dims[i];
    f->dims[i] =
        length == TARN_DIM_BATCH ? tarn_model_batch(tensor->model) : length;
  }
  for (size_t i = 0; i < tensor->max_size; i++)
    f->bytes[i] = byte_of(tensor, seed, i);
  f->plain = (tarn_dlpack_managed){t, f, delete_plain};
  f->versioned = (tarn_dlpack_versioned){.version = {1, 0},
                                         .context = f,
                                         .deleter = delete_versioned,
                                         .tensor = t};
  return f;
}

TEST(a_parameter_lies_in_an_import) {
  net n = new_net(TARN_TRAIN, TARN_HOST);
  size_t before = live_at(TARN_HOST);
  for (size_t i = 0; i < COUNT; i++) {
    foreign *f = make_foreign(0, n.param[i], 3);
    assert_ok(tarn_tensor_from_dlpack(n.param[i], TARN_DATA, &f->plain));
    ck_assert(tensor_has(n.param[i], 3, TARN_HOST) ||
              n.param[i]->max_size == 0);
    if (n.param[i]->max_size == 0) {
      ck_assert_uint_eq(f->deleted, 1);  // there is nothing to keep
      continue;
    }
    ck_assert_ptr_eq(host_pointer(n.param[i]->data), f->bytes);
    ck_assert_uint_eq(live_at(TARN_HOST), before);
    fill_tensor(n.param[i], 4, TARN_HOST);  // written where it is
    ck_assert_uint_eq(f->bytes[1], byte_of(n.param[i], 4, 1));
    ck_assert_uint_eq(f->deleted, 0);
    assert_ok(tarn_synced_invalidate(n.param[i]->data, 0, TARN_ALL));
    assert_ok(tarn_synced_evict(n.param[i]->data, TARN_HOST));
    ck_assert_uint_eq(f->deleted, 1);
  }
  assert_ok(tarn_model_destroy(n.model));
}

TEST(the_deleter_is_called_once) {
  net n = new_net(TARN_TRAIN, TARN_HOST);
  foreign *a = make_foreign(0, n.param[0], 3);
  foreign *b = make_foreign(1, n.param[0], 4);
  assert_ok(tarn_tensor_from_dlpack(n.tied, TARN_DATA, &a->plain));
  ck_assert(tensor_has(n.param[0], 3, TARN_HOST));
  assert_ok(
      tarn_tensor_from_dlpack_versioned(n.param[0], TARN_DATA, &b->versioned));
  ck_assert_uint_eq(a->deleted, 1);
  ck_assert_uint_eq(b->deleted, 0);
  ck_assert(tensor_has(n.tied, 4, TARN_HOST));
  assert_ok(tarn_model_release(n.model));
  ck_assert_uint_eq(b->deleted, 0);
  assert_ok(tarn_model_destroy(n.model));
  ck_assert_uint_eq(a->deleted, 1);
  ck_assert_uint_eq(b->deleted, 1);
}

TEST(what_is_read_only_is_not_written) {
  net n = new_net(TARN_TRAIN, TARN_HOST);
  foreign *f = make_foreign(0, n.param[0], 3);
  f->versioned.flags = TARN_DLPACK_READ_ONLY;
  assert_ok(
      tarn_tensor_from_dlpack_versioned(n.param[0], TARN_DATA, &f->versioned));
  ck_assert_ptr_eq(host_pointer(n.param[0]->data), f->bytes);
  fill_tensor(n.param[0], 4, TARN_HOST);
  ck_assert_uint_eq(f->deleted, 1);
  for (size_t i = 0; i < 140; i++)
    require(f->bytes[i] == byte_of(n.param[0], 3, i));
  ck_assert(tensor_has(n.tied, 4, TARN_HOST));
  assert_ok(tarn_model_destroy(n.model));
  ck_assert_uint_eq(f->deleted, 1);
}

TEST(diffs_and_states_are_imported) {
  net n = new_net(TARN_TRAIN, TARN_HOST);
  foreign *a = make_foreign(0, n.param[0], 3);
  foreign *b = make_foreign(1, n.state, 4);
  b->plain.deleter = NULL;
  assert_ok(tarn_tensor_from_dlpack(n.param[0], TARN_DIFF, &a->plain));
  assert_ok(tarn_tensor_from_dlpack(n.state, TARN_DATA, &b->plain));
  ck_assert_ptr_eq(host_pointer(n.tied->diff), a->bytes);
  ck_assert_ptr_eq(host_pointer(n.state->data), b->bytes);
  assert_ok(tarn_model_destroy(n.model));
  ck_assert_uint_eq(a->deleted, 1);
  ck_assert_uint_eq(b->deleted, 0);
}

TEST(a_batch_is_fed) {
  net n = new_net(TARN_INFER, TARN_HOST);
  foreign *f = make_foreign(0, n.fed, 3);
  assert_ok(tarn_tensor_from_dlpack(n.fed, TARN_DATA, &f->plain));
  ck_assert_ptr_eq(host_pointer(n.fed->data), f->bytes);
  assert_ok(tarn_model_set_batch(n.model, 2));
  foreign *half = make_foreign(1, n.fed, 4);
  assert_ok(tarn_tensor_from_dlpack(n.fed, TARN_DATA, &half->plain));
  ck_assert_uint_eq(half->deleted, 1);  // copied, into the first
  ck_assert_uint_eq(f->deleted, 0);
  for (size_t i = 0; i < 48; i++)
    ck_assert_uint_eq(f->bytes[i], byte_of(n.fed, i < 24 ? 4 : 3, i));
  assert_ok(tarn_model_set_batch(n.model, 0));
  half = make_foreign(1, n.fed, 4);
  assert_ok(tarn_tensor_from_dlpack(n.fed, TARN_DATA, &half->plain));
  ck_assert_uint_eq(half->deleted, 1);
  assert_ok(tarn_model_release(n.model));  // which ends what is fed
  ck_assert_uint_eq(f->deleted, 1);
  assert_ok(tarn_model_destroy(n.model));
}

// Through an offset that Tarn could not compute with.
TEST(odd_addresses_are_copied) {
  net n = new_net(TARN_INFER, TARN_HOST);
  foreign *f = make_foreign(0, n.param[0], 3);
  memmove(f->bytes + 2, f->bytes, 140);
  f->plain.tensor.byte_offset = 2;
  assert_ok(tarn_tensor_from_dlpack(n.param[0], TARN_DATA, &f->plain));
  ck_assert_uint_eq(f->deleted, 1);
  memset(f->bytes, 0, sizeof f->bytes);
  ck_assert(tensor_has(n.param[0], 3, TARN_HOST));
  f = make_foreign(0, n.param[5], 3);  // of single bytes each address is good
  memmove(f->bytes + 3, f->bytes, 5);
  f->plain.tensor.byte_offset = 3;
  assert_ok(tarn_tensor_from_dlpack(n.param[5], TARN_DATA, &f->plain));
  ck_assert_ptr_eq(host_pointer(n.param[5]->data), f->bytes + 3);
  assert_ok(tarn_model_destroy(n.model));
  ck_assert_uint_eq(f->deleted, 1);
}

// From model to model, without a copy; they may end in any order.
TEST(a_model_imports_from_a_model) {
  for (int first = 0; first < 2; first++) {
    tarn_dlpack_versioned *exported = NULL;
    net a = new_net(TARN_INFER, TARN_HOST);
    net b = new_net(TARN_INFER, TARN_HOST);
    size_t before = live_at(TARN_HOST);
    fill_tensor(a.param[4], 3, TARN_HOST);
    size_t once = live_at(TARN_HOST);
    assert_ok(tarn_tensor_to_dlpack_versioned(a.param[4], TARN_DATA, TARN_HOST,
                                              TARN_READ, &exported));
    assert_ok(
        tarn_tensor_from_dlpack_versioned(b.param[4], TARN_DATA, exported));
    ck_assert(tensor_has(b.param[4], 3, TARN_HOST));
    ck_assert_uint_eq(live_at(TARN_HOST), once);
    assert_ok(tarn_model_destroy(first == 0 ? a.model : b.model));
    if (first == 0) ck_assert(tensor_has(b.param[4], 3, TARN_HOST));
    if (first == 1) fill_tensor(a.param[4], 4, TARN_HOST);
    assert_ok(tarn_model_destroy(first == 0 ? b.model : a.model));
    ck_assert_uint_le(live_at(TARN_HOST), before);
  }
}

// Refused, and still the caller's.
static void assert_not_imported(tarn_tensor *tensor, tarn_part part, foreign *f,
                                tarn_status status, const char *text) {
  assert_status(tarn_tensor_from_dlpack(tensor, part, &f->plain), status);
  assert_error_says(text);
  f->versioned.tensor = f->plain.tensor;
  assert_status(tarn_tensor_from_dlpack_versioned(tensor, part, &f->versioned),
                status);
  assert_error_says(text);
  ck_assert_uint_eq(f->deleted, 0);
}

TEST(what_does_not_fit_is_refused) {
  net n = new_net(TARN_TRAIN, TARN_HOST);
  fill_net(&n, 1, TARN_HOST);
  tarn_tensor *w = n.param[0];
  foreign *f = make_foreign(0, w, 3);
  f->plain.tensor.dtype.code = TARN_DLPACK_INT;
  assert_not_imported(w, TARN_DATA, f, TARN_E_INVALID,
                      "elements of i32 for 'fc.weight' of f32");
  f = make_foreign(0, w, 3);
  f->plain.tensor.ndim = 1;
  assert_not_imported(w, TARN_DATA, f, TARN_E_INVALID,
                      "1 dimensions for 'fc.weight' of 2");
  f = make_foreign(0, w, 3);
  f->dims[1] = 8;
  assert_not_imported(w, TARN_DATA, f, TARN_E_INVALID,
                      "dimension 1 is 8, but that of 'fc.weight' is 7");
  f->dims[1] = -7;
  assert_not_imported(w, TARN_DATA, f, TARN_E_INVALID, "dimension 1 is -7");
  f = make_foreign(0, w, 3);
  f->plain.tensor.strides = f->strides;
  f->strides[0] = 1;
  f->strides[1] = 5;
  assert_not_imported(w, TARN_DATA, f, TARN_E_UNSUPPORTED, "not compact");
  f = make_foreign(0, w, 3);
  f->plain.tensor.data = NULL;
  assert_not_imported(w, TARN_DATA, f, TARN_E_INVALID, "140 bytes at NULL");
  f = make_foreign(0, w, 3);
  f->plain.tensor.device = (tarn_dlpack_device){TARN_DLPACK_CUDA, 1};
  assert_not_imported(w, TARN_DATA, f, TARN_E_UNSUPPORTED,
                      "memory of cuda:1, which is neither the home");
  f->plain.tensor.device = (tarn_dlpack_device){4, 0};
  assert_not_imported(w, TARN_DATA, f, TARN_E_UNSUPPORTED, "type 4");
  f = make_foreign(0, n.fed, 3);
  f->dims[0] = BATCH - 1;
  assert_not_imported(n.fed, TARN_DATA, f, TARN_E_INVALID,
                      "dimension 0 is 3, but that of 'x' is 4");
  assert_status(tarn_tensor_from_dlpack(w, TARN_DATA, NULL), TARN_E_INVALID);
  assert_status(tarn_tensor_from_dlpack_versioned(w, TARN_DATA, NULL),
                TARN_E_INVALID);
  expect_net(&n, 1, TARN_HOST);
  assert_ok(tarn_model_destroy(n.model));
}

TEST(what_cannot_be_imported_now) {
  tarn_access a;
  tarn_tensor *input = NULL;
  tarn_tensor orphan = {.name = "orphan"};
  net n = {0};
  describe(&n);
  assert_ok(tarn_model_add_input(n.model, "y.in", n.out, &input));
  foreign *f = make_foreign(0, n.param[0], 3);
  assert_not_imported(n.param[0], TARN_DATA, f, TARN_E_STATE,
                      "the data of 'fc.weight' is not placed");
  assert_ok(tarn_model_plan(n.model, NULL));
  assert_ok(tarn_model_place(n.model));
  assert_not_imported(&orphan, TARN_DATA, f, TARN_E_INVALID, "no tensor");
  assert_not_imported(n.param[0], (tarn_part)2, f, TARN_E_INVALID, "no part 2");
  assert_ok(tarn_synced_begin(n.param[0]->data, 0, 4, TARN_HOST, TARN_READ,
                              NULL, &a));
  assert_not_imported(n.param[0], TARN_DATA, f, TARN_E_STATE, "fc.weight");
  assert_ok(tarn_synced_end(&a));
  f->versioned.version.major = 2;
  assert_status(
      tarn_tensor_from_dlpack_versioned(n.param[0], TARN_DATA, &f->versioned),
      TARN_E_UNSUPPORTED);
  ck_assert_uint_eq(f->deleted, 0);
  f = make_foreign(0, n.out, 3);
  assert_not_imported(n.out, TARN_DATA, f, TARN_E_STATE,
                      "the data of 'y' is planned");
  assert_not_imported(input, TARN_DATA, f, TARN_E_STATE,
                      "the data of 'y' is planned");
  assert_ok(tarn_model_destroy(n.model));
  ck_assert_uint_eq(f->deleted, 0);
}

static void import_scenario(void *context) {
  const net *n = context;
  foreign *f = make_foreign(0, n->param[0], 3);
  tarn_status status =
      tarn_tensor_from_dlpack(n->param[0], TARN_DATA, &f->plain);
  (void)faults_disarm();
  require(status == TARN_OK || status == TARN_E_NOMEM);
  require(tensor_has(n->param[0], status == TARN_OK ? 3 : 1, TARN_HOST));
  require(f->deleted == 0);
  assert_ok(tarn_synced_invalidate(n->param[0]->data, 0, TARN_ALL));
  assert_ok(tarn_synced_evict(n->param[0]->data, TARN_HOST));
  require(f->deleted == (status == TARN_OK));
  fill_tensor(n->param[0], 1, TARN_HOST);
}

TEST(any_allocation_of_an_import_may_fail) {
  net n = new_net(TARN_TRAIN, TARN_HOST);
  fill_net(&n, 1, TARN_HOST);
  import_scenario(&n);  // statistics that stay
  ck_assert_uint_ge(faults_sweep(import_scenario, &n), 2);
  assert_ok(tarn_model_destroy(n.model));
}

// --- memory of a device ----------------------------------------------------

TEST(memory_of_a_device) {
  tarn_dlpack_managed *exported = NULL;
  tarn_device *cuda = NULL;
  tarn_addr address = 0;
  fake.type = "cuda";
  fake_add();
  assert_ok(tarn_device_open("cuda:1", &cuda));
  tarn_place home = tarn_place_on(cuda);
  assert_ok(tarn_device_allocate(home, 256, &address));
  net n = new_net(TARN_INFER, home);
  foreign *f = make_foreign(0, n.param[0], 3);
  assert_ok(tarn_copy_h2d(cuda, address, f->bytes, 140, NULL));
  f->plain.tensor.data = (void *)(uintptr_t)address;
  f->plain.tensor.device = (tarn_dlpack_device){TARN_DLPACK_CUDA, 1};
  assert_ok(tarn_tensor_from_dlpack(n.param[0], TARN_DATA, &f->plain));
  ck_assert(tensor_has(n.param[0], 3, TARN_HOST));
  assert_ok(
      tarn_tensor_to_dlpack(n.param[0], TARN_DATA, home, TARN_READ, &exported));
  ck_assert_ptr_eq(exported->tensor.data, f->plain.tensor.data);
  ck_assert_int_eq(exported->tensor.device.type, TARN_DLPACK_CUDA);
  ck_assert_int_eq(exported->tensor.device.id, 1);
  tarn_dlpack_release(exported);
  assert_ok(tarn_model_set_batch(n.model, 1));  // 12 bytes, copied there
  foreign *part = make_foreign(1, n.fed, 4);
  assert_ok(tarn_copy_h2d(cuda, address + 144, part->bytes, 12, NULL));
  part->plain.tensor.data = (void *)(uintptr_t)(address + 144);
  part->plain.tensor.device = (tarn_dlpack_device){TARN_DLPACK_CUDA, 1};
  assert_ok(tarn_tensor_from_dlpack(n.fed, TARN_DATA, &part->plain));
  ck_assert_uint_eq(part->deleted, 1);
  ck_assert_mem_eq(host_pointer(n.fed->data), part->bytes, 12);
  part = make_foreign(1, n.fed, 5);
  part->plain.tensor.data = (void *)(uintptr_t)(address + 144);
  part->plain.tensor.device = (tarn_dlpack_device){TARN_DLPACK_CUDA, 0};
  assert_not_imported(n.fed, TARN_DATA, part, TARN_E_UNSUPPORTED,
                      "memory of cuda:0");
  part->plain.tensor.device = (tarn_dlpack_device){TARN_DLPACK_CUDA, 1};
  fake.copy_answer = C_ERROR;
  assert_not_imported(n.fed, TARN_DATA, part, TARN_E_DEVICE, "");
  fake.copy_answer = C_SUCCESS;
  assert_ok(tarn_model_destroy(n.model));
  ck_assert_uint_eq(f->deleted, 1);
  assert_ok(tarn_device_deallocate(home, address, 256));
  assert_ok(tarn_device_close(cuda));
}

int main(void) {
  faults_install();
  return run_tests();
}
