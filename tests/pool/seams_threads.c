// Threads around a step that is played: one steps, with bytes of its own in
// each block; the others trim, switch counters, put blocks to sleep, resize,
// and take blocks beside it.
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "arena_kit.h"
#include "support/tagged.h"
#include "support/threads.h"

enum { BLOCKS = 40, ROUNDS = 6000, OTHERS = 2 };

static tarn_pool *pool;
static tarn_tag tag;
static atomic_bool over;

static size_t size_of(size_t i) {
  return (i % 7 + 1) * 6000 + i;
}

static void fill(tarn_block block, size_t size, unsigned char mark) {
  unsigned char *bytes = (unsigned char *)(uintptr_t)block.address;
  bytes[0] = bytes[size / 2] = bytes[size - 1] = mark;
}

static bool has(tarn_block block, size_t size, unsigned char mark) {
  const unsigned char *bytes = (const unsigned char *)(uintptr_t)block.address;
  return bytes[0] == mark && bytes[size / 2] == mark && bytes[size - 1] == mark;
}

static void play_step(size_t round) {
  tarn_block out[BLOCKS];
  for (size_t i = 0; i < BLOCKS; i++) {
    expect(tarn_pool_alloc(pool, size_of(i), 0, NULL, &out[i]) == TARN_OK);
    fill(out[i], size_of(i), (unsigned char)(round + i));
  }
  for (size_t i = BLOCKS; i-- > 0;) {
    expect(has(out[i], size_of(i), (unsigned char)(round + i)));
    tarn_status status =
        i % 2 ? tarn_pool_free(&out[i], NULL)
              : tarn_pool_free_address(pool, out[i].address, NULL);
    expect(status == TARN_OK);
  }
}

static void disturb(size_t what, size_t round) {
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  tarn_block block;
  size_t size = 500 + what * 977 % 9000;
  switch (what % 11) {
    case 0:
      expect(tarn_pool_trim(pool, 0) == TARN_OK);
      break;
    case 1:
      expect(tarn_pool_account(pool, round % 2 ? TARN_COUNT_DEFAULT : 0) ==
             TARN_OK);
      break;
    case 2:
      expect(tarn_pool_account(pool, TARN_COUNT_DEFAULT |
                                         (round % 2 ? TARN_COUNT_EVENTS : 0)) ==
             TARN_OK);
      break;
    case 3: {
      tarn_status status = tarn_pool_sleep(pool, tag, TARN_SLEEP_SAVE);
      expect(status == TARN_OK || status == TARN_E_STATE);
      status = tarn_pool_wake(pool, tag);
      expect(status == TARN_OK || status == TARN_E_STATE);
      break;
    }
    case 4:
      expect(tarn_pool_query(pool, &stats) == TARN_OK);
      expect(tarn_pool_reset_peaks(pool) == TARN_OK);
      break;
    default:
      expect(tarn_pool_alloc(pool, size, 0, NULL, &block) == TARN_OK);
      fill(block, size, (unsigned char)what);
      expect(tarn_pool_resize(&block, size / 2 + 1, NULL) == TARN_OK);
      expect(((unsigned char *)(uintptr_t)block.address)[0] ==
             (unsigned char)what);
      expect(tarn_pool_free(&block, NULL) == TARN_OK);
      break;
  }
}

static void *be_in_the_way(void *number) {
  uint64_t state = (uint64_t)(uintptr_t)number * 0x9e3779b97f4a7c15u;
  for (size_t round = 0; !atomic_load(&over); round++) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    disturb((size_t)(state >> 33), round);
    struct timespec nap = {0, (long)(state % 3000000)};
    if (round % 4 == 0) nanosleep(&nap, NULL);
  }
  return NULL;
}

TEST(a_step_among_threads_keeps_its_bytes) {
  pthread_t threads[OTHERS];
  tarn_block kept;
  pool = host_pool("arena_pool");
  tag = tag_of("asleep");
  assert_ok(alloc_tagged(pool, 3 * MIB, 0, NULL, tag, &kept));
  for (uintptr_t i = 0; i < OTHERS; i++)
    pthread_create(&threads[i], NULL, be_in_the_way, (void *)(i + 1));
  for (size_t i = 0; i < ROUNDS; i++)
    play_step(i);
  atomic_store(&over, true);
  for (size_t i = 0; i < OTHERS; i++)
    pthread_join(threads[i], NULL);
  assert_as_expected();
  assert_ok(tarn_pool_wake(pool, tag));
  give(kept);
  assert_ok(tarn_pool_account(pool, TARN_COUNT_DEFAULT));
  assert_ok(tarn__front_check(pool));
  for (size_t i = 0; i < 60; i++)
    play_step(i);
  ck_assert_ptr_nonnull(pool->steps.cursor.layout);
  assert_ok(tarn__front_check(pool));
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
}
