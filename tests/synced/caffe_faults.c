// Calls of Caffe's SyncedMemory, wraps, views and evictions while each host
// allocation and each call of the device fails in turn. After any failure the
// buffer has its contents.
#include <stdio.h>

#include "caffe_kit.h"
#include "support/effort.h"
#include "support/faults.h"

enum { TURNS = 4 };  // memory of the program's own, for wraps

typedef struct run {
  unsigned char want[SIZE];  // what the buffer is to have
  bool lost[SIZE];
  size_t failed;  // calls
  size_t wrapped;
  size_t let_go;
  unsigned seed;
} run;

static run now;
static unsigned char outside[TURNS][SIZE];
static tarn_addr outside_device;
static tarn_stream *stream;

static bool went_well(tarn_status status) {
  if (status == TARN_OK) return true;
  if (status != TARN_E_NOMEM && status != TARN_E_DEVICE &&
      status != TARN_FULL) {
    ck_abort_msg("%s: %s", tarn_status_name(status), tarn_last_error());
  }
  require(tarn_last_error()[0] != '\0');
  now.failed++;
  return false;
}

static void expect(size_t offset, size_t size, unsigned seed) {
  fill_pattern(now.want + offset, offset, size, seed);
  memset(now.lost + offset, 0, size);
}

static void assert_wanted(const unsigned char *got) {
  for (size_t i = 0; i < SIZE; i++)
    require(now.lost[i] || got[i] == now.want[i]);
}

// --- steps -----------------------------------------------------------------

static void write_at_cpu(void) {
  void *data = NULL;
  if (!went_well(tarn_synced_mutable_cpu_data(x, &data))) {
    require(data == NULL);
    return;
  }
  assert_wanted(data);
  fill_pattern(data, 0, SIZE, ++now.seed);
  expect(0, SIZE, now.seed);
}

// A copy of the test's own that fails has done nothing.
static void write_at_gpu(void) {
  tarn_addr data = 0;
  unsigned char bytes[SIZE];
  if (!went_well(tarn_synced_mutable_gpu_data(x, &data))) {
    require(data == 0);
    return;
  }
  fill_pattern(bytes, 0, SIZE, ++now.seed);
  if (tarn_copy_h2d(gpu, data, bytes, SIZE, NULL) == TARN_OK) {
    expect(0, SIZE, now.seed);
  }
}

static void read_at_cpu(void) {
  const void *data = NULL;
  if (went_well(tarn_synced_cpu_data(x, &data))) assert_wanted(data);
}

static void read_at_gpu(void) {
  tarn_addr data = 0;
  unsigned char bytes[SIZE];
  if (!went_well(tarn_synced_gpu_data(x, &data))) return;
  if (tarn_copy_d2h(gpu, bytes, data, SIZE, NULL) == TARN_OK) {
    assert_wanted(bytes);
  }
}

static void push(void) {
  if (tarn_synced_head(x) != TARN_HEAD_AT_CPU) return;
  tarn_status status = tarn_synced_async_gpu_push(x, stream);
  if (went_well(status)) {
    tarn_status landed = tarn_stream_synchronize(stream);
    require(landed == TARN_OK || landed == TARN_E_DEVICE);
  }
}

static void take_back(void *context, tarn_place place, tarn_addr address,
                      size_t size) {
  (void)place;
  require(context == &now && address != 0 && size == SIZE);
  now.let_go++;
}

static bool wrap_at(tarn_place place, tarn_addr address, uint32_t flags) {
  tarn_wrap_options options = {.struct_size = sizeof options,
                               .flags = flags,
                               .deleter = take_back,
                               .context = &now};
  tarn_status status = tarn_synced_wrap(x, place, address, &options);
  bool empty = (flags & TARN_WRAP_EMPTY) != 0;
  // A copy that was to be made before has failed.
  if (status == TARN_E_STATE && empty && now.failed > 0) return false;
  if (!went_well(status)) return false;
  now.wrapped++;
  return true;
}

