// Events: recorded, asked, waited for, by the host and by other streams.
#include <string.h>
#include <time.h>

#include "base/os.h"
#include "check.h"

enum { EVENTS = 32, REPEATS = 8 };

static const uint64_t PATIENCE_NS = UINT64_C(5) * 1000 * 1000 * 1000;

// Work of some milliseconds on a stream, and an event.
typedef struct work {
  check_work on;
  C_Event event;
} work;

static bool make_work(conform_target *t, unsigned seed, work *w) {
  return check_stream(t, &w->on.stream) && check_event(t, &w->event) &&
         check_make_work(t, MIB(4), seed, &w->on);
}

static bool queue_work(conform_target *t, const work *w) {
  return check_queue(t, &w->on, REPEATS);
}

static bool record(conform_target *t, const work *w) {
  CALL(t, record_event, &t->device, w->on.stream, w->event);
  return true;
}

static bool is_done(conform_target *t, const work *w, const char *what) {
  return check_came_back(t, &w->on, what);
}

// ---------------------------------------------------------------------------
// Without work
// ---------------------------------------------------------------------------

static bool create(conform_target *t) {
  C_Event event = NULL;
  CALL(t, create_event, &t->device, &event);
  CALL(t, destroy_event, &t->device, event);
  if (event == NULL) {
    return conform_note(t, "no handle is set: hosts wait for streams instead");
  }
  return true;
}

static bool distinct(conform_target *t) {
  C_Event events[EVENTS];
  for (size_t i = 0; i < EVENTS; i++) {
    if (!check_event(t, &events[i])) return false;
    for (size_t j = 0; j < i; j++) {
      EXPECT(t, events[i] != events[j], "create_event gave %p twice",
             (void *)events[i]);
    }
  }
  return true;
}

static bool unrecorded_query(conform_target *t) {
  C_Event event = NULL;
  if (!check_event(t, &event)) return false;
  C_Status got = t->abi->query_event(&t->device, event);
  EXPECT(t, got == C_SUCCESS,
         "query_event of an event that was never recorded answered %s",
         conform_status(got));
  return true;
}

static bool unrecorded_synchronize(conform_target *t) {
  C_Event event = NULL;
  if (!check_event(t, &event)) return false;
  CALL(t, synchronize_event, &t->device, event);
  return true;
}

static bool unrecorded_wait(conform_target *t) {
  work w;
  if (!make_work(t, 81, &w)) return false;
  CALL(t, stream_wait_event, &t->device, w.on.stream, w.event);
  return queue_work(t, &w) && check_wait(t, w.on.stream) &&
         is_done(t, &w,
                 "work behind the wait for an event that was never "
                 "recorded");
}

// ---------------------------------------------------------------------------
// With work
// ---------------------------------------------------------------------------

static bool synchronize(conform_target *t) {
  work w;
  if (!make_work(t, 82, &w) || !queue_work(t, &w) || !record(t, &w))
    return false;
  CALL(t, synchronize_event, &t->device, w.event);
  return is_done(t, &w,
                 "what was queued before the event, after "
                 "synchronize_event");
}

static bool query_after(conform_target *t) {
  work w;
  if (!make_work(t, 83, &w) || !queue_work(t, &w) || !record(t, &w) ||
      !check_wait(t, w.on.stream)) {
    return false;
  }
  C_Status got = t->abi->query_event(&t->device, w.event);
  EXPECT(t, got == C_SUCCESS,
         "query_event after its stream was waited for answered %s",
         conform_status(got));
  return true;
}

// C_WARNING is "not yet"; C_FAILED is so too, to some.
static bool query_says_when(conform_target *t) {
  work w;
  bool failed = false;
  struct timespec ms = {.tv_nsec = 1000000};
  if (!make_work(t, 84, &w) || !queue_work(t, &w) || !record(t, &w)) {
    return false;
  }
  uint64_t deadline = tarn__os_now_ns() + PATIENCE_NS;
  C_Status got = t->abi->query_event(&t->device, w.event);
  while (got == C_WARNING || got == C_FAILED) {
    if (got == C_FAILED) failed = true;
    EXPECT(t, tarn__os_now_ns() < deadline,
           "query_event still answers %s after 5 s", conform_status(got));
    (void)nanosleep(&ms, NULL);
    got = t->abi->query_event(&t->device, w.event);
  }
  EXPECT(t, got == C_SUCCESS, "query_event answered %s", conform_status(got));
  if (!is_done(t, &w,
               "what was queued before the event, when query_event said "
               "yes")) {
    return false;
  }
  return !failed || conform_note(t, "\"not yet\" is C_FAILED, not C_WARNING");
}

