// Counts for each pair of places.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "sim/kit.h"
#include "support/child.h"
#include "support/effort.h"
#include "support/fake_plugin.h"
#include "support/faults.h"
#include "support/on_devices.h"
#include "tarn/synced.h"
#include "tarn/traffic.h"

enum { SIZE = 1000, MOST = 64 };

// --- buffers ---------------------------------------------------------------

static tarn_synced *buffer_named(const char *name, size_t size) {
  tarn_synced_options options = {.struct_size = sizeof options, .name = name};
  tarn_synced *buffer = NULL;
  assert_ok(tarn_synced_create(size, &options, &buffer));
  return buffer;
}

static void touch(tarn_synced *buffer, size_t offset, size_t size,
                  tarn_place place, uint32_t mode) {
  tarn_access access;
  assert_ok(
      tarn_synced_begin(buffer, offset, size, place, mode, NULL, &access));
  assert_ok(tarn_synced_end(&access));
}

// --- counts ----------------------------------------------------------------

typedef struct seen {
  tarn_traffic of[MOST];
  size_t count;
} seen;

static tarn_status collect(void *context, const tarn_traffic *traffic) {
  seen *s = context;
  require(traffic->struct_size == sizeof *traffic);
  require(s->count < MOST);
  s->of[s->count++] = *traffic;
  return TARN_OK;
}

static seen traffic_of(tarn_synced *buffer) {
  seen s = {.count = 0};
  assert_ok(tarn_synced_traffic(buffer, collect, &s));
  return s;
}

// Zero if there is nothing of that pair; each pair is there once.
static tarn_traffic between(const seen *s, tarn_place from, tarn_place to) {
  tarn_traffic found = {.struct_size = 0};
  for (size_t i = 0; i < s->count; i++) {
    if (!tarn_place_equal(s->of[i].from, from)) continue;
    if (!tarn_place_equal(s->of[i].to, to)) continue;
    ck_assert_uint_eq(found.struct_size, 0);
    found = s->of[i];
  }
  return found;
}

TEST(a_new_buffer_has_none) {
  tarn_synced *buffer = buffer_named(NULL, SIZE);
  ck_assert_uint_eq(traffic_of(buffer).count, 0);
  assert_ok(tarn_synced_destroy(buffer));
}

TEST_ON(each_kind_of_count, TEST_NEEDS_DISCRETE) {
  tarn_place there = tarn_place_on(device);
  tarn_synced *buffer = buffer_named(NULL, SIZE);
  touch(buffer, 0, SIZE, TARN_HOST, TARN_WRITE_DISCARD);
  ck_assert_uint_eq(traffic_of(buffer).count, 0);

  touch(buffer, 100, 50, there, TARN_READ);  // the other 950 are outside
  seen s = traffic_of(buffer);
  ck_assert_uint_eq(s.count, 1);
  tarn_traffic in = between(&s, TARN_HOST, there);
  ck_assert_uint_eq(in.copies, 1);
  ck_assert_uint_eq(in.bytes_moved, 50);
  ck_assert_uint_eq(in.bytes_outside, SIZE - 50);
  ck_assert_uint_eq(in.bytes_valid, 0);
  ck_assert_uint_eq(in.bytes_discarded, 0);

  touch(buffer, 90, 20, there, TARN_READ);  // half of it is there
  touch(buffer, 100, 5, there, TARN_READ);
  touch(buffer, 100, 300, there, TARN_WRITE_DISCARD);  // 50 were valid
  s = traffic_of(buffer);
  ck_assert_uint_eq(s.count, 2);
  in = between(&s, TARN_HOST, there);
  ck_assert_uint_eq(in.copies, 2);
  ck_assert_uint_eq(in.bytes_moved, 60);
  ck_assert_uint_eq(in.bytes_discarded, 250);
  tarn_traffic valid = between(&s, there, there);
  ck_assert_uint_eq(valid.copies, 0);
  ck_assert_uint_ge(valid.bytes_valid, 15);
  ck_assert_uint_eq(between(&s, there, TARN_HOST).struct_size, 0);

  touch(buffer, 0, SIZE, TARN_HOST, TARN_READ);
  s = traffic_of(buffer);
  tarn_traffic out = between(&s, there, TARN_HOST);
  ck_assert_uint_eq(out.copies, 1);
  ck_assert_uint_eq(out.bytes_moved, 300);
  ck_assert_uint_eq(out.bytes_outside, 0);
  ck_assert_uint_eq(between(&s, TARN_HOST, TARN_HOST).bytes_valid, SIZE - 300);
  assert_ok(tarn_synced_destroy(buffer));
}

