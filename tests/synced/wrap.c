// Memory of the program's own as a buffer's memory: what becomes of its bytes,
// and who writes it.
#include "wrap_kit.h"

// --- contents --------------------------------------------------------------

TEST_X(its_contents_are_the_newest) {
  write_range(x, 0, SIZE, tarn_place_on(gpu), 1);
  write_range(x, 0, HALF, tarn_place_on(other), 1);
  fill_pattern(outside, 0, SIZE, OUTSIDE);
  wrap_host(outside, 0, NULL);
  assert_head(x, TARN_HEAD_AT_CPU);
  tarn_synced_info info = info_at(TARN_HOST);
  ck_assert_uint_eq(info.memory, SIZE);
  ck_assert(info.borrowed);
  ck_assert_uint_eq(info.valid, SIZE);
  ck_assert_uint_eq(info.range_count, 1);
  ck_assert_uint_eq(info_at(tarn_place_on(gpu)).valid, 0);
  ck_assert_uint_eq(info_at(tarn_place_on(other)).valid, 0);
  ck_assert_uint_eq(all_copies(), 0);
  ck_assert(is_outside(outside));
  assert_range(x, 0, SIZE, tarn_place_on(gpu), OUTSIDE);
  assert_range(x, 0, SIZE, tarn_place_on(other), OUTSIDE);
  close_x();
  assert_pattern(outside, 0, SIZE, OUTSIDE);
}

TEST_X(memory_of_a_device) {
  tarn_addr address = device_memory(OUTSIDE);
  assert_ok(try_wrap(tarn_place_on(gpu), address, 0, &mine));
  assert_head(x, TARN_HEAD_AT_GPU);
  tarn_access access;
  begin_on(&access, x, 100, 10, tarn_place_on(gpu), TARN_READ_WRITE);
  ck_assert_uint_eq(access.address, address + 100);
  ck_assert_ptr_null(access.pointer);
  assert_ok(tarn_synced_end(&access));
  assert_range(x, 0, SIZE, TARN_HOST, OUTSIDE);
  assert_ok(tarn_synced_destroy(x));
  ck_assert_int_eq(mine.calls, 1);
  ck_assert_uint_eq(mine.address, address);
  ck_assert(tarn_place_equal(mine.place, tarn_place_on(gpu)));
  ck_assert_uint_eq(mine.size, SIZE);
  free_device_memory(address);
  close_devices();
}

// A write at the place goes straight into it.
TEST_ON(accesses_write_borrowed_memory, TEST_NEEDS_DISCRETE) {
  open_wrapped(device, 0, NULL);
  write_range(x, 10, 20, TARN_HOST, 5);
  assert_pattern(outside + 10, 10, 20, 5);
  assert_pattern(outside, 0, 10, OUTSIDE);
  assert_range(x, 10, 20, tarn_place_on(gpu), 5);
  close_x();
  ck_assert_uint_eq(outside[10], pattern_at(10, 5));
}

TEST_X(empty_counts_for_nothing) {
  write_range(x, 0, SIZE, tarn_place_on(gpu), 1);
  fill_pattern(outside, 0, SIZE, OUTSIDE);
  wrap_host(outside, TARN_WRAP_EMPTY | TARN_WRAP_FILL, NULL);
  assert_head(x, TARN_HEAD_AT_GPU);
  ck_assert_uint_eq(info_at(TARN_HOST).valid, 0);
  ck_assert_uint_eq(info_at(TARN_HOST).memory, SIZE);
  assert_range(x, 0, HALF, TARN_HOST, 1);
  assert_pattern(outside, 0, HALF, 1);
  assert_pattern(outside + HALF, HALF, HALF, OUTSIDE);
  ck_assert_uint_eq(d2h().bytes_moved, HALF);
}

TEST_X(empty_memory_of_what_nobody_wrote_reads_as_zeros) {
  fill_pattern(outside, 0, SIZE, OUTSIDE);
  wrap_host(outside, TARN_WRAP_EMPTY | TARN_WRAP_FILL, NULL);
  assert_head(x, TARN_UNINITIALIZED);
  assert_range(x, 0, HALF, TARN_HOST, 0);
  assert_pattern(outside, 0, HALF, 0);
  assert_pattern(outside + HALF, HALF, HALF, OUTSIDE);
}

