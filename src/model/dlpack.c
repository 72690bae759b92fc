// DLPack's types and places, and exported tensors.
//
// An exported tensor is one block, which its deleter frees:
//
//   | struct | source of the deleter | lengths, ndim | strides, ndim |
//
// DLPack fixes the layouts: the asserts below compare the structs with the
// published ones, on machines with pointers of 8 bytes.
#include "tarn/dlpack.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"

#define AT(type, field, offset)                     \
  _Static_assert(offsetof(type, field) == (offset), \
                 #type "." #field " is not where DLPack has it")

_Static_assert(sizeof(void *) == 8, "written for pointers of 8 bytes");
AT(tarn_dlpack_device, id, 4);
AT(tarn_dlpack_dtype, bits, 1);
AT(tarn_dlpack_dtype, lanes, 2);
AT(tarn_dlpack_tensor, device, 8);
AT(tarn_dlpack_tensor, ndim, 16);
AT(tarn_dlpack_tensor, dtype, 20);
AT(tarn_dlpack_tensor, shape, 24);
AT(tarn_dlpack_tensor, strides, 32);
AT(tarn_dlpack_tensor, byte_offset, 40);
AT(tarn_dlpack_managed, context, 48);
AT(tarn_dlpack_managed, deleter, 56);
AT(tarn_dlpack_versioned, context, 8);
AT(tarn_dlpack_versioned, deleter, 16);
AT(tarn_dlpack_versioned, flags, 24);
AT(tarn_dlpack_versioned, tensor, 32);
_Static_assert(sizeof(tarn_dlpack_tensor) == 48, "DLTensor");
_Static_assert(sizeof(tarn_dlpack_managed) == 64, "DLManagedTensor");
_Static_assert(sizeof(tarn_dlpack_versioned) == 80, "DLManagedTensorVersioned");

// --- types -------------------------------------------------------------------

static const struct {
  tarn_dtype dtype;
  tarn_dlpack_dtype code;
} dtypes[] = {
    {TARN_DTYPE_F64, {TARN_DLPACK_FLOAT, 64, 1}},
    {TARN_DTYPE_F32, {TARN_DLPACK_FLOAT, 32, 1}},
    {TARN_DTYPE_F16, {TARN_DLPACK_FLOAT, 16, 1}},
    {TARN_DTYPE_BF16, {TARN_DLPACK_BFLOAT, 16, 1}},
    {TARN_DTYPE_I64, {TARN_DLPACK_INT, 64, 1}},
    {TARN_DTYPE_I32, {TARN_DLPACK_INT, 32, 1}},
    {TARN_DTYPE_I16, {TARN_DLPACK_INT, 16, 1}},
    {TARN_DTYPE_I8, {TARN_DLPACK_INT, 8, 1}},
    {TARN_DTYPE_U64, {TARN_DLPACK_UINT, 64, 1}},
    {TARN_DTYPE_U32, {TARN_DLPACK_UINT, 32, 1}},
    {TARN_DTYPE_U16, {TARN_DLPACK_UINT, 16, 1}},
    {TARN_DTYPE_U8, {TARN_DLPACK_UINT, 8, 1}},
    {TARN_DTYPE_BOOL, {TARN_DLPACK_BOOL, 8, 1}},
};
enum { DTYPE_COUNT = sizeof dtypes / sizeof dtypes[0] };

static tarn_status refuse_null(void) {
  return tarn__fail(TARN_E_INVALID, "dlpack: NULL");
}

tarn_status tarn_dlpack_from_dtype(tarn_dtype dtype,
                                   tarn_dlpack_dtype *out_dtype) {
  if (out_dtype == NULL) return refuse_null();
  *out_dtype = (tarn_dlpack_dtype){0};
  for (int i = 0; i < DTYPE_COUNT; i++) {
    if (dtypes[i].dtype != dtype) continue;
    *out_dtype = dtypes[i].code;
    return TARN_OK;
  }
  return tarn__fail(TARN_E_INVALID, "dlpack: %d is not a dtype", (int)dtype);
}

tarn_status tarn_dlpack_to_dtype(tarn_dlpack_dtype dtype,
                                 tarn_dtype *out_dtype) {
  if (out_dtype == NULL) return refuse_null();
  *out_dtype = TARN_DTYPE_NONE;
  for (int i = 0; i < DTYPE_COUNT; i++) {
    const tarn_dlpack_dtype *own = &dtypes[i].code;
    if (own->code != dtype.code || own->bits != dtype.bits ||
        own->lanes != dtype.lanes) {
      continue;
    }
    *out_dtype = dtypes[i].dtype;
    return TARN_OK;
  }
  return tarn__fail(TARN_E_UNSUPPORTED,
                    "dlpack: no dtype for code %u with %u bits and %u lanes",
                    dtype.code, dtype.bits, dtype.lanes);
}

// --- places ------------------------------------------------------------------

static tarn_status refuse_place(tarn_place place) {
  char text[64];
  return tarn__fail(TARN_E_UNSUPPORTED,
                    "dlpack: no DLPack device for %s: copy it to the host",
                    tarn_place_text(place, text, sizeof text));
}

// Pinned and unified memory have no device number.
static tarn_dlpack_device on_cuda(tarn_place place, const char *name) {
  const char *colon = strchr(name, ':');
  long ordinal = colon == NULL ? 0 : strtol(colon + 1, NULL, 10);
  switch (place.kind) {
    case TARN_PLACE_HOST:
      return (tarn_dlpack_device){TARN_DLPACK_CUDA_HOST, 0};
    case TARN_PLACE_UNIFIED:
      return (tarn_dlpack_device){TARN_DLPACK_CUDA_MANAGED, 0};
    case TARN_PLACE_DEVICE:
      break;
  }
  return (tarn_dlpack_device){TARN_DLPACK_CUDA, (int32_t)ordinal};
}

tarn_status tarn_dlpack_from_place(tarn_place place,
                                   tarn_dlpack_device *out_device) {
  tarn_device_info info = {.struct_size = sizeof info};
  if (out_device == NULL) return refuse_null();
  *out_device = (tarn_dlpack_device){0};
  if (tarn_place_equal(place, TARN_HOST)) {
    *out_device = (tarn_dlpack_device){TARN_DLPACK_CPU, 0};
    return TARN_OK;
  }
  tarn_status status = tarn_device_query(place.device, &info);
  if (status != TARN_OK) return status;
  if (strcmp(info.type, "cuda") == 0) {
    *out_device = on_cuda(place, info.name);
    return TARN_OK;
  }
  if (place.kind == TARN_PLACE_DEVICE && !info.host_accessible) {
    return refuse_place(place);
  }
  *out_device = (tarn_dlpack_device){TARN_DLPACK_CPU, 0};
  return TARN_OK;
}

static tarn_status on(const char *type, int32_t id, tarn_place_kind kind,
                      char out_name[32], tarn_place_kind *out_kind) {
  snprintf(out_name, 32, "%s:%" PRId32, type, id);
  *out_kind = kind;
  return TARN_OK;
}

tarn_status tarn_dlpack_to_place(tarn_dlpack_device device, char out_name[32],
                                 tarn_place_kind *out_kind) {
  if (out_name == NULL || out_kind == NULL) return refuse_null();
  out_name[0] = '\0';
  *out_kind = TARN_PLACE_HOST;
  if (device.id < 0) {
    return tarn__fail(TARN_E_INVALID,
                      "dlpack: device %" PRId32 " of type %" PRId32, device.id,
                      device.type);
  }
  switch (device.type) {
    case TARN_DLPACK_CPU:
      return on("cpu", 0, TARN_PLACE_HOST, out_name, out_kind);
    case TARN_DLPACK_CUDA:
      return on("cuda", device.id, TARN_PLACE_DEVICE, out_name, out_kind);
    case TARN_DLPACK_CUDA_HOST:
      return on("cuda", device.id, TARN_PLACE_HOST, out_name, out_kind);
    case TARN_DLPACK_CUDA_MANAGED:
      return on("cuda", device.id, TARN_PLACE_UNIFIED, out_name, out_kind);
    default:
      return tarn__fail(TARN_E_UNSUPPORTED,
                        "dlpack: no place for devices of type %" PRId32,
                        device.type);
  }
}

// --- export ------------------------------------------------------------------

// The data of a deleter, behind either struct.
typedef struct keeper {
  size_t size;  // of the block
  tarn_dlpack_release_fn *release;
  void *owner;
} keeper;

static void let_go(void *block, const keeper *kept) {
  keeper copy = *kept;
  tarn__host_free(block, copy.size);
  if (copy.release != NULL) copy.release(copy.owner);
}

static void delete_managed(tarn_dlpack_managed *self) {
  if (self != NULL) let_go(self, self->context);
}

static void delete_versioned(tarn_dlpack_versioned *self) {
  if (self != NULL) let_go(self, self->context);
}

static tarn_status check_lengths(tarn_shape shape) {
  if (shape.rank > TARN_DLPACK_MAX_NDIM) {
    return tarn__fail(TARN_E_INVALID, "dlpack: %zu dimensions; at most %d",
                      shape.rank, TARN_DLPACK_MAX_NDIM);
  }
  for (size_t i = 0; shape.dims != NULL && i < shape.rank; i++) {
    if (shape.dims[i] >= 0) continue;
    return tarn__fail(TARN_E_INVALID, "dlpack: dimension %zu is %" PRId64, i,
                      shape.dims[i]);
  }
  return TARN_OK;
}

static tarn_status copy_source(const tarn_dlpack_source *source,
                               tarn_dlpack_source *out) {
  const uint64_t known = TARN_DLPACK_READ_ONLY | TARN_DLPACK_COPIED;
  size_t size = 0;
  *out = (tarn_dlpack_source){0};
  if (source == NULL) return refuse_null();
  if (!tarn__struct_size(source->struct_size, sizeof *source, sizeof *source,
                         &size)) {
    return tarn__fail(TARN_E_INVALID, "dlpack: struct_size %zu",
                      source->struct_size);
  }
  memcpy(out, source, size);
  if ((out->flags & ~known) != 0) {
    return tarn__fail(TARN_E_INVALID, "dlpack: flags %#" PRIx64, out->flags);
  }
  return check_lengths(out->shape);
}

// The address as a pointer, which only its device may follow.
static tarn_status find_data(const tarn_dlpack_source *source,
                             tarn_dlpack_device device, size_t size,
                             void **out_data) {
  *out_data = NULL;
  if (size == 0) return TARN_OK;
  if (source->address == 0) {
    return tarn__fail(TARN_E_INVALID, "dlpack: %zu bytes at address 0", size);
  }
  if (device.type == TARN_DLPACK_CUDA) {
    *out_data = (void *)(uintptr_t)source->address;
    return TARN_OK;
  }
  return tarn_device_host_view(source->place, source->address, size, out_data);
}

static tarn_status describe(const tarn_dlpack_source *source,
                            tarn_dlpack_tensor *out) {
  size_t size = 0;
  *out = (tarn_dlpack_tensor){.ndim = (int32_t)source->shape.rank};
  tarn_status status = tarn_dlpack_from_dtype(source->dtype, &out->dtype);
  if (status == TARN_OK) {
    status = tarn_shape_size(source->shape, source->dtype, 0, &size);
  }
  if (status == TARN_OK) {
    status = tarn_dlpack_from_place(source->place, &out->device);
  }
  if (status != TARN_OK) return status;
  return find_data(source, out->device, size, &out->data);
}

// Makes a block of |head| bytes for the struct, the lengths, and the strides of
// a compact tensor. Their products were checked for overflow, except with a
// length of 0, where strides have no meaning.
static void *make_block(const tarn_dlpack_source *source, size_t head,
                        tarn_dlpack_tensor *tensor, keeper **out_keeper) {
  size_t rank = source->shape.rank;
  size_t size = head + sizeof(keeper) + 2 * rank * sizeof(int64_t);
  char *block = tarn__host_alloc(size);
  if (block == NULL) return NULL;
  *out_keeper = (keeper *)(void *)(block + head);
  **out_keeper = (keeper){size, source->release, source->owner};
  tensor->shape = (int64_t *)(void *)(*out_keeper + 1);
  tensor->strides = tensor->shape + rank;
  uint64_t stride = 1;
  for (size_t i = rank; i-- > 0;) {
    tensor->shape[i] = source->shape.dims[i];
    tensor->strides[i] = (int64_t)stride;
    if (tensor->shape[i] > 0) stride *= (uint64_t)tensor->shape[i];
  }
  return block;
}

// Checks |source| and makes the block of its tensor.
static tarn_status make_tensor(const tarn_dlpack_source *source, bool has_flags,
                               size_t head, tarn_dlpack_tensor *out_tensor,
                               keeper **out_keeper, void **out_block) {
  tarn_dlpack_source own;
  tarn_status status = copy_source(source, &own);
  if (status == TARN_OK && !has_flags && own.flags != 0) {
    status = tarn__fail(TARN_E_UNSUPPORTED,
                        "dlpack: a tensor without a version has no flags");
  }
  if (status == TARN_OK) status = describe(&own, out_tensor);
  if (status != TARN_OK) return status;
  *out_block = make_block(&own, head, out_tensor, out_keeper);
  return *out_block == NULL ? TARN_E_NOMEM : TARN_OK;
}

tarn_status tarn_dlpack_export(const tarn_dlpack_source *source,
                               tarn_dlpack_managed **out_managed) {
  tarn_dlpack_tensor tensor;
  keeper *kept = NULL;
  void *block = NULL;
  if (out_managed == NULL) return refuse_null();
  *out_managed = NULL;
  tarn_status status =
      make_tensor(source, false, sizeof **out_managed, &tensor, &kept, &block);
  if (status != TARN_OK) return status;
  *out_managed = block;
  **out_managed = (tarn_dlpack_managed){tensor, kept, delete_managed};
  return TARN_OK;
}

tarn_status tarn_dlpack_export_versioned(const tarn_dlpack_source *source,
                                         tarn_dlpack_versioned **out_managed) {
  tarn_dlpack_tensor tensor;
  keeper *kept = NULL;
  void *block = NULL;
  if (out_managed == NULL) return refuse_null();
  *out_managed = NULL;
  tarn_status status =
      make_tensor(source, true, sizeof **out_managed, &tensor, &kept, &block);
  if (status != TARN_OK) return status;
  *out_managed = block;
  **out_managed =
      (tarn_dlpack_versioned){.version = {TARN_DLPACK_MAJOR, TARN_DLPACK_MINOR},
                              .context = kept,
                              .deleter = delete_versioned,
                              .flags = source->flags,
                              .tensor = tensor};
  return TARN_OK;
}
