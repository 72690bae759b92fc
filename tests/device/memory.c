// Memory beyond plain allocation: in the order of a stream, the program's own,
// and what an address belongs to.
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"

// --- in the order of a stream ----------------------------------------------

TEST_LOOP(on_a_stream_on_every_device, TEST_DEVICES) {
  enum { SIZE = 10000 };
  tarn_device *device = open_device(test_devices[_i]);
  tarn_addr a = 0;
  tarn_addr b = 0;
  char in[SIZE];
  char out[SIZE] = {0};
  memset(in, 9, SIZE);
  tarn_stream *stream = stream_on(device);
  assert_ok(tarn_device_allocate_on(stream, SIZE, &a));
  assert_ok(tarn_device_allocate_on(stream, SIZE, &b));
  assert_ok(tarn_copy_h2d(device, a, in, SIZE, stream));
  assert_ok(tarn_copy_d2d(device, b, a, SIZE, stream));
  assert_ok(tarn_copy_d2h(device, out, b, SIZE, stream));
  assert_ok(tarn_device_deallocate_on(stream, a, SIZE));
  assert_ok(tarn_stream_synchronize(stream));
  ck_assert_mem_eq(in, out, SIZE);
  assert_ok(tarn_device_deallocate(tarn_place_on(device), b, SIZE));
}

// Queued work uses the memory still: who gives it back must have waited.
static void give_behind_a_copy(bool waits) {
  tarn_device *device = open_fake();
  tarn_stream *stream = NULL;
  tarn_addr addr = 0;
  static char bytes[64];
  assert_ok(tarn_stream_create(device, &stream));
  assert_ok(tarn_device_allocate_on(stream, 64, &addr));
  assert_ok(tarn_copy_d2h(device, bytes, addr, 64, stream));
  ck_assert_uint_eq(fake_seen.copies, 0);
  assert_ok(tarn_device_deallocate_on(stream, addr, 64));
  ck_assert_uint_eq(fake_seen.copies, waits ? 1 : 0);
  ck_assert_uint_eq(fake_seen.live_blocks, waits ? 0 : 1);
  assert_ok(tarn_stream_destroy(stream));
  close_device(device);
}

TEST(the_stand_in_waits) {
  give_behind_a_copy(true);
}

TEST(the_driver_queues) {
  fake_ext.there = true;
  give_behind_a_copy(false);
}

TEST(one_device_may_not_have_the_order) {
  fake_ext.there = true;
  fake_ext.refusing = FAKE_SLOT(allocate_async) | FAKE_SLOT(deallocate_async);
  fake_ext.answer = TARN_E_UNSUPPORTED;
  give_behind_a_copy(true);
}

TEST_LOOP(a_stream_without_a_handle, 2) {
  fake.null_handles = true;
  fake_ext.there = _i != 0;
  tarn_device *device = open_fake();
  tarn_addr addr = 0;
  tarn_stream *stream = stream_on(device);
  assert_ok(tarn_device_allocate_on(stream, 64, &addr));
  assert_ok(tarn_device_deallocate_on(stream, addr, 64));
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
}

TEST(wrong_use_of_a_stream) {
  tarn_addr addr = 1;
  tarn_device *device = open_fake();
  tarn_stream *stream = stream_on(device);
  assert_status(tarn_device_allocate_on(NULL, 64, &addr), TARN_E_INVALID);
  ck_assert_uint_eq(addr, 0);
  addr = 1;
  assert_status(tarn_device_allocate_on(stream, 0, &addr), TARN_E_INVALID);
  ck_assert_uint_eq(addr, 0);
  assert_status(tarn_device_deallocate_on(NULL, 1, 64), TARN_E_INVALID);
  assert_status(tarn_device_deallocate_on(stream, 0, 64), TARN_E_INVALID);
}

