// Sleep in any order, and when things fail: nothing that was to be kept is
// lost, nothing leaks, and the statistics hold after each step.
#include <stdio.h>

#include "sleep_kit.h"
#include "support/effort.h"
#include "support/faults.h"
#include "support/tagged.h"
#include "tarn/account.h"

enum { TAGS = 3, BLOCKS = 40 };

typedef struct held {
  tarn_block block;
  unsigned tag;
  unsigned seed;
  bool asleep;
  bool kept;  // its contents are known
} held;

static struct {
  arena_place p;
  tarn_tag tags[TAGS];
  held blocks[BLOCKS];
  size_t count;
  size_t errors;
} run;

static size_t suspended;  // blocks that fell asleep and lost memory by it

static void note(tarn_status status) {
  if (status == TARN_OK) return;
  ck_assert_str_ne(tarn_last_error(), "");
  run.errors++;
}

static void check_counts(void) {
  size_t asleep[TAGS] = {0};
  assert_ok(tarn__front_check(run.p.pool));
  require(stats_of(run.p.pool).live_blocks == run.count);
  for (size_t i = 0; i < run.count; i++)
    asleep[run.blocks[i].tag] += run.blocks[i].asleep;
  for (unsigned tag = 0; tag < TAGS; tag++) {
    tarn_pool_tag_stats stats = tag_stats_of(run.p.pool, run.tags[tag]);
    require(stats.asleep_blocks == asleep[tag]);
  }
}

static void name_tags(void) {
  static const char *const names[TAGS] = {"weights", "cache", "activations"};
  for (unsigned i = 0; i < TAGS; i++)
    run.tags[i] = tag_of(names[i]);
}

// --- steps -----------------------------------------------------------------

static void try_take(size_t size, unsigned tag, unsigned seed) {
  tarn_block block;
  if (run.count == BLOCKS) return;
  tarn_status status =
      alloc_tagged(run.p.pool, size, 0, NULL, run.tags[tag], &block);
  note(status);
  if (status == TARN_OK) {
    held *h = &run.blocks[run.count++];
    *h = (held){.block = block, .tag = tag, .seed = seed};
  }
  check_counts();
}

// Needs a device that is well.
static void fill_all(void) {
  for (size_t i = 0; i < run.count; i++) {
    held *h = &run.blocks[i];
    if (h->asleep || h->kept) continue;
    fill(run.p.device, h->block, h->seed);
    h->kept = true;
  }
}

static void check_contents(void) {
  for (size_t i = 0; i < run.count; i++) {
    const held *h = &run.blocks[i];
    if (!h->asleep && h->kept) check_filled(run.p.device, h->block, h->seed);
  }
}

static void drop(size_t index) {
  if (run.count == 0) return;
  if (index >= run.count) index = run.count - 1;
  tarn_block block = run.blocks[index].block;
  run.blocks[index] = run.blocks[--run.count];
  note(tarn_pool_free(&block, NULL));
  check_counts();
  assert_status(tarn_pool_free(&block, NULL), TARN_E_INVALID);
}

// All of them sleep, or as many as before.
static void try_sleep(unsigned tag, tarn_sleep_mode mode) {
  size_t before = tag_stats_of(run.p.pool, run.tags[tag]).asleep_blocks;
  size_t reserved = stats_of(run.p.pool).reserved_bytes;
  tarn_status status = tarn_pool_sleep(run.p.pool, run.tags[tag], mode);
  note(status);
  tarn_pool_tag_stats after = tag_stats_of(run.p.pool, run.tags[tag]);
  require(after.asleep_blocks == after.live_blocks ||
          (status != TARN_OK && after.asleep_blocks == before));
  bool done = after.asleep_blocks == after.live_blocks;
  if (stats_of(run.p.pool).reserved_bytes < reserved) {
    suspended += after.asleep_blocks - before;
  }
  for (size_t i = 0; done && i < run.count; i++) {
    held *h = &run.blocks[i];
    if (h->tag != tag || h->asleep) continue;
    h->asleep = true;
    if (mode == TARN_SLEEP_DROP) h->kept = false;
  }
  check_counts();
}

