// region.h - addresses that a strategy has reserved, and the memory mapped into
// them, page by page.
//
//   region   | page | page |  bare  | page |  bare ...                  |
//               7      9                4        handles of memory
//   spares    2, 5                               memory without an address
//
// Where the device moves what is mapped (TARN_EXTENSION_MOVES), memory has no
// handles and is never without an address: runs of pages are mapped at once,
// and go from where they are to where they are needed (runs.c).
//
// The caller holds the pool's lock. Functions that call the device release it:
// the pages in question must be the caller's (taken extents), so that no other
// thread uses them.
#ifndef TARN_POOL_REGION_H_
#define TARN_POOL_REGION_H_

#include "base/range_map.h"
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
// Pages may be far apart: there is a leaf only if one of its 64 pages has a
// handle, or is about to get one. Leaves are in the order of their numbers.
//
// Not synchronized: the owner's lock guards it.

enum { TARN__LEAF_PAGES = 64 };

// In place of the handle of a page with memory that has none.
enum { TARN__PAGE_MARK = 1 };

typedef struct tarn__pool_leaf {
  tarn__range_map_node node;  // |start|: its first page / TARN__LEAF_PAGES
  size_t used;                // pages with a handle
  size_t awaited;             // calls of prepare that have not ended
  tarn_memory handles[TARN__LEAF_PAGES];  // 0: no memory
} tarn__pool_leaf;

// Room on the host for the handles of the pages from |from| to |to|, which is
// larger. If it is true, tarn__pages_end must follow.
TARN_MUST_CHECK bool tarn__pages_prepare(tarn__range_map *pages, uint64_t from,
                                         uint64_t to);
void tarn__pages_end(tarn__range_map *pages, uint64_t from, uint64_t to);

// The handle of |page|; 0: no memory.
tarn_memory tarn__pages_get(const tarn__range_map *pages, uint64_t page);

// Gives |page| its handle, between prepare and end.
void tarn__pages_set(tarn__range_map *pages, uint64_t page, tarn_memory handle);

// The same for all from |from| to |to|, of memory without a handle.
void tarn__pages_mark(tarn__range_map *pages, uint64_t from, uint64_t to);

// Removes the handles of the pages from |from| to |to|, which all have one.
void tarn__pages_clear(tarn__range_map *pages, uint64_t from, uint64_t to);

// The first run of pages with handles from |*page| on, but before |end|:
// |*page| is set to its first page. Returns its end; 0: there is none.
uint64_t tarn__pages_run(const tarn__range_map *pages, uint64_t *page,
                         uint64_t end);

// Frees the host memory.
void tarn__pages_deinit(tarn__range_map *pages);

// Counts the handles anew; SIZE_MAX: the leaves are out of order, or a leaf has
// a wrong count or no handle.
size_t tarn__pages_check(const tarn__range_map *pages);

typedef struct tarn__pool_region {
  struct tarn__pool_region *next;
  tarn_addr base;
  size_t size;
} tarn__pool_region;

// The regions of one strategy, and their spare memory.
typedef struct tarn__pool_regions {
  tarn__pool_strategy *strategy;
  const tarn__pool_supply *supply;  // the pool's
  size_t page;                      // a multiple of the device's granularity
  tarn__pool_region *first;
  tarn__range_map pages;  // of all regions; a page without a handle is bare
  tarn_memory *spares;
  size_t spare_count;
  size_t spare_room;
  size_t promised;  // spares that present calls may add
  size_t mapped;    // pages
} tarn__pool_regions;

#define TARN__FIRST_STEP ((size_t)1 << 30)

// The outcome for pages that were to be unmapped. A driver that failed to unmap
// may have unmapped or not: the memory is given back and the addresses are
// lost.
typedef enum tarn__pool_strip_end {
  TARN__STRIP_KEPT,  // not tried: they have their memory
  TARN__STRIP_UNMAPPED,
  TARN__STRIP_LOST,
} tarn__pool_strip_end;

// Pages to unmap: taken extents, linked by |next|.
typedef struct tarn__pool_stripped {
  tarn__pool_extent *extent;
  tarn__pool_waits waits;  // for streams that may still be at work there
  struct tarn__pool_stripped *next;
  bool must_go;  // what is kept for want of host memory is lost instead
  tarn__pool_strip_end end;  // the answer
} tarn__pool_stripped;

// Reserves a step of addresses: as many as there are already, so that they
// double, but TARN__FIRST_STEP at least, or a part of a limit on them, and
// |most| at most; or half as many, and so on, as the device has left, but not
// under |least|. They begin at a multiple of |align| and of the page.
//
// TARN_FULL  there are none left.
TARN_MUST_CHECK tarn_status tarn__regions_add(tarn__pool_regions *regions,
                                              size_t most, size_t least,
                                              size_t align,
                                              tarn__pool_region **out_region);

// Whether there is memory in the page at |addr|, which is in a region.
bool tarn__regions_has(const tarn__pool_regions *regions, uint64_t addr);

// Addresses in an unknown state; empty: there are none.
typedef struct tarn__pool_lost {
  uint64_t from;
  uint64_t to;
} tarn__pool_lost;

// Unmaps the page at |addr|, which could not be unmapped before, as the driver
// may be able to by now. Releases the lock. False: it refused, which may mean
// that nothing is mapped there.
bool tarn__regions_retry(const tarn__pool_regions *regions, uint64_t addr);

// Gives the addresses back. Only |lost| ones may be mapped; they are unmapped
// once more.
tarn_status tarn__regions_remove(tarn__pool_regions *regions,
                                 tarn__pool_region *region,
                                 tarn__pool_lost lost);

// Unmaps |stripped| (which may be empty) and maps the bytes from |from| to
// |to|, with the memory that this has freed, then with spares, then with new
// memory. The excess becomes spare.
//
// On a device that moves memory, where |stripped| has no more bytes than are
// wanted, those go straight to |from|, in the order of the list, and new memory
// behind them, in one run. Pages that the device would not move are given back
// and replaced. If the call fails, what has not been touched is kept, and what
// has been moved is given back.
//
// |*out_lost|: the call failed, and pages that it had mapped are in an unknown
// state.
//
// TARN_FULL  the limit or the device is used up.
TARN_MUST_CHECK tarn_status tarn__regions_map(tarn__pool_regions *regions,
                                              tarn__pool_request *request,
                                              tarn__pool_stripped *stripped,
                                              uint64_t from, uint64_t to,
                                              bool *out_lost);

// As tarn__regions_map and _shrink, for devices that move memory.
TARN_MUST_CHECK tarn_status tarn__regions_map_runs(
    tarn__pool_regions *regions, tarn__pool_request *request,
    tarn__pool_stripped *stripped, uint64_t from, uint64_t to, bool *out_lost);
tarn_status tarn__regions_shrink_runs(tarn__pool_regions *regions,
                                      tarn__pool_stripped *stripped);

// Pages and runs that are given back at a time: it needs no host memory.
enum { TARN__REGION_BATCH = 64 };

// How many pages that may be.
size_t tarn__regions_batch(const tarn__pool_regions *regions);

// Unmaps |stripped| and gives its memory back to the device, and that of as
// many as |spares| spares: at most a batch together. Pages for which a device
// that takes memory in parts has no host memory are kept.
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

#endif  // TARN_POOL_REGION_H_
