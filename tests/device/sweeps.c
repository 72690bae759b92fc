// A million injected faults: sweeps over scenes and over programs drawn by
// chance, on several makes of the fake device, on simulated devices and on the
// processor. After each nothing may be left: no byte of the library's own
// memory, nothing in the plug-in's ledger; and at the end no file descriptor
// and no mapping more than at the start.
//
// What is counted are runs of a program in which a fault struck: a host
// allocation was refused, or a device's function failed on purpose, at another
// point in each. Where that one and all later ones fail, it is one run all the
// same; the faults themselves are printed too. TARN_FAULTS in the environment
// says how many there are to be; under sanitizers there are fewer.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device_scenes.h"
#include "support/effort.h"
#include "support/fake_extension.h"
#include "support/fake_plugin.h"
#include "support/faults.h"
#include "support/run.h"
#include "tarn/device.h"
#include "tarn/sim.h"

enum { FAULTS_WANTED = EFFORT(1000000, 50000) };

typedef struct tally {
  size_t runs;    // that met a fault
  size_t faults;  // that struck in them
} tally;

// Shared with the processes that Check runs the tests in.
static tally *total;

static size_t wanted(void) {
  const char *text = getenv("TARN_FAULTS");
  return text != NULL ? strtoull(text, NULL, 10) : FAULTS_WANTED;
}

// --- what may not grow -----------------------------------------------------

static size_t count_fds(void) {
  size_t count = 0;
  for (int fd = 0; fd < 1024; fd++) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    count += access(path, F_OK) == 0;
  }
  return count;
}

static size_t count_mappings(void) {
  size_t count = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  ck_assert_ptr_nonnull(maps);
  for (int c = fgetc(maps); c != EOF; c = fgetc(maps))
    count += c == '\n';
  fclose(maps);
  return count;
}

// Of a few that the C library keeps for itself.
enum { MAPPINGS_SPARE = 8 };

static void check_mappings(size_t before) {
#if !defined(TARN_TESTS_ASAN)
  ck_assert_uint_le(count_mappings(), before + MAPPINGS_SPARE);
#else
  (void)before;  // the sanitizer's own come and go
#endif
}

static void check_ledger(void) {
  require(fake_seen.live_blocks == 0 && fake_seen.live_bytes == 0);
  require(fake_seen.streams == 0 && fake_seen.events == 0);
  require(fake_seen.open_devices == 0 && fake_seen.wrong_size == 0);
  require(fake_ext_seen.ranges == 0 && fake_ext_seen.memories == 0);
  require(fake_ext_seen.mappings == 0 && fake_ext_seen.registered == 0);
  require(fake_ext_seen.wrong == 0);
}

// --- programs --------------------------------------------------------------

typedef struct program {
  const scene_place *place;
  bool random;
  size_t scene;
  uint64_t seed;
} program;

enum { STEPS = 8 };

static void play(void *context) {
  const program *p = context;
  if (p->random) {
    scene_play_random(p->seed, STEPS, p->place);
  } else {
    scene_play(p->scene, p->place);
  }
  check_ledger();
}

// Adds what became of |p| with faults at each point to |*sum|.
typedef void sweep_function(program *p, tally *sum);

// The scenes, then programs by chance until |goal| runs met a fault.
static tally sweep(const scene_place *place, size_t goal, uint64_t seed,
                   sweep_function *sweep_one) {
  tally sum = {0, 0};
  program p = {.place = place};
  for (p.scene = 0; p.scene < scene_count(); p.scene++)
    sweep_one(&p, &sum);
  p.random = true;
  for (p.seed = seed; sum.runs < goal; p.seed++)
    sweep_one(&p, &sum);
  return sum;
}

static void play_all(const scene_place *place) {
  program p = {.place = place};
  for (p.scene = 0; p.scene < scene_count(); p.scene++)
    play(&p);
}

static void run(const scene_place *place, size_t share,
                sweep_function *sweep_one) {
  play_all(place);  // what is made once and for all is made now
  size_t held = tarn_host_memory();
  size_t fds = count_fds();
  size_t mappings = count_mappings();
  tally sum = sweep(place, wanted() / 1000 * share, share, sweep_one);
  ck_assert_uint_eq(tarn_host_memory(), held);
  ck_assert_uint_eq(count_fds(), fds);
  check_mappings(mappings);
  total->runs += sum.runs;  // Check runs one test at a time
  total->faults += sum.faults;
  printf("device: %7zu runs, %8zu faults, 0 leaks: %s and %s\n", sum.runs,
         sum.faults, place->device, place->other);
  fflush(stdout);
}

// --- the fake device -------------------------------------------------------

static void sweep_host_memory(program *p, tally *sum) {
  size_t before = faults_runs();
  sum->faults += faults_sweep(play, p);
  sum->runs += faults_runs() - before;
}

static void sweep_fake(program *p, tally *sum) {
  fake.strikes = true;
  sweep_host_memory(p, sum);
  fake.strikes = false;
}

static const struct {
  scene_place place;
  uint64_t missing;
  bool extends;
  bool null_handles;
} makes[] = {
    {{"fake:0", "fake:1", TARN_TWIN_PLUGIN}, 0, true, false},
    {{"fake:0", "fake:1", NULL}, 0, false, false},
    {{"fake:0", "fake:0", NULL}, 0, true, true},
    {{"fake:0", "cpu:0", NULL},
     FAKE_MISSES(device_memory_set) | FAKE_MISSES(async_memory_copy_h2d),
     true,
     false},
    {{"fake:0", "fake:1", NULL},
     FAKE_MISSES(host_memory_allocate) | FAKE_MISSES(host_memory_deallocate) |
         FAKE_MISSES(memory_copy_p2p) | FAKE_MISSES(stream_add_callback) |
         FAKE_MISSES(query_event) | FAKE_MISSES(stream_wait_event) |
         FAKE_MISSES(synchronize_device),
     false,
     false},
};
enum { MAKES = sizeof makes / sizeof makes[0], SHARE_OF_MAKE = 180 };

