// What TARN_SIM_* ask for, pools on simulated devices, and faults of the host.
#include <dlfcn.h>
#include <stdio.h>

#include "kit.h"
#include "pool/kit.h"
#include "support/faults.h"

// --- numbers ---------------------------------------------------------------

TEST(count_and_capacity_are_as_asked) {
  tarn_device *none = NULL;
  sim_set("TARN_SIM_DEVICES", "5");
  sim_set("TARN_SIM_CAPACITY", "3M");
  tarn_device *last = sim_open("sim:4");
  ck_assert_uint_eq(sim_free_memory(last), 3 * SIM_MIB);
  assert_status(tarn_device_open("sim:5", &none), TARN_E_INVALID);
  assert_ok(tarn_device_close(last));
}

TEST(empty_values_are_none) {
  static const char *const names[] = {
      "TARN_SIM_DEVICES",       "TARN_SIM_CAPACITY", "TARN_SIM_LATENCY_NS",
      "TARN_SIM_BANDWIDTH",     "TARN_SIM_FAULTS",   "TARN_SIM_REPORT",
      "TARN_SIM_MAP_LATENCY_NS"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    sim_set(names[i], "");
  tarn_device *sim = sim_open("sim:1");
  ck_assert_uint_eq(sim_free_memory(sim), (size_t)8 << 30);
  assert_ok(tarn_device_close(sim));
}

static const char *const bad[][2] = {
    {"TARN_SIM_DEVICES", "0"},
    {"TARN_SIM_DEVICES", "65"},
    {"TARN_SIM_DEVICES", "2 "},
    {"TARN_SIM_DEVICES", "2K"},
    {"TARN_SIM_DEVICES", "-1"},
    {"TARN_SIM_CAPACITY", "4095"},
    {"TARN_SIM_CAPACITY", "2T"},
    {"TARN_SIM_CAPACITY", "1GB"},
    {"TARN_SIM_CAPACITY", "99999999999999999999"},
    {"TARN_SIM_CAPACITY", "999999999999999999T"},
    {"TARN_SIM_LATENCY_NS", "1.5"},
    {"TARN_SIM_LATENCY_NS", "60000000001"},
    {"TARN_SIM_BANDWIDTH", "fast"},
    {"TARN_SIM_MAP_LATENCY_NS", "1K"},
    {"TARN_SIM_MAP_LATENCY_NS", "60000000001"},
    {"TARN_SIM_FAULTS", "memory_copy_h2d"},
    {"TARN_SIM_FAULTS", "memory_copy_h2d@"},
    {"TARN_SIM_FAULTS", "memory_copy_h2d@0"},
    {"TARN_SIM_FAULTS", "memory_copy_h2@1"},
    {"TARN_SIM_FAULTS", "memory_copy_h2d@1++"},
    {"TARN_SIM_FAULTS", "*@1,"},
    {"TARN_SIM_FAULTS", "@1"},
    {"TARN_SIM_FAULTS", ","},
};
enum { BAD_COUNT = sizeof bad / sizeof bad[0] };

TEST_LOOP(bad_values_are_refused, BAD_COUNT) {
  tarn_device *sim = NULL;
  sim_set(bad[_i][0], bad[_i][1]);
  assert_status(tarn_device_open("sim:0", &sim), TARN_E_DEVICE);
  assert_reported(bad[_i][0]);
  assert_reported(": not ");
  ck_assert_ptr_null(sim);
  // Others are not harmed, and mended it opens.
  assert_ok(tarn_device_close(sim_open("cpu:0")));
  ck_assert_int_eq(unsetenv(bad[_i][0]), 0);
  assert_ok(tarn_device_close(sim_open("sim:0")));
}

// --- the plan of faults ----------------------------------------------------

TEST(the_nth_call_fails) {
  static unsigned char bytes[64];
  sim_set("TARN_SIM_FAULTS",
          "memory_copy_h2d@3,device_memory_allocate@2+,memory_copy_d2h@1");
  tarn_device *sim = sim_open("sim:0");
  tarn_addr a = sim_take(sim, 64);
  for (int i = 1; i <= 5; i++) {
    tarn_status wanted = i == 3 ? TARN_E_DEVICE : TARN_OK;
    assert_status(tarn_copy_h2d(sim, a, bytes, 64, NULL), wanted);
  }
  assert_fails(tarn_copy_d2h(sim, bytes, a, 64, NULL), TARN_E_DEVICE,
               "C_INTERNAL_ERROR");
  assert_ok(tarn_copy_d2h(sim, bytes, a, 64, NULL));
  for (int i = 0; i < 3; i++) {
    tarn_addr none = 1;
    assert_status(tarn_device_allocate(tarn_place_on(sim), 64, &none),
                  TARN_FULL);
    ck_assert_uint_eq(none, 0);
  }
  ck_assert_uint_eq(sim_misuses(), 0);
  sim_give(sim, a, 64);
  assert_ok(tarn_device_close(sim));
}

// Each call of the program's device, one after the other, fails.
static int calls_until_done(const char *plan) {
  static unsigned char bytes[64];
  tarn_device *sim = NULL;
  tarn_addr a = 0;
  tarn_stream *stream = NULL;
  sim_set("TARN_SIM_FAULTS", plan);
  if (tarn_device_open("sim:0", &sim) != TARN_OK) return 0;
  if (tarn_stream_create(sim, &stream) != TARN_OK) return 1;
  if (tarn_device_allocate(tarn_place_on(sim), 64, &a) != TARN_OK) return 2;
  if (tarn_copy_h2d(sim, a, bytes, 64, stream) != TARN_OK) return 3;
  if (tarn_stream_synchronize(stream) != TARN_OK) return 4;
  return 5;
}

// For the sizes, the alignment and the granularity, which are asked for in
// calls 5 to 12, there are stand-ins.
TEST_LOOP(any_call_can_fail, 17) {
  char plan[16];
  int call = 1 + _i;
  bool asks_size = call >= 5 && call <= 12;
  snprintf(plan, sizeof plan, "*@%d", call);
  ck_assert_int_eq(calls_until_done(plan) == 5, asks_size);
  ck_assert_uint_eq(sim_misuses(), 0);
}

TEST(a_late_fault_does_not_strike) {
  ck_assert_int_eq(calls_until_done("*@1000"), 5);
}

// --- pools -----------------------------------------------------------------

enum { BLOCKS = 64, STEPS = 4000 };

static uint64_t state = 88172645463325252u;

static size_t random_below(size_t bound) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (size_t)(state % bound);
}

