// Streams of the cpu plug-in: order, callbacks, threads, memory and faults.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "host.h"
#include "support/faults.h"

static C_DeviceInterface cpu;

// --- order -----------------------------------------------------------------

enum { OPS = 10000, BIG = 80000 };

// One operation in a long row: a copy that brings |number| to where the
// callback behind it expects it.
typedef struct step {
  int number;
  int *arrived;
  int *next;
  int *wrong;
} step;

static void check_step(C_Device device, C_Stream stream, void *user_data,
                       C_Status *status) {
  step *s = user_data;
  bool right = device->id == 0 && stream != NULL && *status == C_SUCCESS &&
               *s->arrived == s->number && *s->next == s->number;
  if (!right) (*s->wrong)++;
  (*s->next)++;
}

TEST(test_many_operations_stay_in_order) {
  static step steps[OPS / 2];
  static char big[2][BIG];
  C_Stream s = new_stream(&cpu);
  int arrived[BIG / sizeof(int)] = {0};
  int next = 0;
  int wrong = 0;
  for (int i = 0; i < OPS / 2; i++) {
    steps[i] = (step){i, arrived, &next, &wrong};
    if (i % 100 == 0) {
      assert_done(cpu.async_memory_copy_d2d(CPU, s, big[1], big[0], BIG));
    }
    assert_done(cpu.async_memory_copy_h2d(CPU, s, arrived, &steps[i].number,
                                          sizeof(int)));
    assert_done(cpu.stream_add_callback(CPU, s, check_step, &steps[i]));
    if (i % 1000 == 999) assert_done(cpu.synchronize_stream(CPU, s));
  }
  assert_done(cpu.destroy_stream(CPU, s));
  ck_assert_int_eq(next, OPS / 2);
  ck_assert_int_eq(wrong, 0);
}

TEST(test_a_small_copy_does_not_overtake) {
  static char from[1 << 20];
  static char between[1 << 20];
  char to[64] = {0};
  memset(from, 'f', sizeof from);
  C_Stream s = new_stream(&cpu);
  gate g;
  gate_close(&g, &cpu, s);
  assert_done(cpu.async_memory_copy_h2d(CPU, s, between, from, sizeof from));
  assert_done(cpu.async_memory_copy_d2h(CPU, s, to, between, sizeof to));
  ck_assert_int_eq(to[0], 0);
  assert_c(cpu.query_stream(CPU, s), C_WARNING);
  gate_open(&g);
  assert_done(cpu.synchronize_stream(CPU, s));
  ck_assert_mem_eq(to, from, sizeof to);
  assert_done(cpu.query_stream(CPU, s));
  assert_done(cpu.destroy_stream(CPU, s));
}

TEST(test_a_small_copy_on_an_idle_stream_is_done_at_once) {
  static char from[64 << 10] = "now";
  static char to[64 << 10];
  C_Stream s = new_stream(&cpu);
  assert_done(cpu.async_memory_copy_h2d(CPU, s, to, from, sizeof from));
  ck_assert_str_eq(to, "now");
  assert_done(cpu.query_stream(CPU, s));
  assert_done(cpu.destroy_stream(CPU, s));
}

static void count_one(C_Device device, C_Stream stream, void *user_data,
                      C_Status *status) {
  (void)device;
  (void)stream;
  (void)status;
  atomic_fetch_add((atomic_int *)user_data, 1);
}

TEST(test_destroying_finishes_the_work) {
  atomic_int count = 0;
  size_t held = tarn_host_memory();
  C_Stream s = new_stream(&cpu);
  for (int i = 0; i < 1000; i++) {
    assert_done(cpu.stream_add_callback(CPU, s, count_one, &count));
  }
  assert_done(cpu.destroy_stream(CPU, s));
  ck_assert_int_eq(count, 1000);
  ck_assert_uint_eq(tarn_host_memory(), held);
}

TEST(test_synchronize_device_waits_for_all_streams) {
  enum { COUNT = 12, EACH = 100, ALL = COUNT * EACH };
  atomic_int count = 0;
  for (int i = 0; i < COUNT; i++) {
    C_Stream s = new_stream(&cpu);
    for (int k = 0; k < EACH; k++) {
      assert_done(cpu.stream_add_callback(CPU, s, count_one, &count));
    }
  }
  assert_done(cpu.synchronize_device(CPU));
  ck_assert_int_eq(count, ALL);
  assert_done(cpu.finalize());
}

