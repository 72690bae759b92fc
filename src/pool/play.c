// The play: what is expected next, and the books.
//
// A request or a free that comes as expected changes nothing but its piece and
// the place in the step. What it does to the pool's sums follows from that
// place, and is worked out when somebody looks.
#include "pool/front.h"

const tarn__stage_event tarn__never_comes = {
    .serial = UINT64_MAX,
};

// Requests that come unexpectedly in one step, beside half of what is expected.
enum { MISSES = 64 };

// Steps after which a stage has been worth it.
enum { WORTH_ROUNDS = 8 };

static void run(tarn_pool *pool, const tarn__stage_event *from,
                const tarn__stage_event *to) {
  tarn_pool_stats *stats = &pool->stats;
  bool counted = tarn__front_counts(pool, TARN_COUNT_TAGS);
  for (; from < to; from++) {
    if (!tarn__stage_is_free(from)) {
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
void tarn__play_settle(tarn_pool *pool) {
  tarn__play *play = &pool->play;
  const tarn__stage *stage = play->stage;
  if (stage == NULL) return;
  const tarn__stage_event *begin = stage->events;
  const tarn__stage_event *end = begin + stage->event_count;
  if (play->turns > 0) {
    run(pool, play->settled, end);
    play->settled = begin;
    play->turns--;
  }
  if (play->turns > 0) {
    run(pool, begin, end);
    uint64_t more = (play->turns - 1) * stage->count;
    pool->stats.allocs += more;
    pool->stats.hits += more;
    pool->stats.frees += more;
    play->turns = 0;
  }
  run(pool, play->settled, play->at);
  play->settled = play->at;
}

bool tarn__play_turn(tarn__play *play) {
  tarn__stage *stage = play->stage;
  if (stage == NULL || play->at != stage->events + stage->event_count) {
    return false;
  }
  play->at = stage->events;
  play->turns++;
  play->missed = 0;
  stage->rounds++;
  return true;
}

void tarn__play_skip(tarn__play *play) {
  if (play->stage == NULL) return;
  for (;;) {
    if (tarn__play_turn(play)) {  // with nothing to be put on the books
      play->settled = play->at;
      play->turns = 0;
    }
    bool early = tarn__stage_is_free(play->at) && !play->at->piece->live;
    if (!early) return;
    play->settled = ++play->at;
  }
}

void tarn__play_miss(tarn_pool *pool) {
  tarn__play *play = &pool->play;
  const tarn__stage *stage = play->stage;
  if (stage == NULL || ++play->missed <= stage->count / 2 + MISSES) return;
  bool worth_it = stage->rounds >= WORTH_ROUNDS;
  uint64_t evidence = pool->recorder.evidence * 2;
  tarn__stage_strike(pool);
  if (!worth_it) tarn__recorder_restart(&pool->recorder, evidence);
}
