// Events of the cpu plug-in: marks that streams wait for.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "host.h"

static C_DeviceInterface cpu;

static void store_one(C_Device device, C_Stream stream, void *user_data,
                      C_Status *status) {
  (void)device;
  (void)stream;
  (void)status;
  atomic_store((atomic_int *)user_data, 1);
}

static void queue_store(C_Stream stream, atomic_int *flag) {
  assert_done(cpu.stream_add_callback(CPU, stream, store_one, flag));
}

TEST(test_never_recorded_has_happened) {
  C_Stream s = new_stream(&cpu);
  C_Event e = new_event(&cpu);
  atomic_int flag = 0;
  assert_done(cpu.query_event(CPU, e));
  assert_done(cpu.synchronize_event(CPU, e));
  assert_done(cpu.stream_wait_event(CPU, s, e));
  assert_done(cpu.query_stream(CPU, s));
  queue_store(s, &flag);
  assert_done(cpu.synchronize_stream(CPU, s));
  ck_assert_int_eq(flag, 1);
  assert_done(cpu.destroy_event(CPU, e));
  assert_done(cpu.destroy_stream(CPU, s));
}

TEST(test_an_event_happens_when_what_was_queued_is_done) {
  C_Stream s = new_stream(&cpu);
  C_Event e = new_event(&cpu);
  atomic_int flag = 0;
  gate before;
  gate behind;
  gate_close(&before, &cpu, s);
  queue_store(s, &flag);
  assert_done(cpu.record_event(CPU, s, e));
  assert_c(cpu.query_event(CPU, e), C_WARNING);
  gate_open(&before);
  gate_close(&behind, &cpu, s);
  assert_done(cpu.query_event(CPU, e));
  assert_done(cpu.synchronize_event(CPU, e));
  ck_assert_int_eq(flag, 1);
  assert_c(cpu.query_stream(CPU, s), C_WARNING);
  gate_open(&behind);
  assert_done(cpu.destroy_stream(CPU, s));
  assert_done(cpu.query_event(CPU, e));
  assert_done(cpu.destroy_event(CPU, e));
}

TEST(test_one_stream_waits_for_another) {
  C_Stream a = new_stream(&cpu);
  C_Stream b = new_stream(&cpu);
  C_Event e = new_event(&cpu);
  atomic_int flag = 0;
  gate g;
  gate_close(&g, &cpu, b);
  assert_done(cpu.record_event(CPU, b, e));
  assert_done(cpu.stream_wait_event(CPU, a, e));
  queue_store(a, &flag);
  assert_c(cpu.query_stream(CPU, a), C_WARNING);
  ck_assert_int_eq(flag, 0);
  gate_open(&g);
  assert_done(cpu.synchronize_stream(CPU, a));
  ck_assert_int_eq(flag, 1);
  assert_done(cpu.destroy_event(CPU, e));
  assert_done(cpu.destroy_stream(CPU, a));
  assert_done(cpu.destroy_stream(CPU, b));
}

// No thread waits for b itself: its worker must start without that.
TEST(test_waiting_for_a_stream_that_is_not_synchronized) {
  static char from[1 << 20];
  static char between[1 << 20];
  static char to[1 << 20];
  memset(from, 'x', sizeof from);
  for (int round = 0; round < 20; round++) {
    C_Stream a = new_stream(&cpu);
    C_Stream b = new_stream(&cpu);
    C_Event e = new_event(&cpu);
    memset(between, 0, sizeof between);
    memset(to, 0, sizeof to);
    assert_done(cpu.async_memory_copy_h2d(CPU, b, between, from, sizeof from));
    assert_done(cpu.record_event(CPU, b, e));
    assert_done(cpu.stream_wait_event(CPU, a, e));
    assert_done(cpu.async_memory_copy_d2h(CPU, a, to, between, sizeof to));
    assert_done(cpu.synchronize_stream(CPU, a));
    ck_assert_mem_eq(to, from, sizeof to);
    assert_done(cpu.destroy_event(CPU, e));
    assert_done(cpu.destroy_stream(CPU, a));
    assert_done(cpu.destroy_stream(CPU, b));
  }
}

