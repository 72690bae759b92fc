// Pools that a program creates: apart from the place's, ended by their creator.
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "arena_kit.h"
#include "support/child.h"
#include "support/fake_plugin.h"
#include "support/faults.h"
#include "support/threads.h"

static void refuse_options(tarn_place place, tarn_pool_options options,
                           tarn_status expected) {
  tarn_pool *pool = (tarn_pool *)&options;
  assert_status(tarn_pool_create(place, &options, &pool), expected);
  ck_assert_ptr_null(pool);
}

// --- a pool apart ----------------------------------------------------------

// All that can be done with blocks.
static void use(tarn_pool *pool) {
  tarn_tag tag = tag_of("mine");
  tarn_block first = take_tagged(pool, 3000, tag);
  tarn_block second = take(pool, 70000);
  tarn_block found;
  assert_ok(tarn_pool_block_of(pool, second.address, &found, NULL));
  assert_same_block(second, found);
  ck_assert_uint_eq(tag_stats_of(pool, tag).live_bytes, 3000);
  assert_ok(tarn_pool_resize(&first, 2000, NULL));
  ck_assert_uint_eq(stats_of(pool).live_bytes, 72000);
  ck_assert_uint_eq(stats_of(pool).live_blocks, 2);
  give(first);
  assert_ok(tarn_pool_free_address(pool, second.address, NULL));
  assert_status(tarn_pool_free(&second, NULL), TARN_E_INVALID);
  assert_ok(tarn__front_check(pool));
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
  ck_assert_uint_gt(stats_of(pool).reserved_peak_bytes, 0);
  assert_ok(tarn_pool_reset_peaks(pool));
  ck_assert_uint_eq(stats_of(pool).reserved_peak_bytes, 0);
}

TEST_LOOP(it_is_a_pool_like_any_other, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, 0, "page_unit_pool");
  for (int j = 0; j < ALL_STRATEGIES; j++) {
    assert_ok(use_strategy(p.place, any_strategy(j)));
    tarn_pool *pool = own_pool_with(p.place, any_strategy(j), 0, 0);
    ck_assert_ptr_ne(pool, p.pool);
    ck_assert(tarn_place_equal(tarn_pool_place(pool), p.place));
    ck_assert_str_eq(stats_of(pool).strategy, any_strategy(j));
    tarn_pool_stats shared = stats_of(p.pool);
    use(pool);
    assert_same_stats(shared, stats_of(p.pool));
    ck_assert_ptr_eq(pool_at(p.place), p.pool);
    end_own(pool);
  }
}

// What one frees the other does not get, nor can it free what is not its own.
TEST_LOOP(pools_of_a_place_are_apart, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, 0, "page_unit_pool");
  tarn_pool *pools[2] = {own_pool_with(p.place, NULL, 0, 0),
                         own_pool_with(p.place, NULL, 0, 0)};
  ck_assert_str_eq(stats_of(pools[0]).strategy, "arena_pool");
  tarn_block block = take(pools[0], MIB);
  tarn_block stray = block;
  stray.pool = pools[1];
  assert_status(tarn_pool_free(&stray, NULL), TARN_E_INVALID);
  give(block);
  tarn_block other = take(pools[1], MIB);
  tarn_block shared = take(p.pool, MIB);
  ck_assert_uint_ne(other.address, block.address);
  ck_assert_uint_ne(shared.address, block.address);
  ck_assert_uint_eq(take(pools[0], MIB).address, block.address);
  assert_ok(tarn_pool_free_address(pools[0], block.address, NULL));
  give(other);
  give(shared);
}

TEST(its_limit_is_its_own) {
  tarn_pool *pool = own_pool_with(TARN_HOST, "page_unit_pool", 65536, 0);
  ck_assert_uint_eq(stats_of(pool).limit_bytes, 65536);
  refuse(pool, 65537, 0, TARN_FULL);
  tarn_block block = take(pool, 65536);
  refuse(pool, 1, 0, TARN_FULL);
  assert_ok(tarn_pool_limit(pool, 0));
  give(take(pool, MIB));
  give(block);
}

// --- what is refused -------------------------------------------------------

TEST(options_are_checked) {
  size_t size = sizeof(tarn_pool_options);
  refuse_options(TARN_HOST, (tarn_pool_options){.struct_size = 8},
                 TARN_E_INVALID);
  refuse_options(TARN_HOST,
                 (tarn_pool_options){.struct_size = size, .flags = 1u << 3},
                 TARN_E_INVALID);
  assert_error_says("0x8");
  refuse_options(TARN_HOST,
                 (tarn_pool_options){.struct_size = size, .strategy = "none"},
                 TARN_E_INVALID);
  refuse_options(TARN_HOST,
                 (tarn_pool_options){.struct_size = size,
                                     .strategy = "page_unit_pool:page=7"},
                 TARN_E_INVALID);
  refuse_options((tarn_place){.kind = (tarn_place_kind)7},
                 (tarn_pool_options){.struct_size = size}, TARN_E_INVALID);
  setenv("TARN_POOL", "none", 1);
  refuse_options(TARN_HOST, (tarn_pool_options){.struct_size = size},
                 TARN_E_INVALID);
  unsetenv("TARN_POOL");
  tarn_pool *pool = NULL;
  assert_ok(tarn_pool_create(TARN_HOST, NULL, &pool));
  assert_ok(tarn_pool_destroy(pool));
  tarn_pool_options zero = {0};
  assert_ok(tarn_pool_create(TARN_HOST, &zero, &pool));
  assert_ok(tarn_pool_destroy(pool));
  assert_ok(tarn_pool_destroy(NULL));
}

