// Many threads with known bytes use them at all places, while other threads
// evict, prefetch, wrap, query, follow, suspend, and make streams fail. A byte
// has the value its thread wrote last, or is reported lost.
#include "mix_kit.h"

enum {
  MEDDLERS = 3,  // threads that know no bytes
  ROUNDS = EFFORT(4, 2),
};

// That buffers are given to keep.
static unsigned char outside[BUFFERS][4][WHOLE];

// ---------------------------------------------------------------------------
// Threads that meddle
// ---------------------------------------------------------------------------

typedef struct meddler {
  uint64_t random;
  tarn_stream *streams[2];
  tarn_event *events[2];
  size_t number;  // of the buffer, this time
  tarn_synced *buffer;
} meddler;

static tarn_status look(void *context, const tarn_synced_open *open) {
  *(size_t *)context += open->accesses;
  return TARN_OK;
}

static void heed(void *context, const tarn_synced_event *event) {
  (void)context;
  expect(tarn_synced_happening_name(event->what) != NULL);
}

static void give_away(void *context, tarn_place place, tarn_addr address,
                      size_t size) {
  (void)context;
  expect(place.kind == TARN_PLACE_HOST && size == WHOLE);
  free((void *)(uintptr_t)address);
}

static void wrap_empty(meddler *m) {
  tarn_wrap_options options = {.struct_size = sizeof options,
                               .flags = TARN_WRAP_EMPTY};
  uint64_t way = next_random(&m->random) % 4;
  if (way == 0) options.flags |= TARN_WRAP_FILL;
  if (way == 1) options.flags |= TARN_WRAP_SYNC_BACK;
  void *memory = outside[m->number][way];
  if (way == 2) {
    memory = malloc(WHOLE);
    options.deleter = give_away;
  }
  tarn_status status = tarn_synced_wrap(m->buffer, TARN_HOST,
                                        (tarn_addr)(uintptr_t)memory, &options);
  bool only_copy = status == TARN_E_STATE && says("only copy");
  expect(only_copy || is_allowed(status));
  if (status != TARN_OK && way == 2) free(memory);
}

static void fetch_some(meddler *m) {
  size_t start = next_random(&m->random) % WHOLE;
  size_t size = next_random(&m->random) % (WHOLE - start + 1);
  size_t device = next_random(&m->random) % 2;
  bool queued = chance(&m->random, 2);
  tarn_stream *stream = queued ? m->streams[device] : NULL;
  tarn_event *event =
      queued && chance(&m->random, 2) ? m->events[device] : NULL;
  switch (next_random(&m->random) % 3) {
    case 0:
      expect_allowed(tarn_synced_push(m->buffer, start, size, stream, event));
      break;
    case 1:
      expect_allowed(tarn_synced_pull(m->buffer, start, size, stream, event));
      break;
    default:
      expect_allowed(tarn_synced_prefetch(m->buffer, start, size,
                                          spots[next_random(&m->random) % 4],
                                          stream, event));
  }
}

static void ask(meddler *m) {
  tarn_synced_info info = {.struct_size = sizeof info};
  tarn_place place = spots[next_random(&m->random) % 4];
  size_t open = 0;
  expect(tarn_synced_query(m->buffer, 1, WHOLE - 2, place, &info) == TARN_OK);
  expect(info.valid <= WHOLE - 2 && info.pending <= info.valid);
  expect(tarn_synced_state_name(tarn_synced_head(m->buffer)) != NULL);
  expect(tarn_synced_each_open(look, &open) == TARN_OK);
}

static void view_and_read(meddler *m) {
  tarn_synced *view = NULL;
  tarn_access a;
  size_t start = next_random(&m->random) % WHOLE;
  if (tarn_synced_view(m->buffer, start, WHOLE - start, &view) != TARN_OK) {
    expect(false);
    return;
  }
  tarn_status status =
      tarn_synced_begin(view, 0, TARN_ALL, spots[next_random(&m->random) % 4],
                        TARN_READ, NULL, &a);
  expect_allowed(status);
  if (status == TARN_OK) {
    expect(tarn_synced_destroy(view) == TARN_E_STATE);
    expect_allowed(tarn_synced_end(&a));
  }
  expect_allowed(tarn_synced_destroy(view));
}

static void use_caffe(meddler *m) {
  const void *data = NULL;
  tarn_addr address = 0;
  tarn_stream *stream = m->streams[named];
  switch (next_random(&m->random) % 3) {
    case 0:
      expect_allowed(tarn_synced_cpu_data(m->buffer, &data));
      break;
    case 1:
      expect_allowed(tarn_synced_gpu_data(m->buffer, &address));
      break;
    default: {
      tarn_status status = tarn_synced_async_gpu_push(m->buffer, stream);
      expect(is_allowed(status) || says("not HEAD_AT_CPU"));
    }
  }
}

static tarn_status sum(void *context, const tarn_traffic *traffic) {
  *(uint64_t *)context += traffic->copies;
  return TARN_OK;
}

static void count(meddler *m) {
  uint64_t copies = 0;
  bool all = chance(&m->random, 2);
  expect(tarn_synced_traffic(all ? NULL : m->buffer, sum, &copies) == TARN_OK);
  if (chance(&m->random, 4)) {
    expect(tarn_synced_traffic_reset(all ? NULL : m->buffer) == TARN_OK);
  }
  expect(tarn_synced_trace(chance(&m->random, 2) ? heed : NULL, NULL) ==
         TARN_OK);
}

