// arena_kit.h - arena_pool on the devices that it works on, each in
// its way: on ranges where there are some, else on segments.
#ifndef TARN_TESTS_POOL_ARENA_KIT_H_
#define TARN_TESTS_POOL_ARENA_KIT_H_

#include <stdio.h>

#include "kit.h"
#include "support/fake_plugin.h"
#include "support/strategy.h"
#include "tarn/range.h"
#include "tarn/sim.h"

static const size_t KIBIBYTE = 1024;
static const size_t SIM_PAGE = (size_t)2 * MIB;
static const size_t ARENA_CAPACITY = (size_t)64 * MIB;

typedef struct arena_place {
  const char *name;
  tarn_device *device;
  tarn_place place;
  tarn_pool *pool;
  size_t available;  // of sim, before anything was taken
} arena_place;

static const char *const arena_devices[] = {"cpu:0", "sim:0", "fake:0"};
enum { ARENA_DEVICES = 3 };

static inline size_t available_on(tarn_device *device) {
  size_t total = 0;
  size_t available = 0;
  assert_ok(tarn_device_memory(device, &total, &available));
  return available;
}

// Places that are open, each until the end of its test or close_arena.
static arena_place open_places[8];

static inline arena_place *open_place_of(const tarn_device *device) {
  arena_place *p = open_places;
  while (p->device != device)
    p++;
  return p;
}

// All blocks have been freed: nothing may be left.
static inline void check_and_close(void *device) {
  arena_place *p = open_place_of(device);
  assert_ok(tarn__front_check(p->pool));
  assert_ok(tarn_pool_trim(p->pool, 0));
  tarn_pool_stats stats = stats_of(p->pool);
  ck_assert_uint_eq(stats.live_blocks, 0);
  ck_assert_uint_eq(stats.reserved_bytes, 0);
  ck_assert(tarn_list_empty(&p->pool->replaced));
  if (strcmp(p->name, "sim:0") == 0) {
    ck_assert_uint_eq(available_on(p->device), p->available);
  }
  assert_ok(tarn_device_close(p->device));
  p->device = NULL;
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  ck_assert_uint_eq(fake_seen.wrong_size, 0);
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 0), 0);
}

// Closes it before the end of the test.
static inline void close_arena(const arena_place *p) {
  forget(p->device);
  check_and_close(p->device);
}

// Closes the device of a place where something may be left.
static inline void abandon(const arena_place *p) {
  forget(p->device);
  open_place_of(p->device)->device = NULL;
  assert_ok(tarn_device_close(p->device));
}

// Is closed at the end of the test. |capacity| is that of the device, but for
// cpu:0; of sim:0 only the first time.
static inline arena_place open_arena_of(size_t capacity, const char *name,
                                        const char *strategy) {
  arena_place p = {.name = name};
  tarn_sim_options options = {.struct_size = sizeof options,
                              .capacity = capacity};
  tarn_status status = tarn_sim_configure(&options);
  ck_assert(status == TARN_OK || status == TARN_E_STATE);
  fake.capacity = capacity;
  if (strcmp(name, "fake:0") == 0) fake_add();
  assert_ok(tarn_device_open(name, &p.device));
  p.place = strcmp(name, "cpu:0") == 0 ? TARN_HOST : tarn_place_on(p.device);
  p.available = available_on(p.device);
  assert_ok(use_strategy(p.place, strategy));
  p.pool = pool_at(p.place);
  *open_place_of(NULL) = p;
  after_test(check_and_close, p.device);
  return p;
}

static inline arena_place open_arena(const char *name, const char *strategy) {
  return open_arena_of(ARENA_CAPACITY, name, strategy);
}

static inline tarn_stream *stream_on(const arena_place *p) {
  return stream_of(p->device);
}

// Plays with the |n|-th call of sim:0 failing, or all |onwards| from it, for
// every |step|-th n, until |quiet| times in a row nothing failed. |play| sets
// the faults and answers whether it met one. Returns how often it did.
static inline size_t sweep_sim(bool (*play)(const char *faults, bool onwards),
                               bool onwards, size_t step, size_t quiet) {
  enum { MOST = 2000 };
  size_t struck = 0;
  size_t n = 1;
  for (size_t in_a_row = 0; in_a_row < quiet; n += step) {
    char faults[32];
    snprintf(faults, sizeof faults, "*@%zu%s", n, onwards ? "+" : "");
    bool hit = play(faults, onwards);
    struck += hit;
    in_a_row = hit ? 0 : in_a_row + 1;
    ck_assert_uint_lt(n, MOST);
  }
  return struck;
}

#endif  // TARN_TESTS_POOL_ARENA_KIT_H_
