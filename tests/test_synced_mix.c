// Everything at once: threads that know their bytes use them at all places,
// while others evict, fetch, wrap, look, follow, suspend and make streams fail.
// A byte is what its thread wrote last, or is said to be lost.
#include "test_synced_threads_kit.h"

enum {
  BUFFERS = 2,
  KNOWERS = 4,   // threads with ranges of their own in each buffer
  MEDDLERS = 3,  // threads that have none
  PART = 24,     // bytes of such a range, of no alignment
  WHOLE = KNOWERS * PART,
  SLOTS = 32,  // writes on streams that may be under way at a time
  ROUNDS = EFFORT(4, 2),
  STEPS = EFFORT(1500, 150),
};

// What meddlers may do in a round.
enum { MAY_LOSE = 1, MAY_FAIL = 2 };

static tarn_synced *buffers[BUFFERS];
static tarn_place spots[4];
static unsigned char outside[BUFFERS][4][WHOLE];
static atomic_int knowing;
static int allowed;
static int named;  // the device of the options

static bool chance(uint64_t *random, uint64_t of) {
  return next_random(random) % of == 0;
}

static bool says(const char *text) {
  return strstr(tarn_last_error(), text) != NULL;
}

// Whether a status is one that the round allows; of the rest the text is shown.
static bool is_allowed(tarn_status status) {
  if (status == TARN_OK) return true;
  if (status == TARN_E_STATE) {
    if (says("open for")) return true;
    if (says("cancelled") || says("are lost, or")) return true;
    bool lost = says("lost") || says("invalidated") || says("suspended");
    return lost && allowed != 0;
  }
  bool broken = status == TARN_E_DEVICE || status == TARN_FULL;
  return broken && (allowed & MAY_FAIL) != 0;
}

#define expect_allowed(call) expect(is_allowed(call))

// ---------------------------------------------------------------------------
// Threads that know their bytes
// ---------------------------------------------------------------------------

typedef struct knower {
  size_t at;  // in each buffer
  uint64_t random;
  tarn_synced *views[BUFFERS];
  tarn_stream *streams[2];
  unsigned char value[BUFFERS][PART];
  bool known[BUFFERS][PART];  // else lost, or told to be
  bool lacks[BUFFERS];        // some: to be written again
  unsigned char staged[SLOTS][PART];
  unsigned slot;
} knower;

static void make_stream(knower *k, int i) {
  expect_allowed(tarn_stream_create(devices[i], &k->streams[i]));
}

// One that failed gives its place to another. No access may be open.
static void renew_streams(knower *k) {
  k->slot = 0;
  for (int i = 0; i < 2; i++) {
    if (k->streams[i] != NULL) {
      tarn_status status = tarn_stream_synchronize(k->streams[i]);
      expect_allowed(status);
      if (status == TARN_OK) continue;
      (void)tarn_stream_destroy(k->streams[i]);
      k->streams[i] = NULL;
    }
    make_stream(k, i);
  }
}

static const unsigned char *stage(knower *k, const unsigned char *bytes,
                                  size_t size) {
  unsigned char *slot = k->staged[k->slot++];
  memcpy(slot, bytes, size);
  return slot;
}

// Whether the stream of |a| can make copies at |place|; else the host waits for
// it, and makes them.
static bool can_queue(const tarn_access *a, tarn_place place) {
  return a->stream != NULL && a->pointer == NULL &&
         tarn_stream_device(a->stream) == place.device;
}

static tarn_status wait_for(const tarn_access *a) {
  return a->stream != NULL ? tarn_stream_synchronize(a->stream) : TARN_OK;
}

static tarn_status put(knower *k, const tarn_access *a, tarn_place place,
                       const unsigned char *bytes) {
  if (a->size == 0) return TARN_OK;
  if (can_queue(a, place)) {
    return tarn_copy_h2d(place.device, a->address, stage(k, bytes, a->size),
                         a->size, a->stream);
  }
  tarn_status status = wait_for(a);
  if (status != TARN_OK) return status;
  if (a->pointer == NULL) {
    return tarn_copy_h2d(place.device, a->address, bytes, a->size, NULL);
  }
  memcpy(a->pointer, bytes, a->size);
  return TARN_OK;
}

static tarn_status take(const tarn_access *a, tarn_place place,
                        unsigned char *out) {
  if (a->size == 0) return TARN_OK;
  tarn_status status = wait_for(a);
  if (status != TARN_OK) return status;
  if (a->pointer == NULL) {
    return tarn_copy_d2h(place.device, out, a->address, a->size, NULL);
  }
  memcpy(out, a->pointer, a->size);
  return TARN_OK;
}

static void compare(const knower *k, size_t buffer, size_t start, size_t size,
                    const unsigned char *bytes) {
  for (size_t i = 0; i < size; i++) {
    if (!k->known[buffer][start + i]) continue;
    expect(bytes[i] == k->value[buffer][start + i]);
  }
}

