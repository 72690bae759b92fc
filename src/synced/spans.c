// The runs of bytes of a buffer: a treap that is threaded.
//
//            (40)                 a tree by |start|, a heap by |priority|:
//           /    \                since those are random, O(log n) deep
//        (10)    (70)
//        /  \                     and a list in order, by |prev| and |next|:
//     (0)   (20)                  0 ⇄ 10 ⇄ 20 ⇄ 40 ⇄ 70
//
// Invariants:
//   * the first span is spans->whole, as long as there is one: a cut leaves the
//     old node on the left, and a join keeps the left one
//   * a span has no two uses that differ in nothing but |number|, unless that
//     is a transfer's
//   * |recent| is one of the spans, or NULL
//
// Nodes that are let go of become spare, so that who cuts and joins in turns
// takes no memory. Those that no reservation has wanted for a period, which is
// PERIOD reservations and one for each node, are given back, but for SPARES.
// A join gives back at once what is beyond MOST_SPARES, USES_FOR_EACH times as
// many uses, and the same for each span that is left: a buffer that is used
// whole from then on asks for no reservation any more.
#include "synced/spans.h"

#include "base/hostmem.h"
#include "base/status.h"
#include "synced/timelines.h"

enum { SPARES = 32, PERIOD = 1024, MOST_SPARES = 2048, USES_FOR_EACH = 4 };

// --- nodes -----------------------------------------------------------------

static void drop_span(tarn__synced_spans *spans, tarn__synced_span *span) {
  span->next = spans->spare_spans;
  spans->spare_spans = span;
  spans->spare_span_count++;
}

static tarn__synced_span *take_span(tarn__synced_spans *spans) {
  tarn__synced_span *span = spans->spare_spans;
  assert(span != NULL);
  spans->spare_spans = span->next;
  spans->spare_span_count--;
  return span;
}

static void drop_use(tarn__synced_spans *spans, tarn__synced_use *use) {
  use->next = spans->spare_uses;
  spans->spare_uses = use;
  spans->spare_use_count++;
}

static tarn__synced_use *take_use(tarn__synced_spans *spans) {
  tarn__synced_use *use = spans->spare_uses;
  assert(use != NULL);
  spans->spare_uses = use->next;
  spans->spare_use_count--;
  return use;
}

static void add_use(tarn__synced_spans *spans, tarn__synced_span *span,
                    tarn__synced_use value) {
  tarn__synced_use *use = take_use(spans);
  *use = value;
  use->next = span->uses;
  span->uses = use;
  if (use->timeline != NULL) tarn__timeline_add_use(use->timeline);
}

// Takes out the use that |at| leads to.
static void remove_use(tarn__synced_spans *spans, tarn__synced_use **at) {
  tarn__synced_use *use = *at;
  tarn__synced_timeline *timeline = use->timeline;
  *at = use->next;
  drop_use(spans, use);
  if (timeline != NULL) tarn__timeline_remove_use(timeline);
}

static void remove_uses(tarn__synced_spans *spans, tarn__synced_span *span) {
  while (span->uses != NULL)
    remove_use(spans, &span->uses);
}

static void free_spans(tarn__synced_spans *spans, size_t count) {
  for (; count > 0; count--) {
    tarn__synced_span *span = take_span(spans);
    tarn__host_free(span, sizeof *span);
  }
}

static void free_uses(tarn__synced_spans *spans, size_t count) {
  for (; count > 0; count--) {
    tarn__synced_use *use = take_use(spans);
    tarn__host_free(use, sizeof *use);
  }
}

// The fewest that a reservation left over.
static void note_left(size_t *io_least, size_t spare, size_t wanted) {
  size_t left = spare > wanted ? spare - wanted : 0;
  if (left < *io_least) *io_least = left;
}

static size_t beyond_spares(size_t count) {
  return count > SPARES ? count - SPARES : 0;
}

static void keep_books(tarn__synced_spans *spans, size_t wanted_spans,
                       size_t wanted_uses) {
  note_left(&spans->idle_spans, spans->spare_span_count, wanted_spans);
  note_left(&spans->idle_uses, spans->spare_use_count, wanted_uses);
  size_t period = PERIOD + spans->count + spans->spare_span_count;
  if (++spans->reservations < period) return;
  free_spans(spans, beyond_spares(spans->idle_spans));
  free_uses(spans, beyond_spares(spans->idle_uses));
  spans->reservations = 0;
  spans->idle_spans = SIZE_MAX;
  spans->idle_uses = SIZE_MAX;
}

