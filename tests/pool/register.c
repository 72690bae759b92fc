// Strategies of programs and of shared objects: registering and loading them,
// from many threads too, and what is left when something fails.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"
#include "support/fake_plugin.h"
#include "support/faults.h"
#include "support/strategy.h"
#include "support/threads.h"
#include "tarn/strategy.h"

static bool is_listed(const char *name) {
  const char *one = NULL;
  for (size_t i = 0; (one = tarn_pool_strategy_name(i)) != NULL; i++)
    if (strcmp(one, name) == 0) return true;
  return false;
}

static tarn_strategy a_strategy(const char *name) {
  tarn_strategy strategy = *TarnPoolStrategy();
  strategy.name = name;
  return strategy;
}

// --- registering -----------------------------------------------------------

TEST(a_registered_strategy_is_one_like_others) {
  assert_ok(tarn_pool_register(TarnPoolStrategy()));
  ck_assert(is_listed("power_pool"));
  ck_assert(is_listed("page_unit_pool"));
  tarn_pool *pool = host_pool("power_pool:least=4K");
  ck_assert_str_eq(stats_of(pool).strategy, "power_pool");
  tarn_block block = take(pool, 5000);
  ck_assert_uint_eq(block.size, 8192);
  memset(bytes_of(block), 1, block.size);
  tarn_block found;
  assert_ok(tarn_pool_block_of(pool, block.address, &found, NULL));
  assert_same_block(found, block);
  give(block);
  assert_status(tarn_pool_free(&block, NULL), TARN_E_INVALID);
  tarn_block again = take(pool, 8000);
  ck_assert_uint_eq(again.address, block.address);
  tarn_pool_stats stats = stats_of(pool);
  ck_assert_uint_eq(stats.hits, 1);
  ck_assert_uint_eq(stats.misses, 1);
  ck_assert_uint_eq(stats.reserved_bytes, 8192);
  assert_ok(tarn__front_check(pool));
  assert_ok(use_strategy(TARN_HOST, "page_unit_pool"));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 8192);
  give(again);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
  ck_assert(tarn_list_empty(&pool->replaced));
}

TEST(it_may_be_the_default) {
  assert_ok(tarn_pool_register(TarnPoolStrategy()));
  setenv("TARN_POOL", "power_pool:least=1K", 1);
  ck_assert_str_eq(stats_of(pool_at(TARN_HOST)).strategy, "power_pool");
}

TEST(a_name_that_is_taken) {
  static const char *const taken[] = {"page_unit_pool", "no_pool", "buddy_pool",
                                      "power_pool"};
  assert_ok(tarn_pool_register(TarnPoolStrategy()));
  size_t held = tarn_host_memory();
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
    tarn_strategy strategy = a_strategy(taken[i]);
    assert_status(tarn_pool_register(&strategy), TARN_E_STATE);
    assert_error_says(taken[i]);
  }
  ck_assert_uint_eq(tarn_host_memory(), held);
}

TEST(names_that_are_none) {
  char longest[65];
  memset(longest, 'x', sizeof longest);
  longest[64] = '\0';
  const char *const wrong[] = {NULL, "", "a b", "a:b", "a,b", "a=b", longest};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    tarn_strategy strategy = a_strategy(wrong[i]);
    assert_status(tarn_pool_register(&strategy), TARN_E_INVALID);
  }
  longest[63] = '\0';
  tarn_strategy strategy = a_strategy(longest);
  assert_ok(tarn_pool_register(&strategy));
  (void)host_pool(longest);
}

TEST(tables_that_are_none) {
  assert_status(tarn_pool_register(NULL), TARN_E_INVALID);
  tarn_strategy strategy = a_strategy("mine");
  strategy.struct_size = 8;
  assert_status(tarn_pool_register(&strategy), TARN_E_INVALID);
  strategy = a_strategy("mine");
  strategy.size = SIZE_MAX - 8;
  assert_status(tarn_pool_register(&strategy), TARN_E_INVALID);
  strategy = a_strategy("mine");
  strategy.take = NULL;
  assert_status(tarn_pool_register(&strategy), TARN_E_INVALID);
  assert_error_says("take");
  strategy = a_strategy("mine");
  strategy.give = NULL;
  assert_status(tarn_pool_register(&strategy), TARN_E_INVALID);
  assert_error_says("give");
  strategy = a_strategy("mine");
  strategy.trim = NULL;
  assert_status(tarn_pool_register(&strategy), TARN_E_INVALID);
  assert_error_says("trim");
  ck_assert(!is_listed("mine"));
  strategy = a_strategy("mine");
  strategy.check = NULL;
  strategy.struct_size += 64;  // of a later version
  assert_ok(tarn_pool_register(&strategy));
  ck_assert(is_listed("mine"));
}

