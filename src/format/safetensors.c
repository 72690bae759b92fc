// An open safetensors file: open, look up, close.
#include "tarn/safetensors.h"

#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "format/safetensors.h"

void tarn_safetensors_close(tarn_safetensors *file) {
  if (file == NULL) return;
  tarn__intern_deinit(&file->texts, &file->budget);
  tarn__array_free(&file->budget, &file->values);
  tarn__intern_deinit(&file->keys, &file->budget);
  tarn__array_free(&file->budget, &file->tensors);
  tarn__array_free(&file->budget, &file->dims);
  tarn__intern_deinit(&file->dtypes, &file->budget);
  tarn__intern_deinit(&file->names, &file->budget);
  if (file->mapped) tarn__os_unview_file(file->bytes, file->size);
  tarn__host_free(file, sizeof *file);
}

static tarn_safetensors *make(const char *name) {
  tarn_safetensors *file = tarn__host_alloc(sizeof *file);
  if (file == NULL) return NULL;
  file->name = name;
  file->dims = TARN__ARRAY_OF(int64_t);
  file->tensors = TARN__ARRAY_OF(tarn_safetensor);
  file->values = TARN__ARRAY_OF(uint32_t);
  tarn__intern_init(&file->names);
  tarn__intern_init(&file->dtypes);
  tarn__intern_init(&file->keys);
  tarn__intern_init(&file->texts);
  return file;
}

// Returns |file|, or closes it on failure.
static tarn_status finish(tarn_status status, tarn_safetensors *file,
                          tarn_safetensors **out_file) {
  if (status == TARN_OK) status = tarn__safetensors_read(file);
  file->name = file->budget.name = NULL;  // the caller's
  if (status == TARN_OK) {
    *out_file = file;
  } else {
    tarn_safetensors_close(file);
  }
  return status;
}

tarn_status tarn_safetensors_open(const char *path,
                                  tarn_safetensors **out_file) {
  if (out_file != NULL) *out_file = NULL;
  if (path == NULL || out_file == NULL) {
    return tarn__fail(TARN_E_INVALID, "safetensors: NULL");
  }
  tarn_safetensors *file = make(path);
  if (file == NULL) return TARN_E_NOMEM;
  tarn_status status = tarn__os_view_file(path, &file->bytes, &file->size);
  file->held = file->size;
  file->mapped = status == TARN_OK;
  return finish(status, file, out_file);
}

tarn_status tarn_safetensors_open_bytes(const void *bytes, size_t size,
                                        const char *name,
                                        tarn_safetensors **out_file) {
  if (out_file != NULL) *out_file = NULL;
  if ((bytes == NULL && size > 0) || name == NULL || out_file == NULL) {
    return tarn__fail(TARN_E_INVALID, "safetensors: NULL");
  }
  tarn_safetensors *file = make(name);
  if (file == NULL) return TARN_E_NOMEM;
  file->bytes = bytes;
  file->held = file->size = size;
  return finish(TARN_OK, file, out_file);
}

tarn_status tarn__safetensors_open_head(const char *name, const void *bytes,
                                        size_t size, size_t file_size,
                                        tarn_safetensors **out_file) {
  *out_file = NULL;
  tarn_safetensors *file = make(name);
  if (file == NULL) return TARN_E_NOMEM;
  file->bytes = bytes;
  file->held = tarn__lesser(size, file_size);
  file->size = file_size;
  file->head_only = true;
  TARN__TRY(finish(TARN_OK, file, out_file));
  (*out_file)->bytes = NULL;  // the caller's
  return TARN_OK;
}

// --- tensors -----------------------------------------------------------------

size_t tarn_safetensors_count(const tarn_safetensors *file) {
  return file == NULL ? 0 : file->tensors.count;
}

const tarn_safetensor *tarn_safetensors_at(const tarn_safetensors *file,
                                           size_t index) {
  if (index >= tarn_safetensors_count(file)) return NULL;
  return (const tarn_safetensor *)file->tensors.items + index;
}

// Sets the last error and returns false if there is none.
static bool find(const tarn_safetensors *file, const tarn__intern *set,
                 const char *name, const char *what, uint32_t *out_number) {
  if (file == NULL || name == NULL) {
    (void)!tarn__fail(TARN_E_INVALID, "safetensors: NULL");
    return false;
  }
  if (tarn__intern_find(set, name, strlen(name) + 1, out_number)) return true;
  (void)!tarn__fail(TARN_E_INVALID, "safetensors: no %s \"%.80s\" among %zu",
                    what, name, set->spans.count);
  return false;
}

const tarn_safetensor *tarn_safetensors_find(const tarn_safetensors *file,
                                             const char *name) {
  uint32_t number = 0;
  const tarn__intern *names = file == NULL ? NULL : &file->names;
  if (!find(file, names, name, "tensor", &number)) return NULL;
  return tarn_safetensors_at(file, number);
}

// --- metadata ----------------------------------------------------------------

size_t tarn_safetensors_metadata_count(const tarn_safetensors *file) {
  return file == NULL ? 0 : file->values.count;
}

static const char *value_of(const tarn_safetensors *file, size_t index) {
  const uint32_t *values = file->values.items;
  return tarn__intern_text(&file->texts, values[index]);
}

bool tarn_safetensors_metadata_at(const tarn_safetensors *file, size_t index,
                                  const char **out_key,
                                  const char **out_value) {
  *out_key = *out_value = NULL;
  if (index >= tarn_safetensors_metadata_count(file)) return false;
  *out_key = tarn__intern_text(&file->keys, (uint32_t)index);
  *out_value = value_of(file, index);
  return true;
}

const char *tarn_safetensors_metadata(const tarn_safetensors *file,
                                      const char *key) {
  uint32_t number = 0;
  const tarn__intern *keys = file == NULL ? NULL : &file->keys;
  if (!find(file, keys, key, "metadata", &number)) return NULL;
  return value_of(file, number);
}
