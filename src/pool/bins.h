// bins.h - which holes there are, by size, found in a bounded number of steps.
//
//   bins   16 for each power of two of granules
//     └► extent ─► extent       the newest first
//
// A bit for each bin, and one for each word of 64 of these, says whether there
// is something in it. A request looks into its own bin for the closest fit
// among the first few, then into the next bin that is not empty, where each
// hole is large enough: little is wasted. Only if that finds nothing, more are
// compared, because more memory would cost more.
//
// A hole whose size changes by little stays where it hangs, so that most blocks
// are cut out of a hole, and joined with one, without any work on lists.
//
// Not synchronized: the owner's lock guards it.
#ifndef TARN_POOL_BINS_H_
#define TARN_POOL_BINS_H_

#include "tarn/base.h"

// --- extents ----------------------------------------------------------------

typedef struct tarn__pool_bins tarn__pool_bins;
typedef struct tarn__pool_extent tarn__pool_extent;

typedef enum tarn__pool_extent_kind {
  TARN__EXTENT_OUTSIDE,
  TARN__EXTENT_BARE,
  TARN__EXTENT_OPEN,
  TARN__EXTENT_TAKEN,
  TARN__EXTENT_LOST,
  TARN__EXTENT_ASLEEP,
} tarn__pool_extent_kind;

// A line of the cache.
struct tarn__pool_extent {
  uint64_t offset;
  size_t size;
  struct tarn__pool_extent
      *before;  // by offset; NULL at either end of the space
  struct tarn__pool_extent *after;
  union {
    tarn_list node;  // in its bin, or in the list of bare extents
    void *taker;     // TAKEN: for the owner's use
  };
  tarn__pool_bins *bins;  // OPEN: where it hangs; else NULL
  tarn__pool_extent_kind kind;
  uint16_t bin;  // OPEN: the one of them
  bool wall;     // never joined with its predecessor: another allocation of the
                 // device, or another reserved range, begins here
};

_Static_assert(sizeof(tarn__pool_extent) == 64, "an extent is a line");

static inline tarn__pool_extent *tarn__extent_of_node(const tarn_list *node) {
  return tarn_list_entry((tarn_list *)(uintptr_t)node, tarn__pool_extent, node);
}

static inline uint64_t tarn__extent_end(const tarn__pool_extent *e) {
  return e->offset + e->size;
}

// --- bins -------------------------------------------------------------------

enum {
  TARN__BIN_BITS = 4,
  TARN__BIN_CUTS = 1 << TARN__BIN_BITS,  // bins for each power of two
  TARN__BIN_COUNT = 64 * TARN__BIN_CUTS,
  TARN__BIN_WORDS = TARN__BIN_COUNT / 64,
  TARN__BIN_LOOK = 4,  // how many of a bin are compared at first
};

// Those of one stream.
struct tarn__pool_bins {
  struct tarn__pool_bins *next;  // those of another stream
  uint64_t serial;  // of the stream that may still use them; 0: unused
  unsigned shift;   // sizes are multiples of 1 << shift, the granule
  size_t bytes;
  uint64_t filled;                  // bit per word that is not 0
  uint64_t words[TARN__BIN_WORDS];  // bit per bin with something in it
  tarn_list lists[TARN__BIN_COUNT];
};

void tarn__bins_init(tarn__pool_bins *bins, uint64_t serial, size_t granule);

// The bin of |size|: by the leading bit of the size in granules, and the four
// bits below that.
static inline unsigned tarn__bin_of(const tarn__pool_bins *bins, size_t size) {
  size_t units = size >> bins->shift;
  unsigned top = 63u - (unsigned)__builtin_clzll(units | TARN__BIN_CUTS);
  unsigned least = top - TARN__BIN_BITS;
  // The leading bit counts as so many bins more.
  return (least << TARN__BIN_BITS) + (unsigned)(units >> least);
}

static inline void tarn__bins_enter(tarn__pool_bins *bins, tarn__pool_extent *e,
                                    unsigned bin) {
  e->bin = (uint16_t)bin;
  tarn_list_add(&bins->lists[bin], &e->node);
  bins->words[bin / 64] |= UINT64_C(1) << bin % 64;
  bins->filled |= UINT64_C(1) << bin / 64;
}

