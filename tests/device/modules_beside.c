// Modules beside the library and beside a program: which folder comes first,
// and which does not count.
//
// A copy of the library stands in a folder of the test: the shared library is
// opened there beside the static one that this program has, and a copy of this
// program is run there.
#include <dlfcn.h>

#include "modules_kit.h"

FIXTURE(tool_files_begin, tool_files_end);

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

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "--from") == 0) return tell_origin(argv[2]);
  return run_tests();
}
