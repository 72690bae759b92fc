// The victim: no more addresses, wrong frees, and what comes before main.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "victim.h"

// --- addresses -------------------------------------------------------------

static void limit_addresses(size_t bytes) {
  struct rlimit limit = {bytes, bytes};
  must(setrlimit(RLIMIT_AS, &limit) == 0);
}

// As many as there are; |links| of them, each with the address of the next.
static size_t take_until_full(size_t size, void **out_first) {
  size_t count = 0;
  void *block;
  errno = 0;
  while ((block = opaque(malloc(size))) != NULL) {
    memset(block, 1, size < 4096 ? size : 4096);
    memcpy(block, out_first, sizeof *out_first);
    *out_first = block;
    count++;
  }
  must(errno == ENOMEM);
  return count;
}

static void give_all(void **first) {
  while (*first != NULL) {
    void *block = *first;
    memcpy(first, block, sizeof *first);
    free(block);
  }
}

// Sizes in turn: none has to do without what the one before it had.
void mode_addresses(void) {
  static const size_t sizes[] = {10 * MIB, 100 * KIB, 30 * MIB, 1000,
                                 70 * KIB, 64 * MIB,  1 * MIB};
  const size_t all = (size_t)800 * MIB;
  limit_addresses(all);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    void *first = NULL;
    size_t count = take_until_full(sizes[i], &first);
    printf("%zu: %zu\n", sizes[i], count * sizes[i] / MIB);
    must(count * sizes[i] >= all / 2);
    give_all(&first);
  }
}

// --- wrong frees -----------------------------------------------------------

void mode_freed_twice(void) {
  void *block = opaque(malloc(LARGE));
  void *other = opaque(malloc(LARGE));
  free(block);
  free(opaque(block));
  free(other);
}

void mode_freed_inside(void) {
  char *block = opaque(malloc(LARGE));
  free(opaque(block + 8192));
}

void mode_moved_after_free(void) {
  void *block = opaque(malloc(LARGE));
  free(block);
  must(opaque(realloc(opaque(block), 2 * LARGE)) == NULL);
}

void mode_free_of_mapping(void) {
  void *block = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  must(block != MAP_FAILED);
  free(opaque((char *)block + 16));
}

// --- before main -----------------------------------------------------------

void mode_early(void) {
  size_t size;
  unsigned char *block = early_block(&size);
  must(block[0] == 7 && memcmp(block, block + 1, size - 1) == 0);
  block = opaque(realloc(block, 2 * size));
  must(block[0] == 7 && block[size - 1] == 7);
  free(block);
}
