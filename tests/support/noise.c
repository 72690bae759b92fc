// Makes a shared object noisy: it writes to stdout when it is loaded, when it
// is unloaded, and whenever noise() is called, both by stdio, where the text
// waits in a buffer, and by descriptor. Linked into a plug-in and a strategy.
#include "noise.h"

#include <stdio.h>
#include <unistd.h>

void noise(const char *what) {
  printf("printed noise: %s", what);  // no newline: it stays in the buffer
  (void)!write(STDOUT_FILENO, "written noise\n", sizeof "written noise\n" - 1);
}

__attribute__((constructor)) static void begin(void) {
  noise("loaded");
}

__attribute__((destructor)) static void end(void) {
  noise("unloaded");
}
