// mix_kit.h - buffers that many threads use at once, and the
// threads that know which bytes there ought to be.
//
// A byte is what its knower wrote last, or is said to be lost.
#ifndef TARN_TESTS_SYNCED_MIX_KIT_H_
#define TARN_TESTS_SYNCED_MIX_KIT_H_

#include "threads_kit.h"

enum {
  BUFFERS = 2,
  KNOWERS = 4,  // threads with ranges of their own in each buffer
  PART = 24,    // bytes of such a range, of no alignment
  WHOLE = KNOWERS * PART,
  SLOTS = 32,  // writes on streams that may be under way at a time
  STEPS = EFFORT(1500, 150),
};

// What meddlers may do in a round.
enum { MAY_LOSE = 1, MAY_FAIL = 2 };

static tarn_synced *buffers[BUFFERS];
static tarn_place spots[PLACES + 1];
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
// Streams, which may fail to be made, and may fail
// ---------------------------------------------------------------------------

static void make_stream(tarn_stream **stream, int device) {
  expect_allowed(tarn_stream_create(devices[device], stream));
}

// One that failed gives its place to another.
static void renew_stream(tarn_stream **stream, int device) {
  if (*stream != NULL) {
    tarn_status status = tarn_stream_synchronize(*stream);
    expect_allowed(status);
    if (status == TARN_OK) return;
    (void)tarn_stream_destroy(*stream);
    *stream = NULL;
  }
  make_stream(stream, device);
}

// Of each device one. What could not be had, because another makes calls fail,
// is tried again.
static bool have_streams(tarn_stream *streams[2]) {
  for (int i = 0; i < 2; i++) {
    if (streams[i] == NULL) make_stream(&streams[i], i);
  }
  return streams[0] != NULL && streams[1] != NULL;
}

static void renew_streams(tarn_stream *streams[2]) {
  for (int i = 0; i < 2; i++)
    renew_stream(&streams[i], i);
}

// ---------------------------------------------------------------------------
// Threads that know their bytes
// ---------------------------------------------------------------------------

typedef struct knower {
  uint64_t random;
  tarn_synced *views[BUFFERS];
  tarn_stream *streams[2];
  unsigned char value[BUFFERS][PART];
  bool known[BUFFERS][PART];  // else lost, or told to be
  bool lacks[BUFFERS];        // some: to be written again
  unsigned char staged[SLOTS][PART];
  unsigned slot;
} knower;

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

// The lost bytes are unknown, so all are written again.
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
  if (k->slot + 2 > SLOTS) {
    renew_streams(k->streams);
    k->slot = 0;
  }
  (void)have_streams(k->streams);  // or all is done without
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
// Rounds
// ---------------------------------------------------------------------------

static void open_spots(uint64_t latency_ns) {
  open_devices(latency_ns);
  memcpy(spots, places, sizeof places);
  spots[PLACES] = (tarn_place){devices[0], TARN_PLACE_UNIFIED};
}

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

#endif  // TARN_TESTS_SYNCED_MIX_KIT_H_
