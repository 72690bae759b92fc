// Synced buffers and forks: a child does not use buffers of its parent, and
// never waits for a thread that it does not have.
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "support/child.h"
#include "support/effort.h"
#include "support/on_devices.h"
#include "synced/core.h"
#include "tarn/sim.h"
#include "tarn/synced.h"
#include "tarn/traffic.h"

enum { SIZE = 4096 };

#define MUST_BE_STATE(call)                          \
  do {                                               \
    MUST((call) == TARN_E_STATE);                    \
    MUST(strstr(tarn_last_error(), "fork") != NULL); \
  } while (0)

static tarn_place there;
static tarn_stream *stream;
static tarn_synced *buffer;
static tarn_synced *view;
static tarn_access open_access;
static bool deleted;

static void delete_it(void *context, tarn_place place, tarn_addr address,
                      size_t size) {
  (void)context;
  (void)place;
  (void)address;
  (void)size;
  deleted = true;
}

static void make_buffer(tarn_device *device) {
  static unsigned char given[SIZE];
  there = tarn_place_on(device);
  assert_ok(tarn_stream_create(device, &stream));
  tarn_synced_options options = {
      .struct_size = sizeof options, .name = "parent's", .device = device};
  assert_ok(tarn_synced_create(SIZE, &options, &buffer));
  tarn_wrap_options wrap = {.struct_size = sizeof wrap, .deleter = delete_it};
  memset(given, 0x42, sizeof given);
  assert_ok(tarn_synced_wrap(buffer, TARN_HOST,
                             (tarn_addr)(uintptr_t)(void *)given, &wrap));
  assert_ok(tarn_synced_view(buffer, 100, 1000, &view));
  assert_ok(tarn_synced_push(buffer, 0, TARN_ALL, stream, NULL));
  assert_ok(tarn_synced_begin(view, 0, 500, there, TARN_READ_WRITE, stream,
                              &open_access));
}

static void end_buffer(void) {
  assert_ok(tarn_synced_cancel(&open_access, NULL));
  tarn_access a;
  assert_ok(
      tarn_synced_begin(buffer, 0, TARN_ALL, TARN_HOST, TARN_READ, NULL, &a));
  const unsigned char *bytes = a.pointer;
  for (size_t i = 0; i < SIZE; i++)
    require(bytes[i] == 0x42);
  assert_ok(tarn_synced_end(&a));
  assert_ok(tarn_synced_destroy(buffer));
  ck_assert(!deleted);
  assert_ok(tarn_synced_destroy(view));
  ck_assert(deleted);
  assert_ok(tarn_stream_destroy(stream));
}

// ---------------------------------------------------------------------------
// A parent's buffer
// ---------------------------------------------------------------------------

static tarn_status no_traffic(void *context, const tarn_traffic *traffic) {
  (void)traffic;
  *(bool *)context = true;
  return TARN_OK;
}

static tarn_status no_open(void *context, const tarn_synced_open *open) {
  (void)open;
  *(bool *)context = true;
  return TARN_OK;
}

static void access_the_parent_s(tarn_synced *b) {
  tarn_access a;
  memset(&a, 0xff, sizeof a);
  MUST_BE_STATE(
      tarn_synced_begin(b, 0, TARN_ALL, TARN_HOST, TARN_READ, NULL, &a));
  MUST(a.buffer == NULL && a.address == 0);
  MUST_BE_STATE(tarn_synced_begin(b, 0, 10, there, TARN_READ | TARN_ACCESS_WAIT,
                                  stream, &a));
  MUST_BE_STATE(tarn_synced_end(&open_access));
  MUST_BE_STATE(tarn_synced_cancel(&open_access, NULL));
  MUST_BE_STATE(tarn_synced_prefetch(b, 0, 10, TARN_HOST, NULL, NULL));
  MUST_BE_STATE(tarn_synced_push(b, 0, 10, stream, NULL));
  MUST_BE_STATE(tarn_synced_pull(b, 0, 10, NULL, NULL));
  MUST_BE_STATE(tarn_synced_evict(b, TARN_HOST));
  MUST_BE_STATE(tarn_synced_invalidate(b, 0, 10));
}

