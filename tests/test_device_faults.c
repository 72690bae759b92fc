// The N-th host allocation or device call fails, and the N-th and all later,
// for every N, over every public function of the room.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/fake_extension.h"
#include "support/fake_plugin.h"
#include "support/faults.h"
#include "support/run.h"
#include "tarn/range.h"
#include "tarn/rows.h"

// What may come back where something was made to fail.
static void expect(tarn_status status) {
  ck_assert_msg(status == TARN_OK || status == TARN_FULL ||
                    status == TARN_PENDING || status == TARN_E_DEVICE ||
                    status == TARN_E_NOMEM,
                "%s: %s", tarn_status_name(status), tarn_last_error());
  if (status < TARN_OK) ck_assert_str_ne(tarn_last_error(), "");
}

static void on_done(void *context, tarn_status status) {
  ++*(int *)context;
  expect(status);
}

static void use_memory(tarn_device *device) {
  size_t total = 0;
  size_t available = 0;
  expect(tarn_device_memory(device, &total, &available));
  for (int kind = TARN_PLACE_HOST; kind <= TARN_PLACE_UNIFIED; kind++) {
    tarn_place place = {device, (tarn_place_kind)kind};
    tarn_addr addr = 0;
    tarn_status status = tarn_device_allocate(place, 256, &addr);
    expect(status);
    ck_assert((status == TARN_OK) == (addr != 0));
    if (status == TARN_OK) expect(tarn_device_deallocate(place, addr, 256));
  }
}

static void use_copies(tarn_device *device, tarn_device *other,
                       tarn_stream *stream) {
  char bytes[64] = {0};
  tarn_addr a = 0;
  tarn_addr b = 0;
  expect(tarn_device_allocate(tarn_place_on(device), 64, &a));
  expect(tarn_device_allocate(tarn_place_on(other), 64, &b));
  if (a != 0 && b != 0) {
    expect(tarn_copy_h2d(device, a, bytes, 64, stream));
    expect(tarn_copy_d2h(device, bytes, a, 64, stream));
    expect(tarn_copy_d2d(device, a, a + 32, 32, stream));
    expect(tarn_copy_p2p(other, b, device, a, 64, stream));
    expect(tarn_device_set(device, a, 1, 64, stream));
    if (stream != NULL) expect(tarn_stream_synchronize(stream));
  }
  if (a != 0) expect(tarn_device_deallocate(tarn_place_on(device), a, 64));
  if (b != 0) expect(tarn_device_deallocate(tarn_place_on(other), b, 64));
}

static void use_event(tarn_device *device, tarn_stream *stream) {
  tarn_event *event = NULL;
  expect(tarn_event_create(device, &event));
  if (event == NULL) return;
  expect(tarn_event_record(event, stream));
  expect(tarn_event_query(event));
  expect(tarn_stream_wait_event(stream, event));
  expect(tarn_event_synchronize(event));
  expect(tarn_event_destroy(event));
}

static void use_streams(tarn_device *device, tarn_device *other) {
  tarn_stream *stream = NULL;
  tarn_stream *second = NULL;
  int calls = 0;
  expect(tarn_stream_create(device, &stream));
  expect(tarn_stream_create(device, &second));
  if (stream != NULL && second != NULL) {
    use_copies(device, other, stream);
    tarn_status status = tarn_stream_add_callback(stream, on_done, &calls);
    expect(status);
    expect(tarn_stream_query(stream));
    expect(tarn_stream_join(second, tarn_stream_serial(stream)));
    expect(tarn_stream_join(NULL, tarn_stream_serial(stream)));
    use_event(device, second);
    expect(tarn_device_synchronize(device));
    expect(tarn_stream_synchronize(stream));
    // Once it is queued it is called, whatever else goes wrong.
    ck_assert_int_eq(calls, status == TARN_OK);
  }
  expect(tarn_stream_destroy(second));
  expect(tarn_stream_destroy(stream));
}

// --- beyond the ABI --------------------------------------------------------

