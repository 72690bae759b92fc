// Pools and streams, on a device whose streams run only when waited for: a test
// sees that a copy without a wait has not run.
#include "streams_kit.h"
#include "support/faults.h"

enum { SIZE = 4096 };

static const char *const keeping[] = {"page_unit_pool", "arena_pool",
                                      "buddy_pool:init=64K"};
enum { KEEPING = sizeof keeping / sizeof *keeping };

// --- crossing --------------------------------------------------------------

TEST_LOOP(another_stream_waits_for_the_first, KEEPING) {
  static char out_a[8];
  static char out_b[8];
  open_fake(keeping[_i]);
  tarn_block first = take_on(pool, SIZE, a);
  queue_use(first, a, "first  ", out_a);
  give_on(first, a);
  tarn_block second = take_on(pool, SIZE, b);
  ck_assert_uint_eq(second.address, first.address);
  queue_use(second, b, "second ", out_b);
  ck_assert_uint_eq(fake_seen.waits, 0);
  ck_assert_uint_eq(fake_seen.copies, 0);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 1);

  assert_ok(tarn_stream_synchronize(b));
  ck_assert_str_eq(out_a, "first  ");
  ck_assert_str_eq(out_b, "second ");
  ck_assert_uint_eq(fake_seen.copies, 4);
  assert_ok(tarn_stream_synchronize(a));
  ck_assert_str_eq(out_b, "second ");
  give_on(second, b);
}

// It waits for what was queued when it took the block, and for no more.
TEST(another_stream_waits_for_no_more_than_it_must) {
  static char out_a[8];
  static char out_b[8];
  static char later[8];
  open_fake("page_unit_pool");
  tarn_block kept = take_on(pool, 2 * SIZE, a);
  tarn_block first = take_on(pool, SIZE, a);
  queue_use(first, a, "first  ", out_a);
  give_on(first, a);
  tarn_block second = take_on(pool, SIZE, b);
  queue_use(kept, a, "later  ", later);
  queue_use(second, b, "second ", out_b);
  assert_ok(tarn_stream_synchronize(b));
  ck_assert_str_eq(out_a, "first  ");
  ck_assert_str_eq(out_b, "second ");
  ck_assert_str_eq(later, "");
  give_on(second, b);
  give_on(kept, a);
}

TEST_LOOP(the_same_stream_does_not_wait, KEEPING) {
  static char out[8];
  open_fake(keeping[_i]);
  tarn_block first = take_on(pool, SIZE, a);
  queue_use(first, a, "first  ", out);
  give_on(first, a);
  // Not even an event: every further call of the driver would fail.
  faults_arm(1, FAULTS_FROM_NOW);
  fake.strikes = true;
  tarn_block second = take_on(pool, SIZE, a);
  fake.strikes = false;
  ck_assert(!faults_disarm());
  ck_assert_uint_eq(second.address, first.address);
  ck_assert_uint_eq(fake_seen.waits, 0);
  ck_assert_uint_eq(fake_seen.copies, 0);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 0);
  give_on(second, a);
}

TEST_LOOP(the_host_waits_for_the_stream, KEEPING) {
  static char out[8];
  open_fake(keeping[_i]);
  tarn_block first = take_on(pool, SIZE, a);
  queue_use(first, a, "first  ", out);
  give_on(first, a);
  tarn_block second = take(pool, SIZE);
  ck_assert_uint_eq(second.address, first.address);
  ck_assert_str_eq(out, "first  ");
  ck_assert_uint_ge(fake_seen.waits, 1);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 1);
  give(second);
}

TEST_LOOP(what_the_host_freed_is_there_at_once, KEEPING) {
  open_fake(keeping[_i]);
  tarn_block first = take_on(pool, SIZE, a);
  give(first);
  tarn_block second = take_on(pool, SIZE, b);
  ck_assert_uint_eq(second.address, first.address);
  ck_assert_uint_eq(fake_seen.waits, 0);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 0);
  give_on(second, b);
}

