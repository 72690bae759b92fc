// Lanes and many threads: blocks that change hands, racing frees, threads that
// come and go, strategies that change under them, and a limit.
#include "lanes_kit.h"
#include "market.h"

#include "support/effort.h"
#include "tarn/account.h"

enum { WORKERS = 4, ROUNDS = 20000, MANY = 300 };

static tarn_pool *pool;
static size_t most;  // bytes of a block
static atomic_int full;
static tarn_other other;  // keeps the test's thread from being left alone

// --- blocks that change hands -----------------------------------------------

// Marks both ends: two blocks that share a byte are found.
static item make(uint64_t *state) {
  item made = {.mark = (unsigned char)next_random(state)};
  size_t size = next_random(state) % most + 1;
  tarn_status status = tarn_pool_alloc(pool, size, 0, NULL, &made.block);
  expect(status == TARN_OK || status == TARN_FULL);
  if (status != TARN_OK) {
    atomic_fetch_add(&full, 1);
    return made;
  }
  unsigned char *bytes = made.block.pointer;
  expect(made.block.size >= size);
  bytes[0] = bytes[made.block.size - 1] = (unsigned char)made.mark;
  return made;
}

static void end(item i, bool by_address) {
  if (i.block.pool == NULL) return;
  const unsigned char *bytes = i.block.pointer;
  expect(bytes[0] == (unsigned char)i.mark);
  expect(bytes[i.block.size - 1] == (unsigned char)i.mark);
  tarn_status status = by_address
                           ? tarn_pool_free_address(pool, i.block.address, NULL)
                           : tarn_pool_free(&i.block, NULL);
  expect(status == TARN_OK);
}

static void *trade(void *number) {
  uint64_t state = (uintptr_t)number * 0x9e3779b97f4a7c15u;
  for (int i = 0; i < ROUNDS; i++) {
    bool by_address = next_random(&state) % 4 == 0;
    end(exchange(next_random(&state) % MARKET_SLOTS, make(&state)), by_address);
  }
  return NULL;
}

static void empty_market(void) {
  for (int i = 0; i < MARKET_SLOTS; i++)
    end(exchange((size_t)i, (item){.mark = 0}), false);
}

static void begin(size_t largest, size_t limit) {
  pool = own_pool_with(TARN_HOST, "arena_pool", limit, 0);
  most = largest;
  atomic_store(&full, 0);
  other_begin(&other);
  begin_lanes(pool, &other);
}

// Nothing is lost, and nothing counted twice.
static void end_pool(void) {
  empty_market();
  ck_assert_uint_eq(pool->lanes.owned, 2);  // those of other threads ended
  other_ends(&other);
  assert_as_expected();
  assert_ok(tarn__front_check(pool));
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
  ck_assert_uint_eq(stats_of(pool).live_bytes, 0);
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
}

TEST_LOOP(blocks_change_hands, 3) {
  static const size_t sizes[] = {4000, (size_t)100 * KIB, (size_t)3 * MIB};
  begin(sizes[_i], 0);
  run_threads(trade, WORKERS);
  end_pool();
}

TEST(a_limit_is_never_exceeded) {
  size_t limit = (size_t)8 * MIB;
  begin((size_t)500 * KIB, limit);
  run_threads(trade, WORKERS);
  ck_assert_int_gt(atomic_load(&full), 0);
  ck_assert_uint_le(stats_of(pool).reserved_peak_bytes, limit);
  end_pool();
}

// --- others look, trim and switch -------------------------------------------

static atomic_bool trading;

static void *disturb(void *unused) {
  static const char *const strategies[] = {"arena_pool", "page_unit_pool",
                                           "arena_pool:page=4M"};
  (void)unused;
  for (unsigned i = 0; atomic_load(&trading); i++) {
    tarn_pool_stats stats = {.struct_size = sizeof stats};
    expect(tarn_pool_query(pool, &stats) == TARN_OK);
    expect(stats.live_bytes <= stats.reserved_bytes);
    expect(stats.live_bytes <= stats.live_peak_bytes);
    expect(stats.allocs - stats.frees == stats.live_blocks);
    if (i % 32 == 8) {
      expect(tarn_pool_set_strategy(pool, strategies[i / 32 % 3]) == TARN_OK);
    }
    if (i % 32 == 16) expect(tarn_pool_trim(pool, 0) == TARN_OK);
    if (i % 32 == 24) {
      uint32_t events = i % 64 == 24 ? TARN_COUNT_EVENTS : 0;
      expect(tarn_pool_account(pool, TARN_COUNT_DEFAULT | events) == TARN_OK);
    }
    sched_yield();
  }
  return NULL;
}

TEST(lanes_are_closed_at_any_time) {
  begin((size_t)60 * KIB, 0);
  atomic_store(&trading, true);
  pthread_t disturber = start_thread(disturb, NULL);
  run_threads(trade, WORKERS);
  atomic_store(&trading, false);
  pthread_join(disturber, NULL);
  end_pool();
}

// --- threads that come and go -----------------------------------------------

static void *trade_a_little(void *number) {
  uint64_t state = (uintptr_t)number * 0x9e3779b97f4a7c15u;
  for (int i = 0; i < 200; i++)
    end(exchange(next_random(&state) % MARKET_SLOTS, make(&state)), false);
  return NULL;
}

