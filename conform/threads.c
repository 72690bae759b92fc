// Several threads at once. Each has a target of its own, which is a copy: the
// same plug-in, with blocks, streams and an outcome of its own.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 200 };

typedef struct crew crew;

typedef struct member {
  crew *crew;
  unsigned number;
  conform_target target;
  pthread_t thread;
  bool started;
} member;

struct crew {
  bool (*work)(conform_target *t, unsigned number, void *shared);
  void *shared;
  pthread_barrier_t start;  // so that all are there at the same time
  member members[THREADS];
};

static void *work(void *context) {
  member *m = context;
  conform_target *t = &m->target;
  t->outcome.result = CONFORM_PASS;
  pthread_barrier_wait(&m->crew->start);
  bool passed = check_enter(t, &t->device) &&
                m->crew->work(t, m->number, m->crew->shared);
  if (passed) (void)check_tidy(t);
  return NULL;
}

static void prepare(member *m, crew *c, const conform_target *t,
                    unsigned number) {
  m->crew = c;
  m->number = number;
  m->target = *t;
  m->target.block_count = m->target.buffer_count = 0;
  m->target.stream_count = m->target.event_count = 0;
}

// Threads wait for each other at the start, so all must be there.
static bool start_all(conform_target *t, crew *c) {
  pthread_barrier_init(&c->start, NULL, THREADS);
  for (unsigned i = 0; i < THREADS; i++) {
    member *m = &c->members[i];
    prepare(m, c, t, i);
    m->started = pthread_create(&m->thread, NULL, work, m) == 0;
    if (!m->started) return conform_skip(t, "the system gives no threads");
  }
  return true;
}

static bool run_crew(conform_target *t,
                     bool (*body)(conform_target *, unsigned, void *),
                     void *shared) {
  crew *c = calloc(1, sizeof *c);
  if (c == NULL) return conform_skip(t, "the host has no memory left");
  c->work = body;
  c->shared = shared;
  if (!start_all(t, c)) return false;  // those that wait end with the process
  bool passed = true;
  for (unsigned i = 0; i < THREADS; i++) {
    member *m = &c->members[i];
    pthread_join(m->thread, NULL);
    if (m->target.outcome.result == CONFORM_PASS || !passed) continue;
    t->outcome = m->target.outcome;
    passed = false;
  }
  pthread_barrier_destroy(&c->start);
  free(c);
  return passed;
}

// ---------------------------------------------------------------------------
// Memory
// ---------------------------------------------------------------------------

static bool allocate_work(conform_target *t, unsigned number, void *shared) {
  (void)shared;
  for (unsigned i = 0; i < ROUNDS; i++) {
    void *blocks[4];
    for (unsigned j = 0; j < 4; j++) {
      if (!check_take(t, 500 + i * 31 + j, &blocks[j])) return false;
    }
    unsigned seed = number * 10000 + i;
    if (!check_write(t, blocks[i % 4], 500, seed) ||
        !check_verify(t, "a block, with 4 threads at work", blocks[i % 4], 500,
                      seed)) {
      return false;
    }
    for (unsigned j = 0; j < 4; j++) {
      if (!check_give(t, blocks[j])) return false;
    }
  }
  return true;
}

static bool allocate(conform_target *t) {
  return run_crew(t, allocate_work, NULL);
}

static bool copy_work(conform_target *t, unsigned number, void *shared) {
  enum { SIZE = 100003 };
  void *a = NULL;
  void *b = NULL;
  (void)shared;
  if (!check_take(t, SIZE, &a) || !check_take(t, SIZE, &b)) return false;
  for (unsigned i = 0; i < 50; i++) {
    unsigned seed = number * 1000 + i;
    if (!check_write(t, a, SIZE, seed)) return false;
    CALL(t, memory_copy_d2d, &t->device, b, a, SIZE);
    if (!check_verify(t, "a copy, with 4 threads at work", b, SIZE, seed)) {
      return false;
    }
  }
  return true;
}

static bool copies(conform_target *t) {
  return run_crew(t, copy_work, NULL);
}

typedef struct exchange {
  void *blocks[THREADS];
} exchange;

static bool give_work(conform_target *t, unsigned number, void *shared) {
  exchange *e = shared;
  CALL(t, device_memory_deallocate, &t->device, e->blocks[number], 4099);
  return true;
}

static bool take_work(conform_target *t, unsigned number, void *shared) {
  exchange *e = shared;
  void *block = NULL;
  if (!check_take(t, 4099, &block) || !check_write(t, block, 4099, number)) {
    return false;
  }
  check_forget(t, block);
  e->blocks[(number + 1) % THREADS] = block;
  return true;
}

// Each thread gives back what its neighbour took.
static bool free_elsewhere(conform_target *t) {
  exchange e = {{NULL}};
  if (!run_crew(t, take_work, &e)) return false;
  for (unsigned i = 0; i < THREADS; i++) {
    if (!check_verify(t, "a block of another thread",
                      e.blocks[(i + 1) % THREADS], 4099, i)) {
      return false;
    }
  }
  return run_crew(t, give_work, &e);
}

// ---------------------------------------------------------------------------
// Streams
// ---------------------------------------------------------------------------

// To the device and back on |stream|, which may be shared with others.
static bool round_trip(conform_target *t, C_Stream stream, unsigned seed) {
  check_work w = {.stream = stream};
  if (!check_make_work(t, 60001, seed, &w)) return false;
  for (unsigned i = 0; i < 30; i++) {
    check_fill(w.bytes, w.size, seed + i);
    if (!check_queue(t, &w, 1) || !check_wait(t, stream) ||
        !check_came_back(t, &w,
                         "to the device and back, with 4 threads at work")) {
      return false;
    }
  }
  return true;
}

