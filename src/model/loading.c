// Loads parameters from a file: finds the file's tensor for each tensor of the
// model, checks that it fits, and gives the model its bytes.
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
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "model/slots.h"
#include "tarn/model_file.h"

// A tensor of the model, and the file's tensor for it.
typedef struct match {
  tarn_tensor *tensor;
  const tarn_safetensor *source;
  bool is_copied;      // into memory of the model's own, not mapped
  tarn_access access;  // to that memory
} match;

typedef struct matches {
  tarn_model *model;
  const char *path;  // for texts
  const tarn_safetensors *file;
  uint32_t flags;
  match *items;  // |count|
  size_t count;
  size_t missing;
  size_t unused;
} matches;

// --- finding ---------------------------------------------------------------

static bool wants_states(const matches *m) {
  return (m->flags & TARN_FILE_STATES) != 0;
}

// By another of its names; files may have each of them.
static const tarn_safetensor *find_tied(const matches *m,
                                        const tarn_tensor *param) {
  const tarn_safetensor *found = NULL;
  for (tarn__model_tensor *t = NULL;
       found == NULL && (t = tarn__tensor_next(m->model, t));) {
    if (t->shown.kind != TARN_PARAM || t->shown.of != param) continue;
    found = tarn_safetensors_find(m->file, t->shown.name);
  }
  return found;
}

static const tarn_safetensor *find(const matches *m,
                                   const tarn_tensor *tensor) {
  const tarn_safetensor *found = tarn_safetensors_find(m->file, tensor->name);
  bool may_be_tied = found == NULL && tensor->kind == TARN_PARAM;
  return may_be_tied ? find_tied(m, tensor) : found;
}

// Whether the model uses the file's tensor |name|.
static bool is_used(const matches *m, const char *name) {
  const tarn__name *entry = tarn__names_find(&m->model->names, name);
  if (entry == NULL) return false;
  const tarn_tensor *tensor = entry->value;
  return tensor->kind == TARN_PARAM ||
         (tensor->kind == TARN_STATE && wants_states(m));
}

static size_t count_unused(const matches *m) {
  size_t unused = 0;
  for (size_t i = 0; i < tarn_safetensors_count(m->file); i++) {
    if (!is_used(m, tarn_safetensors_at(m->file, i)->name)) unused++;
  }
  return unused;
}

// --- checking --------------------------------------------------------------

enum { SHAPE_TEXT = 96 };

// "[784, 10]", shortened to the room.
static char *shape_text(tarn_shape shape, char out[SHAPE_TEXT]) {
  enum { LONGEST = 32 };  // of a length and ", ..."
  int used = snprintf(out, SHAPE_TEXT, "[");
  for (size_t i = 0; i < shape.rank; i++) {
    const char *comma = i == 0 ? "" : ", ";
    if (used > SHAPE_TEXT - LONGEST) {
      used += snprintf(out + used, (size_t)(SHAPE_TEXT - used), ", ...");
      break;
    }
    used += snprintf(out + used, (size_t)(SHAPE_TEXT - used), "%s%" PRId64,
                     comma, shape.dims[i]);
  }
  snprintf(out + used, (size_t)(SHAPE_TEXT - used), "]");
  return out;
}

static bool is_same_shape(tarn_shape a, tarn_shape b) {
  if (a.rank != b.rank) return false;
  return a.rank == 0 || memcmp(a.dims, b.dims, a.rank * sizeof *a.dims) == 0;
}

static tarn_status check_fit(const matches *m, const tarn_tensor *tensor,
                             const tarn_safetensor *source) {
  if (source->dtype == tensor->dtype &&
      is_same_shape(source->shape, tensor->shape)) {
    return TARN_OK;
  }
  char has[SHAPE_TEXT];
  char wants[SHAPE_TEXT];
  return tarn__fail(
      TARN_E_INVALID, "%s: '%.80s' is %s %s, but '%.80s' of %s is %s %s",
      m->path, source->name, source->dtype_text, shape_text(source->shape, has),
      tensor->name, m->model->name, tarn_dtype_name(tensor->dtype),
      shape_text(tensor->shape, wants));
}

static tarn_status check_idle(const tarn_tensor *tensor) {
  tarn_synced_info info = {.struct_size = sizeof info};
  tarn_status status =
      tarn_synced_query(tensor->data, 0, TARN_ALL, TARN_HOST, &info);
  if (status != TARN_OK || info.readers + info.writers == 0) return status;
  return tarn__fail(TARN_E_STATE, "%s: '%.80s': an access to it is open",
                    tensor->model->name, tensor->name);
}

static tarn_status check_missing(const matches *m, const tarn_tensor *tensor) {
  bool may = tensor->kind == TARN_STATE || (m->flags & TARN_FILE_PARTIAL) != 0;
  if (may) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "%s: no tensor '%.80s', which %s needs",
                    m->path, tensor->name, m->model->name);
}

static bool is_copied(const matches *m, const tarn_safetensor *source) {
  return (m->flags & TARN_FILE_COPY) != 0 || !source->aligned ||
         source->size == 0;
}

