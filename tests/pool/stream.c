// Pools and streams, on a device whose streams run only when waited for: a
// copy that nobody waited for is seen not to have happened.
#include "kit.h"
#include "support/fake_plugin.h"
#include "support/faults.h"
#include "support/strategy.h"

enum { SIZE = 4096 };

static tarn_device *device;
static tarn_pool *pool;
static tarn_stream *a;
static tarn_stream *b;

static tarn_stream *stream_of(tarn_device *of) {
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(of, &stream));
  return stream;
}

static void open_fake(const char *strategy) {
  fake_add();
  assert_ok(tarn_device_open("fake:0", &device));
  assert_ok(use_strategy(tarn_place_on(device), strategy));
  pool = pool_at(tarn_place_on(device));
  a = stream_of(device);
  b = stream_of(device);
}

// All blocks have been freed: nothing may be left.
static void close_fake(void) {
  assert_ok(tarn__front_check(pool));
  assert_ok(tarn_stream_destroy(a));
  assert_ok(tarn_stream_destroy(b));
  assert_ok(tarn_device_close(device));
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  ck_assert_uint_eq(fake_seen.live_bytes, 0);
  ck_assert_uint_eq(fake_seen.wrong_size, 0);
  ck_assert_uint_eq(fake_seen.wrong_device, 0);
  ck_assert_uint_eq(fake_seen.events, 0);
  ck_assert_uint_eq(fake_seen.streams, 0);
}

// Queues |text| into |block| and out of it into |out|: |out| shows whether the
// block had what was written until it was read.
static void queue_use(tarn_block block, tarn_stream *stream, const char *text,
                      char *out) {
  assert_ok(tarn_copy_h2d(device, block.address, text, 8, stream));
  assert_ok(tarn_copy_d2h(device, out, block.address, 8, stream));
}

// --- crossing --------------------------------------------------------------

TEST(another_stream_waits_for_the_first) {
  char out_a[8] = "";
  char out_b[8] = "";
  open_fake("page_unit_pool");
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
  close_fake();
}

// It waits for what was queued when it took the block, and for no more.
TEST(another_stream_waits_for_no_more_than_it_must) {
  char out_a[8] = "";
  char out_b[8] = "";
  char later[8] = "";
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
  close_fake();
}

TEST(the_same_stream_does_not_wait) {
  char out[8] = "";
  open_fake("page_unit_pool");
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
  close_fake();
}

TEST(the_host_waits_for_the_stream) {
  char out[8] = "";
  open_fake("page_unit_pool");
  tarn_block first = take_on(pool, SIZE, a);
  queue_use(first, a, "first  ", out);
  give_on(first, a);
  tarn_block second = take(pool, SIZE);
  ck_assert_uint_eq(second.address, first.address);
  ck_assert_str_eq(out, "first  ");
  ck_assert_uint_ge(fake_seen.waits, 1);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 1);
  give(second);
  close_fake();
}

TEST(what_the_host_freed_is_there_at_once) {
  open_fake("page_unit_pool");
  tarn_block first = take_on(pool, SIZE, a);
  give(first);
  tarn_block second = take_on(pool, SIZE, b);
  ck_assert_uint_eq(second.address, first.address);
  ck_assert_uint_eq(fake_seen.waits, 0);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 0);
  give_on(second, b);
  close_fake();
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
  close_fake();
}

TEST(a_stream_that_is_gone_holds_nothing_up) {
  open_fake("page_unit_pool");
  tarn_stream *gone = stream_of(device);
  char out[8] = "";
  tarn_block first = take_on(pool, SIZE, gone);
  queue_use(first, gone, "first  ", out);
  give_on(first, gone);
  assert_ok(tarn_stream_destroy(gone));
  ck_assert_str_eq(out, "first  ");
  size_t waits = fake_seen.waits;
  tarn_block second = take(pool, SIZE);
  ck_assert_uint_eq(second.address, first.address);
  ck_assert_uint_eq(fake_seen.waits, waits);
  give(second);
  close_fake();
}

// Blocks of many streams: each has a shelf of its own.
TEST(many_streams_keep_their_memory_apart) {
  enum { COUNT = 40 };
  tarn_stream *streams[COUNT];
  tarn_addr addresses[COUNT];
  tarn_block blocks[COUNT];
  open_fake("page_unit_pool");
  for (int i = 0; i < COUNT; i++) {
    streams[i] = stream_of(device);
    blocks[i] = take_on(pool, SIZE, streams[i]);
    addresses[i] = blocks[i].address;
  }
  for (int i = 0; i < COUNT; i++)
    give_on(blocks[i], streams[i]);
  for (int i = COUNT; i-- > 0;) {
    blocks[i] = take_on(pool, SIZE, streams[i]);
    ck_assert_uint_eq(blocks[i].address, addresses[i]);
  }
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 0);
  ck_assert_uint_eq(stats_of(pool).misses, COUNT);
  for (int i = 0; i < COUNT; i++) {
    give_on(blocks[i], streams[i]);
    assert_ok(tarn_stream_destroy(streams[i]));
  }
  close_fake();
}

// If the wait cannot be arranged, the block goes back as it came.
TEST(a_crossing_that_fails_gives_no_block) {
  char out[8] = "";
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
  assert_status(tarn_stream_destroy(a), TARN_E_DEVICE);
  a = NULL;
  close_fake();
}

