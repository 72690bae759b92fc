// Reads and checks a safetensors file. The dtypes of the format.
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
//
// Invariant: draft i has number i among the names.
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/status.h"
#include "format/safetensors.h"

// --- dtypes ------------------------------------------------------------------

// In order of element size. Equal sizes are in the order that other writers use
// for tensors, so that the same tensors make the same file.
static const tarn__format_safetensors_dtype dtypes[] = {
    {"BOOL", TARN_DTYPE_BOOL, 8},
    {"F4", TARN_DTYPE_NONE, 4},
    {"F6_E2M3", TARN_DTYPE_NONE, 6},
    {"F6_E3M2", TARN_DTYPE_NONE, 6},
    {"U8", TARN_DTYPE_U8, 8},
    {"I8", TARN_DTYPE_I8, 8},
    {"F8_E5M2", TARN_DTYPE_NONE, 8},
    {"F8_E4M3", TARN_DTYPE_NONE, 8},
    {"F8_E8M0", TARN_DTYPE_NONE, 8},
    {"F8_E4M3FNUZ", TARN_DTYPE_NONE, 8},
    {"F8_E5M2FNUZ", TARN_DTYPE_NONE, 8},
    {"I16", TARN_DTYPE_I16, 16},
    {"U16", TARN_DTYPE_U16, 16},
    {"F16", TARN_DTYPE_F16, 16},
    {"BF16", TARN_DTYPE_BF16, 16},
    {"I32", TARN_DTYPE_I32, 32},
    {"U32", TARN_DTYPE_U32, 32},
    {"F32", TARN_DTYPE_F32, 32},
    {"C64", TARN_DTYPE_NONE, 64},
    {"F64", TARN_DTYPE_F64, 64},
    {"I64", TARN_DTYPE_I64, 64},
    {"U64", TARN_DTYPE_U64, 64},
};
enum { DTYPE_COUNT = sizeof dtypes / sizeof dtypes[0] };

const tarn__format_safetensors_dtype *tarn__safetensors_dtype_find(
    const char *text) {
  for (int i = 0; i < DTYPE_COUNT; i++) {
    if (strcmp(text, dtypes[i].text) == 0) return &dtypes[i];
  }
  return NULL;
}

const tarn__format_safetensors_dtype *tarn__safetensors_dtype_of(
    tarn_dtype dtype) {
  for (int i = 0; dtype != TARN_DTYPE_NONE && i < DTYPE_COUNT; i++) {
    if (dtype == dtypes[i].dtype) return &dtypes[i];
  }
  return NULL;
}

// --- drafts ------------------------------------------------------------------

enum {
  HAS_DTYPE = 1,
  HAS_SHAPE = 2,
  HAS_OFFSETS = 4,
  HAS_ALL = 7,
};

// A tensor as the header describes it.
typedef struct draft {
  size_t begin;  // data_offsets
  size_t end;
  size_t first_dim;  // of |rank| among the file's
  uint32_t rank;
  uint32_t index;         // of the tensor in the header
  uint32_t at;            // byte of the header at which its name begins
  uint32_t dtype_number;  // among the file's own
  const tarn__format_safetensors_dtype *dtype;  // NULL: unknown to Tarn
} draft;

typedef struct reader {
  tarn_safetensors *file;  // receives texts, lengths, metadata
  size_t header_size;
  size_t room;  // bytes behind the header
  tarn__json json;
  tarn__array drafts;   // draft
  tarn__array scratch;  // char: a text with its zero byte
  bool has_metadata;
} reader;

// Fails with TARN_E_CORRUPT and the text "name: header byte N: ...".
__attribute__((format(printf, 3, 4), cold)) static tarn_status fail_at(
    const reader *r, size_t at, const char *format, ...) {
  char text[400];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return tarn__fail(TARN_E_CORRUPT, "%s: header byte %zu: %s", r->file->name,
                    at, text);
}

// The length of a text in an error, for "%.*s".
static int shown(size_t size) {
  enum { MOST = 80 };
  return size < MOST ? (int)size : MOST;
}

// --- tokens ------------------------------------------------------------------

static tarn_status check_json(const reader *r) {
  if (r->json.wrong == NULL) return TARN_OK;
  return fail_at(r, r->json.at, "%s", r->json.wrong);
}

// The next token, which must be there.
static tarn_status next(reader *r, tarn__json_token *token) {
  return tarn__json_next(&r->json, token) ? TARN_OK : check_json(r);
}

