// The report of simulated devices: each class of misuse, and its message.
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "kit.h"

#include "common/queue.h"  // behind the name that the kit gives InitPlugin

static tarn_device *sim0;
static tarn_device *sim1;
static unsigned char bytes[16384];

static void open_two(void) {
  sim0 = sim_open("sim:0");
  sim1 = sim_open("sim:1");
}

static void close_two(void) {
  assert_ok(tarn_device_close(sim1));
  assert_ok(tarn_device_close(sim0));
}

// |expression| is refused, and one line more says |words|.
#define assert_misuse(expression, words)                  \
  do {                                                    \
    size_t misuses_before = sim_misuses();                \
    assert_status(expression, TARN_E_DEVICE);             \
    ck_assert_uint_eq(sim_misuses(), misuses_before + 1); \
    assert_reported(words);                               \
  } while (0)

TEST(copies_out_of_bounds) {
  open_two();
  tarn_addr a = sim_take(sim0, 100);
  tarn_addr b = sim_take(sim0, 8192);
  assert_misuse(tarn_copy_h2d(sim0, b + 5120, bytes, 4096, NULL),
                ": 1024 bytes beyond the end of a block of 8192 bytes taken by "
                "allocation 2");
  assert_reported("sim:0: memory_copy_h2d of 4096 bytes at 0x");
  assert_misuse(tarn_copy_d2h(sim0, bytes, a, 101, NULL),
                ": 1 bytes beyond the end of a block of 100 bytes");
  assert_misuse(tarn_copy_d2d(sim0, b, a, 300, NULL), "beyond the end");
  assert_misuse(tarn_copy_p2p(sim0, a, sim0, b, 300, NULL), "beyond the end");
  assert_misuse(tarn_device_set(sim0, a + 50, 0, 51, NULL),
                "sim:0: device_memory_set of 51 bytes at");
  assert_misuse(tarn_device_set(sim0, b + 8192, 0, 1, NULL), "out of bounds");
  assert_misuse(tarn_device_set(sim0, a, 0, SIZE_MAX, NULL), "beyond the last");
  sim_give(sim0, a, 100);
  sim_give(sim0, b, 8192);
  close_two();
}

TEST(use_after_free) {
  open_two();
  tarn_addr a = sim_take(sim0, 4096);
  sim_give(sim0, a, 4096);
  tarn_addr b = sim_take(sim0, 4096);
  assert_misuse(tarn_copy_h2d(sim0, a + 8, bytes, 16, NULL),
                ": use after free of a block of 4096 bytes taken by allocation "
                "1");
  assert_misuse(tarn_copy_d2h(sim0, bytes, a, 16, NULL), "use after free");
  assert_misuse(tarn_copy_d2d(sim0, b, a, 16, NULL), "use after free");
  sim_give(sim0, b, 4096);
  close_two();
}

// What the driver refuses the device room counts as gone, so that the device
// can close: hence the table itself here.
static C_DeviceInterface table;

static void fill_table(void) {
  table = (C_DeviceInterface){.size = sizeof table};
  CustomRuntimeParams params = {.size = sizeof params, .interface = &table};
  InitPlugin(&params);
  ck_assert_str_eq(params.device_type, "sim");
}

static struct C_Device_st ids[2] = {{0}, {1}};

static void init_two(void) {
  fill_table();
  assert_done(table.initialize());
  assert_done(table.init_device(&ids[0]));
  assert_done(table.init_device(&ids[1]));
}

