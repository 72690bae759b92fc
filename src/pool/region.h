// region.h - addresses that a strategy has reserved, and the memory mapped into
// them, page by page.
//
//   region   | page | page |  bare  | page |  bare ...                  |
//               7      9                4        handles of memory
//   spares    2, 5                               memory without an address
//
// All is called with the pool's lock held. What asks the device lets it go
// meanwhile: the pages in question must be the caller's (taken extents), so
// that nobody else touches them.
#ifndef TARN_POOL_REGION_H_
#define TARN_POOL_REGION_H_

#include "pool/extents.h"
#include "pool/strategy.h"
#include "pool/supply.h"
#include "tarn/range.h"

// --- pages ------------------------------------------------------------------
//
// The handles of mapped memory, by the number of their page.
//
//   leaves   [ 12 | . . 7 9 . ... ] [ 13 | 4 4 1 ... ] [ 90001 | 2 . . ... ]
//
// Pages may be as far apart as addresses are: there is a leaf only where a page
// of its 64 has a handle, or is about to get one. Leaves stand in the order of
// their numbers.
//
// Not synchronized: the owner's lock guards it.

enum { TARN__LEAF_PAGES = 64 };

typedef struct tarn__pool_leaf {
  uint64_t number;  // of its first page, by TARN__LEAF_PAGES
  size_t used;      // pages with a handle
  size_t awaited;   // calls of prepare that have not ended
  tarn_memory handles[TARN__LEAF_PAGES];  // 0: no memory
} tarn__pool_leaf;

typedef struct tarn__pool_pages {
  tarn__pool_leaf **leaves;
  size_t count;
  size_t room;
} tarn__pool_pages;

// Room on the host for the handles of the pages from |from| to |to|, which is
// larger. If it is true, tarn__pages_end must follow.
TARN_MUST_CHECK bool tarn__pages_prepare(tarn__pool_pages *pages, uint64_t from,
                                         uint64_t to);
void tarn__pages_end(tarn__pool_pages *pages, uint64_t from, uint64_t to);

// The handle of |page|; 0: none.
tarn_memory tarn__pages_get(const tarn__pool_pages *pages, uint64_t page);

// Gives |page| its handle, between prepare and end.
void tarn__pages_set(tarn__pool_pages *pages, uint64_t page,
                     tarn_memory handle);

// Takes the handles of the pages from |from| to |to|, which all have one, away.
void tarn__pages_clear(tarn__pool_pages *pages, uint64_t from, uint64_t to);

// The first run of pages with handles from |*page| on, but before |end|:
// |*page| is its first. Returns where it ends; 0: none.
uint64_t tarn__pages_run(const tarn__pool_pages *pages, uint64_t *page,
                         uint64_t end);

// Frees the host memory.
void tarn__pages_deinit(tarn__pool_pages *pages);

// Counts the handles anew; SIZE_MAX: the leaves are out of order, or one says
// something else, or has nothing.
size_t tarn__pages_check(const tarn__pool_pages *pages);

typedef struct tarn__pool_region {
  struct tarn__pool_region *next;
  tarn_addr base;
  size_t size;
} tarn__pool_region;

// The regions of one strategy, and what it keeps for them.
typedef struct tarn__pool_regions {
  tarn__pool_strategy *strategy;
  const tarn__pool_supply *supply;  // the pool's
  size_t page;                      // a multiple of the device's granularity
  tarn__pool_region *first;
  tarn__pool_pages pages;  // of all regions; what has no handle is bare
  tarn_memory *spares;
  size_t spare_count;
  size_t spare_room;
  size_t promised;  // spares that may come of calls that are under way
  size_t mapped;    // pages
} tarn__pool_regions;

// What has become of pages that were to be taken out. A driver that fails to
// unmap may have done it or not: the memory is given back and the addresses are
// lost.
typedef enum tarn__pool_strip_end {
  TARN__STRIP_KEPT,  // not tried
  TARN__STRIP_UNMAPPED,
  TARN__STRIP_LOST,
} tarn__pool_strip_end;

// Pages that are to be taken out: taken extents, linked by |next|.
typedef struct tarn__pool_stripped {
  tarn__pool_extent *extent;
  tarn__pool_waits waits;  // for streams that may still be at work there
  struct tarn__pool_stripped *next;
  tarn__pool_strip_end end;  // the answer
} tarn__pool_stripped;

// Reserves |size| bytes, or half as many, and so on, as there are addresses
// for, but not under |least|. They begin at a multiple of |align| and of the
// page.
//
// TARN_FULL  there are none left.
TARN_MUST_CHECK tarn_status tarn__regions_add(tarn__pool_regions *regions,
                                              size_t size, size_t least,
                                              size_t align,
                                              tarn__pool_region **out_region);

// Whether there is memory in the page at |addr|, which is in a region.
bool tarn__regions_has(const tarn__pool_regions *regions, uint64_t addr);

// Addresses where nobody knows what is mapped; empty: there are none.
typedef struct tarn__pool_lost {
  uint64_t from;
  uint64_t to;
} tarn__pool_lost;

// Gives the addresses back. Nothing is mapped there but what was |lost|, which
// is unmapped once more: the driver may be able to by now.
tarn_status tarn__regions_remove(tarn__pool_regions *regions,
                                 tarn__pool_region *region,
                                 tarn__pool_lost lost);

// Unmaps |stripped| (which may be empty) and maps the bytes from |from| to
// |to|, with the memory that this has made free, then with spares, then with
// new. What is too much becomes spare.
//
// |*out_lost|: it failed, and what had been mapped cannot be said to be
// unmapped.
//
// TARN_FULL  the limit or the device is used up.
TARN_MUST_CHECK tarn_status tarn__regions_map(tarn__pool_regions *regions,
                                              tarn__pool_request *request,
                                              tarn__pool_stripped *stripped,
                                              uint64_t from, uint64_t to,
                                              bool *out_lost);

// Pages that are given back at a time: it needs no host memory.
enum { TARN__REGION_BATCH = 64 };

// Unmaps |stripped| and gives its memory back to the device, and that of as
// many as |spares| spares: at most a batch together.
tarn_status tarn__regions_shrink(tarn__pool_regions *regions,
                                 tarn__pool_stripped *stripped, size_t spares);

// Tells of each run of pages that have memory; of spares, which have no
// address, at once.
void tarn__regions_visit(const tarn__pool_regions *regions,
                         tarn__pool_memory_fn *visit, void *context);

// Frees the host memory.
void tarn__regions_deinit(tarn__pool_regions *regions);

// Counts the pages anew.
TARN_MUST_CHECK tarn_status
tarn__regions_check(const tarn__pool_regions *regions);

// --- strips -----------------------------------------------------------------
//
// Pages of memory that are taken out of holes, to be mapped where
// they are needed or to be given back. While they are on their way they are
// taken, so that nobody else gets them.

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

#endif  // TARN_POOL_REGION_H_
