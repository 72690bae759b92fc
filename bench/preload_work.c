// What the tool itself is, as a program under an allocator: steps that need
// only a C library.
//
// A step takes blocks of 64 KiB to 2 MiB, writes to each, and frees some on the
// way and the others at its end. Two steps of three have the same sizes; the
// third has those of its number.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "preload_bench.h"

enum { BLOCKS = 200, ALIVE = 60 };

static uint64_t next_random(uint64_t *random) {
  *random ^= *random << 13;
  *random ^= *random >> 7;
  *random ^= *random << 17;
  return *random;
}

static size_t next_size(uint64_t *random) {
  uint64_t bits = 16 + next_random(random) % 5;
  return (size_t)(((uint64_t)1 << bits) +
                  next_random(random) % ((uint64_t)1 << bits));
}

static bool run_step(uint64_t number) {
  void *blocks[ALIVE] = {NULL};
  uint64_t random = number % 3 != 2 ? 88172645463325252 : number + 1;
  bool served = true;
  for (size_t i = 0; i < BLOCKS && served; i++) {
    size_t size = next_size(&random);
    void **place = &blocks[next_random(&random) % ALIVE];
    free(*place);
    *place = malloc(size);
    served = *place != NULL;
    if (served) memset(*place, 1, size);
  }
  for (size_t i = 0; i < ALIVE; i++)
    free(blocks[i]);
  return served;
}

static bool tell_step(clock_t taken) {
  struct rusage used;
  double seconds = (double)taken / CLOCKS_PER_SEC;
  return getrusage(RUSAGE_SELF, &used) == 0 &&
         printf("step %.6f %ld\n", seconds, used.ru_minflt) > 0 &&
         fflush(stdout) == 0;
}

static int run_blocks(uint64_t steps) {
  for (uint64_t i = 0; i < steps; i++) {
    clock_t begin = clock();
    if (!run_step(i) || !tell_step(clock() - begin)) return 1;
  }
  return 0;
}

// The dynamic linker goes on without what it does not find.
static int probe(void) {
  char line[4096];
  bool found = false;
  const char *library = getenv("LD_PRELOAD");
  if (library == NULL || *library == '\0') return 0;
  const char *slash = strrchr(library, '/');
  const char *name = slash != NULL ? slash + 1 : library;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL)
    found = strstr(line, name) != NULL;
  if (maps != NULL) fclose(maps);
  return found ? 0 : 1;
}

int preload_work(const char *name, uint64_t steps) {
  if (strcmp(name, "blocks") == 0) return run_blocks(steps);
  if (strcmp(name, "probe") == 0) return probe();
  return -1;
}
