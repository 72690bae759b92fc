// Sizes of synced buffers: 0, odd sizes, and sizes beyond memory.
#include <string.h>

#include "support/on_devices.h"
#include "tarn/synced.h"
#include "tarn/traffic.h"

TEST_LOOP(a_size_beyond_memory_is_full, TEST_DEVICES) {
  static const size_t sizes[] = {SIZE_MAX, SIZE_MAX / 2, (size_t)1 << 50};
  tarn_device *device = open_small_device(_i, (size_t)1 << 20);
  if (device == NULL) return;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    tarn_access a;
    tarn_synced *b = NULL;
    assert_ok(tarn_synced_create(sizes[i], NULL, &b));
    for (int k = 0; k < 2; k++) {
      tarn_place place = k == 0 ? TARN_HOST : tarn_place_on(device);
      assert_status(tarn_synced_begin(b, sizes[i] - 1, 1, place,
                                      TARN_WRITE_DISCARD, NULL, &a),
                    TARN_FULL);
      ck_assert_ptr_null(a.buffer);
      assert_status(tarn_synced_prefetch(b, 0, TARN_ALL, place, NULL, NULL),
                    TARN_FULL);
    }
    tarn_synced_info info = {.struct_size = sizeof info};
    assert_ok(tarn_synced_query(b, 0, TARN_ALL, TARN_HOST, &info));
    ck_assert_uint_eq(info.unwritten, sizes[i]);
    ck_assert_uint_eq(info.range_count, 1);
    assert_ok(tarn_synced_destroy(b));
  }
}

// What fits the host and not the device stays where it is, whole.
TEST_LOOP(a_full_device_changes_nothing, TEST_DEVICES) {
  enum { LARGE = 2 << 20 };
  tarn_device *device = open_small_device(_i, (size_t)1 << 20);
  if (device == NULL) return;
  tarn_synced *b = NULL;
  tarn_access a;
  assert_ok(tarn_synced_create(LARGE, NULL, &b));
  assert_ok(tarn_synced_begin(b, 0, TARN_ALL, TARN_HOST, TARN_WRITE_DISCARD,
                              NULL, &a));
  memset(a.pointer, 0x5a, LARGE);
  assert_ok(tarn_synced_end(&a));
  for (uint32_t mode = TARN_READ; mode <= TARN_READ_WRITE; mode++) {
    assert_status(
        tarn_synced_begin(b, 100, 7, tarn_place_on(device), mode, NULL, &a),
        TARN_FULL);
  }
  assert_ok(tarn_synced_begin(b, 0, TARN_ALL, TARN_HOST, TARN_READ, NULL, &a));
  const unsigned char *bytes = a.pointer;
  for (size_t i = 0; i < LARGE; i++)
    require(bytes[i] == 0x5a);
  assert_ok(tarn_synced_end(&a));
  assert_ok(tarn_synced_destroy(b));
}

// Every call on a buffer of no bytes, which has no memory anywhere.
TEST_ON(a_buffer_of_no_bytes, TEST_NEEDS_DISCRETE) {
  tarn_synced *b = NULL;
  tarn_synced *view = NULL;
  tarn_stream *stream = NULL;
  tarn_access a;
  tarn_access other;
  assert_ok(tarn_stream_create(device, &stream));
  tarn_synced_options options = {.struct_size = sizeof options,
                                 .device = device};
  assert_ok(tarn_synced_create(0, &options, &b));
  assert_ok(tarn_synced_view(b, 0, TARN_ALL, &view));
  for (uint32_t mode = TARN_READ; mode <= TARN_READ_WRITE; mode++) {
    tarn_place place = mode == TARN_READ ? TARN_HOST : tarn_place_on(device);
    assert_ok(tarn_synced_begin(b, 0, TARN_ALL, place, mode, stream, &a));
    assert_ok(
        tarn_synced_begin(view, 0, 0, place, TARN_READ_WRITE, NULL, &other));
    ck_assert_uint_eq(a.address, 0);
    ck_assert_uint_eq(a.size, 0);
    ck_assert_ptr_null(a.pointer);
    assert_status(tarn_synced_destroy(view), TARN_E_STATE);
    assert_ok(tarn_synced_end(&a));
    size_t lost = 7;
    assert_ok(tarn_synced_cancel(&other, &lost));
    ck_assert_uint_eq(lost, 0);
  }
  assert_ok(tarn_synced_push(b, 0, 0, stream, NULL));
  assert_ok(tarn_synced_pull(b, 0, TARN_ALL, NULL, NULL));
  assert_status(tarn_synced_prefetch(b, 0, 0, tarn_place_on(NULL), NULL, NULL),
                TARN_E_INVALID);
  assert_ok(tarn_synced_evict(b, TARN_HOST));
  assert_ok(tarn_synced_invalidate(b, 0, 0));
  ck_assert_int_eq(tarn_synced_head(b), TARN_UNINITIALIZED);
  assert_status(tarn_synced_begin(b, 1, 0, TARN_HOST, TARN_READ, NULL, &a),
                TARN_E_INVALID);
  assert_status(tarn_synced_begin(b, 0, 1, TARN_HOST, TARN_READ, NULL, &a),
                TARN_E_INVALID);
  tarn_synced_info info = {.struct_size = sizeof info};
  assert_ok(tarn_synced_query(b, 0, 0, tarn_place_on(device), &info));
  ck_assert_uint_eq(info.memory, 0);
  ck_assert_uint_eq(info.range_count, 0);
  assert_ok(tarn_synced_destroy(b));
  assert_ok(tarn_synced_destroy(view));
  assert_ok(tarn_stream_destroy(stream));
}

static tarn_status add_moved(void *context, const tarn_traffic *traffic) {
  uint64_t *moved = context;
  *moved += traffic->bytes_moved;
  return TARN_OK;
}

// Each pair of ends in a buffer of 67 bytes: written at the device, read at the
// host, and only those bytes move.
TEST_ON(ranges_of_any_alignment, TEST_NEEDS_DISCRETE) {
  enum { SIZE = 67 };
  tarn_synced *b = NULL;
  tarn_access a;
  unsigned char value[SIZE];
  assert_ok(tarn_synced_create(SIZE, NULL, &b));
  assert_ok(
      tarn_synced_begin(b, 0, SIZE, TARN_HOST, TARN_WRITE_DISCARD, NULL, &a));
  memset(a.pointer, 1, SIZE);
  memset(value, 1, SIZE);
  assert_ok(tarn_synced_end(&a));
  for (size_t start = 0; start <= SIZE; start++) {
    for (size_t end = start; end <= SIZE; end++) {
      memset(value + start, (int)(start * 7 + end), end - start);
      require(tarn_synced_begin(b, start, end - start, tarn_place_on(device),
                                TARN_WRITE_DISCARD, NULL, &a) == TARN_OK);
      if (end > start) {
        require(tarn_copy_h2d(device, a.address, value + start, end - start,
                              NULL) == TARN_OK);
      }
      require(tarn_synced_end(&a) == TARN_OK);
      uint64_t moved = 0;
      require(tarn_synced_traffic_reset(b) == TARN_OK);
      require(tarn_synced_begin(b, 0, SIZE, TARN_HOST, TARN_READ, NULL, &a) ==
              TARN_OK);
      require(memcmp(a.pointer, value, SIZE) == 0);
      require(tarn_synced_end(&a) == TARN_OK);
      require(tarn_synced_traffic(b, add_moved, &moved) == TARN_OK);
      require(moved == end - start);
    }
  }
  assert_ok(tarn_synced_destroy(b));
}
