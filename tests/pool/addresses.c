// arena_pool in a process that may have few addresses: it serves what it can,
// refuses the rest, and gives all of it back.
#include <stdio.h>
#include <sys/resource.h>
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
