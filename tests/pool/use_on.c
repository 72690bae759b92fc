// Blocks that several streams use: their memory is not used again before all
// of those are done. On a device whose streams run only when waited for, where
// a test sees that a copy without a wait has not run.
#include <stdio.h>
#include <unistd.h>

#include "support/child.h"
#include "support/faults.h"
#include "support/strategy.h"
#include "use_on_kit.h"

// --- freed on a stream -----------------------------------------------------

TEST_LOOP(the_freeing_stream_waits_for_the_other, STRATEGIES) {
  static char theirs[8];
  static char next[8];
  open_fake(strategies[_i]);
  tarn_block block = take_on(pool, SIZE, streams[0]);
  queue_use(block, streams[1], "theirs ", theirs);
  use_on(block, streams[1]);
  give_on(block, streams[0]);
  ck_assert_uint_eq(fake_seen.copies, 0);  // no call has waited
  tarn_block again = take_on(pool, SIZE, streams[0]);
  ck_assert_uint_eq(again.address, block.address);
  queue_use(again, streams[0], "next   ", next);
  assert_ok(tarn_stream_synchronize(streams[0]));
  ck_assert_str_eq(theirs, "theirs ");
  ck_assert_str_eq(next, "next   ");
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 1);
  give_on(again, streams[0]);
}

// What it does afterwards is none of the block's business.
TEST(it_waits_for_what_was_queued_by_then) {
  static char theirs[8];
  static char later[8];
  open_fake("page_unit_pool");
  tarn_block kept = take_on(pool, TWICE, streams[1]);
  tarn_block block = take_on(pool, SIZE, streams[0]);
  use_on(block, streams[1]);
  queue_use(block, streams[1], "theirs ", theirs);
  give_on(block, streams[0]);
  queue_use(kept, streams[1], "later  ", later);
  assert_ok(tarn_stream_synchronize(streams[0]));
  ck_assert_str_eq(theirs, "theirs ");
  ck_assert_str_eq(later, "");
  give_on(kept, streams[1]);
}

TEST(its_own_stream_is_no_other) {
  static char out[8];
  open_fake("page_unit_pool");
  tarn_block block = take_on(pool, SIZE, streams[0]);
  use_on(block, streams[0]);
  queue_use(block, streams[0], "in use ", out);
  faults_arm(1, FAULTS_FROM_NOW);  // not a call of the driver
  fake.strikes = true;
  give_on(block, streams[0]);
  tarn_block again = take_on(pool, SIZE, streams[0]);
  fake.strikes = false;
  ck_assert(!faults_disarm());
  ck_assert_uint_eq(again.address, block.address);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 0);
  give_on(again, streams[0]);
}

TEST(a_stream_that_is_idle_holds_nothing_up) {
  open_fake("page_unit_pool");
  tarn_block block = take_on(pool, SIZE, streams[0]);
  use_on(block, streams[1]);
  give_on(block, streams[0]);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 0);
  ck_assert_uint_eq(fake_seen.waits, 0);
}

TEST(uses_end_with_the_free) {
  static char out[8];
  open_fake("page_unit_pool");
  tarn_block block = take_on(pool, SIZE, streams[0]);
  use_on(block, streams[1]);
  give_on(block, streams[0]);
  tarn_block again = take_on(pool, SIZE, streams[0]);
  ck_assert_uint_eq(again.address, block.address);
  queue_use(again, streams[1], "unsaid ", out);  // on the same stream
  give_on(again, streams[0]);
  assert_ok(tarn_stream_synchronize(streams[0]));
  ck_assert_str_eq(out, "");
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 0);
}

// --- freed by the host -----------------------------------------------------

// One stream's uses are in its order, so no wait is needed.
TEST_LOOP(the_host_frees_without_waiting, STRATEGIES) {
  static char theirs[8];
  open_fake(strategies[_i]);
  tarn_block block = take(pool, SIZE);
  use_on(block, streams[1]);
  queue_use(block, streams[1], "theirs ", theirs);
  give(block);
  ck_assert_uint_eq(fake_seen.waits, 0);
  ck_assert_str_eq(theirs, "");
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 0);
  tarn_block again = take(pool, SIZE);  // now it must
  ck_assert_uint_eq(again.address, block.address);
  ck_assert_str_eq(theirs, "theirs ");
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 1);
  give(again);
}

