// Sleep and wake by tag: what goes, what stays, what comes back.
#include <sys/mman.h>
#include <unistd.h>

#include "sleep_kit.h"
#include "tarn/misuse.h"

// The host's pages of |size| bytes at |address| that are in memory.
static size_t resident(tarn_addr address, size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t count = size / page;
  unsigned char *in = calloc(count, 1);
  size_t sum = 0;
  require(in != NULL);
  ck_assert_int_eq(mincore((void *)(uintptr_t)address, count * page, in), 0);
  for (size_t i = 0; i < count; i++)
    sum += in[i] & 1u;
  free(in);
  return sum * page;
}

typedef struct scene {
  arena_place p;
  size_t page;
  tarn_tag tag;
  tarn_tag other;
} scene;

// False: not on that device.
static bool open_scene(scene *s, int i, unsigned needs) {
  s->p = open_arena_with(i, TEST_NEEDS_RANGES | needs, "arena_pool:small=4K");
  if (s->p.pool == NULL) return false;
  s->page = page_on(s->p.device);
  s->tag = tag_of("weights");
  s->other = tag_of("activations");
  return true;
}

// Something went to sleep: the statistics say so, and all else is as it was.
static size_t put_to_sleep(const scene *s, tarn_sleep_mode mode) {
  tarn_pool_stats before = stats_of(s->p.pool);
  assert_ok(tarn_pool_sleep(s->p.pool, s->tag, mode));
  tarn_pool_stats after = stats_of(s->p.pool);
  size_t released = after.asleep_bytes - before.asleep_bytes;
  assert_ok(tarn__front_check(s->p.pool));
  ck_assert_uint_eq(after.reserved_bytes, before.reserved_bytes - released);
  ck_assert_uint_eq(after.live_bytes, before.live_bytes);
  ck_assert_uint_eq(after.live_blocks, before.live_blocks);
  ck_assert_uint_eq(tag_stats_of(s->p.pool, s->tag).asleep_bytes,
                    after.asleep_bytes);
  ck_assert_uint_eq(tag_stats_of(s->p.pool, s->other).asleep_bytes, 0);
  return released;
}

static void wake(const scene *s) {
  tarn_pool_stats before = stats_of(s->p.pool);
  assert_ok(tarn_pool_wake(s->p.pool, s->tag));
  tarn_pool_stats after = stats_of(s->p.pool);
  assert_ok(tarn__front_check(s->p.pool));
  ck_assert_uint_eq(after.asleep_bytes, 0);
  ck_assert_uint_eq(after.saved_bytes, 0);
  ck_assert_uint_eq(after.live_bytes, before.live_bytes);
  ck_assert_uint_eq(tag_stats_of(s->p.pool, s->tag).asleep_blocks, 0);
}

enum { MANY = 12 };

// Large ones and small ones.
static size_t size_of_many(const scene *s, size_t i) {
  return i % 3 == 0 ? 3000 + i : s->page / 2 + i * (s->page / 3);
}

static void check_many(scene *s, tarn_sleep_mode mode) {
  tarn_block blocks[MANY];
  for (unsigned i = 0; i < MANY; i++) {
    blocks[i] = take_tagged(s->p.pool, size_of_many(s, i), s->tag);
    fill(s->p.device, blocks[i], i);
  }
  size_t available = available_on(s->p.device);
  size_t held = stats_of(s->p.pool).reserved_bytes;
  size_t host = tarn_host_memory();
  size_t released = put_to_sleep(s, mode);
  ck_assert_uint_eq(tag_stats_of(s->p.pool, s->tag).asleep_blocks, MANY);
  ck_assert_uint_gt(released, held - 4 * s->page);
  size_t saved = stats_of(s->p.pool).saved_bytes;
  ck_assert_uint_le(saved, released);
  ck_assert_uint_eq(saved != 0, mode == TARN_SLEEP_SAVE);
  if (device_has(s->p.device, TEST_NEEDS_DISCRETE)) {
    ck_assert_uint_eq(available_on(s->p.device), available + released);
  } else {
    tarn_block large = blocks[MANY - 1];
    tarn_addr from = (large.address + s->page - 1) & ~(s->page - 1);
    ck_assert_uint_eq(resident(from, s->page), 0);
  }
  wake(s);
  ck_assert_uint_eq(stats_of(s->p.pool).reserved_bytes, held);
  for (unsigned i = 0; i < MANY; i++) {
    tarn_block again;
    assert_ok(tarn_pool_block_of(s->p.pool, blocks[i].address, &again, NULL));
    assert_same_block(again, blocks[i]);
    if (mode == TARN_SLEEP_DROP) fill(s->p.device, blocks[i], i);
    check_filled(s->p.device, blocks[i], i);
    give(blocks[i]);
  }
  ck_assert_uint_lt(tarn_host_memory(), host + 64 * KIBIBYTE);
}

