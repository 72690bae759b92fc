// Finds the file's tensor for each tensor of a model, and checks that it fits.
#include "model/stored.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"

// --- finding ---------------------------------------------------------------

static bool wants_states(const tarn__model_matches *m) {
  return (m->flags & TARN_FILE_STATES) != 0;
}

// By another of its names; files may have each of them.
static const tarn_safetensor *find_tied(const tarn__model_matches *m,
                                        const tarn_tensor *param) {
  const tarn_safetensor *found = NULL;
  const tarn_list *node = NULL;
  tarn_list_for_each (node, &m->model->kinds[TARN_PARAM]) {
    const tarn_tensor *tied = tarn_list_entry(node, tarn_tensor, node);
    if (tied->of == param) found = tarn_safetensors_find(m->file, tied->name);
    if (found != NULL) break;
  }
  return found;
}

static const tarn_safetensor *find(const tarn__model_matches *m,
                                   const tarn_tensor *tensor) {
  const tarn_safetensor *found = tarn_safetensors_find(m->file, tensor->name);
  bool may_be_tied = found == NULL && tensor->kind == TARN_PARAM;
  return may_be_tied ? find_tied(m, tensor) : found;
}

// Whether the model uses the file's tensor |name|.
static bool is_used(const tarn__model_matches *m, const char *name) {
  const tarn__name *entry = tarn__names_find(&m->model->names, name);
  if (entry == NULL) return false;
  const tarn_tensor *tensor = entry->value;
  return tensor->kind == TARN_PARAM ||
         (tensor->kind == TARN_STATE && wants_states(m));
}

static size_t count_unused(const tarn__model_matches *m) {
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

static tarn_status check_fit(const tarn__model_matches *m,
                             const tarn_tensor *tensor,
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

static tarn_status check_missing(const tarn__model_matches *m,
                                 const tarn_tensor *tensor) {
  bool may = tensor->kind == TARN_STATE || (m->flags & TARN_FILE_PARTIAL) != 0;
  if (may) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "%s: no tensor '%.80s', which %s needs",
                    m->path, tensor->name, m->model->name);
}

static bool is_copied(const tarn__model_matches *m,
                      const tarn_safetensor *source) {
  return (m->flags & TARN_FILE_COPY) != 0 || !source->aligned ||
         source->size == 0;
}

static tarn_status match(tarn__model_matches *m, tarn_tensor *tensor) {
  tarn_status status = tarn__stored_check(tensor);
  if (status != TARN_OK) return status;
  const tarn_safetensor *source = find(m, tensor);
  if (source == NULL) {
    m->missing++;
    return check_missing(m, tensor);
  }
  status = check_fit(m, tensor, source);
  if (status == TARN_OK) status = check_idle(tensor);
  if (status != TARN_OK) return status;
  m->items[m->count++] = (tarn__model_match){
      .tensor = tensor, .source = source, .is_copied = is_copied(m, source)};
  return TARN_OK;
}

tarn_status tarn__matches_find(tarn__model_matches *m) {
  m->room = tarn__stored_count(m->model, wants_states(m));
  m->items = tarn__host_array(m->room, sizeof *m->items);
  if (m->items == NULL) return TARN_E_NOMEM;
  tarn_list *node = NULL;
  tarn_list_for_each (node, &m->model->among) {
    tarn_tensor *tensor = tarn_list_entry(node, tarn_tensor, among);
    if (!tarn__is_stored(tensor, wants_states(m))) continue;
    tarn_status status = match(m, tensor);
    if (status != TARN_OK) return status;
  }
  m->unused = count_unused(m);
  return TARN_OK;
}

void tarn__matches_end(tarn__model_matches *m) {
  if (m->items == NULL) return;
  tarn__host_free_array(m->items, m->room, sizeof *m->items);
  m->items = NULL;
}
