// Ranges: what is checked before the plug-in is called, what it may answer, and
// what is counted.
#include "tarn/range.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/memory.h"
#include "kit.h"

#define STEP ((size_t)64 << 10)

static tarn_device *device;  // fake:0

static void check_nothing_left(void *seen) {
  const fake_ext_ledger *ledger = seen;
  ck_assert_uint_eq(ledger->ranges, 0);
  ck_assert_uint_eq(ledger->memories, 0);
  ck_assert_uint_eq(ledger->mappings, 0);
}

// Every range and memory must have gone back at the end of the test.
static void open_ranges(void) {
  fake_ext.there = true;
  after_test(check_nothing_left, &fake_ext_seen);
  device = open_fake();
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

// --- what it is for --------------------------------------------------------

TEST(a_range_grows_and_shrinks) {
  size_t step = 0;
  open_ranges();
  assert_ok(tarn_range_granularity(device, &step));
  ck_assert_uint_eq(step, STEP);
  tarn_addr range = reserve(16 * STEP);
  for (size_t i = 0; i < 4; i++) {
    tarn_memory memory = create(2 * STEP);
    tarn_addr at = range + i * 2 * STEP;
    assert_ok(tarn_range_map(device, at, 2 * STEP, memory));
    assert_ok(tarn_range_set_access(device, at, 2 * STEP, device,
                                    TARN_RIGHTS_READ_WRITE));
    assert_ok(tarn_memory_destroy(device, memory));
  }
  ck_assert_int_eq(fake_ext_seen.access, TARN_EXT_ACCESS_READ_WRITE);
  ck_assert_uint_eq(fake_ext_seen.mappings, 4);
  assert_status(tarn_range_release(device, range, 16 * STEP), TARN_E_INVALID);
  assert_ok(tarn_range_unmap(device, range, 8 * STEP));
  assert_ok(tarn_range_release(device, range, 16 * STEP));
}

TEST(what_is_mapped_moves) {
  tarn_addr range = 0;
  tarn_memory memory = 0;
  size_t moved = 1;
  open_ranges();
  assert_ok(tarn_range_reserve(device, 8 * STEP, 0, &range));
  assert_ok(tarn_memory_create(device, 2 * STEP, 0, &memory));
  assert_ok(tarn_range_map(device, range, 2 * STEP, memory));
  assert_ok(tarn_range_move(device, range, range + 4 * STEP, 2 * STEP, &moved));
  ck_assert_uint_eq(moved, 2 * STEP);
  assert_ok(tarn_range_unmap(device, range + 4 * STEP, 2 * STEP));
  ck_assert_uint_eq(fake_ext_seen.mappings, 0);
  assert_ok(tarn_memory_destroy(device, memory));
  assert_ok(tarn_range_release(device, range, 8 * STEP));
}

TEST(alignment_is_at_least_the_granularity) {
  static const size_t aligns[] = {0, 1, 4096, STEP, 16 * STEP};
  open_ranges();
  for (size_t i = 0; i < sizeof aligns / sizeof aligns[0]; i++) {
    tarn_addr addr = 0;
    size_t expected = aligns[i] > STEP ? aligns[i] : STEP;
    assert_ok(tarn_range_reserve(device, STEP, aligns[i], &addr));
    ck_assert_uint_eq(fake_ext_seen.align, expected);
    ck_assert_uint_eq(addr % expected, 0);
    assert_ok(tarn_range_release(device, addr, STEP));
  }
}

TEST(another_device_of_the_type_may_have_access) {
  open_ranges();
  tarn_device *other = open_device("fake:1");
  tarn_device *cpu = open_device("cpu:0");
  assert_ok(tarn_range_set_access(device, STEP, STEP, other, TARN_RIGHTS_READ));
  ck_assert_int_eq(fake_ext_seen.by, 1);
  ck_assert_int_eq(fake_ext_seen.access, TARN_EXT_ACCESS_READ);
  assert_ok(
      tarn_range_set_access(device, STEP, STEP, device, TARN_RIGHTS_NONE));
  ck_assert_int_eq(fake_ext_seen.access, TARN_EXT_ACCESS_NONE);
  assert_fails(tarn_range_set_access(device, STEP, STEP, cpu, TARN_RIGHTS_READ),
               TARN_E_INVALID, "cpu:0 is of another type");
  assert_status(
      tarn_range_set_access(device, STEP, STEP, NULL, TARN_RIGHTS_READ),
      TARN_E_INVALID);
  assert_fails(
      tarn_range_set_access(device, STEP, STEP, device, (tarn_rights)2),
      TARN_E_INVALID, "2 is no right");
}

TEST(memory_goes_to_other_processes) {
  tarn_memory memory = 0;
  tarn_memory twin = 0;
  int fd = -1;
  open_ranges();
  assert_ok(tarn_memory_create(device, STEP, TARN_MEMORY_SHAREABLE, &memory));
  assert_ok(tarn_memory_export(device, memory, &fd));
  ck_assert_int_ge(fd, 0);
  assert_ok(tarn_memory_import(device, fd, STEP, &twin));
  ck_assert_int_eq(close(fd), 0);  // it stayed the caller's
  ck_assert_uint_ne(twin, memory);
  assert_ok(tarn_memory_destroy(device, twin));
  assert_ok(tarn_memory_destroy(device, memory));
}

// --- arguments -------------------------------------------------------------

static const struct {
  tarn_addr addr;
  size_t size;
} bad_extents[] = {
    {0, STEP},        {STEP, 0},        {STEP + 1, STEP},
    {STEP, STEP - 1}, {STEP / 2, STEP}, {(tarn_addr)-STEP, 2 * (size_t)STEP},
};
enum { BAD_EXTENTS = sizeof bad_extents / sizeof bad_extents[0] };

// None of it reaches the plug-in.
TEST_LOOP(a_bad_extent_is_refused, BAD_EXTENTS) {
  tarn_addr addr = bad_extents[_i].addr;
  size_t size = bad_extents[_i].size;
  open_ranges();
  fake_ext_seen.called = 0;
  assert_status(tarn_range_release(device, addr, size), TARN_E_INVALID);
  assert_fails(tarn_range_map(device, addr, size, 1), TARN_E_INVALID,
               "multiples of 65536");
  assert_status(tarn_range_unmap(device, addr, size), TARN_E_INVALID);
  assert_status(
      tarn_range_set_access(device, addr, size, device, TARN_RIGHTS_READ),
      TARN_E_INVALID);
  size_t moved = 1;
  assert_fails(tarn_range_move(device, addr, STEP, size, &moved),
               TARN_E_INVALID, "range_move of");
  assert_status(tarn_range_move(device, STEP, addr, size, &moved),
                TARN_E_INVALID);
  ck_assert_uint_eq(moved, 0);
  ck_assert_uint_eq(fake_ext_seen.called, 0);
}

TEST(bad_sizes_flags_and_handles_are_refused) {
  static const size_t sizes[] = {0, 1, STEP + 1, STEP / 2, SIZE_MAX};
  tarn_addr addr = 1;
  tarn_memory memory = 1;
  int fd = 7;
  open_ranges();
  fake_ext_seen.called = 0;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    assert_status(tarn_range_reserve(device, sizes[i], 0, &addr),
                  TARN_E_INVALID);
    assert_status(tarn_memory_create(device, sizes[i], 0, &memory),
                  TARN_E_INVALID);
    assert_status(tarn_memory_import(device, 0, sizes[i], &memory),
                  TARN_E_INVALID);
    ck_assert_uint_eq(addr, 0);
    ck_assert_uint_eq(memory, 0);
  }
  assert_fails(tarn_range_reserve(device, STEP, 3, &addr), TARN_E_INVALID,
               "3 is no power of two");
  assert_fails(tarn_memory_create(device, STEP, 2, &memory), TARN_E_INVALID,
               "flags 0x2");
  assert_status(tarn_memory_destroy(device, 0), TARN_E_INVALID);
  assert_status(tarn_range_map(device, STEP, STEP, 0), TARN_E_INVALID);
  assert_status(tarn_memory_export(device, 0, &fd), TARN_E_INVALID);
  ck_assert_int_eq(fd, 0);
  assert_fails(tarn_memory_import(device, -1, STEP, &memory), TARN_E_INVALID,
               "file descriptor -1");
  ck_assert_uint_eq(fake_ext_seen.called, 0);
}