static bool stream_work(conform_target *t, unsigned number, void *shared) {
  C_Stream stream = NULL;
  (void)shared;
  return check_stream(t, &stream) && round_trip(t, stream, number * 100);
}

static bool streams(conform_target *t) {
  return run_crew(t, stream_work, NULL);
}

static bool shared_work(conform_target *t, unsigned number, void *shared) {
  return round_trip(t, shared, number * 100);
}

static bool shared_stream(conform_target *t) {
  C_Stream stream = NULL;
  return check_stream(t, &stream) && run_crew(t, shared_work, stream);
}

static bool create_work(conform_target *t, unsigned number, void *shared) {
  (void)number;
  (void)shared;
  for (unsigned i = 0; i < 50; i++) {
    C_Stream stream = NULL;
    if (!check_stream(t, &stream)) return false;
    check_forget_stream(t, stream);
    CALL(t, destroy_stream, &t->device, stream);
  }
  return true;
}

static bool create_streams(conform_target *t) {
  return run_crew(t, create_work, NULL);
}

typedef struct handover {
  check_work work;
  C_Event event;
} handover;

static bool wait_work(conform_target *t, unsigned number, void *shared) {
  const handover *h = shared;
  (void)number;
  CALL(t, synchronize_event, &t->device, h->event);
  CALL(t, synchronize_stream, &t->device, h->work.stream);
  return true;
}

static bool wait_elsewhere(conform_target *t) {
  handover h;
  if (!check_stream(t, &h.work.stream) || !check_event(t, &h.event) ||
      !check_make_work(t, MIB(4), 95, &h.work) || !check_queue(t, &h.work, 1)) {
    return false;
  }
  CALL(t, record_event, &t->device, h.work.stream, h.event);
  return run_crew(t, wait_work, &h) &&
         check_came_back(t, &h.work, "what other threads have waited for");
}

#define THREADS_DO "// on 4 threads at once, each after set_device(&d):\n"

static const conform_check checks[] = {
    {CHECK("threads.allocate", allocate),
     .code = THREADS_DO
     "for (int i = 0; i < 200; i++) {\n"
     "  table->device_memory_allocate(&d, &block, 500 + i * 31);\n"
     "  table->memory_copy_h2d(&d, block, bytes, 500);\n"
     "  table->memory_copy_d2h(&d, back, block, 500);  // the same bytes\n"
     "  table->device_memory_deallocate(&d, block, 500 + i * 31);\n"
     "}\n"},
    {CHECK("threads.free_elsewhere", free_elsewhere),
     .code = "// on one thread:\n"
             "table->device_memory_allocate(&d, &block, 4099);\n"
             "// on another:\n"
             "table->device_memory_deallocate(&d, block, 4099);\n"},
    {CHECK("threads.copies", copies),
     .code = THREADS_DO
     "for (int i = 0; i < 50; i++) {\n"
     "  table->memory_copy_h2d(&d, a, bytes, 100003);\n"
     "  table->memory_copy_d2d(&d, b, a, 100003);\n"
     "  table->memory_copy_d2h(&d, back, b, 100003);  // the same bytes\n"
     "}\n"},
    {CHECK("threads.create_streams", create_streams,
           .needs = {NEED(create_stream)}),
     .code = THREADS_DO "for (int i = 0; i < 50; i++) {\n"
                        "  table->create_stream(&d, &s);\n"
                        "  table->destroy_stream(&d, s);\n"
                        "}\n"},
    {CHECK("threads.a_stream_each", streams,
           .needs = {NEED(create_stream), NEED(async_memory_copy_h2d),
                     NEED(async_memory_copy_d2h)}),
     .code = THREADS_DO
     "table->async_memory_copy_h2d(&d, s, block, bytes, 60001);\n"
     "table->async_memory_copy_d2h(&d, s, back, block, 60001);\n"
     "table->synchronize_stream(&d, s);\n"
     "assert(memcmp(back, bytes, 60001) == 0);\n"},
    {CHECK("threads.one_stream_for_all", shared_stream,
           .needs = {NEED(create_stream), NEED(async_memory_copy_h2d),
                     NEED(async_memory_copy_d2h)}),
     .code = THREADS_DO "// s is the same for all, block is not\n"
                        "table->async_memory_copy_h2d(&d, s, block, bytes, "
                        "60001);\n"
                        "table->async_memory_copy_d2h(&d, s, back, block, "
                        "60001);\n"
                        "table->synchronize_stream(&d, s);\n"
                        "assert(memcmp(back, bytes, 60001) == 0);\n"},
    {CHECK("threads.wait_elsewhere", wait_elsewhere,
           .needs = {NEED(create_stream), NEED(create_event),
                     NEED(async_memory_copy_h2d), NEED(async_memory_copy_d2h)}),
     .code = "table->async_memory_copy_h2d(&d, s, block, bytes, 4 << 20);\n"
             "table->async_memory_copy_d2h(&d, s, back, block, 4 << 20);\n"
             "table->record_event(&d, s, e);\n" THREADS_DO
             "table->synchronize_event(&d, e);\n"
             "assert(memcmp(back, bytes, 4 << 20) == 0);\n"},
};

const conform_subject conform_threads = CONFORM_SUBJECT(checks);
