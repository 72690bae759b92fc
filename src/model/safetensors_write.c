// Writes a safetensors file.
//
// The header is made in memory before the first byte is written, so that after
// that only the system or a fill function can fail. Small pieces are collected;
// a tensor larger than the collecting buffer is written from its own memory.
//
// Invariant: while tensors are written, |at| of the next is the sum of the
// sizes before it, as the header says.
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "model/safetensors.h"

enum { GATHERED = 1 << 18 };

// A tensor, to be sorted.
typedef struct item {
  const tarn__model_safetensors_entry *entry;
  const char *name;
} item;

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
  tarn__array items;   // item, in the file's order
  tarn__array header;  // char
  tarn_status status;  // of the first failure while the header is made
} writing;

// --- order -------------------------------------------------------------------

// Larger elements first, then by the bytes of names.
static int by_place(const void *left, const void *right) {
  const item *a = left;
  const item *b = right;
  if (a->entry->dtype != b->entry->dtype) {
    return a->entry->dtype > b->entry->dtype ? -1 : 1;
  }
  return strcmp(a->name, b->name);
}

static tarn_status sort_items(writing *w) {
  const tarn__model_safetensors_entry *entries = w->writer->entries.items;
  size_t count = w->writer->entries.count;
  tarn_status status = tarn__array_make(&w->budget, &w->items, count);
  item *items = w->items.items;
  if (status != TARN_OK || count == 0) return status;
  assert(items != NULL);
  for (size_t i = 0; i < count; i++) {
    items[i].entry = &entries[i];
    items[i].name = tarn__intern_text(&w->writer->names, (uint32_t)i);
  }
  qsort(items, count, sizeof *items, by_place);
  return TARN_OK;
}

// --- the header --------------------------------------------------------------

static void put(writing *w, const char *text) {
  void *to = NULL;
  size_t size = strlen(text);
  if (w->status == TARN_OK) {
    w->status = tarn__array_grow(&w->budget, &w->header, size, &to);
  }
  if (w->status == TARN_OK && size > 0) memcpy(to, text, size);
}

static void put_quoted(writing *w, const char *text) {
  if (w->status != TARN_OK) return;
  w->status = tarn__safetensors_quote(&w->budget, &w->header, text);
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
  const size_t *values = writer->values.items;
  if (writer->values.count == 0) return;
  put(w, "\"" TARN__SAFETENSORS_METADATA "\":{");
  for (size_t i = 0; i < writer->values.count; i++) {
    if (i > 0) put(w, ",");
    put_quoted(w, tarn__intern_text(&writer->keys, (uint32_t)i));
    put(w, ":");
    put_quoted(w, (const char *)writer->texts.items + values[i]);
  }
  put(w, writer->entries.count > 0 ? "}," : "}");
}

static void put_tensor(writing *w, const item *tensor, size_t at) {
  const tarn__model_safetensors_entry *entry = tensor->entry;
  const int64_t *dims = w->writer->dims.items;
  put_quoted(w, tensor->name);
  put_format(w, ":{\"dtype\":\"%s\",\"shape\":[", entry->dtype->text);
  for (size_t i = 0; i < entry->rank; i++) {
    put_format(w, i == 0 ? "%" PRId64 : ",%" PRId64,
               dims[entry->first_dim + i]);
  }
  put_format(w, "],\"data_offsets\":[%zu,%zu]}", at, at + entry->size);
}

// Pads the header, so that the tensors begin at a multiple of 8.
static tarn_status make_header(writing *w) {
  enum { MULTIPLE = 8 };
  const item *items = w->items.items;
  size_t at = 0;
  put(w, "{");
  put_metadata(w);
  for (size_t i = 0; i < w->items.count; i++) {
    if (i > 0) put(w, ",");
    put_tensor(w, &items[i], at);
    at += items[i].entry->size;
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

static void send_filled(output *out,
                        const tarn__model_safetensors_entry *entry) {
  for (size_t at = 0; at < entry->size && out->status == TARN_OK;) {
    if (out->used == out->room) hand_over(out);
    size_t room = out->room - out->used;
    size_t part = entry->size - at < room ? entry->size - at : room;
    if (out->status != TARN_OK) return;
    out->status = entry->fill(entry->context, at, out->bytes + out->used, part);
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
  const item *items = w->items.items;
  for (size_t i = 0; i < w->items.count; i++) {
    const tarn__model_safetensors_entry *entry = items[i].entry;
    if (entry->fill != NULL) {
      send_filled(out, entry);
    } else {
      send(out, entry->data, entry->size);
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

static tarn_status prepare(writing *w, const tarn_safetensors_writer *writer) {
  *w = (writing){.writer = writer,
                 .budget = tarn__budget_unlimited("safetensors"),
                 .items = TARN__ARRAY_OF(item),
                 .header = TARN__ARRAY_OF(char)};
  tarn_status status = sort_items(w);
  return status == TARN_OK ? make_header(w) : status;
}

static void let_go(writing *w) {
  tarn__array_free(&w->budget, &w->header);
  tarn__array_free(&w->budget, &w->items);
}

tarn_status tarn_safetensors_write_to(const tarn_safetensors_writer *writer,
                                      tarn_safetensors_sink_fn *sink,
                                      void *context) {
  writing w;
  if (writer == NULL || sink == NULL) {
    return tarn__fail(TARN_E_INVALID, "safetensors: NULL");
  }
  tarn_status status = prepare(&w, writer);
  if (status == TARN_OK) status = send_all(&w, sink, context);
  let_go(&w);
  return status;
}

static tarn_status to_file(void *context, const void *bytes, size_t size) {
  return tarn__os_file_write(context, bytes, size);
}

static tarn_status write_file(const writing *w, const char *path) {
  tarn__os_new_file file;
  tarn_status status = tarn__os_file_begin(path, &file);
  if (status != TARN_OK) return status;
  status = send_all(w, to_file, &file);
  if (status == TARN_OK) return tarn__os_file_commit(&file);
  tarn__os_file_cancel(&file);
  return status;
}

tarn_status tarn_safetensors_write(const tarn_safetensors_writer *writer,
                                   const char *path) {
  writing w;
  if (writer == NULL || path == NULL) {
    return tarn__fail(TARN_E_INVALID, "safetensors: NULL");
  }
  tarn_status status = prepare(&w, writer);
  if (status == TARN_OK) status = write_file(&w, path);
  let_go(&w);
  return status;
}
