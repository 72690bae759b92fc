// The link itself: one connection by TCP between the first ranks of the first
// two machines, without MPI and without the library.
//
// Machines tell each other their addresses. Those of a virtual bridge are often
// the same on each of them: what two machines have in common is a network, not
// an address. Ranks that only say that they are on different machines have all
// addresses in common, and go by the loopback.
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <math.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hosts_scene.h"
#include "kit/stopwatch.h"
#include "kit/tool.h"
#include "probe.h"

enum {
  ADDRESSES = 8,
  BLOCK = 1 << 17,
  ROUNDS = 21,
  PATIENCE_MS = 30000,
  LASTS_MS = 250,  // a measurement, about
  FIRST_BYTES = 8 << 20,
};

typedef struct address {
  uint32_t number;  // in the order of the network; 0: none
  uint32_t mask;
  char interface[HOSTS_INTERFACE_SIZE];
} address;

typedef struct addresses {
  address all[ADDRESSES];
  uint16_t port;  // of the end that is called
} addresses;

static bool refuse(hosts_scene *s, const char *what) {
  snprintf(s->whole.why, sizeof s->whole.why, "the link: %s: %s", what,
           strerror(errno));
  s->whole.status = TARN_E_IO;
  return false;
}

// ---------------------------------------------------------------------------
// Addresses
// ---------------------------------------------------------------------------

static bool is_wanted(const hosts_scene *s, const struct ifaddrs *at) {
  const char *named = s->bench->interface;
  if (at->ifa_addr == NULL || at->ifa_addr->sa_family != AF_INET ||
      (at->ifa_flags & IFF_UP) == 0) {
    return false;
  }
  return named != NULL ? strcmp(at->ifa_name, named) == 0
                       : (at->ifa_flags & IFF_LOOPBACK) == 0;
}

static uint32_t number_of(const struct sockaddr *at) {
  struct sockaddr_in in;
  memcpy(&in, at, sizeof in);
  return in.sin_addr.s_addr;
}

static void find_addresses(const hosts_scene *s, addresses *out) {
  struct ifaddrs *all = NULL;
  size_t count = 0;
  if (getifaddrs(&all) != 0) return;
  for (const struct ifaddrs *at = all; at != NULL; at = at->ifa_next) {
    if (!is_wanted(s, at) || count == ADDRESSES) continue;
    address *a = &out->all[count++];
    a->number = number_of(at->ifa_addr);
    a->mask = number_of(at->ifa_netmask);
    snprintf(a->interface, sizeof a->interface, "%s", at->ifa_name);
  }
  freeifaddrs(all);
}

static bool has(const addresses *of, uint32_t number) {
  for (size_t i = 0; i < ADDRESSES; i++) {
    if (of->all[i].number == number) return true;
  }
  return false;
}

// Whether |a|, of |here|, and |b|, of |there|, reach each other.
static bool is_pair(const addresses *here, const address *a,
                    const addresses *there, const address *b) {
  return a->number != 0 && b->number != 0 && !has(there, a->number) &&
         !has(here, b->number) &&
         (a->number & a->mask) == (b->number & b->mask);
}

// The address of |here| that leads to |there|, and that at which it is reached.
static void find_pair(const addresses *here, const addresses *there,
                      address *out_here, address *out_there) {
  static const address loopback = {.interface = "lo"};
  *out_here = *out_there = loopback;
  out_here->number = out_there->number = htonl(INADDR_LOOPBACK);
  for (size_t i = 0; i < (size_t)ADDRESSES * ADDRESSES; i++) {
    const address *a = &here->all[i / ADDRESSES];
    const address *b = &there->all[i % ADDRESSES];
    if (!is_pair(here, a, there, b)) continue;
    *out_here = *a;
    *out_there = *b;
    return;
  }
}

// ---------------------------------------------------------------------------
// The connection
// ---------------------------------------------------------------------------