TEST(no_resources_leave_the_memory_there) {
  tarn_addr addr = 0;
  fake_ext.there = true;
  tarn_device *device = open_fake();
  tarn_stream *stream = stream_on(device);
  assert_ok(tarn_device_allocate_on(stream, 64, &addr));
  fake_ext.refusing = ~UINT64_C(0);
  fake_ext.answer = TARN_E_NOMEM;
  assert_status(tarn_device_deallocate_on(stream, addr, 64), TARN_E_NOMEM);
  fake_ext.refusing = 0;
  assert_ok(tarn_stream_query(stream));  // and nothing sticks to the stream
  assert_ok(tarn_device_deallocate_on(stream, addr, 64));
}

// A stream that has failed queues nothing, but the memory must not be lost.
TEST_LOOP(a_failed_stream_still_gives_back, 2) {
  tarn_addr addr = 0;
  tarn_addr second = 1;
  fake_ext.there = _i != 0;
  tarn_device *device = open_fake();
  tarn_stream *stream = stream_on(device);
  assert_ok(tarn_device_allocate_on(stream, 64, &addr));
  fake.sync_answer = C_INTERNAL_ERROR;
  assert_status(tarn_stream_synchronize(stream), TARN_E_DEVICE);
  assert_status(tarn_device_allocate_on(stream, 64, &second), TARN_E_DEVICE);
  ck_assert_uint_eq(second, 0);
  assert_status(tarn_device_deallocate_on(stream, addr, 64), TARN_E_DEVICE);
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  end_failed_stream(stream);
}

TEST(a_driver_that_breaks_fails_the_stream) {
  tarn_addr addr = 0;
  fake_ext.there = true;
  tarn_device *device = open_fake();
  tarn_stream *stream = stream_on(device);
  fake_ext.refusing = FAKE_SLOT(allocate_async);
  fake_ext.answer = TARN_E_DEVICE;
  assert_status(tarn_device_allocate_on(stream, 64, &addr), TARN_E_DEVICE);
  assert_fails(tarn_stream_query(stream), TARN_E_DEVICE,
               "allocate_async of 64 bytes answered -4");
  end_failed_stream(stream);
}

// --- the program's own memory ----------------------------------------------

TEST(registered_memory_keeps_a_device_open) {
  static char bytes[4096];
  fake_ext.there = true;
  tarn_device *device = open_fake();
  assert_ok(tarn_device_host_register(device, bytes, sizeof bytes));
  assert_fails(tarn_device_close(device), TARN_E_STATE, "1 registrations");
  fake_ext.refusing = ~UINT64_C(0);
  fake_ext.answer = TARN_E_INVALID;
  assert_status(tarn_device_host_register(device, bytes, 8), TARN_E_INVALID);
  assert_status(tarn_device_host_unregister(device, bytes + 8), TARN_E_INVALID);
  assert_status(tarn_device_close(device), TARN_E_STATE);
  fake_ext.refusing = 0;
  assert_ok(tarn_device_host_unregister(device, bytes));
  ck_assert_uint_eq(fake_ext_seen.registered, 0);
}

TEST(wrong_registrations) {
  static char bytes[64];
  fake_ext.there = true;
  tarn_device *device = open_fake();
  assert_status(tarn_device_host_register(device, NULL, 64), TARN_E_INVALID);
  assert_status(tarn_device_host_register(device, bytes, 0), TARN_E_INVALID);
  assert_status(tarn_device_host_register(device, bytes, SIZE_MAX),
                TARN_E_INVALID);
  assert_status(tarn_device_host_unregister(device, NULL), TARN_E_INVALID);
  assert_status(tarn_device_host_register(NULL, bytes, 64), TARN_E_INVALID);
  ck_assert_uint_eq(fake_ext_seen.called & FAKE_SLOT(host_register), 0);
}

