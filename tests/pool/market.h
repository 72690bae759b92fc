// market.h - where threads exchange blocks: each slot has one, which any thread
// may take for another.
#ifndef TARN_TESTS_POOL_MARKET_H_
#define TARN_TESTS_POOL_MARKET_H_

#include <pthread.h>

#include "tarn/tarn.h"

enum { MARKET_SLOTS = 64 };

// A block and what was written into it.
typedef struct item {
  tarn_block block;
  uint64_t mark;
} item;

static struct {
  pthread_mutex_t lock;  // guards the items
  item items[MARKET_SLOTS];
} market = {.lock = PTHREAD_MUTEX_INITIALIZER};

// Leaves |mine| and takes what another thread has left there.
static item exchange(size_t slot, item mine) {
  pthread_mutex_lock(&market.lock);
  item theirs = market.items[slot];
  market.items[slot] = mine;
  pthread_mutex_unlock(&market.lock);
  return theirs;
}

#endif  // TARN_TESTS_POOL_MARKET_H_
