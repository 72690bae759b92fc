// span.h - files in memory.
#ifndef TARN_RECORD_SPAN_H_
#define TARN_RECORD_SPAN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// From its first byte to its last.
typedef struct span {
  const unsigned char *begin;
  size_t bytes;
} span;

// Of the file that |address| is in; nothing where there is none. Asks the
// loader, which takes its lock: before main only.
span span_of(const void *address);

static inline bool span_has(const span *s, const void *address) {
  return (uintptr_t)address - (uintptr_t)s->begin < s->bytes;
}

#endif  // TARN_RECORD_SPAN_H_
