// Checks a tensor of another library before it is used.
//
// Only the tensor's arrays are read. That they have |ndim| lengths cannot be
// checked; the bound on |ndim| limits the damage of a wrong one.
#include <inttypes.h>

#include "base/status.h"
#include "tarn/dlpack.h"

static tarn_status check_ndim(const tarn_dlpack_tensor *tensor) {
  if (tensor->ndim < 0 || tensor->ndim > TARN_DLPACK_MAX_NDIM) {
    return tarn__fail(TARN_E_INVALID,
                      "dlpack: ndim is %" PRId32 ", not from 0 to %d",
                      tensor->ndim, TARN_DLPACK_MAX_NDIM);
  }
  if (tensor->ndim > 0 && tensor->shape == NULL) {
    return tarn__fail(TARN_E_INVALID,
                      "dlpack: ndim is %" PRId32 ", but shape is NULL",
                      tensor->ndim);
  }
  return TARN_OK;
}

// Of -1, which Tarn's shapes may have, there is none here.
static tarn_status check_lengths(const tarn_dlpack_tensor *tensor) {
  for (int32_t i = 0; i < tensor->ndim; i++) {
    if (tensor->shape[i] >= 0) continue;
    return tarn__fail(TARN_E_INVALID,
                      "dlpack: dimension %" PRId32 " is %" PRId64, i,
                      tensor->shape[i]);
  }
  return TARN_OK;
}

// The stride of a dimension of one element has no meaning. The product was
// checked for overflow.
static tarn_status check_strides(const tarn_dlpack_tensor *tensor,
                                 size_t size) {
  uint64_t stride = 1;
  if (tensor->strides == NULL || size == 0) return TARN_OK;
  for (int32_t i = tensor->ndim; i-- > 0;) {
    if (tensor->shape[i] != 1 && (uint64_t)tensor->strides[i] != stride) {
      return tarn__fail(TARN_E_UNSUPPORTED,
                        "dlpack: not compact: the stride of dimension %" PRId32
                        " is %" PRId64 ", not %" PRIu64,
                        i, tensor->strides[i], stride);
    }
    stride *= (uint64_t)tensor->shape[i];
  }
  return TARN_OK;
}

static tarn_status check_address(const tarn_dlpack_tensor *tensor, size_t size,
                                 tarn_addr *out_address) {
  uint64_t first = 0;
  uint64_t end = 0;
  *out_address = 0;
  if (size == 0) return TARN_OK;
  if (tensor->data == NULL) {
    return tarn__fail(TARN_E_INVALID, "dlpack: %zu bytes at NULL", size);
  }
  if (__builtin_add_overflow((uintptr_t)tensor->data, tensor->byte_offset,
                             &first) ||
      __builtin_add_overflow(first, size, &end)) {
    return tarn__fail(TARN_E_INVALID,
                      "dlpack: %zu bytes at %p + %" PRIu64
                      " are more than there are addresses",
                      size, tensor->data, tensor->byte_offset);
  }
  *out_address = first;
  return TARN_OK;
}

static tarn_status check_device(tarn_dlpack_device device) {
  char name[32];
  tarn_place_kind kind = TARN_PLACE_HOST;
  return tarn_dlpack_to_place(device, name, &kind);
}

static tarn_status check_tensor(const tarn_dlpack_tensor *tensor,
                                tarn_dlpack_view *view) {
  tarn_status status = check_ndim(tensor);
  if (status == TARN_OK) status = check_lengths(tensor);
  if (status == TARN_OK) status = check_device(tensor->device);
  if (status == TARN_OK) {
    status = tarn_dlpack_to_dtype(tensor->dtype, &view->dtype);
  }
  if (status != TARN_OK) return status;
  view->device = tensor->device;
  if (tensor->ndim > 0) view->shape.dims = tensor->shape;
  view->shape.rank = (size_t)tensor->ndim;
  status = tarn_shape_size(view->shape, view->dtype, 0, &view->size);
  if (status == TARN_OK) status = check_strides(tensor, view->size);
  if (status != TARN_OK) return status;
  return check_address(tensor, view->size, &view->address);
}

static tarn_status finish(tarn_status status, tarn_dlpack_view *view) {
  if (status != TARN_OK) *view = (tarn_dlpack_view){0};
  return status;
}

tarn_status tarn_dlpack_check(const tarn_dlpack_managed *managed,
                              tarn_dlpack_view *out_view) {
  if (out_view != NULL) *out_view = (tarn_dlpack_view){0};
  if (managed == NULL || out_view == NULL) {
    return tarn__fail(TARN_E_INVALID, "dlpack: NULL");
  }
  return finish(check_tensor(&managed->tensor, out_view), out_view);
}

tarn_status tarn_dlpack_check_versioned(const tarn_dlpack_versioned *managed,
                                        tarn_dlpack_view *out_view) {
  if (out_view != NULL) *out_view = (tarn_dlpack_view){0};
  if (managed == NULL || out_view == NULL) {
    return tarn__fail(TARN_E_INVALID, "dlpack: NULL");
  }
  if (managed->version.major != TARN_DLPACK_MAJOR) {
    return tarn__fail(
        TARN_E_UNSUPPORTED,
        "dlpack: version %" PRIu32 ".%" PRIu32 "; that of %d.x is read",
        managed->version.major, managed->version.minor, TARN_DLPACK_MAJOR);
  }
  out_view->flags =
      managed->flags & (TARN_DLPACK_READ_ONLY | TARN_DLPACK_COPIED);
  return finish(check_tensor(&managed->tensor, out_view), out_view);
}

void tarn_dlpack_release(tarn_dlpack_managed *managed) {
  if (managed != NULL && managed->deleter != NULL) managed->deleter(managed);
}

void tarn_dlpack_release_versioned(tarn_dlpack_versioned *managed) {
  if (managed != NULL && managed->deleter != NULL) managed->deleter(managed);
}
