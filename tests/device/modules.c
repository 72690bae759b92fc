// Modules: plug-ins that are found by the names of their files in
// TARN_PLUGIN_DIR; how they are listed; and what is told of one that cannot be
// used.
#include "modules_kit.h"
#include "support/child.h"
#include "support/faults.h"
#include "support/threads.h"

FIXTURE(tool_files_begin, tool_files_end);

// --- TARN_PLUGIN_DIR -------------------------------------------------------

TEST(a_type_is_found_where_it_is_named_after) {
  const char *path = link_to(TARN_SMALL_PLUGIN, "dir/tarn_small.so");
  assert_no_device("small:0", TARN_E_INVALID, "the types are cpu, sim");
  name_folder();
  tarn_device *device = open_device("small:0");
  ck_assert_ptr_eq(open_device("small"), device);
  assert_plugin(device, path);
  tarn_addr addr = take(device, 4096);
  give(device, addr, 4096);
  assert_no_device("small:1", TARN_E_INVALID, "small has 1");
  assert_fails(tarn_plugin_load(TARN_SMALL_PLUGIN), TARN_E_STATE, path);
}

TEST(a_text_says_where_was_looked) {
  link_to(TARN_SMALL_PLUGIN, "dir/tarn_small.so");
  name_folder();
  assert_no_device("wide:0", TARN_E_INVALID,
                   "no device 'wide:0': give type:ordinal, the types are cpu, "
                   "sim; there is no tarn_wide.so in ");
  assert_error_says(tool_file("dir"));
}

TEST(a_relative_folder_is_not_searched) {
  link_to(TARN_SMALL_PLUGIN, "dir/tarn_small.so");
  link_to(TARN_SMALL_PLUGIN, "dir/plugins/tarn_small.so");
  ck_assert_int_eq(chdir(tool_file("dir")), 0);
  ck_assert_int_eq(setenv("TARN_PLUGIN_DIR", ".", 1), 0);
  assert_no_device("small:0", TARN_E_INVALID, "the types are cpu, sim");
  ck_assert_int_eq(setenv("TARN_PLUGIN_DIR", "", 1), 0);
  assert_no_device("small:0", TARN_E_INVALID, "the types are cpu, sim");
}

static const char *const no_types[] = {"../small:0", "small/:0", "small.so/:0",
                                       "small:x", "sm all:0"};

TEST_LOOP(what_is_no_name_is_not_looked_for,
          sizeof no_types / sizeof no_types[0]) {
  link_to(TARN_SMALL_PLUGIN, "dir/tarn_small.so");
  file_at("dir/tarn_/x");
  link_to(TARN_SMALL_PLUGIN, "small.so");
  name_folder();
  assert_no_device(no_types[_i], TARN_E_INVALID, "the types are cpu, sim");
  ck_assert_ptr_null(strstr(tarn_last_error(), "there is no"));
}

// A type that is known is not looked for.
TEST(what_the_program_registers_comes_first) {
  const char *path = link_to(TARN_SMALL_PLUGIN, "dir/tarn_fake.so");
  link_to(TARN_SMALL_PLUGIN, "dir/tarn_cpu.so");
  link_to(TARN_NO_PLUGIN, "dir/tarn_sim.so");
  name_folder();
  assert_no_device("fake:0", TARN_E_UNSUPPORTED, path);
  tarn_device *device = open_fake();
  assert_plugin(device, "a test double");
  assert_listed("fake 2 TARN_OK a test double: \n");
  close_device(device);
}

// --- one that cannot be used -----------------------------------------------

TEST(one_of_another_type) {
  const char *path = link_to(TARN_WIDE_PLUGIN, "dir/tarn_small.so");
  name_folder();
  for (int i = 0; i < 2; i++) {
    assert_no_device("small:0", TARN_E_UNSUPPORTED, path);
    assert_error_says("its device type is 'wide', not 'small'");
    assert_no_device("wide:0", TARN_E_INVALID, "the types are cpu, sim");
  }
  ck_assert_str_eq(list_devices()->text, "cpu:0\nsim:0\nsim:1\n");
  // What was refused under a wrong name can be had under its own.
  assert_ok(tarn_plugin_load(TARN_WIDE_PLUGIN));
  (void)open_device("wide:0");
}