static void give_surplus_back(tarn__synced_spans *spans) {
  size_t most = MOST_SPARES + spans->count;
  size_t most_uses = USES_FOR_EACH * most;
  if (spans->spare_span_count > most) {
    free_spans(spans, spans->spare_span_count - most);
  }
  if (spans->spare_use_count > most_uses) {
    free_uses(spans, spans->spare_use_count - most_uses);
  }
}

static bool stock_spans(tarn__synced_spans *spans, size_t wanted) {
  while (spans->spare_span_count < wanted) {
    tarn__synced_span *span = tarn__host_alloc(sizeof *span);
    if (span == NULL) return false;
    drop_span(spans, span);
  }
  return true;
}

static bool stock_uses(tarn__synced_spans *spans, size_t wanted) {
  while (spans->spare_use_count < wanted) {
    tarn__synced_use *use = tarn__host_alloc(sizeof *use);
    if (use == NULL) return false;
    drop_use(spans, use);
  }
  return true;
}

// --- the tree --------------------------------------------------------------

// xorshift64: any numbers will do that have nothing to do with the ranges.
static uint32_t next_priority(tarn__synced_spans *spans) {
  spans->random ^= spans->random << 13;
  spans->random ^= spans->random >> 7;
  spans->random ^= spans->random << 17;
  return (uint32_t)(spans->random >> 32);
}

// What leads to |span|: its parent's pointer, or the root.
static tarn__synced_span **link_to(tarn__synced_spans *spans,
                                   const tarn__synced_span *span) {
  tarn__synced_span *parent = span->parent;
  if (parent == NULL) return &spans->root;
  return parent->left == span ? &parent->left : &parent->right;
}

// Puts |span| where its parent is, and the parent below it.
//
//        (p)              (s)            (s)               (p)
//       /   \     ──►    /   \    and   /   \     ──►     /   \         .
//     (s)    c          a    (p)       (p)   c           a    (s)
//    /   \                  /   \     /   \                  /   \      .
//   a     b                b     c   a     b                b     c
static void rotate_up(tarn__synced_spans *spans, tarn__synced_span *span) {
  tarn__synced_span *parent = span->parent;
  assert(parent != NULL);
  bool is_left = parent->left == span;
  tarn__synced_span *middle = is_left ? span->right : span->left;
  *link_to(spans, parent) = span;
  span->parent = parent->parent;
  parent->parent = span;
  if (middle != NULL) middle->parent = parent;
  if (is_left) {
    parent->left = middle;
    span->right = parent;
  } else {
    parent->right = middle;
    span->left = parent;
  }
}

// Behind |place|, in the list and in the tree. Where |place| has spans to its
// right, the next one is the leftmost of them and has none to its left.
static void insert_behind(tarn__synced_spans *spans, tarn__synced_span *place,
                          tarn__synced_span *span) {
  span->prev = place;
  span->next = place->next;
  if (span->next != NULL) span->next->prev = span;
  place->next = span;
  tarn__synced_span *parent = place->right == NULL ? place : span->next;
  assert(parent != NULL);
  span->parent = parent;
  if (parent == place) {
    parent->right = span;
  } else {
    parent->left = span;
  }
  while (span->parent != NULL && span->parent->priority < span->priority)
    rotate_up(spans, span);
  spans->count++;
}

static void remove_span(tarn__synced_spans *spans, tarn__synced_span *span) {
  while (span->left != NULL && span->right != NULL) {
    bool left = span->left->priority > span->right->priority;
    rotate_up(spans, left ? span->left : span->right);
  }
  tarn__synced_span *child = span->left != NULL ? span->left : span->right;
  *link_to(spans, span) = child;
  if (child != NULL) child->parent = span->parent;
  assert(span->prev != NULL);
  span->prev->next = span->next;
  if (span->next != NULL) span->next->prev = span->prev;
  if (spans->recent == span) spans->recent = span->prev;
  spans->count--;
}

// --- from the first to the last --------------------------------------------

void tarn__spans_init(tarn__synced_spans *spans, size_t size) {
  *spans = (tarn__synced_spans){.size = size,
                                .random = 0x9e3779b97f4a7c15,
                                .idle_spans = SIZE_MAX,
                                .idle_uses = SIZE_MAX};
  if (size == 0) return;
  spans->whole.end = size;
  spans->whole.priority = next_priority(spans);
  spans->root = &spans->whole;
  spans->first = &spans->whole;
  spans->count = 1;
}

void tarn__spans_deinit(tarn__synced_spans *spans) {
  tarn__synced_span *next = NULL;
  for (tarn__synced_span *span = spans->first; span != NULL; span = next) {
    next = span->next;
    remove_uses(spans, span);
    if (span != &spans->whole) tarn__host_free(span, sizeof *span);
  }
  free_spans(spans, spans->spare_span_count);
  free_uses(spans, spans->spare_use_count);
  *spans = (tarn__synced_spans){.size = 0};
}