TEST_LOOP(what_was_saved_comes_back, TEST_DEVICES) {
  scene s;
  if (!open_scene(&s, _i, 0)) return;
  check_many(&s, TARN_SLEEP_SAVE);
  check_many(&s, TARN_SLEEP_SAVE);
}

TEST_LOOP(what_was_dropped_has_memory_again, TEST_DEVICES) {
  scene s;
  if (!open_scene(&s, _i, 0)) return;
  check_many(&s, TARN_SLEEP_DROP);
}

// | a a a a | a b b . | : of a all but what shares a page with b goes.
TEST_LOOP(pages_shared_with_others_stay, TEST_DEVICES) {
  scene s;
  if (!open_scene(&s, _i, 0)) return;
  tarn_block a = take_tagged(s.p.pool, s.page + s.page / 4, s.tag);
  tarn_block b = take_tagged(s.p.pool, s.page / 2, s.other);
  ck_assert_uint_eq(b.address, a.address + a.size);
  fill(s.p.device, a, 1);
  fill(s.p.device, b, 2);
  ck_assert_uint_eq(put_to_sleep(&s, TARN_SLEEP_SAVE), s.page);
  ck_assert_uint_eq(stats_of(s.p.pool).saved_bytes, s.page);
  check_filled(s.p.device, b, 2);
  wake(&s);
  check_filled(s.p.device, a, 1);
  // Of a block that is in one page with another nothing goes.
  give(a);
  a = take_tagged(s.p.pool, s.page / 4, s.tag);
  tarn_block c = take_tagged(s.p.pool, s.page / 4, s.other);
  fill(s.p.device, a, 3);
  ck_assert_uint_eq(put_to_sleep(&s, TARN_SLEEP_DROP), 0);
  ck_assert_uint_eq(tag_stats_of(s.p.pool, s.tag).asleep_blocks, 1);
  check_filled(s.p.device, a, 3);
  wake(&s);
  give(a);
  give(b);
  give(c);
}

// | a . b b b c | : all of one tag; the hole goes with them, and returns.
TEST_LOOP(holes_in_their_pages_sleep_too, TEST_DEVICES) {
  scene s;
  if (!open_scene(&s, _i, 0)) return;
  size_t quarter = s.page / 4;
  tarn_block a = take_tagged(s.p.pool, quarter, s.tag);
  tarn_block hole = take_tagged(s.p.pool, quarter, s.tag);
  tarn_block b = take_tagged(s.p.pool, s.page + quarter, s.tag);
  tarn_block c = take_tagged(s.p.pool, quarter, s.tag);
  fill(s.p.device, a, 1);
  fill(s.p.device, b, 2);
  fill(s.p.device, c, 3);
  give(hole);
  ck_assert_uint_eq(put_to_sleep(&s, TARN_SLEEP_SAVE), 2 * s.page);
  ck_assert_uint_eq(stats_of(s.p.pool).reserved_bytes, 0);
  // A block for the hole gets memory elsewhere.
  tarn_block other = take_tagged(s.p.pool, quarter, s.other);
  ck_assert_uint_eq(stats_of(s.p.pool).reserved_bytes, s.page);
  fill(s.p.device, other, 4);
  assert_ok(tarn_pool_trim(s.p.pool, 0));
  wake(&s);
  give(other);
  check_filled(s.p.device, a, 1);
  check_filled(s.p.device, b, 2);
  check_filled(s.p.device, c, 3);
  uint64_t hits = stats_of(s.p.pool).hits;
  other = take_tagged(s.p.pool, quarter, s.other);
  ck_assert_uint_eq(stats_of(s.p.pool).hits, hits + 1);
  give(other);
  give(a);
  give(b);
  give(c);
}

