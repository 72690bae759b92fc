// streams_kit.h - a device with a pool and some streams, and work on them that
// shows who waited for whom.
#ifndef TARN_TESTS_POOL_STREAMS_KIT_H_
#define TARN_TESTS_POOL_STREAMS_KIT_H_

#include "kit.h"
#include "support/fake_extension.h"
#include "support/fake_plugin.h"

enum { STREAMS = 4 };

static tarn_device *device;
static tarn_pool *pool;
static tarn_stream *streams[STREAMS];
static tarn_stream *a;  // the first of them
static tarn_stream *b;  // the second

// All blocks have been freed: nothing may be left.
static inline void check_and_close(void *unused) {
  (void)unused;
  assert_ok(tarn__front_check(pool));
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
  for (int i = 0; i < STREAMS; i++)
    assert_ok(tarn_stream_destroy(streams[i]));
  close_device(device);
  ck_assert_uint_eq(fake_seen.events, 0);
  ck_assert_uint_eq(fake_seen.streams, 0);
}

// Until the end of the test.
static inline void open_on(const char *name, const char *strategy) {
  device = open_device(name);
  assert_ok(use_strategy(tarn_place_on(device), strategy));
  pool = pool_at(tarn_place_on(device));
  for (int i = 0; i < STREAMS; i++)
    assert_ok(tarn_stream_create(device, &streams[i]));
  a = streams[0];
  b = streams[1];
  fake_ext_seen.called = 0;
  after_test(check_and_close, device);
}

// The fake device runs a stream only when a caller waits for it: a test sees
// that a copy without a wait has not run.
static inline void open_fake(const char *strategy) {
  open_on("fake:0", strategy);
}

// The |i|-th stream has failed, which its end tells.
static inline void end_failed_stream(int i) {
  assert_status(tarn_stream_destroy(streams[i]), TARN_E_DEVICE);
  streams[i] = NULL;
}

// Queues |text| into |address| and out of it into |out|, which shows whether
// the memory had what was written until it was read.
static inline void queue_use_at(tarn_addr address, tarn_stream *stream,
                                const char *text, char *out) {
  assert_ok(tarn_copy_h2d(device, address, text, 8, stream));
  assert_ok(tarn_copy_d2h(device, out, address, 8, stream));
}

static inline void queue_use(tarn_block block, tarn_stream *stream,
                             const char *text, char *out) {
  queue_use_at(block.address, stream, text, out);
}

static inline size_t reserved(void) {
  assert_ok(tarn__front_check(pool));
  return stats_of(pool).reserved_bytes;
}

#endif  // TARN_TESTS_POOL_STREAMS_KIT_H_
