// Slots beyond the ABI that are about the device or a stream as a whole:
// alignment, the default stream, descriptions and texts of errors.
#include <stdio.h>
#include <string.h>

#include "devices.h"

typedef tarn__cuda_device cuda;

tarn_status tarn__cuda_alignment(int id, size_t *out_align) {
  cuda *d = NULL;
  *out_align = 0;
  TARN__TRY(tarn__cuda_admit(id, &d));
  *out_align = TARN__CUDA_ALIGN;
  return TARN_OK;
}

tarn_status tarn__cuda_default_stream(int id, void **out_stream) {
  cuda *d = NULL;
  *out_stream = NULL;
  TARN__TRY(tarn__cuda_admit(id, &d));
  *out_stream = TARN__CU_STREAM_LEGACY;
  return TARN_OK;
}

// A capture that was invalidated goes on until the program ends it.
tarn_status tarn__cuda_stream_capturing(int id, void *stream,
                                        bool *out_capturing) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  unsigned status = TARN__CU_STREAM_CAPTURE_STATUS_NONE;
  tarn__cuda_scope scope;
  cuda *d = NULL;
  *out_capturing = false;
  TARN__TRY(tarn__cuda_admit(id, &d));
  if (cu->StreamIsCapturing == NULL) {
    return tarn__text_fail(TARN_E_UNSUPPORTED,
                           "the driver has no cuStreamIsCapturing");
  }
  TARN__TRY(tarn__cuda_answer(tarn__cuda_enter(d, false, &scope)));
  tarn__cuda_result error = cu->StreamIsCapturing(stream, &status);
  tarn__cuda_leave(&scope);
  *out_capturing = error == TARN__CU_SUCCESS &&
                   status != TARN__CU_STREAM_CAPTURE_STATUS_NONE;
  return tarn__cuda_answer(tarn__cuda_say(error, "cuStreamIsCapturing"));
}

// --- words -----------------------------------------------------------------

typedef struct line {
  size_t used;
  char text[1024];
} line;

static void add(line *l, const char *words) {
  tarn__text_copy(words, l->text + l->used, sizeof l->text - l->used);
  l->used += strlen(l->text + l->used);
}

static void add_numbers(line *l, const cuda *d) {
  char text[64];
  int version = tarn__cuda_devices.version;
  snprintf(text, sizeof text, " (compute %d.%d", d->major, d->minor);
  add(l, text);
  if (version > 0) {
    snprintf(text, sizeof text, ", driver %d.%d", version / 1000,
             version % 1000 / 10);
    add(l, text);
  }
  add(l, ")");
}

// What is there comes first: of the reasons, the end may be cut.
static void add_abilities(line *l, const cuda *d) {
  for (int i = 0; i < TARN__CUDA_ABILITIES; i++) {
    if (!d->can[i]) continue;
    add(l, ", ");
    add(l, tarn__cuda_ability_name((tarn__cuda_ability)i));
  }
  for (int i = TARN__CUDA_ABILITIES - 1; i >= 0; i--) {
    if (d->can[i]) continue;
    add(l, ", without ");
    add(l, tarn__cuda_ability_name((tarn__cuda_ability)i));
    add(l, ": ");
    add(l, d->why_not[i]);
  }
}

// "NAME (compute 9.0, driver 12.8), ranges, sharing, without rows: WHY".
void tarn__cuda_describe(int id, char *out, size_t out_size) {
  line l = {.text = ""};
  cuda *d = NULL;
  if (tarn__cuda_admit(id, &d) == TARN_OK) {
    add(&l, d->name);
    add_numbers(&l, d);
    add_abilities(&l, d);
  }
  tarn__text_copy(l.text, out, out_size);
}

// A call on a stream that has not failed has a reason of its own.
void tarn__cuda_error_text(int id, void *stream, char *out, size_t out_size) {
  (void)id;
  tarn__cuda_queue *queue = tarn__cuda_queue_known(stream);
  bool failed =
      queue != NULL &&
      atomic_load_explicit(&queue->failure, memory_order_acquire) != C_SUCCESS;
  tarn__text_copy(failed ? queue->why : tarn__text_line(), out, out_size);
  tarn__cuda_queue_drop(queue);
}
