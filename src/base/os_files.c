// Files: read, viewed, appended to, and written beside their place.
//
// What is read from a path may come in through the standard input, whose size
// is not known before its end.
//
// A new file is whole or not there: it is written beside its place, then
// renamed. A link stays one: the place is that of what it leads to. A rename
// would put the file where the link was, also where that is /dev/stdout.
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"

static tarn_status io_error(const char *path) {
  return tarn__fail(TARN_E_IO, "%s: %s", path, strerror(errno));
}

static tarn_status size_of(int fd, const char *path, const char *advice,
                           size_t *out_size) {
  struct stat info;
  if (fstat(fd, &info) != 0) return io_error(path);
  *out_size = (size_t)info.st_size;
  if (S_ISREG(info.st_mode)) return TARN_OK;
  return tarn__fail(TARN_E_IO, "%s: not a regular file%s", path, advice);
}

// Opens the regular file at |path|, or fails and says |advice| too.
static tarn_status open_regular(const char *path, const char *advice,
                                int *out_fd, size_t *out_size) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return io_error(path);
  *out_fd = fd;
  tarn_status status = size_of(fd, path, advice, out_size);
  if (status != TARN_OK) close(fd);
  return status;
}

// --- reading ---------------------------------------------------------------

// Reads up to |size| bytes; returns how many came, or -1 with errno.
static ssize_t read_fully(int fd, unsigned char *bytes, size_t size) {
  size_t got = 0;
  while (got < size) {
    ssize_t n = read(fd, bytes + got, size - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    got += (size_t)n;
  }
  return (ssize_t)got;
}

// Reads |size| bytes, or less where the file has become shorter.
static tarn_status read_bytes(int fd, const char *path, size_t size,
                              unsigned char **out_bytes, size_t *out_size) {
  unsigned char *bytes = tarn__host_alloc(size);
  if (bytes == NULL) {
    return tarn__fail(TARN_E_NOMEM, "%s: no memory for its %zu bytes", path,
                      size);
  }
  ssize_t got = read_fully(fd, bytes, size);
  tarn_status status = got < 0 ? io_error(path) : TARN_OK;
  unsigned char *fitted = got < 0 ? NULL : bytes;
  if (got >= 0 && (size_t)got < size) {
    fitted = tarn__host_resize(bytes, size, (size_t)got, 1);
    if (fitted == NULL) status = TARN_E_NOMEM;
  }
  if (status != TARN_OK) {
    tarn__host_free(bytes, size);
    return status;
  }
  *out_bytes = fitted;
  *out_size = (size_t)got;
  return TARN_OK;
}

tarn_status tarn__os_read_file(const char *path, size_t most,
                               unsigned char **out_bytes, size_t *out_size) {
  int fd = -1;
  size_t size = 0;
  *out_bytes = NULL;
  *out_size = 0;
  TARN__TRY(open_regular(path, "; save what a pipe gives to one", &fd, &size));
  tarn_status status =
      size <= most ? read_bytes(fd, path, size, out_bytes, out_size)
                   : tarn__fail(TARN_E_UNSUPPORTED,
                                "%s: %zu bytes; files of at most %zu are read",
                                path, size, most);
  close(fd);
  return status;
}

static tarn_status read_to_end(tarn__budget *budget, tarn__array *in) {
  enum { ROOM = 1 << 16 };
  for (ssize_t got = ROOM; got == ROOM; in->count += (size_t)got) {
    TARN__TRY(tarn__array_reserve(budget, in, ROOM));
    got =
        read_fully(STDIN_FILENO, (unsigned char *)in->items + in->count, ROOM);
    if (got < 0) return io_error("standard input");
  }
  return tarn__array_fit(budget, in);
}

tarn_status tarn__os_read_input(const char *path, unsigned char **out_bytes,
                                size_t *out_size) {
  if (strcmp(path, "-") != 0) {
    return tarn__os_read_file(path, SIZE_MAX, out_bytes, out_size);
  }
  tarn__budget budget = tarn__budget_unlimited("standard input");
  tarn__array in = TARN__ARRAY_OF(unsigned char);
  tarn_status status = read_to_end(&budget, &in);
  if (status != TARN_OK) tarn__array_free(&budget, &in);
  *out_bytes = in.items;
  *out_size = in.count;
  return status;
}

// --- views -----------------------------------------------------------------

tarn_status tarn__os_view_file(const char *path,
                               const unsigned char **out_bytes,
                               size_t *out_size) {
  int fd = -1;
  size_t size = 0;
  void *bytes = NULL;
  *out_bytes = NULL;
  *out_size = 0;
  TARN__TRY(open_regular(path, "", &fd, &size));
  // The kernel refuses an empty mapping.
  if (size > 0) bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
  tarn_status status = bytes == MAP_FAILED ? io_error(path) : TARN_OK;
  close(fd);
  if (status != TARN_OK) return status;
  *out_bytes = bytes;
  *out_size = size;
  return TARN_OK;
}

void tarn__os_unview_file(const unsigned char *bytes, size_t size) {
  if (bytes != NULL) tarn__os_unmap((void *)(uintptr_t)bytes, size);
}

// --- writing ---------------------------------------------------------------

bool tarn__os_append_file(const char *path, const void *bytes, size_t size) {
  int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK;
  int fd = open(path, flags, 0600);
  if (fd < 0) return false;
  bool written = write(fd, bytes, size) == (ssize_t)size;
  return close(fd) == 0 && written;
}

static tarn_status refuse(const char *what, const char *path) {
  int error = errno;
  return tarn__fail(TARN_E_IO, "%s: cannot %s: %s", path, what,
                    strerror(error));
}

static bool is_special(const char *path) {
  struct stat found;
  return stat(path, &found) == 0 && !S_ISREG(found.st_mode);
}

// "<path>.<pid>-<n>.new": a name of this process alone, renamed on success.
static char *name_beside(const char *path) {
  static atomic_uint count;
  return tarn__host_format(
      "%s.%ld-%u.new", path, (long)getpid(),
      atomic_fetch_add_explicit(&count, 1, memory_order_relaxed));
}

static void forget(tarn__os_new_file *file) {
  tarn__host_free_text(file->temporary);
  tarn__host_free_text(file->path);
  *file = (tarn__os_new_file){.fd = -1};
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
  TARN__TRY(find_place(path, &file->path));
  assert(file->path != NULL);
  if (!is_special(path)) return open_beside(file);
  file->fd = open(file->path, O_WRONLY | O_CLOEXEC);
  return file->fd >= 0 ? TARN_OK : refuse("write to it", file->path);
}

tarn_status tarn__os_file_begin(const char *path, tarn__os_new_file *out_file) {
  *out_file = (tarn__os_new_file){.fd = -1};
  tarn_status status = open_place(path, out_file);
  if (status != TARN_OK) forget(out_file);
  return status;
}

// Closing the file leaves the standard output open.
tarn_status tarn__os_output_begin(const char *path,
                                  tarn__os_new_file *out_file) {
  if (strcmp(path, "-") != 0) return tarn__os_file_begin(path, out_file);
  *out_file = (tarn__os_new_file){.fd = -1};
  char *name = tarn__host_text("standard output");
  if (name == NULL) return TARN_E_NOMEM;
  int fd = tarn__os_duplicate(STDOUT_FILENO);
  if (fd >= 0) {
    *out_file = (tarn__os_new_file){.fd = fd, .path = name};
    return TARN_OK;
  }
  tarn_status status = refuse("write to it", name);
  tarn__host_free_text(name);
  return status;
}

tarn_status tarn__os_file_write(const tarn__os_new_file *file,
                                const void *bytes, size_t size) {
  const char *from = bytes;
  for (size_t done = 0; done < size;) {
    ssize_t part = write(file->fd, from + done, size - done);
    if (part > 0) done += (size_t)part;
    if (part == 0) errno = EIO;
    if (part <= 0 && errno != EINTR) return refuse("write to it", file->path);
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