// --- answers ---------------------------------------------------------------

TEST(nothing_with_success_is_full) {
  tarn_addr addr = 1;
  tarn_memory memory = 1;
  int fd = 7;
  open_ranges();
  fake_ext.empty = ~UINT64_C(0);
  assert_fails(tarn_range_reserve(device, STEP, 0, &addr), TARN_FULL,
               "no 65536 bytes of addresses are left");
  ck_assert_uint_eq(addr, 0);
  assert_fails(tarn_memory_create(device, STEP, 0, &memory), TARN_FULL,
               "out of memory: 65536 bytes were refused");
  ck_assert_uint_eq(memory, 0);
  assert_status(tarn_memory_import(device, 0, STEP, &memory), TARN_E_DEVICE);
  ck_assert_uint_eq(memory, 0);
  assert_fails(tarn_memory_export(device, 1, &fd), TARN_E_DEVICE,
               "file descriptor -1");
  ck_assert_int_eq(fd, 0);
  fake_ext.empty = 0;
}

TEST(an_address_that_is_not_aligned_goes_back) {
  tarn_addr addr = 1;
  open_ranges();
  fake_ext.misalign = 4096;
  assert_fails(tarn_range_reserve(device, STEP, 0, &addr), TARN_E_DEVICE,
               "no multiple of 65536");
  ck_assert_uint_eq(addr, 0);
  fake_ext.misalign =
      STEP;  // enough for the granularity, not for what is asked
  assert_status(tarn_range_reserve(device, STEP, 4 * STEP, &addr),
                TARN_E_DEVICE);
  ck_assert_uint_eq(fake_ext_seen.ranges, 0);
  fake_ext.misalign = 0;
}

