// Requests that must not wait: while a stream is held up, the call returns. A
// call that waited would never do so, and the test would be stopped.
#include "support/faults.h"
#include "support/hold.h"
#include "tarn/strategy.h"
#include "with_kit.h"

static const size_t SIZE = (size_t)256 * KIB;

static void queue_copy(const arena_place *at, tarn_block block,
                       tarn_stream *stream) {
  static const char text[64] = "at work";
  assert_ok(
      tarn_copy_h2d(at->device, block.address, text, sizeof text, stream));
}

// A block that a stream which is held up used last, freed where the strategy
// does not wait for that by itself.
typedef struct busy {
  arena_place at;
  tarn_stream *a;
  tarn_stream *b;
  tarn_block first;
  hold hold;
  bool freed;
} busy;

// On the devices whose streams run by themselves.
#define HELD_DEVICES LIBRARY_DEVICES

// Whether async_pool frees in the order of its streams; else it waits.
static bool orders(tarn_device *device) {
  return (tarn_device_extensions(device) & TARN_EXTENSION_STREAM_ORDER) != 0;
}

static void open_held(busy *h, int i) {
  const char *strategy = any_strategy(i / HELD_DEVICES);
  h->at = open_arena_at(16 * MIB, i % HELD_DEVICES, 0, strategy);
  h->a = stream_on(&h->at);
  h->b = stream_on(&h->at);
  h->first = take_on(h->at.pool, SIZE, h->a);
  hold_begin(&h->hold, h->a);
  queue_copy(&h->at, h->first, h->a);
  h->freed = strcmp(strategy, "no_pool") != 0 &&
             (strcmp(strategy, "async_pool") != 0 || orders(h->at.device));
  if (h->freed) give_on(h->first, h->a);
}

static void close_held(busy *h) {
  assert_ok(tarn_stream_synchronize(h->a));
  if (!h->freed) give_on(h->first, h->a);
}

TEST_LOOP(the_host_gets_other_memory, HELD_DEVICES *own_strategies()) {
  busy h;
  open_held(&h, _i);
  tarn_block own = take_with(h.at.pool, SIZE, NULL, TARN_ALLOC_NO_WAIT);
  ck_assert(own.address >= h.first.address + SIZE ||
            own.address + SIZE <= h.first.address);
  assert_ok(tarn__front_check(h.at.pool));
  give(own);
  hold_end(&h.hold);
  close_held(&h);
}

TEST_LOOP(a_stream_is_put_behind_the_other, HELD_DEVICES *own_strategies()) {
  busy h;
  open_held(&h, _i);
  bool same = keeps_idle(any_strategy(_i / HELD_DEVICES));
  tarn_block block = take_with(h.at.pool, SIZE, h.b, TARN_ALLOC_NO_WAIT);
  if (same) ck_assert_uint_eq(block.address, h.first.address);
  ck_assert_uint_eq(stats_of(h.at.pool).stream_crossings, same ? 1 : 0);
  hold_end(&h.hold);
  give_on(block, h.b);
  assert_ok(tarn_stream_synchronize(h.b));
  close_held(&h);
}

TEST_LOOP(at_the_limit_it_is_full, HELD_DEVICES *own_strategies()) {
  busy h;
  open_held(&h, _i);
  size_t reserved = stats_of(h.at.pool).reserved_bytes;
  tarn_pool_stats before;
  assert_ok(tarn_pool_limit(h.at.pool, reserved + 1));
  before = stats_of(h.at.pool);
  size_t size = reserved != 0 ? reserved : SIZE;
  refuse_with(h.at.pool, size, NULL, TARN_ALLOC_NO_WAIT, TARN_FULL);
  assert_error_says("waiting was not allowed");
  tarn_pool_stats after = stats_of(h.at.pool);
  ck_assert_uint_eq(after.failures, before.failures + 1);
  ck_assert_uint_eq(after.reserved_bytes, before.reserved_bytes);
  ck_assert_uint_eq(after.live_bytes, before.live_bytes);
  assert_ok(tarn__front_check(h.at.pool));
  assert_ok(tarn_pool_limit(h.at.pool, 0));
  hold_end(&h.hold);
  close_held(&h);
}

