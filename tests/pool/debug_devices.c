// Pools that debug, on devices whose memory the host cannot touch: streams,
// failures of the driver and of host memory, threads.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "kit.h"
#include "support/fake_plugin.h"
#include "support/faults.h"
#include "support/strategy.h"
#include "support/threads.h"
#include "tarn/sim.h"

static const tarn_pool_debug_options everything = {.struct_size = 0};

static void check_misuses(void *unused) {
  char line[256];
  (void)unused;
  size_t misuses = tarn_sim_misuses(line, sizeof line);
  ck_assert_msg(misuses == 0, "%s", line);
}

// Until the end of the test. Its copies take |latency_ns| where they can.
static tarn_device *open_slow(const char *name, uint64_t latency_ns) {
  tarn_sim_options options = {.struct_size = sizeof options,
                              .capacity = (size_t)64 * (size_t)MIB,
                              .latency_ns = latency_ns};
  assert_ok(tarn_sim_configure(&options));
  after_test(check_misuses, NULL);
  return open_device(name);
}

static tarn_pool *debugging(tarn_device *device, const char *strategy) {
  assert_ok(use_strategy(tarn_place_on(device), strategy));
  tarn_pool *pool = pool_at(tarn_place_on(device));
  assert_ok(tarn_pool_debug(pool, &everything));
  return pool;
}

static tarn_pool_debug_stats report_of(tarn_pool *pool) {
  tarn_pool_debug_stats stats = {.struct_size = sizeof stats};
  assert_ok(tarn_pool_debug_report(pool, &stats));
  return stats;
}

// --- streams ---------------------------------------------------------------

TEST_LOOP(fresh_bytes_are_there_for_the_stream, TEST_DEVICES) {
  tarn_device *device = open_slow(test_devices[_i], 0);
  tarn_stream *stream = stream_of(device);
  for (int s = 0; s < ALL_STRATEGIES; s++) {
    tarn_pool *pool = debugging(device, any_strategy(s));
    unsigned char bytes[3000];
    tarn_block block = take_on(pool, sizeof bytes, stream);
    assert_ok(
        tarn_copy_d2h(device, bytes, block.address, sizeof bytes, stream));
    assert_ok(tarn_stream_synchronize(stream));
    for (size_t i = 0; i < sizeof bytes; i++)
      require(bytes[i] == TARN_POOL_FRESH_BYTE);
    give_on(block, stream);
    assert_ok(tarn_pool_debug_check(pool));
    assert_ok(tarn__front_check(pool));
  }
}

// The write is queued, and not done when the block is freed. In memory of the
// host AddressSanitizer would find it first.
TEST_LOOP(an_overrun_on_a_stream_is_seen_by_the_free, TEST_DEVICES) {
  tarn_device *device = open_slow(test_devices[_i], 2000000);
  if (!device_has(device, TEST_NEEDS_DISCRETE)) return;
  tarn_stream *stream = stream_of(device);
  static const unsigned char bytes[600];
  for (int s = 0; s < ALL_STRATEGIES; s++) {
    tarn_pool *pool = debugging(device, any_strategy(s));
    tarn_block block = take_on(pool, 590, stream);
    assert_ok(tarn_copy_h2d(device, block.address, bytes, 600, stream));
    assert_status(tarn_pool_free(&block, stream), TARN_E_CORRUPT);
    char place[32];
    tarn_place_text(tarn_place_on(device), place, sizeof place);
    assert_error_says(place);
    assert_error_says("offset 590");
    ck_assert_uint_eq(report_of(pool).overruns, 1u + (unsigned)s);
    assert_ok(tarn__front_check(pool));
  }
}

TEST_LOOP(a_write_after_free_from_a_stream_is_found, TEST_DEVICES) {
  tarn_device *device = open_slow(test_devices[_i], 0);
  if (!device_has(device, TEST_NEEDS_DISCRETE)) return;
  tarn_stream *stream = stream_of(device);
  for (int s = 0; s < ALL_STRATEGIES; s++) {
    tarn_pool *pool = debugging(device, any_strategy(s));
    tarn_block block = take_on(pool, (size_t)700 * KIB, stream);
    give_on(block, stream);
    assert_ok(tarn_copy_h2d(device, block.address + (size_t)600 * KIB + 1, "x",
                            1, stream));
    assert_ok(tarn_stream_synchronize(stream));
    assert_status(tarn_pool_debug_check(pool), TARN_E_CORRUPT);
    assert_error_says("offset 614401,");
    assert_error_says("0x78");
    assert_ok(tarn_pool_debug_check(pool));
    ck_assert_uint_eq(report_of(pool).stale_writes, 1u + (unsigned)s);
  }
}

