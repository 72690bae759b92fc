// spares.h - unused nodes of one size, kept to save allocations. Spare nodes
// are linked by their first word.
#ifndef TARN_SYNCED_SPARES_H_
#define TARN_SYNCED_SPARES_H_

#include <assert.h>

#include "base/hostmem.h"

// Zero-filled: none.
typedef struct tarn__synced_spares {
  void **first;
  size_t count;
  size_t idle;  // that no reservation of spans has wanted, for spans.c
} tarn__synced_spares;

static inline void tarn__spares_put(tarn__synced_spares *spares, void *node) {
  *(void **)node = spares->first;
  spares->first = node;
  spares->count++;
}

// There is one.
static inline void *tarn__spares_take(tarn__synced_spares *spares) {
  void **node = spares->first;
  assert(node != NULL);
  spares->first = *node;
  spares->count--;
  return node;
}

// Frees nodes of |size| bytes beyond |most|.
static inline void tarn__spares_trim(tarn__synced_spares *spares, size_t most,
                                     size_t size) {
  while (spares->count > most)
    tarn__host_free(tarn__spares_take(spares), size);
}

// Allocates nodes until there are |wanted|; false: no host memory.
static inline bool tarn__spares_stock(tarn__synced_spares *spares,
                                      size_t wanted, size_t size) {
  while (spares->count < wanted) {
    void *node = tarn__host_alloc(size);
    if (node == NULL) return false;
    tarn__spares_put(spares, node);
  }
  return true;
}

// For tests.
static inline bool tarn__spares_are_counted(const tarn__synced_spares *spares) {
  size_t count = 0;
  for (void **node = spares->first; node != NULL; node = *node)
    count++;
  return count == spares->count;
}

#endif  // TARN_SYNCED_SPARES_H_
