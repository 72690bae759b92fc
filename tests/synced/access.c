// Accesses of one thread without streams: modes, ranges, conflicts, what is
// lost, and what is refused.
#include "kit.h"
#include "support/on_devices.h"

enum { SIZE = 10000 };

// Two devices of one plug-in.
static tarn_place at0;
static tarn_place at1;

static tarn_synced *x;

static void tear_down(void *context) {
  (void)context;
  assert_ok(tarn_synced_destroy(x));
  ck_assert_uint_eq(sim_misuses(), 0);
}

static void set_up(tarn_device *device) {
  at0 = tarn_place_on(device);
  at1 = tarn_place_on(open_second(device));
  x = new_buffer(SIZE);
  after_test(tear_down, NULL);
}

#define TEST_ACCESS(name) TEST_SET_ON(name, TEST_NEEDS_DISCRETE, set_up)

// --- modes -------------------------------------------------------------------

TEST_ACCESS(bytes_come_where_they_are_read) {
  write_at(x, 0, SIZE, TARN_HOST, NULL, 7);
  expect_at(x, 0, SIZE, at0, 7);
  assert_moved(x, TARN_HOST, at0, 1, SIZE);
  expect_at(x, 0, SIZE, at0, 7);
  assert_moved(x, TARN_HOST, at0, 1, SIZE);
  ck_assert_uint_eq(counts_of(x, at0, at0).valid, SIZE);
  write_at(x, 0, SIZE, at0, NULL, 8);
  assert_moved(x, TARN_HOST, at0, 1, SIZE);
  expect_at(x, 0, SIZE, TARN_HOST, 8);
  assert_moved(x, at0, TARN_HOST, 1, SIZE);
}

TEST_ACCESS(discarding_copies_nothing) {
  write_at(x, 0, SIZE, TARN_HOST, NULL, 7);
  write_at(x, 100, 50, at0, NULL, 8);
  assert_moved(x, TARN_HOST, at0, 0, 0);
  ck_assert_uint_eq(counts_of(x, TARN_HOST, at0).discarded, 50);
  expect_at(x, 0, 100, TARN_HOST, 7);
  expect_at(x, 100, 50, TARN_HOST, 8);
  expect_at(x, 150, SIZE - 150, TARN_HOST, 7);
  assert_moved(x, at0, TARN_HOST, 1, 50);
}

TEST_ACCESS(read_write_keeps_what_was_there) {
  tarn_access access;
  unsigned char byte = 9;
  write_at(x, 0, SIZE, TARN_HOST, NULL, 7);
  assert_ok(
      tarn_synced_begin(x, 0, TARN_ALL, at0, TARN_READ_WRITE, NULL, &access));
  assert_ok(tarn_copy_h2d(device, access.address + 5000, &byte, 1, NULL));
  assert_ok(tarn_synced_end(&access));
  expect_at(x, 0, 5000, TARN_HOST, 7);
  expect_at(x, 5000, 1, TARN_HOST, 9);
  expect_at(x, 5001, SIZE - 5001, TARN_HOST, 7);
}

TEST_ACCESS(what_nobody_wrote_is_zero) {
  expect_at(x, 10, 20, at0, 0);
  write_at(x, 3, 4, TARN_HOST, NULL, 1);
  expect_at(x, 0, 3, at0, 0);
  expect_at(x, 3, 4, at0, 1);
  expect_at(x, 7, SIZE - 7, at0, 0);
  expect_at(x, 7, SIZE - 7, at1, 0);
  assert_moved(x, TARN_HOST, at0, 1, 4);
  assert_moved(x, at0, at1, 0, 0);
}

TEST_ACCESS(directly_between_devices) {
  write_at(x, 0, SIZE, at0, NULL, 3);
  expect_at(x, 0, SIZE, at1, 3);
  assert_moved(x, at0, at1, 1, SIZE);
  ck_assert_uint_eq(x->core->sides[TARN__HOST_SIDE].end.address, 0);
}

// --- ranges ------------------------------------------------------------------