static void lose(meddler *m) {
  if ((allowed & MAY_LOSE) == 0) return;
  size_t start = next_random(&m->random) % WHOLE;
  if (chance(&m->random, 2)) {
    expect_allowed(tarn_synced_invalidate(m->buffer, start, WHOLE - start));
    return;
  }
  expect_allowed(tarn_synced_suspend(m->buffer, "a while"));
  expect(tarn_synced_resume(m->buffer) == TARN_OK);
}

static void make_fail(meddler *m) {
  static const char *const functions[] = {
      "async_memory_copy_h2d",  "async_memory_copy_d2h", "memory_copy_h2d",
      "memory_copy_d2h",        "memory_copy_p2p",       "record_event",
      "device_memory_set",      "stream_wait_event",     "create_event",
      "device_memory_allocate", "synchronize_event",     "*"};
  if ((allowed & MAY_FAIL) == 0) return;
  enum { FUNCTIONS = sizeof functions / sizeof functions[0] };
  char plan[64];
  snprintf(plan, sizeof plan, "%s@%u",
           functions[next_random(&m->random) % FUNCTIONS],
           1 + (unsigned)(next_random(&m->random) % 9));
  expect(tarn_sim_faults(plan) == TARN_OK);
}

static void evict(meddler *m) {
  tarn_status status =
      tarn_synced_evict(m->buffer, spots[next_random(&m->random) % 4]);
  expect_allowed(status);
}

static void follow(meddler *m) {
  expect_allowed(
      tarn_synced_follow(m->buffer, buffers[(m->number + 1) % BUFFERS]));
}

static void renew(meddler *m) {
  renew_streams(m->streams);
}

// Events are optional.
static void have_events(meddler *m) {
  for (int i = 0; i < 2; i++) {
    if (m->events[i] != NULL) continue;
    expect_allowed(tarn_event_create(devices[i], &m->events[i]));
  }
}

static void meddler_step(meddler *m) {
  static void (*const deeds[])(meddler *) = {
      evict,      evict,     fetch_some,    fetch_some, fetch_some,
      wrap_empty, ask,       use_caffe,     count,      follow,
      lose,       make_fail, view_and_read, renew};
  if (!have_streams(m->streams)) return;
  have_events(m);
  m->number = next_random(&m->random) % BUFFERS;
  m->buffer = buffers[m->number];
  deeds[next_random(&m->random) % (sizeof deeds / sizeof deeds[0])](m);
}

static void *meddle(void *number) {
  meddler m = {.random = (uintptr_t)number * 1117 + 3};
  while (atomic_load(&knowing) > 0)
    meddler_step(&m);
  for (int i = 0; i < 2; i++) {
    expect_allowed(tarn_event_destroy(m.events[i]));
    expect_allowed(tarn_stream_destroy(m.streams[i]));
  }
  return NULL;
}

// ---------------------------------------------------------------------------
// Rounds
// ---------------------------------------------------------------------------

// Some streams are not to be had at first.
static void fail_streams(void) {
  assert_ok(tarn_sim_faults(
      "create_stream@2,create_stream@5,create_stream@9,create_stream@11"));
}

static void *know_or_meddle(void *number) {
  uintptr_t n = (uintptr_t)number;
  return n < KNOWERS ? know(number) : meddle(number);
}

TEST_LOOP(bytes_are_right_or_said_to_be_lost, 8) {
  allowed = _i % 4;
  open_spots((uint64_t)_i / 4 * 3000);
  for (int round = 0; round < ROUNDS; round++) {
    start_round(round);
    if ((allowed & MAY_FAIL) != 0) fail_streams();
    run_threads(know_or_meddle, KNOWERS + MEDDLERS);
    assert_ok(tarn_sim_faults(NULL));
    end_round();
  }
  assert_ok(tarn_synced_trace(NULL, NULL));
  close_devices();
}

// ---------------------------------------------------------------------------
// A device that comes and goes
// ---------------------------------------------------------------------------

enum { VISITS = EFFORT(150, 25) };

// No other thread names it; one that copies from there just now keeps it open.
static void visit(uint64_t *random) {
  tarn_device *guest = NULL;
  tarn_stream *stream = NULL;
  expect(tarn_device_open("sim:2", &guest) == TARN_OK);
  expect(tarn_stream_create(guest, &stream) == TARN_OK);
  for (size_t i = 0; i < BUFFERS; i++) {
    bool queued = chance(random, 2);
    tarn_place there = tarn_place_on(guest);
    expect_allowed(tarn_synced_prefetch(buffers[i], 0, TARN_ALL, there,
                                        queued ? stream : NULL, NULL));
    while (tarn_synced_evict(buffers[i], there) != TARN_OK)
      expect(says("open for"));
  }
  expect(tarn_stream_destroy(stream) == TARN_OK);
  while (tarn_device_close(guest) != TARN_OK)
    expect(says("cannot close"));
}

static void *know_or_visit(void *number) {
  uint64_t random = 5;
  if ((uintptr_t)number < KNOWERS) return know(number);
  for (int i = 0; i < VISITS; i++)
    visit(&random);
  return NULL;
}

TEST_LOOP(a_device_comes_and_goes, 2) {
  allowed = 0;
  open_spots((uint64_t)_i * 3000);
  start_round(0);
  run_threads(know_or_visit, KNOWERS + 1);
  end_round();
  close_devices();
}
