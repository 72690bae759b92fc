// Plug-ins that are part of the program: registering them, what they say of
// themselves, what is refused, faults, threads, forks. That all the checks of
// one that is loaded are made, test_device_hostile.c shows.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kit.h"
#include "support/child.h"
#include "support/faults.h"

static const char mine[] = "my runtime";

static tarn_device_info info_of(tarn_device *device) {
  tarn_device_info info = {.struct_size = sizeof info};
  assert_ok(tarn_device_query(device, &info));
  return info;
}

// Bytes go to |device| and come back.
static void use(tarn_device *device) {
  char in[] = "through the device";
  char out[sizeof in] = "";
  tarn_addr addr = 0;
  tarn_place place = tarn_place_on(device);
  assert_ok(tarn_device_allocate(place, sizeof in, &addr));
  assert_ok(tarn_copy_h2d(device, addr, in, sizeof in, NULL));
  assert_ok(tarn_copy_d2h(device, out, addr, sizeof in, NULL));
  ck_assert_str_eq(out, in);
  assert_ok(tarn_device_deallocate(place, addr, sizeof in));
}

static tarn_status count_fakes(void *context, const char *name) {
  *(int *)context += strncmp(name, "fake:", 5) == 0;
  return TARN_OK;
}

// --- what is registered ----------------------------------------------------

// Nothing has been asked of the library before.
TEST(a_registered_plugin_is_one_like_others) {
  int listed = 0;
  assert_ok(tarn_plugin_register(fake_init, NULL, mine));
  tarn_device *device = open_device("fake:1");
  tarn_device_info info = info_of(device);
  ck_assert_str_eq(info.plugin, mine);
  ck_assert_str_eq(info.type, "fake");
  ck_assert_str_eq(info.name, "fake:1");
  ck_assert_uint_eq(info.extensions, 0);
  ck_assert(!info.host_accessible);
  use(device);
  assert_ok(tarn_device_each(count_fakes, &listed));
  ck_assert_int_eq(listed, 2);
  close_device(device);
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  ck_assert_uint_eq(fake_seen.open_devices, 0);
}

TEST(it_may_come_when_devices_are_open) {
  tarn_device *before[] = {open_device(test_devices[0]),
                           open_device(test_devices[1])};
  (void)stream_on(before[0]);
  assert_ok(tarn_plugin_register(fake_init, NULL, mine));
  tarn_device *device = open_device("fake:0");
  use(device);
  use(before[0]);
  use(before[1]);
  // One more, of the same name, when this one is open.
  fake.type = "other";
  assert_ok(tarn_plugin_register(fake_init, NULL, mine));
  tarn_device *other = open_device("other:0");
  ck_assert_ptr_ne(other, device);
  use(other);
  use(device);
}

TEST(its_extension_is_used) {
  fake_ext.there = true;
  assert_ok(tarn_plugin_register(fake_init, fake_extension, mine));
  tarn_device *device = open_device("fake:0");
  tarn_device_info info = info_of(device);
  ck_assert_uint_ne(info.extensions & TARN_EXTENSION_ALIGNED, 0);
  ck_assert_uint_ne(info.extensions & TARN_EXTENSION_RANGES, 0);
  ck_assert_uint_eq(info.alignment, 256);
}

TEST(names_are_copied) {
  char name[] = "soon gone";
  char type[] = "mine";
  fake.type = type;
  assert_ok(tarn_plugin_register(fake_init, NULL, name));
  memset(name, 'x', sizeof name - 1);
  memset(type, 'x', sizeof type - 1);
  tarn_device *device = open_device("mine:0");
  ck_assert_str_eq(info_of(device).plugin, "soon gone");
}

// It spoils the table that it was given once that has been read.
static C_DeviceInterface *kept_table;

static void init_and_keep(CustomRuntimeParams *params) {
  fake_init(params);
  kept_table = params->interface;
}

