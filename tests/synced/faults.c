// Faults: host memory and every call of the driver fail, one after the other
// and all together. What was committed last is there when they stop, or the
// buffer says that it is lost, which only the work of streams and what a
// cancelled write had for itself may be.
#include "faults_kit.h"
#include "support/strategy.h"

// ---------------------------------------------------------------------------
// Scenarios
// ---------------------------------------------------------------------------

static void play_synchronous(void) {
  tarn_synced *b = run.buffer;
  put(b, 0, SIZE, TARN_HOST, TARN_WRITE_DISCARD, 0, 1);
  look(b, 0, SIZE, device_place(0), 0);
  put(b, 128, 256, device_place(0), TARN_READ_WRITE, 0, 2);
  put(b, 512, 200, device_place(1), TARN_WRITE_DISCARD, 0, 3);
  look(b, 64, 700, device_place(1), 0);
  cancel(0, 300, device_place(1), 0);
  look(b, 0, SIZE, TARN_HOST, 0);
  well(tarn_synced_prefetch(b, 0, SIZE, device_place(0), NULL, NULL));
  well(tarn_synced_evict(b, device_place(1)));
  put(b, 100, 33, device_place(0), TARN_WRITE_DISCARD, 0, 4);
  well(tarn_synced_evict(b, device_place(0)));
  take_away(640, 64);
  put(b, 0, 10, TARN_HOST, TARN_READ_WRITE, 0, 5);
  well(tarn_synced_push(b, 0, 640, NULL, NULL));
  well(tarn_synced_pull(b, 0, 640, NULL, NULL));
  well(tarn_synced_evict(b, TARN_HOST));
}

static void play_streams(void) {
  tarn_synced *b = run.buffer;
  put(b, 0, SIZE, TARN_HOST, TARN_WRITE_DISCARD, 0, 11);
  look(b, 0, SIZE, device_place(0), 1);
  put(b, 256, 256, device_place(0), TARN_READ_WRITE, 1, 12);
  look(b, 128, 512, device_place(1), 2);
  put(b, 0, 256, device_place(1), TARN_WRITE_DISCARD, 2, 13);
  well(tarn_synced_push(b, 0, SIZE, run.streams[1], NULL));
  cancel(64, 64, device_place(0), 1);
  well(tarn_synced_pull(b, 0, SIZE, run.streams[2], NULL));
  put(b, 512, 64, TARN_HOST, TARN_READ_WRITE, 0, 14);
  tarn_event *event = NULL;
  if (well(tarn_event_create(run.devices[0], &event))) {
    well(tarn_synced_prefetch(b, 0, SIZE, device_place(0), run.streams[1],
                              event));
    well(tarn_event_synchronize(event));
    (void)tarn_event_destroy(event);
  }
  put(b, 700, 100, device_place(0), TARN_WRITE_DISCARD, 1, 15);
  put(b, 0, SIZE, TARN_HOST, TARN_WRITE_DISCARD, 0, 16);
  well(tarn_synced_async_gpu_push(b, run.streams[1]));
  look(b, 0, SIZE, TARN_HOST, 0);
}

static void play_views(void) {
  tarn_synced *b = run.buffer;
  tarn_synced *view = NULL;
  put(b, 0, SIZE, TARN_HOST, TARN_WRITE_DISCARD, 0, 21);
  if (!well(tarn_synced_view(b, SIZE / 4, SIZE / 2, &view))) {
    require(view == NULL);
    return;
  }
  put(view, 64, 64, device_place(0), TARN_WRITE_DISCARD, 1, 22);
  look(b, 300, 200, TARN_HOST, 0);
  look(view, 0, SIZE / 2, device_place(1), 2);
  tarn_synced_info info = {.struct_size = sizeof info};
  assert_ok(tarn_synced_query(view, 0, TARN_ALL, TARN_HOST, &info));
  ck_assert_uint_eq(tarn_synced_size(view), SIZE / 2);
  well(tarn_synced_destroy(view));
}