TEST(test_recording_again_does_not_move_earlier_waits) {
  C_Stream a = new_stream(&cpu);
  C_Stream b = new_stream(&cpu);
  C_Stream idle = new_stream(&cpu);
  C_Event e = new_event(&cpu);
  atomic_int flag = 0;
  gate g;
  gate_close(&g, &cpu, b);
  assert_done(cpu.record_event(CPU, b, e));
  assert_done(cpu.stream_wait_event(CPU, a, e));
  queue_store(a, &flag);
  assert_done(cpu.record_event(CPU, idle, e));  // this mark is reached ...
  assert_done(cpu.query_event(CPU, e));
  assert_done(cpu.synchronize_event(CPU, e));
  assert_c(cpu.query_stream(CPU, a), C_WARNING);  // ... the other is not
  ck_assert_int_eq(flag, 0);
  gate_open(&g);
  assert_done(cpu.synchronize_stream(CPU, a));
  ck_assert_int_eq(flag, 1);
  assert_done(cpu.destroy_event(CPU, e));
  assert_done(cpu.finalize());
}

TEST(test_recording_again_moves_the_mark_back) {
  C_Stream s = new_stream(&cpu);
  C_Event e = new_event(&cpu);
  assert_done(cpu.record_event(CPU, s, e));
  assert_done(cpu.query_event(CPU, e));
  gate g;
  gate_close(&g, &cpu, s);
  assert_done(cpu.record_event(CPU, s, e));
  assert_c(cpu.query_event(CPU, e), C_WARNING);
  gate_open(&g);
  assert_done(cpu.synchronize_event(CPU, e));
  assert_done(cpu.query_event(CPU, e));
  assert_done(cpu.finalize());
}

TEST(test_an_event_may_go_before_its_waits) {
  size_t held = tarn_host_memory();
  C_Stream a = new_stream(&cpu);
  C_Stream b = new_stream(&cpu);
  C_Event e = new_event(&cpu);
  atomic_int flag = 0;
  gate g;
  gate_close(&g, &cpu, b);
  assert_done(cpu.record_event(CPU, b, e));
  assert_done(cpu.stream_wait_event(CPU, a, e));
  assert_done(cpu.destroy_event(CPU, e));
  queue_store(a, &flag);
  ck_assert_int_eq(flag, 0);
  gate_open(&g);
  assert_done(cpu.destroy_stream(CPU, b));  // and its stream before them, too
  assert_done(cpu.synchronize_stream(CPU, a));
  ck_assert_int_eq(flag, 1);
  assert_done(cpu.destroy_stream(CPU, a));
  ck_assert_uint_eq(tarn_host_memory(), held);
}

TEST(test_a_stream_may_wait_for_its_own_event) {
  C_Stream s = new_stream(&cpu);
  C_Event e = new_event(&cpu);
  atomic_int flag = 0;
  gate g;
  gate_close(&g, &cpu, s);
  assert_done(cpu.record_event(CPU, s, e));
  assert_done(cpu.stream_wait_event(CPU, s, e));
  queue_store(s, &flag);
  gate_open(&g);
  assert_done(cpu.synchronize_stream(CPU, s));
  ck_assert_int_eq(flag, 1);
  assert_done(cpu.finalize());
}

// A token runs along many streams; only the last one is synchronized.
TEST(test_a_chain_of_streams) {
  enum { LINKS = 60, SIZE = 70000 };
  static char cells[LINKS + 1][SIZE];
  C_Stream streams[LINKS];
  C_Event events[LINKS];
  memset(cells[0], 'c', SIZE);
  for (int i = 0; i < LINKS; i++) {
    streams[i] = new_stream(&cpu);
    events[i] = new_event(&cpu);
    if (i > 0) {
      assert_done(cpu.stream_wait_event(CPU, streams[i], events[i - 1]));
    }
    assert_done(cpu.async_memory_copy_d2d(CPU, streams[i], cells[i + 1],
                                          cells[i], SIZE));
    assert_done(cpu.record_event(CPU, streams[i], events[i]));
  }
  assert_done(cpu.synchronize_event(CPU, events[LINKS - 1]));
  ck_assert_mem_eq(cells[LINKS], cells[0], SIZE);
  assert_done(cpu.finalize());
}

