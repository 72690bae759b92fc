// Asks the kernel, in the words of proc(5).
#include "memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_SIZE = 128 };

static size_t page_size(void) {
  long size = sysconf(_SC_PAGESIZE);
  return size > 0 ? (size_t)size : 0;
}

// The number that a file begins with; 0 for none, as in "max".
static size_t number_in(const char *path) {
  unsigned long long number = 0;
  FILE *in = fopen(path, "r");
  if (in == NULL) return 0;
  if (fscanf(in, "%llu", &number) != 1) number = 0;
  fclose(in);
  return (size_t)number;
}

size_t memory_of_machine(void) {
  long pages = sysconf(_SC_PHYS_PAGES);
  size_t all = pages > 0 ? (size_t)pages * page_size() : 0;
  size_t group = number_in("/sys/fs/cgroup/memory.max");
  return group > 0 && group < all ? group : all;
}

size_t memory_resident(pid_t pid) {
  char path[LINE_SIZE];
  unsigned long long pages = 0;
  snprintf(path, sizeof path, "/proc/%ld/statm", (long)pid);
  FILE *in = fopen(path, "r");
  if (in == NULL) return 0;
  if (fscanf(in, "%*u %llu", &pages) != 1) pages = 0;
  fclose(in);
  return (size_t)pages * page_size();
}

// Of "name   12345 kB", a line of |path|; 0 if |path| has no such line.
static size_t kib_in(const char *path, const char *name) {
  char line[LINE_SIZE];
  unsigned long long kib = 0;
  FILE *in = fopen(path, "r");
  if (in == NULL) return 0;
  while (kib == 0 && fgets(line, sizeof line, in) != NULL) {
    if (strncmp(line, name, strlen(name)) == 0)
      kib = strtoull(line + strlen(name), NULL, 10);
  }
  fclose(in);
  return (size_t)kib * 1024;
}

size_t memory_available(void) {
  size_t all = memory_of_machine();
  size_t available = kib_in("/proc/meminfo", "MemAvailable:");
  return available < all ? available : all;
}

size_t memory_resident_peak(void) {
  return kib_in("/proc/self/status", "VmHWM:");
}

// Where the kernel will not, the peak is that of the whole process.
void memory_forget_peak(void) {
  FILE *out = fopen("/proc/self/clear_refs", "w");
  if (out == NULL) return;
  fputs("5", out);
  fclose(out);
}
