// Views share one map of validity.
#include "caffe_kit.h"

TEST_X(a_view_sees_what_the_whole_wrote) {
  tarn_synced *view = view_of(x, 1000, 500);
  ck_assert_uint_eq(tarn_synced_size(view), 500);
  ck_assert_uint_eq(tarn_synced_size(x), SIZE);
  write_range(x, 0, SIZE, TARN_HOST, 1);
  assert_range(view, 0, TARN_ALL, TARN_HOST, 1);
  assert_range(view, 0, TARN_ALL, tarn_place_on(gpu), 1);
  ck_assert_uint_eq(h2d().bytes_moved, 500);
  assert_ok(tarn_synced_destroy(view));
}

// What a sibling has written is newer than what stands at another place.
TEST_X(siblings_see_each_other) {
  write_range(x, 0, SIZE, TARN_HOST, 1);
  assert_range(x, 0, SIZE, tarn_place_on(gpu), 1);
  tarn_synced *low = view_of(x, 0, 1000);
  tarn_synced *high = view_of(x, 500, 1000);
  write_range(low, 400, 600, tarn_place_on(gpu), 2);  // 400..1000
  assert_head(low, TARN_HEAD_AT_GPU);
  assert_range(high, 0, 500, TARN_HOST, 2);
  ck_assert_uint_eq(d2h().bytes_moved, 500);
  assert_range(high, 500, 500, TARN_HOST, 1);
  write_range(high, 0, 100, TARN_HOST, 3);  // 500..600
  assert_range(low, 400, 100, tarn_place_on(gpu), 2);
  assert_range(low, 500, 100, tarn_place_on(gpu), 3);
  assert_range(x, 0, 400, tarn_place_on(gpu), 1);
  assert_ok(tarn_synced_destroy(low));
  assert_ok(tarn_synced_destroy(high));
}

// The state of one view does not wipe those of its sibling (Kokkos #2563): each
// byte's own past counts.
TEST_X(a_sibling_s_sync_does_not_wipe_mine) {
  tarn_synced *low = view_of(x, 0, HALF);
  tarn_synced *high = view_of(x, HALF, HALF);
  write_range(low, 0, HALF, TARN_HOST, 1);
  write_range(high, 0, HALF, TARN_HOST, 2);
  assert_range(low, 0, HALF, tarn_place_on(gpu), 1);
  assert_head(low, TARN_SYNCED);
  assert_head(high, TARN_HEAD_AT_CPU);
  assert_head(x, TARN_HEAD_AT_CPU);  // all of it is there
  assert_range(high, 0, HALF, tarn_place_on(gpu), 2);
  assert_head(x, TARN_SYNCED);
  ck_assert_uint_eq(h2d().bytes_moved, SIZE);
  assert_ok(tarn_synced_destroy(low));
  assert_ok(tarn_synced_destroy(high));
}

// One way for each order in which three handles can end.
static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
enum { ORDERS = sizeof orders / sizeof orders[0] };

TEST_LOOP_ON(any_order_of_ending, ORDERS, TEST_NEEDS_DISCRETE, open_x) {
  write_range(x, 0, SIZE, TARN_HOST, 1);
  tarn_synced *all[3] = {x, view_of(x, 100, 1000), NULL};
  all[2] = view_of(all[1], 10, 20);
  for (int i = 0; i < 3; i++) {
    tarn_synced *last = all[orders[_i][2]];
    assert_range(last, 0, TARN_ALL, tarn_place_on(i % 2 ? gpu : other), 1);
    assert_ok(tarn_synced_destroy(all[orders[_i][i]]));
  }
  close_devices();  // all memory has gone back
}

TEST_X(a_view_of_a_view) {
  tarn_synced *outer = view_of(x, 1000, 1000);
  tarn_synced *inner = view_of(outer, 100, 50);
  write_range(inner, 0, TARN_ALL, TARN_HOST, 4);
  assert_range(x, 1100, 50, TARN_HOST, 4);
  assert_range(outer, 100, 50, tarn_place_on(gpu), 4);
  tarn_access access;
  begin_on(&access, inner, 10, 5, TARN_HOST, TARN_READ);
  ck_assert_uint_eq(access.offset, 1110);
  ck_assert_ptr_eq(access.buffer, inner);
  assert_ok(tarn_synced_end(&access));
  tarn_synced *refused = x;
  assert_status(tarn_synced_view(inner, 0, 51, &refused), TARN_E_INVALID);
  ck_assert_ptr_null(refused);
  assert_ok(tarn_synced_destroy(outer));
  assert_ok(tarn_synced_destroy(inner));
}

