// tagged.h - a block under a tag, in one line.
#ifndef TARN_TESTS_SUPPORT_TAGGED_H_
#define TARN_TESTS_SUPPORT_TAGGED_H_

#include "tarn/alloc.h"

static inline tarn_status alloc_tagged(tarn_pool *pool, size_t size,
                                       size_t align, tarn_stream *stream,
                                       tarn_tag tag, tarn_block *out_block) {
  tarn_alloc_options options = {.struct_size = sizeof options,
                                .size = size,
                                .align = align,
                                .stream = stream,
                                .tag = tag};
  return tarn_pool_alloc_with(pool, &options, out_block);
}

#endif  // TARN_TESTS_SUPPORT_TAGGED_H_