// --- giving back waits -----------------------------------------------------

TEST(no_pool_waits_before_it_gives_back) {
  char out[8] = "";
  open_fake("no_pool");
  tarn_block block = take_on(pool, SIZE, a);
  queue_use(block, a, "in use ", out);
  give_on(block, a);
  ck_assert_str_eq(out, "in use ");
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  close_fake();
}

TEST(no_pool_does_not_wait_for_the_host) {
  char out[8] = "";
  open_fake("no_pool");
  tarn_block used = take_on(pool, SIZE, a);
  tarn_block block = take(pool, SIZE);
  queue_use(used, a, "in use ", out);
  give(block);
  ck_assert_uint_eq(fake_seen.live_blocks, 1);
  ck_assert_uint_eq(fake_seen.waits, 0);
  ck_assert_str_eq(out, "");
  give_on(used, a);
  close_fake();
}

TEST(trim_waits_before_it_gives_back) {
  char out[8] = "";
  open_fake("page_unit_pool");
  tarn_block block = take_on(pool, SIZE, a);
  queue_use(block, a, "in use ", out);
  give_on(block, a);
  ck_assert_str_eq(out, "");
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_str_eq(out, "in use ");
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  close_fake();
}

TEST(a_switch_waits_before_it_gives_back) {
  char idle[8] = "";
  char live[8] = "";
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
  close_fake();
}

// Blocks of one segment: what is idle stays while the other is out, and so
// nobody waits for it; then both streams are waited for.
TEST(a_switch_keeps_a_segment_until_its_last_block_is_free) {
  char idle[8] = "";
  char live[8] = "";
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
  close_fake();
}

// Memory that is in use must not go back to the device because there was no
// host memory for an event to wait with.
TEST(giving_back_waits_even_without_host_memory) {
  char out[8] = "";
  faults_install();
  open_fake("no_pool");
  tarn_block block = take_on(pool, SIZE, a);
  queue_use(block, a, "in use ", out);
  faults_arm(1, FAULTS_FROM_NOW);
  (void)tarn_pool_free(&block, a);
  (void)faults_disarm();
  ck_assert_str_eq(out, "in use ");
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  close_fake();
}

// --- blocks that were not used ---------------------------------------------

// Taken for the second stream, whose wait for the first is only queued, and
// freed without any use: the memory is still the first stream's to write.
TEST_LOOP(an_unused_block_is_still_behind_its_last_user, 3) {
  char out[8] = "";
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
  assert_ok(tarn_stream_destroy(third));
  close_fake();
}

// The same where it was taken again for the stream that used it: nobody had to
// wait then, but the one that frees it has to.
TEST(an_unused_block_is_behind_its_own_stream) {
  char out[8] = "";
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
  close_fake();
}

// --- streams that are gone -------------------------------------------------

TEST(streams_that_are_gone_leave_nothing_behind) {
  enum { STREAMS = 500 };
  open_fake("page_unit_pool");
  tarn_block blocks[STREAMS];
  for (int i = 0; i < STREAMS; i++)
    blocks[i] = take(pool, SIZE);
  size_t held = tarn_host_memory();
  for (int i = 0; i < STREAMS; i++) {
    tarn_stream *stream = stream_of(device);
    give_on(blocks[i], stream);
    assert_ok(tarn_stream_destroy(stream));
  }
  ck_assert_uint_le(tarn_host_memory(), held + 256);
  assert_ok(tarn__front_check(pool));
  for (int i = 0; i < STREAMS; i++)
    blocks[i] = take(pool, SIZE);
  ck_assert_uint_eq(stats_of(pool).misses, STREAMS);
  for (int i = 0; i < STREAMS; i++)
    give(blocks[i]);
  close_fake();
}

TEST(many_streams_have_a_shelf_each) {
  enum { STREAMS = 40 };
  open_fake("page_unit_pool");
  tarn_stream *streams[STREAMS];
  tarn_block blocks[STREAMS];
  for (int i = 0; i < STREAMS; i++) {
    streams[i] = stream_of(device);
    blocks[i] = take_on(pool, SIZE, streams[i]);
  }
  for (int i = 0; i < STREAMS; i++)
    give_on(blocks[i], streams[i]);
  assert_ok(tarn__front_check(pool));
  for (int i = STREAMS; i-- > 0;) {
    tarn_block again = take_on(pool, SIZE, streams[i]);
    ck_assert_uint_eq(again.address, blocks[i].address);
    give_on(again, streams[i]);
  }
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 0);
  for (int i = 0; i < STREAMS; i++)
    assert_ok(tarn_stream_destroy(streams[i]));
  close_fake();
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
  close_fake();
}

// --- streams of other devices ----------------------------------------------

// Not one of the device's own memory: test_pool_foreign.c.
TEST(a_block_may_be_used_on_a_stream_of_another_device) {
  char out[8] = "";
  open_fake("page_unit_pool");
  tarn_device *cpu = NULL;
  assert_ok(tarn_device_open("cpu:0", &cpu));
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
  assert_ok(tarn_stream_destroy(other));
  assert_ok(tarn_device_close(cpu));
  close_fake();
}

TEST(streams_without_handles_need_no_waiting) {
  char out[8] = "";
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
  assert_ok(tarn_stream_destroy(a));
  assert_ok(tarn_stream_destroy(b));
  assert_ok(tarn_device_close(device));
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
}
