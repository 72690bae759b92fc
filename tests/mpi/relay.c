// A link with a delay: what leaves one tun device comes out of the other one,
// later. Each of the two is in a network namespace of its own, so that a kernel
// without netem has slow links as well.
//
//   relay [OPTION]... NAMESPACE DEVICE NAMESPACE DEVICE
//
//   --delay US       how long a packet is on its way (0)
//   --freeze BYTES   passes nothing more once so many bytes have passed, of
//   both
//                    ways together; so does SIGUSR1. Who has sent is not told
//   --cut BYTES      ends then, and the devices with it; so does SIGUSR2
//
//   tun ──read──► ring of packets, each with its time ──write──► other tun
//
// The namespaces are names of `ip netns`. A packet that finds the ring full is
// not read, and waits in its device, as in a network card's.
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { PACKETS = 2048, PACKET_MOST = 9216, AT_A_TIME = 32 };

typedef struct packet {
  uint64_t due_ns;
  size_t size;
  unsigned char bytes[PACKET_MOST];
} packet;

// One way. Packets |first| to |end| - 1 are on it, modulo PACKETS.
typedef struct way {
  int from;
  int to;
  size_t first;
  size_t end;
  packet *ring;
} way;

typedef struct relay {
  uint64_t delay_ns;
  uint64_t freeze_after;  // bytes; 0: never
  uint64_t cut_after;     // likewise
  uint64_t passed;        // bytes
  way ways[2];
} relay;

static volatile sig_atomic_t frozen;
static volatile sig_atomic_t is_cut;

static void on_signal(int number) {
  if (number == SIGUSR1) frozen = 1;
  if (number == SIGUSR2) is_cut = 1;
}

static _Noreturn void die(const char *what) {
  fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
  exit(EXIT_FAILURE);
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// --- devices ---------------------------------------------------------------

static void enter(const char *name) {
  char path[128];
  snprintf(path, sizeof path, "/run/netns/%s", name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) die(path);
  (void)close(fd);
}

// A device belongs to the namespace that its file was opened in.
static int open_device(const char *space, const char *name) {
  struct ifreq wanted = {.ifr_flags = IFF_TUN | IFF_NO_PI};
  enter(space);
  int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) die("/dev/net/tun");
  snprintf(wanted.ifr_name, sizeof wanted.ifr_name, "%s", name);
  if (ioctl(fd, TUNSETIFF, &wanted) != 0) die(name);
  return fd;
}

static void open_ways(relay *r, char **names) {
  int first = open_device(names[0], names[1]);
  int second = open_device(names[2], names[3]);
  for (int i = 0; i < 2; i++) {
    way *w = &r->ways[i];
    w->from = i == 0 ? first : second;
    w->to = i == 0 ? second : first;
    w->ring = calloc(PACKETS, sizeof *w->ring);
    if (w->ring == NULL) die("packets");
  }
}

// --- packets ---------------------------------------------------------------

static bool is_full(const way *w) {
  return w->end - w->first == PACKETS;
}

// What a device refuses, as it does while it is down, is lost.
static void pass(relay *r, const way *w, const packet *p) {
  r->passed += p->size;
  if (r->freeze_after != 0 && r->passed >= r->freeze_after) frozen = 1;
  if (r->cut_after != 0 && r->passed >= r->cut_after) is_cut = 1;
  if (frozen == 0 && write(w->to, p->bytes, p->size) < 0 && errno == EBADFD)
    die("write");
}

static void take(const relay *r, way *w) {
  for (int i = 0; i < AT_A_TIME && !is_full(w); i++) {
    packet *p = &w->ring[w->end % PACKETS];
    ssize_t size = read(w->from, p->bytes, sizeof p->bytes);
    if (size <= 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size <= 0) die("read");
    p->size = (size_t)size;
    p->due_ns = now_ns() + r->delay_ns;
    w->end++;
  }
}

static void give(relay *r, way *w) {
  uint64_t now = now_ns();
  while (w->first != w->end && w->ring[w->first % PACKETS].due_ns <= now)
    pass(r, w, &w->ring[w->first++ % PACKETS]);
}

// Until the first packet is due; false: there is none.
static bool time_left(const relay *r, struct timespec *out) {
  uint64_t due = UINT64_MAX;
  for (int i = 0; i < 2; i++) {
    const way *w = &r->ways[i];
    if (w->first == w->end) continue;
    uint64_t own = w->ring[w->first % PACKETS].due_ns;
    if (own < due) due = own;
  }
  uint64_t now = now_ns();
  uint64_t left = due > now ? due - now : 0;
  *out = (struct timespec){.tv_sec = (time_t)(left / 1000000000),
                           .tv_nsec = (long)(left % 1000000000)};
  return due != UINT64_MAX;
}

static void wait_for_packets(const relay *r) {
  struct pollfd there[2];
  struct timespec left;
  for (int i = 0; i < 2; i++) {
    const way *w = &r->ways[i];
    there[i] =
        (struct pollfd){.fd = is_full(w) ? -1 : w->from, .events = POLLIN};
  }
  bool any = time_left(r, &left);
  if (ppoll(there, 2, any ? &left : NULL, NULL) < 0 && errno != EINTR)
    die("poll");
}

static void run(relay *r) {
  while (is_cut == 0) {
    wait_for_packets(r);
    for (int i = 0; i < 2; i++) {
      take(r, &r->ways[i]);
      give(r, &r->ways[i]);
    }
  }
}

// --- the command line ------------------------------------------------------

static bool is_option(const char *word, const char *name, const char *value,
                      uint64_t *out) {
  char *end = NULL;
  if (strcmp(word, name) != 0 || value == NULL) return false;
  *out = strtoull(value, &end, 10);
  return end != value && *end == '\0';
}

// By its launcher's death it ends as well, and its timers are exact.
static void prepare(void) {
  struct sigaction action = {.sa_handler = on_signal};
  (void)sigaction(SIGUSR1, &action, NULL);
  (void)sigaction(SIGUSR2, &action, NULL);
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)prctl(PR_SET_TIMERSLACK, 1UL);
}

int main(int argc, char **argv) {
  relay r = {0};
  uint64_t delay_us = 0;
  int i = 1;
  while (i + 1 < argc &&
         (is_option(argv[i], "--delay", argv[i + 1], &delay_us) ||
          is_option(argv[i], "--freeze", argv[i + 1], &r.freeze_after) ||
          is_option(argv[i], "--cut", argv[i + 1], &r.cut_after))) {
    i += 2;
  }
  if (argc - i != 4) {
    fprintf(stderr,
            "usage: relay [--delay US] [--freeze BYTES] [--cut BYTES] "
            "NAMESPACE DEVICE NAMESPACE DEVICE\n");
    return EXIT_FAILURE;
  }
  r.delay_ns = delay_us * 1000;
  prepare();
  open_ways(&r, argv + i);
  run(&r);
  for (i = 0; i < 2; i++)
    free(r.ways[i].ring);
  return EXIT_SUCCESS;
}