// The device does nothing until it is waited for.
TEST(stalls_are_counted) {
  fake_add();
  tarn_device *device = sim_open("fake:0");
  tarn_stream *stream = NULL;
  uint64_t stalls = 0;
  uint64_t ns = 0;
  assert_ok(tarn_stream_create(device, &stream));
  tarn_synced *buffer = buffer_named(NULL, SIZE);
  touch(buffer, 0, SIZE, TARN_HOST, TARN_WRITE_DISCARD);
  assert_ok(tarn_synced_prefetch(buffer, 0, SIZE, tarn_place_on(device), stream,
                                 NULL));
  touch(buffer, 0, SIZE, TARN_HOST, TARN_WRITE_DISCARD);
  seen s = traffic_of(buffer);
  for (size_t i = 0; i < s.count; i++) {
    stalls += s.of[i].stalls;
    ns += s.of[i].stalled_ns;
  }
  ck_assert_uint_eq(stalls, 1);
  ck_assert_uint_gt(ns, 0);
  assert_ok(tarn_synced_destroy(buffer));
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_device_close(device));
}

TEST_ON(of_views_and_of_all, TEST_NEEDS_DISCRETE) {
  tarn_place there = tarn_place_on(device);
  tarn_synced *a = buffer_named(NULL, SIZE);
  tarn_synced *b = buffer_named(NULL, 10);
  tarn_synced *view = NULL;
  assert_ok(tarn_synced_view(a, 100, 100, &view));
  touch(a, 0, SIZE, TARN_HOST, TARN_WRITE_DISCARD);
  touch(b, 0, 10, TARN_HOST, TARN_WRITE_DISCARD);
  touch(view, 0, TARN_ALL, there, TARN_READ);
  touch(a, 0, 100, there, TARN_READ);
  touch(b, 0, 10, there, TARN_READ);

  seen of_view = traffic_of(view);
  ck_assert_uint_eq(between(&of_view, TARN_HOST, there).copies, 2);
  ck_assert_uint_eq(between(&of_view, TARN_HOST, there).bytes_moved, 200);
  seen of_all = traffic_of(NULL);
  ck_assert_uint_eq(of_all.count, 1);
  ck_assert_uint_eq(between(&of_all, TARN_HOST, there).copies, 3);
  ck_assert_uint_eq(between(&of_all, TARN_HOST, there).bytes_moved, 210);

  assert_ok(tarn_synced_traffic_reset(view));
  ck_assert_uint_eq(traffic_of(a).count, 0);
  of_all = traffic_of(NULL);
  ck_assert_uint_eq(between(&of_all, TARN_HOST, there).bytes_moved, 10);
  assert_ok(tarn_synced_traffic_reset(NULL));
  ck_assert_uint_eq(traffic_of(NULL).count, 0);

  assert_ok(tarn_synced_destroy(view));
  assert_ok(tarn_synced_destroy(a));
  assert_ok(tarn_synced_destroy(b));
  ck_assert_uint_eq(traffic_of(NULL).count, 0);
}

// More places than the first table has room for, in different orders.
TEST(many_places) {
  enum { DEVICES = 8 };
  tarn_sim_options many = {.struct_size = sizeof many, .devices = DEVICES};
  tarn_device *devices[DEVICES];
  assert_ok(tarn_sim_configure(&many));
  tarn_synced *a = buffer_named(NULL, SIZE);
  tarn_synced *b = buffer_named(NULL, SIZE);
  touch(a, 0, SIZE, TARN_HOST, TARN_WRITE_DISCARD);
  touch(b, 0, SIZE, TARN_HOST, TARN_WRITE_DISCARD);
  for (size_t i = 0; i < DEVICES; i++) {
    char name[16];
    snprintf(name, sizeof name, "sim:%zu", i);
    devices[i] = sim_open(name);
  }
  for (size_t i = 0; i < DEVICES; i++) {
    touch(a, 2 * i, 1, tarn_place_on(devices[i]), TARN_READ);
    touch(b, 2 * i, 2, tarn_place_on(devices[DEVICES - 1 - i]), TARN_READ);
  }
  seen all = traffic_of(NULL);
  ck_assert_uint_eq(all.count, DEVICES);
  for (size_t i = 0; i < DEVICES; i++) {
    tarn_traffic t = between(&all, TARN_HOST, tarn_place_on(devices[i]));
    ck_assert_uint_eq(t.copies, 2);
    ck_assert_uint_eq(t.bytes_moved, 3);
  }
  assert_ok(tarn_synced_destroy(a));
  assert_ok(tarn_synced_destroy(b));
  for (size_t i = 0; i < DEVICES; i++)
    assert_ok(tarn_device_close(devices[i]));
}