// It turns out to be done: the pool does not grow beside it.
TEST_LOOP(memory_of_a_stream_that_is_done_is_nobodys,
          HELD_DEVICES *own_strategies()) {
  busy h;
  open_held(&h, _i);
  hold_end(&h.hold);
  assert_ok(tarn_stream_synchronize(h.a));
  uint64_t asked = stats_of(h.at.pool).device_allocs;
  tarn_block block = take_with(h.at.pool, SIZE, NULL, TARN_ALLOC_NO_WAIT);
  if (keeps_idle(any_strategy(_i / HELD_DEVICES))) {
    // Where it has taken more than that, a part of which nobody had is as good.
    if (device_has(h.at.device, TEST_NEEDS_FREE_GROWTH)) {
      ck_assert_uint_eq(block.address, h.first.address);
    }
    ck_assert_uint_eq(stats_of(h.at.pool).device_allocs, asked);
  }
  give(block);
  close_held(&h);
}

// What no stream uses may go back to make room, also while one is held up.
TEST_LOOP(idle_memory_of_the_host_makes_room, HELD_DEVICES *own_strategies()) {
  busy h;
  open_held(&h, _i);
  tarn_block small[4];
  // Holes that touch are one.
  tarn_block between = take_with(h.at.pool, SIZE, NULL, TARN_ALLOC_NO_WAIT);
  for (size_t i = 0; i < 4; i++)
    small[i] = take_with(h.at.pool, 2 * MIB, NULL, TARN_ALLOC_NO_WAIT);
  give_many(small, 4);
  tarn_block large = take_with(h.at.pool, 10 * MIB, NULL, TARN_ALLOC_NO_WAIT);
  assert_ok(tarn__front_check(h.at.pool));
  give(large);
  give(between);
  hold_end(&h.hold);
  close_held(&h);
}

// Memory on its way back to the driver in the order of a stream that is held
// up is not waited for.
TEST_LOOP(what_is_queued_to_go_back_is_not_waited_for, HELD_DEVICES) {
  arena_place at = open_arena_at(MIB, _i, NEEDS_CAPACITY, "async_pool");
  if (at.pool == NULL || !orders(at.device)) return;
  tarn_stream *a = stream_on(&at);
  tarn_block first = take_on(at.pool, 3 * SIZE, a);
  static hold held;
  hold_begin(&held, a);
  queue_copy(&at, first, a);
  give_on(first, a);
  refuse_with(at.pool, 2 * SIZE, NULL, TARN_ALLOC_NO_WAIT, TARN_FULL);
  assert_error_says("waiting was not allowed");
  hold_end(&held);
  give(take(at.pool, 2 * SIZE));  // which waits
}

// --- streams that cannot wait for others ------------------------------------

// The fake's queue runs only when a caller waits.
TEST_LOOP(where_the_host_would_stand_in_it_is_other_memory, own_strategies()) {
  fake.missing = FAKE_MISSES(stream_wait_event);
  arena_place at = open_arena_of(16 * MIB, "fake:0", any_strategy(_i));
  tarn_stream *a = stream_on(&at);
  tarn_stream *b = stream_on(&at);
  tarn_block first = take_on(at.pool, SIZE, a);
  bool kept = keeps_idle(any_strategy(_i));
  queue_copy(&at, first, a);
  if (kept) give_on(first, a);
  size_t waits = fake_seen.waits;
  tarn_pool_stats before = stats_of(at.pool);
  tarn_block other = take_with(at.pool, SIZE, b, TARN_ALLOC_NO_WAIT);
  ck_assert_uint_ne(other.address, first.address);
  ck_assert_uint_eq(fake_seen.waits, waits);
  ck_assert_uint_eq(fake_seen.copies, 0);
  tarn_pool_stats after = stats_of(at.pool);
  ck_assert_uint_eq(after.stream_crossings, 0);
  ck_assert_uint_eq(after.allocs, before.allocs + 1);
  ck_assert_uint_eq(after.frees, before.frees);
  ck_assert_uint_eq(after.failures, before.failures);
  assert_ok(tarn_pool_limit(at.pool, after.reserved_bytes));
  size_t all = after.reserved_bytes;
  refuse_with(at.pool, all, b, TARN_ALLOC_NO_WAIT, TARN_FULL);
  ck_assert_uint_eq(fake_seen.waits, waits);
  assert_ok(tarn_pool_limit(at.pool, 0));
  assert_ok(tarn__front_check(at.pool));
  give_on(other, b);
  if (!kept) give_on(first, a);
}

