// Pages: a template with its marks {{name}} filled in, and the file that it
// becomes.
//
// A file comes into being beside its place and is moved there when it is whole:
// what stood there stays until then. What is no plain file, such as
// /dev/stdout, is written to as it is.
#include "page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text.h"

// ---------------------------------------------------------------------------
// Texts and marks
// ---------------------------------------------------------------------------

static const char *entity_of(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return NULL;
  }
}

void page_text(const char *text, FILE *out) {
  char *harmless = tool_text(text);
  text_neutralise(harmless, "");
  for (const char *at = harmless; *at; at++) {
    const char *entity = entity_of(*at);
    if (entity != NULL) {
      fputs(entity, out);
    } else {
      fputc(*at, out);
    }
  }
  free(harmless);
}

static const page_mark *mark_at(const page *p, const char *text) {
  for (size_t i = 0; i < p->mark_count; i++) {
    const char *name = p->marks[i].name;
    if (strncmp(text, name, strlen(name)) == 0) return &p->marks[i];
  }
  return NULL;
}

static void fill(const page *p, FILE *out) {
  const char *text = p->html;
  while (*text) {
    const page_mark *found = mark_at(p, text);
    if (found == NULL) {
      fputc(*text++, out);
      continue;
    }
    found->write(p->context, out);
    text += strlen(found->name);
  }
}

// ---------------------------------------------------------------------------
// Files
// ---------------------------------------------------------------------------

// What is no regular file, or one that has no name any more, as stdout may be.
static bool is_special(const char *path) {
  struct stat found;
  return stat(path, &found) == 0 &&
         (!S_ISREG(found.st_mode) || found.st_nlink == 0);
}

// What a link leads to is resolved by then: this one leads nowhere, and would
// be replaced.
static bool is_link(const char *path) {
  struct stat found;
  return lstat(path, &found) == 0 && S_ISLNK(found.st_mode);
}

// Where |path| leads, if it is a link: the link is to stay. Free it.
static char *resolve(const char *path) {
  path = tool_out_path(path);
  char *target = realpath(path, NULL);
  return target ? target : tool_text(path);
}

// The rights of the file that is there, or those of a new one.
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
  errno = ENOENT;
  if (is_link(path)) return -1;
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

static bool finish(FILE *out, const page *p) {
  fill(p, out);
  bool written = ferror(out) == 0;
  return fclose(out) == 0 && written;
}

static bool write_special(const page *p, const char *path) {
  FILE *out = fopen(path, "w");
  return out != NULL && finish(out, p);
}

static bool write_beside(const page *p, const char *path) {
  char *name;
  int fd = open_beside(path, &name);
  FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
  bool written = out != NULL && finish(out, p) && rename(name, path) == 0;
  int number = errno;
  if (fd >= 0 && !written) unlink(name);
  free(name);
  errno = number;
  return written;
}

bool page_write(const tool_verb *verb, const page *p, const char *path) {
  char *target = resolve(path);
  errno = 0;
  bool written =
      is_special(target) ? write_special(p, target) : write_beside(p, target);
  int number = errno ? errno : EIO;
  free(target);
  return written || say_why(verb, path, number);
}

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

// Not opened for a try: who waits at the other end of a pipe would take it for
// the end.
static bool try_special(const char *path) {
  struct stat found;
  bool is_folder = stat(path, &found) == 0 && S_ISDIR(found.st_mode);
  if (!is_folder) return access(path, W_OK) == 0;
  errno = EISDIR;
  return false;
}

bool page_try(const tool_verb *verb, const char *path) {
  char *target = resolve(path);
  bool can = is_special(target) ? try_special(target) : try_beside(target);
  int number = errno;
  free(target);
  return can || say_why(verb, path, number);
}
