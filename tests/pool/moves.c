// The price of moves: the account by itself, then what arena_pool does with it
// on each device, then the measuring on a device whose mappings are slow.
#include "pool/moves.h"
#include "arena_kit.h"
#include "base/os.h"
#include "pool/arena.h"
#include "support/fake_extension.h"
#include "support/strategy.h"
#include "support/threads.h"

// --- the account -----------------------------------------------------------

enum { PRICE = 1000000 };                            // ns
static const uint64_t PAID = 100 * (uint64_t)PRICE;  // time that pays for one

static tarn__pool_moves account(size_t price) {
  const tarn__pool_supply nowhere = {.dry = NULL};
  tarn__pool_moves moves;
  tarn__moves_init(&moves, price, &nowhere);
  return moves;
}

// The same with a price that was measured.
static tarn__pool_moves measured(size_t price) {
  tarn__pool_moves moves = account(price);
  moves.price_ns = price;
  moves.source = TARN__PRICE_MEASURED;
  return moves;
}

static bool afford(tarn__pool_moves *moves, size_t count, size_t peak,
                   uint64_t now_ns) {
  tarn__pool_moment moment = {.now_ns = now_ns};
  return tarn__moves_afford(moves, count, peak, moment);
}

static void charge(tarn__pool_moves *moves, size_t count, uint64_t took_ns) {
  tarn__pool_moment moment = {.now_ns = 0};
  tarn__moves_charge(moves, count, took_ns, moment);
}

TEST(the_live_peak_moves_once) {
  tarn__pool_moves moves = account(PRICE);
  ck_assert(afford(&moves, 8, 8, 0));
  ck_assert(!afford(&moves, 9, 8, 0));
  charge(&moves, 5, 0);
  ck_assert(afford(&moves, 3, 8, 0));
  ck_assert(!afford(&moves, 4, 8, 0));
  ck_assert(afford(&moves, 4, 9, 0));
}

TEST(a_hundredth_of_the_time_pays) {
  tarn__pool_moves moves = account(PRICE);
  charge(&moves, 8, 0);
  ck_assert(!afford(&moves, 1, 8, PAID - 1));
  ck_assert(afford(&moves, 1, 8, PAID));
  ck_assert(!afford(&moves, 2, 8, PAID));
  ck_assert(!afford(&moves, 2, 8, PAID / 2));  // a clock goes back
  ck_assert(afford(&moves, 2, 8, 2 * PAID));
}

// However often it is asked in between.
TEST(small_times_pay_as_much) {
  tarn__pool_moves moves = account(200000);
  charge(&moves, 8, 0);
  for (uint64_t now = 0; now < 100 * (uint64_t)200000; now += 701)
    ck_assert(!afford(&moves, 1, 8, now));
  ck_assert(afford(&moves, 1, 8, 100 * (uint64_t)200000));
}

// As a price that is told, and of a run without memory: nothing but requests
// pays there.
struct tarn__pool_dry {
  int unused;
};

TEST(requests_pay) {
  struct tarn__pool_dry some_dry = {0};
  enum { PAYS = 20 };
  const tarn__pool_supply dry = {.dry = &some_dry};
  tarn__pool_moves moves;
  tarn__moves_init(&moves, PRICE, &dry);
  charge(&moves, 8, 0);
  tarn__pool_moment moment = {.served = PRICE / PAYS - 1, .now_ns = 9 * PAID};
  ck_assert(!tarn__moves_afford(&moves, 1, 8, moment));
  moment.served++;
  ck_assert(tarn__moves_afford(&moves, 1, 8, moment));
  ck_assert(!tarn__moves_afford(&moves, 2, 8, moment));
  moment.served = 0;  // another count, as of another pool
  ck_assert(!tarn__moves_afford(&moves, 2, 8, moment));
  moment.served = UINT64_MAX;
  ck_assert(tarn__moves_afford(&moves, 8, 8, moment));
}

