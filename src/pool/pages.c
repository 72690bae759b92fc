// Handles of memory by page, in leaves that stand in the order of numbers.
#include "pool/region.h"

#include <assert.h>

#include "base/hostmem.h"

static uint64_t leaf_number(uint64_t page) {
  return page / TARN__LEAF_PAGES;
}

static tarn__pool_leaf *leaf_at(tarn__range_map_node *node) {
  return (tarn__pool_leaf *)(void *)node;  // the node is the first member
}

static tarn__pool_leaf *leaf_of(const tarn__range_map *pages, uint64_t number) {
  tarn__range_map_node *node = tarn__range_map_at(pages, number);
  return node != NULL && node->start == number ? leaf_at(node) : NULL;
}

// --- making and ending leaves ----------------------------------------------

static tarn__pool_leaf *add_leaf(tarn__range_map *pages, uint64_t number) {
  tarn__pool_leaf *leaf = tarn__host_alloc(sizeof *leaf);
  if (leaf == NULL) return NULL;
  leaf->node.start = number;
  tarn__range_map_insert(pages, &leaf->node);
  return leaf;
}

static bool is_needed(const tarn__pool_leaf *leaf) {
  return leaf->used != 0 || leaf->awaited != 0;
}

static void end_leaf(tarn__range_map *pages, tarn__pool_leaf *leaf) {
  tarn__range_map_remove(pages, &leaf->node);
  tarn__host_free(leaf, sizeof *leaf);
}

bool tarn__pages_prepare(tarn__range_map *pages, uint64_t from, uint64_t to) {
  for (uint64_t n = leaf_number(from); n <= leaf_number(to - 1); n++) {
    tarn__pool_leaf *leaf = leaf_of(pages, n);
    if (leaf == NULL) leaf = add_leaf(pages, n);
    if (leaf == NULL) {
      tarn__pages_end(pages, from, n * TARN__LEAF_PAGES);
      return false;
    }
    leaf->awaited++;
  }
  return true;
}

void tarn__pages_end(tarn__range_map *pages, uint64_t from, uint64_t to) {
  for (uint64_t n = leaf_number(from); n * TARN__LEAF_PAGES < to; n++) {
    tarn__pool_leaf *leaf = leaf_of(pages, n);
    leaf->awaited--;
    if (!is_needed(leaf)) end_leaf(pages, leaf);
  }
}

// --- handles ---------------------------------------------------------------

static bool has(const tarn__pool_leaf *leaf, uint64_t page) {
  return leaf != NULL && leaf->node.start == leaf_number(page) &&
         leaf->handles[page % TARN__LEAF_PAGES] != 0;
}

tarn_memory tarn__pages_get(const tarn__range_map *pages, uint64_t page) {
  const tarn__pool_leaf *leaf = leaf_of(pages, leaf_number(page));
  return leaf != NULL ? leaf->handles[page % TARN__LEAF_PAGES] : 0;
}

void tarn__pages_set(tarn__range_map *pages, uint64_t page,
                     tarn_memory handle) {
  tarn__pool_leaf *leaf = leaf_of(pages, leaf_number(page));
  assert(leaf != NULL && !has(leaf, page));
  leaf->handles[page % TARN__LEAF_PAGES] = handle;
  leaf->used++;
}

void tarn__pages_mark(tarn__range_map *pages, uint64_t from, uint64_t to) {
  for (uint64_t page = from; page < to; page++)
    tarn__pages_set(pages, page, TARN__PAGE_MARK);
}

void tarn__pages_clear(tarn__range_map *pages, uint64_t from, uint64_t to) {
  for (uint64_t page = from; page < to; page++) {
    tarn__pool_leaf *leaf = leaf_of(pages, leaf_number(page));
    assert(has(leaf, page));
    leaf->handles[page % TARN__LEAF_PAGES] = 0;
    leaf->used--;
    if (!is_needed(leaf)) end_leaf(pages, leaf);
  }
}

static const tarn__pool_leaf *leaf_behind(const tarn__range_map *pages,
                                          const tarn__pool_leaf *leaf) {
  return leaf_at(
      tarn__range_map_behind(pages, leaf != NULL ? &leaf->node : NULL));
}

uint64_t tarn__pages_run(const tarn__range_map *pages, uint64_t *page,
                         uint64_t end) {
  uint64_t number = leaf_number(*page);
  const tarn__pool_leaf *leaf = leaf_at(tarn__range_map_at(pages, number));
  if (leaf == NULL || leaf->node.start < number) {
    leaf = leaf_behind(pages, leaf);
  }
  while (leaf != NULL && *page < end && !has(leaf, *page)) {
    uint64_t first = leaf->node.start * TARN__LEAF_PAGES;
    *page = *page < first ? first : *page + 1;
    if (leaf_number(*page) > leaf->node.start) leaf = leaf_behind(pages, leaf);
  }
  if (leaf == NULL || *page >= end) return 0;
  uint64_t to = *page;
  while (to < end && has(leaf, to)) {
    to++;
    if (to % TARN__LEAF_PAGES == 0) leaf = leaf_behind(pages, leaf);
  }
  return to;
}

// --- the end, and the invariants -------------------------------------------

void tarn__pages_deinit(tarn__range_map *pages) {
  while (pages->root != NULL)
    end_leaf(pages, leaf_at(pages->root));
}

static size_t count_handles(const tarn__pool_leaf *leaf) {
  size_t count = 0;
  for (size_t i = 0; i < TARN__LEAF_PAGES; i++)
    count += leaf->handles[i] != 0;
  return count;
}

size_t tarn__pages_check(const tarn__range_map *pages) {
  size_t sum = 0;
  const tarn__pool_leaf *leaf = NULL;
  if (tarn__range_map_check(pages) != NULL) return SIZE_MAX;
  while ((leaf = leaf_behind(pages, leaf)) != NULL) {
    if (!is_needed(leaf) || leaf->used != count_handles(leaf)) return SIZE_MAX;
    sum += leaf->used;
  }
  return sum;
}
