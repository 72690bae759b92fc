// Streams, events, devices and callbacks from many threads at once, on the
// processor and on simulated devices: made, used, shared and ended by chance.
//
// What must hold is counted, not timed: every chain of copies carries its
// value, every callback that was queued comes once, no join of a serial hangs,
// and nothing is left. The thread sanitizer watches the rest.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "kit.h"
#include "tarn/sim.h"

enum { THREADS = 4, ROUNDS = 200, SIZE = 256 };

// Threads cannot fail a test: they note that something was not as it must be.
static atomic_size_t wrongs;

static bool good(bool condition) {
  if (!condition) atomic_fetch_add(&wrongs, 1);
  return condition;
}

static bool fine(tarn_status status) {
  return good(status == TARN_OK);
}

static void run_threads(void *(*work)(void *), void *contexts, size_t size) {
  pthread_t threads[THREADS];
  for (size_t i = 0; i < THREADS; i++) {
    void *context = (char *)contexts + i * size;
    ck_assert_int_eq(pthread_create(&threads[i], NULL, work, context), 0);
  }
  for (size_t i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
  ck_assert_uint_eq(wrongs, 0);
}

// --- everything that comes and goes ----------------------------------------

typedef struct player {
  const char *name;         // of the device that it opens and closes
  _Atomic(uint64_t) *seen;  // serials of the newest streams of all players
  size_t number;
  atomic_size_t called;
  size_t queued;
} player;

static void on_done(void *context, tarn_status status) {
  player *p = context;
  (void)good(status == TARN_OK);
  atomic_fetch_add(&p->called, 1);
}

// Its own bytes go to the device, from stream to stream, and come back.
static void carry(player *p, tarn_device *device, tarn_stream *first,
                  tarn_stream *second, tarn_event *event, unsigned char value) {
  unsigned char in[SIZE];
  unsigned char out[SIZE] = {0};
  tarn_addr addr = 0;
  memset(in, value, sizeof in);
  if (!fine(tarn_device_allocate(tarn_place_on(device), SIZE, &addr))) return;
  (void)fine(tarn_copy_h2d(device, addr, in, SIZE, first));
  (void)fine(tarn_event_record(event, first));
  (void)fine(tarn_stream_wait_event(second, event));
  (void)fine(tarn_copy_d2h(device, out, addr, SIZE, second));
  if (fine(tarn_stream_add_callback(second, on_done, p))) p->queued++;
  tarn_status status = tarn_event_query(event);
  (void)good(status == TARN_OK || status == TARN_PENDING);
  (void)fine(tarn_stream_synchronize(second));
  (void)good(memcmp(in, out, SIZE) == 0);
  (void)fine(tarn_device_deallocate(tarn_place_on(device), addr, SIZE));
}

// Joins what the others have made: it may live, end meanwhile, or be gone.
static void join_others(player *p, tarn_stream *stream) {
  for (size_t i = 0; i < THREADS; i++) {
    uint64_t serial = atomic_load(&p->seen[i]);
    if (i == p->number || serial == 0) continue;
    (void)fine(tarn_stream_join(i % 2 ? stream : NULL, serial));
  }
}

static void play_round(player *p, tarn_device *device, size_t round) {
  tarn_stream *first = NULL;
  tarn_stream *second = NULL;
  tarn_event *event = NULL;
  if (!fine(tarn_stream_create(device, &first))) return;
  atomic_store(&p->seen[p->number], tarn_stream_serial(first));
  (void)fine(tarn_stream_create(device, &second));
  (void)fine(tarn_event_create(device, &event));
  if (second != NULL && event != NULL) {
    carry(p, device, first, second, event, (unsigned char)(round + p->number));
    join_others(p, second);
    if (round % 8 == 0) (void)fine(tarn_device_synchronize(device));
  }
  (void)fine(tarn_event_destroy(event));
  (void)fine(tarn_stream_destroy(first));
  (void)fine(tarn_stream_destroy(second));
}

static void *play(void *context) {
  player *p = context;
  for (size_t round = 0; round < ROUNDS; round++) {
    tarn_device *device = NULL;
    if (!fine(tarn_device_open(p->name, &device))) return NULL;
    play_round(p, device, round);
    (void)fine(tarn_device_close(device));
  }
  return NULL;
}

TEST_LOOP(streams_events_and_devices_come_and_go, LIBRARY_DEVICES + 1) {
  _Atomic(uint64_t) seen[THREADS] = {0};
  player players[THREADS];
  (void)open_device("cpu:0");
  add_device(test_devices[0]);
  for (size_t i = 0; i < THREADS; i++) {
    players[i] = (player){
        .name =
            test_devices[_i < LIBRARY_DEVICES ? _i : (int)i % LIBRARY_DEVICES],
        .seen = seen,
        .number = i};
  }
  run_threads(play, players, sizeof players[0]);
  for (size_t i = 0; i < THREADS; i++)
    ck_assert_uint_eq(players[i].called, players[i].queued);
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 0), 0);
}

