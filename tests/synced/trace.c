// The trace of synced buffers: what is told, and what its function must not do.
#include <stdio.h>

#include "sim/kit.h"
#include "support/fake_plugin.h"
#include "support/on_devices.h"
#include "synced/core.h"
#include "tarn/synced.h"

enum { SIZE = 1000, MOST = 64 };

// --- what was told ---------------------------------------------------------

typedef struct told {
  uint64_t id;
  uint64_t ns;
  size_t offset;
  size_t size;
  char name[16];
  char from[32];
  char to[32];
  tarn_synced_happening what;
  bool queued;
} told;

static told all[MOST];
static size_t count;

static void note(void *context, const tarn_synced_event *event) {
  require(context == all);
  require(event->struct_size == sizeof *event);
  require(count < MOST);
  told *t = &all[count++];
  *t = (told){.what = event->what,
              .id = event->id,
              .offset = event->offset,
              .size = event->size,
              .queued = event->queued,
              .ns = event->ns};
  snprintf(t->name, sizeof t->name, "%s", event->name);
  tarn_place_text(event->from, t->from, sizeof t->from);
  tarn_place_text(event->to, t->to, sizeof t->to);
}

static void listen(void) {
  count = 0;
  assert_ok(tarn_synced_trace(note, all));
}

// The next event that was told, from |*at| on, is this.
static const told *assert_told(size_t *at, tarn_synced_happening what,
                               const char *from, const char *to, size_t offset,
                               size_t size) {
  ck_assert_msg(*at < count, "only %zu were told, and no '%s'", count,
                tarn_synced_happening_name(what));
  const told *t = &all[(*at)++];
  ck_assert_str_eq(tarn_synced_happening_name(t->what),
                   tarn_synced_happening_name(what));
  ck_assert_str_eq(t->from, from);
  ck_assert_str_eq(t->to, to);
  ck_assert_uint_eq(t->offset, offset);
  ck_assert_uint_eq(t->size, size);
  return t;
}

// --- accesses --------------------------------------------------------------

static tarn_synced *buffer_named(const char *name) {
  tarn_synced_options options = {.struct_size = sizeof options, .name = name};
  tarn_synced *buffer = NULL;
  assert_ok(tarn_synced_create(SIZE, &options, &buffer));
  return buffer;
}

static void touch(tarn_synced *buffer, size_t offset, size_t size,
                  tarn_place place, uint32_t mode, tarn_stream *stream) {
  tarn_access access;
  assert_ok(
      tarn_synced_begin(buffer, offset, size, place, mode, stream, &access));
  if (mode != TARN_READ && access.pointer != NULL) {
    memset(access.pointer, 7, access.size);
  }
  assert_ok(tarn_synced_end(&access));
}

// --- the story -------------------------------------------------------------

TEST(happenings_have_names) {
  ck_assert_str_eq(tarn_synced_happening_name(TARN_SYNCED_CREATED), "created");
  ck_assert_str_eq(tarn_synced_happening_name(TARN_SYNCED_LOST), "lost");
  for (int what = TARN_SYNCED_CREATED; what <= TARN_SYNCED_LOST; what++) {
    const char *name = tarn_synced_happening_name((tarn_synced_happening)what);
    ck_assert_ptr_nonnull(name);
    for (int other = TARN_SYNCED_CREATED; other < what; other++) {
      ck_assert_str_ne(
          name, tarn_synced_happening_name((tarn_synced_happening)other));
    }
  }
  ck_assert_ptr_null(tarn_synced_happening_name((tarn_synced_happening)0));
  ck_assert_ptr_null(tarn_synced_happening_name(
      (tarn_synced_happening)(TARN_SYNCED_LOST + 1)));
  ck_assert_ptr_null(tarn_synced_happening_name((tarn_synced_happening)-1));
}

TEST_ON(the_life_of_a_buffer, TEST_NEEDS_DISCRETE) {
  tarn_place there = tarn_place_on(device);
  listen();
  tarn_synced *buffer = buffer_named("weights");
  touch(buffer, 0, TARN_ALL, TARN_HOST, TARN_WRITE_DISCARD, NULL);
  touch(buffer, 100, 50, there, TARN_READ, NULL);
  touch(buffer, 100, 50, there, TARN_READ, NULL);  // valid: nothing is told
  assert_ok(tarn_synced_evict(buffer, there));
  assert_ok(tarn_synced_destroy(buffer));
  size_t at = 0;
  const told *first =
      assert_told(&at, TARN_SYNCED_CREATED, "host", "host", 0, SIZE);
  ck_assert_str_eq(first->name, "weights");
  assert_told(&at, TARN_SYNCED_ALLOCATED, "host", "host", 0, SIZE);
  assert_told(&at, TARN_SYNCED_ALLOCATED, "host", tarn_device_name(device), 0,
              SIZE);
  const told *copied = assert_told(&at, TARN_SYNCED_COPIED, "host",
                                   tarn_device_name(device), 100, 50);
  ck_assert(!copied->queued);
  assert_told(&at, TARN_SYNCED_RELEASED, "host", tarn_device_name(device), 0,
              SIZE);
  assert_told(&at, TARN_SYNCED_RELEASED, "host", "host", 0, SIZE);
  assert_told(&at, TARN_SYNCED_DESTROYED, "host", "host", 0, SIZE);
  ck_assert_uint_eq(at, count);
  for (size_t i = 0; i < count; i++) {
    ck_assert_uint_eq(all[i].id, first->id);
    ck_assert_str_eq(all[i].name, "weights");
    ck_assert_uint_eq(all[i].ns, 0);
  }
}

