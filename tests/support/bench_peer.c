// An allocator for `tarn bench pool` out of a file, as bench/peer_abi.h has it:
// that of the C library. The option "closed" lets it not begin, "small" refuses
// requests above 4 KiB.
#include "bench/peer_abi.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t most = SIZE_MAX;

bool tarn_peer_open(const char *device, const char *options, char *why) {
  if (strcmp(options, "small") == 0) most = 4096;
  if (strcmp(options, "closed") != 0) return true;
  snprintf(why, TARN_PEER_WHY_SIZE, "%s is closed", device);
  return false;
}

void *tarn_peer_alloc(size_t size) {
  return size <= most ? malloc(size) : NULL;
}

void tarn_peer_free(void *block) {
  free(block);
}

size_t tarn_peer_held(void) {
  return (size_t)100 << 30;
}
