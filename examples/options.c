// Memory for a request that must be answered at once: all of its blocks or
// none, out of what was reserved at the start, without waiting for any stream.
#include <stdio.h>
#include <stdlib.h>
#include <tarn/tarn.h>

typedef struct tensor {
  const char *name;
  size_t bytes;
} tensor;

static void check(tarn_status status) {
  if (status == TARN_OK) return;
  fprintf(stderr, "options: %s\n", tarn_last_error());
  exit(EXIT_FAILURE);
}

int main(void) {
  tensor tensors[2] = {{"keys", (size_t)3 << 20}, {"values", (size_t)3 << 20}};
  tarn_alloc_options wanted[2];
  tarn_block blocks[2];
  tarn_pool *pool = NULL;
  check(tarn_pool_of(TARN_HOST, &pool));
  check(tarn_pool_reserve(pool, (size_t)8 << 20));
  for (int i = 0; i < 2; i++) {
    wanted[i] = (tarn_alloc_options){
        .struct_size = sizeof wanted[i],
        .size = tensors[i].bytes,
        .flags = TARN_ALLOC_NO_WAIT | TARN_ALLOC_NO_GROW | TARN_ALLOC_ZERO,
        .user = &tensors[i],
    };
  }
  check(tarn_pool_alloc_many(pool, wanted, 2, blocks));

  // Finds a tensor by an address in it.
  tarn_block found;
  void *user = NULL;
  check(tarn_block_of(TARN_HOST, blocks[1].address + 100, &found, NULL));
  check(tarn_block_user(&found, &user));
  printf("it is part of the %s\n", ((const tensor *)user)->name);

  // A second one of the kind has no room: nothing was taken for it.
  tarn_block more[2];
  tarn_status status = tarn_pool_alloc_many(pool, wanted, 2, more);
  printf("%s: %s\n", tarn_status_name(status), tarn_last_error());

  for (int i = 0; i < 2; i++)
    check(tarn_pool_free(&blocks[i], NULL));
  check(tarn_pool_reserve(pool, 0));
  check(tarn_pool_trim(pool, 0));
  return status == TARN_FULL ? EXIT_SUCCESS : EXIT_FAILURE;
}
