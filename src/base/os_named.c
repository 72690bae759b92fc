// Sockets that have a name in a folder, and the folder's lock.
//
// The kernel ends a listening socket and a lock with the process; only the name
// stays, without a listener.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/os.h"
#include "base/os_peer.h"

_Static_assert(TARN__OS_MOST_PATH + 1 ==
                   sizeof(((struct sockaddr_un *)NULL)->sun_path),
               "the length of a socket's path");

// --- folders ---------------------------------------------------------------

// File systems of networks, by the numbers of the kernel and, where it does not
// know them, of their makers. A file system that a virtual machine has of its
// host does not count.
static bool is_of_network(int fd) {
  static const uint32_t types[] = {
      0x00006969,  // NFS
      0x0000517b,  // SMB
      0xff534d42,  // CIFS
      0xfe534d42,  // SMB 2
      0x5346414f,  // AFS
      0x00c36400,  // Ceph
      0x0bd00bd0,  // Lustre
      0x47504653,  // GPFS
      0x19830326,  // BeeGFS
  };
  struct statfs info;
  if (fstatfs(fd, &info) != 0) return false;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    if ((uint32_t)info.f_type == types[i]) return true;
  }
  return false;
}

bool tarn__os_folder_open(const char *path, tarn__os_folder *out_folder) {
  struct stat info;
  *out_folder = (tarn__os_folder){.fd = -1};
  int fd =
      tarn__os_above_standard(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd < 0) return false;
  if (fstat(fd, &info) != 0) {
    tarn__os_close(fd);
    return false;
  }
  *out_folder = (tarn__os_folder){.fd = fd,
                                  .mode = info.st_mode & 07777,
                                  .is_own = info.st_uid == geteuid(),
                                  .is_of_network = is_of_network(fd)};
  return true;
}

void tarn__os_folder_close(tarn__os_folder *folder) {
  if (folder->fd >= 0) tarn__os_close(folder->fd);
  folder->fd = -1;
}

bool tarn__os_folder_lock(const tarn__os_folder *folder) {
  return flock(folder->fd, LOCK_EX | LOCK_NB) == 0;
}

// Not left to the end of the descriptor, of which a child that another thread
// forks has a copy.
void tarn__os_folder_unlock(const tarn__os_folder *folder) {
  (void)flock(folder->fd, LOCK_UN);
}

tarn__os_named tarn__os_folder_look(const tarn__os_folder *folder,
                                    const char *name, uint64_t *out_inode) {
  struct stat info;
  *out_inode = 0;
  if (fstatat(folder->fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno == ENOENT ? TARN__OS_NOTHING : TARN__OS_OTHER;
  }
  *out_inode = info.st_ino;
  return S_ISSOCK(info.st_mode) ? TARN__OS_SOCKET : TARN__OS_OTHER;
}

bool tarn__os_folder_remove(const tarn__os_folder *folder, const char *name) {
  return unlinkat(folder->fd, name, 0) == 0;
}

bool tarn__os_make_folder(char *io_path) {
  return mkdtemp(io_path) != NULL;
}

void tarn__os_remove_folder(const char *path) {
  (void)rmdir(path);
}

// --- sockets ---------------------------------------------------------------

static int make_socket(void) {
  return tarn__os_above_standard(
      socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// False if the path is too long.
static bool address_of(const char *path, struct sockaddr_un *out) {
  size_t size = strlen(path);
  *out = (struct sockaddr_un){.sun_family = AF_UNIX};
  errno = ENAMETOOLONG;
  if (size > TARN__OS_MOST_PATH) return false;
  memcpy(out->sun_path, path, size);
  return true;
}

static int fail_with(int fd, int reason) {
  tarn__os_close(fd);
  errno = reason;
  return -1;
}

int tarn__os_listen(const char *path, size_t most) {
  struct sockaddr_un address;
  if (!address_of(path, &address)) return -1;
  int fd = make_socket();
  if (fd < 0) return -1;
  if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    return fail_with(fd, errno);
  }
  if (listen(fd, (int)most) == 0) return fd;
  int reason = errno;
  (void)unlink(path);
  return fail_with(fd, reason);
}

void tarn__os_stop_listening(int listener) {
  (void)shutdown(listener, SHUT_RDWR);
  tarn__os_close(listener);
}

int tarn__os_connect(const char *path) {
  struct sockaddr_un address;
  int done = 0;
  if (!address_of(path, &address)) return -1;
  int fd = make_socket();
  if (fd < 0) return -1;
  do {
    done = connect(fd, (struct sockaddr *)&address, sizeof address);
  } while (done != 0 && errno == EINTR);
  return done == 0 ? fd : fail_with(fd, errno);
}

int tarn__os_accept(int listener) {
  int fd = -1;
  do {
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  } while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
  return tarn__os_above_standard(fd);
}

bool tarn__os_is_of_user(int fd) {
  struct ucred peer = {0, UINT32_MAX, UINT32_MAX};
  socklen_t size = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == geteuid();
}

// --- waits -----------------------------------------------------------------

static const uint64_t A_WHILE_NS = 1000000;

void tarn__os_await_any(const int *fds, size_t count, uint64_t ns,
                        bool *out_ready) {
  struct pollfd looks[TARN__OS_MOST_AWAITED];
  struct timespec end = tarn__os_timespec(ns);
  size_t used = 0;
  for (size_t i = 0; i < count; i++) {
    out_ready[i] = false;
    if (fds[i] < 0) continue;
    looks[used++] = (struct pollfd){.fd = fds[i], .events = POLLIN};
  }
  int found = ppoll(looks, used, &end, NULL);
  if (found < 0 && errno != EINTR) {  // more than this process may have
    end = tarn__os_timespec(A_WHILE_NS);
    (void)nanosleep(&end, NULL);
  }
  size_t look = 0;
  for (size_t i = 0; i < count; i++) {
    if (fds[i] < 0) continue;
    out_ready[i] = found < 0 || looks[look].revents != 0;
    look++;
  }
}

// --- the machine -----------------------------------------------------------

void tarn__os_machine(char *out_name, size_t room) {
  ssize_t size = -1;
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    size = read(fd, out_name, room - 1);
    tarn__os_close(fd);
  }
  out_name[size < 0 ? 0 : size] = '\0';
  out_name[strcspn(out_name, "\n")] = '\0';
}