static void set_known(knower *k, size_t buffer, size_t start, size_t size,
                      bool known) {
  memset(&k->known[buffer][start], known, size);
}

// Of bytes that are lost nobody knows which: all are written again.
static void write_anew(knower *k, size_t buffer) {
  unsigned char bytes[PART];
  tarn_access a;
  memset(bytes, (int)(next_random(&k->random) & 255), PART);
  set_known(k, buffer, 0, PART, false);
  tarn_status status =
      tarn_synced_begin(k->views[buffer], 0, PART, TARN_HOST,
                        TARN_WRITE_DISCARD | TARN_ACCESS_WAIT, NULL, &a);
  expect_allowed(status);
  if (status != TARN_OK) return;
  memcpy(a.pointer, bytes, PART);
  status = tarn_synced_end(&a);
  expect_allowed(status);
  if (status != TARN_OK) return;
  memcpy(k->value[buffer], bytes, PART);
  set_known(k, buffer, 0, PART, true);
  k->lacks[buffer] = false;
}

typedef struct try {
  size_t buffer;
  size_t start;
  size_t size;
  size_t spot;
  uint32_t mode;
  tarn_stream *stream;
  tarn_access access;
  bool open;
}
try;

static try choose(knower *k, size_t from, size_t to, bool waits) {
  uint64_t *random = &k->random;
  try t = {.buffer = next_random(random) % BUFFERS,
           .spot = next_random(random) % 4,
           .mode = 1 + (uint32_t)(next_random(random) % 3)};
  t.start = from + next_random(random) % (to - from);
  t.size = next_random(random) % (to - t.start + 1);
  if (waits && chance(random, 2)) t.mode |= TARN_ACCESS_WAIT;
  if (chance(random, 2)) t.stream = k->streams[next_random(random) % 2];
  return t;
}

static void begin_try(knower *k, try *t) {
  tarn_status status =
      tarn_synced_begin(k->views[t->buffer], t->start, t->size, spots[t->spot],
                        t->mode, t->stream, &t->access);
  expect_allowed(status);
  t->open = status == TARN_OK;
  bool lost = status == TARN_E_STATE && (says("lost") || says("invalidated"));
  expect(!lost || allowed != 0 || k->lacks[t->buffer]);
  if (lost) k->lacks[t->buffer] = true;
}

// A stream that failed behind one that waits for it tells that one nothing.
static bool has_come(const knower *k, const try *t) {
  tarn_synced_info info = {.struct_size = sizeof info};
  expect(tarn_synced_query(k->views[t->buffer], t->start, t->size,
                           spots[t->spot], &info) == TARN_OK);
  return info.valid == t->size;
}

static bool read_try(knower *k, try *t) {
  unsigned char bytes[PART];
  if ((t->mode & 3) == TARN_WRITE_DISCARD) return true;
  tarn_status status = take(&t->access, spots[t->spot], bytes);
  expect_allowed(status);
  bool sound = status == TARN_OK && has_come(k, t);
  expect(sound || (allowed & MAY_FAIL) != 0);
  if (sound) compare(k, t->buffer, t->start, t->size, bytes);
  return sound;
}

static void finish_read(try *t) {
  expect_allowed(tarn_synced_end(&t->access));
}

static void cancel_try(knower *k, try *t) {
  size_t lost = 0;
  tarn_status status = tarn_synced_cancel(&t->access, &lost);
  expect_allowed(status);
  expect(lost <= t->size);
  if (lost > 0) k->lacks[t->buffer] = true;
}

static void finish_write(knower *k, try *t, bool sound) {
  unsigned char bytes[PART];
  memset(bytes, (int)(next_random(&k->random) & 255), t->size);
  tarn_status status = put(k, &t->access, spots[t->spot], bytes);
  expect_allowed(status);
  if (!sound || status != TARN_OK || chance(&k->random, 6)) {
    cancel_try(k, t);
    return;
  }
  status = tarn_synced_end(&t->access);
  expect_allowed(status);
  if (status == TARN_OK) {
    memcpy(&k->value[t->buffer][t->start], bytes, t->size);
    set_known(k, t->buffer, t->start, t->size, true);
  }
}

static void finish_try(knower *k, try *t) {
  if (!t->open) return;
  bool sound = read_try(k, t);
  if ((t->mode & 3) == TARN_READ) {
    finish_read(t);
  } else {
    finish_write(k, t, sound);
  }
}

// Two accesses at a time, in parts that do not meet, ended in any order.
static void use_bytes(knower *k) {
  if (k->slot + 2 > SLOTS) renew_streams(k);
  try first = choose(k, 0, PART / 2, true);
  try second = choose(k, PART / 2, PART, false);
  begin_try(k, &first);
  bool both = first.open && chance(&k->random, 2);
  if (both) begin_try(k, &second);
  bool turned = chance(&k->random, 2);
  finish_try(k, turned ? &second : &first);
  finish_try(k, turned ? &first : &second);
}

