// Faults: host memory, and calls of the driver, fail one after the other at one
// rank. All ranks get the same answer, nothing is left at any, and the next
// whole is as good as ever.
#include "support/faults.h"
#include "kit.h"

enum { DRIVER_CALLS = EFFORT(70, 25) };

static const ground *where;  // set before ranks are forked
static size_t victim;        // the rank where calls fail

static tarn_whole_options options_here(tarn_place place, tarn_whole_type type) {
  return (tarn_whole_options){.struct_size = sizeof(tarn_whole_options),
                              .type = type,
                              .place = place,
                              .size = 300000,
                              .granularity = 100};
}

// --- answers ---------------------------------------------------------------

// Ends what was made, if it was.
static void settle(tarn_status status, tarn_whole *whole) {
  MUST((whole != NULL) == (status == TARN_OK));
  must_be_the_same_everywhere(status);
  MUST_BE(tarn_whole_destroy(whole), TARN_OK);
}

static void make_one(const tarn_whole_options *options) {
  tarn_whole *whole = NULL;
  tarn_status status = tarn_whole_create(my.comm, options, &whole);
  MUST_BE(status, TARN_OK);
  settle(status, whole);
}

// --- host memory -----------------------------------------------------------

// True if a call failed at the victim.
static bool fail_host_memory(const tarn_whole_options *options, size_t n,
                             faults_mode mode) {
  char place[64];
  tarn_whole *whole = NULL;
  bool struck = false;
  if (my.rank == victim) faults_arm(n, mode);
  tarn_status status = tarn_whole_create(my.comm, options, &whole);
  if (my.rank == victim) struck = faults_disarm();
  if (status != TARN_OK) {
    snprintf(place, sizeof place, "rank %zu", victim);
    MUST(status == TARN_E_NOMEM || status == TARN_FULL);
    if (my.rank != victim) MUST_SAY(place);
  }
  settle(status, whole);
  return tell(victim, struck) != 0;
}

static void sweep_host_memory(tarn_place place, tarn_whole_type type,
                              faults_mode mode) {
  tarn_whole_options options = options_here(place, type);
  make_one(&options);
  belongings before = look_around(place);
  size_t n = 1;
  while (fail_host_memory(&options, n, mode)) {
    see_nothing_left(place, before);
    n++;
  }
  MUST(n > 3);
  make_one(&options);
  see_nothing_left(place, before);
}

static void lack_host_memory(void) {
  tarn_place place = open_ground(where);
  warm_up_plainly(place);
  for (size_t t = 0; t < TYPES; t++) {
    sweep_host_memory(place, type_at(t), FAULTS_ONCE);
    sweep_host_memory(place, type_at(t), FAULTS_FROM_NOW);
  }
  close_ground(place);
}

TEST_LOOP(host_memory_fails, GROUNDS) {
  where = ground_at(_i);
  note_mapped("host_memory_fails");
  for (victim = 0; victim < 2; victim++)
    run_ranks(2, where->text, lack_host_memory);
}

// --- the driver ------------------------------------------------------------

static bool fail_driver(const tarn_whole_options *options, size_t n) {
  char plan[32];
  tarn_whole *whole = NULL;
  snprintf(plan, sizeof plan, "*@%zu", n);
  if (my.rank == victim) MUST_BE(tarn_sim_faults(plan), TARN_OK);
  tarn_status status = tarn_whole_create(my.comm, options, &whole);
  MUST_BE(tarn_sim_faults(NULL), TARN_OK);
  MUST(status == TARN_OK || status == TARN_FULL || status == TARN_E_DEVICE);
  settle(status, whole);
  return status != TARN_OK;
}

static void sweep_driver(tarn_place place, tarn_whole_type type) {
  tarn_whole_options options = options_here(place, type);
  size_t failures = 0;
  make_one(&options);
  belongings before = look_around(place);
  for (size_t n = 1; n <= DRIVER_CALLS; n++) {
    if (fail_driver(&options, n)) failures++;
    see_nothing_left(place, before);
  }
  MUST(failures > 0 && failures < DRIVER_CALLS);
}

static void have_a_failing_driver(void) {
  tarn_place place = open_ground(where);
  warm_up_plainly(place);
  for (size_t t = 0; t < TYPES; t++)
    sweep_driver(place, type_at(t));
  close_ground(place);
}

TEST_LOOP(the_driver_fails, 2) {
  where = ground_at(2 + _i);
  for (victim = 0; victim < 2; victim++)
    run_ranks(2, where->text, have_a_failing_driver);
}

// What the driver refuses to take back is lost; the rest goes, the others do
// not notice, and the call says so.
static void end_with_a_failing_driver(void) {
  tarn_place place = open_ground(where);
  warm_up_plainly(place);
  size_t failures = 0;
  for (size_t n = 1; n <= DRIVER_CALLS; n++) {
    char plan[32];
    tarn_whole *whole = NULL;
    tarn_whole_options options = options_here(place, type_at(n % 2));
    snprintf(plan, sizeof plan, "*@%zu", n / 2 + 1);
    MUST_BE(tarn_whole_create(my.comm, &options, &whole), TARN_OK);
    if (my.rank == victim) MUST_BE(tarn_sim_faults(plan), TARN_OK);
    tarn_status status = tarn_whole_destroy(whole);
    MUST_BE(tarn_sim_faults(NULL), TARN_OK);
    MUST(status == TARN_OK || (my.rank == victim && status == TARN_E_DEVICE));
    if (status != TARN_OK) failures++;
  }
  MUST((failures > 0) == (my.rank == victim));
}

TEST_LOOP(the_driver_refuses_to_take_back, 2) {
  where = ground_at(2 + _i);
  for (victim = 0; victim < 2; victim++)
    run_ranks(2, where->text, end_with_a_failing_driver);
}

// --- the system ------------------------------------------------------------

static void lack_room(void) {
  tarn_place place = open_ground(where);
  warm_up_plainly(place);
  for (size_t t = 0; t < TYPES; t++) {
    tarn_whole *whole = NULL;
    tarn_whole_options options = options_here(place, type_at(t));
    options.size = (size_t)1 << 60;
    options.granularity = 1;
    belongings before = look_around(place);
    tarn_status status = tarn_whole_create(my.comm, &options, &whole);
    MUST(status == TARN_FULL);
    settle(status, whole);
    see_nothing_left(place, before);
  }
  close_ground(place);
}

GROUND_TEST(more_than_there_is, 2, lack_room)

int main(void) {
  faults_install();
  return run_tests();
}
