// A library that a program is linked to, and that allocates when the recorder
// has ended: libraries that are preloaded do so first. And one that is slow
// when it is asked for the name of the program.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record_late.h"

static void *volatile had;
static useconds_t slow_us;
static int rounds;

void record_late(int count) {
  rounds = count;
}

void record_slow(unsigned us) {
  slow_us = us;
}

// In place of the C library's: the recorder calls it while it makes the file.
__attribute__((visibility("default"))) ssize_t readlink(const char *path,
                                                        char *out,
                                                        size_t size) {
  usleep(slow_us);
  return syscall(SYS_readlinkat, AT_FDCWD, path, out, size);
}

__attribute__((destructor)) static void end(void) {
  for (int i = 0; i < rounds; i++) {
    had = malloc(RECORD_LATE_BYTES);
    free(had);
  }
}
