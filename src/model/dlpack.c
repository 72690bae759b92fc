// DLPack's types and places, exported tensors, and checks of others' tensors.
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
  TARN__TRY(tarn_device_query(place.device, &info));
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

tarn_status tarn_dlpack_to_place(tarn_dlpack_device device, char out_name[32],
                                 tarn_place_kind *out_kind) {
  static const struct {
    const char *name;
    int32_t type;
    tarn_place_kind kind;
  } types[] = {
      {"cpu", TARN_DLPACK_CPU, TARN_PLACE_HOST},
      {"cuda", TARN_DLPACK_CUDA, TARN_PLACE_DEVICE},
      {"cuda", TARN_DLPACK_CUDA_HOST, TARN_PLACE_HOST},
      {"cuda", TARN_DLPACK_CUDA_MANAGED, TARN_PLACE_UNIFIED},
  };
  if (out_name == NULL || out_kind == NULL) return refuse_null();
  out_name[0] = '\0';
  *out_kind = TARN_PLACE_HOST;
  if (device.id < 0) {
    return tarn__fail(TARN_E_INVALID,
                      "dlpack: device %" PRId32 " of type %" PRId32, device.id,
                      device.type);
  }
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    if (types[i].type != device.type) continue;
    snprintf(out_name, 32, "%s:%" PRId32, types[i].name,
             device.type == TARN_DLPACK_CPU ? 0 : device.id);
    *out_kind = types[i].kind;
    return TARN_OK;
  }
  return tarn__fail(TARN_E_UNSUPPORTED,
                    "dlpack: no place for devices of type %" PRId32,
                    device.type);
}

// --- export ------------------------------------------------------------------

// The data of a deleter, behind either struct.
typedef struct keeper {
  void *block;
  size_t size;  // of the block
  tarn_dlpack_release_fn *release;
  void *owner;
} keeper;

static void let_go(const keeper *kept) {
  keeper copy = *kept;
  tarn__host_free(copy.block, copy.size);
  if (copy.release != NULL) copy.release(copy.owner);
}

static void delete_managed(tarn_dlpack_managed *self) {
  if (self != NULL) let_go(self->context);
}

static void delete_versioned(tarn_dlpack_versioned *self) {
  if (self != NULL) let_go(self->context);
}

// Refuses -1 too, which Tarn's own shapes may have.
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
  TARN__TRY(tarn_dlpack_from_dtype(source->dtype, &out->dtype));
  TARN__TRY(tarn_shape_size(source->shape, source->dtype, 0, &size));
  TARN__TRY(tarn_dlpack_from_place(source->place, &out->device));
  return find_data(source, out->device, size, &out->data);
}

// Makes a block of |head| bytes for the struct, the lengths, and the strides of
// a compact tensor. Their products were checked for overflow, except with a
// length of 0, where strides have no meaning.
static keeper *make_block(const tarn_dlpack_source *source, size_t head,
                          tarn_dlpack_tensor *tensor) {
  size_t rank = source->shape.rank;
  size_t size = head + sizeof(keeper) + 2 * rank * sizeof(int64_t);
  char *block = tarn__host_alloc(size);
  if (block == NULL) return NULL;
  keeper *kept = (keeper *)(void *)(block + head);
  *kept = (keeper){block, size, source->release, source->owner};
  tensor->shape = (int64_t *)(void *)(kept + 1);
  tensor->strides = tensor->shape + rank;
  uint64_t stride = 1;
  for (size_t i = rank; i-- > 0;) {
    tensor->shape[i] = source->shape.dims[i];
    tensor->strides[i] = (int64_t)stride;
    if (tensor->shape[i] > 0) stride *= (uint64_t)tensor->shape[i];
  }
  return kept;
}

// Checks |source| and makes the block of its tensor.
static tarn_status make_tensor(const tarn_dlpack_source *source, bool has_flags,
                               size_t head, tarn_dlpack_tensor *out_tensor,
                               keeper **out_keeper) {
  tarn_dlpack_source own;
  TARN__TRY(copy_source(source, &own));
  if (!has_flags && own.flags != 0) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "dlpack: a tensor without a version has no flags");
  }
  TARN__TRY(describe(&own, out_tensor));
  *out_keeper = make_block(&own, head, out_tensor);
  return *out_keeper == NULL ? TARN_E_NOMEM : TARN_OK;
}

