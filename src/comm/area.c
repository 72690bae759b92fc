// The shared memory of a communicator: its making, arrivals, breakage.
//
// Invariants: a rank's arrival grows by one round at a time, by that rank only,
// and never once it is frozen; |count| is the sum of all arrivals, less those
// of a rank that died on its way from the one to the other; |broken| is written
// once.
#include "comm/area.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/os.h"
#include "base/os_pages.h"
#include "base/os_peer.h"
#include "base/status.h"

#define AREA_NAME "tarn:comm"

enum {
  VERSION = 4,  // of what stands here, and of tarn__comm_header in comm/comm.h
  MOST_SLOT = 256 << 10,
  MOST_SLOTS = 8 << 20,  // bytes of all slots
};

// --- layout ----------------------------------------------------------------

// A power of two of at least a page, so that all slots stay below MOST_SLOTS.
static size_t slot_of(size_t ranks) {
  size_t slot = MOST_SLOT;
  if (ranks == 1) return tarn__os_page();
  while (2 * slot * ranks > MOST_SLOTS && slot > tarn__os_page())
    slot /= 2;
  return slot;
}

static size_t front_of(size_t ranks) {
  size_t page = tarn__os_page();
  size_t front =
      sizeof(tarn__comm_area_head) + ranks * sizeof(tarn__comm_member);
  return (front + page - 1) / page * page;
}

static size_t bytes_of(size_t ranks) {
  return front_of(ranks) + 2 * slot_of(ranks) * ranks;
}

static tarn_status map(int fd, size_t ranks, tarn__comm_area *out_area) {
  size_t front = front_of(ranks);
  size_t slot = slot_of(ranks);
  size_t bytes = bytes_of(ranks);
  unsigned char *base = tarn__os_map_shared(fd, bytes);
  if (base == NULL) {
    return tarn__fail(TARN_E_IO, "comm: shared memory cannot be mapped: %s",
                      strerror(errno));
  }
  *out_area = (tarn__comm_area){
      .head = (tarn__comm_area_head *)(void *)base,
      .members =
          (tarn__comm_member *)(void *)(base + sizeof(tarn__comm_area_head)),
      .slots = base + front,
      .bytes = bytes,
      .ranks = ranks,
      .slot = slot,
  };
  return TARN_OK;
}

static tarn_status set_up(tarn__comm_area *area) {
  tarn__comm_area_head *head = area->head;
  if (!tarn__os_random(head->token, sizeof head->token)) {
    return tarn__fail(TARN_E_IO, "comm: no random bytes: %s", strerror(errno));
  }
  head->version = VERSION;
  head->ranks = (uint32_t)area->ranks;
  head->slot = area->slot;
  for (size_t rank = 0; rank < area->ranks; rank++) {
    area->members[rank].receive = area->members[rank].send = -1;
  }
  return TARN_OK;
}

tarn_status tarn__area_create(size_t ranks, int *out_fd,
                              tarn__comm_area *out_area) {
  size_t bytes = bytes_of(ranks);
  *out_area = (tarn__comm_area){0};
  *out_fd = tarn__os_shared_file(AREA_NAME, bytes);
  if (*out_fd < 0) {
    return tarn__fail(TARN_E_IO, "comm: no shared memory of %zu bytes: %s",
                      bytes, strerror(errno));
  }
  tarn_status status = map(*out_fd, ranks, out_area);
  if (status == TARN_OK) status = set_up(out_area);
  if (status == TARN_OK) return TARN_OK;
  tarn__area_unmap(out_area);
  tarn__os_close(*out_fd);
  *out_fd = -1;
  return status;
}

static bool is_set_up(const tarn__comm_area *area) {
  const tarn__comm_area_head *head = area->head;
  return head->version == VERSION && head->ranks == area->ranks &&
         head->slot == area->slot;
}

bool tarn__area_is_behind(int fd, size_t ranks) {
  return tarn__os_is_memory_file(fd, AREA_NAME, bytes_of(ranks));
}

tarn_status tarn__area_map(int fd, size_t ranks, tarn__comm_area *out_area) {
  *out_area = (tarn__comm_area){0};
  if (!tarn__area_is_behind(fd, ranks)) {
    return tarn__fail(
        TARN_E_INVALID,
        "comm: descriptor %d is not the shared memory of %zu ranks", fd, ranks);
  }
  tarn_status status = map(fd, ranks, out_area);
  if (status != TARN_OK || is_set_up(out_area)) return status;
  tarn__area_unmap(out_area);
  return tarn__fail(TARN_E_INVALID,
                    "comm: the memory of descriptor %d was made for other than "
                    "%zu ranks, or by another version of the library",
                    fd, ranks);
}

void tarn__area_unmap(tarn__comm_area *area) {
  if (area->head != NULL) tarn__os_unmap(area->head, area->bytes);
  *area = (tarn__comm_area){0};
}

