// Registers a strategy of the program's own (power_pool.c) and lets the host's
// pool work with it.
#include <stdio.h>
#include <tarn/tarn.h>

enum { BLOCKS = 8, ROUNDS = 100 };

static tarn_status take_and_free(tarn_pool *pool) {
  tarn_block blocks[BLOCKS];
  tarn_status status = TARN_OK;
  size_t count = 0;
  while (count < BLOCKS && status == TARN_OK) {
    status = tarn_pool_alloc(pool, 1000 * (count + 1), 0, NULL, &blocks[count]);
    if (status == TARN_OK) count++;
  }
  while (count > 0) {
    tarn_status freed = tarn_pool_free(&blocks[--count], NULL);
    if (status == TARN_OK) status = freed;
  }
  return status;
}

static tarn_status run(void) {
  tarn_pool *pool = NULL;
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  tarn_status status = tarn_pool_register(TarnPoolStrategy());
  if (status == TARN_OK) status = tarn_pool_of(TARN_HOST, &pool);
  if (status == TARN_OK) {
    status = tarn_pool_set_strategy(pool, "power_pool:least=1K");
  }
  for (int i = 0; i < ROUNDS && status == TARN_OK; i++)
    status = take_and_free(pool);
  if (status == TARN_OK) status = tarn_pool_query(pool, &stats);
  if (status != TARN_OK) return status;
  printf("%s: %llu blocks, %llu of them without asking the device\n",
         stats.strategy, (unsigned long long)stats.allocs,
         (unsigned long long)stats.hits);
  return tarn_pool_set_strategy(pool, NULL);
}

int main(void) {
  if (run() == TARN_OK) return 0;
  fprintf(stderr, "%s\n", tarn_last_error());
  return 1;
}
