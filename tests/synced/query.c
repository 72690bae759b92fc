// Queries of a buffer, and the list of open buffers.
#include <stdio.h>

#include "caffe_kit.h"
#include "support/faults.h"

// --- one buffer ------------------------------------------------------------

TEST_X(a_fresh_buffer) {
  for (int i = 0; i < 2; i++) {
    tarn_synced_info info = info_at(i == 0 ? TARN_HOST : tarn_place_on(gpu));
    ck_assert_uint_eq(info.memory, 0);
    ck_assert(!info.borrowed);
    ck_assert_uint_eq(info.valid, 0);
    ck_assert_uint_eq(info.pending, 0);
    ck_assert_uint_eq(info.unwritten, SIZE);
    ck_assert_uint_eq(info.lost, 0);
    ck_assert_uint_eq(info.readers, 0);
    ck_assert_uint_eq(info.writers, 0);
    ck_assert_uint_eq(info.range_count, 1);
  }
}

TEST_X(ranges_are_counted_byte_by_byte) {
  write_range(x, 100, 200, TARN_HOST, 1);                   // 100..300
  write_range(x, 250, 100, tarn_place_on(gpu), 2);          // 250..350
  assert_range(x, 120, 10, tarn_place_on(other), 1);        // 120..130
  tarn_synced_info host = info_of(x, 110, 200, TARN_HOST);  // 110..310
  ck_assert_uint_eq(host.memory, SIZE);
  ck_assert_uint_eq(host.valid, 140);
  ck_assert_uint_eq(host.unwritten, 0);
  tarn_synced_info there = info_of(x, 110, 200, tarn_place_on(gpu));
  ck_assert_uint_eq(there.valid, 60);
  tarn_synced_info third = info_of(x, 0, SIZE, tarn_place_on(other));
  ck_assert_uint_eq(third.valid, 10);
  ck_assert_uint_eq(third.unwritten, SIZE - 250);
  // 0 100 120 130 250 350
  ck_assert_uint_eq(third.range_count, 6);
  ck_assert_uint_eq(info_of(x, 0, 99, TARN_HOST).valid, 0);
  ck_assert_uint_eq(info_of(x, 0, 101, TARN_HOST).valid, 1);
  ck_assert_uint_eq(info_of(x, 299, 1, TARN_HOST).valid, 0);
}

TEST_X(zeros_that_were_shown_are_valid_and_unwritten) {
  assert_range(x, 0, 100, TARN_HOST, 0);
  tarn_synced_info info = info_at(TARN_HOST);
  ck_assert_uint_eq(info.valid, 100);
  ck_assert_uint_eq(info.unwritten, SIZE);
}

TEST_X(a_view_tells_of_its_range) {
  write_range(x, 0, 150, TARN_HOST, 1);
  tarn_synced *view = view_of(x, 100, 100);
  tarn_synced_info info = info_of(view, 0, TARN_ALL, TARN_HOST);
  ck_assert_uint_eq(info.valid, 50);
  ck_assert_uint_eq(info.unwritten, 50);
  ck_assert_uint_eq(info.memory, SIZE);  // the buffer's
  assert_ok(tarn_synced_destroy(view));
}

