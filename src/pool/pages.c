// Handles of memory by page, in leaves that stand in the order of numbers.
#include "pool/region.h"

#include <assert.h>
#include <string.h>

#include "base/hostmem.h"

static uint64_t leaf_number(uint64_t page) {
  return page / TARN__LEAF_PAGES;
}

// Of the first leaf whose number is not less than |number|.
static size_t index_of(const tarn__pool_pages *pages, uint64_t number) {
  size_t low = 0;
  size_t high = pages->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (pages->leaves[middle]->number < number) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static tarn__pool_leaf *leaf_of(const tarn__pool_pages *pages, uint64_t page) {
  size_t at = index_of(pages, leaf_number(page));
  bool found =
      at < pages->count && pages->leaves[at]->number == leaf_number(page);
  return found ? pages->leaves[at] : NULL;
}

// --- making and ending leaves ----------------------------------------------

static bool reserve_leaves(tarn__pool_pages *pages, size_t more) {
  size_t room = pages->room != 0 ? pages->room : 8;
  while (room < pages->count + more)
    room *= 2;
  if (room == pages->room) return true;
  tarn__pool_leaf **leaves =
      tarn__host_resize(pages->leaves, pages->room, room, sizeof *leaves);
  if (leaves == NULL) return false;
  pages->leaves = leaves;
  pages->room = room;
  return true;
}

static bool is_needed(const tarn__pool_leaf *leaf) {
  return leaf != NULL && (leaf->used != 0 || leaf->awaited != 0);
}

// Ends what is not needed among the leaves, or empty slots, from |from| to
// |to|.
static void sweep(tarn__pool_pages *pages, size_t from, size_t to) {
  size_t kept = from;
  for (size_t i = from; i < to; i++) {
    tarn__pool_leaf *leaf = pages->leaves[i];
    if (is_needed(leaf)) {
      pages->leaves[kept++] = leaf;
    } else if (leaf != NULL) {
      tarn__host_free(leaf, sizeof *leaf);
    }
  }
  memmove(&pages->leaves[kept], &pages->leaves[to],
          (pages->count - to) * sizeof(tarn__pool_leaf *));
  pages->count -= to - kept;
  if (pages->count == 0) tarn__pages_deinit(pages);
}

// Moves the leaves from |at| on apart, so that each of |wanted| numbers from
// |first| on has a slot, empty where there is no leaf yet.
static void spread(tarn__pool_pages *pages, size_t at, uint64_t first,
                   size_t wanted) {
  size_t there = index_of(pages, first + wanted) - at;
  size_t end = at + wanted;
  memmove(&pages->leaves[end], &pages->leaves[at + there],
          (pages->count - at - there) * sizeof(tarn__pool_leaf *));
  pages->count += wanted - there;
  for (size_t i = end; i-- > at;) {
    tarn__pool_leaf *last = there > 0 ? pages->leaves[at + there - 1] : NULL;
    bool has_it = last != NULL && last->number == first + (i - at);
    if (has_it) there--;
    pages->leaves[i] = has_it ? last : NULL;
  }
}

static bool fill(tarn__pool_pages *pages, size_t at, uint64_t first,
                 size_t wanted) {
  for (size_t i = 0; i < wanted; i++) {
    if (pages->leaves[at + i] != NULL) continue;
    tarn__pool_leaf *leaf = tarn__host_alloc(sizeof *leaf);
    if (leaf == NULL) return false;
    leaf->number = first + i;
    pages->leaves[at + i] = leaf;
  }
  return true;
}

bool tarn__pages_prepare(tarn__pool_pages *pages, uint64_t from, uint64_t to) {
  uint64_t first = leaf_number(from);
  size_t wanted = (size_t)(leaf_number(to - 1) - first) + 1;
  size_t at = index_of(pages, first);
  if (!reserve_leaves(pages, wanted)) return false;
  spread(pages, at, first, wanted);
  if (!fill(pages, at, first, wanted)) {
    sweep(pages, at, at + wanted);
    return false;
  }
  for (size_t i = 0; i < wanted; i++)
    pages->leaves[at + i]->awaited++;
  return true;
}

void tarn__pages_end(tarn__pool_pages *pages, uint64_t from, uint64_t to) {
  size_t first = index_of(pages, leaf_number(from));
  size_t end = index_of(pages, leaf_number(to - 1) + 1);
  for (size_t i = first; i < end; i++)
    pages->leaves[i]->awaited--;
  sweep(pages, first, end);
}

// --- handles ---------------------------------------------------------------

tarn_memory tarn__pages_get(const tarn__pool_pages *pages, uint64_t page) {
  const tarn__pool_leaf *leaf = leaf_of(pages, page);
  return leaf != NULL ? leaf->handles[page % TARN__LEAF_PAGES] : 0;
}

void tarn__pages_set(tarn__pool_pages *pages, uint64_t page,
                     tarn_memory handle) {
  tarn__pool_leaf *leaf = leaf_of(pages, page);
  assert(leaf != NULL && leaf->handles[page % TARN__LEAF_PAGES] == 0);
  leaf->handles[page % TARN__LEAF_PAGES] = handle;
  leaf->used++;
}

void tarn__pages_clear(tarn__pool_pages *pages, uint64_t from, uint64_t to) {
  size_t first = index_of(pages, leaf_number(from));
  size_t at = first;
  for (uint64_t page = from; page < to; page++) {
    while (pages->leaves[at]->number != leaf_number(page))
      at++;
    pages->leaves[at]->handles[page % TARN__LEAF_PAGES] = 0;
    pages->leaves[at]->used--;
  }
  sweep(pages, first, at + 1);
}

static bool has(const tarn__pool_pages *pages, size_t at, uint64_t page) {
  return at < pages->count && pages->leaves[at]->number == leaf_number(page) &&
         pages->leaves[at]->handles[page % TARN__LEAF_PAGES] != 0;
}

uint64_t tarn__pages_run(const tarn__pool_pages *pages, uint64_t *page,
                         uint64_t end) {
  size_t at = index_of(pages, leaf_number(*page));
  while (at < pages->count && *page < end && !has(pages, at, *page)) {
    uint64_t first = pages->leaves[at]->number * TARN__LEAF_PAGES;
    *page = *page < first ? first : *page + 1;
    if (leaf_number(*page) > pages->leaves[at]->number) at++;
  }
  if (at == pages->count || *page >= end) return 0;
  uint64_t to = *page;
  while (to < end && has(pages, at, to)) {
    to++;
    if (to % TARN__LEAF_PAGES == 0) at++;
  }
  return to;
}

// --- the end, and the invariants -------------------------------------------

void tarn__pages_deinit(tarn__pool_pages *pages) {
  for (size_t i = 0; i < pages->count; i++)
    tarn__host_free(pages->leaves[i], sizeof *pages->leaves[i]);
  tarn__host_free_array(pages->leaves, pages->room, sizeof *pages->leaves);
  *pages = (tarn__pool_pages){.leaves = NULL};
}

static size_t count_handles(const tarn__pool_leaf *leaf) {
  size_t count = 0;
  for (size_t i = 0; i < TARN__LEAF_PAGES; i++)
    count += leaf->handles[i] != 0;
  return count;
}

size_t tarn__pages_check(const tarn__pool_pages *pages) {
  size_t sum = 0;
  for (size_t i = 0; i < pages->count; i++) {
    const tarn__pool_leaf *leaf = pages->leaves[i];
    bool ordered = i == 0 || pages->leaves[i - 1]->number < leaf->number;
    if (!ordered || !is_needed(leaf) || leaf->used != count_handles(leaf)) {
      return SIZE_MAX;
    }
    sum += leaf->used;
  }
  return sum;
}
