// arena_kit.h - arena_pool on each device of the list, in its way: on ranges
// where there are some, else on segments.
#ifndef TARN_TESTS_POOL_ARENA_KIT_H_
#define TARN_TESTS_POOL_ARENA_KIT_H_

#include <stdio.h>

#include "kit.h"
#include "support/fake_plugin.h"
#include "support/places.h"
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
  size_t available;  // before anything was taken; of the host it changes
} arena_place;

// What a test may need besides what places.h lists: a device that has the
// capacity and no more; memory that other processes can have.
enum { NEEDS_CAPACITY = 1 << 16, NEEDS_SHARING = 1 << 17 };

static inline size_t available_on(tarn_device *device) {
  size_t total = 0;
  size_t available = 0;
  assert_ok(tarn_device_memory(device, &total, &available));
  return available;
}

// Whether the driver may keep what was freed to it in the order of a stream.
static inline bool retains(const tarn_device *device) {
  return (tarn_device_extensions(device) & TARN_EXTENSION_RETAINS) != 0;
}

// |taken| bytes of the device are not available any more, or more if its driver
// keeps some. The memory of the host is used by others as well.
static inline void assert_taken(const arena_place *p, size_t taken) {
  if (tarn_place_equal(p->place, TARN_HOST)) return;
  size_t available = available_on(p->device);
  if (retains(p->device)) {
    ck_assert_uint_le(available, p->available - taken);
  } else {
    ck_assert_uint_eq(available, p->available - taken);
  }
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
  assert_taken(p, 0);
  p->device = NULL;
  close_device(device);
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
  close_device(p->device);
}

// Whether |device|, which is small or not, has all of |needs|.
static inline bool serves(tarn_device *device, bool small, unsigned needs) {
  uint32_t sharing = tarn_device_extensions(device) & TARN_EXTENSION_SHARING;
  if ((needs & NEEDS_CAPACITY) != 0 && !small) return false;
  if ((needs & NEEDS_SHARING) != 0 && sharing == 0) return false;
  return device_has(device, needs & (NEEDS_CAPACITY - 1));
}

// test_devices[i], of |capacity| where it can be small, until the end of the
// test. Without a pool if the device lacks one of |needs|: there the test ends.
static inline arena_place open_arena_at(size_t capacity, int i, unsigned needs,
                                        const char *strategy) {
  arena_place p = {.name = test_devices[i]};
  p.device = open_small_device(i, capacity);
  bool small = p.device != NULL;
  if (!small) p.device = open_device(p.name);
  if (!serves(p.device, small, needs)) {
    close_device(p.device);
    return p;
  }
  p.place = tarn_place_on(p.device);
  p.available = available_on(p.device);
  assert_ok(use_strategy(p.place, strategy));
  p.pool = pool_at(p.place);
  *open_place_of(NULL) = p;
  after_test(check_and_close, p.device);
  return p;
}

static inline arena_place open_arena_with(int i, unsigned needs,
                                          const char *strategy) {
  return open_arena_at(ARENA_CAPACITY, i, needs, strategy);
}

// A device by its name, for what is about that one.
static inline arena_place open_arena_of(size_t capacity, const char *name,
                                        const char *strategy) {
  int i = 0;
  while (strcmp(test_devices[i], name) != 0)
    i++;
  return open_arena_at(capacity, i, 0, strategy);
}

static inline arena_place open_arena(const char *name, const char *strategy) {
  return open_arena_of(ARENA_CAPACITY, name, strategy);
}

// The device whose calls fail as tarn_sim_faults says.
static inline arena_place open_faulty(size_t capacity, const char *strategy) {
  return open_arena_of(capacity, "sim:0", strategy);
}

static inline tarn_stream *stream_on(const arena_place *p) {
  return stream_of(p->device);
}

// Plays with the |n|-th call of open_faulty failing, or all |onwards| from it,
// for every |step|-th n, until |quiet| times in a row nothing failed. |play|
// sets the faults and answers whether it met one. Returns how often it did.
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
