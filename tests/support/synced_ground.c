#include "support/synced_ground.h"

#include <stdio.h>
#include <string.h>

#include "support/run.h"
#include "tarn/sim.h"

typedef struct slot {
  bool busy;
  bool compared;  // else it was written from
  unsigned stream;
  size_t size;
  unsigned long operation;
  unsigned char expected[SM_SIZE];
  unsigned char bytes[SM_SIZE];
} slot;

unsigned sg_devices;
unsigned sg_streams;
tarn_stream *sg_stream[SG_STREAMS];

static slot slots[SG_SLOTS];
static size_t next_slot;
static tarn_addr scratch[SG_STREAMS];
static size_t free_at_start[SM_DEVICES];
static uint64_t state;

// ---------------------------------------------------------------------------
// Chance
// ---------------------------------------------------------------------------

void sg_seed(unsigned long seed) {
  state = (seed + 1) * 0x9e3779b97f4a7c15u;
}

uint64_t sg_random(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (state * 0x2545f4914f6cdd1du) >> 32;
}

size_t sg_below(size_t limit) {
  return (size_t)sg_random() % limit;
}

// ---------------------------------------------------------------------------
// Devices
// ---------------------------------------------------------------------------

static unsigned device_of_stream(unsigned stream) {
  return stream % sg_devices;
}

static size_t free_memory(tarn_device *device) {
  size_t total = 0;
  size_t available = 0;
  sm_status(tarn_device_memory(device, &total, &available), TARN_OK);
  return available;
}

static void make_stream(unsigned i) {
  tarn_device *device = sg_device(device_of_stream(i));
  sm_status(tarn_stream_create(device, &sg_stream[i]), TARN_OK);
}

static void open_devices(void) {
  sm_places[0] = TARN_HOST;
  for (unsigned i = 0; i < sg_devices; i++) {
    char name[16];
    snprintf(name, sizeof name, "sim:%u", i);
    tarn_device *device = NULL;
    sm_status(tarn_device_open(name, &device), TARN_OK);
    sm_places[1 + i] = tarn_place_on(device);
    free_at_start[i] = free_memory(device);
  }
}

void sg_open(const sg_config *config) {
  sg_devices = config->devices;
  tarn_sim_options options = {.struct_size = sizeof options,
                              .devices = config->devices,
                              .capacity = (size_t)64 << 20,
                              .latency_ns = config->latency_ns};
  sm_status(tarn_sim_configure(&options), TARN_OK);
  open_devices();
  sm_place_count = 1 + config->devices;
  for (unsigned i = 0; i < sg_devices && config->unified; i++) {
    sm_places[sm_place_count++] =
        (tarn_place){sg_device(i), TARN_PLACE_UNIFIED};
  }
  sg_streams = 2 * sg_devices;
  for (unsigned i = 0; i < sg_streams; i++) {
    make_stream(i);
    tarn_place place = sm_places[1 + device_of_stream(i)];
    sm_status(tarn_device_allocate(place, SM_SIZE, &scratch[i]), TARN_OK);
  }
}

static void close_pools(void) {
  for (unsigned i = 0; i < sm_place_count; i++) {
    tarn_pool *pool = NULL;
    sm_status(tarn_pool_of(sm_places[i], &pool), TARN_OK);
    tarn_pool_stats stats = {.struct_size = sizeof stats};
    sm_status(tarn_pool_query(pool, &stats), TARN_OK);
    sm_require(stats.live_bytes == 0);
    sm_status(tarn_pool_trim(pool, 0), TARN_OK);
  }
}

void sg_close(void) {
  snprintf(sm_now_at.what, sizeof sm_now_at.what, "the end");
  sg_wait_all();
  for (unsigned i = 0; i < sg_streams; i++) {
    tarn_place place = sm_places[1 + device_of_stream(i)];
    sm_status(tarn_device_deallocate(place, scratch[i], SM_SIZE), TARN_OK);
    sm_status(tarn_stream_destroy(sg_stream[i]), TARN_OK);
  }
  close_pools();
  for (unsigned i = 0; i < sg_devices; i++) {
    sm_require(free_memory(sg_device(i)) == free_at_start[i]);
  }
  char line[256];
  size_t misuses = tarn_sim_misuses(line, sizeof line);
  if (misuses != 0) sm_fail("%zu misuses: %s", misuses, line);
  for (unsigned i = 0; i < sg_devices; i++) {
    sm_status(tarn_device_close(sg_device(i)), TARN_OK);
  }
}

tarn_place sg_name_of(unsigned place) {
  if (place != 0 || sg_below(4) != 0) return sm_places[place];
  return (tarn_place){sg_device((unsigned)sg_below(sg_devices)),
                      TARN_PLACE_HOST};
}

// ---------------------------------------------------------------------------
// Slots
// ---------------------------------------------------------------------------