TEST_LOOP(the_host_frees_what_several_use_without_waiting, STRATEGIES) {
  static char theirs[STREAMS][8];
  open_fake(strategies[_i]);
  tarn_block block = take(pool, ALL);
  for (int i = 0; i < STREAMS; i++) {
    use_on(block, streams[i]);
    queue_use_at(block.address + (tarn_addr)i * SIZE, streams[i], "theirs ",
                 theirs[i]);
  }
  give(block);
  ck_assert_uint_eq(fake_seen.waits, 0);
  ck_assert_uint_eq(fake_seen.copies, 0);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, STREAMS - 1);
  tarn_block again = take(pool, ALL);
  ck_assert_uint_eq(again.address, block.address);
  for (int i = 0; i < STREAMS; i++)
    ck_assert_str_eq(theirs[i], "theirs ");
  give(again);
}

TEST(what_the_host_has_waited_for_is_nobody_s) {
  static char theirs[8];
  open_fake("page_unit_pool");
  tarn_block block = take(pool, SIZE);
  use_on(block, streams[1]);
  queue_use(block, streams[1], "theirs ", theirs);
  assert_ok(tarn_stream_synchronize(streams[1]));
  size_t waits = fake_seen.waits;
  give(block);
  static char later[8];
  tarn_block kept = take(pool, TWICE);
  queue_use(kept, streams[1], "later  ", later);
  tarn_block again = take(pool, SIZE);
  ck_assert_uint_eq(again.address, block.address);
  ck_assert_uint_eq(fake_seen.waits, waits);
  ck_assert_str_eq(later, "");
  give(again);
  give_on(kept, streams[1]);
}

// Taken for the second stream behind the first, used by a third, freed by the
// host: both the order that it stood in and the use count.
TEST(the_host_frees_behind_what_was_before_too) {
  static char first[8];
  static char theirs[8];
  open_fake("page_unit_pool");
  tarn_block block = take_on(pool, SIZE, streams[0]);
  queue_use(block, streams[0], "first  ", first);
  give_on(block, streams[0]);
  block = take_on(pool, SIZE, streams[1]);
  use_on(block, streams[2]);
  queue_use_at(block.address + 8, streams[2], "theirs ", theirs);
  give(block);
  ck_assert_uint_eq(fake_seen.copies, 0);
  tarn_block again = take(pool, SIZE);
  ck_assert_uint_eq(again.address, block.address);
  ck_assert_str_eq(first, "first  ");
  ck_assert_str_eq(theirs, "theirs ");
  give(again);
}

// --- lists -----------------------------------------------------------------

TEST(one_stream_is_noted_once_and_in_place) {
  open_fake("page_unit_pool");
  tarn_block block = take_on(pool, SIZE, streams[0]);
  size_t held = tarn_host_memory();
  for (int i = 0; i < 100; i++)
    use_on(block, streams[1]);
  ck_assert_uint_eq(tarn_host_memory(), held);
  for (int i = 0; i < 100; i++) {
    use_on(block, streams[2]);
    use_on(block, streams[3]);
  }
  const tarn__pool_piece *piece = tarn__pieces_at(&pool->pieces, block.id);
  ck_assert_uint_eq(tarn__uses_count(&piece->uses), 3);
  give_on(block, streams[0]);
  ck_assert_uint_eq(tarn_host_memory(), held);
}

TEST(many_streams_are_all_waited_for) {
  enum { MANY = 40 };
  tarn_stream *many[MANY];
  static char out[MANY][8];
  open_fake("page_unit_pool");
  tarn_block block = take_on(pool, SIZE, streams[0]);
  for (int i = 0; i < MANY; i++) {
    many[i] = stream_of(device);
    use_on(block, many[i]);
    queue_use_at(block.address + (tarn_addr)i * 8, many[i], "theirs ", out[i]);
  }
  give_on(block, streams[0]);
  ck_assert_uint_eq(fake_seen.copies, 0);
  assert_ok(tarn_stream_synchronize(streams[0]));
  for (int i = 0; i < MANY; i++) {
    ck_assert_str_eq(out[i], "theirs ");
  }
  ck_assert_uint_eq(stats_of(pool).stream_crossings, MANY);
}