static void wrap_host(size_t turn, uint32_t flags) {
  unsigned char *bytes = outside[turn];
  fill_pattern(bytes, 0, SIZE, ++now.seed);
  if (!wrap_at(TARN_HOST, (uintptr_t)bytes, flags)) return;
  if ((flags & TARN_WRAP_EMPTY) == 0) expect(0, SIZE, now.seed);
}

static void borrow(size_t turn) {
  fill_pattern(outside[turn], 0, SIZE, ++now.seed);
  if (went_well(tarn_synced_set_cpu_data(x, outside[turn]))) {
    expect(0, SIZE, now.seed);
  }
}

static void evict(tarn_place place) {
  if (went_well(tarn_synced_evict(x, place))) {
    ck_assert_uint_eq(info_at(place).memory, 0);
  }
}

static void write_through(tarn_synced *view) {
  tarn_access access;
  tarn_status status = tarn_synced_begin(view, 0, TARN_ALL, TARN_HOST,
                                         TARN_WRITE_DISCARD, NULL, &access);
  if (!went_well(status)) return;
  fill_pattern(access.pointer, access.offset, access.size, ++now.seed);
  expect(access.offset, access.size, now.seed);
  if (went_well(tarn_synced_end(&access))) return;
  memset(now.lost + 100, 1, 1000);  // cancelled
}

static void use_view(void) {
  tarn_synced *view = NULL;
  if (!went_well(tarn_synced_view(x, 100, 1000, &view))) return;
  write_through(view);
  assert_ok(tarn_synced_destroy(view));
}

static void drop_some(void) {
  if (went_well(tarn_synced_invalidate(x, 300, 50))) {
    memset(now.lost + 300, 1, 50);
  }
}

static void mend(void) {
  tarn_access access;
  tarn_status status = tarn_synced_begin(x, 200, 200, tarn_place_on(other),
                                         TARN_WRITE_DISCARD, NULL, &access);
  unsigned char bytes[200];
  if (!went_well(status)) return;
  fill_pattern(bytes, 200, 200, ++now.seed);
  status = tarn_copy_h2d(other, access.address, bytes, 200, NULL);
  if (status == TARN_OK) {
    assert_ok(tarn_synced_end(&access));
    expect(200, 200, now.seed);
  } else {
    size_t lost = 0;
    assert_ok(tarn_synced_cancel(&access, &lost));
  }
}

static tarn_status count(void *context, const tarn_synced_open *open) {
  *(size_t *)context += open->handles;
  return TARN_OK;
}

static void ask(void) {
  size_t handles = 0;
  if (went_well(tarn_synced_each_open(count, &handles))) {
    ck_assert_uint_eq(handles, 1);
  }
}

static void all_steps(void) {
  read_at_cpu();
  write_at_cpu();
  push();
  write_at_gpu();
  read_at_cpu();
  borrow(0);
  write_at_gpu();
  read_at_cpu();  // into memory of its own
  wrap_host(1, TARN_WRAP_READ_ONLY);
  read_at_gpu();
  write_at_cpu();
  ask();
  if (wrap_at(tarn_place_on(gpu), outside_device,
              TARN_WRAP_EMPTY | TARN_WRAP_FILL)) {
    read_at_gpu();
  }
  evict(tarn_place_on(gpu));
  use_view();
  write_at_gpu();
  evict(TARN_HOST);
  drop_some();
  mend();
  wrap_host(2, TARN_WRAP_SYNC_BACK | TARN_WRAP_EMPTY);
}

// --- one run ---------------------------------------------------------------

static tarn_status make_x(void) {
  tarn_synced_options options = {
      .struct_size = sizeof options, .name = "x", .device = gpu};
  now = (run){.seed = 1};
  return tarn_synced_create(SIZE, &options, &x);
}

