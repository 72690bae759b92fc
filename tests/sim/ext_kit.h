// ext_kit.h - simulated devices for tests: their two tables, as a
// plug-in's host sees them.
#ifndef TARN_TESTS_SIM_EXT_KIT_H_
#define TARN_TESTS_SIM_EXT_KIT_H_

#include "kit.h"

#define TarnDeviceExt tarn__sim_device_ext  // as it is called inside libtarn
#include "tarn/device_ext.h"

static const size_t MIB = SIM_MIB;
static const size_t GRANULE = (size_t)64 << 10;
static const size_t CAPACITY = (size_t)64 * SIM_MIB;

static C_DeviceInterface table;
static const tarn_device_ext *ext;
static struct C_Device_st ids[2] = {{0}, {1}};

// Two devices of 64 MiB. |latency_ns| may be 0.
static inline void ext_init(uint64_t latency_ns) {
  tarn_sim_options options = {.struct_size = sizeof options,
                              .capacity = CAPACITY,
                              .latency_ns = latency_ns};
  assert_ok(tarn_sim_configure(&options));
  table = (C_DeviceInterface){.size = sizeof table};
  CustomRuntimeParams params = {.size = sizeof params, .interface = &table};
  InitPlugin(&params);
  ext = TarnDeviceExt();
  assert_done(table.initialize());
  assert_done(table.init_device(&ids[0]));
  assert_done(table.init_device(&ids[1]));
}

// |misuses|: so many lines were expected.
static inline void ext_finalize(size_t misuses) {
  assert_done(table.finalize());
  ck_assert_uint_eq(tarn_host_memory(), 0);
  ck_assert_uint_eq(sim_misuses(), misuses);
}

static inline size_t ext_free_memory(int id) {
  size_t total = 0;
  size_t available = 0;
  require(table.device_memory_stats(&ids[id], &total, &available) == C_SUCCESS);
  require(total == CAPACITY);
  return available;
}

static inline void *ext_pointer(uint64_t address) {
  return (void *)(uintptr_t)address;
}

static inline void assert_text_says(void *stream, const char *part) {
  char text[256];
  ext->error_text(0, stream, text, sizeof text);
  ck_assert_msg(strstr(text, part) != NULL, "'%s' does not say '%s'", text,
                part);
}

// |expression| is refused as a wrong use, and one line more says |words|.
#define assert_refused(expression, words)                 \
  do {                                                    \
    size_t misuses_before = sim_misuses();                \
    assert_status(expression, TARN_E_INVALID);            \
    ck_assert_uint_eq(sim_misuses(), misuses_before + 1); \
    assert_reported(words);                               \
    assert_text_says(NULL, words);                        \
  } while (0)

static inline C_Stream ext_stream(int id) {
  C_Stream stream = NULL;
  assert_done(table.create_stream(&ids[id], &stream));
  return stream;
}

static inline uint64_t ext_reserve(int id, size_t size) {
  uint64_t range = 0;
  assert_ok(ext->range_reserve(id, size, 0, &range));
  require(range != 0 && range % GRANULE == 0);
  return range;
}

static inline uint64_t ext_create(int id, size_t size, uint32_t flags) {
  uint64_t memory = 0;
  assert_ok(ext->memory_create(id, size, flags, &memory));
  require(memory != 0);
  return memory;
}

// Maps |memory| on device |id|, which may then use it.
static inline void ext_map(int id, uint64_t address, size_t size,
                           uint64_t memory) {
  assert_ok(ext->range_map(id, address, size, memory));
  assert_ok(
      ext->range_set_access(id, address, size, id, TARN_EXT_ACCESS_READ_WRITE));
}

static inline void ext_write(int id, uint64_t to, const void *bytes,
                             size_t size) {
  require(table.memory_copy_h2d(&ids[id], ext_pointer(to), bytes, size) ==
          C_SUCCESS);
}

static inline void ext_read(int id, void *bytes, uint64_t from, size_t size) {
  require(table.memory_copy_d2h(&ids[id], bytes, ext_pointer(from), size) ==
          C_SUCCESS);
}

static inline unsigned char ext_byte(int id, uint64_t address) {
  unsigned char byte = 0;
  ext_read(id, &byte, address, 1);
  return byte;
}

#endif  // TARN_TESTS_SIM_EXT_KIT_H_
