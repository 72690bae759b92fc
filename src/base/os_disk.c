// Files by offset, and what brings them to the disk.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/os.h"

int tarn__os_open(const char *path, tarn__os_opening how) {
  // Without O_NONBLOCK, opening a pipe would wait for its other end.
  static const int flags[] = {
      [TARN__OS_TO_READ] = O_RDONLY | O_NONBLOCK,
      [TARN__OS_TO_READ_DIRECTLY] = O_RDONLY | O_DIRECT | O_NONBLOCK,
      [TARN__OS_TO_WRITE] = O_RDWR | O_NONBLOCK,
      [TARN__OS_TO_WRITE_DIRECTLY] = O_RDWR | O_DIRECT | O_NONBLOCK};
  return tarn__os_above_standard(open(path, flags[how] | O_CLOEXEC));
}

bool tarn__os_claim(int fd) {
  return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

bool tarn__os_file_size(int fd, uint64_t *out_size) {
  struct stat found;
  *out_size = 0;
  if (fstat(fd, &found) != 0) return false;
  errno = EINVAL;
  if (!S_ISREG(found.st_mode)) return false;
  *out_size = (uint64_t)found.st_size;
  return true;
}

bool tarn__os_read_at(int fd, uint64_t offset, void *out, size_t size,
                      size_t *out_got) {
  unsigned char *bytes = out;
  *out_got = 0;
  while (*out_got < size) {
    ssize_t got = pread(fd, bytes + *out_got, size - *out_got,
                        (off_t)(offset + *out_got));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) break;
    *out_got += (size_t)got;
  }
  return true;
}

bool tarn__os_write_at(int fd, uint64_t offset, const void *bytes,
                       size_t size) {
  const unsigned char *from = bytes;
  for (size_t done = 0; done < size;) {
    ssize_t put = pwrite(fd, from + done, size - done, (off_t)(offset + done));
    if (put == 0) errno = EIO;
    if (put <= 0 && errno != EINTR) return false;
    if (put > 0) done += (size_t)put;
  }
  return true;
}

bool tarn__os_resize(int fd, uint64_t size) {
  if (ftruncate(fd, (off_t)size) != 0) return false;
  if (size == 0 || fallocate(fd, 0, 0, (off_t)size) == 0) return true;
  return errno == EOPNOTSUPP || errno == ENOSYS;
}

// As in linux/mman.h, which Debian 12 has without it.
typedef struct cache_range {
  uint64_t offset;
  uint64_t size;
} cache_range;

typedef struct cache_state {
  uint64_t cached;  // pages
  uint64_t others[4];
} cache_state;

static bool ask_cache(int fd, uint64_t offset, size_t size, size_t *out_pages) {
  enum { CACHESTAT = 451 };
  cache_range range = {offset, size};
  cache_state state = {0};
  if (syscall(CACHESTAT, fd, &range, &state, 0) != 0) return false;
  *out_pages = (size_t)state.cached;
  return true;
}

// Pages of a mapping that nobody touches.
static bool map_and_ask(int fd, uint64_t offset, size_t size,
                        size_t *out_pages) {
  enum { MOST = 512 };
  unsigned char pages[MOST];
  size_t page = tarn__os_page();
  *out_pages = 0;
  if (size > MOST * page) size = MOST * page;
  void *mapping = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, (off_t)offset);
  if (mapping == MAP_FAILED) return false;
  bool told = mincore(mapping, size, pages) == 0;
  for (size_t i = 0; told && i * page < size; i++)
    *out_pages += pages[i] & 1;
  munmap(mapping, size);
  return told;
}

bool tarn__os_is_cached(int fd, uint64_t offset, size_t size) {
  size_t pages = 0;
  if (!ask_cache(fd, offset, size, &pages) &&
      !map_and_ask(fd, offset, size, &pages)) {
    return false;
  }
  return 2 * pages * tarn__os_page() >= size;
}

bool tarn__os_is_on_fuse(int fd) {
  enum { FUSE = 0x65735546 };
  struct statfs found;
  return fstatfs(fd, &found) == 0 && found.f_type == FUSE;
}

bool tarn__os_sync(int fd) {
  return fdatasync(fd) == 0;
}

bool tarn__os_sync_folder(const char *path) {
  char folder[PATH_MAX] = ".";
  const char *slash = strrchr(path, '/');
  size_t size = slash == NULL ? 0 : (size_t)(slash - path) + 1;
  errno = ENAMETOOLONG;
  if (size >= sizeof folder) return false;
  if (size > 0) memcpy(folder, path, size);
  if (size > 0) folder[size] = '\0';
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  bool synced = fsync(fd) == 0;
  int error = errno;
  close(fd);
  errno = error;
  // Some file systems, and some folders, have nothing to bring anywhere.
  return synced || error == EINVAL;
}