TEST_X(empty_must_not_lose_bytes) {
  write_range(x, 0, SIZE, TARN_HOST, 1);
  assert_range(x, 0, SIZE - 1, tarn_place_on(gpu), 1);  // but the last byte
  assert_status(
      try_wrap(TARN_HOST, address_of(outside), TARN_WRAP_EMPTY, &mine),
      TARN_E_STATE);
  assert_range(x, 0, SIZE, TARN_HOST, 1);
  assert_range(x, 0, SIZE, tarn_place_on(gpu), 1);
  wrap_host(outside, TARN_WRAP_EMPTY | TARN_WRAP_FILL, &mine);
  ck_assert_int_eq(mine.calls, 0);
  assert_head(x, TARN_HEAD_AT_GPU);
  close_x();
  ck_assert_int_eq(mine.calls, 1);
}

// --- who writes it ---------------------------------------------------------

// Borrowed and not to be filled: the place takes memory of its own, with the
// bytes that stood nowhere else.
TEST_ON(copies_are_not_made_into_borrowed_memory, TEST_NEEDS_DISCRETE) {
  open_wrapped(device, 0, NULL);
  write_range(x, 0, HALF, tarn_place_on(gpu), 1);
  assert_ok(tarn_synced_traffic_reset(x));
  assert_range(x, 0, HALF, TARN_HOST, 1);
  ck_assert(!info_at(TARN_HOST).borrowed);
  ck_assert_uint_eq(info_at(TARN_HOST).memory, SIZE);
  ck_assert_uint_eq(d2h().bytes_moved, HALF);
  assert_range(x, HALF, HALF, TARN_HOST, OUTSIDE);
  assert_range(x, HALF, HALF, tarn_place_on(gpu), OUTSIDE);
  assert_pattern(outside, 0, SIZE, OUTSIDE);
}

TEST_X(borrowed_memory_of_a_device_is_left_too) {
  tarn_addr address = device_memory(OUTSIDE);
  assert_ok(try_wrap(tarn_place_on(gpu), address, 0, NULL));
  write_range(x, 0, HALF, TARN_HOST, 1);
  assert_range(x, 0, HALF, tarn_place_on(gpu), 1);
  assert_range(x, HALF, HALF, tarn_place_on(gpu), OUTSIDE);
  ck_assert(!info_at(tarn_place_on(gpu)).borrowed);
  assert_on(gpu, address, 0, SIZE, OUTSIDE);
  assert_ok(tarn_synced_destroy(x));
  free_device_memory(address);
  close_devices();
}

TEST_ON(what_is_valid_may_be_read_where_it_is, TEST_NEEDS_DISCRETE) {
  open_wrapped(device, 0, NULL);
  write_range(x, 0, HALF, tarn_place_on(gpu), 1);
  assert_range(x, HALF, HALF, TARN_HOST, OUTSIDE);
  ck_assert(info_at(TARN_HOST).borrowed);
  write_range(x, 0, HALF, TARN_HOST, 3);  // a write needs no copy either
  ck_assert(info_at(TARN_HOST).borrowed);
  assert_pattern(outside, 0, HALF, 3);
}

TEST_ON(an_open_access_keeps_it_there, TEST_NEEDS_DISCRETE) {
  open_wrapped(device, 0, NULL);
  write_range(x, 0, HALF, tarn_place_on(gpu), 1);
  tarn_access open;
  begin_on(&open, x, HALF, HALF, TARN_HOST, TARN_READ);
  tarn_access access;
  assert_status(tarn_synced_begin(x, 0, 1, TARN_HOST, TARN_READ, NULL, &access),
                TARN_E_STATE);
  ck_assert_ptr_null(access.buffer);
  assert_pattern(open.pointer, HALF, HALF, OUTSIDE);
  assert_ok(tarn_synced_end(&open));
  assert_range(x, 0, 1, TARN_HOST, 1);
}

TEST_LOOP_ON(filled_where_it_is_asked_for, 2, TEST_NEEDS_DISCRETE, (void)) {
  owner *of = _i == 0 ? NULL : &mine;  // with a deleter it always is
  open_wrapped(device, _i == 0 ? TARN_WRAP_FILL : 0, of);
  write_range(x, 0, HALF, tarn_place_on(gpu), 1);
  assert_range(x, 0, HALF, TARN_HOST, 1);
  ck_assert(is_outside(outside));
  assert_pattern(outside, 0, HALF, 1);
  ck_assert_int_eq(info_at(TARN_HOST).borrowed, _i == 0);
  close_x();
  ck_assert_int_eq(mine.calls, _i);
  assert_pattern(outside + HALF, HALF, HALF, OUTSIDE);
}

