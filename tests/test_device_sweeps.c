// A million injected faults: sweeps over scenes and over programs drawn by
// chance, on several makes of the fake device, on simulated devices and on the
// processor. After each nothing may be left: no byte of the library's own
// memory, nothing in the plug-in's ledger; and at the end no file descriptor
// and no mapping more than at the start.
//
// A fault counts when it struck: a host allocation that was refused, or a
// device's function that failed on purpose. TARN_FAULTS in the environment
// says how many there are to be; under sanitizers there are fewer.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/device_scenes.h"
#include "support/fake_extension.h"
#include "support/fake_plugin.h"
#include "support/faults.h"
#include "support/run.h"
#include "tarn/device.h"
#include "tarn/sim.h"

#if defined(__SANITIZE_ADDRESS__)
enum { FAULTS_WANTED = 200000 };
#else
enum { FAULTS_WANTED = 1000000 };
#endif

// Shared with the processes that Check runs the tests in.
static size_t *total;

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
#if !defined(__SANITIZE_ADDRESS__)
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

// The scenes, then programs by chance until there were |goal| faults.
static size_t sweep(const scene_place *place, size_t goal, uint64_t seed,
                    size_t (*faults_of)(program *p)) {
  size_t faults = 0;
  program p = {.place = place};
  for (p.scene = 0; p.scene < scene_count(); p.scene++)
    faults += faults_of(&p);
  p.random = true;
  for (p.seed = seed; faults < goal; p.seed++)
    faults += faults_of(&p);
  return faults;
}

static void play_all(const scene_place *place) {
  program p = {.place = place};
  for (p.scene = 0; p.scene < scene_count(); p.scene++)
    play(&p);
}

static size_t run(const scene_place *place, size_t share, uint64_t seed,
                  size_t (*faults_of)(program *p)) {
  play_all(place);  // what is made once and for all is made now
  size_t held = tarn_host_memory();
  size_t fds = count_fds();
  size_t mappings = count_mappings();
  size_t faults = sweep(place, wanted() / 100 * share, seed, faults_of);
  ck_assert_uint_eq(tarn_host_memory(), held);
  ck_assert_uint_eq(count_fds(), fds);
  check_mappings(mappings);
  __atomic_fetch_add(total, faults, __ATOMIC_RELAXED);
  printf("device: %8zu faults, 0 leaks: %s and %s, %" PRIu64
         " programs by chance\n",
         faults, place->device, place->other, (uint64_t)0);
  fflush(stdout);
  return faults;
}