static void ask_the_parent_s(tarn_synced *b) {
  tarn_synced_info info = {.struct_size = sizeof info, .valid = 7};
  MUST_BE_STATE(tarn_synced_query(b, 0, 10, TARN_HOST, &info));
  MUST(info.valid == 0);
  const void *read = &info;
  void *write = &info;
  tarn_addr address = 7;
  MUST_BE_STATE(tarn_synced_cpu_data(b, &read));
  MUST_BE_STATE(tarn_synced_mutable_cpu_data(b, &write));
  MUST(read == NULL && write == NULL);
  MUST_BE_STATE(tarn_synced_gpu_data(b, &address));
  MUST(address == 0);
  address = 7;
  MUST_BE_STATE(tarn_synced_mutable_gpu_data(b, &address));
  MUST(address == 0);
  static unsigned char bytes[SIZE];
  MUST_BE_STATE(tarn_synced_set_cpu_data(b, bytes));
  MUST_BE_STATE(tarn_synced_set_gpu_data(b, 4096));
  MUST_BE_STATE(tarn_synced_async_gpu_push(b, stream));
  MUST_BE_STATE(tarn_synced_wrap(b, TARN_HOST,
                                 (tarn_addr)(uintptr_t)(void *)bytes, NULL));
  tarn_synced *another = b;
  MUST_BE_STATE(tarn_synced_view(b, 0, 1, &another));
  MUST(another == NULL);
  bool seen = false;
  MUST_BE_STATE(tarn_synced_traffic(b, no_traffic, &seen));
  MUST_BE_STATE(tarn_synced_traffic_reset(b));
  MUST(!seen);
  MUST(tarn_synced_head(b) == TARN_UNINITIALIZED);
}

static void use_the_parent_s(void) {
  access_the_parent_s(buffer);
  access_the_parent_s(view);
  ask_the_parent_s(buffer);
  ask_the_parent_s(view);
  size_t before = tarn_host_memory();
  (void)tarn_synced_destroy(view);
  (void)tarn_synced_destroy(buffer);
  MUST(tarn_host_memory() < before);
  MUST(!deleted);
}

static void use_an_own_one(void) {
  tarn_synced *own = NULL;
  tarn_access a;
  MUST(tarn_synced_create(SIZE, NULL, &own) == TARN_OK);
  MUST(tarn_synced_begin(own, 0, TARN_ALL, TARN_HOST, TARN_READ_WRITE, NULL,
                         &a) == TARN_OK);
  MUST(((unsigned char *)a.pointer)[SIZE - 1] == 0);
  memset(a.pointer, 1, a.size);
  MUST(tarn_synced_end(&a) == TARN_OK);
  MUST(tarn_synced_head(own) == TARN_HEAD_AT_CPU);
  bool seen = false;
  MUST(tarn_synced_each_open(no_open, &seen) == TARN_OK);
  MUST(seen);
  MUST(tarn_synced_destroy(own) == TARN_OK);
}

TEST_SET_ON(a_child_cannot_use_its_parent_s_buffer, TEST_NEEDS_DISCRETE,
            make_buffer) {
  fork_and_run(use_the_parent_s);
  fork_and_run(use_an_own_one);
  end_buffer();
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 0), 0);
}

// A parent's buffers are not in the child's report, whichever destroys them.
static void report(void) {
  bool seen = false;
  MUST(tarn_synced_each_open(no_open, &seen) == TARN_OK);
  MUST(!seen);
  MUST(tarn_synced_traffic(NULL, no_traffic, &seen) == TARN_OK);
  MUST(!seen);
  MUST(tarn_synced_traffic_reset(NULL) == TARN_OK);
}

TEST_SET_ON(a_child_reports_its_own, TEST_NEEDS_DISCRETE, make_buffer) {
  fork_and_run(report);
  end_buffer();
}

// ---------------------------------------------------------------------------
// While another thread is inside
// ---------------------------------------------------------------------------

// A lock of AddressSanitizer's allocator that another thread has at a fork
// stays locked in the child for ever: with it no other thread is inside.
#if defined(TARN_TESTS_ASAN)
enum { OTHERS = 0 };
#else
enum { OTHERS = 3 };
#endif
enum { FORKS = EFFORT(60, 12) };