static void use_aligned(tarn_device *device) {
  for (int kind = TARN_PLACE_HOST; kind <= TARN_PLACE_UNIFIED; kind++) {
    tarn_place place = {device, (tarn_place_kind)kind};
    tarn_addr addr = 0;
    tarn_status status = tarn_device_allocate_aligned(place, 256, 8192, &addr);
    expect(status);
    ck_assert((status == TARN_OK) == (addr != 0));
    if (addr != 0) expect(tarn_device_deallocate(place, addr, 256));
  }
}

static void use_ordered(tarn_device *device) {
  tarn_stream *stream = NULL;
  tarn_addr addr = 0;
  tarn_addr second = 0;
  expect(tarn_stream_create(device, &stream));
  if (stream == NULL) return;
  expect(tarn_device_allocate_on(stream, 256, &addr));
  if (addr != 0) expect(tarn_device_deallocate_on(stream, addr, 256));
  expect(
      tarn_device_allocate_aligned(tarn_place_on(device), 256, 8192, &second));
  if (second != 0) expect(tarn_device_deallocate_on(stream, second, 256));
  expect(tarn_stream_destroy(stream));
}

// A device that could not say its granularity has no ranges.
static void expect_range(tarn_status status) {
  if (status != TARN_E_UNSUPPORTED) expect(status);
}

static void use_ranges(tarn_device *device) {
  enum { STEP = 64 << 10 };
  size_t step = 0;
  tarn_addr addr = 0;
  tarn_memory memory = 0;
  tarn_memory twin = 0;
  int fd = 0;
  expect_range(tarn_range_granularity(device, &step));
  expect_range(tarn_range_reserve(device, STEP, 0, &addr));
  expect_range(tarn_memory_create(device, STEP, 1, &memory));
  if (addr != 0 && memory != 0) {
    tarn_status status = tarn_range_map(device, addr, STEP, memory);
    expect(status);
    expect(tarn_range_set_access(device, addr, STEP, device, TARN_ACCESS_READ));
    if (status == TARN_OK) expect(tarn_range_unmap(device, addr, STEP));
  }
  if (memory != 0) {
    tarn_status status = tarn_memory_export(device, memory, &fd);
    expect(status);
    expect(tarn_memory_import(device, fd, STEP, &twin));
    if (status == TARN_OK) close(fd);
    expect(tarn_memory_destroy(device, memory));
  }
  if (twin != 0) expect(tarn_memory_destroy(device, twin));
  if (addr != 0) expect(tarn_range_release(device, addr, STEP));
}

static void use_knowledge(tarn_device *device) {
  static char bytes[64];
  tarn_pointer_info info = {0};
  tarn_status status = tarn_device_host_register(device, bytes, sizeof bytes);
  expect_range(status);
  if (status == TARN_OK) expect(tarn_device_host_unregister(device, bytes));
  fake_ext.pointer = (tarn_ext_pointer){TARN_EXT_KIND_DEVICE, 1, 4096, 64};
  status = tarn_device_pointer_query(device, 4096, &info);
  expect_range(status);
  ck_assert((status == TARN_OK) == (info.base != 0));
}

// Two rows of two elements, and the indices 0 and 0, all of them zero.
static void use_rows(tarn_device *device, tarn_stream *stream) {
  tarn_addr addr = 0;
  size_t offsets[2] = {0, 16};
  tarn_status status = tarn_device_allocate(tarn_place_on(device), 48, &addr);
  expect(status);
  if (status != TARN_OK) return;
  tarn_rows rows = {.struct_size = sizeof rows,
                    .table = {&addr, offsets, 1},
                    .table_dtype = TARN_DTYPE_F32,
                    .table_count = 2,
                    .width = 2,
                    .dense = addr + 16,
                    .dense_dtype = TARN_DTYPE_F32,
                    .indices = addr + 32,
                    .index_dtype = TARN_DTYPE_I64,
                    .index_count = 2};
  status = tarn_device_set(device, addr, 0, 48, NULL);
  expect(status);
  if (status == TARN_OK) {
    expect(tarn_rows_gather(device, &rows, stream));
    expect(tarn_rows_scatter(device, &rows, stream));
    expect(tarn_rows_scatter_add(device, &rows, stream));
    rows.dense_dtype = TARN_DTYPE_F16;
    expect(tarn_rows_gather(device, &rows, stream));
  }
  if (stream != NULL) expect(tarn_stream_synchronize(stream));
  expect(tarn_device_deallocate(tarn_place_on(device), addr, 48));
}

