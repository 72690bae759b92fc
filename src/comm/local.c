// A rank of one machine: its creation, and the rounds that it goes through.
//
// A rank arrives, then waits for the others. It reads the futex word for a
// while, then sleeps on it in slices; between two slices it looks whether the
// missing ranks still run. A wait succeeds as soon as all ranks have arrived,
// even if one has ended since. Once the area is broken, the frozen arrivals
// decide, which are the same at every rank.
//
// In a child of fork only host memory, and the child's own mappings and
// descriptors, are touched.
#include "comm/local.h"

#include "base/hostmem.h"
#include "base/os.h"
#include "base/os_peer.h"
#include "base/status.h"

// --- beginning and end -----------------------------------------------------

tarn_status tarn__local_create(tarn__comm_area area, size_t rank,
                               uint64_t timeout_ms, tarn__comm_local *parent,
                               const size_t *ranks,
                               tarn__comm_local **out_local) {
  tarn__comm_local *local = tarn__host_alloc(sizeof *local);
  *out_local = local;
  if (local == NULL) return TARN_E_NOMEM;
  local->area = area;
  local->rank = rank;
  local->size = local->closed = area.ranks;
  local->timeout_ms = timeout_ms;
  for (size_t i = 0; i < local->size; i++)
    local->places[i] = parent == NULL ? i : parent->places[ranks[i]];
  if (parent != NULL) {
    local->sockets = parent->sockets;
    atomic_fetch_add(&local->sockets->users, 1);
  } else if (tarn__sockets_create(local->size, &local->sockets) != TARN_OK) {
    tarn__host_free(local, sizeof *local);
    *out_local = NULL;
    return TARN_E_NOMEM;
  }
  tarn__mailbox_open(local);
  return TARN_OK;
}

void tarn__local_forget(void *self) {
  tarn__comm_local *local = self;
  tarn__mailbox_close(local);
  tarn__sockets_unref(local->sockets);
  tarn__host_free(local, sizeof *local);
}

void tarn__local_destroy(void *self) {
  tarn__comm_local *local = self;
  tarn__comm_area area = local->area;
  if (local->sockets->generation == tarn__os_generation()) {
    tarn__area_leave(&area, local->rank);
  }
  tarn__local_forget(local);
  tarn__area_unmap(&area);
}

enum { LOOKS = 20 };  // at the futex, before a wait sleeps

// --- breakage --------------------------------------------------------------

tarn_status tarn__local_state(const tarn__comm_local *local) {
  return tarn__area_is_broken(&local->area) ? tarn__area_fail(&local->area)
                                            : TARN_OK;
}

// The kernel closes what a process has open before it says that the process
// has ended, and a driver may take its time in between. Only the end itself is
// told as one; a process that runs for so long without a mailbox has become
// another program.
static const uint64_t ENDING_NS = 2000000000;

static bool runs_on(tarn__comm_local *local, size_t rank) {
  uint64_t now = tarn__os_now_ns();
  if (local->closed != rank) local->closed_ns = now;
  local->closed = rank;
  return now - local->closed_ns >= ENDING_NS;
}

static size_t find_ended(tarn__comm_local *local) {
  size_t found = tarn__os_find_ended(local->watched, local->size);
  if (found < local->size) return found;
  for (size_t rank = 0; rank < local->size; rank++) {
    if (local->watched[rank] < 0) continue;
    local->watched[rank] = local->sockets->sends[local->places[rank]];
  }
  found = tarn__os_find_ended(local->watched, local->size);
  return found < local->size && runs_on(local, found) ? found : local->size;
}

void tarn__local_look(tarn__comm_local *local, tarn__comm_breakage ended) {
  for (size_t rank = 0; rank < local->size; rank++) {
    if (local->watched[rank] < 0 || !tarn__area_has_left(&local->area, rank)) {
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

void tarn__local_look_at_all(tarn__comm_local *local) {
  if (tarn__area_is_broken(&local->area)) return;
  for (size_t rank = 0; rank < local->size; rank++)
    tarn__local_watch(local, rank, rank != local->rank);
  tarn__local_look(local, TARN__ENDED);
}

void tarn__local_look_beyond(tarn__comm_local *local, uint32_t count) {
  if (tarn__area_is_broken(&local->area)) return;
  for (size_t rank = 0; rank < local->size; rank++) {
    bool is_done = tarn__local_has_done(local, rank, count);
    tarn__local_watch(local, rank, rank != local->rank && !is_done);
  }
  tarn__local_look(local, TARN__ENDED);
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

// With a processor for each rank this is a busy wait; otherwise yielding lets
// the missing rank run. For 2 to 16 ranks on two processors with other load,
// this is faster than a busy wait without yielding, or sleeping at once.
static bool watch(const tarn__comm_local *local) {
  for (int look = 0; look < LOOKS; look++) {
    if (tarn__area_has_completed(&local->area, local->round)) return true;
    tarn__os_yield();
  }
  return tarn__area_has_completed(&local->area, local->round);
}

// The first rank that is missing; |size| if none is. Each has its sign set.
static size_t find_missing(tarn__comm_local *local) {
  size_t first = local->size;
  for (size_t rank = local->size; rank-- > 0;) {
    bool here = tarn__area_has_arrived(&local->area, rank, local->round);
    if (!here) first = rank;
    tarn__local_watch(local, rank, !here);
  }
  return first;
}

static unsigned turns_of(const tarn__comm_local *local, size_t rank) {
  return atomic_load_explicit(&local->area.members[rank].turns,
                              memory_order_relaxed);
}

static void note_turns(tarn__comm_local *local) {
  for (size_t rank = 0; rank < local->size; rank++)
    local->turns[rank] = turns_of(local, rank);
}

// Who is late: the first that is missing and has not waited for others itself
// in the second half of the time. A rank that waits for a stopped one is
// missing too, and its own deadline may be later than this one's.
static size_t find_late(const tarn__comm_local *local, size_t missing) {
  for (size_t rank = missing; rank < local->size; rank++) {
    if (!tarn__area_has_arrived(&local->area, rank, local->round) &&
        turns_of(local, rank) == local->turns[rank])
      return rank;
  }
  return missing;
}

static tarn_status wait_for_all(tarn__comm_local *local) {
  tarn__comm_wait wait = tarn__wait_begin(local->timeout_ms);
  uint64_t half = tarn__wait_left(&wait) / 2;
  for (;;) {
    // Read before the look at the others: a rank that arrived while this one
    // overslept the deadline has arrived.
    uint64_t left = tarn__wait_left(&wait);
    size_t missing = find_missing(local);
    if (missing == local->size) return TARN_OK;
    if (tarn__area_is_broken(&local->area)) return settle(local);
    tarn__local_look(local, TARN__ENDED);
    if (left > half) note_turns(local);
    if (left == 0) {
      tarn__local_give_up(local, find_late(local, missing));
    } else {
      tarn__area_sleep(&local->area, local->round,
                       tarn__lesser(left, wait.slice));
    }
  }
}

tarn_status tarn__local_round(tarn__comm_local *local) {
  if (tarn__area_is_broken(&local->area) ||
      !tarn__area_arrive(&local->area, local->rank, local->round + 1)) {
    return tarn__local_state(local);
  }
  local->round++;
  if (watch(local)) return TARN_OK;
  return wait_for_all(local);
}