// More than there is to pay is not saved up.
TEST(nothing_pays_an_advance) {
  tarn__pool_moves moves = account(PRICE);
  tarn__pool_moment moment = {.served = 1000 * PAID, .now_ns = 1000 * PAID};
  ck_assert(!tarn__moves_afford(&moves, 9, 8, moment));
}

TEST(what_a_measured_move_took_counts) {
  tarn__pool_moves moves = measured(PRICE);
  charge(&moves, 1, 6 * (uint64_t)PRICE);
  ck_assert(afford(&moves, 2, 8, 0));
  ck_assert(!afford(&moves, 3, 8, 0));
  charge(&moves, 2, 1);  // at least the price
  ck_assert(!afford(&moves, 1, 8, 0));
}

// What is told is charged, however long it takes.
TEST(a_told_price_is_the_price) {
  tarn__pool_moves moves = account(PRICE);
  charge(&moves, 1, 6 * (uint64_t)PRICE);
  ck_assert(afford(&moves, 7, 8, 0));
  ck_assert(!afford(&moves, 8, 8, 0));
}

// On the host a move may take less than is known, and one that takes much more
// was interrupted.
TEST(the_host_charges_what_it_took) {
  tarn__pool_moves moves = account(TARN__MOVES_UNKNOWN);
  const size_t price = moves.price_ns;
  ck_assert_uint_gt(price, 0);
  ck_assert_uint_lt(price, TARN__MOVES_UNKNOWN);
  charge(&moves, 8, price);
  ck_assert(afford(&moves, 7, 8, 0));
  ck_assert(!afford(&moves, 8, 8, 0));
  charge(&moves, 1, 1000 * price);
  ck_assert(afford(&moves, 3, 8, 0));
  ck_assert(!afford(&moves, 4, 8, 0));
}

TEST(no_price_is_too_high) {
  tarn__pool_moves moves = measured(SIZE_MAX - 1);
  ck_assert(!afford(&moves, 3, 1, 0));
  charge(&moves, 3, UINT64_MAX);
  charge(&moves, 3, UINT64_MAX);
  ck_assert(!afford(&moves, 1, 1, 0));
}

TEST(what_costs_nothing_is_always_affordable) {
  tarn__pool_moves moves = account(0);
  charge(&moves, 1000, UINT64_MAX);
  ck_assert(afford(&moves, 1000, 1, 0));
}

TEST(an_unknown_price_forbids_nothing) {
  tarn__pool_moves moves = measured(TARN__MOVES_UNKNOWN);
  charge(&moves, 8, UINT64_MAX);
  ck_assert(afford(&moves, 9, 8, 0));
}

// --- what a pool does ------------------------------------------------------

// Blocks from 64 KiB to 4 MiB, of which a random one ends for each new one.
// Returns what the pool held at most.
static size_t hold_at_random(tarn_pool *pool) {
  enum { LIVE = 64, ROUNDS = 4000 };
  tarn_block blocks[LIVE] = {{0}};
  uint64_t state = 1;
  for (int i = 0; i < ROUNDS; i++) {
    tarn_block *block = &blocks[next_random(&state) % LIVE];
    if (block->pool != NULL) give(*block);
    size_t size = (size_t)65536 << next_random(&state) % 6;
    *block = take(pool, size + next_random(&state) % size);
  }
  size_t held = stats_of(pool).reserved_peak_bytes;
  for (int i = 0; i < LIVE; i++) {
    if (blocks[i].pool != NULL) give(blocks[i]);
  }
  assert_ok(tarn__front_check(pool));
  return held;
}

enum { PAGES = 16 };

// A price that no test earns; pages of 2 MiB, every second one a hole.
static arena_place open_dear(int device, const char *strategy,
                             tarn_block *blocks) {
  arena_place p =
      open_arena_at((size_t)512 * MIB, device, TEST_NEEDS_RANGES, strategy);
  if (p.pool == NULL) return p;
  take_many(p.pool, SIM_PAGE, blocks, PAGES);
  for (int i = 0; i < PAGES; i += 2)
    give(blocks[i]);
  return p;
}

