// Writes safetensors files.
//
// A writer's tensors and metadata are collected and checked: every added entry
// can be written, unless its fill function fails.
//
// The header is made in memory before the first byte is written, so that after
// that only the system or a fill function can fail. Small pieces are collected;
// a tensor larger than the collecting buffer is written from its own memory.
//
// Invariants: entry i has number i among the names, value i among the keys;
// while tensors are written, |at| of the next is the sum of the sizes before
// it, as the header says.
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/json.h"
#include "base/os.h"
#include "base/status.h"
#include "model/safetensors.h"

enum {
  LONGEST = 6,         // bytes of an escape
  GATHERED = 1 << 18,  // bytes that are written at once
};

// A tensor to write.
typedef struct entry {
  const char *name;  // set in the copies that are sorted
  const tarn__model_safetensors_dtype *dtype;
  size_t first_dim;
  size_t rank;
  size_t size;
  const void *data;  // or
  tarn_safetensors_fill_fn *fill;
  void *context;
} entry;

struct tarn_safetensors_writer {
  tarn__budget budget;
  tarn__intern names;   // by tensor, each with a zero byte
  tarn__array entries;  // entry
  tarn__array dims;     // int64_t, of all tensors
  tarn__intern keys;    // of metadata, each with a zero byte
  tarn__array values;   // uint32_t, by key: its value's number in |texts|
  tarn__intern texts;   // values of metadata, each with a zero byte
  size_t size;          // bytes of all tensors
};

typedef struct output {
  tarn_safetensors_sink_fn *sink;
  void *context;
  char *bytes;
  size_t room;
  size_t used;
  tarn_status status;  // of the first failure
} output;

typedef struct writing {
  const tarn_safetensors_writer *writer;
  tarn__budget budget;
  tarn__array sorted;  // entry, in the file's order
  tarn__array header;  // char
  tarn_status status;  // of the first failure while the header is made
} writing;

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

// Appends the zero-ended |text| as a JSON string, with quotes.
static tarn_status quote(tarn__budget *budget, tarn__array *out,
                         const char *text) {
  TARN__TRY(tarn__array_append(budget, out, "\"", 1));
  for (; *text != '\0'; text++) {
    char bytes[LONGEST];
    size_t size = escape((unsigned char)*text, bytes);
    TARN__TRY(tarn__array_append(budget, out, bytes, size));
  }
  return tarn__array_append(budget, out, "\"", 1);
}

