// CPython's sources, by folder and function.
#include "interpreter.h"

#include <string.h>
#include <strings.h>

enum { LONGEST = 4096 };  // longer names do not count

static bool starts(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

// Builds name files relative to wherever the compiler ran.
static const char *skip_relative(const char *file) {
  for (;;) {
    if (starts(file, "./")) {
      file += 2;
    } else if (starts(file, "../")) {
      file += 3;
    } else {
      return file;
    }
  }
}

static bool is_folder_of_sources(const char *path) {
  static const char *const folders[] = {"Include/", "Modules/",  "Objects/",
                                        "Parser/",  "Programs/", "Python/"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    if (starts(path, folders[i])) return true;
  }
  return false;
}

// "Objects/../Python/": both lie in the same folder.
static bool leads_to(const char *folder, const char *other) {
  const char *end = strchr(folder, '/') + 1;
  return starts(end, "../") && end + 3 == other;
}

// Where the last such folder begins in |path|; NULL: it has none. Earlier ones
// may be a user's: "/home/me/Python/mine/Objects/".
static const char *find_folder(const char *path) {
  const char *found = NULL;
  for (const char *at = path; at != NULL;) {
    bool is_one = is_folder_of_sources(at);
    if (is_one && (found == NULL || !leads_to(found, at))) found = at;
    at = strchr(at, '/');
    if (at != NULL) at++;
  }
  return found;
}

// "python", "cpython", "Python-3.11.7", "python3.11-3.11.2".
static bool is_named_after_it(const char *path, const char *folder) {
  const char *end = folder > path ? folder - 1 : path;
  const char *name = end;
  while (name > path && name[-1] != '/')
    name--;
  if (end - name > 1 && (*name == 'c' || *name == 'C')) name++;
  if (end - name < 6 || strncasecmp(name, "python", 6) != 0) return false;
  name += 6;
  if (name < end && *name == '-') name++;
  return name == end || (*name >= '0' && *name <= '9');
}

static bool is_its_function(const char *function) {
  static const char *const heads[] = {"PyEval_", "PyObject_", "PyImport_",
                                      "Py_"};
  if (*function == '_') function++;
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
    if (starts(function, heads[i])) return true;
  }
  return false;
}

static bool is_root(const interpreter *found, const char *path,
                    const char *folder) {
  size_t length = (size_t)(folder - path);
  for (size_t i = 0; i < found->count; i++) {
    if (found->lengths[i] == length &&
        memcmp(found->roots[i], path, length) == 0) {
      return true;
    }
  }
  return false;
}

interpreter interpreter_find(const tarn_trace *trace) {
  interpreter found = {0};
  for (size_t i = 0; i < trace->frame_count; i++) {
    const tarn_trace_frame *frame = &trace->frames[i];
    if (!is_its_function(frame->function)) continue;
    if (strnlen(frame->file, LONGEST) == LONGEST) continue;
    const char *path = skip_relative(frame->file);
    const char *folder = find_folder(path);
    if (folder == NULL || is_root(&found, path, folder)) continue;
    if (found.count == INTERPRETER_ROOTS) break;
    found.roots[found.count] = path;
    found.lengths[found.count++] = (size_t)(folder - path);
  }
  return found;
}

bool interpreter_has(const interpreter *found, const char *file) {
  const char *path = skip_relative(file);
  const char *folder = find_folder(path);
  if (folder == NULL) return false;
  return is_root(found, path, folder) || is_named_after_it(path, folder);
}