// --- waits at random: none may hang ----------------------------------------

enum { STREAMS = 4, THREADS = 4, STEPS = 1500 };
static C_Stream streams[STREAMS];
static C_Event events[STREAMS];
static atomic_int callbacks_run;

static void count_callback(C_Device device, C_Stream stream, void *user_data,
                           C_Status *status) {
  (void)device;
  (void)stream;
  (void)user_data;
  (void)status;
  atomic_fetch_add(&callbacks_run, 1);
}

static C_Status random_step(uint32_t dice) {
  C_Stream stream = streams[(dice >> 8) % STREAMS];
  C_Event event = events[(dice >> 16) % STREAMS];
  switch (dice % 16) {
    case 0:
      return cpu.synchronize_stream(CPU, stream);
    case 1:
      return cpu.synchronize_event(CPU, event);
    case 2:
    case 3:
    case 4:
    case 5:
      return cpu.stream_wait_event(CPU, stream, event);
    case 6:
    case 7:
    case 8:
    case 9:
      return cpu.record_event(CPU, stream, event);
    default:
      return cpu.stream_add_callback(CPU, stream, count_callback, NULL);
  }
}

static void *walk_at_random(void *context) {
  uint32_t state = *(uint32_t *)context;
  uintptr_t failures = 0;
  for (int i = 0; i < STEPS; i++) {
    state = state * 1664525u + 1013904223u;
    failures += random_step(state >> 4) != C_SUCCESS;
  }
  return (void *)failures;
}

TEST(test_waits_at_random_do_not_hang) {
  size_t held = tarn_host_memory();
  pthread_t threads[THREADS];
  uint32_t seeds[THREADS];
  for (int i = 0; i < STREAMS; i++) {
    streams[i] = new_stream(&cpu);
    events[i] = new_event(&cpu);
  }
  for (int i = 0; i < THREADS; i++) {
    seeds[i] = (uint32_t)i * 7919u + 1;
    pthread_create(&threads[i], NULL, walk_at_random, &seeds[i]);
  }
  for (int i = 0; i < THREADS; i++) {
    void *failures = NULL;
    pthread_join(threads[i], &failures);
    ck_assert_ptr_null(failures);
  }
  assert_done(cpu.synchronize_device(CPU));
  for (int i = 0; i < STREAMS; i++) {
    assert_done(cpu.query_event(CPU, events[i]));
    assert_done(cpu.query_stream(CPU, streams[i]));
  }
  ck_assert_int_gt(callbacks_run, 0);
  assert_done(cpu.finalize());
  ck_assert_uint_eq(tarn_host_memory(), held);
}

TEST(test_events_refuse_bad_arguments) {
  C_Stream s = new_stream(&cpu);
  C_Event e = new_event(&cpu);
  C_Event none = e;
  assert_c(cpu.create_event(CPU, NULL), C_ERROR);
  assert_c(cpu.create_event(NOT_CPU, &none), C_ERROR);
  ck_assert_ptr_null(none);
  C_Status (*const ones[])(C_Device, C_Event) = {
      cpu.query_event, cpu.synchronize_event, cpu.destroy_event};
  for (size_t i = 0; i < sizeof ones / sizeof ones[0]; i++) {
    assert_c(ones[i](NULL, e), C_ERROR);
    assert_c(ones[i](NOT_CPU, e), C_ERROR);
    assert_c(ones[i](CPU, NULL), C_ERROR);
  }
  C_Status (*const twos[])(C_Device, C_Stream, C_Event) = {
      cpu.record_event, cpu.stream_wait_event};
  for (size_t i = 0; i < sizeof twos / sizeof twos[0]; i++) {
    assert_c(twos[i](NULL, s, e), C_ERROR);
    assert_c(twos[i](NOT_CPU, s, e), C_ERROR);
    assert_c(twos[i](CPU, NULL, e), C_ERROR);
    assert_c(twos[i](CPU, s, NULL), C_ERROR);
  }
  assert_done(cpu.destroy_event(CPU, e));
  assert_done(cpu.destroy_stream(CPU, s));
}

int main(void) {
  cpu = cpu_table();
  return run_tests();
}