static tarn_status expect(reader *r, tarn__json_kind kind, const char *what,
                          tarn__json_token *token) {
  TARN__TRY(next(r, token));
  if (token->kind == kind) return TARN_OK;
  return fail_at(r, token->at, "%s expected", what);
}

// Makes |scratch| the unescaped text, with a zero byte.
static tarn_status unescape(reader *r, const tarn__json_token *token) {
  void *text = NULL;
  r->scratch.count = 0;
  TARN__TRY(
      tarn__array_grow(&r->file->budget, &r->scratch, token->size + 1, &text));
  assert(text != NULL);
  size_t size = tarn__json_unescape(token, text);
  if (memchr(text, 0, size) != NULL) {
    return fail_at(r, token->at, "\"%.*s\" has a character 0 in it",
                   shown(token->size), token->text);
  }
  ((char *)text)[size] = '\0';
  r->scratch.count = size + 1;
  return TARN_OK;
}

static tarn_status put_scratch(reader *r, tarn__intern *set,
                               uint32_t *out_number) {
  return tarn__intern_put(set, &r->file->budget, r->scratch.items,
                          r->scratch.count, out_number);
}

// Puts a text that must be new into |set|.
static tarn_status put_new(reader *r, tarn__intern *set,
                           const tarn__json_token *token, const char *what,
                           uint32_t *out_number) {
  size_t before = set->spans.count;
  TARN__TRY(unescape(r, token));
  TARN__TRY(put_scratch(r, set, out_number));
  if (*out_number == before) return TARN_OK;
  return fail_at(r, token->at, "%s \"%.*s\" occurs twice", what,
                 shown(token->size), token->text);
}

// A number from 0 to |most|.
static tarn_status take_number(reader *r, const tarn__json_token *token,
                               uint64_t most, const char *what,
                               uint64_t *out_number) {
  *out_number = 0;
  if (token->kind != TARN__JSON_NUMBER) {
    return fail_at(r, token->at, "%s: a number expected", what);
  }
  if (!token->whole || token->negative || token->magnitude > most) {
    return fail_at(r, token->at,
                   "%s: %.*s is not a whole number from 0 to %" PRIu64, what,
                   shown(token->size), token->text, most);
  }
  *out_number = token->magnitude;
  return TARN_OK;
}

// --- metadata ----------------------------------------------------------------

static tarn_status read_texts(reader *r) {
  tarn_safetensors *file = r->file;
  tarn__json_token token;
  uint32_t number = 0;
  TARN__TRY(next(r, &token));
  while (token.kind != TARN__JSON_OBJECT_END) {
    TARN__TRY(put_new(r, &file->keys, &token, "metadata", &number));
    TARN__TRY(expect(r, TARN__JSON_TEXT, "a text of metadata", &token));
    TARN__TRY(unescape(r, &token));
    TARN__TRY(put_scratch(r, &file->texts, &number));
    TARN__TRY(tarn__array_append(&file->budget, &file->values, &number, 1));
    TARN__TRY(next(r, &token));
  }
  return TARN_OK;
}

// Some writers write null for no metadata.
static tarn_status read_metadata(reader *r, const tarn__json_token *key) {
  tarn__json_token token;
  if (r->has_metadata) {
    return fail_at(r, key->at,
                   "\"" TARN__SAFETENSORS_METADATA "\" occurs twice");
  }
  r->has_metadata = true;
  TARN__TRY(next(r, &token));
  if (token.kind == TARN__JSON_NULL) return TARN_OK;
  if (token.kind == TARN__JSON_OBJECT) return read_texts(r);
  return fail_at(r, token.at, "an object of metadata expected");
}

// --- a tensor ----------------------------------------------------------------

static tarn_status read_dtype(reader *r, draft *d) {
  tarn__json_token token;
  TARN__TRY(expect(r, TARN__JSON_TEXT, "the name of a dtype", &token));
  TARN__TRY(unescape(r, &token));
  d->dtype = tarn__safetensors_dtype_find(r->scratch.items);
  if (d->dtype != NULL) return TARN_OK;
  return put_scratch(r, &r->file->dtypes, &d->dtype_number);
}

static tarn_status read_shape(reader *r, draft *d) {
  tarn__array *dims = &r->file->dims;
  tarn__json_token token;
  uint64_t length = 0;
  d->first_dim = dims->count;
  TARN__TRY(expect(r, TARN__JSON_ARRAY, "a list of lengths", &token));
  TARN__TRY(next(r, &token));
  while (token.kind != TARN__JSON_ARRAY_END) {
    TARN__TRY(take_number(r, &token, INT64_MAX, "shape", &length));
    int64_t dim = (int64_t)length;
    TARN__TRY(tarn__array_append(&r->file->budget, dims, &dim, 1));
    TARN__TRY(next(r, &token));
  }
  d->rank = (uint32_t)(dims->count - d->first_dim);
  return TARN_OK;
}

