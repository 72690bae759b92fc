// The cpu plug-in as a host meets it: InitPlugin with hosts of all sizes, the
// device, its sizes, and the shared object.
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "host.h"

enum { KNOWN = 472, ROOM = 8192, GARBAGE = 0x5a };

// A host's table in the middle of garbage.
typedef struct fake_host {
  union {
    C_DeviceInterface table;
    unsigned char bytes[ROOM];
    void *slots[ROOM / sizeof(void *)];
  };
  CustomRuntimeParams params;
} fake_host;

static void offer(fake_host *host, size_t params_size, size_t table_size) {
  memset(host, GARBAGE, sizeof *host);
  host->table.size = table_size;
  host->params.size = params_size;
  host->params.interface = &host->table;
  InitPlugin(&host->params);
}

static bool all_are(const unsigned char *from, const unsigned char *to,
                    unsigned char value) {
  while (from < to && *from == value)
    from++;
  return from == to;
}

static bool is_reserved(size_t offset) {
  return (offset >= 152 && offset < 216) || (offset >= 336 && offset < 400);
}

TEST(test_fills_tables_of_all_sizes) {
  static const size_t sizes[] = {472, 473, 479, 912, 1032, 1040, 4096};
  static fake_host host;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    offer(&host, sizeof host.params, sizes[i]);
    ck_assert_str_eq(host.params.device_type, "cpu");
    ck_assert_uint_eq(host.table.size, sizes[i]);
    for (size_t at = 8; at < KNOWN; at += 8) {
      ck_assert_msg((host.slots[at / 8] == NULL) == is_reserved(at),
                    "the slot at byte %zu", at);
    }
    unsigned char *end = host.bytes + sizes[i];
    ck_assert(all_are(host.bytes + KNOWN, end, 0));
    ck_assert(all_are(end, host.bytes + ROOM, GARBAGE));
  }
}

TEST(test_serves_both_params) {
  static const size_t sizes[] = {88, 96};
  static fake_host host;
  for (size_t i = 0; i < 2; i++) {
    offer(&host, sizes[i], sizeof host.table);
    ck_assert_uint_eq(host.params.size, sizes[i]);
    ck_assert_uint_eq(host.params.version.major, 0);
    ck_assert_uint_eq(host.params.version.minor, 1);
    ck_assert_uint_eq(host.params.version.patch, 1);
    ck_assert_str_eq(host.params.device_type, "cpu");
    ck_assert_ptr_nonnull(host.params.sub_device_type);
    unsigned char *params = (unsigned char *)&host.params;
    ck_assert(all_are(params + 56, params + sizeof host.params, GARBAGE));
  }
}

TEST(test_refuses_tables_it_cannot_fill) {
  static const size_t sizes[] = {0,   1,     8,        464,
                                 471, 65537, SIZE_MAX, 0x5a5a5a5a5a5a5a5a};
  static fake_host host;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    offer(&host, sizeof host.params, sizes[i]);
    ck_assert_ptr_null(host.params.device_type);
    ck_assert(all_are(host.bytes + 8, host.bytes + ROOM, GARBAGE));
  }
  host.params.interface = NULL;
  host.params.device_type = host.params.reserved;
  InitPlugin(&host.params);
  ck_assert_ptr_null(host.params.device_type);
}

TEST(test_leaves_unknown_params_alone) {
  static fake_host host;
  offer(&host, 87, sizeof host.table);
  ck_assert(all_are(host.bytes + 8, host.bytes + ROOM, GARBAGE));
  unsigned char *params = (unsigned char *)&host.params;
  ck_assert(all_are(params + 16, params + sizeof host.params, GARBAGE));
  InitPlugin(NULL);
}

TEST(test_there_is_one_device) {
  C_DeviceInterface cpu = cpu_table();
  assert_done(cpu.initialize());
  size_t count = 0;
  size_t ids[2] = {7, 7};
  assert_done(cpu.get_device_count(&count));
  ck_assert_uint_eq(count, 1);
  assert_done(cpu.get_device_list(ids));
  ck_assert_uint_eq(ids[0], 0);
  ck_assert_uint_eq(ids[1], 7);
  struct C_Device_st device = {.id = 5};
  assert_done(cpu.init_device(CPU));
  assert_done(cpu.set_device(CPU));
  assert_done(cpu.get_device(&device));
  ck_assert_int_eq(device.id, 0);
  assert_done(cpu.deinit_device(CPU));
  assert_done(cpu.finalize());
}

