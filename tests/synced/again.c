// Accesses of a whole buffer that repeat the former one, by the thread that
// owns the lock; and all that may have happened meanwhile.
#include <pthread.h>
#include <sched.h>

#include "base/biased_lock.h"
#include "kit.h"
#include "support/on_devices.h"

enum { SIZE = 6000, OFTEN = 3000 };

static tarn_place there;  // a device whose memory the host cannot touch
static tarn_synced *x;

static void tear_down(void *context) {
  (void)context;
  verify(x);
  assert_ok(tarn_synced_destroy(x));
  ck_assert_uint_eq(sim_misuses(), 0);
}

static void begin(uint32_t mode, tarn_access *out) {
  assert_ok(tarn_synced_begin(x, 0, TARN_ALL, there, mode, NULL, out));
}

static void read_once(void) {
  tarn_access access;
  begin(TARN_READ, &access);
  assert_ok(tarn_synced_end(&access));
}

// Makes the next access one that repeats the former. Each time that another
// thread takes the lock it is harder to own.
static void repeat(void) {
  for (int i = 0; i < 1 << 22 && x->core->ready.buffer != x; i++)
    read_once();
  require(x->core->ready.buffer == x);
}

// The host has written 1, and |there| has read it often.
static void set_up(tarn_device *device) {
  there = tarn_place_on(device);
  x = new_buffer(SIZE);
  after_test(tear_down, NULL);
  write_at(x, 0, SIZE, TARN_HOST, NULL, 1);
  repeat();
}

#define TEST_AGAIN(name) TEST_SET_ON(name, TEST_NEEDS_DISCRETE, set_up)

// Not by expect_at, which verifies, and so enters otherwise.
static void expect(unsigned char value) {
  static unsigned char bytes[SIZE];
  tarn_access access;
  begin(TARN_READ, &access);
  get_bytes(&access, there, bytes);
  for (size_t i = 0; i < SIZE; i++)
    require(bytes[i] == value);
  assert_ok(tarn_synced_end(&access));
}

// --- the same again ----------------------------------------------------------

TEST_AGAIN(it_gets_the_same) {
  tarn_access first;
  tarn_access second;
  begin(TARN_READ, &first);
  begin(TARN_READ, &second);
  ck_assert_uint_eq(second.address, first.address);
  ck_assert_ptr_eq(second.pointer, first.pointer);
  ck_assert_uint_eq(second.size, SIZE);
  ck_assert_uint_eq(second.offset, 0);
  ck_assert_ptr_eq(second.buffer, x);
  ck_assert_ptr_null(second.stream);
  require(x->core->ready.buffer == x);
  assert_ok(tarn_synced_end(&first));
  ck_assert_ptr_null(first.buffer);
  assert_ok(tarn_synced_end(&second));
  assert_fails(tarn_synced_end(&second), TARN_E_INVALID, "is not open");
  expect(1);
}

TEST_AGAIN(its_bytes_are_counted) {
  uint64_t before = counts_of(x, there, there).valid;
  read_once();
  read_once();
  ck_assert_uint_eq(counts_of(x, there, there).valid,
                    before + (uint64_t)2 * SIZE);
  assert_ok(tarn_synced_traffic_reset(x));
  repeat();
  uint64_t after = counts_of(x, there, there).valid;
  read_once();
  ck_assert_uint_eq(counts_of(x, there, there).valid, after + SIZE);
}

// A write of the whole counts no bytes as valid that it discards.
TEST_AGAIN(it_may_write) {
  static const uint32_t modes[] = {TARN_WRITE_DISCARD, TARN_READ_WRITE};
  static unsigned char bytes[SIZE];
  for (size_t i = 0; i < 2; i++) {
    tarn_access access;
    uint64_t before = counts_of(x, there, there).valid;
    require(x->core->ready.buffer == x);
    begin(modes[i], &access);
    memset(bytes, (int)(2 + i), SIZE);
    put_bytes(&access, there, bytes);
    ck_assert_uint_eq(counts_of(x, there, there).valid, before + i * SIZE);
    assert_ok(tarn_synced_end(&access));
    expect((unsigned char)(2 + i));
    expect_at(x, 0, SIZE, TARN_HOST, (unsigned char)(2 + i));
    repeat();
  }
}

