// DLPack: types, places, and exports.
#include <stdlib.h>
#include <string.h>

#include "support/fake_plugin.h"
#include "support/faults.h"
#include "support/on_devices.h"
#include "tarn/dlpack.h"

// --- types -------------------------------------------------------------------

static const struct dtype_row {
  tarn_dtype dtype;
  tarn_dlpack_dtype code;
} dtype_rows[] = {
    {TARN_DTYPE_F64, {2, 64, 1}}, {TARN_DTYPE_F32, {2, 32, 1}},
    {TARN_DTYPE_F16, {2, 16, 1}}, {TARN_DTYPE_BF16, {4, 16, 1}},
    {TARN_DTYPE_I64, {0, 64, 1}}, {TARN_DTYPE_I32, {0, 32, 1}},
    {TARN_DTYPE_I16, {0, 16, 1}}, {TARN_DTYPE_I8, {0, 8, 1}},
    {TARN_DTYPE_U64, {1, 64, 1}}, {TARN_DTYPE_U32, {1, 32, 1}},
    {TARN_DTYPE_U16, {1, 16, 1}}, {TARN_DTYPE_U8, {1, 8, 1}},
    {TARN_DTYPE_BOOL, {6, 8, 1}},
};
enum { DTYPE_ROWS = sizeof dtype_rows / sizeof *dtype_rows };

TEST(every_dtype_has_a_code) {
  tarn_dlpack_dtype code;
  tarn_dtype dtype = TARN_DTYPE_NONE;
  ck_assert_int_eq(DTYPE_ROWS, TARN_DTYPE_BOOL);
  for (int i = 0; i < DTYPE_ROWS; i++) {
    assert_ok(tarn_dlpack_from_dtype(dtype_rows[i].dtype, &code));
    ck_assert_mem_eq(&code, &dtype_rows[i].code, sizeof code);
    assert_ok(tarn_dlpack_to_dtype(code, &dtype));
    ck_assert_int_eq(dtype, dtype_rows[i].dtype);
  }
}

// All codes there can be, but for lanes: only those of the table are known.
TEST(other_codes_are_refused) {
  tarn_dtype dtype = TARN_DTYPE_F32;
  tarn_dlpack_dtype code = {0, 0, 1};
  int known = 0;
  for (int i = 0; i < 256 * 256; i++) {
    code.code = (uint8_t)(i >> 8);
    code.bits = (uint8_t)i;
    tarn_status status = tarn_dlpack_to_dtype(code, &dtype);
    require((status == TARN_OK) == (dtype != TARN_DTYPE_NONE));
    require(status == TARN_OK || status == TARN_E_UNSUPPORTED);
    known += status == TARN_OK;
  }
  ck_assert_int_eq(known, DTYPE_ROWS);
  assert_status(tarn_dlpack_to_dtype((tarn_dlpack_dtype){2, 32, 4}, &dtype),
                TARN_E_UNSUPPORTED);
  assert_error_says("no dtype for code 2 with 32 bits and 4 lanes");
  assert_status(tarn_dlpack_to_dtype((tarn_dlpack_dtype){2, 32, 0}, &dtype),
                TARN_E_UNSUPPORTED);
  assert_status(tarn_dlpack_from_dtype(TARN_DTYPE_NONE, &code), TARN_E_INVALID);
  ck_assert_uint_eq(code.lanes, 0);
  assert_status(tarn_dlpack_from_dtype((tarn_dtype)99, &code), TARN_E_INVALID);
  assert_status(tarn_dlpack_from_dtype(TARN_DTYPE_F32, NULL), TARN_E_INVALID);
  assert_status(tarn_dlpack_to_dtype(code, NULL), TARN_E_INVALID);
}

// --- places ------------------------------------------------------------------

static void assert_device(tarn_place place, int32_t type, int32_t id) {
  tarn_dlpack_device device = {-1, -1};
  assert_ok(tarn_dlpack_from_place(place, &device));
  ck_assert_int_eq(device.type, type);
  ck_assert_int_eq(device.id, id);
}

TEST(the_host_is_the_cpu) {
  tarn_device *cpu = NULL;
  assert_device(TARN_HOST, 1, 0);
  assert_ok(tarn_device_open("cpu:0", &cpu));
  assert_device(tarn_place_on(cpu), 1, 0);
  assert_device((tarn_place){cpu, TARN_PLACE_UNIFIED}, 1, 0);
  assert_ok(tarn_device_close(cpu));
  tarn_dlpack_device device = {1, 1};
  assert_status(tarn_dlpack_from_place(TARN_HOST, NULL), TARN_E_INVALID);
  assert_status(
      tarn_dlpack_from_place((tarn_place){NULL, TARN_PLACE_DEVICE}, &device),
      TARN_E_INVALID);
  ck_assert_int_eq(device.type, 0);
}

