// Loads parameters from a file.
//
//   check ──► open tensors to copy ──► map ──► copy
//   nothing changes  │ values stay      │ can hardly fail
//                    └─ TARN_FULL ◄─────┘
//
// Opening takes memory. Until the first byte is copied, ending the access
// undoes it and keeps the value.
//
// A mapping has a count of users: one for each buffer that lies in it, and one
// for the load itself.
#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "model/stored.h"

// --- the mapped file -------------------------------------------------------

typedef struct mapping {
  tarn_safetensors *file;
  atomic_size_t uses;
} mapping;

static tarn_status open_mapping(const char *path, mapping **out_mapping) {
  mapping *made = tarn__host_alloc(sizeof *made);
  *out_mapping = NULL;
  if (made == NULL) return TARN_E_NOMEM;
  tarn_status status = tarn_safetensors_open(path, &made->file);
  if (status != TARN_OK) {
    tarn__host_free(made, sizeof *made);
    return status;
  }
  atomic_init(&made->uses, 1);
  *out_mapping = made;
  return TARN_OK;
}

static void let_go(mapping *mapped) {
  if (atomic_fetch_sub_explicit(&mapped->uses, 1, memory_order_acq_rel) > 1) {
    return;
  }
  tarn_safetensors_close(mapped->file);
  tarn__host_free(mapped, sizeof *mapped);
}

static void let_go_of_bytes(void *context, tarn_place place, tarn_addr address,
                            size_t size) {
  (void)place;
  (void)address;
  (void)size;
  let_go(context);
}

// --- opening what is copied ------------------------------------------------

// A tensor with a value is opened for reading too, which keeps the value.
// Without a value, or after a loss, there is nothing to keep.
static tarn_status find_mode(const tarn_tensor *tensor, uint32_t *out_mode) {
  tarn_synced_info info = {.struct_size = sizeof info};
  tarn_status status =
      tarn_synced_query(tensor->data, 0, TARN_ALL, TARN_HOST, &info);
  bool is_void = info.lost > 0 || info.unwritten == tensor->max_size;
  *out_mode = is_void ? TARN_WRITE_DISCARD : TARN_READ_WRITE;
  return status;
}

static tarn_status open_one(tarn__model_match *m) {
  uint32_t mode = 0;
  tarn_status status = find_mode(m->tensor, &mode);
  if (status != TARN_OK) return status;
  return tarn_synced_begin(m->tensor->data, 0, TARN_ALL,
                           tarn__model_home(m->tensor->model), mode, NULL,
                           &m->access);
}

// Ends all accesses before the first write.
static void undo(tarn__model_matches *ms) {
  for (size_t i = 0; i < ms->count; i++) {
    tarn_access *access = &ms->items[i].access;
    if (access->buffer == NULL) continue;
    bool keeps = access->mode != TARN_WRITE_DISCARD;
    tarn_status status =
        keeps ? tarn_synced_end(access) : tarn_synced_cancel(access, NULL);
    assert(status == TARN_OK);  // cannot fail without a stream
    (void)status;
  }
}

