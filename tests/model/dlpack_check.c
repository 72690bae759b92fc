// DLPack: tensors of other libraries that are damaged or unsupported.
#include <string.h>

#include "support/run.h"
#include "tarn/dlpack.h"

static float values[24];
static int64_t lengths[] = {2, 3, 4};
static int64_t compact[] = {12, 4, 1};

static tarn_dlpack_versioned foreign(void) {
  return (tarn_dlpack_versioned){.version = {1, 99},
                                 .tensor = {.data = values,
                                            .device = {TARN_DLPACK_CPU, 0},
                                            .ndim = 3,
                                            .dtype = {TARN_DLPACK_FLOAT, 32, 1},
                                            .shape = lengths,
                                            .strides = compact}};
}

// The one with a version and the one without answer the same.
static void assert_taken(const tarn_dlpack_versioned *versioned,
                         tarn_status status, const char *what) {
  static const tarn_dlpack_view none;
  tarn_dlpack_managed managed = {.tensor = versioned->tensor};
  tarn_dlpack_view view;
  tarn_dlpack_view old_view;
  memset(&view, 1, sizeof view);
  memset(&old_view, 1, sizeof old_view);
  assert_status(tarn_dlpack_check_versioned(versioned, &view), status);
  if (status != TARN_OK) assert_error_says(what);
  assert_status(tarn_dlpack_check(&managed, &old_view), status);
  if (status != TARN_OK) assert_error_says(what);
  if (status == TARN_OK) return;
  ck_assert(view.address == none.address && view.size == none.size &&
            view.shape.dims == NULL && view.dtype == TARN_DTYPE_NONE &&
            view.flags == 0);
  ck_assert(old_view.address == 0 && old_view.shape.rank == 0);
}

TEST(foreign_tensors_are_taken) {
  tarn_dlpack_versioned tensor = foreign();
  tarn_dlpack_view view;
  tensor.flags = ~UINT64_C(0);
  assert_ok(tarn_dlpack_check_versioned(&tensor, &view));
  ck_assert_uint_eq(view.address, (tarn_addr)(uintptr_t)values);
  ck_assert_int_eq(view.dtype, TARN_DTYPE_F32);
  ck_assert_uint_eq(view.shape.rank, 3);
  ck_assert_mem_eq(view.shape.dims, lengths, sizeof lengths);
  ck_assert_uint_eq(view.size, sizeof values);
  ck_assert_uint_eq(view.flags, TARN_DLPACK_READ_ONLY | TARN_DLPACK_COPIED);
  tensor.tensor.strides = NULL;
  tensor.tensor.byte_offset = 8;
  assert_ok(tarn_dlpack_check_versioned(&tensor, &view));
  ck_assert_uint_eq(view.address, (tarn_addr)(uintptr_t)values + 8);
  tarn_dlpack_release_versioned(&tensor);  // no deleter
  tensor.tensor.device = (tarn_dlpack_device){TARN_DLPACK_CUDA, 3};
  assert_ok(tarn_dlpack_check_versioned(&tensor, &view));
  ck_assert_int_eq(view.device.id, 3);
}

