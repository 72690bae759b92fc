// Bins: finding a hole in them, and walking them.
#include "pool/bins.h"

#include "base/status.h"

enum { COMPARED = 64 };  // how many of a bin, where a few were not enough
void tarn__bins_init(tarn__pool_bins *bins, uint64_t serial, size_t granule) {
  *bins = (tarn__pool_bins){
      .next = bins->next,
      .serial = serial,
      .shift = (unsigned)__builtin_ctzll(granule),
  };
  for (size_t bin = 0; bin < TARN__BIN_COUNT; bin++)
    tarn_list_init(&bins->lists[bin]);
}

// --- finding ---------------------------------------------------------------

static inline bool fits(const tarn__pool_extent *e, size_t size, size_t align) {
  size_t skipped = ((e->offset + align - 1) & ~(align - 1)) - e->offset;
  return skipped <= e->size && size <= e->size - skipped;
}

static inline bool is_better(const tarn__pool_extent *e,
                             const tarn__pool_extent *best) {
  if (best == NULL || e->size != best->size) {
    return best == NULL || e->size < best->size;
  }
  return e->offset < best->offset;
}

// The closest fit among the first |most| of a bin; of two that are as close,
// the lower.
static tarn__pool_extent *find_in(const tarn__pool_bins *bins, unsigned bin,
                                  size_t size, size_t align, int most) {
  tarn__pool_extent *best = NULL;
  const tarn_list *head = &bins->lists[bin];
  for (const tarn_list *node = head->next; node != head && most > 0;
       node = node->next, most--) {
    tarn__pool_extent *e = tarn__extent_of_node(node);
    if (fits(e, size, align) && is_better(e, best)) best = e;
  }
  return best;
}

static tarn__pool_extent *find_among(const tarn__pool_bins *bins, size_t size,
                                     size_t align, int most) {
  unsigned bin = tarn__bin_of(bins, size);
  tarn__pool_extent *e = find_in(bins, bin, size, align, most);
  while (e == NULL && tarn__bins_above(bins, &bin))
    e = find_in(bins, bin, size, align, most);
  return e;
}

tarn__pool_extent *tarn__bins_find(const tarn__pool_bins *bins, size_t size,
                                   size_t align) {
  tarn__pool_extent *e = align >> bins->shift <= 1
                             ? tarn__bins_closest(bins, size)
                             : find_among(bins, size, align, TARN__BIN_LOOK);
  return e != NULL ? e : find_among(bins, size, align, COMPARED);
}

// --- walking ---------------------------------------------------------------

// The next bin below |*bin| that is not empty.
static bool next_below(const tarn__pool_bins *bins, unsigned *bin) {
  unsigned at = *bin / 64;
  uint64_t word = bins->words[at] & ((UINT64_C(1) << *bin % 64) - 1);
  if (word == 0) {
    uint64_t words = bins->filled & ((UINT64_C(1) << at) - 1);
    if (words == 0) return false;
    at = 63u - (unsigned)__builtin_clzll(words);
    word = bins->words[at];
  }
  *bin = at * 64 + 63u - (unsigned)__builtin_clzll(word);
  return true;
}

tarn__pool_extent *tarn__bins_next(const tarn__pool_bins *bins,
                                   const tarn__pool_extent *after) {
  // The topmost bin is for sizes that no range has: it is always empty.
  unsigned bin = TARN__BIN_COUNT - 1;
  if (after != NULL) {
    bin = after->bin;
    const tarn_list *next = after->node.next;
    if (next != &bins->lists[bin]) return tarn__extent_of_node(next);
  }
  if (!next_below(bins, &bin)) return NULL;
  return tarn__extent_of_node(bins->lists[bin].next);
}

// Larger extents are first, except within one bin, whose sizes differ by less
// than a sixteenth.
size_t tarn__bins_largest(const tarn__pool_bins *bins) {
  size_t largest = 0;
  const tarn__pool_extent *e = tarn__bins_next(bins, NULL);
  for (; e != NULL && e->size >= largest - largest / TARN__BIN_CUTS;
       e = tarn__bins_next(bins, e)) {
    if (e->size > largest) largest = e->size;
  }
  return largest;
}

static tarn_status broken(const tarn__pool_extent *e, const char *what) {
  return tarn__fail(TARN_E_CORRUPT, "bins: the extent at %zu: %s",
                    e != NULL ? e->offset : 0, what);
}

static tarn_status check_bin(const tarn__pool_bins *bins, unsigned bin,
                             size_t *count, size_t *bytes) {
  const tarn_list *head = &bins->lists[bin];
  const tarn_list *node = NULL;
  bool marked = (bins->words[bin / 64] >> bin % 64 & 1) != 0;
  if (marked == tarn_list_empty(head)) return broken(NULL, "a bin's bit");
  tarn_list_for_each (node, head) {
    const tarn__pool_extent *e = tarn__extent_of_node(node);
    if (tarn__bin_of(bins, e->size) != bin || e->bin != bin ||
        e->bins != bins) {
      return broken(e, "it hangs in a bin that is not its own");
    }
    ++*count;
    *bytes += e->size;
  }
  return TARN_OK;
}

tarn_status tarn__bins_check(const tarn__pool_bins *bins, size_t *out_count) {
  size_t bytes = 0;
  *out_count = 0;
  for (unsigned at = 0; at < TARN__BIN_WORDS; at++) {
    bool marked = (bins->filled >> at & 1) != 0;
    if (marked != (bins->words[at] != 0)) return broken(NULL, "a word's bit");
  }
  for (unsigned bin = 0; bin < TARN__BIN_COUNT; bin++)
    TARN__TRY(check_bin(bins, bin, out_count, &bytes));
  if (bytes != bins->bytes) return broken(NULL, "the bytes of all");
  return TARN_OK;
}
