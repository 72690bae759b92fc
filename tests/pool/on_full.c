// No room: the function of a program that is called then, and what is said.
#include "kit.h"
#include "support/strategy.h"
#include "tarn/account.h"
#include "tarn/sim.h"
#include "tarn/strategy.h"

static const size_t PAGE = 4096;

// --- the program's function ------------------------------------------------

// What it does, and what it saw.
typedef struct listener {
  bool answer;
  size_t calls_with_no;   // after so many calls it answers no; 0: never
  tarn_block *frees;      // each time the next, until one has no pool
  size_t raises;          // the limit by so much
  size_t takes;           // a block of so many bytes, which must be refused
  tarn_status exchanged;  // what exchanging the function came to
  bool exchanges;
  size_t calls;
  tarn_pool *pool;
  tarn_pool_need need;  // of the last call
} listener;

static bool listen(tarn_pool *pool, const tarn_pool_need *need, void *context) {
  listener *l = context;
  l->calls++;
  l->pool = pool;
  l->need = *need;
  require(need->attempt == l->calls);
  if (l->frees != NULL && l->frees->pool != NULL) give(*l->frees++);
  if (l->raises != 0) {
    assert_ok(tarn_pool_limit(pool, need->limit_bytes + l->raises));
  }
  if (l->takes != 0) refuse(pool, l->takes, 0, TARN_FULL);
  if (l->exchanges) l->exchanged = tarn_pool_on_full(pool, NULL, NULL);
  return l->answer && (l->calls_with_no == 0 || l->calls < l->calls_with_no);
}

static void check_and_reset(void *pool) {
  assert_ok(tarn_pool_on_full(pool, NULL, NULL));
  assert_ok(tarn_pool_limit(pool, 0));
  assert_ok(tarn_pool_trim(pool, 0));
  assert_ok(tarn__front_check(pool));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
}

// Until the end of the test.
static tarn_pool *full_pool(const char *strategy, size_t limit, listener *l) {
  tarn_pool *pool = host_pool(strategy);
  assert_ok(tarn_pool_limit(pool, limit));
  assert_ok(tarn_pool_on_full(pool, listen, l));
  after_test(check_and_reset, pool);
  return pool;
}

static const char *const of_64_kib[] = {"page_unit_pool", "arena_pool:page=64K",
                                        "buddy_pool:init=64K,realloc=64K",
                                        "no_pool", "async_pool"};

TEST_LOOP(it_makes_room, 5) {
  size_t unit = (size_t)64 * KIB;
  tarn_block blocks[4] = {0};
  listener l = {.answer = true, .frees = blocks};
  tarn_pool *pool = full_pool(of_64_kib[_i], 4 * unit, &l);
  for (int i = 0; i < 3; i++)
    blocks[i] = take(pool, unit - 1000);
  tarn_block block = take(pool, 3 * unit);
  ck_assert_uint_ge(l.calls, 2);
  ck_assert_uint_le(l.calls, 3);
  ck_assert_ptr_eq(l.pool, pool);
  ck_assert_uint_eq(stats_of(pool).failures, 0);
  give(block);
  while (l.frees->pool != NULL)
    give(*l.frees++);
}

TEST(it_is_told_what_is_needed) {
  listener l = {.answer = false};
  tarn_pool *pool = full_pool("page_unit_pool", 10 * PAGE, &l);
  tarn_tag tag = tag_of("weights");
  tarn_block kept = take(pool, 4 * PAGE - 100);
  tarn_block none;
  assert_status(alloc_tagged(pool, 7 * PAGE, 256, NULL, tag, &none), TARN_FULL);
  ck_assert_uint_eq(l.calls, 1);
  ck_assert_uint_eq(l.need.struct_size, sizeof l.need);
  ck_assert_uint_eq(l.need.size, 7 * PAGE);
  ck_assert_uint_eq(l.need.align, 256);
  ck_assert_uint_eq(l.need.tag, tag);
  ck_assert_uint_eq(l.need.reserved_bytes, 4 * PAGE);
  ck_assert_uint_eq(l.need.live_bytes, 4 * PAGE - 100);
  ck_assert_uint_eq(l.need.limit_bytes, 10 * PAGE);
  ck_assert_uint_eq(l.need.idle_bytes, 0);
  ck_assert_uint_eq(l.need.largest_hole, 0);
  give(kept);
}

