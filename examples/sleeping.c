// A server's weights leave the memory to something else, and come back where
// they were.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tarn/tarn.h>

static int fail(const char *what) {
  fprintf(stderr, "sleeping: %s: %s\n", what, tarn_last_error());
  return EXIT_FAILURE;
}

static size_t held_by(tarn_pool *pool) {
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  return tarn_pool_query(pool, &stats) == TARN_OK ? stats.reserved_bytes : 0;
}

int main(void) {
  const size_t size = (size_t)8 << 20;
  tarn_pool *pool = NULL;
  tarn_tag weights = 0;
  tarn_block block;
  if (tarn_pool_of(TARN_HOST, &pool) != TARN_OK ||
      tarn_pool_set_strategy(pool, "arena_pool") != TARN_OK ||
      tarn_pool_tag("weights", &weights) != TARN_OK) {
    return fail("pool");
  }
  tarn_alloc_options wanted = {
      .struct_size = sizeof wanted, .size = size, .tag = weights};
  if (tarn_pool_alloc_with(pool, &wanted, &block) != TARN_OK) {
    return fail("alloc");
  }
  unsigned char *bytes = block.pointer;
  memset(bytes, 42, size);
  size_t before = held_by(pool);

  if (tarn_pool_sleep(pool, weights, TARN_SLEEP_SAVE) != TARN_OK) {
    return fail("sleep");
  }
  size_t asleep = held_by(pool);  // others can use the device now

  if (tarn_pool_wake(pool, weights) != TARN_OK) return fail("wake");
  printf("%zu bytes held, %zu asleep, %zu awake: the last byte is still %d\n",
         before, asleep, held_by(pool), bytes[size - 1]);
  return tarn_pool_free(&block, NULL) == TARN_OK ? EXIT_SUCCESS : fail("free");
}
