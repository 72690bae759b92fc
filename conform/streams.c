// Streams: their making and end, waiting, asking, calling back.
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/os.h"
#include "check.h"

enum { STREAMS = 32, CALLBACKS = 16 };

static const uint64_t PATIENCE_NS = UINT64_C(5) * 1000 * 1000 * 1000;

static bool create(conform_target *t) {
  C_Stream stream = NULL;
  CALL(t, create_stream, &t->device, &stream);
  CALL(t, destroy_stream, &t->device, stream);
  if (stream == NULL) {
    return conform_note(t, "no handle is set: to hosts all is synchronous");
  }
  return true;
}

static bool distinct(conform_target *t) {
  C_Stream streams[STREAMS];
  for (size_t i = 0; i < STREAMS; i++) {
    if (!check_stream(t, &streams[i])) return false;
    for (size_t j = 0; j < i; j++) {
      EXPECT(t, streams[i] != streams[j], "create_stream gave %p twice",
             (void *)streams[i]);
    }
  }
  for (size_t i = 0; i < STREAMS; i++) {
    if (!check_wait(t, streams[i])) return false;
  }
  return true;
}

static bool many_cycles(conform_target *t) {
  C_Stream stream = NULL;
  for (size_t i = 0; i < 200; i++) {
    if (!check_stream(t, &stream)) return false;
    check_forget_stream(t, stream);
    CALL(t, destroy_stream, &t->device, stream);
  }
  return true;
}

static bool synchronize_idle(conform_target *t) {
  C_Stream stream = NULL;
  return check_stream(t, &stream) && check_wait(t, stream) &&
         check_wait(t, stream);
}

static bool query_idle(conform_target *t) {
  C_Stream stream = NULL;
  if (!check_stream(t, &stream)) return false;
  if (!check_wait(t, stream)) return false;
  C_Status got = t->abi->query_stream(&t->device, stream);
  EXPECT(t, got == C_SUCCESS,
         "query_stream of a stream with nothing on it answered %s",
         conform_status(got));
  return true;
}

// Hosts ask for it once, and use it as any other stream.
static bool default_stream(conform_target *t) {
  void *first = NULL;
  void *second = NULL;
  check_work w;
  EXTENSION(t, default_stream, t->device.id, &first);
  EXPECT(t, first != NULL, "default_stream gave no stream");
  EXTENSION(t, default_stream, t->device.id, &second);
  EXPECT(t, first == second, "default_stream gave %p, then %p", first, second);
  w.stream = first;
  return check_make_work(t, MIB(1), 60, &w) && check_queue_put(t, &w, 1) &&
         check_wait(t, first) &&
         check_verify(t, "what was queued on the default stream", w.block,
                      w.size, 60);
}

// Nobody has begun a capture: none may be seen, idle or with work on it.
static bool capturing(conform_target *t) {
  check_work w;
  bool idle = true;
  bool busy = true;
  if (!check_stream(t, &w.stream) || !check_make_work(t, MIB(1), 62, &w)) {
    return false;
  }
  EXTENSION(t, stream_capturing, t->device.id, w.stream, &idle);
  if (!check_queue_put(t, &w, 1)) return false;
  EXTENSION(t, stream_capturing, t->device.id, w.stream, &busy);
  EXPECT(
      t, !idle && !busy,
      "stream_capturing says that %s stream captures a graph; none was begun",
      idle ? "an idle" : "a busy");
  return check_wait(t, w.stream) &&
         check_verify(t, "what was queued between two calls", w.block, w.size,
                      62);
}

static void pause_ms(long ms) {
  struct timespec time = {.tv_nsec = ms * 1000000};
  (void)nanosleep(&time, NULL);
}

// Asks until the answer is yes. C_FAILED, too, is "not yet" to some.
static bool query_until_done(conform_target *t, C_Stream stream) {
  uint64_t deadline = tarn__os_now_ns() + PATIENCE_NS;
  C_Status got = C_WARNING;
  while (got == C_WARNING || got == C_FAILED) {
    got = t->abi->query_stream(&t->device, stream);
    EXPECT(t, tarn__os_now_ns() < deadline,
           "query_stream still answers %s after 5 s", conform_status(got));
    if (got != C_SUCCESS) pause_ms(1);
  }
  EXPECT(t, got == C_SUCCESS, "query_stream answered %s", conform_status(got));
  return true;
}

// Work of some milliseconds, so that there is something to wait for.
static bool make_work(conform_target *t, size_t size, unsigned seed,
                      check_work *w) {
  return check_stream(t, &w->stream) && check_make_work(t, size, seed, w);
}

static bool query_says_when(conform_target *t) {
  check_work w;
  return make_work(t, MIB(4), 61, &w) && check_queue(t, &w, 8) &&
         query_until_done(t, w.stream) &&
         check_came_back(t, &w, "what was copied when query_stream said yes");
}