typedef struct held {
  tarn_block block;
  size_t size;
  unsigned char mark;
} held;

static void check_mark(tarn_device *sim, const held *h) {
  unsigned char found = 0;
  tarn_addr last = h->block.address + h->size - 1;
  assert_ok(tarn_copy_d2h(sim, &found, last, 1, NULL));
  require(found == h->mark);
}

// Takes a block where there is none and gives back the one that there is.
static void step(tarn_device *sim, tarn_pool *pool, held *h) {
  if (h->size != 0) {
    check_mark(sim, h);
    require(tarn_pool_free(&h->block, NULL) == TARN_OK);
    h->size = 0;
    return;
  }
  size_t size = 1 + random_below((size_t)1 << (4 + random_below(14)));
  tarn_status status = tarn_pool_alloc(pool, size, 0, NULL, &h->block);
  require(status == TARN_OK || status == TARN_FULL);
  if (status != TARN_OK) return;
  h->size = size;
  h->mark = (unsigned char)random_below(256);
  assert_ok(tarn_device_set(sim, h->block.address, h->mark, size, NULL));
}

static void run_pool(const char *strategy) {
  static held all[BLOCKS];
  sim_set("TARN_SIM_CAPACITY", "2M");
  tarn_device *sim = sim_open("sim:0");
  size_t before = sim_free_memory(sim);
  assert_ok(use_strategy(tarn_place_on(sim), strategy));
  tarn_pool *pool = pool_at(tarn_place_on(sim));
  for (int i = 0; i < STEPS; i++)
    step(sim, pool, &all[random_below(BLOCKS)]);
  ck_assert_uint_lt(sim_free_memory(sim), before);
  for (int i = 0; i < BLOCKS; i++) {
    if (all[i].size != 0) step(sim, pool, &all[i]);
  }
  ck_assert_uint_eq(stats_of(pool).live_bytes, 0);
  assert_ok(tarn_device_close(sim));
  sim = sim_open("sim:0");
  ck_assert_uint_eq(sim_free_memory(sim), before);
  assert_ok(tarn_device_close(sim));
  ck_assert_uint_eq(sim_misuses(), 0);
}

