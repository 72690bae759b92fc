// Pools and forks: a parent's pool is none of its child's, and nothing in the
// child waits for a thread that it does not have.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "kit.h"
#include "support/child.h"
#include "support/fake_plugin.h"
#include "support/strategy.h"
#include "tarn/snapshot.h"

// --- a parent's pool -------------------------------------------------------

static tarn_device *device;
static tarn_pool *pool;
static tarn_block block;

static void use_the_parent_s(void) {
  tarn_block other;
  memset(&other, 0xff, sizeof other);
  MUST(tarn_pool_alloc(pool, 100, 0, NULL, &other) == TARN_E_STATE);
  MUST(strstr(tarn_last_error(), "fork") != NULL);
  MUST(other.pool == NULL && other.address == 0 && other.id == 0);
  MUST(alloc_tagged(pool, 1, 0, NULL, 1, &other) == TARN_E_STATE);
  MUST(tarn_pool_free(&block, NULL) == TARN_E_STATE);
  MUST(tarn_pool_free_address(pool, block.address, NULL) == TARN_E_STATE);
  memset(&other, 0xff, sizeof other);
  MUST(tarn_pool_block_of(pool, block.address, &other, NULL) == TARN_E_STATE);
  tarn_place place = tarn_pool_place(pool);
  // At the host a child has pools of its own, without that block.
  bool at_host = tarn_place_equal(place, TARN_HOST);
  tarn_status refused = at_host ? TARN_E_INVALID : TARN_E_STATE;
  MUST(tarn_block_of(place, block.address, &other, NULL) == refused);
  MUST(tarn_free(place, block.address, NULL) == refused);
  MUST(other.pool == NULL && other.address == 0 && other.id == 0);
  MUST(tarn_pool_resize(&block, 10, NULL) == TARN_E_STATE);
  MUST(tarn_pool_limit(pool, 100) == TARN_E_STATE);
  MUST(tarn_pool_trim(pool, 0) == TARN_E_STATE);
  MUST(tarn_pool_reset_peaks(pool) == TARN_E_STATE);
  MUST(tarn_pool_on_full(pool, NULL, NULL) == TARN_E_STATE);
  MUST(tarn_pool_decay(pool, 1) == TARN_E_STATE);
  MUST(tarn_block_use_on(&block, NULL) == TARN_E_STATE);
  MUST(tarn_pool_account(pool, 0) == TARN_E_STATE);
  MUST(tarn_pool_account_ring(pool, 4) == TARN_E_STATE);
  tarn_pool_event event;
  size_t count = 7;
  uint64_t next = 7;
  MUST(tarn_pool_events(pool, 0, &event, 1, &count, &next) == TARN_E_STATE);
  MUST(count == 0 && next == 0);
  tarn_trace *trace = (tarn_trace *)&event;
  MUST(tarn_pool_trace(pool, &trace) == TARN_E_STATE);
  MUST(trace == NULL);
  MUST(tarn_pool_snapshot(pool, TARN_TRACE_FORMAT_TARN, "never") ==
       TARN_E_STATE);
  tarn_pool_stats stats = {.struct_size = sizeof stats, .live_bytes = 7};
  MUST(tarn_pool_query(pool, &stats) == TARN_E_STATE);
  MUST(stats.live_bytes == 0);
  tarn_pool_tag_stats tag = {.struct_size = sizeof tag, .live_bytes = 7};
  MUST(tarn_pool_query_tag(pool, 0, &tag) == TARN_E_STATE);
  MUST(tag.live_bytes == 0);
  if (device == NULL) return;
  tarn_pool *again = pool;
  MUST(tarn_pool_of(tarn_place_on(device), &again) == TARN_E_STATE);
  MUST(again == NULL);
  MUST(use_strategy(tarn_place_on(device), "no_pool") == TARN_E_STATE);
  MUST(use_strategy(tarn_place_on(device), NULL) == TARN_E_STATE);
}

static void use_an_own_one(void) {
  tarn_pool *own = NULL;
  MUST(tarn_pool_of(TARN_HOST, &own) == TARN_OK);
  MUST(own != pool);
  tarn_block mine;
  MUST(tarn_pool_alloc(own, 5000, 0, NULL, &mine) == TARN_OK);
  memset((void *)(uintptr_t)mine.address, 0x11, mine.size);
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  MUST(tarn_pool_query(own, &stats) == TARN_OK);
  MUST(stats.live_bytes == 5000 && stats.allocs == 1);
  MUST(tarn_pool_free(&mine, NULL) == TARN_OK);
  MUST(use_strategy(TARN_HOST, "no_pool") == TARN_OK);
}

TEST(a_child_cannot_use_its_parent_s_pool) {
  pool = host_pool("page_unit_pool");
  block = take(pool, 5000);
  memset(bytes_of(block), 0x42, block.size);
  tarn_pool_stats before = stats_of(pool);
  fork_and_run(use_the_parent_s);
  fork_and_run(use_an_own_one);
  assert_same_stats(before, stats_of(pool));
  ck_assert_uint_eq(stats_of(pool).failures, before.failures);
  ck_assert_int_eq(bytes_of(block)[block.size - 1], 0x42);
  give(block);
  assert_ok(tarn__front_check(pool));
}

static void end_the_parent_s(void) {
  use_the_parent_s();
  size_t held = tarn_host_memory();
  size_t blocks = fake_seen.live_blocks;
  MUST(tarn_device_close(device) == TARN_OK);
  MUST(tarn_host_memory() < held);
  MUST(fake_seen.live_blocks == blocks);  // its driver was not called
  pool = NULL;
  use_an_own_one();
}