// The block before it was freed without waiting for the stream.
TEST_LOOP(what_a_stream_still_does_to_the_memory_comes_first, TEST_DEVICES) {
  tarn_device *device = open_slow(test_devices[_i], 20000000);
  tarn_stream *stream = stream_of(device);
  static const unsigned char zeros[4096];
  unsigned char bytes[100];
  assert_ok(use_strategy(tarn_place_on(device), "page_unit_pool"));
  tarn_pool *pool = pool_at(tarn_place_on(device));
  tarn_block block = take_on(pool, 4096, stream);
  tarn_addr address = block.address;
  assert_ok(tarn_copy_h2d(device, address, zeros, sizeof zeros, stream));
  give_on(block, stream);
  assert_ok(tarn_pool_debug(pool, &everything));
  block = take_on(pool, sizeof bytes, stream);
  ck_assert_uint_eq(block.address, address);
  assert_ok(tarn_copy_d2h(device, bytes, address, sizeof bytes, stream));
  assert_ok(tarn_stream_synchronize(stream));
  for (size_t i = 0; i < sizeof bytes; i++)
    require(bytes[i] == TARN_POOL_FRESH_BYTE);
  give_on(block, stream);
}

// What is not verified until the device closes is verified then.
static char logged[512];

static void keep_line(void *context, tarn_log_level level,
                      const char *message) {
  (void)context;
  (void)level;
  snprintf(logged, sizeof logged, "%s", message);
}

TEST_LOOP(closing_the_device_empties_the_quarantine, TEST_DEVICES) {
  tarn_device *device = open_device_with(_i, TEST_NEEDS_DISCRETE);
  if (device == NULL) return;
  tarn_pool *pool = debugging(device, "arena_pool");
  tarn_block block = take_tagged(pool, 100, tag_of("late"));
  give(block);
  assert_ok(tarn_copy_h2d(device, block.address, "x", 1, NULL));
  tarn_log_set(keep_line, NULL, TARN_LOG_ERROR);
  close_device(device);
  ck_assert_ptr_nonnull(strstr(logged, "late, was written after"));
  tarn_log_set(NULL, NULL, TARN_LOG_ERROR);
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 0), 0);
}

TEST_LOOP(pinned_memory_is_watched_through_the_host, TEST_DEVICES) {
  tarn_device *device = open_slow(test_devices[_i], 0);
  tarn_place place = {.device = device, .kind = TARN_PLACE_HOST};
  tarn_pool *pool = pool_at(place);
  assert_ok(tarn_pool_debug(pool, &everything));
  tarn_block block = take(pool, 1000);
  ck_assert_uint_eq(bytes_of(block)[999], TARN_POOL_FRESH_BYTE);
  give(block);
  assert_ok(tarn_pool_debug_check(pool));
  ck_assert_uint_eq(report_of(pool).verified, 2);
}

// --- what the device refuses -----------------------------------------------

TEST(a_block_that_cannot_be_filled_is_a_block_like_any_other) {
  tarn_device *device = open_slow("sim:0", 0);
  tarn_pool *pool = debugging(device, "page_unit_pool");
  assert_ok(tarn_sim_faults("device_memory_set@1"));
  tarn_block block = take(pool, 100);
  ck_assert_uint_gt(block.size, 100);
  ck_assert_uint_eq(report_of(pool).unverified, 1);
  give(block);
  ck_assert_uint_eq(report_of(pool).quarantine_blocks, 0);
  assert_ok(tarn__front_check(pool));
}

TEST(a_block_that_cannot_be_verified_is_freed) {
  tarn_device *device = open_slow("sim:0", 0);
  tarn_pool *pool = debugging(device, "page_unit_pool");
  tarn_block block = take(pool, 100);
  assert_ok(tarn_sim_faults("memory_copy_d2h@1"));
  give(block);
  ck_assert_uint_eq(report_of(pool).unverified, 1);
  ck_assert_uint_eq(report_of(pool).quarantine_blocks, 0);
  block = take(pool, 100);
  assert_ok(tarn_sim_faults("memory_copy_d2h@1+"));
  assert_status(tarn_pool_debug_check(pool), TARN_E_DEVICE);
  assert_ok(tarn_sim_faults(NULL));
  assert_ok(tarn_pool_debug_check(pool));
  give(block);
  assert_ok(tarn__front_check(pool));
}

// --- faults ----------------------------------------------------------------