TEST(a_kind_that_the_device_lacks_is_refused) {
  fake.missing = FAKE_MISSES(unified_memory_allocate) |
                 FAKE_MISSES(unified_memory_deallocate);
  arena_place p = open_arena("fake:0", "page_unit_pool");
  tarn_place unified = {.kind = TARN_PLACE_UNIFIED, .device = p.device};
  refuse_options(unified, (tarn_pool_options){0}, TARN_E_UNSUPPORTED);
}

TEST_LOOP(blocks_that_are_out_keep_it, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, 0, "page_unit_pool");
  tarn_pool *pool = own_pool_with(p.place, "arena_pool", 0, 0);
  tarn_block block = take_tagged(pool, 5000, tag_of("activations"));
  tarn_block plain = take(pool, 300);
  assert_status(tarn_pool_destroy(pool), TARN_E_STATE);
  assert_error_says("2 blocks of 5.17 KiB (5300 bytes) are out");
  assert_error_says("4.88 KiB (5000 bytes) activations");
  char place[32];
  assert_error_says(tarn_place_text(p.place, place, sizeof place));
  give(block);
  assert_status(tarn_pool_destroy(pool), TARN_E_STATE);
  assert_error_says("1 blocks of 300 bytes are out: untagged (1)");
  give(plain);
}

TEST(the_pool_of_a_place_is_nobody_s) {
  tarn_pool *shared = host_pool("page_unit_pool");
  assert_status(tarn_pool_destroy(shared), TARN_E_STATE);
  assert_error_says("ends with its device");
  give(take(shared, 100));
}

TEST_LOOP(a_device_with_such_a_pool_stays_open, TEST_DEVICES) {
  if (strcmp(test_devices[_i], "cpu:0") == 0) return;  // it does in any case
  arena_place p = open_arena_with(_i, 0, "page_unit_pool");
  tarn_pool *pool = own_pool_with(p.place, "arena_pool", 0, 0);
  tarn_block block = take(pool, MIB);
  assert_status(tarn_device_close(p.device), TARN_E_STATE);
  assert_error_says("cannot close: 1 pool of tarn_pool_create is there");
  give(block);
  assert_status(tarn_device_close(p.device), TARN_E_STATE);
  give(take(pool, MIB));  // it has lost nothing
  end_own(pool);
}

// --- its end ---------------------------------------------------------------

// The memory is used until the stream has come there.
TEST(its_end_waits_for_streams) {
  static char out[8];
  arena_place p = open_arena("fake:0", "page_unit_pool");
  tarn_stream *stream = stream_on(&p);
  tarn_pool *pool = own_pool_with(p.place, NULL, 0, 0);
  tarn_block block = take_on(pool, 4096, stream);
  assert_ok(tarn_copy_h2d(p.device, block.address, "queued ", 8, stream));
  assert_ok(tarn_copy_d2h(p.device, out, block.address, 8, stream));
  give_on(block, stream);
  ck_assert_uint_eq(fake_seen.copies, 0);
  end_own(pool);
  ck_assert_str_eq(out, "queued ");
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
}

TEST(it_ends_even_if_the_driver_objects) {
  arena_place p = open_faulty(ARENA_CAPACITY, "page_unit_pool");
  tarn_pool *pool = own_pool_with(p.place, "page_unit_pool", 0, 0);
  give(take(pool, MIB));
  assert_ok(tarn_sim_faults("device_memory_deallocate@1"));
  forget(pool);
  assert_status(tarn_pool_destroy(pool), TARN_E_DEVICE);
  assert_ok(tarn_sim_faults(""));
  abandon(&p);
}

static void create_and_use(void *context) {
  arena_place *p = context;
  tarn_pool_options options = {.struct_size = sizeof options,
                               .strategy = "arena_pool"};
  tarn_pool *pool = NULL;
  tarn_block block = {0};
  tarn_status status = tarn_pool_create(p->place, &options, &pool);
  ck_assert(status == TARN_OK || status == TARN_E_NOMEM);
  ck_assert_int_eq(pool != NULL, status == TARN_OK);
  if (status != TARN_OK) return;
  if (tarn_pool_alloc(pool, 9999, 0, NULL, &block) == TARN_OK) give(block);
  ck_assert_int_ne(tarn_pool_destroy(pool), TARN_E_STATE);
}

