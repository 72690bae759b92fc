// arena_pool in a process that may have few addresses or mappings: it serves
// what it can, refuses the rest, and gives all of it back. And in one that
// forks.
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"
#include "support/effort.h"
#include "support/strategy.h"

enum { MOST = 4096 };

static bool limit_addresses(size_t more) {
  size_t pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  bool known = file != NULL && fscanf(file, "%zu", &pages) == 1;
  if (file != NULL) fclose(file);
  rlim_t bytes = (rlim_t)(pages * (size_t)sysconf(_SC_PAGESIZE) + more);
  struct rlimit limit = {bytes, bytes};
  return known && setrlimit(RLIMIT_AS, &limit) == 0;
}

static tarn_block blocks[MOST];

// How many blocks there are room for.
static size_t fill(tarn_pool *pool, size_t size) {
  size_t count = 0;
  while (count < MOST) {
    tarn_status status = tarn_pool_alloc(pool, size, 0, NULL, &blocks[count]);
    if (status != TARN_OK) {
      ck_assert_msg(status == TARN_FULL || status == TARN_E_NOMEM, "%s",
                    tarn_last_error());
      break;
    }
    memset(bytes_of(blocks[count]), 0x5a, 1);
    count++;
  }
  return count;
}

// Every other block first, so that holes are small and pages have to move.
static void empty(size_t count) {
  for (size_t step = 0; step < 2; step++) {
    for (size_t i = step; i < count; i += 2)
      assert_ok(tarn_pool_free(&blocks[i], NULL));
  }
}

static void live_with_few_addresses(void) {
  static const size_t sizes[] = {(size_t)MIB, 100 * (size_t)KIB,
                                 5 * (size_t)MIB, 3000};
  require(limit_addresses((size_t)300 * MIB));
  tarn_pool *pool = host_pool("arena_pool");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    size_t count = fill(pool, sizes[i]);
    require(count * sizes[i] >= (size_t)4 * MIB || count == MOST);
    empty(count);
    assert_ok(tarn__front_check(pool));
  }
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
  assert_ok(use_strategy(TARN_HOST, "page_unit_pool"));
}

// Sanitizers take more addresses than there would be.
TEST(few_addresses_are_lived_with) {
  if (EFFORT(false, true)) {
    note_skipped("few addresses", "a sanitizer needs more");
  } else {
    live_with_few_addresses();
  }
}

static size_t addresses(void) {
  size_t pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  require(file != NULL && fscanf(file, "%zu", &pages) == 1);
  fclose(file);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

// Not all that there may ever be, and no more of a limit than a part.
TEST_LOOP(addresses_are_reserved_in_steps, 2) {
  const size_t limit = (size_t)8 << 30;
  if (EFFORT(false, true)) {
    note_skipped("steps of addresses", "a sanitizer needs more");
    return;
  }
  size_t before = addresses();
  if (_i != 0) require(limit_addresses(limit));
  tarn_pool *pool = host_pool("arena_pool");
  size_t count = fill(pool, MIB / 2);
  size_t held = stats_of(pool).reserved_bytes;
  ck_assert_uint_eq(count, MOST);
  ck_assert_uint_le(addresses() - before,
                    _i != 0 ? 2 * held + limit / 16 : (size_t)9 << 29);
  empty(count);
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_le(addresses() - before, (size_t)1 << 29);
  assert_ok(use_strategy(TARN_HOST, "page_unit_pool"));
}

// --- mappings --------------------------------------------------------------

static size_t kernel_mappings(void) {
  FILE *file = fopen("/proc/self/maps", "r");
  size_t count = 0;
  require(file != NULL);
  for (int c = fgetc(file); c != EOF; c = fgetc(file))
    count += c == '\n';
  fclose(file);
  return count;
}

// Blocks of ever other sizes, in ever smaller pieces of memory.
static void scatter(tarn_pool *pool) {
  enum { ROUNDS = 2560, AT_ONCE = 64 };
  tarn_block live[AT_ONCE] = {0};
  uint64_t state = 1;
  for (size_t i = 0; i < ROUNDS; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    tarn_block *block = &live[(state >> 40) % AT_ONCE];
    if (block->pool != NULL) assert_ok(tarn_pool_free(block, NULL));
    size_t size = 1 + (state >> 20) % ((size_t)3 * MIB);
    assert_ok(tarn_pool_alloc(pool, size, 0, NULL, block));
    memset(bytes_of(*block), 0x5a, size);
  }
  assert_ok(tarn__front_check(pool));
  for (size_t i = 0; i < AT_ONCE; i++)
    if (live[i].pool != NULL) assert_ok(tarn_pool_free(&live[i], NULL));
}

// The bound is that of a process with very few. The kernel may have some more,
// since it does not join all that it could; without a bound it has 700.
TEST(mappings_stay_below_a_bound) {
  enum { FEW = 40 };
  char text[16];
  snprintf(text, sizeof text, "%d", FEW);
  setenv("TARN_CPU_MAPPINGS", text, 1);
  tarn_pool *pool = host_pool("arena_pool:slack=0,page=64K,move=0");
  size_t before = kernel_mappings();
  for (int i = 0; i < 3; i++) {
    scatter(pool);
    ck_assert_uint_le(kernel_mappings(), before + 4 * FEW);
  }
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
  assert_ok(use_strategy(TARN_HOST, "page_unit_pool"));
  unsetenv("TARN_CPU_MAPPINGS");
}

// --- forks -----------------------------------------------------------------

// Also of memory that was somewhere else before.
TEST(a_child_s_writes_are_its_own) {
  tarn_pool *pool = host_pool("arena_pool:slack=0,page=64K,move=0");
  enum { COUNT = 16 };
  for (size_t i = 0; i < COUNT; i++)
    assert_ok(tarn_pool_alloc(pool, MIB / 2, 0, NULL, &blocks[i]));
  for (size_t i = 0; i < COUNT; i += 2)
    assert_ok(tarn_pool_free(&blocks[i], NULL));
  tarn_block moved;
  assert_ok(tarn_pool_alloc(pool, (size_t)3 * MIB, 0, NULL, &moved));
  memset(bytes_of(moved), 1, moved.size);
  memset(bytes_of(blocks[1]), 2, blocks[1].size);
  pid_t child = fork();
  require(child >= 0);
  if (child == 0) {
    memset(bytes_of(moved), 3, moved.size);
    memset(bytes_of(blocks[1]), 3, blocks[1].size);
    _exit(0);
  }
  int status = 1;
  require(waitpid(child, &status, 0) == child && status == 0);
  for (size_t i = 0; i < moved.size; i++)
    require(bytes_of(moved)[i] == 1);
  for (size_t i = 0; i < blocks[1].size; i++)
    require(bytes_of(blocks[1])[i] == 2);
  assert_ok(tarn_pool_free(&moved, NULL));
  for (size_t i = 1; i < COUNT; i += 2)
    assert_ok(tarn_pool_free(&blocks[i], NULL));
  assert_ok(use_strategy(TARN_HOST, "page_unit_pool"));
}
