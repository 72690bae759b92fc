// with_kit.h - requests with options, for their tests.
#ifndef TARN_TESTS_POOL_WITH_KIT_H_
#define TARN_TESTS_POOL_WITH_KIT_H_

#include "arena_kit.h"
#include "tarn/alloc.h"

// Those that a program can have keep room.
static const char *const keeping[] = {"arena_pool", "page_unit_pool",
                                      "buddy_pool"};
enum { KEEPING = sizeof keeping / sizeof *keeping };

static inline tarn_alloc_options options_for(size_t size, tarn_stream *stream,
                                             uint32_t flags) {
  return (tarn_alloc_options){.struct_size = sizeof(tarn_alloc_options),
                              .size = size,
                              .stream = stream,
                              .flags = flags};
}

static inline tarn_status try_with(tarn_pool *pool, size_t size,
                                   tarn_stream *stream, uint32_t flags,
                                   tarn_block *out_block) {
  tarn_alloc_options options = options_for(size, stream, flags);
  return tarn_pool_alloc_with(pool, &options, out_block);
}

static inline tarn_block take_with(tarn_pool *pool, size_t size,
                                   tarn_stream *stream, uint32_t flags) {
  tarn_block block;
  assert_ok(try_with(pool, size, stream, flags, &block));
  return block;
}

static inline void refuse_with(tarn_pool *pool, size_t size,
                               tarn_stream *stream, uint32_t flags,
                               tarn_status why) {
  tarn_block block;
  memset(&block, 0xff, sizeof block);
  assert_status(try_with(pool, size, stream, flags, &block), why);
  assert_zero_block(block);
}

#endif  // TARN_TESTS_POOL_WITH_KIT_H_