TEST_ACCESS(only_what_is_missing_and_neighbours_at_once) {
  write_at(x, 0, SIZE, TARN_HOST, NULL, 1);
  expect_at(x, 0, SIZE, at0, 1);
  for (size_t i = 0; i < 10; i++)
    write_at(x, 1000 + i * 7, 7, TARN_HOST, NULL, 2);
  write_at(x, 5001, 3, TARN_HOST, NULL, 3);
  expect_at(x, 0, 1000, at0, 1);
  assert_moved(x, TARN_HOST, at0, 1, SIZE);
  tarn_access access;
  assert_ok(tarn_synced_begin(x, 0, TARN_ALL, at0, TARN_READ, NULL, &access));
  ck_assert_uint_eq(access.size, SIZE);
  assert_ok(tarn_synced_end(&access));
  assert_moved(x, TARN_HOST, at0, 3, SIZE + 70 + 3);
  expect_at(x, 1000, 70, at0, 2);
  expect_at(x, 5001, 3, at0, 3);
  ck_assert_uint_eq(x->core->spans.map.count, 1);
}

TEST_ACCESS(bytes_outside_of_the_range_are_counted) {
  write_at(x, 0, 4000, TARN_HOST, NULL, 1);
  expect_at(x, 1000, 500, at0, 1);
  ck_assert_uint_eq(counts_of(x, TARN_HOST, at0).outside, 3500);
  expect_at(x, 0, 4000, at0, 1);
  ck_assert_uint_eq(counts_of(x, TARN_HOST, at0).outside, 3500);
  ck_assert_uint_eq(counts_of(x, at0, at0).valid, 500);
}

TEST_ACCESS(a_range_of_nothing) {
  tarn_synced *empty = new_buffer(0);
  tarn_access access;
  tarn_access other;
  assert_ok(tarn_synced_begin(x, SIZE, 0, at0, TARN_READ_WRITE, NULL, &access));
  ck_assert_uint_eq(access.address, 0);
  ck_assert_ptr_null(access.pointer);
  ck_assert_ptr_eq(access.buffer, x);
  assert_ok(tarn_synced_begin(x, 0, TARN_ALL, TARN_HOST, TARN_WRITE_DISCARD,
                              NULL, &other));
  assert_status(tarn_synced_destroy(x), TARN_E_STATE);
  assert_ok(tarn_synced_end(&other));
  assert_status(tarn_synced_destroy(x), TARN_E_STATE);
  assert_error_says("no place");
  assert_ok(tarn_synced_end(&access));
  ck_assert_ptr_null(access.buffer);
  assert_ok(tarn_synced_begin(empty, 0, TARN_ALL, TARN_HOST, TARN_READ, NULL,
                              &access));
  ck_assert_uint_eq(access.size, 0);
  assert_ok(tarn_synced_cancel(&access, NULL));
  assert_ok(tarn_synced_prefetch(empty, 0, TARN_ALL, at0, NULL, NULL));
  verify(empty);
  assert_ok(tarn_synced_destroy(empty));
}

// Often enough for the lock to be this thread's own.
TEST_ACCESS(the_short_way_and_the_middle_one) {
  enum { TIMES = 200, ROW = 50 };
  tarn_access a;
  expect_at(x, 0, SIZE, at0, 0);
  write_at(x, 0, SIZE, TARN_HOST, NULL, 1);
  for (size_t i = 0; i < TIMES; i++) {
    tarn_place place = i % 2 == 0 ? at0 : TARN_HOST;
    expect_at(x, 0, SIZE, place, 1);
  }
  ck_assert_uint_eq(counts_of(x, at0, at0).valid, (TIMES / 2 - 1) * SIZE);
  assert_moved(x, TARN_HOST, at0, 1, SIZE);
  write_at(x, 0, SIZE, TARN_HOST, NULL, 2);
  for (size_t i = 0; i < TIMES; i++)
    write_at(x, i * ROW, ROW / 2, at0, NULL, 3);
  verify(x);
  ck_assert_uint_eq(counts_of(x, TARN_HOST, at0).discarded, TIMES * ROW / 2);
  tarn_access b;
  assert_ok(tarn_synced_begin(x, 0, ROW / 2, at0, TARN_READ, NULL, &a));
  assert_status(tarn_synced_begin(x, 1, 1, at0, TARN_WRITE_DISCARD, NULL, &b),
                TARN_E_STATE);
  assert_ok(tarn_synced_end(&a));
  for (size_t i = 0; i < TIMES; i++) {
    expect_at(x, i * ROW, ROW / 2, TARN_HOST, 3);
    expect_at(x, i * ROW + ROW / 2, ROW / 2, TARN_HOST, 2);
  }
  assert_moved(x, at0, TARN_HOST, TIMES, TIMES * ROW / 2);
}

