// strips.h - pages of memory that are taken out of holes, to be mapped where
// they are needed or to be given back. While they are on their way they are
// taken, so that nobody else gets them.
#ifndef TARN_POOL_STRIPS_H_
#define TARN_POOL_STRIPS_H_

#include "pool/region.h"

enum { TARN__STRIPS = 64 };

typedef struct tarn__pool_strips {
  tarn__pool_stripped list[TARN__STRIPS];
  tarn__pool_extents *zones[TARN__STRIPS];
  size_t count;
} tarn__pool_strips;

// The first of them; NULL: there are none.
static inline tarn__pool_stripped *tarn__strips_first(
    tarn__pool_strips *strips) {
  return strips->count > 0 ? &strips->list[0] : NULL;
}

// Up to |most| bytes out of holes of |zone| that no stream uses. Returns how
// many.
size_t tarn__strips_take_idle(tarn__pool_strips *strips,
                              tarn__pool_extents *zone, size_t most);

// Up to |most| bytes out of any holes of |zone| behind |*cursor|, which moves
// on: UINT64_MAX behind the last. Returns how many.
size_t tarn__strips_take_any(tarn__pool_strips *strips,
                             tarn__pool_extents *zone, uint64_t *cursor,
                             size_t most);

// Those that were unmapped become bare, or lost; those that nobody has tried to
// unmap were idle, and are holes again.
void tarn__strips_settle(const tarn__pool_strips *strips);

#endif  // TARN_POOL_STRIPS_H_
