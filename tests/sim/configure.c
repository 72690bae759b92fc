// What a program asks of simulated devices by struct.
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"
#include "kit.h"
#include "tarn/range.h"

static tarn_sim_options options = {.struct_size = sizeof options};

static bool allocates(tarn_device *sim) {
  tarn_addr a = 0;
  tarn_status status = tarn_device_allocate(tarn_place_on(sim), 64, &a);
  if (status == TARN_OK) sim_give(sim, a, 64);
  return status == TARN_OK;
}

TEST(fields_go_before_variables) {
  sim_set("TARN_SIM_DEVICES", "3");
  sim_set("TARN_SIM_CAPACITY", "nonsense");
  sim_set("TARN_SIM_FAULTS", "device_memory_allocate@1");
  options.capacity = 5 * SIM_MIB;
  options.faults = "device_memory_allocate@2";
  assert_ok(tarn_sim_configure(&options));
  tarn_device *last = sim_open("sim:2");
  ck_assert_uint_eq(sim_free_memory(last), 5 * SIM_MIB);
  ck_assert(allocates(last));
  ck_assert(!allocates(last));
  ck_assert(allocates(last));
  assert_ok(tarn_device_close(last));
}

TEST(zeros_leave_all_to_variables) {
  sim_set("TARN_SIM_DEVICES", "1");
  sim_set("TARN_SIM_CAPACITY", "7M");
  sim_set("TARN_SIM_FAULTS", "device_memory_allocate@1");
  options.struct_size = 0;
  assert_ok(tarn_sim_configure(&options));
  tarn_device *none = NULL;
  assert_status(tarn_device_open("sim:1", &none), TARN_E_INVALID);
  tarn_device *sim = sim_open("sim:0");
  ck_assert_uint_eq(sim_free_memory(sim), 7 * SIM_MIB);
  ck_assert(!allocates(sim));
  assert_ok(tarn_device_close(sim));
}

TEST(empty_texts_are_none) {
  sim_set("TARN_SIM_FAULTS", "nonsense");
  sim_set("TARN_SIM_REPORT", "/nowhere/at/all");
  options.faults = "";
  options.report = "";
  assert_ok(tarn_sim_configure(&options));
  tarn_device *sim = sim_open("sim:0");
  ck_assert(allocates(sim));
  assert_ok(tarn_device_close(sim));
}

TEST(null_is_as_at_the_start) {
  options.capacity = SIM_MIB;
  assert_ok(tarn_sim_configure(&options));
  assert_ok(tarn_sim_configure(NULL));
  tarn_device *sim = sim_open("sim:0");
  ck_assert_uint_eq(sim_free_memory(sim), (size_t)8 << 30);
  assert_ok(tarn_device_close(sim));
}

TEST(latency_and_bandwidth_are_as_asked) {
  static unsigned char bytes[4096];
  options.latency_ns = 20000000;
  options.bandwidth = 4096 * 50;  // 20 ms more
  assert_ok(tarn_sim_configure(&options));
  tarn_device *sim = sim_open("sim:0");
  tarn_addr a = sim_take(sim, sizeof bytes);
  struct timespec begin;
  struct timespec end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  assert_ok(tarn_copy_h2d(sim, a, bytes, sizeof bytes, NULL));
  clock_gettime(CLOCK_MONOTONIC, &end);
  double ms = (double)(end.tv_sec - begin.tv_sec) * 1e3 +
              (double)(end.tv_nsec - begin.tv_nsec) / 1e6;
  ck_assert_double_ge(ms, 40);  // it promises no less; more is the machine's
  sim_give(sim, a, sizeof bytes);
  assert_ok(tarn_device_close(sim));
}

TEST(mappings_take_as_long_as_asked) {
  enum { NS = 5000000 };
  options.map_latency_ns = NS;
  assert_ok(tarn_sim_configure(&options));
  tarn_device *sim = sim_open("sim:0");
  size_t size = 0;
  tarn_addr at = 0;
  tarn_memory memory = 0;
  assert_ok(tarn_range_granularity(sim, &size));
  assert_ok(tarn_range_reserve(sim, size, 0, &at));
  assert_ok(tarn_memory_create(sim, size, 0, &memory));
  uint64_t begin = tarn__os_now_ns();
  assert_ok(tarn_range_map(sim, at, size, memory));
  assert_ok(tarn_range_set_access(sim, at, size, sim, TARN_RIGHTS_READ));
  assert_ok(tarn_range_unmap(sim, at, size));
  ck_assert_uint_ge(tarn__os_now_ns() - begin, 3 * (uint64_t)NS);
  assert_ok(tarn_memory_destroy(sim, memory));
  assert_ok(tarn_range_release(sim, at, size));
  assert_ok(tarn_device_close(sim));
}