TEST(test_streams_refuse_bad_arguments) {
  C_Stream s = new_stream(&cpu);
  C_Stream none = s;
  assert_c(cpu.create_stream(CPU, NULL), C_ERROR);
  assert_c(cpu.create_stream(NOT_CPU, &none), C_ERROR);
  ck_assert_ptr_null(none);
  C_Status (*const calls[])(C_Device, C_Stream) = {
      cpu.query_stream, cpu.synchronize_stream, cpu.destroy_stream};
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    assert_c(calls[i](NULL, s), C_ERROR);
    assert_c(calls[i](NOT_CPU, s), C_ERROR);
    assert_c(calls[i](CPU, NULL), C_ERROR);
  }
  assert_c(cpu.stream_add_callback(CPU, s, NULL, NULL), C_ERROR);
  assert_c(cpu.stream_add_callback(CPU, NULL, count_one, NULL), C_ERROR);
  assert_c(cpu.stream_add_callback(NULL, s, count_one, NULL), C_ERROR);
  assert_done(cpu.destroy_stream(CPU, s));
}

// --- threads ---------------------------------------------------------------

enum { THREADS = 4, ROUNDS = 400, VISITS = THREADS * ROUNDS, MEDIUM = 70000 };

typedef struct visitor {
  C_Stream stream;
  atomic_int *count;
  int failures;
  char from[MEDIUM];
  char to[MEDIUM];
} visitor;

static visitor visitors[THREADS];

// Queues on a stream, its own or one for all, and checks its own copies.
static void *visit(void *context) {
  visitor *v = context;
  for (int i = 0; i < ROUNDS; i++) {
    size_t size = i % 2 == 0 ? MEDIUM : 100;
    memset(v->from, i, size);
    C_Status copy =
        cpu.async_memory_copy_h2d(CPU, v->stream, v->to, v->from, size);
    C_Status call =
        cpu.stream_add_callback(CPU, v->stream, count_one, v->count);
    C_Status sync = cpu.synchronize_stream(CPU, v->stream);
    bool right = copy == C_SUCCESS && call == C_SUCCESS && sync == C_SUCCESS &&
                 memcmp(v->to, v->from, size) == 0;
    v->failures += !right;
  }
  return NULL;
}

static void run_visitors(bool share) {
  pthread_t threads[THREADS];
  atomic_int count = 0;
  C_Stream shared = new_stream(&cpu);
  for (int i = 0; i < THREADS; i++) {
    visitors[i].stream = share ? shared : new_stream(&cpu);
    visitors[i].count = &count;
    pthread_create(&threads[i], NULL, visit, &visitors[i]);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    ck_assert_int_eq(visitors[i].failures, 0);
  }
  ck_assert_int_eq(count, VISITS);
  assert_done(cpu.finalize());
}

TEST(test_many_threads_on_one_stream) {
  run_visitors(true);
}

enum { PAINTERS = 2, CANVAS = 32 << 10, STROKES = 2000 };

typedef struct painter {
  C_Stream stream;
  char *canvas;
  char paint[CANVAS];
  char seen[CANVAS];
  int mixed;  // how often more than one colour was seen
} painter;

static void *paint(void *context) {
  painter *p = context;
  for (int i = 0; i < STROKES; i++) {
    require(cpu.async_memory_copy_h2d(CPU, p->stream, p->canvas, p->paint,
                                      CANVAS) == C_SUCCESS);
    require(cpu.async_memory_copy_d2h(CPU, p->stream, p->seen, p->canvas,
                                      CANVAS) == C_SUCCESS);
    require(cpu.synchronize_stream(CPU, p->stream) == C_SUCCESS);
    if (memcmp(p->seen, p->seen + 1, CANVAS - 1) != 0) p->mixed++;
  }
  return NULL;
}

// Calls at the same time have no order, but their copies are made one after
// the other, also where each caller makes its own.
TEST(test_small_copies_of_two_threads_do_not_mix) {
  static painter painters[PAINTERS];
  static char canvas[CANVAS];
  pthread_t threads[PAINTERS];
  C_Stream s = new_stream(&cpu);
  for (int i = 0; i < PAINTERS; i++) {
    painters[i].stream = s;
    painters[i].canvas = canvas;
    memset(painters[i].paint, 'a' + i, CANVAS);
    pthread_create(&threads[i], NULL, paint, &painters[i]);
  }
  for (int i = 0; i < PAINTERS; i++) {
    pthread_join(threads[i], NULL);
    ck_assert_int_eq(painters[i].mixed, 0);
  }
  assert_done(cpu.destroy_stream(CPU, s));
}

TEST(test_many_threads_on_streams_of_their_own) {
  run_visitors(false);
}

enum { COMINGS = 100, ALL_COMINGS = THREADS * COMINGS };