TEST(it_may_raise_the_limit_even_above_the_request) {
  listener l = {.answer = true, .raises = 2 * PAGE};
  tarn_pool *pool = full_pool("page_unit_pool", PAGE, &l);
  give(take(pool, 5 * PAGE));
  ck_assert_uint_eq(l.calls, 2);
  ck_assert_uint_eq(stats_of(pool).limit_bytes, 5 * PAGE);
  ck_assert_uint_eq(stats_of(pool).device_allocs, 1);
}

TEST(it_is_not_called_where_there_is_room) {
  listener l = {.answer = true};
  tarn_pool *pool = full_pool("page_unit_pool", 4 * PAGE, &l);
  give(take(pool, 3 * PAGE));
  give(take(pool, 4 * PAGE));  // after a trim
  refuse(pool, 0, 0, TARN_E_INVALID);
  ck_assert_uint_eq(l.calls, 0);
}

TEST(its_no_is_final) {
  listener l = {.answer = true, .calls_with_no = 3};
  tarn_pool *pool = full_pool("page_unit_pool", 2 * PAGE, &l);
  tarn_block kept = take(pool, PAGE);
  refuse(pool, 2 * PAGE, 0, TARN_FULL);
  ck_assert_uint_eq(l.calls, 3);
  ck_assert_uint_eq(stats_of(pool).failures, 1);
  give(kept);
}

TEST(it_is_not_called_for_ever) {
  listener l = {.answer = true};
  tarn_pool *pool = full_pool("page_unit_pool", 2 * PAGE, &l);
  tarn_block kept = take(pool, PAGE);
  refuse(pool, 2 * PAGE, 0, TARN_FULL);
  ck_assert_uint_eq(l.calls, 16);
  ck_assert(l.need.can_fit);
  assert_error_says("limit of 8.00 KiB (8192 bytes)");
  give(kept);
}

// --- what no freeing can make room for -------------------------------------

TEST_LOOP(more_than_the_limit_is_told_once, ALL_STRATEGIES) {
  listener l = {.answer = true};
  tarn_pool *pool = full_pool(any_strategy(_i), (size_t)64 * MIB, &l);
  tarn_block kept = take(pool, MIB);
  refuse(pool, (size_t)100 * MIB, 0, TARN_FULL);
  ck_assert_uint_eq(l.calls, 1);
  ck_assert(!l.need.can_fit);
  ck_assert_uint_eq(l.need.struct_size, sizeof l.need);
  assert_error_says("limit of 64.00 MiB (67108864 bytes)");
  give(kept);
}

TEST(charges_cannot_be_freed) {
  listener l = {.answer = true};
  tarn_pool *pool = full_pool("arena_pool", (size_t)64 * MIB, &l);
  assert_ok(tarn_pool_charge(pool, (size_t)40 * MIB, 0));
  refuse(pool, (size_t)30 * MIB, 0, TARN_FULL);
  ck_assert_uint_eq(l.calls, 1);
  ck_assert(!l.need.can_fit);
  l.calls = 0;
  assert_status(tarn_pool_charge(pool, (size_t)65 * MIB, 0), TARN_FULL);
  ck_assert_uint_eq(l.calls, 1);
  ck_assert(!l.need.can_fit);
  assert_ok(tarn_pool_discharge(pool, (size_t)40 * MIB, 0));
}

TEST_LOOP(more_than_the_device_has_is_told_once, ALL_STRATEGIES) {
  listener l = {.answer = true};
  tarn_pool *pool = full_pool(any_strategy(_i), 0, &l);
  tarn_block kept = take(pool, MIB);
  refuse(pool, (size_t)1 << 45, 0, TARN_FULL);
  ck_assert_uint_eq(l.calls, 1);
  ck_assert(!l.need.can_fit);
  give(kept);
}

// The limit is raised, but not enough, and then not at all.
TEST(a_higher_limit_is_another_try) {
  listener l = {.answer = true, .raises = 2 * PAGE};
  tarn_pool *pool = full_pool("page_unit_pool", PAGE, &l);
  give(take(pool, 9 * PAGE));
  ck_assert_uint_eq(l.calls, 4);
  ck_assert(!l.need.can_fit);
  l.raises = 0;
  l.calls = 0;
  refuse(pool, 10 * PAGE, 0, TARN_FULL);
  ck_assert_uint_eq(l.calls, 1);
}

