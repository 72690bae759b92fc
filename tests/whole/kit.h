// kit.h - ranks for tests of wholes: processes that are forked
// before any device is open, and what a rank needs to look at bytes, and to see
// that nothing was left behind.
#ifndef TARN_TESTS_WHOLE_KIT_H_
#define TARN_TESTS_WHOLE_KIT_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/driver.h"
#include "support/effort.h"
#include "support/ranks.h"
#include "support/run.h"
#include "support/strategy.h"
#include "tarn/account.h"
#include "tarn/sim.h"
#include "tarn/whole.h"

enum { MOST_RANKS = 8 };

// Pools have all of their books after so many blocks.
enum { WARM_UP = 3 };

static const size_t KIT_KIB = 1024;
static const size_t KIT_MIB = (size_t)1 << 20;

// --- ranks -----------------------------------------------------------------

// What a rank is; set in each before its work begins, and in each thread that
// it starts.
static _Thread_local struct {
  tarn_comm *comm;
  size_t rank;
  size_t ranks;
  const char *text;  // what is tested, for messages
} my;

// In a rank, which has no part in Check: the first thing that does not hold
// ends it.
#define MUST(condition)                                                     \
  do {                                                                      \
    if (!(condition)) {                                                     \
      fprintf(stderr, "%s:%d: rank %zu of %zu, %s: not %s: %s\n", __FILE__, \
              __LINE__, my.rank, my.ranks, my.text, #condition,             \
              tarn_last_error());                                           \
      _exit(1);                                                             \
    }                                                                       \
  } while (0)

#define MUST_BE(expression, expected)                                      \
  do {                                                                     \
    tarn_status must_be_got = (expression);                                \
    if (must_be_got != (expected)) {                                       \
      fprintf(stderr, "%s:%d: rank %zu of %zu, %s: %s: %s, not %s: %s\n",  \
              __FILE__, __LINE__, my.rank, my.ranks, my.text, #expression, \
              tarn_status_name(must_be_got), tarn_status_name(expected),   \
              tarn_last_error());                                          \
      _exit(1);                                                            \
    }                                                                      \
  } while (0)

#define MUST_SAY(part) MUST(strstr(tarn_last_error(), (part)) != NULL)

typedef struct rank_work {
  void (*function)(void);
} rank_work;

// It ends here: what pools and devices keep warm is no leak.
static inline void be_rank(tarn_comm *comm, void *context) {
  const rank_work *work = context;
  my.comm = comm;
  my.rank = tarn_comm_rank(comm);
  my.ranks = tarn_comm_size(comm);
  work->function();
  MUST_BE(tarn_comm_destroy(my.comm), TARN_OK);
  _exit(0);
}

// Runs |function| in |ranks| processes; each must come to its end.
static inline void run_ranks(size_t ranks, const char *text,
                             void (*function)(void)) {
  rank_work work = {.function = function};
  my.text = text;
  ranks_run(&(ranks_plan){.size = ranks, .body = be_rank, .context = &work});
}

// Tests that run |function| in |ranks| processes: once, for each _i below
// |end|, and for each ground.
#define WHOLE_TEST(name, ranks, text, function) \
  WHOLE_LOOP(name, 1, ranks, text, function)
#define WHOLE_LOOP(name, end, ranks, text, function) \
  TEST_LOOP(name, end) {                             \
    run_ranks(ranks, text, function);                \
  }
