// Layout: spans are placed one by one, each as low as those allow that stand
// already and are there at the same time. Which is best depends on the order:
// the largest first, the longest first, or what takes most of both; all are
// tried.
#include "pool/layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"

enum { ORDERS = 3 };

typedef struct standing {
  const tarn__span *span;
  size_t offset;
} standing;

typedef struct attempt {
  tarn__span **order;  // the spans, as they are to be placed
  standing *row;       // those placed, by offset
  size_t *best;        // offsets, by span
  size_t count;
  size_t end;
} attempt;

// --- orders ----------------------------------------------------------------

// Lengths of spans across the end of the step are counted as if it were as
// long as 32 bits can say: they come first among equals.
static uint32_t length_of(const tarn__span *span) {
  return span->to - span->from;
}

static double weight_of(const tarn__span *span) {
  return (double)span->size * (double)length_of(span);
}

static int by_place(const tarn__span *a, const tarn__span *b) {
  return (a->from > b->from) - (a->from < b->from);
}

static int larger_first(const void *x, const void *y) {
  const tarn__span *a = *(tarn__span *const *)x;
  const tarn__span *b = *(tarn__span *const *)y;
  if (a->size != b->size) return a->size < b->size ? 1 : -1;
  return by_place(a, b);
}

static int longer_first(const void *x, const void *y) {
  const tarn__span *a = *(tarn__span *const *)x;
  const tarn__span *b = *(tarn__span *const *)y;
  if (length_of(a) != length_of(b)) return length_of(a) < length_of(b) ? 1 : -1;
  return larger_first(x, y);
}

static int heavier_first(const void *x, const void *y) {
  const tarn__span *a = *(tarn__span *const *)x;
  const tarn__span *b = *(tarn__span *const *)y;
  double wa = weight_of(a);
  double wb = weight_of(b);
  if (wa != wb) return wa < wb ? 1 : -1;
  return larger_first(x, y);
}

// --- placing ---------------------------------------------------------------

static bool is_there(const tarn__span *span, uint32_t event) {
  return span->from < span->to ? event >= span->from && event < span->to
                               : event >= span->from || event < span->to;
}

static bool meet(const tarn__span *a, const tarn__span *b) {
  return is_there(a, b->from) || is_there(b, a->from);
}

// The lowest offset at which |span| meets nobody; false: there is none.
static bool find_offset(const attempt *a, size_t placed, const tarn__span *span,
                        size_t *out) {
  size_t at = 0;
  for (size_t i = 0; i < placed; i++) {
    const standing *s = &a->row[i];
    if (!meet(s->span, span)) continue;
    if (s->offset >= at && s->offset - at >= span->size) break;
    size_t end = s->offset + s->span->size;
    if (end > at && !tarn_size_align_up(end, span->align, &at)) return false;
  }
  size_t end = 0;
  *out = at;
  return tarn_size_add(at, span->size, &end);
}

static void stand(attempt *a, size_t placed, const tarn__span *span,
                  size_t offset) {
  size_t at = placed;
  for (; at > 0 && a->row[at - 1].offset > offset; at--)
    a->row[at] = a->row[at - 1];
  a->row[at] = (standing){span, offset};
}

static bool place_all(attempt *a) {
  a->end = 0;
  for (size_t i = 0; i < a->count; i++) {
    tarn__span *span = a->order[i];
    if (!find_offset(a, i, span, &span->offset)) return false;
    stand(a, i, span, span->offset);
    if (span->offset + span->size > a->end) a->end = span->offset + span->size;
  }
  return true;
}

static bool prepare(attempt *a, tarn__span *spans, size_t count) {
  *a = (attempt){.count = count};
  a->order = tarn__host_array(count, sizeof(tarn__span *));
  a->row = tarn__host_array(count, sizeof *a->row);
  a->best = tarn__host_array(count, sizeof *a->best);
  if (a->order == NULL || a->row == NULL || a->best == NULL) return false;
  for (size_t i = 0; i < count; i++)
    a->order[i] = &spans[i];
  return true;
}

static void discard(attempt *a) {
  tarn__host_free_array(a->order, a->count, sizeof(tarn__span *));
  tarn__host_free_array(a->row, a->count, sizeof *a->row);
  tarn__host_free_array(a->best, a->count, sizeof *a->best);
}

static bool try_all(attempt *a, tarn__span *spans, size_t *out_size) {
  static int (*const orders[ORDERS])(const void *, const void *) = {
      larger_first, longer_first, heavier_first};
  *out_size = SIZE_MAX;
  for (int i = 0; i < ORDERS; i++) {
    qsort(a->order, a->count, sizeof(tarn__span *), orders[i]);
    if (!place_all(a) || a->end >= *out_size) continue;
    *out_size = a->end;
    for (size_t j = 0; j < a->count; j++)
      a->best[j] = spans[j].offset;
  }
  for (size_t j = 0; j < a->count && *out_size != SIZE_MAX; j++)
    spans[j].offset = a->best[j];
  return *out_size != SIZE_MAX;
}

tarn_status tarn__layout(tarn__span *spans, size_t count, size_t *out_size) {
  attempt a;
  tarn_status status = TARN_E_NOMEM;
  *out_size = 0;
  if (count == 0) return TARN_OK;
  if (prepare(&a, spans, count)) {
    status = try_all(&a, spans, out_size)
                 ? TARN_OK
                 : tarn__fail(TARN_FULL,
                              "layout: %zu spans cannot be addressed", count);
  }
  discard(&a);
  if (status != TARN_OK) *out_size = 0;
  return status;
}
