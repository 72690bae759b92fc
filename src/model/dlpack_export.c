// Export: a model's tensor goes to another library, by DLPack.
//
// A loan holds an exported tensor: a view, which keeps the bytes, and an open
// access, which keeps others from writing them.

#include "base/hostmem.h"
#include "base/status.h"
#include "model/slots.h"
#include "tarn/model_file.h"

tarn_status tarn__exchange_check(const tarn_tensor *tensor, tarn_part part) {
  if (tensor == NULL || tensor->model == NULL) {
    return tarn__fail(TARN_E_INVALID, "dlpack: no tensor of a model");
  }
  tarn_status status = tarn__model_check(tensor->model);
  if (status != TARN_OK) return status;
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

// --- exporting
// ------------------------------------------------------------------

typedef struct loan {
  size_t size;  // of this block
  tarn_synced *view;
  tarn_access access;
  int64_t dims[];
} loan;

static loan *make_loan(const tarn_tensor *tensor) {
  size_t dims = tensor->shape.rank * sizeof(int64_t);  // as in the tensor
  loan *made = tarn__host_alloc(sizeof *made + dims);
  if (made == NULL) return NULL;
  made->size = sizeof *made + dims;
  for (size_t i = 0; i < tensor->shape.rank; i++) {
    int64_t length = tensor->shape.dims[i];
    made->dims[i] = length == TARN_DIM_BATCH ? tensor->model->batch : length;
  }
  return made;
}

// Ending an access without a write changes nothing.
static tarn_status close_loan(loan *lent) {
  tarn_status status = TARN_OK;
  if (lent->access.buffer != NULL) status = tarn_synced_end(&lent->access);
  tarn_status ended = tarn_synced_destroy(lent->view);
  tarn__host_free(lent, lent->size);
  return status != TARN_OK ? status : ended;
}

// Failures are logged, since a deleter returns no status.
static void return_loan(void *owner) {
  if (close_loan(owner) == TARN_OK) return;
  tarn__log(TARN_LOG_WARN, "dlpack: a tensor came back: %s", tarn_last_error());
}

static tarn_status open_loan(loan *lent, tarn_tensor *tensor, tarn_part part,
                             tarn_place place, uint32_t mode) {
  tarn_status status = tarn_synced_view(tarn__tensor_buffer(tensor, part), 0,
                                        tarn_tensor_size(tensor), &lent->view);
  if (status != TARN_OK) return status;
  return tarn_synced_begin(lent->view, 0, TARN_ALL, place, mode, NULL,
                           &lent->access);
}

static tarn_status check_export(const tarn_tensor *tensor, tarn_part part,
                                tarn_place place, uint32_t mode) {
  tarn_dlpack_device device;
  tarn_status status = tarn__exchange_check(tensor, part);
  if (status != TARN_OK) return status;
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

// Opens a loan for the part and describes it in |*out_source|.
static tarn_status fill_source(tarn_tensor *tensor, tarn_part part,
                               tarn_place place, uint32_t mode,
                               tarn_dlpack_source *out_source) {
  *out_source = (tarn_dlpack_source){.struct_size = sizeof *out_source};
  tarn_status status = check_export(tensor, part, place, mode);
  if (status != TARN_OK) return status;
  loan *lent = make_loan(tensor);
  if (lent == NULL) return TARN_E_NOMEM;
  status = open_loan(lent, tensor, part, place, mode);
  if (status != TARN_OK) {
    (void)close_loan(lent);
    return status;
  }
  *out_source = (tarn_dlpack_source){
      .struct_size = sizeof *out_source,
      .place = place,
      .address = lent->access.address,
      .dtype = tensor->dtype,
      .shape = {lent->dims, tensor->shape.rank},
      .release = return_loan,
      .owner = lent,
  };
  return TARN_OK;
}

// Closes the loan of a failed export, and keeps the error's text.
static tarn_status close_on_failure(const tarn_dlpack_source *source,
                                    tarn_status status) {
  if (status == TARN_OK) return status;
  tarn__failure failure = tarn__failure_of(status);
  (void)close_loan(source->owner);
  return tarn__failure_tell(&failure);
}

tarn_status tarn_tensor_to_dlpack(tarn_tensor *tensor, tarn_part part,
                                  tarn_place place, uint32_t mode,
                                  tarn_dlpack_managed **out_managed) {
  tarn_dlpack_source source;
  if (out_managed == NULL) return tarn__fail(TARN_E_INVALID, "dlpack: NULL");
  *out_managed = NULL;
  tarn_status status = fill_source(tensor, part, place, mode, &source);
  if (status != TARN_OK) return status;
  return close_on_failure(&source, tarn_dlpack_export(&source, out_managed));
}

tarn_status tarn_tensor_to_dlpack_versioned(
    tarn_tensor *tensor, tarn_part part, tarn_place place, uint32_t mode,
    tarn_dlpack_versioned **out_managed) {
  tarn_dlpack_source source;
  if (out_managed == NULL) return tarn__fail(TARN_E_INVALID, "dlpack: NULL");
  *out_managed = NULL;
  tarn_status status = fill_source(tensor, part, place, mode, &source);
  if (status != TARN_OK) return status;
  if (mode == TARN_READ) source.flags = TARN_DLPACK_READ_ONLY;
  return close_on_failure(&source,
                          tarn_dlpack_export_versioned(&source, out_managed));
}