TEST_X(open_accesses_of_the_range) {
  write_range(x, 0, SIZE, TARN_HOST, 1);
  tarn_access a;
  begin_on(&a, x, 0, 100, TARN_HOST, TARN_READ);
  tarn_access b;
  begin_on(&b, x, 50, 100, tarn_place_on(gpu), TARN_READ);
  tarn_access c;
  begin_on(&c, x, 200, 50, TARN_HOST, TARN_READ_WRITE);
  tarn_access d;
  begin_on(&d, x, 250, 50, TARN_HOST, TARN_WRITE_DISCARD);
  tarn_access e;
  begin_on(&e, x, 10, 0, TARN_HOST, TARN_READ);
  tarn_synced_info info = info_at(TARN_HOST);
  ck_assert_uint_eq(info.readers, 2);
  ck_assert_uint_eq(info.writers, 2);
  info = info_of(x, 99, 101, tarn_place_on(other));
  ck_assert_uint_eq(info.readers, 2);
  ck_assert_uint_eq(info.writers, 0);
  info = info_of(x, 100, 101, TARN_HOST);
  ck_assert_uint_eq(info.readers, 1);
  ck_assert_uint_eq(info.writers, 1);
  info = info_of(x, 10, 0, TARN_HOST);
  ck_assert_uint_eq(info.readers + info.writers, 0);
  assert_ok(tarn_synced_end(&a));
  assert_ok(tarn_synced_end(&b));
  assert_ok(tarn_synced_end(&c));
  assert_ok(tarn_synced_cancel(&d, NULL));
  assert_ok(tarn_synced_end(&e));
  info = info_at(TARN_HOST);
  ck_assert_uint_eq(info.readers + info.writers, 0);
}

TEST_X_ASYNC(pending_until_it_has_landed) {
  hold held;
  write_range(x, 0, SIZE, TARN_HOST, 1);
  tarn_stream *stream = stream_on(gpu);
  hold_begin(&held, stream);
  assert_ok(tarn_synced_push(x, 0, HALF, stream, NULL));
  tarn_synced_info info = info_at(tarn_place_on(gpu));
  ck_assert_uint_eq(info.valid, HALF);
  ck_assert_uint_eq(info.pending, HALF);
  ck_assert_uint_eq(info_at(TARN_HOST).pending, 0);
  assert_head(x, TARN_HEAD_AT_CPU);
  hold_end(&held);
  assert_ok(tarn_stream_synchronize(stream));
  info = info_at(tarn_place_on(gpu));
  ck_assert_uint_eq(info.valid, HALF);
  ck_assert_uint_eq(info.pending, 0);
  assert_ok(tarn_stream_destroy(stream));
}

TEST_X(after_eviction_and_invalidation) {
  write_range(x, 0, SIZE, TARN_HOST, 1);
  assert_ok(tarn_synced_invalidate(x, 0, HALF));
  assert_ok(tarn_synced_evict(x, TARN_HOST));
  tarn_synced_info info = info_at(TARN_HOST);
  ck_assert_uint_eq(info.memory, 0);
  ck_assert_uint_eq(info.valid, 0);
  ck_assert_uint_eq(info.lost, HALF);
  ck_assert_uint_eq(info_at(tarn_place_on(gpu)).valid, HALF);
}

TEST_X(borrowed_is_without_a_deleter) {
  static unsigned char bytes[SIZE];
  assert_ok(tarn_synced_set_cpu_data(x, bytes));
  ck_assert(info_at(TARN_HOST).borrowed);
  ck_assert_uint_eq(info_at(TARN_HOST).memory, SIZE);
  ck_assert(!info_at(tarn_place_on(gpu)).borrowed);
}

TEST_X(wrong_queries) {
  tarn_synced_info info = {.struct_size = sizeof info, .valid = 7};
  assert_status(tarn_synced_query(NULL, 0, 0, TARN_HOST, &info),
                TARN_E_INVALID);
  ck_assert_uint_eq(info.valid, 0);
  assert_status(tarn_synced_query(x, 0, 0, TARN_HOST, NULL), TARN_E_INVALID);
  info.struct_size = 8;
  assert_status(tarn_synced_query(x, 0, 0, TARN_HOST, &info), TARN_E_INVALID);
  info.struct_size = 0;  // the first version
  assert_ok(tarn_synced_query(x, 0, 0, TARN_HOST, &info));
  info.struct_size = sizeof info;
  tarn_place none = {NULL, TARN_PLACE_UNIFIED};
  assert_status(tarn_synced_query(x, 0, 0, none, &info), TARN_E_INVALID);
  info.struct_size = 2 * sizeof info;  // a later version
  struct {
    tarn_synced_info info;
    char more[sizeof(tarn_synced_info)];
  } later = {.info = {.struct_size = sizeof later}};
  assert_ok(tarn_synced_query(x, 0, TARN_ALL, TARN_HOST, &later.info));
  ck_assert_uint_eq(later.info.struct_size, sizeof info);
  ck_assert_uint_eq(later.info.unwritten, SIZE);
}