TEST(every_refusal_is_handed_on) {
  tarn_addr addr = 1;
  tarn_memory memory = 1;
  int fd = 7;
  open_ranges();
  fake_ext.refusing = ~UINT64_C(0);
  fake_ext.answer = TARN_E_INVALID;
  assert_status(tarn_range_reserve(device, STEP, 0, &addr), TARN_E_INVALID);
  assert_status(tarn_range_release(device, STEP, STEP), TARN_E_INVALID);
  assert_status(tarn_memory_create(device, STEP, 0, &memory), TARN_E_INVALID);
  assert_status(tarn_memory_destroy(device, 5), TARN_E_INVALID);
  assert_status(tarn_range_map(device, STEP, STEP, 5), TARN_E_INVALID);
  assert_status(tarn_range_unmap(device, STEP, STEP), TARN_E_INVALID);
  assert_fails(
      tarn_range_set_access(device, STEP, STEP, device, TARN_RIGHTS_READ),
      TARN_E_INVALID, "fake:0: range_set_access of 65536 bytes answered -1");
  size_t moved = 1;
  assert_fails(tarn_range_move(device, STEP, 4 * STEP, STEP, &moved),
               TARN_E_INVALID, "fake:0: range_move of 65536 bytes answered -1");
  ck_assert_uint_eq(moved, 0);
  assert_status(tarn_memory_export(device, 5, &fd), TARN_E_INVALID);
  assert_status(tarn_memory_import(device, 0, STEP, &memory), TARN_E_INVALID);
  ck_assert_uint_eq(addr + memory + (uint64_t)fd, 0);
}

// --- devices that cannot ---------------------------------------------------

static void expect_no_sharing(void) {
  tarn_memory memory = 1;
  int fd = 7;
  assert_status(tarn_memory_export(device, 1, &fd), TARN_E_UNSUPPORTED);
  ck_assert_int_eq(fd, 0);
  assert_fails(tarn_memory_import(device, 0, STEP, &memory), TARN_E_UNSUPPORTED,
               "fake:0: has no memory for other processes");
  ck_assert_uint_eq(memory, 0);
  assert_status(
      tarn_memory_create(device, STEP, TARN_MEMORY_SHAREABLE, &memory),
      TARN_E_UNSUPPORTED);
  ck_assert_uint_eq(memory, 0);
}

TEST(without_ranges_nothing_stands_in) {
  size_t size = 1;
  tarn_addr addr = 1;
  tarn_memory memory = 1;
  fake_ext.missing =
      FAKE_SLOTS_RANGES | FAKE_SLOTS_SHARING | FAKE_SLOT(range_move);
  open_ranges();
  assert_status(tarn_range_granularity(device, &size), TARN_E_UNSUPPORTED);
  assert_status(tarn_range_reserve(device, STEP, 0, &addr), TARN_E_UNSUPPORTED);
  assert_status(tarn_range_release(device, STEP, STEP), TARN_E_UNSUPPORTED);
  assert_status(tarn_memory_create(device, STEP, 0, &memory),
                TARN_E_UNSUPPORTED);
  assert_status(tarn_memory_destroy(device, 1), TARN_E_UNSUPPORTED);
  assert_status(tarn_range_map(device, STEP, STEP, 1), TARN_E_UNSUPPORTED);
  assert_status(tarn_range_unmap(device, STEP, STEP), TARN_E_UNSUPPORTED);
  assert_fails(
      tarn_range_set_access(device, STEP, STEP, device, TARN_RIGHTS_READ),
      TARN_E_UNSUPPORTED, "fake:0: has no address ranges");
  ck_assert_uint_eq(size + addr + memory, 0);
  expect_no_sharing();
}