TEST(one_that_is_no_plugin) {
  char text[PATH_MAX + 128];
  const char *path = link_to(TARN_NO_PLUGIN, "dir/tarn_none.so");
  name_folder();
  assert_no_device("none:0", TARN_E_UNSUPPORTED, path);
  assert_error_says("it has no InitPlugin");
  ck_assert_str_eq(list_devices()->text, "cpu:0\nsim:0\nsim:1\n");
  snprintf(text, sizeof text,
           "none 0 TARN_E_UNSUPPORTED %s: not a device plug-in: it has no "
           "InitPlugin\n",
           path);
  assert_listed(text);
}

TEST(a_broken_file) {
  char text[PATH_MAX + 128];
  const char *path = tool_write_file(file_at("dir/tarn_broken.so"), "broken");
  name_folder();
  assert_no_device("broken:0", TARN_E_IO, path);
  ck_assert_str_eq(list_devices()->text, "cpu:0\nsim:0\nsim:1\n");
  snprintf(text, sizeof text, "broken 0 TARN_E_IO %s: file too short\n", path);
  assert_listed(text);
}

TEST(one_that_needs_an_object_that_is_not_here) {
  char text[PATH_MAX + 128];
  const char *path = link_to(TARN_NEEDY_PLUGIN, "dir/tarn_needy.so");
  name_folder();
  snprintf(text, sizeof text,
           "%s: libtarn_absent.so: cannot open shared object file", path);
  assert_no_device("needy:0", TARN_E_IO, text);
  ck_assert_str_eq(list_devices()->text, "cpu:0\nsim:0\nsim:1\n");
  snprintf(text, sizeof text,
           "needy 0 TARN_E_IO %s: libtarn_absent.so: ", path);
  ck_assert_ptr_nonnull(strstr(list_plugins()->text, text));
}

TEST(one_without_a_driver) {
  char text[PATH_MAX + 128];
  const char *path = link_to(TARN_DRIVERLESS_PLUGIN, "dir/tarn_driverless.so");
  name_folder();
  snprintf(text, sizeof text,
           "driverless 0 TARN_E_DEVICE %s: initialize answered 4: no driver is "
           "here\n",
           path);
  for (int i = 0; i < 2; i++) {
    ck_assert_str_eq(list_devices()->text, "cpu:0\nsim:0\nsim:1\n");
    assert_listed(text);
    assert_no_device("driverless:0", TARN_E_DEVICE,
                     "initialize answered 4: no driver is here");
    assert_error_says(path);
  }
}

// Where the program itself loads it, its failure is the listing's.
TEST(one_without_a_driver_that_is_asked_for) {
  told t = {.used = 0};
  assert_ok(tarn_plugin_load(TARN_DRIVERLESS_PLUGIN));
  assert_fails(tarn_device_each(tell_device, &t), TARN_E_DEVICE,
               "initialize answered 4: no driver is here");
  assert_ok(tarn_plugin_each(tell_plugin, &t));
  ck_assert_ptr_nonnull(strstr(t.text, "driverless 0 TARN_E_DEVICE "));
}

// --- lists -----------------------------------------------------------------

TEST(modules_are_listed_by_name_and_those_that_fail_last) {
  char text[4 * PATH_MAX];
  const char *driverless =
      link_to(TARN_DRIVERLESS_PLUGIN, "dir/tarn_driverless.so");
  const char *broken = tool_write_file(file_at("dir/tarn_a.b-c.so"), "x");
  const char *wide = link_to(TARN_WIDE_PLUGIN, "dir/tarn_wide.so");
  const char *small = link_to(TARN_SMALL_PLUGIN, "dir/tarn_small.so");
  static const char *const others[] = {
      "dir/tarn_.so", "dir/libtarn_x.so", "dir/tarn_x.so.1",
      "dir/tarn_x",   "dir/tarn_x y.so",  "dir/.tarn_x.so",
  };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    tool_write_file(file_at(others[i]), "x");
  link_to("nowhere", "dir/tarn_dangling.so");
  name_folder();
  snprintf(text, sizeof text,
           "driverless 0 TARN_E_DEVICE %s: initialize answered 4: no driver is "
           "here\n"
           "small 1 TARN_OK %s: \n"
           "wide 1 TARN_OK %s: \n"
           "a.b-c 0 TARN_E_IO %s: file too short\n",
           driverless, small, wide, broken);
  assert_listed(text);
  ck_assert_str_eq(list_devices()->text,
                   "cpu:0\nsim:0\nsim:1\nsmall:0\nwide:0\n");
}