TEST_AGAIN(it_is_open_as_others_are) {
  tarn_access access;
  tarn_synced_info info = {.struct_size = sizeof info};
  begin(TARN_READ, &access);
  assert_fails(tarn_synced_destroy(x), TARN_E_STATE, "open for reading");
  assert_fails(tarn_synced_evict(x, there), TARN_E_STATE, "open for reading");
  assert_ok(tarn_synced_query(x, 0, TARN_ALL, there, &info));
  ck_assert_uint_eq(info.readers, 1);
  ck_assert_uint_eq(info.own_accesses, 1);
  assert_ok(tarn_synced_end(&access));
  assert_ok(tarn_synced_query(x, 0, TARN_ALL, there, &info));
  ck_assert_uint_eq(info.readers, 0);
  ck_assert_uint_eq(info.own_accesses, 0);
}

// --- conflicts ---------------------------------------------------------------

TEST_AGAIN(a_reader_keeps_writers_away) {
  tarn_access reader;
  tarn_access writer;
  begin(TARN_READ, &reader);
  assert_fails(
      tarn_synced_begin(x, 0, TARN_ALL, there, TARN_READ_WRITE, NULL, &writer),
      TARN_E_STATE, "open for reading");
  ck_assert_ptr_null(writer.buffer);
  assert_ok(tarn_synced_end(&reader));
  begin(TARN_READ_WRITE, &writer);
  assert_ok(tarn_synced_end(&writer));
}

TEST_AGAIN(a_writer_keeps_all_away) {
  tarn_access writer;
  tarn_access other;
  begin(TARN_READ_WRITE, &writer);
  require(x->core->ready.buffer == x);
  for (uint32_t mode = TARN_READ; mode <= TARN_READ_WRITE; mode++) {
    assert_fails(tarn_synced_begin(x, 0, TARN_ALL, there, mode, NULL, &other),
                 TARN_E_STATE, "open for writing");
  }
  size_t lost = 1;
  assert_ok(tarn_synced_cancel(&writer, &lost));
  ck_assert_uint_eq(lost, 0);
  expect(1);
}

// --- other arguments ---------------------------------------------------------

static void refuse(size_t offset, size_t size, tarn_place place, uint32_t mode,
                   const char *says) {
  tarn_access access = {.address = 1};
  repeat();
  assert_fails(tarn_synced_begin(x, offset, size, place, mode, NULL, &access),
               TARN_E_INVALID, says);
  ck_assert_uint_eq(access.address, 0);
  ck_assert_ptr_null(access.buffer);
}

TEST_AGAIN(wrong_arguments_are_found) {
  tarn_place nowhere = {there.device, (tarn_place_kind)99};
  refuse(0, TARN_ALL, there, 0, "mode");
  refuse(0, TARN_ALL, there, TARN_READ_WRITE + 1, "mode");
  refuse(0, TARN_ALL, there, TARN_READ | 1u << 20, "mode");
  refuse(1, SIZE, there, TARN_READ, "exceed");
  refuse(SIZE + 1, TARN_ALL, there, TARN_READ, "exceed");
  refuse(SIZE_MAX, 1, there, TARN_READ, "exceed");
  refuse(0, SIZE + 1, there, TARN_READ, "exceed");
  refuse(0, TARN_ALL, nowhere, TARN_READ, "place");
  repeat();
  assert_fails(tarn_synced_begin(x, 0, TARN_ALL, there, TARN_READ, NULL, NULL),
               TARN_E_INVALID, "out_access is NULL");
  assert_fails(tarn_synced_begin(NULL, 0, TARN_ALL, there, TARN_READ, NULL,
                                 &(tarn_access){.address = 1}),
               TARN_E_INVALID, "NULL");
  expect(1);
}

TEST_AGAIN(ranges_and_places_are_told_apart) {
  tarn_access access;
  assert_ok(
      tarn_synced_begin(x, 10, TARN_ALL, there, TARN_READ, NULL, &access));
  ck_assert_uint_eq(access.size, SIZE - 10);
  assert_ok(tarn_synced_end(&access));
  repeat();
  assert_ok(tarn_synced_begin(x, 0, 10, there, TARN_READ, NULL, &access));
  ck_assert_uint_eq(access.size, 10);
  assert_ok(tarn_synced_end(&access));
  repeat();
  assert_ok(
      tarn_synced_begin(x, 0, TARN_ALL, TARN_HOST, TARN_READ, NULL, &access));
  ck_assert_uint_eq(*(unsigned char *)access.pointer, 1);
  assert_ok(tarn_synced_end(&access));
  repeat();
  assert_ok(tarn_synced_begin(x, 0, SIZE, there, TARN_READ, NULL, &access));
  ck_assert_uint_eq(access.size, SIZE);
  assert_ok(tarn_synced_end(&access));
}

