// All routes from one place to another: the bytes, the stream, and the cost.
#include <string.h>

#include "sim/kit.h"
#include "support/fake_plugin.h"
#include "support/on_devices.h"
#include "synced/routes.h"

enum { SIZE = 5000 };

// --- ends ------------------------------------------------------------------

static tarn_place unified_of(tarn_device *device) {
  return (tarn_place){device, TARN_PLACE_UNIFIED};
}

static tarn__synced_end take_end(tarn_place place) {
  tarn__synced_end end = {.place = tarn__route_place(place)};
  assert_ok(tarn_device_allocate(place, SIZE, &end.address));
  if (tarn_device_host_view(place, end.address, SIZE, &end.pointer) != TARN_OK)
    ck_assert_ptr_null(end.pointer);
  return end;
}

static void give_end(tarn__synced_end end) {
  assert_ok(tarn_device_deallocate(end.place, end.address, SIZE));
}

static void put(const tarn__synced_end *end, const unsigned char *bytes) {
  if (end->pointer != NULL) {
    memcpy(end->pointer, bytes, SIZE);
  } else {
    assert_ok(
        tarn_copy_h2d(end->place.device, end->address, bytes, SIZE, NULL));
  }
}

static void assert_holds(const tarn__synced_end *end,
                         const unsigned char *bytes) {
  unsigned char there[SIZE];
  if (end->pointer != NULL) {
    memcpy(there, end->pointer, SIZE);
  } else {
    assert_ok(
        tarn_copy_d2h(end->place.device, there, end->address, SIZE, NULL));
  }
  ck_assert_mem_eq(there, bytes, SIZE);
}

static tarn_stream *stream_for(const tarn__synced_end *from,
                               const tarn__synced_end *to) {
  tarn_stream *stream = NULL;
  tarn_device *device = tarn__route_device(from->place, to->place);
  if (device != NULL) assert_ok(tarn_stream_create(device, &stream));
  return stream;
}

// Copies [offset, offset + size): those bytes come over, the others stay.
static void check_copy(const tarn__synced_end *from, const tarn__synced_end *to,
                       size_t offset, size_t size, tarn_stream *stream) {
  static unsigned seed;
  unsigned char source[SIZE];
  unsigned char target[SIZE];
  sim_fill(source, SIZE, ++seed);
  sim_fill(target, SIZE, ++seed);
  put(from, source);
  put(to, target);
  assert_ok(tarn__route_copy(from, to, offset, size, stream));
  if (stream != NULL) assert_ok(tarn_stream_synchronize(stream));
  memcpy(target + offset, source + offset, size);
  assert_holds(to, target);
  assert_holds(from, source);
}

static void check_way(const tarn__synced_end *from,
                      const tarn__synced_end *to) {
  tarn_stream *stream = stream_for(from, to);
  check_copy(from, to, 0, SIZE, NULL);
  check_copy(from, to, 1001, 7, NULL);
  check_copy(from, to, 0, SIZE, stream);
  check_copy(from, to, SIZE - 1, 1, stream);
  assert_ok(tarn_stream_destroy(stream));
}

static void check_zero(const tarn__synced_end *end) {
  unsigned char bytes[SIZE];
  sim_fill(bytes, SIZE, 3);
  put(end, bytes);
  assert_ok(tarn__route_zero(end, 13, 1000));
  memset(bytes + 13, 0, 1000);
  assert_holds(end, bytes);
}

static void check_all(const tarn_place *places, size_t count) {
  tarn__synced_end ends[8];
  for (size_t i = 0; i < count; i++)
    ends[i] = take_end(places[i]);
  for (size_t i = 0; i < count; i++) {
    check_zero(&ends[i]);
    for (size_t j = 0; j < count; j++) {
      if (i != j) check_way(&ends[i], &ends[j]);
    }
  }
  for (size_t i = 0; i < count; i++)
    give_end(ends[i]);
}