static struct {
  tarn_device *device;
  tarn_pool *pool;
  tarn_stream *stream;
} run;

// Whatever fails, what was taken can be freed, once.
static void drop(tarn_block block, tarn_stream *stream) {
  if (block.pool == NULL) return;
  tarn_status status = tarn_pool_free(&block, stream);
  ck_assert_int_ne(status, TARN_E_INVALID);
  ck_assert_int_ne(status, TARN_E_CORRUPT);
  assert_status(tarn_pool_free(&block, stream), TARN_E_INVALID);
  assert_ok(tarn__front_check(run.pool));
}

static void use_pool(const char *strategy) {
  tarn_block blocks[6] = {{0}};
  (void)!use_strategy(tarn_place_on(run.device), strategy);
  (void)!tarn_pool_debug(run.pool, &everything);
  for (size_t i = 0; i < 6; i++) {
    tarn_status status = tarn_pool_alloc(run.pool, 3000 * i + 100, 0,
                                         i % 2 ? run.stream : NULL, &blocks[i]);
    if (status != TARN_OK) assert_zero_block(blocks[i]);
    assert_ok(tarn__front_check(run.pool));
  }
  if (blocks[5].pool != NULL) {
    (void)!tarn_pool_resize(&blocks[5], 200, run.stream);
  }
  drop(blocks[1], run.stream);
  drop(blocks[2], run.stream);
  tarn_status status = tarn_pool_debug_check(run.pool);
  ck_assert_int_ne(status, TARN_E_CORRUPT);
  (void)!tarn_pool_trim(run.pool, 0);
  drop(blocks[3], NULL);
  (void)!use_strategy(tarn_place_on(run.device), "no_pool");
  drop(blocks[4], run.stream);
  (void)!tarn_pool_debug(run.pool, NULL);
  drop(blocks[5], run.stream);
  drop(blocks[0], NULL);
  assert_ok(tarn__front_check(run.pool));
}

static void scenario(void *context) {
  memset(&run, 0, sizeof run);
  if (tarn_device_open("fake:0", &run.device) != TARN_OK) return;
  (void)!tarn_stream_create(run.device, &run.stream);
  if (tarn_pool_of(tarn_place_on(run.device), &run.pool) == TARN_OK) {
    use_pool(context);
    tarn_pool_debug_stats stats = report_of(run.pool);
    ck_assert_uint_eq(stats.overruns + stats.stale_writes, 0);
    ck_assert_uint_eq(stats.quarantine_blocks, 0);
  }
  (void)tarn_stream_destroy(run.stream);
  ck_assert_int_ne(tarn_device_close(run.device), TARN_E_STATE);
  ck_assert_uint_eq(fake_seen.streams, 0);
  ck_assert_uint_eq(fake_seen.wrong_size, 0);
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
}

TEST_LOOP(nothing_is_lost_or_made_up_when_all_fails, 2) {
  static const char *const names[] = {"page_unit_pool", "arena_pool"};
  faults_install();
  fake_add();
  char *strategy = (char *)(uintptr_t)names[_i];
  scenario(strategy);
  fake.strikes = true;
  ck_assert_uint_gt(faults_sweep(scenario, strategy), 500);
}

// --- threads ---------------------------------------------------------------

enum { WORKERS = 3, ROUNDS = 3000, CHECKS = 60 };

static atomic_int working;

// Check's assertions are for the thread of the test.
static void *work(void *argument) {
  tarn_pool *pool = argument;
  for (size_t i = 0; i < ROUNDS; i++) {
    tarn_block blocks[2];
    for (size_t j = 0; j < 2; j++) {
      expect(tarn_pool_alloc(pool, i % 700 * (j + 1) + 1, 0, NULL,
                             &blocks[j]) == TARN_OK);
      memset((void *)(uintptr_t)blocks[j].address, (int)i, blocks[j].size);
    }
    (void)!tarn_pool_resize(&blocks[1], i % 50 + 1, NULL);
    expect(tarn_pool_free(&blocks[0], NULL) == TARN_OK);
    expect(tarn_pool_free(&blocks[1], NULL) == TARN_OK);
  }
  atomic_fetch_sub(&working, 1);
  return NULL;
}

static void *check_now_and_then(void *argument) {
  while (atomic_load(&working) > 0)
    expect(tarn_pool_debug_check(argument) == TARN_OK);
  return NULL;
}