TEST_LOOP(nothing_is_lost_without_host_memory, TEST_DEVICES) {
  if (strcmp(test_devices[_i], "cpu:0") == 0) return;
  faults_install();
  arena_place p = open_arena_with(_i, 0, "page_unit_pool");
  ck_assert_uint_gt(faults_sweep(create_and_use, &p), 5);
}

static void end_in_callback(void *context, tarn_status status) {
  (void)status;
  tarn_pool *pool = context;
  if (tarn_pool_destroy(pool) != TARN_E_STATE) abort();
}

TEST_LOOP(a_callback_cannot_end_it, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, 0, "page_unit_pool");
  tarn_pool *pool = own_pool_with(p.place, NULL, 0, 0);
  tarn_stream *stream = stream_on(&p);
  assert_ok(tarn_stream_add_callback(stream, end_in_callback, pool));
  assert_ok(tarn_stream_synchronize(stream));
  give(take(pool, 100));
}

static bool child_of_fork(tarn_pool *const *pools, size_t count) {
  for (size_t i = 0; i < count; i++) {
    tarn_block block;
    if (tarn_pool_alloc(pools[i], 1, 0, NULL, &block) != TARN_E_STATE ||
        tarn_pool_set_strategy(pools[i], "no_pool") != TARN_E_STATE ||
        tarn_pool_destroy(pools[i]) != TARN_OK) {
      return false;
    }
  }
  tarn_pool *fresh = NULL;
  return tarn_pool_create(TARN_HOST, NULL, &fresh) == TARN_OK &&
         tarn_pool_destroy(fresh) == TARN_OK;
}

TEST(a_child_frees_host_memory_only) {
  tarn_pool *pools[2] = {own_pool_with(TARN_HOST, "arena_pool", 0, 0),
                         own_pool_with(TARN_HOST, NULL, 0, TARN_POOL_DRY)};
  tarn_block blocks[2] = {take(pools[0], 5000), take(pools[1], 5000)};
  pid_t child = fork();
  if (child == 0) {
    child_begin(30);
    _exit(child_of_fork(pools, 2) ? 0 : 1);
  }
  assert_child_ended_well(child);
  for (int i = 0; i < 2; i++) {
    give(blocks[i]);
    end_own(pools[i]);
  }
}

// --- exchanging ------------------------------------------------------------

TEST_LOOP(its_strategy_is_set, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, TEST_NEEDS_FREE_GROWTH, "page_unit_pool");
  if (p.pool == NULL) return;
  tarn_pool *pool = own_pool_with(p.place, "page_unit_pool", 0, 0);
  tarn_block block = take(pool, MIB);
  give(take(pool, (size_t)2 * MIB));
  assert_ok(tarn_pool_set_strategy(pool, "arena_pool:page=2M"));
  ck_assert_str_eq(stats_of(pool).strategy, "arena_pool");
  ck_assert_str_eq(stats_of(p.pool).strategy, "page_unit_pool");
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, MIB);
  assert_status(tarn_pool_set_strategy(pool, "none"), TARN_E_INVALID);
  assert_status(tarn_pool_set_strategy(NULL, "no_pool"), TARN_E_INVALID);
  ck_assert_str_eq(stats_of(pool).strategy, "arena_pool");
  give(block);
  assert_ok(tarn__front_check(pool));
  assert_ok(tarn_pool_set_strategy(pool, "page_unit_pool"));
  assert_ok(tarn_pool_set_strategy(pool, NULL));
  ck_assert_str_eq(stats_of(pool).strategy, "arena_pool");
  assert_ok(tarn_pool_set_strategy(p.pool, "buddy_pool"));
  ck_assert_str_eq(stats_of(p.pool).strategy, "buddy_pool");
}

// --- threads ---------------------------------------------------------------

enum { MAKERS = 4, POOLS = 60 };
static atomic_int wrong;

static void *make_and_end(void *context) {
  arena_place *p = context;
  for (int i = 0; i < POOLS; i++) {
    tarn_pool *pool = NULL;
    tarn_block block;
    bool right = tarn_pool_create(p->place, NULL, &pool) == TARN_OK &&
                 tarn_pool_alloc(pool, 4096, 0, NULL, &block) == TARN_OK &&
                 tarn_pool_destroy(pool) == TARN_E_STATE &&
                 tarn_pool_free(&block, NULL) == TARN_OK &&
                 tarn_pool_destroy(pool) == TARN_OK;
    if (!right) atomic_fetch_add(&wrong, 1);
  }
  return NULL;
}

TEST_LOOP(threads_make_and_end_them, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, 0, "page_unit_pool");
  run_threads_on(make_and_end, MAKERS, &p);
  ck_assert_int_eq(atomic_load(&wrong), 0);
}
