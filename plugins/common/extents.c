// Taken and free extents: see extents.h.
//
// Invariant: no two free extents touch.
#include "common/extents.h"

#include <string.h>

#include "base/hostmem.h"

typedef tarn__common_extent extent;
typedef tarn__common_extents tree;
typedef tarn__common_run run;

static extent *extent_of(const tarn__range_map_node *node) {
  return (extent *)(uintptr_t)node;
}

static bool is_free(const extent *x) {
  return x->serial == 0;
}

static size_t larger(size_t a, size_t b) {
  return a > b ? a : b;
}

static size_t room_of(const tarn__range_map_node *node) {
  return node != NULL ? extent_of(node)->room : 0;
}

static void summarize(tarn__range_map_node *node) {
  extent *x = extent_of(node);
  x->room = larger(is_free(x) ? x->size : 0,
                   larger(room_of(node->left), room_of(node->right)));
}

static extent *new_extent(const tree *t) {
  extent *x = tarn__host_alloc(sizeof *x + t->record_size);
  if (x != NULL && t->record_size != 0) x->record = x + 1;
  return x;
}

static void free_extent(const tree *t, extent *x) {
  tarn__host_free(x, sizeof *x + t->record_size);
}

// Inserts |x| as |r|, or frees it if that is empty.
static void keep(tree *t, extent *x, run r) {
  if (r.size == 0) {
    free_extent(t, x);
    return;
  }
  x->node.start = r.address;
  x->size = r.size;
  t->map.summarize = summarize;
  tarn__range_map_insert(&t->map, &x->node);
}

extent *tarn__common_extents_add(tree *t, run r, size_t asked,
                                 uint64_t serial) {
  extent *x = new_extent(t);
  if (x == NULL) return NULL;
  x->asked = asked;
  x->serial = serial;
  keep(t, x, r);
  return x;
}

void tarn__common_extents_remove(tree *t, extent *x) {
  tarn__range_map_remove(&t->map, &x->node);
  free_extent(t, x);
}

extent *tarn__common_extents_cut(tree *t, extent *x, size_t size) {
  extent *rest = new_extent(t);
  if (rest == NULL) return NULL;
  bool whole = x->asked == x->size;
  if (t->record_size != 0) memcpy(rest->record, x->record, t->record_size);
  rest->serial = x->serial;
  rest->asked = whole ? x->size - size : 0;
  run r = {x->node.start + size, x->size - size};
  x->size = size;
  if (whole) x->asked = size;
  keep(t, rest, r);
  return rest;
}

void tarn__common_extents_rejoin(tree *t, extent *x, extent *rest) {
  x->size += rest->size;
  x->asked += rest->asked;
  tarn__common_extents_remove(t, rest);
}

void tarn__common_extents_shift(tree *t, extent *x, uint64_t address) {
  tarn__range_map_remove(&t->map, &x->node);
  keep(t, x, (run){address, x->size});
}

extent *tarn__common_extents_any(const tree *t) {
  return extent_of(t->map.root);
}

void tarn__common_extents_clear(tree *t) {
  while (t->map.root != NULL)
    tarn__common_extents_remove(t, extent_of(t->map.root));
  t->cursor = 0;
}

// --- finding ---------------------------------------------------------------

// The last extent that starts at |address| or before.
static extent *extent_at(const tree *t, uint64_t address) {
  return extent_of(tarn__range_map_at(&t->map, address));
}

static bool holds(const extent *x, uint64_t address) {
  return x != NULL && address - x->node.start < x->size;
}

extent *tarn__common_extents_find(const tree *t, uint64_t address) {
  extent *x = extent_at(t, address);
  return holds(x, address) ? x : NULL;
}

extent *tarn__common_extents_from(const tree *t, uint64_t address) {
  extent *x = extent_at(t, address);
  if (holds(x, address)) return x;
  return extent_of(
      tarn__range_map_behind(&t->map, x != NULL ? &x->node : NULL));
}

extent *tarn__common_extents_in(const tree *t, run r) {
  extent *x = tarn__common_extents_from(t, r.address);
  if (x == NULL || x->node.start <= r.address) return x;
  return x->node.start - r.address < r.size ? x : NULL;
}

// Bytes that are searched for: |size| of them, at a multiple of |align|.
typedef struct need {
  size_t size;
  size_t align;
} need;

// Whether |x| has room at |from| or behind, and where.
static bool has_room(const extent *x, uint64_t from, need n, uint64_t *out_at) {
  if (!is_free(x)) return false;
  uint64_t begin = larger(from, x->node.start);
  if (!tarn_size_align_up(begin, n.align, out_at)) return false;
  size_t before = (size_t)(*out_at - x->node.start);
  return before <= x->size && n.size <= x->size - before;
}

// The first free extent that starts at |from| or behind and has room. Where
// free extents start at multiples of |align|, no subtree is searched in vain.
static extent *first_fit(const tarn__range_map_node *node, uint64_t from,
                         need n, uint64_t *out_at) {
  if (room_of(node) < n.size) return NULL;
  if (node->start < from) return first_fit(node->right, from, n, out_at);
  extent *found = first_fit(node->left, from, n, out_at);
  if (found != NULL) return found;
  if (has_room(extent_of(node), 0, n, out_at)) return extent_of(node);
  return first_fit(node->right, from, n, out_at);
}

// The free extent to take from, and where in it.
static extent *choose(const tree *t, need n, uint64_t *out_at) {
  extent *x = tarn__common_extents_find(t, t->cursor);
  if (x != NULL && has_room(x, t->cursor, n, out_at)) return x;
  x = first_fit(t->map.root, t->cursor, n, out_at);
  return x != NULL ? x : first_fit(t->map.root, 0, n, out_at);
}

// --- taking and giving -----------------------------------------------------

extent *tarn__common_extents_take(tree *t, size_t size, size_t align,
                                  size_t asked, uint64_t serial) {
  uint64_t at = 0;
  extent *x = choose(t, (need){size, align}, &at);
  if (x == NULL) return NULL;
  extent *taken = new_extent(t);
  extent *rest = new_extent(t);
  if (taken == NULL || rest == NULL) {
    free_extent(t, taken);
    free_extent(t, rest);
    return NULL;
  }
  uint64_t start = x->node.start;
  uint64_t end = start + x->size;
  tarn__range_map_remove(&t->map, &x->node);
  keep(t, x, (run){start, (size_t)(at - start)});
  taken->asked = asked;
  taken->serial = serial;
  keep(t, taken, (run){at, size});
  t->cursor = at + size;
  keep(t, rest, (run){t->cursor, (size_t)(end - t->cursor)});
  return taken;
}

// Whether |y| starts where |x| ends, and both are free.
static bool can_merge(const extent *x, const extent *y) {
  return x != NULL && y != NULL && is_free(x) && is_free(y) &&
         x->node.start + x->size == y->node.start;
}

static void merge(tree *t, extent *x, extent *y) {
  x->size += y->size;
  tarn__common_extents_remove(t, y);
}

run tarn__common_extents_give(tree *t, extent *x) {
  extent *before = extent_of(tarn__range_map_previous(&x->node));
  extent *behind = extent_of(tarn__range_map_next(&x->node));
  x->asked = 0;
  x->serial = 0;
  x->record = NULL;
  if (can_merge(x, behind)) merge(t, x, behind);
  if (can_merge(before, x)) {
    merge(t, before, x);
    x = before;
  }
  tarn__range_map_update(&t->map, &x->node);
  return (run){x->node.start, x->size};
}
