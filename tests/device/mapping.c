// Bytes in memory that is mapped, moved and shared, on the devices that have
// ranges.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kit.h"
#include "tarn/range.h"

static tarn_device *device;  // the one that is open

// Opens test_devices[i]. False, and a note, if it lacks one of |bits|.
static bool open_with(int i, uint32_t bits) {
  device = open_device(test_devices[i]);
  if ((tarn_device_extensions(device) & bits) == bits) return true;
  note_skipped(test_devices[i], "it has no ranges, or shares no memory");
  return false;
}

static tarn_addr reserve(size_t size) {
  tarn_addr addr = 0;
  assert_ok(tarn_range_reserve(device, size, 0, &addr));
  ck_assert_uint_ne(addr, 0);
  return addr;
}

static tarn_memory create(size_t size) {
  tarn_memory memory = 0;
  assert_ok(tarn_memory_create(device, size, 0, &memory));
  ck_assert_uint_ne(memory, 0);
  return memory;
}

static void map_here(tarn_addr addr, size_t size, tarn_memory memory) {
  assert_ok(tarn_range_map(device, addr, size, memory));
  assert_ok(tarn_range_set_access(device, addr, size, device,
                                  TARN_RIGHTS_READ_WRITE));
}

static void expect_bytes(tarn_addr addr, const void *expected, size_t size) {
  unsigned char *got = malloc(size);
  ck_assert_ptr_nonnull(got);
  assert_ok(tarn_copy_d2h(device, got, addr, size, NULL));
  ck_assert_mem_eq(got, expected, size);
  free(got);
}

// Rights and bytes go along, in parts too.
TEST_LOOP(bytes_move_with_their_memory, LIBRARY_DEVICES) {
  enum { PARTS = 4 };
  size_t step = 0;
  size_t moved = 0;
  if (!open_with(_i, TARN_EXTENSION_RANGES | TARN_EXTENSION_MOVES)) return;
  assert_ok(tarn_range_granularity(device, &step));
  tarn_addr range = reserve(4 * PARTS * step);
  tarn_memory memory = create(PARTS * step);
  unsigned char *bytes = malloc(PARTS * step);
  ck_assert_ptr_nonnull(bytes);
  for (size_t i = 0; i < PARTS * step; i++)
    bytes[i] = (unsigned char)(i / 7);
  map_here(range, PARTS * step, memory);
  assert_ok(tarn_memory_destroy(device, memory));
  assert_ok(tarn_copy_h2d(device, range, bytes, PARTS * step, NULL));
  for (size_t i = PARTS; i-- > 0;) {  // twice as far apart
    assert_ok(tarn_range_move(device, range + i * step,
                              range + (PARTS + 2 * i) * step, step, &moved));
    ck_assert_uint_eq(moved, step);
  }
  for (size_t i = 0; i < PARTS; i++) {
    expect_bytes(range + (PARTS + 2 * i) * step, bytes + i * step, step);
    assert_ok(tarn_range_unmap(device, range + (PARTS + 2 * i) * step, step));
  }
  free(bytes);
  assert_ok(tarn_range_release(device, range, 4 * PARTS * step));
}

// A range grows in place, and a copy goes over the seam of two memories. Then
// the second moves to the front without a copy.
TEST_LOOP(bytes_stay_in_memory_that_moves, LIBRARY_DEVICES) {
  size_t step = 0;
  if (!open_with(_i, TARN_EXTENSION_RANGES)) return;
  assert_ok(tarn_range_granularity(device, &step));
  tarn_addr range = reserve(8 * step);
  tarn_memory a = create(step);
  tarn_memory b = create(2 * step);
  unsigned char *bytes = malloc(3 * step);
  ck_assert_ptr_nonnull(bytes);
  for (size_t i = 0; i < 3 * step; i++)
    bytes[i] = (unsigned char)(i / 7);
  map_here(range, step, a);
  map_here(range + step, 2 * step, b);
  assert_ok(tarn_copy_h2d(device, range, bytes, 3 * step, NULL));
  expect_bytes(range + step - 100, bytes + step - 100, 200);
  assert_ok(tarn_range_unmap(device, range, 3 * step));
  map_here(range, 2 * step, b);
  map_here(range + 4 * step, step, a);
  expect_bytes(range, bytes + step, 2 * step);
  expect_bytes(range + 4 * step, bytes, step);
  // No range goes under what is mapped, and no device under a range.
  ck_assert(tarn_range_release(device, range, 8 * step) < TARN_OK);
  assert_ok(tarn_memory_destroy(device, a));
  expect_bytes(range + 4 * step, bytes, step);  // it lives in its mapping
  // cpu:0 would stay open anyway.
  if (strcmp(test_devices[_i], "cpu:0") != 0) {
    assert_status(tarn_device_close(device), TARN_E_STATE);
  }
  assert_ok(tarn_range_unmap(device, range, 2 * step));
  assert_ok(tarn_range_unmap(device, range + 4 * step, step));
  assert_ok(tarn_memory_destroy(device, b));
  assert_ok(tarn_range_release(device, range, 8 * step));
  free(bytes);
}

TEST_LOOP(memory_is_shared, LIBRARY_DEVICES) {
  size_t step = 0;
  tarn_memory memory = 0;
  tarn_memory twin = 0;
  int fd = 0;
  char text[] = "the same bytes";
  if (!open_with(_i, TARN_EXTENSION_SHARING)) return;
  assert_ok(tarn_range_granularity(device, &step));
  tarn_addr range = reserve(2 * step);
  assert_ok(tarn_memory_create(device, step, TARN_MEMORY_SHAREABLE, &memory));
  assert_ok(tarn_memory_export(device, memory, &fd));
  assert_status(tarn_memory_import(device, fd, 2 * step, &twin),
                TARN_E_INVALID);
  assert_ok(tarn_memory_import(device, fd, step, &twin));
  ck_assert_int_eq(close(fd), 0);
  map_here(range, step, memory);
  map_here(range + step, step, twin);
  assert_ok(tarn_copy_h2d(device, range, text, sizeof text, NULL));
  expect_bytes(range + step, text, sizeof text);
  assert_ok(tarn_range_unmap(device, range, 2 * step));
  assert_ok(tarn_memory_destroy(device, memory));
  assert_ok(tarn_memory_destroy(device, twin));
  assert_ok(tarn_range_release(device, range, 2 * step));
  // What was not created for it is not exported.
  memory = create(step);
  ck_assert(tarn_memory_export(device, memory, &fd) < TARN_OK);
  ck_assert_int_eq(fd, 0);
  assert_ok(tarn_memory_destroy(device, memory));
}