// --- visits ----------------------------------------------------------------

static tarn_status stop_at_once(void *context, const tarn_traffic *traffic) {
  (void)traffic;
  ++*(int *)context;
  return TARN_PENDING;
}

static tarn_status end_it(void *context, const tarn_traffic *traffic) {
  tarn_synced **buffer = context;
  require(traffic->bytes_moved == 10);
  require(tarn_synced_destroy(*buffer) == TARN_OK);
  require(tarn_synced_traffic_reset(NULL) == TARN_OK);
  *buffer = NULL;
  return TARN_OK;
}

TEST_ON(visits_may_stop_and_may_call_the_library, TEST_NEEDS_DISCRETE) {
  tarn_synced *buffer = buffer_named(NULL, 10);
  int visits = 0;
  touch(buffer, 0, 10, TARN_HOST, TARN_WRITE_DISCARD);
  touch(buffer, 0, 10, tarn_place_on(device), TARN_READ_WRITE);
  touch(buffer, 0, 10, tarn_place_on(device), TARN_READ);
  assert_status(tarn_synced_traffic(buffer, stop_at_once, &visits),
                TARN_PENDING);
  ck_assert_int_eq(visits, 1);
  assert_ok(tarn_synced_traffic_reset(buffer));
  touch(buffer, 0, 10, TARN_HOST, TARN_READ);
  assert_ok(tarn_synced_traffic(buffer, end_it, &buffer));
  ck_assert_ptr_null(buffer);
}

TEST(calls_that_are_wrong) {
  tarn_synced *buffer = buffer_named(NULL, 10);
  assert_status(tarn_synced_traffic(buffer, NULL, NULL), TARN_E_INVALID);
  assert_status(tarn_synced_traffic(NULL, NULL, NULL), TARN_E_INVALID);
  assert_status(tarn_synced_each_open(NULL, NULL), TARN_E_INVALID);
  assert_ok(tarn_synced_destroy(buffer));
}

// --- open buffers ------------------------------------------------------------

typedef struct opens {
  size_t count;
  size_t size;  // of the last one
} opens;

static tarn_status note_open(void *context, const tarn_synced_open *open) {
  opens *o = context;
  o->count++;
  o->size = open->size;
  return TARN_OK;
}

// --- failures --------------------------------------------------------------

static void look_at_all(void *context) {
  size_t *met = context;
  seen traffic = {.count = 0};
  tarn_status status = tarn_synced_traffic(NULL, collect, &traffic);
  require(status == TARN_OK ? traffic.count == 2 : traffic.count == 0);
  if (status != TARN_OK) ++*met;
}

TEST_ON(host_memory_that_runs_out, TEST_NEEDS_DISCRETE) {
  size_t met = 0;
  tarn_synced *buffer = buffer_named("named", SIZE);
  touch(buffer, 0, SIZE, TARN_HOST, TARN_WRITE_DISCARD);
  touch(buffer, 0, SIZE, tarn_place_on(device), TARN_READ);
  touch(buffer, 0, SIZE, tarn_place_on(device), TARN_READ);
  ck_assert_uint_ge(faults_sweep(look_at_all, &met), 2);
  ck_assert_uint_ge(met, 2);
  assert_ok(tarn_synced_destroy(buffer));
}

// --- forks and callbacks ---------------------------------------------------