TEST_X(accesses_of_siblings_meet) {
  write_range(x, 0, SIZE, TARN_HOST, 1);
  tarn_synced *low = view_of(x, 0, 1000);
  tarn_synced *high = view_of(x, 500, 1000);
  tarn_access mine;
  begin_on(&mine, low, 0, 501, TARN_HOST, TARN_READ_WRITE);
  tarn_access theirs;
  assert_status(
      tarn_synced_begin(high, 0, 1, TARN_HOST, TARN_READ, NULL, &theirs),
      TARN_E_STATE);
  assert_status(tarn_synced_begin(high, 0, 1, tarn_place_on(gpu),
                                  TARN_WRITE_DISCARD, NULL, &theirs),
                TARN_E_STATE);
  begin_on(&theirs, high, 1, 100, TARN_HOST, TARN_READ_WRITE);
  assert_ok(tarn_synced_end(&mine));
  assert_ok(tarn_synced_end(&theirs));
  assert_ok(tarn_synced_destroy(low));
  assert_ok(tarn_synced_destroy(high));
}

TEST_X(an_open_access_holds_its_own_view_only) {
  tarn_synced *view = view_of(x, 0, 100);
  tarn_access access;
  begin_on(&access, view, 0, 10, TARN_HOST, TARN_WRITE_DISCARD);
  memset(access.pointer, 7, 10);
  assert_status(tarn_synced_destroy(view), TARN_E_STATE);
  assert_error_says("open");
  assert_ok(tarn_synced_destroy(x));  // begun through another
  ck_assert_uint_eq(*(unsigned char *)access.pointer, 7);
  assert_ok(tarn_synced_end(&access));
  assert_ok(tarn_synced_destroy(view));
  close_devices();
}

TEST_X(ranges_beyond) {
  tarn_access access;
  tarn_synced *view = view_of(x, 1000, 500);
  tarn_synced *made = x;
  const size_t wrong[][2] = {{501, 0},         {0, 501}, {500, 1},
                             {501, TARN_ALL},  {1, 500}, {SIZE_MAX, 1},
                             {2, SIZE_MAX - 1}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    size_t offset = wrong[i][0];
    size_t size = wrong[i][1];
    made = x;
    assert_status(tarn_synced_view(view, offset, size, &made), TARN_E_INVALID);
    ck_assert_ptr_null(made);
    memset(&access, 1, sizeof access);
    assert_status(tarn_synced_begin(view, offset, size, TARN_HOST, TARN_READ,
                                    NULL, &access),
                  TARN_E_INVALID);
    ck_assert_ptr_null(access.buffer);
    tarn_synced_info info = {.struct_size = sizeof info};
    assert_status(tarn_synced_query(view, offset, size, TARN_HOST, &info),
                  TARN_E_INVALID);
    assert_status(tarn_synced_invalidate(view, offset, size), TARN_E_INVALID);
  }
  assert_status(tarn_synced_view(NULL, 0, 0, &made), TARN_E_INVALID);
  assert_status(tarn_synced_view(x, 0, 1, NULL), TARN_E_INVALID);
  assert_head(x, TARN_UNINITIALIZED);
  assert_ok(tarn_synced_destroy(view));
}

TEST_X(views_without_bytes) {
  tarn_synced *none = view_of(x, 10, 0);
  tarn_synced *at_end = view_of(x, SIZE, TARN_ALL);
  ck_assert_uint_eq(tarn_synced_size(none), 0);
  ck_assert_uint_eq(tarn_synced_size(at_end), 0);
  tarn_access access;
  begin_on(&access, at_end, 0, TARN_ALL, TARN_HOST, TARN_READ);
  ck_assert_uint_eq(access.address, 0);
  ck_assert_uint_eq(access.size, 0);
  assert_ok(tarn_synced_end(&access));
  assert_head(none, TARN_UNINITIALIZED);
  assert_ok(tarn_synced_invalidate(none, 0, TARN_ALL));
  ck_assert_uint_eq(info_at(TARN_HOST).memory, 0);
  assert_ok(tarn_synced_destroy(none));
  assert_ok(tarn_synced_destroy(at_end));
}

TEST_X(all_means_up_to_the_views_end) {
  tarn_synced *view = view_of(x, 100, 50);
  write_range(view, 20, TARN_ALL, TARN_HOST, 1);
  tarn_synced_info info = info_at(TARN_HOST);
  ck_assert_uint_eq(info.unwritten, SIZE - 30);
  assert_range(x, 120, 30, TARN_HOST, 1);
  assert_ok(tarn_synced_destroy(view));
}

// The counts are the whole buffer's.
TEST_X(traffic_is_of_the_whole) {
  write_range(x, 0, SIZE, TARN_HOST, 1);
  tarn_synced *view = view_of(x, 0, 10);
  assert_range(view, 0, 10, tarn_place_on(gpu), 1);
  tarn_traffic of_view = between(view, TARN_HOST, tarn_place_on(gpu));
  ck_assert_uint_eq(of_view.bytes_moved, 10);
  ck_assert_uint_eq(h2d().bytes_moved, 10);
  assert_ok(tarn_synced_destroy(view));
}
