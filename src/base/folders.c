// The folders of the library, and whom they may belong to.
#include "base/folders.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os.h"
#include "base/status.h"

// --- the file that holds this code -----------------------------------------

// The path of the file that is mapped at |address|, in a line of
// /proc/self/maps: "begin-end rights offset device inode  path". NULL: another
// line, or no file.
static const char *path_in_line(const char *line, uintptr_t address) {
  char *end = NULL;
  uintptr_t from = strtoull(line, &end, 16);
  if (*end != '-') return NULL;
  uintptr_t to = strtoull(end + 1, &end, 16);
  return from <= address && address < to ? strchr(end, '/') : NULL;
}

// The kernel knows the file by its absolute path. The dynamic linker may have
// been given a relative one, when the current directory was another.
static bool find_own_file(char out[PATH_MAX]) {
  static const char here = 0;
  tarn__os_lines lines;
  const char *path = NULL;
  if (!tarn__os_lines_open(&lines, "/proc/self/maps")) return false;
  for (const char *line = tarn__os_lines_next(&lines);
       line != NULL && path == NULL; line = tarn__os_lines_next(&lines)) {
    path = path_in_line(line, (uintptr_t)&here);
    if (path != NULL) snprintf(out, PATH_MAX, "%s", path);
  }
  close(lines.fd);
  return path != NULL;
}

// --- folders ---------------------------------------------------------------

// Of |library|, which may be gone, the owner. A program with rights beyond its
// user's may have been given another path by that user: there root alone
// counts.
static uid_t owner_of(const char *library) {
  struct stat found;
  if (getauxval(AT_SECURE) != 0) return 0;
  return stat(library, &found) == 0 ? found.st_uid : geteuid();
}

static bool is_trusted(const char *folder, uid_t owner) {
  struct stat found;
  if (stat(folder, &found) != 0 || !S_ISDIR(found.st_mode)) return false;
  bool is_user = getauxval(AT_SECURE) == 0 && found.st_uid == geteuid();
  bool is_known = found.st_uid == 0 || found.st_uid == owner || is_user;
  if (is_known && (found.st_mode & S_IWOTH) == 0) return true;
  tarn__log(TARN_LOG_WARN,
            "%s: not searched for plug-ins: it is another user's, or everyone "
            "may write there",
            folder);
  return false;
}

bool tarn__folders_join(char *out, const char *folder, const char *name) {
  int length = snprintf(out, PATH_MAX, "%s/%s", folder, name);
  return length > 0 && length < PATH_MAX;
}

// False if |visit| wants no more.
static bool visit_beside(const char *const *places, size_t count,
                         tarn__folder_visit *visit, void *context) {
  char own[PATH_MAX];
  if (!find_own_file(own)) return true;
  uid_t owner = owner_of(own);
  *strrchr(own, '/') = '\0';
  for (size_t i = 0; i < count; i++) {
    char path[PATH_MAX];
    char real[PATH_MAX];
    if (!tarn__folders_join(path, own, places[i]) ||
        realpath(path, real) == NULL)
      continue;
    if (is_trusted(real, owner) && !visit(context, real)) return false;
  }
  return true;
}

void tarn__folders_visit(const char *const *places, size_t count,
                         tarn__folder_visit *visit, void *context) {
  if (!visit_beside(places, count, visit, context)) return;
  const char *named = secure_getenv("TARN_PLUGIN_DIR");
  if (named != NULL && named[0] == '/') (void)visit(context, named);
}

typedef struct search {
  const char *name;
  char *path;
  bool is_found;
} search;

static bool look_in(void *context, const char *folder) {
  search *s = context;
  s->is_found = tarn__folders_join(s->path, folder, s->name) &&
                access(s->path, F_OK) == 0;
  return !s->is_found;
}

bool tarn__folders_find(const char *const *places, size_t count,
                        const char *name, char *out) {
  search s = {.name = name, .path = out};
  tarn__folders_visit(places, count, look_in, &s);
  return s.is_found;
}