// Of two handles with the same arguments. The second one is destroyed, and the
// next may come to lie where it was.
TEST_AGAIN(handles_are_told_apart) {
  for (size_t part = 1; part < 20; part++) {
    tarn_synced *view = NULL;
    tarn_access access;
    assert_ok(tarn_synced_view(x, part, 100 * part, &view));
    for (int i = 0; i < 3; i++) {
      read_once();
      assert_ok(tarn_synced_begin(view, 0, TARN_ALL, there, TARN_READ, NULL,
                                  &access));
      ck_assert_uint_eq(access.size, 100 * part);
      ck_assert_uint_eq(access.offset, part);
      ck_assert_ptr_eq(access.buffer, view);
      assert_ok(tarn_synced_end(&access));
    }
    assert_ok(tarn_synced_destroy(view));
  }
}

TEST_AGAIN(views_of_the_whole_are_told_apart) {
  tarn_synced *view = NULL;
  tarn_access own;
  tarn_access other;
  assert_ok(tarn_synced_view(x, 0, TARN_ALL, &view));
  repeat();
  begin(TARN_READ, &own);
  assert_ok(
      tarn_synced_begin(view, 0, TARN_ALL, there, TARN_READ, NULL, &other));
  assert_fails(tarn_synced_destroy(view), TARN_E_STATE, "open for reading");
  assert_ok(tarn_synced_end(&own));
  assert_fails(tarn_synced_destroy(view), TARN_E_STATE, "open for reading");
  assert_ok(tarn_synced_end(&other));
  assert_ok(tarn_synced_destroy(view));
}

// --- what happens meanwhile --------------------------------------------------

TEST_AGAIN(another_place_writes) {
  write_at(x, 0, SIZE, TARN_HOST, NULL, 2);
  expect(2);
  repeat();
  write_at(x, 0, 10, TARN_HOST, NULL, 3);
  expect_at(x, 0, 10, there, 3);
  expect_at(x, 10, SIZE - 10, there, 2);
  repeat();
}

TEST_AGAIN(a_part_is_open) {
  tarn_access part;
  tarn_access whole;
  assert_ok(tarn_synced_begin(x, 10, 20, there, TARN_READ, NULL, &part));
  ck_assert_uint_eq(x->core->spans.map.count, 3);
  begin(TARN_READ, &whole);
  ck_assert_ptr_null(x->core->ready.buffer);
  assert_ok(tarn_synced_end(&whole));
  for (int i = 0; i < 3; i++) {
    tarn_access again;
    assert_ok(tarn_synced_begin(x, 10, 20, there, TARN_READ, NULL, &again));
    ck_assert_uint_eq(again.size, 20);
    ck_assert_uint_eq(again.address, part.address);
    assert_ok(tarn_synced_end(&again));
  }
  assert_ok(tarn_synced_end(&part));
  ck_assert_uint_eq(x->core->spans.map.count, 1);
  repeat();
}

// An access of no bytes is at no place, and one at another place ends as ever.
TEST_AGAIN(others_end) {
  tarn_access empty;
  tarn_access host;
  assert_ok(tarn_synced_begin(x, 5, 0, there, TARN_READ, NULL, &empty));
  assert_ok(
      tarn_synced_begin(x, 0, TARN_ALL, TARN_HOST, TARN_READ, NULL, &host));
  repeat();
  assert_ok(tarn_synced_end(&empty));
  ck_assert_uint_eq(x->core->spans.whole.readers, 1);
  repeat();
  assert_ok(tarn_synced_end(&host));
  ck_assert_uint_eq(x->core->spans.whole.readers, 0);
  repeat();
  write_at(x, 0, SIZE, there, NULL, 2);
  expect(2);
}

TEST_AGAIN(it_is_suspended) {
  tarn_access access;
  assert_ok(tarn_synced_suspend(x, "it is late"));
  assert_fails(
      tarn_synced_begin(x, 0, TARN_ALL, there, TARN_READ, NULL, &access),
      TARN_E_STATE, "it is late");
  assert_ok(tarn_synced_resume(x));
  assert_fails(
      tarn_synced_begin(x, 0, TARN_ALL, there, TARN_READ, NULL, &access),
      TARN_E_STATE, "invalidated");
  write_at(x, 0, SIZE, there, NULL, 4);
  repeat();
  expect(4);
}

