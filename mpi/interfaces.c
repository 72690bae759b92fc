// The interfaces are the kernel's; which of them MPI is to use it has been told
// in a variable, which mpirun passes on.
#include "interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <mpi.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OPEN_MPI
#define VARIABLE "OMPI_MCA_btl_tcp_if_include"
#define SETTING "btl_tcp_if_include"
#else
#define VARIABLE "UCX_NET_DEVICES"
#define SETTING "UCX_NET_DEVICES"
#endif

enum { MOST_WORD = 64 };

// --- what MPI was told -----------------------------------------------------

// The 32 bits of an address, the first of its numbers highest.
static bool read_address(const char *text, uint32_t *out) {
  struct in_addr address;
  if (inet_pton(AF_INET, text, &address) != 1) return false;
  *out = ntohl(address.s_addr);
  return true;
}

// Whether |word| is a net, as 10.0.0.0/8, and |address| in it.
static bool has_in_net(char *word, uint32_t address) {
  uint32_t net = 0;
  char *slash = strchr(word, '/');
  if (slash == NULL) return false;
  *slash = '\0';
  unsigned long bits = strtoul(slash + 1, NULL, 10);
  if (bits > 32 || !read_address(word, &net)) return false;
  uint32_t mask = bits == 0 ? 0 : UINT32_MAX << (32 - bits);
  return (net & mask) == (address & mask);
}

// UCX writes a port behind a name: mlx5_0:1.
static bool has_name(char *word, const char *name) {
  word[strcspn(word, ":")] = '\0';
  return strcmp(word, name) == 0 || strcmp(word, "all") == 0;
}

// |told|: names and nets, between commas; "": all.
static bool is_told(const char *told, const char *name, uint32_t address) {
  if (*told == '\0') return true;
  while (*told != '\0') {
    char word[2][MOST_WORD];
    size_t size = strcspn(told, ",");
    for (int i = 0; i < 2; i++)
      snprintf(word[i], sizeof word[i], "%.*s", (int)size, told);
    if (has_name(word[0], name) || has_in_net(word[1], address)) return true;
    told += size + (told[size] == ',' ? 1 : 0);
  }
  return false;
}

// --- what there is ---------------------------------------------------------

typedef struct list {
  char *out;
  size_t room;
  size_t size;  // so far, without the NUL
  size_t count;
} list;

static void add_text(list *l, const char *text) {
  int more = snprintf(l->out + l->size, l->room - l->size, "%s", text);
  if (more < 0) return;
  l->size += (size_t)more;
  if (l->size >= l->room) l->size = l->room - 1;
}

static void add(list *l, const struct ifaddrs *at, const char *told) {
  char address[INET_ADDRSTRLEN] = "";
  struct sockaddr_in in;
  if (at->ifa_addr == NULL || at->ifa_addr->sa_family != AF_INET) return;
  if ((at->ifa_flags & IFF_LOOPBACK) != 0) return;
  memcpy(&in, at->ifa_addr, sizeof in);
  if (!is_told(told, at->ifa_name, ntohl(in.sin_addr.s_addr))) return;
  (void)inet_ntop(AF_INET, &in.sin_addr, address, sizeof address);
  bool runs = (at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_RUNNING);
  if (l->count++ > 0) add_text(l, " or ");
  add_text(l, at->ifa_name);
  add_text(l, " ");
  add_text(l, address);
  if (!runs) add_text(l, ", which is down");
}

void tarn__mpi_interfaces(char *out, size_t out_size) {
  list l = {.out = out, .room = out_size};
  const char *told = secure_getenv(VARIABLE);
  struct ifaddrs *all = NULL;
  if (told == NULL) told = "";
  out[0] = '\0';
  if (getifaddrs(&all) != 0) return;
  for (const struct ifaddrs *at = all; at != NULL; at = at->ifa_next)
    add(&l, at, told);
  freeifaddrs(all);
  if (l.count == 0) add_text(&l, "no network interface");
  add_text(&l, " (" SETTING);
  add_text(&l, *told != '\0' ? "=" : " chooses");
  add_text(&l, told);
  add_text(&l, ")");
}