// Whether a bin becomes empty cannot be predicted, so that nothing is asked.
static inline void tarn__bins_leave(tarn__pool_bins *bins,
                                    tarn__pool_extent *e) {
  unsigned bin = e->bin;
  e->node.prev->next = e->node.next;
  e->node.next->prev = e->node.prev;
  uint64_t empty = tarn_list_empty(&bins->lists[bin]) ? 1 : 0;
  uint64_t word = bins->words[bin / 64] & ~(empty << bin % 64);
  uint64_t none = word == 0 ? 1 : 0;
  bins->words[bin / 64] = word;
  bins->filled &= ~(none << bin / 64);
}

static inline void tarn__bins_hang(tarn__pool_bins *bins,
                                   tarn__pool_extent *e) {
  bins->bytes += e->size;
  tarn__bins_enter(bins, e, tarn__bin_of(bins, e->size));
}

static inline void tarn__bins_unhang(tarn__pool_bins *bins,
                                     tarn__pool_extent *e) {
  bins->bytes -= e->size;
  tarn__bins_leave(bins, e);
}

// Gives |e|, which hangs in |bins|, another size.
static inline void tarn__bins_resize(tarn__pool_bins *bins,
                                     tarn__pool_extent *e, size_t size) {
  unsigned bin = tarn__bin_of(bins, size);
  bins->bytes = bins->bytes - e->size + size;
  e->size = size;
  if (bin == e->bin) return;
  tarn__bins_leave(bins, e);
  tarn__bins_enter(bins, e, bin);
}

// The next bin above |*bin| that is not empty. False: there is none.
static inline bool tarn__bins_above(const tarn__pool_bins *bins,
                                    unsigned *bin) {
  unsigned at = *bin / 64;
  uint64_t word = bins->words[at] >> *bin % 64 >> 1;
  if (word != 0) {
    *bin += 1 + (unsigned)__builtin_ctzll(word);
    return true;
  }
  uint64_t words = bins->filled >> at >> 1;
  if (words == 0) return false;
  at += 1 + (unsigned)__builtin_ctzll(words);
  *bin = at * 64 + (unsigned)__builtin_ctzll(bins->words[at]);
  return true;
}

// The closest fit for |size| bytes, a multiple of the granule, among the first
// few of a bin; NULL if there is none.
static inline tarn__pool_extent *tarn__bins_closest_in(
    const tarn__pool_bins *bins, unsigned bin, size_t size) {
  tarn__pool_extent *best = NULL;
  const tarn_list *head = &bins->lists[bin];
  size_t least = SIZE_MAX / 2;  // bytes too many; one that lacks some has more
  int most = TARN__BIN_LOOK;
  for (const tarn_list *node = head->next; node != head && most > 0;
       node = node->next, most--) {
    tarn__pool_extent *e = tarn__extent_of_node(node);
    size_t more = e->size - size;
    if (more >= least) continue;
    least = more;
    best = e;
    if (more == 0) break;
  }
  return best;
}

// The same in its own bin, or in the next that is not empty.
static inline tarn__pool_extent *tarn__bins_closest(const tarn__pool_bins *bins,
                                                    size_t size) {
  unsigned bin = tarn__bin_of(bins, size);
  tarn__pool_extent *e = tarn__bins_closest_in(bins, bin, size);
  if (e != NULL || !tarn__bins_above(bins, &bin)) return e;
  return tarn__bins_closest_in(bins, bin, size);
}

// An extent in which |size| bytes at a multiple of |align| fit; NULL if there
// is none.
tarn__pool_extent *tarn__bins_find(const tarn__pool_bins *bins, size_t size,
                                   size_t align);

// The next extent, mostly in falling order of size; NULL behind the last.
// |after| NULL: the first.
tarn__pool_extent *tarn__bins_next(const tarn__pool_bins *bins,
                                   const tarn__pool_extent *after);

// The size of the largest; 0: none.
size_t tarn__bins_largest(const tarn__pool_bins *bins);

// Walks all and counts; checks the invariants.
TARN_MUST_CHECK tarn_status tarn__bins_check(const tarn__pool_bins *bins,
                                             size_t *out_count);

#endif  // TARN_POOL_BINS_H_
