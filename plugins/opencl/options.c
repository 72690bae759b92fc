// What the environment asks of the plug-in:
//
//   TARN_OPENCL           devices of which the name, or that of their platform,
//                         has this in it, in any case of letters
//   TARN_OPENCL_MEMORY    methods of memory by kind, as
//                         device=window,host=mapped,unified=none
//   TARN_OPENCL_CAPACITY  most bytes of each device
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "opencl.h"

static const char *const method_names[TARN__OPENCL_METHODS] = {
    "none", "usm", "svm", "address", "window", "mapped"};

static const char *const kind_names[TARN__OPENCL_KINDS] = {"device", "host",
                                                           "unified"};

const char *tarn__opencl_method_name(tarn__opencl_method method) {
  return method_names[method];
}

const char *tarn__opencl_kind_name(tarn__opencl_kind kind) {
  return kind_names[kind];
}

// The place of |word|, of |length| bytes, among |count| |names|; |count|: none.
static size_t find_name(const char *const *names, size_t count,
                        const char *word, size_t length) {
  size_t i = 0;
  while (i < count &&
         (strlen(names[i]) != length || memcmp(names[i], word, length) != 0))
    i++;
  return i;
}

// One KIND=METHOD of |length| bytes.
static bool parse_method(const char *word, size_t length,
                         tarn__opencl_options *out) {
  const char *equals = memchr(word, '=', length);
  if (equals == NULL) return false;
  size_t before = (size_t)(equals - word);
  size_t kind = find_name(kind_names, TARN__OPENCL_KINDS, word, before);
  size_t method = find_name(method_names, TARN__OPENCL_METHODS, equals + 1,
                            length - before - 1);
  if (kind == TARN__OPENCL_KINDS || method == TARN__OPENCL_METHODS) {
    return false;
  }
  out->methods[kind] = (tarn__opencl_method)method;
  out->is_set[kind] = true;
  return true;
}

static bool parse_methods(const char *text, tarn__opencl_options *out) {
  while (*text != '\0') {
    size_t length = strcspn(text, ",");
    if (!parse_method(text, length, out)) return false;
    text += length;
    if (*text == ',') text++;
  }
  return true;
}

static const char *read_variable(const char *name) {
  const char *text = secure_getenv(name);
  return text != NULL ? text : "";
}

static bool refuse(const char *variable, const char *text, const char *wanted) {
  (void)tarn__text_fail(TARN_E_INVALID, "%s=%.64s: not %s", variable, text,
                        wanted);
  return false;
}

bool tarn__opencl_options_read(tarn__opencl_options *out) {
  *out = (tarn__opencl_options){.capacity = 0};
  const char *select = read_variable("TARN_OPENCL");
  const char *memory = read_variable("TARN_OPENCL_MEMORY");
  const char *capacity = read_variable("TARN_OPENCL_CAPACITY");
  if (strlen(select) >= sizeof out->select) {
    return refuse("TARN_OPENCL", select, "a part of a name");
  }
  tarn__text_copy(select, out->select, sizeof out->select);
  if (!parse_methods(memory, out)) {
    return refuse("TARN_OPENCL_MEMORY", memory,
                  "like device=svm,host=mapped,unified=none");
  }
  if (*capacity != '\0' &&
      (!tarn__bytes_parse(capacity, &out->capacity) || out->capacity == 0)) {
    return refuse("TARN_OPENCL_CAPACITY", capacity,
                  "a size in bytes or with K, M, G or T");
  }
  return true;
}