static atomic_bool over;
static atomic_int wrong;

static void *use_meanwhile(void *number) {
  size_t at = (uintptr_t)number * 1500;
  for (unsigned i = 0; !atomic_load(&over); i++) {
    tarn_access a;
    tarn_place place = i % 2 == 0 ? TARN_HOST : there;
    tarn_status status =
        tarn_synced_begin(buffer, at, 1000 + i % 400, place,
                          TARN_READ | TARN_ACCESS_WAIT, NULL, &a);
    if (status != TARN_OK) {
      atomic_fetch_add(&wrong, 1);
      continue;
    }
    if (tarn_synced_end(&a) != TARN_OK) atomic_fetch_add(&wrong, 1);
    tarn_synced *another = NULL;
    if (tarn_synced_create(100 + i % 7, NULL, &another) != TARN_OK ||
        tarn_synced_destroy(another) != TARN_OK) {
      atomic_fetch_add(&wrong, 1);
    }
  }
  return NULL;
}

static void *trace_meanwhile(void *nothing) {
  bool seen = false;
  while (!atomic_load(&over)) {
    if (tarn_synced_each_open(no_open, &seen) != TARN_OK ||
        tarn_synced_trace(NULL, NULL) != TARN_OK) {
      atomic_fetch_add(&wrong, 1);
    }
  }
  return nothing;
}

static void use_both(void) {
  use_an_own_one();
  tarn_access a;
  MUST_BE_STATE(
      tarn_synced_begin(buffer, 0, 1, TARN_HOST, TARN_READ, NULL, &a));
  MUST(tarn_synced_trace(NULL, NULL) == TARN_OK);
  (void)tarn_synced_destroy(view);
  (void)tarn_synced_destroy(buffer);
}

// A thread that is inside has just taken a spare node, but not counted it.
static atomic_bool torn;

static void *stay_inside(void *nothing) {
  tarn__synced_core *core = buffer->core;
  tarn__core_enter(core);
  core->spans.spare_uses.count++;
  atomic_store(&torn, true);
  while (!atomic_load(&over))
    tarn__os_yield();
  core->spans.spare_uses.count--;
  tarn__core_leave(core);
  return nothing;
}

static void leave_it_behind(void) {
  size_t before = tarn_host_memory();
  (void)tarn_synced_destroy(view);
  (void)tarn_synced_destroy(buffer);
  MUST(before - tarn_host_memory() == 2 * sizeof(tarn_synced));
  use_an_own_one();
}

TEST_SET_ON(a_fork_leaves_behind_what_is_half_changed, TEST_NEEDS_DISCRETE,
            make_buffer) {
  pthread_t thread;
  pthread_create(&thread, NULL, stay_inside, NULL);
  while (!atomic_load(&torn))
    tarn__os_yield();
  fork_and_run(leave_it_behind);
  atomic_store(&over, true);
  pthread_join(thread, NULL);
  end_buffer();
}

TEST_SET_ON(a_fork_while_others_are_inside, TEST_NEEDS_DISCRETE, make_buffer) {
  assert_ok(tarn_synced_end(&open_access));
  tarn_access a;
  assert_ok(tarn_synced_begin(buffer, 0, TARN_ALL, TARN_HOST,
                              TARN_WRITE_DISCARD, NULL, &a));
  memset(a.pointer, 0x42, SIZE);
  assert_ok(tarn_synced_end(&a));
  pthread_t threads[3];
  for (int i = 0; i < OTHERS; i++) {
    pthread_create(&threads[i], NULL, i < 2 ? use_meanwhile : trace_meanwhile,
                   (void *)(uintptr_t)i);
  }
  for (int i = 0; i < FORKS; i++)
    fork_and_run(use_both);
  atomic_store(&over, true);
  for (int i = 0; i < OTHERS; i++)
    pthread_join(threads[i], NULL);
  ck_assert_int_eq(atomic_load(&wrong), 0);
  assert_ok(tarn_synced_begin(view, 0, 500, there, TARN_READ_WRITE, NULL,
                              &open_access));
  end_buffer();
}