// The calls of Caffe's SyncedMemory: all bytes of one pattern, wherever they
// are.
static void play_caffe(void) {
  tarn_synced *b = run.buffer;
  const void *read = NULL;
  void *write = NULL;
  tarn_addr address = 0;
  if (well(tarn_synced_cpu_data(b, &read))) {
    require(memcmp(read, run.value, SIZE) == 0);
  }
  require(tarn_synced_head(b) ==
          (read != NULL ? TARN_HEAD_AT_CPU : TARN_UNINITIALIZED));
  if (well(tarn_synced_mutable_cpu_data(b, &write))) {
    memcpy(write, patterns[31], SIZE);
    committed(0, SIZE, 0, patterns[31]);
  }
  well(tarn_synced_gpu_data(b, &address));
  address = 0;
  if (well(tarn_synced_mutable_gpu_data(b, &address)) &&
      well(tarn_copy_h2d(run.devices[0], address, patterns[32], SIZE, NULL))) {
    committed(0, SIZE, 0, patterns[32]);
  }
  read = NULL;
  if (well(tarn_synced_cpu_data(b, &read))) {
    require(memcmp(read, run.value, SIZE) == 0);
  }
}

// ---------------------------------------------------------------------------
// Outside memory
// ---------------------------------------------------------------------------

static size_t deleted;

static void delete_it(void *context, tarn_place place, tarn_addr address,
                      size_t size) {
  (void)place;
  (void)address;
  require(size == SIZE);
  *(bool *)context = true;
  deleted++;
}

static void play_outside(void) {
  static unsigned char set[SIZE], borrowed[SIZE], filled[SIZE], given[SIZE];
  tarn_synced *b = run.buffer;
  memcpy(set, patterns[39], SIZE);
  memcpy(borrowed, patterns[41], SIZE);
  memcpy(filled, patterns[42], SIZE);
  memcpy(given, patterns[43], SIZE);
  bool gone = false;
  if (well(tarn_synced_set_cpu_data(b, set))) {
    committed(0, SIZE, 0, set);
  }
  put(b, 0, 128, device_place(0), TARN_WRITE_DISCARD, 0, 40);
  look(b, 0, SIZE, TARN_HOST, 0);  // copied into it
  if (well(tarn_synced_wrap(b, TARN_HOST,
                            (tarn_addr)(uintptr_t)(void *)borrowed, NULL))) {
    committed(0, SIZE, 0, borrowed);
  }
  put(b, 0, 128, device_place(0), TARN_WRITE_DISCARD, 0, 44);
  look(b, 0, SIZE, TARN_HOST, 0);  // moves to memory of its own
  require(memcmp(borrowed, patterns[41], SIZE) == 0);
  tarn_wrap_options options = {
      .struct_size = sizeof options, .deleter = delete_it, .context = &gone};
  size_t before = deleted;
  if (well(tarn_synced_wrap(b, TARN_HOST, (tarn_addr)(uintptr_t)(void *)given,
                            &options))) {
    committed(0, SIZE, 0, given);
    well(tarn_synced_evict(b, TARN_HOST));
    require(gone || deleted == before);
  }
  options = (tarn_wrap_options){.struct_size = sizeof options,
                                .flags = TARN_WRAP_FILL | TARN_WRAP_SYNC_BACK};
  if (well(tarn_synced_wrap(b, TARN_HOST, (tarn_addr)(uintptr_t)(void *)filled,
                            &options))) {
    if (deleted == before) require(!gone);
    committed(0, SIZE, 0, filled);
    put(b, 200, 100, device_place(1), TARN_READ_WRITE, 0, 45);
    if (well(tarn_synced_evict(b, TARN_HOST))) {
      require(memcmp(filled, run.value, SIZE) == 0);
    }
  }
}

