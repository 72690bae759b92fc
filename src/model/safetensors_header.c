// The JSON of a safetensors header.
//
// A pass over the tokens makes a draft of each tensor. The order of drafts in
// the file is checked in safetensors_read.c.
//
// Invariant: draft i has number i among the names.
#include "model/safetensors.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

enum {
  HAS_DTYPE = 1,
  HAS_SHAPE = 2,
  HAS_OFFSETS = 4,
  HAS_ALL = 7,
};

typedef tarn__model_safetensors_draft draft;
typedef tarn__model_safetensors_reader reader;

#define fail_at tarn__safetensors_fail_at

tarn_status tarn__safetensors_fail_at(const reader *r, size_t at,
                                      const char *format, ...) {
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

// The next token, which must be there.
static tarn_status next(reader *r, tarn__json_token *token) {
  if (tarn__json_next(&r->json, token)) return TARN_OK;
  return fail_at(r, r->json.at, "%s", r->json.wrong);
}

static tarn_status expect(reader *r, tarn__json_kind kind, const char *what,
                          tarn__json_token *token) {
  tarn_status status = next(r, token);
  if (status != TARN_OK || token->kind == kind) return status;
  return fail_at(r, token->at, "%s expected", what);
}

// The unescaped text in |scratch|, with a zero byte.
static tarn_status unescape(reader *r, const tarn__json_token *token,
                            const char **out_text, size_t *out_size) {
  void *text = NULL;
  *out_text = NULL;
  *out_size = 0;
  r->scratch.count = 0;
  tarn_status status =
      tarn__array_grow(&r->file->budget, &r->scratch, token->size + 1, &text);
  if (status != TARN_OK) return status;
  assert(text != NULL);
  size_t size = tarn__json_unescape(token, text);
  if (memchr(text, 0, size) != NULL) {
    return fail_at(r, token->at, "\"%.*s\" has a character 0 in it",
                   shown(token->size), token->text);
  }
  ((char *)text)[size] = '\0';
  *out_text = text;
  *out_size = size + 1;
  return TARN_OK;
}

static tarn_status put_text(reader *r, tarn__intern *set,
                            const tarn__json_token *token,
                            uint32_t *out_number) {
  const char *text = NULL;
  size_t size = 0;
  *out_number = 0;
  tarn_status status = unescape(r, token, &text, &size);
  if (status != TARN_OK) return status;
  return tarn__intern_put(set, &r->file->budget, text, size, out_number);
}

// Likewise for a text that must be new.
static tarn_status put_new(reader *r, tarn__intern *set,
                           const tarn__json_token *token, const char *what,
                           uint32_t *out_number) {
  size_t before = set->spans.count;
  tarn_status status = put_text(r, set, token, out_number);
  if (status != TARN_OK || *out_number == before) return status;
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

static tarn_status read_value(reader *r) {
  tarn_safetensors *file = r->file;
  tarn__json_token token;
  const char *text = NULL;
  size_t size = 0;
  void *copy = NULL;
  void *first = NULL;
  tarn_status status = expect(r, TARN__JSON_TEXT, "a text of metadata", &token);
  if (status == TARN_OK) status = unescape(r, &token, &text, &size);
  if (status != TARN_OK) return status;
  size_t begin = file->texts.count;
  status = tarn__array_grow(&file->budget, &file->texts, size, &copy);
  if (status == TARN_OK) {
    status = tarn__array_grow(&file->budget, &file->values, 1, &first);
  }
  if (status != TARN_OK) return status;
  assert(copy != NULL && first != NULL);
  memcpy(copy, text, size);
  *(size_t *)first = begin;
  return TARN_OK;
}

static tarn_status read_texts(reader *r) {
  tarn__json_token token;
  uint32_t number = 0;
  tarn_status status = next(r, &token);
  while (status == TARN_OK && token.kind != TARN__JSON_OBJECT_END) {
    status = put_new(r, &r->file->keys, &token, "metadata", &number);
    if (status == TARN_OK) status = read_value(r);
    if (status == TARN_OK) status = next(r, &token);
  }
  return status;
}

// Some writers write null for no metadata.
static tarn_status read_metadata(reader *r, const tarn__json_token *key) {
  tarn__json_token token;
  if (r->has_metadata) {
    return fail_at(r, key->at,
                   "\"" TARN__SAFETENSORS_METADATA "\" occurs twice");
  }
  r->has_metadata = true;
  tarn_status status = next(r, &token);
  if (status != TARN_OK || token.kind == TARN__JSON_NULL) return status;
  if (token.kind == TARN__JSON_OBJECT) return read_texts(r);
  return fail_at(r, token.at, "an object of metadata expected");
}

// --- a tensor ----------------------------------------------------------------

static tarn_status read_dtype(reader *r, draft *d) {
  tarn__json_token token;
  const char *text = NULL;
  size_t size = 0;
  tarn_status status =
      expect(r, TARN__JSON_TEXT, "the name of a dtype", &token);
  if (status == TARN_OK) status = unescape(r, &token, &text, &size);
  if (status != TARN_OK) return status;
  d->dtype = tarn__safetensors_dtype_find(text);
  if (d->dtype != NULL) return TARN_OK;
  return tarn__intern_put(&r->file->dtypes, &r->file->budget, text, size,
                          &d->dtype_number);
}

static tarn_status read_shape(reader *r, draft *d) {
  tarn__array *dims = &r->file->dims;
  tarn__json_token token;
  uint64_t length = 0;
  void *dim = NULL;
  d->first_dim = dims->count;
  tarn_status status = expect(r, TARN__JSON_ARRAY, "a list of lengths", &token);
  if (status == TARN_OK) status = next(r, &token);
  while (status == TARN_OK && token.kind != TARN__JSON_ARRAY_END) {
    status = take_number(r, &token, INT64_MAX, "shape", &length);
    if (status == TARN_OK) {
      status = tarn__array_grow(&r->file->budget, dims, 1, &dim);
    }
    if (status != TARN_OK) return status;
    assert(dim != NULL);
    *(int64_t *)dim = (int64_t)length;
    status = next(r, &token);
  }
  d->rank = (uint32_t)(dims->count - d->first_dim);
  return status;
}

static tarn_status read_offset(reader *r, size_t *out_offset) {
  tarn__json_token token;
  uint64_t offset = 0;
  tarn_status status = next(r, &token);
  if (status == TARN_OK) {
    status = take_number(r, &token, SIZE_MAX, "data_offsets", &offset);
  }
  *out_offset = (size_t)offset;
  return status;
}

static tarn_status read_offsets(reader *r, draft *d) {
  tarn__json_token first;
  tarn__json_token token;
  tarn_status status =
      expect(r, TARN__JSON_ARRAY, "a list of two offsets", &first);
  if (status == TARN_OK) status = read_offset(r, &d->begin);
  if (status == TARN_OK) status = read_offset(r, &d->end);
  if (status == TARN_OK) {
    status = expect(r, TARN__JSON_ARRAY_END,
                    "data_offsets are two: the end of the list", &token);
  }
  if (status != TARN_OK) return status;
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

// Sets |bit|, which must not be set.
static tarn_status take_once(reader *r, const tarn__json_token *key,
                             unsigned bit, unsigned *seen) {
  if ((*seen & bit) != 0) {
    return fail_at(r, key->at, "\"%.*s\" occurs twice", shown(key->size),
                   key->text);
  }
  *seen |= bit;
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
    tarn_status status = take_once(r, key, fields[i].bit, seen);
    return status == TARN_OK ? fields[i].read(r, d) : status;
  }
  if (tarn__json_skip(&r->json, key)) return TARN_OK;
  return fail_at(r, r->json.at, "%s", r->json.wrong);
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
  tarn_status status =
      expect(r, TARN__JSON_OBJECT, "an object that tells of a tensor", &token);
  if (status == TARN_OK) status = next(r, &token);
  while (status == TARN_OK && token.kind != TARN__JSON_OBJECT_END) {
    status = read_field(r, &token, d, &seen);
    if (status == TARN_OK) status = next(r, &token);
  }
  if (status != TARN_OK) return status;
  if (seen == HAS_ALL) return check_size(r, d);
  return fail_at(r, name->at, "tensor \"%.*s\" has no %s", shown(name->size),
                 name->text,
                 (seen & HAS_DTYPE) == 0   ? "dtype"
                 : (seen & HAS_SHAPE) == 0 ? "shape"
                                           : "data_offsets");
}

static tarn_status read_tensor(reader *r, const tarn__json_token *name) {
  draft d = {.at = (uint32_t)name->at};
  void *kept = NULL;
  tarn_status status = put_new(r, &r->file->names, name, "tensor", &d.index);
  if (status == TARN_OK) status = read_fields(r, name, &d);
  if (status == TARN_OK) {
    status = tarn__array_grow(&r->file->budget, &r->drafts, 1, &kept);
  }
  if (status != TARN_OK) return status;
  assert(kept != NULL);
  *(draft *)kept = d;
  return TARN_OK;
}

// --- the whole ---------------------------------------------------------------

tarn_status tarn__safetensors_header(reader *r) {
  tarn__json_token token;
  tarn_status status = next(r, &token);
  if (status == TARN_OK) status = next(r, &token);
  while (status == TARN_OK && token.kind != TARN__JSON_OBJECT_END) {
    status = tarn__json_is(&token, TARN__SAFETENSORS_METADATA)
                 ? read_metadata(r, &token)
                 : read_tensor(r, &token);
    if (status == TARN_OK) status = next(r, &token);
  }
  if (status != TARN_OK) return status;
  (void)!tarn__json_next(&r->json, &token);
  if (r->json.wrong == NULL) return TARN_OK;
  return fail_at(r, r->json.at, "%s", r->json.wrong);
}
