// kit.h - simulated devices for tests: opened through tarn/device.h,
// and what they reported.
#ifndef TARN_TESTS_SIM_KIT_H_
#define TARN_TESTS_SIM_KIT_H_

#include <stdlib.h>
#include <string.h>

#define InitPlugin tarn__sim_init_plugin  // as it is called inside libtarn
#include "support/run.h"
#include "tarn/device.h"
#include "tarn/device_abi.h"
#include "tarn/sim.h"

// |expression| is the C_Status |expected|.
#define assert_c(expression, expected) ck_assert_int_eq(expression, expected)
#define assert_done(expression) assert_c(expression, C_SUCCESS)

enum { SIM_MIB = 1 << 20 };

// Before the first device is opened; each test runs in a process of its own.
static inline void sim_set(const char *variable, const char *value) {
  ck_assert_int_eq(setenv(variable, value, 1), 0);
}

static inline tarn_device *sim_open(const char *name) {
  tarn_device *device = NULL;
  assert_ok(tarn_device_open(name, &device));
  return device;
}

static inline tarn_addr sim_take(tarn_device *device, size_t size) {
  tarn_addr address = 0;
  assert_ok(tarn_device_allocate(tarn_place_on(device), size, &address));
  return address;
}

static inline void sim_give(tarn_device *device, tarn_addr address,
                            size_t size) {
  assert_ok(tarn_device_deallocate(tarn_place_on(device), address, size));
}

static inline size_t sim_free_memory(tarn_device *device) {
  size_t total = 0;
  size_t available = 0;
  assert_ok(tarn_device_memory(device, &total, &available));
  return available;
}

static inline size_t sim_misuses(void) {
  return tarn_sim_misuses(NULL, 0);
}

// The newest line of the report has |part|.
static inline void assert_reported(const char *part) {
  char line[256];
  tarn_sim_misuses(line, sizeof line);
  ck_assert_msg(strstr(line, part) != NULL, "'%s' does not say '%s'", line,
                part);
}

static inline void sim_fill(unsigned char *bytes, size_t size, unsigned seed) {
  for (size_t i = 0; i < size; i++) {
    bytes[i] = (unsigned char)(seed + i * 31 + (i >> 8));
  }
}

#endif  // TARN_TESTS_SIM_KIT_H_
