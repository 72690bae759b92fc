// A buffer's runs of bytes, in a range map.
//
// Invariants:
//   * The first span is spans->whole, if there is one: a cut leaves the old
//     node on the left, and a join keeps the left node.
//   * Two uses of a span differ in more than |number|, except uses by
//     transfers.
//   * |recent| is one of the spans, or NULL.
//
// Unused nodes become spare, so that cutting and joining in turns takes no
// memory. Spare nodes that no reservation has wanted for a period (PERIOD
// reservations and one for each node) are freed, down to SPARES. A join frees
// at once what exceeds MOST_SPARES, USES_FOR_EACH times as many uses, and the
// same for each span left: a buffer that is used whole from then on makes no
// more reservations.
#include "synced/spans.h"

#include "base/hostmem.h"
#include "base/status.h"
#include "synced/timelines.h"

enum { SPARES = 32, PERIOD = 1024, MOST_SPARES = 2048, USES_FOR_EACH = 4 };

// --- nodes -----------------------------------------------------------------

static void add_use(tarn__synced_spans *spans, tarn__synced_span *span,
                    tarn__synced_use value) {
  tarn__synced_use *use = tarn__spares_take(&spans->spare_uses);
  *use = value;
  use->next = span->uses;
  span->uses = use;
  if (use->timeline != NULL) tarn__timeline_hold(use->timeline);
}

// Removes the use that |at| points to.
static void remove_use(tarn__synced_spans *spans, tarn__synced_use **at) {
  tarn__synced_use *use = *at;
  tarn__synced_timeline *timeline = use->timeline;
  *at = use->next;
  tarn__spares_put(&spans->spare_uses, use);
  if (timeline != NULL) tarn__timeline_release(timeline);
}

static void remove_uses(tarn__synced_spans *spans, tarn__synced_span *span) {
  while (span->uses != NULL)
    remove_use(spans, &span->uses);
}

static bool is_same_work(const tarn__synced_use *a, const tarn__synced_use *b) {
  return a->timeline == b->timeline && a->side == b->side &&
         a->writes == b->writes &&
         (a->timeline != NULL || a->number == b->number);
}

// The first use from |use| on that is the same work; NULL: none.
static tarn__synced_use *find_same(tarn__synced_use *use,
                                   const tarn__synced_use *wanted) {
  while (use != NULL && !is_same_work(use, wanted))
    use = use->next;
  return use;
}

// Notes the spare nodes that a reservation has left.
static inline void note_left(tarn__synced_spares *spares, size_t wanted) {
  size_t left = spares->count > wanted ? spares->count - wanted : 0;
  if (left < spares->idle) spares->idle = left;
}

// Frees the nodes that no reservation has wanted, beyond SPARES.
static void free_idle(tarn__synced_spares *spares, size_t size) {
  if (spares->idle > SPARES)
    tarn__spares_trim(spares, spares->count - (spares->idle - SPARES), size);
  spares->idle = SIZE_MAX;
}

static void count_reservation(tarn__synced_spans *spans, size_t wanted_spans,
                              size_t wanted_uses) {
  note_left(&spans->spare_spans, wanted_spans);
  note_left(&spans->spare_uses, wanted_uses);
  size_t period = PERIOD + spans->map.count + spans->spare_spans.count;
  if (++spans->reservations < period) return;
  free_idle(&spans->spare_spans, sizeof(tarn__synced_span));
  free_idle(&spans->spare_uses, sizeof(tarn__synced_use));
  spans->reservations = 0;
}

static void free_surplus(tarn__synced_spans *spans) {
  size_t most = MOST_SPARES + spans->map.count;
  tarn__spares_trim(&spans->spare_spans, most, sizeof(tarn__synced_span));
  tarn__spares_trim(&spans->spare_uses, USES_FOR_EACH * most,
                    sizeof(tarn__synced_use));
}

static void remove_span(tarn__synced_spans *spans, tarn__synced_span *span) {
  if (spans->recent == span) spans->recent = span->prev;
  tarn__range_map_remove(&spans->map, &span->node);
  assert(span->prev != NULL);
  span->prev->next = span->next;
  if (span->next != NULL) span->next->prev = span->prev;
  tarn__spares_put(&spans->spare_spans, span);
}

// --- from the first to the last --------------------------------------------

void tarn__spans_init(tarn__synced_spans *spans, size_t size) {
  *spans = (tarn__synced_spans){
      .size = size, .spare_spans.idle = SIZE_MAX, .spare_uses.idle = SIZE_MAX};
  if (size == 0) return;
  spans->whole.end = size;
  spans->first = &spans->whole;
  tarn__range_map_insert(&spans->map, &spans->whole.node);
}

