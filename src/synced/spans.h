// spans.h - a buffer as spans: runs of bytes with the same history.
//
//   0            start        end                               size
//   ├────────────┼────────────┼─────────┼────────────────────────┤
//     span         span         span      span
//     valid: host  valid: 1,2   ...
//
// Invariants: spans cover [0, size) in order, without gaps. No span is empty (a
// buffer of 0 bytes has none). Equal neighbours are joined, except between
// tarn__spans_cut and tarn__spans_join, and where a pin keeps them apart.
//
// Pins. An open access or a transfer needs the cuts at both ends of its range
// until it is over. Two adjacent readers look alike: without a pin their spans
// would be joined, and cutting them again needs nodes, but an end must not
// fail. So each access and transfer pins its range after the cut, and unpins it
// before the join.
//
//   cut ──► pin ──► readers++, uses ... ──(lock left)──► unpin ──► join
//
// Cost: O(log spans) to find, cut and join; the next span is one pointer away.
// No recursion. Memory: a node for each span, and spare nodes, at most as many
// as spans plus some thousands; long unused ones are freed.
//
// Threads: with the lock of the buffer.
#ifndef TARN_SYNCED_SPANS_H_
#define TARN_SYNCED_SPANS_H_

#include "base/range_map.h"
#include "synced/spares.h"
#include "tarn/synced.h"

typedef struct tarn__synced_timeline tarn__synced_timeline;

// Work on the memory of one side that is not known to be done.
typedef struct tarn__synced_use {
  struct tarn__synced_use *next;
  tarn__synced_timeline *timeline;  // of the stream; NULL: a thread does it,
                                    // for transfer |number|
  uint64_t number;                  // position in the timeline
  uint32_t side;
  bool writes;
} tarn__synced_use;

typedef struct tarn__synced_span {
  tarn__range_map_node node;
  struct tarn__synced_span *prev;  // NULL: the first
  struct tarn__synced_span *next;  // NULL: the last
  size_t end;
  uint32_t pins;              // pinned ranges that begin or end at the start;
                              // 0 for the first span
  uint32_t readers;           // open accesses that read it
  const tarn_access *writer;  // the open access that writes it; NULL: none
  uint64_t valid;             // bit i: side i has the newest bytes, or will
                              // have them when its uses are done
  bool written;               // false: zeros at any place. Written and valid
                              // nowhere: lost
  tarn__synced_use *uses;
} tarn__synced_span;

typedef struct tarn__synced_spans {
  tarn__range_map map;
  tarn__synced_span *first;  // NULL: size 0
  tarn__synced_span whole;   // the node of the first span, always, so that a
                             // buffer that is used whole needs no other
  size_t size;
  tarn__synced_span *recent;  // the last that was found or cut; NULL: none. A
                              // hint: tarn__spans_find sets it, const or not
  tarn__synced_spares spare_spans;
  tarn__synced_spares spare_uses;
  size_t reservations;  // in this period: see spans.c
} tarn__synced_spans;

// The span of a node, which is its first member. NULL: none.
static inline tarn__synced_span *tarn__span_of(tarn__range_map_node *node) {
  return (tarn__synced_span *)node;
}

// Makes one unwritten span. |spans| must not move.
void tarn__spans_init(tarn__synced_spans *spans, size_t size);

// Frees all nodes and releases the timelines of their uses.
void tarn__spans_deinit(tarn__synced_spans *spans);

// The span of |offset|, which is below the size.
tarn__synced_span *tarn__spans_find(const tarn__synced_spans *spans,
                                    size_t offset);

// Each span that overlaps from..to, in order; none if it is empty. Where the
// range is not cut, the first and the last span exceed it. The body must not
// remove spans.
#define tarn__spans_each(span, spans, from, to)                      \
  for (tarn__synced_span * (span) =                                  \
           (from) < (to) ? tarn__spans_find((spans), (from)) : NULL; \
       (span) != NULL && (span)->node.start < (to); (span) = (span)->next)

// Reserves nodes for cuts at |start| and |end| and for |uses| new uses in each
// span between them, until the lock is left. start <= end <= size. Allocates
// nothing if spare nodes suffice.
//
// TARN_E_NOMEM  nothing has changed.
TARN_MUST_CHECK tarn_status tarn__spans_reserve(tarn__synced_spans *spans,
                                                size_t start, size_t end,
                                                size_t uses);

// Makes spans begin at |start| and at |end|, and returns the one at |start|.
// Both halves of a cut span have the same history: uses are copied. Nodes must
// be reserved. 0 <= start < end <= size.
tarn__synced_span *tarn__spans_cut(tarn__synced_spans *spans, size_t start,
                                   size_t end);

// Keeps the cuts where |first| begins and |last| ends. Pins are counted. Where
// the buffer begins and ends there is no cut.
static inline void tarn__span_pin(tarn__synced_span *first,
                                  tarn__synced_span *last) {
  if (first->prev != NULL) first->pins++;
  if (last->next != NULL) last->next->pins++;
}

// Removes a pin, from spans with the same begin and end.
static inline void tarn__span_unpin(tarn__synced_span *first,
                                    tarn__synced_span *last) {
  assert(first->prev == NULL || first->pins > 0);
  assert(last->next == NULL || last->next->pins > 0);
  if (first->prev != NULL) first->pins--;
  if (last->next != NULL) last->next->pins--;
}

// Joins equal neighbours, from the span that ends at |start| to the span that
// begins at |end|: same fields, same uses in any order, no pin between them.
void tarn__spans_join(tarn__synced_spans *spans, size_t start, size_t end);

// Removes the writer, or a reader, and the pin from a range that was entered,
// and joins its spans.
void tarn__spans_leave(tarn__synced_spans *spans, size_t start, size_t end,
                       bool writes);

// Adds a use, with a reserved node. A use of the same timeline, side and
// |writes| takes the later number instead; without a timeline, an equal use
// stays.
void tarn__span_use(tarn__synced_spans *spans, tarn__synced_span *span,
                    tarn__synced_use use);

// Removes the uses of |span| for which |over| is true. A timeline without holds
// is freed with its last use.
typedef bool tarn__synced_use_is_over(const tarn__synced_use *use,
                                      void *context);
void tarn__span_forget(tarn__synced_spans *spans, tarn__synced_span *span,
                       tarn__synced_use_is_over *over, void *context);

// Walks the spans and returns the first error as a text, or NULL. For tests.
const char *tarn__spans_check(const tarn__synced_spans *spans);

#endif  // TARN_SYNCED_SPANS_H_
