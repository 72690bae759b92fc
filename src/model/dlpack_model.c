// Exchange of a model's tensors with other libraries, by DLPack.
//
// A loan holds an exported tensor: a view, which keeps the bytes, and an open
// access, which keeps others from writing them.
//
// A tensor of another library that is as large as the buffer becomes the
// buffer's memory, and the buffer's deleter calls the tensor's. Any other
// tensor is copied. All checks come first, and the tensor's deleter is called
// last.
#include <inttypes.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "model/slots.h"
#include "tarn/model_file.h"

// Checks that |tensor| belongs to a model and that |part| has a buffer.
static tarn_status check_part(const tarn_tensor *tensor, tarn_part part) {
  if (tensor == NULL || tensor->model == NULL) {
    return tarn__fail(TARN_E_INVALID, "dlpack: no tensor of a model");
  }
  TARN__TRY(tarn__model_check(tensor->model));
  bool is_one =
      part == TARN_DATA || (part == TARN_DIFF && tarn__tensor_has_diff(tensor));
  if (!is_one) {
    return tarn__fail(TARN_E_INVALID, "dlpack: %s '%.80s' has no part %d",
                      tarn_tensor_kind_name(tensor->kind), tensor->name,
                      (int)part);
  }
  if (tarn__tensor_buffer(tensor, part) != NULL) return TARN_OK;
  return tarn__fail(TARN_E_STATE, "dlpack: the %s of '%.80s' is not placed",
                    tarn__part_name(part), tensor->name);
}

// The length of dimension |i| at the present batch.
static int64_t length_of(const tarn_tensor *tensor, size_t i) {
  int64_t length = tensor->shape.dims[i];
  return length == TARN_DIM_BATCH ? tensor->model->batch : length;
}

// --- exporting ---------------------------------------------------------------

typedef struct loan {
  tarn_synced *view;
  tarn_access access;
} loan;

// Ending an access without a write changes nothing.
static tarn_status close_loan(loan *lent) {
  tarn_status status = TARN_OK;
  if (lent->access.buffer != NULL) status = tarn_synced_end(&lent->access);
  tarn__keep_first(&status, tarn_synced_destroy(lent->view));
  tarn__host_free(lent, sizeof *lent);
  return status;
}

// Failures are logged, since a deleter returns no status.
static void return_loan(void *owner) {
  if (close_loan(owner) == TARN_OK) return;
  tarn__log(TARN_LOG_WARN, "dlpack: a tensor came back: %s", tarn_last_error());
}

static tarn_status open_loan(loan *lent, tarn_tensor *tensor, tarn_part part,
                             tarn_place place, uint32_t mode) {
  TARN__TRY(tarn_synced_view(tarn__tensor_buffer(tensor, part), 0,
                             tarn_tensor_size(tensor), &lent->view));
  return tarn_synced_begin(lent->view, 0, TARN_ALL, place, mode, NULL,
                           &lent->access);
}

static tarn_status check_export(const tarn_tensor *tensor, tarn_part part,
                                tarn_place place, uint32_t mode) {
  tarn_dlpack_device device;
  TARN__TRY(check_part(tensor, part));
  if (mode != TARN_READ && mode != TARN_READ_WRITE) {
    return tarn__fail(TARN_E_INVALID, "dlpack: a mode of 0x%x", (unsigned)mode);
  }
  if (tensor->shape.rank > TARN_DLPACK_MAX_NDIM) {
    return tarn__fail(TARN_E_INVALID, "dlpack: '%.80s' has %zu dimensions",
                      tensor->name, tensor->shape.rank);
  }
  if (tensor->bits) {
    return tarn__fail(TARN_E_UNSUPPORTED, "dlpack: '%.80s' is a mask of bits",
                      tensor->name);
  }
  return tarn_dlpack_from_place(place, &device);
}