TEST_LOOP(a_sleeping_block_can_be_freed, TEST_DEVICES) {
  scene s;
  if (!open_scene(&s, _i, 0)) return;
  tarn_block a = take_tagged(s.p.pool, s.page * 3 / 2, s.tag);
  tarn_block b = take_tagged(s.p.pool, s.page * 3 / 2, s.tag);
  tarn_block c = take_tagged(s.p.pool, s.page, s.tag);
  fill(s.p.device, a, 1);
  fill(s.p.device, c, 3);
  size_t host = tarn_host_memory();
  ck_assert_uint_eq(put_to_sleep(&s, TARN_SLEEP_SAVE), 4 * s.page);
  give(b);
  assert_ok(tarn__front_check(s.p.pool));
  // The page that it shares with |a| is a's; one was its own.
  ck_assert_uint_eq(stats_of(s.p.pool).asleep_bytes, 3 * s.page);
  ck_assert_uint_eq(stats_of(s.p.pool).saved_bytes, a.size + c.size);
  ck_assert_uint_eq(tag_stats_of(s.p.pool, s.tag).asleep_blocks, 2);
  assert_status(tarn_pool_free(&b, NULL), TARN_E_INVALID);
  assert_error_says("weights");
  wake(&s);
  ck_assert_uint_eq(stats_of(s.p.pool).reserved_bytes, 3 * s.page);
  check_filled(s.p.device, a, 1);
  check_filled(s.p.device, c, 3);
  // Its addresses are there for others.
  b = take_tagged(s.p.pool, s.page, s.tag);
  ck_assert(b.address > a.address && b.address < c.address);
  ck_assert_uint_gt(put_to_sleep(&s, TARN_SLEEP_SAVE), 0);
  assert_ok(tarn_pool_free_address(s.p.pool, a.address, NULL));
  give(c);
  give(b);
  ck_assert_uint_eq(stats_of(s.p.pool).asleep_bytes, 0);
  ck_assert_uint_eq(stats_of(s.p.pool).saved_bytes, 0);
  ck_assert_uint_lt(tarn_host_memory(), host + s.page);
}

TEST_LOOP(a_second_sleep_finds_those_that_are_awake, TEST_DEVICES) {
  scene s;
  if (!open_scene(&s, _i, 0)) return;
  ck_assert_uint_eq(put_to_sleep(&s, TARN_SLEEP_SAVE), 0);
  wake(&s);
  tarn_block a = take_tagged(s.p.pool, 2 * s.page, s.tag);
  fill(s.p.device, a, 1);
  ck_assert_uint_eq(put_to_sleep(&s, TARN_SLEEP_SAVE), 2 * s.page);
  ck_assert_uint_eq(put_to_sleep(&s, TARN_SLEEP_DROP), 0);
  tarn_block b = take_tagged(s.p.pool, 2 * s.page, s.tag);
  fill(s.p.device, b, 2);  // awake
  ck_assert_uint_eq(tag_stats_of(s.p.pool, s.tag).asleep_blocks, 1);
  ck_assert_uint_eq(put_to_sleep(&s, TARN_SLEEP_SAVE), 2 * s.page);
  wake(&s);
  check_filled(s.p.device, a, 1);
  check_filled(s.p.device, b, 2);
  give(a);
  give(b);
}

TEST_LOOP(two_tags_sleep_apart, TEST_DEVICES) {
  scene s;
  if (!open_scene(&s, _i, 0)) return;
  tarn_block a = take_tagged(s.p.pool, s.page * 5 / 4, s.tag);
  tarn_block b = take_tagged(s.p.pool, s.page * 5 / 4, s.other);
  tarn_block c = take_tagged(s.p.pool, s.page * 5 / 4, s.tag);
  fill(s.p.device, a, 1);
  fill(s.p.device, b, 2);
  fill(s.p.device, c, 3);
  size_t first = put_to_sleep(&s, TARN_SLEEP_SAVE);
  ck_assert_uint_gt(first, 0);
  assert_ok(tarn_pool_sleep(s.p.pool, s.other, TARN_SLEEP_SAVE));
  assert_ok(tarn__front_check(s.p.pool));
  assert_ok(tarn_pool_wake(s.p.pool, s.tag));
  assert_ok(tarn__front_check(s.p.pool));
  check_filled(s.p.device, a, 1);
  check_filled(s.p.device, c, 3);
  assert_ok(tarn_pool_wake(s.p.pool, s.other));
  check_filled(s.p.device, b, 2);
  give(a);
  give(b);
  give(c);
}

// --- errors ----------------------------------------------------------------

TEST_LOOP(what_is_wrong_is_refused, TEST_DEVICES) {
  scene s;
  if (!open_scene(&s, _i, 0)) return;
  tarn_block a = take_tagged(s.p.pool, 2 * s.page, s.tag);
  tarn_pool_stats before = stats_of(s.p.pool);
  assert_status(tarn_pool_sleep(NULL, s.tag, TARN_SLEEP_SAVE), TARN_E_INVALID);
  assert_status(tarn_pool_wake(NULL, s.tag), TARN_E_INVALID);
  assert_status(tarn_pool_sleep(s.p.pool, 65536, TARN_SLEEP_SAVE),
                TARN_E_INVALID);
  assert_error_says("65536");
  assert_status(tarn_pool_wake(s.p.pool, 65536), TARN_E_INVALID);
  assert_status(tarn_pool_sleep(s.p.pool, s.tag, (tarn_sleep_mode)7),
                TARN_E_INVALID);
  assert_error_says("7");
  assert_same_stats(stats_of(s.p.pool), before);
  ck_assert_uint_eq(stats_of(s.p.pool).asleep_bytes, 0);
  (void)put_to_sleep(&s, TARN_SLEEP_SAVE);
  assert_status(tarn_pool_resize(&a, s.page, NULL), TARN_E_STATE);
  assert_error_says("asleep");
  ck_assert_uint_eq(a.size, 2 * s.page);
  wake(&s);
  assert_ok(tarn_pool_resize(&a, s.page, NULL));
  give(a);
}

