// Processes of this machine, as descriptors and through memory that they share.
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"
#include "base/os_peer.h"

int tarn__os_this_process(void) {
  return tarn__os_above_standard((int)syscall(SYS_pidfd_open, getpid(), 0));
}

// What the kernel tells of a descriptor is text, of about 100 bytes here; of a
// process that has ended and was waited for, the number is -1.
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
  if (line == NULL) return false;
  long long told = strtoll(line + strlen("\nPid:"), NULL, 10);
  return told == pid || told == -1;
}

// --- files of other processes ----------------------------------------------

bool tarn__os_name_file(int fd, tarn__os_file_name *out) {
  struct stat info;
  memset(out, 0, sizeof *out);
  if (fstat(fd, &info) != 0) return false;
  *out = (tarn__os_file_name){.device = info.st_dev,
                              .inode = info.st_ino,
                              .process = (int32_t)getpid(),
                              .fd = fd};
  return true;
}

static bool is_named(const struct stat *info, const tarn__os_file_name *name) {
  return S_ISREG(info->st_mode) && info->st_dev == name->device &&
         info->st_ino == name->inode;
}

// The file is looked at before it is opened, for opening some kinds has
// effects, and after, for the number may have become another file's.
int tarn__os_open_named(const tarn__os_file_name *name) {
  struct stat info;
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", name->process, name->fd);
  if (stat(path, &info) != 0) return -1;
  errno = ENOENT;
  if (!is_named(&info, name)) return -1;
  int fd = tarn__os_above_standard(open(path, O_RDWR | O_CLOEXEC));
  if (fd < 0) return -1;
  if (fstat(fd, &info) == 0 && is_named(&info, name)) return fd;
  tarn__os_close(fd);
  errno = ENOENT;
  return -1;
}

// --- leases ----------------------------------------------------------------

// A pipe: the kernel closes the ends of a process that ends.
bool tarn__os_lease(int *out_watch, int *out_hold) {
  int ends[2];
  *out_watch = *out_hold = -1;
  if (pipe2(ends, O_CLOEXEC) != 0 || !tarn__os_pair_above_standard(ends)) {
    return false;
  }
  *out_watch = ends[0];
  *out_hold = ends[1];
  return true;
}

bool tarn__os_lease_ended(int watch, uint64_t ns) {
  uint64_t now = tarn__os_now_ns();
  uint64_t end = ns < UINT64_MAX - now ? now + ns : UINT64_MAX;
  for (;;) {
    struct pollfd look = {.fd = watch, .events = 0};
    struct timespec left = tarn__os_timespec(end - now);
    if (ppoll(&look, 1, &left, NULL) > 0) return true;
    now = tarn__os_now_ns();
    if (now >= end) return false;
  }
}

enum { AT_ONCE = 8 };  // descriptors of one look

// Whether one of |looks| has ended; its place among them.
static bool has_ended(struct pollfd *looks, size_t count, size_t *out_place) {
  size_t place = 0;
  if (count == 0 || poll(looks, count, 0) <= 0) return false;
  while (looks[place].revents == 0)
    place++;
  *out_place = place;
  return true;
}

// Only those that are to be looked at go to the kernel, few at a time: it takes
// no more than the process may have descriptors, which may be less than there
// are, or than there are ranks.
size_t tarn__os_find_ended(const int *fds, size_t count) {
  struct pollfd looks[AT_ONCE];
  size_t at[AT_ONCE] = {0};
  size_t used = 0;
  size_t place = 0;
  for (size_t i = 0; i < count; i++) {
    if (fds[i] < 0) continue;
    looks[used] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    at[used++] = i;
    if (used < AT_ONCE) continue;
    if (has_ended(looks, used, &place)) return at[place];
    used = 0;
  }
  return has_ended(looks, used, &place) ? at[place] : count;
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
  struct timespec span = tarn__os_timespec(ns);
  (void)syscall(SYS_futex, word, FUTEX_WAIT, value, &span, NULL, 0);
}

void tarn__os_wake_all(atomic_uint *word) {
  (void)syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}