TEST_ON(unwritten_bytes_and_lost_ones, TEST_NEEDS_DISCRETE) {
  tarn_place there = tarn_place_on(device);
  tarn_synced *buffer = NULL;
  tarn_access access;
  size_t lost = 0;
  assert_ok(tarn_synced_create(SIZE, NULL, &buffer));
  listen();
  touch(buffer, 10, 20, there, TARN_READ_WRITE, NULL);
  assert_ok(tarn_synced_begin(buffer, 15, 5, there, TARN_WRITE_DISCARD, NULL,
                              &access));
  assert_ok(tarn_synced_cancel(&access, &lost));
  ck_assert_uint_eq(lost, 5);
  size_t at = 0;
  assert_told(&at, TARN_SYNCED_ALLOCATED, "host", tarn_device_name(device), 0,
              SIZE);
  const told *zeroed = assert_told(&at, TARN_SYNCED_ZEROED, "host",
                                   tarn_device_name(device), 10, 20);
  ck_assert_str_eq(zeroed->name, "");
  assert_told(&at, TARN_SYNCED_LOST, tarn_device_name(device), "host", 15, 5);
  ck_assert_uint_eq(at, count);
  assert_ok(tarn_synced_destroy(buffer));
}

TEST_ON(a_queued_copy, TEST_NEEDS_DISCRETE) {
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  tarn_synced *buffer = buffer_named("x");
  touch(buffer, 0, SIZE, TARN_HOST, TARN_WRITE_DISCARD, NULL);
  touch(buffer, 0, SIZE, tarn_place_on(device), TARN_WRITE_DISCARD, stream);
  touch(buffer, 0, 300, TARN_HOST, TARN_WRITE_DISCARD, NULL);
  listen();
  assert_ok(tarn_synced_prefetch(buffer, 0, SIZE, tarn_place_on(device), stream,
                                 NULL));
  assert_ok(tarn_stream_synchronize(stream));
  size_t at = 0;
  const told *copied = assert_told(&at, TARN_SYNCED_COPIED, "host",
                                   tarn_device_name(device), 0, 300);
  ck_assert(copied->queued);
  ck_assert_uint_eq(at, count);
  assert_ok(tarn_synced_destroy(buffer));
  assert_ok(tarn_stream_destroy(stream));
}

TEST(outside_memory) {
  static unsigned char bytes[SIZE];
  tarn_synced *buffer = buffer_named("borrower");
  listen();
  assert_ok(
      tarn_synced_wrap(buffer, TARN_HOST, (tarn_addr)(uintptr_t)bytes, NULL));
  assert_ok(tarn_synced_destroy(buffer));
  size_t at = 0;
  assert_told(&at, TARN_SYNCED_WRAPPED, "host", "host", 0, SIZE);
  assert_told(&at, TARN_SYNCED_RELEASED, "host", "host", 0, SIZE);
  assert_told(&at, TARN_SYNCED_DESTROYED, "host", "host", 0, SIZE);
  ck_assert_uint_eq(at, count);
}

// The device does nothing until it is waited for, so the host must wait.
TEST(a_host_that_waits) {
  fake_add();
  tarn_device *device = sim_open("fake:0");
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  tarn_synced *buffer = buffer_named("x");
  touch(buffer, 0, SIZE, TARN_HOST, TARN_WRITE_DISCARD, NULL);
  assert_ok(tarn_synced_prefetch(buffer, 0, SIZE, tarn_place_on(device), stream,
                                 NULL));
  listen();
  // The copy reads what is to be written here.
  touch(buffer, 0, SIZE, TARN_HOST, TARN_WRITE_DISCARD, NULL);
  size_t at = 0;
  ck_assert_uint_eq(count, 1);
  ck_assert_str_eq(tarn_synced_happening_name(all[at].what), "stalled");
  ck_assert_str_eq(all[at].to, "host");
  ck_assert_uint_gt(all[at].ns, 0);
  assert_ok(tarn_synced_destroy(buffer));
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_device_close(device));
}

TEST(nobody_listens_any_more) {
  ck_assert(!tarn__synced_is_traced());
  listen();
  ck_assert(tarn__synced_is_traced());
  assert_ok(tarn_synced_trace(NULL, NULL));
  ck_assert(!tarn__synced_is_traced());
  tarn_synced *buffer = buffer_named("unheard");
  assert_ok(tarn_synced_destroy(buffer));
  ck_assert_uint_eq(count, 0);
}

// --- from within -----------------------------------------------------------

// What an event is told about, without a buffer.
static tarn__synced_core some_core = {.id = 77};

static void tell_something(void) {
  tarn__synced_tell(&some_core,
                    (tarn_synced_event){.what = TARN_SYNCED_COPIED});
}

static void disobey(void *context, const tarn_synced_event *event) {
  require(event->id == 77);
  require(event->name[0] == '\0');
  count++;
  *(tarn_status *)context = tarn_synced_trace(NULL, NULL);
  tell_something();  // is not told, or this would never end
}

TEST(an_exchange_from_within) {
  tarn_status got = TARN_OK;
  count = 0;
  assert_ok(tarn_synced_trace(disobey, &got));
  tell_something();
  ck_assert_int_eq(got, TARN_E_STATE);
  assert_error_says("from within");
  ck_assert_uint_eq(count, 1);
  ck_assert(tarn__synced_is_traced());
  assert_ok(tarn_synced_trace(NULL, NULL));
}

static void exchange_in_callback(void *context, tarn_status status) {
  (void)status;
  *(tarn_status *)context = tarn_synced_trace(note, all);
}

TEST_ON(an_exchange_in_a_callback, 0) {
  tarn_status got = TARN_OK;
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  assert_ok(tarn_stream_add_callback(stream, exchange_in_callback, &got));
  assert_ok(tarn_stream_destroy(stream));
  ck_assert_int_eq(got, TARN_E_STATE);
  ck_assert(!tarn__synced_is_traced());
}