// --- bytes -----------------------------------------------------------------

TEST_ON(between_devices_of_a_plug_in, TEST_NEEDS_DISCRETE) {
  tarn_device *second = open_second(device);
  tarn_place places[] = {TARN_HOST, tarn_place_on(device),
                         tarn_place_on(second), unified_of(device),
                         unified_of(second)};
  check_all(places, device_has_memory(device, TARN_PLACE_UNIFIED) ? 5 : 3);
  ck_assert_uint_eq(sim_misuses(), 0);
}

static const uint64_t abilities[] = {
    0,
    FAKE_MISSES(memory_copy_p2p) | FAKE_MISSES(async_memory_copy_p2p),
    FAKE_MISSES(async_memory_copy_p2p),
    FAKE_MISSES(async_memory_copy_h2d) | FAKE_MISSES(async_memory_copy_d2h) |
        FAKE_MISSES(async_memory_copy_d2d),
    FAKE_MISSES(device_memory_set),
    FAKE_MISSES(create_stream) | FAKE_MISSES(destroy_stream) |
        FAKE_MISSES(synchronize_stream),
};

// Plug-ins that leave functions out, among themselves and beside another one.
TEST_LOOP(between_plug_ins, sizeof abilities / sizeof abilities[0]) {
  fake.missing = abilities[_i];
  tarn_device *a = open_device("fake:0");
  tarn_device *b = open_device("fake:1");
  tarn_device *c = open_discrete();
  tarn_place places[] = {TARN_HOST,        tarn_place_on(a), unified_of(a),
                         tarn_place_on(b), tarn_place_on(c), unified_of(c)};
  check_all(places, 6);
  ck_assert_uint_eq(sim_misuses(), 0);
}

// --- places ----------------------------------------------------------------

TEST_ON(the_host_has_many_names, TEST_NEEDS_DISCRETE) {
  tarn_device *cpu = open_device("cpu:0");
  tarn_place names[] = {
      TARN_HOST,
      {cpu, TARN_PLACE_HOST},
      {cpu, TARN_PLACE_DEVICE},
      {cpu, TARN_PLACE_UNIFIED},
      {device, TARN_PLACE_HOST},
  };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    tarn_place place = tarn__route_place(names[i]);
    ck_assert_ptr_null(place.device);
    ck_assert_int_eq(place.kind, TARN_PLACE_HOST);
  }
  tarn_place others[] = {tarn_place_on(device), unified_of(device)};
  for (size_t i = 0; i < 2; i++) {
    tarn_place place = tarn__route_place(others[i]);
    ck_assert_ptr_eq(place.device, device);
    ck_assert_int_eq(place.kind, others[i].kind);
  }
}

TEST_ON(whose_stream, TEST_NEEDS_DISCRETE) {
  tarn_device *a = device;
  tarn_device *b = open_second(a);
  tarn_place on_a = tarn_place_on(a);
  tarn_place on_b = tarn_place_on(b);
  ck_assert_ptr_null(tarn__route_device(TARN_HOST, TARN_HOST));
  ck_assert_ptr_null(tarn__route_device(TARN_HOST, unified_of(a)));
  ck_assert_ptr_null(tarn__route_device(unified_of(a), unified_of(b)));
  ck_assert_ptr_eq(tarn__route_device(TARN_HOST, on_a), a);
  ck_assert_ptr_eq(tarn__route_device(on_a, TARN_HOST), a);
  ck_assert_ptr_eq(tarn__route_device(on_a, on_b), a);
  ck_assert_ptr_eq(tarn__route_device(on_b, on_a), b);
  ck_assert_ptr_eq(tarn__route_device(on_a, unified_of(b)), a);
  ck_assert_ptr_eq(tarn__route_device(unified_of(a), on_b), b);
}

// --- prices ----------------------------------------------------------------