TEST(without_slots_nothing_stands_in) {
  static char bytes[64];
  tarn_pointer_info info = {.size = 1};
  tarn_device *device = open_fake();
  assert_fails(tarn_device_host_register(device, bytes, 64), TARN_E_UNSUPPORTED,
               "fake:0: has no host_register");
  assert_status(tarn_device_host_unregister(device, bytes), TARN_E_UNSUPPORTED);
  assert_fails(tarn_device_pointer_query(device, 1, &info), TARN_E_UNSUPPORTED,
               "fake:0: has no pointer_query");
  ck_assert_uint_eq(info.size, 0);
}

// --- what an address belongs to --------------------------------------------

TEST(kinds_and_devices_are_translated) {
  static const tarn_place_kind kinds[] = {TARN_PLACE_HOST, TARN_PLACE_DEVICE,
                                          TARN_PLACE_UNIFIED};
  fake_ext.there = true;
  fake.id_offset = 5;
  tarn_device *device = open_fake();
  tarn_device *other = open_device("fake:1");
  for (int kind = 0; kind < 3; kind++) {
    for (int id = 0; id < 2; id++) {
      tarn_pointer_info info = {0};
      fake_ext.pointer =
          (tarn_ext_pointer){(tarn_ext_kind)kind, id + 5, 4096, 100};
      assert_ok(tarn_device_pointer_query(device, 4100, &info));
      ck_assert_ptr_eq(info.place.device, id == 0 ? device : other);
      ck_assert_int_eq(info.place.kind, kinds[kind]);
      ck_assert_uint_eq(info.base, 4096);
      ck_assert_uint_eq(info.size, 100);
    }
  }
  close_device(other);
  tarn_pointer_info info = {0};
  assert_ok(tarn_device_pointer_query(device, 4100, &info));
  ck_assert_ptr_null(info.place.device);  // not open any more
  ck_assert_int_eq(info.place.kind, TARN_PLACE_UNIFIED);
}

static const tarn_ext_pointer impossible[] = {
    {(tarn_ext_kind)3, 0, 4096, 100},
    {TARN_EXT_KIND_DEVICE, 0, 4101, 100},  // begins behind the address
    {TARN_EXT_KIND_DEVICE, 0, 4000, 100},  // ends at it
};

TEST_LOOP(impossible_answers_are_the_drivers_failure, 3) {
  tarn_pointer_info info = {.size = 1};
  fake_ext.there = true;
  tarn_device *device = open_fake();
  fake_ext.pointer = impossible[_i];
  assert_fails(tarn_device_pointer_query(device, 4100, &info), TARN_E_DEVICE,
               "pointer_query of 0x1004 answered kind");
  ck_assert_uint_eq(info.base + info.size, 0);
}

TEST(unknown_addresses) {
  tarn_pointer_info info = {.size = 1};
  fake_ext.there = true;
  tarn_device *device = open_fake();
  assert_status(tarn_device_pointer_query(device, 0, &info), TARN_E_INVALID);
  assert_status(tarn_device_pointer_query(NULL, 1, &info), TARN_E_INVALID);
  fake_ext.refusing = FAKE_SLOT(pointer_query);
  fake_ext.answer = TARN_E_INVALID;
  assert_status(tarn_device_pointer_query(device, 7, &info), TARN_E_INVALID);
  ck_assert_uint_eq(info.size, 0);
}

// --- on real devices -------------------------------------------------------

static void expect_query(tarn_device *device, tarn_addr addr, size_t size,
                         tarn_place_kind kind) {
  tarn_pointer_info info = {0};
  assert_ok(tarn_device_pointer_query(device, addr + size - 1, &info));
  ck_assert_int_eq(info.place.kind, kind);
  ck_assert_ptr_eq(info.place.device, device);
  if (info.size == 0) return;  // the driver knows no more of it
  ck_assert_uint_le(info.base, addr);
  ck_assert_uint_ge(info.size, size);
}