TEST(bad_fields_are_named_and_change_nothing) {
  static char path[2000];
  options.capacity = 3 * SIM_MIB;
  assert_ok(tarn_sim_configure(&options));
  options.capacity = 4095;
  assert_fails(tarn_sim_configure(&options), TARN_E_INVALID,
               "capacity 4095: not a size from 4K to 1T");
  options.capacity = ((size_t)1 << 40) + 1;
  assert_status(tarn_sim_configure(&options), TARN_E_INVALID);
  options.capacity = 0;
  options.devices = 65;
  assert_fails(tarn_sim_configure(&options), TARN_E_INVALID,
               "devices 65: not a number from 1 to 64");
  options.devices = 0;
  options.latency_ns = 60000000001;
  assert_fails(tarn_sim_configure(&options), TARN_E_INVALID,
               "latency_ns 60000000001: not");
  options.latency_ns = 0;
  options.map_latency_ns = 60000000001;
  assert_fails(tarn_sim_configure(&options), TARN_E_INVALID,
               "map_latency_ns 60000000001: not");
  options.map_latency_ns = 0;
  options.faults = "memory_copy_h2@1";
  assert_fails(tarn_sim_configure(&options), TARN_E_INVALID,
               "faults \"memory_copy_h2@1\": not");
  options.faults = NULL;
  memset(path, 'x', sizeof path - 1);
  options.report = path;
  assert_fails(tarn_sim_configure(&options), TARN_E_INVALID,
               "report: a path of 1999 bytes");
  options.report = NULL;
  options.struct_size = sizeof options.struct_size;
  assert_fails(tarn_sim_configure(&options), TARN_E_INVALID, "struct_size 8");
  ck_assert_uint_eq(sim_misuses(), 0);
  tarn_device *sim = sim_open("sim:0");
  ck_assert_uint_eq(sim_free_memory(sim), 3 * SIM_MIB);
  assert_ok(tarn_device_close(sim));
}

TEST(the_first_device_settles_it) {
  assert_ok(tarn_device_close(sim_open("sim:0")));
  assert_fails(tarn_sim_configure(&options), TARN_E_STATE, "already");
  assert_status(tarn_sim_configure(NULL), TARN_E_STATE);
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    _exit(tarn_sim_configure(&options) == TARN_E_STATE &&
                  tarn_sim_faults("*@1") == TARN_OK
              ? 0
              : 1);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
}

TEST(a_bad_variable_settles_nothing) {
  tarn_device *sim = NULL;
  sim_set("TARN_SIM_CAPACITY", "nonsense");
  assert_status(tarn_device_open("sim:0", &sim), TARN_E_DEVICE);
  options.capacity = SIM_MIB;
  assert_ok(tarn_sim_configure(&options));
  sim = sim_open("sim:0");
  ck_assert_uint_eq(sim_free_memory(sim), SIM_MIB);
  assert_ok(tarn_device_close(sim));
}

TEST(a_plan_is_replaced_in_use) {
  tarn_device *sim = sim_open("sim:0");
  ck_assert(allocates(sim));
  assert_ok(tarn_sim_faults("device_memory_allocate@2"));
  ck_assert(allocates(sim));
  ck_assert(!allocates(sim));
  assert_ok(tarn_sim_faults("device_memory_allocate@2"));  // from 0 again
  ck_assert(allocates(sim));
  assert_fails(tarn_sim_faults("no_such_call@1"), TARN_E_INVALID,
               "\"no_such_call@1\"");
  ck_assert(!allocates(sim));  // the other one is still there
  assert_ok(tarn_sim_faults("*@1+"));
  ck_assert(!allocates(sim));
  assert_ok(tarn_sim_faults(""));
  ck_assert(allocates(sim));
  assert_ok(tarn_sim_faults("*@1+"));
  assert_ok(tarn_sim_faults(NULL));
  ck_assert(allocates(sim));
  assert_ok(tarn_device_close(sim));
}

TEST(a_plan_may_come_before_the_devices) {
  sim_set("TARN_SIM_FAULTS", "device_memory_allocate@2");
  assert_ok(tarn_sim_faults("device_memory_allocate@1"));
  tarn_device *sim = sim_open("sim:0");
  ck_assert(!allocates(sim));
  ck_assert(allocates(sim));
  assert_ok(tarn_device_close(sim));
}

TEST(misuses_are_counted_and_the_newest_is_told) {
  char path[] = "/tmp/tarn-sim-report-XXXXXX";
  char line[256] = "x";
  char cut[8] = "1234567";
  int fd = mkstemp(path);
  ck_assert_int_ge(fd, 0);
  options.report = path;
  assert_ok(tarn_sim_configure(&options));
  ck_assert_uint_eq(tarn_sim_misuses(line, sizeof line), 0);
  ck_assert_str_eq(line, "");
  tarn_device *sim = sim_open("sim:0");
  assert_status(tarn_device_set(sim, 64, 0, 1, NULL), TARN_E_DEVICE);
  assert_status(tarn_device_set(sim, 64, 0, 2, NULL), TARN_E_DEVICE);
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 0), 2);
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 99), 2);
  ck_assert_uint_eq(tarn_sim_misuses(line, sizeof line), 2);
  ck_assert_ptr_nonnull(strstr(line, "device_memory_set of 2 bytes"));
  ck_assert_uint_eq(tarn_sim_misuses(cut, 4), 2);
  ck_assert_str_eq(cut, "sim");
  ck_assert_uint_eq(tarn_sim_misuses(cut, 0), 2);
  assert_ok(tarn_device_close(sim));
  ck_assert_int_gt(lseek(fd, 0, SEEK_END), 0);
  close(fd);
  unlink(path);
}

static atomic_bool stop;

static void *change_plans(void *context) {
  (void)context;
  while (!stop) {
    if (tarn_sim_faults("device_memory_allocate@3+") != TARN_OK ||
        tarn_sim_faults(NULL) != TARN_OK)
      return &stop;
  }
  return NULL;
}

TEST(plans_change_while_others_call) {
  pthread_t thread;
  void *failed = NULL;
  tarn_device *sim = sim_open("sim:0");
  ck_assert_int_eq(pthread_create(&thread, NULL, change_plans, NULL), 0);
  for (int i = 0; i < 5000; i++)
    (void)allocates(sim);
  stop = true;
  ck_assert_int_eq(pthread_join(thread, &failed), 0);
  ck_assert_ptr_null(failed);
  ck_assert(allocates(sim));
  assert_ok(tarn_device_close(sim));
}
