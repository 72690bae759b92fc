// A third-party plug-in: the shared object that TARN_TEST_PLUGIN names, an
// absolute path, whatever device it is for. Skipped by name without one. Every
// test has a process of its own, which loads it anew.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/places.h"
#include "support/run.h"
#include "tarn/device.h"
#include "tarn/pool.h"

enum { NAMES_MAX = 16, NAME_SIZE = 64, ODD_SIZE = (3 << 20) + 12345 };

typedef struct names {
  size_t count;
  char items[NAMES_MAX][NAME_SIZE];
} names;

static tarn_status keep_name(void *context, const char *name) {
  names *all = context;
  ck_assert_uint_lt(all->count, NAMES_MAX);
  snprintf(all->items[all->count++], NAME_SIZE, "%s", name);
  return TARN_OK;
}

static bool has(const names *all, const char *name) {
  for (size_t i = 0; i < all->count; i++) {
    if (strcmp(all->items[i], name) == 0) return true;
  }
  return false;
}

// Loads the plug-in. Its devices are those that were not there before.
static names load(void) {
  names before = {0}, after = {0}, own = {0};
  assert_ok(tarn_device_each(keep_name, &before));
  assert_ok(tarn_plugin_load(getenv("TARN_TEST_PLUGIN")));
  assert_ok(tarn_device_each(keep_name, &after));
  for (size_t i = 0; i < after.count; i++) {
    if (!has(&before, after.items[i])) (void)keep_name(&own, after.items[i]);
  }
  ck_assert_uint_gt(own.count, 0);
  return own;
}

static tarn_device *open_named(const char *name) {
  tarn_device *device = NULL;
  assert_ok(tarn_device_open(name, &device));
  ck_assert_str_eq(tarn_device_name(device), name);
  return device;
}

static tarn_device *load_first(void) {
  names own = load();
  return open_named(own.items[0]);
}

static tarn_addr take(tarn_device *device, size_t size) {
  tarn_addr addr = 0;
  assert_ok(tarn_device_allocate(tarn_place_on(device), size, &addr));
  ck_assert_uint_ne(addr, 0);
  return addr;
}

static void give(tarn_device *device, tarn_addr addr, size_t size) {
  assert_ok(tarn_device_deallocate(tarn_place_on(device), addr, size));
}

static unsigned char *bytes_of(unsigned seed, size_t size) {
  unsigned char *bytes = malloc(size);
  ck_assert_ptr_nonnull(bytes);
  for (size_t i = 0; i < size; i++) {
    seed = seed * 1664525u + 1013904223u;
    bytes[i] = (unsigned char)(seed >> 24);
  }
  return bytes;
}

// --- the device ------------------------------------------------------------

TEST(says_what_it_is) {
  names own = load();
  for (size_t i = 0; i < own.count; i++) {
    tarn_device *device = open_named(own.items[i]);
    tarn_device_info info = {.struct_size = sizeof info};
    size_t total = 0;
    size_t available = 0;
    assert_ok(tarn_device_query(device, &info));
    ck_assert_str_eq(info.plugin, getenv("TARN_TEST_PLUGIN"));
    ck_assert_uint_gt(info.min_chunk, 0);
    ck_assert_uint_eq(info.min_chunk & (info.min_chunk - 1), 0);
    ck_assert_uint_gt(info.max_alloc, 0);
    ck_assert_uint_gt(info.init_size, 0);
    ck_assert_uint_gt(info.realloc_size, 0);
    assert_ok(tarn_device_memory(device, &total, &available));
    ck_assert_uint_gt(total, 0);
    ck_assert_uint_le(available, total);
    assert_ok(tarn_device_synchronize(device));
    assert_ok(tarn_device_close(device));
  }
}

TEST(is_loaded_once) {
  names own = load();
  assert_status(tarn_plugin_load(getenv("TARN_TEST_PLUGIN")), TARN_E_STATE);
  for (int i = 0; i < 3; i++) {
    tarn_device *device = open_named(own.items[0]);
    assert_ok(tarn_device_close(device));
  }
}

TEST(stays_open_while_it_is_used) {
  tarn_device *device = load_first();
  tarn_stream *stream = NULL;
  tarn_addr addr = take(device, 100);
  assert_status(tarn_device_close(device), TARN_E_STATE);
  give(device, addr, 100);
  assert_ok(tarn_stream_create(device, &stream));
  assert_status(tarn_device_close(device), TARN_E_STATE);
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_device_close(device));
}

// --- memory and copies -----------------------------------------------------