static void use_registered(tarn_device *device, tarn_addr addr, size_t size) {
  unsigned char *bytes = malloc(size);
  ck_assert_ptr_nonnull(bytes);
  memset(bytes, 3, size);
  assert_ok(tarn_device_host_register(device, bytes, size));
  ck_assert(tarn_device_host_register(device, bytes, size) < TARN_OK);
  assert_ok(tarn_copy_h2d(device, addr, bytes, size, NULL));
  expect_query(device, (tarn_addr)(uintptr_t)bytes, size, TARN_PLACE_HOST);
  ck_assert(tarn_device_host_unregister(device, bytes + 1) < TARN_OK);
  assert_ok(tarn_device_host_unregister(device, bytes));
  ck_assert(tarn_device_host_unregister(device, bytes) < TARN_OK);
  free(bytes);
}

// Where the driver knows of addresses and of registered memory.
TEST_LOOP(addresses_of_every_device, TEST_DEVICES) {
  enum { SIZE = 64 << 10 };
  tarn_device *device = open_device(test_devices[_i]);
  tarn_device_info about = {.struct_size = sizeof about};
  tarn_addr addr = 0;
  tarn_pointer_info info = {.size = 1};
  assert_ok(tarn_device_query(device, &about));
  assert_ok(tarn_device_allocate(tarn_place_on(device), SIZE, &addr));
  ck_assert_uint_eq(addr % about.alignment, 0);
  if (about.extensions & TARN_EXTENSION_POINTERS && !about.host_accessible) {
    expect_query(device, addr, SIZE, TARN_PLACE_DEVICE);
    assert_status(
        tarn_device_pointer_query(device, (tarn_addr)(uintptr_t)&info, &info),
        TARN_E_INVALID);
    ck_assert_uint_eq(info.size, 0);
  } else {
    note_skipped(test_devices[_i], "it answers no queries of device memory");
  }
  if (about.extensions & TARN_EXTENSION_REGISTER) {
    use_registered(device, addr, SIZE);
  } else {
    note_skipped(test_devices[_i], "it registers no host memory");
  }
  assert_ok(tarn_device_deallocate(tarn_place_on(device), addr, SIZE));
}

// --- where nothing may be called -------------------------------------------

typedef struct scene {
  tarn_device *device;
  tarn_stream *stream;
  bool called;
} scene;

static void expect_state(const scene *s) {
  tarn_addr addr = 1;
  tarn_pointer_info info = {.size = 1};
  static char bytes[64];
  tarn_place place = tarn_place_on(s->device);
  assert_status(tarn_device_allocate_aligned(place, 64, 64, &addr),
                TARN_E_STATE);
  ck_assert_uint_eq(addr, 0);
  addr = 1;
  assert_status(tarn_device_allocate_on(s->stream, 64, &addr), TARN_E_STATE);
  ck_assert_uint_eq(addr, 0);
  assert_status(tarn_device_deallocate_on(s->stream, 1, 64), TARN_E_STATE);
  assert_status(tarn_device_host_register(s->device, bytes, 64), TARN_E_STATE);
  assert_status(tarn_device_host_unregister(s->device, bytes), TARN_E_STATE);
  assert_status(tarn_device_pointer_query(s->device, 1, &info), TARN_E_STATE);
  ck_assert_uint_eq(info.size, 0);
}

static void on_done(void *context, tarn_status status) {
  scene *s = context;
  assert_ok(status);
  expect_state(s);
  s->called = true;
}

TEST_LOOP(a_callback_must_not_call, 2) {
  fake_ext.there = _i != 0;
  scene s = {.device = open_fake()};
  s.stream = stream_on(s.device);
  assert_ok(tarn_stream_add_callback(s.stream, on_done, &s));
  end_stream(s.stream);
  ck_assert(s.called);
}

TEST_LOOP(a_child_must_not_call, 2) {
  fake_ext.there = _i != 0;
  scene s = {.device = open_fake()};
  s.stream = stream_on(s.device);
  pid_t child = fork();
  if (child == 0) {
    expect_state(&s);
    _exit(0);
  }
  int status = 1;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
}