TEST(ranges_go_without_moves) {
  size_t moved = 1;
  fake_ext.missing = FAKE_SLOT(range_move);
  open_ranges();
  assert_fails(tarn_range_move(device, STEP, 4 * STEP, STEP, &moved),
               TARN_E_UNSUPPORTED, "fake:0: has no moves of mapped memory");
  ck_assert_uint_eq(moved, 0);
  assert_ok(tarn_memory_destroy(device, create(STEP)));
}

TEST(ranges_go_without_sharing) {
  fake_ext.missing = FAKE_SLOTS_SHARING;
  open_ranges();
  expect_no_sharing();
  assert_ok(tarn_memory_destroy(device, create(STEP)));
}

// --- counts ----------------------------------------------------------------

TEST(a_device_with_ranges_stays_open) {
  fake_ext.there = true;
  device = open_fake();
  tarn_addr range = reserve(STEP);
  tarn_memory memory = create(STEP);
  tarn_memory second = create(STEP);
  assert_fails(tarn_device_close(device), TARN_E_STATE,
               "1 ranges, 2 memory handles");
  assert_ok(tarn_memory_destroy(device, memory));
  assert_ok(tarn_range_release(device, range, STEP));
  assert_fails(tarn_device_close(device), TARN_E_STATE,
               "0 ranges, 1 memory handles");
  // A refusal of the plug-in's leaves it counted, a driver that broke does not.
  assert_status(tarn_memory_destroy(device, 200), TARN_E_INVALID);
  assert_status(tarn_device_close(device), TARN_E_STATE);
  fake_ext.refusing = FAKE_SLOT(memory_destroy);
  fake_ext.answer = TARN_E_DEVICE;
  assert_status(tarn_memory_destroy(device, second), TARN_E_DEVICE);
}

// What pools take goes back when the device closes, and is not counted.
TEST(pools_are_not_counted) {
  tarn_addr range = 0;
  uint64_t memory = 0;
  fake_ext.there = true;
  device = open_fake();
  assert_ok(tarn__range_reserve(device, STEP, 0, &range));
  assert_ok(tarn__memory_create(device, STEP, 0, &memory));
  assert_status(tarn__memory_create(device, 1, 0, &memory), TARN_E_INVALID);
  ck_assert_uint_eq(memory, 0);
  assert_ok(tarn__memory_destroy(device, 1));
  assert_ok(tarn__range_release(device, range, STEP));
  assert_ok(tarn__range_reserve(device, STEP, 0, &range));
}

// --- where nothing may be called -------------------------------------------

static void expect_state(void) {
  size_t size = 1;
  tarn_addr addr = 1;
  tarn_memory memory = 1;
  int fd = 7;
  assert_status(tarn_range_granularity(device, &size), TARN_E_STATE);
  assert_status(tarn_range_reserve(device, STEP, 0, &addr), TARN_E_STATE);
  assert_status(tarn_range_release(device, STEP, STEP), TARN_E_STATE);
  assert_status(tarn_memory_create(device, STEP, 0, &memory), TARN_E_STATE);
  assert_status(tarn_memory_destroy(device, 1), TARN_E_STATE);
  assert_status(tarn_range_map(device, STEP, STEP, 1), TARN_E_STATE);
  assert_status(tarn_range_unmap(device, STEP, STEP), TARN_E_STATE);
  assert_status(
      tarn_range_set_access(device, STEP, STEP, device, TARN_RIGHTS_READ),
      TARN_E_STATE);
  assert_status(tarn_memory_export(device, 1, &fd), TARN_E_STATE);
  assert_status(tarn_memory_import(device, 0, STEP, &memory), TARN_E_STATE);
  ck_assert_uint_eq(size + addr + memory + (uint64_t)fd, 0);
}

static void on_done(void *context, tarn_status status) {
  assert_ok(status);
  expect_state();
  *(bool *)context = true;
}

TEST(a_callback_must_not_call) {
  bool called = false;
  open_ranges();
  tarn_stream *stream = stream_on(device);
  assert_ok(tarn_stream_add_callback(stream, on_done, &called));
  end_stream(stream);
  ck_assert(called);
}

TEST(a_child_must_not_call) {
  open_ranges();
  pid_t child = fork();
  if (child == 0) {
    expect_state();
    _exit(0);
  }
  int status = 1;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
}