TEST(memory_of_the_own_stream_is_preferred_then_the_host_s) {
  open_fake("page_unit_pool");
  tarn_block of_a = take_on(pool, SIZE, a);
  tarn_block of_b = take_on(pool, SIZE, b);
  tarn_block of_host = take(pool, SIZE);
  give_on(of_b, b);
  give(of_host);
  give_on(of_a, a);
  tarn_block first = take_on(pool, SIZE, b);
  ck_assert_uint_eq(first.address, of_b.address);
  tarn_block second = take_on(pool, SIZE, b);
  ck_assert_uint_eq(second.address, of_host.address);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 0);
  tarn_block third = take_on(pool, SIZE, b);
  ck_assert_uint_eq(third.address, of_a.address);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 1);
  ck_assert_uint_eq(stats_of(pool).misses, 3);
  give(first);
  give(second);
  give(third);
}

TEST(a_stream_that_is_gone_holds_nothing_up) {
  open_fake("page_unit_pool");
  tarn_stream *gone = stream_of(device);
  static char out[8];
  tarn_block first = take_on(pool, SIZE, gone);
  queue_use(first, gone, "first  ", out);
  give_on(first, gone);
  end_stream(gone);
  ck_assert_str_eq(out, "first  ");
  size_t waits = fake_seen.waits;
  tarn_block second = take(pool, SIZE);
  ck_assert_uint_eq(second.address, first.address);
  ck_assert_uint_eq(fake_seen.waits, waits);
  give(second);
}

// Blocks of many streams: each has a shelf of its own.
TEST(many_streams_keep_their_memory_apart) {
  enum { COUNT = 40 };
  tarn_stream *many[COUNT];
  tarn_addr addresses[COUNT];
  tarn_block blocks[COUNT];
  open_fake("page_unit_pool");
  for (int i = 0; i < COUNT; i++) {
    many[i] = stream_of(device);
    blocks[i] = take_on(pool, SIZE, many[i]);
    addresses[i] = blocks[i].address;
  }
  for (int i = 0; i < COUNT; i++)
    give_on(blocks[i], many[i]);
  for (int i = COUNT; i-- > 0;) {
    blocks[i] = take_on(pool, SIZE, many[i]);
    ck_assert_uint_eq(blocks[i].address, addresses[i]);
  }
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 0);
  ck_assert_uint_eq(stats_of(pool).misses, COUNT);
  for (int i = 0; i < COUNT; i++)
    give_on(blocks[i], many[i]);
}

// If the wait cannot be arranged, the block goes back as it came.
TEST(a_crossing_that_fails_gives_no_block) {
  static char out[8];
  open_fake("page_unit_pool");
  tarn_block first = take_on(pool, SIZE, a);
  queue_use(first, a, "first  ", out);
  give_on(first, a);
  tarn_pool_stats before = stats_of(pool);
  tarn_block second;
  memset(&second, 0xff, sizeof second);
  faults_arm(1, FAULTS_FROM_NOW);
  fake.strikes = true;
  assert_status(tarn_pool_alloc(pool, SIZE, 0, b, &second), TARN_E_DEVICE);
  fake.strikes = false;
  ck_assert(faults_disarm());
  assert_zero_block(second);
  tarn_pool_stats after = stats_of(pool);
  ck_assert_uint_eq(after.failures, before.failures + 1);
  before.live_peak_bytes = after.live_peak_bytes;  // it was out for a moment
  assert_same_stats(before, after);
  assert_ok(tarn__front_check(pool));

  second = take_on(pool, SIZE, b);  // and is still behind the first stream
  ck_assert_uint_eq(second.address, first.address);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 1);
  assert_ok(tarn_stream_synchronize(b));
  ck_assert_str_eq(out, "first  ");
  give_on(second, b);
  // The wait that failed was the first stream's, and has stuck to it.
  end_failed_stream(0);
}

// --- giving back waits -----------------------------------------------------

