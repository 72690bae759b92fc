// step_layout.h - memory in which the blocks of a step have fixed places.
//
// A step that the recorder has found to repeat is laid out once, in one
// contiguous part of the strategy's memory. From then on an expected request
// gets the place that is kept for it, without a search, a cut or a join:
//
//   events   a+ b+ b- c+ a- c- │ a+ ...
//                 ▲ at
//   memory  [ a     | b        ]
//           [       | c   |    ]       b and c are never there together
//
// An unexpected request is served by the strategy; the step continues when the
// expected event arrives. So the live blocks are always among the blocks that
// the step has at the cursor, and these do not overlap. A free may come early;
// the cursor then skips it.
//
// A layout can be dropped at any time: its live blocks become blocks of the
// strategy, the rest becomes a hole.
//
// All blocks of a layout belong to one stream, and are freed on it or by the
// host. The pool's lock guards the layout.
#ifndef TARN_POOL_STEP_LAYOUT_H_
#define TARN_POOL_STEP_LAYOUT_H_

#include "pool/piece.h"
#include "pool/recorder.h"
#include "tarn/base.h"

// Two of them share a line of the cache.
typedef struct tarn__pool_step_event {
  size_t size;      // as asked for
  uint64_t serial;  // of the stream; of a free with the bit below
  tarn__pool_piece *piece;
  uint32_t align;  // as asked for
  uint16_t tag;
  bool is_plain;  // a request of the host's, of any alignment, untagged
} tarn__pool_step_event;

// No stream has it.
#define TARN__STEP_FREE (UINT64_C(1) << 63)

static inline bool tarn__step_is_free(const tarn__pool_step_event *event) {
  return (event->serial & TARN__STEP_FREE) != 0;
}

typedef struct tarn__pool_step_layout {
  tarn__pool_strategy *owner;
  void *home;  // the owner's own
  uint64_t serial;
  tarn_addr address;
  size_t size;
  tarn__pool_piece **pieces;  // by address
  size_t count;
  tarn__pool_step_event
      *events;  // a step, and behind it an event that never occurs
  size_t event_count;
  uint64_t rounds;  // complete steps so far
} tarn__pool_step_layout;

// The position in the step. Events that were served are counted later, all at
// once: tarn__step_cursor_settle.
typedef struct tarn__pool_step_cursor {
  const tarn__pool_step_event *at;       // the event expected next; never NULL
  const tarn__pool_step_event *settled;  // events served from here on ...
  uint64_t turns;  // ... and through the end so often is not counted
  size_t missed;   // requests that were not expected, of this step
  tarn__pool_step_layout
      *layout;  // NULL: no layout is installed, and |at| never occurs
} tarn__pool_step_cursor;

extern const tarn__pool_step_event tarn__never_comes;

// The piece of the live block that contains |address|, or NULL.
tarn__pool_piece *tarn__step_layout_around(const tarn__pool_step_layout *layout,
                                           tarn_addr address);

// Frees the host memory of a layout; NULL is allowed.
void tarn__step_layout_forget(tarn__pool_step_layout *layout);

// Adds the pieces that are not out to |*idle|, and checks the invariants.
TARN_MUST_CHECK tarn_status
tarn__step_layout_check(const tarn__pool_step_cursor *cursor, size_t *idle);

// Whether |piece| belongs to the layout.
static inline bool tarn__step_layout_has(const tarn__pool_step_layout *layout,
                                         const tarn__pool_piece *piece) {
  return layout != NULL && piece->home == layout;
}

// Installs a layout for the step that the recorder has just seen, in memory of
// the present strategy, which may release the lock. If there is no memory, or
// too little of the step can be laid out, nothing changes.
void tarn__step_layout_install(tarn_pool *pool);

// Drops the layout: live pieces become the strategy's own. The strategy needs
// no memory for that, and this cannot fail. Without a layout, the recorder
// forgets what it has learned.
void tarn__step_layout_drop(tarn_pool *pool);

// Counts the events served since the last time.
void tarn__step_cursor_settle(tarn_pool *pool);

// If the step is at its end, begins it anew. False: it is not.
bool tarn__step_cursor_turn(tarn__pool_step_cursor *cursor);

// Skips expected events that occurred early. Counts all served events.
void tarn__step_cursor_skip(tarn__pool_step_cursor *cursor);

// A request came that was not expected. Too many of them: the program does
// something else now, and the layout is dropped.
void tarn__step_cursor_miss(tarn_pool *pool);

// The piece that starts at |address|: the live one, or the last known one.
tarn__pool_piece *tarn__front_at(const tarn_pool *pool, tarn_addr address);

// --- step offsets -----------------------------------------------------------
//
// Where the blocks of a step can lie when all of them are known.
//
// A step is a sequence of events that repeats. A block lives from one event to
// another. If its free stands before its request in the step, it lives across
// the end of the step. Two blocks that live at the same time must not share a
// byte.

typedef struct tarn__pool_lifetime {
  size_t size;
  size_t align;   // a power of two
  uint32_t from;  // the event that takes it
  uint32_t to;    // the event that frees it; another than |from|
  size_t offset;  // the answer
} tarn__pool_lifetime;

// Chooses the offsets of |count| spans. The end of the highest, |*out_size|, is
// as low as the planner's quick orders make it (plan/quick.h): the pool's lock
// is held, so there is no search.
//
// Cost: of tarn__plan_quick in time, O(count) in host memory.
// TARN_E_NOMEM  no host memory.
// TARN_FULL     they need more than can be addressed.
TARN_MUST_CHECK tarn_status tarn__step_offsets(tarn__pool_lifetime *spans,
                                               size_t count, size_t *out_size);

#endif  // TARN_POOL_STEP_LAYOUT_H_
