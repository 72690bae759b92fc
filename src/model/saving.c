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
#include "model/stored.h"
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

tarn_status tarn__stored_check(const tarn_tensor *tensor) {
  if (tensor->data != NULL) return TARN_OK;
  return tarn__fail(TARN_E_STATE, "%s: %s '%.80s' was never placed",
                    tensor->model->name, tarn_tensor_kind_name(tensor->kind),
                    tensor->name);
}

// --- where to read it ------------------------------------------------------

static tarn_status look(const item *it, tarn_place place,
                        tarn_synced_info *info) {
  *info = (tarn_synced_info){.struct_size = sizeof *info};
  return tarn_synced_query(it->tensor->data, 0, TARN_ALL, place, info);
}

// The place with memory and most of the bytes; else the host.
static tarn_status find_place(const saving *s, item *it) {
  const tarn__model_slots *slots = s->model->slots;
  tarn_synced_info host;
  tarn_status status = look(it, TARN_HOST, &host);
  it->place = TARN_HOST;
  it->is_guest = host.memory == 0;
  if (status != TARN_OK || slots == NULL) return status;
  const tarn_place others[] = {slots->options.home, slots->options.compute};
  size_t most = host.valid;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    tarn_synced_info info;
    if (others[i].device == NULL) continue;
    status = look(it, others[i], &info);
    if (status != TARN_OK) return status;
    if (info.memory == 0 || info.valid <= most) continue;
    most = info.valid;
    it->place = others[i];
    it->is_guest = false;
  }
  return TARN_OK;
}

static tarn_status is_unwritten(const item *it, bool *out_unwritten) {
  tarn_synced_info info;
  tarn_status status = look(it, TARN_HOST, &info);
  *out_unwritten =
      info.unwritten == tarn_synced_size(it->tensor->data) && info.writers == 0;
  return status;
}

static tarn_status open_item(const saving *s, item *it) {
  bool unwritten = false;
  tarn_status status = tarn__stored_check(it->tensor);
  if (status == TARN_OK) status = is_unwritten(it, &unwritten);
  if (status != TARN_OK || unwritten) return status;
  status = find_place(s, it);
  if (status != TARN_OK) return status;
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
  tarn_status status = open_item(s, it);
  if (status != TARN_OK) return status;
  return tarn_safetensors_add_filled(s->writer, tensor->name, tensor->dtype,
                                     tensor->shape, fill, it);
}

static tarn_status add_items(saving *s) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, &s->model->among) {
    tarn_tensor *tensor = tarn_list_entry(node, tarn_tensor, among);
    if (!tarn__is_stored(tensor, s->states)) continue;
    tarn_status status = add_item(s, tensor);
    if (status != TARN_OK) return status;
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
  tarn_status status = tarn_safetensors_writer_create(&s->writer);
  if (status == TARN_OK) status = add_items(s);
  if (status == TARN_OK) status = tarn_safetensors_write(s->writer, path);
  return status;
}

static tarn_status check(const tarn_model *model, const char *path,
                         uint32_t flags) {
  tarn_status status = tarn__model_check(model);
  if (status != TARN_OK) return status;
  if (path == NULL) return tarn__fail(TARN_E_INVALID, "save: no path");
  if ((flags & ~TARN_FILE_STATES) == 0) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "%s: save: flags 0x%x", model->name,
                    (unsigned)flags);
}

static tarn_status finish(saving *s, tarn_status status, size_t room) {
  tarn__failure failure = tarn__failure_of(status);
  for (size_t i = s->count; i-- > 0;)
    close_item(&s->items[i]);
  tarn_safetensors_writer_destroy(s->writer);
  tarn__host_free_array(s->items, room, sizeof *s->items);
  return tarn__failure_tell(&failure);
}

tarn_status tarn_model_save(tarn_model *model, const char *path,
                            uint32_t flags) {
  tarn_status status = check(model, path, flags);
  if (status != TARN_OK) return status;
  saving s = {.model = model, .states = (flags & TARN_FILE_STATES) != 0};
  size_t room = tarn__stored_count(model, s.states);
  s.items = tarn__host_array(room, sizeof *s.items);
  if (s.items == NULL) return TARN_E_NOMEM;
  return finish(&s, save(&s, path), room);
}