TEST(devices_of_modules_are_listed_at_once) {
  link_to(TARN_SMALL_PLUGIN, "dir/tarn_small.so");
  name_folder();
  ck_assert_str_eq(list_devices()->text, "cpu:0\nsim:0\nsim:1\nsmall:0\n");
  ck_assert_str_eq(list_devices()->text, "cpu:0\nsim:0\nsim:1\nsmall:0\n");
}

// A folder that comes, and one that goes.
TEST(nothing_is_remembered_of_folders) {
  name_folder();
  ck_assert_str_eq(list_devices()->text, "cpu:0\nsim:0\nsim:1\n");
  const char *path = link_to(TARN_SMALL_PLUGIN, "dir/tarn_small.so");
  ck_assert_str_eq(list_devices()->text, "cpu:0\nsim:0\nsim:1\nsmall:0\n");
  ck_assert_int_eq(unlink(path), 0);
  ck_assert_str_eq(list_devices()->text, "cpu:0\nsim:0\nsim:1\nsmall:0\n");
}

TEST(no_file_is_left_open) {
  link_to(TARN_SMALL_PLUGIN, "dir/tarn_small.so");
  name_folder();
  (void)list_devices();
  int before = dup(STDIN_FILENO);
  (void)list_devices();
  (void)list_plugins();
  assert_no_device("wide:0", TARN_E_INVALID, "there is no tarn_wide.so");
  int after = dup(STDIN_FILENO);
  ck_assert_int_ge(before, 0);
  ck_assert_int_eq(after, before + 1);
  close(before);
  close(after);
}

static tarn_status stop(void *context, const tarn_plugin_info *info) {
  tarn_device *device = NULL;
  ++*(int *)context;
  // No lock is held.
  assert_ok(tarn_device_open(info->type, &device));
  assert_ok(tarn_device_close(device));
  return *(int *)context == 2 ? TARN_PENDING : TARN_OK;
}

static tarn_status stop_at_broken(void *context, const tarn_plugin_info *info) {
  ++*(int *)context;
  return info->status == TARN_E_IO ? TARN_PENDING : TARN_OK;
}

TEST(a_list_can_be_stopped) {
  int seen = 0;
  assert_status(tarn_plugin_each(stop, &seen), TARN_PENDING);
  ck_assert_int_eq(seen, 2);
  tool_write_file(file_at("dir/tarn_a.so"), "x");
  tool_write_file(file_at("dir/tarn_b.so"), "x");
  name_folder();
  seen = 0;
  assert_status(tarn_plugin_each(stop_at_broken, &seen), TARN_PENDING);
  ck_assert_int_eq(seen, 3);
  assert_status(tarn_plugin_each(NULL, NULL), TARN_E_INVALID);
}

// --- threads and forks -----------------------------------------------------

static void *open_small(void *number) {
  tarn_device *device = NULL;
  told t = {.used = 0};
  if ((uintptr_t)number % 2 == 0)
    expect(tarn_device_each(tell_device, &t) == TARN_OK);
  expect(tarn_device_open("small:0", &device) == TARN_OK);
  if (device == NULL) return NULL;
  expect(strcmp(tarn_device_name(device), "small:0") == 0);
  expect(tarn_device_close(device) == TARN_OK);
  return NULL;
}

TEST(threads_find_one_plugin_at_once) {
  char text[PATH_MAX + 64];
  const char *path = link_to(TARN_SMALL_PLUGIN, "dir/tarn_small.so");
  name_folder();
  run_threads(open_small, 8);
  assert_as_expected();
  snprintf(text, sizeof text, "small 1 TARN_OK %s: \n", path);
  assert_listed(text);
}

static void find_in_child(void) {
  tarn_device *device = NULL;
  MUST(tarn_device_open("small:0", &device) == TARN_OK);
  MUST(tarn_device_close(device) == TARN_OK);
}

TEST(a_child_finds_modules_too) {
  link_to(TARN_SMALL_PLUGIN, "dir/tarn_small.so");
  name_folder();
  fork_and_run(find_in_child);
  (void)open_device("small:0");
}

