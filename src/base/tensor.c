// Element types and shapes.
#include <string.h>

#include "base/status.h"

static const struct {
  const char *name;
  size_t size;
} dtypes[] = {
    [TARN_DTYPE_NONE] = {"none", 0}, [TARN_DTYPE_F64] = {"f64", 8},
    [TARN_DTYPE_F32] = {"f32", 4},   [TARN_DTYPE_F16] = {"f16", 2},
    [TARN_DTYPE_BF16] = {"bf16", 2}, [TARN_DTYPE_I64] = {"i64", 8},
    [TARN_DTYPE_I32] = {"i32", 4},   [TARN_DTYPE_I16] = {"i16", 2},
    [TARN_DTYPE_I8] = {"i8", 1},     [TARN_DTYPE_U64] = {"u64", 8},
    [TARN_DTYPE_U32] = {"u32", 4},   [TARN_DTYPE_U16] = {"u16", 2},
    [TARN_DTYPE_U8] = {"u8", 1},     [TARN_DTYPE_BOOL] = {"bool", 1},
};
enum { DTYPE_COUNT = sizeof dtypes / sizeof dtypes[0] };

static bool is_dtype(tarn_dtype dtype) {
  return (unsigned)dtype < DTYPE_COUNT && dtype != TARN_DTYPE_NONE;
}

size_t tarn_dtype_size(tarn_dtype dtype) {
  return is_dtype(dtype) ? dtypes[dtype].size : 0;
}

const char *tarn_dtype_name(tarn_dtype dtype) {
  return dtypes[is_dtype(dtype) ? dtype : TARN_DTYPE_NONE].name;
}

tarn_dtype tarn_dtype_parse(const char *name) {
  for (int i = TARN_DTYPE_NONE + 1; name != NULL && i < DTYPE_COUNT; i++) {
    if (strcmp(name, dtypes[i].name) == 0) return (tarn_dtype)i;
  }
  return TARN_DTYPE_NONE;
}

tarn_status tarn_shape_count(tarn_shape shape, int64_t batch,
                             size_t *out_count) {
  *out_count = 0;
  if (shape.rank != 0 && shape.dims == NULL) {
    return tarn__fail(TARN_E_INVALID, "shape: rank %zu but dims is NULL",
                      shape.rank);
  }
  size_t count = 1;
  bool overflow = false;
  bool empty = false;
  for (size_t i = 0; i < shape.rank; i++) {
    int64_t dim = shape.dims[i] == TARN_DIM_BATCH ? batch : shape.dims[i];
    if (dim < 0) {
      return tarn__fail(TARN_E_INVALID, "shape: dimension %zu is %lld", i,
                        (long long)dim);
    }
    empty = empty || dim == 0;
    overflow = overflow || !tarn_size_mul(count, (size_t)dim, &count);
  }
  if (empty) return TARN_OK;  // whatever the others multiply to
  if (overflow) {
    return tarn__fail(TARN_E_INVALID, "shape: more elements than fit a size_t");
  }
  *out_count = count;
  return TARN_OK;
}

tarn_status tarn_shape_size(tarn_shape shape, tarn_dtype dtype, int64_t batch,
                            size_t *out_size) {
  *out_size = 0;
  if (!is_dtype(dtype)) {
    return tarn__fail(TARN_E_INVALID, "shape: %d is no dtype", (int)dtype);
  }
  size_t count = 0;
  TARN__TRY(tarn_shape_count(shape, batch, &count));
  if (!tarn_size_mul(count, dtypes[dtype].size, out_size)) {
    return tarn__fail(TARN_E_INVALID, "shape: %zu elements of %s overflow",
                      count, dtypes[dtype].name);
  }
  return TARN_OK;
}
