// The cursor: what it has passed is counted, and how it goes from one layout to
// another.
#include <string.h>

#include "pool/statistics.h"
#include "pool/step_parts.h"

// --- counting --------------------------------------------------------------

// Frees that float are counted when they come.
static void run(tarn_pool *pool, tarn__pool_steps *steps,
                const tarn__pool_step_event *from,
                const tarn__pool_step_event *to) {
  tarn_pool_stats *stats = &pool->stats;
  bool counted = tarn__front_counts(pool, TARN_COUNT_TAGS);
  for (; from < to; from++) {
    if (!tarn__step_is_free(from)) {
      from->piece->counted = counted;
      tarn__front_count_live(pool, from->piece, false);
      stats->allocs++;
      stats->hits++;
      steps->ground.blocks++;
    } else {
      tarn__front_count_dead(pool, from->piece);
      from->piece->owner->live--;
      stats->frees++;
      steps->ground.blocks--;
    }
  }
}

// Of whole steps only the first can raise a peak.
void tarn__steps_settle(tarn_pool *pool, tarn__pool_steps *steps) {
  tarn__pool_step_cursor *cursor = &steps->cursor;
  const tarn__pool_step_layout *layout = cursor->layout;
  if (layout == NULL) return;
  const tarn__pool_step_event *begin = layout->events;
  const tarn__pool_step_event *end = tarn__step_layout_end(layout);
  if (cursor->turns > 0) {
    run(pool, steps, cursor->settled, end);
    cursor->settled = begin;
    cursor->turns--;
  }
  if (cursor->turns > 0) {
    run(pool, steps, begin, end);
    uint64_t more = (cursor->turns - 1) * layout->count;
    pool->stats.allocs += more;
    pool->stats.hits += more;
    pool->stats.frees += more;
    cursor->turns = 0;
  }
  run(pool, steps, cursor->settled, cursor->at);
  cursor->settled = cursor->at;
}

// --- the cursor ------------------------------------------------------------

bool tarn__steps_turn(tarn__pool_steps *steps) {
  tarn__pool_step_cursor *cursor = &steps->cursor;
  tarn__pool_step_layout *layout = cursor->layout;
  if (layout == NULL || cursor->at != tarn__step_layout_end(layout)) {
    return false;
  }
  cursor->at = layout->events;
  cursor->turns++;
  cursor->missed = 0;
  layout->rounds++;
  steps->rounds++;
  tarn__recorder_earn(&steps->recorder, layout->event_count);
  return true;
}

void tarn__steps_skip(tarn_pool *pool, tarn__pool_steps *steps) {
  tarn__pool_step_cursor *cursor = &steps->cursor;
  tarn__steps_settle(pool, steps);
  if (cursor->layout == NULL) return;
  for (;;) {
    if (tarn__steps_turn(steps)) {  // nothing is left to count
      tarn__steps_put_cursor(cursor, cursor->at);
      cursor->turns = 0;
    }
    if (!tarn__step_is_over(cursor->at)) return;
    tarn__steps_put_cursor(cursor, cursor->at + 1);
  }
}

// --- one layout after another ----------------------------------------------

void tarn__steps_move_to_front(tarn__pool_steps *steps,
                               tarn__pool_step_layout *layout) {
  size_t i = 0;
  while (steps->layouts[i] != layout)
    i++;
  memmove(steps->layouts + 1, steps->layouts, i * sizeof *steps->layouts);
  steps->layouts[0] = layout;
}

// |begins|: here a step may begin.
void tarn__steps_listen(tarn__pool_steps *steps, bool begins) {
  steps->cursor = (tarn__pool_step_cursor){.at = &tarn__never_comes,
                                           .settled = &tarn__never_comes};
  steps->waited = begins ? 0 : TARN__STEPS_BETWEEN;
  tarn__recorder_restart(&steps->recorder, steps->recorder.evidence);
  if (begins) {
    tarn__recorder_mark(&steps->recorder, steps->base,
                        tarn__steps_longest(steps));
  }
}

// Follows |layout| from |at| on. Settled.
bool tarn__steps_follow(tarn__pool_steps *steps, tarn__pool_step_layout *layout,
                        const tarn__pool_step_event *at) {
  if (!tarn__strangers_exchange(&steps->ground, steps->cursor.layout, layout)) {
    return false;
  }
  steps->cursor = (tarn__pool_step_cursor){.layout = layout};
  tarn__steps_put_cursor(&steps->cursor, at);
  tarn__steps_move_to_front(steps, layout);
  return true;
}