static const tarn_device_ext *spoil(void) {
  memset(kept_table, 0xff, offsetof(C_DeviceInterface, beyond));
  return NULL;
}

TEST(the_table_is_copied) {
  assert_ok(tarn_plugin_register(init_and_keep, spoil, mine));
  tarn_device *device = open_device("fake:0");
  use(device);
}

// --- what is refused -------------------------------------------------------

TEST(names_that_are_none) {
  char longest[257];
  memset(longest, 'x', sizeof longest);
  longest[256] = '\0';
  const char *const wrong[] = {NULL,        "",     "a\nb", "\x1b[31m",
                               "tab\there", "\x7f", longest};
  size_t held = tarn_host_memory();
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_fails(tarn_plugin_register(fake_init, NULL, wrong[i]),
                 TARN_E_INVALID, "name");
  }
  ck_assert_uint_eq(tarn_host_memory(), held);
  longest[255] = '\0';
  assert_ok(tarn_plugin_register(fake_init, NULL, longest));
  fake.type = "other";
  assert_ok(tarn_plugin_register(fake_init, NULL, "a b, c (d:0) \xc3\xa4/"));
}

TEST(no_init_is_refused) {
  assert_fails(tarn_plugin_register(NULL, NULL, mine), TARN_E_INVALID, mine);
  assert_status(tarn_plugin_register(NULL, fake_extension, mine),
                TARN_E_INVALID);
}

static void assert_taken(const char *type, const char *by) {
  size_t held = tarn_host_memory();
  fake.type = type;
  assert_fails(tarn_plugin_register(fake_init, fake_extension, "the late one"),
               TARN_E_STATE, "the late one");
  assert_error_says(type);
  assert_error_says(by);
  ck_assert_uint_eq(tarn_host_memory(), held);
}

TEST(a_type_that_is_there) {
  assert_ok(tarn_plugin_register(fake_init, NULL, mine));
  assert_ok(tarn_plugin_load(TARN_TWIN_PLUGIN));
  assert_taken("cpu", "built-in");
  assert_taken("sim", "built-in");
  assert_taken("fake", mine);
  assert_taken("twin", TARN_TWIN_PLUGIN);
  // What was there first is as before.
  tarn_device *device = open_device("fake:0");
  ck_assert_str_eq(info_of(device).plugin, mine);
  close_device(device);
  device = open_device("twin:0");
  ck_assert_str_eq(info_of(device).plugin, TARN_TWIN_PLUGIN);
}

TEST(one_that_is_loaded_finds_its_type_taken) {
  fake.type = "twin";
  assert_ok(tarn_plugin_register(fake_init, NULL, mine));
  assert_fails(tarn_plugin_load(TARN_TWIN_PLUGIN), TARN_E_STATE,
               TARN_TWIN_PLUGIN);
  assert_error_says(mine);
}

// Refused with its name and |says|, and taken once it is mended.
static void assert_mendable(const char *says) {
  tarn_device *cpu = open_device("cpu:0");
  size_t held = tarn_host_memory();
  tarn_device *device = NULL;
  assert_fails(tarn_plugin_register(fake_init, fake_extension, mine),
               TARN_E_UNSUPPORTED, mine);
  assert_error_says(says);
  ck_assert_uint_eq(tarn_host_memory(), held);
  assert_status(tarn_device_open("fake:0", &device), TARN_E_INVALID);
  ck_assert_ptr_null(device);
  fake.type = "fake";
  fake.missing = 0;
  fake.wants_table = 0;
  fake_ext.missing = 0;
  fake_ext.struct_size = 0;
  assert_ok(tarn_plugin_register(fake_init, fake_extension, mine));
  close_device(cpu);
}

TEST(one_without_a_type) {
  fake.type = NULL;
  assert_mendable("names no device type");
}

TEST(half_a_table) {
  fake.missing = FAKE_MISSES(memory_copy_d2d);
  assert_mendable("memory_copy_d2d");
}