TEST(cuda_has_three_kinds) {
  tarn_device *cuda = NULL;
  fake.type = "cuda";
  fake_add();
  assert_ok(tarn_device_open("cuda:1", &cuda));
  assert_device(tarn_place_on(cuda), 2, 1);
  assert_device((tarn_place){cuda, TARN_PLACE_HOST}, 3, 0);
  assert_device((tarn_place){cuda, TARN_PLACE_UNIFIED}, 13, 0);
  assert_ok(tarn_device_close(cuda));
}

TEST(memory_of_sim_is_nobody_elses) {
  tarn_device *sim = NULL;
  tarn_dlpack_device device = {1, 1};
  assert_ok(tarn_device_open("sim:1", &sim));
  assert_status(tarn_dlpack_from_place(tarn_place_on(sim), &device),
                TARN_E_UNSUPPORTED);
  assert_error_says("no DLPack device for sim:1: copy it to the host");
  ck_assert_int_eq(device.type, 0);
  assert_device((tarn_place){sim, TARN_PLACE_HOST}, 1, 0);
  assert_ok(tarn_device_close(sim));
}

TEST(codes_of_devices_are_places) {
  static const struct {
    tarn_dlpack_device device;
    const char *name;
    tarn_place_kind kind;
  } rows[] = {
      {{1, 0}, "cpu:0", TARN_PLACE_HOST},
      {{1, 3}, "cpu:0", TARN_PLACE_HOST},
      {{2, 7}, "cuda:7", TARN_PLACE_DEVICE},
      {{3, 0}, "cuda:0", TARN_PLACE_HOST},
      {{13, INT32_MAX}, "cuda:2147483647", TARN_PLACE_UNIFIED},
  };
  char name[32];
  tarn_place_kind kind = TARN_PLACE_HOST;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_ok(tarn_dlpack_to_place(rows[i].device, name, &kind));
    ck_assert_str_eq(name, rows[i].name);
    ck_assert_int_eq(kind, rows[i].kind);
  }
  for (int32_t type = -3; type < 40; type++) {
    if (type >= 1 && (type <= 3 || type == 13)) continue;
    assert_status(
        tarn_dlpack_to_place((tarn_dlpack_device){type, 0}, name, &kind),
        TARN_E_UNSUPPORTED);
    ck_assert_str_eq(name, "");
  }
  assert_status(tarn_dlpack_to_place((tarn_dlpack_device){2, -1}, name, &kind),
                TARN_E_INVALID);
  assert_error_says("device -1 of type 2");
  assert_status(tarn_dlpack_to_place((tarn_dlpack_device){1, 0}, NULL, &kind),
                TARN_E_INVALID);
  assert_status(tarn_dlpack_to_place((tarn_dlpack_device){1, 0}, name, NULL),
                TARN_E_INVALID);
}

// --- export ------------------------------------------------------------------

static int released;
static size_t held;  // by the devices that are there from the start
static float values[24];
static const int64_t dims[] = {2, 3, 4};

static void begin(void) {
  void *view = NULL;
  assert_ok(tarn_device_host_view(TARN_HOST, (tarn_addr)(uintptr_t)values,
                                  sizeof values, &view));
  held = tarn_host_memory();
}

static void release(void *owner) {
  ck_assert_ptr_eq(owner, &released);
  // The struct is gone by then, so that the owner may be too.
  released++;
}

static tarn_dlpack_source of_values(void) {
  if (held == 0) begin();
  return (tarn_dlpack_source){.struct_size = sizeof(tarn_dlpack_source),
                              .address = (tarn_addr)(uintptr_t)values,
                              .dtype = TARN_DTYPE_F32,
                              .shape = {dims, 3},
                              .release = release,
                              .owner = &released};
}

static void assert_tensor(const tarn_dlpack_tensor *tensor) {
  const int64_t strides[] = {12, 4, 1};
  ck_assert_ptr_eq(tensor->data, values);
  ck_assert_int_eq(tensor->device.type, TARN_DLPACK_CPU);
  ck_assert_int_eq(tensor->device.id, 0);
  ck_assert_int_eq(tensor->ndim, 3);
  ck_assert_int_eq(tensor->dtype.code, TARN_DLPACK_FLOAT);
  ck_assert_int_eq(tensor->dtype.bits, 32);
  ck_assert_int_eq(tensor->dtype.lanes, 1);
  ck_assert_mem_eq(tensor->shape, dims, sizeof dims);
  ck_assert_mem_eq(tensor->strides, strides, sizeof strides);
  ck_assert_uint_eq(tensor->byte_offset, 0);
}