// --- conflicts ---------------------------------------------------------------

TEST_ACCESS(many_readers_or_one_writer) {
  tarn_access a;
  tarn_access b;
  tarn_access c;
  write_at(x, 0, SIZE, TARN_HOST, NULL, 1);
  assert_ok(tarn_synced_begin(x, 0, 5000, at0, TARN_READ, NULL, &a));
  assert_ok(tarn_synced_begin(x, 2500, 5000, TARN_HOST, TARN_READ, NULL, &b));
  assert_status(tarn_synced_begin(x, 4999, 10, at1, TARN_READ_WRITE, NULL, &c),
                TARN_E_STATE);
  assert_error_names("open for reading at ", device, " (bytes 0 to 5000)");
  assert_error_names("for writing at ", at1.device, " (bytes 4999 to 5009)");
  ck_assert_ptr_null(c.buffer);
  assert_ok(tarn_synced_begin(x, 7500, 10, at1, TARN_READ_WRITE, NULL, &c));
  tarn_access d;
  assert_status(tarn_synced_begin(x, 7509, 1, at0, TARN_READ, NULL, &d),
                TARN_E_STATE);
  assert_error_names("open for writing at ", at1.device,
                     " (bytes 7500 to 7510)");
  assert_error_names("for reading at ", device, " (bytes 7509 to 7510)");
  verify(x);
  assert_ok(tarn_synced_end(&a));
  assert_ok(tarn_synced_end(&b));
  assert_ok(tarn_synced_end(&c));
  assert_status(tarn_synced_end(&c), TARN_E_INVALID);
  verify(x);
  ck_assert_uint_eq(x->core->spans.map.count, 4);
}

TEST_ACCESS(who_reads_side_by_side_stays_apart) {
  tarn_access parts[10];
  write_at(x, 0, SIZE, TARN_HOST, NULL, 1);
  for (size_t i = 0; i < 10; i++)
    assert_ok(tarn_synced_begin(x, i * 1000, 1000, TARN_HOST, TARN_READ, NULL,
                                &parts[i]));
  verify(x);
  for (size_t i = 0; i < 10; i++)
    assert_ok(tarn_synced_end(&parts[(i * 7) % 10]));
  verify(x);
  ck_assert_uint_eq(x->core->spans.map.count, 1);
}

// --- cancel and losses ------------------------------------------------------

TEST_ACCESS(cancelled_with_a_copy_elsewhere) {
  tarn_access access;
  size_t lost = 99;
  write_at(x, 0, SIZE, TARN_HOST, NULL, 1);
  assert_ok(tarn_synced_begin(x, 10, 20, at0, TARN_READ_WRITE, NULL, &access));
  assert_ok(tarn_synced_cancel(&access, &lost));
  ck_assert_uint_eq(lost, 0);
  expect_at(x, 0, SIZE, TARN_HOST, 1);
  expect_at(x, 0, SIZE, at0, 1);
}

TEST_ACCESS(cancelled_with_the_only_copy) {
  tarn_access access;
  size_t lost = 0;
  write_at(x, 0, 100, at0, NULL, 1);
  assert_ok(
      tarn_synced_begin(x, 50, 100, at0, TARN_WRITE_DISCARD, NULL, &access));
  assert_ok(tarn_synced_cancel(&access, &lost));
  ck_assert_uint_eq(lost, 50);
  expect_at(x, 0, 50, TARN_HOST, 1);
  expect_at(x, 100, 50, TARN_HOST, 0);
  assert_status(
      tarn_synced_begin(x, 0, SIZE, TARN_HOST, TARN_READ, NULL, &access),
      TARN_E_STATE);
  assert_error_names("bytes 50 to 100 are lost: their only copy, at ", device,
                     "");
  assert_error_says("cancelled");
  assert_status(tarn_synced_prefetch(x, 60, 1, at1, NULL, NULL), TARN_E_STATE);
  write_at(x, 50, 50, TARN_HOST, NULL, 4);
  expect_at(x, 50, 50, at1, 4);
}

// --- what is refused --------------------------------------------------------