TEST(half_a_set) {
  fake.missing = FAKE_MISSES(create_stream);
  assert_mendable("create_stream");
}

TEST(one_that_no_table_contents) {
  fake.wants_table = 77;
  assert_mendable("whatever size");
}

TEST(an_extension_of_no_size) {
  fake_ext.there = true;
  fake_ext.struct_size = 3;
  assert_mendable("3 bytes");
}

TEST(half_a_set_of_the_extension) {
  fake_ext.there = true;
  fake_ext.missing = FAKE_SLOT(range_unmap);
  assert_mendable("range_unmap");
}

// It changes the size that it is told, and clears more than there is.
TEST(sizes_that_are_changed_do_no_harm) {
  fake.clears = 4096;
  fake.clears_size = true;
  assert_ok(tarn_plugin_register(fake_init, NULL, mine));
  tarn_device *device = open_device("fake:0");
  use(device);
}

// --- calls back ------------------------------------------------------------

static int refusals;

static void expect_refusal(tarn_status status) {
  if (status != TARN_E_STATE) ck_abort_msg("%s", tarn_status_name(status));
  if (strstr(tarn_last_error(), "plug-in") == NULL) {
    ck_abort_msg("says: %s", tarn_last_error());
  }
  refusals++;
}

static tarn_status ignore_name(void *context, const char *name) {
  (void)context;
  (void)name;
  return TARN_OK;
}

static tarn_status ignore_plugin(void *context, const tarn_plugin_info *info) {
  (void)context;
  (void)info;
  return TARN_OK;
}

enum { REFUSALS = 6 };  // of each call of the function below

static void call_back(void) {
  tarn_device *device = NULL;
  expect_refusal(tarn_device_open("cpu:0", &device));
  expect_refusal(tarn_device_open("unknown:0", &device));
  ck_assert_ptr_null(device);
  expect_refusal(tarn_device_each(ignore_name, NULL));
  expect_refusal(tarn_plugin_each(ignore_plugin, NULL));
  expect_refusal(tarn_plugin_register(fake_init, NULL, "within"));
  expect_refusal(tarn_plugin_load(TARN_TWIN_PLUGIN));
}

static void init_and_call_back(CustomRuntimeParams *params) {
  call_back();
  fake_init(params);
}

static const tarn_device_ext *extend_and_call_back(void) {
  call_back();
  return NULL;
}

TEST(what_init_calls_is_refused_and_does_not_hang) {
  assert_ok(
      tarn_plugin_register(init_and_call_back, extend_and_call_back, mine));
  ck_assert_int_eq(refusals, 2 * REFUSALS);
  tarn_device *device = open_device("fake:0");
  use(device);
}

static C_Status (*fakes_own_init)(const C_Device device);

static C_Status init_device_and_call_back(const C_Device device) {
  call_back();
  return fakes_own_init(device);
}

static void init_one_that_calls_back(CustomRuntimeParams *params) {
  fake_init(params);
  fakes_own_init = params->interface->init_device;
  params->interface->init_device = init_device_and_call_back;
}

TEST(what_a_device_that_is_opened_calls_is_refused_too) {
  assert_ok(tarn_plugin_register(init_one_that_calls_back, NULL, mine));
  ck_assert_int_eq(refusals, 0);
  tarn_device *device = open_device("fake:0");
  ck_assert_int_eq(refusals, REFUSALS);
  use(device);
}

// Queries look for a device under the lock that closing holds.
static tarn_status query_and_register(tarn_device *device, void *pointer,
                                      bool commit) {
  tarn_pointer_info info;
  if (commit) return TARN_OK;
  assert_ok(tarn_device_pointer_query(device, 4096, &info));
  ck_assert_ptr_eq(info.place.device, device);
  expect_refusal(tarn_plugin_register(fake_init, NULL, pointer));
  expect_refusal(tarn_device_close(device));
  return TARN_OK;
}

