// A program with a malloc of its own, which it uses.
#include <stdio.h>
#include <stdlib.h>

static char room[1 << 20];
static size_t used;

void *malloc(size_t size) {
  if (size > sizeof room - used) return NULL;
  void *address = room + used;
  used += (size + 15) / 16 * 16;
  return address;
}

void free(void *address) {
  (void)address;
}

int main(void) {
  void *volatile address = malloc(200000);
  free(address);
  return puts("own") < 0;
}