// The second record counts.
static bool record_twice(conform_target *t) {
  work w;
  return make_work(t, 85, &w) && record(t, &w) && queue_work(t, &w) &&
         record(t, &w) &&
         conform_went_well(t, "synchronize_event",
                           t->abi->synchronize_event(&t->device, w.event)) &&
         is_done(t, &w,
                 "what was queued before the second record, after "
                 "synchronize_event");
}

static bool used_again(conform_target *t) {
  work w;
  if (!make_work(t, 86, &w)) return false;
  for (unsigned i = 0; i < 4; i++) {
    check_fill(w.on.bytes, w.on.size, 86 + i);
    if (!queue_work(t, &w) || !record(t, &w)) return false;
    CALL(t, synchronize_event, &t->device, w.event);
    if (!is_done(t, &w, "an event that is used again and again")) return false;
  }
  return true;
}

// The other stream copies what the first has made; too early, and it copies
// what was there before.
static bool across(conform_target *t, bool destroy_early) {
  work w;
  C_Stream other = NULL;
  unsigned char *seen = NULL;
  if (!make_work(t, 87, &w) || !check_stream(t, &other) ||
      !check_buffer(t, w.on.size, &seen) ||
      !check_write(t, w.on.block, w.on.size, 999) || !queue_work(t, &w) ||
      !record(t, &w)) {
    return false;
  }
  CALL(t, stream_wait_event, &t->device, other, w.event);
  if (destroy_early) {
    check_forget_event(t, w.event);
    CALL(t, destroy_event, &t->device, w.event);
  }
  CALL(t, async_memory_copy_d2h, &t->device, other, seen, w.on.block,
       w.on.size);
  return check_wait(t, other) &&
         check_same(t, "what a stream sees that waited for an event of another",
                    seen, w.on.bytes, w.on.size) &&
         check_wait(t, w.on.stream);
}

static bool wait_across(conform_target *t) {
  return across(t, false);
}

static bool destroy_while_awaited(conform_target *t) {
  return across(t, true);
}

static bool wait_on_own_stream(conform_target *t) {
  work w;
  if (!make_work(t, 88, &w) || !record(t, &w)) return false;
  CALL(t, stream_wait_event, &t->device, w.on.stream, w.event);
  return queue_work(t, &w) && check_wait(t, w.on.stream) &&
         is_done(t, &w, "work behind the wait for an event of the same stream");
}

// To and fro between two streams, each step upon the one before.
static bool ping_pong(conform_target *t) {
  enum { STEPS = 32, SIZE = 4097 };
  C_Stream streams[2];
  void *blocks[STEPS + 1];
  if (!check_stream(t, &streams[0]) || !check_stream(t, &streams[1]))
    return false;
  for (size_t i = 0; i <= STEPS; i++) {
    if (!check_take(t, SIZE, &blocks[i]) ||
        !check_write(t, blocks[i], SIZE, i == 0 ? 89 : 1000 + (unsigned)i)) {
      return false;
    }
  }
  for (size_t i = 0; i < STEPS; i++) {
    C_Event event = NULL;
    if (!check_event(t, &event)) return false;
    CALL(t, async_memory_copy_d2d, &t->device, streams[i % 2], blocks[i + 1],
         blocks[i], SIZE);
    CALL(t, record_event, &t->device, streams[i % 2], event);
    CALL(t, stream_wait_event, &t->device, streams[(i + 1) % 2], event);
  }
  return check_wait(t, streams[0]) && check_wait(t, streams[1]) &&
         check_verify(t, "the end of 32 copies on two streams in turn",
                      blocks[STEPS], SIZE, 89);
}

#define MAKES NEED(create_event)
#define WORKS                                                           \
  NEED(create_event), NEED(create_stream), NEED(async_memory_copy_h2d), \
      NEED(async_memory_copy_d2h)
#define WORK                                                      \
  "table->async_memory_copy_h2d(&d, s, block, bytes, 4 << 20);\n" \
  "table->async_memory_copy_d2h(&d, s, back, block, 4 << 20);\n"
#define RECORD "table->record_event(&d, s, e);\n"
#define SAME "assert(memcmp(back, bytes, 4 << 20) == 0);\n"

