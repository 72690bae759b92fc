// Slots beyond the ABI: alignment, queries of addresses, and texts of errors.
#include <inttypes.h>
#include <stdio.h>

#include "opencl.h"

typedef tarn__opencl_device opencl;

tarn_status tarn__opencl_alignment(int id, size_t *out_align) {
  opencl *d = NULL;
  *out_align = 0;
  TARN__TRY(tarn__opencl_admit(id, &d));
  *out_align = d->align;
  return TARN_OK;
}

tarn_status tarn__opencl_allocate_aligned(int id, size_t size, size_t align,
                                          uint64_t *out_addr) {
  opencl *d = NULL;
  *out_addr = 0;
  TARN__TRY(tarn__opencl_admit(id, &d));
  if (align == 0 || (align & (align - 1)) != 0) {
    return tarn__text_fail(TARN_E_INVALID, "opencl:%d: no alignment: %zu", id,
                           align);
  }
  C_Status status =
      tarn__opencl_take(d, TARN__OPENCL_DEVICE, size, align, out_addr);
  return status == C_FAILED ? TARN_FULL : tarn__opencl_answer(status);
}

tarn_status tarn__opencl_pointer_query(int id, uint64_t addr,
                                       tarn_ext_pointer *out) {
  static const tarn_ext_kind kinds[TARN__OPENCL_KINDS] = {
      TARN_EXT_KIND_DEVICE, TARN_EXT_KIND_HOST, TARN_EXT_KIND_UNIFIED};
  opencl *d = NULL;
  tarn__opencl_span span;
  *out = (tarn_ext_pointer){.id = 0};
  TARN__TRY(tarn__opencl_admit(id, &d));
  const opencl *owner = tarn__opencl_owner(d, addr, &span);
  if (owner != NULL) {
    *out =
        (tarn_ext_pointer){kinds[span.kind], owner->id, span.start, span.size};
    return TARN_OK;
  }
  return tarn__text_fail(TARN_E_INVALID,
                         "opencl:%d: nothing is known of address 0x%" PRIx64,
                         id, addr);
}

// "NAME (PLATFORM), memory device=svm,host=svm,unified=svm": the methods as
// TARN_OPENCL_MEMORY has them.
void tarn__opencl_describe(int id, char *out, size_t out_size) {
  char text[2 * TARN__OPENCL_NAME + 64];
  opencl *d = NULL;
  if (tarn__opencl_admit(id, &d) != TARN_OK) {
    tarn__text_copy("", out, out_size);
    return;
  }
  int used = snprintf(text, sizeof text, "%s (%s), memory ", d->name,
                      d->platform->name);
  for (int i = 0; i < TARN__OPENCL_KINDS && (size_t)used < sizeof text; i++)
    used +=
        snprintf(text + used, sizeof text - (size_t)used, "%s%s=%s",
                 i > 0 ? "," : "", tarn__opencl_kind_name((tarn__opencl_kind)i),
                 tarn__opencl_method_name(d->methods[i]));
  tarn__text_copy(text, out, out_size);
}

// A call on a stream that has not failed has a reason of its own.
void tarn__opencl_error_text(int id, void *stream, char *out, size_t out_size) {
  (void)id;
  tarn__opencl_queue *queue = tarn__opencl_queue_known(stream);
  bool failed =
      queue != NULL &&
      atomic_load_explicit(&queue->failure, memory_order_acquire) != C_SUCCESS;
  tarn__text_copy(failed ? queue->why : tarn__text_line(), out, out_size);
  tarn__opencl_queue_drop(queue);
}
