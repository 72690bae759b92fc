// The step cursor: the event that is expected next, and the statistics of the
// events that were served.
//
// A request or a free that comes as expected changes nothing but its piece and
// the place in the step. What it does to the pool's sums follows from that
// place, and is worked out when somebody looks.
#include "pool/front.h"

const tarn__pool_step_event tarn__never_comes = {
    .serial = UINT64_MAX,
};

static void run(tarn_pool *pool, const tarn__pool_step_event *from,
                const tarn__pool_step_event *to) {
  tarn_pool_stats *stats = &pool->stats;
  bool counted = tarn__front_counts(pool, TARN_COUNT_TAGS);
  for (; from < to; from++) {
    if (!tarn__step_is_free(from)) {
      from->piece->counted = counted;
      tarn__front_count_live(pool, from->piece, false);
      stats->allocs++;
      stats->hits++;
    } else {
      tarn__front_count_dead(pool, from->piece);
      from->piece->owner->live--;
      stats->frees++;
    }
  }
}

// Of whole steps only the first can raise a peak.
void tarn__step_cursor_settle(tarn_pool *pool) {
  tarn__pool_step_cursor *cursor = &pool->cursor;
  const tarn__pool_step_layout *layout = cursor->layout;
  if (layout == NULL) return;
  const tarn__pool_step_event *begin = layout->events;
  const tarn__pool_step_event *end = begin + layout->event_count;
  if (cursor->turns > 0) {
    run(pool, cursor->settled, end);
    cursor->settled = begin;
    cursor->turns--;
  }
  if (cursor->turns > 0) {
    run(pool, begin, end);
    uint64_t more = (cursor->turns - 1) * layout->count;
    pool->stats.allocs += more;
    pool->stats.hits += more;
    pool->stats.frees += more;
    cursor->turns = 0;
  }
  run(pool, cursor->settled, cursor->at);
  cursor->settled = cursor->at;
}

bool tarn__step_cursor_turn(tarn__pool_step_cursor *cursor) {
  tarn__pool_step_layout *layout = cursor->layout;
  if (layout == NULL || cursor->at != layout->events + layout->event_count) {
    return false;
  }
  cursor->at = layout->events;
  cursor->turns++;
  cursor->missed = 0;
  layout->rounds++;
  return true;
}

void tarn__step_cursor_skip(tarn__pool_step_cursor *cursor) {
  if (cursor->layout == NULL) return;
  for (;;) {
    if (tarn__step_cursor_turn(cursor)) {  // nothing is left to be counted
      cursor->settled = cursor->at;
      cursor->turns = 0;
    }
    bool early = tarn__step_is_free(cursor->at) && !cursor->at->piece->live;
    if (!early) return;
    cursor->settled = ++cursor->at;
  }
}