TEST(a_child_may_end_its_parent_s_pool) {
  fake_add();
  assert_ok(tarn_device_open("fake:0", &device));
  pool = pool_at(tarn_place_on(device));
  tarn_block old = take(pool, 100);
  assert_ok(use_strategy(tarn_place_on(device), "page_unit_pool"));
  block = take(pool, 100);
  give(take(pool, 5000));
  fork_and_run(end_the_parent_s);
  give(old);
  give(block);
  assert_ok(tarn_device_close(device));
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
}

// --- a thread's slot -------------------------------------------------------

enum { PLAYED = 4096, STEPS = 20000 };

// A step of which the second request is expected in the end.
static void *learn(void *unused) {
  (void)unused;
  tarn_block second;
  tarn_status status = TARN_OK;
  for (int i = 0; i < STEPS && status == TARN_OK; i++) {
    status = tarn_pool_alloc(pool, PLAYED, 0, NULL, &block);
    if (i == STEPS - 1 || status != TARN_OK) break;
    status = tarn_pool_alloc(pool, 2 * PLAYED, 0, NULL, &second);
    if (status == TARN_OK) status = tarn_pool_free(&second, NULL);
    if (status == TARN_OK) status = tarn_pool_free(&block, NULL);
  }
  return status == TARN_OK ? NULL : &block;
}

// A thread that owns a lock in the child owns none that a thread of the parent
// left.
static void take_what_is_expected(void) {
  tarn_pool *own = NULL;
  tarn_block mine;
  MUST(tarn_pool_of(TARN_HOST, &own) == TARN_OK);
  MUST(own != pool);
  for (int i = 0; i < STEPS; i++) {
    MUST(tarn_pool_alloc(own, PLAYED, 0, NULL, &mine) == TARN_OK);
    MUST(tarn_pool_free(&mine, NULL) == TARN_OK);
  }
  MUST(tarn_pool_alloc(pool, 2 * PLAYED, 0, NULL, &mine) == TARN_E_STATE);
  MUST(mine.pool == NULL);
}

TEST(a_child_owns_no_lock_of_its_parent) {
  pthread_t thread;
  void *failed = NULL;
  pool = host_pool("arena_pool");
  ck_assert_int_eq(pthread_create(&thread, NULL, learn, NULL), 0);
  pthread_join(thread, &failed);
  ck_assert_ptr_null(failed);
  fork_and_run(take_what_is_expected);
  give(block);
}

// --- forks among threads ---------------------------------------------------

static atomic_bool busy;

static void *name_and_take(void *unused) {
  (void)unused;
  for (unsigned i = 0; atomic_load(&busy); i++) {
    char name[16];
    snprintf(name, sizeof name, "tag %u", i % 100);
    tarn_tag tag = 0;
    tarn_block mine;
    tarn_status status = tarn_pool_tag(name, &tag);
    if (status == TARN_OK &&
        alloc_tagged(pool, 100, 0, NULL, tag, &mine) == TARN_OK) {
      (void)tarn_pool_free(&mine, NULL);
    }
    (void)tarn_pool_tag_name(tag);
  }
  return NULL;
}

static void use_tags(void) {
  tarn_tag tag = 0;
  MUST(tarn_pool_tag("of the child", &tag) == TARN_OK);
  MUST(strcmp(tarn_pool_tag_name(tag), "of the child") == 0);
  use_the_parent_s();
  use_an_own_one();
}

TEST(a_fork_may_come_at_any_time) {
  enum { FORKS = 100, THREADS = 3 };
  pthread_t threads[THREADS];
  pool = host_pool("page_unit_pool");
  block = take(pool, 100);
  atomic_store(&busy, true);
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, name_and_take, NULL);
  for (int i = 0; i < FORKS; i++)
    fork_and_run(use_tags);
  atomic_store(&busy, false);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  give(block);
  assert_ok(tarn__front_check(pool));
}

// --- a pool that was being changed -----------------------------------------

static void close_the_parent_s(void) {
  MUST(tarn_device_close(device) == TARN_OK);
}

// As if another thread had been inside at the fork: what it left half done must
// not be walked.
TEST(a_torn_pool_is_left_behind) {
  fake_add();
  assert_ok(tarn_device_open("fake:0", &device));
  pool = pool_at(tarn_place_on(device));
  block = take(pool, 100);
  tarn__biased_lock_enter(&pool->lock);
  pool->current->type = NULL;  // half done
  fork_and_run(close_the_parent_s);
  _exit(0);
}

static tarn_stream *stream;

static void use_the_parent_s_stream(void) {
  tarn_block other;
  MUST(tarn_pool_alloc(pool_at(TARN_HOST), 100, 0, stream, &other) ==
       TARN_E_STATE);
  MUST(tarn_pool_alloc(pool_at(TARN_HOST), 100, 0, NULL, &other) == TARN_OK);
  MUST(tarn_pool_free(&other, stream) == TARN_E_STATE);
  MUST(tarn_pool_free(&other, NULL) == TARN_OK);
}

TEST(a_parent_s_stream_is_refused_in_a_child) {
  assert_ok(tarn_device_open("cpu:0", &device));
  assert_ok(tarn_stream_create(device, &stream));
  fork_and_run(use_the_parent_s_stream);
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_device_close(device));
}
