// A writer's tensors and metadata, collected and checked.
//
// Invariant: entry i has number i among the names, value i among the keys.
// Every added entry can be written, unless its fill function fails.
#include <assert.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/json.h"
#include "base/status.h"
#include "model/safetensors.h"

enum { LONGEST = 6 };  // bytes of an escape

tarn_status tarn_safetensors_writer_create(
    tarn_safetensors_writer **out_writer) {
  if (out_writer == NULL) {
    return tarn__fail(TARN_E_INVALID, "safetensors: NULL");
  }
  *out_writer = NULL;
  tarn_safetensors_writer *writer = tarn__host_alloc(sizeof *writer);
  if (writer == NULL) return TARN_E_NOMEM;
  writer->budget = tarn__budget_unlimited("safetensors");
  writer->entries = TARN__ARRAY_OF(tarn__model_safetensors_entry);
  writer->dims = TARN__ARRAY_OF(int64_t);
  writer->values = TARN__ARRAY_OF(size_t);
  writer->texts = TARN__ARRAY_OF(char);
  tarn__intern_init(&writer->names);
  tarn__intern_init(&writer->keys);
  *out_writer = writer;
  return TARN_OK;
}

void tarn_safetensors_writer_destroy(tarn_safetensors_writer *writer) {
  if (writer == NULL) return;
  tarn__array_free(&writer->budget, &writer->texts);
  tarn__array_free(&writer->budget, &writer->values);
  tarn__intern_deinit(&writer->keys, &writer->budget);
  tarn__array_free(&writer->budget, &writer->dims);
  tarn__array_free(&writer->budget, &writer->entries);
  tarn__intern_deinit(&writer->names, &writer->budget);
  tarn__host_free(writer, sizeof *writer);
}

// --- texts -------------------------------------------------------------------

static tarn_status append(tarn__budget *budget, tarn__array *out,
                          const char *bytes, size_t size) {
  void *to = NULL;
  tarn_status status = tarn__array_grow(budget, out, size, &to);
  if (status == TARN_OK && size > 0) memcpy(to, bytes, size);
  return status;
}

// Writes the escape of a byte and returns its length.
static size_t escape(unsigned char byte, char out[LONGEST]) {
  static const char digits[] = "0123456789abcdef";
  static const char named[] = "\"\\\b\f\n\r\t";
  static const char letters[] = "\"\\bfnrt";
  out[0] = (char)byte;
  if (byte >= 0x20 && byte != '"' && byte != '\\') return 1;
  const char *found = memchr(named, byte, sizeof named - 1);
  out[0] = '\\';
  if (found != NULL) {
    out[1] = letters[found - named];
    return 2;
  }
  out[1] = 'u';
  out[2] = out[3] = '0';
  out[4] = digits[byte >> 4];
  out[5] = digits[byte & 15];
  return 6;
}

tarn_status tarn__safetensors_quote(tarn__budget *budget, tarn__array *out,
                                    const char *text) {
  enum { GATHERED = 512 };
  char bytes[GATHERED] = "\"";
  size_t used = 1;
  tarn_status status = TARN_OK;
  for (; status == TARN_OK && *text != '\0'; text++) {
    used += escape((unsigned char)*text, bytes + used);
    if (used <= GATHERED - LONGEST) continue;
    status = append(budget, out, bytes, used);
    used = 0;
  }
  bytes[used++] = '"';
  return status == TARN_OK ? append(budget, out, bytes, used) : status;
}

// Checks the text by the strict reader, so that every reader accepts the file.
static tarn_status check_text(tarn_safetensors_writer *writer, const char *text,
                              const char *what) {
  tarn__array quoted = TARN__ARRAY_OF(char);
  tarn__json json;
  tarn__json_token token;
  if (text == NULL) return tarn__fail(TARN_E_INVALID, "safetensors: NULL");
  tarn_status status = tarn__safetensors_quote(&writer->budget, &quoted, text);
  if (status == TARN_OK) {
    tarn__json_init(&json, quoted.items, quoted.count);
    if (!tarn__json_next(&json, &token)) {
      status = tarn__fail(TARN_E_INVALID, "safetensors: %s \"%.80s\": %s", what,
                          text, json.wrong);
    }
  }
  tarn__array_free(&writer->budget, &quoted);
  return status;
}

// Whether |text| is in |set| already.
static tarn_status check_new(const tarn__intern *set, const char *text,
                             const char *what) {
  uint32_t number = 0;
  if (!tarn__intern_find(set, text, strlen(text) + 1, &number)) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "safetensors: %s \"%.80s\" is there already", what, text);
}

static tarn_status put(tarn_safetensors_writer *writer, tarn__intern *set,
                       const char *text) {
  uint32_t unused = 0;
  return tarn__intern_put(set, &writer->budget, text, strlen(text) + 1,
                          &unused);
}

// --- tensors -----------------------------------------------------------------

static tarn_status check_name(tarn_safetensors_writer *writer,
                              const char *name) {
  tarn_status status = check_text(writer, name, "tensor");
  if (status != TARN_OK) return status;
  if (strcmp(name, TARN__SAFETENSORS_METADATA) == 0) {
    return tarn__fail(TARN_E_INVALID, "safetensors: \"%s\" is no tensor's name",
                      name);
  }
  return check_new(&writer->names, name, "tensor");
}

