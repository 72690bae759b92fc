// Streams of simulated devices: order, latency, overlap, threads, forks.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"
#include "kit.h"

enum { SIZE = 100000 };

static unsigned char in[SIZE];
static unsigned char out[SIZE];

static tarn_stream *stream_on(tarn_device *device) {
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  return stream;
}

TEST(a_stream_keeps_the_order) {
  tarn_device *sim = sim_open("sim");
  tarn_stream *stream = stream_on(sim);
  tarn_addr a = sim_take(sim, SIZE);
  tarn_addr b = sim_take(sim, SIZE);
  for (unsigned round = 0; round < 50; round++) {
    sim_fill(in, SIZE, round);
    assert_ok(tarn_copy_h2d(sim, a, in, SIZE, stream));
    assert_ok(tarn_copy_d2d(sim, b, a, SIZE, stream));
    assert_ok(tarn_copy_d2h(sim, out, b, SIZE, stream));
    assert_ok(tarn_stream_synchronize(stream));
    ck_assert(memcmp(in, out, SIZE) == 0);
  }
  assert_ok(tarn_stream_destroy(stream));
  sim_give(sim, a, SIZE);
  sim_give(sim, b, SIZE);
  assert_ok(tarn_device_close(sim));
  ck_assert_uint_eq(sim_misuses(), 0);
}

// An event orders streams of two devices.
TEST(an_event_crosses_devices) {
  sim_set("TARN_SIM_LATENCY_NS", "10000000");
  tarn_device *sim0 = sim_open("sim:0");
  tarn_device *sim1 = sim_open("sim:1");
  tarn_stream *first = stream_on(sim0);
  tarn_stream *second = stream_on(sim1);
  tarn_event *event = NULL;
  assert_ok(tarn_event_create(sim0, &event));
  tarn_addr a = sim_take(sim0, SIZE);
  tarn_addr b = sim_take(sim1, SIZE);
  sim_fill(in, SIZE, 3);
  assert_ok(tarn_copy_h2d(sim0, a, in, SIZE, first));
  assert_ok(tarn_copy_p2p(sim1, b, sim0, a, SIZE, first));
  assert_ok(tarn_event_record(event, first));
  assert_status(tarn_event_query(event), TARN_PENDING);
  assert_ok(tarn_stream_wait_event(second, event));
  assert_ok(tarn_copy_d2h(sim1, out, b, SIZE, second));
  assert_ok(tarn_stream_synchronize(second));
  ck_assert(memcmp(in, out, SIZE) == 0);
  assert_ok(tarn_event_query(event));
  assert_ok(tarn_event_destroy(event));
  assert_ok(tarn_stream_destroy(second));
  assert_ok(tarn_stream_destroy(first));
  sim_give(sim0, a, SIZE);
  sim_give(sim1, b, SIZE);
  assert_ok(tarn_device_close(sim1));
  assert_ok(tarn_device_close(sim0));
}

TEST(latency_and_bandwidth_take_their_time) {
  sim_set("TARN_SIM_LATENCY_NS", "5000000");
  sim_set("TARN_SIM_BANDWIDTH", "10000000");
  tarn_device *sim = sim_open("sim");
  tarn_stream *stream = stream_on(sim);
  tarn_addr a = sim_take(sim, SIZE);
  tarn_addr b = sim_take(sim, SIZE);
  uint64_t begin = tarn__os_now_ns();
  assert_ok(tarn_copy_h2d(sim, a, in, SIZE, NULL));  // 5 ms and 10 ms
  ck_assert_uint_ge(tarn__os_now_ns() - begin, 15000000);
  begin = tarn__os_now_ns();
  assert_ok(tarn_device_set(sim, a, 1, SIZE, NULL));
  assert_ok(tarn_copy_d2d(sim, b, a, SIZE, NULL));  // nothing leaves the device
  ck_assert_uint_ge(tarn__os_now_ns() - begin, 10000000);
  begin = tarn__os_now_ns();
  assert_ok(tarn_copy_h2d(sim, a, in, 1, stream));
  assert_ok(tarn_copy_d2h(sim, out, a, 1, stream));
  assert_status(tarn_stream_query(stream), TARN_PENDING);
  assert_ok(tarn_stream_synchronize(stream));
  ck_assert_uint_ge(tarn__os_now_ns() - begin, 10000000);
  assert_ok(tarn_stream_destroy(stream));
  sim_give(sim, a, SIZE);
  sim_give(sim, b, SIZE);
  assert_ok(tarn_device_close(sim));
}

