// Pythons: looked for by name.
#include "pythons.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/run.h"

static char found[PATH_MAX];

// pyenv has programs of these names in PATH that run the true ones, if they
// are chosen: a recorder would see a shell.
static bool is_shim(const char *folder) {
  return strstr(folder, "/shims") != NULL;
}

static bool find_in_path(const char *name) {
  char path[8192];
  const char *folders = getenv("PATH");
  snprintf(path, sizeof path, "%s", folders != NULL ? folders : "");
  for (char *rest = path, *folder; (folder = strsep(&rest, ":")) != NULL;) {
    int length = snprintf(found, sizeof found, "%s/%s", folder, name);
    if (length < (int)sizeof found && !is_shim(folder) &&
        access(found, X_OK) == 0) {
      return true;
    }
  }
  return false;
}

static bool find_in_pyenv(const char *name) {
  const char *home = getenv("HOME");
  char pattern[PATH_MAX];
  glob_t all;
  snprintf(pattern, sizeof pattern, "%s/.pyenv/versions/%s.*/bin/%s",
           home != NULL ? home : "", name + strlen("python"), name);
  bool any = glob(pattern, 0, NULL, &all) == 0;
  if (any) snprintf(found, sizeof found, "%s", all.gl_pathv[0]);
  globfree(&all);
  return any;
}

const char *pythons_find(int minor) {
  char name[32];
  if (minor == PYTHONS_SYSTEM) {
    snprintf(found, sizeof found, "/usr/bin/python3");
    if (access(found, X_OK) == 0) return found;
    note_skipped(found, "it is not installed");
    return NULL;
  }
  snprintf(name, sizeof name, "python3.%d", minor);
  if (find_in_path(name) || find_in_pyenv(name)) return found;
  note_skipped(name, "it is not installed");
  return NULL;
}
