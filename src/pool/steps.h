// steps.h - the steps that a pool has learned, and where it is in them.
//
//   a request ─► is it what the cursor expects? ─► its place
//                  │ no
//                  ├─ it is, behind frees that came early or that are late
//                  ├─ a step begins with it ─────────┐
//                  ├─ another step goes on with it ──┤ the layouts change
//                  └─ none of that: it is served beside the ground
//
//   waiting ── a step begins ──► following ── its end ──► following
//      ▲                             │
//      └── requests that fit nothing ┘
//
// While no step is followed the recorder listens: the program may be doing a
// step that is not known yet. Up to TARN__STEP_LAYOUTS are kept. They share one
// ground, as large as the largest needs.
//
// The live blocks on the ground are those that the present step has there at
// the cursor, and strangers (step_layout.h). All that is not expected takes the
// lock and settles: so the sums are as of the cursor whenever the layout
// changes.
#ifndef TARN_POOL_STEPS_H_
#define TARN_POOL_STEPS_H_

#include "pool/step_layout.h"

enum {
  TARN__STEP_LAYOUTS = 8,
  // Requests behind the end of a step that may lie between two steps.
  TARN__STEPS_BETWEEN = 8,
};

// The position in the step. Events that were served are counted later, all at
// once: tarn__steps_settle.
typedef struct tarn__pool_step_cursor {
  const tarn__pool_step_event *at;       // the event expected next; never NULL
  const tarn__pool_step_event *settled;  // events served from here on ...
  uint64_t turns;  // ... and through the end so often is not counted
  size_t missed;   // requests that were not expected, of this step
  tarn__pool_step_layout
      *layout;  // that is followed; NULL: none is, and |at| never occurs
} tarn__pool_step_cursor;

struct tarn__pool_steps {
  tarn__pool_step_cursor cursor;
  tarn__pool_recorder recorder;
  tarn__pool_step_layout *layouts[TARN__STEP_LAYOUTS];  // the latest first
  size_t count;
  tarn__pool_step_ground ground;
  uint64_t changes;  // of layouts and ground: what released the lock compares
  uint64_t rounds;   // complete steps on this ground
  size_t base;       // live bytes of the pool where steps begin
  size_t least;      // likewise, since event |window| of the recorder
  uint64_t window;
  uint64_t waited;    // requests since no step is followed
  uint32_t let_pass;  // beginnings of known steps that are only listened to
  uint32_t broken;    // steps that did not go on as any that is known
  uint32_t put_off;   // beginnings to let pass before ground is asked for
  uint32_t gave_up;   // that many times it was given up soon, in a row
};

void tarn__steps_init(tarn__pool_steps *steps);

// Frees the host memory, without regard to what is out.
void tarn__steps_deinit(tarn__pool_steps *steps);

static inline bool tarn__steps_are_settled(const tarn__pool_steps *steps) {
  return steps->cursor.at == steps->cursor.settled && steps->cursor.turns == 0;
}

// Counts the events served since the last time.
void tarn__steps_settle(tarn_pool *pool, tarn__pool_steps *steps);

// If the step is at its end, begins it anew. False: it is not.
bool tarn__steps_turn(tarn__pool_steps *steps);

// Skips expected frees that came early. Counts all served events.
void tarn__steps_skip(tarn_pool *pool, tarn__pool_steps *steps);

// A request that is not what the cursor expects: finds it in the steps, may
// learn one, and puts the cursor there. Returns |steps|, or the thread's own
// ones, which are followed from now on. NULL: it is to be served beside the
// ground. |may_ask|: the strategy may release the lock to ask the device.
tarn__pool_steps *tarn__steps_seek(tarn_pool *pool, tarn__pool_steps *steps,
                                   const tarn__pool_note *what, bool may_ask);

// A request was served beside the ground. Too many of them: the program does
// something else now.
void tarn__steps_miss(tarn_pool *pool, tarn__pool_steps *steps);

// Gives the ground up: live pieces become the strategy's own. The strategy
// needs no memory for that, and this cannot fail. What was learned is kept.
void tarn__steps_park(tarn_pool *pool);

// The step of |piece|, which is planned, will not come again like that: gives
// the ground up, and forgets its layout.
void tarn__steps_break(tarn_pool *pool, const tarn__pool_piece *piece);

// Gives the ground up, and forgets all that was learned; the second of one
// thread.
void tarn__steps_forget(tarn_pool *pool);
void tarn__steps_forget_own(tarn_pool *pool, tarn__pool_steps *steps);

// --- finding (step_find.c) --------------------------------------------------

// The piece that starts at |address|: the live one, or the last known one.
tarn__pool_piece *tarn__front_at(const tarn_pool *pool, tarn_addr address);

// The piece of the live block on the ground that contains |address|, or NULL.
tarn__pool_piece *tarn__steps_around(const tarn_pool *pool, tarn_addr address);

// A block that was planned is freed, and not as the cursor expects; it is
// counted already.
static inline void tarn__steps_freed(tarn__pool_piece *piece) {
  const tarn__pool_step_layout *layout = piece->home;
  tarn__pool_steps *steps = layout->steps;
  steps->ground.blocks--;
  if (!piece->stranger) return;
  tarn__strangers_remove(&steps->ground, steps->cursor.layout, piece);
}

// Adds the pieces that are not out to |*idle|, and checks the invariants.
TARN_MUST_CHECK tarn_status tarn__steps_check(const tarn_pool *pool,
                                              size_t *idle);

#endif  // TARN_POOL_STEPS_H_
