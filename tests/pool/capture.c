// Pools that graphs are captured with: nothing is waited for, nothing leaves.
//
// Sim makes every call of the driver fail that would wait, order streams or
// take memory back, and its streams stand still: what waited would never end.
#include "capture_kit.h"
#include "support/hold.h"

#define FORBIDDEN                                                          \
  "synchronize_device@1+,synchronize_stream@1+,synchronize_event@1+,"      \
  "query_stream@1+,query_event@1+,create_event@1+,record_event@1+,"        \
  "stream_wait_event@1+,stream_add_callback@1+,device_memory_deallocate@1" \
  "+,deallocate_async@1+,range_unmap@1+,range_release@1+"

// --- streams that stand still ----------------------------------------------

static hold of_a;
static hold of_b;

static void stop_streams(void) {
  hold_begin(&of_a, a);
  hold_begin(&of_b, b);
  assert_ok(tarn_sim_faults(FORBIDDEN));
}

static void start_streams(void) {
  assert_ok(tarn_sim_faults(""));
  hold_end(&of_a);
  hold_end(&of_b);
  assert_ok(tarn_stream_synchronize(a));
  assert_ok(tarn_stream_synchronize(b));
}

// --- what a capture does and does not --------------------------------------

// The watch sees what it is to see.
TEST(without_a_capture_streams_are_joined) {
  open_watched("page_unit_pool");
  tarn_block first = take_on(pool, MIB, a);
  give_on(first, a);
  stop_streams();
  refuse_on(pool, MIB, 0, b, TARN_E_DEVICE);
  assert_ok(tarn_sim_faults(""));
  hold_end(&of_a);
  hold_end(&of_b);
  end_own(pool);
  // The failure sticks to the stream.
  forget(a);
  assert_status(tarn_stream_destroy(a), TARN_E_DEVICE);
}

// Blocks of both streams, freed on their own, on the other's and by the host.
static void play(tarn_addr *out_addresses, size_t count) {
  tarn_stream *streams[] = {a, b, NULL};
  tarn_block blocks[16] = {0};
  uint64_t random = 88172645463325252u;
  for (size_t i = 0; i < count; i++) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    size_t slot = random >> 60;
    tarn_stream *stream = streams[(random >> 40) % 3];
    size_t size = 1 + (random >> 20) % (300 * KIBIBYTE);
    if (blocks[slot].pool != NULL) {
      require(tarn_pool_free(&blocks[slot], stream) == TARN_OK);
      require(tarn_pool_free(&blocks[slot], stream) == TARN_E_INVALID);
    }
    assert_ok(tarn_pool_alloc(pool, size, 0, stream, &blocks[slot]));
    out_addresses[i] = blocks[slot].address;
  }
  for (size_t i = 0; i < 16; i++)
    if (blocks[i].pool != NULL) give_on(blocks[i], streams[i % 3]);
}

enum { PLAYED = 200 };

TEST_LOOP(nothing_is_waited_for, STRATEGIES) {
  static tarn_addr addresses[PLAYED];
  open_watched(strategies[_i]);
  stop_streams();
  begin();
  play(addresses, PLAYED);
  assert_ok(tarn__front_check(pool));
  end();
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
  ck_assert_uint_eq(stats_of(pool).frees, stats_of(pool).allocs);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 0);
  ck_assert_uint_eq(stats_of(pool).device_frees, 0);
  start_streams();
  release();
}

// Each address by the place where it came first: the device may give others.
static void number(tarn_addr *addresses, size_t count) {
  static tarn_addr seen[PLAYED];
  size_t known = 0;
  for (size_t i = 0; i < count; i++) {
    size_t at = 0;
    while (at < known && seen[at] != addresses[i])
      at++;
    if (at == known) seen[known++] = addresses[i];
    addresses[i] = at;
  }
  require(known < count);  // some came again
}

TEST_LOOP(the_same_capture_has_the_same_addresses, CASES_ON_DEVICES) {
  static tarn_addr addresses[3][PLAYED];
  open_case(_i);
  for (int j = 0; j < 3; j++) {
    begin();
    play(addresses[j], PLAYED);
    number(addresses[j], PLAYED);
    end();
    release();
    assert_ok(tarn_pool_trim(pool, 0));
    ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
  }
  ck_assert_mem_eq(addresses[0], addresses[1], sizeof addresses[0]);
  ck_assert_mem_eq(addresses[0], addresses[2], sizeof addresses[0]);
}