static bool holds(const tarn__synced_span *span, size_t offset) {
  return span->start <= offset && offset < span->end;
}

// Most often it is the one that was found last, or beside it.
static tarn__synced_span *find_recent(const tarn__synced_spans *spans,
                                      size_t offset) {
  tarn__synced_span *span = spans->recent;
  if (span != NULL && !holds(span, offset)) {
    span = offset < span->start ? span->prev : span->next;
  }
  return span != NULL && holds(span, offset) ? span : NULL;
}

tarn__synced_span *tarn__spans_find(const tarn__synced_spans *spans,
                                    size_t offset) {
  assert(offset < spans->size);
  tarn__synced_span *span = find_recent(spans, offset);
  if (span != NULL) return span;
  span = spans->root;
  for (;;) {
    assert(span != NULL);
    if (offset < span->start) {
      span = span->left;
    } else if (offset >= span->end) {
      span = span->right;
    } else {
      ((tarn__synced_spans *)(uintptr_t)spans)->recent =
          span;  // a hint, no more
      return span;
    }
  }
}

// --- cuts ------------------------------------------------------------------

static size_t count_uses(const tarn__synced_span *span) {
  size_t count = 0;
  for (const tarn__synced_use *use = span->uses; use != NULL; use = use->next)
    count++;
  return count;
}

// Adds what a cut at |offset| in |span| takes.
static bool add_cut(const tarn__synced_span *span, size_t offset,
                    size_t *io_spans, size_t *io_uses) {
  if (offset == span->start || offset == span->end) return true;
  ++*io_spans;
  return tarn_size_add(*io_uses, count_uses(span), io_uses);
}

// What the range takes: nodes for both cuts, and |uses| in each of its spans.
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
    return tarn__fail(TARN_E_NOMEM, "synced: the uses of %zu ranges",
                      spans->count);
  }
  keep_books(spans, wanted_spans, wanted_uses);
  bool enough =
      stock_spans(spans, wanted_spans) && stock_uses(spans, wanted_uses);
  return enough ? TARN_OK : TARN_E_NOMEM;
}

// Makes a span begin at |offset|, which is in |span|, and returns it.
static tarn__synced_span *cut_at(tarn__synced_spans *spans,
                                 tarn__synced_span *span, size_t offset) {
  if (offset == span->start) return span;
  tarn__synced_span *right = take_span(spans);
  *right = (tarn__synced_span){.start = offset,
                               .end = span->end,
                               .priority = next_priority(spans),
                               .readers = span->readers,
                               .writer = span->writer,
                               .valid = span->valid,
                               .written = span->written};
  span->end = offset;
  for (const tarn__synced_use *use = span->uses; use != NULL; use = use->next)
    add_use(spans, right, *use);
  insert_behind(spans, span, right);
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

static bool has_use(const tarn__synced_span *span,
                    const tarn__synced_use *wanted) {
  const tarn__synced_use *use = span->uses;
  while (use != NULL &&
         !(use->timeline == wanted->timeline && use->number == wanted->number &&
           use->side == wanted->side && use->writes == wanted->writes))
    use = use->next;
  return use != NULL;
}

// No use is there twice: as many, and each of them there, is the same set.
static bool have_same_uses(const tarn__synced_span *a,
                           const tarn__synced_span *b) {
  if (count_uses(a) != count_uses(b)) return false;
  const tarn__synced_use *use = a->uses;
  while (use != NULL && has_use(b, use))
    use = use->next;
  return use == NULL;
}

static bool are_alike(const tarn__synced_span *a, const tarn__synced_span *b) {
  return a->valid == b->valid && a->written == b->written &&
         a->readers == b->readers && a->writer == b->writer &&
         have_same_uses(a, b);
}

void tarn__spans_join(tarn__synced_spans *spans, size_t start, size_t end) {
  if (spans->count <= 1 || start >= end) return;
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
    drop_span(spans, next);
  }
  give_surplus_back(spans);
}

// --- uses ------------------------------------------------------------------

static bool is_same_work(const tarn__synced_use *a, const tarn__synced_use *b) {
  return a->timeline == b->timeline && a->side == b->side &&
         a->writes == b->writes &&
         (a->timeline != NULL || a->number == b->number);
}

void tarn__span_use(tarn__synced_spans *spans, tarn__synced_span *span,
                    tarn__synced_use use) {
  tarn__synced_use *known = span->uses;
  while (known != NULL && !is_same_work(known, &use))
    known = known->next;
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