TEST(streams_that_are_gone_hold_nothing_up) {
  enum { MANY = 500 };
  static char out[8];
  open_fake("page_unit_pool");
  tarn_block block = take_on(pool, SIZE, streams[0]);
  use_on(block, streams[1]);
  size_t held = 0;
  for (int i = 0; i < MANY; i++) {
    tarn_stream *gone = stream_of(device);
    use_on(block, gone);
    queue_use(block, gone, "theirs ", out);
    end_stream(gone);
    ck_assert_str_eq(out, "theirs ");
    if (i == 0) held = tarn_host_memory();
  }
  ck_assert_uint_eq(tarn_host_memory(), held);  // their room is used again
  size_t waits = fake_seen.waits;
  give_on(block, streams[0]);
  ck_assert_uint_eq(fake_seen.waits, waits);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 0);
}

// --- giving back at once ---------------------------------------------------

static const char *const direct[] = {"no_pool", "async_pool"};

TEST_LOOP(memory_goes_back_behind_all_uses, 4) {
  static char theirs[8];
  static char own[8];
  bool by_host = _i / 2 == 1;
  open_fake(direct[_i % 2]);
  tarn_block block = take_on(pool, SIZE, streams[0]);
  queue_use(block, streams[0], "own    ", own);
  use_on(block, streams[1]);
  queue_use_at(block.address + 8, streams[1], "theirs ", theirs);
  if (by_host) assert_ok(tarn_stream_synchronize(streams[0]));
  give_on(block, by_host ? NULL : streams[0]);
  ck_assert_str_eq(own, "own    ");
  ck_assert_str_eq(theirs, "theirs ");
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
}

TEST(a_switch_forgets_no_use) {
  static char theirs[8];
  open_fake("page_unit_pool");
  tarn_block block = take_on(pool, SIZE, streams[0]);
  use_on(block, streams[1]);
  queue_use(block, streams[1], "theirs ", theirs);
  assert_ok(use_strategy(tarn_place_on(device), "arena_pool"));
  ck_assert_str_eq(theirs, "");
  give_on(block, streams[0]);
  ck_assert_str_eq(theirs, "theirs ");
}

TEST(freed_by_address_is_the_same) {
  static char theirs[8];
  open_fake("page_unit_pool");
  tarn_block block = take_on(pool, SIZE, streams[0]);
  use_on(block, streams[1]);
  queue_use(block, streams[1], "theirs ", theirs);
  assert_ok(tarn_pool_free_address(pool, block.address, streams[0]));
  assert_ok(tarn_stream_synchronize(streams[0]));
  ck_assert_str_eq(theirs, "theirs ");
}

// --- cutting ---------------------------------------------------------------

// What is cut off may be in use by the other stream.
TEST_LOOP(what_is_cut_off_is_behind_all_uses, 2) {
  static char theirs[8];
  static char next[8];
  tarn_stream *by = NULL;
  open_fake("arena_pool");
  if (_i == 0) by = streams[0];
  tarn_block block = take_on(pool, MIB, by);
  use_on(block, streams[1]);
  queue_use_at(block.address + MIB / 2, streams[1], "theirs ", theirs);
  assert_ok(tarn_pool_resize(&block, MIB / 2, by));
  ck_assert_str_eq(theirs, "");
  tarn_block tail = take_on(pool, MIB / 2, streams[2]);
  ck_assert_uint_eq(tail.address, block.address + MIB / 2);
  queue_use(tail, streams[2], "next   ", next);
  assert_ok(tarn_stream_synchronize(streams[2]));
  ck_assert_str_eq(theirs, "theirs ");
  ck_assert_str_eq(next, "next   ");
  // What is left is still that stream's to use.
  static char rest[8];
  queue_use(block, streams[1], "rest   ", rest);
  give_on(block, streams[0]);
  assert_ok(tarn_stream_synchronize(streams[0]));
  ck_assert_str_eq(rest, "rest   ");
  give_on(tail, streams[2]);
}