// Checks the text by the strict reader, so that every reader accepts the file.
static tarn_status check_text(tarn_safetensors_writer *writer, const char *text,
                              const char *what) {
  tarn__array quoted = TARN__ARRAY_OF(char);
  tarn__json json;
  tarn__json_token token;
  if (text == NULL) return tarn__fail(TARN_E_INVALID, "safetensors: NULL");
  tarn_status status = quote(&writer->budget, &quoted, text);
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

static tarn_status check_bytes(const tarn_safetensors_writer *writer,
                               const char *name, const entry *made) {
  size_t sum = 0;
  if (made->data == NULL && made->fill == NULL && made->size > 0) {
    return tarn__fail(TARN_E_INVALID,
                      "safetensors: tensor \"%.80s\": its %zu bytes are NULL",
                      name, made->size);
  }
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

static tarn_status add(tarn_safetensors_writer *writer, const char *name,
                       tarn_dtype dtype, tarn_shape shape, entry made) {
  if (writer == NULL || name == NULL) {
    return tarn__fail(TARN_E_INVALID, "safetensors: NULL");
  }
  made.first_dim = writer->dims.count;
  made.rank = shape.rank;
  made.dtype = tarn__safetensors_dtype_of(dtype);
  TARN__TRY(check_name(writer, name));
  TARN__TRY(check_shape(name, shape));
  TARN__TRY(tarn_shape_size(shape, dtype, 0, &made.size));
  TARN__TRY(check_bytes(writer, name, &made));
  return keep(writer, name, shape, &made);
}

tarn_status tarn_safetensors_add(tarn_safetensors_writer *writer,
                                 const char *name, tarn_dtype dtype,
                                 tarn_shape shape, const void *data) {
  return add(writer, name, dtype, shape, (entry){.data = data});
}

tarn_status tarn_safetensors_add_filled(tarn_safetensors_writer *writer,
                                        const char *name, tarn_dtype dtype,
                                        tarn_shape shape,
                                        tarn_safetensors_fill_fn *fill,
                                        void *context) {
  if (fill == NULL) return tarn__fail(TARN_E_INVALID, "safetensors: NULL");
  return add(writer, name, dtype, shape,
             (entry){.fill = fill, .context = context});
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

// --- order -------------------------------------------------------------------

// Larger elements first, then by the bytes of names.
static int by_place(const void *left, const void *right) {
  const entry *a = left;
  const entry *b = right;
  if (a->dtype != b->dtype) return a->dtype > b->dtype ? -1 : 1;
  return strcmp(a->name, b->name);
}

static tarn_status sort_entries(writing *w) {
  const tarn__array *entries = &w->writer->entries;
  if (entries->count == 0) return TARN_OK;
  TARN__TRY(tarn__array_append(&w->budget, &w->sorted, entries->items,
                               entries->count));
  entry *sorted = w->sorted.items;
  for (uint32_t i = 0; i < entries->count; i++)
    sorted[i].name = tarn__intern_text(&w->writer->names, i);
  qsort(sorted, entries->count, sizeof *sorted, by_place);
  return TARN_OK;
}

// --- the header --------------------------------------------------------------

static void put(writing *w, const char *text) {
  if (w->status != TARN_OK) return;
  w->status = tarn__array_append(&w->budget, &w->header, text, strlen(text));
}

static void put_quoted(writing *w, const char *text) {
  if (w->status != TARN_OK) return;
  w->status = quote(&w->budget, &w->header, text);
}

__attribute__((format(printf, 2, 3))) static void put_format(writing *w,
                                                             const char *format,
                                                             ...) {
  char text[96];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  put(w, text);
}

static void put_metadata(writing *w) {
  const tarn_safetensors_writer *writer = w->writer;
  const uint32_t *values = writer->values.items;
  if (writer->values.count == 0) return;
  put(w, "\"" TARN__SAFETENSORS_METADATA "\":{");
  for (size_t i = 0; i < writer->values.count; i++) {
    if (i > 0) put(w, ",");
    put_quoted(w, tarn__intern_text(&writer->keys, (uint32_t)i));
    put(w, ":");
    put_quoted(w, tarn__intern_text(&writer->texts, values[i]));
  }
  put(w, writer->entries.count > 0 ? "}," : "}");
}

static void put_tensor(writing *w, const entry *tensor, size_t at) {
  const int64_t *dims = w->writer->dims.items;
  put_quoted(w, tensor->name);
  put_format(w, ":{\"dtype\":\"%s\",\"shape\":[", tensor->dtype->text);
  for (size_t i = 0; i < tensor->rank; i++) {
    put_format(w, i == 0 ? "%" PRId64 : ",%" PRId64,
               dims[tensor->first_dim + i]);
  }
  put_format(w, "],\"data_offsets\":[%zu,%zu]}", at, at + tensor->size);
}

// Pads the header, so that the tensors begin at a multiple of 8.
static tarn_status make_header(writing *w) {
  enum { MULTIPLE = 8 };
  const entry *sorted = w->sorted.items;
  size_t at = 0;
  put(w, "{");
  put_metadata(w);
  for (size_t i = 0; i < w->sorted.count; i++) {
    assert(sorted != NULL);
    if (i > 0) put(w, ",");
    put_tensor(w, &sorted[i], at);
    at += sorted[i].size;
  }
  put(w, "}");
  while (w->status == TARN_OK && w->header.count % MULTIPLE != 0)
    put(w, " ");
  if (w->status != TARN_OK) return w->status;
  if (w->header.count <= TARN_SAFETENSORS_MAX_HEADER) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "safetensors: a header of %zu bytes; the most is %u",
                    w->header.count, TARN_SAFETENSORS_MAX_HEADER);
}

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

static void send_length(output *out, uint64_t length) {
  unsigned char bytes[TARN__SAFETENSORS_LENGTH];
  for (int i = 0; i < TARN__SAFETENSORS_LENGTH; i++, length >>= 8)
    bytes[i] = (unsigned char)length;
  send(out, bytes, sizeof bytes);
}

static void send_tensors(output *out, const writing *w) {
  const entry *sorted = w->sorted.items;
  for (size_t i = 0; i < w->sorted.count; i++) {
    if (sorted[i].fill != NULL) {
      send_filled(out, &sorted[i]);
    } else {
      send(out, sorted[i].data, sorted[i].size);
    }
  }
}

// Room for everything, if it is small.
static size_t room_for(const writing *w) {
  size_t size = 0;
  if (!tarn_size_add(w->header.count + TARN__SAFETENSORS_LENGTH,
                     w->writer->size, &size) ||
      size > GATHERED) {
    return GATHERED;
  }
  return size;
}

static tarn_status send_all(const writing *w, tarn_safetensors_sink_fn *sink,
                            void *context) {
  output out = {.sink = sink, .context = context, .room = room_for(w)};
  out.bytes = tarn__host_alloc(out.room);
  if (out.bytes == NULL) return TARN_E_NOMEM;
  send_length(&out, w->header.count);
  send(&out, w->header.items, w->header.count);
  send_tensors(&out, w);
  hand_over(&out);
  tarn__host_free(out.bytes, out.room);
  return out.status;
}

// --- all of it ---------------------------------------------------------------

static tarn_status write_all(writing *w, tarn_safetensors_sink_fn *sink,
                             void *context) {
  TARN__TRY(sort_entries(w));
  TARN__TRY(make_header(w));
  return send_all(w, sink, context);
}

tarn_status tarn_safetensors_write_to(const tarn_safetensors_writer *writer,
                                      tarn_safetensors_sink_fn *sink,
                                      void *context) {
  if (writer == NULL || sink == NULL) {
    return tarn__fail(TARN_E_INVALID, "safetensors: NULL");
  }
  writing w = {.writer = writer,
               .budget = tarn__budget_unlimited("safetensors"),
               .sorted = TARN__ARRAY_OF(entry),
               .header = TARN__ARRAY_OF(char)};
  tarn_status status = write_all(&w, sink, context);
  tarn__array_free(&w.budget, &w.header);
  tarn__array_free(&w.budget, &w.sorted);
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