static void finalize(void) {
  assert_done(table.finalize());
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

#define assert_refused(expression, words) \
  do {                                    \
    assert_c(expression, C_ERROR);        \
    assert_reported(words);               \
  } while (0)

static void *table_take(size_t size) {
  void *ptr = NULL;
  assert_done(table.device_memory_allocate(&ids[0], &ptr, size));
  return ptr;
}

TEST(wrong_frees) {
  init_two();
  char *a = table_take(4096);
  char *b = table_take(512);
  C_Status (*give)(C_Device, void *, size_t) = table.device_memory_deallocate;
  assert_refused(give(&ids[0], a, 4095),
                 ": size mismatch: a block of 4096 bytes taken by allocation "
                 "1");
  assert_refused(give(&ids[0], b + 256, 256), ": 256 bytes inside a block");
  assert_refused(give(&ids[0], bytes, 16),
                 ": foreign pointer: an address of the host");
  assert_refused(give(&ids[1], a, 4096),
                 ": foreign pointer: an address of sim:0");
  assert_refused(give(&ids[0], NULL, 1), "foreign pointer");
  assert_done(give(&ids[0], a, 4096));
  assert_refused(give(&ids[0], a, 4096),
                 "sim:0: device_memory_deallocate of 4096 bytes at 0x");
  assert_reported(
      ": double free of a block of 4096 bytes taken by allocation "
      "1");
  finalize();
}

TEST(wrong_frees_of_host_memory) {
  void *pinned = NULL;
  void *unified = NULL;
  init_two();
  assert_done(table.host_memory_allocate(&ids[0], &pinned, 100));
  assert_done(table.unified_memory_allocate(&ids[0], &unified, 100));
  assert_refused(table.host_memory_deallocate(&ids[0], pinned, 99),
                 "host_memory_deallocate of 99 bytes");
  assert_reported("size mismatch");
  assert_refused(table.host_memory_deallocate(&ids[0], unified, 100),
                 "foreign pointer: an address of the host");
  assert_done(table.host_memory_deallocate(&ids[0], pinned, 100));
  assert_refused(table.host_memory_deallocate(&ids[0], pinned, 100),
                 "double free");
  assert_refused(table.memory_copy_h2d(&ids[0], (char *)unified + 99, bytes, 2),
                 "1 bytes beyond the end");
  finalize();  // gives the unified block back
}

TEST(wrong_directions) {
  open_two();
  tarn_addr a = sim_take(sim0, 4096);
  tarn_addr b = sim_take(sim1, 4096);
  tarn_addr host = (tarn_addr)(uintptr_t)bytes;
  void *a_as_host = (void *)(uintptr_t)a;
  assert_misuse(tarn_copy_h2d(sim0, host, bytes + 64, 64, NULL),
                ": wrong direction: an address of the host where one of sim:0 "
                "belongs");
  assert_misuse(tarn_copy_h2d(sim0, a, a_as_host, 64, NULL),
                ": wrong direction: an address of sim:0 where one of the host "
                "belongs");
  assert_misuse(tarn_copy_d2h(sim0, a_as_host, a, 64, NULL),
                "one of the host belongs");
  assert_misuse(tarn_copy_h2d(sim0, b, bytes, 64, NULL),
                ": wrong direction: an address of sim:1 where one of sim:0 "
                "belongs");
  assert_misuse(tarn_copy_p2p(sim0, b, sim1, a, 64, NULL), "wrong direction");
  sim_give(sim0, a, 4096);
  sim_give(sim1, b, 4096);
  close_two();
}

static void nothing(C_Device device, C_Stream stream, void *user_data,
                    C_Status *status) {
  (void)device;
  (void)stream;
  *(C_Status *)user_data = *status;
}

// A block that goes while a copy of it is queued fails the stream.
TEST(a_queued_copy_outlives_its_block) {
  sim_set("TARN_SIM_LATENCY_NS", "20000000");
  init_two();
  C_Stream stream = NULL;
  C_Status told = C_SUCCESS;
  char *a = table_take(64);
  char *b = table_take(64);
  assert_done(table.create_stream(&ids[0], &stream));
  assert_done(table.async_memory_copy_h2d(&ids[0], stream, b, bytes, 64));
  assert_done(table.async_memory_copy_h2d(&ids[0], stream, a, bytes, 64));
  assert_done(table.stream_add_callback(&ids[0], stream, nothing, &told));
  assert_done(table.device_memory_deallocate(&ids[0], a, 64));
  assert_c(table.synchronize_stream(&ids[0], stream), C_ERROR);
  assert_reported("async_memory_copy_h2d of 64 bytes at");
  assert_reported("use after free");
  assert_c(told, C_ERROR);
  assert_c(table.query_stream(&ids[0], stream), C_ERROR);
  assert_c(table.synchronize_device(&ids[0]), C_ERROR);
  assert_done(table.synchronize_device(&ids[1]));
  finalize();
}

static atomic_bool may_run;

static void hold_up(C_Device device, C_Stream stream, void *user_data,
                    C_Status *status) {
  (void)device;
  (void)stream;
  (void)user_data;
  (void)status;
  while (!atomic_load(&may_run))
    sched_yield();
}

// An event has failed if something before it has, however much later it is
// asked; what fails behind it is not its.
TEST(events_around_a_failure) {
  init_two();
  C_Stream stream = NULL;
  C_Event before = NULL;
  C_Event behind = NULL;
  char *a = table_take(64);
  assert_done(table.create_stream(&ids[0], &stream));
  assert_done(table.create_event(&ids[0], &before));
  assert_done(table.create_event(&ids[0], &behind));
  assert_done(table.stream_add_callback(&ids[0], stream, hold_up, NULL));
  assert_done(table.record_event(&ids[0], stream, before));
  assert_done(table.async_memory_copy_h2d(&ids[0], stream, a, bytes, 64));
  assert_done(table.record_event(&ids[0], stream, behind));
  assert_done(table.device_memory_deallocate(&ids[0], a, 64));
  atomic_store(&may_run, true);
  assert_c(table.synchronize_event(&ids[0], behind), C_ERROR);
  assert_c(table.query_event(&ids[0], behind), C_ERROR);
  assert_done(table.synchronize_event(&ids[0], before));
  assert_done(table.query_event(&ids[0], before));
  finalize();
}

static void go_wrong(const tarn__common_queue_op *op) {
  tarn__queue_fail(op->call.stream, C_ERROR, "on purpose");
}

// The same for an operation that is run at once.
TEST(events_around_a_brief_failure) {
  init_two();
  C_Stream stream = NULL;
  C_Event before = NULL;
  C_Event behind = NULL;
  assert_done(table.create_stream(&ids[0], &stream));
  assert_done(table.create_event(&ids[0], &before));
  assert_done(table.create_event(&ids[0], &behind));
  assert_done(table.record_event(&ids[0], stream, before));
  tarn__common_queue_op op = {
      .run = go_wrong, .brief = true, .call = {.stream = stream}};
  assert_done(tarn__queue_submit(stream, &op));
  assert_done(table.record_event(&ids[0], stream, behind));
  assert_done(table.query_event(&ids[0], before));
  assert_c(table.query_event(&ids[0], behind), C_ERROR);
  assert_c(table.synchronize_event(&ids[0], behind), C_ERROR);
  assert_c(table.query_stream(&ids[0], stream), C_ERROR);
  finalize();
}

TEST(bad_arguments) {
  struct C_Device_st third = {2};
  size_t size = 1;
  void *ptr = bytes;
  fill_table();
  assert_refused(table.init_device(&ids[0]), "init_device: device 0 of 0");
  init_two();
  assert_refused(table.set_device(&third), "sim: set_device: device 2 of 2");
  assert_refused(table.set_device(NULL), "no device");
  assert_refused(table.device_memory_allocate(&ids[0], NULL, 1), "nowhere");
  assert_refused(table.device_memory_allocate(&ids[0], &ptr, 0), "no bytes");
  ck_assert_ptr_null(ptr);
  char *a = table_take(64);
  assert_refused(table.memory_copy_h2d(&ids[0], a, bytes, 0), "no bytes");
  assert_refused(table.memory_copy_h2d(&ids[0], a, NULL, 1), "no address");
  assert_refused(table.memory_copy_d2d(&ids[0], a, a + 1, 8), "ends overlap");
  assert_refused(table.async_memory_copy_h2d(&ids[0], NULL, a, bytes, 1),
                 "no stream of this device");
  assert_c(table.device_min_chunk_size(&ids[0], NULL), C_ERROR);
  assert_c(table.device_memory_stats(&ids[0], &size, NULL), C_ERROR);
  assert_c(table.get_device_count(NULL), C_ERROR);
  assert_done(table.deinit_device(&ids[0]));
  ptr = bytes;
  assert_refused(table.device_memory_allocate(&ids[0], &ptr, 64),
                 "sim:0: device_memory_allocate before init_device");
  ck_assert_ptr_null(ptr);
  finalize();
}

// PaddlePaddle calls init_device when it first needs memory or a stream, and
// all of this before.
TEST(what_may_be_asked_before_init_device) {
  struct C_Device_st current = {0};
  size_t total = 0;
  size_t available = 0;
  size_t size = 0;
  fill_table();
  assert_done(table.initialize());
  assert_done(table.set_device(&ids[1]));
  assert_done(table.get_device(&current));
  ck_assert_int_eq(current.id, 1);
  assert_done(table.synchronize_device(&ids[1]));
  assert_done(table.device_memory_stats(&ids[1], &total, &available));
  ck_assert_uint_gt(total, 0);
  ck_assert_uint_eq(available, total);
  assert_done(table.device_min_chunk_size(&ids[1], &size));
  ck_assert_uint_eq(size, 256);
  assert_done(table.device_max_chunk_size(&ids[1], &size));
  ck_assert_uint_eq(size, total);
  assert_done(table.device_max_alloc_size(&ids[1], &size));
  ck_assert_uint_eq(size, total);
  assert_done(table.device_init_alloc_size(&ids[1], &size));
  ck_assert_uint_gt(size, 0);
  assert_done(table.device_realloc_size(&ids[1], &size));
  ck_assert_uint_gt(size, 0);
  assert_done(table.device_extra_padding_size(&ids[1], &size));
  ck_assert_uint_eq(size, 0);
  ck_assert_uint_eq(sim_misuses(), 0);
  finalize();
}

// A stream or event of one device is refused by another; only a wait for an
// event may be on another.
TEST(streams_of_another_device) {
  C_Stream stream = NULL;
  C_Event event = NULL;
  init_two();
  assert_done(table.create_stream(&ids[0], &stream));
  assert_done(table.create_event(&ids[1], &event));
  assert_c(table.query_stream(&ids[1], stream), C_ERROR);
  assert_c(table.synchronize_stream(&ids[1], stream), C_ERROR);
  assert_c(table.destroy_stream(&ids[1], stream), C_ERROR);
  assert_c(table.record_event(&ids[0], stream, event), C_ERROR);
  assert_c(table.query_event(&ids[0], event), C_ERROR);
  assert_done(table.stream_wait_event(&ids[0], stream, event));
  assert_c(table.destroy_event(&ids[0], event), C_ERROR);
  finalize();  // ends both
}

static void keep_line(void *context, tarn_log_level level, const char *line) {
  if (level == TARN_LOG_ERROR) snprintf(context, 256, "%s", line);
}

TEST(the_log_and_a_file_have_it_too) {
  char path[] = "/tmp/tarn-sim-report-XXXXXX";
  char logged[256] = "";
  char text[1024] = "";
  int fd = mkstemp(path);
  ck_assert_int_ge(fd, 0);
  sim_set("TARN_SIM_REPORT", path);
  tarn_log_set(keep_line, logged, TARN_LOG_ERROR);
  open_two();
  assert_misuse(tarn_device_set(sim0, 64, 0, 1, NULL), "wrong direction");
  assert_misuse(tarn_device_set(sim1, 64, 0, 2, NULL), "wrong direction");
  close_two();
  ck_assert_int_gt(read(fd, text, sizeof text - 1), 0);
  close(fd);
  unlink(path);
  ck_assert_ptr_nonnull(strstr(text, "sim:0: device_memory_set of 1 bytes"));
  ck_assert_ptr_nonnull(strstr(text, "\nsim:1: device_memory_set of 2 bytes"));
  ck_assert_ptr_nonnull(strstr(logged, "sim:1: device_memory_set of 2 bytes"));
}