// --- arrivals --------------------------------------------------------------

static void wake(tarn__comm_area *area) {
  if (atomic_load(&area->head->sleepers) != 0) {
    tarn__os_wake_all(&area->head->futex);
  }
}

// The last rank to arrive wakes the others. No other rank can have done so for
// a later round, since this rank has to arrive in it first. If a rank died
// before it was counted, no rank wakes the others any more.
static void complete_if_last(tarn__comm_area *area, uint64_t round) {
  uint64_t count = atomic_fetch_add(&area->head->count, 1) + 1;
  if (count != round * area->ranks) return;
  atomic_store(&area->head->futex, (unsigned)round);
  wake(area);
}

bool tarn__area_arrive(tarn__comm_area *area, size_t rank, uint64_t round) {
  unsigned before = 2 * (unsigned)(round - 1);
  if (!atomic_compare_exchange_strong(&area->members[rank].arrived, &before,
                                      before + 2)) {
    return false;
  }
  complete_if_last(area, round);
  return true;
}

bool tarn__area_all_arrived(const tarn__comm_area *area, uint64_t round) {
  for (size_t rank = 0; rank < area->ranks; rank++) {
    if (!tarn__area_has_arrived(area, rank, round)) return false;
  }
  return true;
}

void tarn__area_sleep(tarn__comm_area *area, uint64_t round, uint64_t ns) {
  tarn__comm_area_head *head = area->head;
  atomic_fetch_add(&head->sleepers, 1);
  unsigned futex = atomic_load(&head->futex);
  if (!tarn__area_has_completed(area, round) && !tarn__area_is_broken(area)) {
    tarn__os_sleep_on(&head->futex, futex, ns);
  }
  atomic_fetch_sub(&head->sleepers, 1);
}

// --- breakage --------------------------------------------------------------

// A note: why, which rank, and for how long it was waited for.
enum { RANK_SHIFT = 8, MS_SHIFT = 24 };
static const uint64_t MOST_MS = (UINT64_C(1) << 40) - 1;

static uint64_t note_of(tarn__comm_breakage why, size_t rank, uint64_t ms) {
  if (ms > MOST_MS) ms = MOST_MS;
  return (uint64_t)why | (uint64_t)rank << RANK_SHIFT | ms << MS_SHIFT;
}

void tarn__area_break(tarn__comm_area *area, tarn__comm_breakage why,
                      size_t rank, uint64_t ms) {
  unsigned long long whole = 0;
  atomic_compare_exchange_strong(&area->head->broken, &whole,
                                 note_of(why, rank, ms));
  tarn__area_freeze(area);
  tarn__os_wake_all(&area->head->futex);
}

void tarn__area_freeze(tarn__comm_area *area) {
  for (size_t rank = 0; rank < area->ranks; rank++) {
    atomic_fetch_or(&area->members[rank].arrived, 1);
  }
}

tarn__comm_breakage tarn__area_why(const tarn__comm_area *area,
                                   size_t *out_rank) {
  uint64_t note = atomic_load(&area->head->broken);
  *out_rank = (note >> RANK_SHIFT) & 0xffff;
  return (tarn__comm_breakage)(note & 0xff);
}

tarn_status tarn__area_fail(const tarn__comm_area *area) {
  size_t rank = 0;
  (void)tarn__area_why(area, &rank);
  return tarn__area_fail_as(area, rank);
}

tarn_status tarn__area_fail_as(const tarn__comm_area *area, size_t rank) {
  static const char *const losses[] = {
      [TARN__WHOLE] = "has ended",
      [TARN__ENDED] = "has ended",
      [TARN__LEFT] = "has left the communicator",
      [TARN__ABSENT] = "ended or gave up before it joined",
  };
  uint64_t note = atomic_load(&area->head->broken);
  unsigned why = note & 0xff;
  if (why == TARN__LATE) {
    return tarn__fail(TARN_E_TIMEOUT,
                      "comm: rank %zu did not arrive within %" PRIu64 " ms",
                      rank, note >> MS_SHIFT);
  }
  if (why == TARN__GARBLED) {
    return tarn__fail(
        TARN_E_CORRUPT,
        "comm: the data of rank %zu in the shared memory is damaged", rank);
  }
  return tarn__fail(TARN_E_PEER_LOST, "comm: rank %zu %s", rank,
                    losses[why < TARN__LATE ? why : TARN__ENDED]);
}

// --- coming and going ------------------------------------------------------

bool tarn__area_take(tarn__comm_area *area, size_t rank) {
  unsigned free = 0;
  return atomic_compare_exchange_strong(&area->members[rank].taken, &free, 1);
}

void tarn__area_leave(tarn__comm_area *area, size_t rank) {
  atomic_store(&area->members[rank].left, 1);
  wake(area);
}
