// Memory at a multiple of more than the driver gives by itself.
#include "device/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"

// --- aligned ---------------------------------------------------------------

// Writes to all of it, so that a sanitizer sees an address beyond its block.
static void fill(tarn_place place, tarn_addr addr, size_t size) {
  void *bytes = malloc(size);
  ck_assert_ptr_nonnull(bytes);
  memset(bytes, 7, size);
  if (place.kind == TARN_PLACE_DEVICE) {
    assert_ok(tarn_copy_h2d(place.device, addr, bytes, size, NULL));
  } else {
    void *view = NULL;
    assert_ok(tarn_device_host_view(place, addr, size, &view));
    memcpy(view, bytes, size);
  }
  free(bytes);
}

static void take_aligned(tarn_place place) {
  static const size_t aligns[] = {1,    8,       64,      256,    4096,
                                  8192, 1 << 16, 1 << 20, 2 << 20};
  enum { COUNT = sizeof aligns / sizeof aligns[0] };
  tarn_addr addrs[COUNT];
  for (size_t i = 0; i < COUNT; i++) {
    size_t size = 1000 + i;
    assert_ok(tarn_device_allocate_aligned(place, size, aligns[i], &addrs[i]));
    ck_assert_uint_ne(addrs[i], 0);
    ck_assert_uint_eq(addrs[i] % aligns[i], 0);
    fill(place, addrs[i], size);
  }
  for (size_t i = 0; i < COUNT; i++) {
    assert_ok(tarn_device_deallocate(place, addrs[i], 1000 + i));
  }
}

static void take_aligned_in_all_places(tarn_device *device) {
  for (int kind = TARN_PLACE_HOST; kind <= TARN_PLACE_UNIFIED; kind++) {
    tarn_place place = {device, (tarn_place_kind)kind};
    if (device_has_memory(device, place.kind)) take_aligned(place);
  }
  take_aligned(TARN_HOST);
}

TEST_LOOP(aligned_on_every_device, TEST_DEVICES) {
  tarn_device *device = open_device(test_devices[_i]);
  take_aligned_in_all_places(device);
}

TEST(aligned_where_nothing_is) {
  fake.misalign = 8;
  tarn_device *device = open_fake();
  take_aligned_in_all_places(device);
}

TEST(aligned_by_the_driver) {
  tarn_addr addr = 0;
  fake_ext.there = true;
  tarn_device *device = open_fake();
  tarn_place place = tarn_place_on(device);
  assert_ok(tarn_device_allocate_aligned(place, 100, 8192, &addr));
  ck_assert_uint_eq(fake_ext_seen.align, 8192);
  ck_assert_uint_eq(fake_seen.allocations, 1);
  assert_ok(tarn_device_deallocate(place, addr, 100));
  // What the driver promises of every address needs no asking.
  fake_ext_seen.called = 0;
  assert_ok(tarn_device_allocate_aligned(place, 100, 256, &addr));
  ck_assert_uint_eq(fake_ext_seen.called & FAKE_SLOT(allocate_aligned), 0);
  assert_ok(tarn_device_deallocate(place, addr, 100));
  take_aligned_in_all_places(device);
}

TEST(the_drivers_refusal_stands_unless_it_cannot) {
  tarn_addr addr = 1;
  fake_ext.there = true;
  tarn_device *device = open_fake();
  tarn_place place = tarn_place_on(device);
  fake_ext.refusing = FAKE_SLOT(allocate_aligned);
  fake_ext.answer = TARN_FULL;
  assert_status(tarn_device_allocate_aligned(place, 100, 8192, &addr),
                TARN_FULL);
  ck_assert_uint_eq(addr, 0);
  fake_ext.answer = TARN_E_UNSUPPORTED;
  assert_ok(tarn_device_allocate_aligned(place, 100, 8192, &addr));
  ck_assert_uint_eq(addr % 8192, 0);
  assert_ok(tarn_device_deallocate(place, addr, 100));
}

TEST(a_driver_that_does_not_align_has_failed) {
  tarn_addr addr = 1;
  fake_ext.there = true;
  tarn_device *device = open_fake();
  tarn_place place = tarn_place_on(device);
  fake_ext.misalign = 512;
  assert_fails(tarn_device_allocate_aligned(place, 100, 8192, &addr),
               TARN_E_DEVICE,
               "fake:0: allocate_aligned of 100 bytes gave address");
  assert_error_says("no multiple of 8192");
  ck_assert_uint_eq(addr, 0);
  fake_ext.misalign = 0;
  fake_ext.empty = FAKE_SLOT(allocate_aligned);
  assert_fails(tarn_device_allocate_aligned(place, 100, 8192, &addr), TARN_FULL,
               "fake:0: out of memory: 100 bytes were refused");
}