TEST_LOOP(faults_of_a_fake_device, MAKES) {
  fake.missing = makes[_i].missing;
  fake.null_handles = makes[_i].null_handles;
  fake_ext.there = makes[_i].extends;
  if (!fake_ext.there) fake.misalign = 8;
  fake_add();
  run(&makes[_i].place, SHARE_OF_MAKE, sweep_fake);
}

// --- the processor and simulated devices -----------------------------------

TEST(host_memory_fails_on_the_processor) {
  static const scene_place cpu = {"cpu:0", "cpu:0", TARN_TWIN_PLUGIN};
  run(&cpu, 40, sweep_host_memory);
}

TEST(host_memory_fails_on_simulated_devices) {
  static const scene_place sim = {"sim:0", "sim:1", NULL};
  run(&sim, 30, sweep_host_memory);
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 0), 0);
}

// Of plugins/sim/sim.h, which tests do not see: the plan is sim's own, here it
// is only counted how often it strikes.
// NOLINTBEGIN(bugprone-reserved-identifier): --wrap makes these names.
bool __real_tarn__sim_faults_inject(int call);
bool __wrap_tarn__sim_faults_inject(int call);
// NOLINTEND(bugprone-reserved-identifier)

static size_t sim_faults;

bool __wrap_tarn__sim_faults_inject(int call) {
  bool struck = __real_tarn__sim_faults_inject(call);
  if (struck) __atomic_fetch_add(&sim_faults, 1, __ATOMIC_RELAXED);
  return struck;
}

// Not deinit_device, range_unmap and host_unregister: a call that fails has
// done nothing, so that what these were to end would stay, as it must, and
// stand in the way. What others leave, deinit_device ends.
static const char *const sim_functions[] = {
    "init_device",
    "set_device",
    "create_stream",
    "destroy_stream",
    "query_stream",
    "stream_add_callback",
    "create_event",
    "destroy_event",
    "record_event",
    "query_event",
    "synchronize_device",
    "synchronize_stream",
    "synchronize_event",
    "stream_wait_event",
    "device_memory_allocate",
    "device_memory_deallocate",
    "device_memory_set",
    "host_memory_allocate",
    "host_memory_deallocate",
    "unified_memory_allocate",
    "unified_memory_deallocate",
    "memory_copy_h2d",
    "memory_copy_d2h",
    "memory_copy_d2d",
    "memory_copy_p2p",
    "async_memory_copy_h2d",
    "async_memory_copy_d2h",
    "async_memory_copy_d2d",
    "async_memory_copy_p2p",
    "device_memory_stats",
    "device_min_chunk_size",
    "device_max_chunk_size",
    "device_max_alloc_size",
    "device_extra_padding_size",
    "device_init_alloc_size",
    "device_realloc_size",
    "alignment",
    "allocate_aligned",
    "range_granularity",
    "range_reserve",
    "range_release",
    "memory_create",
    "memory_destroy",
    "range_map",
    "range_set_access",
    "range_move",
    "memory_export",
    "memory_import",
    "allocate_async",
    "deallocate_async",
    "host_register",
    "pointer_query",
    "gather",
    "scatter",
    "scatter_add",
    "allocation_export",
    "allocation_import",
};
enum { SIM_FUNCTIONS = sizeof sim_functions / sizeof sim_functions[0] };

// One run with the N-th call of |function| failing, and all later ones if
// |onwards|. The faults that struck.
static size_t play_with_plan(program *p, const char *function, size_t n,
                             bool onwards) {
  char plan[80];
  size_t before = sim_faults;
  size_t held = tarn_host_memory();
  snprintf(plan, sizeof plan, "%s@%zu%s", function, n, onwards ? "+" : "");
  require(tarn_sim_faults(plan) == TARN_OK);
  play(p);
  require(tarn_sim_faults(NULL) == TARN_OK);
  require(tarn_host_memory() == held);
  return sim_faults - before;
}

static void sweep_sim(program *p, tally *sum) {
  for (size_t i = 0; i < (size_t)2 * SIM_FUNCTIONS; i++) {
    size_t struck = 0;
    for (size_t n = 1; n == 1 || struck > 0; n++) {
      struck = play_with_plan(p, sim_functions[i / 2], n, i % 2 != 0);
      sum->faults += struck;
      sum->runs += struck > 0;
    }
  }
}

TEST(calls_of_simulated_devices_fail) {
  static const scene_place sim = {"sim:0", "sim:1", NULL};
  tarn_device *device = NULL;
  size_t memory = 0;
  size_t available = 0;
  run(&sim, 30, sweep_sim);
  assert_ok(tarn_device_open("sim:0", &device));
  assert_ok(tarn_device_memory(device, &memory, &available));
  ck_assert_uint_eq(memory, available);
  assert_ok(tarn_device_close(device));
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 0), 0);
}

int main(void) {
  faults_install();
  total = mmap(NULL, sizeof *total, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (total == MAP_FAILED) return EXIT_FAILURE;
  int result = run_tests();
  printf("device: %7zu runs, %8zu faults in all; %zu wanted\n", total->runs,
         total->faults, wanted());
  return total->runs >= wanted() ? result : EXIT_FAILURE;
}
