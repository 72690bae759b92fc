// Writes safetensors files.
//
// The file is planned in memory before its first byte is written, so that after
// that only the system or a fill function can fail. Small pieces are collected;
// a tensor larger than the collecting buffer is written from its own memory.
#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "format/safetensors_plan.h"
#include "format/safetensors_writer.h"

enum {
  MULTIPLE = 8,        // where tensors begin: each is aligned
  GATHERED = 1 << 18,  // bytes that are written at once
};

typedef tarn__format_safetensors_entry entry;
typedef tarn__format_safetensors_plan plan;

typedef struct output {
  tarn_safetensors_sink_fn *sink;
  void *context;
  char *bytes;
  size_t room;
  size_t used;
  tarn_status status;  // of the first failure
} output;

// --- bytes on their way ------------------------------------------------------

static void hand_over(output *out) {
  if (out->status == TARN_OK && out->used > 0) {
    out->status = out->sink(out->context, out->bytes, out->used);
  }
  out->used = 0;
}

static void send(output *out, const void *bytes, size_t size) {
  if (out->status != TARN_OK || size == 0) return;
  if (size > out->room - out->used) hand_over(out);
  if (out->status != TARN_OK) return;
  if (size > out->room) {
    out->status = out->sink(out->context, bytes, size);
    return;
  }
  memcpy(out->bytes + out->used, bytes, size);
  out->used += size;
}

static void send_filled(output *out, const entry *tensor) {
  for (size_t at = 0; at < tensor->size && out->status == TARN_OK;) {
    if (out->used == out->room) hand_over(out);
    if (out->status != TARN_OK) return;
    size_t part = tarn__lesser(tensor->size - at, out->room - out->used);
    out->status =
        tensor->fill(tensor->context, at, out->bytes + out->used, part);
    out->used += part;
    at += part;
  }
}

static void send_tensors(output *out, const tarn_safetensors_writer *writer,
                         const plan *made) {
  const entry *entries = writer->entries.items;
  const uint32_t *order = made->order.items;
  for (size_t i = 0; i < made->order.count; i++) {
    const entry *tensor = &entries[order[i]];
    if (tensor->fill != NULL) {
      send_filled(out, tensor);
    } else {
      send(out, tensor->data, tensor->size);
    }
  }
}

static tarn_status send_all(const tarn_safetensors_writer *writer,
                            const plan *made, tarn_safetensors_sink_fn *sink,
                            void *context) {
  // Room for everything, if it is small.
  output out = {.sink = sink,
                .context = context,
                .room = tarn__lesser(made->size, GATHERED)};
  out.bytes = tarn__host_alloc(out.room);
  if (out.bytes == NULL) return TARN_E_NOMEM;
  send(&out, made->head.items, made->head.count);
  send_tensors(&out, writer, made);
  hand_over(&out);
  tarn__host_free(out.bytes, out.room);
  return out.status;
}

// --- all of it ---------------------------------------------------------------

// A tensor may be there that was declared alone.
static tarn_status check_bytes(const tarn_safetensors_writer *writer) {
  const entry *entries = writer->entries.items;
  for (uint32_t i = 0; i < writer->entries.count; i++) {
    const entry *e = &entries[i];
    if (e->size == 0 || e->data != NULL || e->fill != NULL) continue;
    return tarn__fail(TARN_E_INVALID,
                      "safetensors: tensor \"%.80s\": its %zu bytes are not "
                      "known",
                      tarn__intern_text(&writer->names, i), e->size);
  }
  return TARN_OK;
}

tarn_status tarn_safetensors_write_to(const tarn_safetensors_writer *writer,
                                      tarn_safetensors_sink_fn *sink,
                                      void *context) {
  plan made;
  if (writer == NULL || sink == NULL) {
    return tarn__fail(TARN_E_INVALID, "safetensors: NULL");
  }
  TARN__TRY(check_bytes(writer));
  TARN__TRY(tarn__safetensors_plan_init(writer, MULTIPLE, &made));
  tarn_status status = send_all(writer, &made, sink, context);
  tarn__safetensors_plan_deinit(&made);
  return status;
}

static tarn_status to_file(void *context, const void *bytes, size_t size) {
  return tarn__os_file_write(context, bytes, size);
}

tarn_status tarn_safetensors_write(const tarn_safetensors_writer *writer,
                                   const char *path) {
  tarn__os_new_file file;
  if (writer == NULL || path == NULL) {
    return tarn__fail(TARN_E_INVALID, "safetensors: NULL");
  }
  TARN__TRY(tarn__os_file_begin(path, &file));
  tarn_status status = tarn_safetensors_write_to(writer, to_file, &file);
  if (status == TARN_OK) return tarn__os_file_commit(&file);
  tarn__os_file_cancel(&file);
  return status;
}
