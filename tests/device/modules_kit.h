// modules_kit.h - files of modules in a folder of the test, and what the
// library tells of plug-ins and devices.
#ifndef TARN_TESTS_DEVICE_MODULES_KIT_H_
#define TARN_TESTS_DEVICE_MODULES_KIT_H_

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kit.h"
#include "support/tool_run.h"

// --- files -----------------------------------------------------------------

// The path |name| in the folder of this test; the folders above it are made.
static inline const char *file_at(const char *name) {
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

static inline const char *link_to(const char *target, const char *name) {
  const char *path = file_at(name);
  ck_assert_int_eq(symlink(target, path), 0);
  return path;
}

static inline const char *copy_to(const char *from, const char *name) {
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
static inline void name_folder(void) {
  ck_assert_int_eq(setenv("TARN_PLUGIN_DIR", tool_file("dir"), 1), 0);
}

// --- what is told ----------------------------------------------------------

// One line for each plug-in or device.
typedef struct told {
  char text[4096];
  size_t used;
} told;

__attribute__((format(printf, 2, 3))) static inline void tell(
    told *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(t->text + t->used, sizeof t->text - t->used, format, args);
  va_end(args);
  ck_assert_int_ge(n, 0);
  t->used += (size_t)n;
  ck_assert_uint_lt(t->used, sizeof t->text);
}

static inline tarn_status tell_device(void *context, const char *name) {
  tell(context, "%s\n", name);
  return TARN_OK;
}

static inline tarn_status tell_plugin(void *context,
                                      const tarn_plugin_info *info) {
  ck_assert_uint_eq(info->struct_size, sizeof *info);
  tell(context, "%s %zu %s %s: %s\n", info->type, info->device_count,
       tarn_status_name(info->status), info->origin, info->reason);
  return TARN_OK;
}

static inline const told *list_devices(void) {
  static told t;
  t = (told){.used = 0};
  assert_ok(tarn_device_each(tell_device, &t));
  return &t;
}

static inline const told *list_plugins(void) {
  static told t;
  t = (told){.used = 0};
  assert_ok(tarn_plugin_each(tell_plugin, &t));
  return &t;
}

#define BUILTINS "cpu 1 TARN_OK built-in: \nsim 2 TARN_OK built-in: \n"

static inline void assert_listed(const char *behind_builtins) {
  const told *t = list_plugins();
  const size_t length = strlen(BUILTINS);
  ck_assert_msg(strncmp(t->text, BUILTINS, length) == 0, "%s", t->text);
  ck_assert_str_eq(t->text + length, behind_builtins);
}

static inline void assert_plugin(tarn_device *device, const char *path) {
  tarn_device_info info = {.struct_size = sizeof info};
  assert_ok(tarn_device_query(device, &info));
  ck_assert_str_eq(info.plugin, path);
}

// The status and text that opening |name| fails with.
static inline void assert_no_device(const char *name, tarn_status status,
                                    const char *part) {
  tarn_device *device = (tarn_device *)1;
  assert_fails(tarn_device_open(name, &device), status, part);
  ck_assert_ptr_null(device);
}

#endif  // TARN_TESTS_DEVICE_MODULES_KIT_H_