static bool destroy_with_work(conform_target *t) {
  check_work w;
  if (!make_work(t, MIB(4), 62, &w) || !check_queue_put(t, &w, 8)) return false;
  check_forget_stream(t, w.stream);
  CALL(t, destroy_stream, &t->device, w.stream);
  CALL(t, synchronize_device, &t->device);
  return check_verify(t, "what was queued when its stream was destroyed",
                      w.block, w.size, 62);
}

static bool synchronize_device(conform_target *t) {
  enum { COUNT = 4 };
  check_work works[COUNT];
  for (size_t i = 0; i < COUNT; i++) {
    if (!make_work(t, MIB(2), 63, &works[i]) || !check_queue(t, &works[i], 4)) {
      return false;
    }
  }
  CALL(t, synchronize_device, &t->device);
  for (size_t i = 0; i < COUNT; i++) {
    if (!check_came_back(t, &works[i],
                         "one of 4 streams after synchronize_device")) {
      return false;
    }
  }
  return true;
}

// ---------------------------------------------------------------------------
// Callbacks
// ---------------------------------------------------------------------------

typedef struct called {
  const unsigned char *watched;
  atomic_int *turns;  // shared by all
  atomic_int turn;    // how many had been called before
  atomic_int times;
  atomic_int status;
  atomic_int seen;  // the last byte of what it watches
} called;

static void note_call(C_Device device, C_Stream stream, void *user_data,
                      C_Status *status) {
  called *c = user_data;
  (void)device;
  (void)stream;
  if (c->watched != NULL) atomic_store(&c->seen, *c->watched);
  if (c->turns != NULL) atomic_store(&c->turn, atomic_fetch_add(c->turns, 1));
  atomic_store(&c->status, status != NULL ? (int)*status : -1);
  atomic_fetch_add(&c->times, 1);
}

// A plug-in may call back a little after the stream has been waited for.
static bool await_call(conform_target *t, called *c) {
  uint64_t deadline = tarn__os_now_ns() + PATIENCE_NS;
  while (atomic_load(&c->times) == 0) {
    EXPECT(t, tarn__os_now_ns() < deadline,
           "the callback has not been called 5 s after its stream was waited "
           "for");
    pause_ms(1);
  }
  return true;
}

// Adds a callback, and waits until it has been called.
static bool call_back(conform_target *t, C_Stream stream, called *c) {
  CALL(t, stream_add_callback, &t->device, stream, note_call, c);
  return check_wait(t, stream) && await_call(t, c);
}

static bool callback_once(conform_target *t) {
  called c = {.times = 0};
  C_Stream stream = NULL;
  if (!check_stream(t, &stream) || !call_back(t, stream, &c)) return false;
  pause_ms(10);
  EXPECT(t, atomic_load(&c.times) == 1, "the callback was called %d times",
         atomic_load(&c.times));
  return true;
}

static bool callback_status(conform_target *t) {
  called c = {.times = 0};
  C_Stream stream = NULL;
  if (!check_stream(t, &stream) || !call_back(t, stream, &c)) return false;
  int status = atomic_load(&c.status);
  EXPECT(t, status != -1, "the callback was given NULL for its status");
  EXPECT(t, status == C_SUCCESS, "the callback was told %s, though all is well",
         conform_status((C_Status)status));
  return true;
}

static bool callback_after_work(conform_target *t) {
  check_work w;
  if (!make_work(t, MIB(4), 0, &w)) return false;
  memset(w.bytes, 0xee, w.size);
  called c = {.watched = w.back + w.size - 1};
  if (!check_queue(t, &w, 4) || !call_back(t, w.stream, &c)) return false;
  EXPECT(t, atomic_load(&c.seen) == 0xee,
         "the callback saw byte 0x%02x and not yet the copy before it, 0xee",
         (unsigned)atomic_load(&c.seen));
  return true;
}

static bool callback_order(conform_target *t) {
  atomic_int turns = 0;
  called calls[CALLBACKS];
  C_Stream stream = NULL;
  if (!check_stream(t, &stream)) return false;
  memset(calls, 0, sizeof calls);
  for (int i = 0; i < CALLBACKS; i++) {
    calls[i].turns = &turns;
    CALL(t, stream_add_callback, &t->device, stream, note_call, &calls[i]);
  }
  if (!check_wait(t, stream)) return false;
  for (int i = 0; i < CALLBACKS; i++) {
    if (!await_call(t, &calls[i])) return false;
    EXPECT(t, atomic_load(&calls[i].turn) == i,
           "callback %d of %d was called as number %d", i, (int)CALLBACKS,
           atomic_load(&calls[i].turn));
  }
  return true;
}

#define STREAM "table->create_stream(&d, &s);\n"
#define WORK                      \
  "for (int i = 0; i < 8; i++)\n" \
  "  table->async_memory_copy_h2d(&d, s, block, bytes, 4 << 20);\n"
#define SYNC "table->synchronize_stream(&d, s);\n"
#define CALLBACK "table->stream_add_callback(&d, s, count_calls, &data);\n"