// Two pools without memory have one history, too.
TEST_LOOP(a_dry_capture_has_the_very_same, CASES_ON_DEVICES) {
  static tarn_addr addresses[2][PLAYED];
  for (int i = 0; i < 2; i++) {
    open_at(open_arena_with(_i / STRATEGIES, 0, "page_unit_pool"),
            strategies[_i % STRATEGIES], TARN_POOL_DRY);
    begin();
    play(addresses[i], PLAYED);
    end();
    close_all();
  }
  ck_assert_mem_eq(addresses[0], addresses[1], sizeof addresses[0]);
}

TEST_LOOP(a_stream_has_its_own_memory_again_at_once, CASES_ON_DEVICES) {
  open_case(_i);
  begin();
  tarn_block first = take_on(pool, MIB, a);
  give_on(first, a);
  tarn_block other = take_on(pool, MIB, b);  // would have to wait for a
  tarn_block again = take_on(pool, MIB, a);
  tarn_block hosts = take(pool, MIB);
  ck_assert_uint_eq(again.address, first.address);
  ck_assert_uint_ne(other.address, first.address);
  ck_assert_uint_ne(hosts.address, first.address);
  ck_assert_uint_eq(stats_of(pool).frees, 1);
  give_on(again, a);
  give_on(other, b);
  give(hosts);
  end();
  ck_assert_uint_eq(stats_of(pool).frees, 4);
}

// No request gets the block in this capture; the next reuses its memory.
TEST_LOOP(another_stream_s_free_is_put_off, CASES_ON_DEVICES) {
  open_case(_i);
  begin();
  tarn_block block = take_on(pool, MIB, a);
  give_on(block, b);
  tarn_pool_stats stats = stats_of(pool);
  ck_assert_uint_eq(stats.frees, 0);
  ck_assert_uint_eq(stats.live_blocks, 1);
  assert_status(tarn_pool_free(&block, a), TARN_E_INVALID);
  assert_error_says("freed before");
  assert_status(tarn_pool_free_address(pool, block.address, b), TARN_E_INVALID);
  assert_status(tarn_pool_resize(&block, 100, a), TARN_E_INVALID);
  tarn_block found;
  assert_status(tarn_pool_block_of(pool, block.address, &found, NULL),
                TARN_E_INVALID);
  tarn_block on_a = take_on(pool, MIB, a);
  tarn_block on_b = take_on(pool, MIB, b);
  ck_assert_uint_ne(on_a.address, block.address);
  ck_assert_uint_ne(on_b.address, block.address);
  give(on_a);  // no work is over for the host in a capture
  give_on(on_b, b);
  ck_assert_uint_eq(stats_of(pool).live_blocks, 2);
  assert_ok(tarn__front_check(pool));
  end();
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
  ck_assert_uint_eq(stats_of(pool).frees, 3);
  size_t held = stats_of(pool).reserved_bytes;
  begin();
  give_on(take_on(pool, MIB, a), a);
  give_on(take_on(pool, MIB, b), b);
  end();
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, held);
}

// Their work is really queued: it is ordered as ever, when the capture is over.
TEST(blocks_from_before_are_put_off) {
  open_at(open_arena("fake:0", "page_unit_pool"), "page_unit_pool", 0);
  tarn_block crossed = take_on(pool, 4096, a);
  give_on(crossed, a);
  crossed = take_on(pool, 4096, b);  // behind a
  tarn_block plain = take_on(pool, 9000, a);
  begin();
  size_t events = fake_seen.events;
  give_on(crossed, a);
  give_on(plain, a);
  ck_assert_uint_eq(stats_of(pool).live_blocks, 2);
  ck_assert_uint_eq(fake_seen.waits, 0);
  ck_assert_uint_eq(fake_seen.events, events);
  end();
  ck_assert_uint_ge(fake_seen.waits, 1);
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
}

// --- nothing leaves --------------------------------------------------------

