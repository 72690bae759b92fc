// The recorder: which rows of events are found to repeat, and where they end.
#include "pool/recorder.h"

#include "support/run.h"

static tarn__pool_recorder recorder;

static void setup(void) {
  tarn__recorder_restart(&recorder, 0);
}

static void teardown(void) {
  tarn__recorder_deinit(&recorder);
}

static uint64_t taken(size_t size) {
  tarn__pool_note note = {.size = size};
  return tarn__recorder_alloc(&recorder, &note);
}

static void freed(uint64_t number, size_t size) {
  tarn__recorder_free(&recorder, number, 0, size);
}

// Six events; at the end nothing is live.
static void play_step(size_t scale) {
  uint64_t a = taken(1 * scale);
  uint64_t b = taken(2 * scale);
  freed(b, 2 * scale);
  uint64_t c = taken(3 * scale);
  freed(a, 1 * scale);
  freed(c, 3 * scale);
}

// How many steps it takes; 0: it is never due.
static size_t steps_until_due(size_t most) {
  for (size_t i = 1; i <= most; i++) {
    play_step(100);
    if (tarn__recorder_is_due(&recorder)) return i;
  }
  return 0;
}

TEST(a_step_that_repeats_is_due_at_its_end) {
  // Seen once, and then for 512 events.
  size_t steps = steps_until_due(1000);
  ck_assert_uint_ge(steps, 512 / 6);
  ck_assert_uint_le(steps, 512 / 6 + 6);
  ck_assert_uint_eq(recorder.period, 6);
  ck_assert_uint_eq(tarn__recorder_note(&recorder, 0)->size, 100);
  ck_assert_uint_eq(tarn__recorder_note(&recorder, 0)->back, 0);
  ck_assert_uint_eq(tarn__recorder_note(&recorder, 2)->back, 1);
  ck_assert_uint_eq(tarn__recorder_note(&recorder, 4)->back, 4);
  ck_assert_uint_eq(tarn__recorder_note(&recorder, 5)->size, 300);
}

TEST(it_is_due_again_after_each_step) {
  ck_assert_uint_ne(steps_until_due(1000), 0);
  for (size_t i = 0; i < 100; i++) {
    (void)taken(100);
    ck_assert(!tarn__recorder_is_due(&recorder));
    tarn__recorder_restart(&recorder, 0);
    ck_assert(!tarn__recorder_is_due(&recorder));
    ck_assert_uint_ne(steps_until_due(1000), 0);
    play_step(100);
    ck_assert(tarn__recorder_is_due(&recorder));
  }
}

TEST(what_changes_ends_the_guess) {
  ck_assert_uint_ne(steps_until_due(1000), 0);
  play_step(101);
  ck_assert(!tarn__recorder_is_due(&recorder));
  play_step(100);
  ck_assert(!tarn__recorder_is_due(&recorder));
  ck_assert_uint_ne(steps_until_due(1000), 0);
}

TEST(more_evidence_takes_longer) {
  size_t usual = steps_until_due(1000);
  tarn__recorder_restart(&recorder, 5000);
  ck_assert_uint_ge(steps_until_due(10000), 5000 / 6);
  ck_assert_uint_lt(usual, 5000 / 6);
}

// Each of |layers| is a period for a while; what is behind them is not.
static void play_net(size_t layers) {
  for (size_t i = 0; i < layers; i++)
    play_step(100);
  uint64_t loss = taken(7);
  freed(loss, 7);
}

TEST(layers_are_not_taken_for_the_step) {
  for (size_t i = 0; i < 40 && recorder.due == 0; i++)
    play_net(50);
  ck_assert_uint_eq(recorder.period, 50 * 6 + 2);
  ck_assert_uint_ne(recorder.due, 0);
}

// Blocks that outlive the step in which they were taken.
TEST(a_block_may_be_freed_in_the_next_step) {
  uint64_t before = taken(5000);
  bool due = false;
  for (size_t i = 0; i < 400 && !due; i++) {
    uint64_t now = taken(5000);
    freed(before, 5000);
    before = now;
    play_step(10);
    due = recorder.due != 0;
  }
  ck_assert(due);
  ck_assert_uint_eq(recorder.period, 8);
}

TEST(the_end_is_where_least_is_live) {
  // The step as it comes begins in the middle.
  uint64_t large = taken(1000);
  for (size_t i = 0; i < 1000 && !tarn__recorder_is_due(&recorder); i++) {
    freed(large, 1000);
    if (tarn__recorder_is_due(&recorder)) break;
    large = taken(1000);
    freed(taken(10), 10);
  }
  ck_assert(tarn__recorder_is_due(&recorder));
  ck_assert_uint_eq(recorder.period, 4);
  ck_assert_uint_eq(tarn__recorder_note(&recorder, 0)->size, 1000);
  ck_assert_uint_eq(tarn__recorder_note(&recorder, 3)->size, 1000);
}

TEST(excluded_requests_repeat_as_before) {
  for (size_t i = 0; i < 1000 && !tarn__recorder_is_due(&recorder); i++) {
    uint64_t used = taken(100);
    tarn__recorder_exclude(&recorder, used);
    freed(used, 100);
    play_step(10);
  }
  ck_assert(tarn__recorder_is_due(&recorder));
  ck_assert_uint_eq(recorder.period, 8);
  size_t excluded = 0;
  for (size_t i = 0; i < 8; i++)
    excluded +=
        (tarn__recorder_note(&recorder, i)->flags & TARN__HEARD_EXCLUDED) != 0;
  ck_assert_uint_eq(excluded, 1);
}