static tarn_status try_wake(unsigned tag) {
  tarn_pool_stats before = stats_of(run.p.pool);
  tarn_status status = tarn_pool_wake(run.p.pool, run.tags[tag]);
  note(status);
  tarn_pool_stats after = stats_of(run.p.pool);
  if (status != TARN_OK) {
    require(after.asleep_bytes == before.asleep_bytes);
    require(after.saved_bytes == before.saved_bytes);
  }
  for (size_t i = 0; status == TARN_OK && i < run.count; i++) {
    if (run.blocks[i].tag == tag) run.blocks[i].asleep = false;
  }
  check_counts();
  return status;
}

// --- in any order ----------------------------------------------------------

static uint64_t state;

static size_t any(size_t bound) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (size_t)(state >> 33) % bound;
}

static size_t any_size(size_t page) {
  switch (any(4)) {
    case 0:
      return 1 + any(4000);
    case 1:
      return 1 + any(page / 2);
    default:
      return 1 + any(3 * page);
  }
}

static void take_any_step(size_t page, unsigned n) {
  unsigned tag = (unsigned)any(TAGS);
  tarn_sleep_mode mode = any(2) != 0 ? TARN_SLEEP_SAVE : TARN_SLEEP_DROP;
  switch (any(10)) {
    case 0:
      try_sleep(tag, mode);
      break;
    case 1:
      (void)try_wake(tag);
      break;
    case 2:
      note(tarn_pool_trim(run.p.pool, 0));
      check_counts();
      break;
    case 3:
    case 4:
    case 5:
      drop(any(BLOCKS));
      break;
    default:
      try_take(any_size(page), tag, n);
  }
}

static void wake_all(void) {
  for (unsigned tag = 0; tag < TAGS; tag++)
    assert_ok(try_wake(tag));
}

static void drop_all(void) {
  while (run.count > 0)
    drop(any(BLOCKS));
}

static void play_any(int device, const char *strategy, size_t page) {
  enum { ROUNDS = EFFORT(6, 3), STEPS = 200, SUSPENDED_A_ROUND = 18 };
  suspended = 0;
  for (unsigned round = 0; round < ROUNDS; round++) {
    memset(&run, 0, sizeof run);
    run.p =
        open_arena_at((size_t)256 * MIB, device, TEST_NEEDS_RANGES, strategy);
    if (run.p.pool == NULL) return;
    name_tags();
    state = round;
    for (unsigned n = 0; n < STEPS; n++) {
      take_any_step(page, n);
      fill_all();
      if (n % 16 == 0) check_contents();
    }
    if (round % 2 != 0) wake_all();
    check_contents();
    drop_all();
    ck_assert_uint_eq(stats_of(run.p.pool).asleep_bytes, 0);
    ck_assert_uint_eq(stats_of(run.p.pool).saved_bytes, 0);
    ck_assert_uint_eq(run.errors, 0);
    close_arena(&run.p);
  }
  ck_assert_uint_gt(suspended, (size_t)ROUNDS * SUSPENDED_A_ROUND);
}

TEST_LOOP(any_order_will_do_with_small_pages, LIBRARY_DEVICES) {
  play_any(_i, "arena_pool:page=64K,small=4K", 64 * KIBIBYTE);
}

TEST_LOOP(any_order_will_do_with_large_pages, LIBRARY_DEVICES) {
  play_any(_i, "arena_pool:small=4K,slack=0", (size_t)2 * MIB);
}

// --- faults ----------------------------------------------------------------

enum { STEP = EFFORT(1, 4) };  // from one fault to the next

// Contents are known from before the first fault on, where they are kept.
static void take_all(void) {
  for (unsigned i = 0; i < 3; i++) {
    try_take(i == 0 ? 3 * SIM_PAGE / 2 : SIM_PAGE / 4, i % 2, i);
    try_take(SIM_PAGE / 3, i % TAGS, 10 + i);
    try_take(3000, i % 2, 20 + i);
  }
  drop(4);
}

static void sleep_and_wake(void) {
  try_sleep(0, TARN_SLEEP_SAVE);
  try_sleep(1, TARN_SLEEP_DROP);
  try_take(SIM_PAGE, 2, 30);
  (void)try_wake(0);
  drop(3);
  try_sleep(0, TARN_SLEEP_SAVE);
  note(tarn_pool_trim(run.p.pool, 0));
  drop(0);
  (void)try_wake(1);
  (void)try_wake(0);
}

// After the faults: all can be woken, and what was kept is there.
static void recover(void) {
  wake_all();
  check_contents();
  try_sleep(0, TARN_SLEEP_SAVE);
  wake_all();
  check_contents();
}

