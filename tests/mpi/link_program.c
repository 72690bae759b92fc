// What a link does to bytes: the second host sends back what the first one
// sends to it, which times it and looks at it.
//
//   link 0|1 BYTES    0 on the first host, 1 on the second
//
// Prints "round US", the quickest round trip of a few bytes, "came BYTES", what
// has come back, and "unharmed"; or "silent" if that was not all and nothing
// more came for a second, or "harmed".
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 7177, ROUNDS = 20, FEW = 64, BLOCK = 1 << 16 };

static _Noreturn void die(const char *what) {
  fprintf(stderr, "link: %s: %s\n", what, strerror(errno));
  exit(EXIT_FAILURE);
}

static struct sockaddr_in second_host(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
  (void)inet_pton(AF_INET, "10.231.77.2", &at.sin_addr);
  return at;
}

static int make_socket(void) {
  int on = 1;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) die("socket");
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

// --- the second host -------------------------------------------------------

static void send_all(int fd, const unsigned char *bytes, size_t size) {
  for (size_t sent = 0; sent < size;) {
    ssize_t part = send(fd, bytes + sent, size - sent, MSG_NOSIGNAL);
    if (part <= 0) die("send");
    sent += (size_t)part;
  }
}

static int send_back(void) {
  static unsigned char bytes[BLOCK];
  struct sockaddr_in at = second_host();
  int on = 1;
  int door = make_socket();
  if (bind(door, (const struct sockaddr *)&at, sizeof at) != 0 ||
      listen(door, 1) != 0)
    die("listen");
  int fd = accept4(door, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0) die("accept");
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  for (;;) {
    ssize_t size = recv(fd, bytes, sizeof bytes, 0);
    if (size <= 0) return EXIT_SUCCESS;
    send_all(fd, bytes, (size_t)size);
  }
}

// --- the first host --------------------------------------------------------

static int reach(void) {
  static const struct timespec pause = {.tv_nsec = 20000000};
  struct sockaddr_in at = second_host();
  for (int i = 0; i < 250; i++) {
    int fd = make_socket();
    if (connect(fd, (const struct sockaddr *)&at, sizeof at) == 0) return fd;
    (void)close(fd);
    (void)nanosleep(&pause, NULL);
  }
  die("connect");
}

static unsigned char byte_at(size_t i) {
  return (unsigned char)(i * 7 + i / 251);
}

static bool is_right(const unsigned char *bytes, size_t first, size_t size) {
  for (size_t i = 0; i < size; i++) {
    if (bytes[i] != byte_at(first + i)) return false;
  }
  return true;
}

// As much as a socket takes.
static size_t send_some(int fd, size_t first, size_t size) {
  static unsigned char bytes[BLOCK];
  if (size > sizeof bytes) size = sizeof bytes;
  for (size_t i = 0; i < size; i++)
    bytes[i] = byte_at(first + i);
  ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && errno != EAGAIN) die("send");
  return sent > 0 ? (size_t)sent : 0;
}

static size_t receive_some(int fd, size_t first) {
  static unsigned char bytes[BLOCK];
  ssize_t got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
  if (got < 0 && errno == EAGAIN) return 0;
  if (got <= 0) die("receive");
  if (is_right(bytes, first, (size_t)got)) return (size_t)got;
  printf("harmed\n");
  exit(EXIT_FAILURE);
}

// Sends |size| bytes and receives as many; returns how many came before there
// was silence.
static size_t exchange(int fd, size_t size) {
  size_t sent = 0;
  size_t got = 0;
  while (got < size) {
    short events = sent < size ? POLLIN | POLLOUT : POLLIN;
    struct pollfd there = {.fd = fd, .events = events};
    if (poll(&there, 1, 1000) <= 0) return got;
    if ((there.revents & POLLOUT) != 0)
      sent += send_some(fd, sent, size - sent);
    if ((there.revents & ~POLLOUT) != 0) got += receive_some(fd, got);
  }
  return got;
}

static uint64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static uint64_t least_round(int fd) {
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t begin = now_us();
    if (exchange(fd, FEW) != FEW) return UINT64_MAX;
    uint64_t took = now_us() - begin;
    if (took < least) least = took;
  }
  return least;
}

static int measure(size_t size) {
  int fd = reach();
  printf("round %llu\n", (unsigned long long)least_round(fd));
  size_t got = exchange(fd, size);
  printf("came %zu\n%s\n", got, got == size ? "unharmed" : "silent");
  return EXIT_SUCCESS;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: link 0|1 BYTES\n");
    return EXIT_FAILURE;
  }
  if (strcmp(argv[1], "1") == 0) return send_back();
  return measure(strtoull(argv[2], NULL, 10));
}