static void settle(slot *s) {
  s->busy = false;
  if (!s->compared) return;
  for (size_t i = 0; i < s->size; i++) {
    if (s->bytes[i] == s->expected[i]) continue;
    sm_fail(
        "what operation %lu read on stream %u is wrong from byte %zu of "
        "%zu on: %u, not %u",
        s->operation, s->stream, i, s->size, s->bytes[i], s->expected[i]);
  }
}

void sg_wait(unsigned stream) {
  sm_status(tarn_stream_synchronize(sg_stream[stream]), TARN_OK);
  for (size_t i = 0; i < SG_SLOTS; i++) {
    if (slots[i].busy && slots[i].stream == stream) settle(&slots[i]);
  }
}

void sg_wait_all(void) {
  for (unsigned i = 0; i < sg_streams; i++)
    sg_wait(i);
  for (unsigned i = 0; i < sg_devices; i++) {
    sm_status(tarn_device_synchronize(sg_device(i)), TARN_OK);
  }
}

static slot *take_slot(unsigned stream, size_t size) {
  slot *s = &slots[next_slot++ % SG_SLOTS];
  if (s->busy) sg_wait(s->stream);
  s->busy = true;
  s->compared = false;
  s->stream = stream;
  s->size = size;
  s->operation = sm_now_at.operation;
  return s;
}

void sg_renew(unsigned stream) {
  if (sg_below(2) == 0) sg_wait(stream);
  sm_status(tarn_stream_destroy(sg_stream[stream]), TARN_OK);
  for (size_t i = 0; i < SG_SLOTS; i++) {
    if (slots[i].busy && slots[i].stream == stream) settle(&slots[i]);
  }
  make_stream(stream);
}

// ---------------------------------------------------------------------------
// Looking and writing
// ---------------------------------------------------------------------------

static void compare(const unsigned char *got, const unsigned char *expected,
                    size_t size) {
  if (memcmp(got, expected, size) == 0) return;
  size_t i = 0;
  while (got[i] == expected[i])
    i++;
  sm_fail("byte %zu of %zu is %u, not %u", i, size, got[i], expected[i]);
}

static void check_now(const tarn_access *a, unsigned place,
                      const unsigned char *expected) {
  if (a->pointer != NULL) {
    compare(a->pointer, expected, a->size);
    return;
  }
  unsigned char bytes[SM_SIZE];
  sm_status(
      tarn_copy_d2h(sm_places[place].device, bytes, a->address, a->size, NULL),
      TARN_OK);
  compare(bytes, expected, a->size);
}

void sg_check(const tarn_access *a, unsigned place, int stream,
              const unsigned char *expected) {
  if (a->size == 0) return;
  if (stream < 0) {
    check_now(a, place, expected);
    return;
  }
  unsigned on = (unsigned)stream;
  tarn_device *device = sg_device(device_of_stream(on));
  if (a->pointer == NULL && device != sm_places[place].device) {
    sg_wait(on);  // no copy on it could reach them
    check_now(a, place, expected);
    return;
  }
  slot *s = take_slot(on, a->size);
  memcpy(s->expected, expected, a->size);
  memset(s->bytes, ~expected[0], a->size);
  s->compared = true;
  tarn_addr from = a->address;
  if (a->pointer != NULL) {
    from = scratch[on];
    sm_status(tarn_copy_h2d(device, from, a->pointer, a->size, sg_stream[on]),
              TARN_OK);
  }
  sm_status(tarn_copy_d2h(device, s->bytes, from, a->size, sg_stream[on]),
            TARN_OK);
}

static void store_now(const tarn_access *a, unsigned place,
                      const unsigned char *bytes) {
  if (a->pointer != NULL) {
    memcpy(a->pointer, bytes, a->size);
    return;
  }
  sm_status(
      tarn_copy_h2d(sm_places[place].device, a->address, bytes, a->size, NULL),
      TARN_OK);
}

void sg_store(const tarn_access *a, unsigned place, int stream,
              const unsigned char *bytes) {
  if (a->size == 0) return;
  if (stream < 0) {
    store_now(a, place, bytes);
    return;
  }
  unsigned on = (unsigned)stream;
  tarn_device *device = sg_device(device_of_stream(on));
  slot *s = take_slot(on, a->size);
  memcpy(s->bytes, bytes, a->size);
  bool direct = a->pointer == NULL && device == sm_places[place].device;
  tarn_addr to = direct ? a->address : scratch[on];
  sm_status(tarn_copy_h2d(device, to, s->bytes, a->size, sg_stream[on]),
            TARN_OK);
  if (direct) return;
  if (a->pointer != NULL) {
    sm_status(tarn_copy_d2h(device, a->pointer, to, a->size, sg_stream[on]),
              TARN_OK);
    return;
  }
  sm_status(tarn_copy_p2p(sm_places[place].device, a->address, device, to,
                          a->size, sg_stream[on]),
            TARN_OK);
}