TEST(what_is_attached_asks_for_pointers_and_is_refused_the_rest) {
  char other[] = "other";
  fake_ext.there = true;
  fake_ext.pointer = (tarn_ext_pointer){
      .kind = TARN_EXT_KIND_DEVICE, .base = 4096, .size = 64};
  assert_ok(tarn_plugin_register(fake_init, fake_extension, mine));
  tarn_device *device = open_device("fake:0");
  assert_ok(
      tarn_device_attach(device, TARN_SLOT_USER, other, query_and_register));
  close_device(device);
  ck_assert_int_eq(refusals, 2);
}

static void register_within(void *context, tarn_status status) {
  (void)status;
  *(tarn_status *)context = tarn_plugin_register(fake_init, NULL, mine);
}

TEST(a_stream_s_callback_cannot_register) {
  tarn_device *cpu = open_device("cpu:0");
  tarn_status answer = TARN_OK;
  tarn_stream *stream = stream_on(cpu);
  assert_ok(tarn_stream_add_callback(stream, register_within, &answer));
  assert_ok(tarn_stream_synchronize(stream));
  ck_assert_int_eq(answer, TARN_E_STATE);
  end_stream(stream);
  close_device(cpu);
  assert_ok(tarn_plugin_register(fake_init, NULL, mine));
}

// --- faults ----------------------------------------------------------------

enum { TYPES = 20 };  // the list of types grows on the way

// Every call for memory fails in turn, until there is none left to fail.
static size_t sweep_one(const char *type, faults_mode mode, bool leaves) {
  size_t n = 1;
  fake.type = type;
  for (;; n++) {
    size_t held = tarn_host_memory();
    faults_arm(n, mode);
    tarn_status status = tarn_plugin_register(fake_init, fake_extension, mine);
    bool struck = faults_disarm();
    assert_status(status, struck ? TARN_E_NOMEM : TARN_OK);
    if (!struck) return n - 1;
    if (leaves) continue;
    ck_assert_uint_eq(tarn_host_memory(), held);
  }
}

TEST(memory_may_be_refused_at_any_point) {
  char types[2 * TYPES][16];
  size_t faults = 0;
  faults_install();
  fake_ext.there = true;
  (void)open_device("cpu:0");
  for (int i = 0; i < 2 * TYPES; i++) {
    snprintf(types[i], sizeof types[i], "fake%d", i);
    faults += sweep_one(types[i], i % 2 ? FAULTS_FROM_NOW : FAULTS_ONCE, false);
  }
  printf("registering: %zu faults\n", faults);
  fflush(stdout);
  ck_assert_uint_ge(faults, 2 * TYPES * 5);
  use(open_device("fake39:0"));
}

// The first call of all makes the registry, which stays as far as it came.
TEST_LOOP(memory_may_be_refused_to_the_first_call, 2) {
  faults_install();
  ck_assert_uint_ge(sweep_one("fake", _i ? FAULTS_FROM_NOW : FAULTS_ONCE, true),
                    8);
  tarn_device *device = open_device("fake:0");
  use(device);
}

// --- threads ---------------------------------------------------------------

enum { THREADS = 8, NAMES = 24 };
static atomic_int registered;
static atomic_int mistakes;
static _Thread_local const char *type_of_thread;

static void check(bool right) {
  if (!right) atomic_fetch_add(&mistakes, 1);
}

static void init_by_thread(CustomRuntimeParams *params) {
  fake_init(params);
  params->device_type = (char *)(uintptr_t)type_of_thread;
}

static void open_and_use(const char *name) {
  tarn_device *device = NULL;
  char byte = 0x42;
  tarn_addr addr = 0;
  check(tarn_device_open(name, &device) == TARN_OK);
  if (device == NULL) return;
  tarn_place place = tarn_place_on(device);
  if (tarn_device_allocate(place, 1, &addr) == TARN_OK) {
    check(tarn_copy_h2d(device, addr, &byte, 1, NULL) == TARN_OK);
    check(tarn_device_deallocate(place, addr, 1) == TARN_OK);
  }
  check(addr != 0);
  check(tarn_device_close(device) == TARN_OK);
}

