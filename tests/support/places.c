#include "support/places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/driver.h"
#include "support/fake_extension.h"
#include "support/fake_plugin.h"
#include "support/run.h"
#include "tarn/sim.h"

const char *test_devices[] = {"cpu:0", "sim:0", "plain:0", "fake:0"};

static int device_count = 4;
static int library_count = 2;

// Before the tests are counted, which constructors of the usual priority do.
__attribute__((constructor(101))) static void choose_devices(void) {
  const char *wanted = driver_wanted();
  if (wanted == NULL) return;
  test_devices[0] = wanted;
  device_count = library_count = 1;
}

int test_device_count(void) {
  test_is_on_devices();
  return device_count;
}

int test_library_count(void) {
  test_is_on_devices();
  return library_count;
}

void add_device(const char *name) {
  driver_add(name);
  if (strncmp(name, "fake", 4) == 0) fake_add();
  if (strncmp(name, "plain", 5) != 0) return;
  tarn_status status = tarn_plugin_load(TARN_PLAIN_PLUGIN);
  ck_assert(status == TARN_OK || status == TARN_E_STATE);  // loaded before
}

static bool fake_is_checked;  // at the end of this test

static void check_fake(void *seen) {
  const fake_ledger *ledger = seen;
  fake_is_checked = false;
  ck_assert_uint_eq(ledger->open_devices, 0);
  ck_assert_uint_eq(ledger->live_blocks, 0);
  ck_assert_uint_eq(ledger->wrong_size, 0);
  if ((fake.missing & FAKE_MISSES(set_device)) == 0)
    ck_assert_uint_eq(ledger->wrong_device, 0);
  ck_assert_uint_eq(fake_ext_seen.wrong, 0);
}

static void close_opened(void *device) {
  assert_ok(tarn_device_close(device));
}

tarn_device *open_device(const char *name) {
  tarn_device *device = NULL;
  add_device(name);
  if (strncmp(name, "fake", 4) == 0 && !fake_is_checked) {
    fake_is_checked = true;  // before the first opens, so behind the last close
    after_test(check_fake, &fake_seen);
  }
  assert_ok(tarn_device_open(name, &device));
  after_test(close_opened, device);
  return device;
}

void close_device(tarn_device *device) {
  forget(device);
  close_opened(device);
}

// Of ranges pools take pages, whatever is named.
static bool has_free_growth(tarn_device *device) {
  const uint32_t sizes = TARN_FN_INIT_SIZE | TARN_FN_REALLOC_SIZE;
  return (tarn_device_functions(device) & sizes) == 0 ||
         (tarn_device_extensions(device) & TARN_EXTENSION_RANGES) != 0;
}

bool device_has(tarn_device *device, unsigned needs) {
  unsigned has = 0;
  if ((tarn_device_functions(device) & TARN_FN_STREAMS) != 0)
    has |= TEST_NEEDS_STREAMS;
  if ((tarn_device_extensions(device) & TARN_EXTENSION_RANGES) != 0)
    has |= TEST_NEEDS_RANGES;
  if ((tarn_device_extensions(device) & TARN_EXTENSION_POINTERS) != 0)
    has |= TEST_NEEDS_POINTERS;
  if (has_free_growth(device)) has |= TEST_NEEDS_FREE_GROWTH;
  if (!tarn_device_host_accessible(device)) has |= TEST_NEEDS_DISCRETE;
  return (needs & ~has) == 0;
}

bool device_has_memory(tarn_device *device, tarn_place_kind kind) {
  tarn_place place = {device, kind};
  tarn_addr address = 0;
  tarn_status status = tarn_device_allocate(place, 1, &address);
  if (status == TARN_E_UNSUPPORTED) return false;
  assert_ok(status);
  assert_ok(tarn_device_deallocate(place, address, 1));
  return true;
}

tarn_device *open_device_with(int i, unsigned needs) {
  tarn_device *device = open_device(test_devices[i]);
  if (device_has(device, needs)) return device;
  close_device(device);
  return NULL;
}

// --- capacity --------------------------------------------------------------

static void shrink_sim(size_t capacity) {
  tarn_sim_options options = {.struct_size = sizeof options,
                              .capacity = capacity};
  tarn_status status = tarn_sim_configure(&options);
  ck_assert(status == TARN_OK || status == TARN_E_STATE);  // it was open before
}

static void shrink_plain(size_t capacity) {
  char text[32];
  snprintf(text, sizeof text, "%zu", capacity);
  ck_assert_int_eq(setenv("PLAIN_CAPACITY", text, 1), 0);
}

static void shrink_fake(size_t capacity) {
  fake.capacity = capacity;
}

static const struct {
  const char *device;
  void (*shrink)(size_t capacity);
} ways[] = {
    {"sim:0", shrink_sim},
    {"plain:0", shrink_plain},
    {"fake:0", shrink_fake},
};

static bool shrink(const char *device, size_t capacity) {
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    if (strcmp(ways[i].device, device) != 0) continue;
    ways[i].shrink(capacity);
    return true;
  }
  return driver_shrink(device, capacity);
}

tarn_device *open_small_device(int i, size_t capacity) {
  if (!shrink(test_devices[i], capacity)) return NULL;
  tarn_device *device = open_device(test_devices[i]);
  size_t total = 0;
  size_t available = 0;
  assert_ok(tarn_device_memory(device, &total, &available));
  ck_assert_uint_eq(total, capacity);
  return device;
}