TEST(page_unit_pool_works_on_it) {
  run_pool("page_unit_pool");
}

TEST(no_pool_works_on_it) {
  run_pool("no_pool");
}

// --- the shared object -----------------------------------------------------

typedef void init_plugin(CustomRuntimeParams *params);

// It is a plug-in of its own, with devices of its own beside the built-in ones.
TEST(the_shared_object_is_a_plugin) {
  C_DeviceInterface other = {.size = sizeof other};
  CustomRuntimeParams params = {.size = sizeof params, .interface = &other};
  struct C_Device_st device = {1};
  void *ptr = NULL;
  void *handle = dlopen(TARN_SIM_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  ck_assert_msg(handle != NULL, "%s", dlerror());
  init_plugin *init = NULL;
  void *symbol = dlsym(handle, "InitPlugin");
  ck_assert_ptr_nonnull(symbol);
  memcpy(&init, &symbol, sizeof init);
  init(&params);
  ck_assert_str_eq(params.device_type, "sim");
  tarn_device *built_in = sim_open("sim:1");
  assert_done(other.initialize());
  assert_done(other.init_device(&device));
  assert_done(other.device_memory_allocate(&device, &ptr, 4096));
  assert_done(other.memory_copy_h2d(&device, ptr, "text", 5));
  ck_assert_uint_eq(sim_free_memory(built_in), (size_t)8 << 30);
  assert_done(other.finalize());
  assert_ok(tarn_device_close(built_in));
}

// --- faults of the host's allocator ----------------------------------------

static C_DeviceInterface table;
static struct C_Device_st first = {0};

static void use_table(void *context) {
  void *blocks[3] = {NULL};
  C_Stream stream = NULL;
  (void)context;
  if (table.init_device(&first) == C_SUCCESS) {
    for (int i = 0; i < 3; i++)
      (void)table.device_memory_allocate(&first, &blocks[i], 4096);
    (void)table.host_memory_allocate(&first, &blocks[1], 4096);
    if (table.create_stream(&first, &stream) == C_SUCCESS &&
        blocks[0] != NULL && blocks[2] != NULL) {
      (void)table.async_memory_copy_d2d(&first, stream, blocks[0], blocks[2],
                                        4096);
    }
    if (blocks[0] != NULL) {
      assert_done(table.device_memory_deallocate(&first, blocks[0], 4096));
    }
    assert_done(table.deinit_device(&first));
  }
}

TEST(every_host_fault_is_survived) {
  sim_set("TARN_SIM_LATENCY_NS", "1000");
  table = (C_DeviceInterface){.size = sizeof table};
  CustomRuntimeParams params = {.size = sizeof params, .interface = &table};
  InitPlugin(&params);
  assert_done(table.initialize());
  ck_assert_uint_ge(faults_sweep(use_table, NULL), 10);
  assert_done(table.finalize());
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

int main(void) {
  faults_install();
  return run_tests();
}
