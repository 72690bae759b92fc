// Plans a safetensors file: the order of its tensors, its header, and where
// everything is.
//
// Tensors are in order of element size and then of name, each behind the one
// before it; the header says where, counted from its own end. So the header can
// be made first, and offsets in the file are known once it is complete.
//
// Invariant: while the header is made, |head| is what the file begins with: the
// number of its bytes is the offset of the next.
#include "format/safetensors_plan.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "format/safetensors_writer.h"

typedef tarn__format_safetensors_entry entry;
typedef tarn__format_safetensors_plan plan;

// A tensor, as far as its place depends on it.
typedef struct key {
  const tarn__format_safetensors_dtype *dtype;
  const char *name;
  uint32_t number;
} key;

typedef struct planner {
  const tarn_safetensors_writer *writer;
  plan *out;
  tarn__array keys;    // key, in the file's order
  tarn_status status;  // of the first failure while the header is made
} planner;

// --- order -------------------------------------------------------------------

// Larger elements first, then by the bytes of names.
static int by_place(const void *left, const void *right) {
  const key *a = left;
  const key *b = right;
  if (a->dtype != b->dtype) return a->dtype > b->dtype ? -1 : 1;
  return strcmp(a->name, b->name);
}

static tarn_status sort_tensors(planner *p) {
  const entry *entries = p->writer->entries.items;
  size_t count = p->writer->entries.count;
  tarn__budget *budget = &p->out->budget;
  if (count == 0) return TARN_OK;
  TARN__TRY(tarn__array_make(budget, &p->keys, count));
  TARN__TRY(tarn__array_make(budget, &p->out->order, count));
  key *keys = p->keys.items;
  uint32_t *order = p->out->order.items;
  for (uint32_t i = 0; i < count; i++) {
    const char *name = tarn__intern_text(&p->writer->names, i);
    keys[i] = (key){entries[i].dtype, name, i};
  }
  qsort(keys, count, sizeof *keys, by_place);
  for (size_t i = 0; i < count; i++)
    order[i] = keys[i].number;
  return TARN_OK;
}

// --- the header --------------------------------------------------------------

static void put(planner *p, const char *text) {
  if (p->status != TARN_OK) return;
  p->status =
      tarn__array_append(&p->out->budget, &p->out->head, text, strlen(text));
}

static void put_quoted(planner *p, const char *text) {
  if (p->status != TARN_OK) return;
  p->status = tarn__safetensors_quote(&p->out->budget, &p->out->head, text);
}

__attribute__((format(printf, 2, 3))) static void put_format(planner *p,
                                                             const char *format,
                                                             ...) {
  char text[96];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  put(p, text);
}

static void put_value(planner *p, const char *text) {
  size_t at = p->out->head.count + 1;  // behind its quote
  put_quoted(p, text);
  if (p->status != TARN_OK) return;
  p->status = tarn__array_append(&p->out->budget, &p->out->values, &at, 1);
}

static void put_metadata(planner *p) {
  const tarn_safetensors_writer *writer = p->writer;
  const uint32_t *values = writer->values.items;
  if (writer->values.count == 0) return;
  put(p, "\"" TARN__SAFETENSORS_METADATA "\":{");
  for (size_t i = 0; i < writer->values.count; i++) {
    if (i > 0) put(p, ",");
    put_quoted(p, tarn__intern_text(&writer->keys, (uint32_t)i));
    put(p, ":");
    put_value(p, tarn__intern_text(&writer->texts, values[i]));
  }
  put(p, writer->entries.count > 0 ? "}," : "}");
}

static void put_tensor(planner *p, const key *tensor, const entry *e,
                       size_t at) {
  const int64_t *dims = p->writer->dims.items;
  put_quoted(p, tensor->name);
  put_format(p, ":{\"dtype\":\"%s\",\"shape\":[", e->dtype->text);
  for (size_t i = 0; i < e->rank; i++) {
    put_format(p, i == 0 ? "%" PRId64 : ",%" PRId64, dims[e->first_dim + i]);
  }
  put_format(p, "],\"data_offsets\":[%zu,%zu]}", at, at + e->size);
}

