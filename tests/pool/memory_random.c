// Pools over memory of the caller's, by chance: at any address and of any size,
// no byte outside of it is given out, none twice, and none is touched.
#include <pthread.h>

#include "kit.h"
#include "support/effort.h"
#include "support/threads.h"
#include "tarn/strategy.h"

static const char *const strategies[] = {
    "arena_pool",
    "page_unit_pool",
    "page_unit_pool:page=64",
    "buddy_pool",
    "buddy_pool:min=256,max=0,init=4096,realloc=0,padding=64",
    "power_pool",
};
enum { STRATEGIES = sizeof strategies / sizeof *strategies };

enum { SLAB = 512 * KIB, BLOCKS = 60, OPERATIONS = EFFORT(6000, 1500) };

static unsigned char slab[SLAB];
static unsigned char owners[SLAB];  // 0: no owner
static uint64_t state;

static size_t random_below(size_t limit) {
  return next_random(&state) % limit;
}

static size_t random_size(size_t most) {
  static const size_t limits[] = {100, 5000, 70000};
  size_t size = 1 + random_below(limits[random_below(3)]);
  return random_below(50) == 0 ? 1 + random_below(most) : size;
}

// The part of the slab that the pool has.
typedef struct part {
  size_t from;
  size_t size;
} part;

// |owner| has all bytes of the block, of which |before| had each.
static void hand_over(const part *p, tarn_block block, int before, int owner) {
  tarn_addr start = tarn_addr_of(slab) + p->from;
  require(block.address >= start && block.size <= p->size);
  require(block.address - start <= p->size - block.size);
  size_t at = (size_t)(block.address - tarn_addr_of(slab));
  for (size_t i = 0; i < block.size; i++) {
    require(owners[at + i] == before);
    owners[at + i] = (unsigned char)owner;
  }
}

static void play(tarn_pool *pool, const part *p) {
  tarn_block blocks[BLOCKS] = {0};
  for (int i = 0; i < OPERATIONS; i++) {
    size_t at = random_below(BLOCKS);
    int owner = (int)at + 1;
    tarn_block *block = &blocks[at];
    if (block->pool != NULL) {
      hand_over(p, *block, owner, 0);
      give(*block);
      block->pool = NULL;
    } else {
      size_t align = random_below(4) == 0 ? (size_t)1 << random_below(15) : 0;
      size_t size = random_size(p->size);
      tarn_status status = tarn_pool_alloc(pool, size, align, NULL, block);
      require(status == TARN_OK || status == TARN_FULL);
      if (status != TARN_OK) continue;
      require(block->size >= size);
      require(align == 0 || block->address % align == 0);
      hand_over(p, *block, 0, owner);
    }
    if (i % 500 == 0) assert_ok(tarn__front_check(pool));
    if (i % 900 == 0) assert_ok(tarn_pool_trim(pool, 0));
  }
  for (size_t i = 0; i < BLOCKS; i++) {
    if (blocks[i].pool == NULL) continue;
    hand_over(p, blocks[i], (int)i + 1, 0);
    give(blocks[i]);
  }
}

static void play_with(const char *strategy) {
  part p = {.from = random_below(5000)};
  p.size = SLAB - p.from - random_below(5000);
  tarn_pool_options options = {.struct_size = sizeof options,
                               .strategy = strategy,
                               .memory = {tarn_addr_of(slab + p.from), p.size}};
  tarn_pool *pool = NULL;
  assert_ok(tarn_pool_create(TARN_HOST, &options, &pool));
  play(pool, &p);
  assert_ok(tarn__front_check(pool));
  tarn_pool_stats stats = stats_of(pool);
  ck_assert_uint_eq(stats.reserved_bytes, p.size);
  ck_assert_uint_eq(stats.device_allocs + stats.device_frees, 0);
  assert_ok(tarn_pool_destroy(pool));
  for (size_t i = 0; i < SLAB; i++)
    require(slab[i] == 0);
}

TEST_LOOP(no_byte_is_given_out_twice_nor_one_outside,
          THREADS_ARE_WATCHED ? 0 : STRATEGIES) {
  for (uint64_t seed = 1; seed <= EFFORT(20, 4); seed++) {
    state = seed * 0x9e3779b97f4a7c15u + (uint64_t)_i;
    play_with(strategies[_i]);
  }
}

// --- sizes -----------------------------------------------------------------

// However little it is: a pool has room for one block, or is not made.
TEST_LOOP(little_memory_is_enough_or_refused,
          THREADS_ARE_WATCHED ? 0 : STRATEGIES) {
  for (size_t size = 1; size < 9000; size += 1 + size / 16) {
    for (size_t from = 0; from < 70; from += 23) {
      part p = {from, size};
      tarn_pool_options options = {.struct_size = sizeof options,
                                   .strategy = strategies[_i],
                                   .memory = {tarn_addr_of(slab + from), size}};
      tarn_pool *pool = NULL;
      tarn_status status = tarn_pool_create(TARN_HOST, &options, &pool);
      require(status == TARN_OK || status == TARN_E_INVALID);
      if (status != TARN_OK) continue;
      tarn_block block = take(pool, 1);
      hand_over(&p, block, 0, 1);
      hand_over(&p, block, 1, 0);
      give(block);
      assert_ok(tarn__front_check(pool));
      assert_ok(tarn_pool_destroy(pool));
    }
  }
}

// --- threads ---------------------------------------------------------------

enum { THREADS = 3, ROUNDS = EFFORT(3000, 500) };

static void *worker(void *context) {
  tarn_pool *pool = context;
  for (int i = 0; i < ROUNDS; i++) {
    tarn_block blocks[4];
    for (size_t j = 0; j < 4; j++) {
      require(tarn_pool_alloc(pool, 1 + j * 5000, 0, NULL, &blocks[j]) ==
              TARN_OK);
      memset(blocks[j].pointer, i, blocks[j].size);
    }
    for (size_t j = 0; j < 4; j++)
      require(tarn_pool_free(&blocks[j], NULL) == TARN_OK);
  }
  return NULL;
}

// There is room for the blocks of all threads, so no request may be refused,
// not even the first.
TEST_LOOP(threads_share_it, STRATEGIES) {
  tarn_pool_options options = {.struct_size = sizeof options,
                               .strategy = strategies[_i],
                               .memory = {tarn_addr_of(slab), SLAB}};
  tarn_pool *pool = NULL;
  assert_ok(tarn_pool_create(TARN_HOST, &options, &pool));
  run_threads_on(worker, THREADS, pool);
  assert_ok(tarn__front_check(pool));
  assert_ok(tarn_pool_destroy(pool));
}

int main(void) {
  if (tarn_pool_register(TarnPoolStrategy()) != TARN_OK) return 1;
  return run_tests();
}
