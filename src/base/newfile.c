// A file that is whole or not there: written beside its place, then renamed.
//
// A link stays one: the place is that of what it leads to. A rename would put
// the file where the link was, be that /dev/stdout.
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"

static tarn_status refuse(const char *what, const char *path) {
  int error = errno;
  return tarn__fail(TARN_E_IO, "%s: cannot %s: %s", path, what,
                    strerror(error));
}

static bool is_special(const char *path) {
  struct stat found;
  return stat(path, &found) == 0 && !S_ISREG(found.st_mode);
}

// "<path>.<pid>-<n>.new": nobody else's, and gone if this one succeeds.
static char *name_beside(const char *path) {
  static atomic_uint count;
  size_t room = strlen(path) + 48;
  char *name = tarn__host_alloc(room);
  if (name == NULL) return NULL;
  snprintf(name, room, "%s.%ld-%u.new", path, (long)getpid(),
           atomic_fetch_add_explicit(&count, 1, memory_order_relaxed));
  char *fitting = tarn__host_text(name);
  tarn__host_free(name, room);
  return fitting;
}

static void forget(tarn__os_new_file *file) {
  tarn__host_free_text(file->temporary);
  tarn__host_free_text(file->path);
  *file = (tarn__os_new_file){.fd = -1};
}

// Closing it leaves the standard output open.
static tarn_status open_standard(tarn__os_new_file *file) {
  file->path = tarn__host_text("standard output");
  if (file->path == NULL) return TARN_E_NOMEM;
  file->fd = tarn__os_duplicate(STDOUT_FILENO);
  return file->fd >= 0 ? TARN_OK : refuse("write to it", file->path);
}

static tarn_status open_special(tarn__os_new_file *file) {
  file->fd = open(file->path, O_WRONLY | O_CLOEXEC);
  return file->fd >= 0 ? TARN_OK : refuse("write to it", file->path);
}

static tarn_status open_beside(tarn__os_new_file *file) {
  enum { MODE = 0666 };  // less what the process's mask takes
  file->temporary = name_beside(file->path);
  if (file->temporary == NULL) return TARN_E_NOMEM;
  file->fd =
      open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, MODE);
  return file->fd >= 0 ? TARN_OK : refuse("make it", file->path);
}

// The path of what |path| leads to, if it is a link; else its own.
static tarn_status find_place(const char *path, char **out_place) {
  char target[PATH_MAX];
  struct stat found;
  *out_place = NULL;
  if (lstat(path, &found) == 0 && S_ISLNK(found.st_mode) && !is_special(path)) {
    if (realpath(path, target) == NULL) return refuse("follow the link", path);
    path = target;
  }
  *out_place = tarn__host_text(path);
  return *out_place == NULL ? TARN_E_NOMEM : TARN_OK;
}

static tarn_status open_place(const char *path, tarn__os_new_file *file) {
  tarn_status status = find_place(path, &file->path);
  if (status != TARN_OK) return status;
  assert(file->path != NULL);
  return is_special(path) ? open_special(file) : open_beside(file);
}

static tarn_status begun(tarn_status status, tarn__os_new_file *file,
                         tarn__os_new_file *out_file) {
  if (status != TARN_OK) forget(file);
  *out_file = *file;
  return status;
}

tarn_status tarn__os_file_begin(const char *path, tarn__os_new_file *out_file) {
  tarn__os_new_file file = {.fd = -1};
  return begun(open_place(path, &file), &file, out_file);
}

tarn_status tarn__os_output_begin(const char *path,
                                  tarn__os_new_file *out_file) {
  tarn__os_new_file file = {.fd = -1};
  if (strcmp(path, "-") != 0) return tarn__os_file_begin(path, out_file);
  return begun(open_standard(&file), &file, out_file);
}

tarn_status tarn__os_file_write(const tarn__os_new_file *file,
                                const void *bytes, size_t size) {
  const char *from = bytes;
  for (size_t done = 0; done < size;) {
    ssize_t part = write(file->fd, from + done, size - done);
    if (part > 0) done += (size_t)part;
    if (part < 0 && errno != EINTR) return refuse("write to it", file->path);
  }
  return TARN_OK;
}

void tarn__os_file_cancel(tarn__os_new_file *file) {
  if (file->fd < 0) return;
  close(file->fd);
  if (file->temporary != NULL) unlink(file->temporary);
  forget(file);
}

tarn_status tarn__os_file_commit(tarn__os_new_file *file) {
  tarn_status status = TARN_OK;
  if (close(file->fd) != 0) status = refuse("write to it", file->path);
  if (status == TARN_OK && file->temporary != NULL &&
      rename(file->temporary, file->path) != 0) {
    status = refuse("put it there", file->path);
  }
  if (status != TARN_OK && file->temporary != NULL) unlink(file->temporary);
  forget(file);
  return status;
}