static void put_tensors(planner *p) {
  const key *keys = p->keys.items;
  const entry *entries = p->writer->entries.items;
  size_t at = 0;
  for (size_t i = 0; i < p->keys.count; i++) {
    const entry *e = &entries[keys[i].number];
    if (i > 0) put(p, ",");
    put_tensor(p, &keys[i], e, at);
    at += e->size;
  }
}

// Blanks, up to a multiple.
static void pad(planner *p, size_t multiple) {
  void *blanks = NULL;
  size_t count = (multiple - p->out->head.count % multiple) % multiple;
  if (p->status != TARN_OK || count == 0) return;
  p->status = tarn__array_grow(&p->out->budget, &p->out->head, count, &blanks);
  if (p->status != TARN_OK) return;
  assert(blanks != NULL);
  memset(blanks, ' ', count);
}

// Puts the header's length in front of it.
static void put_length(plan *out) {
  unsigned char *bytes = out->head.items;
  uint64_t length = out->head.count - TARN__SAFETENSORS_LENGTH;
  for (int i = 0; i < TARN__SAFETENSORS_LENGTH; i++, length >>= 8)
    bytes[i] = (unsigned char)length;
}

static tarn_status make_head(planner *p, size_t multiple) {
  void *length = NULL;
  plan *out = p->out;
  TARN__TRY(tarn__array_grow(&out->budget, &out->head, TARN__SAFETENSORS_LENGTH,
                             &length));
  put(p, "{");
  put_metadata(p);
  put_tensors(p);
  put(p, "}");
  pad(p, multiple);
  if (p->status != TARN_OK) return p->status;
  size_t header = out->head.count - TARN__SAFETENSORS_LENGTH;
  if (header > TARN_SAFETENSORS_MAX_HEADER) {
    return tarn__fail(TARN_E_INVALID,
                      "safetensors: a header of %zu bytes; the most is %u",
                      header, TARN_SAFETENSORS_MAX_HEADER);
  }
  put_length(out);
  return TARN_OK;
}

// --- offsets -----------------------------------------------------------------

static tarn_status place_tensors(planner *p) {
  plan *out = p->out;
  const entry *entries = p->writer->entries.items;
  const uint32_t *order = out->order.items;
  size_t at = out->head.count;
  if (!tarn_size_add(at, p->writer->size, &out->size)) {
    return tarn__fail(TARN_E_INVALID,
                      "safetensors: a header of %zu bytes and tensors of %zu "
                      "overflow",
                      at, p->writer->size);
  }
  TARN__TRY(tarn__array_make(&out->budget, &out->offsets, out->order.count));
  size_t *offsets = out->offsets.items;
  for (size_t i = 0; i < out->order.count; i++) {
    offsets[order[i]] = at;
    at += entries[order[i]].size;
  }
  assert(at == out->size);
  return TARN_OK;
}

// --- all of it ---------------------------------------------------------------

void tarn__safetensors_plan_deinit(plan *made) {
  tarn__array_free(&made->budget, &made->values);
  tarn__array_free(&made->budget, &made->order);
  tarn__array_free(&made->budget, &made->offsets);
  tarn__array_free(&made->budget, &made->head);
}

static tarn_status make(planner *p, size_t multiple) {
  TARN__TRY(sort_tensors(p));
  TARN__TRY(make_head(p, multiple));
  return place_tensors(p);
}

tarn_status tarn__safetensors_plan_init(const tarn_safetensors_writer *writer,
                                        size_t multiple, plan *out_plan) {
  assert(multiple >= TARN__SAFETENSORS_LENGTH &&
         tarn_is_power_of_two(multiple));
  *out_plan = (plan){.budget = tarn__budget_unlimited("safetensors"),
                     .head = TARN__ARRAY_OF(char),
                     .offsets = TARN__ARRAY_OF(size_t),
                     .order = TARN__ARRAY_OF(uint32_t),
                     .values = TARN__ARRAY_OF(size_t)};
  planner p = {.writer = writer, .out = out_plan, .keys = TARN__ARRAY_OF(key)};
  tarn_status status = make(&p, multiple);
  tarn__array_free(&out_plan->budget, &p.keys);
  if (status != TARN_OK) {
    tarn__safetensors_plan_deinit(out_plan);
    *out_plan = (plan){0};
  }
  return status;
}