TEST(damaged_tensors_are_refused) {
  int64_t bad[] = {2, -1, 4};
  int64_t huge[] = {INT64_MAX, INT64_MAX, 4};
  tarn_dlpack_view view;
  tarn_dlpack_versioned t = foreign();
  t.tensor.ndim = -1;
  assert_taken(&t, TARN_E_INVALID, "ndim is -1, not from 0 to 1024");
  t.tensor.ndim = INT32_MIN;
  assert_taken(&t, TARN_E_INVALID, "ndim is -2147483648");
  t.tensor.ndim = 1025;
  assert_taken(&t, TARN_E_INVALID, "ndim is 1025");
  t = foreign();
  t.tensor.shape = NULL;
  assert_taken(&t, TARN_E_INVALID, "ndim is 3, but shape is NULL");
  t.tensor.shape = bad;
  assert_taken(&t, TARN_E_INVALID, "dimension 1 is -1");
  t.tensor.shape = huge;
  assert_taken(&t, TARN_E_INVALID, "shape: ");
  t = foreign();
  t.tensor.data = NULL;
  assert_taken(&t, TARN_E_INVALID, "96 bytes at NULL");
  t = foreign();
  t.tensor.byte_offset = UINT64_MAX;
  assert_taken(&t, TARN_E_INVALID, "more than there are addresses");
  t.tensor.byte_offset = UINT64_MAX - (uintptr_t)values - 50;
  assert_taken(&t, TARN_E_INVALID, "more than there are addresses");
  t = foreign();
  t.tensor.device.id = -1;
  assert_taken(&t, TARN_E_INVALID, "device -1 of type 1");
  t = foreign();
  assert_status(tarn_dlpack_check(NULL, &view), TARN_E_INVALID);
  assert_status(tarn_dlpack_check_versioned(NULL, &view), TARN_E_INVALID);
  assert_status(tarn_dlpack_check_versioned(&t, NULL), TARN_E_INVALID);
}

TEST(tensors_of_others_are_refused) {
  tarn_dlpack_versioned t = foreign();
  t.tensor.dtype.lanes = 2;
  assert_taken(&t, TARN_E_UNSUPPORTED, "2 lanes");
  t = foreign();
  t.tensor.dtype = (tarn_dlpack_dtype){5, 64, 1};
  assert_taken(&t, TARN_E_UNSUPPORTED, "code 5 with 64 bits");
  t = foreign();
  t.tensor.device.type = 4;
  assert_taken(&t, TARN_E_UNSUPPORTED, "no place for devices of type 4");
}

TEST(only_compact_tensors_are_taken) {
  int64_t turned[] = {1, 2, 6};
  int64_t negative[] = {12, 4, -1};
  int64_t zero[] = {0, 0, 0};
  int64_t wide[] = {16, 4, 1};
  int64_t any[] = {7, 4, INT64_MIN};
  int64_t with_ones[] = {1, 6, 1};
  int64_t empty[] = {4, 0, INT64_MAX};
  tarn_dlpack_versioned t = foreign();
  t.tensor.strides = turned;
  assert_taken(&t, TARN_E_UNSUPPORTED,
               "not compact: the stride of dimension 2 is 6, not 1");
  t.tensor.strides = negative;
  assert_taken(&t, TARN_E_UNSUPPORTED, "of dimension 2 is -1, not 1");
  t.tensor.strides = zero;
  assert_taken(&t, TARN_E_UNSUPPORTED, "of dimension 2 is 0, not 1");
  t.tensor.strides = wide;
  assert_taken(&t, TARN_E_UNSUPPORTED, "of dimension 0 is 16, not 12");
  // A stride over a dimension of one element, or of an empty tensor, is none.
  any[1] = 1;
  t.tensor.strides = any;
  t.tensor.shape = with_ones;
  assert_taken(&t, TARN_OK, "");
  t.tensor.shape = empty;
  assert_taken(&t, TARN_OK, "");
  t.tensor.data = NULL;
  t.tensor.byte_offset = UINT64_MAX;
  assert_taken(&t, TARN_OK, "");
}

TEST(other_major_versions_are_left_alone) {
  tarn_dlpack_versioned t;
  tarn_dlpack_view view;
  memset(&t, 0xff, sizeof t);  // nothing of it may be looked at
  t.version = (tarn_dlpack_version){2, 0};
  assert_status(tarn_dlpack_check_versioned(&t, &view), TARN_E_UNSUPPORTED);
  assert_error_says("version 2.0; that of 1.x is read");
  t.version = (tarn_dlpack_version){0, 8};
  assert_status(tarn_dlpack_check_versioned(&t, &view), TARN_E_UNSUPPORTED);
}
