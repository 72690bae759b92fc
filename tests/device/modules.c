// Modules: plug-ins that are found by the names of their files, beside the
// library and in TARN_PLUGIN_DIR; which of several counts; and what is told of
// one that cannot be used.
//
// Where the place of the library matters, a copy of it stands in a folder of
// the test: the shared library is opened there beside the static one that this
// program has, and a copy of this program is run there.
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kit.h"
#include "support/child.h"
#include "support/faults.h"
#include "support/threads.h"
#include "support/tool_run.h"

FIXTURE(tool_files_begin, tool_files_end);

// --- files -----------------------------------------------------------------

// The path |name| in the folder of this test; the folders above it are made.
static const char *file_at(const char *name) {
  const char *path = tool_file(name);
  char *folder = strdup(path);
  ck_assert_ptr_nonnull(folder);
  for (char *at = folder + strlen(path) - strlen(name);
       (at = strchr(at, '/')) != NULL; at++) {
    *at = '\0';
    ck_assert(mkdir(folder, 0755) == 0 || errno == EEXIST);
    *at = '/';
  }
  free(folder);
  return path;
}

static const char *link_to(const char *target, const char *name) {
  const char *path = file_at(name);
  ck_assert_int_eq(symlink(target, path), 0);
  return path;
}

static const char *copy_to(const char *from, const char *name) {
  const char *path = file_at(name);
  char bytes[65536];
  size_t size = 0;
  FILE *in = fopen(from, "r");
  FILE *out = fopen(path, "w");
  ck_assert_ptr_nonnull(in);
  ck_assert_ptr_nonnull(out);
  while ((size = fread(bytes, 1, sizeof bytes, in)) > 0)
    ck_assert_uint_eq(fwrite(bytes, 1, size, out), size);
  fclose(in);
  ck_assert_int_eq(fclose(out), 0);
  ck_assert_int_eq(chmod(path, 0755), 0);
  return path;
}

// The folder "dir" of the test becomes TARN_PLUGIN_DIR.
static void name_folder(void) {
  ck_assert_int_eq(setenv("TARN_PLUGIN_DIR", tool_file("dir"), 1), 0);
}

// --- what is told ----------------------------------------------------------

// One line for each plug-in or device.
typedef struct told {
  char text[4096];
  size_t used;
} told;

__attribute__((format(printf, 2, 3))) static void tell(told *t,
                                                       const char *format,
                                                       ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(t->text + t->used, sizeof t->text - t->used, format, args);
  va_end(args);
  ck_assert_int_ge(n, 0);
  t->used += (size_t)n;
  ck_assert_uint_lt(t->used, sizeof t->text);
}

static tarn_status tell_device(void *context, const char *name) {
  tell(context, "%s\n", name);
  return TARN_OK;
}

static tarn_status tell_plugin(void *context, const tarn_plugin_info *info) {
  ck_assert_uint_eq(info->struct_size, sizeof *info);
  tell(context, "%s %zu %s %s: %s\n", info->type, info->device_count,
       tarn_status_name(info->status), info->origin, info->reason);
  return TARN_OK;
}

static const told *list_devices(void) {
  static told t;
  t = (told){.used = 0};
  assert_ok(tarn_device_each(tell_device, &t));
  return &t;
}

static const told *list_plugins(void) {
  static told t;
  t = (told){.used = 0};
  assert_ok(tarn_plugin_each(tell_plugin, &t));
  return &t;
}

#define BUILTINS "cpu 1 TARN_OK built-in: \nsim 2 TARN_OK built-in: \n"

static void assert_listed(const char *behind_builtins) {
  const told *t = list_plugins();
  const size_t length = strlen(BUILTINS);
  ck_assert_msg(strncmp(t->text, BUILTINS, length) == 0, "%s", t->text);
  ck_assert_str_eq(t->text + length, behind_builtins);
}

static void assert_plugin(tarn_device *device, const char *path) {
  tarn_device_info info = {.struct_size = sizeof info};
  assert_ok(tarn_device_query(device, &info));
  ck_assert_str_eq(info.plugin, path);
}

// The status and text that opening |name| fails with.
static void assert_no_device(const char *name, tarn_status status,
                             const char *part) {
  tarn_device *device = (tarn_device *)1;
  assert_fails(tarn_device_open(name, &device), status, part);
  ck_assert_ptr_null(device);
}

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

// --- beside the shared library ---------------------------------------------

typedef tarn_status open_function(const char *name, tarn_device **out_device);
typedef tarn_status query_function(tarn_device *device, tarn_device_info *out);
typedef const char *error_function(void);

// A library of its own, at a path of its own. It stays.
typedef struct library {
  void *handle;
  tarn_device *device;
} library;

