// spans.h - pieces of the address space that do not overlap, in order. A sorted
// array: found in O(log n), added and removed by moving what is above, which
// is cheap for the few ranges and registrations that there are.
//
// Not locked: the owner guards it.
#ifndef TARN_PLUGINS_CPU_SPANS_H_
#define TARN_PLUGINS_CPU_SPANS_H_

#include "tarn/base.h"

typedef struct tarn__cpu_span {
  uint64_t begin;
  size_t size;
  void *what;  // the owner's
} tarn__cpu_span;

// Zero-filled: empty.
typedef struct tarn__cpu_spans {
  tarn__cpu_span *spans;
  size_t count;
  size_t capacity;
} tarn__cpu_spans;

// Adds one that overlaps no other; false if there is no host memory.
TARN_MUST_CHECK bool tarn__cpu_spans_add(tarn__cpu_spans *spans,
                                         tarn__cpu_span span);

// The one that |addr| is in; NULL if there is none. Moves when others are
// added or removed.
tarn__cpu_span *tarn__cpu_spans_find(const tarn__cpu_spans *spans,
                                     uint64_t addr);

// Whether any of the |size| bytes at |begin|, at least one, is in a span.
bool tarn__cpu_spans_meet(const tarn__cpu_spans *spans, uint64_t begin,
                          size_t size);

void tarn__cpu_spans_remove(tarn__cpu_spans *spans, tarn__cpu_span *span);

// Leaves it empty, without memory.
void tarn__cpu_spans_clear(tarn__cpu_spans *spans);

#endif  // TARN_PLUGINS_CPU_SPANS_H_