// --- all buffers -----------------------------------------------------------

enum { MOST = 64 };

typedef struct seen {
  tarn_synced_open all[MOST];
  char names[MOST][16];
  size_t count;
  size_t stop_after;  // 0: never
} seen;

static tarn_status see(void *context, const tarn_synced_open *open) {
  seen *of = context;
  require(of->count < MOST);
  require(open->name != NULL);
  snprintf(of->names[of->count], sizeof of->names[0], "%s", open->name);
  of->all[of->count++] = *open;
  return of->count == of->stop_after ? TARN_FULL : TARN_OK;
}

static seen look(void) {
  seen of = {.count = 0};
  assert_ok(tarn_synced_each_open(see, &of));
  return of;
}

TEST(nothing_is_open) {
  ck_assert_uint_eq(look().count, 0);
  assert_status(tarn_synced_each_open(NULL, NULL), TARN_E_INVALID);
}

TEST_X(what_is_open_is_told) {
  static unsigned char bytes[SIZE];
  tarn_synced *second = NULL;
  assert_ok(tarn_synced_create(10, NULL, &second));
  assert_ok(tarn_synced_set_cpu_data(x, bytes));
  tarn_synced *view = view_of(x, 10, 100);
  tarn_access first;
  begin_on(&first, view, 5, 6, tarn_place_on(gpu), TARN_READ);
  tarn_access next;
  begin_on(&next, x, 0, 5, TARN_HOST, TARN_READ_WRITE);
  seen of = look();
  ck_assert_uint_eq(of.count, 2);
  const tarn_synced_open *mine = &of.all[0];
  ck_assert_uint_eq(mine->struct_size, sizeof *mine);
  ck_assert_str_eq(of.names[0], "x");
  ck_assert_str_eq(of.names[1], "");
  ck_assert_uint_lt(mine->id, of.all[1].id);
  ck_assert_uint_eq(mine->size, SIZE);
  ck_assert_uint_eq(mine->handles, 2);
  ck_assert_uint_eq(mine->accesses, 2);
  ck_assert_uint_eq(mine->memory, SIZE);
  ck_assert_uint_eq(mine->borrowed, SIZE);
  ck_assert(tarn_place_equal(mine->place, tarn_place_on(gpu)));
  ck_assert_uint_eq(mine->mode, TARN_READ);
  ck_assert_uint_eq(mine->access_offset, 15);
  ck_assert_uint_eq(mine->access_size, 6);
  ck_assert_uint_eq(of.all[1].handles, 1);
  ck_assert_uint_eq(of.all[1].accesses, 0);
  ck_assert_uint_eq(of.all[1].memory, 0);
  ck_assert_uint_eq(of.all[1].borrowed, 0);
  ck_assert_uint_eq(of.all[1].mode, 0);
  assert_ok(tarn_synced_end(&first));
  of = look();
  ck_assert(tarn_place_equal(of.all[0].place, TARN_HOST));
  ck_assert_uint_eq(of.all[0].accesses, 1);
  ck_assert_uint_eq(of.all[0].mode, TARN_READ_WRITE);
  ck_assert_uint_eq(of.all[0].access_size, 5);
  assert_ok(tarn_synced_end(&next));
  assert_ok(tarn_synced_destroy(x));
  ck_assert_uint_eq(look().all[0].handles, 1);
  assert_ok(tarn_synced_destroy(view));
  ck_assert_uint_eq(look().count, 1);
  assert_ok(tarn_synced_destroy(second));
  ck_assert_uint_eq(look().count, 0);
  close_devices();
}