static const conform_check checks[] = {
    {CHECK("events.create_and_destroy", create, .needs = {MAKES}),
     .code = "C_Event e = NULL;\n"
             "assert(table->create_event(&d, &e) == C_SUCCESS);\n"
             "assert(table->destroy_event(&d, e) == C_SUCCESS);\n"},
    {CHECK("events.are_distinct", distinct, .needs = {MAKES}),
     .code = "for (int i = 0; i < 32; i++)\n"
             "  table->create_event(&d, &events[i]);\n"
             "// no two are the same handle\n"},
    {CHECK("events.query_unrecorded", unrecorded_query,
           .needs = {MAKES, NEED(query_event)}),
     .code = "table->create_event(&d, &e);\n"
             "assert(table->query_event(&d, e) == C_SUCCESS);\n"},
    {CHECK("events.synchronize_unrecorded", unrecorded_synchronize,
           .needs = {MAKES}),
     .code = "table->create_event(&d, &e);\n"
             "assert(table->synchronize_event(&d, e) == C_SUCCESS);\n"},
    {CHECK("events.wait_for_unrecorded", unrecorded_wait,
           .needs = {WORKS, NEED(stream_wait_event)}),
     .code = "table->create_event(&d, &e);\n"
             "table->stream_wait_event(&d, s, e);\n" WORK
             "table->synchronize_stream(&d, s);\n" SAME},
    {CHECK("events.synchronize", synchronize, .needs = {WORKS}),
     .code = WORK RECORD "table->synchronize_event(&d, e);\n" SAME},
    {CHECK("events.query_after", query_after,
           .needs = {WORKS, NEED(query_event)}),
     .code = WORK RECORD "table->synchronize_stream(&d, s);\n"
                         "assert(table->query_event(&d, e) == C_SUCCESS);\n"},
    {CHECK("events.query_says_when_done", query_says_when,
           .needs = {WORKS, NEED(query_event)}),
     .code = WORK RECORD "while (table->query_event(&d, e) != C_SUCCESS)\n"
                         "  ;  // within 5 s\n" SAME},
    {CHECK("events.record_twice", record_twice, .needs = {WORKS}),
     .code = RECORD WORK RECORD "table->synchronize_event(&d, e);\n" SAME},
    {CHECK("events.use_again", used_again, .needs = {WORKS}),
     .code = "// four times, with other bytes each time:\n" WORK RECORD
             "table->synchronize_event(&d, e);\n" SAME},
    {CHECK("events.wait_across_streams", wait_across,
           .needs = {WORKS, NEED(stream_wait_event)}),
     .code = WORK RECORD
     "table->stream_wait_event(&d, r, e);  // r: another stream\n"
     "table->async_memory_copy_d2h(&d, r, seen, block, 4 << 20);\n"
     "table->synchronize_stream(&d, r);\n"
     "assert(memcmp(seen, bytes, 4 << 20) == 0);\n"},
    {CHECK("events.destroy_while_awaited", destroy_while_awaited,
           .needs = {WORKS, NEED(stream_wait_event)}),
     .code = WORK RECORD
     "table->stream_wait_event(&d, r, e);  // r: another stream\n"
     "table->destroy_event(&d, e);\n"
     "table->async_memory_copy_d2h(&d, r, seen, block, 4 << 20);\n"
     "table->synchronize_stream(&d, r);\n"
     "assert(memcmp(seen, bytes, 4 << 20) == 0);\n"},
    {CHECK("events.wait_on_the_same_stream", wait_on_own_stream,
           .needs = {WORKS, NEED(stream_wait_event)}),
     .code = RECORD "table->stream_wait_event(&d, s, e);\n" WORK
                    "table->synchronize_stream(&d, s);\n" SAME},
    {CHECK("events.streams_in_turn", ping_pong,
           .needs = {MAKES, NEED(create_stream), NEED(async_memory_copy_d2d),
                     NEED(stream_wait_event)}),
     .code = "for (int i = 0; i < 32; i++) {  // s: two streams\n"
             "  table->async_memory_copy_d2d(&d, s[i % 2], block[i + 1], "
             "block[i], 4097);\n"
             "  table->record_event(&d, s[i % 2], e[i]);\n"
             "  table->stream_wait_event(&d, s[(i + 1) % 2], e[i]);\n"
             "}\n"
             "// block[32] holds what block[0] held\n"},
};

const conform_subject conform_events = CONFORM_SUBJECT(checks);