static size_t pages_held(const arena_place *p) {
  assert_ok(tarn__front_check(p->pool));
  return stats_of(p->pool).reserved_bytes / SIM_PAGE;
}

static void close_dear(const tarn_block *blocks) {
  for (int i = 1; i < PAGES; i += 2)
    give(blocks[i]);
}

#define DEAR "arena_pool:page=2M,move=60000000000"
static const uint64_t PRICE_OF_DEAR = 60000000000;

static tarn__pool_arena *arena_of(const arena_place *p) {
  ck_assert_ptr_nonnull(p->pool);
  return (tarn__pool_arena *)(void *)p->pool->current;
}

// All that may be spent on moves, and more than a test can earn.
static void spend(const arena_place *p) {
  tarn__pool_moment now = {.now_ns = tarn__os_now_ns()};
  tarn__moves_charge(&arena_of(p)->moves, PAGES, 0, now);
}

static uint64_t debt_of(const arena_place *p) {
  return arena_of(p)->moves.debt_ns;
}

TEST_LOOP(what_is_earned_moves_first, TEST_DEVICES) {
  tarn_block blocks[PAGES];
  arena_place p = open_dear(_i, DEAR, blocks);
  if (p.pool == NULL) return;
  ck_assert_uint_eq(debt_of(&p), 0);
  tarn_block block = take(p.pool, 8 * SIM_PAGE);
  ck_assert_uint_eq(pages_held(&p), PAGES);
  ck_assert_uint_ge(debt_of(&p), 7 * PRICE_OF_DEAR);
  give(block);
  close_dear(blocks);
}

// Holes between blocks, of which none fits the next: eight pages in all.
static tarn_block split_and_take(const arena_place *p, tarn_block *kept,
                                 size_t pages) {
  tarn_block all[8];
  take_many(p->pool, SIM_PAGE, all, 8);
  for (int i = 0; i < 8; i++) {
    if (i % 2 == 0) {
      give(all[i]);
    } else {
      kept[i / 2] = all[i];
    }
  }
  return take(p->pool, pages * SIM_PAGE);
}

TEST_LOOP(room_is_used_before_more_moves, TEST_DEVICES) {
  tarn_block blocks[PAGES];
  tarn_block kept[4];
  arena_place p = open_dear(_i, DEAR, blocks);
  if (p.pool == NULL) return;
  spend(&p);  // all is spent
  tarn_block large = split_and_take(&p, kept, 3);
  size_t held = pages_held(&p);
  ck_assert_uint_gt(held, PAGES + 1);  // beyond the slack
  ck_assert_uint_le(held, PAGES * 3 / 2);
  // Beyond the room, holes serve all the same.
  tarn_block larger = take(p.pool, 4 * SIM_PAGE);
  ck_assert_uint_le(pages_held(&p), PAGES * 3 / 2);
  give(larger);
  give(large);
  give_many(kept, 4);
  close_dear(blocks);
}

// What a dry run holds does not depend on the time.
TEST(a_dry_run_pays_by_requests) {
  size_t held[2];
  tarn_device *device = open_device("cpu:0");
  for (int run = 0; run < 2; run++) {
    tarn_pool_options options = {.struct_size = sizeof options,
                                 .strategy = "arena_pool:steps=0",
                                 .flags = TARN_POOL_DRY};
    tarn_pool *pool = NULL;
    assert_ok(tarn_pool_create(tarn_place_on(device), &options, &pool));
    held[run] = hold_at_random(pool);
    assert_ok(tarn_pool_destroy(pool));
  }
  ck_assert_uint_eq(held[0], held[1]);
  close_device(device);
}

