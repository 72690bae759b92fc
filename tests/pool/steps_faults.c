// Faults while steps are learned: host memory and every call of the driver
// fail, one after the other and all together. A step that cannot be learned is
// served all the same, and nothing is lost.
#include "arena_kit.h"
#include "support/faults.h"

enum { BLOCKS = 20, STEPS = 40 };

static struct {
  tarn_device *device;
  tarn_pool *pool;
  size_t errors;
  size_t laid_out;  // steps that began with a layout
} run;

static void note(tarn_status status) {
  if (status == TARN_OK) return;
  ck_assert_str_ne(tarn_last_error(), "");
  run.errors++;
}

static void play_step(void) {
  tarn_block blocks[BLOCKS];
  run.laid_out += run.pool->cursor.layout != NULL;
  for (size_t i = 0; i < BLOCKS; i++) {
    size_t size = (i % 7 + 1) * 6000 + i;
    note(tarn_pool_alloc(run.pool, size, 0, NULL, &blocks[i]));
  }
  for (size_t i = 0; i < BLOCKS; i++) {
    if (blocks[i].pool != NULL) note(tarn_pool_free(&blocks[i], NULL));
  }
  require(stats_of(run.pool).live_blocks == 0);
}

static void learn_on(const char *name) {
  memset(&run, 0, sizeof run);
  if (tarn_device_open(name, &run.device) != TARN_OK) {
    run.errors++;
    return;
  }
  tarn_status status = tarn_pool_of(tarn_place_on(run.device), &run.pool);
  note(status);
  for (size_t i = 0; i < STEPS && status == TARN_OK; i++)
    play_step();
  if (status == TARN_OK) assert_ok(tarn__front_check(run.pool));
  status = tarn_device_close(run.device);
  ck_assert_int_ne(status, TARN_E_STATE);
  note(status);
}

static void fake_scenario(void *context) {
  (void)context;
  learn_on("fake:0");
  ck_assert_uint_eq(fake_seen.open_devices, 0);
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  ck_assert_uint_eq(fake_seen.wrong_size, 0);
}

static void sim_scenario(void *context) {
  (void)context;
  learn_on("sim:0");
}

static void prepare(const char *name) {
  setenv("TARN_POOL", "arena_pool", 1);
  faults_install();
  tarn_sim_options options = {.struct_size = sizeof options,
                              .capacity = ARENA_CAPACITY};
  assert_ok(tarn_sim_configure(&options));
  fake.capacity = ARENA_CAPACITY;
  fake_add();
  learn_on(name);
  ck_assert_uint_eq(run.errors, 0);
  ck_assert_uint_gt(run.laid_out, 0);
}

TEST(nothing_is_lost_without_host_memory_on_ranges) {
  prepare("sim:0");
  ck_assert_uint_gt(faults_sweep(sim_scenario, NULL), 20);
}

TEST(nothing_is_lost_without_host_memory_on_segments) {
  prepare("fake:0");
  ck_assert_uint_gt(faults_sweep(fake_scenario, NULL), 20);
}

TEST(nothing_is_lost_when_the_driver_fails) {
  prepare("fake:0");
  fake.strikes = true;
  ck_assert_uint_gt(faults_sweep(fake_scenario, NULL), 40);
}
