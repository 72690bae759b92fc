// Files that verbs write: whether they may be written, and writing them.
#include "outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK_SIZE = 4096 };  // how much of a file is looked at for its mark

// ---------------------------------------------------------------------------
// Places
// ---------------------------------------------------------------------------

static bool is_one(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_nowhere(const struct stat *file) {
  struct stat null;
  return S_ISCHR(file->st_mode) && stat("/dev/null", &null) == 0 &&
         file->st_rdev == null.st_rdev;
}

bool outfile_is_stdout(const char *path) {
  struct stat file, standard;
  path = tool_out_path(path);
  return stat(path, &file) == 0 && fstat(fileno(tool_out()), &standard) == 0 &&
         is_one(&file, &standard) && !is_nowhere(&file);
}

static bool stat_folder(const char *path, struct stat *out) {
  char *folder = tool_text(path);
  folder[tool_base_name(path) - path] = '\0';
  bool found = stat(folder[0] != '\0' ? folder : ".", out) == 0;
  free(folder);
  return found;
}

bool outfile_is_same(const char *path, const char *other) {
  struct stat a, b;
  bool is_there = stat(path, &a) == 0;
  if (is_there != (stat(other, &b) == 0)) return false;
  if (is_there) return is_one(&a, &b);
  return strcmp(tool_base_name(path), tool_base_name(other)) == 0 &&
         stat_folder(path, &a) && stat_folder(other, &b) && is_one(&a, &b);
}

// Targets that are written to in place, not replaced: also files without a
// name, as stdout may be.
static bool is_special(const char *path) {
  struct stat found;
  return stat(path, &found) == 0 &&
         (!S_ISREG(found.st_mode) || found.st_nlink == 0 ||
          outfile_is_stdout(path));
}

// Where |path| leads, if it is a link: the link is to stay. Free it. NULL and
// errno: a link that leads nowhere by name, such as /dev/stderr on a file that
// is deleted; a rename would put the new file where the link is.
static char *resolve(const char *path) {
  struct stat found;
  char *target = realpath(path, NULL);
  if (target != NULL) return target;
  bool is_link = lstat(path, &found) == 0 && S_ISLNK(found.st_mode);
  errno = is_link ? ENOENT : 0;
  return is_link ? NULL : tool_text(path);
}

// The rights of the existing file, or of a new one.
static mode_t mode_for(const char *path) {
  struct stat found;
  if (stat(path, &found) == 0) return found.st_mode & 0777;
  mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

// A new file beside |path|, whose name replaces |*out_name|; -1 and errno if
// there can be none.
static int open_beside(const char *path, char **out_name) {
  size_t size = strlen(path) + sizeof ".XXXXXX";
  *out_name = tool_array(size, 1);
  if (access(path, F_OK) == 0 && access(path, W_OK) != 0) return -1;
  snprintf(*out_name, size, "%s.XXXXXX", path);
  int fd = mkstemp(*out_name);
  if (fd >= 0) (void)fchmod(fd, mode_for(path));
  return fd;
}

static bool say_why(const tool_verb *verb, const char *path, int number) {
  tool_say(verb, "%s: %s", path, strerror(number));
  return false;
}

// ---------------------------------------------------------------------------
// Would something be lost?
// ---------------------------------------------------------------------------

static bool is_regular(const char *path, struct stat *out) {
  if (stat(path, out) != 0) return false;
  return S_ISREG(out->st_mode);
}

// "-" is the standard input, which may be a file.
static bool is_input(const char *input, const struct stat *file) {
  struct stat found;
  int error = strcmp(input, "-") == 0 ? fstat(STDIN_FILENO, &found)
                                      : stat(input, &found);
  return error == 0 && is_one(&found, file);
}

static bool is_any_input(const outfile_rules *rules, const struct stat *file) {
  if (rules->input != NULL && is_input(rules->input, file)) return true;
  for (size_t i = 0; rules->inputs != NULL && i < rules->inputs->count; i++) {
    if (is_input(rules->inputs->items[i], file)) return true;
  }
  return false;
}

// Whether |path| begins with |start| and has |mark| soon after.
static bool has_mark(const char *path, const char *start, const char *mark) {
  char text[LOOK_SIZE + 1] = {0};
  FILE *in = fopen(path, "rbe");
  if (in == NULL) return false;
  (void)fread(text, 1, LOOK_SIZE, in);
  (void)fclose(in);
  return strncmp(text, start, strlen(start)) == 0 && strstr(text, mark) != NULL;
}

static bool is_plan(const char *path) {
  tarn_plan_csv_options options = {.struct_size = sizeof options,
                                   .offsets_are_answers = true};
  tarn_plan_table *table = NULL;
  if (tarn_plan_table_read(path, &options, &table) != TARN_OK) return false;
  bool found = tarn_plan_table_offsets(table) != NULL;
  tarn_plan_table_destroy(table);
  return found;
}

static bool is_of_kind(const char *path, outfile_kind kind) {
  switch (kind) {
    case OUTFILE_PAGE:
      return has_mark(path, "<!DOCTYPE html>",
                      "<meta name=\"generator\" content=\"tarn ");
    case OUTFILE_PICTURE:
      return has_mark(path, "<svg ", " data-generator=\"tarn plan\"");
    case OUTFILE_PLAN:
      return is_plan(path);
    case OUTFILE_TRACE:
      return false;
  }
  return false;
}

static bool may_replace(const outfile_rules *rules, outfile_kind kind,
                        const char *path) {
  static const char *const reasons[] = {
      [OUTFILE_PAGE] = "is not a page of tarn view or tarn replay",
      [OUTFILE_PICTURE] = "is not a picture of tarn plan",
      [OUTFILE_PLAN] = "is not a plan: not all of its lines have an offset",
      [OUTFILE_TRACE] = "exists already"};
  struct stat file;
  if (!is_regular(path, &file)) return true;
  if (is_any_input(rules, &file)) {
    tool_say(rules->verb, "%s: not overwritten: this command reads it", path);
    return false;
  }
  bool nothing_lost = file.st_size == 0 || outfile_is_stdout(path);
  if (rules->force || nothing_lost || is_of_kind(path, kind)) return true;
  tool_say(rules->verb, "%s: not overwritten: it %s; --force overwrites it",
           path, reasons[kind]);
  return false;
}

// ---------------------------------------------------------------------------
// Can it be written?
// ---------------------------------------------------------------------------

// Whether a file can be made beside |path|.
static bool try_beside(const char *path) {
  char *name;
  int fd = open_beside(path, &name);
  int number = errno;
  if (fd >= 0) {
    close(fd);
    unlink(name);
  }
  free(name);
  errno = number;
  return fd >= 0;
}

// A pipe is not opened for a try: its reader would take the close for the end.
static bool try_special(const char *path) {
  struct stat found;
  bool is_folder = stat(path, &found) == 0 && S_ISDIR(found.st_mode);
  if (!is_folder) return access(path, W_OK) == 0;
  errno = EISDIR;
  return false;
}

bool outfile_try(const outfile_rules *rules, outfile_kind kind,
                 const char *path) {
  path = tool_out_path(path);
  if (!may_replace(rules, kind, path)) return false;
  char *target = resolve(path);
  bool can = is_special(path) ? try_special(path)
                              : target != NULL && try_beside(target);
  int number = errno;
  free(target);
  return can || say_why(rules->verb, path, number);
}

// ---------------------------------------------------------------------------
// Writing
// ---------------------------------------------------------------------------

typedef struct content {
  void (*write)(const void *context, FILE *out);
  const void *context;
} content;

static bool finish(FILE *out, const content *c) {
  c->write(c->context, out);
  bool written = ferror(out) == 0;
  return fclose(out) == 0 && written;
}

static bool write_special(const content *c, const char *path) {
  bool is_stdout = outfile_is_stdout(path);
  (void)fflush(tool_out());
  int fd =
      is_stdout ? dup(fileno(tool_out())) : open(path, O_WRONLY | O_CLOEXEC);
  FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
  return out != NULL && finish(out, c);
}

static bool write_beside(const content *c, const char *path) {
  char *name;
  int fd = open_beside(path, &name);
  FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
  bool written = out != NULL && finish(out, c) && rename(name, path) == 0;
  int number = errno;
  if (fd >= 0 && !written) unlink(name);
  free(name);
  errno = number;
  return written;
}

bool outfile_write(const tool_verb *verb, const char *path,
                   void (*write)(const void *context, FILE *out),
                   const void *context) {
  content c = {write, context};
  path = tool_out_path(path);
  char *target = resolve(path);
  if (target != NULL) errno = 0;
  bool written = is_special(path) ? write_special(&c, path)
                                  : target != NULL && write_beside(&c, target);
  int number = errno ? errno : EIO;
  free(target);
  return written || say_why(verb, path, number);
}