static void *symbol_of(const library *l, const char *name) {
  void *symbol = dlsym(l->handle, name);
  ck_assert_ptr_nonnull(symbol);
  return symbol;
}

static library open_library(const char *path) {
  library l = {.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
  ck_assert_msg(l.handle != NULL, "%s", dlerror());
  return l;
}

static tarn_status open_in(library *l, const char *name) {
  open_function *open = NULL;
  void *symbol = symbol_of(l, "tarn_device_open");
  memcpy(&open, &symbol, sizeof symbol);
  return open(name, &l->device);
}

static const char *error_in(const library *l) {
  error_function *error = NULL;
  void *symbol = symbol_of(l, "tarn_last_error");
  memcpy(&error, &symbol, sizeof symbol);
  return error();
}

// The file that "small:0" comes from, or the error's text.
static const char *origin_in(library *l) {
  tarn_device_info info = {.struct_size = sizeof info};
  query_function *query = NULL;
  void *symbol = symbol_of(l, "tarn_device_query");
  memcpy(&query, &symbol, sizeof symbol);
  if (open_in(l, "small:0") != TARN_OK) return error_in(l);
  ck_assert_int_eq(query(l->device, &info), TARN_OK);
  return info.plugin;
}

static const char *const places[] = {
    "lib/plugins/tarn_small.so",
    "lib/tarn/tarn_small.so",
    "dir/tarn_small.so",
};
enum { PLACES = sizeof places / sizeof places[0] };

// With a file in each place from the |_i|-th on.
TEST_LOOP(the_first_place_counts, PLACES) {
  for (int i = _i; i < PLACES; i++)
    link_to(TARN_SMALL_PLUGIN, places[i]);
  name_folder();
  library l = open_library(copy_to(TARN_LIBRARY, "lib/libtarn.so"));
  ck_assert_str_eq(origin_in(&l), tool_file(places[_i]));
}

// The first that is there, not the first that is good.
TEST_LOOP(a_bad_file_hides_the_next, PLACES - 1) {
  tool_write_file(file_at(places[_i]), "x");
  link_to(TARN_SMALL_PLUGIN, places[_i + 1]);
  name_folder();
  library l = open_library(copy_to(TARN_LIBRARY, "lib/libtarn.so"));
  ck_assert_int_eq(open_in(&l, "small:0"), TARN_E_IO);
  ck_assert_ptr_nonnull(strstr(error_in(&l), tool_file(places[_i])));
}

typedef tarn_status each_function(tarn_plugin_visit *visit, void *context);

// A list has one file of each type too, and goes from folder to folder.
TEST(a_list_has_the_first_of_each_type) {
  char text[4 * PATH_MAX];
  told t = {.used = 0};
  each_function *each = NULL;
  static const char *const files[] = {"lib/plugins/tarn_small.so",
                                      "lib/plugins/tarn_z.so",
                                      "lib/tarn/tarn_b.so", "dir/tarn_a.so"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    tool_write_file(file_at(files[i]), "x");
  link_to(TARN_SMALL_PLUGIN, "lib/tarn/tarn_small.so");
  tool_write_file(file_at("dir/tarn_z.so"), "x");
  name_folder();
  library l = open_library(copy_to(TARN_LIBRARY, "lib/libtarn.so"));
  void *symbol = symbol_of(&l, "tarn_plugin_each");
  memcpy(&each, &symbol, sizeof symbol);
  ck_assert_int_eq(each(tell_plugin, &t), TARN_OK);
  snprintf(text, sizeof text,
           BUILTINS
           "small 0 TARN_E_IO %s: file too short\n"
           "z 0 TARN_E_IO %s: file too short\n"
           "b 0 TARN_E_IO %s: file too short\n"
           "a 0 TARN_E_IO %s: file too short\n",
           tool_file(files[0]), tool_file(files[1]), tool_file(files[2]),
           tool_file(files[3]));
  ck_assert_str_eq(t.text, text);
}

TEST(a_library_that_is_named_relatively) {
  const char *path = link_to(TARN_SMALL_PLUGIN, places[0]);
  copy_to(TARN_LIBRARY, "lib/libtarn.so");
  ck_assert_int_eq(chdir(tool_file("lib")), 0);
  library l = open_library("./libtarn.so");
  // The same names in another folder do not matter.
  link_to(TARN_NO_PLUGIN, "other/plugins/tarn_small.so");
  copy_to(TARN_LIBRARY, "other/libtarn.so");
  ck_assert_int_eq(chdir(tool_file("other")), 0);
  ck_assert_str_eq(origin_in(&l), path);
}

TEST(a_link_to_the_library_is_followed) {
  const char *path = link_to(TARN_SMALL_PLUGIN, places[0]);
  copy_to(TARN_LIBRARY, "lib/libtarn.so.0.1");
  link_to("../lib/libtarn.so.0.1", "elsewhere/libtarn.so");
  link_to(TARN_NO_PLUGIN, "elsewhere/plugins/tarn_small.so");
  library l = open_library(tool_file("elsewhere/libtarn.so"));
  ck_assert_str_eq(origin_in(&l), path);
}

TEST(a_library_whose_file_was_replaced) {
  const char *path = link_to(TARN_SMALL_PLUGIN, places[1]);
  const char *file = copy_to(TARN_LIBRARY, "lib/libtarn.so");
  library l = open_library(file);
  ck_assert_int_eq(unlink(file), 0);
  ck_assert_str_eq(origin_in(&l), path);
}

TEST(a_folder_where_everyone_may_write_does_not_count) {
  link_to(TARN_SMALL_PLUGIN, places[0]);
  ck_assert_int_eq(chmod(tool_file("lib/plugins"), 0777), 0);
  library l = open_library(copy_to(TARN_LIBRARY, "lib/libtarn.so"));
  ck_assert_int_eq(open_in(&l, "small:0"), TARN_E_INVALID);
  ck_assert_int_eq(chmod(tool_file("lib/plugins"), 0775), 0);
  ck_assert_int_eq(open_in(&l, "small:0"), TARN_OK);
}

enum { ANOTHER = 4711 };

TEST(a_folder_of_another_user_does_not_count) {
  if (geteuid() != 0) {
    note_skipped("folders of other users", "only root gives files away");
    return;
  }
  link_to(TARN_SMALL_PLUGIN, places[0]);
  const char *file = copy_to(TARN_LIBRARY, "lib/libtarn.so");
  ck_assert_int_eq(chown(tool_file("lib/plugins"), ANOTHER, ANOTHER), 0);
  library l = open_library(file);
  ck_assert_int_eq(open_in(&l, "small:0"), TARN_E_INVALID);
  // Whose library is used is trusted already.
  ck_assert_int_eq(chown(file, ANOTHER, ANOTHER), 0);
  ck_assert_int_eq(open_in(&l, "small:0"), TARN_OK);
}

// --- beside a program ------------------------------------------------------

// What this program does with the argument "--from": see main.
static int tell_origin(const char *name) {
  tarn_device *device = NULL;
  tarn_device_info info = {.struct_size = sizeof info};
  if (tarn_device_open(name, &device) != TARN_OK ||
      tarn_device_query(device, &info) != TARN_OK) {
    puts(tarn_last_error());
    return EXIT_FAILURE;
  }
  puts(info.plugin);
  return EXIT_SUCCESS;
}

static const char *const program_places[] = {
    "root/bin/plugins/tarn_small.so",
    "root/bin/tarn/tarn_small.so",
    "root/bin/" TARN_LIB_FROM_BIN "/tarn_small.so",
    "dir/tarn_small.so",
};
enum { PROGRAM_PLACES = sizeof program_places / sizeof program_places[0] };

// The line that a copy of this program in root/bin tells. It is run under a
// name that is no path of it.
static const char *origin_of_program(void) {
  const char *path = copy_to("/proc/self/exe", "root/bin/program");
  tool_output o = tool_run_program(
      path, -1, (const char *const[]){"tarn", "--from", "small:0", NULL});
  o.out[strcspn(o.out, "\n")] = '\0';
  return o.out;
}

TEST_LOOP(a_program_finds_what_is_beside_it, PROGRAM_PLACES) {
  char real[PATH_MAX];
  char path[PATH_MAX + 32];
  for (int i = _i; i < PROGRAM_PLACES; i++)
    link_to(TARN_SMALL_PLUGIN, program_places[i]);
  name_folder();
  // The folder's path without "..", then the file's name.
  char *folder = strdup(tool_file(program_places[_i]));
  ck_assert_ptr_nonnull(folder);
  *strrchr(folder, '/') = '\0';
  ck_assert_ptr_nonnull(realpath(folder, real));
  free(folder);
  snprintf(path, sizeof path, "%s/tarn_small.so", real);
  ck_assert_str_eq(origin_of_program(), path);
}

// As the tool where it is installed: "tarn" is itself, and no folder.
TEST(a_file_where_a_folder_could_be_is_passed_over) {
  tool_write_file(file_at("root/bin/tarn"), "a program");
  name_folder();
  const char *path = link_to(TARN_SMALL_PLUGIN, "dir/tarn_small.so");
  ck_assert_str_eq(origin_of_program(), path);
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

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "--from") == 0) return tell_origin(argv[2]);
  faults_install();
  return run_tests();
}