// Blocks of any size come and go. The pool holds no more than its room, and
// moves about as much as it can pay for.
TEST(what_does_not_repeat_gets_room) {
  arena_place p = open_arena("cpu:0", "arena_pool:steps=0,move=1000000");
  size_t held = hold_at_random(p.pool);
  tarn_pool_stats stats = stats_of(p.pool);
  size_t page = arena_of(&p)->regions.page;
  size_t paid = stats.live_peak_bytes + stats.allocs * 20 / 1000000 * page;
  ck_assert_uint_gt(held, stats.live_peak_bytes / 100 * 102 + (size_t)2 * MIB);
  ck_assert_uint_le(held, stats.live_peak_bytes / 2 * 3);
  ck_assert_uint_gt(stats.moved_bytes, 0);
  ck_assert_uint_gt(stats.move_ns, 0);
  // Beyond the room pages move whatever it costs, in the first requests.
  ck_assert_uint_le(stats.moved_bytes, 2 * paid);
}

// The same is tight where that is asked for, and pays.
TEST(a_slack_in_percent_is_kept) {
  arena_place p = open_arena("cpu:0", "arena_pool:steps=0,slack=10%");
  size_t held = hold_at_random(p.pool);
  tarn_pool_stats stats = stats_of(p.pool);
  ck_assert_uint_le(held, stats.live_peak_bytes / 10 * 11 + (size_t)2 * MIB);
  ck_assert_uint_gt(stats.moved_bytes, stats.live_peak_bytes);
}

static void check_no_room(int device, const char *strategy) {
  tarn_block blocks[PAGES];
  tarn_block kept[4];
  arena_place p = open_dear(device, strategy, blocks);
  if (p.pool == NULL) return;
  spend(&p);
  tarn_block large = split_and_take(&p, kept, 3);
  ck_assert_uint_le(pages_held(&p), PAGES + 1);
  give(large);
  give_many(kept, 4);
  close_dear(blocks);
  close_arena(&p);
}

TEST_LOOP(a_named_slack_leaves_no_room, TEST_DEVICES) {
  check_no_room(_i, DEAR ",slack=2M");
  check_no_room(_i, DEAR ",slack=6%");
}

TEST_LOOP(moves_that_cost_nothing_need_no_room, TEST_DEVICES) {
  check_no_room(_i, "arena_pool:page=2M,move=0");
}

// A limit goes before the room.
TEST_LOOP(at_the_limit_pages_move, TEST_DEVICES) {
  tarn_block blocks[PAGES];
  arena_place p = open_dear(_i, DEAR, blocks);
  if (p.pool == NULL) return;
  spend(&p);
  assert_ok(tarn_pool_limit(p.pool, PAGES * SIM_PAGE));
  tarn_block large = take(p.pool, 7 * SIM_PAGE);
  ck_assert_uint_eq(pages_held(&p), PAGES);
  give(large);
  close_dear(blocks);
}

// --- measuring -------------------------------------------------------------

static size_t price_in(const arena_place *p) {
  return arena_of(p)->moves.price_ns;
}

// Three calls of 50 us each, at least.
TEST(a_slow_device_is_dear) {
  tarn_block blocks[PAGES];
  setenv("TARN_SIM_MAP_LATENCY_NS", "50000", 1);
  arena_place p = open_arena("sim:0", "arena_pool:page=2M");
  ck_assert_uint_eq(price_in(&p), TARN__MOVES_UNKNOWN);
  take_many(p.pool, SIM_PAGE, blocks, PAGES);
  ck_assert_uint_eq(price_in(&p), TARN__MOVES_UNKNOWN);
  for (int i = 0; i < PAGES; i += 2)
    give(blocks[i]);
  tarn_pool_stats before = stats_of(p.pool);
  give(take(p.pool, 3 * SIM_PAGE));
  ck_assert_uint_ge(price_in(&p), 150000);
  ck_assert_uint_lt(price_in(&p), TARN__MOVES_UNKNOWN);
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, before.reserved_bytes);
  close_dear(blocks);
}

