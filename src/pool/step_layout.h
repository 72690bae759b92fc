// step_layout.h - the places of a step's blocks, in memory that is kept for
// them.
//
// A step that the recorder has found to repeat is laid out once. From then on
// an expected request gets the place that is kept for it, without a search, a
// cut or a join:
//
//   events   a+ b+ b- c+ a- c- │ a+ ...
//                 ▲ at                          (steps.h: the cursor)
//   ground  [ a     | b        ]
//           [       | c   |    ]       b and c are never there together
//
// A pool may know several steps, of which it does one at a time. Their layouts
// lie over each other in one contiguous part of the strategy's memory, their
// ground:
//
//   ground  [ a     | b        ]       events a+ b+ b- c+ a- c-
//           [ d  | e       | f ]       events d+ e+ f+ f- d- e-
//
// A layout without ground is a plan: what it knows is the order of requests and
// the offset of each. With ground, each place has a piece. Ground can be given
// up at any time: what is live on it becomes blocks of the strategy, the rest
// becomes holes.
//
// All blocks of a layout belong to one stream, and are freed on it or by the
// host. The pool's lock guards layouts and ground.
#ifndef TARN_POOL_STEP_LAYOUT_H_
#define TARN_POOL_STEP_LAYOUT_H_

#include "pool/piece.h"
#include "pool/recorder.h"
#include "tarn/base.h"

// Two of them share a line of the cache.
typedef struct tarn__pool_step_event {
  size_t size;      // as asked for, of requests
  uint64_t serial;  // of the stream; of a free with the bits below
  tarn__pool_piece *piece;
  uint32_t align;  // as asked for, or TARN__STEP_BLOCKED
  uint16_t tag;
  bool is_plain;  // a request of the host's, of any alignment, untagged, that
                  // is not blocked
} tarn__pool_step_event;

// No request has that alignment.
#define TARN__STEP_BLOCKED UINT32_MAX

// No stream has them. The second: the place is blocked, and its free is none
// that the step expects.
#define TARN__STEP_FREE (UINT64_C(1) << 63)
#define TARN__STEP_BARRED (UINT64_C(1) << 62)

static inline bool tarn__step_is_free(const tarn__pool_step_event *event) {
  return (event->serial & TARN__STEP_FREE) != 0;
}

typedef struct tarn__pool_step_place {
  size_t offset;
  size_t size;   // with padding
  size_t reach;  // the highest end of this place and all before it
  size_t requested;
  tarn_tag tag;
  uint32_t align;    // as asked for
  uint32_t request;  // its event
  uint32_t release;  // likewise
  bool lost;         // another thread frees it, at any time
  bool across;       // it lives across the end of the step
} tarn__pool_step_place;

typedef struct tarn__pool_steps tarn__pool_steps;

// Memory of a strategy on which layouts lie.
typedef struct tarn__pool_step_ground {
  tarn__pool_strategy *owner;  // NULL: there is none
  void *home;                  // the owner's own
  uint64_t serial;
  tarn_addr address;
  size_t size;
  size_t padding;  // behind each piece
  size_t most;     // pieces that may be live on it at once
  size_t room;     // strangers at most
  size_t blocks;   // pieces that are live, as far as events are counted
  // Pieces that are live and that the present layout does not expect to be
  // live, by address: strangers. While the ground is given up, all that are
  // live. Room for |most|.
  tarn__pool_piece **strangers;
  size_t count;
} tarn__pool_step_ground;

typedef struct tarn__pool_step_layout {
  tarn__pool_steps *steps;  // among which it is
  uint64_t serial;
  size_t size;
  size_t align;
  size_t count;                   // of the places
  tarn__pool_step_place *places;  // by offset
  tarn__pool_piece **pieces;      // of the places; NULL: it has no ground
  tarn__pool_step_event
      *events;         // a step, and behind it an event that never occurs
  uint32_t *place_of;  // by event
  size_t event_count;
  size_t first;         // the first request among the events
  size_t across;        // blocks that live across the end of the step
  size_t across_bytes;  // of them
  size_t blocked;       // places that strangers take up
  uint64_t digest;      // of what it was planned from
  uint64_t rounds;      // complete steps so far
  uint64_t kept_at;     // of them, when another was turned away for it
} tarn__pool_step_layout;

extern const tarn__pool_step_event tarn__never_comes;

typedef struct tarn__pool_steps_known {
  tarn__pool_step_layout *const *list;
  size_t count;
} tarn__pool_steps_known;

