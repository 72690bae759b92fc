// Switching what a pool counts: sums stay right, whatever is out meanwhile.
#include <pthread.h>

#include "kit.h"
#include "support/faults.h"
#include "support/threads.h"

static void count(tarn_pool *pool, uint32_t counters) {
  assert_ok(tarn_pool_account(pool, counters));
  ck_assert_uint_eq(stats_of(pool).counters, counters);
}

// --- tags ------------------------------------------------------------------

TEST(tags_and_peaks_are_counted_unless_told) {
  tarn_pool *pool = host_pool("page_unit_pool");
  ck_assert_uint_eq(stats_of(pool).counters,
                    TARN_COUNT_TAGS | TARN_COUNT_PEAKS);
  ck_assert_uint_eq(TARN_COUNT_DEFAULT, TARN_COUNT_TAGS | TARN_COUNT_PEAKS);
}

TEST(tags_may_be_switched_with_blocks_out) {
  tarn_pool *pool = host_pool("arena_pool");
  tarn_tag tag = tag_of("weights");
  tarn_block on = take_tagged(pool, 1000, tag);
  assert_tag(pool, tag, 1000, 1000, 1);
  count(pool, TARN_COUNT_PEAKS);
  tarn_block off = take_tagged(pool, 5000, tag);
  assert_tag(pool, tag, 1000, 1000, 1);
  ck_assert_uint_eq(stats_of(pool).live_bytes, 6000);
  ck_assert_uint_eq(stats_of(pool).live_blocks, 2);
  count(pool, TARN_COUNT_DEFAULT);
  tarn_block again = take_tagged(pool, 300, tag);
  assert_tag(pool, tag, 1300, 1300, 2);
  give(off);  // which was never counted
  assert_tag(pool, tag, 1300, 1300, 2);
  count(pool, 0);
  give(on);  // which was
  assert_tag(pool, tag, 300, 1300, 1);
  give(again);
  assert_tag(pool, tag, 0, 1300, 0);
  ck_assert_uint_eq(stats_of(pool).live_bytes, 0);
}

TEST(resizing_counts_what_was_counted) {
  tarn_pool *pool = host_pool("arena_pool");
  tarn_tag tag = tag_of("weights");
  tarn_block on = take_tagged(pool, MIB, tag);
  count(pool, 0);
  tarn_block off = take_tagged(pool, MIB, tag);
  assert_ok(tarn_pool_resize(&on, MIB / 2, NULL));
  assert_ok(tarn_pool_resize(&off, MIB / 4, NULL));
  assert_tag(pool, tag, MIB / 2, MIB, 1);
  ck_assert_uint_eq(stats_of(pool).live_bytes, MIB / 2 + MIB / 4);
  count(pool, TARN_COUNT_DEFAULT);
  assert_ok(tarn_pool_resize(&off, MIB / 2, NULL));
  assert_tag(pool, tag, MIB / 2, MIB, 1);
  give(off);
  give(on);
  assert_tag(pool, tag, 0, MIB, 0);
}

// A tag whose number is new needs no room while tags are off.
TEST(tags_that_are_off_take_no_memory) {
  faults_install();
  tarn_pool *pool = host_pool("page_unit_pool");
  give(take(pool, 100));
  char name[] = "tag a";
  tarn_tag tag = 0;
  for (; name[4] < 'a' + 20; name[4]++)
    tag = tag_of(name);
  count(pool, 0);
  faults_arm(1, FAULTS_FROM_NOW);
  tarn_block block = take_tagged(pool, 100, tag);
  ck_assert(!faults_disarm());
  faults_arm(1, FAULTS_FROM_NOW);
  count(pool, TARN_COUNT_TAGS);
  tarn_block other;
  assert_status(alloc_tagged(pool, 100, 0, NULL, tag, &other), TARN_E_NOMEM);
  ck_assert(faults_disarm());
  give(block);
  assert_tag(pool, tag, 0, 0, 0);
}

TEST(errors_name_the_tag_even_so) {
  tarn_pool *pool = host_pool("page_unit_pool");
  count(pool, 0);
  tarn_block block = take_tagged(pool, 100, tag_of("gradients"));
  give(block);
  assert_status(tarn_pool_free(&block, NULL), TARN_E_INVALID);
  assert_error_says("gradients");
}

// --- peaks -----------------------------------------------------------------

// Hits raise it only where that is asked for.
TEST(peaks_are_as_exact_as_asked_for) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block a = take(pool, 4096);
  tarn_block b = take(pool, 4096);
  give(a);
  give(b);
  assert_ok(tarn_pool_reset_peaks(pool));
  count(pool, TARN_COUNT_TAGS);
  a = take(pool, 4096);
  b = take(pool, 4096);
  give(b);
  give(a);
  ck_assert_uint_eq(stats_of(pool).live_peak_bytes, 0);
  a = take(pool, 4096);
  ck_assert_uint_eq(stats_of(pool).live_peak_bytes, 4096);  // it was looked at
  give(a);
  give(take(pool, 8192));  // the device was asked
  ck_assert_uint_eq(stats_of(pool).live_peak_bytes, 8192);
  a = take(pool, 4096);
  b = take(pool, 8192);
  count(pool, TARN_COUNT_PEAKS);
  give(a);
  give(b);
  ck_assert_uint_eq(stats_of(pool).live_peak_bytes, 12288);
  a = take(pool, 4096);
  b = take(pool, 4096);
  tarn_block c = take(pool, 8192);
  give(c);
  give(b);
  give(a);
  ck_assert_uint_eq(stats_of(pool).live_peak_bytes, 16384);
}