// --- one event, recorded and waited for by all -----------------------------

typedef struct shared {
  tarn_device *device;
  tarn_stream *streams[THREADS];
  tarn_event *event;
} shared;

typedef struct party {
  shared *all;
  size_t number;
} party;

static void *record_and_wait(void *context) {
  const party *p = context;
  shared *all = p->all;
  tarn_stream *own = all->streams[p->number];
  tarn_stream *next = all->streams[(p->number + 1) % THREADS];
  for (size_t round = 0; round < ROUNDS; round++) {
    (void)fine(tarn_event_record(all->event, own));
    (void)fine(tarn_stream_wait_event(next, all->event));
    tarn_status status = tarn_event_query(all->event);
    (void)good(status == TARN_OK || status == TARN_PENDING);
    (void)fine(tarn_event_synchronize(all->event));
    (void)fine(tarn_stream_join(own, tarn_stream_serial(next)));
    (void)fine(tarn_stream_query(own) == TARN_PENDING
                   ? tarn_stream_synchronize(own)
                   : TARN_OK);
  }
  return NULL;
}

TEST_LOOP(one_event_is_everybodys, LIBRARY_DEVICES) {
  party parties[THREADS];
  shared all = {.device = open_device(test_devices[_i])};
  all.event = event_on(all.device);
  for (size_t i = 0; i < THREADS; i++) {
    all.streams[i] = stream_on(all.device);
    parties[i] = (party){&all, i};
  }
  run_threads(record_and_wait, parties, sizeof parties[0]);
}

// --- streams that fail -----------------------------------------------------

typedef struct failing {
  tarn_device *device;
  tarn_stream *stream;  // that one of them lets fail
  size_t number;
} failing;

// A copy into memory that was given back: sim notices when it runs.
static void spoil(tarn_device *device, tarn_stream *stream) {
  static char bytes[SIZE];
  tarn_addr addr = 0;
  if (!fine(tarn_device_allocate(tarn_place_on(device), SIZE, &addr))) return;
  (void)fine(tarn_device_deallocate(tarn_place_on(device), addr, SIZE));
  (void)good(tarn_copy_h2d(device, addr, bytes, SIZE, stream) == TARN_E_DEVICE);
}

// Either from before the failure or from after it, and then with a text.
static bool is_consistent(tarn_status status) {
  if (status == TARN_OK || status == TARN_PENDING) return good(true);
  return good(status == TARN_E_DEVICE && *tarn_last_error() != '\0');
}

static void *use_while_it_fails(void *context) {
  const failing *f = context;
  tarn_event *event = NULL;
  tarn_stream *own = NULL;
  if (!fine(tarn_event_create(f->device, &event))) return NULL;
  if (!fine(tarn_stream_create(f->device, &own))) return NULL;
  for (size_t round = 0; round < ROUNDS; round++) {
    if (f->number == 0 && round == ROUNDS / 4) spoil(f->device, f->stream);
    (void)is_consistent(tarn_event_record(event, f->stream));
    (void)is_consistent(tarn_event_query(event));
    (void)is_consistent(tarn_stream_query(f->stream));
    (void)is_consistent(tarn_stream_synchronize(f->stream));
    (void)is_consistent(tarn_event_synchronize(event));
    // Waiting behind one that has failed is no failure of one's own.
    (void)is_consistent(tarn_stream_join(NULL, tarn_stream_serial(f->stream)));
    (void)fine(tarn_stream_synchronize(own));
  }
  (void)good(tarn_stream_synchronize(f->stream) == TARN_E_DEVICE ||
             f->number != 0);
  (void)fine(tarn_stream_destroy(own));
  (void)fine(tarn_event_destroy(event));
  return NULL;
}

TEST(a_stream_fails_while_all_use_it) {
  failing all[THREADS];
  tarn_device *sim = open_device("sim:0");
  tarn_stream *stream = stream_on(sim);
  for (size_t i = 0; i < THREADS; i++)
    all[i] = (failing){sim, stream, i};
  run_threads(use_while_it_fails, all, sizeof all[0]);
  assert_status(tarn_stream_synchronize(stream), TARN_E_DEVICE);
  end_failed_stream(stream);
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 0), 1);
}
