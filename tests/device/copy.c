// Copies in every direction, on devices of every ability.
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "kit.h"
#include "support/hold.h"

enum { SIZE = 3 * TARN__STAGING_SLOT_SIZE + 12345 };

static unsigned char *bytes_of(unsigned seed, size_t size) {
  unsigned char *bytes = malloc(size);
  ck_assert_ptr_nonnull(bytes);
  for (size_t i = 0; i < size; i++) {
    seed = seed * 1664525u + 1013904223u;
    bytes[i] = (unsigned char)(seed >> 24);
  }
  return bytes;
}

// h2d, d2d, d2h: what went in comes out.
static void round_trip(tarn_device *device, tarn_stream *stream) {
  unsigned char *in = bytes_of(1, SIZE);
  unsigned char *out = bytes_of(2, SIZE);
  tarn_addr a = take(device, SIZE);
  tarn_addr b = take(device, SIZE);
  assert_ok(tarn_copy_h2d(device, a, in, SIZE, stream));
  assert_ok(tarn_copy_d2d(device, b, a, SIZE, stream));
  assert_ok(tarn_copy_d2h(device, out, b, SIZE, stream));
  if (stream != NULL) assert_ok(tarn_stream_synchronize(stream));
  ck_assert_mem_eq(in, out, SIZE);

  assert_ok(tarn_device_set(device, a + 5, 0xab, SIZE - 9, stream));
  assert_ok(tarn_copy_d2h(device, out, a, SIZE, NULL));
  ck_assert_mem_eq(out, in, 5);
  ck_assert_uint_eq(out[5], 0xab);
  ck_assert_mem_eq(out + 5, out + 6, SIZE - 10);  // all like the first
  ck_assert_mem_eq(out + SIZE - 4, in + SIZE - 4, 4);
  give(device, a, SIZE);
  give(device, b, SIZE);
  free(in);
  free(out);
}

static void round_trips(tarn_device *device) {
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  round_trip(device, NULL);
  round_trip(device, stream);
  assert_ok(tarn_stream_destroy(stream));
}

TEST_LOOP(on_every_device, TEST_DEVICES) {
  round_trips(open_device(test_devices[_i]));
}

TEST(on_a_shared_object) {
  assert_ok(tarn_plugin_load(TARN_TWIN_PLUGIN));
  tarn_device *device = open_device("twin:0");
  round_trips(device);
}

#define ALL_ASYNC                                                            \
  (FAKE_MISSES(async_memory_copy_h2d) | FAKE_MISSES(async_memory_copy_d2h) | \
   FAKE_MISSES(async_memory_copy_d2d) | FAKE_MISSES(async_memory_copy_p2p))
#define ALL_STREAMS                                              \
  (FAKE_MISSES(create_stream) | FAKE_MISSES(destroy_stream) |    \
   FAKE_MISSES(synchronize_stream) | FAKE_MISSES(query_stream) | \
   FAKE_MISSES(stream_add_callback))

static const uint64_t abilities[] = {
    0,
    ALL_ASYNC,
    ALL_STREAMS,  // its asynchronous copies are of no use without streams
    ALL_ASYNC | ALL_STREAMS,
    FAKE_MISSES(device_memory_set),
    FAKE_MISSES(device_memory_set) | FAKE_MISSES(memory_copy_p2p) | ALL_ASYNC,
    FAKE_MISSES(set_device) | FAKE_MISSES(get_device) |
        FAKE_MISSES(init_device) | FAKE_MISSES(deinit_device) |
        FAKE_MISSES(initialize) | FAKE_MISSES(finalize) |
        FAKE_MISSES(get_device_list) | FAKE_MISSES(synchronize_device),
};
enum { ABILITIES = sizeof abilities / sizeof abilities[0] };

TEST_LOOP(with_and_without_the_optional_functions, ABILITIES) {
  fake.missing = abilities[_i];
  tarn_device *device = open_device("fake:0");
  round_trips(device);
  assert_ok(tarn_device_synchronize(device));
}

TEST(without_handles_everything_is_synchronous) {
  fake.null_handles = true;
  tarn_device *device = open_device("fake:0");
  round_trips(device);
}