#define GROUND_TEST(name, ranks, function)   \
  TEST_LOOP(name, GROUNDS) {                 \
    where = ground_at(_i);                   \
    note_mapped(#name);                      \
    run_ranks(ranks, where->text, function); \
  }
// The same of the mapped types alone.
#define MAPPED_TEST(name, ranks, function)   \
  TEST_LOOP(name, GROUNDS) {                 \
    where = ground_at(_i);                   \
    if (note_mapped(#name)) return;          \
    run_ranks(ranks, where->text, function); \
  }

static inline void meet_all(void) {
  MUST_BE(tarn_comm_barrier(my.comm), TARN_OK);
}

// Tells all ranks what rank |root| has to say.
static inline size_t tell(size_t root, size_t value) {
  MUST_BE(tarn_comm_broadcast(my.comm, root, &value, sizeof value), TARN_OK);
  return value;
}

static inline void must_be_the_same_everywhere(tarn_status status) {
  tarn_status all[MOST_RANKS];
  MUST_BE(tarn_comm_allgather(my.comm, &status, sizeof status, all), TARN_OK);
  for (size_t r = 0; r < my.ranks; r++)
    MUST(all[r] == status);
}

// --- grounds ---------------------------------------------------------------

// What wholes can be on.
typedef struct ground {
  const char *device;  // "cpu", "sim", "real"; NULL: none
  tarn_place_kind kind;
  const char *text;
} ground;

static const ground usual_grounds[] = {
    {"cpu", TARN_PLACE_DEVICE, "cpu"}, {"cpu", TARN_PLACE_HOST, "host for cpu"},
    {"sim", TARN_PLACE_DEVICE, "sim"}, {"sim", TARN_PLACE_HOST, "host for sim"},
    {NULL, TARN_PLACE_HOST, "host"},
};

// In a run on a real device (driver.h).
static const ground real_grounds[] = {
    {"real", TARN_PLACE_DEVICE, "a real device"},
    {"real", TARN_PLACE_HOST, "host for a real device"},
};

static const tarn_whole_type all_types[] = {
    TARN_WHOLE_CONTINUOUS, TARN_WHOLE_CHUNKED, TARN_WHOLE_DISTRIBUTED};
enum {
  USUAL_GROUNDS = sizeof usual_grounds / sizeof usual_grounds[0],
  REAL_GROUNDS = sizeof real_grounds / sizeof real_grounds[0],
  MAPPED_TYPES = 2,
  ALL_TYPES = 3
};

static inline bool is_on_driver(void) {
  return driver_wanted() != NULL;
}

static inline int ground_count(void) {
  test_is_on_devices();
  return is_on_driver() ? REAL_GROUNDS : USUAL_GROUNDS;
}

static inline const ground *ground_at(int i) {
  return is_on_driver() ? &real_grounds[i] : &usual_grounds[i];
}

// OpenCL has neither ranges nor handles, and registers no host memory: there
// the mapped types cannot be had.
static inline bool lacks_mapped(void) {
  return is_on_driver() && strncmp(driver_wanted(), "opencl:", 7) == 0;
}

static inline int type_count(void) {
  return lacks_mapped() ? ALL_TYPES - MAPPED_TYPES : ALL_TYPES;
}

static inline tarn_whole_type type_at(size_t i) {
  return all_types[lacks_mapped() ? MAPPED_TYPES : i];
}

#define GROUNDS (ground_count())
#define TYPES ((size_t)type_count())

// |count| cases, each of which is on all grounds.
#define ON_GROUNDS(count) (test_is_on_devices(), (count))

// Whether the mapped types are left out of the test |name|: then this is said.
static inline bool note_mapped(const char *name) {
  char what[128];
  if (!lacks_mapped()) return false;
  snprintf(what, sizeof what, "%s, mapped types on %s", name, driver_wanted());
  note_skipped(what, "no ranges, no handles, no registered host memory");
  return true;
}

// All ranks have the same device, each in a process of its own.
static inline tarn_place open_real(tarn_place_kind kind) {
  tarn_place place = {.device = NULL, .kind = kind};
  driver_add(driver_wanted());
  MUST_BE(tarn_device_open(driver_wanted(), &place.device), TARN_OK);
  return place;
}

// Whether |place| has memory. That of a real device may have no unified kind.
static inline bool has_memory(tarn_place place) {
  tarn_addr address = 0;
  if (place.device == NULL) return true;
  tarn_status status = tarn_device_allocate(place, 1, &address);
  if (status == TARN_E_UNSUPPORTED) return false;
  MUST_BE(status, TARN_OK);
  MUST_BE(tarn_device_deallocate(place, address, 1), TARN_OK);
  return true;
}

// The place of this rank on |on|: a simulated device is a rank's own.
static inline tarn_place open_ground(const ground *on) {
  tarn_place place = {.device = NULL, .kind = on->kind};
  char name[32];
  if (on->device == NULL) return place;
  if (strcmp(on->device, "real") == 0) return open_real(on->kind);
  bool sim = strcmp(on->device, "sim") == 0;
  snprintf(name, sizeof name, "%s:%zu", on->device, sim ? my.rank : 0);
  if (sim) {
    tarn_sim_options options = {.struct_size = sizeof options,
                                .devices = my.ranks,
                                .capacity = 256 * KIT_MIB};
    MUST_BE(tarn_sim_configure(&options), TARN_OK);
  }
  MUST_BE(tarn_device_open(name, &place.device), TARN_OK);
  return place;
}

static inline void close_ground(tarn_place place) {
  if (place.device == NULL) return;
  MUST_BE(tarn_device_close(place.device), TARN_OK);
}

// --- bytes -----------------------------------------------------------------

static inline void *host_bytes(tarn_addr address) {
  return (void *)(uintptr_t)address;
}

static inline void peek(tarn_place place, tarn_addr address, void *out,
                        size_t size) {
  if (size == 0) return;
  if (place.kind == TARN_PLACE_HOST) {
    memcpy(out, host_bytes(address), size);
  } else {
    MUST_BE(tarn_copy_d2h(place.device, out, address, size, NULL), TARN_OK);
  }
}

static inline void poke(tarn_place place, tarn_addr address, const void *bytes,
                        size_t size) {
  if (size == 0) return;
  if (place.kind == TARN_PLACE_HOST) {
    memcpy(host_bytes(address), bytes, size);
  } else {
    MUST_BE(tarn_copy_h2d(place.device, address, bytes, size, NULL), TARN_OK);
  }
}

// --- nothing is left -------------------------------------------------------

typedef struct belongings {
  size_t descriptors;
  size_t mappings;  // of files in memory that are the library's
  size_t host_bytes;
  size_t device_free;
  size_t pool_live;
} belongings;

static inline size_t count_file_mappings(void) {
  char line[512];
  size_t count = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  MUST(maps != NULL);
  while (fgets(line, sizeof line, maps) != NULL)
    if (strstr(line, "/memfd:tarn-") != NULL) count++;
  fclose(maps);
  return count;
}

static inline belongings look_around(tarn_place place) {
  belongings seen = {.descriptors = ranks_descriptors(),
                     .mappings = count_file_mappings(),
                     .host_bytes = tarn_host_memory()};
  size_t total = 0;
  tarn_pool *pool = NULL;
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  bool sim = place.device != NULL &&
             strncmp(tarn_device_name(place.device), "sim", 3) == 0;
  MUST_BE(tarn_pool_of(place, &pool), TARN_OK);
  MUST_BE(tarn_pool_trim(pool, 0), TARN_OK);
  MUST_BE(tarn_pool_query(pool, &stats), TARN_OK);
  seen.pool_live =
      stats.live_bytes + stats.reserved_bytes + stats.charged_bytes;
  if (sim) {
    MUST_BE(tarn_device_memory(place.device, &total, &seen.device_free),
            TARN_OK);
  }
  return seen;
}

// |place| is as it was.
static inline void see_nothing_left(tarn_place place, belongings before) {
  belongings now = look_around(place);
  MUST(now.descriptors == before.descriptors);
  MUST(now.mappings == before.mappings);
  MUST(now.device_free == before.device_free);
  MUST(now.pool_live == before.pool_live);
  MUST(now.host_bytes == before.host_bytes);
}

// Makes and ends one of each type, until pools have all of their books. All
// ranks.
static inline void warm_up(tarn_place place) {
  for (size_t i = 0; i < WARM_UP * TYPES; i++) {
    tarn_whole_options options = {.struct_size = sizeof options,
                                  .type = type_at(i % TYPES),
                                  .place = place,
                                  .size = 10000};
    tarn_whole *whole = NULL;
    MUST_BE(tarn_whole_create(my.comm, &options, &whole), TARN_OK);
    MUST_BE(tarn_whole_destroy(whole), TARN_OK);
    (void)look_around(place);
  }
}

// The same, and the books stay as they are whatever fails from now on: those of
// pools that learn grow and shrink.
static inline void warm_up_plainly(tarn_place place) {
  MUST_BE(use_strategy(place, "no_pool"), TARN_OK);
  warm_up(place);
}

#endif  // TARN_TESTS_WHOLE_KIT_H_