static const size_t sizes[] = {1, 7, 256, 4096, 65537, ODD_SIZE};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

// h2d, d2d, d2h: what went in comes out.
static void round_trip(tarn_device *device, size_t size, tarn_stream *stream) {
  unsigned char *in = bytes_of(1, size);
  unsigned char *out = bytes_of(2, size);
  tarn_addr a = take(device, size);
  tarn_addr b = take(device, size);
  ck_assert_uint_ne(a, b);
  assert_ok(tarn_copy_h2d(device, a, in, size, stream));
  assert_ok(tarn_copy_d2d(device, b, a, size, stream));
  assert_ok(tarn_copy_d2h(device, out, b, size, stream));
  if (stream != NULL) assert_ok(tarn_stream_synchronize(stream));
  ck_assert_mem_eq(in, out, size);
  give(device, a, size);
  give(device, b, size);
  free(in);
  free(out);
}

TEST(copies_at_once) {
  tarn_device *device = load_first();
  for (size_t i = 0; i < SIZES; i++) {
    round_trip(device, sizes[i], NULL);
  }
  assert_ok(tarn_device_close(device));
}

TEST(copies_on_a_stream) {
  tarn_device *device = load_first();
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  for (size_t i = 0; i < SIZES; i++) {
    round_trip(device, sizes[i], stream);
  }
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_device_close(device));
}

// By the plug-in, or by copies of a filled piece.
TEST(sets_bytes) {
  tarn_device *device = load_first();
  unsigned char *in = bytes_of(1, ODD_SIZE);
  unsigned char *out = bytes_of(2, ODD_SIZE);
  tarn_addr a = take(device, ODD_SIZE);
  assert_ok(tarn_copy_h2d(device, a, in, ODD_SIZE, NULL));
  assert_ok(tarn_device_set(device, a + 5, 0xab, ODD_SIZE - 9, NULL));
  assert_ok(tarn_copy_d2h(device, out, a, ODD_SIZE, NULL));
  ck_assert_mem_eq(out, in, 5);
  ck_assert_uint_eq(out[5], 0xab);
  ck_assert_mem_eq(out + 5, out + 6, ODD_SIZE - 10);  // all like the first
  ck_assert_mem_eq(out + ODD_SIZE - 4, in + ODD_SIZE - 4, 4);
  give(device, a, ODD_SIZE);
  free(in);
  free(out);
  assert_ok(tarn_device_close(device));
}

static void use_place(tarn_place place) {
  tarn_addr addr = 0;
  void *view = NULL;
  assert_ok(tarn_device_allocate(place, 5000, &addr));
  assert_ok(tarn_device_host_view(place, addr, 5000, &view));
  memset(view, 0x5a, 5000);
  assert_ok(tarn_device_deallocate(place, addr, 5000));
}

TEST(gives_host_memory) {
  tarn_device *device = load_first();
  tarn_device_info info = {.struct_size = sizeof info};
  tarn_place unified = {device, TARN_PLACE_UNIFIED};
  tarn_addr addr = 1;
  assert_ok(tarn_device_query(device, &info));
  use_place((tarn_place){device, TARN_PLACE_HOST});
  if ((info.functions & TARN_FN_UNIFIED_MEMORY) != 0) {
    use_place(unified);
  } else {
    assert_status(tarn_device_allocate(unified, 1, &addr), TARN_E_UNSUPPORTED);
    ck_assert_uint_eq(addr, 0);
  }
  assert_ok(tarn_device_close(device));
}

TEST(refuses_what_is_too_much) {
  tarn_device *device = load_first();
  tarn_addr addr = 1;
  assert_status(
      tarn_device_allocate(tarn_place_on(device), SIZE_MAX / 2, &addr),
      TARN_FULL);
  ck_assert_uint_eq(addr, 0);
  addr = 1;
  assert_status(tarn_device_allocate(tarn_place_on(device), 0, &addr),
                TARN_E_INVALID);
  ck_assert_uint_eq(addr, 0);
  assert_ok(tarn_device_close(device));
}

// --- streams and events ----------------------------------------------------

