// Faults in arena_pool: host memory and every call of the driver fail, one
// after the other and all together, in a scenario that maps, moves and gives
// back memory, and in one whose steps are learned, on ranges and on segments.
#include <stdio.h>

#include "arena_kit.h"
#include "support/faults.h"
#include "support/strategy.h"

enum { BLOCKS = 24, STEPS = 40 };

static struct {
  tarn_device *device;
  tarn_pool *pool;
  tarn_stream *streams[3];  // the first is the host
  tarn_block blocks[BLOCKS];
  size_t count;
  size_t errors;
  size_t laid_out;  // steps that began with a layout
} run;

// Whatever fails is an error with a text, and the statistics hold.
static void note(tarn_status status) {
  if (status == TARN_OK) return;
  ck_assert_str_ne(tarn_last_error(), "");
  run.errors++;
}

static void check_pool(void) {
  assert_ok(tarn__front_check(run.pool));
  require(stats_of(run.pool).live_blocks == run.count);
}

static void try_take(size_t size, size_t align, int stream) {
  tarn_block block;
  memset(&block, 0xff, sizeof block);
  tarn_status status =
      tarn_pool_alloc(run.pool, size, align, run.streams[stream], &block);
  note(status);
  if (status == TARN_OK) {
    require(block.size >= size);
    run.blocks[run.count++] = block;
  } else {
    assert_zero_block(block);
  }
  check_pool();
}

// Resizes the |index|-th block; it stays as it was if that fails.
static void try_resize(size_t index, size_t size, int stream) {
  if (index >= run.count) return;
  tarn_block before = run.blocks[index];
  tarn_status status =
      tarn_pool_resize(&run.blocks[index], size, run.streams[stream]);
  tarn_block after = run.blocks[index];
  if (status != TARN_FULL) note(status);
  require(after.address == before.address && after.id == before.id);
  require(status == TARN_OK ? after.size >= size : after.size == before.size);
  check_pool();
}

// Frees the |index|-th block, or the newest; that cannot fail to be done.
static void drop(size_t index, int stream) {
  if (run.count == 0) return;
  if (index >= run.count) index = run.count - 1;
  tarn_block block = run.blocks[index];
  run.blocks[index] = run.blocks[--run.count];
  note(tarn_pool_free(&block, run.streams[stream]));
  check_pool();
  assert_status(tarn_pool_free(&block, NULL), TARN_E_INVALID);
}

static void use_pool(void) {
  for (int i = 0; i < 4; i++) {
    try_take(3000, 0, i % 3);
    try_take(500 * KIBIBYTE, 0, i % 3);
  }
  try_resize(7, (size_t)3 * MIB, 0);
  try_resize(7, 300 * KIBIBYTE, 1);
  try_resize(6, 100, 2);
  for (int i = 0; i < 6; i++)
    drop((size_t)i, i % 3);
  try_take(1000 * KIBIBYTE, 0, 1);
  try_take(100, (size_t)1 * MIB, 2);
  try_resize(run.count - 2, (size_t)5 * MIB, 1);
  try_resize(run.count - 1, (size_t)1 * MIB, 2);
  drop(BLOCKS, 0);
  drop(0, 0);
  try_take(1000, 0, 0);
  note(tarn_pool_trim(run.pool, 0));
  check_pool();
  try_take(900 * KIBIBYTE, 0, 2);
  note(use_strategy(tarn_place_on(run.device), "arena_pool:page=4M"));
  check_pool();
  try_take(70 * KIBIBYTE, 0, 1);
  drop(0, 1);
  drop(1, 2);
  while (run.count > 0)
    drop(0, (int)run.count % 3);
}

static void end(tarn_block *block) {
  if (block->pool != NULL) note(tarn_pool_free(block, NULL));
  *block = (tarn_block){0};
}

// A step that cannot be learned is served all the same. Few of its blocks are
// out at a time, and the pieces of its layout are more than a slab of them.
static void play_step(void) {
  enum { REQUESTS = TARN__SLAB + 10, AT_ONCE = 20 };
  tarn_block blocks[AT_ONCE] = {0};
  run.laid_out += run.pool->steps.cursor.layout != NULL;
  for (size_t i = 0; i < REQUESTS; i++) {
    size_t size = (i % 7 + 1) * 6000 + i;
    end(&blocks[i % AT_ONCE]);
    note(tarn_pool_alloc(run.pool, size, 0, NULL, &blocks[i % AT_ONCE]));
  }
  for (size_t i = 0; i < AT_ONCE; i++)
    end(&blocks[i]);
  require(stats_of(run.pool).live_blocks == 0);
}