TEST_X(an_open_access_of_no_bytes) {
  tarn_access access;
  begin_on(&access, x, 10, 0, tarn_place_on(gpu), TARN_READ);
  seen of = look();
  ck_assert_uint_eq(of.all[0].accesses, 1);
  ck_assert(tarn_place_equal(of.all[0].place, TARN_HOST));
  ck_assert_uint_eq(of.all[0].access_offset, 10);
  ck_assert_uint_eq(of.all[0].access_size, 0);
  ck_assert_uint_eq(info_at(TARN_HOST).own_accesses, 1);
  assert_ok(tarn_synced_end(&access));
}

TEST_X(accesses_of_ones_own) {
  tarn_access mine;
  tarn_access theirs;
  tarn_synced *view = view_of(x, 0, 100);
  begin_on(&mine, x, 0, 10, TARN_HOST, TARN_READ);
  begin_on(&theirs, view, 0, 10, TARN_HOST, TARN_READ);
  ck_assert_uint_eq(info_at(tarn_place_on(gpu)).own_accesses, 1);
  ck_assert_uint_eq(info_of(view, 50, 1, TARN_HOST).own_accesses, 1);
  assert_ok(tarn_synced_end(&theirs));
  ck_assert_uint_eq(info_of(view, 0, 0, TARN_HOST).own_accesses, 0);
  ck_assert_uint_eq(info_at(TARN_HOST).own_accesses, 1);
  assert_ok(tarn_synced_end(&mine));
  assert_ok(tarn_synced_destroy(view));
}

TEST(many_in_the_order_of_their_making) {
  tarn_synced *all[40];
  for (size_t i = 0; i < 40; i++)
    assert_ok(tarn_synced_create(i, NULL, &all[i]));
  seen of = look();
  ck_assert_uint_eq(of.count, 40);
  for (size_t i = 0; i < 40; i++)
    ck_assert_uint_eq(of.all[i].size, i);
  of = (seen){.stop_after = 3};
  assert_status(tarn_synced_each_open(see, &of), TARN_FULL);
  ck_assert_uint_eq(of.count, 3);
  for (size_t i = 0; i < 40; i++)
    assert_ok(tarn_synced_destroy(all[i]));
}

static void make_named(tarn_synced **out, const char *name) {
  tarn_synced_options options = {.struct_size = sizeof options, .name = name};
  assert_ok(tarn_synced_create(8, &options, out));
}

static tarn_synced *ends_within[3];

// The name outlives the buffer.
static tarn_status end_all(void *context, const tarn_synced_open *open) {
  size_t *told = context;
  for (int i = 0; i < 3; i++) {
    require(tarn_synced_destroy(ends_within[i]) == TARN_OK);
    ends_within[i] = NULL;
  }
  require(strcmp(open->name, "named") == 0);
  ++*told;
  return TARN_OK;
}

// All buffers that existed at the call are visited.
TEST(the_visit_may_call_the_library) {
  size_t told = 0;
  for (int i = 0; i < 3; i++)
    make_named(&ends_within[i], "named");
  assert_ok(tarn_synced_each_open(end_all, &told));
  ck_assert_uint_eq(told, 3);
  ck_assert_uint_eq(look().count, 0);
}

static void look_at_all(void *context) {
  size_t *met = context;
  seen of = {.count = 0};
  tarn_status status = tarn_synced_each_open(see, &of);
  require(status == TARN_OK ? of.count == 40 : of.count == 0);
  if (status != TARN_OK) ++*met;
}

TEST(host_memory_that_runs_out) {
  tarn_synced *buffers[40];
  size_t met = 0;
  for (size_t i = 0; i < 40; i++)
    make_named(&buffers[i], "another");
  ck_assert_uint_gt(faults_sweep(look_at_all, &met), 40);
  ck_assert_uint_gt(met, 40);
  for (size_t i = 0; i < 40; i++)
    assert_ok(tarn_synced_destroy(buffers[i]));
}

int main(void) {
  faults_install();
  return run_tests();
}