TEST(the_cheapest_way) {
  fake.missing = FAKE_MISSES(memory_copy_p2p);
  tarn_device *a = open_discrete();
  tarn_device *b = open_second(a);
  tarn_device *c = open_device("fake:0");
  tarn_device *d = open_device("fake:1");
  size_t queries = fake_seen.memory_queries;
  unsigned within = tarn__route_price(tarn_place_on(a), unified_of(a));
  unsigned direct = tarn__route_price(tarn_place_on(a), tarn_place_on(b));
  unsigned host = tarn__route_price(TARN_HOST, tarn_place_on(a));
  unsigned staged = tarn__route_price(tarn_place_on(c), tarn_place_on(d));
  ck_assert_uint_lt(within, direct);
  ck_assert_uint_lt(direct, host);
  ck_assert_uint_lt(host, staged);

  ck_assert_uint_eq(tarn__route_price(unified_of(b), tarn_place_on(b)), within);
  ck_assert_uint_eq(tarn__route_price(tarn_place_on(b), tarn_place_on(a)),
                    direct);
  ck_assert_uint_eq(tarn__route_price(tarn_place_on(c), TARN_HOST), host);
  ck_assert_uint_eq(tarn__route_price(unified_of(a), tarn_place_on(b)), host);
  ck_assert_uint_eq(tarn__route_price(TARN_HOST, unified_of(a)), host);
  // Of different plug-ins, whatever each of them can.
  ck_assert_uint_eq(tarn__route_price(tarn_place_on(a), tarn_place_on(c)),
                    staged);
  // A buffer asks with its lock held.
  ck_assert_uint_eq(fake_seen.memory_queries, queries);
}

// --- failures --------------------------------------------------------------

typedef struct broken {
  const char *plan;
  int from;  // 0: the host, 1: sim:0, 2: sim:1
  int to;
  bool queued;
} broken;

static const broken breaks[] = {
    {"memory_copy_h2d@1", 0, 1, false},
    {"memory_copy_d2h@1", 1, 0, false},
    {"memory_copy_p2p@1", 1, 2, false},
    {"async_memory_copy_h2d@1", 0, 1, true},
    {"async_memory_copy_d2h@1", 1, 0, true},
    {"async_memory_copy_p2p@1", 1, 2, true},
};

// The failure is told, and the next copy is made.
TEST_LOOP(a_copy_that_fails, sizeof breaks / sizeof breaks[0]) {
  const broken *b = &breaks[_i];
  tarn_device *first = sim_open("sim:0");
  tarn_device *second = sim_open("sim:1");
  tarn_place places[] = {TARN_HOST, tarn_place_on(first),
                         tarn_place_on(second)};
  tarn__synced_end from = take_end(places[b->from]);
  tarn__synced_end to = take_end(places[b->to]);
  tarn_stream *stream = b->queued ? stream_for(&from, &to) : NULL;
  unsigned char bytes[SIZE];
  sim_fill(bytes, SIZE, 1);
  put(&from, bytes);
  put(&to, bytes);
  assert_ok(tarn_sim_faults(b->plan));
  assert_status(tarn__route_copy(&from, &to, 0, SIZE, stream), TARN_E_DEVICE);
  assert_ok(tarn_sim_faults(NULL));
  if (stream != NULL) {
    assert_status(tarn_stream_destroy(stream), TARN_E_DEVICE);
  }
  assert_holds(&to, bytes);
  check_way(&from, &to);
  give_end(from);
  give_end(to);
  assert_ok(tarn_device_close(first));
  assert_ok(tarn_device_close(second));
}

TEST(a_fill_that_fails) {
  tarn_device *device = sim_open("sim:0");
  tarn__synced_end end = take_end(tarn_place_on(device));
  assert_ok(tarn_sim_faults("device_memory_set@1"));
  assert_status(tarn__route_zero(&end, 0, SIZE), TARN_E_DEVICE);
  assert_ok(tarn_sim_faults(NULL));
  check_zero(&end);
  give_end(end);
  assert_ok(tarn_device_close(device));
}
