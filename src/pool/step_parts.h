// step_parts.h - for the files that steps are made of.
//
//   steps.c ─► step_ground.c ─► step_cursor.c ─► step_strangers.c
//      └─────► step_layout.c ─► step_offsets.c
#ifndef TARN_POOL_STEP_PARTS_H_
#define TARN_POOL_STEP_PARTS_H_

#include "pool/steps.h"

static inline void tarn__steps_put_cursor(tarn__pool_step_cursor *cursor,
                                          const tarn__pool_step_event *at) {
  cursor->at = cursor->settled = at;
}

// A free that came already, or whose block is not the one that is planned
// there.
static inline bool tarn__step_is_over(const tarn__pool_step_event *e) {
  return tarn__step_is_free(e) && (!e->piece->live || e->piece->stranger);
}

// Blocks that are live and that the present step expects to be.
static inline size_t tarn__steps_count_expected(const tarn__pool_steps *steps) {
  return steps->ground.blocks - steps->ground.count;
}

// The events of the longest known step.
static inline size_t tarn__steps_longest(const tarn__pool_steps *steps) {
  size_t longest = 0;
  for (size_t i = 0; i < steps->count; i++) {
    size_t count = steps->layouts[i]->event_count;
    if (count > longest) longest = count;
  }
  return longest;
}

// Whether a request of the step has been served.
static inline bool tarn__steps_have_begun(
    const tarn__pool_step_cursor *cursor) {
  return cursor->at > cursor->layout->events + cursor->layout->first;
}

// --- step_cursor.c ----------------------------------------------------------

void tarn__steps_move_to_front(tarn__pool_steps *steps,
                               tarn__pool_step_layout *layout);

// Follows none, and records anew. |begins|: here a step may begin.
void tarn__steps_listen(tarn__pool_steps *steps, bool begins);

// Follows |layout| from |at| on; all is counted. False: too much is live.
bool tarn__steps_follow(tarn__pool_steps *steps, tarn__pool_step_layout *layout,
                        const tarn__pool_step_event *at);

// --- step_ground.c ----------------------------------------------------------

void tarn__steps_free_ground(tarn__pool_step_ground *ground);

// Gives the ground up. Cannot fail.
void tarn__steps_give_up(tarn_pool *pool, tarn__pool_steps *steps);

// Follows none; all is counted. |begins|: here a step may begin.
void tarn__steps_stop(tarn_pool *pool, tarn__pool_steps *steps, bool begins);

// Sees to it that |layout| has ground. |may_ask|: the strategy may be asked for
// it, which may release the lock.
//
// TARN_PENDING  not now.
// TARN_FULL     there is no memory for it.
// TARN_E_NOMEM  no host memory.
// TARN_E_STATE  others have gone on meanwhile, and may have changed all.
TARN_MUST_CHECK tarn_status tarn__steps_stand(tarn_pool *pool,
                                              tarn__pool_steps *steps,
                                              tarn__pool_step_layout *layout,
                                              bool may_ask);

#endif  // TARN_POOL_STEP_PARTS_H_
