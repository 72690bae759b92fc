// Reads and checks a safetensors file.
//
//   | N, 8 bytes | header, N bytes of JSON | tensors' bytes ...            |
//                '{' ... '}' blanks        0     data_offsets         room
//
// Three passes: over the JSON, which makes a draft of each tensor; over the
// drafts, which become tensors once their arrays do not move any more; over the
// drafts by their begin, which must cover the room exactly.
//
// The JSON is read from a copy: a hostile writer may change a mapped file at
// any moment, and checked bytes must not change. The tensors' bytes are not
// read.
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/safetensors.h"

typedef tarn__model_safetensors_draft draft;
typedef tarn__model_safetensors_reader reader;

#define fail_at tarn__safetensors_fail_at

// --- tensors -----------------------------------------------------------------

static bool is_multiple(const void *data,
                        const tarn__model_safetensors_dtype *dtype) {
  if (dtype == NULL) return false;
  return dtype->bits < 8 || (uintptr_t)data % (dtype->bits / 8) == 0;
}

static void make_tensor(const reader *r, const draft *d,
                        tarn_safetensor *tensor) {
  const tarn_safetensors *file = r->file;
  const int64_t *dims = file->dims.items;
  size_t offset = TARN__SAFETENSORS_LENGTH + r->header_size + d->begin;
  const unsigned char *data = d->end > d->begin ? file->bytes + offset : NULL;
  *tensor = (tarn_safetensor){
      .name = tarn__intern_text(&file->names, d->index),
      .dtype = d->dtype == NULL ? TARN_DTYPE_NONE : d->dtype->dtype,
      .dtype_text = d->dtype == NULL
                        ? tarn__intern_text(&file->dtypes, d->dtype_number)
                        : d->dtype->text,
      .shape = {d->rank > 0 ? dims + d->first_dim : NULL, d->rank},
      .offset = offset,
      .size = d->end - d->begin,
      .data = data,
      .aligned = is_multiple(data, d->dtype)};
}

static tarn_status make_tensors(reader *r) {
  tarn_safetensors *file = r->file;
  const draft *drafts = r->drafts.items;
  tarn_status status =
      tarn__array_make(&file->budget, &file->tensors, r->drafts.count);
  tarn_safetensor *tensors = file->tensors.items;
  for (size_t i = 0; status == TARN_OK && i < r->drafts.count; i++) {
    assert(tensors != NULL && drafts != NULL);
    make_tensor(r, &drafts[i], &tensors[i]);
  }
  return status;
}

// --- what covers the room ----------------------------------------------------

static int by_begin(const void *left, const void *right) {
  const draft *a = left;
  const draft *b = right;
  if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
  if (a->end != b->end) return a->end < b->end ? -1 : 1;
  return a->index < b->index ? -1 : a->index > b->index;
}

// Drafts are usually in order already.
static void sort_drafts(reader *r) {
  const draft *drafts = r->drafts.items;
  for (size_t i = 1; i < r->drafts.count; i++) {
    if (by_begin(&drafts[i - 1], &drafts[i]) <= 0) continue;
    qsort(r->drafts.items, r->drafts.count, sizeof *drafts, by_begin);
    return;
  }
}

static tarn_status refuse_seam(const reader *r, const draft *d,
                               size_t covered) {
  const char *name = tarn__intern_text(&r->file->names, d->index);
  if (d->begin < covered) {
    return fail_at(r, d->at,
                   "tensor \"%.80s\" begins at %zu, within or before another "
                   "that ends at %zu",
                   name, d->begin, covered);
  }
  return fail_at(r, d->at,
                 "tensor \"%.80s\" begins at %zu, but the one before it ends "
                 "at %zu: the bytes between are no tensor's",
                 name, d->begin, covered);
}

static tarn_status check_cover(reader *r) {
  size_t covered = 0;
  sort_drafts(r);
  const draft *drafts = r->drafts.items;
  for (size_t i = 0; i < r->drafts.count; i++) {
    if (drafts[i].begin != covered) return refuse_seam(r, &drafts[i], covered);
    covered = drafts[i].end;
  }
  if (covered == r->room) return TARN_OK;
  return fail_at(r, r->header_size,
                 "the tensors end at %zu, but there are %zu bytes of data",
                 covered, r->room);
}

// --- what stands before it ---------------------------------------------------

static uint64_t little_endian(const unsigned char *bytes) {
  uint64_t number = 0;
  for (int i = TARN__SAFETENSORS_LENGTH; i-- > 0;)
    number = number << 8 | bytes[i];
  return number;
}

static tarn_status read_length(reader *r) {
  const tarn_safetensors *file = r->file;
  if (file->size < TARN__SAFETENSORS_LENGTH) {
    return tarn__fail(TARN_E_CORRUPT,
                      "%s: %zu bytes; the length of its header alone has 8",
                      file->name, file->size);
  }
  uint64_t length = little_endian(file->bytes);
  size_t behind = file->size - TARN__SAFETENSORS_LENGTH;
  if (length > TARN_SAFETENSORS_MAX_HEADER) {
    return tarn__fail(TARN_E_CORRUPT,
                      "%s: a header of %" PRIu64 " bytes; at most %u are read",
                      file->name, length, TARN_SAFETENSORS_MAX_HEADER);
  }
  if (length > behind) {
    return tarn__fail(TARN_E_CORRUPT,
                      "%s: a header of %" PRIu64
                      " bytes, but the file ends after %zu",
                      file->name, length, behind);
  }
  r->header_size = (size_t)length;
  r->room = behind - r->header_size;
  return TARN_OK;
}

static tarn_status read_all(reader *r, const unsigned char *header) {
  if (r->header_size == 0 || header[0] != '{') {
    return fail_at(r, 0, "'{' expected");
  }
  tarn__json_init(&r->json, header, r->header_size);
  tarn_status status = tarn__safetensors_header(r);
  if (status == TARN_OK) status = make_tensors(r);
  return status == TARN_OK ? check_cover(r) : status;
}

static tarn_status read_copy(reader *r) {
  tarn__budget *budget = &r->file->budget;
  tarn__array copy = TARN__ARRAY_OF(unsigned char);
  *budget = tarn__budget_for(r->file->name, r->header_size);
  tarn_status status = tarn__array_make(budget, &copy, r->header_size);
  if (status == TARN_OK && r->header_size > 0) {
    memcpy(copy.items, r->file->bytes + TARN__SAFETENSORS_LENGTH,
           r->header_size);
  }
  if (status == TARN_OK) status = read_all(r, copy.items);
  tarn__array_free(budget, &copy);
  return status;
}

tarn_status tarn__safetensors_read(tarn_safetensors *file) {
  reader r = {.file = file,
              .drafts = TARN__ARRAY_OF(draft),
              .scratch = TARN__ARRAY_OF(char)};
  tarn_status status = read_length(&r);
  if (status == TARN_OK) status = read_copy(&r);
  tarn__array_free(&file->budget, &r.scratch);
  tarn__array_free(&file->budget, &r.drafts);
  return status;
}