// --- all of them -----------------------------------------------------------

TEST_LOOP(sums_stay_right_however_it_is_switched, 2 * ALL_STRATEGIES) {
  enum { SLOTS = 40, STEPS = 4000, TAGS = 5 };
  static tarn_block blocks[SLOTS];
  uint64_t state = 88172645463325252u + (uint64_t)_i;
  tarn_pool *pool = host_pool(any_strategy(_i % ALL_STRATEGIES));
  tarn_tag tags[TAGS] = {0};
  char name[] = "tag a";
  for (int i = 1; i < TAGS; i++, name[4]++)
    tags[i] = tag_of(name);
  for (int i = 0; i < STEPS; i++) {
    size_t slot = next_random(&state) % SLOTS;
    size_t size = 1 + next_random(&state) % (MIB / 4);
    if (next_random(&state) % 16 == 0) {
      require(tarn_pool_account(pool, next_random(&state) % 16) == TARN_OK);
    }
    if (blocks[slot].address == 0) {
      require(alloc_tagged(pool, size, 0, NULL,
                           tags[next_random(&state) % TAGS],
                           &blocks[slot]) == TARN_OK);
    } else if (next_random(&state) % 3 == 0) {
      tarn_status status = tarn_pool_resize(&blocks[slot], size, NULL);
      require(status == TARN_OK || status == TARN_FULL);
    } else {
      require(tarn_pool_free(&blocks[slot], NULL) == TARN_OK);
      blocks[slot].address = 0;
    }
    if (i % 50 == 0) require(tarn__front_check(pool) == TARN_OK);
  }
  for (int i = 0; i < SLOTS; i++) {
    if (blocks[i].address != 0) give(blocks[i]);
  }
  assert_ok(tarn__front_check(pool));
  for (int i = 0; i < TAGS; i++) {
    ck_assert_uint_eq(tag_stats_of(pool, tags[i]).live_bytes, 0);
    ck_assert_uint_eq(tag_stats_of(pool, tags[i]).live_blocks, 0);
  }
}

TEST(a_counter_that_is_none_is_refused) {
  tarn_pool *pool = host_pool("page_unit_pool");
  assert_status(tarn_pool_account(pool, 1u << 4), TARN_E_INVALID);
  assert_error_says("0x10");
  assert_status(tarn_pool_account(pool, UINT32_MAX), TARN_E_INVALID);
  assert_status(tarn_pool_account(NULL, 0), TARN_E_INVALID);
  ck_assert_uint_eq(stats_of(pool).counters, TARN_COUNT_DEFAULT);
}

// --- threads ---------------------------------------------------------------

enum { WORKERS = 3, ROUNDS = 2000 };

static tarn_tag shared_tag;
static _Atomic int wrong;

static void *work(void *context) {
  tarn_pool *pool = context;
  for (size_t i = 0; i < ROUNDS; i++) {
    tarn_block block;
    tarn_status status = alloc_tagged(pool, i % 64 * 512 + 1, 0, NULL,
                                      i % 2 == 0 ? shared_tag : 0, &block);
    if (status == TARN_OK) status = tarn_pool_free(&block, NULL);
    if (status != TARN_OK) wrong++;
  }
  return NULL;
}

static void *flip(void *context) {
  for (uint32_t i = 0; i < ROUNDS; i++) {
    if (tarn_pool_account(context, i % 16) != TARN_OK) wrong++;
  }
  return NULL;
}

TEST_LOOP(switches_may_be_thrown_among_threads, 2) {
  pthread_t threads[WORKERS + 1];
  tarn_pool *pool = host_pool(_i == 0 ? "no_pool" : "page_unit_pool");
  char name[] = "tag a";
  for (; name[4] < 'a' + 20; name[4]++)  // more than there is room for at first
    shared_tag = tag_of(name);
  for (int i = 0; i <= WORKERS; i++) {
    void *(*worker)(void *) = i == WORKERS ? flip : work;
    ck_assert_int_eq(pthread_create(&threads[i], NULL, worker, pool), 0);
  }
  for (int i = 0; i <= WORKERS; i++)
    pthread_join(threads[i], NULL);
  ck_assert_int_eq(wrong, 0);
  ck_assert_uint_eq(stats_of(pool).live_bytes, 0);
  assert_tag(pool, shared_tag, 0,
             tag_stats_of(pool, shared_tag).live_peak_bytes, 0);
}