tarn_status tarn_dlpack_export(const tarn_dlpack_source *source,
                               tarn_dlpack_managed **out_managed) {
  tarn_dlpack_tensor tensor;
  keeper *kept = NULL;
  if (out_managed == NULL) return refuse_null();
  *out_managed = NULL;
  TARN__TRY(make_tensor(source, false, sizeof **out_managed, &tensor, &kept));
  assert(kept != NULL);
  *out_managed = kept->block;
  **out_managed = (tarn_dlpack_managed){tensor, kept, delete_managed};
  return TARN_OK;
}

tarn_status tarn_dlpack_export_versioned(const tarn_dlpack_source *source,
                                         tarn_dlpack_versioned **out_managed) {
  tarn_dlpack_tensor tensor;
  keeper *kept = NULL;
  if (out_managed == NULL) return refuse_null();
  *out_managed = NULL;
  TARN__TRY(make_tensor(source, true, sizeof **out_managed, &tensor, &kept));
  assert(kept != NULL);
  *out_managed = kept->block;
  **out_managed =
      (tarn_dlpack_versioned){.version = {TARN_DLPACK_MAJOR, TARN_DLPACK_MINOR},
                              .context = kept,
                              .deleter = delete_versioned,
                              .flags = source->flags,
                              .tensor = tensor};
  return TARN_OK;
}

// --- checks ------------------------------------------------------------------
// Only the tensor's arrays are read. That they have |ndim| lengths cannot be
// checked; the bound on |ndim| limits the damage of a wrong one.

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

static tarn_status check_tensor(const tarn_dlpack_tensor *tensor,
                                uint64_t flags, tarn_dlpack_view *out_view) {
  char name[32];
  tarn_place_kind kind = TARN_PLACE_HOST;
  tarn_dlpack_view view = {
      .device = tensor->device,
      .flags = flags & (TARN_DLPACK_READ_ONLY | TARN_DLPACK_COPIED)};
  TARN__TRY(check_ndim(tensor));
  view.shape.rank = (size_t)tensor->ndim;
  if (tensor->ndim > 0) view.shape.dims = tensor->shape;
  TARN__TRY(check_lengths(view.shape));
  TARN__TRY(tarn_dlpack_to_place(tensor->device, name, &kind));
  TARN__TRY(tarn_dlpack_to_dtype(tensor->dtype, &view.dtype));
  TARN__TRY(tarn_shape_size(view.shape, view.dtype, 0, &view.size));
  TARN__TRY(check_strides(tensor, view.size));
  TARN__TRY(check_address(tensor, view.size, &view.address));
  *out_view = view;
  return TARN_OK;
}

tarn_status tarn_dlpack_check(const tarn_dlpack_managed *managed,
                              tarn_dlpack_view *out_view) {
  if (out_view != NULL) *out_view = (tarn_dlpack_view){0};
  if (managed == NULL || out_view == NULL) return refuse_null();
  return check_tensor(&managed->tensor, 0, out_view);
}

tarn_status tarn_dlpack_check_versioned(const tarn_dlpack_versioned *managed,
                                        tarn_dlpack_view *out_view) {
  if (out_view != NULL) *out_view = (tarn_dlpack_view){0};
  if (managed == NULL || out_view == NULL) return refuse_null();
  if (managed->version.major != TARN_DLPACK_MAJOR) {
    return tarn__fail(
        TARN_E_UNSUPPORTED,
        "dlpack: version %" PRIu32 ".%" PRIu32 "; that of %d.x is read",
        managed->version.major, managed->version.minor, TARN_DLPACK_MAJOR);
  }
  return check_tensor(&managed->tensor, managed->flags, out_view);
}

void tarn_dlpack_release(tarn_dlpack_managed *managed) {
  if (managed != NULL && managed->deleter != NULL) managed->deleter(managed);
}

void tarn_dlpack_release_versioned(tarn_dlpack_versioned *managed) {
  if (managed != NULL && managed->deleter != NULL) managed->deleter(managed);
}