static void learn_steps(void) {
  for (size_t i = 0; i < STEPS; i++)
    play_step();
  assert_ok(tarn__front_check(run.pool));
}

static void (*scenario)(void) = use_pool;

static void open_and_use(const char *name) {
  memset(&run, 0, sizeof run);
  if (tarn_device_open(name, &run.device) != TARN_OK) {
    run.errors++;
    return;
  }
  for (int i = 1; i < 3; i++)
    note(tarn_stream_create(run.device, &run.streams[i]));
  tarn_status status = tarn_pool_of(tarn_place_on(run.device), &run.pool);
  note(status);
  if (status == TARN_OK) scenario();
  for (int i = 1; i < 3; i++)
    note(tarn_stream_destroy(run.streams[i]));
}

static void close_all(void) {
  if (run.device == NULL) return;
  tarn_status status = tarn_device_close(run.device);
  ck_assert_int_ne(status, TARN_E_STATE);
  note(status);
}

// --- host memory, and the driver of segments -------------------------------

static void play_on(void *device) {
  open_and_use(device);
  close_all();
  ck_assert_uint_eq(fake_seen.open_devices, 0);
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  ck_assert_uint_eq(fake_seen.streams, 0);
  ck_assert_uint_eq(fake_seen.wrong_size, 0);
}

static void prepare(char *device) {
  setenv("TARN_POOL", "arena_pool", 1);
  faults_install();
  tarn_sim_options options = {.struct_size = sizeof options,
                              .capacity = ARENA_CAPACITY};
  assert_ok(tarn_sim_configure(&options));
  fake.capacity = ARENA_CAPACITY;
  fake_add();
  play_on(device);
  ck_assert_uint_eq(run.errors, 0);
  ck_assert(scenario != learn_steps || run.laid_out > 0);
}

// The simulated device tells of what it lacks.
static size_t missing_on_sim(void) {
  tarn_device *device = NULL;
  assert_ok(tarn_device_open("sim:0", &device));
  size_t missing = ARENA_CAPACITY - available_on(device);
  assert_ok(tarn_device_close(device));
  return missing;
}

static char sim[] = "sim:0";
static char segments[] = "fake:0";

static const struct {
  char *device;
  void (*scenario)(void);
  size_t misalign;
  bool driver_fails;
  size_t least;  // faults that are met, at least
} cases[] = {
    {segments, use_pool, 0, false, 40},    {segments, use_pool, 0, true, 200},
    {segments, use_pool, 64, true, 200},   {sim, use_pool, 0, false, 40},
    {segments, learn_steps, 0, false, 20}, {segments, learn_steps, 0, true, 40},
    {sim, learn_steps, 0, false, 20},
};

TEST_LOOP(nothing_is_lost, sizeof cases / sizeof *cases) {
  scenario = cases[_i].scenario;
  fake.misalign = cases[_i].misalign;
  prepare(cases[_i].device);
  fake.strikes = cases[_i].driver_fails;
  ck_assert_uint_gt(faults_sweep(play_on, cases[_i].device), cases[_i].least);
  ck_assert_uint_eq(missing_on_sim(), 0);
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 0), 0);
}

// --- the driver of ranges --------------------------------------------------

// The device is well again before it is closed.
static bool play_with(const char *plan, bool onwards) {
  assert_ok(tarn_sim_faults(plan));
  open_and_use(sim);
  assert_ok(tarn_sim_faults(NULL));
  if (run.pool != NULL) {
    (void)tarn_pool_trim(run.pool, 0);  // a range may not be empty
    check_pool();
    require(stats_of(run.pool).reserved_bytes == 0);
    // The call that failed may be one that was to give pages back.
    size_t missing = ARENA_CAPACITY - available_on(run.device);
    require(onwards || missing <= 2 * SIM_PAGE);
  }
  close_all();
  return run.errors > 0;
}

TEST_LOOP(calls_may_fail_on_ranges, 2) {
  prepare(sim);
  ck_assert_uint_gt(sweep_sim(play_with, _i != 0, 1, 40), 50);
}

// --- a device that fails ---------------------------------------------------

// Whether memory goes straight from hole to block, and a part of it may fail.
static bool moves(const arena_place *p) {
  return (tarn_device_extensions(p->device) & TARN_EXTENSION_MOVES) != 0;
}

