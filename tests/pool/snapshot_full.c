// Snapshots of pools that have no room: which refusals get one, what is in it,
// and that nothing else changes by it.
#include <pthread.h>
#include <sys/wait.h>

#include "snapshot_kit.h"
#include "support/faults.h"
#include "support/tagged.h"
#include "support/threads.h"
#include "tarn/misuse.h"

static const char VARIABLE[] = "TARN_SNAPSHOT_ON_FULL";

static tarn_pool *pool;
static tarn_block kept;

static void install(void) {
  make_folder();
  listen_to_log();
}

// A pool with one block, and room for no other, whose strategy keeps no
// metadata. One shot of it and no more.
static void fill_pool(void) {
  tarn__full_shot_period_ns = UINT64_MAX;
  pool = host_pool("no_pool");
  assert_ok(tarn_pool_limit(pool, 64 * KIB));
  kept = take_tagged(pool, 60 * KIB, tag_of("weights"));
}

static void tear_down(void) {
  if (pool != NULL) {
    assert_ok(tarn_pool_snapshot_on_full(TARN, NULL));
    give(kept);
    assert_ok(tarn__front_check(pool));
  }
  remove_folder();
}

static void want(const char *pattern) {
  assert_ok(tarn_pool_snapshot_on_full(TARN, path_of(pattern)));
}

static void refuse_tagged(size_t size) {
  tarn_block block;
  memset(&block, 0xff, sizeof block);
  assert_status(
      alloc_tagged(pool, size, 0, NULL, tag_of("activations"), &block),
      TARN_FULL);
  assert_zero_block(block);
}

// --- what is in it ---------------------------------------------------------

static void check_refusal(const char *name, size_t size) {
  tarn_trace *trace = read_snapshot(name);
  const tarn_trace_event *refused = refusal_in(trace);
  ck_assert_ptr_nonnull(refused);
  ck_assert_uint_eq(refused->size, size);
  ck_assert_str_eq(trace->tags[refused->tag], "activations");
  ck_assert_uint_eq(live_bytes_in(trace), 60 * KIB);
  ck_assert_uint_eq(trace->segment_count, 1);
  tarn_trace_destroy(trace);
}

enum { PLAIN, EVENTS, RING_OF_ONE, GUARDS, SETTINGS };

