// What an embedding has: its parts, and memory for an apply.
#include "base/hostmem.h"
#include "embedding/embedding.h"

tarn_status tarn__embedding_add_part(tarn_embedding *e, const char *name,
                                     const tarn_whole_tensor *tensor) {
  tarn__embedding_part *part = &e->parts[e->part_count];
  void *view = NULL;
  part->tensor = *tensor;
  part->element = tarn_dtype_size(tensor->dtype);
  part->stride = tensor->stride * part->element;
  e->names[e->part_count++] = name;
  if (tensor->whole->pager != NULL) return TARN_OK;
  TARN__TRY(tarn_whole_tensor_local(tensor, &part->address));
  if (e->rows == 0) return TARN_OK;
  size_t size = (e->rows - 1) * part->stride + tensor->width * part->element;
  tarn_status status =
      tarn_device_host_view(tensor->whole->place, part->address, size, &view);
  part->view = view;
  return status == TARN_E_UNSUPPORTED ? TARN_OK : status;
}

void tarn__embedding_free(tarn_embedding *e) {
  if (e == NULL) return;
  tarn__update_end(e);
  tarn__tally_deinit(&e->tally);
  tarn__host_free(e, sizeof *e);
}