// Where the device fails to move a page, and then to unmap it, it is lost; the
// first half of several has moved by then.
static void fail_to_move(const arena_place *p) {
  assert_ok(tarn_sim_faults(moves(p) ? "range_move@1,range_unmap@1"
                                     : "range_unmap@1"));
}

// Whether they are still mapped is unknown: they block no request then, and the
// statistics do not count them.
TEST(pages_that_cannot_be_unmapped_are_given_up) {
  arena_place p = open_faulty(ARENA_CAPACITY, "arena_pool:page=2M,slack=0");
  give(take(p.pool, 4 * SIM_PAGE));
  assert_ok(tarn_pool_reset_peaks(p.pool));  // or more would be asked for
  fail_to_move(&p);
  refuse(p.pool, 1000, 0, TARN_E_DEVICE);
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, 3 * SIM_PAGE);
  tarn_block small = take(p.pool, 1000);
  tarn_block rest = take(p.pool, 2 * SIM_PAGE);
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, 3 * SIM_PAGE);
  give(rest);
  assert_ok(tarn_sim_faults("range_unmap@1+"));
  assert_status(tarn_pool_trim(p.pool, 0), TARN_E_DEVICE);
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, SIM_PAGE);
  assert_ok(tarn__front_check(p.pool));
  assert_ok(tarn_sim_faults(NULL));
  give(take(p.pool, 3 * SIM_PAGE));
  give(small);
  (void)tarn_pool_trim(p.pool, 0);  // the range is not empty
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, 0);
  size_t lost = moves(&p) ? 2 * SIM_PAGE + SIM_PAGE / 2 : 3 * SIM_PAGE;
  ck_assert_uint_eq(available_on(p.device), p.available - lost);
  assert_ok(tarn__front_check(p.pool));
  give(take(p.pool, 3 * SIM_PAGE));
  abandon(&p);
}

// |plan| makes one request fail; nothing comes of it.
static void check_failed_growth(const char *plan, tarn_status expected) {
  arena_place p = open_faulty(ARENA_CAPACITY, "arena_pool:page=2M");
  tarn_block kept = take(p.pool, SIM_PAGE / 2);
  assert_ok(tarn_sim_faults(plan));
  refuse(p.pool, 5 * SIM_PAGE, 0, expected);
  assert_ok(tarn_sim_faults(NULL));
  tarn_block block = take(p.pool, 5 * SIM_PAGE);
  ck_assert_uint_le(stats_of(p.pool).reserved_bytes, 6 * SIM_PAGE);
  give(block);
  give(kept);
  close_arena(&p);
}

// Of memory that moves there is one piece, else there are five.
TEST(a_growth_that_fails_half_way_is_undone) {
  arena_place p = open_faulty(ARENA_CAPACITY, "arena_pool");
  bool one = moves(&p);
  close_arena(&p);
  check_failed_growth(one ? "memory_create@1+" : "memory_create@3+", TARN_FULL);
  check_failed_growth("range_map@1", TARN_E_DEVICE);
  if (!one) check_failed_growth("range_map@4", TARN_E_DEVICE);
  check_failed_growth("range_set_access@1", TARN_E_DEVICE);
}

// A block takes the last hole and the pages of two others. Of a run of two that
// is refused, one has moved, and the other is replaced.
static void check_refused_moves(const char *plan, size_t replaced) {
  arena_place p = open_faulty(ARENA_CAPACITY, "arena_pool:page=2M,slack=0");
  tarn_block blocks[7];
  if (!moves(&p)) return;
  for (int i = 0; i < 7; i++)
    blocks[i] = take(p.pool, i % 2 == 0 ? 2 * SIM_PAGE : SIM_PAGE);
  for (int i = 0; i < 7; i += 2)
    give(blocks[i]);
  tarn_pool_stats before = stats_of(p.pool);
  assert_ok(tarn_pool_reset_peaks(p.pool));
  assert_ok(tarn_sim_faults(plan));
  tarn_block large = take(p.pool, 6 * SIM_PAGE);
  assert_ok(tarn_sim_faults(NULL));
  tarn_pool_stats stats = stats_of(p.pool);
  ck_assert_uint_eq(stats.reserved_bytes, before.reserved_bytes);
  ck_assert_uint_eq(stats.reserved_peak_bytes, before.reserved_bytes);
  ck_assert_uint_eq(stats.device_frees - before.device_frees, replaced);
  ck_assert_uint_eq(stats.device_allocs - before.device_allocs, replaced);
  assert_taken(&p, stats.reserved_bytes);
  assert_ok(tarn__front_check(p.pool));
  give(large);
  for (int i = 1; i < 7; i += 2)
    give(blocks[i]);
  close_arena(&p);
}

