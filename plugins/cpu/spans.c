// Pieces of the address space in order.
//
// Invariant: spans[i].begin + spans[i].size <= spans[i + 1].begin.
#include "spans.h"

#include <string.h>

#include "base/hostmem.h"

enum { FIRST_CAPACITY = 8 };

// How many begin at or before |addr|.
static size_t rank_of(const tarn__cpu_spans *spans, uint64_t addr) {
  size_t low = 0;
  size_t high = spans->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (spans->spans[middle].begin <= addr) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static bool make_room(tarn__cpu_spans *spans) {
  if (spans->count < spans->capacity) return true;
  size_t wanted = spans->capacity == 0 ? FIRST_CAPACITY : 2 * spans->capacity;
  tarn__cpu_span *grown =
      tarn__host_resize(spans->spans, spans->capacity, wanted, sizeof *grown);
  if (grown == NULL) return false;
  spans->spans = grown;
  spans->capacity = wanted;
  return true;
}

bool tarn__cpu_spans_add(tarn__cpu_spans *spans, tarn__cpu_span span) {
  if (!make_room(spans)) return false;
  size_t at = rank_of(spans, span.begin);
  memmove(spans->spans + at + 1, spans->spans + at,
          (spans->count - at) * sizeof span);
  spans->spans[at] = span;
  spans->count++;
  return true;
}

tarn__cpu_span *tarn__cpu_spans_find(const tarn__cpu_spans *spans,
                                     uint64_t addr) {
  size_t rank = rank_of(spans, addr);
  if (rank == 0) return NULL;
  tarn__cpu_span *span = &spans->spans[rank - 1];
  return addr - span->begin < span->size ? span : NULL;
}

bool tarn__cpu_spans_meet(const tarn__cpu_spans *spans, uint64_t begin,
                          size_t size) {
  size_t rank = rank_of(spans, begin);
  if (rank < spans->count && spans->spans[rank].begin - begin < size) {
    return true;
  }
  return tarn__cpu_spans_find(spans, begin) != NULL;
}

void tarn__cpu_spans_remove(tarn__cpu_spans *spans, tarn__cpu_span *span) {
  size_t above = spans->count - 1 - (size_t)(span - spans->spans);
  memmove(span, span + 1, above * sizeof *span);
  spans->count--;
  if (spans->count == 0) tarn__cpu_spans_clear(spans);
}

void tarn__cpu_spans_clear(tarn__cpu_spans *spans) {
  tarn__host_free_array(spans->spans, spans->capacity, sizeof *spans->spans);
  *spans = (tarn__cpu_spans){NULL, 0, 0};
}
