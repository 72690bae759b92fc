// A library that a program is linked to, and that allocates when the recorder
// has ended: libraries that are preloaded do so first.
#include <stdlib.h>

#include "support/record_late.h"

static void *volatile had;
static int rounds;

__attribute__((visibility("default"))) void record_late(int count) {
  rounds = count;
}

__attribute__((destructor)) static void end(void) {
  for (int i = 0; i < rounds; i++) {
    had = malloc(RECORD_LATE_BYTES);
    free(had);
  }
}
