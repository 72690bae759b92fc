// growing.h - a text that grows, for the tests of long files.
#ifndef TARN_TESTS_TRACE_GROWING_H_
#define TARN_TESTS_TRACE_GROWING_H_

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/run.h"

typedef struct growing {
  char *bytes;
  size_t size;
  size_t capacity;
} growing;

__attribute__((format(printf, 2, 3))) static inline void grow(
    growing *to, const char *format, ...) {
  char *made = NULL;
  va_list args;
  va_start(args, format);
  int size = vasprintf(&made, format, args);
  va_end(args);
  require(size >= 0);
  if (to->capacity - to->size < (size_t)size) {
    to->capacity = 2 * (to->capacity + (size_t)size);
    to->bytes = realloc(to->bytes, to->capacity);
    require(to->bytes != NULL);
  }
  memcpy(to->bytes + to->size, made, (size_t)size);
  to->size += (size_t)size;
  free(made);
}

#endif  // TARN_TESTS_TRACE_GROWING_H_