static tarn_status read_offset(reader *r, size_t *out_offset) {
  tarn__json_token token;
  uint64_t offset = 0;
  TARN__TRY(next(r, &token));
  TARN__TRY(take_number(r, &token, SIZE_MAX, "data_offsets", &offset));
  *out_offset = (size_t)offset;
  return TARN_OK;
}

static tarn_status read_offsets(reader *r, draft *d) {
  tarn__json_token first;
  tarn__json_token token;
  TARN__TRY(expect(r, TARN__JSON_ARRAY, "a list of two offsets", &first));
  TARN__TRY(read_offset(r, &d->begin));
  TARN__TRY(read_offset(r, &d->end));
  TARN__TRY(expect(r, TARN__JSON_ARRAY_END,
                   "data_offsets are two: the end of the list", &token));
  if (d->begin > d->end) {
    return fail_at(r, first.at, "data_offsets [%zu, %zu] end before they begin",
                   d->begin, d->end);
  }
  if (d->end > r->room) {
    return fail_at(r, first.at,
                   "data_offsets [%zu, %zu] end beyond the %zu bytes of data",
                   d->begin, d->end, r->room);
  }
  return TARN_OK;
}

static tarn_status read_field(reader *r, const tarn__json_token *key, draft *d,
                              unsigned *seen) {
  static const struct {
    const char *key;
    unsigned bit;
    tarn_status (*read)(reader *r, draft *d);
  } fields[] = {{"dtype", HAS_DTYPE, read_dtype},
                {"shape", HAS_SHAPE, read_shape},
                {"data_offsets", HAS_OFFSETS, read_offsets}};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    if (!tarn__json_is(key, fields[i].key)) continue;
    if ((*seen & fields[i].bit) != 0) {
      return fail_at(r, key->at, "\"%.*s\" occurs twice", shown(key->size),
                     key->text);
    }
    *seen |= fields[i].bit;
    return fields[i].read(r, d);
  }
  return tarn__json_skip(&r->json, key) ? TARN_OK : check_json(r);
}

// Checks the size against dtype and shape.
static tarn_status check_size(const reader *r, const draft *d) {
  const int64_t *dims = r->file->dims.items;
  tarn_shape shape = {d->rank > 0 ? dims + d->first_dim : NULL, d->rank};
  size_t count = 0;
  size_t bits = 0;
  const char *text = d->dtype == NULL ? "" : d->dtype->text;
  if (tarn_shape_count(shape, 0, &count) != TARN_OK ||
      (d->dtype != NULL && !tarn_size_mul(count, d->dtype->bits, &bits))) {
    return fail_at(r, d->at, "the lengths of its shape and %s overflow",
                   d->dtype == NULL ? "1 byte" : text);
  }
  if (d->dtype == NULL) return TARN_OK;
  if (bits % 8 != 0) {
    return fail_at(r, d->at,
                   "%zu elements of %s are not a whole number of bytes", count,
                   text);
  }
  if (bits / 8 == d->end - d->begin) return TARN_OK;
  return fail_at(r, d->at,
                 "data_offsets [%zu, %zu] are %zu bytes, but %zu elements of "
                 "%s have %zu",
                 d->begin, d->end, d->end - d->begin, count, text, bits / 8);
}

static tarn_status read_fields(reader *r, const tarn__json_token *name,
                               draft *d) {
  unsigned seen = 0;
  tarn__json_token token;
  TARN__TRY(
      expect(r, TARN__JSON_OBJECT, "an object that tells of a tensor", &token));
  TARN__TRY(next(r, &token));
  while (token.kind != TARN__JSON_OBJECT_END) {
    TARN__TRY(read_field(r, &token, d, &seen));
    TARN__TRY(next(r, &token));
  }
  if (seen == HAS_ALL) return check_size(r, d);
  return fail_at(r, name->at, "tensor \"%.*s\" has no %s", shown(name->size),
                 name->text,
                 (seen & HAS_DTYPE) == 0   ? "dtype"
                 : (seen & HAS_SHAPE) == 0 ? "shape"
                                           : "data_offsets");
}

static tarn_status read_tensor(reader *r, const tarn__json_token *name) {
  draft d = {.at = (uint32_t)name->at};
  TARN__TRY(put_new(r, &r->file->names, name, "tensor", &d.index));
  TARN__TRY(read_fields(r, name, &d));
  return tarn__array_append(&r->file->budget, &r->drafts, &d, 1);
}