static tarn_status open_copied(tarn__model_matches *ms) {
  for (size_t i = 0; i < ms->count; i++) {
    if (!ms->items[i].is_copied || ms->items[i].source->size == 0) continue;
    tarn_status status = open_one(&ms->items[i]);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

// --- giving ----------------------------------------------------------------

static tarn_status map_one(const tarn__model_match *m, mapping *mapped) {
  const tarn_wrap_options options = {.struct_size = sizeof options,
                                     .flags = TARN_WRAP_READ_ONLY,
                                     .deleter = let_go_of_bytes,
                                     .context = mapped};
  atomic_fetch_add_explicit(&mapped->uses, 1, memory_order_relaxed);
  tarn_status status =
      tarn_synced_wrap(m->tensor->data, TARN_HOST,
                       (tarn_addr)(uintptr_t)m->source->data, &options);
  if (status != TARN_OK) let_go(mapped);
  return status;
}

static tarn_status copy_one(tarn__model_match *m) {
  tarn_access *access = &m->access;
  if (access->buffer == NULL) return TARN_OK;  // it has no bytes
  if (access->pointer != NULL) {
    memcpy(access->pointer, m->source->data, access->size);
    return tarn_synced_end(access);
  }
  tarn_place home = tarn__model_home(m->tensor->model);
  tarn_status status = tarn_copy_h2d(home.device, access->address,
                                     m->source->data, access->size, NULL);
  if (status == TARN_OK) return tarn_synced_end(access);
  tarn__failure failure = tarn__failure_of(status);
  (void)tarn_synced_cancel(access, NULL);
  return tarn__failure_tell(&failure);
}

// Maps or copies all matches, and counts them.
static tarn_status give_all(tarn__model_matches *ms, mapping *mapped,
                            bool copies, tarn_model_loaded *told) {
  for (size_t i = 0; i < ms->count; i++) {
    tarn__model_match *m = &ms->items[i];
    if (m->is_copied != copies) continue;
    tarn_status status = copies ? copy_one(m) : map_one(m, mapped);
    if (status != TARN_OK) return status;
    told->bytes += m->source->size;
    ++*(copies ? &told->copied : &told->mapped);
  }
  return TARN_OK;
}

// The error, with the number of tensors that have their new values.
static tarn_status tell_failure(const tarn__model_matches *ms,
                                const tarn_model_loaded *told,
                                const tarn__failure *failure) {
  size_t done = told->mapped + told->copied;
  if (done == 0) return tarn__failure_tell(failure);
  return tarn__fail(failure->status,
                    "%s: only %zu of %zu tensors were loaded: %s", ms->path,
                    done, ms->count, failure->text);
}

static tarn_status give(tarn__model_matches *ms, mapping *mapped,
                        tarn_model_loaded *told) {
  tarn_status status = open_copied(ms);
  if (status == TARN_OK) status = give_all(ms, mapped, false, told);
  if (status == TARN_OK) status = give_all(ms, mapped, true, told);
  if (status == TARN_OK) return TARN_OK;
  tarn__failure failure = tarn__failure_of(status);
  undo(ms);
  return tell_failure(ms, told, &failure);
}

// --- together --------------------------------------------------------------

static tarn_status check_told(tarn_model_loaded *out, size_t *out_size) {
  *out_size = 0;
  if (out == NULL) return TARN_OK;
  if (!tarn__struct_size(out->struct_size,
                         TARN__SIZE_UP_TO(tarn_model_loaded, bytes),
                         sizeof *out, out_size)) {
    return tarn__fail(TARN_E_INVALID, "load: a struct_size of %zu",
                      out->struct_size);
  }
  memset(out, 0, *out_size);
  out->struct_size = *out_size;
  return TARN_OK;
}

static tarn_status check(const tarn_model *model, const char *path,
                         uint32_t flags) {
  const uint32_t known = TARN_FILE_STATES | TARN_FILE_PARTIAL | TARN_FILE_COPY;
  tarn_status status = tarn__model_check(model);
  if (status != TARN_OK) return status;
  if (path == NULL) return tarn__fail(TARN_E_INVALID, "load: no path");
  if ((flags & ~known) == 0) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "%s: load: flags 0x%x", model->name,
                    (unsigned)flags);
}

static tarn_status load(tarn__model_matches *ms, tarn_model_loaded *told) {
  mapping *mapped = NULL;
  tarn_status status = open_mapping(ms->path, &mapped);
  if (status != TARN_OK) return status;
  assert(mapped != NULL);
  ms->file = mapped->file;
  status = tarn__matches_find(ms);
  if (status == TARN_OK) status = give(ms, mapped, told);
  told->missing = ms->missing;
  told->unused = ms->unused;
  tarn__matches_end(ms);
  let_go(mapped);
  return status;
}

tarn_status tarn_model_load(tarn_model *model, const char *path, uint32_t flags,
                            tarn_model_loaded *out_loaded) {
  size_t known = 0;
  tarn_status status = check_told(out_loaded, &known);
  if (status == TARN_OK) status = check(model, path, flags);
  if (status != TARN_OK) return status;
  tarn_model_loaded told = {.struct_size = known};
  tarn__model_matches matches = {.model = model, .path = path, .flags = flags};
  status = load(&matches, &told);
  if (status == TARN_OK && known > 0) memcpy(out_loaded, &told, known);
  return status;
}
