// step_layout.h - memory in which the blocks of one step have fixed places.
//
// A step that the recorder has found to repeat is laid out once, in one
// stretch of the strategy's memory. From then on a request that comes when it
// is expected gets the place that is kept for it, and nothing is searched, cut
// or joined:
//
//   events   a+ b+ b- c+ a- c- │ a+ ...
//                 ▲ at
//   memory  [ a     | b        ]
//           [       | c   |    ]       b and c are never there together
//
// A request that does not come as expected is served by the strategy, and the
// step goes on where it was left when what was expected comes. So at any time
// the live blocks are among those that the step would have there, and
// none of these overlap. A free may come early, too: then the step does not
// wait for it.
//
// A layout can be dropped at any time: its live blocks become blocks of the
// strategy, the rest becomes a hole.
//
// All blocks of a layout are of one stream, and are freed on it or by the host.
// Guarded by the pool's lock.
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
  tarn__pool_step_event *events;  // a step, and one behind it that never comes
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
  tarn__pool_step_layout *layout;  // NULL: none is set up, and |at| never comes
} tarn__pool_step_cursor;

extern const tarn__pool_step_event tarn__never_comes;

// What stands at the start of the layout's piece at |address|: the one that is
// out, or was last; NULL if none starts there.
tarn__pool_piece *tarn__step_layout_find(const tarn__pool_step_layout *layout,
                                         tarn_addr address);

// The piece of the live block that contains |address|, or NULL.
tarn__pool_piece *tarn__step_layout_around(const tarn__pool_step_layout *layout,
                                           tarn_addr address);

// Frees what a layout has on the host, where nothing else is to be done; NULL:
// nothing.
void tarn__step_layout_forget(tarn__pool_step_layout *layout);

// Adds the pieces that are not out to |*idle|, and checks the invariants.
TARN_MUST_CHECK tarn_status
tarn__step_layout_check(const tarn__pool_step_cursor *cursor, size_t *idle);

// Whether |piece| is one of the layout's.
static inline bool tarn__step_layout_has(const tarn__pool_step_layout *layout,
                                         const tarn__pool_piece *piece) {
  return layout != NULL && piece->home == layout;
}

// Lays out the step that the recorder has just heard, in memory of the present
// strategy, which may take the lock away meanwhile. If it cannot be had, or the
// step has too little that can be laid out, nothing changes.
void tarn__step_layout_install(tarn_pool *pool);

// Makes the pieces that are out the strategy's own, and the layout is gone.
// The strategy's memory is asked for nothing, and this cannot fail. Where there
// is none, what was learned towards one is forgotten all the same.
void tarn__step_layout_drop(tarn_pool *pool);

// Counts the events served since the last time.
void tarn__step_cursor_settle(tarn_pool *pool);

// If the step is at its end, begins it anew. False: it is not.
bool tarn__step_cursor_turn(tarn__pool_step_cursor *cursor);

// What is expected next and needs no doing, since it came early, is passed
// over. All served events are counted.
void tarn__step_cursor_skip(tarn__pool_step_cursor *cursor);

// A request came that was not expected. Too many of them: the program does
// something else now, and the layout is dropped.
void tarn__step_cursor_miss(tarn_pool *pool);

// What starts at |address|: the piece that is out, or the last one known of.
tarn__pool_piece *tarn__front_at(const tarn_pool *pool, tarn_addr address);

// --- step offsets -----------------------------------------------------------
//
// Where the blocks of a step can lie when all of them are known.
//
// A step is a row of events that comes again and again. A block is there from
// one event to another; one that is freed before the place at which it was
// taken is there across the end of the step. Two that are there at the same
// time must not share a byte.

typedef struct tarn__pool_lifetime {
  size_t size;
  size_t align;   // a power of two
  uint32_t from;  // the event that takes it
  uint32_t to;    // the event that frees it; another than |from|
  size_t offset;  // the answer
} tarn__pool_lifetime;

// Chooses the offsets of |count| spans so that the end of the highest,
// |*out_size|, is as low as the planner's quick ways make it (plan/quick.h):
// the pool's lock is held meanwhile, so nothing is searched for.
//
// Cost: of tarn__plan_quick in time, O(count) in host memory.
// TARN_E_NOMEM  no host memory.
// TARN_FULL     they need more than can be addressed.
TARN_MUST_CHECK tarn_status tarn__step_offsets(tarn__pool_lifetime *spans,
                                               size_t count, size_t *out_size);

#endif  // TARN_POOL_STEP_LAYOUT_H_