// TARN_DIM_BATCH has no length to write.
static tarn_status check_shape(const char *name, tarn_shape shape) {
  for (size_t i = 0; shape.dims != NULL && i < shape.rank; i++) {
    if (shape.dims[i] >= 0) continue;
    return tarn__fail(TARN_E_INVALID,
                      "safetensors: tensor \"%.80s\": dimension %zu is %lld",
                      name, i, (long long)shape.dims[i]);
  }
  return TARN_OK;
}

static tarn_status check_bytes(const tarn_safetensors_writer *writer,
                               const char *name,
                               const tarn__model_safetensors_entry *entry) {
  size_t sum = 0;
  if (entry->data == NULL && entry->fill == NULL && entry->size > 0) {
    return tarn__fail(TARN_E_INVALID,
                      "safetensors: tensor \"%.80s\": its %zu bytes are NULL",
                      name, entry->size);
  }
  if (tarn_size_add(writer->size, entry->size, &sum)) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "safetensors: tensor \"%.80s\": %zu bytes and the %zu "
                    "before it overflow",
                    name, entry->size, writer->size);
}

// The name comes last, since it makes the entry count.
static tarn_status keep(tarn_safetensors_writer *writer, const char *name,
                        tarn_shape shape,
                        const tarn__model_safetensors_entry *made) {
  tarn__budget *budget = &writer->budget;
  void *entry = NULL;
  void *dims = NULL;
  tarn_status status = tarn__array_reserve(budget, &writer->entries, 1);
  if (status == TARN_OK) {
    status = tarn__array_reserve(budget, &writer->dims, shape.rank);
  }
  if (status == TARN_OK) status = put(writer, &writer->names, name);
  if (status != TARN_OK) return status;
  size_t first_dim = writer->dims.count;
  status = tarn__array_grow(budget, &writer->dims, shape.rank, &dims);
  assert(status == TARN_OK);
  status = tarn__array_grow(budget, &writer->entries, 1, &entry);
  assert(status == TARN_OK && entry != NULL);
  if (shape.rank > 0) memcpy(dims, shape.dims, shape.rank * sizeof *shape.dims);
  *(tarn__model_safetensors_entry *)entry = *made;
  ((tarn__model_safetensors_entry *)entry)->first_dim = first_dim;
  writer->size += made->size;
  return status;
}

static tarn_status add(tarn_safetensors_writer *writer, const char *name,
                       tarn_dtype dtype, tarn_shape shape,
                       tarn__model_safetensors_entry entry) {
  if (writer == NULL || name == NULL) {
    return tarn__fail(TARN_E_INVALID, "safetensors: NULL");
  }
  entry.rank = shape.rank;
  entry.dtype = tarn__safetensors_dtype_of(dtype);
  tarn_status status = check_name(writer, name);
  if (status == TARN_OK) status = check_shape(name, shape);
  if (status == TARN_OK) status = tarn_shape_size(shape, dtype, 0, &entry.size);
  if (status == TARN_OK) status = check_bytes(writer, name, &entry);
  return status == TARN_OK ? keep(writer, name, shape, &entry) : status;
}

tarn_status tarn_safetensors_add(tarn_safetensors_writer *writer,
                                 const char *name, tarn_dtype dtype,
                                 tarn_shape shape, const void *data) {
  return add(writer, name, dtype, shape,
             (tarn__model_safetensors_entry){.data = data});
}

tarn_status tarn_safetensors_add_filled(tarn_safetensors_writer *writer,
                                        const char *name, tarn_dtype dtype,
                                        tarn_shape shape,
                                        tarn_safetensors_fill_fn *fill,
                                        void *context) {
  if (fill == NULL) return tarn__fail(TARN_E_INVALID, "safetensors: NULL");
  return add(writer, name, dtype, shape,
             (tarn__model_safetensors_entry){.fill = fill, .context = context});
}

// --- metadata ----------------------------------------------------------------

static tarn_status keep_metadata(tarn_safetensors_writer *writer,
                                 const char *key, const char *value) {
  tarn__budget *budget = &writer->budget;
  size_t size = strlen(value) + 1;
  void *first = NULL;
  tarn_status status = tarn__array_reserve(budget, &writer->values, 1);
  if (status == TARN_OK) {
    status = tarn__array_reserve(budget, &writer->texts, size);
  }
  if (status == TARN_OK) status = put(writer, &writer->keys, key);
  if (status != TARN_OK) return status;
  size_t begin = writer->texts.count;
  status = append(budget, &writer->texts, value, size);
  assert(status == TARN_OK);
  status = tarn__array_grow(budget, &writer->values, 1, &first);
  assert(status == TARN_OK && first != NULL);
  *(size_t *)first = begin;
  return status;
}

tarn_status tarn_safetensors_add_metadata(tarn_safetensors_writer *writer,
                                          const char *key, const char *value) {
  if (writer == NULL) return tarn__fail(TARN_E_INVALID, "safetensors: NULL");
  tarn_status status = check_text(writer, key, "metadata");
  if (status == TARN_OK) status = check_text(writer, value, "metadata");
  if (status == TARN_OK) status = check_new(&writer->keys, key, "metadata");
  return status == TARN_OK ? keep_metadata(writer, key, value) : status;
}