TEST_LOOP_ON(read_only_is_never_written, 2, TEST_NEEDS_DISCRETE, (void)) {
  owner *of = _i == 0 ? NULL : &mine;
  open_wrapped(device, TARN_WRAP_READ_ONLY, of);
  ck_assert(is_outside(outside));
  tarn_access access;
  begin_on(&access, x, 0, 1, TARN_HOST, TARN_READ_WRITE);
  ck_assert_ptr_ne(access.pointer, outside);
  *(unsigned char *)access.pointer = 0xab;
  assert_ok(tarn_synced_end(&access));
  ck_assert_int_eq(mine.calls, _i);
  assert_pattern(outside, 0, SIZE, OUTSIDE);
  assert_range(x, 1, SIZE - 1, TARN_HOST, OUTSIDE);
  close_x();
  ck_assert_int_eq(mine.calls, _i);
}

// What is valid elsewhere too is not copied over, and not valid here any more.
static void *read_patiently(void *context) {
  tarn_status *status = context;
  tarn_access access;
  *status = tarn_synced_begin(x, 0, HALF, TARN_HOST,
                              TARN_READ | TARN_ACCESS_WAIT, NULL, &access);
  if (*status == TARN_OK) *status = tarn_synced_end(&access);
  return NULL;
}

// An access in the borrowed memory is in the way: who wants to wait does.
TEST_ON(who_waits_moves_when_others_have_ended, TEST_NEEDS_DISCRETE) {
  tarn_access access;
  tarn_status status = TARN_PENDING;
  pthread_t thread;
  struct timespec some = {.tv_nsec = 20000000L};
  open_wrapped(device, 0, NULL);
  write_range(x, 0, HALF, tarn_place_on(gpu), 1);
  begin_on(&access, x, HALF, HALF, TARN_HOST, TARN_READ);
  ck_assert_int_eq(pthread_create(&thread, NULL, read_patiently, &status), 0);
  nanosleep(&some, NULL);
  ck_assert_ptr_eq(access.pointer, outside + HALF);
  assert_pattern(outside, 0, SIZE, OUTSIDE);
  assert_ok(tarn_synced_end(&access));
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  assert_ok(status);
  ck_assert(!info_at(TARN_HOST).borrowed);
  assert_range(x, 0, HALF, TARN_HOST, 1);
}

// What is being written elsewhere may be cancelled: it moves too.
TEST_ON(what_a_write_elsewhere_may_fall_back_on_moves, TEST_NEEDS_DISCRETE) {
  tarn_access access;
  open_wrapped(device, 0, NULL);
  write_range(x, HALF, HALF, tarn_place_on(gpu), 1);
  begin_on(&access, x, 0, HALF, tarn_place_on(gpu), TARN_READ_WRITE);
  put_on(gpu, access.address, 0, HALF, 3);
  assert_range(x, HALF, HALF, TARN_HOST, 1);
  ck_assert(!info_at(TARN_HOST).borrowed);
  size_t lost = 1;
  assert_ok(tarn_synced_cancel(&access, &lost));
  ck_assert_uint_eq(lost, 0);
  assert_range(x, 0, HALF, tarn_place_on(gpu), OUTSIDE);
}

TEST_ON(what_is_elsewhere_too_does_not_move, TEST_NEEDS_DISCRETE) {
  open_wrapped(device, TARN_WRAP_READ_ONLY, NULL);
  assert_range(x, 0, HALF, tarn_place_on(gpu), OUTSIDE);
  assert_ok(tarn_synced_traffic_reset(x));
  write_range(x, SIZE - 1, 1, TARN_HOST, 5);
  ck_assert(!info_at(TARN_HOST).borrowed);
  ck_assert_uint_eq(info_at(TARN_HOST).valid, HALF);
  ck_assert_uint_eq(all_moved(), HALF);  // within the host
  ck_assert_uint_eq(between(x, TARN_HOST, TARN_HOST).bytes_moved, HALF);
  assert_range(x, 0, SIZE - 1, TARN_HOST, OUTSIDE);
  ck_assert_uint_eq(d2h().bytes_moved, HALF);
}

TEST_ON(read_only_is_not_filled_either, TEST_NEEDS_DISCRETE) {
  open_wrapped(device, TARN_WRAP_READ_ONLY, &mine);
  write_range(x, 0, HALF, tarn_place_on(gpu), 1);
  assert_range(x, 0, HALF, TARN_HOST, 1);
  assert_range(x, HALF, HALF, TARN_HOST, OUTSIDE);
  assert_pattern(outside, 0, SIZE, OUTSIDE);
  ck_assert_int_eq(mine.calls, 1);
  close_x();
  ck_assert_int_eq(mine.calls, 1);
}

