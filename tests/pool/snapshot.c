// Traces of pools: of every strategy, on each device of the list, they hold
// what the pool's own statistics and events say.
#include <pthread.h>

#include "snapshot_scene.h"
#include "support/effort.h"
#include "support/tagged.h"

// Scenes of one thread, which say nothing where threads are watched.
#define ALONE_ON_DEVICES (THREADS_ARE_WATCHED ? 0 : SCENES_ON_DEVICES)

TEST_LOOP(an_empty_pool_is_a_snapshot_and_nothing_else, ALONE_ON_DEVICES) {
  scene s;
  if (!open_scene(&s, _i)) return;
  tarn_trace *trace = trace_of(s.pool);
  check_state(s.pool, trace);
  ck_assert_uint_eq(trace->event_count, 1);
  ck_assert_uint_eq(trace->block_count, 0);
  ck_assert_uint_eq(trace->lost_count, 0);
  tarn_trace_destroy(trace);
}

TEST_LOOP(without_events_all_blocks_are_the_baseline, ALONE_ON_DEVICES) {
  scene s;
  program p;
  if (!open_scene(&s, _i)) return;
  begin_program(&p, s.pool, s.stream);
  run(&p, STEPS);
  tarn_trace *trace = trace_of(s.pool);
  check_state(s.pool, trace);
  ck_assert_uint_gt(trace->block_count, 4);
  ck_assert_uint_eq(trace->baseline_count, trace->block_count);
  ck_assert_uint_eq(trace->event_count, 1);
  tarn_trace_destroy(trace);
  end_program(&p);
}

TEST_LOOP(events_become_the_trace, ALONE_ON_DEVICES) {
  scene s;
  program p;
  if (!open_scene(&s, _i)) return;
  assert_ok(tarn_pool_account(
      s.pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS | TARN_COUNT_TIMES));
  begin_program(&p, s.pool, s.stream);
  for (int i = 0; i < 6; i++) {
    run(&p, STEPS / 6);
    check_all(s.pool, 0);
  }
  tarn_trace *trace = trace_of(s.pool);
  ck_assert_uint_eq(trace->baseline_count, 0);
  ck_assert_uint_eq(trace->lost_count, 0);
  check_history(trace);
  tarn_trace_destroy(trace);
  end_program(&p);
  check_all(s.pool, 0);
  assert_ok(tarn_pool_trim(s.pool, 0));
  trace = trace_of(s.pool);
  check_history(trace);
  ck_assert_uint_eq(trace->segment_count, 0);
  tarn_trace_destroy(trace);
}

// What is older than the ring is the baseline, whether it is still out or not.
TEST_LOOP(a_small_ring_loses_events_and_no_blocks, ALONE_ON_DEVICES) {
  scene s;
  program p;
  if (!open_scene(&s, _i)) return;
  assert_ok(tarn_pool_account(s.pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  assert_ok(tarn_pool_account_ring(s.pool, 16));
  begin_program(&p, s.pool, s.stream);
  for (int i = 0; i < 40; i++) {
    run(&p, STEPS / 40);
    check_all(s.pool, 0);
  }
  tarn_trace *trace = trace_of(s.pool);
  ck_assert_uint_gt(trace->lost_count, 0);
  ck_assert_uint_gt(trace->baseline_count, 0);
  tarn_trace_destroy(trace);
  end_program(&p);
}

// What happened while nothing was written may contradict what was written
// before: an address has another block now.
TEST_LOOP(events_from_before_a_gap_are_not_believed, ALONE_ON_DEVICES) {
  scene s;
  program p;
  if (!open_scene(&s, _i)) return;
  begin_program(&p, s.pool, s.stream);
  for (uint32_t round = 0; round < 6; round++) {
    uint64_t from = s.pool->events.next;
    uint32_t events = round % 2 == 0 ? TARN_COUNT_EVENTS : 0;
    assert_ok(tarn_pool_account(s.pool, TARN_COUNT_DEFAULT | events));
    run(&p, STEPS / 6);
    check_all(s.pool, from);
  }
  // To switch on what is on leaves no gap.
  uint64_t from = s.pool->events.next;
  assert_ok(tarn_pool_account(s.pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  run(&p, 50);
  assert_ok(tarn_pool_account(
      s.pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS | TARN_COUNT_TIMES));
  run(&p, 50);
  check_all(s.pool, from);
  end_program(&p);
}

// Blocks of a strategy that was replaced, and its memory, are still the pool's.
TEST_LOOP(replaced_strategies_are_part_of_it, ALONE_ON_DEVICES) {
  scene s;
  program p;
  if (!open_scene(&s, _i)) return;
  assert_ok(tarn_pool_account(s.pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  begin_program(&p, s.pool, s.stream);
  for (int i = 0; i < ALL_STRATEGIES; i++) {
    const char *next = any_strategy(i);
    run(&p, STEPS / 6);
    tarn_status status = tarn_pool_set_strategy(s.pool, next);
    require(status == TARN_OK || status == TARN_E_UNSUPPORTED);
    check_all(s.pool, 0);
  }
  end_program(&p);
  check_all(s.pool, 0);
}

// Without a ring a step that is learned is played: what was played is on the
// statistics before they are copied.
TEST_LOOP(steps_that_are_played_are_seen, ALONE_ON_DEVICES) {
  scene s;
  if (!open_scene(&s, _i)) return;
  for (size_t round = 0; round < 200; round++) {
    tarn_block blocks[5];
    for (size_t i = 0; i < 5; i++)
      require(alloc_tagged(s.pool, (i + 1) * 3000, 0, NULL, tags[i % TAGS],
                           &blocks[i]) == TARN_OK);
    if (round % 50 == 49) {
      tarn_trace *trace = trace_of(s.pool);
      check_state(s.pool, trace);
      ck_assert_uint_eq(trace->block_count, 5);
      tarn_trace_destroy(trace);
    }
    for (size_t i = 0; i < 5; i++)
      require(tarn_pool_free(&blocks[i], NULL) == TARN_OK);
  }
  bool learns = strcmp(strategy_at(_i), "arena_pool") == 0;
  ck_assert_int_eq(s.pool->steps.cursor.layout != NULL, learns);
  tarn_trace *trace = trace_of(s.pool);
  check_state(s.pool, trace);
  tarn_trace_destroy(trace);
}

// --- threads ---------------------------------------------------------------

static void *churn(void *context) {
  program p;
  begin_program(&p, context, NULL);
  p.state = (uint64_t)(uintptr_t)&p;
  run(&p, 8000);
  end_program(&p);
  return NULL;
}

// Whatever the moment, the trace agrees with itself: the builder refuses two
// blocks at one address, and a free of what is not there.
TEST_LOOP(a_moment_is_one_while_others_work, SCENES_ON_DEVICES) {
  scene s;
  pthread_t threads[3];
  if (!open_scene(&s, _i)) return;
  assert_ok(tarn_pool_account(s.pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  assert_ok(tarn_pool_account_ring(s.pool, 512));
  for (size_t i = 0; i < 3; i++)
    ck_assert_int_eq(pthread_create(&threads[i], NULL, churn, s.pool), 0);
  for (int i = 0; i < 30; i++) {
    tarn_trace *trace = trace_of(s.pool);
    check_no_overlap(trace);
    require(trace->ignored_count == 0 && trace->unknown_count == 0);
    tarn_trace_destroy(trace);
  }
  for (size_t i = 0; i < 3; i++)
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
  check_all(s.pool, 0);
}