static void play_device_memory(void) {
  tarn_addr address = 0;
  if (!well(tarn_device_allocate(device_place(0), SIZE, &address))) return;
  tarn_synced *b = run.buffer;
  put(b, 0, SIZE, TARN_HOST, TARN_WRITE_DISCARD, 0, 51);
  if (well(tarn_copy_h2d(run.devices[0], address, patterns[52], SIZE, NULL)) &&
      well(tarn_synced_set_gpu_data(b, address))) {
    committed(0, SIZE, 0, patterns[52]);
    look(b, 0, SIZE, TARN_HOST, 0);
    put(b, 0, 64, TARN_HOST, TARN_READ_WRITE, 0, 53);
    look(b, 0, SIZE, device_place(0), 0);  // copied into it
  }
  // It must have been let go before it is freed, and that may fail a while.
  (void)faults_disarm();
  (void)!tarn_sim_faults(NULL);
  tarn_status status = tarn_synced_evict(b, device_place(0));
  require(status == TARN_OK || status == TARN_E_DEVICE);
  assert_ok(tarn_device_deallocate(device_place(0), address, SIZE));
}

static tarn_status see_traffic(void *context, const tarn_traffic *traffic) {
  (void)traffic;
  ++*(size_t *)context;
  return TARN_OK;
}

static tarn_status see_open(void *context, const tarn_synced_open *open) {
  require(strcmp(open->name, "faulty") == 0 && open->size == SIZE);
  ++*(size_t *)context;
  return TARN_OK;
}

static void play_reports(void) {
  put(run.buffer, 0, SIZE, TARN_HOST, TARN_WRITE_DISCARD, 0, 61);
  look(run.buffer, 0, SIZE, device_place(1), 0);
  size_t pairs = 0;
  size_t open = 0;
  well(tarn_synced_traffic(run.buffer, see_traffic, &pairs));
  well(tarn_synced_traffic(NULL, see_traffic, &pairs));
  if (well(tarn_synced_each_open(see_open, &open))) require(open == 1);
  well(tarn_synced_traffic_reset(run.buffer));
  well(tarn_synced_traffic_reset(NULL));
  if (well(tarn_synced_trace(NULL, NULL))) {
    require(tarn_synced_happening_name(TARN_SYNCED_COPIED) != NULL);
    require(tarn_synced_state_name(TARN_SYNCED) != NULL);
  }
  well(tarn_synced_trace(count_lost, NULL));
}

// Two buffers that have the same bytes in turn.
static void play_turns(void) {
  static unsigned char both[SIZE];
  tarn_synced *other = NULL;
  tarn_wrap_options options = {.struct_size = sizeof options,
                               .flags = TARN_WRAP_EMPTY | TARN_WRAP_FILL};
  tarn_addr address = (tarn_addr)(uintptr_t)(void *)both;
  tarn_access a;
  if (!well(tarn_synced_create(SIZE, NULL, &other))) return;
  bool shared =
      well(tarn_synced_wrap(run.buffer, TARN_HOST, address, &options)) &&
      well(tarn_synced_wrap(other, TARN_HOST, address, &options)) &&
      well(tarn_synced_suspend(run.buffer, "another's turn"));
  if (shared && well(tarn_synced_follow(other, run.buffer)) &&
      well(tarn_synced_begin(other, 0, TARN_ALL, TARN_HOST, TARN_WRITE_DISCARD,
                             NULL, &a))) {
    memset(a.pointer, 5, SIZE);
    well(tarn_synced_end(&a));
    assert_status(tarn_synced_begin(run.buffer, 0, 1, TARN_HOST,
                                    TARN_WRITE_DISCARD, NULL, &a),
                  TARN_E_STATE);
    well(tarn_synced_prefetch(other, 0, TARN_ALL, device_place(1),
                              run.streams[2], NULL));
  }
  (void)!tarn_synced_suspend(other, "no turn");
  if (shared) {
    memset(run.invalid, 1, sizeof run.invalid);
    well(tarn_synced_follow(run.buffer, other));
    assert_ok(tarn_synced_resume(run.buffer));
    put(run.buffer, 0, SIZE, TARN_HOST, TARN_WRITE_DISCARD, 0, 71);
    look(run.buffer, 0, SIZE, device_place(0), 1);
  }
  tarn_status ended = tarn_synced_destroy(other);
  require(ended == TARN_OK || ended == TARN_E_DEVICE);
}

