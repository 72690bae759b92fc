// Files in memory as they are, without a copy.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os.h"
#include "base/status.h"

static tarn_status refuse(const char *path) {
  return tarn__fail(TARN_E_IO, "%s: %s", path, strerror(errno));
}

// An empty mapping is none to the kernel.
static tarn_status view(int fd, const char *path,
                        const unsigned char **out_bytes, size_t *out_size) {
  struct stat info;
  if (fstat(fd, &info) != 0) return refuse(path);
  if (!S_ISREG(info.st_mode)) {
    return tarn__fail(TARN_E_IO, "%s: not a regular file", path);
  }
  size_t size = (size_t)info.st_size;
  if (size == 0) return TARN_OK;
  void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (bytes == MAP_FAILED) return refuse(path);
  *out_bytes = bytes;
  *out_size = size;
  return TARN_OK;
}

tarn_status tarn__os_view_file(const char *path,
                               const unsigned char **out_bytes,
                               size_t *out_size) {
  *out_bytes = NULL;
  *out_size = 0;
  // Without O_NONBLOCK, to open a pipe would wait for who writes to it.
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return refuse(path);
  tarn_status status = view(fd, path, out_bytes, out_size);
  close(fd);
  return status;
}

void tarn__os_unview_file(const unsigned char *bytes, size_t size) {
  if (bytes != NULL) tarn__os_unmap((void *)(uintptr_t)bytes, size);
}