TEST(growing_waits_for_nobody) {
  static char theirs[8];
  open_fake("arena_pool");
  tarn_block block = take_on(pool, MIB / 2, streams[0]);
  use_on(block, streams[1]);
  queue_use(block, streams[1], "theirs ", theirs);
  assert_ok(tarn_pool_resize(&block, MIB, streams[0]));
  assert_ok(tarn_stream_synchronize(streams[0]));
  ck_assert_str_eq(theirs, "");
  give_on(block, streams[0]);
}

// --- errors ----------------------------------------------------------------

static void assert_refused(const tarn_block *block, const char *says) {
  tarn_pool_stats before = stats_of(pool);
  assert_status(tarn_block_use_on(block, streams[1]), TARN_E_INVALID);
  assert_error_says(says);
  assert_status(tarn_block_use_on(block, NULL), TARN_E_INVALID);
  assert_same_stats(before, stats_of(pool));
}

TEST(no_block_is_refused) {
  open_fake("page_unit_pool");
  tarn_block zero = {0};
  assert_refused(NULL, "NULL");
  assert_refused(&zero, "NULL");
  zero.pool = pool;
  assert_refused(&zero, "no block");
  tarn_block block = take_on(pool, SIZE, streams[0]);
  tarn_block forged = block;
  forged.generation++;
  assert_refused(&forged, "use_on: no block");
  forged = block;
  forged.address++;
  assert_refused(&forged, "no block");
  tarn_block foreign = block;
  foreign.pool = host_pool("page_unit_pool");
  assert_refused(&foreign, "pool of host");
  give_on(block, streams[0]);
  assert_refused(&block, "use_on: the block at");
  assert_refused(&block, "freed before");
}

TEST(the_host_s_uses_need_no_note) {
  open_fake("page_unit_pool");
  tarn_block block = take_on(pool, SIZE, streams[0]);
  use_on(block, NULL);
  const tarn__pool_piece *piece = tarn__pieces_at(&pool->pieces, block.id);
  ck_assert(!tarn__uses_any(&piece->uses));
  give_on(block, streams[0]);
}

// As if it had let go of the lock.
TEST(a_block_that_another_thread_is_at_is_refused) {
  open_fake("page_unit_pool");
  tarn_block block = take_on(pool, SIZE, streams[0]);
  tarn__pool_piece *piece = tarn__pieces_at(&pool->pieces, block.id);
  piece->resizing = true;
  assert_status(tarn_block_use_on(&block, streams[1]), TARN_E_STATE);
  assert_error_says("another thread");
  assert_status(tarn_pool_free(&block, streams[0]), TARN_E_STATE);
  piece->resizing = false;
  give_on(block, streams[0]);
}

static tarn_status seen_in_callback;

static void use_in_callback(void *context, tarn_status status) {
  (void)status;
  seen_in_callback = tarn_block_use_on(context, streams[1]);
}

TEST(a_callback_cannot_say_it) {
  open_fake("page_unit_pool");
  tarn_block block = take_on(pool, SIZE, streams[0]);
  assert_ok(tarn_stream_add_callback(streams[0], use_in_callback, &block));
  assert_ok(tarn_stream_synchronize(streams[0]));
  ck_assert_int_eq(seen_in_callback, TARN_E_STATE);
  give_on(block, streams[0]);
}

// The list is not lost when there is no room for one more.
TEST(without_host_memory_nothing_changes) {
  static char out[STREAMS][8];
  faults_install();
  open_fake("page_unit_pool");
  tarn_block block = take_on(pool, SIZE, streams[0]);
  use_on(block, streams[1]);
  queue_use(block, streams[1], "theirs ", out[1]);
  size_t held = tarn_host_memory();
  faults_arm(1, FAULTS_FROM_NOW);
  assert_status(tarn_block_use_on(&block, streams[2]), TARN_E_NOMEM);
  use_on(block, streams[1]);
  ck_assert(faults_disarm());
  ck_assert_uint_eq(tarn_host_memory(), held);
  const tarn__pool_piece *piece = tarn__pieces_at(&pool->pieces, block.id);
  ck_assert_uint_eq(tarn__uses_count(&piece->uses), 1);
  use_on(block, streams[2]);
  queue_use_at(block.address + 8, streams[2], "theirs ", out[2]);
  give_on(block, streams[0]);
  assert_ok(tarn_stream_synchronize(streams[0]));
  ck_assert_str_eq(out[1], "theirs ");
  ck_assert_str_eq(out[2], "theirs ");
}

