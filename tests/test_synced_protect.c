// The host's pages allow what is open there and no more: children touch them,
// and die of it or live.
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/faults.h"
#include "support/run.h"
#include "synced/protect.h"
#include "tarn/sim.h"

// --- a system that refuses -------------------------------------------------

static size_t calls_until_refusal;  // 0: it never does

// In front of the C library's, through which the library asks for it.
int mprotect(void *ptr, size_t size, int rights) {
  if (calls_until_refusal > 0 && --calls_until_refusal == 0) {
    errno = ENOMEM;
    return -1;
  }
  return (int)syscall(SYS_mprotect, ptr, size, rights);
}

// --- what the tests share --------------------------------------------------

static const char *const names[] = {NULL, "cpu:0", "sim:0"};
enum { NAMES = sizeof names / sizeof names[0] };

static tarn_device *sim;
static tarn_device *device;  // that pins the host's memory; NULL: none
static tarn_synced *buffer;
static size_t page;
static size_t size;  // three pages and a bit

static tarn_synced *create(size_t bytes, uint32_t flags) {
  tarn_synced *made = NULL;
  tarn_synced_options options = {
      .struct_size = sizeof options, .device = device, .flags = flags};
  assert_ok(tarn_synced_create(bytes, &options, &made));
  return made;
}

static void set_up(const char *name) {
  page = tarn__os_page();
  size = 3 * page + 100;
  assert_ok(tarn_device_open("sim:0", &sim));
  if (name != NULL) assert_ok(tarn_device_open(name, &device));
  buffer = create(size, TARN_SYNCED_PROTECT);
}

static void tear_down(void) {
  assert_ok(tarn_synced_destroy(buffer));
  if (device != NULL) assert_ok(tarn_device_close(device));
  device = NULL;
  assert_ok(tarn_device_close(sim));
}

// What became of a child that touched |at|.
static bool child_lives(char *at, bool writes) {
  int ended = 0;
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    (void)signal(SIGSEGV,
                 SIG_DFL);  // a sanitizer would tell about it at length
    volatile char *byte = at;
    char value = *byte;
    if (writes) *byte = value;
    _exit(0);
  }
  ck_assert_int_eq(waitpid(child, &ended, 0), child);
  bool lives = WIFEXITED(ended) && WEXITSTATUS(ended) == 0;
  bool faulted = WIFSIGNALED(ended) && WTERMSIG(ended) == SIGSEGV;
  ck_assert_msg(lives || faulted, "a child ended with 0x%x", (unsigned)ended);
  return lives;
}

static void assert_none(char *at) {
  ck_assert_msg(!child_lives(at, false), "stale bytes could be read");
}

static void assert_read(char *at) {
  ck_assert_msg(child_lives(at, false), "valid bytes could not be read");
  ck_assert_msg(!child_lives(at, true), "valid bytes could be written");
}

static void assert_write(char *at) {
  ck_assert_msg(child_lives(at, true), "open bytes could not be written");
}

static void begin(tarn_access *access, size_t offset, size_t bytes,
                  tarn_place place, uint32_t mode) {
  assert_ok(
      tarn_synced_begin(buffer, offset, bytes, place, mode, NULL, access));
}

static void end(tarn_access *access) {
  assert_ok(tarn_synced_end(access));
}

static void write_at(tarn_place place, size_t offset, size_t bytes) {
  tarn_access access;
  begin(&access, offset, bytes, place, TARN_WRITE_DISCARD);
  if (access.pointer != NULL) memset(access.pointer, 7, access.size);
  end(&access);
}

// The host's memory, all of it valid.
static char *fill(void) {
  tarn_access access;
  begin(&access, 0, TARN_ALL, TARN_HOST, TARN_WRITE_DISCARD);
  char *at = access.pointer;
  memset(at, 42, size);
  end(&access);
  return at;
}

// --- accesses --------------------------------------------------------------

