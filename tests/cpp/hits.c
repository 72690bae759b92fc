// hits c|cpp COUNT: a program whose instructions are counted.
#include "hits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Who keeps a block has to know on which stream it is to be freed.
typedef struct kept_block {
  tarn_block block;
  tarn_stream *stream;
} kept_block;

tarn_addr hits_by_c(tarn_pool *pool, size_t count) {
  tarn_addr sum = 0;
  for (size_t i = 0; i < count; i++) {
    kept_block kept;
    tarn_status status = tarn_pool_alloc(pool, 1000, 0, NULL, &kept.block);
    if (status != TARN_OK && status != TARN_PENDING) abort();
    kept.stream = NULL;
    sum += kept.block.address;
    (void)tarn_pool_free(&kept.block, kept.stream);
  }
  return sum;
}

int main(int argc, char **argv) {
  tarn_pool *pool = NULL;
  if (argc != 3 || tarn_pool_of(TARN_HOST, &pool) != TARN_OK) return 2;
  // Until the pool knows what comes.
  if (hits_by_c(pool, 100000) == 0) return 1;
  size_t count = strtoul(argv[2], NULL, 10);
  bool by_c = strcmp(argv[1], "c") == 0;
  tarn_addr sum = (by_c ? hits_by_c : hits_by_cpp)(pool, count);
  return sum != 0 ? 0 : 1;
}
