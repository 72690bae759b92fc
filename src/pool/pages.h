// pages.h - the handles of mapped memory, by the number of their page.
//
//   leaves   [ 12 | . . 7 9 . ... ] [ 13 | 4 4 1 ... ] [ 90001 | 2 . . ... ]
//
// Pages may be as far apart as addresses are: there is a leaf only where a page
// of its 64 has a handle, or is about to get one. Leaves stand in the order of
// their numbers.
//
// Not locked: the owner guards all of it.
#ifndef TARN_POOL_PAGES_H_
#define TARN_POOL_PAGES_H_

#include "tarn/range.h"

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

// The handle of |page|; 0: there is none.
tarn_memory tarn__pages_get(const tarn__pool_pages *pages, uint64_t page);

// Gives |page| its handle, between prepare and end.
void tarn__pages_set(tarn__pool_pages *pages, uint64_t page,
                     tarn_memory handle);

// Takes the handles of the pages from |from| to |to|, which all have one, away.
void tarn__pages_clear(tarn__pool_pages *pages, uint64_t from, uint64_t to);

// The first run of pages with handles from |*page| on, but before |end|:
// |*page| is its first. Returns where it ends; 0: there is none.
uint64_t tarn__pages_run(const tarn__pool_pages *pages, uint64_t *page,
                         uint64_t end);

// Frees what is on the host.
void tarn__pages_deinit(tarn__pool_pages *pages);

// Counts the handles anew; SIZE_MAX: the leaves are out of order, or one says
// something else, or has nothing.
size_t tarn__pages_check(const tarn__pool_pages *pages);

#endif  // TARN_POOL_PAGES_H_
