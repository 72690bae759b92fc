// Mailboxes: socket pairs that keep messages apart and carry descriptors.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/os_pages.h"
#include "base/os_peer.h"

// --- memory ----------------------------------------------------------------

int tarn__os_shared_file(const char *name, size_t size) {
  int fd = tarn__os_memory_file(name, size);
  if (fd < 0 || tarn__os_allocate_file(fd, 0, size)) return fd;
  tarn__os_close(fd);
  return -1;
}

// --- descriptors -----------------------------------------------------------

bool tarn__os_keep_on_exec(int fd) {
  return fcntl(fd, F_SETFD, 0) == 0;
}

void tarn__os_close_on_exec(int fd) {
  (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

bool tarn__os_is_open(int fd) {
  return fcntl(fd, F_GETFD) >= 0;
}

void tarn__os_close_all(int *fds, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (fds[i] >= 0) tarn__os_close(fds[i]);
    fds[i] = -1;
  }
}

bool tarn__os_pair_above_standard(int pair[2]) {
  pair[0] = tarn__os_above_standard(pair[0]);
  pair[1] = tarn__os_above_standard(pair[1]);
  if (pair[0] >= 0 && pair[1] >= 0) return true;
  tarn__os_close_all(pair, 2);
  return false;
}

int *tarn__os_no_descriptors(size_t count) {
  int *fds = tarn__host_array(count, sizeof *fds);
  for (size_t i = 0; fds != NULL && i < count; i++)
    fds[i] = -1;
  return fds;
}

// --- mailboxes -------------------------------------------------------------

static bool ask_for_senders(int receive) {
  int on = 1;
  return setsockopt(receive, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0;
}

bool tarn__os_mailbox(int *out_receive, int *out_send) {
  int pair[2] = {-1, -1};
  *out_receive = *out_send = -1;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    return false;
  }
  if (!tarn__os_pair_above_standard(pair)) return false;
  if (!ask_for_senders(pair[0])) {
    tarn__os_close_all(pair, 2);
    return false;
  }
  *out_receive = pair[0];
  *out_send = pair[1];
  return true;
}

static bool has_option(int fd, int option, int expected) {
  int value = 0;
  socklen_t size = sizeof value;
  return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 &&
         value == expected;
}

bool tarn__os_is_mailbox(int fd) {
  return has_option(fd, SO_DOMAIN, AF_UNIX) &&
         has_option(fd, SO_TYPE, SOCK_SEQPACKET);
}

// Room for the control part of a message, aligned as the kernel wants it.
typedef union control {
  struct cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
} control;

static void attach(struct msghdr *message, control *room, int fd) {
  message->msg_control = room->bytes;
  message->msg_controllen = CMSG_SPACE(sizeof fd);
  struct cmsghdr *part = CMSG_FIRSTHDR(message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(part), &fd, sizeof fd);
}

bool tarn__os_put(int send, const void *bytes, size_t size, int passed) {
  struct iovec part = {(void *)(uintptr_t)bytes, size};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  control room = {0};
  ssize_t sent = 0;
  if (passed >= 0) attach(&message, &room, passed);
  do {
    sent = sendmsg(send, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == (ssize_t)size;
}

// Whatever comes is ours to close; only a single one is kept.
static void take_descriptors(const struct cmsghdr *part, int *out_fd) {
  size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  for (size_t i = 0; i < count; i++) {
    int fd = -1;
    memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
    if (count == 1 && *out_fd < 0) {
      *out_fd = tarn__os_above_standard(fd);
    } else {
      tarn__os_close(fd);
    }
  }
}

static void read_control(struct msghdr *message,
                         tarn__os_message *out_message) {
  struct ucred sender = {0, UINT32_MAX, UINT32_MAX};
  for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL;
       part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET) continue;
    if (part->cmsg_type == SCM_RIGHTS) take_descriptors(part, &out_message->fd);
    if (part->cmsg_type == SCM_CREDENTIALS) {
      memcpy(&sender, CMSG_DATA(part), sizeof sender);
    }
  }
  out_message->pid = sender.pid;
  out_message->uid = sender.uid;
}

static void drop_descriptor(tarn__os_message *message) {
  if (message->fd >= 0) tarn__os_close(message->fd);
  message->fd = -1;
}

bool tarn__os_take(int receive, void *bytes, size_t room,
                   tarn__os_message *out_message) {
  struct iovec part = {bytes, room};
  control place = {0};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = place.bytes,
                           .msg_controllen = sizeof place.bytes};
  ssize_t got = 0;
  *out_message = (tarn__os_message){.fd = -1};
  do {
    got =
        recvmsg(receive, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return false;
  read_control(&message, out_message);
  out_message->size = (size_t)got;
  bool cut = (message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0;
  if (cut || got == 0) drop_descriptor(out_message);
  return got != 0;
}

void tarn__os_await(int receive, uint64_t ns) {
  struct pollfd look = {.fd = receive, .events = POLLIN};
  struct timespec end = tarn__os_timespec(ns);
  (void)ppoll(&look, 1, &end, NULL);
}