// The parent's buffers are none of the child's; its own are.
static void in_child(tarn_synced *buffer) {
  seen traffic = {.count = 0};
  opens open = {.count = 0};
  tarn_synced *own = NULL;
  MUST(tarn_synced_traffic(buffer, collect, &traffic) == TARN_E_STATE);
  MUST(tarn_synced_traffic_reset(buffer) == TARN_E_STATE);
  MUST(tarn_synced_traffic(NULL, collect, &traffic) == TARN_OK);
  MUST(traffic.count == 0);
  MUST(tarn_synced_traffic_reset(NULL) == TARN_OK);
  MUST(tarn_synced_each_open(note_open, &open) == TARN_OK);
  MUST(open.count == 0);
  MUST(tarn_synced_create(5, NULL, &own) == TARN_OK);
  MUST(tarn_synced_each_open(note_open, &open) == TARN_OK);
  MUST(open.count == 1 && open.size == 5);
  MUST(tarn_synced_destroy(buffer) == TARN_OK);
  MUST(tarn_synced_destroy(own) == TARN_OK);
}

TEST(a_child_sees_its_own) {
  tarn_synced *buffer = buffer_named("parent's", SIZE);
  pid_t child = fork();
  if (child == 0) {
    child_begin(30);
    in_child(buffer);
    _exit(0);
  }
  assert_child_ended_well(child);
  opens open = {.count = 0};
  assert_ok(tarn_synced_each_open(note_open, &open));
  ck_assert_uint_eq(open.count, 1);
  assert_ok(tarn_synced_destroy(buffer));
}

static void look_in_callback(void *context, tarn_status status) {
  tarn_status *got = context;
  seen traffic = {.count = 0};
  opens open = {.count = 0};
  (void)status;
  got[0] = tarn_synced_traffic(NULL, collect, &traffic);
  got[1] = tarn_synced_traffic_reset(NULL);
  got[2] = tarn_synced_each_open(note_open, &open);
}

TEST_ON(not_in_a_callback, 0) {
  tarn_status got[3] = {TARN_OK, TARN_OK, TARN_OK};
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  assert_ok(tarn_stream_add_callback(stream, look_in_callback, got));
  assert_ok(tarn_stream_destroy(stream));
  for (int i = 0; i < 3; i++)
    ck_assert_int_eq(got[i], TARN_E_STATE);
}

// --- threads ---------------------------------------------------------------

enum { THREADS = 3 };

static atomic_bool enough;

// Makes, uses and ends buffers of its own.
static void *use_buffers(void *context) {
  tarn_device *device = context;
  for (int i = 0; i < EFFORT(2000, 200); i++) {
    tarn_synced *buffer = buffer_named("busy", 100);
    touch(buffer, 0, 100, TARN_HOST, TARN_WRITE_DISCARD);
    touch(buffer, 10, 20, tarn_place_on(device), TARN_READ_WRITE);
    assert_ok(tarn_synced_destroy(buffer));
  }
  return NULL;
}

static tarn_status check_traffic(void *context, const tarn_traffic *traffic) {
  (void)context;
  // Each buffer is copied to the device once, and 20 bytes.
  require(traffic->bytes_moved == 20 * traffic->copies);
  return TARN_OK;
}

static tarn_status check_open(void *context, const tarn_synced_open *open) {
  (void)context;
  require(strcmp(open->name, "busy") == 0);
  require(open->size == 100 && open->handles <= 1 && open->accesses <= 1);
  return TARN_OK;
}

static void *watch(void *context) {
  (void)context;
  while (!atomic_load(&enough)) {
    assert_ok(tarn_synced_traffic(NULL, check_traffic, NULL));
    assert_ok(tarn_synced_each_open(check_open, NULL));
    assert_ok(tarn_synced_traffic_reset(NULL));
  }
  return NULL;
}

TEST_ON(reports_while_others_are_at_work, TEST_NEEDS_DISCRETE) {
  pthread_t users[THREADS];
  pthread_t watcher;
  require(pthread_create(&watcher, NULL, watch, NULL) == 0);
  for (int i = 0; i < THREADS; i++)
    require(pthread_create(&users[i], NULL, use_buffers, device) == 0);
  for (int i = 0; i < THREADS; i++)
    require(pthread_join(users[i], NULL) == 0);
  atomic_store(&enough, true);
  require(pthread_join(watcher, NULL) == 0);
  ck_assert_uint_eq(traffic_of(NULL).count, 0);
}

int main(void) {
  faults_install();
  return run_tests();
}