// --- wrong use -------------------------------------------------------------

static void assert_refused(tarn_status expected, tarn_synced *buffer,
                           tarn_place place, tarn_addr address,
                           uint32_t flags) {
  tarn_wrap_options options = with(flags, &mine);
  assert_status(tarn_synced_wrap(buffer, place, address, &options), expected);
  ck_assert_int_eq(mine.calls, 0);
}

TEST_X(wrong_arguments) {
  const tarn_addr good = address_of(outside);
  const tarn_place none = {NULL, TARN_PLACE_DEVICE};
  const tarn_place no_kind = {NULL, (tarn_place_kind)7};
  tarn_synced *view = view_of(x, 0, HALF);
  assert_refused(TARN_E_INVALID, NULL, TARN_HOST, good, 0);
  assert_refused(TARN_E_INVALID, x, TARN_HOST, 0, 0);
  assert_refused(TARN_E_INVALID, view, TARN_HOST, good, 0);
  assert_error_says("view");
  assert_refused(TARN_E_INVALID, x, none, good, 0);
  assert_refused(TARN_E_INVALID, x, no_kind, good, 0);
  assert_refused(TARN_E_INVALID, x, TARN_HOST, good, 1u << 31);
  assert_error_says("flag");
  assert_refused(TARN_E_INVALID, x, TARN_HOST, good,
                 TARN_WRAP_READ_ONLY | TARN_WRAP_FILL);
  assert_refused(TARN_E_INVALID, x, TARN_HOST, good,
                 TARN_WRAP_READ_ONLY | TARN_WRAP_SYNC_BACK);
  assert_refused(TARN_E_INVALID, x, TARN_HOST, good,
                 TARN_WRAP_READ_ONLY | TARN_WRAP_EMPTY);
  tarn_wrap_options options = with(0, NULL);
  options.struct_size = 4;
  assert_status(tarn_synced_wrap(x, TARN_HOST, good, &options), TARN_E_INVALID);
  assert_head(x, TARN_UNINITIALIZED);
  ck_assert_uint_eq(info_at(TARN_HOST).memory, 0);
  assert_ok(tarn_synced_destroy(view));
}

TEST_LOOP_ON(not_while_an_access_is_open, 2, TEST_NEEDS_DISCRETE, open_x) {
  write_range(x, 0, SIZE, TARN_HOST, 1);
  tarn_synced *view = view_of(x, 0, 10);
  tarn_access access;
  tarn_addr there = 0;
  assert_ok(tarn_device_allocate(tarn_place_on(other), SIZE, &there));
  begin_on(&access, view, 0, TARN_ALL, tarn_place_on(gpu),
           _i == 0 ? TARN_READ : TARN_READ_WRITE);
  assert_refused(TARN_E_STATE, x, TARN_HOST, address_of(outside), 0);
  assert_error_says("open");
  assert_refused(TARN_E_STATE, x, tarn_place_on(other), there, 0);
  assert_ok(tarn_synced_end(&access));
  assert_ok(tarn_device_deallocate(tarn_place_on(other), there, SIZE));
  assert_ok(tarn_synced_destroy(view));
  assert_range(x, 0, SIZE, TARN_HOST, 1);
  wrap_host(outside, 0, &mine);
  close_x();
  ck_assert_int_eq(mine.calls, 1);
}

// An unaligned address.
TEST_X(memory_at_an_odd_address) {
  static unsigned char odd[SIZE + 1];
  fill_pattern(odd + 1, 0, SIZE, OUTSIDE);
  wrap_host(odd + 1, TARN_WRAP_FILL, NULL);
  write_range(x, 3, 7, tarn_place_on(gpu), 1);
  assert_range(x, 3, 7, TARN_HOST, 1);
  assert_range(x, 10, SIZE - 10, tarn_place_on(gpu), OUTSIDE);
  close_x();
  ck_assert_uint_eq(odd[0], 0);
}

TEST_ON(a_buffer_without_bytes, TEST_NEEDS_DISCRETE) {
  open_devices(device);
  x = buffer_on(gpu, 0);
  wrap_host(outside, TARN_WRAP_SYNC_BACK, &mine);
  close_x();
  ck_assert_int_eq(mine.calls, 1);
  ck_assert_uint_eq(mine.size, 0);
}