// With and without events, in a ring that holds no more; guards are no part of
// the size.
TEST_LOOP(it_holds_the_refusal, SETTINGS) {
  fill_pool();
  if (_i == EVENTS || _i == RING_OF_ONE) {
    assert_ok(tarn_pool_account(pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  }
  if (_i == RING_OF_ONE) assert_ok(tarn_pool_account_ring(pool, 1));
  tarn_pool_debug_options guards = {.struct_size = sizeof guards,
                                    .flags = TARN_POOL_DEBUG_GUARDS};
  if (_i == GUARDS) assert_ok(tarn_pool_debug(pool, &guards));
  want("one");
  refuse_tagged(5000);
  ck_assert_uint_eq(count_files(), 1);
  check_refusal("one", 5000);
  ck_assert_uint_eq(told.count, 0);
}

// Of several blocks at once, that were refused one by one or by their sum. The
// call has no event, so that the snapshot alone tells of it.
TEST(it_holds_the_refusal_of_several) {
  tarn_alloc_options options[2] = {
      {.struct_size = sizeof *options, .size = 3000},
      {.struct_size = sizeof *options,
       .size = 3000,
       .tag = tag_of("activations")},
  };
  tarn_block blocks[2];
  fill_pool();
  assert_ok(tarn_pool_account(pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  want("sum");
  options[0].tag = options[1].tag;
  assert_status(tarn_pool_alloc_many(pool, options, 2, blocks), TARN_FULL);
  check_refusal("sum", 6000);
  options[0].tag = 0;
  options[0].size = 1;
  options[1].flags = TARN_ALLOC_NO_GROW;
  want("one");
  assert_status(tarn_pool_alloc_many(pool, options, 2, blocks), TARN_FULL);
  check_refusal("one", 3000);
}

TEST(nothing_else_changes) {
  char said[512];
  fill_pool();
  refuse_tagged(5000);
  snprintf(said, sizeof said, "%s", tarn_last_error());
  tarn_pool_stats before = stats_of(pool);
  want("one");
  refuse_tagged(5000);
  ck_assert_str_eq(tarn_last_error(), said);
  assert_same_stats(before, stats_of(pool));
  ck_assert_uint_eq(stats_of(pool).failures, before.failures + 1);
}

// --- which refusals --------------------------------------------------------

TEST(one_and_then_no_other_for_a_while) {
  fill_pool();
  want("%n");
  for (int i = 0; i < 5; i++)
    refuse_tagged(5000);
  ck_assert_uint_eq(count_files(), 1);
  tarn__full_shot_period_ns = 0;  // as if a second had passed each time
  refuse_tagged(5000);
  refuse_tagged(5000);
  ck_assert_uint_eq(count_files(), 3);
  tarn__full_shot_period_ns = UINT64_MAX;
  refuse_tagged(5000);
  ck_assert_uint_eq(count_files(), 3);
}

TEST(a_second_is_a_second) {
  ck_assert_uint_eq(tarn__full_shot_period_ns, 1000000000u);
}

TEST(to_ask_again_begins_anew) {
  fill_pool();
  want("a-%n");
  refuse_tagged(5000);
  want("b-%n");
  refuse_tagged(5000);
  refuse_tagged(5000);
  ck_assert_uint_eq(count_files(), 2);
  ck_assert(is_there("a-0") && is_there("b-1"));
}

TEST(none_is_written_where_none_is_wanted) {
  fill_pool();
  refuse_tagged(5000);
  want("%n");
  assert_ok(tarn_pool_snapshot_on_full(TARN, NULL));
  refuse_tagged(5000);
  ck_assert_uint_eq(count_files(), 0);
}

TEST_LOOP(each_pool_has_its_own, 2) {
  tarn_pool *own = NULL;
  fill_pool();
  tarn_pool_options small = {.struct_size = sizeof small,
                             .strategy = "page_unit_pool",
                             .limit = 4096,
                             .flags = _i == 0 ? 0 : TARN_POOL_DRY};
  assert_ok(tarn_pool_create(TARN_HOST, &small, &own));
  want("%n");
  refuse_tagged(5000);
  refuse(own, 9999, 0, TARN_FULL);
  refuse_tagged(5000);
  refuse(own, 9999, 0, TARN_FULL);
  ck_assert_uint_eq(count_files(), 2);
  ck_assert_uint_eq(refused_in("1"), 9999);
  assert_ok(tarn_pool_destroy(own));
}

static bool free_once(tarn_pool *full, const tarn_pool_need *need,
                      void *context) {
  (void)full;
  tarn_block *block = context;
  if (need->attempt > 1) return false;
  give(*block);
  return true;
}

// The program's function has made room: no request was refused.
TEST(who_is_served_in_the_end_is_not_refused) {
  fill_pool();
  want("%n");
  assert_ok(tarn_pool_on_full(pool, free_once, &kept));
  kept = take(pool, 5000);
  ck_assert_uint_eq(count_files(), 0);
  assert_ok(tarn_pool_on_full(pool, NULL, NULL));
}

TEST(other_failures_are_none) {
  fill_pool();
  want("%n");
  refuse(pool, 0, 0, TARN_E_INVALID);
  assert_status(tarn_pool_resize(&kept, MIB, NULL), TARN_FULL);
  ck_assert_uint_eq(count_files(), 0);
}

// --- what is in the way ----------------------------------------------------

TEST(what_cannot_be_written_is_logged_and_no_more) {
  char said[512];
  fill_pool();
  refuse_tagged(5000);
  snprintf(said, sizeof said, "%s", tarn_last_error());
  want("no/such/folder/%n");
  refuse_tagged(5000);
  ck_assert_str_eq(tarn_last_error(), said);
  ck_assert_uint_eq(told.count, 1);
  ck_assert_ptr_nonnull(strstr(told.last, "no/such/folder/0"));
  ck_assert_uint_eq(count_files(), 0);
  assert_ok(tarn__front_check(pool));
}

static void refuse_scenario(void *context) {
  (void)context;
  tarn_block block;
  told.count = 0;
  size_t files = count_files();
  tarn_status status = tarn_pool_alloc(pool, 5000, 0, NULL, &block);
  assert_zero_block(block);
  if (status == TARN_FULL) {
    ck_assert_ptr_nonnull(strstr(tarn_last_error(), "no room for 4.88 KiB"));
    ck_assert_uint_eq(count_files() - files + told.count, 1);
  } else {
    assert_status(status, TARN_E_NOMEM);  // which the pool's own metadata lacks
  }
  assert_ok(tarn__front_check(pool));
}

TEST(no_host_memory_is_logged_too) {
  fill_pool();
  want("%n");
  tarn__full_shot_period_ns = 0;
  ck_assert_uint_gt(faults_sweep(refuse_scenario, NULL), 20);
}

TEST(nothing_has_changed_if_it_cannot_be_asked_for) {
  fill_pool();
  want("first");
  faults_arm(1, FAULTS_FROM_NOW);
  assert_status(tarn_pool_snapshot_on_full(TARN, path_of("other")),
                TARN_E_NOMEM);
  ck_assert(faults_disarm());
  refuse_tagged(5000);
  ck_assert(is_there("first"));
  ck_assert_uint_eq(count_files(), 1);
}

// --- threads and forks -----------------------------------------------------

enum { THREADS = 4, REFUSALS = 12 };

static void *run_out(void *context) {
  tarn_block block;
  (void)context;
  for (int i = 0; i < REFUSALS; i++)
    require(tarn_pool_alloc(pool, 5000, 0, NULL, &block) == TARN_FULL);
  return NULL;
}

TEST(many_threads_run_out_at_once) {
  fill_pool();
  tarn__full_shot_period_ns = 0;
  want("%n");
  run_threads_on(run_out, THREADS, NULL);
  ck_assert_uint_eq(count_files(), (size_t)THREADS * REFUSALS);
  for (int i = 0; i < THREADS * REFUSALS; i++) {
    char name[16];
    snprintf(name, sizeof name, "%d", i);
    require(refused_in(name) == 5000);
  }
  ck_assert_uint_eq(told.count, 0);
}

static int status_of(pid_t child) {
  int status = 0;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// What another program does that knows nothing of snapshots.
static int run_out_of_memory(void) {
  tarn_block block;
  tarn_pool *own = NULL;
  tarn_status status = tarn_pool_of(TARN_HOST, &own);
  if (status == TARN_OK) status = tarn_pool_limit(own, 4096);
  if (status == TARN_OK) {
    status = tarn_pool_alloc(own, 9999, 0, NULL, &block);
  }
  return status == TARN_FULL ? 42 : 1;
}

TEST(a_child_of_fork_has_its_own) {
  fill_pool();
  want("%p");
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) _exit(run_out_of_memory());
  ck_assert_int_eq(status_of(child), 42);
  char name[32];
  snprintf(name, sizeof name, "%ld", (long)child);
  ck_assert(is_there(name));
  ck_assert_uint_eq(count_files(), 1);
}

// --- the environment -------------------------------------------------------

static int run_child(const char *value) {
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    setenv(VARIABLE, value, 1);
    execl("/proc/self/exe", "test", "run out of memory", (char *)NULL);
    _exit(127);
  }
  return status_of(child);
}

TEST(the_environment_asks_for_one) {
  ck_assert_int_eq(run_child(path_of("%d.tarn")), 42);
  ck_assert_uint_eq(count_files(), 1);
  ck_assert_uint_eq(refused_in("cpu:0.tarn"), 9999);
  ck_assert_int_eq(run_child(""), 42);
  ck_assert_int_eq(run_child("/no/such/folder"), 42);
  ck_assert_int_eq(run_child(path_of("%x")), 1);
  ck_assert_uint_eq(count_files(), 1);
}

TEST(a_wrong_path_there_is_found_at_once) {
  tarn_pool *none = NULL;
  setenv(VARIABLE, "%y", 1);
  for (int i = 0; i < 2; i++) {
    assert_status(tarn_pool_of(TARN_HOST, &none), TARN_E_INVALID);
    assert_error_says(VARIABLE);
    assert_error_says("%y");
    ck_assert_ptr_null(none);
  }
  assert_ok(
      tarn_pool_snapshot_on_full(TARN, NULL));  // the program knows better
  assert_ok(tarn_pool_of(TARN_HOST, &none));
}

FIXTURE(install, tear_down);

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "run out of memory") == 0) {
    return run_out_of_memory();
  }
  faults_install();
  return run_tests();
}