static const conform_check checks[] = {
    {CHECK("streams.create_and_destroy", create,
           .needs = {NEED(create_stream)}),
     .code = "C_Stream s = NULL;\n"
             "assert(table->create_stream(&d, &s) == C_SUCCESS);\n"
             "assert(table->destroy_stream(&d, s) == C_SUCCESS);\n"},
    {CHECK("streams.are_distinct", distinct, .needs = {NEED(create_stream)}),
     .code = "for (int i = 0; i < 32; i++)\n"
             "  table->create_stream(&d, &streams[i]);\n"
             "// no two are the same handle\n"},
    {CHECK("streams.create_many_times", many_cycles,
           .needs = {NEED(create_stream)}),
     .code = "for (int i = 0; i < 200; i++) {\n"
             "  table->create_stream(&d, &s);\n"
             "  table->destroy_stream(&d, s);\n"
             "}\n"},
    {CHECK("streams.synchronize_idle", synchronize_idle,
           .needs = {NEED(create_stream)}),
     .code = STREAM SYNC SYNC},
    {CHECK("streams.query_idle", query_idle,
           .needs = {NEED(create_stream), NEED(query_stream)}),
     .code = STREAM SYNC "assert(table->query_stream(&d, s) == C_SUCCESS);\n"},
    {CHECK("streams.default_stream", default_stream,
           .needs = {NEED(async_memory_copy_h2d)},
           .extends = {SLOT(default_stream)}),
     .code = "ext->default_stream(d.id, &s);\n"
             "ext->default_stream(d.id, &again);\n"
             "assert(s != NULL && again == s);\n"
             "table->async_memory_copy_h2d(&d, s, block, bytes, 1 << 20);\n"
             "table->synchronize_stream(&d, s);\n"
             "// block holds the bytes\n"},
    {CHECK("streams.capturing", capturing,
           .needs = {NEED(create_stream), NEED(async_memory_copy_h2d)},
           .extends = {SLOT(stream_capturing)}),
     .code =
         STREAM "ext->stream_capturing(d.id, s, &captures);\n"
                "table->async_memory_copy_h2d(&d, s, block, bytes, 1 << 20);\n"
                "ext->stream_capturing(d.id, s, &still);\n"
                "assert(!captures && !still);\n"},
    {CHECK("streams.query_says_when_done", query_says_when,
           .needs = {NEED(create_stream), NEED(query_stream),
                     NEED(async_memory_copy_h2d), NEED(async_memory_copy_d2h)}),
     .code = WORK "table->async_memory_copy_d2h(&d, s, back, block, 4 << 20);\n"
                  "while (table->query_stream(&d, s) != C_SUCCESS)\n"
                  "  ;  // within 5 s\n"
                  "assert(memcmp(back, bytes, 4 << 20) == 0);\n"},
    {CHECK("streams.destroy_with_work", destroy_with_work,
           .needs = {NEED(create_stream), NEED(synchronize_device),
                     NEED(async_memory_copy_h2d)}),
     .code = WORK
     "table->destroy_stream(&d, s);\n"
     "table->synchronize_device(&d);\n"
     "// block holds the bytes: what is queued is done all the same\n"},
    {CHECK("streams.synchronize_device", synchronize_device,
           .needs = {NEED(create_stream), NEED(synchronize_device),
                     NEED(async_memory_copy_h2d), NEED(async_memory_copy_d2h)}),
     .code = "// on each of 4 streams:\n"
             "table->async_memory_copy_h2d(&d, s, block, bytes, 2 << 20);\n"
             "table->async_memory_copy_d2h(&d, s, back, block, 2 << 20);\n"
             "// then\n"
             "table->synchronize_device(&d);\n"
             "assert(memcmp(back, bytes, 2 << 20) == 0);\n"},
    {CHECK("streams.callback_is_called_once", callback_once,
           .needs = {NEED(create_stream), NEED(stream_add_callback)}),
     .code = CALLBACK SYNC "// within 5 s it was called once, with &data\n"},
    {CHECK("streams.callback_is_told_the_status", callback_status,
           .needs = {NEED(create_stream), NEED(stream_add_callback)}),
     .code = CALLBACK SYNC "// it was given a status that is C_SUCCESS\n"},
    {CHECK("streams.callback_runs_behind_work", callback_after_work,
           .needs = {NEED(create_stream), NEED(stream_add_callback),
                     NEED(async_memory_copy_h2d), NEED(async_memory_copy_d2h)}),
     .code = "table->async_memory_copy_h2d(&d, s, block, bytes, 4 << 20);\n"
             "table->async_memory_copy_d2h(&d, s, back, block, 4 << "
             "20);\n" CALLBACK "// when it is called, back holds the bytes\n"},
    {CHECK("streams.callbacks_in_order", callback_order,
           .needs = {NEED(create_stream), NEED(stream_add_callback)}),
     .code = "for (int i = 0; i < 16; i++)\n"
             "  table->stream_add_callback(&d, s, note_turn, &data[i]);\n" SYNC
             "// they were called in this order\n"},
};

const conform_subject conform_streams = CONFORM_SUBJECT(checks);
