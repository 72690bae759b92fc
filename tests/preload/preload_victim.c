// A program that the tests of libtarn-malloc.so run: it does what its argument
// names. It knows nothing of Tarn.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "victim.h"

_Noreturn void must_fail(const char *file, int line, const char *condition) {
  char text[512];
  int length =
      snprintf(text, sizeof text, "%s:%d: %s\n", file, line, condition);
  (void)!write(STDERR_FILENO, text, (size_t)length);
  _exit(3);
}

void *opaque(void *address) {
  void *volatile copy = address;
  return copy;
}

uint64_t victim_random(uint64_t *state) {
  *state += 0x9e3779b97f4a7c15u;
  uint64_t z = *state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// One word of each 512 bytes, and the last byte: enough to find other people's
// bytes and pages.
enum { STEP = 512 };

void paint(void *address, size_t size, uint64_t seed) {
  unsigned char *bytes = address;
  for (size_t at = 0; at + sizeof seed <= size; at += STEP) {
    uint64_t word = seed + at;
    memcpy(bytes + at, &word, sizeof word);
  }
  bytes[size - 1] = (unsigned char)seed;
}

bool is_painted(const void *address, size_t size, uint64_t seed) {
  const unsigned char *bytes = address;
  for (size_t at = 0; at + sizeof seed <= size; at += STEP) {
    uint64_t word;
    memcpy(&word, bytes + at, sizeof word);
    if (word != seed + at && at + sizeof seed <= size - 1) return false;
  }
  return bytes[size - 1] == (unsigned char)seed;
}

bool is_zero(const void *address, size_t size) {
  const unsigned char *bytes = address;
  return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

size_t resident(void) {
  unsigned long pages = 0;
  FILE *in = fopen("/proc/self/statm", "r");
  must(in != NULL);
  must(fscanf(in, "%*u %lu", &pages) == 1);
  fclose(in);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static const struct {
  const char *name;
  void (*run)(void);
} modes[] = {
    {"family", mode_family},
    {"random", mode_random},
    {"sparse", mode_sparse},
    {"locked", mode_locked},
    {"growth", mode_growth},
    {"foreign", mode_foreign},
    {"fork", mode_fork},
    {"fork_busy", mode_fork_busy},
    {"spawn", mode_spawn},
    {"exec", mode_exec},
    {"exec_end", mode_exec_end},
    {"kill", mode_kill},
    {"addresses", mode_addresses},
    {"freed_twice", mode_freed_twice},
    {"freed_inside", mode_freed_inside},
    {"moved_after_free", mode_moved_after_free},
    {"free_of_mapping", mode_free_of_mapping},
    {"early", mode_early},
    {"threads", mode_threads},
    {"thousand", mode_thousand},
    {"last", mode_last},
};

int main(int argc, char **argv) {
  for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++) {
    if (strcmp(modes[i].name, argv[1]) != 0) continue;
    modes[i].run();
    return 0;
  }
  return 2;
}