static void check_unsupported(arena_place p, const char *why) {
  tarn_tag tag = tag_of("weights");
  tarn_block block = take_tagged(p.pool, 500 * KIBIBYTE, tag);
  tarn_pool_stats before = stats_of(p.pool);
  for (int mode = 0; mode < 2; mode++) {
    assert_status(tarn_pool_sleep(p.pool, tag, (tarn_sleep_mode)mode),
                  TARN_E_UNSUPPORTED);
    assert_error_says(why);
  }
  assert_ok(tarn_pool_wake(p.pool, tag));  // nothing sleeps
  assert_same_stats(stats_of(p.pool), before);
  assert_ok(tarn_pool_resize(&block, 100, NULL));
  give(block);
  close_arena(&p);
}

TEST_LOOP(others_say_what_is_missing, ALL_STRATEGIES *TEST_DEVICES) {
  const char *strategy = any_strategy(_i % ALL_STRATEGIES);
  arena_place p = open_arena_with(_i / ALL_STRATEGIES, 0, strategy);
  char without[32];
  snprintf(without, sizeof without, "%s has none", p.name);
  if (strcmp(strategy, "arena_pool") != 0) {
    check_unsupported(p, strategy);
  } else if (!device_has(p.device, TEST_NEEDS_RANGES)) {
    check_unsupported(p, without);
  }
}

TEST(blocks_that_were_taken_while_the_pool_debugged_cannot) {
  tarn_pool *pool = host_pool("arena_pool");
  tarn_tag tag = tag_of("dressed");
  tarn_pool_debug_options options = {.struct_size = sizeof options};
  assert_ok(tarn_pool_debug(pool, &options));
  tarn_block block = take_tagged(pool, (size_t)3 * MIB, tag);
  assert_status(tarn_pool_sleep(pool, tag, TARN_SLEEP_DROP),
                TARN_E_UNSUPPORTED);
  ck_assert_ptr_nonnull(strstr(tarn_last_error(), "debugged"));
  assert_ok(tarn_pool_debug_check(pool));
  give(block);
  assert_ok(tarn_pool_debug(pool, NULL));
}

TEST_LOOP(blocks_of_a_replaced_strategy_cannot, TEST_DEVICES) {
  scene s;
  if (!open_scene(&s, _i, 0)) return;
  tarn_block a = take_tagged(s.p.pool, s.page, s.tag);
  assert_ok(use_strategy(s.p.place, "arena_pool"));
  tarn_block b = take_tagged(s.p.pool, s.page, s.tag);
  assert_status(tarn_pool_sleep(s.p.pool, s.tag, TARN_SLEEP_DROP),
                TARN_E_UNSUPPORTED);
  assert_error_says("replaced");
  ck_assert_uint_eq(tag_stats_of(s.p.pool, s.tag).asleep_blocks, 0);
  give(a);
  ck_assert_uint_eq(put_to_sleep(&s, TARN_SLEEP_DROP), s.page);
  give(b);
}

// --- the pool around them --------------------------------------------------

TEST_LOOP(without_room_they_sleep_on, TEST_DEVICES) {
  scene s;
  if (!open_scene(&s, _i, 0)) return;
  tarn_block a = take_tagged(s.p.pool, 4 * s.page, s.tag);
  tarn_block b = take_tagged(s.p.pool, 3000, s.tag);
  fill(s.p.device, a, 1);
  fill(s.p.device, b, 2);
  (void)put_to_sleep(&s, TARN_SLEEP_SAVE);
  tarn_block other = take_tagged(s.p.pool, 3 * s.page, s.other);
  assert_ok(tarn_pool_limit(s.p.pool, 5 * s.page));
  tarn_pool_stats before = stats_of(s.p.pool);
  for (int k = 0; k < 3; k++) {
    assert_status(tarn_pool_wake(s.p.pool, s.tag), TARN_FULL);
    assert_ok(tarn__front_check(s.p.pool));
    tarn_pool_stats after = stats_of(s.p.pool);
    ck_assert_uint_eq(after.asleep_bytes, before.asleep_bytes);
    ck_assert_uint_eq(after.saved_bytes, before.saved_bytes);
    ck_assert_uint_eq(after.reserved_bytes, before.reserved_bytes);
  }
  give(other);  // what is idle is no hindrance
  wake(&s);
  check_filled(s.p.device, a, 1);
  check_filled(s.p.device, b, 2);
  give(a);
  give(b);
}