TEST(test_refuses_other_devices) {
  C_DeviceInterface cpu = cpu_table();
  C_Status (*const calls[])(C_Device) = {cpu.init_device, cpu.set_device,
                                         cpu.deinit_device,
                                         cpu.synchronize_device};
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    assert_c(calls[i](NULL), C_ERROR);
    assert_c(calls[i](NOT_CPU), C_ERROR);
    assert_c(calls[i](&(struct C_Device_st){.id = -1}), C_ERROR);
  }
  assert_c(cpu.get_device(NULL), C_ERROR);
  assert_c(cpu.get_device_count(NULL), C_ERROR);
  assert_c(cpu.get_device_list(NULL), C_ERROR);
}

TEST(test_sizes) {
  C_DeviceInterface cpu = cpu_table();
  size_t total = 0;
  size_t available = 0;
  assert_done(cpu.device_memory_stats(CPU, &total, &available));
  ck_assert_uint_gt(available, 0);
  ck_assert_uint_ge(total, available);
  const struct {
    C_Status (*ask)(C_Device, size_t *);
    size_t expected;
  } sizes[] = {
      {cpu.device_min_chunk_size, 256},
      {cpu.device_max_chunk_size, total},
      {cpu.device_max_alloc_size, total},
      {cpu.device_extra_padding_size, 0},
      {cpu.device_init_alloc_size, (size_t)64 << 20},
      {cpu.device_realloc_size, (size_t)64 << 20},
  };
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    size_t size = 1;
    assert_done(sizes[i].ask(CPU, &size));
    ck_assert_uint_eq(size, sizes[i].expected);
    assert_c(sizes[i].ask(NOT_CPU, &size), C_ERROR);
    ck_assert_uint_eq(size, 0);
    assert_c(sizes[i].ask(NULL, &size), C_ERROR);
    assert_c(sizes[i].ask(CPU, NULL), C_ERROR);
  }
}

TEST(test_stats_refuse_bad_arguments) {
  C_DeviceInterface cpu = cpu_table();
  size_t total = 1;
  size_t available = 1;
  assert_c(cpu.device_memory_stats(CPU, NULL, &available), C_ERROR);
  assert_c(cpu.device_memory_stats(CPU, &total, NULL), C_ERROR);
  assert_c(cpu.device_memory_stats(NULL, &total, &available), C_ERROR);
  ck_assert_uint_eq(total, 0);
  ck_assert_uint_eq(available, 0);
}

TEST(test_the_end_frees_what_was_forgotten) {
  C_DeviceInterface cpu = cpu_table();
  size_t before = tarn_host_memory();
  for (int round = 0; round < 2; round++) {
    C_Stream stream = new_stream(&cpu);
    (void)new_stream(&cpu);
    assert_done(cpu.record_event(CPU, stream, new_event(&cpu)));
    (void)new_event(&cpu);
    ck_assert_uint_gt(tarn_host_memory(), before);
    assert_done(round == 0 ? cpu.finalize() : cpu.deinit_device(CPU));
    ck_assert_uint_eq(tarn_host_memory(), before);
  }
}

static void *open_shared_object(void) {
  void *handle = dlopen(TARN_CPU_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  ck_assert_msg(handle != NULL, "%s", dlerror());
  return handle;
}

TEST(test_the_shared_object_is_a_device_too) {
  void *handle = open_shared_object();
  void (*init)(CustomRuntimeParams *) = NULL;
  void *symbol = dlsym(handle, "InitPlugin");
  ck_assert_ptr_nonnull(symbol);
  memcpy(&init, &symbol, sizeof init);
  C_DeviceInterface cpu = {.size = sizeof cpu};
  CustomRuntimeParams params = {.size = sizeof params, .interface = &cpu};
  init(&params);
  ck_assert_str_eq(params.device_type, "cpu");
  ck_assert(cpu.create_stream != cpu_table().create_stream);
  C_Stream stream = new_stream(&cpu);
  static char from[1 << 20] = "through the shared object";
  static char to[1 << 20];
  assert_done(cpu.async_memory_copy_h2d(CPU, stream, to, from, sizeof to));
  assert_done(cpu.destroy_stream(CPU, stream));
  ck_assert_str_eq(to, from);
}

TEST(test_the_shared_object_exports_one_symbol) {
  static const char *const inside[] = {"tarn_version", "tarn_host_memory",
                                       "tarn__cpu_submit", "tarn__os_map"};
  void *handle = open_shared_object();
  for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++) {
    ck_assert_msg(dlsym(handle, inside[i]) == NULL, "%s", inside[i]);
  }
}