static knower knowers[KNOWERS];

static void *know(void *number) {
  knower *k = &knowers[(uintptr_t)number];
  for (int i = 0; i < 2; i++)
    make_stream(k, i);
  for (size_t i = 0; i < BUFFERS; i++)
    k->lacks[i] = true;
  for (int i = 0; i < STEPS; i++) {
    for (size_t b = 0; b < BUFFERS; b++) {
      if (k->lacks[b]) write_anew(k, b);
    }
    use_bytes(k);
  }
  for (int i = 0; i < 2; i++)
    expect_allowed(tarn_stream_destroy(k->streams[i]));
  atomic_fetch_sub(&knowing, 1);
  return NULL;
}

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

static void use_document(meddler *m) {
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

static void meddler_step(meddler *m) {
  static void (*const deeds[])(meddler *) = {
      evict,      evict,     fetch_some,   fetch_some, fetch_some,
      wrap_empty, ask,       use_document, count,      follow,
      lose,       make_fail, view_and_read};
  m->number = next_random(&m->random) % BUFFERS;
  m->buffer = buffers[m->number];
  deeds[next_random(&m->random) % (sizeof deeds / sizeof deeds[0])](m);
}

static void *meddle(void *number) {
  meddler m = {.random = (uintptr_t)number * 1117 + 3};
  for (int i = 0; i < 2; i++) {
    expect_allowed(tarn_stream_create(devices[i], &m.streams[i]));
    expect_allowed(tarn_event_create(devices[i], &m.events[i]));
  }
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

static void make_buffers(int round) {
  tarn_synced_options options = {.struct_size = sizeof options};
  named = round % 2;
  options.device = devices[named];
  for (size_t i = 0; i < BUFFERS; i++) {
    assert_ok(tarn_synced_create(WHOLE, &options, &buffers[i]));
    for (size_t n = 0; n < KNOWERS; n++) {
      knower *k = &knowers[n];
      assert_ok(tarn_synced_view(buffers[i], n * PART, PART, &k->views[i]));
    }
  }
}

static void start_round(int round) {
  memset(knowers, 0, sizeof knowers);
  for (size_t n = 0; n < KNOWERS; n++)
    knowers[n].random = n * 71 + 13 + (uint64_t)round * 1009;
  atomic_store(&knowing, KNOWERS);
  make_buffers(round);
}

static void end_round(void) {
  for (size_t i = 0; i < BUFFERS; i++) {
    expect_allowed(tarn_synced_destroy(buffers[i]));
    for (size_t n = 0; n < KNOWERS; n++)
      expect_allowed(tarn_synced_destroy(knowers[n].views[i]));
  }
}

static void *know_or_meddle(void *number) {
  uintptr_t n = (uintptr_t)number;
  return n < KNOWERS ? know(number) : meddle(number);
}

START_TEST(bytes_are_right_or_said_to_be_lost) {
  allowed = _i % 4;
  open_devices((uint64_t)_i / 4 * 3000);
  memcpy(spots, places, sizeof places);
  spots[3] = (tarn_place){devices[0], TARN_PLACE_UNIFIED};
  for (int round = 0; round < ROUNDS; round++) {
    start_round(round);
    run_threads(know_or_meddle, KNOWERS + MEDDLERS);
    assert_ok(tarn_sim_faults(NULL));
    end_round();
  }
  assert_ok(tarn_synced_trace(NULL, NULL));
  close_devices();
}
END_TEST

// ---------------------------------------------------------------------------
// A device that comes and goes
// ---------------------------------------------------------------------------

enum { VISITS = EFFORT(150, 25) };

// Nobody else names it; who copies from there just now keeps it open.
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

START_TEST(a_device_comes_and_goes) {
  allowed = 0;
  open_devices((uint64_t)_i * 3000);
  memcpy(spots, places, sizeof places);
  spots[3] = (tarn_place){devices[0], TARN_PLACE_UNIFIED};
  start_round(0);
  run_threads(know_or_visit, KNOWERS + 1);
  end_round();
  close_devices();
}
END_TEST

int main(void) {
  Suite *suite = suite_create("synced_mix");
  TCase *mix = tcase_create("mix");
  tcase_set_timeout(mix, 240);
  tcase_add_loop_test(mix, bytes_are_right_or_said_to_be_lost, 0, 8);
  // The simulation looks for the owner of an address while others come and go.
  if (!THREADS_ARE_WATCHED) {
    tcase_add_loop_test(mix, a_device_comes_and_goes, 0, 2);
  }
  suite_add_tcase(suite, mix);
  return run_suite(suite);
}