TEST_LOOP(a_full_device_lets_them_sleep_on, TEST_DEVICES) {
  scene s;
  if (!open_scene(&s, _i, NEEDS_CAPACITY)) return;
  tarn_block a = take_tagged(s.p.pool, ARENA_CAPACITY / 2, s.tag);
  fill(s.p.device, a, 1);
  (void)put_to_sleep(&s, TARN_SLEEP_SAVE);
  tarn_block b = take_tagged(s.p.pool, ARENA_CAPACITY, s.other);
  assert_status(tarn_pool_wake(s.p.pool, s.tag), TARN_FULL);
  assert_ok(tarn__front_check(s.p.pool));
  ck_assert_uint_eq(stats_of(s.p.pool).asleep_bytes, ARENA_CAPACITY / 2);
  ck_assert_uint_eq(available_on(s.p.device), 0);
  give(b);
  wake(&s);
  check_filled(s.p.device, a, 1);
  give(a);
}

// Another strategy has taken the place of the one in which they sleep, and
// others of the tag sleep in that: all or none awake.
TEST_LOOP(they_wake_after_a_switch, TEST_DEVICES) {
  scene s;
  if (!open_scene(&s, _i, 0)) return;
  tarn_block a = take_tagged(s.p.pool, 2 * s.page, s.tag);
  tarn_block dead = take_tagged(s.p.pool, 2 * s.page, s.tag);
  fill(s.p.device, a, 1);
  (void)put_to_sleep(&s, TARN_SLEEP_SAVE);
  assert_ok(use_strategy(s.p.place, "arena_pool"));
  assert_ok(tarn__front_check(s.p.pool));
  tarn_block b = take_tagged(s.p.pool, 2 * s.page, s.tag);
  fill(s.p.device, b, 2);
  (void)put_to_sleep(&s, TARN_SLEEP_SAVE);
  assert_ok(use_strategy(s.p.place, "page_unit_pool"));
  give(dead);
  assert_ok(tarn_pool_limit(s.p.pool, 3 * s.page));
  assert_status(tarn_pool_wake(s.p.pool, s.tag), TARN_FULL);
  assert_ok(tarn__front_check(s.p.pool));
  ck_assert_uint_eq(stats_of(s.p.pool).reserved_bytes, 0);
  ck_assert_uint_eq(stats_of(s.p.pool).asleep_bytes, 4 * s.page);
  assert_ok(tarn_pool_limit(s.p.pool, 0));
  wake(&s);
  check_filled(s.p.device, a, 1);
  check_filled(s.p.device, b, 2);
  give(a);
  ck_assert_uint_eq(stats_of(s.p.pool).reserved_bytes, 2 * s.page);
  give(b);
}

// What sleeps is live, but no room for holes: | x . . | z |, then y.
TEST_LOOP(others_hold_no_more_while_they_sleep, TEST_DEVICES) {
  scene s;
  if (!open_scene(&s, _i, 0)) return;
  assert_ok(use_strategy(s.p.place, "arena_pool:slack=0"));
  tarn_block a = take_tagged(s.p.pool, 16 * s.page, s.tag);
  (void)put_to_sleep(&s, TARN_SLEEP_DROP);
  tarn_block x = take(s.p.pool, 3 * s.page);
  tarn_block z = take(s.p.pool, s.page);
  give(x);
  tarn_block y = take(s.p.pool, 4 * s.page);
  ck_assert_uint_eq(stats_of(s.p.pool).reserved_bytes, 5 * s.page);
  give(y);
  give(z);
  give(a);
}

TEST_LOOP(a_device_does_not_close_on_them, TEST_DEVICES) {
  scene s;
  if (!open_scene(&s, _i, TEST_NEEDS_DISCRETE)) return;
  tarn_block a = take_tagged(s.p.pool, s.page, s.tag);
  (void)put_to_sleep(&s, TARN_SLEEP_SAVE);
  assert_ok(tarn_pool_trim(s.p.pool, 0));
  assert_status(tarn_device_close(s.p.device), TARN_E_STATE);
  assert_error_says("weights");
  give(a);
}