// While one stream is at a slow copy, another finishes: no clock is read, only
// what is done and what is not.
TEST(streams_overlap) {
  sim_set("TARN_SIM_LATENCY_NS", "200000000");
  tarn_device *sim = sim_open("sim");
  tarn_stream *slow = stream_on(sim);
  tarn_stream *quick = stream_on(sim);
  tarn_addr a = sim_take(sim, 64);
  tarn_addr b = sim_take(sim, 64);
  for (int i = 0; i < 4; i++)
    assert_ok(tarn_copy_h2d(sim, a, in, 64, slow));
  assert_ok(tarn_copy_h2d(sim, b, in, 64, quick));
  assert_ok(tarn_stream_synchronize(quick));
  assert_status(tarn_stream_query(slow), TARN_PENDING);
  assert_ok(tarn_stream_destroy(slow));
  assert_ok(tarn_stream_destroy(quick));
  sim_give(sim, b, 64);
  sim_give(sim, a, 64);
  assert_ok(tarn_device_close(sim));
}

static void count_one(void *context, tarn_status status) {
  if (status == TARN_OK) ++*(int *)context;
}

TEST(callbacks_come_behind_copies) {
  int count = 0;
  sim_set("TARN_SIM_LATENCY_NS", "1000000");
  tarn_device *sim = sim_open("sim");
  tarn_stream *stream = stream_on(sim);
  tarn_addr a = sim_take(sim, 64);
  for (int i = 0; i < 3; i++) {
    assert_ok(tarn_copy_h2d(sim, a, in, 64, stream));
    assert_ok(tarn_stream_add_callback(stream, count_one, &count));
  }
  assert_ok(tarn_device_synchronize(sim));
  ck_assert_int_eq(count, 3);
  assert_ok(tarn_stream_destroy(stream));
  sim_give(sim, a, 64);
  assert_ok(tarn_device_close(sim));
}

// --- threads ---------------------------------------------------------------

enum { THREADS = 6, ROUNDS = 200, MOST = 70000 };

typedef struct user {
  tarn_device *device;
  unsigned number;
  unsigned char *in;
  unsigned char *out;
  bool well;
} user;

static bool use_once(const user *u, tarn_stream *stream, size_t size) {
  tarn_addr a = 0;
  tarn_place place = tarn_place_on(u->device);
  memset(u->in, (int)(u->number + size), size);
  return tarn_device_allocate(place, size, &a) == TARN_OK &&
         tarn_copy_h2d(u->device, a, u->in, size, stream) == TARN_OK &&
         tarn_copy_d2h(u->device, u->out, a, size, stream) == TARN_OK &&
         tarn_stream_synchronize(stream) == TARN_OK &&
         memcmp(u->in, u->out, size) == 0 &&
         tarn_device_deallocate(place, a, size) == TARN_OK;
}

static void *use(void *context) {
  user *u = context;
  tarn_stream *stream = NULL;
  u->well = tarn_stream_create(u->device, &stream) == TARN_OK;
  for (size_t i = 0; u->well && i < ROUNDS; i++) {
    u->well = use_once(u, stream, 1 + i * 7919 % MOST);
  }
  u->well = tarn_stream_destroy(stream) == TARN_OK && u->well;
  return NULL;
}

TEST(threads_share_devices) {
  pthread_t threads[THREADS];
  user users[THREADS];
  tarn_device *sims[2] = {sim_open("sim:0"), sim_open("sim:1")};
  size_t before = sim_free_memory(sims[0]);
  for (unsigned i = 0; i < THREADS; i++) {
    users[i] = (user){sims[i % 2], i, malloc(MOST), malloc(MOST), false};
    ck_assert_int_eq(pthread_create(&threads[i], NULL, use, &users[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    ck_assert(users[i].well);
    free(users[i].in);
    free(users[i].out);
  }
  ck_assert_uint_eq(sim_free_memory(sims[0]), before);
  ck_assert_uint_eq(sim_misuses(), 0);
  assert_ok(tarn_device_close(sims[0]));
  assert_ok(tarn_device_close(sims[1]));
}

// --- forks -----------------------------------------------------------------

static int use_as_a_child(tarn_device *parents) {
  tarn_device *device = NULL;
  size_t total = 0;
  size_t available = 0;
  if (tarn_device_open("sim:1", &device) != TARN_E_STATE) return 1;
  if (tarn_device_memory(parents, &total, &available) != TARN_E_STATE) return 2;
  if (tarn_device_close(parents) != TARN_OK) return 3;
  C_DeviceInterface table = {.size = sizeof table};
  CustomRuntimeParams params = {.size = sizeof params, .interface = &table};
  InitPlugin(&params);
  if (table.initialize() != C_ERROR) return 4;
  return table.set_device(&(struct C_Device_st){0}) == C_ERROR ? 0 : 5;
}

TEST(a_child_has_no_part_in_it) {
  tarn_device *sim = sim_open("sim:0");
  int status = 0;
  pid_t child = fork();
  if (child == 0) _exit(use_as_a_child(sim));
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  tarn_addr a = sim_take(sim, 64);
  sim_give(sim, a, 64);
  assert_ok(tarn_device_close(sim));
}