TEST(the_right_device_is_current_for_every_call) {
  tarn_device *a = open_device("fake:0");
  tarn_device *b = open_device("fake:1");
  fake_seen.wrong_device = 0;
  for (int i = 0; i < 3; i++) {
    round_trips(a);
    round_trips(b);
  }
  ck_assert_uint_gt(fake_seen.set_device_calls, 60);
  ck_assert_uint_eq(fake_seen.wrong_device, 0);
  ck_assert_uint_eq(fake_seen.wrong_id, 0);
}

// --- between devices -------------------------------------------------------

static void between(tarn_device *a, tarn_device *b, tarn_stream *stream) {
  unsigned char *in = bytes_of(3, SIZE);
  unsigned char *out = bytes_of(4, SIZE);
  tarn_addr from = take(a, SIZE);
  tarn_addr to = take(b, SIZE);
  assert_ok(tarn_copy_h2d(a, from, in, SIZE, stream));
  assert_ok(tarn_copy_p2p(b, to, a, from, SIZE, stream));
  if (stream != NULL) assert_ok(tarn_stream_synchronize(stream));
  assert_ok(tarn_copy_d2h(b, out, to, SIZE, NULL));
  ck_assert_mem_eq(in, out, SIZE);
  give(a, from, SIZE);
  give(b, to, SIZE);
  free(in);
  free(out);
}

static void both_ways(tarn_device *a, tarn_device *b) {
  tarn_stream *on_a = NULL;
  tarn_stream *on_b = NULL;
  assert_ok(tarn_stream_create(a, &on_a));
  assert_ok(tarn_stream_create(b, &on_b));
  between(a, b, NULL);
  between(b, a, NULL);
  between(a, b, on_a);
  between(b, a, on_b);
  assert_ok(tarn_stream_destroy(on_a));
  assert_ok(tarn_stream_destroy(on_b));
}

static const uint64_t p2p_abilities[] = {
    0, FAKE_MISSES(memory_copy_p2p), FAKE_MISSES(async_memory_copy_p2p),
    FAKE_MISSES(memory_copy_p2p) | FAKE_MISSES(async_memory_copy_p2p)};

TEST_LOOP(within_a_plugin, 4) {
  fake.missing = p2p_abilities[_i];
  tarn_device *a = open_device("fake:0");
  tarn_device *b = open_device("fake:1");
  both_ways(a, b);
  between(a, a, NULL);
  close_device(a);
  close_device(b);
  ck_assert_uint_eq(fake_seen.live_blocks, 0);  // its staging memory too
}

TEST(across_plugins) {
  assert_ok(tarn_plugin_load(TARN_TWIN_PLUGIN));
  tarn_device *devices[] = {open_device("cpu:0"), open_device("fake:0"),
                            open_device("twin:0")};
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < i; j++)
      both_ways(devices[i], devices[j]);
  }
  for (int i = 0; i < 3; i++)
    close_device(devices[i]);
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
}

// Each driver has words for its own failures only.
TEST(across_plugins_the_end_that_fails_is_named) {
  fake_ext.there = true;
  fake_ext.text = "another affair";
  tarn_device *source = open_device("fake:0");
  tarn_device *target = open_device("sim:0");
  tarn_addr from = take(source, 64);
  tarn_addr to = take(target, 64);
  tarn_status status = tarn_copy_p2p(target, to + 224, source, from, 64, NULL);
  assert_fails(status, TARN_E_DEVICE,
               "sim:0: a copy through the host of 64 bytes answered");
  assert_error_says("beyond the end of a block");
  give(source, from, 64);
  give(target, to, 64);
}

// --- what is refused -------------------------------------------------------

// --- when a queued copy uses memory ----------------------------------------

static const size_t queued_sizes[] = {1, 4096, SIZE};
enum { QUEUED_SIZES = sizeof queued_sizes / sizeof queued_sizes[0] };

// Nothing is staged at the call: what stands in the source when the copy runs
// is what is copied. So the source must stay until then.
static void change_behind_the_copy(tarn_device *device, size_t size) {
  hold held;
  tarn_stream *stream = NULL;
  unsigned char *in = bytes_of(1, size);
  unsigned char *later = bytes_of(2, size);
  unsigned char *out = bytes_of(3, size);
  tarn_addr addr = take(device, size);
  assert_ok(tarn_stream_create(device, &stream));
  hold_begin(&held, stream);
  assert_ok(tarn_copy_h2d(device, addr, in, size, stream));
  assert_ok(tarn_copy_d2h(device, out, addr, size, stream));
  memcpy(in, later, size);
  hold_end(&held);
  assert_ok(tarn_stream_synchronize(stream));
  free(in);  // not before
  ck_assert_mem_eq(out, later, size);
  assert_ok(tarn_stream_destroy(stream));
  give(device, addr, size);
  free(later);
  free(out);
}

