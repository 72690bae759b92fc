// The N-th host allocation or device call fails, and the N-th and all later,
// for every N, over every public function of the room. test_device_sweeps.c
// does the same a million times.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_scenes.h"
#include "support/fake_extension.h"
#include "support/fake_plugin.h"
#include "support/faults.h"
#include "support/run.h"
#include "tarn/device.h"

// --- the list of functions -------------------------------------------------

static char *read_header(const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", TARN_HEADERS, name);
  FILE *file = fopen(path, "r");
  ck_assert_msg(file != NULL, "%s", path);
  char *text = calloc(1, 1 << 20);
  ck_assert_ptr_nonnull(text);
  ck_assert_uint_lt(fread(text, 1, (1 << 20) - 1, file), (1 << 20) - 1);
  fclose(file);
  return text;
}

static bool is_listed(const char *name, size_t length) {
  for (size_t i = 0; i < DEVICE_FUNCTION_COUNT; i++) {
    const char *listed = device_function_name(i);
    if (strlen(listed) == length && memcmp(listed, name, length) == 0) {
      return true;
    }
  }
  return false;
}

// The name before the first '(' behind each TARN_API; how many there are.
static size_t check_header(const char *header) {
  char *text = read_header(header);
  size_t count = 0;
  const char *at = text;
  while ((at = strstr(at, "\nTARN_API ")) != NULL) {
    at = strchr(at, '(');
    ck_assert_ptr_nonnull(at);
    const char *begin = at;
    while (begin[-1] == '_' || (begin[-1] >= '0' && begin[-1] <= '9') ||
           (begin[-1] >= 'a' && begin[-1] <= 'z')) {
      begin--;
    }
    ck_assert_msg(is_listed(begin, (size_t)(at - begin)),
                  "%s: %.*s is in no sweep: list it in device_scenes.h and "
                  "call it in a scene",
                  header, (int)(at - begin), begin);
    count++;
  }
  free(text);
  return count;
}

TEST(every_public_function_is_listed) {
  size_t count = check_header("device.h") + check_header("stream.h") +
                 check_header("range.h") + check_header("rows.h");
  ck_assert_uint_eq(count, DEVICE_FUNCTION_COUNT);
}

// --- sweeps ----------------------------------------------------------------

static const scene_place place = {"fake:0", "fake:1", TARN_TWIN_PLUGIN};

static void play(void *context) {
  scene_play(*(size_t *)context, &place);
  require(fake_seen.live_blocks == 0 && fake_seen.wrong_size == 0);
  require(fake_seen.streams == 0 && fake_seen.events == 0);
  require(fake_ext_seen.ranges == 0 && fake_ext_seen.memories == 0);
  require(fake_ext_seen.mappings == 0 && fake_ext_seen.registered == 0);
  require(fake_ext_seen.wrong == 0);
}

static const struct {
  uint64_t missing;
  bool extends;
} abilities[] = {
    {0, true},
    {FAKE_MISSES(memory_copy_p2p) | FAKE_MISSES(device_memory_set) |
         FAKE_MISSES(async_memory_copy_p2p) |
         FAKE_MISSES(async_memory_copy_h2d),
     false},
    {FAKE_MISSES(host_memory_allocate) | FAKE_MISSES(host_memory_deallocate) |
         FAKE_MISSES(memory_copy_p2p) | FAKE_MISSES(stream_add_callback) |
         FAKE_MISSES(query_event) | FAKE_MISSES(stream_wait_event),
     false},
};

TEST_LOOP(every_call_may_fail, sizeof abilities / sizeof abilities[0]) {
  size_t faults = 0;
  fake.missing = abilities[_i].missing;
  fake_ext.there = abilities[_i].extends;
  if (!fake_ext.there) fake.misalign = 8;
  fake_add();
  for (size_t scene = 0; scene < scene_count(); scene++) {
    play(&scene);  // what is opened once and for all is opened now
    fake.strikes = true;
    faults += faults_sweep(play, &scene);
    fake.strikes = false;
  }
  for (size_t i = 0; abilities[_i].extends && i < DEVICE_FUNCTION_COUNT; i++) {
    ck_assert_msg(device_calls[i] > 0, "%s is called by no scene",
                  device_function_name(i));
  }
  printf("device: %zu faults, 0 leaks (abilities %d)\n", faults, _i);
  ck_assert_uint_gt(faults, 1000);
}

// The first use of all makes the registry and opens cpu:0, once per process:
// each fault needs a process of its own, which Check gives to each test.
TEST_RANGE(the_first_open_may_fail, 1, 16) {
  size_t held = tarn_host_memory();
  tarn_device *device = NULL;
  faults_arm((size_t)_i, FAULTS_FROM_NOW);
  tarn_status status = tarn_device_open("cpu:0", &device);
  bool struck = faults_disarm();
  ck_assert_int_eq(status, struck ? TARN_E_NOMEM : TARN_OK);
  if (struck) ck_assert_ptr_null(device);
  if (struck && _i == 1) ck_assert_uint_eq(tarn_host_memory(), held);
  assert_ok(tarn_device_open("cpu:0", &device));  // the next try succeeds
  assert_ok(tarn_device_close(device));
}

int main(void) {
  faults_install();
  return run_tests();
}
