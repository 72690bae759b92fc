// Where modules stand: which folders are searched (base/folders.h), and what is
// in them.
//
//   build/libtarn.so, build/tarn       plugins/
//   LIBDIR/libtarn.so                  tarn/
//   BINDIR/tarn                        TARN_LIB_FROM_BIN, which is LIBDIR/tarn
//
// Nothing is kept between two calls.
#include "device/modules.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "device/plugin.h"

static const char prefix[] = "tarn_";
static const char suffix[] = ".so";

// --- folders ---------------------------------------------------------------

static const char *const places[] = {"plugins", "tarn", TARN_LIB_FROM_BIN};
enum { PLACES = sizeof places / sizeof *places };

typedef struct text {
  char *bytes;
  size_t size;
  size_t used;
} text;

static bool append_folder(void *context, const char *folder) {
  text *t = context;
  if (t->used >= t->size) return false;
  int n = snprintf(t->bytes + t->used, t->size - t->used, "%s%s",
                   t->used > 0 ? ", " : "", folder);
  t->used += n > 0 ? (size_t)n : 0;
  return true;
}

void tarn__module_folders(char *out, size_t out_size) {
  text t = {.bytes = out, .size = out_size};
  out[0] = '\0';
  tarn__folders_visit(places, PLACES, append_folder, &t);
}

// --- one module ------------------------------------------------------------

tarn_status tarn__module_find(const char *type, char **out_path) {
  char file[sizeof prefix + TARN__TYPE_MAX + sizeof suffix];
  char path[PATH_MAX];
  *out_path = NULL;
  if (!tarn__plugin_is_type(type)) return TARN_OK;
  snprintf(file, sizeof file, "%s%s%s", prefix, type, suffix);
  if (!tarn__folders_find(places, PLACES, file, path)) return TARN_OK;
  *out_path = tarn__host_text(path);
  return *out_path != NULL ? TARN_OK : TARN_E_NOMEM;
}

// --- all of them -----------------------------------------------------------

// The type that |file| is named after; false: it is no module's name.
static bool type_of(const char *file, char out[TARN__TYPE_MAX + 1]) {
  size_t length = strlen(file);
  size_t around = sizeof prefix - 1 + sizeof suffix - 1;
  if (length <= around || length - around > TARN__TYPE_MAX) return false;
  if (strncmp(file, prefix, sizeof prefix - 1) != 0) return false;
  if (strcmp(file + length - (sizeof suffix - 1), suffix) != 0) return false;
  snprintf(out, length - around + 1, "%s", file + sizeof prefix - 1);
  return tarn__plugin_is_type(out);
}

static bool is_listed(const tarn__device_modules *modules, const char *type) {
  for (size_t i = 0; i < modules->count; i++) {
    if (strcmp(modules->items[i].type, type) == 0) return true;
  }
  return false;
}

static void free_module(tarn__device_module *module) {
  tarn__host_free_text(module->type);
  tarn__host_free_text(module->path);
  tarn__host_free_text(module->reason);
}

// Adds the module to those from |first| on, which stand in order of their
// names.
static tarn_status insert(tarn__device_modules *modules, size_t first,
                          const char *type, const char *path) {
  if (modules->count == modules->capacity) {
    tarn__device_module *items =
        tarn__host_grow(modules->items, &modules->capacity, modules->count + 1,
                        4, sizeof *items);
    if (items == NULL) return TARN_E_NOMEM;
    modules->items = items;
  }
  tarn__device_module added = {.type = tarn__host_text(type),
                               .path = tarn__host_text(path)};
  if (added.type == NULL || added.path == NULL) {
    free_module(&added);
    return TARN_E_NOMEM;
  }
  size_t at = modules->count++;
  for (; at > first && strcmp(modules->items[at - 1].type, type) > 0; at--)
    modules->items[at] = modules->items[at - 1];
  modules->items[at] = added;
  return TARN_OK;
}

typedef struct listing {
  tarn__device_modules *modules;
  tarn_status status;
} listing;

static tarn_status add_file(tarn__device_modules *modules, size_t first,
                            const char *folder, const char *file) {
  char type[TARN__TYPE_MAX + 1];
  char path[PATH_MAX];
  if (!type_of(file, type) || is_listed(modules, type)) return TARN_OK;
  if (!tarn__folders_join(path, folder, file) || access(path, F_OK) != 0)
    return TARN_OK;
  return insert(modules, first, type, path);
}

static bool list_folder(void *context, const char *folder) {
  listing *l = context;
  size_t first = l->modules->count;
  DIR *files = opendir(folder);
  if (files == NULL) return true;
  for (const struct dirent *entry = readdir(files);
       entry != NULL && l->status == TARN_OK; entry = readdir(files)) {
    l->status = add_file(l->modules, first, folder, entry->d_name);
  }
  closedir(files);
  return l->status == TARN_OK;
}

tarn_status tarn__modules_list(tarn__device_modules *out) {
  listing l = {.modules = out, .status = TARN_OK};
  *out = (tarn__device_modules){0};
  tarn__folders_visit(places, PLACES, list_folder, &l);
  if (l.status != TARN_OK) tarn__modules_deinit(out);
  return l.status;
}

void tarn__modules_deinit(tarn__device_modules *modules) {
  for (size_t i = 0; i < modules->count; i++)
    free_module(&modules->items[i]);
  tarn__host_free_array(modules->items, modules->capacity,
                        sizeof *modules->items);
  *modules = (tarn__device_modules){0};
}