// Lends the part in the form of one of the outputs, the other of which is NULL.
static tarn_status lend(tarn_tensor *tensor, tarn_part part, tarn_place place,
                        uint32_t mode, tarn_dlpack_managed **out_plain,
                        tarn_dlpack_versioned **out_versioned) {
  int64_t dims[TARN_DLPACK_MAX_NDIM];
  TARN__TRY(check_export(tensor, part, place, mode));
  loan *lent = tarn__host_alloc(sizeof *lent);
  if (lent == NULL) return TARN_E_NOMEM;
  for (size_t i = 0; i < tensor->shape.rank; i++)
    dims[i] = length_of(tensor, i);
  tarn_status status = open_loan(lent, tensor, part, place, mode);
  tarn_dlpack_source source = {.struct_size = sizeof source,
                               .place = place,
                               .address = lent->access.address,
                               .dtype = tensor->dtype,
                               .shape = {dims, tensor->shape.rank},
                               .release = return_loan,
                               .owner = lent};
  if (status == TARN_OK && out_plain != NULL) {
    status = tarn_dlpack_export(&source, out_plain);
  } else if (status == TARN_OK) {
    source.flags = mode == TARN_READ ? TARN_DLPACK_READ_ONLY : 0;
    status = tarn_dlpack_export_versioned(&source, out_versioned);
  }
  if (status == TARN_OK) return TARN_OK;
  tarn__failure failure = tarn__failure_of(status);
  (void)close_loan(lent);
  return tarn__failure_tell(&failure);
}

tarn_status tarn_tensor_to_dlpack(tarn_tensor *tensor, tarn_part part,
                                  tarn_place place, uint32_t mode,
                                  tarn_dlpack_managed **out_managed) {
  if (out_managed == NULL) return tarn__fail(TARN_E_INVALID, "dlpack: NULL");
  *out_managed = NULL;
  return lend(tensor, part, place, mode, out_managed, NULL);
}

tarn_status tarn_tensor_to_dlpack_versioned(
    tarn_tensor *tensor, tarn_part part, tarn_place place, uint32_t mode,
    tarn_dlpack_versioned **out_managed) {
  if (out_managed == NULL) return tarn__fail(TARN_E_INVALID, "dlpack: NULL");
  *out_managed = NULL;
  return lend(tensor, part, place, mode, NULL, out_managed);
}

// --- importing ---------------------------------------------------------------

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
    int64_t wanted = length_of(tensor, i);
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

// Pinned memory is the host's, on whichever device it is pinned.
static tarn_status find_place(const tarn_model *model,
                              tarn_dlpack_device device, tarn_place *out) {
  char name[32];
  tarn_place_kind kind = TARN_PLACE_HOST;
  *out = TARN_HOST;
  TARN__TRY(tarn_dlpack_to_place(device, name, &kind));
  if (kind == TARN_PLACE_HOST) return TARN_OK;
  tarn_model_plan_options plan = {0};
  if (model->slots != NULL) plan = model->slots->options;
  tarn_device *const known[] = {plan.home.device, plan.compute.device};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (known[i] == NULL || strcmp(tarn_device_name(known[i]), name) != 0) {
      continue;
    }
    *out = (tarn_place){known[i], kind};
    return TARN_OK;
  }
  return tarn__fail(TARN_E_UNSUPPORTED,
                    "dlpack: memory of %s, which is neither the home nor the "
                    "compute place of %s",
                    name, model->name);
}

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
  TARN__TRY(tarn_synced_begin(buffer, 0, view->size, place, TARN_WRITE_DISCARD,
                              NULL, &access));
  tarn_status status = copy_bytes(&access, place, view);
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

// |source|: at most one of its members is not NULL.
static tarn_status import(tarn_tensor *tensor, tarn_part part,
                          const imported *source) {
  tarn_dlpack_view view;
  tarn_place place;
  TARN__TRY(check_part(tensor, part));
  TARN__TRY(source->versioned != NULL
                ? tarn_dlpack_check_versioned(source->versioned, &view)
                : tarn_dlpack_check(source->plain, &view));
  tarn__model_tensor *root = tarn__tensor_root(tensor);
  tarn_synced *buffer = tarn__tensor_buffer(&root->shown, part);
  TARN__TRY(check_dtype(tensor, &view));
  TARN__TRY(check_shape(tensor, &view));
  TARN__TRY(check_kind(root, part));
  TARN__TRY(find_place(tensor->model, view.device, &place));
  if (is_usable(buffer, &view)) return wrap(buffer, place, &view, source);
  return copy(buffer, place, &view, source);
}

tarn_status tarn_tensor_from_dlpack(tarn_tensor *tensor, tarn_part part,
                                    tarn_dlpack_managed *managed) {
  return import(tensor, part, &(imported){.plain = managed});
}

tarn_status tarn_tensor_from_dlpack_versioned(tarn_tensor *tensor,
                                              tarn_part part,
                                              tarn_dlpack_versioned *managed) {
  return import(tensor, part, &(imported){.versioned = managed});
}