void tarn__spans_deinit(tarn__synced_spans *spans) {
  tarn__synced_span *next = NULL;
  for (tarn__synced_span *span = spans->first; span != NULL; span = next) {
    next = span->next;
    remove_uses(spans, span);
    if (span != &spans->whole) tarn__host_free(span, sizeof *span);
  }
  tarn__spares_trim(&spans->spare_spans, 0, sizeof(tarn__synced_span));
  tarn__spares_trim(&spans->spare_uses, 0, sizeof(tarn__synced_use));
  *spans = (tarn__synced_spans){.size = 0};
}

static bool holds(const tarn__synced_span *span, size_t offset) {
  return span->node.start <= offset && offset < span->end;
}

// Usually the span found last, or a neighbour.
static tarn__synced_span *find_recent(const tarn__synced_spans *spans,
                                      size_t offset) {
  tarn__synced_span *span = spans->recent;
  if (span != NULL && !holds(span, offset)) {
    span = offset < span->node.start ? span->prev : span->next;
  }
  return span != NULL && holds(span, offset) ? span : NULL;
}

tarn__synced_span *tarn__spans_find(const tarn__synced_spans *spans,
                                    size_t offset) {
  assert(offset < spans->size);
  tarn__synced_span *span = find_recent(spans, offset);
  if (span != NULL) return span;
  // There are no gaps, so the search may end above a leaf.
  span = tarn__span_of(spans->map.root);
  while (!holds(span, offset)) {
    bool before = offset < span->node.start;
    span = tarn__span_of(before ? span->node.left : span->node.right);
  }
  ((tarn__synced_spans *)(uintptr_t)spans)->recent = span;  // a hint, no more
  return span;
}

// --- cuts ------------------------------------------------------------------

static size_t count_uses(const tarn__synced_span *span) {
  size_t count = 0;
  for (const tarn__synced_use *use = span->uses; use != NULL; use = use->next)
    count++;
  return count;
}

// Adds the nodes that a cut of |span| at |offset| needs.
static bool add_cut(const tarn__synced_span *span, size_t offset,
                    size_t *io_spans, size_t *io_uses) {
  if (offset == span->node.start || offset == span->end) return true;
  ++*io_spans;
  return tarn_size_add(*io_uses, count_uses(span), io_uses);
}

// The nodes for both cuts of a range and |uses| uses in each of its spans.
static bool add_up(tarn__synced_spans *spans, size_t start, size_t end,
                   size_t uses, size_t *out_spans, size_t *out_uses) {
  size_t within = 1;
  const tarn__synced_span *span = tarn__spans_find(spans, start);
  *out_spans = 0;
  *out_uses = 0;
  if (!add_cut(span, start, out_spans, out_uses)) return false;
  for (; span->end < end; span = span->next)
    within++;
  size_t added = 0;
  return add_cut(span, end, out_spans, out_uses) &&
         tarn_size_mul(within, uses, &added) &&
         tarn_size_add(*out_uses, added, out_uses);
}

tarn_status tarn__spans_reserve(tarn__synced_spans *spans, size_t start,
                                size_t end, size_t uses) {
  size_t wanted_spans = 0;
  size_t wanted_uses = 0;
  assert(start <= end && end <= spans->size);
  if (start == end) return TARN_OK;
  if (!add_up(spans, start, end, uses, &wanted_spans, &wanted_uses)) {
    return tarn__fail(TARN_E_NOMEM, "synced: no memory for uses of %zu ranges",
                      spans->map.count);
  }
  count_reservation(spans, wanted_spans, wanted_uses);
  bool enough = tarn__spares_stock(&spans->spare_spans, wanted_spans,
                                   sizeof(tarn__synced_span)) &&
                tarn__spares_stock(&spans->spare_uses, wanted_uses,
                                   sizeof(tarn__synced_use));
  return enough ? TARN_OK : TARN_E_NOMEM;
}

// Makes a span begin at |offset|, which is in |span|, and returns it.
static tarn__synced_span *cut_at(tarn__synced_spans *spans,
                                 tarn__synced_span *span, size_t offset) {
  if (offset == span->node.start) return span;
  tarn__synced_span *right = tarn__spares_take(&spans->spare_spans);
  *right = (tarn__synced_span){.node.start = offset,
                               .prev = span,
                               .next = span->next,
                               .end = span->end,
                               .readers = span->readers,
                               .writer = span->writer,
                               .valid = span->valid,
                               .written = span->written};
  span->end = offset;
  for (const tarn__synced_use *use = span->uses; use != NULL; use = use->next)
    add_use(spans, right, *use);
  span->next = right;
  if (right->next != NULL) right->next->prev = right;
  tarn__range_map_insert_between(&spans->map, &span->node,
                                 (tarn__range_map_node *)right->next,
                                 &right->node);
  return right;
}