TEST_ACCESS(ranges_that_do_not_fit) {
  tarn_access a;
  static const size_t wrong[][2] = {
      {SIZE, 1}, {SIZE + 1, 0}, {SIZE + 1, TARN_ALL},
      {1, SIZE}, {SIZE_MAX, 2}, {2, SIZE_MAX - 1}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    memset(&a, 1, sizeof a);
    assert_status(tarn_synced_begin(x, wrong[i][0], wrong[i][1], TARN_HOST,
                                    TARN_READ, NULL, &a),
                  TARN_E_INVALID);
    ck_assert_ptr_null(a.buffer);
    ck_assert_uint_eq(a.size, 0);
  }
}

TEST_ACCESS(arguments_that_are_none) {
  tarn_access a;
  tarn_place nowhere = {NULL, TARN_PLACE_DEVICE};
  tarn_place odd = {device, (tarn_place_kind)7};
  assert_status(tarn_synced_begin(NULL, 0, 1, at0, TARN_READ, NULL, &a),
                TARN_E_INVALID);
  assert_status(tarn_synced_begin(x, 0, 1, at0, TARN_READ, NULL, NULL),
                TARN_E_INVALID);
  assert_status(tarn_synced_begin(x, 0, 1, nowhere, TARN_READ, NULL, &a),
                TARN_E_INVALID);
  assert_status(tarn_synced_begin(x, 0, 1, odd, TARN_READ, NULL, &a),
                TARN_E_INVALID);
  assert_status(tarn_synced_begin(x, 0, 1, at0, 0, NULL, &a), TARN_E_INVALID);
  assert_status(tarn_synced_begin(x, 0, 1, at0, 4, NULL, &a), TARN_E_INVALID);
  assert_status(tarn_synced_end(NULL), TARN_E_INVALID);
  assert_status(tarn_synced_cancel(NULL, NULL), TARN_E_INVALID);
  assert_status(tarn_synced_push(x, 0, 1, NULL, NULL), TARN_E_STATE);
  ck_assert_uint_eq(tarn_synced_size(NULL), 0);
  assert_ok(tarn_synced_destroy(NULL));
}

TEST_ACCESS(options_that_are_none) {
  tarn_synced *none = NULL;
  tarn_synced_options wrong[] = {
      {.struct_size = 8},
      {.struct_size = sizeof *wrong, .align = 3},
      {.struct_size = sizeof *wrong, .flags = 4},
      {.struct_size = sizeof *wrong, .flags = 3},
      {.struct_size = sizeof *wrong, .tag = 4711},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    assert_status(tarn_synced_create(1, &wrong[i], &none), TARN_E_INVALID);
    ck_assert_ptr_null(none);
  }
}

TEST_ACCESS(memory_as_the_options_say) {
  tarn_tag tag = 0;
  tarn_pool *pool = NULL;
  tarn_pool_tag_stats stats = {.struct_size = sizeof stats};
  assert_ok(tarn_pool_tag("synced", &tag));
  tarn_synced_options options = {.struct_size = sizeof options,
                                 .name = "weights",
                                 .device = device,
                                 .align = 65536,
                                 .tag = tag,
                                 .flags = TARN_SYNCED_NO_PROTECT};
  tarn_synced *weights = NULL;
  tarn_access a;
  assert_ok(tarn_synced_create(SIZE, &options, &weights));
  assert_ok(tarn_synced_begin(weights, 0, 1, at1, TARN_READ, NULL, &a));
  ck_assert_uint_eq(a.address % 65536, 0);
  assert_ok(tarn_synced_end(&a));
  assert_ok(tarn_synced_push(weights, 0, TARN_ALL, NULL, NULL));
  assert_ok(tarn_pool_of(at0, &pool));
  assert_ok(tarn_pool_query_tag(pool, tag, &stats));
  ck_assert_uint_eq(stats.live_bytes, SIZE);
  assert_ok(tarn_synced_pull(weights, 0, TARN_ALL, NULL, NULL));
  assert_ok(tarn_pool_of((tarn_place){device, TARN_PLACE_HOST}, &pool));
  assert_ok(tarn_pool_query_tag(pool, tag, &stats));
  ck_assert_uint_eq(stats.live_bytes, SIZE);
  assert_status(
      tarn_synced_begin(weights, 0, SIZE + 1, at0, TARN_READ, NULL, &a),
      TARN_E_INVALID);
  assert_error_says("('weights')");
  assert_ok(tarn_synced_destroy(weights));
  assert_ok(tarn_pool_query_tag(pool, tag, &stats));
  ck_assert_uint_eq(stats.live_bytes, 0);
}
