// What a writer of safetensors files collects.
//
// Tensors and metadata are checked when they are added: every entry can be
// written, unless its fill function fails or it was only declared.
//
// Invariants: entry i has number i among the names, value i among the keys.
#include "format/safetensors_writer.h"

#include <string.h>

#include "base/hostmem.h"
#include "base/json.h"
#include "base/status.h"
#include "format/safetensors_plan.h"

typedef tarn__format_safetensors_entry entry;

// --- a writer ----------------------------------------------------------------

tarn_status tarn_safetensors_writer_create(
    tarn_safetensors_writer **out_writer) {
  if (out_writer == NULL) {
    return tarn__fail(TARN_E_INVALID, "safetensors: NULL");
  }
  *out_writer = NULL;
  tarn_safetensors_writer *writer = tarn__host_alloc(sizeof *writer);
  if (writer == NULL) return TARN_E_NOMEM;
  writer->budget = tarn__budget_unlimited("safetensors");
  writer->entries = TARN__ARRAY_OF(entry);
  writer->dims = TARN__ARRAY_OF(int64_t);
  writer->values = TARN__ARRAY_OF(uint32_t);
  tarn__intern_init(&writer->names);
  tarn__intern_init(&writer->keys);
  tarn__intern_init(&writer->texts);
  *out_writer = writer;
  return TARN_OK;
}

void tarn_safetensors_writer_destroy(tarn_safetensors_writer *writer) {
  if (writer == NULL) return;
  tarn__intern_deinit(&writer->texts, &writer->budget);
  tarn__array_free(&writer->budget, &writer->values);
  tarn__intern_deinit(&writer->keys, &writer->budget);
  tarn__array_free(&writer->budget, &writer->dims);
  tarn__array_free(&writer->budget, &writer->entries);
  tarn__intern_deinit(&writer->names, &writer->budget);
  tarn__host_free(writer, sizeof *writer);
}

// --- texts -------------------------------------------------------------------

// Checks the text by the strict reader, so that every reader accepts the file.
static tarn_status check_text(tarn_safetensors_writer *writer, const char *text,
                              const char *what) {
  tarn__array quoted = TARN__ARRAY_OF(char);
  tarn__json json;
  tarn__json_token token;
  if (text == NULL) return tarn__fail(TARN_E_INVALID, "safetensors: NULL");
  tarn_status status = tarn__safetensors_quote(&writer->budget, &quoted, text);
  tarn__json_init(&json, quoted.items, quoted.count);
  if (status == TARN_OK && !tarn__json_next(&json, &token)) {
    status = tarn__fail(TARN_E_INVALID, "safetensors: %s \"%.80s\": %s", what,
                        text, json.wrong);
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

static tarn_status put_text(tarn_safetensors_writer *writer, tarn__intern *set,
                            const char *text, uint32_t *out_number) {
  return tarn__intern_put(set, &writer->budget, text, strlen(text) + 1,
                          out_number);
}

// --- tensors -----------------------------------------------------------------

static tarn_status check_name(tarn_safetensors_writer *writer,
                              const char *name) {
  TARN__TRY(check_text(writer, name, "tensor"));
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

static tarn_status check_size(const tarn_safetensors_writer *writer,
                              const char *name, const entry *made) {
  size_t sum = 0;
  if (tarn_size_add(writer->size, made->size, &sum)) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "safetensors: tensor \"%.80s\": %zu bytes and the %zu "
                    "before it overflow",
                    name, made->size, writer->size);
}

// The name comes last of what can fail, since it makes the entry count.
static tarn_status keep(tarn_safetensors_writer *writer, const char *name,
                        tarn_shape shape, const entry *made) {
  tarn__budget *budget = &writer->budget;
  uint32_t number = 0;
  TARN__TRY(tarn__array_reserve(budget, &writer->entries, 1));
  TARN__TRY(tarn__array_reserve(budget, &writer->dims, shape.rank));
  TARN__TRY(put_text(writer, &writer->names, name, &number));
  writer->size += made->size;
  TARN__TRY(tarn__array_append(budget, &writer->entries, made, 1));
  return tarn__array_append(budget, &writer->dims, shape.dims, shape.rank);
}

// Checks all but where the bytes are to come from.
static tarn_status check(tarn_safetensors_writer *writer, const char *name,
                         tarn_dtype dtype, tarn_shape shape, entry *made) {
  if (writer == NULL || name == NULL) {
    return tarn__fail(TARN_E_INVALID, "safetensors: NULL");
  }
  made->first_dim = writer->dims.count;
  made->rank = shape.rank;
  made->dtype = tarn__safetensors_dtype_of(dtype);
  TARN__TRY(check_name(writer, name));
  TARN__TRY(check_shape(name, shape));
  TARN__TRY(tarn_shape_size(shape, dtype, 0, &made->size));
  return check_size(writer, name, made);
}

tarn_status tarn__safetensors_declare(tarn_safetensors_writer *writer,
                                      const char *name, tarn_dtype dtype,
                                      tarn_shape shape) {
  entry made = {0};
  TARN__TRY(check(writer, name, dtype, shape, &made));
  return keep(writer, name, shape, &made);
}

tarn_status tarn_safetensors_add(tarn_safetensors_writer *writer,
                                 const char *name, tarn_dtype dtype,
                                 tarn_shape shape, const void *data) {
  entry made = {.data = data};
  TARN__TRY(check(writer, name, dtype, shape, &made));
  if (data == NULL && made.size > 0) {
    return tarn__fail(TARN_E_INVALID,
                      "safetensors: tensor \"%.80s\": its %zu bytes are NULL",
                      name, made.size);
  }
  return keep(writer, name, shape, &made);
}

tarn_status tarn_safetensors_add_filled(tarn_safetensors_writer *writer,
                                        const char *name, tarn_dtype dtype,
                                        tarn_shape shape,
                                        tarn_safetensors_fill_fn *fill,
                                        void *context) {
  if (fill == NULL) return tarn__fail(TARN_E_INVALID, "safetensors: NULL");
  entry made = {.fill = fill, .context = context};
  TARN__TRY(check(writer, name, dtype, shape, &made));
  return keep(writer, name, shape, &made);
}

// --- metadata ----------------------------------------------------------------

tarn_status tarn_safetensors_add_metadata(tarn_safetensors_writer *writer,
                                          const char *key, const char *value) {
  if (writer == NULL) return tarn__fail(TARN_E_INVALID, "safetensors: NULL");
  TARN__TRY(check_text(writer, key, "metadata"));
  TARN__TRY(check_text(writer, value, "metadata"));
  TARN__TRY(check_new(&writer->keys, key, "metadata"));
  uint32_t key_number = 0;
  uint32_t number = 0;
  TARN__TRY(tarn__array_reserve(&writer->budget, &writer->values, 1));
  TARN__TRY(put_text(writer, &writer->texts, value, &number));
  TARN__TRY(put_text(writer, &writer->keys, key, &key_number));
  return tarn__array_append(&writer->budget, &writer->values, &number, 1);
}
