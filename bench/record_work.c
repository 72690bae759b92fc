// The program that the recorder's cost is measured on.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record_bench.h"

enum {
  PLACES = 64,
  LEAST_BITS = 16,  // 64 KiB
  MOST_BITS = 20,   // 1 MiB
  DEPTH_LEAST = 4,
  DEPTHS = 16,
};

typedef struct work {
  uint64_t random;
  void *places[PLACES];
} work;

static uint64_t next_random(work *w) {
  w->random ^= w->random << 13;
  w->random ^= w->random >> 7;
  w->random ^= w->random << 17;
  return w->random;
}

// Between two powers of two, and of those each as often as the next.
static size_t next_size(work *w) {
  uint64_t bits = LEAST_BITS + next_random(w) % (MOST_BITS - LEAST_BITS);
  return (size_t)((UINT64_C(1) << bits) +
                  next_random(w) % (UINT64_C(1) << bits));
}

// |depth| functions further down. The barriers keep the compiler from making a
// loop of it, or from leaving out work without a visible result.
__attribute__((noinline)) static void *allocate(size_t size, uint64_t depth) {
  void *block = depth == 0 ? malloc(size) : allocate(size, depth - 1);
  __asm__ volatile("" : : "r"(block) : "memory");
  return block;
}

// False: there is no memory.
static bool replace(work *w, bool touched) {
  void **place = &w->places[next_random(w) % PLACES];
  size_t size = next_size(w);
  free(*place);
  *place = allocate(size, DEPTH_LEAST - 1 + next_random(w) % DEPTHS);
  if (*place != NULL && touched) memset(*place, 1, size);
  return *place != NULL;
}

static bool replace_all(uint64_t allocations, bool touched) {
  work w = {.random = UINT64_C(88172645463325252)};
  bool served = true;
  for (uint64_t i = 0; i < allocations && served; i++)
    served = replace(&w, touched);
  for (size_t i = 0; i < PLACES; i++)
    free(w.places[i]);
  return served;
}

static bool tell(uint64_t *events) {
  ++*events;
  return write(STDOUT_FILENO, events, sizeof *events) ==
         (ssize_t)sizeof *events;
}

static bool replace_and_tell(void) {
  work w = {.random = UINT64_C(88172645463325252)};
  for (uint64_t events = 0;;) {
    void *block = allocate(next_size(&w), next_random(&w) % DEPTHS);
    bool told = tell(&events);
    free(block);
    if (!told || !tell(&events)) return false;
  }
}

bool record_bench_work(const char *name, uint64_t allocations) {
  if (strcmp(name, "touched") == 0) return replace_all(allocations, true);
  if (strcmp(name, "bare") == 0) return replace_all(allocations, false);
  return strcmp(name, "told") == 0 && replace_and_tell();
}