static bool give_others_back(tarn_pool *pool, const tarn_pool_need *need,
                             void *context) {
  tarn_addr *others = context;
  require(!need->can_fit);
  tarn_place place = tarn_pool_place(pool);
  require(tarn_device_deallocate(place, *others, (size_t)60 * MIB) == TARN_OK);
  *others = 0;
  return true;
}

TEST_LOOP(memory_that_comes_free_elsewhere_is_another_try, TEST_DEVICES) {
  tarn_addr others = 0;
  tarn_device *device = open_small_device(_i, (size_t)64 * MIB);
  if (device == NULL) return;
  tarn_place place = tarn_place_on(device);
  assert_ok(tarn_device_allocate(place, (size_t)60 * MIB, &others));
  tarn_pool *pool = pool_at(place);
  assert_ok(tarn_pool_on_full(pool, give_others_back, &others));
  give(take(pool, (size_t)30 * MIB));
  ck_assert_uint_eq(others, 0);
}

TEST(its_own_requests_go_without_it) {
  listener l = {.answer = false, .takes = 3 * PAGE};
  tarn_pool *pool = full_pool("page_unit_pool", PAGE, &l);
  refuse(pool, 2 * PAGE, 0, TARN_FULL);
  assert_error_says("no room for 8.00 KiB (8192 bytes)");
  ck_assert_uint_eq(l.calls, 1);
  ck_assert_uint_eq(stats_of(pool).failures, 2);
}

TEST(it_cannot_be_exchanged_from_within) {
  listener l = {.exchanges = true};
  tarn_pool *pool = full_pool("page_unit_pool", PAGE, &l);
  refuse(pool, 2 * PAGE, 0, TARN_FULL);
  ck_assert_int_eq(l.exchanged, TARN_E_STATE);
  l.calls = 0;
  refuse(pool, 2 * PAGE, 0, TARN_FULL);
  ck_assert_uint_eq(l.calls, 1);  // it is still there
  check_and_reset(pool);
  assert_ok(tarn_pool_limit(pool, PAGE));
  refuse(pool, 2 * PAGE, 0, TARN_FULL);
  ck_assert_uint_eq(l.calls, 1);
  assert_status(tarn_pool_on_full(NULL, listen, &l), TARN_E_INVALID);
}

static bool switch_strategy(tarn_pool *pool, const tarn_pool_need *need,
                            void *context) {
  (void)need;
  (void)context;
  assert_ok(use_strategy(tarn_pool_place(pool), "no_pool"));
  return true;
}

// Of a size that comes with a page more in one strategy only.
TEST(it_may_exchange_the_strategy) {
  tarn_pool *pool = host_pool("page_unit_pool");
  assert_ok(tarn_pool_limit(pool, PAGE + 100));
  assert_ok(tarn_pool_on_full(pool, switch_strategy, NULL));
  tarn_block block = take(pool, PAGE + 1);
  ck_assert_str_eq(stats_of(pool).strategy, "no_pool");
  give(block);
}

// --- what is said ----------------------------------------------------------

TEST(the_text_says_all_of_it) {
  tarn_pool *pool = host_pool("page_unit_pool");
  assert_ok(tarn_pool_limit(pool, 10 * PAGE));
  tarn_block blocks[] = {
      take_tagged(pool, PAGE, tag_of("weights")),
      take_tagged(pool, PAGE, tag_of("weights")),
      take(pool, 100),
      take_tagged(pool, 3 * PAGE, tag_of("activations")),
      take_tagged(pool, 7, tag_of("others")),
  };
  tarn_block none;
  assert_status(
      alloc_tagged(pool, 5 * PAGE, 65536, NULL, tag_of("gradients"), &none),
      TARN_FULL);
  ck_assert_str_eq(
      tarn_last_error(),
      "pool of host: no room for 20.00 KiB (20480 bytes) aligned to 64.00 KiB "
      "(65536 bytes) for gradients: this would exceed the limit of 40.00 KiB "
      "(40960 bytes); 28.00 KiB (28672 bytes) reserved, 20.10 KiB (20587 "
      "bytes) live, nothing idle; most: 12.00 KiB (12288 bytes) activations "
      "(1), 8.00 KiB (8192 bytes) weights (2), 100 bytes untagged (1)");
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
    give(blocks[i]);
  refuse(pool, 11 * PAGE, 0, TARN_FULL);
  ck_assert_str_eq(
      tarn_last_error(),
      "pool of host: no room for 44.00 KiB (45056 bytes): this would exceed "
      "the limit of 40.00 KiB (40960 bytes); 28.00 KiB (28672 bytes) reserved, "
      "all of it idle, the largest hole 12.00 KiB (12288 bytes), 57% "
      "fragmented");
  assert_ok(tarn_pool_limit(pool, 0));
  assert_ok(tarn_pool_trim(pool, 0));
}

