// A program that misuses a pool's memory as it is told, for AddressSanitizer or
// valgrind to stop it:
//
//   misuse_victim STRATEGY clean|overrun|stale|unset
//
// Prints what it is about to do. Exit status 0: it got to the end.
#include <stdio.h>
#include <string.h>

#include "tarn/misuse.h"

static tarn_pool *debugging(const char *strategy) {
  tarn_pool *pool = NULL;
  tarn_pool_debug_options options = {.struct_size = sizeof options};
  bool there = tarn_pool_of(TARN_HOST, &pool) == TARN_OK &&
               tarn_pool_set_strategy(pool, strategy) == TARN_OK &&
               tarn_pool_debug(pool, &options) == TARN_OK;
  return there ? pool : NULL;
}

static unsigned char *bytes_of(const tarn_block *block) {
  void *ptr = NULL;
  tarn_status status =
      tarn_device_host_view(TARN_HOST, block->address, block->size, &ptr);
  return status == TARN_OK ? ptr : NULL;
}

// All that is allowed: also that blocks are resized, and used again when they
// have left the quarantine.
static int behave(tarn_pool *pool) {
  for (size_t i = 0; i < 300; i++) {
    tarn_block block;
    size_t size = i * 37 % 5000 + 1;
    if (tarn_pool_alloc(pool, size, 0, NULL, &block) != TARN_OK) return 3;
    memset(bytes_of(&block), 1, block.size);
    if (tarn_pool_resize(&block, size / 2 + 1, NULL) != TARN_OK) return 3;
    memset(bytes_of(&block), 2, block.size);
    if (i % 100 == 99 && tarn_pool_debug_check(pool) != TARN_OK) return 3;
    if (i % 70 == 69 && tarn_pool_trim(pool, 0) != TARN_OK) return 3;
    if (i == 200 && tarn_pool_debug(pool, NULL) != TARN_OK) return 3;
    if (tarn_pool_free(&block, NULL) != TARN_OK) return 3;
  }
  return 0;
}

static int misuse(tarn_pool *pool, const char *how) {
  tarn_block block;
  if (tarn_pool_alloc(pool, 1001, 0, NULL, &block) != TARN_OK) return 3;
  volatile unsigned char *bytes = bytes_of(&block);
  printf("about to %s\n", how);
  fflush(stdout);
  if (strcmp(how, "overrun") == 0) bytes[1001] = 1;
  if (strcmp(how, "unset") == 0 && bytes[500] == 7) printf("seven\n");
  if (tarn_pool_free(&block, NULL) == TARN_E_INVALID) return 3;
  if (strcmp(how, "stale") == 0) bytes[500] = 1;
  return 0;
}

int main(int argc, char **argv) {
  tarn_pool *pool = argc == 3 ? debugging(argv[1]) : NULL;
  if (pool == NULL) return 2;
  return strcmp(argv[2], "clean") == 0 ? behave(pool) : misuse(pool, argv[2]);
}
