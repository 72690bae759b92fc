// Spans that have become equal are joined, whichever streams have used them:
// the map grows with differences, and not with the number of operations.
#include "kit.h"
#include "support/on_devices.h"

enum { ROWS = 64, ROW = 128, SIZE = 2 * ROWS * ROW };

static tarn_device *gpu;
static tarn_stream *stream;
static tarn_synced *x;

static void tear_down(void *context) {
  (void)context;
  assert_ok(tarn_synced_destroy(x));
  assert_ok(tarn_stream_destroy(stream));
  ck_assert_uint_eq(sim_misuses(), 0);
}

// Valid at both places.
static void set_up(tarn_device *device) {
  gpu = device;
  assert_ok(tarn_stream_create(gpu, &stream));
  x = new_buffer(SIZE);
  write_at(x, 0, SIZE, TARN_HOST, NULL, 1);
  expect_at(x, 0, SIZE, tarn_place_on(gpu), 1);
  after_test(tear_down, NULL);
}

#define TEST_JOINS(name) TEST_SET_ON(name, TEST_NEEDS_DISCRETE, set_up)

static size_t count_spans(void) {
  verify(x);
  return x->core->spans.map.count;
}

static void use(size_t offset, size_t size, tarn_place place, uint32_t mode,
                tarn_stream *on) {
  tarn_access access;
  assert_ok(tarn_synced_begin(x, offset, size, place, mode, on, &access));
  assert_ok(tarn_synced_end(&access));
}

static void use_all(tarn_place place, uint32_t mode, tarn_stream *on) {
  use(0, SIZE, place, mode, on);
}

// Every other row.
static void use_rows(uint32_t mode, tarn_stream *on) {
  for (size_t i = 0; i < ROWS; i++)
    use(2 * i * ROW, ROW, tarn_place_on(gpu), mode, on);
}

TEST_JOINS(rows_that_a_stream_wrote) {
  use_rows(TARN_READ_WRITE, stream);
  ck_assert_uint_eq(count_spans(), 2 * ROWS);
  use_all(TARN_HOST, TARN_READ, NULL);
  ck_assert_uint_eq(count_spans(), 1);
  ck_assert_ptr_null(x->core->spans.first->uses);
}

TEST_JOINS(rows_that_a_stream_copied) {
  use_rows(TARN_READ_WRITE, NULL);
  ck_assert_uint_eq(count_spans(), 2 * ROWS);
  use_all(TARN_HOST, TARN_READ, stream);
  use_all(TARN_HOST, TARN_READ, NULL);
  use_all(TARN_HOST, TARN_READ, NULL);
  ck_assert_uint_eq(count_spans(), 1);
}

TEST_JOINS(rows_that_a_stream_read) {
  use_rows(TARN_READ, stream);
  use_all(tarn_place_on(gpu), TARN_READ_WRITE, NULL);
  ck_assert_uint_eq(count_spans(), 1);
  ck_assert_ptr_null(x->core->spans.first->uses);
}

// A buffer that was once cut into many runs does not keep their memory.
TEST_JOINS(memory_goes_with_the_rows) {
  enum { MANY = 10000, BYTES = 4 };
  tarn_synced *table = new_buffer((size_t)2 * MANY * BYTES);
  write_at(table, 0, (size_t)2 * MANY * BYTES, TARN_HOST, NULL, 1);
  size_t held = tarn_host_memory();
  for (size_t i = 0; i < MANY; i++) {
    tarn_access access;
    require(tarn_synced_begin(table, 2 * i * BYTES, BYTES, TARN_HOST, TARN_READ,
                              NULL, &access) == TARN_OK);
    require(tarn_synced_end(&access) == TARN_OK);
    require(tarn_synced_invalidate(table, 2 * i * BYTES, BYTES) == TARN_OK);
  }
  ck_assert_uint_gt(table->core->spans.map.count, MANY);
  write_at(table, 0, (size_t)2 * MANY * BYTES, TARN_HOST, NULL, 2);
  ck_assert_uint_eq(table->core->spans.map.count, 1);
  ck_assert_uint_lt(tarn_host_memory(), held + ((size_t)1 << 20));
  assert_ok(tarn_synced_destroy(table));
}

// The short way is for bytes without work under way.
TEST_JOINS(a_stream_that_is_done_is_in_nobody_s_way) {
  use_all(tarn_place_on(gpu), TARN_READ_WRITE, stream);
  use_all(tarn_place_on(gpu), TARN_READ_WRITE, NULL);
  ck_assert_ptr_null(x->core->spans.first->uses);
}
