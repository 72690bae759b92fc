// Protected pages of the host permit open accesses only: children touch them,
// and die or survive.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protect_kit.h"
#include "support/hold.h"

// --- a system that refuses -------------------------------------------------

static size_t calls_until_refusal;  // 0: it never does

// In front of the C library's, through which the library asks for it.
int mprotect(void *ptr, size_t length, int rights) {
  if (calls_until_refusal > 0 && --calls_until_refusal == 0) {
    errno = ENOMEM;
    return -1;
  }
  return (int)syscall(SYS_mprotect, ptr, length, rights);
}

// --- accesses --------------------------------------------------------------

TEST_LOOP(what_is_open_is_allowed_and_no_more, PINNING_DEVICES) {
  set_up_pinned(_i);
  tarn_access access;
  begin(&access, 0, TARN_ALL, TARN_HOST, TARN_WRITE_DISCARD);
  char *at = access.pointer;
  ck_assert_uint_eq((uintptr_t)at % page, 0);
  assert_write(at);
  assert_write(at + size - 1);
  memset(at, 42, size);
  end(&access);
  assert_read(at);
  assert_read(at + size - 1);
  begin(&access, 0, TARN_ALL, TARN_HOST, TARN_READ);
  ck_assert_ptr_eq(access.pointer, at);
  ck_assert_int_eq(at[size - 1], 42);
  assert_read(at);
  end(&access);
  assert_read(at);
  begin(&access, page, 1, TARN_HOST, TARN_READ_WRITE);
  assert_read(at);
  assert_write(at + page);
  assert_read(at + 2 * page);
  end(&access);
  assert_read(at + page);
  tear_down();
}

TEST_LOOP(stale_pages_cannot_be_touched, PINNING_DEVICES) {
  set_up_pinned(_i);
  char *at = fill();
  write_at(away, page, page);
  assert_read(at);
  assert_none(at + page);
  assert_none(at + 2 * page - 1);
  assert_read(at + 2 * page);
  // A page with one stale byte has valid ones still.
  write_at(away, 0, 1);
  assert_read(at);
  write_at(away, 1, page - 1);
  assert_none(at);
  write_at(away, 0, TARN_ALL);
  assert_none(at + size - 1);
  tear_down();
}

TEST_LOOP(what_comes_back_can_be_read, PINNING_DEVICES) {
  set_up_pinned(_i);
  char *at = fill();
  tarn_access access;
  begin(&access, 0, size, away, TARN_READ_WRITE);
  assert_read(at);  // it is the newest still
  end(&access);
  assert_none(at);
  assert_none(at + 2 * page);
  begin(&access, page + 10, 10, TARN_HOST, TARN_READ);
  assert_none(at);
  assert_read(at + page);
  assert_none(at + 2 * page);
  ck_assert_int_eq(at[page + 10], 42);
  end(&access);
  tear_down();
}

TEST_LOOP(a_page_of_many_ranges_allows_what_one_of_them_needs,
          PINNING_DEVICES) {
  set_up_pinned(_i);
  char *at = fill();
  for (size_t i = 0; i < page; i += 64)
    write_at(away, page + i, 32);
  assert_read(at + page);
  tarn_access access;
  begin(&access, page + 40, 8, TARN_HOST, TARN_READ_WRITE);
  assert_write(at + page);
  assert_read(at);
  assert_read(at + 2 * page);
  // The stale ones beside it come in, and go out of its way.
  tarn_access other;
  begin(&other, page, 32, TARN_HOST, TARN_READ);
  end(&other);
  assert_write(at + page);
  end(&access);
  assert_read(at + page);
  tear_down();
}

// --- Caffe's pointers -----------------------------------------------

TEST_SET_ON(pointers_are_good_until_the_next_call, TEST_NEEDS_DISCRETE,
            set_up) {
  void *data = NULL;
  const void *known = NULL;
  tarn_addr there = 0;
  assert_ok(tarn_synced_mutable_cpu_data(buffer, &data));
  char *at = data;
  assert_write(at);
  assert_write(at + size - 1);
  ck_assert_int_eq(tarn_synced_head(buffer), TARN_HEAD_AT_CPU);
  assert_write(at);  // which only asks
  memset(at, 42, size);
  assert_ok(tarn_synced_cpu_data(buffer, &known));
  ck_assert_ptr_eq(known, at);
  assert_read(at);
  assert_ok(tarn_synced_gpu_data(buffer, &there));
  assert_read(at);
  assert_ok(tarn_synced_mutable_gpu_data(buffer, &there));
  assert_none(at);
  assert_ok(tarn_synced_mutable_cpu_data(buffer, &data));
  assert_write(at + page);
  ck_assert_int_eq(at[page], 42);
  assert_ok(tarn_synced_invalidate(buffer, 0, TARN_ALL));
  assert_none(at);
  tear_down();
}

TEST_SET_ON(a_pointer_into_a_view_is_good_there, TEST_NEEDS_DISCRETE, set_up) {
  void *data = NULL;
  char *at = fill();
  tarn_synced *view = NULL;
  assert_ok(tarn_synced_view(buffer, page, page, &view));
  write_at(away, 0, page);
  assert_ok(tarn_synced_mutable_cpu_data(view, &data));
  ck_assert_ptr_eq(data, at + page);
  assert_none(at);
  assert_write(at + page);
  assert_ok(tarn_synced_evict(buffer, away));
  assert_read(at);
  assert_read(at + page);
  assert_ok(tarn_synced_destroy(view));
  tear_down();
}