TEST(no_pool_waits_before_it_gives_back) {
  static char out[8];
  open_fake("no_pool");
  tarn_block block = take_on(pool, SIZE, a);
  queue_use(block, a, "in use ", out);
  give_on(block, a);
  ck_assert_str_eq(out, "in use ");
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
}

TEST(no_pool_does_not_wait_for_the_host) {
  static char out[8];
  open_fake("no_pool");
  tarn_block used = take_on(pool, SIZE, a);
  tarn_block block = take(pool, SIZE);
  queue_use(used, a, "in use ", out);
  give(block);
  ck_assert_uint_eq(fake_seen.live_blocks, 1);
  ck_assert_uint_eq(fake_seen.waits, 0);
  ck_assert_str_eq(out, "");
  give_on(used, a);
}

TEST(trim_waits_before_it_gives_back) {
  static char out[8];
  open_fake("page_unit_pool");
  tarn_block block = take_on(pool, SIZE, a);
  queue_use(block, a, "in use ", out);
  give_on(block, a);
  ck_assert_str_eq(out, "");
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_str_eq(out, "in use ");
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
}

TEST(a_switch_waits_before_it_gives_back) {
  static char idle[8];
  static char live[8];
  open_fake("page_unit_pool");
  tarn_block first = take_on(pool, SIZE, a);
  tarn_block second = take_on(pool, SIZE, b);
  queue_use(first, a, "idle   ", idle);
  queue_use(second, b, "live   ", live);
  give_on(first, a);
  assert_ok(use_strategy(tarn_place_on(device), "no_pool"));
  ck_assert_str_eq(idle, "idle   ");
  ck_assert_str_eq(live, "");
  ck_assert_uint_eq(fake_seen.live_blocks, 1);
  give_on(second, b);
  ck_assert_str_eq(live, "live   ");
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
}

// Blocks of one segment: the idle one stays while the other is live, so no call
// waits for its stream; then both streams are waited for.
TEST(a_switch_keeps_a_segment_until_its_last_block_is_free) {
  static char idle[8];
  static char live[8];
  open_fake("arena_pool");
  tarn_block first = take_on(pool, SIZE, a);
  tarn_block second = take_on(pool, SIZE, b);
  queue_use(first, a, "idle   ", idle);
  queue_use(second, b, "live   ", live);
  give_on(first, a);
  assert_ok(use_strategy(tarn_place_on(device), "no_pool"));
  ck_assert_str_eq(live, "");
  ck_assert_uint_eq(fake_seen.live_blocks, 1);
  give_on(second, b);
  ck_assert_str_eq(idle, "idle   ");
  ck_assert_str_eq(live, "live   ");
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
}

// Memory that is in use must not go back to the device because there was no
// host memory for an event to wait with.
TEST(giving_back_waits_even_without_host_memory) {
  static char out[8];
  faults_install();
  open_fake("no_pool");
  tarn_block block = take_on(pool, SIZE, a);
  queue_use(block, a, "in use ", out);
  faults_arm(1, FAULTS_FROM_NOW);
  (void)tarn_pool_free(&block, a);
  (void)faults_disarm();
  ck_assert_str_eq(out, "in use ");
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
}

// --- blocks that were not used ---------------------------------------------

// Taken for the second stream, whose wait for the first is only queued, and
// freed without any use: the memory is still the first stream's to write.
TEST_LOOP(an_unused_block_is_still_behind_its_last_user, 3) {
  static char out[8];
  open_fake("page_unit_pool");
  tarn_stream *third = stream_of(device);
  tarn_stream *freed_on[] = {NULL, b, third};
  tarn_block block = take_on(pool, SIZE, a);
  queue_use(block, a, "first  ", out);
  give_on(block, a);
  block = take_on(pool, SIZE, b);
  give_on(block, freed_on[_i]);
  ck_assert_str_eq(out, "");
  block = take(pool, SIZE);  // for the host: now it must be over
  ck_assert_str_eq(out, "first  ");
  give(block);
}