TEST(the_table_and_its_name_are_copied) {
  char name[] = "mine";
  tarn_strategy strategy = a_strategy(name);
  assert_ok(tarn_pool_register(&strategy));
  memset(name, 'x', 4);
  memset(&strategy, 0, sizeof strategy);
  give(take(host_pool("mine"), 100));
}

TEST(options_are_its_own) {
  assert_ok(tarn_pool_register(TarnPoolStrategy()));
  tarn_pool *pool = host_pool("no_pool");
  assert_status(use_strategy(TARN_HOST, "power_pool:least=1000"),
                TARN_E_INVALID);
  assert_error_says("power_pool: least is no power of two");
  assert_status(use_strategy(TARN_HOST, "power_pool:least=x"), TARN_E_INVALID);
  assert_status(use_strategy(TARN_HOST, "power_pool:page=1K"), TARN_E_INVALID);
  assert_error_says("page");
  assert_status(use_strategy(TARN_HOST, "powder_pool"), TARN_E_INVALID);
  assert_error_says("power_pool");
  ck_assert_str_eq(stats_of(pool).strategy, "no_pool");
}

// --- loading ---------------------------------------------------------------

TEST(a_shared_object) {
  assert_ok(tarn_pool_load(TARN_POWER_POOL));
  give(take(host_pool("power_pool"), 100));
  assert_status(tarn_pool_load(TARN_POWER_POOL), TARN_E_STATE);
  assert_error_says("power_pool");
}

TEST(a_shared_object_in_the_folder) {
  char folder[4096];
  snprintf(folder, sizeof folder, "%s", TARN_POWER_POOL);
  char *slash = strrchr(folder, '/');
  *slash = '\0';
  unsetenv("TARN_PLUGIN_DIR");
  assert_status(tarn_pool_load(slash + 1), TARN_E_INVALID);
  setenv("TARN_PLUGIN_DIR", folder, 1);
  assert_ok(tarn_pool_load(slash + 1));
}

TEST(objects_that_are_none) {
  assert_status(tarn_pool_load(NULL), TARN_E_INVALID);
  assert_status(tarn_pool_load(""), TARN_E_INVALID);
  assert_status(tarn_pool_load("./power_pool.so"), TARN_E_INVALID);
  assert_error_says("absolute");
  assert_status(tarn_pool_load("/nowhere/power_pool.so"), TARN_E_IO);
  assert_status(tarn_pool_load(TARN_NO_PLUGIN), TARN_E_UNSUPPORTED);
  assert_error_says("TarnPoolStrategy");
  ck_assert(!is_listed("power_pool"));
}

// --- streams ---------------------------------------------------------------

TEST(memory_that_crosses_is_waited_for) {
  tarn_device *device = NULL;
  tarn_stream *a = NULL;
  tarn_stream *b = NULL;
  char out[8] = "";
  fake_add();
  assert_ok(tarn_pool_register(TarnPoolStrategy()));
  assert_ok(tarn_device_open("fake:0", &device));
  assert_ok(use_strategy(tarn_place_on(device), "power_pool"));
  tarn_pool *pool = pool_at(tarn_place_on(device));
  assert_ok(tarn_stream_create(device, &a));
  assert_ok(tarn_stream_create(device, &b));
  tarn_block block = take_on(pool, 1000, a);
  assert_ok(tarn_copy_h2d(device, block.address, "first  ", 8, a));
  assert_ok(tarn_copy_d2h(device, out, block.address, 8, a));
  give_on(block, a);
  give_on(take_on(pool, 1000, a), a);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 0);
  block = take_on(pool, 1000, b);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 1);
  assert_ok(tarn_stream_synchronize(b));
  ck_assert_str_eq(out, "first  ");
  assert_ok(tarn_copy_d2h(device, out, block.address, 8, b));
  give_on(block, b);
  size_t copies = fake_seen.copies;
  assert_ok(tarn_pool_trim(pool, 0));  // waits for the stream
  ck_assert_uint_eq(fake_seen.copies, copies + 1);
  assert_ok(tarn_stream_destroy(a));
  assert_ok(tarn_stream_destroy(b));
  assert_ok(tarn_device_close(device));
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
}

// --- faults ----------------------------------------------------------------