static void use_extension(tarn_device *device) {
  tarn_stream *stream = NULL;
  use_aligned(device);
  use_ordered(device);
  use_ranges(device);
  use_knowledge(device);
  use_rows(device, NULL);
  expect(tarn_stream_create(device, &stream));
  if (stream != NULL) use_rows(device, stream);
  expect(tarn_stream_destroy(stream));
}

static tarn_status ignore_name(void *context, const char *name) {
  (void)context;
  (void)name;
  return TARN_OK;
}

static void scenario(void *context) {
  (void)context;
  tarn_device *device = NULL;
  tarn_device *other = NULL;
  expect(tarn_device_each(ignore_name, NULL));
  expect(tarn_device_open("fake:0", &device));
  expect(tarn_device_open("fake:1", &other));
  if (device != NULL && other != NULL) {
    use_memory(device);
    use_copies(device, other, NULL);
    use_streams(device, other);
    use_extension(device);
  }
  expect(tarn_device_close(other));
  expect(tarn_device_close(device));
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  ck_assert_uint_eq(fake_seen.streams, 0);
  ck_assert_uint_eq(fake_seen.events, 0);
  ck_assert_uint_eq(fake_seen.wrong_size, 0);
  ck_assert_uint_eq(fake_ext_seen.ranges, 0);
  ck_assert_uint_eq(fake_ext_seen.memories, 0);
  ck_assert_uint_eq(fake_ext_seen.mappings, 0);
  ck_assert_uint_eq(fake_ext_seen.registered, 0);
  ck_assert_uint_eq(fake_ext_seen.wrong, 0);
}

// The last has an extension, and all of the ABI too.
static const uint64_t abilities[] = {
    0,
    FAKE_MISSES(memory_copy_p2p) | FAKE_MISSES(device_memory_set) |
        FAKE_MISSES(async_memory_copy_p2p) | FAKE_MISSES(async_memory_copy_h2d),
    FAKE_MISSES(host_memory_allocate) | FAKE_MISSES(host_memory_deallocate) |
        FAKE_MISSES(memory_copy_p2p) | FAKE_MISSES(stream_add_callback) |
        FAKE_MISSES(query_event) | FAKE_MISSES(stream_wait_event),
    0,
};
enum { ABILITIES = sizeof abilities / sizeof abilities[0] };

START_TEST(every_call_may_fail) {
  fake.missing = abilities[_i];
  fake_ext.there = _i == ABILITIES - 1;
  if (!fake_ext.there) fake.misalign = 8;
  fake_add();
  scenario(NULL);  // what is opened once and for all is opened now
  fake.strikes = true;
  size_t faults = faults_sweep(scenario, NULL);
  printf("device: %zu faults, 0 leaks (abilities %d)\n", faults, _i);
  ck_assert_uint_gt(faults, 500);
}
END_TEST

// The first use of all makes the registry and opens cpu:0, once per process:
// each fault needs a process of its own, which Check gives to each test.
START_TEST(the_first_open_may_fail) {
  size_t held = tarn_host_memory();
  tarn_device *device = NULL;
  faults_arm((size_t)_i, FAULTS_FROM_NOW);
  tarn_status status = tarn_device_open("cpu:0", &device);
  bool struck = faults_disarm();
  ck_assert_int_eq(status, struck ? TARN_E_NOMEM : TARN_OK);
  if (struck) ck_assert_ptr_null(device);
  if (struck && _i == 1) ck_assert_uint_eq(tarn_host_memory(), held);
  assert_ok(tarn_device_open("cpu:0", &device));  // the next try succeeds
  assert_ok(tarn_device_close(device));
}
END_TEST

int main(void) {
  faults_install();
  Suite *suite = suite_create("device: faults");
  TCase *sweep = tcase_create("sweep");
  tcase_set_timeout(sweep, 240);
  tcase_add_loop_test(sweep, every_call_may_fail, 0, ABILITIES);
  tcase_add_loop_test(sweep, the_first_open_may_fail, 1, 16);
  suite_add_tcase(suite, sweep);
  return run_suite(suite);
}