TEST_LOOP(threads_check_and_switch_while_others_work, 2) {
  tarn_pool *pool = host_pool(_i == 0 ? "page_unit_pool" : "arena_pool");
  tarn_pool_debug_options options = {.struct_size = sizeof options,
                                     .quarantine_bytes = 100000};
  assert_ok(tarn_pool_debug(pool, &options));
  pthread_t threads[WORKERS + 1];
  atomic_store(&working, WORKERS);
  for (size_t i = 0; i < WORKERS; i++)
    ck_assert_int_eq(pthread_create(&threads[i], NULL, work, pool), 0);
  ck_assert_int_eq(
      pthread_create(&threads[WORKERS], NULL, check_now_and_then, pool), 0);
  for (uint32_t i = 0; i < CHECKS; i++) {
    options.flags = i % 8;
    assert_ok(tarn_pool_debug(pool, i % 5 == 0 ? NULL : &options));
    assert_ok(tarn_pool_trim(pool, 0));
    if (i % 10 == 0) {
      assert_ok(use_strategy(TARN_HOST, i % 20 ? "no_pool" : "arena_pool"));
    }
  }
  for (size_t i = 0; i < WORKERS + 1; i++)
    pthread_join(threads[i], NULL);
  assert_as_expected();
  assert_ok(tarn_pool_trim(pool, 0));
  assert_ok(tarn__front_check(pool));
  tarn_pool_debug_stats stats = report_of(pool);
  ck_assert_uint_eq(stats.overruns + stats.stale_writes + stats.unverified, 0);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
}

// Copies that take long: a thread that trims, resizes or frees a block
// meanwhile waits until the check has read it.
TEST_LOOP(a_block_stays_while_it_is_looked_at, TEST_DEVICES) {
  tarn_device *device = open_slow(test_devices[_i], 1000000);
  tarn_pool *pool = debugging(device, "no_pool");
  pthread_t thread;
  tarn_block block = take(pool, 2000);
  assert_ok(tarn_pool_resize(&block, 500, NULL));
  atomic_store(&working, 1);
  ck_assert_int_eq(pthread_create(&thread, NULL, check_now_and_then, pool), 0);
  for (size_t i = 0; i < 20; i++) {
    tarn_block aside = take(pool, 100);
    give(aside);
    assert_ok(tarn_pool_resize(&block, 1500 - i % 2 * 1000, NULL));
    if (i % 4 == 3) assert_ok(tarn_pool_trim(pool, 0));
  }
  atomic_store(&working, 0);
  pthread_join(thread, NULL);
  assert_as_expected();
  tarn_pool_debug_stats stats = report_of(pool);
  ck_assert_uint_eq(stats.overruns + stats.stale_writes + stats.unverified, 0);
  give(block);
  assert_ok(tarn__front_check(pool));
}

// A wrong free looks through pools that other threads use, make and end.
static void *make_and_end(void *argument) {
  (void)argument;
  for (int i = 0; i < 100; i++) {
    tarn_device *device = NULL;
    tarn_pool *pool = NULL;
    expect(tarn_device_open("fake:1", &device) == TARN_OK);
    expect(tarn_pool_of(tarn_place_on(device), &pool) == TARN_OK);
    expect(tarn_device_close(device) == TARN_OK);
  }
  atomic_fetch_sub(&working, 1);
  return NULL;
}

static void *free_wrongly(void *argument) {
  tarn_block block = *(const tarn_block *)argument;
  tarn_pool *pool = NULL;
  tarn_device *device = NULL;
  expect(tarn_device_open("fake:0", &device) == TARN_OK);
  expect(tarn_pool_of(tarn_place_on(device), &pool) == TARN_OK);
  while (atomic_load(&working) > 0) {
    expect(tarn_pool_free_address(pool, block.address + 1, NULL) ==
           TARN_E_INVALID);
    expect(strstr(tarn_last_error(),
                  "1 bytes into a block of the pool of "
                  "host: elsewhere") != NULL);
  }
  expect(tarn_device_close(device) == TARN_OK);
  return NULL;
}

TEST(wrong_frees_are_explained_while_others_work) {
  fake_add();
  tarn_pool *pool = host_pool("arena_pool");
  tarn_block block = take_tagged(pool, 100, tag_of("elsewhere"));
  pthread_t threads[3];
  atomic_store(&working, 2);
  ck_assert_int_eq(pthread_create(&threads[0], NULL, work, pool), 0);
  ck_assert_int_eq(pthread_create(&threads[1], NULL, make_and_end, NULL), 0);
  ck_assert_int_eq(pthread_create(&threads[2], NULL, free_wrongly, &block), 0);
  for (int i = 0; i < 3; i++)
    pthread_join(threads[i], NULL);
  assert_as_expected();
  give(block);
}
