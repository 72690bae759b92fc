// A library that needs large blocks early and at bad moments: in a constructor,
// which runs before that of what is preloaded, and in handlers of forks.
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "victim.h"

enum { SIZE = 300000 };

static void *block;
static void *held;
int early_forks;

void *early_block(size_t *out_size) {
  *out_size = SIZE;
  return block;
}

// A block from before the fork is freed, and one that is had now; the rest is
// freed when the locks are open again.
static void at_fork(void) {
  early_forks++;
  free(held);
  held = malloc(SIZE);
  unsigned char *brief = calloc(1, SIZE);
  if (held == NULL || brief == NULL) abort();
  if (brief[0] != 0 || memcmp(brief, brief + 1, SIZE - 1) != 0) abort();
  memset(held, 1, SIZE);
  void *moved = realloc(brief, 2 * SIZE);
  if (moved == NULL) abort();
  free(moved);
}

// Handlers of a fork that are known before others run after them.
__attribute__((constructor)) static void begin(void) {
  void *(*find)(size_t) =
      __extension__(void *(*)(size_t)) dlsym(RTLD_DEFAULT, "malloc");
  block = find(SIZE);
  memset(block, 7, SIZE);
  if (pthread_atfork(at_fork, at_fork, at_fork) != 0) abort();
}