TEST(registering_without_host_memory) {
  faults_install();
  faults_arm(1, FAULTS_ONCE);
  assert_status(tarn_pool_register(TarnPoolStrategy()), TARN_E_NOMEM);
  faults_arm(1, FAULTS_ONCE);
  assert_status(tarn_pool_load(TARN_POWER_POOL), TARN_E_NOMEM);
  faults_arm(2, FAULTS_ONCE);
  assert_status(tarn_pool_load(TARN_POWER_POOL), TARN_E_NOMEM);
  ck_assert(faults_disarm());
  ck_assert_uint_eq(tarn_host_memory(), 0);
  ck_assert(!is_listed("power_pool"));
  assert_ok(tarn_pool_load(TARN_POWER_POOL));
}

// --- threads ---------------------------------------------------------------

enum { THREADS = 4, NAMES = 40, ROUNDS = 3000 };
static atomic_int registered;

static void *register_all(void *unused) {
  (void)unused;
  for (int i = 0; i < NAMES; i++) {
    char name[32];
    snprintf(name, sizeof name, "pool-%d", i);
    tarn_strategy strategy = a_strategy(name);
    tarn_status status = tarn_pool_register(&strategy);
    if (status == TARN_OK) atomic_fetch_add(&registered, 1);
    expect(status == TARN_OK || status == TARN_E_STATE);
    expect(is_listed(name));
  }
  return NULL;
}

TEST(each_name_is_registered_once) {
  run_threads(register_all, THREADS);
  assert_as_expected();
  ck_assert_int_eq(atomic_load(&registered), NAMES);
}

// Blocks of all strategies, while one takes the place of the other.
static void *work(void *number) {
  static const char *const strategies[] = {
      "buddy_pool:init=256K,realloc=64K", "power_pool", "async_pool",
      "buddy_pool:init=32K,realloc=32K,max=64K"};
  uint64_t state = (uintptr_t)number * 0x9e3779b97f4a7c15u;
  tarn_device *cpu = NULL;
  tarn_stream *stream = NULL;
  tarn_pool *pool = NULL;
  tarn_block blocks[8] = {0};
  bool ready = tarn_device_open("cpu:0", &cpu) == TARN_OK &&
               tarn_stream_create(cpu, &stream) == TARN_OK &&
               tarn_pool_of(TARN_HOST, &pool) == TARN_OK;
  expect(ready);
  for (int i = 0; ready && i < ROUNDS; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    tarn_block *block = &blocks[state >> 60 & 7];
    size_t size = (size_t)(state >> 33) % 40000 + 1;
    tarn_stream *on = state >> 50 & 1 ? stream : NULL;
    tarn_status status = TARN_OK;
    if (block->pool != NULL) {
      unsigned char *bytes = (unsigned char *)(uintptr_t)block->address;
      if (bytes[0] != bytes[block->size - 1]) status = TARN_E_CORRUPT;
      if (status == TARN_OK) status = tarn_pool_free(block, on);
      block->pool = NULL;
    } else {
      status = tarn_pool_alloc(pool, size, 0, on, block);
      // Work of another stream may be before it: nothing is queued here.
      if (status == TARN_OK) {
        unsigned char *bytes = (unsigned char *)(uintptr_t)block->address;
        bytes[0] = bytes[block->size - 1] = (unsigned char)(uintptr_t)number;
      }
    }
    if (i % 50 == 0 && status == TARN_OK) {
      status = use_strategy(TARN_HOST, strategies[state >> 40 & 3]);
    }
    if (i % 70 == 0 && status == TARN_OK) status = tarn_pool_trim(pool, 0);
    expect(status == TARN_OK);
  }
  for (int i = 0; i < 8; i++)
    if (blocks[i].pool != NULL) (void)tarn_pool_free(&blocks[i], stream);
  (void)tarn_stream_destroy(stream);
  (void)tarn_device_close(cpu);
  return NULL;
}

TEST(strategies_change_under_load) {
  assert_ok(tarn_pool_register(TarnPoolStrategy()));
  tarn_pool *pool = host_pool("power_pool");
  run_threads(work, THREADS);
  assert_as_expected();
  assert_ok(tarn__front_check(pool));
  tarn_pool_stats stats = stats_of(pool);
  ck_assert_uint_eq(stats.live_blocks, 0);
  ck_assert_uint_eq(stats.allocs, stats.frees);
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
  ck_assert(tarn_list_empty(&pool->replaced));
}

// --- fork ------------------------------------------------------------------

TEST(a_child_knows_them) {
  assert_ok(tarn_pool_register(TarnPoolStrategy()));
  (void)host_pool("power_pool");
  pid_t child = fork();
  if (child == 0) {
    tarn_strategy other = a_strategy("other_pool");
    bool good = is_listed("power_pool") &&
                tarn_pool_register(&other) == TARN_OK &&
                use_strategy(TARN_HOST, "other_pool") == TARN_OK;
    _exit(good ? 0 : 1);
  }
  int status = 1;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  ck_assert(!is_listed("other_pool"));
}