START_TEST(what_is_open_is_allowed_and_no_more) {
  set_up(names[_i]);
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
END_TEST

START_TEST(stale_pages_cannot_be_touched) {
  set_up(names[_i]);
  char *at = fill();
  write_at(tarn_place_on(sim), page, page);
  assert_read(at);
  assert_none(at + page);
  assert_none(at + 2 * page - 1);
  assert_read(at + 2 * page);
  // A page with one stale byte has valid ones still.
  write_at(tarn_place_on(sim), 0, 1);
  assert_read(at);
  write_at(tarn_place_on(sim), 1, page - 1);
  assert_none(at);
  write_at(tarn_place_on(sim), 0, TARN_ALL);
  assert_none(at + size - 1);
  tear_down();
}
END_TEST

START_TEST(what_comes_back_can_be_read) {
  set_up(names[_i]);
  char *at = fill();
  tarn_access access;
  begin(&access, 0, size, tarn_place_on(sim), TARN_READ_WRITE);
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
END_TEST

START_TEST(a_page_of_many_ranges_allows_what_one_of_them_needs) {
  set_up(names[_i]);
  char *at = fill();
  for (size_t i = 0; i < page; i += 64)
    write_at(tarn_place_on(sim), page + i, 32);
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
END_TEST

// --- the document's pointers -----------------------------------------------

START_TEST(pointers_are_good_until_the_next_call) {
  set_up("sim:0");
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
END_TEST

START_TEST(a_pointer_into_a_view_is_good_there) {
  set_up("sim:0");
  void *data = NULL;
  char *at = fill();
  tarn_synced *view = NULL;
  assert_ok(tarn_synced_view(buffer, page, page, &view));
  write_at(tarn_place_on(sim), 0, page);
  assert_ok(tarn_synced_mutable_cpu_data(view, &data));
  ck_assert_ptr_eq(data, at + page);
  assert_none(at);
  assert_write(at + page);
  assert_ok(tarn_synced_evict(buffer, tarn_place_on(sim)));
  assert_read(at);
  assert_read(at + page);
  assert_ok(tarn_synced_destroy(view));
  tear_down();
}
END_TEST

START_TEST(outside_memory_is_left_alone) {
  set_up("sim:0");
  char *outside = malloc(size);
  ck_assert_ptr_nonnull(outside);
  memset(outside, 1, size);
  char *at = fill();
  assert_ok(tarn_synced_wrap(buffer, TARN_HOST, (uintptr_t)outside, NULL));
  assert_write(at);  // the pool's again
  write_at(tarn_place_on(sim), 0, TARN_ALL);
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
END_TEST

START_TEST(a_cancelled_write_is_stale) {
  set_up(names[_i]);
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
END_TEST

static sem_t held;

static void wait_for_semaphore(void *context, tarn_status status) {
  (void)context;
  (void)status;
  while (sem_wait(&held) != 0)
    continue;
}

START_TEST(copies_that_are_queued_can_be_made) {
  tarn_stream *stream = NULL;
  set_up("sim:0");
  ck_assert_int_eq(sem_init(&held, 0, 0), 0);
  assert_ok(tarn_stream_create(sim, &stream));
  char *at = fill();
  // Out of the host's pages, and stale when it ends.
  assert_ok(tarn_stream_add_callback(stream, wait_for_semaphore, NULL));
  tarn_access access;
  assert_ok(tarn_synced_begin(buffer, 0, size, tarn_place_on(sim),
                              TARN_READ_WRITE, stream, &access));
  end(&access);
  assert_read(at);
  ck_assert_int_eq(sem_post(&held), 0);
  assert_ok(tarn_stream_synchronize(stream));
  // And back into them.
  assert_ok(tarn_stream_add_callback(stream, wait_for_semaphore, NULL));
  assert_ok(tarn_synced_prefetch(buffer, 0, page, TARN_HOST, stream, NULL));
  assert_write(at);
  ck_assert_int_eq(sem_post(&held), 0);
  begin(&access, 0, page, TARN_HOST, TARN_READ);
  ck_assert_int_eq(at[page - 1], 42);
  assert_read(at);
  end(&access);
  assert_ok(tarn_stream_destroy(stream));
  tear_down();
}
END_TEST

// --- whose pages -----------------------------------------------------------

START_TEST(the_pool_gets_pages_that_it_can_use) {
  set_up(names[_i]);
  tarn_pool *pool = NULL;
  tarn_block block;
  tarn_place place =
      device != NULL ? (tarn_place){device, TARN_PLACE_HOST} : TARN_HOST;
  assert_ok(tarn_pool_of(place, &pool));
  char *at = fill();
  write_at(tarn_place_on(sim), 0, TARN_ALL);
  assert_none(at);
  assert_ok(tarn_synced_destroy(buffer));
  assert_ok(tarn_pool_alloc(pool, 4 * page, page, NULL, &block));
  void *pointer = NULL;
  assert_ok(tarn_device_host_view(place, block.address, 4 * page, &pointer));
  memset(pointer, 1, 4 * page);
  assert_write(at);
  assert_ok(tarn_pool_free(&block, NULL));
  buffer = create(1, TARN_SYNCED_PROTECT);
  tear_down();
}
END_TEST

START_TEST(neighbours_in_the_pool_are_left_alone) {
  set_up(names[_i]);
  tarn_synced *whole = buffer;
  buffer = create(size, TARN_SYNCED_NO_PROTECT);
  char *plain = fill();
  tarn_synced *unprotected = buffer;
  buffer = whole;
  char *at = fill();
  write_at(tarn_place_on(sim), 0, TARN_ALL);
  assert_none(at);
  assert_write(plain);
  assert_write(plain + size - 1);
  assert_ok(tarn_synced_destroy(unprotected));
  tear_down();
}
END_TEST

// --- when ------------------------------------------------------------------

START_TEST(flags_go_before_the_environment) {
  ck_assert_int_eq(setenv("TARN_SYNCED_PROTECT", "1", 1), 0);
  ck_assert(tarn__protect_default(0));
  ck_assert(!tarn__protect_default(TARN_SYNCED_NO_PROTECT));
  ck_assert_int_eq(setenv("TARN_SYNCED_PROTECT", "0", 1), 0);
  ck_assert(!tarn__protect_default(0));
  ck_assert(tarn__protect_default(TARN_SYNCED_PROTECT));
  ck_assert_int_eq(setenv("TARN_SYNCED_PROTECT", "", 1), 0);
  bool as_built = tarn__protect_default(0);
  ck_assert_int_eq(unsetenv("TARN_SYNCED_PROTECT"), 0);
  ck_assert(tarn__protect_default(0) == as_built);
}
END_TEST

START_TEST(the_environment_decides_where_flags_do_not) {
  ck_assert_int_eq(setenv("TARN_SYNCED_PROTECT", "1", 1), 0);
  set_up(NULL);
  assert_ok(tarn_synced_destroy(buffer));
  buffer = create(size, 0);
  char *at = fill();
  assert_read(at);
  ck_assert_int_eq(setenv("TARN_SYNCED_PROTECT", "0", 1), 0);
  assert_ok(tarn_synced_destroy(buffer));
  buffer = create(size, 0);
  at = fill();
  assert_write(at);
  tear_down();
}
END_TEST

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

START_TEST(without_memory_nothing_stays_behind) {
  set_up(NULL);
  use_without_memory(NULL);
  ck_assert_uint_gt(faults_sweep(use_without_memory, NULL), 4);
  tear_down();
}
END_TEST

START_TEST(a_child_frees_what_it_need_not_protect) {
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
END_TEST

static size_t warnings;

static void count_warnings(void *context, tarn_log_level level,
                           const char *text) {
  (void)context;
  if (level == TARN_LOG_WARN && strstr(text, "synced:") != NULL) warnings++;
}

START_TEST(where_the_system_refuses_nothing_is_protected) {
  set_up(NULL);
  tarn_log_set(count_warnings, NULL, TARN_LOG_WARN);
  for (int i = 0; i < 2; i++) {
    char *at = fill();
    assert_read(at);
    calls_until_refusal = 1;
    write_at(tarn_place_on(sim), page, page);
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
END_TEST

// --- all of them -----------------------------------------------------------

int main(void) {
  faults_install();
  Suite *suite = suite_create("synced_protect");
  TCase *each = tcase_create("each device");
  tcase_set_timeout(each, 120);
  const TTest *const tests[] = {
      what_is_open_is_allowed_and_no_more,
      stale_pages_cannot_be_touched,
      what_comes_back_can_be_read,
      a_page_of_many_ranges_allows_what_one_of_them_needs,
      a_cancelled_write_is_stale,
      the_pool_gets_pages_that_it_can_use,
      neighbours_in_the_pool_are_left_alone,
  };
  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
    tcase_add_loop_test(each, tests[i], 0, NAMES);
  suite_add_tcase(suite, each);
  ADD_CASE(suite, "one", pointers_are_good_until_the_next_call,
           a_pointer_into_a_view_is_good_there, outside_memory_is_left_alone,
           copies_that_are_queued_can_be_made, flags_go_before_the_environment,
           the_environment_decides_where_flags_do_not,
           without_memory_nothing_stays_behind,
           a_child_frees_what_it_need_not_protect,
           where_the_system_refuses_nothing_is_protected);
  return run_suite(suite);
}