static void open_run(void) {
  memset(&run, 0, sizeof run);
  run.p = open_faulty(ARENA_CAPACITY, "arena_pool");
  name_tags();
  take_all();
  fill_all();
  ck_assert_uint_eq(run.errors, 0);
}

static bool play_with(const char *faults, bool onwards) {
  open_run();
  assert_ok(tarn_sim_faults(faults));
  sleep_and_wake();
  assert_ok(tarn_sim_faults(NULL));
  size_t errors = run.errors;
  recover();
  drop_all();
  (void)tarn_pool_trim(run.p.pool, 0);  // a range may not be empty
  assert_ok(tarn__front_check(run.p.pool));
  require(stats_of(run.p.pool).reserved_bytes == 0);
  // The call that failed may have been one that gives a page back, or unmaps.
  size_t missing = run.p.available - available_on(run.p.device);
  require(onwards || missing <= 3 * SIM_PAGE);
  abandon(&run.p);
  return errors > 0;
}

TEST_LOOP(calls_may_fail, 2) {
  ck_assert_uint_gt(sweep_sim(play_with, _i != 0, STEP, EFFORT(12, 4)),
                    EFFORT(20, 5));
}

// Every allocation of the host, one after the other and all from there on.
TEST(host_memory_may_fail) {
  faults_install();
  for (int mode = 0; mode < 2; mode++) {
    size_t n = 1;
    bool struck = true;
    for (; struck; n += STEP) {
      open_run();
      faults_arm(n, mode == 0 ? FAULTS_ONCE : FAULTS_FROM_NOW);
      sleep_and_wake();
      struck = faults_disarm();
      ck_assert(struck || run.errors == 0);
      recover();
      drop_all();
      close_arena(&run.p);
    }
    ck_assert_uint_gt(n, 10);
  }
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 0), 0);
}

// Too much for the host: nothing has changed.
TEST(too_much_to_save_is_refused) {
  faults_install();
  open_run();
  tarn_pool_stats before = stats_of(run.p.pool);
  size_t host = tarn_host_memory();
  faults_arm(1, FAULTS_FROM_NOW);
  assert_status(tarn_pool_sleep(run.p.pool, run.tags[0], TARN_SLEEP_SAVE),
                TARN_E_NOMEM);
  (void)faults_disarm();
  assert_same_stats(stats_of(run.p.pool), before);
  ck_assert_uint_eq(tarn_host_memory(), host);
  check_counts();
  check_contents();
  drop_all();
}

// What could not be unmapped is, before it is mapped again.
TEST(what_could_not_be_unmapped_can_be_woken) {
  open_run();
  assert_ok(tarn_sim_faults("range_unmap@1+"));
  assert_status(tarn_pool_sleep(run.p.pool, run.tags[0], TARN_SLEEP_SAVE),
                TARN_E_DEVICE);
  assert_ok(tarn_sim_faults(NULL));
  tarn_pool_tag_stats stats = tag_stats_of(run.p.pool, run.tags[0]);
  ck_assert_uint_eq(stats.asleep_blocks, stats.live_blocks);
  assert_ok(tarn__front_check(run.p.pool));
  assert_ok(tarn_pool_wake(run.p.pool, run.tags[0]));
  check_contents();
  drop_all();
  close_arena(&run.p);  // and nothing is missing
}

// Nothing was counted by tag when they were taken; what sleeps is.
TEST_LOOP(blocks_that_no_tag_counts_sleep_too, TEST_DEVICES) {
  tarn_tag last = 0;
  for (int i = 0; i < 40; i++) {
    char name[32];
    snprintf(name, sizeof name, "uncounted-%d", i);
    last = tag_of(name);
  }
  arena_place p = open_arena_with(_i, TEST_NEEDS_RANGES, "arena_pool:small=4K");
  if (p.pool == NULL) return;
  assert_ok(tarn_pool_account(p.pool, 0));
  tarn_block block = take_tagged(p.pool, (size_t)8 * MIB, last);
  assert_ok(tarn_pool_sleep(p.pool, last, TARN_SLEEP_SAVE));
  ck_assert_uint_eq(tag_stats_of(p.pool, last).asleep_blocks, 1);
  ck_assert_uint_eq(tag_stats_of(p.pool, last).live_blocks, 0);
  assert_ok(tarn__front_check(p.pool));
  assert_ok(tarn_pool_wake(p.pool, last));
  ck_assert_uint_eq(tag_stats_of(p.pool, last).asleep_bytes, 0);
  give(block);
}
