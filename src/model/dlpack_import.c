// Import: another library's tensor becomes the value of a model's, by DLPack.
//
// A tensor as large as the buffer becomes the buffer's memory, and the buffer's
// deleter calls the tensor's. Any other tensor is copied. All checks come
// first, and the tensor's deleter is called last.
#include <inttypes.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "model/slots.h"
#include "tarn/model_file.h"

// An imported tensor, of either form.
typedef struct imported {
  tarn_dlpack_managed *plain;
  tarn_dlpack_versioned *versioned;
} imported;

static void release(const imported *source) {
  tarn_dlpack_release(source->plain);
  tarn_dlpack_release_versioned(source->versioned);
}

static void release_kept(void *context, tarn_place place, tarn_addr address,
                         size_t size) {
  imported *kept = context;
  imported source = *kept;
  (void)place;
  (void)address;
  (void)size;
  tarn__host_free(kept, sizeof *kept);
  release(&source);
}

// --- checks ------------------------------------------------------------------

static tarn_status check_dtype(const tarn_tensor *tensor,
                               const tarn_dlpack_view *view) {
  if (view->dtype == tensor->dtype) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "dlpack: elements of %s for '%.80s' of %s",
                    tarn_dtype_name(view->dtype), tensor->name,
                    tarn_dtype_name(tensor->dtype));
}

static tarn_status check_shape(const tarn_tensor *tensor,
                               const tarn_dlpack_view *view) {
  if (view->shape.rank != tensor->shape.rank) {
    return tarn__fail(TARN_E_INVALID,
                      "dlpack: %zu dimensions for '%.80s' of %zu",
                      view->shape.rank, tensor->name, tensor->shape.rank);
  }
  for (size_t i = 0; i < view->shape.rank; i++) {
    int64_t wanted = tensor->shape.dims[i];
    if (wanted == TARN_DIM_BATCH) wanted = tensor->model->batch;
    if (view->shape.dims[i] == wanted) continue;
    return tarn__fail(TARN_E_INVALID,
                      "dlpack: dimension %zu is %" PRId64
                      ", but that of '%.80s' is %" PRId64,
                      i, view->shape.dims[i], tensor->name, wanted);
  }
  return TARN_OK;
}

static tarn_status check_kind(const tarn__model_tensor *root, tarn_part part) {
  if (root->shown.kind != TARN_CACHE && root->slots[part] == TARN__NO_SLOT) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_STATE, "dlpack: the %s of '%.80s' is planned",
                    tarn__part_name(part), root->shown.name);
}

// --- places ------------------------------------------------------------------

static tarn_status refuse_device(const tarn_model *model, const char *name) {
  return tarn__fail(TARN_E_UNSUPPORTED,
                    "dlpack: memory of %s, which is neither the home nor the "
                    "compute place of %s",
                    name, model->name);
}

// Pinned memory is the host's, on whichever device it is pinned.
static tarn_status find_place(const tarn_model *model,
                              tarn_dlpack_device device, tarn_place *out) {
  char name[32];
  tarn_place_kind kind = TARN_PLACE_HOST;
  *out = TARN_HOST;
  tarn_status status = tarn_dlpack_to_place(device, name, &kind);
  if (status != TARN_OK || kind == TARN_PLACE_HOST) return status;
  if (model->slots == NULL) return refuse_device(model, name);
  const tarn_model_plan_options *plan = &model->slots->options;
  tarn_device *const known[] = {plan->home.device, plan->compute.device};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (known[i] == NULL || strcmp(tarn_device_name(known[i]), name) != 0) {
      continue;
    }
    *out = (tarn_place){known[i], kind};
    return TARN_OK;
  }
  return refuse_device(model, name);
}

// --- importing
// ------------------------------------------------------------------

static tarn_status wrap(tarn_synced *buffer, tarn_place place,
                        const tarn_dlpack_view *view, const imported *source) {
  imported *kept = tarn__host_alloc(sizeof *kept);
  if (kept == NULL) return TARN_E_NOMEM;
  *kept = *source;
  bool is_read_only = (view->flags & TARN_DLPACK_READ_ONLY) != 0;
  const tarn_wrap_options options = {
      .struct_size = sizeof options,
      .flags = is_read_only ? TARN_WRAP_READ_ONLY : 0,
      .deleter = release_kept,
      .context = kept};
  tarn_status status = tarn_synced_wrap(buffer, place, view->address, &options);
  if (status != TARN_OK) tarn__host_free(kept, sizeof *kept);
  return status;
}

static tarn_status copy_bytes(const tarn_access *access, tarn_place place,
                              const tarn_dlpack_view *view) {
  if (view->size == 0) return TARN_OK;
  if (place.kind == TARN_PLACE_HOST) {
    memcpy(access->pointer, (const void *)(uintptr_t)view->address, view->size);
    return TARN_OK;
  }
  return tarn_copy_d2d(place.device, access->address, view->address, view->size,
                       NULL);
}

static tarn_status copy(tarn_synced *buffer, tarn_place place,
                        const tarn_dlpack_view *view, const imported *source) {
  tarn_access access;
  tarn_status status = tarn_synced_begin(buffer, 0, view->size, place,
                                         TARN_WRITE_DISCARD, NULL, &access);
  if (status != TARN_OK) return status;
  status = copy_bytes(&access, place, view);
  if (status == TARN_OK) status = tarn_synced_end(&access);
  if (status == TARN_OK) {
    release(source);
    return TARN_OK;
  }
  tarn__failure failure = tarn__failure_of(status);
  if (access.buffer != NULL) (void)tarn_synced_cancel(&access, NULL);
  return tarn__failure_tell(&failure);
}

// A view of another size, or whose address is not a multiple of its element
// size, cannot be used in place.
static bool is_usable(const tarn_synced *buffer, const tarn_dlpack_view *view) {
  return view->size == tarn_synced_size(buffer) && view->size > 0 &&
         view->address % tarn_dtype_size(view->dtype) == 0;
}

static tarn_status import(tarn_tensor *tensor, tarn_part part,
                          const tarn_dlpack_view *view,
                          const imported *source) {
  tarn__model_tensor *root = tarn__tensor_root(tensor);
  tarn_synced *buffer = tarn__tensor_buffer(&root->shown, part);
  tarn_place place;
  tarn_status status = check_dtype(tensor, view);
  if (status == TARN_OK) status = check_shape(tensor, view);
  if (status == TARN_OK) status = check_kind(root, part);
  if (status == TARN_OK) {
    status = find_place(tensor->model, view->device, &place);
  }
  if (status != TARN_OK) return status;
  if (is_usable(buffer, view)) return wrap(buffer, place, view, source);
  return copy(buffer, place, view, source);
}

tarn_status tarn_tensor_from_dlpack(tarn_tensor *tensor, tarn_part part,
                                    tarn_dlpack_managed *managed) {
  tarn_dlpack_view view;
  const imported source = {.plain = managed};
  tarn_status status = tarn__exchange_check(tensor, part);
  if (status == TARN_OK) status = tarn_dlpack_check(managed, &view);
  return status == TARN_OK ? import(tensor, part, &view, &source) : status;
}

tarn_status tarn_tensor_from_dlpack_versioned(tarn_tensor *tensor,
                                              tarn_part part,
                                              tarn_dlpack_versioned *managed) {
  tarn_dlpack_view view;
  const imported source = {.versioned = managed};
  tarn_status status = tarn__exchange_check(tensor, part);
  if (status == TARN_OK) status = tarn_dlpack_check_versioned(managed, &view);
  return status == TARN_OK ? import(tensor, part, &view, &source) : status;
}