TEST(what_will_not_move_is_replaced) {
  check_refused_moves("", 0);
  check_refused_moves("range_move@1", 1);
  check_refused_moves("range_move@2", 1);
  check_refused_moves("range_move@1+", 2);
}

// Neither moved nor replaced: what had been moved is given back.
TEST(moves_that_fail_half_way_leave_nothing) {
  arena_place p = open_faulty(ARENA_CAPACITY, "arena_pool:page=2M,slack=0");
  tarn_block blocks[6];
  if (!moves(&p)) return;
  for (int i = 0; i < 6; i++)
    blocks[i] = take(p.pool, i % 2 == 0 ? 2 * SIM_PAGE : SIM_PAGE);
  for (int i = 0; i < 6; i += 2)
    give(blocks[i]);
  assert_ok(tarn_pool_reset_peaks(p.pool));
  assert_ok(tarn_sim_faults("range_move@2,range_map@1"));
  refuse(p.pool, 6 * SIM_PAGE, 0, TARN_E_DEVICE);
  assert_ok(tarn_sim_faults(NULL));
  assert_ok(tarn__front_check(p.pool));
  assert_taken(&p, stats_of(p.pool).reserved_bytes);
  for (int i = 1; i < 6; i += 2)
    give(blocks[i]);
  close_arena(&p);
}

TEST(what_can_neither_be_mapped_nor_unmapped_is_unmapped_later) {
  arena_place p = open_faulty(ARENA_CAPACITY, "arena_pool:page=2M");
  tarn_block kept = take(p.pool, SIM_PAGE / 2);
  assert_ok(tarn_sim_faults(moves(&p) ? "range_set_access@1,range_unmap@1"
                                      : "range_map@3,range_unmap@1"));
  refuse(p.pool, 5 * SIM_PAGE, 0, TARN_E_DEVICE);
  assert_ok(tarn_sim_faults(NULL));
  tarn_block block = take(p.pool, 5 * SIM_PAGE);
  give(block);
  give(kept);
  assert_ok(tarn_pool_trim(p.pool, 0));  // the driver can, by now
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, 0);
  ck_assert_uint_eq(available_on(p.device), p.available);
  assert_ok(tarn__front_check(p.pool));
  abandon(&p);
}

TEST_LOOP(a_full_device_is_full_and_its_idle_pages_are_found, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, TEST_NEEDS_RANGES | NEEDS_CAPACITY,
                                  "arena_pool:page=2M");
  if (p.pool == NULL) return;
  tarn_stream *a = stream_on(&p);
  tarn_block kept = take_on(p.pool, ARENA_CAPACITY / 2, a);
  refuse(p.pool, ARENA_CAPACITY, 0, TARN_FULL);
  ck_assert_uint_eq(stats_of(p.pool).live_blocks, 1);
  give_on(take_on(p.pool, ARENA_CAPACITY / 2, a), a);
  // In use by a stream, in two places: taken back all the same.
  give_on(kept, a);
  tarn_block all = take(p.pool, ARENA_CAPACITY);
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, ARENA_CAPACITY);
  give(all);
}

// A device that is closed gives all back, be there host memory or not.
TEST_LOOP(closing_needs_no_host_memory, TEST_DEVICES) {
  if (strcmp(test_devices[_i], "cpu:0") == 0) return;  // it stays open
  faults_install();
  arena_place p = open_arena_with(_i, 0, "arena_pool");
  tarn_stream *a = stream_on(&p);
  tarn_stream *keeper = NULL;
  tarn_device *same = p.device;
  for (int k = 0; k < 20; k++) {
    tarn_block block = take_on(p.pool, 3000, k % 2 ? a : NULL);
    tarn_block large = take_on(p.pool, MIB, k % 2 ? a : NULL);
    give_on(block, k % 2 ? a : NULL);
    give_on(large, a);
  }
  assert_ok(tarn_stream_create(same, &keeper));
  faults_arm(1, FAULTS_FROM_NOW);
  assert_ok(tarn_pool_trim(p.pool, 0));
  (void)faults_disarm();
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, 0);
  end_stream(a);
  assert_ok(tarn_stream_destroy(keeper));
}
