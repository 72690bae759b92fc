// Bins: which holes there are, by size.
#include "pool/extents.h"

#include <limits.h>

#include "base/status.h"

enum { LOOKED_AT = 8 };  // how many of a bin are compared at first

typedef struct place {
  unsigned row;
  unsigned cut;
} place;

static tarn__pool_extent *of_node(const tarn_list *node) {
  return tarn_list_entry((tarn_list *)(uintptr_t)node, tarn__pool_extent, node);
}

// The leading bit of the size in granules, and the four bits below it.
static place place_of(const tarn__pool_bins *bins, size_t size) {
  size_t units = size / bins->granule;
  if (units < TARN__BIN_CUTS) return (place){0, (unsigned)units};
  unsigned top = 63u - (unsigned)__builtin_clzll(units);
  return (place){top - 3, (unsigned)(units >> (top - 4)) % TARN__BIN_CUTS};
}

void tarn__bins_init(tarn__pool_bins *bins, uint64_t serial, size_t granule) {
  *bins = (tarn__pool_bins){
      .next = bins->next, .serial = serial, .granule = granule};
  for (size_t row = 0; row < TARN__BIN_ROWS; row++) {
    for (size_t cut = 0; cut < TARN__BIN_CUTS; cut++)
      tarn_list_init(&bins->lists[row][cut]);
  }
}

void tarn__bins_hang(tarn__pool_bins *bins, tarn__pool_extent *extent) {
  place p = place_of(bins, extent->size);
  tarn_list_add(&bins->lists[p.row][p.cut], &extent->node);
  bins->cuts[p.row] |= (uint16_t)(1u << p.cut);
  bins->rows |= UINT64_C(1) << p.row;
  bins->bytes += extent->size;
}

void tarn__bins_unhang(tarn__pool_bins *bins, tarn__pool_extent *extent) {
  place p = place_of(bins, extent->size);
  tarn_list_del(&extent->node);
  bins->bytes -= extent->size;
  if (!tarn_list_empty(&bins->lists[p.row][p.cut])) return;
  bins->cuts[p.row] &= (uint16_t) ~(1u << p.cut);
  if (bins->cuts[p.row] == 0) bins->rows &= ~(UINT64_C(1) << p.row);
}

// --- finding ---------------------------------------------------------------

// The next bin above |p| that is not empty.
static bool next_above(const tarn__pool_bins *bins, place *p) {
  unsigned cuts = (unsigned)bins->cuts[p->row] >> p->cut >> 1;
  if (cuts != 0) {
    p->cut += 1 + (unsigned)__builtin_ctz(cuts);
    return true;
  }
  uint64_t rows = bins->rows >> p->row >> 1;
  if (rows == 0) return false;
  p->row += 1 + (unsigned)__builtin_ctzll(rows);
  p->cut = (unsigned)__builtin_ctz(bins->cuts[p->row]);
  return true;
}

static bool fits(const tarn__pool_extent *e, size_t size, size_t align) {
  size_t skipped = ((e->offset + align - 1) & ~(align - 1)) - e->offset;
  return skipped <= e->size && size <= e->size - skipped;
}

static bool is_better(const tarn__pool_extent *e,
                      const tarn__pool_extent *best) {
  if (best == NULL || e->size != best->size) {
    return best == NULL || e->size < best->size;
  }
  return e->offset < best->offset;
}

// The closest fit among the first |most| of a bin; of two that are as close,
// the lower.
static tarn__pool_extent *find_in(const tarn__pool_bins *bins, place p,
                                  size_t size, size_t align, int most) {
  tarn__pool_extent *best = NULL;
  const tarn_list *head = &bins->lists[p.row][p.cut];
  const tarn_list *node = NULL;
  int looked_at = 0;
  tarn_list_for_each (node, head) {
    if (looked_at++ == most) break;
    tarn__pool_extent *e = of_node(node);
    if (fits(e, size, align) && is_better(e, best)) best = e;
  }
  return best;
}

static tarn__pool_extent *find_among(const tarn__pool_bins *bins, size_t size,
                                     size_t align, int most) {
  place p = place_of(bins, size);
  do {
    tarn__pool_extent *e = find_in(bins, p, size, align, most);
    if (e != NULL) return e;
  } while (next_above(bins, &p));
  return NULL;
}

tarn__pool_extent *tarn__bins_find(const tarn__pool_bins *bins, size_t size,
                                   size_t align) {
  if (bins->bytes < size) return NULL;
  tarn__pool_extent *e = find_among(bins, size, align, LOOKED_AT);
  return e != NULL ? e : find_among(bins, size, align, INT_MAX);
}

// --- walking ---------------------------------------------------------------

// The next bin below |p| that is not empty.
static bool next_below(const tarn__pool_bins *bins, place *p) {
  unsigned cuts = bins->cuts[p->row] & ((1u << p->cut) - 1);
  if (cuts != 0) {
    p->cut = 31u - (unsigned)__builtin_clz(cuts);
    return true;
  }
  uint64_t rows = bins->rows & ((UINT64_C(1) << p->row) - 1);
  if (rows == 0) return false;
  p->row = 63u - (unsigned)__builtin_clzll(rows);
  p->cut = 31u - (unsigned)__builtin_clz(bins->cuts[p->row]);
  return true;
}

tarn__pool_extent *tarn__bins_next(const tarn__pool_bins *bins,
                                   const tarn__pool_extent *after) {
  place p = {TARN__BIN_ROWS - 1, TARN__BIN_CUTS - 1};
  if (after != NULL) {
    p = place_of(bins, after->size);
    const tarn_list *next = after->node.next;
    if (next != &bins->lists[p.row][p.cut]) return of_node(next);
  }
  // The topmost bin is for sizes that no range has: it is always empty.
  if (!next_below(bins, &p)) return NULL;
  return of_node(bins->lists[p.row][p.cut].next);
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

static tarn_status check_bin(const tarn__pool_bins *bins, place p,
                             size_t *count, size_t *bytes) {
  const tarn_list *head = &bins->lists[p.row][p.cut];
  const tarn_list *node = NULL;
  bool marked = (bins->cuts[p.row] >> p.cut & 1) != 0;
  if (marked == tarn_list_empty(head)) return broken(NULL, "a bin's bit");
  tarn_list_for_each (node, head) {
    const tarn__pool_extent *e = of_node(node);
    place own = place_of(bins, e->size);
    if (own.row != p.row || own.cut != p.cut || e->bins != bins) {
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
  for (unsigned row = 0; row < TARN__BIN_ROWS; row++) {
    bool marked = (bins->rows >> row & 1) != 0;
    if (marked != (bins->cuts[row] != 0)) return broken(NULL, "a row's bit");
    for (unsigned cut = 0; cut < TARN__BIN_CUTS; cut++) {
      TARN__TRY(check_bin(bins, (place){row, cut}, out_count, &bytes));
    }
  }
  if (bytes != bins->bytes) return broken(NULL, "the bytes of all");
  return TARN_OK;
}