static struct sockaddr_in place_of(uint32_t number, uint16_t port) {
  return (struct sockaddr_in){
      .sin_family = AF_INET, .sin_port = port, .sin_addr = {.s_addr = number}};
}

static int listen_at_all(addresses *own) {
  struct sockaddr_in at = place_of(htonl(INADDR_ANY), 0);
  socklen_t size = sizeof at;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (bind(fd, (const struct sockaddr *)&at, size) == 0 && listen(fd, 1) == 0 &&
      getsockname(fd, (struct sockaddr *)&at, &size) == 0) {
    own->port = at.sin_port;
    return fd;
  }
  (void)close(fd);
  return -1;
}

static void set_up(int fd) {
  int on = 1;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static int call(const address *at, uint16_t port) {
  struct sockaddr_in there = place_of(at->number, port);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (connect(fd, (const struct sockaddr *)&there, sizeof there) == 0)
    return fd;
  (void)close(fd);
  return -1;
}

static int answer(int door) {
  struct pollfd there = {.fd = door, .events = POLLIN};
  if (poll(&there, 1, PATIENCE_MS) <= 0) return -1;
  return accept4(door, NULL, NULL, SOCK_CLOEXEC);
}

// The first machine's end calls that of the second.
static bool connect_ends(hosts_scene *s, int door, const addresses *all) {
  address here;
  address there;
  size_t first = s->first_of[0];
  size_t second = s->first_of[1];
  bool connected = true;
  find_pair(&all[first], &all[second], &here, &there);
  if (s->whole.rank == first) s->socket = call(&there, all[second].port);
  if (s->whole.rank == second) s->socket = answer(door);
  s->is_end = s->whole.rank == first || s->whole.rank == second;
  s->is_sender = s->whole.rank == first;
  if (s->is_end && s->socket < 0)
    connected = refuse(s, "the machines cannot be connected");
  if (s->socket >= 0) set_up(s->socket);
  return connected;
}

// Each machine's first rank looks at the interface that leads to the first
// machine; that one's at the one that leads to the second.
static void find_interface(hosts_scene *s, const addresses *all) {
  address here;
  address there;
  size_t machine = s->machine_of[s->whole.rank];
  size_t other = machine == 0 ? s->first_of[1] : s->first_of[0];
  size_t own = s->first_of[machine];
  find_pair(&all[own], &all[other], &here, &there);
  memcpy(s->interface, here.interface, sizeof s->interface);
  bool is_shared = strcmp(s->interface, "lo") == 0;  // all see the same one
  s->counts_wire = s->whole.rank == own && (!is_shared || machine == 0);
}

bool hosts_link_open(hosts_scene *s) {
  addresses own = {0};
  addresses *all = tool_array(s->bench->whole.ranks, sizeof *all);
  int door = listen_at_all(&own);
  s->socket = -1;
  find_addresses(s, &own);
  bool told = door >= 0 || refuse(s, "a socket");
  told = whole_agree(&s->whole, told, 0, NULL) &&
         whole_did(&s->whole,
                   tarn_comm_allgather(s->whole.comm, &own, sizeof own, all));
  bool connected = told && connect_ends(s, door, all);
  if (told) find_interface(s, all);
  if (door >= 0) (void)close(door);
  free(all);
  return told && whole_agree(&s->whole, connected, 0, NULL);
}

void hosts_link_close(hosts_scene *s) {
  if (s->is_end && s->socket >= 0) (void)close(s->socket);
}

// ---------------------------------------------------------------------------
// Rates
// ---------------------------------------------------------------------------

typedef struct transfer {
  size_t to_send;
  size_t to_receive;
} transfer;

static bool move_some(int fd, unsigned char *bytes, transfer *t, short events) {
  if ((events & POLLOUT) != 0 && t->to_send > 0) {
    size_t most = t->to_send < BLOCK ? t->to_send : BLOCK;
    ssize_t sent = send(fd, bytes, most, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return false;
    if (sent > 0) t->to_send -= (size_t)sent;
  }
  if ((events & ~POLLOUT) != 0 && t->to_receive > 0) {
    size_t most = t->to_receive < BLOCK ? t->to_receive : BLOCK;
    ssize_t got = recv(fd, bytes + BLOCK, most, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN)) return false;
    if (got > 0) t->to_receive -= (size_t)got;
  }
  return true;
}

static bool move_all(int fd, transfer t) {
  static unsigned char bytes[2 * BLOCK];
  while (t.to_send > 0 || t.to_receive > 0) {
    struct pollfd there = {.fd = fd};
    if (t.to_send > 0) there.events |= POLLOUT;
    if (t.to_receive > 0) there.events |= POLLIN;
    if (poll(&there, 1, PATIENCE_MS) <= 0) return false;
    if (!move_some(fd, bytes, &t, there.revents)) return false;
  }
  return true;
}

// What was sent has arrived when a byte has come back, |t| being of this end.
static bool move_and_see(const hosts_scene *s, transfer t) {
  bool answers = t.to_receive > 0;
  bool asks = t.to_send > 0;
  return move_all(s->socket, t) &&
         move_all(s->socket, (transfer){answers ? 1 : 0, asks ? 1 : 0});
}

// |size| bytes from the first end to the second, and as many back if |both|:
// the time of the later one.
static bool time_transfer(hosts_scene *s, size_t size, bool both,
                          double *out_gbs) {
  uint64_t last = 0;
  bool sends = both || s->is_sender;
  bool receives = both || !s->is_sender;
  if (!whole_agree(&s->whole, true, 0, NULL)) return false;
  uint64_t begin = stopwatch_clock_ns();
  bool did = !s->is_end ||
             move_and_see(s, (transfer){sends ? size : 0, receives ? size : 0});
  uint64_t took = s->is_end ? stopwatch_clock_ns() - begin : 0;
  if (!did) (void)refuse(s, "bytes");
  if (!whole_agree(&s->whole, did, took, &last)) return false;
  *out_gbs = (double)size / (double)last;
  return true;
}

// As many bytes as take a quarter of a second or so.
static bool time_rate(hosts_scene *s, bool both, double *out_gbs) {
  double gbs = 0;
  if (!time_transfer(s, FIRST_BYTES, both, &gbs)) return false;
  double wanted = gbs * 1e6 * LASTS_MS;
  size_t size = wanted > FIRST_BYTES ? (size_t)wanted : FIRST_BYTES;
  return time_transfer(s, size, both, out_gbs);
}

static bool go_round(const hosts_scene *s, double *out_us) {
  uint64_t begin = stopwatch_clock_ns();
  static const transfer there = {1, 0};
  static const transfer back = {0, 1};
  if (!s->is_end) return true;
  bool did = move_all(s->socket, s->is_sender ? there : back) &&
             move_all(s->socket, s->is_sender ? back : there);
  *out_us = (double)(stopwatch_clock_ns() - begin) / 1e3;
  return did;
}

static bool time_round(hosts_scene *s, double *out_us) {
  double rounds[ROUNDS] = {0};
  bool did = true;
  uint64_t last = 0;
  for (size_t i = 0; i < ROUNDS && did; i++)
    did = go_round(s, &rounds[i]);
  if (!did) (void)refuse(s, "round trips");
  double us = s->is_sender && s->is_end ? probe_median(rounds, ROUNDS) : 0;
  if (!whole_agree(&s->whole, did, (uint64_t)(us * 1e3), &last)) return false;
  *out_us = (double)last / 1e3;
  return true;
}

bool hosts_link_measure(hosts_scene *s, hosts_link *out) {
  return time_rate(s, false, &out->one_gbs) &&
         time_rate(s, true, &out->both_gbs) && time_round(s, &out->round_us);
}