static void assert_view(const tarn_dlpack_view *view) {
  ck_assert_uint_eq(view->address, (tarn_addr)(uintptr_t)values);
  ck_assert_int_eq(view->dtype, TARN_DTYPE_F32);
  ck_assert_uint_eq(view->shape.rank, 3);
  ck_assert_mem_eq(view->shape.dims, dims, sizeof dims);
  ck_assert_uint_eq(view->size, sizeof values);
}

TEST(an_export_can_be_imported) {
  tarn_dlpack_source source = of_values();
  tarn_dlpack_managed *managed = NULL;
  tarn_dlpack_view view;
  assert_ok(tarn_dlpack_export(&source, &managed));
  assert_tensor(&managed->tensor);
  assert_ok(tarn_dlpack_check(managed, &view));
  assert_view(&view);
  ck_assert_uint_eq(view.flags, 0);
  ck_assert_int_eq(released, 0);
  managed->deleter(managed);
  ck_assert_int_eq(released, 1);
  ck_assert_uint_eq(tarn_host_memory(), held);
}

TEST(a_versioned_export_can_be_imported) {
  tarn_dlpack_source source = of_values();
  tarn_dlpack_versioned *managed = NULL;
  tarn_dlpack_view view;
  source.flags = TARN_DLPACK_READ_ONLY;
  assert_ok(tarn_dlpack_export_versioned(&source, &managed));
  ck_assert_uint_eq(managed->version.major, 1);
  ck_assert_uint_eq(managed->flags, 1);
  assert_tensor(&managed->tensor);
  assert_ok(tarn_dlpack_check_versioned(managed, &view));
  assert_view(&view);
  ck_assert_uint_eq(view.flags, TARN_DLPACK_READ_ONLY);
  tarn_dlpack_release_versioned(managed);
  ck_assert_int_eq(released, 1);
  ck_assert_uint_eq(tarn_host_memory(), held);
}

TEST(release_may_be_null) {
  tarn_dlpack_source source = of_values();
  tarn_dlpack_managed *managed = NULL;
  source.release = NULL;
  assert_ok(tarn_dlpack_export(&source, &managed));
  tarn_dlpack_release(managed);
  tarn_dlpack_release(NULL);
  tarn_dlpack_release_versioned(NULL);
  ck_assert_int_eq(released, 0);
  ck_assert_uint_eq(tarn_host_memory(), held);
}

TEST(scalars_and_empty_tensors_are_exported) {
  const int64_t none[] = {0, INT64_MAX, INT64_MAX};
  tarn_dlpack_source source = of_values();
  tarn_dlpack_managed *managed = NULL;
  tarn_dlpack_view view;
  source.shape.rank = 0;
  source.shape.dims = NULL;
  assert_ok(tarn_dlpack_export(&source, &managed));
  assert_ok(tarn_dlpack_check(managed, &view));
  ck_assert_uint_eq(view.size, 4);
  ck_assert_uint_eq(view.shape.rank, 0);
  tarn_dlpack_release(managed);
  source.shape = (tarn_shape){none, 3};
  source.address = 0;
  assert_ok(tarn_dlpack_export(&source, &managed));
  ck_assert_ptr_null(managed->tensor.data);
  assert_ok(tarn_dlpack_check(managed, &view));
  ck_assert_uint_eq(view.size, 0);
  ck_assert_uint_eq(view.address, 0);
  tarn_dlpack_release(managed);
  ck_assert_int_eq(released, 2);
}

TEST(memory_of_a_device_is_exported_by_its_address) {
  tarn_device *cuda = NULL;
  tarn_dlpack_source source = of_values();
  tarn_dlpack_managed *managed = NULL;
  tarn_dlpack_view view;
  fake.type = "cuda";
  fake_add();
  assert_ok(tarn_device_open("cuda:1", &cuda));
  source.place = tarn_place_on(cuda);
  source.address = UINT64_C(0x7f0000001000);
  assert_ok(tarn_dlpack_export(&source, &managed));
  ck_assert_int_eq(managed->tensor.device.type, TARN_DLPACK_CUDA);
  assert_ok(tarn_dlpack_check(managed, &view));
  ck_assert_uint_eq(view.address, source.address);
  ck_assert_int_eq(view.device.id, 1);
  tarn_dlpack_release(managed);
  assert_ok(tarn_device_close(cuda));
}

