// The memory that ranks share, without ranks: arrivals, and what becomes of
// them once it is broken.
#include <pthread.h>
#include <stdatomic.h>

#include "base/os.h"
#include "comm/area.h"
#include "support/effort.h"
#include "support/run.h"

enum { RANKS = 3 };

// The view of each rank, as processes have them: mappings of their own.
static tarn__comm_area views[RANKS];

static void set_up(void) {
  int fd = -1;
  assert_ok(tarn__area_create(RANKS, &fd, &views[0]));
  for (size_t rank = 1; rank < RANKS; rank++)
    assert_ok(tarn__area_map(fd, RANKS, &views[rank]));
  tarn__os_close(fd);
}

static void tear_down(void) {
  for (size_t rank = 0; rank < RANKS; rank++)
    tarn__area_unmap(&views[rank]);
}

static void arrive_all(uint64_t round) {
  for (size_t rank = 0; rank < RANKS; rank++)
    ck_assert(tarn__area_arrive(&views[rank], rank, round));
}

// --- rounds ----------------------------------------------------------------

TEST(the_last_to_arrive_rings) {
  set_up();
  for (uint64_t round = 1; round < 4; round++) {
    ck_assert(tarn__area_arrive(&views[2], 2, round));
    ck_assert(tarn__area_arrive(&views[0], 0, round));
    ck_assert(!tarn__area_has_completed(&views[1], round));
    ck_assert(!tarn__area_all_arrived(&views[1], round));
    ck_assert(tarn__area_arrive(&views[1], 1, round));
    ck_assert(tarn__area_has_completed(&views[0], round));
    ck_assert(tarn__area_all_arrived(&views[2], round));
  }
  tear_down();
}

// --- breakage --------------------------------------------------------------

// What a rank leaves that notes why, and is killed before it has frozen one
// arrival: who finds the note freezes them all.
static void note_only(tarn__comm_area *area) {
  atomic_store(&area->head->broken, TARN__ENDED);
}

TEST(nobody_arrives_after_a_freeze) {
  set_up();
  arrive_all(1);
  ck_assert(tarn__area_arrive(&views[0], 0, 2));
  note_only(&views[0]);
  ck_assert(tarn__area_is_broken(&views[2]));
  tarn__area_freeze(&views[2]);
  for (int times = 0; times < 2; times++) {
    ck_assert(!tarn__area_arrive(&views[1], 1, 2));
    ck_assert(!tarn__area_arrive(&views[2], 2, 2));
    ck_assert(!tarn__area_arrive(&views[0], 0, 3));
    // What was before stays as it is.
    ck_assert(tarn__area_all_arrived(&views[1], 1));
    ck_assert(tarn__area_has_arrived(&views[1], 0, 2));
    ck_assert(!tarn__area_has_arrived(&views[0], 1, 2));
    ck_assert(!tarn__area_all_arrived(&views[0], 2));
    ck_assert(!tarn__area_has_completed(&views[0], 2));
    tarn__area_freeze(&views[1]);
  }
  tear_down();
}

// A round in which all had arrived is a good one, whatever came then.
TEST(a_freeze_leaves_what_has_arrived) {
  set_up();
  arrive_all(1);
  arrive_all(2);
  tarn__area_break(&views[1], TARN__LATE, 2, 70);
  ck_assert(tarn__area_all_arrived(&views[0], 2));
  ck_assert(!tarn__area_all_arrived(&views[0], 3));
  ck_assert(!tarn__area_arrive(&views[0], 0, 3));
  tear_down();
}

TEST(the_first_note_stays) {
  set_up();
  tarn__area_break(&views[0], TARN__LATE, 2, 70);
  tarn__area_break(&views[1], TARN__LEFT, 0, 0);
  for (size_t rank = 0; rank < RANKS; rank++) {
    assert_status(tarn__area_fail(&views[rank]), TARN_E_TIMEOUT);
    assert_error_says("rank 2 did not arrive within 70 ms");
  }
  tear_down();
}

// --- at the same time ------------------------------------------------------

enum { RACES = EFFORT(300, 60) };

static atomic_bool begun;

// Arrives for as long as that goes.
static void *run_ahead(void *context) {
  size_t rank = (size_t)((tarn__comm_area *)context - views);
  uint64_t round = 0;
  while (tarn__area_arrive(context, rank, round + 1)) {
    round++;
    if (round == 3) atomic_store(&begun, true);
  }
  return NULL;
}

static uint32_t arrived(size_t rank) {
  return atomic_load(&views[0].members[rank].arrived);
}

// An arrival that was seen after a freeze is the last one.
static void freeze_a_runner(void) {
  pthread_t runner;
  set_up();
  atomic_store(&begun, false);
  ck_assert_int_eq(pthread_create(&runner, NULL, run_ahead, &views[1]), 0);
  while (!atomic_load(&begun))
    tarn__os_yield();
  note_only(&views[0]);
  tarn__area_freeze(&views[0]);
  uint32_t seen = arrived(1);
  require((seen & 1) != 0);
  ck_assert_int_eq(pthread_join(runner, NULL), 0);
  require(arrived(1) == seen);
  tear_down();
}

TEST(a_rank_that_runs_is_frozen) {
  for (int race = 0; race < RACES; race++)
    freeze_a_runner();
}
