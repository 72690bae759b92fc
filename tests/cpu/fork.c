// The cpu plug-in in a forked child: no worker is there, nothing may hang.
// Without the faulty allocator, whose lock a child might inherit taken.
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rows.h"
#include "host.h"

enum { BIG = 80000 };

static C_DeviceInterface cpu;

static void count_one(C_Device device, C_Stream stream, void *user_data,
                      C_Status *status) {
  (void)device;
  (void)stream;
  (void)status;
  atomic_fetch_add((atomic_int *)user_data, 1);
}

typedef struct inherited {
  C_Stream running;  // its worker stands at a gate, or runs on
  C_Stream waiting;  // for the former
  C_Event event;
} inherited;

static inherited make_inheritance(void) {
  inherited in = {new_stream(&cpu), new_stream(&cpu), new_event(&cpu)};
  return in;
}

static void queue_wait(const inherited *in, atomic_int *count) {
  assert_done(cpu.record_event(CPU, in->running, in->event));
  assert_done(cpu.stream_wait_event(CPU, in->waiting, in->event));
  assert_done(cpu.stream_add_callback(CPU, in->waiting, count_one, count));
}

// Rows go with what is queued, so they must be freed with it.
static void queue_rows(const inherited *in) {
  static int32_t table[1];
  static int32_t dense[1];
  static const int32_t index[1] = {0};
  const tarn_addr chunk = (tarn_addr)(uintptr_t)table;
  const size_t offsets[] = {0, sizeof table};
  tarn_rows rows = {
      .struct_size = sizeof rows,
      .table = {&chunk, offsets, 1},
      .table_dtype = TARN_DTYPE_I32,
      .table_count = 1,
      .width = 1,
      .dense = (tarn_addr)(uintptr_t)dense,
      .dense_dtype = TARN_DTYPE_I32,
      .indices = (tarn_addr)(uintptr_t)index,
      .index_dtype = TARN_DTYPE_I32,
      .index_count = 1,
  };
  tarn_rows checked;
  assert_ok(tarn__rows_check(&rows, &checked));
  assert_ext_ok(TarnDeviceExt()->gather(0, in->waiting, &checked));
}

// Runs |body| in a child, which must end by itself and return 0.
static void in_child(int (*body)(const inherited *in), const inherited *in) {
  int result = 0;
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(body(in));
  }
  ck_assert_int_eq(waitpid(child, &result, 0), child);
  ck_assert_msg(WIFEXITED(result) && WEXITSTATUS(result) == 0, "the child: %#x",
                (unsigned)result);
}

// These three return the number of what is not so, 0 if all is.

static int refuses_use(const inherited *in) {
  static char bytes[2][BIG];
  if (cpu.query_stream(CPU, in->running) != C_ERROR) return 1;
  if (cpu.synchronize_stream(CPU, in->waiting) != C_ERROR) return 2;
  if (cpu.query_event(CPU, in->event) != C_ERROR) return 3;
  if (cpu.async_memory_copy_h2d(CPU, in->running, bytes[0], bytes[1], 8) !=
      C_ERROR) {
    return 4;
  }
  return cpu.synchronize_device(CPU) == C_SUCCESS ? 0 : 5;
}

static int can_destroy(const inherited *in) {
  if (cpu.destroy_stream(CPU, in->running) != C_SUCCESS) return 6;
  if (cpu.destroy_event(CPU, in->event) != C_SUCCESS) return 7;
  return cpu.destroy_stream(CPU, in->waiting) == C_SUCCESS ? 0 : 8;
}

// Small copies only: TSan forbids threads in children of programs with threads.
static int can_use_its_own(void) {
  C_Stream s = NULL;
  char to[8] = "";
  if (cpu.create_stream(CPU, &s) != C_SUCCESS) return 9;
  if (cpu.async_memory_copy_h2d(CPU, s, to, "child", 6) != C_SUCCESS) return 10;
  if (cpu.finalize() != C_SUCCESS) return 11;
  return strcmp(to, "child") == 0 ? 0 : 12;
}

static int live_with(const inherited *in) {
  int fault = refuses_use(in);
  if (fault == 0) fault = can_destroy(in);
  if (fault == 0) fault = can_use_its_own();
  if (fault != 0) return fault;
  return tarn_host_memory() == 0 ? 0 : 13;
}

// Both workers stand outside the plug-in, so that the child can free all.
TEST(test_a_child_frees_without_hanging) {
  inherited in = make_inheritance();
  atomic_int count = 0;
  gate gates[2];
  gate_close(&gates[0], &cpu, in.running);
  gate_close(&gates[1], &cpu, in.waiting);
  queue_wait(&in, &count);
  queue_rows(&in);
  in_child(live_with, &in);
  gate_open(&gates[0]);
  gate_open(&gates[1]);
  assert_done(cpu.synchronize_stream(CPU, in.waiting));
  ck_assert_int_eq(count, 1);
  assert_done(cpu.finalize());
}

// The workers are anywhere when the child is born.
TEST(test_children_of_busy_streams) {
  enum { CHILDREN = 100, EACH = 40 };
  inherited in = make_inheritance();
  atomic_int count = 0;
  int queued = 0;
  for (int i = 0; i < CHILDREN; i++) {
    for (int k = 0; k < EACH; k++) {
      assert_done(cpu.stream_add_callback(CPU, in.running, count_one, &count));
      queue_wait(&in, &count);
      queued += 2;
    }
    in_child(can_destroy, &in);
    assert_done(cpu.synchronize_device(CPU));
    ck_assert_int_eq(count, queued);
  }
  assert_done(cpu.finalize());
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

int main(void) {
  cpu = cpu_table();
  return run_tests();
}
