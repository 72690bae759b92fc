// The ground of a step is no reason to hold more memory: it is raised on pages
// that are idle, and on new ones only within the slack.
#include "arena_kit.h"
#include "support/strategy.h"

enum {
  HALVES = 64,
  BLOCKS = 24,
  ROUNDS = 200,  // many more than it takes to learn a step
};

static const size_t PAGE = (size_t)256 * KIB;

static arena_place at;
static tarn_block halves[HALVES];

// A page for every two of |halves|, which are live, and half of a page idle
// after each; and so many pages that are idle. In all that is the live peak.
static void open_with_idle_halves(const char *strategy, size_t pages) {
  at = open_arena_of(ARENA_CAPACITY, "cpu:0", strategy);
  tarn_block spare = {.address = 0};
  take_many(at.pool, PAGE / 2, halves, HALVES);
  if (pages > 0) {
    spare = take(at.pool, pages * PAGE);
    give(spare);
  }
  for (size_t i = 1; i < HALVES; i += 2)
    give(halves[i]);
  ck_assert_uint_eq(stats_of(at.pool).reserved_bytes,
                    stats_of(at.pool).live_peak_bytes);
}

static void give_halves(void) {
  for (size_t i = 0; i < HALVES; i += 2)
    give(halves[i]);
}

// Each block finds room in half of a page; all together need less than is idle.
static void play(void) {
  tarn_block out[BLOCKS];
  for (size_t i = 0; i < BLOCKS; i++)
    out[i] = take(at.pool, PAGE / 2 - (i + 1) * 64);
  give_many(out, BLOCKS);
}

static void play_rounds(void) {
  for (size_t i = 0; i < ROUNDS; i++)
    play();
  assert_ok(tarn__front_check(at.pool));
}

static void check_refused(const char *strategy) {
  open_with_idle_halves(strategy, 0);
  size_t held = stats_of(at.pool).reserved_bytes;
  play_rounds();
  ck_assert_ptr_null(at.pool->steps.ground.owner);
  ck_assert_uint_eq(stats_of(at.pool).reserved_bytes, held);
  give_halves();
}

TEST(parts_of_pages_do_not_make_a_ground) {
  check_refused("arena_pool:slack=0");
  check_refused("arena_pool:slack=1M");
}

TEST(a_ground_may_take_what_the_slack_allows) {
  open_with_idle_halves("arena_pool:slack=4M", 0);
  size_t held = stats_of(at.pool).reserved_bytes;
  play_rounds();
  ck_assert_ptr_nonnull(at.pool->steps.ground.owner);
  ck_assert_uint_gt(stats_of(at.pool).reserved_bytes, held);
  ck_assert_uint_le(stats_of(at.pool).reserved_bytes, held + 4 * MIB);
  give_halves();
}

// They are where the step does not begin: they move to the ground.
TEST(whole_pages_that_are_idle_make_a_ground) {
  open_with_idle_halves("arena_pool:slack=0", BLOCKS / 2);
  size_t held = stats_of(at.pool).reserved_bytes;
  play_rounds();
  ck_assert_ptr_nonnull(at.pool->steps.ground.owner);
  ck_assert_uint_eq(stats_of(at.pool).reserved_bytes, held);
  give_halves();
}

// As soon as pages are whole again.
TEST(a_ground_that_was_refused_is_asked_for_again) {
  open_with_idle_halves("arena_pool:slack=0", 0);
  size_t held = stats_of(at.pool).reserved_bytes;
  play_rounds();
  give_halves();
  play_rounds();
  ck_assert_ptr_nonnull(at.pool->steps.ground.owner);
  ck_assert_uint_eq(stats_of(at.pool).reserved_bytes, held);
}

FIXTURE(NULL, NULL);
