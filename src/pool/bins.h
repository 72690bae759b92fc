// bins.h - open extents by size, found in a bounded number of steps.
//
//   rows   one for each power of two of granules, cut in 16 bins
//     └► bin ─► extent ─► extent       the newest first
//
// A bit a row and a bit a bin say which are not empty. A request looks into
// its own bin for the closest fit among the first few, then takes the best of
// the next bin that is not empty: little is wasted. Only where that finds
// nothing is every extent compared, because more memory would cost more.
//
// Not locked: the owner guards all of it.
#ifndef TARN_POOL_BINS_H_
#define TARN_POOL_BINS_H_

#include "tarn/base.h"

typedef struct tarn__pool_extent tarn__pool_extent;

enum {
  TARN__BIN_CUTS = 16,
  TARN__BIN_ROWS = 64,
};

// Those of one stream.
typedef struct tarn__pool_bins {
  struct tarn__pool_bins *next;  // those of another stream
  uint64_t serial;  // of the stream whose work may still use them; 0: none
  size_t granule;   // sizes are multiples of it
  size_t bytes;
  uint64_t rows;  // bit per row that has a bin with something in it
  uint16_t cuts[TARN__BIN_ROWS];
  tarn_list lists[TARN__BIN_ROWS][TARN__BIN_CUTS];
} tarn__pool_bins;

void tarn__bins_init(tarn__pool_bins *bins, uint64_t serial, size_t granule);

void tarn__bins_hang(tarn__pool_bins *bins, tarn__pool_extent *extent);
void tarn__bins_unhang(tarn__pool_bins *bins, tarn__pool_extent *extent);

// An extent in which |size| bytes at a multiple of |align| fit; NULL if none
// does.
tarn__pool_extent *tarn__bins_find(const tarn__pool_bins *bins, size_t size,
                                   size_t align);

// The next extent in an order in which larger ones mostly come first; NULL
// behind the last. |after| NULL: the first.
tarn__pool_extent *tarn__bins_next(const tarn__pool_bins *bins,
                                   const tarn__pool_extent *after);

// The size of the largest; 0: there is none.
size_t tarn__bins_largest(const tarn__pool_bins *bins);

// Walks all and counts; says what is wrong.
TARN_MUST_CHECK tarn_status tarn__bins_check(const tarn__pool_bins *bins,
                                             size_t *out_count);

#endif  // TARN_POOL_BINS_H_