// All threads register the same types, and use what another one may have
// registered just now.
static void *register_all(void *number) {
  for (int i = 0; i < NAMES; i++) {
    char type[32];
    char name[64];
    snprintf(type, sizeof type, "type-%d", i);
    type_of_thread = type;
    snprintf(name, sizeof name, "thread %d", (int)(uintptr_t)number);
    tarn_status status = tarn_plugin_register(init_by_thread, NULL, name);
    if (status == TARN_OK) atomic_fetch_add(&registered, 1);
    check(status == TARN_OK || status == TARN_E_STATE);
    memset(name, 0, sizeof name);
    snprintf(name, sizeof name, "%s:%d", type, (int)(uintptr_t)number % 2);
    open_and_use(name);
    if (i % 8 == 0) check(tarn_device_each(ignore_name, NULL) == TARN_OK);
  }
  return NULL;
}

static void run_threads(void *(*work)(void *)) {
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_create(&threads[i], NULL, work, (void *)i), 0);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  ck_assert_int_eq(atomic_load(&mistakes), 0);
}

TEST(each_type_is_registered_once) {
  run_threads(register_all);
  ck_assert_int_eq(atomic_load(&registered), NAMES);
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  ck_assert_uint_eq(fake_seen.open_devices, 0);
}

// --- forks -----------------------------------------------------------------

static void use_in_child(void) {
  tarn_device *device = NULL;
  tarn_device_info info = {.struct_size = sizeof info};
  MUST(tarn_device_open("fake:0", &device) == TARN_OK);
  MUST(tarn_device_query(device, &info) == TARN_OK);
  MUST(strcmp(info.plugin, mine) == 0);
  MUST(tarn_device_close(device) == TARN_OK);
  MUST(tarn_plugin_register(fake_init, NULL, "again") == TARN_E_STATE);
  fake.type = "child";
  MUST(tarn_plugin_register(fake_init, NULL, "the child") == TARN_OK);
  MUST(tarn_device_open("child:0", &device) == TARN_OK);
  MUST(tarn_device_close(device) == TARN_OK);
}

TEST(a_child_knows_it_and_registers_its_own) {
  tarn_device *device = NULL;
  assert_ok(tarn_plugin_register(fake_init, NULL, mine));
  fork_and_run(use_in_child);
  assert_status(tarn_device_open("child:0", &device), TARN_E_INVALID);
  device = open_device("fake:0");
}

static void find_it_initialised(void) {
  tarn_device *device = NULL;
  MUST(tarn_device_open("fake:0", &device) == TARN_E_STATE);
  MUST(device == NULL);
  fake.type = "child";
  MUST(tarn_plugin_register(fake_init, NULL, "the child") == TARN_OK);
  MUST(tarn_device_open("child:0", &device) == TARN_OK);
  MUST(tarn_device_close(device) == TARN_OK);
}

// What a parent has initialised is none of its child's, but the same code under
// another type is.
TEST(a_child_registers_anew_what_its_parent_uses) {
  assert_ok(tarn_plugin_register(fake_init, NULL, mine));
  tarn_device *device = open_device("fake:0");
  fork_and_run(find_it_initialised);
  use(device);
}

// A plug-in that forks while it is registered.
static void init_and_fork(CustomRuntimeParams *params) {
  pid_t child = fork();
  if (child == 0) {
    tarn_device *device = NULL;
    MUST(tarn_device_open("cpu:0", &device) == TARN_E_STATE);
    _exit(0);
  }
  assert_child_ended_well(child);
  fake_init(params);
}

TEST(one_that_forks_meanwhile) {
  assert_ok(tarn_plugin_register(init_and_fork, NULL, mine));
  (void)open_device("fake:0");
}