TEST_SET_ON(outside_memory_is_left_alone, TEST_NEEDS_DISCRETE, set_up) {
  char *outside = malloc(size);
  ck_assert_ptr_nonnull(outside);
  memset(outside, 1, size);
  char *at = fill();
  assert_ok(tarn_synced_wrap(buffer, TARN_HOST, (uintptr_t)outside, NULL));
  assert_write(at);  // the pool's again
  write_at(away, 0, TARN_ALL);
  assert_write(outside);
  // It may not be filled, so the buffer takes pages of its own again.
  tarn_access access;
  begin(&access, 0, page, TARN_HOST, TARN_READ);
  ck_assert_ptr_ne(access.pointer, outside);
  assert_read(access.pointer);
  assert_none((char *)access.pointer + 2 * page);
  assert_write(outside);
  end(&access);
  tear_down();
  free(outside);
}

TEST_LOOP(a_cancelled_write_is_stale, PINNING_DEVICES) {
  set_up_pinned(_i);
  size_t lost = 0;
  char *at = fill();
  tarn_access access;
  begin(&access, page, page, TARN_HOST, TARN_READ_WRITE);
  assert_ok(tarn_synced_cancel(&access, &lost));
  ck_assert_uint_eq(lost, page);
  assert_read(at);
  assert_none(at + page);
  tear_down();
}

TEST_SET_ON(copies_that_are_queued_can_be_made,
            TEST_NEEDS_DISCRETE | TEST_NEEDS_STREAMS, set_up) {
  hold held;
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  char *at = fill();
  // Out of the host's pages, and stale when it ends.
  hold_begin(&held, stream);
  tarn_access access;
  assert_ok(tarn_synced_begin(buffer, 0, size, away, TARN_READ_WRITE, stream,
                              &access));
  end(&access);
  assert_read(at);
  hold_end(&held);
  assert_ok(tarn_stream_synchronize(stream));
  // And back into them.
  hold_begin(&held, stream);
  assert_ok(tarn_synced_prefetch(buffer, 0, page, TARN_HOST, stream, NULL));
  assert_write(at);
  hold_end(&held);
  begin(&access, 0, page, TARN_HOST, TARN_READ);
  ck_assert_int_eq(at[page - 1], 42);
  assert_read(at);
  end(&access);
  assert_ok(tarn_stream_destroy(stream));
  tear_down();
}

// --- what can go wrong -----------------------------------------------------

static void use_without_memory(void *context) {
  tarn_access access;
  tarn_synced *made = NULL;
  (void)context;
  tarn_synced_options options = {.struct_size = sizeof options,
                                 .flags = TARN_SYNCED_PROTECT};
  if (tarn_synced_create(size, &options, &made) != TARN_OK) return;
  tarn_status status =
      tarn_synced_begin(made, 1, page, TARN_HOST, TARN_READ, NULL, &access);
  if (status == TARN_OK) {
    require(((const char *)access.pointer)[0] == 0);
    require(tarn_synced_end(&access) == TARN_OK);
  }
  require(tarn_synced_destroy(made) == TARN_OK);
}

TEST(without_memory_nothing_stays_behind) {
  set_up(NULL);
  use_without_memory(NULL);
  ck_assert_uint_gt(faults_sweep(use_without_memory, NULL), 4);
  tear_down();
}

TEST(a_child_frees_what_it_need_not_protect) {
  set_up(NULL);
  char *at = fill();
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    size_t before = tarn_host_memory();
    bool destroyed = tarn_synced_destroy(buffer) == TARN_OK;
    _exit(destroyed && tarn_host_memory() < before ? 0 : 1);
  }
  int ended = 0;
  ck_assert_int_eq(waitpid(child, &ended, 0), child);
  ck_assert_int_eq(ended, 0);
  assert_read(at);
  tear_down();
}

static size_t warnings;

static void count_warnings(void *context, tarn_log_level level,
                           const char *text) {
  (void)context;
  if (level == TARN_LOG_WARN && strstr(text, "synced:") != NULL) warnings++;
}

TEST(where_the_system_refuses_nothing_is_protected) {
  set_up(NULL);
  tarn_log_set(count_warnings, NULL, TARN_LOG_WARN);
  for (int i = 0; i < 2; i++) {
    char *at = fill();
    assert_read(at);
    calls_until_refusal = 1;
    write_at(away, page, page);
    assert_write(at);
    assert_write(at + page);
    // It works on as it would without.
    tarn_access access;
    begin(&access, 0, TARN_ALL, TARN_HOST, TARN_READ_WRITE);
    ck_assert_int_eq(((char *)access.pointer)[0], 42);
    end(&access);
    assert_write(at);
    assert_ok(tarn_synced_destroy(buffer));
    buffer = create(size, TARN_SYNCED_PROTECT);
  }
  ck_assert_uint_eq(warnings, 1);
  tarn_log_set(NULL, NULL, TARN_LOG_WARN);
  tear_down();
}

int main(void) {
  faults_install();
  return run_tests();
}