static void *come_and_go(void *number) {
  for (int i = 0; i < 20; i++) {
    pthread_t thread = start_thread(trade_a_little, number);
    pthread_join(thread, NULL);
  }
  return NULL;
}

TEST(threads_come_and_go) {
  begin((size_t)60 * KIB, 0);
  run_threads(come_and_go, WORKERS);
  end_pool();
}

static pthread_barrier_t all_have_traded;

static void *trade_and_stay(void *number) {
  trade_a_little(number);
  pthread_barrier_wait(&all_have_traded);
  return NULL;
}

// More threads than there can be lanes.
TEST(the_other_threads_use_the_lock) {
  begin((size_t)20 * KIB, 0);
  pthread_barrier_init(&all_have_traded, NULL, MANY);
  pthread_t threads[MANY];
  for (uintptr_t i = 0; i < MANY; i++)
    threads[i] = start_thread(trade_and_stay, (void *)(i + 1));
  for (int i = 0; i < MANY; i++)
    pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&all_have_traded);
  ck_assert_uint_eq(pool->lanes.count, TARN__LANES_MOST);
  end_pool();
}

// --- one block, two frees ---------------------------------------------------

static tarn_block contested;
static pthread_barrier_t both_are_ready;
static atomic_int freed;

static void count_free(tarn_status status) {
  expect(status == TARN_OK || status == TARN_E_INVALID);
  if (status == TARN_OK) atomic_fetch_add(&freed, 1);
}

static void *free_contested(void *number) {
  uint64_t state = (uintptr_t)number * 0x9e3779b97f4a7c15u;
  for (int i = 0; i < 2000; i++) {
    if (number == (void *)1) {
      expect(tarn_pool_alloc(pool, 3000, 0, NULL, &contested) == TARN_OK);
    }
    pthread_barrier_wait(&both_are_ready);
    count_free(tarn_pool_free(&contested, NULL));
    pthread_barrier_wait(&both_are_ready);
    end(make(&state), false);
  }
  return NULL;
}

TEST(of_two_frees_at_once_one_is_refused) {
  begin(3000, 0);
  atomic_store(&freed, 0);
  pthread_barrier_init(&both_are_ready, NULL, 2);
  run_threads(free_contested, 2);
  pthread_barrier_destroy(&both_are_ready);
  ck_assert_int_eq(atomic_load(&freed), 2000);
  end_pool();
}

// --- calls for what others have ---------------------------------------------

enum { SHARED = 4 };  // slots of the market

static atomic_int taken;

// TARN_E_STATE: another thread resizes the block, and is soon done.
static void free_any(const tarn_block *block, bool by_address) {
  tarn_status status = TARN_E_STATE;
  while (status == TARN_E_STATE) {
    status = by_address ? tarn_pool_free_address(pool, block->address, NULL)
                        : tarn_pool_free(block, NULL);
  }
  count_free(status);
}

static void resize_any(tarn_block block) {
  tarn_status status = tarn_pool_resize(&block, block.size / 2 + 1, NULL);
  expect(status == TARN_OK || status == TARN_FULL || status == TARN_E_INVALID ||
         status == TARN_E_STATE);
}

static void find_any(const tarn_block *block) {
  tarn_block found;
  tarn_status status =
      tarn_pool_block_of(pool, block->address + 1, &found, NULL);
  expect(status == TARN_OK || status == TARN_E_INVALID);
}

// The block may have been freed, its memory be another block's by now, or at
// the device again.
static void call_wrongly(const tarn_block *block, uint64_t random) {
  switch (random % 8) {
    case 0:
      resize_any(*block);
      break;
    case 1:
      find_any(block);
      break;
    default:
      free_any(block, random % 8 < 5);
  }
}

// Leaves a copy of its block to others, and frees it as they do. None of them
// touches the bytes.
static void *share_blocks(void *number) {
  uint64_t state = (uintptr_t)number * 0x9e3779b97f4a7c15u;
  for (int i = 0; i < EFFORT(ROUNDS, ROUNDS / 4); i++) {
    uint64_t random = next_random(&state);
    item mine = {.mark = random};
    size_t size = random % most + 1;
    if (tarn_pool_alloc(pool, size, 0, NULL, &mine.block) != TARN_OK) continue;
    atomic_fetch_add(&taken, 1);
    item theirs = exchange(random % SHARED, mine);
    if (theirs.block.pool != NULL) call_wrongly(&theirs.block, random >> 8);
    free_any(&mine.block, random >> 16 & 1);
  }
  return NULL;
}

// By mistake at any time, also for what another thread is just being given.
// Who frees a block first frees it, and the others are told.
TEST_LOOP(wrong_calls_pass_blocks_that_come_and_go, 2) {
  static const size_t sizes[] = {4000, (size_t)100 * KIB};
  begin(sizes[_i], 0);
  atomic_store(&taken, 0);
  atomic_store(&freed, 0);
  atomic_store(&trading, true);
  pthread_t disturber = start_thread(disturb, NULL);
  run_threads(share_blocks, WORKERS);
  atomic_store(&trading, false);
  pthread_join(disturber, NULL);
  for (size_t i = 0; i < SHARED; i++)
    (void)exchange(i, (item){.mark = 0});
  ck_assert_int_eq(atomic_load(&freed), atomic_load(&taken));
  end_pool();
}