// The layout of the step that the recorder has just heard: one of |known| if
// that is the same, else a new one, without ground.
//
// Cost:         of tarn__step_offsets for a new one, else linear.
// Lifetime:     a new one's: tarn__step_layout_forget.
// TARN_FULL     too little of it can be laid out.
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status tarn__step_layout_make(
    const tarn_pool *pool, const tarn__pool_recorder *recorder, size_t granule,
    const tarn__pool_steps_known *known, tarn__pool_step_layout **out_layout);

// Frees the host memory of a layout without ground; NULL is allowed.
void tarn__step_layout_forget(tarn__pool_step_layout *layout);

// Puts a piece on each place, on ground that is large enough. False: no host
// memory.
TARN_MUST_CHECK bool tarn__step_layout_dress(
    tarn_pool *pool, tarn__pool_step_layout *layout,
    const tarn__pool_step_ground *ground);

// Takes the pieces away after the ground was given up: those that are live are
// the strategy's own.
void tarn__step_layout_undress(tarn_pool *pool, tarn__pool_step_layout *layout);

// Whether event |at|, a request, is this one, blocked or not.
bool tarn__step_layout_matches(const tarn__pool_step_layout *layout,
                               const tarn__pool_step_event *at,
                               const tarn__pool_note *what);

// The place of the event.
static inline tarn__pool_step_place *tarn__step_place_of(
    const tarn__pool_step_layout *layout, const tarn__pool_step_event *at) {
  return &layout->places[layout->place_of[at - layout->events]];
}

static inline bool tarn__step_place_is_plain(
    const tarn__pool_step_layout *layout, const tarn__pool_step_place *place) {
  return layout->serial == 0 && place->align == 0 && place->tag == 0;
}

static inline const tarn__pool_step_event *tarn__step_layout_end(
    const tarn__pool_step_layout *layout) {
  return layout->events + layout->event_count;
}

// The pieces that begin below |address|.
size_t tarn__step_layout_below(const tarn__pool_step_layout *layout,
                               tarn_addr address);

// The piece of the live block that contains |address|, or NULL.
tarn__pool_piece *tarn__step_layout_around(const tarn__pool_step_layout *layout,
                                           tarn_addr address);

// The piece that starts at |address|: the live one, or any; NULL: none does.
tarn__pool_piece *tarn__step_layout_at(const tarn__pool_step_layout *layout,
                                       tarn_addr address);

// Whether the step has the place of |piece| live just before |at|.
bool tarn__step_layout_expects(const tarn__pool_step_layout *layout,
                               const tarn__pool_step_event *at,
                               const tarn__pool_piece *piece);

// Whether a request is what |e| expects. An invalid request is never expected.
// Most requests are plain, and that saves three comparisons.
static inline bool tarn__step_is(const tarn__pool_step_event *e,
                                 const tarn__pool_note *what) {
  if (e->size != what->size) return false;
  bool plain = what->serial == 0 && what->align == 0 && what->tag == 0;
  return plain ? e->is_plain
               : e->serial == what->serial && e->align == what->align &&
                     e->tag == what->tag;
}

// --- strangers --------------------------------------------------------------
//
// Blocks that are live on the ground although the present layout has other
// blocks there, or none: blocks of another layout that lived on, and blocks
// that are freed later than planned. As long as they are live, places under
// them are blocked: a request that is expected there is served beside the
// ground. So the events of a blocked place match nothing.
//
//   ground  [ a     | b  (live)  ]    of the step before
//           [ d  | e       | f   ]    d is free to use, e and f are blocked

// Whether there is room for |more| of them.
static inline bool tarn__strangers_fit(const tarn__pool_step_ground *ground,
                                       size_t more) {
  return more <= ground->room - ground->count;
}

// Adds |piece|, which is live on |ground| and no stranger, and blocks places of
// |layout|, the present one or NULL. There is room.
void tarn__strangers_add(tarn__pool_step_ground *ground,
                         tarn__pool_step_layout *layout,
                         tarn__pool_piece *piece);

// Takes |piece| out, which is not live any more.
void tarn__strangers_remove(tarn__pool_step_ground *ground,
                            tarn__pool_step_layout *layout,
                            tarn__pool_piece *piece);

// The present layout is |to| after |from|; NULL: none. What is live of |from|
// becomes a stranger. False: there is no room for so many, and nothing has
// changed.
bool tarn__strangers_exchange(tarn__pool_step_ground *ground,
                              tarn__pool_step_layout *from,
                              tarn__pool_step_layout *to);

// Checks that just the places under strangers are blocked, and their order.
TARN_MUST_CHECK tarn_status tarn__strangers_check(
    const tarn__pool_step_ground *ground, const tarn__pool_step_layout *layout);

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
  // The caller's own: another thread frees it, and that was the how manieth of
  // those.
  bool is_lost;
  uint32_t lost;
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