static bool meets(tarn_block block, const tarn_addr *addresses, size_t count) {
  for (size_t i = 0; i < count; i++) {
    bool apart = block.address + block.size <= addresses[i] ||
                 block.address > addresses[i];
    if (!apart) return true;
  }
  return false;
}

// All that others can get of the device, in the capture and behind it.
static void check_that_others_get(const tarn_addr *addresses, size_t count) {
  tarn_block blocks[256];
  size_t taken = 0;
  while (taken < 256 && tarn_pool_alloc(p.pool, 256 * KIBIBYTE, 0, NULL,
                                        &blocks[taken]) == TARN_OK) {
    require(!meets(blocks[taken], addresses, count));
    taken++;
  }
  ck_assert_uint_gt(taken, 10);
  while (taken > 0)
    give(blocks[--taken]);
  assert_ok(tarn_pool_trim(p.pool, 0));
}

TEST_LOOP(no_address_reaches_others, CASES_ON_DEVICES) {
  static tarn_addr addresses[PLAYED];
  open_case(_i);
  uint64_t frees = frees_at_first();
  begin();
  play(addresses, PLAYED);
  check_that_others_get(addresses, PLAYED);
  end();
  size_t held = stats_of(pool).reserved_bytes;
  check_that_others_get(addresses, PLAYED);
  assert_status(tarn_pool_trim(pool, 0), TARN_E_STATE);
  assert_error_says("a captured graph uses its memory");
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, held);
  ck_assert_uint_eq(stats_of(pool).device_frees, frees);
}

// A pool at its limit takes no page from under what was captured.
TEST_LOOP(no_page_moves, TEST_DEVICES) {
  arena_place at = open_arena_with(_i, TEST_NEEDS_RANGES, "page_unit_pool");
  if (at.pool == NULL) return;
  open_at(at, "arena_pool:page=2M,slack=0", 0);
  assert_ok(tarn_pool_limit(pool, (size_t)8 * MIB));
  for (int i = 0; i < 2; i++) {
    tarn_stream *stream = i == 0 ? a : NULL;  // NULL: a hole of no stream
    char read[16] = "";
    begin();
    tarn_block first = take_on(pool, (size_t)4 * MIB, stream);
    tarn_block behind = take_on(pool, (size_t)2 * MIB, b);
    give_on(first, stream);
    refuse_on(pool, (size_t)5 * MIB, 0, b, TARN_FULL);
    assert_ok(tarn_copy_h2d(p.device, first.address, "captured", 9, NULL));
    assert_ok(tarn_copy_d2h(p.device, read, first.address, 9, NULL));
    ck_assert_str_eq(read, "captured");
    end();
    release();
    give_on(take_on(pool, (size_t)5 * MIB, b), b);
    give_on(behind, b);
    assert_ok(tarn_pool_trim(pool, 0));
  }
}

TEST_LOOP(what_is_left_over_is_freed_behind_it, CASES_ON_DEVICES) {
  open_case(_i);
  begin();
  tarn_block result = take_on(pool, MIB, a);
  tarn_block other = take_on(pool, MIB, a);
  end();
  size_t held = stats_of(pool).reserved_bytes;
  assert_status(tarn_pool_destroy(pool), TARN_E_STATE);
  assert_error_says("2 blocks");
  give_on(result, b);
  ck_assert_uint_eq(stats_of(pool).live_blocks, 1);
  release();
  give(other);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, held);
}

TEST(a_block_is_resized_by_its_stream) {
  open_watched("arena_pool");
  tarn_block before = take_on(pool, MIB, a);
  begin();
  tarn_block block = take_on(pool, MIB, a);
  assert_status(tarn_pool_resize(&block, MIB / 2, b), TARN_E_STATE);
  assert_status(tarn_pool_resize(&before, MIB / 2, a), TARN_E_STATE);
  stop_streams();
  assert_ok(tarn_pool_resize(&block, MIB / 2, a));
  assert_ok(tarn_pool_resize(&block, MIB, a));
  start_streams();
  end();
  assert_status(tarn_pool_resize(&block, MIB / 2, a), TARN_E_STATE);
  ck_assert_uint_eq(block.size, MIB);
  release();
  assert_ok(tarn_pool_resize(&block, MIB / 2, b));
  give_on(block, b);
  give_on(before, a);
}