static size_t count_of(const char *text, const char *part) {
  size_t count = 0;
  for (; (text = strstr(text, part)) != NULL; text += strlen(part))
    count++;
  return count;
}

// Also where the limit, what is reserved and what one tag holds are the same.
TEST(each_figure_is_there_once) {
  for (int i = 0; i < ALL_STRATEGIES; i++) {
    tarn_pool *pool = host_pool(any_strategy(i));
    assert_ok(tarn_pool_limit(pool, (size_t)64 * MIB));
    refuse(pool, (size_t)100 * MIB, 0, TARN_FULL);
    const char *text = tarn_last_error();
    ck_assert_uint_eq(count_of(text, "100.00 MiB (104857600 bytes)"), 1);
    ck_assert_uint_eq(count_of(text, "64.00 MiB (67108864 bytes)"), 1);
    ck_assert_uint_eq(count_of(text, "104857600"), 1);
    ck_assert_uint_eq(count_of(text, "67108864"), 1);
    tarn_block kept = take(pool, (size_t)64 * MIB);
    refuse(pool, (size_t)64 * MIB, 0, TARN_FULL);
    ck_assert_uint_eq(count_of(tarn_last_error(), "67108864"), 1);
    give(kept);
    assert_ok(tarn_pool_limit(pool, 0));
    assert_ok(tarn_pool_trim(pool, 0));
  }
}

TEST(long_names_cut_the_end_only) {
  char name[200];
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block blocks[3];
  for (int i = 0; i < 3; i++) {
    memset(name, 'a' + i, sizeof name);
    name[sizeof name - 1] = '\0';
    blocks[i] = take_tagged(pool, (size_t)100 + (size_t)i, tag_of(name));
  }
  assert_ok(tarn_pool_limit(pool, 4 * PAGE));
  tarn_block none;
  assert_status(alloc_tagged(pool, SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 1, NULL,
                             tag_of(name), &none),
                TARN_FULL);
  ck_assert_uint_le(strlen(tarn_last_error()), 511);
  assert_error_says("would exceed the limit of 16.00 KiB (16384 bytes)");
  assert_error_says("12.00 KiB (12288 bytes) reserved, 303 bytes live");
  assert_error_says("102 bytes cccccccccccccccccccccccccccccccccccccccc (1)");
  give_many(blocks, 3);
  assert_ok(tarn_pool_limit(pool, 0));
}

// --- strategies of programs ------------------------------------------------

static tarn_status refuse_silently(void *self, const tarn_source *source,
                                   const tarn_request *request,
                                   tarn_suballocation *out) {
  (void)self;
  (void)source;
  (void)request;
  (void)out;
  return TARN_FULL;
}

TEST(a_strategy_that_cannot_say_is_unknown) {
  tarn_strategy strategy = *TarnPoolStrategy();
  strategy.name = "silent_pool";
  strategy.take = refuse_silently;
  assert_ok(tarn_pool_register(&strategy));
  listener l = {.answer = false};
  tarn_pool *pool = full_pool("silent_pool", 0, &l);
  assert_status(tarn_pool_trim(NULL, 0), TARN_E_INVALID);  // its text is old
  refuse(pool, 100, 0, TARN_FULL);
  ck_assert_str_eq(tarn_last_error(),
                   "pool of host: no room for 100 bytes: silent_pool: has no "
                   "room; nothing reserved");
  ck_assert_uint_eq(l.need.idle_bytes, TARN_POOL_UNKNOWN);
  ck_assert_uint_eq(l.need.largest_hole, TARN_POOL_UNKNOWN);
}
