// From what the recorder wrote to what its user keeps.
#include "recorded.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kit/format.h"
#include "rename.h"

// --- names -----------------------------------------------------------------

static char *compose(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

static char *compose(const char *format, ...) {
  va_list args;
  char *text = NULL;
  va_start(args, format);
  int length = vasprintf(&text, format, args);
  va_end(args);
  return length >= 0 ? text : tool_array(SIZE_MAX, 1);
}

char *recorded_name(const char *program) {
  const char *base = tool_base_name(program);
  char *name = compose("%s.tarn", base);
  for (unsigned i = 2; access(name, F_OK) == 0; i++) {
    free(name);
    name = compose("%s-%u.tarn", base, i);
  }
  return name;
}

static char *folder_of(const char *path) {
  const char *base = tool_base_name(path);
  if (base == path) return tool_text(".");
  return compose("%.*s", (int)(base - path), path);
}

// A file that can be made could have been: it is gone again.
static bool can_be_made(const char *path) {
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  close(fd);
  return unlink(path) == 0;
}

char *recorded_absolute(const tool_verb *verb, const char *path) {
  char *folder = folder_of(path);
  char *real = realpath(folder, NULL);
  free(folder);
  if (real != NULL && can_be_made(path)) {
    char *absolute = compose("%s/%s", real, tool_base_name(path));
    free(real);
    return absolute;
  }
  int error = errno;
  free(real);
  if (error == EEXIST) {
    tool_fail(verb, "%s is there already and stays as it is", path);
  } else {
    tool_fail(verb, "%s: %s", path, strerror(error));
  }
  return NULL;
}

// --- children --------------------------------------------------------------

// "1234" of "FILE.1234" and of "FILE.1234-1"; NULL if |name| is neither.
static const char *number_of(const char *name, const char *file) {
  size_t length = strlen(file);
  if (strncmp(name, file, length) != 0 || name[length] != '.') return NULL;
  const char *number = name + length + 1;
  const char *end = number + strspn(number, "0123456789");
  if (end == number) return NULL;
  if (*end == '-') end += 1 + strspn(end + 1, "0123456789");
  return *end == '\0' ? number : NULL;
}

static int compare_names(const void *a, const void *b) {
  const char *const *x = a;
  const char *const *y = b;
  return strverscmp(*x, *y);
}

// Whether a line of a process's maps is about that file and no longer name.
static bool is_about(const char *line, const char *absolute) {
  const char *path = strchr(line, '/');
  size_t length = strlen(absolute);
  return path != NULL && strncmp(path, absolute, length) == 0 &&
         path[length] == '\n';
}

// Whether the process has the file mapped; false if that cannot be seen.
static bool has_mapped(const char *process, const char *absolute) {
  char *path =
      compose("/proc/%.*s/maps", (int)strspn(process, "0123456789"), process);
  FILE *maps = fopen(path, "re");
  free(path);
  if (maps == NULL) return false;
  char *line = NULL;
  size_t room = 0;
  bool found = false;
  while (!found && getline(&line, &room, maps) >= 0)
    found = is_about(line, absolute);
  free(line);
  fclose(maps);
  return found;
}

bool recorded_is_open(const char *child, const char *path) {
  const char *process = number_of(child, path);
  char *absolute = realpath(child, NULL);
  bool is_open =
      process != NULL && absolute != NULL && has_mapped(process, absolute);
  free(absolute);
  return is_open;
}

bool recorded_is_in_use(const char *path) {
  char *absolute = realpath(path, NULL);
  DIR *processes = opendir("/proc");
  const struct dirent *entry;
  bool found = false;
  while (absolute != NULL && processes != NULL && !found &&
         (entry = readdir(processes)) != NULL) {
    if (strspn(entry->d_name, "0123456789") > 0)
      found = has_mapped(entry->d_name, absolute);
  }
  if (processes != NULL) closedir(processes);
  free(absolute);
  return found;
}

static bool is_running(const char *process) {
  char *path =
      compose("/proc/%.*s", (int)strspn(process, "0123456789"), process);
  bool running = access(path, F_OK) == 0;
  free(path);
  return running;
}

bool recorded_is_unwritten(const char *file, const char *path) {
  struct stat found;
  const char *process = number_of(tool_base_name(file), tool_base_name(path));
  return stat(file, &found) == 0 && found.st_size == 0 &&
         (process == NULL || !is_running(process));
}

int recorded_forget(const char *file) {
  enum { LEAST = 8192 };  // a header and a page
  int fd = open(file, O_WRONLY | O_CLOEXEC);
  int error = fd < 0 ? errno : posix_fallocate(fd, 0, LEAST);
  if (fd >= 0) close(fd);
  (void)unlink(file);
  return error;
}

void recorded_children(const char *path, options_list *out_paths) {
  char *folder = folder_of(path);
  DIR *entries = opendir(folder);
  free(folder);
  if (entries == NULL) return;
  const char *base = tool_base_name(path);
  const struct dirent *entry;
  while ((entry = readdir(entries)) != NULL) {
    if (number_of(entry->d_name, base) == NULL) continue;
    char *child = compose("%.*s%s", (int)(base - path), path, entry->d_name);
    options_list_add(out_paths, child, strlen(child));
    free(child);
  }
  closedir(entries);
  if (out_paths->count == 0) return;
  qsort(out_paths->items, out_paths->count, sizeof *out_paths->items,
        compare_names);
}

// --- finishing -------------------------------------------------------------

// "+0x1234", which is what a reader makes of an address in a module.
static bool offset_of(const tarn_trace_frame *frame, uint64_t *out_offset) {
  char *end = NULL;
  if (frame->line != 0 || strncmp(frame->function, "+0x", 3) != 0) return false;
  errno = 0;
  *out_offset = strtoull(frame->function + 1, &end, 16);
  return *end == '\0' && errno == 0;
}

// A frame without a name keeps its offset.
static size_t name_frame(void *context, const tarn_trace_frame *frame,
                         tarn_trace_frame out[RENAME_MOST]) {
  uint64_t offset = 0;
  if (context == NULL || !offset_of(frame, &offset)) return 0;
  size_t count = symbols_find(context, frame->file, offset, out);
  for (size_t i = 0; i < count; i++) {
    if (out[i].function[0] == '\0') out[i].function = frame->function;
  }
  return count;
}

static void say_held(const tool_verb *verb, const char *path,
                     const tarn_trace *trace) {
  char events[FORMAT_SIZE], peak[FORMAT_SIZE], bytes[FORMAT_SIZE];
  struct stat file = {0};
  (void)stat(path, &file);
  tool_say(verb, "%s: %s event%s, live peak %s, file of %s", path,
           format_count(events, trace->event_count),
           trace->event_count == 1 ? "" : "s",
           format_bytes(peak, trace->live_peak_bytes),
           format_bytes(bytes, (uint64_t)file.st_size));
  if (trace->lost_count == 0) return;
  tool_say(verb, "%s: %s event%s could not be written", path,
           format_count(events, trace->lost_count),
           trace->lost_count == 1 ? "" : "s");
}

typedef struct finishing {
  const tool_verb *verb;
  const char *path;  // of what was recorded
  const char *program;
  symbols *table;
} finishing;

// Writes the finished |trace| to |path|.
static tool_exit finish_to(const finishing *f, const tarn_trace *trace,
                           const char *path) {
  tarn_trace *named = NULL;
  tarn_status status =
      rename_trace(trace, f->program, name_frame, f->table, &named);
  if (status == TARN_OK) {
    status = tarn_trace_write(named, TARN_TRACE_FORMAT_TARN, path);
  }
  if (status == TARN_OK) say_held(f->verb, path, named);
  tarn_trace_destroy(named);
  if (status == TARN_OK) return TOOL_DONE;
  return tool_fail(f->verb, "%s stays as it was recorded: %s", f->path,
                   tarn_last_error());
}

// Device |number|, if it has a history, into a file of its own.
static tool_exit finish_device(const finishing *f, uint32_t number,
                               uint32_t *left) {
  tarn_trace_options options = {
      .struct_size = sizeof options, .choose_device = true, .device = number};
  tarn_trace *trace = NULL;
  tarn_status status = tarn_trace_read(f->path, &options, &trace);
  if (status == TARN_E_INVALID) return TOOL_DONE;  // there is no such device
  if (status != TARN_OK) return tool_fail(f->verb, "%s", tarn_last_error());
  char *own = compose("%s.device-%u", f->path, number);
  tool_exit done = finish_to(f, trace, own);
  free(own);
  tarn_trace_destroy(trace);
  (*left)--;
  return done;
}

// A file holds one device once it is finished: the others go first.
static tool_exit finish_others(const finishing *f, const tarn_trace *most) {
  enum { DEVICES_MOST = 256 };
  tool_exit done = TOOL_DONE;
  uint32_t left = most->device_count > 0 ? most->device_count - 1 : 0;
  for (uint32_t i = 0; done == TOOL_DONE && left > 0 && i < DEVICES_MOST; i++) {
    if (i == most->device) continue;
    done = finish_device(f, i, &left);
  }
  return done;
}

tool_exit recorded_finish(const tool_verb *verb, const char *path,
                          const char *program, symbols *table,
                          uint64_t *out_peak) {
  const finishing f = {verb, path, program, table};
  tarn_trace *trace = NULL;
  *out_peak = 0;
  if (tarn_trace_read(path, NULL, &trace) != TARN_OK) {
    return tool_fail(verb, "%s", tarn_last_error());
  }
  if (strcmp(trace->format, "tarn") != 0) {
    tool_exit no =
        tool_fail(verb, "%s was not recorded: it is of the format %s", path,
                  trace->format);
    tarn_trace_destroy(trace);
    return no;
  }
  tool_exit done = finish_others(&f, trace);
  if (done == TOOL_DONE) done = finish_to(&f, trace, path);
  if (done == TOOL_DONE) *out_peak = trace->live_peak_bytes;
  tarn_trace_destroy(trace);
  return done;
}