// Makes a draft of each tensor. Each lies within |room| and has as many bytes
// as its dtype and shape need.
static tarn_status read_header(reader *r) {
  tarn__json_token token;
  TARN__TRY(next(r, &token));
  TARN__TRY(next(r, &token));
  while (token.kind != TARN__JSON_OBJECT_END) {
    TARN__TRY(tarn__json_is(&token, TARN__SAFETENSORS_METADATA)
                  ? read_metadata(r, &token)
                  : read_tensor(r, &token));
    TARN__TRY(next(r, &token));
  }
  (void)!tarn__json_next(&r->json, &token);
  return check_json(r);
}

// --- tensors -----------------------------------------------------------------

static bool is_multiple(uintptr_t place,
                        const tarn__format_safetensors_dtype *dtype) {
  if (dtype == NULL) return false;
  return dtype->bits < 8 || place % (dtype->bits / 8) == 0;
}

static void make_tensor(const reader *r, const draft *d,
                        tarn_safetensor *tensor) {
  const tarn_safetensors *file = r->file;
  const int64_t *dims = file->dims.items;
  size_t offset = TARN__SAFETENSORS_LENGTH + r->header_size + d->begin;
  const unsigned char *data =
      d->end > d->begin && !file->head_only ? file->bytes + offset : NULL;
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
      .aligned =
          is_multiple(file->head_only ? offset : (uintptr_t)data, d->dtype)};
}

static tarn_status make_tensors(reader *r) {
  tarn_safetensors *file = r->file;
  const draft *drafts = r->drafts.items;
  TARN__TRY(tarn__array_make(&file->budget, &file->tensors, r->drafts.count));
  tarn_safetensor *tensors = file->tensors.items;
  for (size_t i = 0; i < r->drafts.count; i++) {
    assert(tensors != NULL && drafts != NULL);
    make_tensor(r, &drafts[i], &tensors[i]);
  }
  return TARN_OK;
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

tarn_status tarn__safetensors_head(const char *name, const void *bytes,
                                   size_t size, size_t file_size,
                                   size_t *out_head_size) {
  *out_head_size = 0;
  if (tarn__lesser(size, file_size) < TARN__SAFETENSORS_LENGTH) {
    return tarn__fail(TARN_E_CORRUPT,
                      "%s: %zu bytes; the length of its header alone has 8",
                      name, (size_t)tarn__lesser(size, file_size));
  }
  uint64_t length = little_endian(bytes);
  size_t behind = file_size - TARN__SAFETENSORS_LENGTH;
  if (length > TARN_SAFETENSORS_MAX_HEADER) {
    return tarn__fail(TARN_E_CORRUPT,
                      "%s: a header of %" PRIu64 " bytes; at most %u are read",
                      name, length, TARN_SAFETENSORS_MAX_HEADER);
  }
  if (length > behind) {
    return tarn__fail(TARN_E_CORRUPT,
                      "%s: a header of %" PRIu64
                      " bytes, but the file ends after %zu",
                      name, length, behind);
  }
  *out_head_size = TARN__SAFETENSORS_LENGTH + (size_t)length;
  return TARN_OK;
}

static tarn_status read_length(reader *r) {
  const tarn_safetensors *file = r->file;
  size_t head = 0;
  TARN__TRY(tarn__safetensors_head(file->name, file->bytes, file->held,
                                   file->size, &head));
  r->header_size = head - TARN__SAFETENSORS_LENGTH;
  r->room = file->size - head;
  if (head <= file->held) return TARN_OK;
  return tarn__fail(
      TARN_E_CORRUPT, "%s: a header of %zu bytes, but it ends after %zu",
      file->name, r->header_size, file->held - TARN__SAFETENSORS_LENGTH);
}

static tarn_status read_all(reader *r, const unsigned char *header) {
  if (r->header_size == 0 || header[0] != '{') {
    return fail_at(r, 0, "'{' expected");
  }
  tarn__json_init(&r->json, header, r->header_size);
  TARN__TRY(read_header(r));
  TARN__TRY(make_tensors(r));
  return check_cover(r);
}

static tarn_status read_copy(reader *r) {
  tarn__budget *budget = &r->file->budget;
  tarn__array copy = TARN__ARRAY_OF(unsigned char);
  *budget = tarn__budget_for(r->file->name, r->header_size);
  tarn_status status = tarn__array_append(
      budget, &copy, r->file->bytes + TARN__SAFETENSORS_LENGTH, r->header_size);
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
