// spans.h - a buffer cut into runs of bytes with the same past.
//
//   0            start        end                               size
//   ├────────────┼────────────┼─────────┼────────────────────────┤
//     span         span         span      span
//     valid: host  valid: 1,2   ...
//
// Invariants: spans cover [0, size) without gaps, in order; none is empty (a
// buffer of 0 bytes has none); neighbours that are alike have been joined, but
// for the time between tarn__spans_cut and tarn__spans_join, and where a pin
// keeps them apart.
//
// Pins. An open access, or a transfer, needs the two places where its range
// begins and ends until it is over: without a pin two readers side by side look
// alike, and would be joined, and to cut them again takes nodes, for which an
// end cannot fail. So whoever enters itself into spans pins its range behind
// the cut, and takes the pin away before the join.
//
//   cut ──► pin ──► readers++, uses ... ──(lock left)──► unpin ──► join
//
// Cost: O(log spans) to find, cut and join at a place; the next span is one
// pointer away. No recursion. Memory is a node for each span, and spare nodes:
// no more than spans and some thousands beside, and what nobody has wanted for
// long goes.
//
// Threads: whoever has the lock of the buffer.
#ifndef TARN_SYNCED_SPANS_H_
#define TARN_SYNCED_SPANS_H_

#include <assert.h>

#include "base/range_map.h"
#include "tarn/synced.h"

typedef struct tarn__synced_timeline tarn__synced_timeline;

// Work that is not known to be over, on the memory of one side.
typedef struct tarn__synced_use {
  struct tarn__synced_use *next;
  tarn__synced_timeline
      *timeline;    // the stream that it is queued on; NULL: a thread of the
                    // library is at it, in the course of transfer |number|
  uint64_t number;  // its position in the timeline
  uint32_t side;
  bool writes;
} tarn__synced_use;

typedef struct tarn__synced_span {
  tarn__range_map_node node;
  struct tarn__synced_span *prev;  // NULL: the first
  struct tarn__synced_span *next;  // NULL: the last
  size_t end;
  uint32_t pins;              // pinned ranges that begin or end at the start
  uint32_t readers;           // open accesses that read it
  const tarn_access *writer;  // the open access that writes it; NULL: none
  uint64_t valid;             // sides whose bytes are the newest, or will be
                              // when their uses are over: bit i is side i
  bool written;               // somebody wrote it: else it is zeros, wherever
                              // it is wanted. Written and valid nowhere: lost
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
  tarn__synced_span *spare_spans;  // linked by |next|
  tarn__synced_use *spare_uses;
  size_t spare_span_count;
  size_t spare_use_count;
  size_t idle_spans;  // spare ones that no reservation has wanted ...
  size_t idle_uses;
  size_t reservations;  // ... of so many
} tarn__synced_spans;

// The span of a node, which is its first member. NULL: none.
static inline tarn__synced_span *tarn__span_of(tarn__range_map_node *node) {
  return (tarn__synced_span *)node;
}

// One span, unwritten. |spans| must stay where it is.
void tarn__spans_init(tarn__synced_spans *spans, size_t size);

// Frees all nodes; timelines of uses that are left are let go of.
void tarn__spans_deinit(tarn__synced_spans *spans);

// The span that holds |offset|, which is below the size.
tarn__synced_span *tarn__spans_find(const tarn__synced_spans *spans,
                                    size_t offset);

// Makes sure that the calls below that need nodes have them, until the lock is
// left: a cut at |start| and one at |end|, and |uses| new uses in each span
// between them. start <= end <= size. No memory is taken where the ends are
// cuts already and |uses| is 0, nor where there are nodes to spare.
//
// TARN_E_NOMEM  nothing has changed.
TARN_MUST_CHECK tarn_status tarn__spans_reserve(tarn__synced_spans *spans,
                                                size_t start, size_t end,
                                                size_t uses);

// Makes spans begin at |start| and at |end|, and returns the one at |start|.
// The two halves of a cut span have the same past: uses are copied.
// 0 <= start < end <= size; tarn__spans_reserve came before.
tarn__synced_span *tarn__spans_cut(tarn__synced_spans *spans, size_t start,
                                   size_t end);

// Keeps the places where |first| begins and |last| ends from being joined away.
// Pins are counted.
static inline void tarn__span_pin(tarn__synced_span *first,
                                  tarn__synced_span *last) {
  first->pins++;
  if (last->next != NULL) last->next->pins++;
}

// Takes one pin away, from spans that begin and end where it was put.
static inline void tarn__span_unpin(tarn__synced_span *first,
                                    tarn__synced_span *last) {
  assert(first->pins > 0 && (last->next == NULL || last->next->pins > 0));
  first->pins--;
  if (last->next != NULL) last->next->pins--;
}

// Joins neighbours that are alike, from the one that ends at |start| to the one
// that begins at |end|: same fields, the same uses in any order, and no pin
// between them.
void tarn__spans_join(tarn__synced_spans *spans, size_t start, size_t end);

// Adds a use. One that is there already, of the same timeline, side and way, is
// moved on to |use.number| instead if that is later; of no timeline, one that
// is the same. Else it takes a node which was reserved, and counts in its
// timeline.
void tarn__span_use(tarn__synced_spans *spans, tarn__synced_span *span,
                    tarn__synced_use use);

// Takes out the uses of |span| for which |over| says so. A timeline goes with
// its last use if nobody holds it.
typedef bool tarn__synced_use_is_over(const tarn__synced_use *use,
                                      void *context);
void tarn__span_forget(tarn__synced_spans *spans, tarn__synced_span *span,
                       tarn__synced_use_is_over *over, void *context);

// Walks everything; the text of what is wrong, or NULL. For tests.
const char *tarn__spans_check(const tarn__synced_spans *spans);

#endif  // TARN_SYNCED_SPANS_H_
