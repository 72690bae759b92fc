// state_kit.h - a buffer with contents at the host or the device,
// and memory that is not its own at both.
#ifndef TARN_TESTS_SYNCED_STATE_KIT_H_
#define TARN_TESTS_SYNCED_STATE_KIT_H_

#include "caffe_kit.h"

enum { INSIDE = 1, OUTSIDE = 2 };  // patterns: of the buffer, of the caller

static unsigned char outside_host[SIZE];
static tarn_addr outside_device;
static tarn_stream *stream;

static inline void write_at_cpu(void) {
  void *data = NULL;
  assert_ok(tarn_synced_mutable_cpu_data(x, &data));
  fill_pattern(data, 0, SIZE, INSIDE);
}

static inline void write_at_gpu(void) {
  tarn_addr data = 0;
  assert_ok(tarn_synced_mutable_gpu_data(x, &data));
  put_on(gpu, data, 0, SIZE, INSIDE);
}

static inline void open_outside(void) {
  fill_pattern(outside_host, 0, SIZE, OUTSIDE);
  assert_ok(tarn_device_allocate(tarn_place_on(gpu), SIZE, &outside_device));
  put_on(gpu, outside_device, 0, SIZE, OUTSIDE);
  stream = stream_on(gpu);
}

static inline void close_outside(void) {
  assert_pattern(outside_host, 0, SIZE, OUTSIDE);
  assert_on(gpu, outside_device, 0, SIZE, OUTSIDE);
  assert_ok(tarn_device_deallocate(tarn_place_on(gpu), outside_device, SIZE));
  assert_ok(tarn_stream_destroy(stream));
}

#endif  // TARN_TESTS_SYNCED_STATE_KIT_H_