// Nothing fails any more: all is there, and nothing else is lost.
static void assert_all_there(void) {
  unsigned char got[SIZE];
  size_t lost = info_at(TARN_HOST).lost;
  for (size_t at = 0, end = 0; at < SIZE; at = end) {
    tarn_access access;
    end = at + 1;
    while (end < SIZE && now.lost[end] == now.lost[at])
      end++;
    if (now.lost[at]) {
      lost -= end - at;
      continue;
    }
    begin_on(&access, x, at, end - at, TARN_HOST, TARN_READ);
    memcpy(got + at, access.pointer, end - at);
    assert_ok(tarn_synced_end(&access));
  }
  ck_assert_uint_eq(lost, 0);
  assert_wanted(got);
}

static void close_run(void) {
  assert_all_there();
  assert_ok(tarn_synced_destroy(x));
  ck_assert_uint_eq(now.let_go, now.wrapped);
}

static void open_run(void) {
  open_devices(sim());
  outside_device = 0;
  assert_ok(tarn_device_allocate(tarn_place_on(gpu), SIZE, &outside_device));
  stream = stream_on(gpu);
}

static void close_all(void) {
  (void)tarn_stream_destroy(stream);
  assert_ok(tarn_device_deallocate(tarn_place_on(gpu), outside_device, SIZE));
  close_devices();
}

// --- sweeps ----------------------------------------------------------------

static bool run_with_fault(size_t n, faults_mode mode) {
  open_run();
  faults_arm(n, mode);
  bool made = went_well(make_x());
  if (made) all_steps();
  bool struck = faults_disarm();
  if (made) close_run();
  close_all();
  return struck;
}

TEST_LOOP(the_host_s_memory_fails, 2) {
  faults_install();
  for (int i = 0; i < 2; i++)
    (void)run_with_fault(0, FAULTS_ONCE);
  size_t held = tarn_host_memory();
  for (size_t n = 1; run_with_fault(n, (faults_mode)_i); n++) {
    if (tarn_host_memory() != held) {
      ck_abort_msg("fault %zu: %zu bytes, not %zu", n, tarn_host_memory(),
                   held);
    }
  }
  ck_assert_uint_gt(faults_runs(), 20);
}

static size_t run_with_plan(const char *plan) {
  open_run();
  assert_ok(tarn_sim_faults(plan));
  bool made = went_well(make_x());
  if (made) all_steps();
  assert_ok(tarn_sim_faults(NULL));
  size_t failed = now.failed;
  if (made) close_run();
  close_all();
  return failed;
}

static const char *const functions[] = {
    "*",
    "device_memory_allocate",
    "host_memory_allocate",
    "memory_copy_h2d",
    "memory_copy_d2h",
    "memory_copy_d2d",
    "async_memory_copy_h2d",
    "async_memory_copy_d2h",
    "device_memory_set",
    "create_event",
    "record_event",
    "synchronize_event",
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

// Until far behind the last call that there is.
TEST_LOOP(functions_of_the_device_fail, EFFORT(2 * FUNCTIONS, 2)) {
  const char *function = functions[_i / 2];
  const char *mode = _i % 2 == 0 ? "" : "+";
  size_t most = strcmp(function, "*") == 0 ? 160 : 16;
  size_t failed = 0;
  for (size_t n = 1; n <= most; n++) {
    char plan[64];
    snprintf(plan, sizeof plan, "%s@%zu%s", function, n, mode);
    failed = run_with_plan(plan);
  }
  ck_assert_uint_eq(failed, 0);
}

TEST(some_of_them_do_fail) {
  ck_assert_uint_gt(run_with_plan("memory_copy_h2d@1+"), 0);
  ck_assert_uint_gt(run_with_plan("memory_copy_d2h@1+"), 1);
  ck_assert_uint_gt(run_with_plan("*@1+"), 5);
  ck_assert_uint_eq(run_with_plan(""), 0);
}