// The same where it was taken again for the stream that used it: that needed no
// wait, but the free on another stream needs one.
TEST(an_unused_block_is_behind_its_own_stream) {
  static char out[8];
  open_fake("page_unit_pool");
  tarn_block block = take_on(pool, SIZE, a);
  queue_use(block, a, "first  ", out);
  give_on(block, a);
  block = take_on(pool, SIZE, a);
  ck_assert_str_eq(out, "");
  give_on(block, b);
  block = take(pool, SIZE);  // for the host: now it must be over
  ck_assert_str_eq(out, "first  ");
  give(block);
}

// --- streams that are gone -------------------------------------------------

TEST(streams_that_are_gone_leave_nothing_behind) {
  enum { MANY = 500 };
  open_fake("page_unit_pool");
  tarn_block blocks[MANY];
  take_many(pool, SIZE, blocks, MANY);
  size_t held = tarn_host_memory();
  for (int i = 0; i < MANY; i++) {
    tarn_stream *stream = stream_of(device);
    give_on(blocks[i], stream);
    end_stream(stream);
  }
  ck_assert_uint_le(tarn_host_memory(), held + 256);
  assert_ok(tarn__front_check(pool));
  take_many(pool, SIZE, blocks, MANY);
  ck_assert_uint_eq(stats_of(pool).misses, MANY);
  give_many(blocks, MANY);
}

// --- callbacks -------------------------------------------------------------

static void free_in_callback(void *context, tarn_status status) {
  (void)status;
  tarn_block *blocks = context;
  tarn_status freed = tarn_pool_free(&blocks[0], NULL);
  tarn_status taken = tarn_pool_alloc(pool, SIZE, 0, NULL, &blocks[1]);
  tarn_status trimmed = tarn_pool_trim(pool, 0);
  tarn_status resized = tarn_pool_resize(&blocks[0], 1, NULL);
  if (freed == TARN_E_STATE && taken == TARN_E_STATE &&
      trimmed == TARN_E_STATE && resized == TARN_E_STATE) {
    blocks[1].size = 1;
  }
}

TEST(a_callback_cannot_use_a_pool) {
  open_fake("page_unit_pool");
  tarn_block blocks[2] = {take(pool, SIZE), {0}};
  assert_ok(tarn_stream_add_callback(a, free_in_callback, blocks));
  assert_ok(tarn_stream_synchronize(a));
  ck_assert_uint_eq(blocks[1].size, 1);
  give(blocks[0]);
}

// --- streams of other devices ----------------------------------------------

// Not one of the device's own memory: test_pool_foreign.c.
TEST(a_block_may_be_used_on_a_stream_of_another_device) {
  static char out[8];
  open_fake("page_unit_pool");
  tarn_device *cpu = open_device("cpu:0");
  tarn_stream *other = stream_of(cpu);
  tarn_place place = {device, TARN_PLACE_HOST};
  assert_ok(use_strategy(place, "page_unit_pool"));
  tarn_pool *pinned = pool_at(place);
  tarn_block first = take_on(pinned, SIZE, a);
  queue_use(first, a, "first  ", out);
  give_on(first, a);
  // The plug-ins do not know each other: the calling thread waits.
  tarn_block second = take_on(pinned, SIZE, other);
  ck_assert_uint_eq(second.address, first.address);
  ck_assert_str_eq(out, "first  ");
  give_on(second, other);
  end_stream(other);
}

TEST(streams_without_handles_need_no_waiting) {
  static char out[8];
  fake.null_handles = true;
  open_fake("page_unit_pool");
  tarn_block first = take_on(pool, SIZE, a);
  queue_use(first, a, "first  ", out);
  ck_assert_str_eq(out, "first  ");
  give_on(first, a);
  tarn_block second = take_on(pool, SIZE, b);
  ck_assert_uint_eq(second.address, first.address);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 1);
  give_on(second, b);
}
