// Taking in plug-ins: layouts, habits, what is refused, shared objects.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kit.h"

static tarn_status add(void) {
  return tarn_plugin_register(fake_init, NULL, "fake.so");
}

// --- layouts ---------------------------------------------------------------

static const struct {
  size_t params;
  size_t table;
} variants[] = {{96, 1040}, {96, 1032}, {96, 1128},
                {88, 912},  {0, 912},   {88, 0}};

TEST_LOOP(every_layout_variant_is_taken_in,
          sizeof variants / sizeof variants[0]) {
  fake.wants_params = variants[_i].params;
  fake.wants_table = variants[_i].table;
  tarn_device *device = open_device("fake:1");
  ck_assert_str_eq(tarn_device_name(device), "fake:1");
}

// Some clear with their own sizeof, which may exceed any host's.
static const size_t clears[] = {472, 912, 1040, 1168, 4096};

TEST_LOOP(clearing_with_any_size_does_no_harm,
          sizeof clears / sizeof clears[0]) {
  fake.clears = clears[_i];
  fake.clears_size = true;
  fake.missing = FAKE_MISSES(device_memory_set);
  tarn_device *device = open_device("fake:0");
  tarn_device_info info = {.struct_size = sizeof info};
  assert_ok(tarn_device_query(device, &info));
  ck_assert_uint_eq(info.functions & TARN_FN_MEMORY_SET, 0);
}

TEST(what_is_neither_set_nor_cleared_is_missing) {
  fake.missing = FAKE_MISSES(memory_copy_p2p) | FAKE_MISSES(query_event);
  tarn_device *device = open_device("fake:0");
  tarn_device_info info = {.struct_size = sizeof info};
  assert_ok(tarn_device_query(device, &info));
  ck_assert_uint_eq(info.functions & TARN_FN_COPY_P2P, 0);
  ck_assert_uint_ne(info.functions & TARN_FN_ASYNC_P2P, 0);
}

// --- what is refused -------------------------------------------------------

#define MISSES(function) \
  { FAKE_MISSES(function), #function }

static const struct {
  uint64_t bit;
  const char *name;
} needed[] = {
    MISSES(device_memory_allocate),
    MISSES(device_memory_deallocate),
    MISSES(memory_copy_h2d),
    MISSES(memory_copy_d2h),
    MISSES(memory_copy_d2d),
    MISSES(device_memory_stats),
    MISSES(device_min_chunk_size),
    MISSES(get_device_count),
    // halves of pairs and sets
    MISSES(host_memory_allocate),
    MISSES(host_memory_deallocate),
    MISSES(unified_memory_allocate),
    MISSES(unified_memory_deallocate),
    MISSES(create_stream),
    MISSES(destroy_stream),
    MISSES(synchronize_stream),
    MISSES(create_event),
    MISSES(destroy_event),
    MISSES(record_event),
    MISSES(synchronize_event),
};
enum { NEEDED_COUNT = sizeof needed / sizeof needed[0] };

TEST_LOOP(a_missing_function_is_refused_by_name, NEEDED_COUNT) {
  size_t held = tarn_host_memory();
  fake.missing = needed[_i].bit;
  assert_fails(add(), TARN_E_UNSUPPORTED, needed[_i].name);
  assert_error_says("fake.so");
  // It can be mended and tried again: nothing of it has stayed.
  fake.missing = 0;
  assert_ok(add());
  ck_assert_uint_gt(tarn_host_memory(), held);
}

static const char *const bad_types[] = {
    NULL,
    "",
    "a b",
    "x:0",
    "a/b",
    "\x1b[31m",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
enum { BAD_TYPES = sizeof bad_types / sizeof bad_types[0] };

TEST_LOOP(a_bad_type_is_refused, BAD_TYPES) {
  fake.type = bad_types[_i];
  assert_fails(add(), TARN_E_UNSUPPORTED, "device type");
}

TEST(one_that_no_offer_contents_is_refused) {
  fake.wants_table = 77;
  assert_fails(add(), TARN_E_UNSUPPORTED, "whatever size");
}

TEST(a_type_is_taken_once) {
  assert_ok(add());
  assert_fails(add(), TARN_E_STATE, "'fake' is there already");
  fake.type = "cpu";
  assert_status(add(), TARN_E_STATE);
}

static tarn_status count_names(void *context, const char *name) {
  (void)name;
  ++*(int *)context;
  return TARN_OK;
}

TEST(too_many_devices_are_an_error) {
  fake.devices = (size_t)1 << 40;
  fake_add();
  int seen = 0;
  assert_status(tarn_device_each(count_names, &seen), TARN_E_DEVICE);
  ck_assert_int_eq(seen, 3);  // cpu:0, sim:0 and sim:1 came first
}

TEST(a_plugin_may_fork_while_it_is_opened) {
  fake.forks = true;
  (void)open_device("fake:0");
}

// --- shared objects --------------------------------------------------------

TEST(a_real_shared_object_is_loaded) {
  assert_ok(tarn_plugin_load(TARN_TWIN_PLUGIN));
  tarn_device *device = open_device("twin:0");
  tarn_device_info info = {.struct_size = sizeof info};
  assert_ok(tarn_device_query(device, &info));
  ck_assert_str_eq(info.plugin, TARN_TWIN_PLUGIN);
  ck_assert_str_eq(info.type, "twin");
  ck_assert(!info.host_accessible);
}

TEST(a_file_name_stands_in_the_configured_directory) {
  char folder[] = TARN_TWIN_PLUGIN;
  char *slash = strrchr(folder, '/');
  *slash = '\0';
  unsetenv("TARN_PLUGIN_DIR");
  assert_status(tarn_plugin_load(slash + 1), TARN_E_INVALID);
  setenv("TARN_PLUGIN_DIR", ".", 1);
  assert_status(tarn_plugin_load(slash + 1), TARN_E_INVALID);
  setenv("TARN_PLUGIN_DIR", folder, 1);
  assert_ok(tarn_plugin_load(slash + 1));
}

TEST(other_paths_are_refused) {
  assert_status(tarn_plugin_load(NULL), TARN_E_INVALID);
  assert_status(tarn_plugin_load(""), TARN_E_INVALID);
  assert_fails(tarn_plugin_load("./twin.so"), TARN_E_INVALID, "./twin.so");
  assert_fails(tarn_plugin_load("/nowhere/twin.so"), TARN_E_IO,
               "/nowhere/twin.so");
}

TEST(what_a_plugin_needs_and_is_not_there_is_named) {
  assert_fails(tarn_plugin_load(TARN_NEEDY_PLUGIN), TARN_E_IO,
               TARN_NEEDY_PLUGIN
               ": libtarn_absent.so: cannot open shared object file");
}

TEST(what_is_no_plugin_is_refused) {
  char path[] = "/tmp/tarn-noplugin-XXXXXX";
  int fd = mkstemp(path);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(write(fd, "not an object", 13), 13);
  close(fd);
  assert_fails(tarn_plugin_load(path), TARN_E_IO, path);
  unlink(path);
  assert_fails(tarn_plugin_load(TARN_NO_PLUGIN), TARN_E_UNSUPPORTED,
               "no InitPlugin");
}
