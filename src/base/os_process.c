// Processes of this machine, as descriptors and through memory that they share.
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"
#include "base/os_peer.h"

int tarn__os_this_process(void) {
  int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  tarn__os_close(fd);
  return moved;
}

// What the kernel tells of a descriptor is text, of about 100 bytes here.
bool tarn__os_is_process(int fd, int64_t pid) {
  char path[64];
  char text[512];
  snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
  int info = open(path, O_RDONLY | O_CLOEXEC);
  if (info < 0) return errno != EMFILE && errno != ENFILE;
  ssize_t size = read(info, text, sizeof text - 1);
  tarn__os_close(info);
  if (size < 0) return false;
  text[size] = '\0';
  const char *line = strstr(text, "\nPid:");
  return line != NULL && strtoll(line + strlen("\nPid:"), NULL, 10) == pid;
}

enum { AT_ONCE = 64 };  // descriptors of one look

static size_t find_among(const int *fds, size_t count) {
  struct pollfd looks[AT_ONCE];
  for (size_t i = 0; i < count; i++) {
    looks[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
  }
  if (poll(looks, count, 0) <= 0) return count;
  size_t found = 0;
  while (found < count && looks[found].revents == 0)
    found++;
  return found;
}

size_t tarn__os_find_ended(const int *fds, size_t count) {
  for (size_t begin = 0; begin < count; begin += AT_ONCE) {
    size_t some = count - begin < AT_ONCE ? count - begin : AT_ONCE;
    size_t found = find_among(fds + begin, some);
    if (found < some) return begin + found;
  }
  return count;
}

uint32_t tarn__os_user(void) {
  return getuid();
}

bool tarn__os_random(void *bytes, size_t size) {
  ssize_t got = 0;
  do {
    got = getrandom(bytes, size, 0);
  } while (got < 0 && errno == EINTR);
  return got == (ssize_t)size;
}

// --- shared words ----------------------------------------------------------

void tarn__os_sleep_on(atomic_uint *word, unsigned value, uint64_t ns) {
  struct timespec span = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
  (void)syscall(SYS_futex, word, FUTEX_WAIT, value, &span, NULL, 0);
}

void tarn__os_wake_all(atomic_uint *word) {
  (void)syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}