// Segments and the sizes of the device: the other ways to hold memory.
TEST_LOOP(without_ranges_nobody_waits_either, 2 * own_strategies()) {
  const char *strategy = any_strategy(_i / 2);
  fake.init_size = _i % 2 == 0 ? 0 : 2 * MIB;
  fake.realloc_size = fake.init_size;
  if (!keeps_idle(strategy)) return;
  arena_place at = open_arena_of(16 * MIB, "fake:0", strategy);
  tarn_stream *a = stream_on(&at);
  tarn_block first[3];
  for (size_t j = 0; j < 3; j++)
    first[j] = take_on(at.pool, SIZE << j, a);
  for (size_t j = 0; j < 3; j++) {
    queue_copy(&at, first[j], a);
    give_on(first[j], a);
  }
  size_t waits = fake_seen.waits;
  size_t copies = fake_seen.copies;
  assert_ok(tarn_pool_limit(at.pool, 8 * MIB));
  tarn_block block;
  for (size_t size = 4 * KIB; size <= 8 * MIB; size *= 2) {
    tarn_status status =
        try_with(at.pool, size, NULL, TARN_ALLOC_NO_WAIT, &block);
    ck_assert(status == TARN_OK || status == TARN_FULL);
    if (status == TARN_OK) give(block);
    ck_assert_uint_eq(fake_seen.waits, waits);
    ck_assert_uint_eq(fake_seen.copies, copies);
    assert_ok(tarn__front_check(at.pool));
  }
}

// --- strategies of programs -------------------------------------------------

TEST_LOOP(a_strategys_own_choice_may_be_refused, HELD_DEVICES) {
  assert_ok(tarn_pool_register(TarnPoolStrategy()));
  arena_place at = open_arena_at(16 * MIB, _i, 0, "power_pool");
  tarn_stream *a = stream_on(&at);
  tarn_block first = take_on(at.pool, SIZE, a);
  static hold held;
  hold_begin(&held, a);
  queue_copy(&at, first, a);
  give_on(first, a);
  refuse_with(at.pool, SIZE, NULL, TARN_ALLOC_NO_WAIT, TARN_FULL);
  assert_error_says("used last");
  assert_ok(tarn__front_check(at.pool));
  hold_end(&held);
  assert_ok(tarn_stream_synchronize(a));
  tarn_block block = take_with(at.pool, SIZE, NULL, TARN_ALLOC_NO_WAIT);
  ck_assert_uint_eq(block.address, first.address);
  give(block);
}

// One that would wait itself.
static tarn_status take_and_wait(void *self, const tarn_source *source,
                                 const tarn_request *request,
                                 tarn_suballocation *out) {
  tarn_status status = TARN_OK;
  for (uint64_t serial = 1; serial < 16 && status == TARN_OK; serial++)
    status = source->wait(source, serial);
  return status == TARN_OK
             ? TarnPoolStrategy()->take(self, source, request, out)
             : status;
}

TEST_LOOP(a_strategy_that_waits_is_not_let, HELD_DEVICES) {
  tarn_strategy waits = *TarnPoolStrategy();
  waits.name = "waits_pool";
  waits.take = take_and_wait;
  assert_ok(tarn_pool_register(&waits));
  arena_place at = open_arena_at(16 * MIB, _i, 0, "waits_pool");
  tarn_stream *a = stream_on(&at);
  tarn_block first = take_on(at.pool, SIZE, a);
  static hold held;
  hold_begin(&held, a);
  queue_copy(&at, first, a);
  refuse_with(at.pool, SIZE, NULL, TARN_ALLOC_NO_WAIT, TARN_FULL);
  assert_error_says("has unfinished work");
  hold_end(&held);
  give(take(at.pool, SIZE));
  give_on(first, a);
}

// --- with ZERO ---------------------------------------------------------------

TEST_LOOP(clearing_at_once_takes_the_host, TEST_DEVICES) {
  arena_place at =
      open_arena_at(16 * MIB, _i, TEST_NEEDS_DISCRETE, "arena_pool");
  if (at.pool == NULL) return;
  tarn_stream *a = stream_on(&at);
  const uint32_t both = TARN_ALLOC_NO_WAIT | TARN_ALLOC_ZERO;
  tarn_pool_stats before = stats_of(at.pool);
  refuse_with(at.pool, SIZE, NULL, both, TARN_E_UNSUPPORTED);
  assert_error_says("TARN_ALLOC_NO_WAIT");
  refuse_with(at.pool, SIZE, a, both, TARN_E_UNSUPPORTED);
  assert_same_stats(stats_of(at.pool), before);
  tarn_pool *host = host_pool("arena_pool");
  refuse_with(host, SIZE, a, both, TARN_E_UNSUPPORTED);
  tarn_block block = take_with(host, SIZE, NULL, both);
  for (size_t i = 0; i < SIZE; i++)
    require(bytes_of(block)[i] == 0);
  give(block);
  tarn_pool *own = own_pool_with(at.place, NULL, 0, TARN_POOL_DRY);
  give_on(take_with(own, SIZE, a, both), a);
}

int main(void) {
  faults_install();
  return run_tests();
}
