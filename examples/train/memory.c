#include "memory.h"

#include "job/try.h"

tarn_status memory_take(const char *kind, size_t size, tarn_block *out_block) {
  tarn_alloc_options options = {.struct_size = sizeof options,
                                .size = size,
                                .align = 64,
                                .flags = TARN_ALLOC_ZERO};
  tarn_pool *pool;
  TRY(tarn_pool_of(TARN_HOST, &pool));
  TRY(tarn_pool_tag(kind, &options.tag));
  return tarn_pool_alloc_with(pool, &options, out_block);
}

tarn_status memory_give(tarn_block *block) {
  tarn_block former = *block;
  *block = (tarn_block){0};
  return former.pool == NULL ? TARN_OK : tarn_pool_free(&former, NULL);
}
