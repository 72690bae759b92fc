// Rounds: arriving, waiting for the others, finding out who will not come.
//
// A wait looks at the futex for a while, then sleeps on it, in slices: between
// two it looks at those who are missing. It ends well as soon as all have
// arrived, whatever became of them since; and once the area is broken it ends
// as the frozen arrivals say, which is the same at every rank.
#include "base/os.h"
#include "base/os_peer.h"
#include "comm/local.h"

enum { LOOKS = 20 };  // at the futex, before a wait sleeps

// --- waits -----------------------------------------------------------------

static const uint64_t MS = 1000000;

// The ends of others are found within this, and of a short deadline not much
// is slept over.
static const uint64_t MOST_SLICE_MS = 10;
enum { SLICES = 50 };

// Who has not looked for so long did not run itself: the whole job was stopped,
// say, and goes on. That time is nobody's fault.
static const uint64_t MOST_GAP_MS = 100;

static uint64_t lesser(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static uint64_t later(uint64_t time, uint64_t ns) {
  return ns < UINT64_MAX - time ? time + ns : UINT64_MAX;
}

tarn__comm_wait tarn__wait_begin(uint64_t timeout_ms) {
  uint64_t now = tarn__os_now_ns();
  uint64_t ns = timeout_ms < UINT64_MAX / MS ? timeout_ms * MS : UINT64_MAX;
  return (tarn__comm_wait){.slice = lesser(ns / SLICES, MOST_SLICE_MS * MS),
                           .end = later(now, ns),
                           .now = now};
}

uint64_t tarn__wait_left(tarn__comm_wait *wait) {
  uint64_t now = tarn__os_now_ns();
  uint64_t gap = now - wait->now;
  if (gap > MOST_GAP_MS * MS) {
    wait->end = later(wait->end, gap - MOST_GAP_MS * MS);
  }
  wait->now = now;
  return wait->end > now ? wait->end - now : 0;
}

// --- breakage --------------------------------------------------------------

tarn_status tarn__local_state(const tarn__comm_local *local) {
  return tarn__area_is_broken(&local->area) ? tarn__area_fail(&local->area)
                                            : TARN_OK;
}

// Who still runs, but has no inbox any more, has become another program.
static size_t find_ended(tarn__comm_local *local) {
  size_t found = tarn__os_find_ended(local->signs, local->size);
  if (found < local->size) return found;
  for (size_t rank = 0; rank < local->size; rank++) {
    if (local->signs[rank] < 0) continue;
    local->signs[rank] = local->post->sends[local->places[rank]];
  }
  return tarn__os_find_ended(local->signs, local->size);
}

void tarn__local_look(tarn__comm_local *local, tarn__comm_breakage ended) {
  for (size_t rank = 0; rank < local->size; rank++) {
    if (local->signs[rank] < 0 || !tarn__area_has_left(&local->area, rank)) {
      continue;
    }
    tarn__area_break(&local->area,
                     ended == TARN__ABSENT ? TARN__ABSENT : TARN__LEFT, rank,
                     0);
    return;
  }
  size_t found = find_ended(local);
  if (found < local->size) tarn__area_break(&local->area, ended, found, 0);
}

void tarn__local_give_up(tarn__comm_local *local, size_t rank) {
  tarn__area_break(&local->area, TARN__LATE, rank, local->timeout_ms);
}

// --- one round -------------------------------------------------------------

// Whether |local->round| was a good one, now that the area is broken.
static tarn_status settle(tarn__comm_local *local) {
  tarn__area_freeze(&local->area);
  if (tarn__area_all_arrived(&local->area, local->round)) return TARN_OK;
  return tarn__area_fail(&local->area);
}

// Where ranks have a processor each, this is a watch; where they have not, the
// one that is waited for comes to run: for 2 to 16 ranks on two processors with
// other work, better than to watch without yielding, or to sleep at once.
static bool watch(const tarn__comm_local *local) {
  for (int look = 0; look < LOOKS; look++) {
    if (tarn__area_has_rung(&local->area, local->round)) return true;
    tarn__os_yield();
  }
  return tarn__area_has_rung(&local->area, local->round);
}

// The first rank that is missing; |size| if none is. Each has its sign set.
static size_t find_missing(tarn__comm_local *local) {
  size_t first = local->size;
  for (size_t rank = local->size; rank-- > 0;) {
    bool here = tarn__area_has_arrived(&local->area, rank, local->round);
    if (!here) first = rank;
    local->signs[rank] =
        here ? -1 : tarn__post_sign_of(local->post, local->places[rank]);
  }
  return first;
}

static tarn_status wait_for_all(tarn__comm_local *local) {
  tarn__comm_wait wait = tarn__wait_begin(local->timeout_ms);
  for (;;) {
    // Before the look at the others: who came while this rank slept over the
    // end has come.
    uint64_t left = tarn__wait_left(&wait);
    size_t missing = find_missing(local);
    if (missing == local->size) return TARN_OK;
    if (tarn__area_is_broken(&local->area)) return settle(local);
    tarn__local_look(local, TARN__ENDED);
    if (left == 0) {
      tarn__local_give_up(local, missing);
    } else {
      tarn__area_sleep(&local->area, local->round, lesser(left, wait.slice));
    }
  }
}

tarn_status tarn__local_round(tarn__comm_local *local) {
  if (tarn__area_is_broken(&local->area)) return tarn__local_state(local);
  if (!tarn__area_arrive(&local->area, local->rank, local->round + 1)) {
    return tarn__local_state(local);
  }
  local->round++;
  if (watch(local)) return TARN_OK;
  return wait_for_all(local);
}