static tarn_status match_one(matches *m, tarn_tensor *tensor) {
  TARN__TRY(tarn__tensor_check_placed(tensor));
  const tarn_safetensor *source = find(m, tensor);
  if (source == NULL) {
    m->missing++;
    return check_missing(m, tensor);
  }
  TARN__TRY(check_fit(m, tensor, source));
  TARN__TRY(check_idle(tensor));
  m->items[m->count++] = (match){
      .tensor = tensor, .source = source, .is_copied = is_copied(m, source)};
  return TARN_OK;
}

static tarn_status match_all(matches *m) {
  for (tarn__model_tensor *t = NULL; (t = tarn__tensor_next(m->model, t));) {
    if (!tarn__tensor_is_stored(&t->shown, wants_states(m))) continue;
    TARN__TRY(match_one(m, &t->shown));
  }
  m->unused = count_unused(m);
  return TARN_OK;
}

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

// The home of |model|; without a plan, the host.
static tarn_place home_of(const tarn_model *model) {
  return model->slots == NULL ? TARN_HOST : model->slots->options.home;
}

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

static tarn_status open_one(match *m) {
  uint32_t mode = 0;
  TARN__TRY(find_mode(m->tensor, &mode));
  return tarn_synced_begin(m->tensor->data, 0, TARN_ALL,
                           home_of(m->tensor->model), mode, NULL, &m->access);
}

// Ends all accesses before the first write.
static void undo(matches *ms) {
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

static tarn_status open_copied(matches *ms) {
  for (size_t i = 0; i < ms->count; i++) {
    if (!ms->items[i].is_copied || ms->items[i].source->size == 0) continue;
    TARN__TRY(open_one(&ms->items[i]));
  }
  return TARN_OK;
}

// --- giving ----------------------------------------------------------------

static tarn_status map_one(const match *m, mapping *mapped) {
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

static tarn_status copy_one(match *m) {
  tarn_access *access = &m->access;
  if (access->buffer == NULL) return TARN_OK;  // it has no bytes
  if (access->pointer != NULL) {
    memcpy(access->pointer, m->source->data, access->size);
    return tarn_synced_end(access);
  }
  tarn_place home = home_of(m->tensor->model);
  tarn_status status = tarn_copy_h2d(home.device, access->address,
                                     m->source->data, access->size, NULL);
  if (status == TARN_OK) return tarn_synced_end(access);
  tarn__failure failure = tarn__failure_of(status);
  (void)tarn_synced_cancel(access, NULL);
  return tarn__failure_tell(&failure);
}

// Maps or copies all matches, and counts them.
static tarn_status give_all(matches *ms, mapping *mapped, bool copies,
                            tarn_model_loaded *told) {
  for (size_t i = 0; i < ms->count; i++) {
    match *m = &ms->items[i];
    if (m->is_copied != copies) continue;
    TARN__TRY(copies ? copy_one(m) : map_one(m, mapped));
    told->bytes += m->source->size;
    ++*(copies ? &told->copied : &told->mapped);
  }
  return TARN_OK;
}

static tarn_status give(matches *ms, mapping *mapped, tarn_model_loaded *told) {
  tarn_status status = open_copied(ms);
  if (status == TARN_OK) status = give_all(ms, mapped, false, told);
  if (status == TARN_OK) status = give_all(ms, mapped, true, told);
  if (status == TARN_OK) return TARN_OK;
  tarn__failure failure = tarn__failure_of(status);
  size_t done = told->mapped + told->copied;
  undo(ms);
  if (done == 0) return tarn__failure_tell(&failure);
  return tarn__fail(failure.status,
                    "%s: only %zu of %zu tensors were loaded: %s", ms->path,
                    done, ms->count, failure.text);
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

static tarn_status load(matches *ms, tarn_model_loaded *told) {
  mapping *mapped = NULL;
  size_t room = ms->model->names.count;
  ms->items = tarn__host_array(room, sizeof *ms->items);
  if (ms->items == NULL) return TARN_E_NOMEM;
  tarn_status status = open_mapping(ms->path, &mapped);
  if (status == TARN_OK) {
    assert(mapped != NULL);
    ms->file = mapped->file;
    status = match_all(ms);
    if (status == TARN_OK) status = give(ms, mapped, told);
    told->missing = ms->missing;
    told->unused = ms->unused;
    let_go(mapped);
  }
  tarn__host_free_array(ms->items, room, sizeof *ms->items);
  return status;
}

tarn_status tarn_model_load(tarn_model *model, const char *path, uint32_t flags,
                            tarn_model_loaded *out_loaded) {
  const uint32_t known = TARN_FILE_STATES | TARN_FILE_PARTIAL | TARN_FILE_COPY;
  size_t size = 0;
  TARN__TRY(check_told(out_loaded, &size));
  TARN__TRY(tarn__model_check_file(model, "load", path, flags, known));
  tarn_model_loaded told = {.struct_size = size};
  matches found = {.model = model, .path = path, .flags = flags};
  TARN__TRY(load(&found, &told));
  if (size > 0) memcpy(out_loaded, &told, size);
  return TARN_OK;
}
