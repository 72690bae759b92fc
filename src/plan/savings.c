// What merging can save: a bound, and a choice that comes near to it.
//
// In a part each taker is merged with one giver at most and each giver with
// one taker, so what is saved is no more than the sum over the takers of the
// best that each can save, nor than that over the givers.
#include "plan/pairs.h"

static size_t end_of_part(const tarn__plan_pairs *pairs, size_t from,
                          size_t end) {
  size_t to = from;
  while (to < end && pairs->mates[to].part == pairs->mates[from].part)
    to++;
  return to;
}

// Raises |*best| to |saving|, and |*sum| by as much.
static void improve(uint64_t *best, uint64_t saving, uint64_t *sum) {
  if (saving <= *best) return;
  *sum += saving - *best;
  *best = saving;
}

static uint64_t most_saved(const tarn__plan_pairs *pairs, size_t from,
                           size_t to) {
  uint64_t by_givers = 0;
  uint64_t by_takers = 0;
  for (size_t i = from; i < to; i++) {
    const tarn__plan_mate *mate = &pairs->mates[i];
    if (mate->fate == TARN__PLAN_APART) continue;
    improve(&pairs->as_giver[mate->giver], mate->saving, &by_givers);
    improve(&pairs->as_taker[mate->taker], mate->saving, &by_takers);
  }
  for (size_t i = from; i < to; i++) {
    pairs->as_giver[pairs->mates[i].giver] = 0;
    pairs->as_taker[pairs->mates[i].taker] = 0;
  }
  return by_givers < by_takers ? by_givers : by_takers;
}

uint64_t tarn__plan_meeting_need(const tarn__plan_pairs *pairs,
                                 const tarn__plan_meeting *meeting) {
  uint64_t need = meeting->live;
  for (size_t from = meeting->first; from < meeting->last;) {
    size_t to = end_of_part(pairs, from, meeting->last);
    need -= most_saved(pairs, from, to);
    from = to;
  }
  return need;
}

uint64_t tarn__plan_pairs_bound(const tarn__plan_pairs *pairs) {
  uint64_t bound = pairs->floor;
  for (size_t i = 0; i < pairs->meeting_count; i++) {
    uint64_t need = tarn__plan_meeting_need(pairs, &pairs->meetings[i]);
    if (bound < need) bound = need;
  }
  return bound;
}

// What the meeting needs if nothing more of it is merged.
static uint64_t needs_now(const tarn__plan_pairs *pairs,
                          const tarn__plan_meeting *meeting) {
  uint64_t need = meeting->live;
  for (size_t i = meeting->first; i < meeting->last; i++) {
    const tarn__plan_mate *mate = &pairs->mates[i];
    if (mate->fate == TARN__PLAN_MERGED) need -= mate->saving;
  }
  return need;
}

// Parts do not touch each other, and in a part the best come first.
static void match_meeting(tarn__plan_pairs *pairs,
                          const tarn__plan_meeting *meeting, uint64_t enough) {
  uint64_t need = needs_now(pairs, meeting);
  for (size_t i = meeting->first; i < meeting->last; i++) {
    const tarn__plan_mate *mate = &pairs->mates[i];
    if (mate->fate != TARN__PLAN_UNDECIDED) continue;
    if (need > enough && tarn__plan_pairs_merge(pairs, i)) {
      need -= mate->saving;
    } else {
      tarn__plan_pairs_part(pairs, i);
    }
  }
}

void tarn__plan_pairs_match(tarn__plan_pairs *pairs, uint64_t enough) {
  for (size_t i = 0; i < pairs->meeting_count; i++) {
    match_meeting(pairs, &pairs->meetings[i], enough);
  }
}