static void assert_not_exported(const tarn_dlpack_source *source,
                                tarn_status status, const char *what) {
  tarn_dlpack_managed *managed = (tarn_dlpack_managed *)values;
  tarn_dlpack_versioned *versioned = (tarn_dlpack_versioned *)values;
  assert_status(tarn_dlpack_export_versioned(source, &versioned), status);
  assert_error_says(what);
  ck_assert_ptr_null(versioned);
  assert_status(tarn_dlpack_export(source, &managed), status);
  assert_error_says(what);
  ck_assert_ptr_null(managed);
  ck_assert_int_eq(released, 0);
}

TEST(what_cannot_be_exported_is_refused) {
  static int64_t ones[TARN_DLPACK_MAX_NDIM + 1];
  const int64_t batch[] = {TARN_DIM_BATCH};
  const int64_t huge[] = {INT64_MAX, 8};
  tarn_dlpack_source source = of_values();
  assert_not_exported(NULL, TARN_E_INVALID, "dlpack: NULL");
  source.struct_size = 8;
  assert_not_exported(&source, TARN_E_INVALID, "struct_size 8");
  source = of_values();
  source.flags = 4;
  assert_not_exported(&source, TARN_E_INVALID, "flags 0x4");
  source = of_values();
  source.dtype = TARN_DTYPE_NONE;
  assert_not_exported(&source, TARN_E_INVALID, "0 is not a dtype");
  source = of_values();
  source.address = 0;
  assert_not_exported(&source, TARN_E_INVALID, "96 bytes at address 0");
  source = of_values();
  source.shape = (tarn_shape){batch, 1};
  assert_not_exported(&source, TARN_E_INVALID, "dimension 0 is -1");
  source.shape = (tarn_shape){huge, 2};
  assert_not_exported(&source, TARN_E_INVALID, "shape: ");
  source.shape = (tarn_shape){NULL, 2};
  assert_not_exported(&source, TARN_E_INVALID, "dims is NULL");
  source.shape = (tarn_shape){ones, TARN_DLPACK_MAX_NDIM + 1};
  assert_not_exported(&source, TARN_E_INVALID, "1025 dimensions; at most 1024");
  source = of_values();
  source.place = tarn_place_on(open_discrete());
  assert_not_exported(&source, TARN_E_UNSUPPORTED, "dlpack: ");
  assert_error_names("no DLPack device for ", source.place.device, "");
  assert_status(tarn_dlpack_export(&source, NULL), TARN_E_INVALID);
  assert_status(tarn_dlpack_export_versioned(&source, NULL), TARN_E_INVALID);
}

TEST(flags_need_a_version) {
  tarn_dlpack_source source = of_values();
  tarn_dlpack_managed *managed = NULL;
  source.flags = TARN_DLPACK_COPIED;
  assert_status(tarn_dlpack_export(&source, &managed), TARN_E_UNSUPPORTED);
  assert_error_says("a tensor without a version has no flags");
}

// The first version of the struct may be said by 0.
TEST(the_largest_number_of_dimensions_is_exported) {
  static int64_t ones[TARN_DLPACK_MAX_NDIM];
  tarn_dlpack_source source = of_values();
  tarn_dlpack_managed *managed = NULL;
  tarn_dlpack_view view;
  for (int i = 0; i < TARN_DLPACK_MAX_NDIM; i++)
    ones[i] = 1;
  source.struct_size = 0;
  source.shape = (tarn_shape){ones, TARN_DLPACK_MAX_NDIM};
  assert_ok(tarn_dlpack_export(&source, &managed));
  assert_ok(tarn_dlpack_check(managed, &view));
  ck_assert_uint_eq(view.size, 4);
  tarn_dlpack_release(managed);
}

static void give(void *context) {
  tarn_dlpack_source source = of_values();
  tarn_dlpack_managed *managed = NULL;
  tarn_dlpack_versioned *versioned = NULL;
  (void)context;
  released = 0;
  tarn_status first = tarn_dlpack_export(&source, &managed);
  tarn_status second = tarn_dlpack_export_versioned(&source, &versioned);
  require(first == TARN_OK || first == TARN_E_NOMEM);
  require(second == TARN_OK || second == TARN_E_NOMEM);
  require(released == 0);
  tarn_dlpack_release(managed);
  tarn_dlpack_release_versioned(versioned);
  require(released == (first == TARN_OK) + (second == TARN_OK));
}

TEST(too_little_memory_is_an_error) {
  begin();
  ck_assert_uint_ge(faults_sweep(give, NULL), 4);
}

int main(void) {
  faults_install();
  return run_tests();
}