TEST_AGAIN(it_is_invalidated) {
  tarn_access access;
  assert_ok(tarn_synced_invalidate(x, 0, TARN_ALL));
  assert_fails(
      tarn_synced_begin(x, 0, TARN_ALL, there, TARN_READ, NULL, &access),
      TARN_E_STATE, "invalidated");
  write_at(x, 0, SIZE, there, NULL, 5);
  repeat();
}

TEST_AGAIN(its_memory_goes) {
  assert_ok(tarn_synced_evict(x, there));
  expect(1);
  assert_moved(x, TARN_HOST, there, 2, (uint64_t)2 * SIZE);
  repeat();
}

TEST_AGAIN(its_memory_is_exchanged) {
  tarn_addr outside = 0;
  tarn_access access;
  assert_ok(tarn_device_allocate(there, SIZE, &outside));
  assert_ok(tarn_synced_wrap(x, there, outside, NULL));
  begin(TARN_READ, &access);
  ck_assert_uint_eq(access.address, outside);
  assert_ok(tarn_synced_end(&access));
  assert_ok(tarn_synced_evict(x, there));
  read_once();
  assert_ok(tarn_device_deallocate(there, outside, SIZE));
}

TEST_AGAIN(a_stream_uses_it) {
  static unsigned char bytes[SIZE];
  tarn_stream *stream = NULL;
  tarn_access access;
  assert_ok(tarn_stream_create(there.device, &stream));
  for (unsigned char value = 6; value < 10; value++) {
    repeat();
    assert_ok(tarn_synced_begin(x, 0, TARN_ALL, there, TARN_WRITE_DISCARD,
                                stream, &access));
    memset(bytes, value, SIZE);
    assert_ok(tarn_copy_h2d(there.device, access.address, bytes, SIZE, stream));
    assert_ok(tarn_synced_end(&access));
    expect(value);
  }
  assert_ok(tarn_stream_destroy(stream));
}

static void *write_elsewhere(void *value) {
  write_at(x, 0, SIZE, TARN_HOST, NULL, *(unsigned char *)value);
  return NULL;
}

TEST_AGAIN(another_thread_writes) {
  for (unsigned char value = 2; value < 6; value++) {
    pthread_t thread;
    require(pthread_create(&thread, NULL, write_elsewhere, &value) == 0);
    require(pthread_join(thread, NULL) == 0);
    expect(value);
  }
}

static void *wait_and_write(void *unused) {
  tarn_access access;
  (void)unused;
  assert_ok(tarn_synced_begin(x, 0, TARN_ALL, there,
                              TARN_WRITE_DISCARD | TARN_ACCESS_WAIT, NULL,
                              &access));
  assert_ok(tarn_synced_cancel(&access, NULL));
  return NULL;
}

static size_t sleepers(void) {
  tarn__core_enter(x->core);
  size_t count = x->core->sleepers;
  tarn__core_leave(x->core);
  return count;
}

// If this thread owns the lock, nothing is ready, which is looked at inside.
static void expect_nothing_ready(void) {
  tarn__owner_slot *slot = tarn__biased_lock_try(&x->core->lock);
  if (slot == NULL) return;
  require(x->core->sleepers == 0 || x->core->ready.buffer == NULL);
  tarn__biased_lock_leave_owned(slot);
}

// Each end wakes the other thread, which finds the first access and sleeps
// again. The lock may be this thread's for a while between two of its turns.
TEST_AGAIN(another_thread_waits) {
  tarn_access access;
  pthread_t thread;
  begin(TARN_READ, &access);
  require(pthread_create(&thread, NULL, wait_and_write, NULL) == 0);
  while (sleepers() == 0)
    sched_yield();
  for (int i = 0; i < OFTEN; i++) {
    tarn_access more;
    begin(TARN_READ, &more);
    expect_nothing_ready();
    assert_ok(tarn_synced_end(&more));
  }
  assert_ok(tarn_synced_end(&access));
  require(pthread_join(thread, NULL) == 0);
  repeat();
}

TEST_AGAIN(a_callback_runs) {
  tarn_access access;
  tarn_access open;
  begin(TARN_READ, &open);
  tarn__callback_begin();
  assert_fails(
      tarn_synced_begin(x, 0, TARN_ALL, there, TARN_READ, NULL, &access),
      TARN_E_STATE, "callback");
  assert_fails(tarn_synced_end(&open), TARN_E_STATE, "callback");
  tarn__callback_end();
  assert_ok(tarn_synced_end(&open));
  repeat();
}

int main(void) {
  return run_tests();
}
