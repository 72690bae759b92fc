// Random operations on pools of every strategy that cuts memory up or hands it
// on, on the host and on a simulated device: blocks never overlap, keep what
// was written, are aligned; statistics agree with a list of what is out; and
// the pool's own walk of its invariants finds nothing wrong, at intervals.
#include <stdio.h>

#include "kit.h"
#include "support/effort.h"
#include "support/strategy.h"
#include "support/threads.h"
#include "tarn/strategy.h"

enum {
  OPERATIONS = EFFORT(250000, 50000),
  WALK_EVERY = 2000,
  BLOCKS = 300,
  STREAMS = 4,
};

typedef struct item {
  tarn_block block;
  size_t asked;
  unsigned char mark;
} item;

static struct {
  uint64_t state;
  long operation;
  long operations;
  tarn_device *device;
  tarn_place place;
  tarn_pool *pool;
  tarn_stream *streams[STREAMS];  // the first is the host
  item items[BLOCKS];             // by rising address
  size_t count;
  size_t live_bytes;
  uint64_t allocs;
  uint64_t refused;
  size_t limit;
  tarn_block stale;
  const char *const *strategies;
  size_t strategy_count;
} run;

#define MUST(condition)                                                    \
  do {                                                                     \
    if (!(condition)) {                                                    \
      ck_abort_msg("operation %ld: not %s; last error: %s", run.operation, \
                   #condition, tarn_last_error());                         \
    }                                                                      \
  } while (0)

static size_t below(size_t limit) {
  return next_random(&run.state) % limit;
}

// --- what was written ------------------------------------------------------

enum { ENDS = 48 };

static void copy_in(tarn_addr address, unsigned char mark, size_t size) {
  unsigned char bytes[ENDS];
  memset(bytes, mark, size);
  MUST(tarn_copy_h2d(run.device, address, bytes, size, NULL) == TARN_OK);
}

static void check_bytes(tarn_addr address, unsigned char mark, size_t size) {
  unsigned char bytes[ENDS];
  MUST(tarn_copy_d2h(run.device, bytes, address, size, NULL) == TARN_OK);
  for (size_t i = 0; i < size; i++)
    MUST(bytes[i] == mark);
}

static size_t end_of(const item *i) {
  return i->block.size < ENDS ? i->block.size : ENDS;
}

static void write_marks(const item *i) {
  size_t end = end_of(i);
  copy_in(i->block.address, i->mark, end);
  copy_in(i->block.address + i->block.size - end, i->mark, end);
}

static void check_marks(const item *i) {
  size_t end = end_of(i);
  check_bytes(i->block.address, i->mark, end);
  check_bytes(i->block.address + i->block.size - end, i->mark, end);
}

// --- operations ------------------------------------------------------------

static void insert(item new) {
  size_t at = run.count;
  while (at > 0 && run.items[at - 1].block.address > new.block.address)
    at--;
  const item *before = at > 0 ? &run.items[at - 1] : NULL;
  const item *behind = at < run.count ? &run.items[at] : NULL;
  MUST(before == NULL ||
       before->block.address + before->block.size <= new.block.address);
  MUST(behind == NULL ||
       new.block.address + new.block.size <= behind->block.address);
  memmove(&run.items[at + 1], &run.items[at],
          (run.count - at) * sizeof run.items[0]);
  run.items[at] = new;
  run.count++;
}

static size_t random_size(void) {
  switch (below(16)) {
    case 0:
      return below(3 * MIB) + 1;
    case 1:
    case 2:
      return below(200000) + 1;
    default:
      return below(64) * below(130) + 1;
  }
}

static void try_take(void) {
  item new = {.asked = random_size(), .mark = (unsigned char)run.operation};
  size_t align = below(6) == 0 ? (size_t)1 << below(17) : 0;
  if (run.count == BLOCKS) return;
  tarn_stream *stream = run.streams[below(STREAMS)];
  tarn_status status =
      tarn_pool_alloc(run.pool, new.asked, align, stream, &new.block);
  if (status != TARN_OK) {
    MUST(status == TARN_FULL && run.limit != 0 && new.block.pool == NULL);
    run.refused++;
    return;
  }
  MUST(new.block.size >= new.asked);
  MUST(align == 0 || new.block.address % align == 0);
  insert(new);
  // The copies are the host's: what comes with the memory may be queued.
  if (stream != NULL) MUST(tarn_stream_synchronize(stream) == TARN_OK);
  write_marks(&new);
  run.live_bytes += new.asked;
  run.allocs++;
}

static void give_one(size_t at) {
  item old = run.items[at];
  tarn_stream *stream = run.streams[below(STREAMS)];
  check_marks(&old);
  run.count--;
  memmove(&run.items[at], &run.items[at + 1],
          (run.count - at) * sizeof run.items[0]);
  run.live_bytes -= old.asked;
  tarn_status status = below(3) == 0 ? tarn_pool_free_address(
                                           run.pool, old.block.address, stream)
                                     : tarn_pool_free(&old.block, stream);
  MUST(status == TARN_OK);
  run.stale = old.block;
}

static void misuse(void) {
  if (run.stale.pool == NULL) return;
  MUST(tarn_pool_free(&run.stale, NULL) == TARN_E_INVALID);
  if (run.count == 0) return;
  const item *i = &run.items[below(run.count)];
  if (i->block.size < 2) return;
  MUST(tarn_pool_free_address(run.pool, i->block.address + 1, NULL) ==
       TARN_E_INVALID);
}

static void renew_stream(void) {
  size_t which = 1 + below(STREAMS - 1);
  MUST(tarn_stream_destroy(run.streams[which]) == TARN_OK);
  MUST(tarn_stream_create(run.device, &run.streams[which]) == TARN_OK);
}

static void set_limit(void) {
  run.limit = below(3) == 0 ? below(8 * MIB) + 1 : 0;
  MUST(tarn_pool_limit(run.pool, run.limit) == TARN_OK);
}

static void random_rare(void) {
  switch (below(5)) {
    case 0:
      MUST(tarn_pool_trim(run.pool, 0) == TARN_OK);
      break;
    case 1:
      MUST(use_strategy(run.place, run.strategies[below(run.strategy_count)]) ==
           TARN_OK);
      break;
    case 2:
      renew_stream();
      break;
    case 3:
      set_limit();
      break;
    default:
      misuse();
  }
}

static void walk(void) {
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  MUST(tarn__front_check(run.pool) == TARN_OK);
  MUST(tarn_pool_query(run.pool, &stats) == TARN_OK);
  MUST(stats.live_blocks == run.count);
  MUST(stats.live_bytes == run.live_bytes);
  MUST(stats.allocs == run.allocs);
  MUST(stats.failures == run.refused);
  MUST(stats.hits <= run.allocs && run.allocs <= stats.hits + stats.misses);
  for (size_t i = 0; i < run.count; i++)
    check_marks(&run.items[i]);
}

static void operate(void) {
  size_t choice = below(1000);
  // Now many are out, now few.
  size_t takes = run.operation / 3000 % 2 == 0 ? 560 : 430;
  if (choice < takes) {
    try_take();
  } else if (choice < 997) {
    if (run.count > 0) give_one(below(run.count));
  } else {
    random_rare();
  }
}

// --- runs ------------------------------------------------------------------

static void open_run(int device, uint64_t seed) {
  memset(&run, 0, sizeof run);
  run.state = seed * 0x9e3779b97f4a7c15u;
  run.device = open_device(test_devices[device]);
  run.operations = (long)effort_on(device, OPERATIONS);
  run.place = tarn_place_on(run.device);
  for (int i = 1; i < STREAMS; i++)
    assert_ok(tarn_stream_create(run.device, &run.streams[i]));
}

static void close_run(void) {
  walk();
  while (run.count > 0)
    give_one(run.count - 1);
  walk();
  for (int i = 1; i < STREAMS; i++)
    assert_ok(tarn_stream_destroy(run.streams[i]));
  assert_ok(tarn_pool_trim(run.pool, 0));
  ck_assert_uint_eq(stats_of(run.pool).reserved_bytes, 0);
  ck_assert(tarn_list_empty(&run.pool->replaced));
  ck_assert_uint_gt(run.allocs, (size_t)run.operations / 4);
  ck_assert(run.refused > 0 || run.operations < OPERATIONS);
}

static void run_on(int device, uint64_t seed, const char *const *strategies,
                   size_t count) {
  open_run(device, seed);
  run.strategies = strategies;
  run.strategy_count = count;
  assert_ok(use_strategy(run.place, strategies[0]));
  run.pool = pool_at(run.place);
  for (run.operation = 1; run.operation <= run.operations; run.operation++) {
    operate();
    if (run.operation % WALK_EVERY == 0) walk();
  }
  close_run();
}

static const char *const buddies[] = {
    "buddy_pool:init=8M,realloc=4M",
    "buddy_pool:init=1M,realloc=256K,max=2M",
    "buddy_pool:min=4K,init=3M,realloc=5M,padding=100",
};

static const char *const all[] = {
    "buddy_pool:init=8M,realloc=2M",
    "power_pool",
    "async_pool",
    "page_unit_pool",
    "power_pool:least=4K",
    "no_pool",
};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

TEST_LOOP(buddies_alone, TEST_DEVICES) {
  run_on(_i, (uint64_t)_i + 1, buddies, COUNT_OF(buddies));
}

TEST_LOOP(all_in_turn, TEST_DEVICES) {
  assert_ok(tarn_pool_register(TarnPoolStrategy()));
  run_on(_i, (uint64_t)_i + 20, all, COUNT_OF(all));
}