TEST(marks_its_streams) {
  tarn_device *device = load_first();
  tarn_stream *one = NULL;
  tarn_stream *two = NULL;
  tarn_event *event = NULL;
  unsigned char *in = bytes_of(3, ODD_SIZE);
  unsigned char *out = bytes_of(4, ODD_SIZE);
  tarn_addr a = take(device, ODD_SIZE);
  assert_ok(tarn_stream_create(device, &one));
  assert_ok(tarn_stream_create(device, &two));
  assert_ok(tarn_event_create(device, &event));
  assert_ok(tarn_event_query(event));  // never set
  assert_ok(tarn_copy_h2d(device, a, in, ODD_SIZE, one));
  assert_ok(tarn_event_record(event, one));
  assert_ok(tarn_stream_wait_event(two, event));
  assert_ok(tarn_copy_d2h(device, out, a, ODD_SIZE, two));
  assert_ok(tarn_stream_synchronize(two));
  ck_assert_mem_eq(in, out, ODD_SIZE);
  assert_ok(tarn_event_synchronize(event));
  assert_ok(tarn_event_query(event));
  assert_ok(tarn_stream_join(two, tarn_stream_serial(one)));
  assert_ok(tarn_stream_query(one));
  assert_ok(tarn_event_destroy(event));
  assert_ok(tarn_stream_destroy(two));
  assert_ok(tarn_stream_destroy(one));
  give(device, a, ODD_SIZE);
  free(in);
  free(out);
  assert_ok(tarn_device_close(device));
}

static void add_one(void *context, tarn_status status) {
  if (status == TARN_OK) ++*(int *)context;
}

TEST(calls_back) {
  tarn_device *device = load_first();
  tarn_stream *stream = NULL;
  int calls = 0;
  assert_ok(tarn_stream_create(device, &stream));
  for (int i = 0; i < 10; i++) {
    assert_ok(tarn_stream_add_callback(stream, add_one, &calls));
  }
  assert_ok(tarn_stream_synchronize(stream));
  ck_assert_int_eq(calls, 10);
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_device_close(device));
}

// --- two devices -----------------------------------------------------------

// There and back again.
static void cross(tarn_device *from, tarn_device *to, tarn_stream *stream) {
  unsigned char *in = bytes_of(5, ODD_SIZE);
  unsigned char *out = bytes_of(6, ODD_SIZE);
  tarn_addr a = take(from, ODD_SIZE);
  tarn_addr b = take(to, ODD_SIZE);
  assert_ok(tarn_copy_h2d(from, a, in, ODD_SIZE, NULL));
  assert_ok(tarn_copy_p2p(to, b, from, a, ODD_SIZE, stream));
  if (stream != NULL) assert_ok(tarn_stream_synchronize(stream));
  assert_ok(tarn_copy_d2h(to, out, b, ODD_SIZE, NULL));
  ck_assert_mem_eq(in, out, ODD_SIZE);
  give(from, a, ODD_SIZE);
  give(to, b, ODD_SIZE);
  free(in);
  free(out);
}

static void cross_both_ways(const char *one, const char *other) {
  tarn_device *a = open_named(one);
  tarn_device *b = open_named(other);
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(a, &stream));
  cross(a, b, NULL);
  cross(b, a, NULL);
  cross(a, b, stream);
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_device_close(a));
  assert_ok(tarn_device_close(b));
}

TEST(copies_between_its_devices) {
  names own = load();
  if (own.count < 2) {
    note_skipped("copies between its devices", "it has one device");
    return;
  }
  cross_both_ways(own.items[0], own.items[1]);
}

TEST(copies_to_other_plugins) {
  names own = load();
  for (int i = 0; i < TEST_DEVICES; i++) {
    add_device(test_devices[i]);
    cross_both_ways(own.items[0], test_devices[i]);
  }
}

// --- a pool on it ----------------------------------------------------------

TEST(holds_a_pool) {
  tarn_device *device = load_first();
  tarn_pool *pool = NULL;
  tarn_block block = {0};
  unsigned char *in = bytes_of(7, 100000);
  unsigned char *out = bytes_of(8, 100000);
  assert_ok(tarn_pool_of(tarn_place_on(device), &pool));
  for (int i = 0; i < 8; i++) {
    assert_ok(tarn_pool_alloc(pool, 100000, 512, NULL, &block));
    ck_assert_uint_eq(block.address % 512, 0);
    assert_ok(tarn_copy_h2d(device, block.address, in, 100000, NULL));
    assert_ok(tarn_copy_d2h(device, out, block.address, 100000, NULL));
    ck_assert_mem_eq(in, out, 100000);
    assert_ok(tarn_pool_free(&block, NULL));
  }
  free(in);
  free(out);
  assert_ok(tarn_device_close(device));
}

int main(void) {
  if (getenv("TARN_TEST_PLUGIN") == NULL) {
    return skip_program("somebody else's plug-in",
                        "TARN_TEST_PLUGIN names none");
  }
  return run_tests();
}