tarn__synced_span *tarn__spans_cut(tarn__synced_spans *spans, size_t start,
                                   size_t end) {
  assert(start < end && end <= spans->size);
  tarn__synced_span *first =
      cut_at(spans, tarn__spans_find(spans, start), start);
  if (first->end != end && end != spans->size) {
    tarn__synced_span *last =
        first->end > end ? first : tarn__spans_find(spans, end);
    (void)cut_at(spans, last, end);
  }
  spans->recent = first;
  return first;
}

// --- joins -----------------------------------------------------------------

// A span has no use twice, so equal counts and inclusion mean equal sets.
static bool have_same_uses(const tarn__synced_span *a,
                           const tarn__synced_span *b) {
  if (count_uses(a) != count_uses(b)) return false;
  for (const tarn__synced_use *use = a->uses; use != NULL; use = use->next) {
    const tarn__synced_use *same = find_same(b->uses, use);
    if (same == NULL || same->number != use->number) return false;
  }
  return true;
}

static bool are_alike(const tarn__synced_span *a, const tarn__synced_span *b) {
  return a->valid == b->valid && a->written == b->written &&
         a->readers == b->readers && a->writer == b->writer &&
         have_same_uses(a, b);
}

void tarn__spans_join(tarn__synced_spans *spans, size_t start, size_t end) {
  if (spans->map.count <= 1 || start >= end) return;
  tarn__synced_span *span = tarn__spans_find(spans, start > 0 ? start - 1 : 0);
  while (span->end <= end && span->next != NULL) {
    tarn__synced_span *next = span->next;
    if (next->pins > 0 || !are_alike(span, next)) {
      span = next;
      continue;
    }
    span->end = next->end;
    remove_uses(spans, next);
    remove_span(spans, next);
  }
  free_surplus(spans);
}

void tarn__spans_leave(tarn__synced_spans *spans, size_t start, size_t end,
                       bool writes) {
  tarn__synced_span *first = tarn__spans_find(spans, start);
  tarn__synced_span *last = first;
  assert(first->node.start == start);
  tarn__spans_each (span, spans, start, end) {
    last = span;
    if (writes) {
      span->writer = NULL;
    } else {
      span->readers--;
    }
  }
  tarn__span_unpin(first, last);
  tarn__spans_join(spans, start, end);
}

// --- uses ------------------------------------------------------------------

void tarn__span_use(tarn__synced_spans *spans, tarn__synced_span *span,
                    tarn__synced_use use) {
  tarn__synced_use *known = find_same(span->uses, &use);
  if (known == NULL) {
    add_use(spans, span, use);
  } else if (known->number < use.number) {
    known->number = use.number;
  }
}

void tarn__span_forget(tarn__synced_spans *spans, tarn__synced_span *span,
                       tarn__synced_use_is_over *over, void *context) {
  tarn__synced_use **at = &span->uses;
  while (*at != NULL) {
    if (over(*at, context)) {
      remove_use(spans, at);
    } else {
      at = &(*at)->next;
    }
  }
}

// --- the walker ------------------------------------------------------------

static bool is_in_use(const tarn__synced_span *span) {
  return span->readers > 0 || span->writer != NULL;
}

static const char *check_uses(const tarn__synced_span *span) {
  for (const tarn__synced_use *use = span->uses; use != NULL; use = use->next) {
    if (find_same(use->next, use) != NULL) return "a use is there twice";
    if (use->timeline != NULL && use->number > use->timeline->issued)
      return "a use has a position that its timeline has not";
  }
  return NULL;
}

static const char *check_span(const tarn__synced_span *span) {
  const tarn__synced_span *prev = span->prev;
  if (span->node.start >= span->end) return "a span is empty";
  if (span->node.start != (prev != NULL ? prev->end : 0))
    return "there is a gap";
  if (span->next != tarn__span_of(tarn__range_map_next(&span->node)) ||
      (prev != NULL && prev->next != span))
    return "tree and list differ";
  if (span->readers > 0 && span->writer != NULL)
    return "a span is read and written";
  if (prev != NULL && is_in_use(prev) != is_in_use(span) && span->pins == 0)
    return "an access ends where no pin is";
  if (prev == NULL && span->pins > 0) return "a pin is at the beginning";
  return check_uses(span);
}

const char *tarn__spans_check(const tarn__synced_spans *spans) {
  const tarn__synced_span *span = spans->first;
  if (span != NULL && span != &spans->whole) return "the first is not the own";
  const char *wrong = tarn__range_map_check(&spans->map);
  if (wrong == NULL && !tarn__spares_are_counted(&spans->spare_spans))
    wrong = "spare spans are miscounted";
  if (wrong == NULL && !tarn__spares_are_counted(&spans->spare_uses))
    wrong = "spare uses are miscounted";
  size_t end = 0;
  for (; span != NULL && wrong == NULL; span = span->next) {
    wrong = check_span(span);
    end = span->end;
  }
  if (wrong != NULL) return wrong;
  return end == spans->size ? NULL : "the last does not end at the end";
}