static void be_refused_in_child(void) {
  told t = {.used = 0};
  tarn_device *device = NULL;
  MUST(tarn_device_open("small:0", &device) == TARN_E_STATE);
  MUST(tarn_device_each(tell_device, &t) == TARN_E_STATE);
  t.used = 0;
  MUST(tarn_plugin_each(tell_plugin, &t) == TARN_OK);
  MUST(strstr(t.text, "small 0 TARN_E_STATE ") != NULL);
  MUST(strstr(t.text, ": small was initialised by the parent") != NULL);
}

TEST(a_child_does_not_get_what_its_parent_initialised) {
  link_to(TARN_SMALL_PLUGIN, "dir/tarn_small.so");
  name_folder();
  (void)open_device("small:0");
  fork_and_run(be_refused_in_child);
}

// --- faults ----------------------------------------------------------------

static size_t open_with_faults(const char *name, faults_mode mode) {
  for (size_t n = 1;; n++) {
    tarn_device *device = NULL;
    size_t held = tarn_host_memory();
    faults_arm(n, mode);
    tarn_status status = tarn_device_open(name, &device);
    bool struck = faults_disarm();
    if (status != TARN_E_NOMEM) {
      ck_assert(!struck);
      assert_ok(status);
      assert_ok(tarn_device_close(device));
      return n - 1;
    }
    ck_assert(struck);
    ck_assert_ptr_null(device);
    // What is loaded stays, and is not loaded again.
    ck_assert(tarn_host_memory() == held || strstr(list_devices()->text, name));
  }
}

TEST_LOOP(memory_may_be_refused_while_one_is_opened, 2) {
  link_to(TARN_SMALL_PLUGIN, "dir/tarn_small.so");
  name_folder();
  (void)open_device("cpu:0");
  ck_assert_uint_ge(
      open_with_faults("small:0", _i ? FAULTS_FROM_NOW : FAULTS_ONCE), 8);
}

static tarn_status ignore_device(void *context, const char *name) {
  (void)context;
  (void)name;
  return TARN_OK;
}

static tarn_status ignore_plugin(void *context, const tarn_plugin_info *info) {
  (void)context;
  (void)info;
  return TARN_OK;
}

static void list_all(void *context) {
  (void)context;
  tarn_status devices = tarn_device_each(ignore_device, NULL);
  tarn_status plugins = tarn_plugin_each(ignore_plugin, NULL);
  require(devices == TARN_OK || devices == TARN_E_NOMEM);
  require(plugins == TARN_OK || plugins == TARN_E_NOMEM);
}

TEST(memory_may_be_refused_while_all_are_listed) {
  link_to(TARN_SMALL_PLUGIN, "dir/tarn_small.so");
  link_to(TARN_DRIVERLESS_PLUGIN, "dir/tarn_driverless.so");
  link_to(TARN_NEEDY_PLUGIN, "dir/tarn_needy.so");
  link_to(TARN_WIDE_PLUGIN, "dir/tarn_wrong.so");
  for (int i = 0; i < 6; i++) {  // the list grows
    char name[32];
    snprintf(name, sizeof name, "dir/tarn_%d.so", i);
    tool_write_file(file_at(name), "x");
  }
  name_folder();
  list_all(NULL);  // what stays is there now
  size_t faults = faults_sweep(list_all, NULL);
  ck_assert_uint_ge(faults, 50);
  ck_assert_str_eq(list_devices()->text, "cpu:0\nsim:0\nsim:1\nsmall:0\n");
}

// Of the first list in a process, until one is told in full.
TEST_LOOP(memory_may_be_refused_to_the_first_list, 2) {
  size_t n = 1;
  link_to(TARN_SMALL_PLUGIN, "dir/tarn_small.so");
  link_to(TARN_DRIVERLESS_PLUGIN, "dir/tarn_driverless.so");
  name_folder();
  for (bool struck = true; struck; n++) {
    faults_arm(n, _i ? FAULTS_FROM_NOW : FAULTS_ONCE);
    tarn_status status = tarn_device_each(ignore_device, NULL);
    struck = faults_disarm();
    assert_status(status, struck ? TARN_E_NOMEM : TARN_OK);
  }
  ck_assert_uint_ge(n, 10);
  ck_assert_str_eq(list_devices()->text, "cpu:0\nsim:0\nsim:1\nsmall:0\n");
}

int main(void) {
  faults_install();
  return run_tests();
}