TEST_LOOP(a_queued_copy_reads_its_source_when_it_runs, LIBRARY_DEVICES) {
  tarn_device *device = open_device(test_devices[_i]);
  for (size_t i = 0; i < QUEUED_SIZES; i++)
    change_behind_the_copy(device, queued_sizes[i]);
}

TEST(bad_ends_are_refused_and_nothing_is_nothing) {
  tarn_device *device = open_device("cpu:0");
  char bytes[8] = {0};
  tarn_addr addr = take(device, 8);
  assert_status(tarn_copy_h2d(device, 0, bytes, 8, NULL), TARN_E_INVALID);
  assert_status(tarn_copy_h2d(device, addr, NULL, 8, NULL), TARN_E_INVALID);
  assert_status(tarn_copy_d2h(device, NULL, addr, 8, NULL), TARN_E_INVALID);
  assert_status(tarn_copy_d2d(device, addr, 0, 8, NULL), TARN_E_INVALID);
  assert_status(tarn_copy_p2p(device, 0, device, addr, 8, NULL),
                TARN_E_INVALID);
  assert_status(tarn_device_set(device, 0, 1, 8, NULL), TARN_E_INVALID);
  assert_status(tarn_copy_h2d(NULL, addr, bytes, 8, NULL), TARN_E_INVALID);
  assert_status(tarn_copy_p2p(NULL, addr, device, addr, 8, NULL),
                TARN_E_INVALID);
  assert_ok(tarn_copy_h2d(device, 0, NULL, 0, NULL));
  assert_ok(tarn_copy_d2h(device, NULL, 0, 0, NULL));
  assert_ok(tarn_copy_d2d(device, 0, 0, 0, NULL));
  assert_ok(tarn_copy_p2p(device, 0, device, 0, 0, NULL));
  assert_ok(tarn_device_set(device, 0, 1, 0, NULL));
  give(device, addr, 8);
}

TEST(a_stream_of_another_device_is_refused) {
  tarn_device *device = open_device("fake:0");
  tarn_device *cpu = open_device("cpu:0");
  char bytes[8] = {0};
  tarn_stream *stream = stream_on(cpu);
  assert_fails(tarn_copy_h2d(device, 4096, bytes, 8, stream), TARN_E_INVALID,
               "a stream of cpu:0 is none of fake:0");
  assert_ok(tarn_stream_synchronize(stream));
}

TEST(a_failing_copy_names_the_call_and_the_answer) {
  fake.copy_answer = C_ERROR;
  tarn_device *device = open_device("fake:0");
  char bytes[8] = {0};
  tarn_addr addr = take(device, 8);
  assert_fails(tarn_copy_h2d(device, addr, bytes, 8, NULL), TARN_E_DEVICE,
               "fake:0: memory_copy_h2d of 8 bytes answered 3 (C_ERROR");
  fake.copy_answer = C_WARNING;  // done, with something to say
  assert_ok(tarn_copy_h2d(device, addr, bytes, 8, NULL));
  give(device, addr, 8);
}

// Every piece may come with a warning, and every piece is set.
TEST(a_warning_does_not_end_the_stand_in_for_setting) {
  fake.missing = FAKE_MISSES(device_memory_set);
  fake.copy_answer = C_WARNING;
  tarn_device *device = open_device("fake:0");
  unsigned char *bytes = bytes_of(5, SIZE);
  tarn_addr addr = take(device, SIZE);
  assert_ok(tarn_device_set(device, addr, 0x5a, SIZE, NULL));
  assert_ok(tarn_copy_d2h(device, bytes, addr, SIZE, NULL));
  ck_assert_uint_eq(bytes[0], 0x5a);
  ck_assert_mem_eq(bytes, bytes + 1, SIZE - 1);  // all like the first
  give(device, addr, SIZE);
  free(bytes);
}
