// kit.h - libtarn_torch as PyTorch calls it, on a device of the tests. It is a
// part of these programs, so that its Tarn is theirs.
#ifndef TARN_TESTS_TORCH_KIT_H_
#define TARN_TESTS_TORCH_KIT_H_

#include <stdlib.h>
#include <string.h>

#include "caught.h"
#include "support/on_devices.h"
#include "support/run.h"
#include "tarn_torch.h"

static inline void close_library(void *context) {
  (void)context;
  assert_ok(tarn_torch_close());
}

// Devices of the library are those of |device|'s type. At the end of the test
// it closes: what streams and blocks it held must be back.
static inline void serve_on(tarn_device *device) {
  static char nothing;
  ck_assert_int_eq(setenv("TARN_TORCH_DEVICE", tarn_device_type(device), 1), 0);
  after_test(close_library, &nothing);
}

static inline void destroy_stream(void *stream) {
  assert_ok(tarn_stream_destroy(stream));
}

static inline tarn_stream *stream_on(tarn_device *device) {
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  after_test(destroy_stream, stream);
  return stream;
}

// As PyTorch names a stream of its own.
static inline void *native(tarn_stream *stream) {
  return tarn_stream_native(stream);
}

static inline tarn_pool *pool_of_torch(void) {
  tarn_pool *pool = NULL;
  assert_ok(tarn_torch_pool(0, &pool));
  return pool;
}

static inline tarn_torch_stats stats_of_torch(void) {
  tarn_torch_stats stats = {.struct_size = sizeof stats};
  assert_ok(tarn_torch_query(0, &stats));
  return stats;
}

static inline void *take(size_t size, void *stream) {
  char text[CAUGHT_TEXT];
  void *ptr = alloc_caught(size, 0, stream, text);
  ck_assert_str_eq(text, "");
  ck_assert_ptr_nonnull(ptr);
  return ptr;
}

static inline void give(void *ptr, void *stream) {
  tarn_torch_free(ptr, 0, 0, stream);
}

static inline bool is_of(tarn_pool *pool, const void *ptr) {
  tarn_block block;
  return tarn_pool_block_of(pool, tarn_addr_of(ptr), &block, NULL) == TARN_OK;
}

// What the library writes to stderr, to where stderr went before.
static inline void assert_says(const char *text, const char *part) {
  ck_assert_msg(strstr(text, part) != NULL, "'%s' does not say '%s'", text,
                part);
}

#endif  // TARN_TESTS_TORCH_KIT_H_