// Whatever fails on the way, the memory is not used again too early: where no
// event can be had, the thread itself waits.
TEST_LOOP(a_free_waits_even_without_host_memory, 2) {
  for (size_t n = 1;; n++) {
    char theirs[2][8] = {""};
    if (n == 1) {
      faults_install();
      open_fake("page_unit_pool");
    }
    tarn_block block = take_on(pool, SIZE, _i == 0 ? streams[0] : NULL);
    for (int i = 0; i < 2; i++) {
      use_on(block, streams[i + 1]);
      queue_use_at(block.address + (tarn_addr)i * 8, streams[i + 1], "theirs ",
                   theirs[i]);
    }
    faults_arm(n, FAULTS_FROM_NOW);
    (void)tarn_pool_free(&block, _i == 0 ? streams[0] : NULL);
    bool struck = faults_disarm();
    block = take(pool, SIZE);
    ck_assert_str_eq(theirs[0], "theirs ");
    ck_assert_str_eq(theirs[1], "theirs ");
    give(block);
    assert_ok(tarn__front_check(pool));
    if (!struck) break;
  }
}

// The failure sticks to the stream that could not be waited for; the block is
// free all the same.
TEST(a_driver_that_fails_keeps_no_block) {
  static char out[8];
  open_fake("page_unit_pool");
  tarn_block block = take_on(pool, SIZE, streams[0]);
  use_on(block, streams[1]);
  queue_use(block, streams[1], "theirs ", out);
  faults_arm(1, FAULTS_FROM_NOW);
  fake.strikes = true;
  (void)tarn_pool_free(&block, streams[0]);
  fake.strikes = false;
  ck_assert(faults_disarm());
  assert_status(tarn_stream_synchronize(streams[1]), TARN_E_DEVICE);
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
  assert_ok(tarn__front_check(pool));
  assert_status(tarn_pool_free(&block, streams[0]), TARN_E_INVALID);
  forget(device);
  for (int i = 0; i < STREAMS; i++)
    (void)tarn_stream_destroy(streams[i]);  // some have failed
  close_device(device);
}

// --- forks -----------------------------------------------------------------

static tarn_block parents;

// In a child, which has no part in Check.
static void use_the_parent_s(void) {
  size_t held = tarn_host_memory();
  bool right = tarn_block_use_on(&parents, NULL) == TARN_E_STATE &&
               tarn_block_use_on(&parents, streams[1]) == TARN_E_STATE;
  tarn_pool *own = NULL;
  tarn_block mine = {0};
  right = right && tarn_pool_of(TARN_HOST, &own) == TARN_OK &&
          tarn_pool_alloc(own, 100, 0, NULL, &mine) == TARN_OK &&
          tarn_block_use_on(&mine, streams[1]) == TARN_E_STATE &&
          tarn_pool_free(&mine, NULL) == TARN_OK;
  // The pool's memory goes, the lists of its blocks with it.
  right = right && tarn_device_close(device) == TARN_OK;
  if (!right) fprintf(stderr, "in the child: %s\n", tarn_last_error());
  _exit(right && tarn_host_memory() < held + 262144 ? 0 : 1);
}

TEST(a_child_cannot_say_it_of_its_parent_s) {
  open_fake("page_unit_pool");
  parents = take_on(pool, SIZE, streams[0]);
  for (int i = 1; i < STREAMS; i++)
    use_on(parents, streams[i]);
  pid_t child = fork();
  if (child == 0) {
    child_begin(30);
    use_the_parent_s();
  }
  assert_child_ended_well(child);
  give_on(parents, streams[0]);
}