TEST(sizes_that_never_come_again_are_given_up) {
  size_t size = 1;
  uint64_t heard = 0;
  for (size_t i = 0; i < 2000000; i++) {
    freed(taken(size), size);
    size++;
    require(recorder.due == 0);
    if (heard == 0 && recorder.rest > 0) heard = recorder.count;
  }
  ck_assert_uint_ne(heard, 0);
  ck_assert_uint_le(recorder.room, 1 << 18);
  // It listens again some time.
  uint64_t rest = recorder.rest;
  ck_assert_uint_ne(rest, 0);
  for (uint64_t i = 0; i < rest; i++)
    (void)taken(1);
  ck_assert_uint_ne(steps_until_due(1000), 0);
}

// What is learned now and then, and serves next to nothing, is not worth it.
static bool comes_to_rest(size_t served) {
  for (size_t i = 0; i < 1000000 && recorder.rest == 0; i++) {
    (void)taken(i + 1);
    if (i % 1000 != 0) continue;
    tarn__recorder_restart(&recorder, 0);
    tarn__recorder_earn(&recorder, served);
  }
  return recorder.rest != 0;
}

TEST(steps_that_serve_little_are_given_up) {
  ck_assert(comes_to_rest(16));
}

TEST(steps_that_serve_as_much_as_is_heard_are_not_given_up) {
  ck_assert(!comes_to_rest(1000));
}

TEST(steps_of_many_events_are_found) {
  enum { EVENTS = 2 * 65536 };
  for (size_t round = 0; round < 4 && recorder.due == 0; round++) {
    for (size_t i = 0; i < EVENTS / 2; i++)
      freed(taken(i + 1), i + 1);
  }
  ck_assert_uint_ne(recorder.due, 0);
  ck_assert_uint_eq(recorder.period, EVENTS);
}

// --- blocks that other threads free ------------------------------------------

// One block of each step goes to another thread, which frees it after up to
// |most| events more, as it happens.
static bool play_with_another(size_t steps, size_t most) {
  uint64_t given = 0;
  for (size_t i = 0; i < steps; i++) {
    given = taken(700);
    for (size_t j = 0; j < most; j += 2) {
      if (j == (i * 2) % most) tarn__recorder_lose(&recorder, given);
      freed(taken(10 + j), 10 + j);
    }
    if (recorder.due != 0) return true;
  }
  return false;
}

TEST(frees_of_another_thread_do_not_matter_for_the_period) {
  ck_assert(play_with_another(200, 20));
  ck_assert_uint_eq(recorder.period, 21);
  size_t at = 0;
  while (tarn__recorder_note(&recorder, at)->size != 700)
    at++;
  // The longest that was seen.
  ck_assert_uint_eq(tarn__recorder_lifetime(&recorder, at), 19);
  ck_assert_uint_eq(tarn__recorder_lifetime(&recorder, (at + 1) % 21), 0);
}

TEST(what_is_lost_before_it_was_noted_is_nothing) {
  tarn__recorder_lose(&recorder, 0);
  tarn__recorder_lose(&recorder, 12);
  uint64_t number = taken(100);
  tarn__recorder_restart(&recorder, 0);
  tarn__recorder_lose(&recorder, number);
  ck_assert_uint_ne(steps_until_due(1000), 0);
}

// --- marks -------------------------------------------------------------------

// |length| requests and frees; those of another |shape| are other ones.
static void play_row(size_t shape, size_t length) {
  for (size_t i = 0; i < length / 2; i++)
    freed(taken(shape * 1000 + i + 1), shape * 1000 + i + 1);
}

// How many rows it takes, of three shapes by turns that is no period.
static size_t rows_until_due(size_t most, size_t live, size_t known) {
  uint64_t seed = 1;
  for (size_t i = 1; i <= most; i++) {
    tarn__recorder_mark(&recorder, live, known);
    if (tarn__recorder_is_due(&recorder)) return i;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    play_row(seed >> 33 & 3, 100 + (seed >> 33 & 3) * 2);
  }
  return 0;
}

TEST(rows_between_marks_are_found) {
  size_t rows = rows_until_due(200, 77, 0);
  ck_assert_uint_gt(rows, 512 / 106);
  ck_assert(recorder.is_single);
  ck_assert_uint_ge(recorder.period, 100);
  ck_assert_uint_le(recorder.period, 106);
  ck_assert_uint_eq(tarn__recorder_note(&recorder, 0)->back, 0);
  tarn__recorder_restart(&recorder, 0);
  ck_assert(!recorder.is_single);
}

TEST(sure_marks_need_less) {
  size_t usual = rows_until_due(200, 77, 0);
  tarn__recorder_restart(&recorder, 0);
  tarn__recorder_forget(&recorder);
  size_t sure = rows_until_due(200, 77, 150);
  ck_assert_uint_ne(sure, 0);
  ck_assert_uint_lt(sure, usual);
}

// They may be parts of the steps that are known.
TEST(rows_that_are_much_shorter_than_a_known_step_are_none) {
  ck_assert_uint_eq(rows_until_due(200, 77, 1000), 0);
}

// Where more is live behind a row than before it, it is no step.
TEST(rows_that_leave_something_are_none) {
  for (size_t i = 0; i < 200; i++) {
    tarn__recorder_mark(&recorder, i, 100);
    ck_assert(!recorder.is_single);
    play_row(i % 2, 100 + i % 3 * 2);
  }
}

TEST(rows_of_few_events_are_part_of_the_next) {
  for (size_t i = 0; i < 100 && !tarn__recorder_is_due(&recorder); i++) {
    play_row(i % 2, 4);
    tarn__recorder_mark(&recorder, 0, 60);
    play_row(2 + i % 3 % 2, 60);
    tarn__recorder_mark(&recorder, 0, 60);
  }
  ck_assert(tarn__recorder_is_due(&recorder));
  ck_assert_uint_eq(recorder.period, 64);
}

FIXTURE(setup, teardown);
