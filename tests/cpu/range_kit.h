// range_kit.h - ranges and memory of the cpu device, for its tests:
// calls that must succeed, what the kernel says of addresses.
#ifndef TARN_TESTS_CPU_RANGE_KIT_H_
#define TARN_TESTS_CPU_RANGE_KIT_H_

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/os.h"
#include "host.h"
#include "support/faults.h"

#define MIB ((size_t)1 << 20)
#define GRANULE ((size_t)64 << 10)

static inline unsigned char *bytes_at(uint64_t addr) {
  return (unsigned char *)(uintptr_t)addr;
}

// The kernel's copy faults as the program would, but without a signal.
static inline bool can_read(uint64_t addr) {
  int ends[2];
  ck_assert_int_eq(pipe(ends), 0);
  bool can = write(ends[1], bytes_at(addr), 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return can;
}

static inline uint64_t reserve(size_t size) {
  uint64_t addr = 0;
  assert_ext_ok(TarnDeviceExt()->range_reserve(0, size, 0, &addr));
  return addr;
}

static inline uint64_t create(size_t size, uint32_t flags) {
  uint64_t memory = 0;
  assert_ext_ok(TarnDeviceExt()->memory_create(0, size, flags, &memory));
  ck_assert_uint_ne(memory, 0);
  return memory;
}

static inline void map(uint64_t addr, size_t size, uint64_t memory) {
  assert_ext_ok(TarnDeviceExt()->range_map(0, addr, size, memory));
  assert_ext_ok(TarnDeviceExt()->range_set_access(0, addr, size, 0,
                                                  TARN_EXT_ACCESS_READ_WRITE));
}

static inline void unmap(uint64_t addr, size_t size) {
  assert_ext_ok(TarnDeviceExt()->range_unmap(0, addr, size));
}

static inline void release(uint64_t addr, size_t size) {
  assert_ext_ok(TarnDeviceExt()->range_release(0, addr, size));
}

static inline void destroy(uint64_t memory) {
  assert_ext_ok(TarnDeviceExt()->memory_destroy(0, memory));
}

// Mappings of the kernel that begin in so many bytes.
static inline size_t kernel_mappings_in(uint64_t addr, size_t size) {
  FILE *file = fopen("/proc/self/maps", "r");
  char line[512];
  size_t count = 0;
  ck_assert_ptr_nonnull(file);
  while (fgets(line, sizeof line, file) != NULL) {
    count += strtoull(line, NULL, 16) - addr < size;
  }
  fclose(file);
  return count;
}

// All that this process has. A sanitizer maps a few more now and then.
enum { NOISE = 64 };

static inline size_t kernel_mappings(void) {
  return kernel_mappings_in(0, SIZE_MAX);
}

// Flags of memory of either sort, for loops.
static const uint32_t BOTH[] = {0, TARN_EXT_MEMORY_SHAREABLE};

#endif  // TARN_TESTS_CPU_RANGE_KIT_H_
