// Saves parameters to a file.
//
// All of them are opened for reading before the file is touched: the file gets
// their values of one moment, and an open write access is found first. Each is
// read where most of its newest bytes are. Bytes on a device are read piece by
// piece into the writer's buffer, so that the host needs no copy of its own.
#include <assert.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "model/slots.h"
#include "tarn/model_file.h"

typedef struct item {
  tarn_tensor *tensor;
  tarn_place place;
  tarn_access access;  // |buffer| NULL: never written, zeros
  bool is_guest;       // the host gets memory for the save only
} item;

typedef struct saving {
  tarn_model *model;
  bool states;
  item *items;
  size_t count;
  tarn_safetensors_writer *writer;
} saving;

// --- where to read it ------------------------------------------------------

static tarn_status look(const item *it, tarn_place place,
                        tarn_synced_info *info) {
  *info = (tarn_synced_info){.struct_size = sizeof *info};
  return tarn_synced_query(it->tensor->data, 0, TARN_ALL, place, info);
}

// The place with memory and most of the bytes; else the host.
static tarn_status find_place(const saving *s, item *it,
                              const tarn_synced_info *host) {
  const tarn__model_slots *slots = s->model->slots;
  it->place = TARN_HOST;
  it->is_guest = host->memory == 0;
  if (slots == NULL) return TARN_OK;
  const tarn_place others[] = {slots->options.home, slots->options.compute};
  size_t most = host->valid;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    tarn_synced_info info;
    if (others[i].device == NULL) continue;
    TARN__TRY(look(it, others[i], &info));
    if (info.memory == 0 || info.valid <= most) continue;
    most = info.valid;
    it->place = others[i];
    it->is_guest = false;
  }
  return TARN_OK;
}

static tarn_status open_item(const saving *s, item *it) {
  tarn_synced_info host;
  TARN__TRY(tarn__tensor_check_placed(it->tensor));
  TARN__TRY(look(it, TARN_HOST, &host));
  bool was_written =
      host.writers != 0 || host.unwritten != tarn_synced_size(it->tensor->data);
  if (!was_written) return TARN_OK;
  TARN__TRY(find_place(s, it, &host));
  return tarn_synced_begin(it->tensor->data, 0, TARN_ALL, it->place, TARN_READ,
                           NULL, &it->access);
}

// --- the writer ------------------------------------------------------------

static tarn_status fill(void *context, size_t offset, void *out, size_t size) {
  const item *it = context;
  if (it->access.buffer == NULL) {
    memset(out, 0, size);
    return TARN_OK;
  }
  if (it->access.pointer != NULL) {
    memcpy(out, (const char *)it->access.pointer + offset, size);
    return TARN_OK;
  }
  return tarn_copy_d2h(it->place.device, out, it->access.address + offset, size,
                       NULL);
}

static tarn_status add_item(saving *s, tarn_tensor *tensor) {
  item *it = &s->items[s->count++];
  it->tensor = tensor;
  TARN__TRY(open_item(s, it));
  return tarn_safetensors_add_filled(s->writer, tensor->name, tensor->dtype,
                                     tensor->shape, fill, it);
}

static tarn_status add_items(saving *s) {
  for (tarn__model_tensor *t = NULL; (t = tarn__tensor_next(s->model, t));) {
    if (!tarn__tensor_is_stored(&t->shown, s->states)) continue;
    TARN__TRY(add_item(s, &t->shown));
  }
  return TARN_OK;
}

// Frees the host's copy that was made for the save, if the bytes are elsewhere.
static void close_item(item *it) {
  if (it->access.buffer == NULL) return;
  tarn_status status = tarn_synced_end(&it->access);
  assert(status == TARN_OK);  // cannot fail without a stream
  if (it->is_guest) status = tarn_synced_evict(it->tensor->data, TARN_HOST);
  (void)status;  // a copy that cannot be freed stays
}

static tarn_status save(saving *s, const char *path) {
  TARN__TRY(tarn_safetensors_writer_create(&s->writer));
  TARN__TRY(add_items(s));
  return tarn_safetensors_write(s->writer, path);
}

tarn_status tarn_model_save(tarn_model *model, const char *path,
                            uint32_t flags) {
  TARN__TRY(
      tarn__model_check_file(model, "save", path, flags, TARN_FILE_STATES));
  saving s = {.model = model, .states = (flags & TARN_FILE_STATES) != 0};
  size_t room = model->names.count;
  s.items = tarn__host_array(room, sizeof *s.items);
  if (s.items == NULL) return TARN_E_NOMEM;
  tarn__failure failure = tarn__failure_of(save(&s, path));
  for (size_t i = s.count; i-- > 0;)
    close_item(&s.items[i]);
  tarn_safetensors_writer_destroy(s.writer);
  tarn__host_free_array(s.items, room, sizeof *s.items);
  return tarn__failure_tell(&failure);
}