TEST(the_host_s_memory_is_not_measured) {
  arena_place p = open_arena("cpu:0", "arena_pool");
  ck_assert_uint_gt(price_in(&p), 0);
  ck_assert_uint_lt(price_in(&p), TARN__MOVES_UNKNOWN);
  assert_ok(use_strategy(p.place, "arena_pool:move=200000"));
  ck_assert_uint_eq(price_in(&p), 200000);
}

// Whatever fails, but for the end of memory, the probe leaves nothing behind,
// and the request is served or told why not.
TEST(each_call_of_the_probe_may_fail) {
  static const char *const calls[] = {"range_reserve", "memory_create",
                                      "range_map",     "range_set_access",
                                      "range_unmap",   "range_release"};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    tarn_block blocks[PAGES];
    char plan[64];
    arena_place p = open_faulty((size_t)512 * MIB, "arena_pool:page=2M");
    take_many(p.pool, SIM_PAGE, blocks, PAGES);
    for (int j = 0; j < PAGES; j += 2)
      give(blocks[j]);
    snprintf(plan, sizeof plan, "%s@1", calls[i]);
    assert_ok(tarn_sim_faults(plan));
    tarn_block block;
    assert_ok(tarn_pool_alloc(p.pool, 3 * SIM_PAGE, 0, NULL, &block));
    assert_ok(tarn_sim_faults(""));
    ck_assert_uint_eq(price_in(&p), TARN__MOVES_UNKNOWN);
    give(block);
    close_dear(blocks);
    close_arena(&p);
  }
}

// --- addresses -------------------------------------------------------------

TEST_LOOP(a_zone_has_as_many_ranges_as_it_needs, TEST_DEVICES) {
  arena_place p = open_arena_at((size_t)512 * MIB, _i, TEST_NEEDS_RANGES,
                                "arena_pool:page=2M,range=8M");
  if (p.pool == NULL) return;
  tarn_block blocks[PAGES];
  take_many(p.pool, SIM_PAGE, blocks, PAGES);
  tarn_block large = take(p.pool, 10 * SIM_PAGE);
  ck_assert_uint_eq(pages_held(&p), PAGES + 10);
  const tarn__pool_arena *arena = arena_of(&p);
  size_t count = 0;
  for (const tarn__pool_region *r = arena->regions.first; r != NULL;
       r = r->next) {
    ck_assert_uint_ge(r->size, (size_t)8 << 20);
    count++;
  }
  ck_assert_uint_ge(count, 5);
  give(large);
  give_many(blocks, PAGES);
}

TEST_LOOP(without_a_range_memory_comes_in_segments, TEST_DEVICES) {
  arena_place p = open_arena_at((size_t)512 * MIB, _i, TEST_NEEDS_RANGES,
                                "arena_pool:range=0");
  if (p.pool == NULL) return;
  tarn_block block = take(p.pool, MIB);
  const tarn__pool_arena *arena = arena_of(&p);
  ck_assert_ptr_null(arena->regions.first);
  ck_assert_ptr_nonnull(arena->segments.first);
  give(block);
}

// A driver may call a size that it has not a wrong one.
TEST(a_refused_size_is_halved) {
  static const int words[] = {TARN_FULL, TARN_E_INVALID};
  for (int i = 0; i < 2; i++) {
    fake_ext.there = true;
    fake_ext.most_range = (size_t)256 << 20;
    fake_ext.answer = words[i];
    arena_place p = open_arena("fake:0", "arena_pool:range=64G");
    tarn_block block = take(p.pool, MIB);
    const tarn__pool_arena *arena = arena_of(&p);
    ck_assert_uint_eq(arena->regions.first->size, (size_t)256 << 20);
    give(block);
    close_arena(&p);
  }
}