static void (*const plays[])(void) = {
    play_synchronous, play_streams,       play_views,   play_caffe,
    play_outside,     play_device_memory, play_reports, play_turns,
};

enum { PLAYS = sizeof plays / sizeof plays[0] };

static void scenario(void *context) {
  void (*const *play)(void) = context;
  run_scenario(*play);
}

// ---------------------------------------------------------------------------
// Tests
// ---------------------------------------------------------------------------

static void set_up_fake(void) {
  faults_install();
  make_patterns();
  fake_add();
  run.names[0] = "fake:0";
  run.names[1] = "fake:1";
  assert_ok(use_strategy(TARN_HOST, "no_pool"));
  assert_ok(tarn_synced_trace(count_lost, NULL));
}

static void warm_up(void (*play)(void)) {
  run.failures = 0;
  run_scenario(play);
  ck_assert_uint_eq(run.failures, 0);
  ck_assert_uint_eq(run.told_lost, 0);
}

TEST_LOOP(host_memory_may_fail_anywhere, PLAYS) {
  set_up_fake();
  warm_up(plays[_i]);
  void (*play)(void) = plays[_i];
  ck_assert_uint_gt(faults_sweep(scenario, (void *)&play), 10);
  warm_up(plays[_i]);
  ck_assert_uint_eq(fake_seen.live_bytes, 0);
}

TEST_LOOP(any_call_of_the_driver_may_fail, PLAYS) {
  set_up_fake();
  warm_up(plays[_i]);
  fake.strikes = true;
  void (*play)(void) = plays[_i];
  ck_assert_uint_gt(faults_sweep(scenario, (void *)&play), 20);
  ck_assert_uint_eq(fake_seen.wrong_size, 0);
  fake.strikes = false;
  warm_up(plays[_i]);
}

// Until a run meets no fault any more.
static size_t sweep_function(const char *function, const char *later,
                             void (*play)(void)) {
  size_t struck = 0;
  for (unsigned n = 1; n < 400; n++) {
    char plan[96];
    snprintf(plan, sizeof plan, "%s@%u%s", function, n, later);
    assert_ok(tarn_sim_faults(plan));
    run.failures = 0;
    size_t held = tarn_host_memory();
    run_scenario(play);
    if (tarn_host_memory() != held) {
      ck_abort_msg("%s: %zu bytes leaked", plan, tarn_host_memory() - held);
    }
    if (run.failures == 0) break;
    struck++;
  }
  return struck;
}

// On threads of their own, slow, and with memory that the host cannot touch.
TEST_LOOP(simulated_devices_fail, PLAYS) {
  static const char *const functions[] = {"device_memory_allocate",
                                          "memory_copy_h2d",
                                          "memory_copy_d2h",
                                          "memory_copy_d2d",
                                          "async_memory_copy_h2d",
                                          "async_memory_copy_d2h",
                                          "async_memory_copy_p2p",
                                          "memory_copy_p2p",
                                          "create_stream",
                                          "create_event",
                                          "record_event",
                                          "synchronize_event",
                                          "stream_wait_event",
                                          "synchronize_stream",
                                          "query_event",
                                          "host_memory_allocate",
                                          "device_memory_set"};
  tarn_sim_options options = {.struct_size = sizeof options,
                              .capacity = (size_t)1 << 20,
                              .latency_ns = 5000};
  assert_ok(tarn_sim_configure(&options));
  make_patterns();
  run.names[0] = "sim:0";
  run.names[1] = "sim:1";
  assert_ok(use_strategy(TARN_HOST, "no_pool"));
  assert_ok(tarn_synced_trace(count_lost, NULL));
  warm_up(plays[_i]);
  size_t struck = 0;
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    for (size_t k = 0; k < EFFORT(2, 1); k++) {
      bool later = (i + k) % 2 != 0;
      struck += sweep_function(functions[i], later ? "+" : "", plays[_i]);
    }
  }
  ck_assert_uint_gt(struck, 3);
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 0), 0);
  warm_up(plays[_i]);
}
