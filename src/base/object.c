// Shared objects: by which paths they may be named, and loading them.
#include "base/object.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"

static tarn_status resolve(const char *what, const char *path, char *out,
                           size_t out_size) {
  int length = 0;
  if (path[0] == '/') {
    length = snprintf(out, out_size, "%s", path);
  } else if (strchr(path, '/') != NULL) {
    return tarn__fail(TARN_E_INVALID,
                      "%s '%s': give an absolute path, or a file name in "
                      "TARN_PLUGIN_DIR",
                      what, path);
  } else {
    const char *directory = secure_getenv("TARN_PLUGIN_DIR");
    if (directory == NULL || directory[0] != '/') {
      return tarn__fail(TARN_E_INVALID,
                        "%s '%s': no absolute path, and TARN_PLUGIN_DIR names "
                        "no absolute directory",
                        what, path);
    }
    length = snprintf(out, out_size, "%s/%s", directory, path);
  }
  if (length < 0 || (size_t)length >= out_size) {
    return tarn__fail(TARN_E_INVALID, "%s: a path of %d bytes", what, length);
  }
  return TARN_OK;
}

// Where it is an object that |path| needs, the linker names that one only.
static tarn_status refused(const char *path) {
  const char *why = dlerror();
  bool is_named = strncmp(why, path, strlen(path)) == 0;
  return is_named ? tarn__fail(TARN_E_IO, "%s", why)
                  : tarn__fail(TARN_E_IO, "%s: %s", path, why);
}

tarn_status tarn__object_open(const char *what, const char *path,
                              void **out_handle, char **out_path) {
  *out_handle = NULL;
  *out_path = NULL;
  char resolved[PATH_MAX];
  if (path == NULL || *path == '\0') {
    return tarn__fail(TARN_E_INVALID, "%s: no path", what);
  }
  TARN__TRY(resolve(what, path, resolved, sizeof resolved));
  char *kept = tarn__host_text(resolved);
  if (kept == NULL) return TARN_E_NOMEM;
  void *handle = dlopen(resolved, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    tarn__host_free_text(kept);
    return refused(resolved);
  }
  *out_handle = handle;
  *out_path = kept;
  return TARN_OK;
}

void tarn__object_close(void *handle) {
  dlclose(handle);
}

void *tarn__object_symbol(void *handle, const char *name) {
  return dlsym(handle, name);
}
