// Runs out of a small limit, and leaves a file that says who held the memory.
#include <stdio.h>
#include <stdlib.h>
#include <tarn/tarn.h>

static void check(tarn_status status) {
  if (status == TARN_OK) return;
  fprintf(stderr, "%s: %s\n", tarn_status_name(status), tarn_last_error());
  exit(EXIT_FAILURE);
}

int main(void) {
  tarn_pool *pool;
  tarn_tag weights, activations;
  tarn_block block;
  check(tarn_pool_of(TARN_HOST, &pool));
  check(tarn_pool_tag("weights", &weights));
  check(tarn_pool_tag("activations", &activations));
  check(tarn_pool_account(pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  check(tarn_pool_snapshot_on_full(TARN_TRACE_FORMAT_TARN, "full-%n.tarn"));

  check(tarn_pool_limit(pool, (size_t)20 << 20));
  tarn_alloc_options wanted = {
      .struct_size = sizeof wanted, .size = 12000000, .tag = weights};
  check(tarn_pool_alloc_with(pool, &wanted, &block));
  wanted.size = 3000000;
  wanted.tag = activations;
  tarn_status status = TARN_OK;
  while (status == TARN_OK)  // a leak: these blocks are never freed
    status = tarn_pool_alloc_with(pool, &wanted, &block);
  if (status != TARN_FULL) check(status);
  printf("%s\nnow run: tarn why full-0.tarn\n", tarn_last_error());
  return EXIT_SUCCESS;
}