static void *come_and_go(void *context) {
  atomic_int *count = context;
  for (int i = 0; i < COMINGS; i++) {
    C_Stream stream = NULL;
    if (cpu.create_stream(CPU, &stream) != C_SUCCESS) break;
    (void)cpu.stream_add_callback(CPU, stream, count_one, count);
    (void)cpu.synchronize_device(CPU);
    (void)cpu.destroy_stream(CPU, stream);
  }
  return NULL;
}

TEST(test_streams_come_and_go_while_the_device_is_synchronized) {
  pthread_t threads[THREADS];
  atomic_int count = 0;
  size_t held = tarn_host_memory();
  for (int i = 0; i < THREADS; i++) {
    pthread_create(&threads[i], NULL, come_and_go, &count);
  }
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  ck_assert_int_eq(count, ALL_COMINGS);
  ck_assert_uint_eq(tarn_host_memory(), held);
}

// --- memory ----------------------------------------------------------------

// 100 in flight at a time; after the first round, memory is forbidden.
TEST(test_a_steady_stream_allocates_nothing) {
  atomic_int count = 0;
  C_Stream s = new_stream(&cpu);
  for (int round = 0; round < 10; round++) {
    gate g;
    gate_close(&g, &cpu, s);
    for (int i = 0; i < 100; i++) {
      assert_done(cpu.stream_add_callback(CPU, s, count_one, &count));
    }
    gate_open(&g);
    assert_done(cpu.synchronize_stream(CPU, s));
    faults_arm(1, FAULTS_FROM_NOW);
  }
  ck_assert(!faults_disarm());
  ck_assert_int_eq(count, 1000);
  assert_done(cpu.destroy_stream(CPU, s));
}

TEST(test_a_burst_is_not_kept) {
  atomic_int count = 0;
  C_Stream s = new_stream(&cpu);
  gate g;
  gate_close(&g, &cpu, s);
  for (int i = 0; i < OPS; i++) {
    assert_done(cpu.stream_add_callback(CPU, s, count_one, &count));
  }
  ck_assert_uint_gt(tarn_host_memory(), sizeof(void *) * OPS);
  gate_open(&g);
  assert_done(cpu.synchronize_stream(CPU, s));
  ck_assert_uint_lt(tarn_host_memory(), 32 << 10);
  assert_done(cpu.destroy_stream(CPU, s));
}

static void must_be(C_Status status) {
  ck_assert(status == C_SUCCESS || status == C_FAILED);
}

// Counts what was accepted, so that what was refused can be told from lost.
static void queue_counted(C_Stream s, atomic_int *count, int *accepted) {
  C_Status status = cpu.stream_add_callback(CPU, s, count_one, count);
  must_be(status);
  *accepted += status == C_SUCCESS;
}

static void use_two_streams(C_Stream a, C_Stream b, C_Event e) {
  static char from[BIG] = "faults";
  static char to[BIG];
  atomic_int count = 0;
  int accepted = 0;
  gate g;
  sem_init(&g.entered, 0, 0);
  sem_init(&g.opened, 0, 1);
  must_be(cpu.stream_add_callback(CPU, b, pass_gate, &g));
  queue_counted(b, &count, &accepted);
  assert_done(cpu.record_event(CPU, b, e));
  must_be(cpu.stream_wait_event(CPU, a, e));
  memset(to, 0, sizeof to);
  C_Status copied = cpu.async_memory_copy_h2d(CPU, a, to, from, BIG);
  must_be(copied);
  queue_counted(a, &count, &accepted);
  assert_done(cpu.synchronize_device(CPU));
  ck_assert_int_eq(count, accepted);
  ck_assert_str_eq(to, copied == C_SUCCESS ? "faults" : "");
}

static void scenario(void *context) {
  (void)context;
  C_Stream a = NULL;
  C_Stream b = NULL;
  C_Event e = NULL;
  must_be(cpu.create_stream(CPU, &a));
  must_be(cpu.create_stream(CPU, &b));
  must_be(cpu.create_event(CPU, &e));
  if (a != NULL && b != NULL && e != NULL) use_two_streams(a, b, e);
  if (e != NULL) assert_done(cpu.destroy_event(CPU, e));
  if (a != NULL) assert_done(cpu.destroy_stream(CPU, a));
  if (b != NULL) assert_done(cpu.destroy_stream(CPU, b));
}

TEST(test_every_allocation_may_fail) {
  ck_assert_uint_ge(faults_sweep(scenario, NULL), 10);
}

int main(void) {
  faults_install();
  cpu = cpu_table();
  return run_tests();
}