TEST(a_broken_promise_has_failed) {
  tarn_addr addr = 1;
  fake_ext.there = true;
  fake.misalign = 8;
  tarn_device *device = open_fake();
  assert_fails(tarn_device_allocate(tarn_place_on(device), 100, &addr),
               TARN_E_DEVICE,
               "device_memory_allocate of 100 bytes gave address");
  assert_error_says("no multiple of 256");
  ck_assert_uint_eq(addr, 0);
  fake_ext.misalign = 8;
  tarn_stream *stream = stream_on(device);
  assert_fails(tarn_device_allocate_on(stream, 100, &addr), TARN_E_DEVICE,
               "allocate_async of 100 bytes gave address");
  ck_assert_uint_eq(addr, 0);
  end_failed_stream(stream);
}

static const size_t no_aligns[] = {0, 3, 24, SIZE_MAX};

TEST_LOOP(an_alignment_that_is_none_is_refused, 4) {
  tarn_addr addr = 1;
  tarn_device *device = open_fake();
  assert_status(tarn_device_allocate_aligned(tarn_place_on(device), 100,
                                             no_aligns[_i], &addr),
                TARN_E_INVALID);
  ck_assert_uint_eq(addr, 0);
  assert_status(
      tarn_device_allocate_aligned(tarn_place_on(device), 0, 64, &addr),
      TARN_E_INVALID);
}

// The plain allocation comes first and fits; the larger one overflows or is
// refused.
TEST(too_much_is_full) {
  tarn_addr addr = 1;
  fake.misalign = 8;
  fake.capacity = 1 << 20;
  tarn_device *device = open_fake();
  tarn_place place = tarn_place_on(device);
  assert_status(tarn_device_allocate_aligned(place, 1000, 2 << 20, &addr),
                TARN_FULL);
  assert_status(
      tarn_device_allocate_aligned(place, 1000, (SIZE_MAX >> 1) + 1, &addr),
      TARN_FULL);
  assert_status(tarn_device_allocate_aligned(place, SIZE_MAX, 64, &addr),
                TARN_FULL);
  ck_assert_uint_eq(addr, 0);
}

TEST(aligned_memory_is_counted) {
  tarn_addr addr = 0;
  tarn_addr pools = 0;
  fake.misalign = 8;
  tarn_device *device = open_fake();
  tarn_place place = tarn_place_on(device);
  assert_ok(tarn_device_allocate_aligned(place, 100, 4096, &addr));
  assert_fails(tarn_device_close(device), TARN_E_STATE, "1 allocations");
  // What pools take is not.
  assert_ok(tarn__device_take_aligned(place, 100, 4096, &pools));
  assert_ok(tarn_device_deallocate(place, addr, 100));
  assert_ok(tarn__device_give(place, pools, 100));
}

enum { THREADS = 4, ROUNDS = 200 };

static void *align_much(void *context) {
  tarn_place place = tarn_place_on(context);
  for (size_t i = 0; i < ROUNDS; i++) {
    tarn_addr a = 0;
    tarn_addr b = 0;
    assert_ok(tarn_device_allocate_aligned(place, 64 + i, 4096, &a));
    assert_ok(tarn_device_allocate_aligned(place, 64, 8192, &b));
    require(a % 4096 == 0 && b % 8192 == 0 && a != b);
    assert_ok(tarn_device_deallocate(place, a, 64 + i));
    assert_ok(tarn_device_deallocate(place, b, 64));
  }
  return NULL;
}

TEST(aligned_from_many_threads) {
  pthread_t threads[THREADS];
  fake.misalign = 8;
  tarn_device *device = open_fake();
  for (size_t i = 0; i < THREADS; i++) {
    ck_assert_int_eq(pthread_create(&threads[i], NULL, align_much, device), 0);
  }
  for (size_t i = 0; i < THREADS; i++) {
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
  }
}

// The driver knows nothing of an address within a larger block.
TEST_LOOP(aligned_memory_goes_back_on_a_stream, 2) {
  tarn_addr addr = 0;
  fake.misalign = 8;
  fake_ext.there = _i != 0;
  fake_ext.missing = FAKE_SLOT(allocate_aligned) | FAKE_SLOT(alignment);
  tarn_device *device = open_fake();
  tarn_stream *stream = stream_on(device);
  assert_ok(
      tarn_device_allocate_aligned(tarn_place_on(device), 100, 4096, &addr));
  assert_ok(tarn_device_deallocate_on(stream, addr, 100));
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
}

// The child frees its copy of the notes.
TEST(a_child_must_not_call) {
  tarn_addr addr = 0;
  tarn_addr other = 1;
  fake.misalign = 8;
  tarn_device *device = open_fake();
  tarn_place place = tarn_place_on(device);
  assert_ok(tarn_device_allocate_aligned(place, 100, 4096, &addr));
  size_t held = tarn_host_memory();
  pid_t child = fork();
  if (child == 0) {
    assert_status(tarn_device_allocate_aligned(place, 64, 64, &other),
                  TARN_E_STATE);
    ck_assert_uint_eq(other, 0);
    assert_status(tarn_device_deallocate(place, addr, 100), TARN_E_STATE);
    close_device(device);
    _exit(tarn_host_memory() < held ? 0 : 1);
  }
  int status = 1;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  assert_ok(tarn_device_deallocate(place, addr, 100));
}
